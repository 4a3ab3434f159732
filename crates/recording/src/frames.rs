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
    /// what ends with this byte
    Until(u8),
    /// what came in one piece
    Raw,
}

/// As they are tried.
const NAMES: [(&str, Frames); 9] = [
    ("u32be", Frames::Length { bytes: 4, is_big: true }),
    ("u32le", Frames::Length { bytes: 4, is_big: false }),
    ("u16be", Frames::Length { bytes: 2, is_big: true }),
    ("u16le", Frames::Length { bytes: 2, is_big: false }),
    ("lines", Frames::Lines),
    ("until 0xff", Frames::Until(0xff)),
    ("until 0x00", Frames::Until(0)),
    ("u8", Frames::Length { bytes: 1, is_big: true }),
    ("raw", Frames::Raw),
];

impl Frames {
    /// As `bot.tcp` takes it.
    pub fn name(self) -> String {
        match self {
            Frames::Until(end) => format!("until 0x{end:02x}"),
            _ => NAMES.iter().find(|(_, frames)| *frames == self).map_or("raw", |(name, _)| name).to_owned(),
        }
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
            Frames::Until(end) => bytes.iter().position(|byte| *byte == end).map(|at| (at + 1, 0..at)),
            Frames::Raw => (!bytes.is_empty()).then_some((bytes.len(), 0..bytes.len())),
        }
    }

    /// Whether a whole stream reads as frames. `None` where it proves nothing.
    fn fits(self, stream: &[u8]) -> bool {
        if self == Frames::Lines && std::str::from_utf8(stream).is_err() {
            return false;
        }
        // Any byte may stand somewhere by chance.
        if matches!(self, Frames::Until(end) if stream.last() != Some(&end)) {
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
        let named = NAMES.iter().find(|(name, _)| *name == text).map(|(_, frames)| *frames);
        let until = || {
            let byte =
                text.strip_prefix("until 0x").filter(|byte| byte.len() == 2 && !byte.starts_with('+'))?;
            u8::from_str_radix(byte, 16).ok().map(Frames::Until)
        };
        let known = "frames are one of lines, u8, u16be, u16le, u32be, u32le, until 0xNN, raw";
        named.or_else(until).ok_or_else(|| known.to_owned())
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
            let is_text =
                matches!(frames, Frames::Lines | Frames::Until(_)) && std::str::from_utf8(&payload).is_ok();
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
            assert_eq!((&*frames.name(), framed.events.len()), (expected, messages), "{pieces:?}");
        };
        use Side::{Client, Server};
        check(&[(Client, b"\0\0\0\x02hi"), (Server, b"\0\0\0\x01a\0\0"), (Server, b"\0\x01b")], "u32be", 3);
        check(&[(Client, b"\x02\0\0\0hi"), (Server, b"\x01\0\0\0a")], "u32le", 2);
        check(&[(Client, b"\0\x02hi"), (Server, b"\0\x03abc\0\x01x")], "u16be", 3);
        check(&[(Client, b"\x02\0hi"), (Server, b"\x03\0abc")], "u16le", 2);
        check(&[(Client, b"\x02hi"), (Server, b"\x01a\x01b")], "u8", 3);
        check(&[(Client, b"NICK a\r\nUS"), (Client, b"ER b\r\n"), (Server, b"PING\n")], "lines", 3);
        check(&[(Client, b"\xff\xfe\0"), (Server, b"\x80")], "raw", 2);
        check(&[(Client, b"tetrisstart \xe9\xffteam\xff"), (Server, b"playernum 1\xff")], "until 0xff", 3);
        check(&[(Client, b"<a/>\0"), (Server, b"<b/>\0<c"), (Server, b"/>\0")], "until 0x00", 3);
        // Cut inside the last message.
        check(&[(Client, b"\0\0\0\x0chi you there\0\0\0\x05"), (Server, b"\0\0\0\x02yo")], "u32be", 2);
        check(&[], "raw", 0);
        assert_eq!(super::framed(&session(&[(Client, b"\x02hi")]), Some(Frames::Raw)).1, Frames::Raw);
        assert_eq!("until 0x0a".parse().map(Frames::name), Ok("until 0x0a".to_owned()));
        assert!(["until 0x0", "until 0x+1", "until 10"].iter().all(|text| text.parse::<Frames>().is_err()));
    }
}
