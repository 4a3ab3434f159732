//! Where a message ends in a byte stream. Pure: bytes in, lengths out.

/// No message may be larger, a line's end included.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Beyond this much unsent the connection takes no more.
pub(super) const UNSENT_BYTES_MAX: usize = 128 * 1024;

/// How messages lie on a stream.
pub trait Framing: 'static {
    /// What the front of the received bytes is. Nothing is `Incomplete`.
    fn front(bytes: &[u8]) -> Front;

    /// Appends a message as it goes over the wire.
    fn write(out: &mut Vec<u8>, message: &[u8]);
}

/// What the front of received bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// a message, all of it
    Whole {
        /// bytes before it that are not delivered
        header_bytes: usize,
        /// bytes that are delivered
        payload_bytes: usize,
    },
    /// its end has not come yet
    Incomplete,
    /// it is, or will be, larger than `MESSAGE_BYTES_MAX`
    TooLarge,
}

/// No framing at all: input is delivered as read, and output is sent unchanged.
pub struct Raw;

impl Framing for Raw {
    fn front(bytes: &[u8]) -> Front {
        if bytes.is_empty() {
            Front::Incomplete
        } else {
            Front::Whole { header_bytes: 0, payload_bytes: bytes.len() }
        }
    }

    fn write(out: &mut Vec<u8>, message: &[u8]) {
        out.extend_from_slice(message);
    }
}
