//! An emulated network between a bot and the server, without root: latency, jitter, loss and bandwidth per connection.
//!
//! A `Wire` is a TCP connection whose bytes wait on both ways, below TLS, so every protocol over TCP gets the same
//! network; datagrams wait in the driver of UDP. `Way` is the pure part: when each byte comes out. `timers` wakes the tasks of wires on time; the thread that
//! polls them asks for the next instant (`next_ns`), since workers have no timers of tokio's.
//! Everything here belongs to one thread: a waker is never used on another.
//! Units: `_ns`; instants are readings of CLOCK_MONOTONIC. Not here: which bot has which network (`plan::network`).
//! Limits: docs/method/networks.md.

mod timers;
mod way;
mod wire;

use std::cell::Cell;

pub(crate) use timers::{Owner, Sent, note, sleep_until};
pub use timers::{Passed, RoundTrip, next_ns, take_passed, wake_due};
pub(crate) use way::Way;
pub(crate) use wire::Wire;

/// Bytes of one segment: what Ethernet carries of a TCP stream with timestamps. Jitter and loss are drawn per segment.
pub const SEGMENT_BYTES: usize = 1448;
/// Most bytes under way on one way.
pub(crate) const WINDOW_BYTES: usize = 256 * 1024;
/// A segment is lost so often in a row at most.
const LOSSES_MOST: u32 = 6;

/// What an emulated network does to each connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    /// which of the trial's networks it is, in what is recorded
    pub index: usize,
    /// round trip; half of it on each way, ns
    pub latency_ns: u64,
    /// each segment takes up to so much longer on each way, uniformly drawn, ns
    pub jitter_ns: u64,
    /// probability that a segment is lost, in [0, 0.5)
    pub loss: f64,
    /// after this time a lost segment is sent again, ns
    pub rto_ns: u64,
    /// on each way; 0: no limit
    pub bits_per_s: u64,
    /// the order in which connections reach the server matters: the first bytes of each leave at once, where they can, and
    /// what answers them comes as late as if they had not
    pub keeps_arrivals: bool,
    /// of what is drawn, with the number of the connection on its thread
    pub seed: u64,
}

impl Path {
    /// How long a segment is under way, without what it waits for bandwidth and for those before it, ns.
    fn delay_ns(&self, rng: &mut fastrand::Rng) -> u64 {
        let mut delay_ns = self.latency_ns / 2;
        if self.jitter_ns > 0 {
            delay_ns += rng.u64(0..=self.jitter_ns);
        }
        if self.loss > 0.0 {
            let losses = (0..LOSSES_MOST).take_while(|_| rng.f64() < self.loss).count();
            // Each timeout is twice the last one.
            delay_ns += self.rto_ns * ((1 << losses) - 1);
        }
        delay_ns
    }
}

/// The draws of the next connection of this thread.
pub(crate) fn rng_of(path: &Path) -> fastrand::Rng {
    thread_local! {
        static CONNECTIONS: Cell<u64> = const { Cell::new(0) };
    }
    fastrand::Rng::with_seed(path.seed.wrapping_add(CONNECTIONS.replace(CONNECTIONS.get() + 1)))
}

/// CLOCK_MONOTONIC, ns: the engine's clock.
pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests;
