//! Framing chosen at run time, for connections whose server is known only to a script. Pure.
//!
//! A line is one message here, without its line ending: a script wants each separately, while `Lines` delivers blocks
//! for speed.

use super::framing::{Front, MESSAGE_BYTES_MAX};

/// How messages lie on a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Frames {
    /// lines that end with `\n` or `\r\n`, delivered without their endings; one is added to a message sent without
    #[default]
    Lines,
    /// the payload's length in front of it, in one byte
    U8,
    /// in two bytes, the high one first
    U16Be,
    /// in two bytes, the low one first
    U16Le,
    /// in four bytes, the high one first
    U32Be,
    /// in four bytes, the low one first
    U32Le,
    /// this byte after each message, delivered without it; it is added to a message sent without
    Until(u8),
    /// none: what a read brought is delivered, and data is sent unchanged
    Raw,
}

impl Frames {
    /// All of them, with their names in the rows of tests. The names that scripts use are with the script's interfaces.
    #[cfg(test)]
    pub(crate) const NAMED: [(&'static str, Frames); 9] = [
        ("lines", Frames::Lines),
        ("u8", Frames::U8),
        ("u16be", Frames::U16Be),
        ("u16le", Frames::U16Le),
        ("u32be", Frames::U32Be),
        ("u32le", Frames::U32Le),
        ("until 0xff", Frames::Until(0xff)),
        ("until 0x00", Frames::Until(0)),
        ("raw", Frames::Raw),
    ];

    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Option<Frames> {
        Frames::NAMED.iter().find(|(known, _)| *known == name).map(|(_, frames)| *frames)
    }

    /// The longest message that can be sent: what its length can say.
    pub fn message_bytes_max(self) -> usize {
        match self {
            Frames::U8 => u8::MAX.into(),
            Frames::U16Be | Frames::U16Le => u16::MAX.into(),
            Frames::U32Be | Frames::U32Le => u32::MAX as usize,
            Frames::Lines | Frames::Until(_) | Frames::Raw => usize::MAX,
        }
    }

    /// The byte that ends each message.
    pub(super) fn end(self) -> Option<u8> {
        match self {
            Frames::Lines => Some(b'\n'),
            Frames::Until(byte) => Some(byte),
            _ => None,
        }
    }

    /// How many bytes say a payload's length, and whether the low one is the first.
    fn length(self) -> Option<(usize, bool)> {
        match self {
            Frames::U8 => Some((1, false)),
            Frames::U16Be => Some((2, false)),
            Frames::U16Le => Some((2, true)),
            Frames::U32Be => Some((4, false)),
            Frames::U32Le => Some((4, true)),
            Frames::Lines | Frames::Until(_) | Frames::Raw => None,
        }
    }

    /// How many bytes stand before a payload, and how long they say that it is. `None`: nothing says it, or not yet.
    pub fn header(self, bytes: &[u8]) -> Option<(usize, usize)> {
        let (width, is_little) = self.length()?;
        let said = bytes.get(..width)?;
        let add = |length: usize, byte: &u8| length << 8 | usize::from(*byte);
        let payload_bytes = if is_little { said.iter().rev().fold(0, add) } else { said.iter().fold(0, add) };
        Some((width, payload_bytes))
    }

    /// What the front of the received bytes is. Nothing is `Incomplete`. A payload has its end byte; see `heard`.
    pub fn front(self, bytes: &[u8]) -> Front {
        if let Some(end) = self.end() {
            return ended(bytes, end);
        }
        if self == Frames::Raw {
            return match bytes.len() {
                0 => Front::Incomplete,
                payload_bytes => Front::Whole { header_bytes: 0, payload_bytes },
            };
        }
        let Some((width, payload_bytes)) = self.header(bytes) else { return Front::Incomplete };
        if payload_bytes > MESSAGE_BYTES_MAX {
            Front::TooLarge
        } else if bytes.len() < width + payload_bytes {
            Front::Incomplete
        } else {
            Front::Whole { header_bytes: width, payload_bytes }
        }
    }

    /// The delivered part of a payload: all but its end.
    pub fn heard(self, payload: &[u8]) -> &[u8] {
        let Some(end) = self.end() else { return payload };
        let message = payload.strip_suffix(&[end]).unwrap_or(payload);
        match self {
            Frames::Lines => message.strip_suffix(b"\r").unwrap_or(message),
            _ => message,
        }
    }

    /// Appends a message as it goes over the wire. False: it is longer than its length can say, and nothing was written.
    #[must_use]
    pub fn write(self, out: &mut Vec<u8>, message: &[u8]) -> bool {
        if message.len() > self.message_bytes_max() {
            return false;
        }
        if let Some((width, is_little)) = self.length() {
            let length = message.len() as u32;
            let (big, little) = (length.to_be_bytes(), length.to_le_bytes());
            out.extend_from_slice(if is_little { &little[..width] } else { &big[big.len() - width..] });
        }
        out.extend_from_slice(message);
        if let Some(end) = self.end().filter(|end| message.last() != Some(end)) {
            out.push(end);
        }
        true
    }
}

/// One message with the byte that ends it.
fn ended(bytes: &[u8], end: u8) -> Front {
    let reach = &bytes[..bytes.len().min(MESSAGE_BYTES_MAX)];
    match memchr::memchr(end, reach) {
        Some(at) => Front::Whole { header_bytes: 0, payload_bytes: at + 1 },
        None if bytes.len() >= MESSAGE_BYTES_MAX => Front::TooLarge,
        None => Front::Incomplete,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All messages of `bytes`, which come in pieces that end at `cuts`, and what is left.
    fn heard(frames: Frames, bytes: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut edges: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        edges.extend([0, bytes.len()]);
        edges.sort_unstable();
        let (mut messages, mut rest) = (Vec::new(), Vec::new());
        for edge in edges.windows(2) {
            rest.extend_from_slice(&bytes[edge[0]..edge[1]]);
            while let Front::Whole { header_bytes, payload_bytes } = frames.front(&rest) {
                let frame: Vec<u8> = rest.drain(..header_bytes + payload_bytes).collect();
                messages.push(frames.heard(&frame[header_bytes..]).to_vec());
            }
        }
        (messages, rest)
    }

    proptest! {
        #[test]
        fn what_is_written_is_heard_however_it_is_split(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..20),
            cuts in proptest::collection::vec(any::<usize>(), 0..30),
        ) {
            for (name, frames) in Frames::NAMED {
                let sent: Vec<Vec<u8>> = messages
                    .iter()
                    .map(|message| match frames {
                        Frames::Lines => {
                            message.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect()
                        }
                        Frames::Until(end) => message.iter().copied().filter(|byte| *byte != end).collect(),
                        _ => message[..message.len().min(frames.message_bytes_max())].to_vec(),
                    })
                    .collect();
                let mut wire = Vec::new();
                assert!(sent.iter().all(|message| frames.write(&mut wire, message)));
                let (mut told, rest) = heard(frames, &wire, &cuts);
                if frames == Frames::Raw {
                    told = vec![told.concat()];
                    prop_assert_eq!(&told, &[sent.concat()], "{}", name);
                } else {
                    prop_assert_eq!(&told, &sent, "{}", name);
                }
                prop_assert!(rest.is_empty());
            }
        }
    }

    #[test]
    fn a_frame_says_how_long_it_is_and_no_more_than_it_may() {
        let long = vec![b'x'; MESSAGE_BYTES_MAX];
        let whole = |header_bytes, payload_bytes| Front::Whole { header_bytes, payload_bytes };
        let rows: [(&str, &[u8], Front); 18] = [
            ("u8", b"", Front::Incomplete),
            ("u8", b"\0", whole(1, 0)),
            ("u8", b"\x02a", Front::Incomplete),
            ("u16be", b"\0\x01a", whole(2, 1)),
            ("u16le", b"\x01\0a", whole(2, 1)),
            ("u16le", b"\x01", Front::Incomplete),
            ("u32be", b"\0\0\0\x01ab", whole(4, 1)),
            ("u32le", b"\x01\0\0\0ab", whole(4, 1)),
            ("u32be", b"\0\x01\0\0", Front::Incomplete),
            ("u32be", b"\0\x01\0\x01", Front::TooLarge),
            ("u32le", b"\xff\xff\xff\xff", Front::TooLarge),
            ("raw", b"abc", whole(0, 3)),
            ("lines", b"a", Front::Incomplete),
            ("lines", b"a\r\nb\n", whole(0, 3)),
            ("until 0xff", b"a\n\0", Front::Incomplete),
            ("until 0xff", b"a\n\xffb\xff", whole(0, 3)),
            ("lines", &long, Front::TooLarge),
            ("lines", &long[1..], Front::Incomplete),
        ];
        for (name, bytes, expected) in rows {
            let front = Frames::named(name).unwrap().front(bytes);
            assert_eq!(front, expected, "{name} {:?}", &bytes[..bytes.len().min(8)]);
        }
        assert_eq!(Frames::named("u24"), None);
    }

    #[test]
    fn what_a_length_cannot_say_is_not_written() {
        for (name, bytes_max) in [("u8", 255), ("u16be", 65_535), ("u16le", 65_535)] {
            let (frames, mut out) = (Frames::named(name).unwrap(), Vec::new());
            assert!(frames.write(&mut out, &vec![0; bytes_max]), "{name}");
            let written = out.len();
            assert!(!frames.write(&mut out, &vec![0; bytes_max + 1]), "{name}");
            assert_eq!(out.len(), written, "{name}");
        }
        for (message, expected) in [("a", "a\n"), ("a\r\n", "a\r\n"), ("a\nb", "a\nb\n"), ("", "\n")] {
            let mut out = Vec::new();
            assert!(Frames::Lines.write(&mut out, message.as_bytes()));
            assert_eq!(out, expected.as_bytes());
        }
    }
}
