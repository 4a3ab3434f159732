//! How a peer violates the protocol.

/// The peer broke the protocol, or speaks another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A frame shorter than its own header.
    #[error("a frame says that it is {0} bytes long, which no frame can be")]
    FrameLength(i32),
    /// A frame or message beyond the limit, at a place where the operation that it answers is not known.
    #[error("a frame of {bytes} bytes, with a limit of {limit_bytes}")]
    TooLarge {
        /// what it said, or what it has reached
        bytes: usize,
        /// what it may be
        limit_bytes: usize,
    },
    /// Bytes that are no message, or not the message that this place asks for.
    #[error("{0}")]
    Malformed(&'static str),
}
