//! Load generation: workers that execute a plan, on time, and account for every message.
//!
//! `Worker` is synchronous and takes its clock as an argument, so in tests everything runs in virtual time; a thin
//! `thread` around it only sleeps and polls sockets. Bots implement the `Bots` trait, connections the `Driver` trait.
//! Invariants: after warm-up a worker does not allocate per message, lock, log or format; it never waits for the
//! collector; no other thread wakes it; before each connection it handles, it serves up to two due items.

mod bots;
pub mod clock;
pub mod collector;
pub mod context;
mod deliveries;
mod ids;
mod network;
mod pacer;
mod pairing_lock;
mod reading;
#[cfg(any(test, feature = "testing"))]
pub mod simulation;
mod state;
pub mod thread;
mod timeline;
mod timer;
mod worker;

pub use bots::Bots;
pub use clock::{Clock, MonotonicClock, VirtualClock};
pub use collector::Collector;
pub use context::BotContext;
pub use ids::{ConnectionId, RequestId};
pub use pairing_lock::PairingLock;
pub use state::{MEETING_POINTS, SendLag, Shared};
pub use timeline::{INSTANTS, Progress, Timeline};
pub use worker::{Handover, Worker};
