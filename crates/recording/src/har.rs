//! A browser's HAR (HTTP Archive 1.2), with the messages of WebSockets as Chrome, Edge and recent Safari keep them
//! (`_webSocketMessages`: opcode 1 as text, 2 as base64).
//!
//! A page is more than its client: scripts, styles, pictures and other hosts are left out, and how many is told.
//! Source: HAR 1.2 (W3C draft of 2012), DevTools' `Log.ts` for the fields with an underscore.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use url::Url;

use crate::session::{Answer, Content, Event, Opening, Request, Session, Side, What};

/// The year 5138 in seconds, and 1973 in ms.
const SECONDS_MAX: f64 = 1e11;
/// Kinds of requests that a page makes by itself.
const OF_THE_PAGE: [&str; 8] =
    ["script", "stylesheet", "image", "font", "media", "manifest", "texttrack", "preflight"];

/// Why a file is no recording.
#[derive(Debug, thiserror::Error)]
pub enum HarError {
    /// cut, or something else
    #[error("it is no HAR: {0}; save it in the browser's network panel as HAR, with content")]
    Json(#[from] serde_json::Error),
    /// JSON of another kind
    #[error(
        "it is no HAR: there is no \"log\" with \"entries\" in it; save it in the browser's network panel as HAR, with content"
    )]
    NoLog,
    /// a time that is none
    #[error("entry {entry} began at \"{text}\", which is no time")]
    Time {
        /// from 1
        entry: usize,
        /// as written
        text: String,
    },
    /// nothing but pictures and the like
    #[error(
        "none of its {0} entries is a WebSocket or a request of a page's script; open the network panel before the page connects"
    )]
    Nothing(usize),
}

/// A session, and what of the page is not in it.
#[derive(Debug)]
pub struct FromHar {
    /// what the page said to the server
    pub session: Session,
    /// requests for scripts, styles, pictures and the like
    pub of_page: usize,
    /// requests and WebSockets to other hosts
    pub of_others: usize,
    /// WebSockets without the messages in them: an old browser, or one that does not keep them
    pub without_messages: usize,
}

#[derive(Deserialize)]
struct Har {
    log: Option<Log>,
}

#[derive(Deserialize)]
struct Log {
    entries: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    started_date_time: String,
    #[serde(default)]
    time: f64,
    request: Asked,
    #[serde(default)]
    response: Got,
    #[serde(rename = "_resourceType")]
    kind: Option<String>,
    #[serde(rename = "_webSocketMessages")]
    messages: Option<Vec<Heard>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Named>,
    post_data: Option<Posted>,
}

#[derive(Default, Deserialize)]
struct Posted {
    #[serde(default)]
    text: String,
    #[serde(default)]
    encoding: String,
}

#[derive(Default, Deserialize)]
struct Got {
    #[serde(default)]
    status: i64,
    #[serde(default)]
    headers: Vec<Named>,
    #[serde(default)]
    content: Posted,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct Heard {
    #[serde(rename = "type")]
    direction: String,
    /// since 1970: seconds from a browser, ms from Playwright
    time: f64,
    opcode: u8,
    data: String,
}

/// Reads a HAR. The server is that of the first WebSocket, else the one that most requests of scripts went to.
pub fn from_har(text: &[u8]) -> Result<FromHar, HarError> {
    let har: Har = serde_json::from_slice(text)?;
    let entries = har.log.and_then(|log| log.entries).ok_or(HarError::NoLog)?;
    let count = entries.len();
    let mut of_page = 0;
    let mut kept: Vec<(f64, Url, Entry)> = Vec::new();
    for (at, entry) in entries.into_iter().enumerate() {
        let wrong = || HarError::Time { entry: at + 1, text: entry.started_date_time.clone() };
        let began: jiff::Timestamp = entry.started_date_time.parse().map_err(|_| wrong())?;
        let seconds = began.as_nanosecond() as f64 / 1e9;
        let kind = entry.kind.as_deref().unwrap_or("other");
        let Ok(url) = Url::parse(&entry.request.url) else {
            of_page += 1;
            continue;
        };
        let is_known = ["http", "https", "ws", "wss"].contains(&url.scheme()) && url.host_str().is_some();
        let is_icon = url.path().ends_with("/favicon.ico");
        if !is_known || is_icon || OF_THE_PAGE.contains(&kind) || entry.request.method == "OPTIONS" {
            of_page += 1;
            continue;
        }
        kept.push((seconds, url, entry));
    }
    kept.sort_by(|one, other| one.0.total_cmp(&other.0));
    let target = target(&kept).ok_or(HarError::Nothing(count))?;
    let host = target.host_str().map(str::to_owned);
    let here = authority(&target);
    let begin = kept.iter().find(|(_, url, _)| url.host_str() == host.as_deref()).map_or(0.0, |(at, ..)| *at);
    let mut out = FromHar {
        session: Session { target: here.clone(), events: Vec::new() },
        of_page,
        of_others: 0,
        without_messages: 0,
    };
    for (connection, (began, url, entry)) in kept.into_iter().enumerate() {
        if url.host_str() != host.as_deref() {
            out.of_others += 1;
            continue;
        }
        let at = |seconds: f64| (((seconds - begin).max(0.0) * 1e9) as u64).min(u64::MAX / 2);
        let elsewhere = (!is_same(&authority(&url), &here)).then(|| authority(&url));
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let headers = pairs(entry.request.headers);
        let mut push = |at_ns: u64, what: What| out.session.events.push(Event { at_ns, connection, what });
        if url.scheme().starts_with("ws") || entry.messages.is_some() {
            push(at(began), What::Opened(Opening::WebSocket { elsewhere, path, headers }));
            if entry.messages.is_none() {
                out.without_messages += 1;
            }
            for heard in entry.messages.unwrap_or_default() {
                let side = if heard.direction == "send" { Side::Client } else { Side::Server };
                let content = match heard.opcode {
                    1 => Content::text(heard.data),
                    2 => Content::bytes(STANDARD.decode(heard.data.trim()).unwrap_or_default()),
                    // Pings and closes are the browser's own.
                    _ => continue,
                };
                let seconds = if heard.time > SECONDS_MAX { heard.time / 1e3 } else { heard.time };
                push(at(seconds), What::Message(side, content));
            }
            continue;
        }
        let body = entry.request.post_data.map(bytes_of).unwrap_or_default();
        let request = Request { elsewhere, method: entry.request.method, path, headers, body };
        push(at(began), What::Request(request));
        let answer = Answer {
            status: u16::try_from(entry.response.status).unwrap_or(0),
            headers: pairs(entry.response.headers),
            body: bytes_of(entry.response.content),
        };
        push(at(began + entry.time.clamp(0.0, 1e9) / 1e3), What::Answer(answer));
    }
    out.session.events.sort_by_key(|event| event.at_ns);
    Ok(out)
}

fn target(kept: &[(f64, Url, Entry)]) -> Option<Url> {
    let socket =
        kept.iter().find(|(_, url, entry)| url.scheme().starts_with("ws") || entry.messages.is_some());
    if let Some((_, url, _)) = socket {
        return Some(url.clone());
    }
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for (_, url, _) in kept {
        *asked.entry(authority(url)).or_default() += 1;
    }
    // The first of those that most went to.
    kept.iter().map(|(_, url, _)| url).rev().max_by_key(|url| asked.get(&authority(url))).cloned()
}

fn authority(url: &Url) -> String {
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// The same server: `ws:` and `http:` share their ports.
fn is_same(one: &str, other: &str) -> bool {
    let plain = |text: &str| text.replacen("ws", "http", 1);
    let plain = |text: &str| if text.starts_with("ws") { plain(text) } else { text.to_owned() };
    plain(one) == plain(other)
}

fn pairs(named: Vec<Named>) -> Vec<(String, String)> {
    named.into_iter().filter(|one| !one.name.starts_with(':')).map(|one| (one.name, one.value)).collect()
}

fn bytes_of(posted: Posted) -> Vec<u8> {
    match posted.encoding.as_str() {
        "base64" => STANDARD.decode(posted.text.trim()).unwrap_or_default(),
        _ => posted.text.into_bytes(),
    }
}
