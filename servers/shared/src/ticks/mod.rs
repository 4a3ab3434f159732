//! The ticks of a server's loop: when each is due, what is counted about it, and its log.
//!
//! Used by every server that has a loop. Not here: what happens within a tick, and what else a server counts.

pub mod log;
pub mod schedule;
mod tally;
#[cfg(feature = "truth")]
pub mod truth;

pub use tally::TickTally;
