//! The protocol without sockets, threads or a clock: bytes in, events out; requests in, bytes out.
//!
//! `Session` is one connection: it authenticates, correlates many operations in flight, keeps the heartbeat and follows
//! the cluster view. An event loop of any kind reads into `Session::room`, takes events until there are none, and
//! writes what `Session::send_buffer` holds; every instant is an argument (`_ns`, u64, since any start that the loop
//! keeps to). `PartitionTable` says which member a key belongs to. Routing and retries are decided in the layer above
//! (`reactor`).
//! Lengths and counts from the wire are checked before they enter any calculation or allocation; whatever a peer sends,
//! nothing here panics, and a connection holds at most `Limits` bytes of what it received.
//! Source: Hazelcast Open Binary Client Protocol 2.x (github.com/hazelcast/hazelcast-client-protocol).

mod broken;
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
mod uuid;
pub mod views;

pub use broken::Broken;
pub use data::{Data, Key, Object};
pub use message::{Message, ServerError};
pub use partitions::PartitionTable;
pub use reader::{Place, Reader, Received};
pub use request::{Answer, Entries, MapName, Request};
pub use session::{Ended, Event, Refused, Session, SessionError};
pub use settings::{Credentials, Limits, Settings};
pub use uuid::Uuid;
pub use views::{Authentication, Member, MembersView, PartitionsView};
