//! One real request before any load, for HTTP servers.
//!
//! Refuses only what the user must fix: no HTTP (or TLS, or plain text) server at that port, or a status that says the
//! request itself is wrong. Any other fault is the server's, and the rungs measure how often it occurs; it is reported
//! once and the climb goes on.

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
        network: None,
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
        // A server that closes at once may have given a reason.
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
            // HTTP/2 may have frames to send between two reads.
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
        // Web servers report plain-text connections to a TLS port this way.
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

/// A TLS record of the alert kind; OpenSSL and others send it in reply to plain text.
fn is_tls_alert(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15, 0x03, ..])
}

#[cfg(test)]
mod tests;
