//! Splits bytes into lines.
//!
//! A line ends with `\n`; one `\r` before it belongs to the line ending. Telnet negotiation (RFC 854: what follows a
//! byte 255, which no UTF-8 contains) is removed before lines are split. Only the beginning of one line is kept between
//! two reads, never more than the longest line. Pure.

use memchr::memchr;

/// Telnet: what follows is a command.
const IAC: u8 = 255;
const SUBNEGOTIATION: u8 = 250;
const SUBNEGOTIATION_END: u8 = 240;

/// A line is longer than allowed; everything its sender sends from here on is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// One client's line that is not complete.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// Without allocated memory while empty.
    begun: Vec<u8>,
    telnet: Telnet,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Telnet {
    #[default]
    Text,
    /// After IAC.
    Command,
    /// After WILL, WONT, DO or DONT: the option follows.
    Choice,
    /// Within a subnegotiation; true after an IAC there.
    Subnegotiation(bool),
}

impl Splitter {
    /// True while a line has begun and not ended.
    pub(super) fn holds_a_beginning(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Hands every line that is complete now to `hear`, without its end, until that returns false; what comes
    /// after is not looked at. The input is scribbled on. Lines have `line_bytes_max` bytes at most.
    pub(super) fn feed(
        &mut self,
        bytes: &mut [u8],
        line_bytes_max: usize,
        mut hear: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), TooLong> {
        let length = self.take_out_telnet(bytes);
        let mut rest = &bytes[..length];
        if !self.begun.is_empty() {
            let Some(end) = memchr(b'\n', rest) else { return self.keep(rest, line_bytes_max) };
            if self.begun.len() + end > line_bytes_max + 1 {
                return Err(TooLong);
            }
            let mut whole = std::mem::take(&mut self.begun);
            whole.extend_from_slice(&rest[..end]);
            if !hear(content(&whole, line_bytes_max)?) {
                return Ok(());
            }
            rest = &rest[end + 1..];
        }
        while let Some(end) = memchr(b'\n', rest) {
            if !hear(content(&rest[..end], line_bytes_max)?) {
                return Ok(());
            }
            rest = &rest[end + 1..];
        }
        self.keep(rest, line_bytes_max)
    }

    fn keep(&mut self, bytes: &[u8], line_bytes_max: usize) -> Result<(), TooLong> {
        let length = self.begun.len() + bytes.len();
        let ends_in_return = bytes.last().or(self.begun.last()) == Some(&b'\r');
        if length > line_bytes_max + usize::from(ends_in_return) {
            self.begun = Vec::new();
            return Err(TooLong);
        }
        self.begun.extend_from_slice(bytes);
        Ok(())
    }

    /// Moves what is text to the front; returns how much it is.
    fn take_out_telnet(&mut self, bytes: &mut [u8]) -> usize {
        let mut kept = match self.telnet {
            Telnet::Text => match memchr(IAC, bytes) {
                None => return bytes.len(),
                Some(first) => first,
            },
            _ => 0,
        };
        let first = kept;
        for i in first..bytes.len() {
            let byte = bytes[i];
            self.telnet = match (self.telnet, byte) {
                (Telnet::Text, IAC) => Telnet::Command,
                (Telnet::Text, _) => {
                    bytes[kept] = byte;
                    kept += 1;
                    Telnet::Text
                }
                (Telnet::Command, IAC) => {
                    // Doubled, it stands for the byte itself.
                    bytes[kept] = IAC;
                    kept += 1;
                    Telnet::Text
                }
                (Telnet::Command, 251..=254) => Telnet::Choice,
                (Telnet::Command, SUBNEGOTIATION) => Telnet::Subnegotiation(false),
                (Telnet::Command | Telnet::Choice, _) => Telnet::Text,
                (Telnet::Subnegotiation(false), IAC) => Telnet::Subnegotiation(true),
                (Telnet::Subnegotiation(true), SUBNEGOTIATION_END) => Telnet::Text,
                (Telnet::Subnegotiation(_), _) => Telnet::Subnegotiation(false),
            };
        }
        kept
    }
}

/// A line without the `\r` of its end.
fn content(line: &[u8], line_bytes_max: usize) -> Result<&[u8], TooLong> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() > line_bytes_max { Err(TooLong) } else { Ok(line) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: usize = 20;

    type Heard = (Vec<Vec<u8>>, Result<(), TooLong>);

    fn split(pieces: &[&[u8]]) -> Heard {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        for piece in pieces {
            let fed = splitter.feed(&mut piece.to_vec(), MAX, |line| {
                lines.push(line.to_vec());
                true
            });
            assert!(splitter.begun.capacity() <= 4 * MAX, "memory stays within the cap");
            if fed.is_err() {
                return (lines, fed);
            }
        }
        (lines, Ok(()))
    }

    /// The same over all bytes at once, in the plainest way.
    fn naive(bytes: &[u8]) -> Heard {
        let mut text = Vec::new();
        let mut bytes = bytes.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if byte != IAC {
                text.push(byte);
                continue;
            }
            match bytes.next() {
                Some(IAC) => text.push(IAC),
                Some(251..=254) => drop(bytes.next()),
                Some(SUBNEGOTIATION) => loop {
                    match bytes.next() {
                        Some(IAC) if bytes.next_if_eq(&SUBNEGOTIATION_END).is_some() => break,
                        Some(IAC) => drop(bytes.next()),
                        Some(_) => {}
                        None => break,
                    }
                },
                _ => {}
            }
        }
        let mut lines = Vec::new();
        let mut parts: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let unfinished = parts.pop().unwrap();
        for part in parts {
            let line = part.strip_suffix(b"\r").unwrap_or(part);
            if line.len() > MAX {
                return (lines, Err(TooLong));
            }
            lines.push(line.to_vec());
        }
        let could_still_end = unfinished.strip_suffix(b"\r").unwrap_or(unfinished);
        if could_still_end.len() > MAX { (lines, Err(TooLong)) } else { (lines, Ok(())) }
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_arrive(
            bytes in prop::collection::vec(
                prop_oneof![
                    8 => any::<u8>(),
                    8 => Just(b'x'),
                    3 => Just(b'\n'),
                    2 => Just(b'\r'),
                    1 => Just(IAC),
                    1 => 240u8..=254,
                ],
                0..300,
            ),
            cuts in prop::collection::vec(0usize..300, 0..20),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(&pieces), naive(&bytes));
        }
    }

    #[test]
    fn ends_of_either_kind_are_stripped_once() {
        let lines = |text: &[u8]| split(&[text]).0;
        assert_eq!(lines(b"a\nb\r\n\r\r\n\n"), [&b"a"[..], b"b", b"\r", b""]);
    }

    #[test]
    fn a_negotiation_may_come_in_pieces_within_a_line() {
        let pieces: [&[u8]; 5] = [b"he", b"\xff", b"\xfb\x01l", b"\xff\xfa\x1f\n\n\xff", b"\xf0lo\n"];
        assert_eq!(split(&pieces).0, [b"hello"]);
    }

    #[test]
    fn a_line_as_long_as_allowed_passes_and_one_byte_more_does_not() {
        let fits = [&[b'x'; MAX][..], b"\r\n"].concat();
        assert_eq!(split(&[&fits]).0.len(), 1);
        assert_eq!(split(&[&fits[..MAX + 1], b"\n"]).0.len(), 1);
        assert_eq!(split(&[&[b'x'; MAX + 1]]).1, Err(TooLong));
    }

    #[test]
    fn who_stops_listening_hears_nothing_more() {
        let mut heard = 0;
        let mut splitter = Splitter::default();
        let fed = splitter.feed(&mut b"one\ntwo\nthr".to_vec(), MAX, |_| {
            heard += 1;
            false
        });
        assert_eq!((heard, fed, splitter.holds_a_beginning()), (1, Ok(()), false));
    }
}
