//! The receive buffer: bytes in, however split; whole messages out.
//!
//! A message is returned as a slice of the buffer. No byte is scanned twice: `scanned` remembers how far the frames of
//! an incomplete message are known. Nor is any copied twice: when a frame gives its length the buffer makes room for
//! all of it at once, and without such a hint it doubles, so that receiving stays linear in the message.
//! Bounded: a message beyond the limit is not kept. If its first frame has said which operation it answers, its bytes
//! are skipped and the connection survives; otherwise it is an error.
//! Source: Open Binary Client Protocol 2.x, sections 2.1.4 (fragments) and 2.1.5 (boundaries).

use super::broken::Broken;
use super::fragments::Fragments;
use super::frame::{FINAL, HEADER_BYTES, UNFRAGMENTED, header};
use super::message::{ANSWER_FIXED, Message, correlation_of};

/// The buffer's size while messages are small.
const BUFFER_BYTES: usize = 64 * 1024;
/// A read should have at least so much room, or is preceded by moving what is incomplete to the front.
const READ_BYTES_MIN: usize = 16 * 1024;
/// First frames have only parameters of fixed size.
const FIRST_FRAME_BYTES_MAX: usize = 4096;
/// After so many reads without a large message a large buffer is given back.
const CALM_READS: u32 = 4096;

/// What came off the front of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// a whole message, see `Reader::message`
    Message(Place),
    /// an answer beyond the limit, which was skipped
    TooLarge {
        /// of the operation that it answers
        correlation: i64,
        /// how long it was, as far as its frames said when it was given up
        bytes: usize,
    },
}

/// The position of the message that came last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    begin: usize,
    end: usize,
    is_joined: bool,
}

/// An answer beyond the limit, on its way to nowhere.
#[derive(Clone, Copy, Debug)]
struct Skipped {
    correlation: i64,
    bytes: usize,
    /// of the frame that is being skipped
    frame_bytes_left: usize,
    is_final: bool,
}

/// The receive buffer of one connection. `bytes[from..to]` was received and not handed out yet.
#[derive(Debug)]
pub struct Reader {
    bytes: Vec<u8>,
    from: usize,
    /// begin of the first frame that is not known to be whole
    scanned: usize,
    to: usize,
    /// what the message at `from` takes at least, as far as its frames say
    wanted: usize,
    limit_bytes: usize,
    skipped: Option<Skipped>,
    fragments: Fragments,
    joined: Vec<u8>,
    calm_reads: u32,
}

impl Reader {
    /// An empty buffer for messages of at most `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Reader {
            bytes: vec![0; BUFFER_BYTES.min(limit_bytes.max(READ_BYTES_MIN))],
            from: 0,
            scanned: 0,
            to: 0,
            wanted: HEADER_BYTES,
            limit_bytes,
            skipped: None,
            fragments: Fragments::default(),
            joined: Vec::new(),
            calm_reads: 0,
        }
    }

    /// From now on messages may be as large as this.
    pub fn set_limit(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes;
    }

    /// Bytes that the buffer holds, used or not, and what incomplete messages in fragments hold.
    pub fn held_bytes(&self) -> usize {
        self.bytes.len() + self.joined.capacity() + self.fragments.held_bytes()
    }

    /// Room for one read; never empty. To be called when `next` has returned `None`.
    pub fn room(&mut self) -> &mut [u8] {
        if self.from == self.to {
            self.shift_to_front();
            self.give_back();
        }
        let held = self.to - self.from;
        let small = self.bytes.len() - self.to < READ_BYTES_MIN && held < READ_BYTES_MIN;
        if self.from > 0 && (self.from + self.wanted > self.bytes.len() || small) {
            self.shift_to_front();
        }
        if self.wanted > self.bytes.len() || self.to == self.bytes.len() {
            // A little more than needed, so that the next messages come with it.
            let exact = self.wanted.max(self.to + 1) + READ_BYTES_MIN;
            self.bytes.resize(exact.max((2 * self.bytes.len()).min(self.limit_bytes)), 0);
        }
        &mut self.bytes[self.to..]
    }

    /// `count` bytes were read into the room.
    pub fn filled(&mut self, count: usize) {
        debug_assert!(count <= self.bytes.len() - self.to, "more than there was room for");
        self.to = (self.to + count).min(self.bytes.len());
    }

    /// Takes the next whole message off the front; `None` when more has to be read. Errors leave the stream without a
    /// place to go on from.
    pub fn advance(&mut self) -> Result<Option<Received>, Broken> {
        loop {
            if self.skipped.is_some() {
                let Some((correlation, bytes)) = self.skip()? else { return Ok(None) };
                return Ok(Some(Received::TooLarge { correlation, bytes }));
            }
            let Some(end) = self.scan()? else {
                if self.skipped.is_some() {
                    continue;
                }
                return Ok(None);
            };
            let begin = std::mem::replace(&mut self.from, end);
            self.scanned = end;
            self.wanted = HEADER_BYTES;
            if end - begin > BUFFER_BYTES / 2 {
                self.calm_reads = 0;
            }
            if is_whole(&self.bytes[begin..]) {
                return Ok(Some(Received::Message(Place { begin, end, is_joined: false })));
            }
            if let Some(joined) = self.fragments.take(&self.bytes[begin..end], self.limit_bytes)? {
                self.joined = joined;
                let end = self.joined.len();
                return Ok(Some(Received::Message(Place { begin: 0, end, is_joined: true })));
            }
        }
    }

    /// The message that `advance` took last; it stays until the next `advance` or `room`. Errors: it is none.
    pub fn message(&self, place: Place) -> Result<Message<'_>, Broken> {
        let bytes = if place.is_joined { &self.joined } else { &self.bytes };
        Message::new(bytes.get(place.begin..place.end).unwrap_or_default())
    }

    /// Where the message at `from` ends, if all of it is there.
    fn scan(&mut self) -> Result<Option<usize>, Broken> {
        loop {
            let Some((length, flags)) = header(&self.bytes[self.scanned..self.to])? else {
                self.wanted = self.scanned - self.from + HEADER_BYTES;
                return Ok(None);
            };
            let before = self.scanned - self.from;
            let fragmented = if before == 0 {
                self.check_first(length, flags)?;
                flags & UNFRAGMENTED != UNFRAGMENTED
            } else {
                !is_whole(&self.bytes[self.from..])
            };
            let bytes = before.saturating_add(length);
            if bytes > self.limit_bytes {
                if before == 0 || fragmented {
                    return Err(Broken::TooLarge { bytes, limit_bytes: self.limit_bytes });
                }
                let content = &self.bytes[self.from + HEADER_BYTES..self.scanned];
                self.skipped = Some(Skipped {
                    correlation: correlation_of(content).unwrap_or_default(),
                    bytes,
                    frame_bytes_left: bytes,
                    is_final: flags & FINAL != 0,
                });
                return Ok(None);
            }
            if self.to - self.scanned < length {
                self.wanted = bytes;
                return Ok(None);
            }
            self.scanned += length;
            if flags & FINAL != 0 {
                return Ok(Some(self.scanned));
            }
        }
    }

    /// What a peer that speaks another protocol fails first.
    fn check_first(&self, length: usize, flags: u16) -> Result<(), Broken> {
        let least = if flags & UNFRAGMENTED == UNFRAGMENTED { ANSWER_FIXED } else { 8 };
        if length < HEADER_BYTES + least {
            return Err(Broken::Malformed("a message whose first frame is too short for one"));
        }
        let limit_bytes = FIRST_FRAME_BYTES_MAX.min(self.limit_bytes);
        if length > limit_bytes {
            return Err(Broken::TooLarge { bytes: length, limit_bytes });
        }
        Ok(())
    }

    /// Drops what came of the answer that is skipped; at its end, whose it was.
    fn skip(&mut self) -> Result<Option<(i64, usize)>, Broken> {
        let Some(skipped) = &mut self.skipped else { return Ok(None) };
        loop {
            let count = skipped.frame_bytes_left.min(self.to - self.from);
            self.from += count;
            self.scanned = self.from;
            skipped.frame_bytes_left -= count;
            if skipped.frame_bytes_left > 0 {
                self.wanted = 1;
                return Ok(None);
            }
            if skipped.is_final {
                let ended = (skipped.correlation, skipped.bytes);
                self.skipped = None;
                return Ok(Some(ended));
            }
            let Some((length, flags)) = header(&self.bytes[self.from..self.to])? else {
                self.wanted = HEADER_BYTES;
                return Ok(None);
            };
            skipped.frame_bytes_left = length;
            skipped.bytes = skipped.bytes.saturating_add(length);
            skipped.is_final = flags & FINAL != 0;
        }
    }

    fn shift_to_front(&mut self) {
        if self.from > 0 {
            self.bytes.copy_within(self.from..self.to, 0);
            self.scanned -= self.from;
            self.to -= self.from;
            self.from = 0;
        }
    }

    /// A large buffer is kept while large messages come, and given back afterwards. Only while it is empty.
    fn give_back(&mut self) {
        if self.bytes.len() > 2 * BUFFER_BYTES {
            self.calm_reads += 1;
            if self.calm_reads > CALM_READS {
                self.calm_reads = 0;
                self.bytes = vec![0; BUFFER_BYTES];
            }
        }
        if !self.joined.is_empty() {
            self.joined = Vec::new();
        }
    }
}

/// Whether the message that begins here came in one piece: the high byte of its first frame's flags says so.
fn is_whole(bytes: &[u8]) -> bool {
    bytes.get(5).is_some_and(|flags| u16::from(*flags) << 8 & UNFRAGMENTED == UNFRAGMENTED)
}

#[cfg(test)]
mod tests;
