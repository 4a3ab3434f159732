//! Making the load: workers that carry out a plan, on time, and account for every message.
//!
//! `Worker` is synchronous and takes its clock as an argument, so in tests everything runs in virtual time; a thin
//! `thread` around it sleeps, polls sockets and nothing else. Bots are the `Bots` trait, connections the `Driver` trait.
//! Invariants: after warm-up a worker does not allocate per message, lock, log or format; it never waits for the
//! collector; nothing wakes it across threads; before a connection has its turn, what is due is served, two items at most.

mod bots;
pub mod clock;
pub mod collector;
pub mod context;
mod deliveries;
mod ids;
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
pub use timeline::{Progress, Timeline};
pub use worker::{Handover, Worker};
