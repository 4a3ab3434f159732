//! How an HTTP answer violates the protocol.

use strum::VariantArray;

use crate::unfinished::Exhausted;

/// How an answer breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error, VariantArray)]
pub enum Fault {
    /// It does not begin as an answer does.
    #[error("not HTTP")]
    NotHttp,
    /// Version, status or reason cannot be read.
    #[error("a broken status line")]
    StatusLine,
    /// A header line that is none, or two that contradict each other.
    #[error("a broken header")]
    Header,
    /// More header than `HEAD_BYTES_MAX`.
    #[error("too much header")]
    HeadTooLarge,
    /// A chunk whose length cannot be read, or that does not end where it should.
    #[error("a broken chunk")]
    Chunk,
    /// The connection ended before the answer did: its length was a lie, or the server died.
    #[error("cut off")]
    CutOff,
    /// A body beyond the cap.
    #[error("a body too large")]
    BodyTooLarge,
    /// Bytes that were not requested.
    #[error("bytes that were not requested")]
    Unasked,
    /// The HTTP/2 layer gave up: a broken frame, a reset stream, a GOAWAY.
    #[error("an HTTP/2 error")]
    Two,
    /// A reply that is no protobuf message, or not one as gRPC sends it.
    #[error("a malformed message")]
    Message,
    /// A body within its cap that is one of too many large ones that have not ended.
    #[error(
        "bodies that have not ended take more than {} MiB over all connections; where they are honestly so large and so \
         many, use fewer connections, do not look at them, or say with --body-max how long each may be (less than 4 MiB)",
        crate::UNFINISHED_BYTES_MAX >> 20
    )]
    TooManyUnfinished,
}

impl Fault {
    /// All faults, in the order of their declaration.
    pub const ALL: &[Fault] = <Fault as VariantArray>::VARIANTS;
}

impl From<Exhausted> for Fault {
    fn from(_: Exhausted) -> Self {
        Fault::TooManyUnfinished
    }
}
