//! The session as the tracing reads it: each event with its form, its values and its shape; redirects followed, and what the
//! server refused left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::content::{Form, Leaf, Step, decoded, normal, path_leaves, path_parts};
use crate::session::{Answer, Content, Opening, Request, Session, Side, What, header};

/// Headers that the bot's own client writes, or that describe the recorded one.
const HEADERS_OF_THE_CLIENT: [&str; 22] = [
    "host",
    "connection",
    "content-length",
    "user-agent",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "pragma",
    "upgrade",
    "cookie",
    "referer",
    "transfer-encoding",
    "te",
    "keep-alive",
    "priority",
    "dnt",
    "expect",
    "if-none-match",
    "if-modified-since",
    "upgrade-insecure-requests",
    "accept",
    "proxy-connection",
];
/// Headers of an answer that say nothing a client would send back.
const HEADERS_OF_THE_SERVER: [&str; 8] =
    ["date", "content-length", "content-type", "connection", "keep-alive", "server", "etag", "last-modified"];

/// An event with what the tracing wants to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub at_ns: u64,
    pub connection: usize,
    pub deed: Deed,
    /// of the message or body
    pub form: Form,
    pub leaves: Vec<Leaf>,
    pub shape: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Open(Opening),
    Sent(Content),
    Heard(Content),
    Ask(Request),
    Answer(Answer),
    Close,
    Ended,
}

impl Item {
    /// Something that the client said.
    pub fn is_said(&self) -> bool {
        matches!(self.deed, Deed::Open(_) | Deed::Sent(_) | Deed::Ask(_))
    }

    pub fn leaf(&self, place: &[Step]) -> Option<&Leaf> {
        self.leaves.iter().find(|leaf| leaf.place == place)
    }
}

/// All of a session.
#[derive(Debug, Default)]
pub(crate) struct Scene {
    pub target: String,
    pub items: Vec<Item>,
    /// requests that the server refused or never answered, left out
    pub refused: usize,
    /// streams of events, left out
    pub streams: usize,
}

/// Whether a part of a path is a number or an id, as the operations of requests have it.
pub(crate) fn is_id(part: &str) -> bool {
    let has_digit = part.bytes().any(|byte| byte.is_ascii_digit());
    let is_hex = part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_long =
        part.len() >= 20 && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~=".contains(&byte));
    !part.is_empty() && has_digit && (part.parse::<f64>().is_ok() || part.len() >= 16 && is_hex || is_long)
}

/// The operation of a request, as `fetch` names it.
pub(crate) fn operation(request: &Request) -> String {
    let (parts, _) = path_parts(&request.path);
    let parts: Vec<&str> = parts.iter().map(|part| if is_id(part) { ":id" } else { *part }).collect();
    format!("{} {}", request.method, parts.join("/"))
}

impl Scene {
    pub fn of(session: &Session) -> Scene {
        let answers: BTreeMap<usize, &Answer> = session
            .events
            .iter()
            .filter_map(|event| match &event.what {
                What::Answer(answer) => Some((event.connection, answer)),
                _ => None,
            })
            .collect();
        let mut scene = Scene { target: session.target.clone(), ..Scene::default() };
        let mut left_out: BTreeSet<usize> = BTreeSet::new();
        // Where a redirect leads, and the exchange that was redirected.
        let mut leads: Vec<(String, usize)> = Vec::new();
        let mut instead: BTreeMap<usize, usize> = BTreeMap::new();
        // Names of the cookies that the server has set; the bot keeps these itself.
        let mut jar: BTreeSet<String> = BTreeSet::new();
        for event in &session.events {
            let mut connection = event.connection;
            let deed = match &event.what {
                What::Request(request) => {
                    if let Some(at) = leads.iter().position(|(path, _)| *path == request.path) {
                        instead.insert(connection, leads.remove(at).1);
                        continue;
                    }
                    let answer = answers.get(&connection);
                    let status = answer.map_or(0, |answer| answer.status);
                    let kind =
                        answer.and_then(|answer| header(&answer.headers, "content-type")).unwrap_or_default();
                    if kind.starts_with("text/event-stream") {
                        left_out.insert(connection);
                        scene.streams += 1;
                        continue;
                    }
                    if status == 0 || status >= 400 {
                        left_out.insert(connection);
                        scene.refused += 1;
                        continue;
                    }
                    Deed::Ask(request.clone())
                }
                What::Answer(answer) => {
                    if left_out.contains(&connection) {
                        continue;
                    }
                    let lines =
                        answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
                    jar.extend(
                        lines
                            .filter_map(|(_, line)| line.split_once('='))
                            .map(|(name, _)| name.trim().to_owned()),
                    );
                    connection = instead.get(&connection).copied().unwrap_or(connection);
                    if let Some(location) = header(&answer.headers, "location")
                        && (300..400).contains(&answer.status)
                    {
                        leads.push((path_of(location), connection));
                        continue;
                    }
                    Deed::Answer(answer.clone())
                }
                What::Opened(opening) => Deed::Open(opening.clone()),
                What::Message(Side::Client, content) => Deed::Sent(content.clone()),
                What::Message(Side::Server, content) => Deed::Heard(content.clone()),
                What::Closed(Side::Client) => Deed::Close,
                What::Closed(Side::Server) => Deed::Ended,
            };
            scene.items.push(item(event.at_ns, connection, deed, &jar));
        }
        scene
    }
}

fn path_of(location: &str) -> String {
    match url::Url::parse(location) {
        Ok(url) => match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        },
        Err(_) => location.split('#').next().unwrap_or_default().to_owned(),
    }
}

fn item(at_ns: u64, connection: usize, mut deed: Deed, jar: &BTreeSet<String>) -> Item {
    let (form, mut shape) = match &deed {
        Deed::Sent(content) | Deed::Heard(content) => {
            let form = Form::of(content);
            let shape = form.shape(content.bytes.len());
            (form, shape)
        }
        Deed::Ask(request) => {
            let form =
                Form::of_body(&request.body, header(&request.headers, "content-type").unwrap_or_default());
            let shape = format!("{} {}", operation(request), form.shape(request.body.len()));
            (form, shape)
        }
        Deed::Answer(answer) => (Form::of(&Content::bytes(answer.body.as_slice())), "answer".to_owned()),
        Deed::Open(_) | Deed::Close | Deed::Ended => (Form::Bytes, String::new()),
    };
    if !matches!(deed, Deed::Ask(_)) {
        shape = format!("{connection} {shape}");
    }
    let mut leaves = form.leaves();
    match &mut deed {
        Deed::Open(Opening::WebSocket { path, headers, .. }) => {
            let cookies = older_cookies(headers, jar);
            keep(headers);
            headers.extend(cookies.map(|value| ("Cookie".to_owned(), value)));
            leaves.extend(path_leaves(path));
            leaves.extend(headers.iter().map(header_leaf));
        }
        Deed::Ask(request) => {
            // A header of cookies stands in place of the bot's own.
            let cookies = older_cookies(&request.headers, jar).filter(|_| jar.is_empty());
            keep(&mut request.headers);
            request.headers.extend(cookies.map(|value| ("Cookie".to_owned(), value)));
            leaves.extend(path_leaves(&request.path));
            leaves.extend(request.headers.iter().map(header_leaf));
        }
        Deed::Answer(answer) => {
            for (name, value) in &answer.headers {
                let lower = name.to_ascii_lowercase();
                if lower == "set-cookie" {
                    leaves.extend(cookie_leaf(value));
                } else if !HEADERS_OF_THE_SERVER.contains(&lower.as_str()) {
                    leaves.push(header_leaf(&(lower, value.clone())));
                }
            }
        }
        _ => {}
    }
    Item { at_ns, connection, deed, form, leaves, shape }
}

/// Cookies of an earlier session, which the recorded server has not set.
fn older_cookies(headers: &[(String, String)], jar: &BTreeSet<String>) -> Option<String> {
    let all = header(headers, "cookie")?;
    let is_older = |pair: &&str| pair.split_once('=').is_some_and(|(name, _)| !jar.contains(name.trim()));
    let older: Vec<&str> = all.split(';').map(str::trim).filter(is_older).collect();
    (!older.is_empty()).then(|| older.join("; "))
}

/// Leaves what the bot says itself out.
fn keep(headers: &mut Vec<(String, String)>) {
    headers.retain(|(name, value)| {
        let lower = name.to_ascii_lowercase();
        let is_the_clients = HEADERS_OF_THE_CLIENT.contains(&lower.as_str())
            || lower.starts_with("sec-websocket-") && lower != "sec-websocket-protocol"
            || lower.starts_with("sec-fetch-")
            || lower.starts_with("sec-ch-")
            || lower.starts_with("access-control-")
            || lower == "origin";
        !is_the_clients && !value.contains(['\r', '\n', '\0'])
    });
}

fn header_leaf((name, value): &(String, String)) -> Leaf {
    Leaf {
        place: vec![Step::Header(name.clone())],
        name: name.clone(),
        around: String::new(),
        value: value.clone(),
        is_text: true,
        is_kind: ["content-type", "sec-websocket-protocol"].contains(&name.to_ascii_lowercase().as_str()),
    }
}

fn cookie_leaf(line: &str) -> Option<Leaf> {
    let (name, value) = line.split(';').next()?.split_once('=')?;
    Some(Leaf {
        place: vec![Step::Cookie(name.trim().to_owned())],
        name: name.trim().to_owned(),
        around: "cookie".to_owned(),
        value: decoded(value.trim().trim_matches('"')),
        is_text: true,
        is_kind: false,
    })
}

/// Whether two names may mean the same: `roomId` and `room`, `item` and the `id` in `items`.
pub(crate) fn are_alike(said: &Leaf, heard: &Leaf) -> bool {
    let singular = |name: &str| {
        let name = normal(name);
        name.strip_suffix('s').filter(|rest| rest.len() > 1).map(str::to_owned).unwrap_or(name)
    };
    let (one, other) = (singular(&said.name), singular(&heard.name));
    let around = singular(&heard.around);
    let said_around = singular(&said.around);
    if one == "id" && other == "id" {
        return said_around.is_empty() || around.is_empty() || said_around == around;
    }
    let is_same = |one: &str, other: &str| {
        !one.is_empty()
            && !other.is_empty()
            && (one == other || one == format!("{other}id") || other == format!("{one}id"))
    };
    is_same(&one, &other)
        || ["id", "name", "key"].contains(&other.as_str())
            && (is_same(&one, &around) || one == "id" && is_same(&said_around, &around))
}
