//! Chunked bodies: where the data is between the lengths, extensions and trailers.
//!
//! Pure, byte by byte in the framing and in one step through the data, so that nothing must be carried from read to
//! read. Strict: a line ends with CR and LF, a length has one to sixteen hexadecimal digits.
//! Source: RFC 9112, section 7.1.

use std::ops::Range;

use crate::http::fault::Fault;
use crate::http::message::HEAD_BYTES_MAX;

/// How far a chunked body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    at: At,
    digits: u8,
    /// of extensions in this line, or of all trailers
    line_bytes: u16,
    /// of the chunk: its length as far as it was read, then what is still to come
    left: u64,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Length,
    /// white space after the length
    Gap,
    Extension,
    LengthLf,
    Data,
    DataCr,
    DataLf,
    TrailerBegin,
    TrailerName,
    TrailerValue,
    TrailerLf,
    LastLf,
    End,
}

/// What was found in one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// bytes that belong to the body
    pub taken: usize,
    /// of these, data
    pub data_bytes: u64,
    /// the body ends with them
    pub is_end: bool,
}

impl Default for Chunks {
    fn default() -> Self {
        Chunks { at: At::Length, digits: 0, line_bytes: 0, left: 0 }
    }
}

impl Chunks {
    /// Goes through `bytes` to the end of the body or of the bytes, and tells where data is. More than `room` of it is
    /// a fault. Errors: the fault, and where the piece begins that has it.
    pub fn walk(
        &mut self,
        bytes: &[u8],
        room: u64,
        mut on_data: impl FnMut(Range<usize>),
    ) -> Result<Walk, (usize, Fault)> {
        let mut walk = Walk { taken: 0, data_bytes: 0, is_end: false };
        while walk.taken < bytes.len() && self.at != At::End {
            let from = walk.taken;
            let (taken, data) = self.piece(&bytes[from..]).map_err(|fault| (from, fault))?;
            walk.taken += taken;
            walk.data_bytes += data.len() as u64;
            if walk.data_bytes > room {
                return Err((from, Fault::BodyTooLarge));
            }
            if !data.is_empty() {
                on_data(from + data.start..from + data.end);
            }
        }
        walk.is_end = self.at == At::End;
        Ok(walk)
    }

    /// Goes through `bytes` to the end of the body, to a fault or to the end of the bytes, and moves the data among them
    /// to their front. Data before a fault is returned first, and the fault by the next call with the rest. Errors: the
    /// fault, and where the chunk that has it begins.
    pub fn gather(&mut self, bytes: &mut [u8]) -> Result<Walk, (usize, Fault)> {
        let mut walk = Walk { taken: 0, data_bytes: 0, is_end: false };
        while walk.taken < bytes.len() && self.at != At::End {
            let (before, from) = (*self, walk.taken);
            match self.piece(&bytes[from..]) {
                Ok((taken, data)) => {
                    let data_bytes = data.len() as u64;
                    bytes.copy_within(from + data.start..from + data.end, walk.data_bytes as usize);
                    walk.taken += taken;
                    walk.data_bytes += data_bytes;
                }
                Err(fault) => {
                    *self = before;
                    if walk.data_bytes == 0 {
                        return Err((from, fault));
                    }
                    return Ok(walk);
                }
            }
        }
        walk.is_end = self.at == At::End;
        Ok(walk)
    }

    /// Moves the data of a whole body, which was walked through before, to its front if `keeps`. Returns its length.
    pub fn join(bytes: &mut [u8], keeps: bool) -> usize {
        let (mut chunks, mut from, mut joined_bytes) = (Chunks::default(), 0, 0);
        while from < bytes.len()
            && let Ok((taken, data)) = chunks.piece(&bytes[from..])
        {
            if keeps {
                bytes.copy_within(from + data.start..from + data.end, joined_bytes);
            }
            joined_bytes += data.len();
            from += taken;
        }
        joined_bytes
    }

    /// Goes over framing and then data, as far as that goes. Returns how far, and where the data is.
    fn piece(&mut self, bytes: &[u8]) -> Result<(usize, Range<usize>), Fault> {
        let from = self.skip_framing(bytes)?;
        if self.at != At::Data {
            return Ok((from, from..from));
        }
        let data_bytes = self.left.min((bytes.len() - from) as u64);
        self.left -= data_bytes;
        if self.left == 0 {
            self.at = At::DataCr;
        }
        let to = from + data_bytes as usize;
        Ok((to, from..to))
    }

    /// Steps over what is not data, to data or to the end. Returns how many bytes that were.
    fn skip_framing(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        for (index, byte) in bytes.iter().enumerate() {
            if matches!(self.at, At::Data | At::End) {
                return Ok(index);
            }
            self.step(*byte)?;
        }
        Ok(bytes.len())
    }

    fn step(&mut self, byte: u8) -> Result<(), Fault> {
        self.at = match (self.at, byte) {
            (At::Length, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.digits += 1;
                if self.digits > 16 {
                    return Err(Fault::Chunk);
                }
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                self.left = self.left << 4 | u64::from(digit);
                At::Length
            }
            (At::Length, _) if self.digits == 0 => return Err(Fault::Chunk),
            (At::Length | At::Gap | At::Extension, b'\r') => At::LengthLf,
            (At::Length | At::Gap, b' ' | b'\t') => self.lengthen(At::Gap, Fault::Chunk)?,
            (At::Length | At::Gap, b';') => At::Extension,
            (At::Extension, b'\n') => return Err(Fault::Chunk),
            (At::Extension, _) => self.lengthen(At::Extension, Fault::Chunk)?,
            (At::LengthLf, b'\n') => {
                (self.digits, self.line_bytes) = (0, 0);
                if self.left == 0 { At::TrailerBegin } else { At::Data }
            }
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Length,
            (At::TrailerBegin, b'\r') => At::LastLf,
            (At::TrailerBegin, b':' | b'\n' | b' ' | b'\t') => return Err(Fault::Header),
            (At::TrailerBegin, _) => self.lengthen(At::TrailerName, Fault::HeadTooLarge)?,
            (At::TrailerName, b':') => self.lengthen(At::TrailerValue, Fault::HeadTooLarge)?,
            (At::TrailerName, b'\r' | b'\n' | b' ' | b'\t') => return Err(Fault::Header),
            (At::TrailerName, _) => self.lengthen(At::TrailerName, Fault::HeadTooLarge)?,
            (At::TrailerValue, b'\r') => At::TrailerLf,
            (At::TrailerValue, b'\n') => return Err(Fault::Header),
            (At::TrailerValue, _) => self.lengthen(At::TrailerValue, Fault::HeadTooLarge)?,
            (At::TrailerLf, b'\n') => At::TrailerBegin,
            (At::TrailerLf, _) => return Err(Fault::Header),
            (At::LastLf, b'\n') => At::End,
            _ => return Err(Fault::Chunk),
        };
        Ok(())
    }

    fn lengthen(&mut self, to: At, too_much: Fault) -> Result<At, Fault> {
        self.line_bytes += 1;
        if usize::from(self.line_bytes) > HEAD_BYTES_MAX { Err(too_much) } else { Ok(to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data of a body that comes at once, and how many bytes it has in all.
    fn check(bytes: &str, expected: Result<(&str, usize), (usize, Fault)>) {
        let mut data = String::new();
        let walked = Chunks::default().walk(bytes.as_bytes(), 100, |range| data.push_str(&bytes[range]));
        let got = walked.map(|walk| {
            assert!(walk.is_end, "{bytes:?} has no end");
            assert_eq!(walk.data_bytes, data.len() as u64);
            (data.as_str(), walk.taken)
        });
        assert_eq!(got, expected, "{bytes:?}");
    }

    #[test]
    fn chunks_are_joined_without_extensions_and_trailers() {
        check("0\r\n\r\n", Ok(("", 5)));
        check("3\r\nabc\r\n0\r\n\r\nHTTP", Ok(("abc", 13)));
        check("A;x=\"y\"\r\n0123456789\r\n00001 ;z\r\n!\r\n000\r\n\r\n", Ok(("0123456789!", 41)));
        check("1\r\na\r\n0\r\nA: b\r\nC:\r\n\r\n", Ok(("a", 21)));
    }

    #[test]
    fn a_broken_chunk_is_told_with_its_place() {
        check("x\r\n", Err((0, Fault::Chunk)));
        check("\r\n", Err((0, Fault::Chunk)));
        check(" 1\r\na\r\n0\r\n\r\n", Err((0, Fault::Chunk)));
        check("1\na\r\n0\r\n\r\n", Err((0, Fault::Chunk)));
        check("-1\r\na\r\n", Err((0, Fault::Chunk)));
        check("1 1\r\na\r\n", Err((0, Fault::Chunk)));
        check("1;a\nb\r\n", Err((0, Fault::Chunk)));
        check("3\r\nabcd\r\n0\r\n\r\n", Err((6, Fault::Chunk)));
        check("3\r\nab\r\n0\r\n\r\n", Err((6, Fault::Chunk)));
        check("2\r\nab\r\nzz", Err((5, Fault::Chunk)));
        check("00000000000000001\r\n", Err((0, Fault::Chunk)));
        check("1\r\na\r\n0\r\nno colon\r\n\r\n", Err((4, Fault::Header)));
        check("0\r\n: no name\r\n\r\n", Err((0, Fault::Header)));
        check("0\r\nA: b\n\r\n", Err((0, Fault::Header)));
    }

    #[test]
    fn what_never_ends_is_bounded() {
        let long = "a".repeat(HEAD_BYTES_MAX + 1);
        check(&format!("1;{long}"), Err((0, Fault::Chunk)));
        check(&format!("0\r\n{long}"), Err((0, Fault::HeadTooLarge)));
        check(&format!("0\r\n{}", "A: b\r\n".repeat(HEAD_BYTES_MAX)), Err((0, Fault::HeadTooLarge)));
        check(&format!("64\r\n{}\r\n1\r\nb", "a".repeat(100)), Err((104, Fault::BodyTooLarge)));
    }
}
