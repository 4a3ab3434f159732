//! Messages: a first frame with everything of fixed size, then frames with the rest.
//!
//! First frame: message type (int32), correlation (int64), then partition (int32) in requests and events, or a count of
//! backups (uint8) in answers, then the parameters of fixed size.
//! Source: Open Binary Client Protocol 2.x, sections 2.1.2 (initial frame) and 5.8 (errors).

use std::fmt;

use super::broken::Broken;
use super::fields::{Fields, Fixed};
use super::frame::{self, BEGIN, END, EVENT, FINAL, Frame, Frames, HEADER_BYTES, UNFRAGMENTED};

/// Where the parameters of an answer begin in the content of its first frame.
pub(super) const ANSWER_FIXED: usize = 13;
/// Where the parameters of a request or an event begin there.
pub(super) const REQUEST_FIXED: usize = 16;
/// Partition of requests that no partition has to answer.
pub(super) const NO_PARTITION: i32 = -1;

/// Type of the answers that report an error.
const ERROR: i32 = 0;

/// One whole message, as it was received. The reader has seen that its frames are whole and that its first one has the
/// fields that every message has.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    first: Frame<'a>,
    rest: &'a [u8],
}

impl<'a> Message<'a> {
    /// Over the bytes of a whole message. Errors: its first frame has no place for type and correlation.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Broken> {
        let first = Frames::new(bytes).next().ok_or(Broken::Malformed("a message without a frame"))?;
        if first.content.len() < ANSWER_FIXED {
            return Err(Broken::Malformed(
                "a message without type and correlation; this is not a Hazelcast member",
            ));
        }
        Ok(Message { first, rest: &bytes[HEADER_BYTES + first.content.len()..] })
    }

    /// Service, method and kind.
    pub fn message_type(&self) -> i32 {
        i32::from_le_bytes([
            self.first.content[0],
            self.first.content[1],
            self.first.content[2],
            self.first.content[3],
        ])
    }

    /// Of the request that this answers, or of the listener whose event it is.
    pub fn correlation(&self) -> i64 {
        correlation_of(self.first.content).unwrap_or_default()
    }

    /// Whether it is an event of a listener.
    pub fn is_event(&self) -> bool {
        self.first.is(EVENT)
    }

    /// Whether it reports an error.
    pub fn is_error(&self) -> bool {
        self.message_type() == ERROR
    }

    pub(super) fn fixed(&self) -> Fixed<'a> {
        Fixed::new(self.first.content)
    }

    pub(super) fn fields(&self) -> Fields<'a> {
        Fields::new(self.rest)
    }

    /// The error that it reports; the innermost cause is left to the member's log. Errors: it is not laid out as one.
    pub fn server_error(&self) -> Result<ServerError, Broken> {
        let mut fields = self.fields();
        fields.open()?;
        fields.open()?;
        let code = fields.fixed()?.i32(0)?;
        let class = fields.string()?;
        let message = fields.optional_string()?.unwrap_or_default();
        Ok(ServerError { code, class: shortened(class), message: shortened(message) })
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Message({:#08x}, correlation {}, {} bytes)",
            self.message_type(),
            self.correlation(),
            self.rest.len() + self.first.content.len()
        )
    }
}

/// The correlation in the content of a first frame.
pub(super) fn correlation_of(content: &[u8]) -> Option<i64> {
    content.get(4..12).and_then(|bytes| bytes.try_into().ok()).map(i64::from_le_bytes)
}

/// Stack traces can come in messages; a page of text is enough.
const TEXT_BYTES_KEPT: usize = 1000;

fn shortened(text: &str) -> String {
    let mut end = text.len().min(TEXT_BYTES_KEPT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// An operation that a member refused or failed to carry out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class} (code {code}): {message}")]
pub struct ServerError {
    /// the protocol's number, section 5.8
    pub code: i32,
    /// the member's class of exception
    pub class: String,
    /// the member's words, at most 1,000 bytes of them
    pub message: String,
}

/// What an error says about whether the operation took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It did not: the member refused before it began. Safe to try again elsewhere.
    NotBegun,
    /// It may have: the member itself lost track. Only what changes nothing may be tried again.
    Unknown,
    /// It ran and failed, or was refused for good.
    Failed,
}

impl ServerError {
    /// Whether the operation took place.
    ///
    /// `NotBegun`: the member checks these before it runs an operation (caller or target no member, partition on its
    /// way, wrong target). `Unknown`: exceptions that also end operations under way (shutdown, a member that left, a
    /// disconnected target, timeouts, an indeterminate state). Everything else failed.
    pub fn effect(&self) -> Effect {
        match self.code {
            8 | 39 | 53 | 62 => Effect::NotBegun,
            19 | 22 | 33 | 38 | 46 | 47 | 50 | 52 | 54 | 80 => Effect::Unknown,
            _ => Effect::Failed,
        }
    }

    /// Whether another attempt can help an operation that changes nothing.
    pub fn is_retryable(&self) -> bool {
        matches!(self.code, 8 | 19 | 33 | 39 | 46 | 47 | 52 | 53 | 62)
    }
}

/// Appends messages. The frame that was put last is marked as final by `end`.
pub(super) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    last: usize,
}

impl<'o> Writer<'o> {
    /// Begins a message; `fixed_bytes` of parameters of fixed size are to follow at once, by `fixed`.
    pub fn begin(
        out: &'o mut Vec<u8>,
        message_type: i32,
        correlation: i64,
        partition: i32,
        fixed_bytes: usize,
    ) -> Self {
        let last = out.len();
        const FRONT_BYTES: usize = HEADER_BYTES + REQUEST_FIXED;
        let mut front = [0; FRONT_BYTES];
        front[..4].copy_from_slice(&((FRONT_BYTES + fixed_bytes) as u32).to_le_bytes());
        front[4..6].copy_from_slice(&UNFRAGMENTED.to_le_bytes());
        front[6..10].copy_from_slice(&message_type.to_le_bytes());
        front[10..18].copy_from_slice(&correlation.to_le_bytes());
        front[18..].copy_from_slice(&partition.to_le_bytes());
        out.extend_from_slice(&front);
        Writer { out, last }
    }

    /// Parameters of fixed size, little-endian.
    pub fn fixed(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A frame.
    pub fn frame(&mut self, flags: u16, content: &[u8]) {
        self.last = self.out.len();
        frame::put(self.out, flags, content);
    }

    /// A frame whose content is sent separately, right after what is written here.
    pub fn header(&mut self, flags: u16, content_bytes: usize) {
        self.last = self.out.len();
        frame::put_header(self.out, flags, content_bytes);
    }

    /// A string.
    pub fn string(&mut self, text: &str) {
        self.frame(0, text.as_bytes());
    }

    /// A string, or null.
    pub fn optional_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.frame(frame::NULL, &[]),
        }
    }

    /// Begin of a list.
    pub fn open(&mut self) {
        self.frame(BEGIN, &[]);
    }

    /// End of a list.
    pub fn close(&mut self) {
        self.frame(END, &[]);
    }

    /// Ends the message.
    pub fn end(self) {
        self.out[self.last + 5] |= FINAL.to_le_bytes()[1];
    }
}
