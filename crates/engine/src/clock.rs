//! The only place that reads the time.
//!
//! Units: ns since the start of the trial, monotonic, the same origin for all workers of a process.

use std::cell::Cell;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Tells the time of the trial.
pub trait Clock {
    /// ns since the start of the trial
    fn now_ns(&self) -> u64;
}

/// CLOCK_MONOTONIC from an origin.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    origin_ns: u64,
}

impl MonotonicClock {
    /// A clock that reads 0 now.
    pub fn starting_now() -> Self {
        MonotonicClock { origin_ns: monotonic_ns() }
    }

    /// The clock whose zero is this reading of CLOCK_MONOTONIC.
    pub fn since(origin_ns: u64) -> Self {
        MonotonicClock { origin_ns }
    }

    /// Its zero, as a reading of CLOCK_MONOTONIC: what an absolute timer wants.
    pub fn origin_ns(&self) -> u64 {
        self.origin_ns
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.origin_ns)
    }
}

/// A clock that advances only when told to.
#[derive(Debug, Default)]
pub struct VirtualClock {
    now_ns: Cell<u64>,
}

impl VirtualClock {
    /// Moves it; never back.
    pub fn set(&self, now_ns: u64) {
        assert!(now_ns >= self.now_ns.get(), "time does not run backwards");
        self.now_ns.set(now_ns);
    }
}

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }
}

#[inline]
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours, and the clock ids passed exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC, ns.
#[inline]
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, ns since the epoch: to place what other processes stamp, never to measure.
pub fn realtime_ns() -> u64 {
    read_ns(libc::CLOCK_REALTIME)
}
