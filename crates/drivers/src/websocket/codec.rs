//! A WebSocket client's state between reads: frames in, messages out. No socket, no clock.
//!
//! On the workers' hot path: frames are decoded in place in the shared read buffer, and a read may carry many of them.
//! Text is checked for UTF-8, pings are answered, fragments are joined. A message has at most 64 KiB unless its owner
//! accepts larger ones; a frame larger than that is gathered as it arrives.

use super::frame::{self, Front, Opcode};
use crate::driver::{ANSWER_BYTES_MAX, Broken, Closed, Goodbye, Refused};
use crate::read_buffer::ReadBuffer;
use crate::unfinished::{Carried, Exhausted, FREE_BYTES, Reservation};

/// No message may be larger, unless its owner takes larger ones.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Beyond this much unsent the connection takes no more.
const UNSENT_BYTES_MAX: usize = 128 * 1024;
const GOING_AWAY_NORMALLY: u16 = 1000;
/// The code for a close frame without a code. Source: RFC 6455, section 7.1.5.
const NO_CODE: u16 = 1005;

/// What can be sent.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// a text message; the caller vouches that it is UTF-8
    Text(&'a [u8]),
    /// a binary message
    Binary(&'a [u8]),
}

/// What can be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// checked UTF-8
    Text(&'a [u8]),
    /// bytes
    Binary(&'a [u8]),
}

/// Where a connection is in its talk with the server.
#[derive(Default)]
pub struct Codec {
    /// encoded, not yet taken by the kernel
    pub(super) unsent: Vec<u8>,
    /// bytes of pongs since nothing was unsent
    pong_bytes: usize,
    /// for these
    answers: Reservation,
    /// the incomplete frame that the last read ended with
    carried: Carried,
    /// what is carried came with the handshake's answer and has not been looked at
    has_news: bool,
    /// the message whose last piece has not come yet
    pieces: Option<Box<Pieces>>,
    /// the peer sent a close frame
    shutdown: Option<Goodbye>,
    we_closed: bool,
    /// so much more than `MESSAGE_BYTES_MAX` a message may have
    more_bytes: u32,
}

struct Pieces {
    opcode: Opcode,
    bytes: Vec<u8>,
    reserved: Reservation,
    /// of `bytes`: known to be UTF-8, where they are text
    checked_bytes: usize,
    /// of the frame that is gathered: still to come
    missing_bytes: usize,
    /// that frame is the message's last
    is_last: bool,
}

impl Pieces {
    fn of(opcode: Opcode, bytes: Vec<u8>) -> Pieces {
        let (reserved, checked_bytes, missing_bytes) = (Reservation::default(), 0, 0);
        Pieces { opcode, bytes, reserved, checked_bytes, missing_bytes, is_last: false }
    }

    /// Takes what has come. Errors: the message cannot become one.
    fn take(&mut self, more: &[u8]) -> Result<(), Broken> {
        self.bytes.extend_from_slice(more);
        self.reserve()?;
        if self.opcode == Opcode::Text && !self.may_be_text() { Err(Broken::NotUtf8) } else { Ok(()) }
    }

    fn reserve(&mut self) -> Result<(), Exhausted> {
        self.reserved.grow_to(self.bytes.capacity(), FREE_BYTES)
    }

    /// Whether it can still become text. Looked at with each piece, so that a faulty one is known before the last.
    fn may_be_text(&mut self) -> bool {
        match std::str::from_utf8(&self.bytes[self.checked_bytes..]) {
            Ok(_) => self.checked_bytes = self.bytes.len(),
            Err(error) => {
                self.checked_bytes += error.valid_up_to();
                // The rest of a character may come with the next piece.
                return error.error_len().is_none();
            }
        }
        true
    }
}

impl Codec {
    /// After a handshake whose answer was followed by `carried`.
    pub fn new(carried: Vec<u8>) -> Self {
        Codec { has_news: !carried.is_empty(), carried: Carried::new(carried), ..Codec::default() }
    }

    /// Takes messages of up to `bytes`, where that is more than `MESSAGE_BYTES_MAX`.
    pub fn taking(self, bytes: usize) -> Self {
        let more_bytes = u32::try_from(bytes.saturating_sub(MESSAGE_BYTES_MAX)).unwrap_or(u32::MAX);
        Codec { more_bytes, ..self }
    }

    /// Encodes a message. Errors: `Refused` when too much is waiting already.
    pub fn send(&mut self, what: Message<'_>) -> Result<(), Refused> {
        if self.unsent.len() > UNSENT_BYTES_MAX {
            return Err(Refused(UNSENT_BYTES_MAX));
        }
        let (opcode, payload) = match what {
            Message::Text(text) => (Opcode::Text, text),
            Message::Binary(bytes) => (Opcode::Binary, bytes),
        };
        frame::write_frame(&mut self.unsent, opcode, payload, random_mask());
        Ok(())
    }

    /// What waits for the kernel.
    pub fn unsent(&self) -> &[u8] {
        &self.unsent
    }

    /// The kernel has taken everything.
    pub(super) fn flushed(&mut self) {
        self.pong_bytes = 0;
        self.answers.release();
    }

    /// Why nothing further is read, if that is so.
    pub fn ended(&self) -> Option<Closed> {
        if let Some(goodbye) = &self.shutdown {
            return Some(Closed::ByPeer(Some(goodbye.clone())));
        }
        // Here and not at each ping: the replies that one read requests are bounded, and flushed before the next one.
        (self.pong_bytes > ANSWER_BYTES_MAX).then_some(Closed::Broken(Broken::UnreadAnswers))
    }

    /// Puts what came with the handshake's answer into the buffer, once; returns how many bytes.
    pub fn lay_news(&mut self, buffer: &mut ReadBuffer) -> Option<usize> {
        if !std::mem::take(&mut self.has_news) {
            return None;
        }
        let count = self.carried.bytes().len();
        buffer.lay(self.carried.bytes());
        self.carried.clear();
        Some(count)
    }

    /// Room for one read, after what the last one left incomplete.
    pub fn lay<'d>(&self, buffer: &'d mut ReadBuffer) -> &'d mut [u8] {
        buffer.lay(self.carried.bytes())
    }

    /// `count` bytes were read into that room.
    pub fn came(&mut self, count: usize, buffer: &mut ReadBuffer) {
        self.carried.clear();
        buffer.filled(count);
    }

    /// The next whole message in the buffer; `None` when only a part is left, which is carried to the next read.
    pub fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        loop {
            if self.shutdown.is_some() {
                return None;
            }
            if self.pieces.as_ref().is_some_and(|pieces| pieces.missing_bytes > 0) {
                match self.gather(buffer) {
                    Ok(true) => return Some(self.deliver(buffer)),
                    Ok(false) if buffer.rest().is_empty() => return None,
                    Ok(false) => {}
                    Err(broken) => return Some(Err(broken)),
                }
            }
            let header = match frame::read_header(buffer.rest()) {
                Front::Header(header) => header,
                Front::Incomplete => return self.carry(buffer),
                Front::Broken(why) => return Some(Err(Broken::Protocol(why))),
            };
            let so_far = self.pieces.as_ref().map_or(0, |pieces| pieces.bytes.len());
            // A length is the server's claim, up to 2⁶⁴ − 1: it is compared with the room left and never added to.
            let bytes_max = MESSAGE_BYTES_MAX + self.more_bytes as usize;
            if header.payload_bytes > bytes_max.saturating_sub(so_far) {
                return Some(Err(Broken::TooLarge(bytes_max)));
            }
            if header.payload_bytes > MESSAGE_BYTES_MAX {
                if let Err(broken) = self.begin_gathering(&header) {
                    return Some(Err(broken));
                }
                buffer.take(header.header_bytes);
                continue;
            }
            if buffer.rest().len() < header.header_bytes + header.payload_bytes {
                return self.carry(buffer);
            }
            buffer.take(header.header_bytes);
            match (header.opcode, header.is_final) {
                (Opcode::Ping, _) => {
                    let payload = buffer.take(header.payload_bytes);
                    let before = self.unsent.len();
                    frame::write_frame(&mut self.unsent, Opcode::Pong, payload, random_mask());
                    self.pong_bytes += self.unsent.len() - before;
                    if self.answers.grow_to(self.pong_bytes, FREE_BYTES).is_err() {
                        return Some(Err(Broken::UnreadAnswers));
                    }
                }
                (Opcode::Pong, _) => drop(buffer.take(header.payload_bytes)),
                (Opcode::Close, _) => {
                    let payload = buffer.take(header.payload_bytes);
                    let (code, reason) = match payload {
                        [] => (NO_CODE, ""),
                        [high, low, reason @ ..] => {
                            let code = u16::from_be_bytes([*high, *low]);
                            if !is_sent_code(code) {
                                return Some(Err(Broken::Protocol("a close code that no frame may have")));
                            }
                            let Ok(reason) = std::str::from_utf8(reason) else {
                                return Some(Err(Broken::NotUtf8));
                            };
                            (code, reason)
                        }
                        [_] => return Some(Err(Broken::Protocol("a close frame with half a code"))),
                    };
                    self.shutdown = Some(Goodbye { code, reason: reason.into() });
                    self.close();
                    return None;
                }
                (Opcode::Text | Opcode::Binary, _) if self.pieces.is_some() => {
                    return Some(Err(Broken::Protocol("a new message inside another")));
                }
                (Opcode::Text, true) => {
                    if std::str::from_utf8(&buffer.rest()[..header.payload_bytes]).is_err() {
                        return Some(Err(Broken::NotUtf8));
                    }
                    return Some(Ok(Received::Text(buffer.take(header.payload_bytes))));
                }
                (Opcode::Binary, true) => {
                    return Some(Ok(Received::Binary(buffer.take(header.payload_bytes))));
                }
                (opcode @ (Opcode::Text | Opcode::Binary), false) => {
                    let mut pieces = Box::new(Pieces::of(opcode, Vec::new()));
                    if let Err(broken) = pieces.take(buffer.take(header.payload_bytes)) {
                        return Some(Err(broken));
                    }
                    self.pieces = Some(pieces);
                }
                (Opcode::Continuation, is_final) => {
                    let Some(pieces) = self.pieces.as_mut() else {
                        return Some(Err(Broken::Protocol("a further piece of no message")));
                    };
                    let piece = buffer.take(header.payload_bytes);
                    if is_final {
                        pieces.bytes.extend_from_slice(piece);
                        return Some(self.deliver(buffer));
                    }
                    if let Err(broken) = pieces.take(piece) {
                        return Some(Err(broken));
                    }
                }
            }
        }
    }

    /// A frame begins that is larger than a read may carry.
    fn begin_gathering(&mut self, header: &frame::Header) -> Result<(), Broken> {
        let pieces = match (header.opcode, &mut self.pieces) {
            (Opcode::Continuation, Some(pieces)) => pieces,
            (Opcode::Continuation, None) => return Err(Broken::Protocol("a further piece of no message")),
            (_, Some(_)) => return Err(Broken::Protocol("a new message inside another")),
            (opcode, none) => none.insert(Box::new(Pieces::of(opcode, Vec::new()))),
        };
        (pieces.missing_bytes, pieces.is_last) = (header.payload_bytes, header.is_final);
        Ok(())
    }

    /// Takes what has come of such a frame. Whether the message is whole.
    fn gather(&mut self, buffer: &mut ReadBuffer) -> Result<bool, Broken> {
        let Some(pieces) = &mut self.pieces else { return Ok(false) };
        let count = pieces.missing_bytes.min(buffer.rest().len());
        pieces.missing_bytes -= count;
        pieces.take(buffer.take(count))?;
        Ok(pieces.missing_bytes == 0 && pieces.is_last)
    }

    /// The message whose pieces have all come.
    fn deliver<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Result<Received<'d>, Broken> {
        let Some(whole) = self.pieces.take() else {
            return Err(Broken::Protocol("a further piece of no message"));
        };
        buffer.joined = whole.bytes;
        if whole.opcode == Opcode::Binary {
            return Ok(Received::Binary(&buffer.joined));
        }
        if std::str::from_utf8(&buffer.joined).is_err() {
            Err(Broken::NotUtf8)
        } else {
            Ok(Received::Text(&buffer.joined))
        }
    }

    /// Sends a close, once.
    pub fn close(&mut self) {
        self.say_goodbye(Some(GOING_AWAY_NORMALLY), "");
    }

    /// The same with a code and words of at most 123 bytes, or an empty frame without a code.
    pub(super) fn say_goodbye(&mut self, code: Option<u16>, reason: &str) {
        if !self.we_closed {
            self.we_closed = true;
            let payload = code.map_or(Vec::new(), |code| [&code.to_be_bytes(), reason.as_bytes()].concat());
            frame::write_frame(&mut self.unsent, Opcode::Close, &payload, random_mask());
        }
    }

    fn carry<T>(&mut self, buffer: &mut ReadBuffer) -> Option<Result<T, Broken>> {
        let rest_bytes = buffer.rest().len();
        self.carried.keep(buffer.take(rest_bytes)).err().map(|exhausted| Err(exhausted.into()))
    }
}

/// Close codes that a frame may carry: others are for local use only, or unassigned. Source: RFC 6455, section
/// 7.4, and the registry of IANA.
fn is_sent_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

fn random_mask() -> [u8; 4] {
    fastrand::u32(..).to_ne_bytes()
}
