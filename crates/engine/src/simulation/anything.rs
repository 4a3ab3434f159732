//! Simulated connections of any protocol, as in `drivers::Any`: text, binary messages and datagrams, requests and the
//! pieces of their answers.
//!
//! Text and bytes reach a server unchanged. A server's output is text unless it was built by a function of `Anything`;
//! those start with a byte that no text contains.

use drivers::any::{Received, Send};
use drivers::http::{Fault, Fetch, Head, Headers, Piece};

use super::wire::Freight;

/// Whatever goes over a connection that may be any.
pub struct Anything;

/// A request as it arrives at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// comes back with the answer
    pub tag: u32,
    /// `GET`, `POST` …
    pub method: &'a str,
    /// path and query
    pub path: &'a str,
    /// lines that end with `\n`, `name: value` each
    pub headers: &'a str,
    /// may be empty
    pub body: &'a [u8],
}

/// No UTF-8 has it.
const MARK: u8 = 0xFF;
/// What follows the mark: the kind, and the tag.
const BEGIN_BYTES: usize = 6;
const STATUS_BYTES: usize = size_of::<u16>();
const CODE_BYTES: usize = size_of::<u16>();

impl Anything {
    /// A binary message, a frame or a datagram, for bots that tell it from a text.
    pub fn binary(bytes: &[u8]) -> Vec<u8> {
        marked(b'b', 0, &[bytes])
    }

    /// The head of an answer; `headers` are lines that end with `\n`.
    pub fn head(tag: u32, status: u16, headers: &str) -> Vec<u8> {
        marked(b'h', tag, &[&status.to_le_bytes(), headers.as_bytes()])
    }

    /// More of its body; not nothing.
    pub fn part(tag: u32, bytes: &[u8]) -> Vec<u8> {
        marked(b'p', tag, &[bytes])
    }

    /// The answer is whole.
    pub fn end(tag: u32) -> Vec<u8> {
        marked(b'e', tag, &[])
    }

    /// The same, and the connection takes no further request.
    pub fn last_end(tag: u32) -> Vec<u8> {
        marked(b'E', tag, &[])
    }

    /// The answer breaks off, as one that a server of HTTP/2 resets.
    pub fn reset(tag: u32, words: &str) -> Vec<u8> {
        marked(b'r', tag, &[words.as_bytes()])
    }

    /// The server's close.
    pub fn leaving() -> Vec<u8> {
        marked(b'l', 0, &[])
    }

    /// The server did not look at the request with that tag.
    pub fn put_off(tag: u32) -> Vec<u8> {
        marked(b'o', tag, &[])
    }

    /// The code and the words with which the bots close a WebSocket.
    pub fn goodbye(message: &[u8]) -> Option<(Option<u16>, &str)> {
        let (b'g', _, rest) = unmarked(message)? else { return None };
        let (code, reason) = rest.split_first_chunk::<CODE_BYTES>()?;
        let code = Some(u16::from_le_bytes(*code)).filter(|code| *code > 0);
        Some((code, std::str::from_utf8(reason).ok()?))
    }

    /// The request that has arrived; `None`: it is a message.
    pub fn request(message: &[u8]) -> Option<Asked<'_>> {
        let (b'q', tag, rest) = unmarked(message)? else { return None };
        let end = rest.windows(2).position(|two| two == b"\n\n")?;
        let (first, headers) = std::str::from_utf8(&rest[..=end]).ok()?.split_once('\n')?;
        let (method, path) = first.split_once(' ')?;
        Some(Asked { tag, method, path, headers, body: &rest[end + 2..] })
    }

    /// The tag of the request that the bots gave up.
    pub fn cancelled(message: &[u8]) -> Option<u32> {
        unmarked(message).filter(|(kind, ..)| *kind == b'c').map(|(_, tag, _)| tag)
    }
}

fn marked(kind: u8, tag: u32, parts: &[&[u8]]) -> Vec<u8> {
    [&[MARK, kind][..], &tag.to_le_bytes(), &parts.concat()].concat()
}

/// What follows the mark: the kind, the tag and the rest.
fn unmarked(bytes: &[u8]) -> Option<(u8, u32, &[u8])> {
    let (begin, rest) = bytes.split_first_chunk::<BEGIN_BYTES>()?;
    let [MARK, kind, tag @ ..] = *begin else { return None };
    Some((kind, u32::from_le_bytes(tag), rest))
}

impl Freight for Anything {
    type Send<'a> = Send<'a>;
    type Received<'a> = Received<'a>;

    fn bytes(what: Send<'_>) -> Vec<u8> {
        match what {
            Send::Text(bytes) | Send::Binary(bytes) => bytes.to_vec(),
            Send::Cancel(tag) => marked(b'c', tag, &[]),
            Send::Close { code, reason } => {
                marked(b'g', 0, &[&code.unwrap_or(0).to_le_bytes(), reason.as_bytes()])
            }
            Send::Request(Fetch { tag, method, path, headers, body, keep_alive: _ }) => {
                let lines: Vec<String> =
                    headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
                let head = format!("{method} {path}\n{}\n", lines.concat());
                marked(b'q', tag, &[head.as_bytes(), body])
            }
        }
    }

    fn received(bytes: &[u8]) -> Received<'_> {
        let Some((kind, tag, rest)) = unmarked(bytes) else { return Received::Text(bytes) };
        Received::Http(match kind {
            b'b' => return Received::Binary(rest),
            b'h' => {
                let (status, lines) = rest.split_first_chunk::<STATUS_BYTES>().unwrap_or((&[0; 2], rest));
                let (status, headers) = (u16::from_le_bytes(*status), Headers::of(lines));
                Piece::Head(Head { tag, status, reason: b"", headers })
            }
            b'p' => Piece::Part { tag, bytes: rest },
            b'e' => Piece::End { tag, closes: false },
            b'E' => Piece::End { tag, closes: true },
            b'r' => Piece::Failed { tag, fault: Fault::Two, words: rest },
            b'l' => Piece::Leaving,
            b'o' => Piece::PutOff { tag },
            _ => return Received::Text(bytes),
        })
    }
}

#[cfg(test)]
mod tests;
