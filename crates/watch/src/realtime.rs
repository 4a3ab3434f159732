//! The machine's realtime clock against its monotonic one: detects whether it was set.
//!
//! A tick log is stamped with realtime and a trial is timed with a monotonic clock, so setting the realtime clock (by
//! NTP, by hand, by a paused virtual machine) moves the log's seconds. Slewing, at most 0.5 ms per second, is not a
//! step. Units: ns.

/// Compares the two clocks again and again.
#[derive(Clone, Copy, Debug)]
pub struct Realtime {
    offset_ns: i64,
}

/// A smaller difference between two comparisons is slewing or the time that reading two clocks takes.
pub const STEP_NS_MIN: u64 = 50_000_000;
/// Two readings further apart than this were interrupted.
const READ_WITHIN_NS: u64 = 1_000_000;

impl Realtime {
    /// The clocks as they stand. `now_ns` is monotonic, `realtime_ns` counts from the epoch.
    pub fn compare(now_ns: impl Fn() -> u64, realtime_ns: impl Fn() -> u64) -> Self {
        let mut nearest = (u64::MAX, 0);
        for _ in 0..3 {
            let (before_ns, realtime_ns, after_ns) = (now_ns(), realtime_ns(), now_ns());
            let took_ns = after_ns.saturating_sub(before_ns);
            if took_ns < nearest.0 {
                nearest = (took_ns, realtime_ns as i64 - (before_ns + took_ns / 2) as i64);
            }
            if took_ns < READ_WITHIN_NS {
                break;
            }
        }
        Realtime { offset_ns: nearest.1 }
    }

    /// Realtime at the monotonic clock's 0, ns since the epoch.
    pub fn zero_ns(&self) -> u64 {
        self.offset_ns.max(0) as u64
    }

    /// How far realtime was set since `before`, forward positive; `None` when it was not.
    pub fn step_since(&self, before: &Realtime) -> Option<i64> {
        let step_ns = self.offset_ns.saturating_sub(before.offset_ns);
        (step_ns.unsigned_abs() > STEP_NS_MIN).then_some(step_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_clock_that_was_set_is_told_with_its_direction() {
        let begin = Realtime::compare(|| 5_000, || 1_700_000_000_000_005_000);
        assert_eq!(begin.zero_ns(), 1_700_000_000_000_000_000);
        let check = |realtime_ns: u64, expected: Option<i64>| {
            let now = Realtime::compare(|| 1_000_000_000, || realtime_ns);
            assert_eq!(now.step_since(&begin), expected);
        };
        check(1_700_000_001_000_000_000, None);
        check(1_700_000_001_049_000_000, None);
        check(1_700_000_004_000_000_000, Some(3_000_000_000));
        check(1_699_999_991_000_000_000, Some(-10_000_000_000));
    }

    #[test]
    fn a_comparison_that_was_interrupted_is_made_again() {
        let calls = Cell::new(0);
        // The second reading of the first attempt comes 80 ms late.
        let now_ns = || {
            calls.set(calls.get() + 1);
            [0, 80_000_000, 80_000_000, 80_000_200][calls.get() - 1]
        };
        let compared = Realtime::compare(now_ns, || 1_080_000_100);
        assert_eq!(compared.zero_ns(), 1_000_000_000);
    }
}
