//! The protocol without sockets, threads or a clock: bytes in, events out; requests in, bytes out.
//!
//! `Session` is one connection: it authenticates, correlates many operations in flight, keeps the heartbeat and follows
//! the cluster view. An event loop of any kind reads into `Session::room`, takes events until there are none, and writes
//! what `Session::send_buffer` holds; every instant is an argument (`_ns`, u64, since any start that the loop keeps to).
//! `PartitionTable` says which member a key belongs to. Which connection a request takes, and what is tried again, is
//! decided above (`reactor`).
//! Lengths and counts from the wire are checked before anything is reckoned or reserved with them; whatever a peer sends,
//! nothing here panics, and a connection holds at most `Limits` bytes of what it received.
//! Source: Hazelcast Open Binary Client Protocol 2.x (github.com/hazelcast/hazelcast-client-protocol).

pub mod data;
mod fields;
mod fragments;
pub mod frame;
pub mod hash;
mod in_flight;
pub mod message;
mod partitions;
mod reader;
pub mod request;
mod session;
mod settings;
pub mod views;

pub use data::{Data, Key, Object};
pub use message::{Message, ServerError};
pub use partitions::PartitionTable;
pub use reader::{Place, Reader, Received};
pub use request::{Answer, Entries, MapName, Request};
pub use session::{Ended, Event, Refused, Session, SessionError};
pub use settings::{Credentials, Limits, Settings};
pub use views::{Authentication, Member, MembersView, PartitionsView, Uuid};

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
