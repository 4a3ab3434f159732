use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use plan::{Flags, Plan, resolve};

use super::*;

/// Listens on a free port of loopback, treats every connection in this way, and asks it as `http://…` or `https://…`.
fn first(scheme: &str, options: &str, treat: impl Fn(TcpStream) + Send + 'static) -> anyhow::Result<First> {
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

/// Reads the request, then sends this and closes.
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
        says(format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: 5\r\n\r\n<a/>\n"))
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
            &["began to answer GET /a?b=1, but the answer never ended within 0.3 s; check whether it hangs"],
        );
    }
    // An incomplete head is not an answer yet.
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
    // A `protocol_version` alert, as OpenSSL sends it in reply to plain text.
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
