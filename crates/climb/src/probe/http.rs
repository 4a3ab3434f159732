//! One real request before any load, for servers of HTTP.
//!
//! What only its author can mend is refused: nobody who speaks HTTP (or TLS, or none) at that port, and a status that
//! says that the request itself is wrong. Whatever else is not right is the server's doing, and the rungs tell how often;
//! it is said once, and the climb goes on.

use std::future::poll_fn;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bots::http::is_redirect;
use bots::http::templates::{CapturedVars, RequestTemplates};
use drivers::http::{Answer, Fault, Http, Media, Outgoing, Received};
use drivers::{Address, Broken, Closed, Http1, Http2, OpenError, ReadBuffer, Upgrade, shown};
use plan::{HttpBots, HttpRequest, HttpVersion, Target, VariableLaw, WorkerPlan, WorkloadSettings as _};
use tokio::time::{sleep, timeout};

use super::handshake::{HANDSHAKE_WITHIN, PAUSE, TRIES, refuse};
use crate::trial::tls;

/// Long enough for a server that computes its first answer, short enough to wait for.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What the first request found.
#[derive(Debug, PartialEq, Eq)]
pub enum First {
    /// a right answer
    Right,
    /// a right answer that is perhaps not the one that was meant, in words
    Doubtful(String),
    /// an answer that is not right, in words; the rungs will count such
    Wrong(String),
}

/// What came of one attempt.
enum Outcome {
    NotOpened(OpenError),
    NoAnswer,
    /// an answer whose head came and whose end did not
    NeverEnded(Media),
    /// the connection ended before the answer's first byte
    Ended,
    /// an answer that breaks the protocol, with its bytes
    Broken(Broken, Vec<u8>),
    /// what its check says
    Answered {
        status: u16,
        wrong: Option<String>,
        location: Option<String>,
        media: Media,
    },
}

/// Sends one of the plan's requests. `worker` is the plan of any worker. Errors: what must be mended before a climb.
pub fn first_request(worker: &WorkerPlan) -> anyhow::Result<First> {
    let Some(http) = HttpBots::of(&worker.bots) else { return Ok(First::Right) };
    match http.version {
        HttpVersion::One => ask::<Http1>(worker, http),
        HttpVersion::Two => ask::<Http2>(worker, http),
    }
}

fn ask<D: Http>(worker: &WorkerPlan, http: &HttpBots) -> anyhow::Result<First> {
    let target = &worker.target;
    let address = Address {
        socket: worker.address,
        host: target.authority(),
        login: None,
        path: plan::percent::encoded(&target.path).into_owned(),
        tls: tls(target)?,
        reply_bytes_max: worker.bots.reply_bytes_max(),
        upgrade: Upgrade::default(),
        speaks: Default::default(),
    };
    let mut templates = RequestTemplates::of::<D>(worker, http);
    let index = harmless(http);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .context("the first request cannot be tried")?;
    let within = ANSWER_WITHIN.min(Duration::from_nanos(http.timeout_ns));
    let outcome = runtime.block_on(async {
        for _ in 1..TRIES {
            match attempt::<D>(&address, &mut templates, index, within).await {
                // A server that has just begun to listen may close the first connections.
                Outcome::Ended | Outcome::NotOpened(OpenError::ClosedEarly | OpenError::Refused) => {
                    sleep(PAUSE).await;
                }
                outcome => return outcome,
            }
        }
        attempt::<D>(&address, &mut templates, index, within).await
    });
    let request = &http.requests[index];
    let asked = format!("{} {}", request.method, request.path);
    told(target, &asked, within, outcome, http, request)
}

/// The request that is tried: one that changes nothing and needs nothing of earlier answers, as far as there is one.
fn harmless(http: &HttpBots) -> usize {
    let is_captured = |name: &str| {
        let variable = http.variables.iter().find(|variable| variable.name == name);
        variable.is_some_and(|variable| matches!(variable.law, VariableLaw::Captured(_)))
    };
    let rank = |index: &usize| {
        let request = &http.requests[*index];
        let texts = [&request.path, &request.body].into_iter();
        let texts = texts.chain(request.headers.iter().map(|(_, value)| value));
        let needs_answers =
            texts.flat_map(|text| plan::units::http::braced(text)).any(|(name, _)| is_captured(name));
        (needs_answers, !matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS"))
    };
    (0..http.requests.len()).min_by_key(rank).unwrap_or(0)
}

async fn attempt<D: Http>(
    address: &Address,
    templates: &mut RequestTemplates<D::Prepared>,
    index: usize,
    within: Duration,
) -> Outcome {
    let opens = async { D::open(D::begin_connect(address, None)?, address).await };
    let mut socket = match timeout(HANDSHAKE_WITHIN, opens).await.unwrap_or(Err(OpenError::Timeout)) {
        Ok(socket) => socket,
        Err(error) => return Outcome::NotOpened(error),
    };
    let mut buffer = ReadBuffer::new();
    let answer = async {
        let ready = templates.render_or_reuse::<D>(index, &CapturedVars::new());
        let request = ready.as_ref().clone();
        drop(ready);
        if socket.send(Outgoing { prepared: &request, tag: 0 }).is_err() {
            return Outcome::Ended;
        }
        // A server that hangs up at once has perhaps said why.
        let _ = poll_fn(|cx| socket.poll_flush(cx)).await;
        loop {
            while let Some(received) = socket.next(&mut buffer) {
                match received {
                    Ok(
                        Received::Began { .. }
                        | Received::Leaving
                        | Received::Unpaired { .. }
                        | Received::PutOff { .. },
                    ) => {}
                    Ok(Received::Answer(answer)) => {
                        let media = socket.media().unwrap_or(Media::Other);
                        return answered(templates, index, &answer, media);
                    }
                    Err(broken) => return Outcome::Broken(broken, Vec::new()),
                }
            }
            // HTTP/2 has something to say between two reads.
            let read = poll_fn(|cx| {
                let _ = socket.poll_flush(cx);
                socket.poll_read(cx, &mut buffer)
            });
            match read.await {
                Ok(_) => {}
                Err(Closed::Broken(broken)) => return Outcome::Broken(broken, Vec::new()),
                Err(Closed::ByPeer(_) | Closed::Failed(_) | Closed::NotOpened(_)) => return Outcome::Ended,
            }
        }
    };
    let outcome = timeout(within, answer).await.unwrap_or(Outcome::NoAnswer);
    match outcome {
        Outcome::NoAnswer => socket.media().map_or(Outcome::NoAnswer, Outcome::NeverEnded),
        Outcome::Broken(broken, _) => Outcome::Broken(broken, buffer.rest().to_vec()),
        outcome => outcome,
    }
}

fn answered<P: Clone + std::fmt::Debug + 'static>(
    templates: &RequestTemplates<P>,
    index: usize,
    answer: &Answer<'_>,
    media: Media,
) -> Outcome {
    let wrong = templates.check_response(index, answer).err().map(|wrong| wrong.to_string());
    let location = answer.location.map(|location| shown(location.as_bytes()));
    Outcome::Answered { status: answer.status, wrong, location, media }
}

/// What makes a right answer doubtful: it leads elsewhere, or is a page for people where a program asks. A login page answers
/// fast, and what was to be measured does not answer at all.
fn doubt(
    asked: &str,
    request: &HttpRequest,
    status: u16,
    location: Option<&str>,
    media: Media,
) -> Option<String> {
    if is_redirect(status) && request.check.status.is_empty() {
        let to = location.map_or(String::new(), |location| format!(" to {location}"));
        return Some(format!(
            "{asked} is answered with a redirect ({status}{to}), which counts as right and is not followed; --redirects 5 \
             follows it, --expect-status 200 refuses it, and a login may be missing (--header)"
        ));
    }
    let says_json = |value: &str| value.to_ascii_lowercase().contains("json");
    let accepts = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("accept"));
    let expects_json = match accepts {
        Some((_, value)) if value.to_ascii_lowercase().contains("html") => None,
        Some((_, value)) if says_json(value) => Some("the request accepts JSON"),
        _ if !request.check.json.is_empty() => Some("JSON is expected"),
        _ if is_json(&request.body) => Some("the request sends JSON"),
        _ => None,
    };
    let why = expects_json.filter(|_| media == Media::Html)?;
    Some(format!(
        "{asked} is answered with a page (text/html) where {why}; such an answer counts as right unless a check says what \
         is (--expect-text, or check in a scenario)"
    ))
}

fn is_json(body: &str) -> bool {
    body.trim_start().starts_with(['{', '['])
}

fn told(
    target: &Target,
    asked: &str,
    within: Duration,
    outcome: Outcome,
    http: &HttpBots,
    request: &HttpRequest,
) -> anyhow::Result<First> {
    let is_tls = target.scheme.is_tls();
    let other = |scheme: &str| {
        let rest = target.to_string();
        let rest = rest.split_once("://").map_or(rest.as_str(), |(_, rest)| rest);
        format!("{scheme}://{rest}")
    };
    match outcome {
        Outcome::Answered { status: 300..=399, .. } if http.redirects_max > 0 => Ok(First::Right),
        Outcome::Answered { wrong: None, status, location, media } => {
            let doubt = doubt(asked, request, status, location.as_deref(), media);
            Ok(doubt.map_or(First::Right, First::Doubtful))
        }
        // Web servers tell whoever comes without TLS so.
        Outcome::Answered { status: 400, wrong: Some(_), .. } if !is_tls => bail!(
            "{target} answers the first request, {asked}, with status 400 (bad request), and so it would answer all others; \
             check path and headers, and whether it wants https://"
        ),
        Outcome::Answered { status: status @ (400..=428 | 430..=499), wrong: Some(_), .. } => bail!(
            "{target} answers the first request, {asked}, with status {status}, and so it would answer all others; check \
             path, method and headers, or say that it is right (--expect-status {status})"
        ),
        Outcome::Answered { wrong: Some(words), .. } => Ok(First::Wrong(words)),
        Outcome::Broken(Broken::Http(Fault::NotHttp | Fault::Unasked), bytes)
            if !is_tls && is_tls_alert(&bytes) =>
        {
            bail!("{target} wants TLS: it answers a plain request with an alert; climb {}", other("https"))
        }
        Outcome::Broken(Broken::Http(Fault::NotHttp | Fault::Unasked), bytes) => bail!(
            "{target} is not an HTTP server: it answers {asked} with \"{}\"; check its port",
            shown(bytes.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end())
        ),
        Outcome::Broken(Broken::Http(Fault::Two), bytes) => bail!(
            "{target} does not speak HTTP/2{}; without --http 2 it is asked over HTTP/1.1",
            if bytes.is_empty() { String::new() } else { format!(" ({})", shown(&bytes)) }
        ),
        Outcome::Broken(broken, bytes) => {
            Ok(First::Wrong(format!("{asked}: {broken} in \"{}\"", shown(&bytes))))
        }
        Outcome::NeverEnded(Media::EventStream) => bail!(
            "{target} answers {asked} with a stream of events (text/event-stream), which did not end within {} s; Stepladder \
             measures answers that end, so name a path that gives one",
            within.as_secs_f64()
        ),
        Outcome::NeverEnded(_) => bail!(
            "{target} began to answer {asked}, but the answer never ended within {} s; check whether it hangs",
            within.as_secs_f64()
        ),
        Outcome::NoAnswer => bail!(
            "{target} accepts connections but did not answer {asked} within {} s; check its port, and whether it hangs",
            within.as_secs_f64()
        ),
        Outcome::Ended => bail!(
            "{target} closes connections instead of answering {asked} (tried {TRIES} times); check its port, and whether \
             it wants https:// or http://"
        ),
        Outcome::NotOpened(OpenError::Tls(why)) if why.contains("InvalidContentType") => bail!(
            "{target} does not speak TLS: it answers the handshake in plain text; climb {}",
            other("http")
        ),
        Outcome::NotOpened(OpenError::WrongProtocol { why, .. }) if http.version == HttpVersion::Two => {
            bail!("{target} does not speak HTTP/2: {why}; without --http 2 it is asked over HTTP/1.1")
        }
        Outcome::NotOpened(error) => {
            refuse(target, error)?;
            Ok(First::Right)
        }
    }
}

/// A TLS record of the alert kind; OpenSSL and others send it to whoever speaks in plain text.
fn is_tls_alert(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15, 0x03, ..])
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use plan::{Flags, Plan, resolve};

    use super::*;

    /// Listens on a free port of loopback, treats every connection in this way, and asks it as `http://…` or `https://…`.
    fn first(
        scheme: &str,
        options: &str,
        treat: impl Fn(TcpStream) + Send + 'static,
    ) -> anyhow::Result<First> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || listener.incoming().flatten().for_each(treat));
        let insecure = if scheme == "https" { "--insecure" } else { "" };
        let flags = Flags::of(&format!("{scheme}://{address}/a?b=1 {insecure} {options}"));
        ask_plan(&resolve(&flags, None, 1).unwrap())
    }

    fn ask_plan(plan: &Plan) -> anyhow::Result<First> {
        let plan::SubjectSource::Running { target, .. } = &plan.subject.source else { panic!("{plan:?}") };
        let address = (target.literal_address().unwrap(), target.port).into();
        first_request(&plan::split(plan, 1.0, target, address, 1, &[])[0])
    }

    /// Reads the request, then says this and hangs up.
    fn says(words: impl Into<Vec<u8>>) -> impl Fn(TcpStream) {
        let words = words.into();
        move |mut stream| {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(&words);
        }
    }

    #[track_caller]
    fn check_refused(found: anyhow::Result<First>, fragments: &[&str]) {
        let text = format!("{:#}", found.expect_err("refused"));
        for fragment in fragments {
            assert!(text.contains(fragment), "{text}");
        }
    }

    const RIGHT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    #[test]
    fn a_right_answer_lets_the_climb_begin() {
        let asked = |mut stream: TcpStream| {
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..count]).into_owned();
            let is_ours = request.starts_with("GET /a?b=1 HTTP/1.1\r\n");
            stream.write_all(if is_ours { RIGHT } else { "HTTP/1.1 400 no\r\n\r\n" }.as_bytes()).unwrap();
        };
        assert_eq!(first("http", "", asked).unwrap(), First::Right);
        let moved = says("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n");
        let First::Doubtful(words) = first("http", "", moved).unwrap() else { panic!("a word") };
        let begins =
            "GET /a?b=1 is answered with a redirect (302 to /b), which counts as right and is not followed;";
        assert!(words.starts_with(begins), "{words}");
    }

    #[test]
    fn a_page_for_people_is_doubtful_where_json_is_meant_and_nowhere_else() {
        let answer = |content_type: &str| {
            says(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: 5\r\n\r\n<a/>\n"
            ))
        };
        let page = "text/html; charset=utf-8";
        for (options, content_type, doubt) in [
            ("--header 'Accept: application/json'", page, Some("where the request accepts JSON")),
            ("--method POST --body '{}'", page, Some("where the request sends JSON")),
            ("--header 'Accept: application/json'", "application/json", None),
            ("--header 'Accept: text/html, application/json'", page, None),
            ("", page, None),
            ("--expect-status 302", page, None),
            ("--header 'Accept: application/json'", "text/htmlx", None),
        ] {
            match (first("http", options, answer(content_type)), doubt) {
                (Ok(First::Doubtful(words)), Some(doubt)) => assert!(words.contains(doubt), "{words}"),
                (Ok(First::Right), None) => {}
                (Ok(First::Wrong(_)), None) if options.contains("302") => {}
                (found, _) => panic!("{options} {content_type}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_redirect_that_is_expected_or_followed_is_not_doubtful() {
        for options in ["--expect-status 302", "--redirects 5"] {
            let moved = says("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(first("http", options, moved).unwrap(), First::Right, "{options}");
        }
    }

    #[test]
    fn an_answer_that_never_ends_is_told_apart_from_none_and_a_stream_of_events_is_named() {
        let stays_open = |head: &'static str| {
            move |mut stream: TcpStream| {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request);
                let _ = stream.write_all(head.as_bytes());
                std::mem::forget(stream);
            }
        };
        let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let chunked = "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream; charset=utf-8\r\n\
                       Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n";
        for head in [events, chunked] {
            check_refused(
                first("http", "--timeout 300ms", stays_open(head)),
                &[
                    "answers GET /a?b=1 with a stream of events (text/event-stream), which did not end within 0.3 s",
                ],
            );
        }
        for head in [
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        ] {
            check_refused(
                first("http", "--timeout 300ms", stays_open(head)),
                &[
                    "began to answer GET /a?b=1, but the answer never ended within 0.3 s; check whether it hangs",
                ],
            );
        }
        // A head that is not whole is no answer yet.
        check_refused(
            first(
                "http",
                "--timeout 300ms",
                stays_open("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"),
            ),
            &["did not answer GET /a?b=1 within 0.3 s"],
        );
        let ends = says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
        assert_eq!(first("http", "", ends).unwrap(), First::Right, "events that end are an answer");
    }

    #[test]
    fn a_server_that_answers_wrongly_is_climbed_after_a_word() {
        let text = "--expect-text bye";
        for (http, answer, words) in [
            ("", "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "status 500"),
            ("", "HTTP/1.1 503 Full\r\nContent-Length: 0\r\n\r\n", "status 503"),
            ("", "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", "status 429"),
            (text, RIGHT, "\"bye\" is not in \"hello\""),
            ("", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "cut off"),
            ("", "HTTP/1.1 2x0 OK\r\n\r\n", "a broken status line"),
        ] {
            match first("http", http, says(answer)).unwrap() {
                First::Wrong(found) => assert!(found.contains(words), "{found}"),
                found => panic!("{answer}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_request_that_the_server_calls_wrong_is_refused() {
        let answers = |status: &str| says(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
        check_refused(
            first("http", "", answers("404 Not Found")),
            &["answers the first request, GET /a?b=1, with status 404", "(--expect-status 404)"],
        );
        check_refused(
            first("http", "", answers("400 Bad Request")),
            &["with status 400 (bad request)", "whether it wants https://"],
        );
        let expected = "--expect-status 404";
        assert_eq!(first("http", expected, answers("404 Not Found")).unwrap(), First::Right);
    }

    #[test]
    fn whoever_does_not_speak_http_is_named_by_its_first_words() {
        check_refused(
            first("http", "", says("SSH-2.0-OpenSSH_9.2\r\nmore")),
            &["is not an HTTP server: it answers GET /a?b=1 with \"SSH-2.0-OpenSSH_9.2\"; check its port"],
        );
        check_refused(
            first("http", "", drop),
            &["closes connections instead of answering GET /a?b=1 (tried 3 times)", "https:// or http://"],
        );
        let silent = "--timeout 200ms";
        check_refused(
            first("http", silent, std::mem::forget),
            &["did not answer GET /a?b=1 within 0.2 s; check its port, and whether it hangs"],
        );
    }

    #[test]
    fn tls_where_there_is_none_and_none_where_there_is_are_told_apart() {
        check_refused(
            first("https", "", says("HTTP/1.1 400 Bad Request\r\n\r\n")),
            &["does not speak TLS: it answers the handshake in plain text; climb http://127.0.0.1:"],
        );
        // An alert of the kind `protocol_version`, as OpenSSL says it to plain text.
        check_refused(
            first("http", "", says([0x15, 0x03, 0x01, 0, 2, 2, 70])),
            &["wants TLS: it answers a plain request with an alert; climb https://127.0.0.1:"],
        );
    }

    #[test]
    fn a_server_of_http_1_alone_is_not_asked_over_http_2() {
        let two = "--http 2";
        let old = says("HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: 0\r\n\r\n");
        check_refused(
            first("http", two, old),
            &["does not speak HTTP/2: ", "505", "without --http 2 it is asked over HTTP/1.1"],
        );
    }

    #[test]
    fn nobody_there_is_said_in_plain_words() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let flags = Flags::climb(format!("http://{free}"));
        check_refused(
            ask_plan(&resolve(&flags, None, 1).unwrap()),
            &["cannot be connected to: connection refused"],
        );
    }

    #[test]
    fn a_request_that_changes_nothing_goes_first() {
        let requests =
            "[{ delete: \"/{id}\" }, { post: /, capture: { id: /id } }, { get: \"/{id}\" }, { head: / }]";
        let text = format!("subject: http://127.0.0.1\nbots: {{ kind: http, requests: {requests} }}\n");
        let scenario = plan::ScenarioText { path: "x.yaml".into(), text };
        let flags = Flags::climb("x.yaml");
        let plan = resolve(&flags, Some(scenario), 1).unwrap();
        let http = HttpBots::of(&plan.bots).expect("requests");
        assert_eq!(harmless(http), 3);
        let mut without = http.clone();
        without.requests.truncate(3);
        assert_eq!(harmless(&without), 1, "a POST, rather than something that nobody has captured yet");
    }
}
