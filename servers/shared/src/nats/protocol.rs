//! The part of the NATS client protocol that nodes need. Pure.
//!
//! Source: docs.nats.io, reference/reference-protocols/nats-protocol.

use std::io::Write as _;

use memchr::memchr;
use serde_json::{Value, json};

use super::address::Login;

/// The longest control line; an INFO lists the addresses of a whole cluster.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The longest payload that is taken: NATS servers forbid more.
const PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What the broker sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The longest payload that it takes, in bytes.
    pub payload_bytes_max: usize,
    /// It speaks TLS only.
    pub wants_tls: bool,
    /// It asks who a client is.
    pub wants_login: bool,
}

/// What the broker says.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'b> {
    /// Its first words.
    Info(Info),
    /// Of the subscription with this number.
    Message {
        /// As it was given.
        subscription: u64,
        /// What was published.
        payload: &'b [u8],
    },
    /// To be answered.
    Ping,
    /// The answer to ours.
    Pong,
    /// It has understood.
    Ok,
    /// Its words, without quotes.
    Error(&'b str),
}

/// What came is not the NATS protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what it sent is not the NATS protocol")]
pub struct Broken;

/// The first event and how many bytes it takes; `None` while it is not whole.
pub fn front(bytes: &[u8]) -> Result<Option<(Event<'_>, usize)>, Broken> {
    let Some(end) = memchr(b'\n', bytes) else {
        return if bytes.len() > LINE_BYTES_MAX { Err(Broken) } else { Ok(None) };
    };
    if end > LINE_BYTES_MAX {
        return Err(Broken);
    }
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let line = std::str::from_utf8(line).map_err(|_| Broken)?;
    let (verb, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let (begin, rest) = (end + 1, rest.trim());
    let event = match verb.to_ascii_uppercase().as_str() {
        "MSG" => return message(bytes, begin, rest),
        "INFO" => Event::Info(info(rest)?),
        "PING" => Event::Ping,
        "PONG" => Event::Pong,
        "+OK" => Event::Ok,
        "-ERR" => Event::Error(rest.trim_matches('\'')),
        _ => return Err(Broken),
    };
    Ok(Some((event, begin)))
}

/// `SUBJECT SUBSCRIPTION [REPLY] BYTES`, and the payload behind it.
fn message<'b>(bytes: &'b [u8], begin: usize, words: &str) -> Result<Option<(Event<'b>, usize)>, Broken> {
    let words: Vec<&str> = words.split_ascii_whitespace().collect();
    let ([_, subscription, length] | [_, subscription, _, length]) = words[..] else { return Err(Broken) };
    let subscription = subscription.parse().map_err(|_| Broken)?;
    let length: usize = length.parse().map_err(|_| Broken)?;
    if length > PAYLOAD_BYTES_MAX {
        return Err(Broken);
    }
    let end = begin + length;
    let Some(after) = bytes.get(end..end + 2) else { return Ok(None) };
    if after != b"\r\n" {
        return Err(Broken);
    }
    Ok(Some((Event::Message { subscription, payload: &bytes[begin..end] }, end + 2)))
}

fn info(text: &str) -> Result<Info, Broken> {
    let info: Value = serde_json::from_str(text).map_err(|_| Broken)?;
    let is = |name: &str| info[name].as_bool().unwrap_or(false);
    let payload_bytes_max = info["max_payload"].as_u64().ok_or(Broken)?;
    Ok(Info {
        payload_bytes_max: usize::try_from(payload_bytes_max).map_err(|_| Broken)?,
        wants_tls: is("tls_required"),
        wants_login: is("auth_required"),
    })
}

/// The first words of a client. What it publishes does not come back to it.
pub(crate) fn connect(out: &mut Vec<u8>, name: &str, login: &Login) {
    let mut words = json!({
        "verbose": false, "pedantic": false, "tls_required": false, "echo": false, "protocol": 1,
        "lang": "rust", "version": env!("CARGO_PKG_VERSION"), "name": name,
    });
    match login {
        Login::None => {}
        Login::Password { user, password } => {
            words["user"] = user.as_str().into();
            words["pass"] = password.as_str().into();
        }
        Login::Token(token) => words["auth_token"] = token.as_str().into(),
    }
    let _ = write!(out, "CONNECT {words}\r\n");
}

pub(crate) fn subscribe(out: &mut Vec<u8>, subject: &str, subscription: u64) {
    let _ = write!(out, "SUB {subject} {subscription}\r\n");
}

pub(crate) fn unsubscribe(out: &mut Vec<u8>, subscription: u64) {
    let _ = write!(out, "UNSUB {subscription}\r\n");
}

/// A message of these parts, one after the other.
pub(crate) fn publish(out: &mut Vec<u8>, subject: &str, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let _ = write!(out, "PUB {subject} {length}\r\n");
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(b"\r\n");
}

pub(crate) const PING: &[u8] = b"PING\r\n";
pub(crate) const PONG: &[u8] = b"PONG\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_broker_sends_is_read_whole_or_not_yet() {
        let info = Info { payload_bytes_max: 1_048_576, wants_tls: false, wants_login: true };
        let hello = b"INFO {\"server_id\":\"x\",\"max_payload\":1048576,\"auth_required\":true}\r\n";
        for (bytes, event) in [
            (&hello[..], Event::Info(info)),
            (b"MSG a.b 7 5\r\nhello\r\n", Event::Message { subscription: 7, payload: b"hello" }),
            (b"MSG a 7 reply.to 0\r\n\r\n", Event::Message { subscription: 7, payload: b"" }),
            (b"msg a 7 2\r\n\r\n\r\n", Event::Message { subscription: 7, payload: b"\r\n" }),
            (b"PING\r\n", Event::Ping),
            (b"pong\r\n", Event::Pong),
            (b"+OK\r\n", Event::Ok),
            (b"-ERR 'Slow Consumer'\r\n", Event::Error("Slow Consumer")),
        ] {
            for cut in 0..bytes.len() {
                assert_eq!(front(&bytes[..cut]), Ok(None), "{}", bytes[..cut].escape_ascii());
            }
            let with_more = [bytes, b"PING\r\n"].concat();
            assert_eq!(front(&with_more), Ok(Some((event, bytes.len()))), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_is_not_the_protocol_is_refused_and_never_waited_for() {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"\xff\n",
            b"INFO nothing\r\n",
            b"INFO {}\r\n",
            b"MSG a 7\r\n",
            b"MSG a 7 b c 1\r\n",
            b"MSG a x 1\r\n",
            b"MSG a 7 -1\r\n",
            b"MSG a 7 99999999999\r\n",
            b"MSG a 7 1\r\nabc",
            &[b'x'; LINE_BYTES_MAX + 1],
        ] {
            assert_eq!(front(bytes), Err(Broken), "{}", bytes[..bytes.len().min(40)].escape_ascii());
        }
    }

    #[test]
    fn secrets_are_written_as_json() {
        let mut out = Vec::new();
        connect(&mut out, "n", &Login::Password { user: "a\"b".into(), password: "\r\nPUB x".into() });
        let text = String::from_utf8(out).unwrap();
        let words: Value = serde_json::from_str(text.strip_prefix("CONNECT ").unwrap()).unwrap();
        assert_eq!(
            (&words["user"], &words["pass"], &words["echo"]),
            (&json!("a\"b"), &json!("\r\nPUB x"), &json!(false))
        );
        assert_eq!(text.matches("\r\n").count(), 1);
    }
}
