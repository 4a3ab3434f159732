//! The server's clock: monotonic nanoseconds, and the same instants as time since the epoch.
//!
//! Wall time is the monotonic clock plus one offset read at the start, so that a stepped system clock moves
//! no tick, no fire interval and no snapshot stamp. One reading costs about 25 ns (vDSO, tsc).

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Monotonic time in nanoseconds, since boot.
#[inline]
pub fn now_ns() -> u64 {
    ns(clock_gettime(ClockId::Monotonic))
}

/// Processor time that the calling thread has used, ns. A system call, unlike `now_ns`.
#[inline]
pub fn thread_cpu_ns() -> u64 {
    ns(clock_gettime(ClockId::ThreadCPUTime))
}

#[inline]
fn ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// For the system, which counts whole seconds apart.
#[inline]
pub fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Translates monotonic instants to time since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    offset_ns: u64,
}

impl WallClock {
    /// Compares both clocks once.
    #[inline]
    pub fn new() -> WallClock {
        let wall_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        WallClock { offset_ns: wall_ns.saturating_sub(now_ns()) }
    }

    /// Wall-clock time of an instant, µs since 1970.
    #[inline]
    pub fn epoch_us(self, at_ns: u64) -> u64 {
        (at_ns + self.offset_ns) / 1_000
    }

    /// The same in ms.
    #[inline]
    pub fn epoch_ms(self, at_ns: u64) -> u64 {
        (at_ns + self.offset_ns) / 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_agrees_with_the_systems_and_moves_with_the_monotonic_clock() {
        let wall = WallClock::new();
        let at_ns = now_ns();
        let system_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        assert!(wall.epoch_ms(at_ns).abs_diff(system_ms) < 1_000);
        assert_eq!(wall.epoch_us(at_ns + 5_000_000) - wall.epoch_us(at_ns), 5_000);
    }
}
