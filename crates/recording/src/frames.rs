//! Where a message over TCP ends: guessed from the bytes of both directions, or said.
//!
//! A framing fits when every stream is whole frames from its first byte to its last (a recording that was cut may end inside
//! one). Lengths of more bytes are tried first, since fewer of them fit by chance.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::session::{Content, Event, Session, Side, What};

/// As `bot.tcp({ frames })` takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// a length in so many bytes, high byte first or not
    Length {
        /// 1, 2 or 4
        bytes: usize,
        /// high byte first
        is_big: bool,
    },
    /// text that ends with `\n` or `\r\n`
    Lines,
    /// what came in one piece
    Raw,
}

const NAMES: [(&str, Frames); 7] = [
    ("u32be", Frames::Length { bytes: 4, is_big: true }),
    ("u32le", Frames::Length { bytes: 4, is_big: false }),
    ("u16be", Frames::Length { bytes: 2, is_big: true }),
    ("u16le", Frames::Length { bytes: 2, is_big: false }),
    ("lines", Frames::Lines),
    ("u8", Frames::Length { bytes: 1, is_big: true }),
    ("raw", Frames::Raw),
];

impl Frames {
    /// All names, for help.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// As `bot.tcp` takes it.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, frames)| *frames == self).map_or("raw", |(name, _)| name)
    }

    /// The end of the first frame and where its payload stands; `None`: it is not whole.
    fn front(self, bytes: &[u8]) -> Option<(usize, std::ops::Range<usize>)> {
        match self {
            Frames::Length { bytes: width, is_big } => {
                let head = bytes.get(..width)?;
                let fold = |sum: usize, byte: &u8| sum << 8 | usize::from(*byte);
                let length = if is_big { head.iter().fold(0, fold) } else { head.iter().rev().fold(0, fold) };
                let end = width.checked_add(length).filter(|end| *end <= bytes.len())?;
                Some((end, width..end))
            }
            Frames::Lines => {
                let at = bytes.iter().position(|byte| *byte == b'\n')?;
                let end = if at > 0 && bytes[at - 1] == b'\r' { at - 1 } else { at };
                Some((at + 1, 0..end))
            }
            Frames::Raw => (!bytes.is_empty()).then_some((bytes.len(), 0..bytes.len())),
        }
    }

    /// Whether a whole stream reads as frames. `None` where it proves nothing.
    fn fits(self, stream: &[u8]) -> bool {
        if self == Frames::Lines && std::str::from_utf8(stream).is_err() {
            return false;
        }
        let (mut rest, mut framed_bytes) = (stream, 0);
        while let Some((end, payload)) = self.front(rest) {
            // An empty frame says nothing, and zeros would be any number of them.
            if payload.is_empty() && self != Frames::Lines {
                return false;
            }
            framed_bytes += end;
            rest = &rest[end..];
        }
        // What is left may be a message that the end of the recording cut, but not most of all.
        framed_bytes > 0 && rest.len() * 4 < stream.len()
    }
}

impl FromStr for Frames {
    type Err = String;

    fn from_str(text: &str) -> Result<Frames, String> {
        NAMES
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, frames)| *frames)
            .ok_or_else(|| format!("frames are one of {}", Frames::names().collect::<Vec<_>>().join(", ")))
    }
}

/// The session with messages in place of the pieces that TCP brought, and their framing: `said`, or the one that fits.
pub fn framed(session: &Session, said: Option<Frames>) -> (Session, Frames) {
    let mut streams: BTreeMap<(usize, Side), Vec<u8>> = BTreeMap::new();
    for event in &session.events {
        if let What::Message(side, content) = &event.what {
            streams.entry((event.connection, *side)).or_default().extend_from_slice(&content.bytes);
        }
    }
    let guess = || {
        let candidates = NAMES.iter().map(|(_, frames)| *frames);
        candidates
            .into_iter()
            .find(|frames| !streams.is_empty() && streams.values().all(|stream| frames.fits(stream)))
            .unwrap_or(Frames::Raw)
    };
    let frames = said.unwrap_or_else(guess);
    let mut waiting: BTreeMap<(usize, Side), Vec<u8>> = BTreeMap::new();
    let mut events = Vec::new();
    for event in &session.events {
        let What::Message(side, content) = &event.what else {
            events.push(event.clone());
            continue;
        };
        let bytes = waiting.entry((event.connection, *side)).or_default();
        bytes.extend_from_slice(&content.bytes);
        let mut from = 0;
        while let Some((end, payload)) = frames.front(&bytes[from..]) {
            let payload = bytes[from + payload.start..from + payload.end].to_vec();
            let is_text = frames == Frames::Lines && std::str::from_utf8(&payload).is_ok();
            let content = Content { bytes: payload, is_text };
            events.push(Event { what: What::Message(*side, content), ..*event });
            from += end;
        }
        bytes.drain(..from);
    }
    (Session { target: session.target.clone(), events }, frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(pieces: &[(Side, &[u8])]) -> Session {
        let event = |(at, (side, bytes)): (usize, &(Side, &[u8]))| Event {
            at_ns: at as u64,
            connection: 0,
            what: What::Message(*side, Content::bytes(*bytes)),
        };
        let events = pieces.iter().enumerate().map(event).collect();
        Session { target: "tcp://127.0.0.1:1".to_owned(), events }
    }

    #[test]
    fn the_framing_that_fits_both_directions_is_found_and_pieces_become_messages() {
        let check = |pieces: &[(Side, &[u8])], expected: &str, messages: usize| {
            let (framed, frames) = framed(&session(pieces), None);
            assert_eq!((frames.name(), framed.events.len()), (expected, messages), "{pieces:?}");
        };
        use Side::{Client, Server};
        check(&[(Client, b"\0\0\0\x02hi"), (Server, b"\0\0\0\x01a\0\0"), (Server, b"\0\x01b")], "u32be", 3);
        check(&[(Client, b"\x02\0\0\0hi"), (Server, b"\x01\0\0\0a")], "u32le", 2);
        check(&[(Client, b"\0\x02hi"), (Server, b"\0\x03abc\0\x01x")], "u16be", 3);
        check(&[(Client, b"\x02\0hi"), (Server, b"\x03\0abc")], "u16le", 2);
        check(&[(Client, b"\x02hi"), (Server, b"\x01a\x01b")], "u8", 3);
        check(&[(Client, b"NICK a\r\nUS"), (Client, b"ER b\r\n"), (Server, b"PING\n")], "lines", 3);
        check(&[(Client, b"\xff\xfe\0"), (Server, b"\x80")], "raw", 2);
        // Cut inside the last message.
        check(&[(Client, b"\0\0\0\x0chi you there\0\0\0\x05"), (Server, b"\0\0\0\x02yo")], "u32be", 2);
        check(&[], "raw", 0);
        assert_eq!(super::framed(&session(&[(Client, b"\x02hi")]), Some(Frames::Raw)).1, Frames::Raw);
    }
}
