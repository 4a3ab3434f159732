//! Tick classes: which intervals between two ticks of a server's loop are on time.
//!
//! The published classes at 60 Hz are 15, 16, 17 ms on time, 18 and more over, 14 and less under, on whole-ms clock
//! readings subtracted. They scale with the rate: floor(period in ms) ± 1. Missed ticks are counted separately, and no
//! tick is ever removed, so `due = on_time + over + under + missed`.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::Distribution;

/// An interval that is off by at most this, ms, beyond those on time is *near*.
const NEAR_MS: u64 = 2;

/// Where the boundaries of *on time* lie for one tick rate. Units: whole ms, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickClasses {
    /// shortest interval on time, ms
    pub from_ms: u64,
    /// longest interval on time, ms
    pub to_ms: u64,
    /// ns between two ticks
    pub period_ns: u64,
}

impl TickClasses {
    /// Classes for `rate_hz` ticks per second; `rate_hz` > 0.
    pub fn for_rate(rate_hz: f64) -> Self {
        let period_ns = (1e9 / rate_hz).round() as u64;
        // For an absurd rate the period does not fit; then it saturates.
        let whole_ms = (1_000.0 / rate_hz + 1e-9).floor() as u64;
        TickClasses { from_ms: whole_ms.saturating_sub(1), to_ms: whole_ms.saturating_add(1), period_ns }
    }

    /// Counts `count` intervals of `interval_ms` whole ms. They are due ticks too.
    pub fn count(&self, counts: &mut TickCounts, interval_ms: u64, count: u64) {
        let class = if interval_ms < self.from_ms {
            &mut counts.under
        } else if interval_ms > self.to_ms {
            &mut counts.over
        } else {
            &mut counts.on_time
        };
        *class = class.saturating_add(count);
        counts.due = counts.due.saturating_add(count);
    }

    /// The late ones among `intervals`, by how far off they are.
    pub fn late_intervals(&self, intervals: &Distribution) -> LateIntervals {
        let mut late = LateIntervals::default();
        for (ns, count) in intervals.buckets() {
            let ms = ns / 1_000_000;
            if (self.from_ms..=self.to_ms).contains(&ms) {
                continue;
            }
            if ns < self.period_ns / 4 {
                late.caught_up += count;
            } else if (self.from_ms.saturating_sub(NEAR_MS)..=self.to_ms.saturating_add(NEAR_MS))
                .contains(&ms)
            {
                late.near += count;
            } else {
                late.far += count;
            }
        }
        late
    }
}

/// Intervals between ticks that are not on time, by how far off they are. A missed tick has no interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct LateIntervals {
    /// at most 2 ms shorter or longer than those on time
    pub near: u64,
    /// shorter than a quarter of the period: a tick that catches up
    pub caught_up: u64,
    /// all others
    pub far: u64,
}

/// Ticks by class. `due = on_time + over + under + missed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TickCounts {
    /// ticks that the schedule asked for
    pub due: u64,
    /// within the classes' bounds
    pub on_time: u64,
    /// longer
    pub over: u64,
    /// shorter
    pub under: u64,
    /// never run
    pub missed: u64,
}

impl TickCounts {
    /// over + under + missed
    pub fn late(&self) -> u128 {
        u128::from(self.over) + u128::from(self.under) + u128::from(self.missed)
    }

    /// (over + under + missed) / due, `None` when no tick was due.
    pub fn late_share(&self) -> Option<f64> {
        (self.due > 0).then(|| self.late() as f64 / self.due as f64)
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &TickCounts) {
        // Counts are the server's claims: absurd values saturate and never wrap.
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.due, other.due);
        add(&mut self.on_time, other.on_time);
        add(&mut self.over, other.over);
        add(&mut self.under, other.under);
        add(&mut self.missed, other.missed);
    }

    /// True when every due tick is in exactly one class.
    pub fn balances(&self) -> bool {
        let classes = [self.on_time, self.over, self.under, self.missed];
        classes.into_iter().try_fold(0u64, u64::checked_add) == Some(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_scale_with_the_tick_rate() {
        let check = |rate_hz, from_ms, to_ms| {
            let classes = TickClasses::for_rate(rate_hz);
            assert_eq!((classes.from_ms, classes.to_ms), (from_ms, to_ms), "{rate_hz} Hz");
        };
        check(60.0, 15, 17);
        check(30.0, 32, 34);
        check(20.0, 49, 51);
        check(128.0, 6, 8);
        check(2_000.0, 0, 1);
        check(1e-300, u64::MAX - 1, u64::MAX);
        check(f64::MIN_POSITIVE, u64::MAX - 1, u64::MAX);
        check(f64::MAX, 0, 1);
    }

    #[test]
    fn the_published_boundaries_hold_at_60_hz() {
        let mut counts = TickCounts::default();
        for ms in [0, 14, 15, 16, 17, 18, 90] {
            TickClasses::for_rate(60.0).count(&mut counts, ms, 1);
        }
        assert_eq!((counts.under, counts.on_time, counts.over, counts.due), (2, 3, 2, 7));
        assert!(counts.balances());
    }

    #[test]
    fn late_intervals_are_near_caught_up_or_far() {
        let mut intervals = Distribution::new();
        // As a stall of 100 ms in a loop that catches up, beside timers of whole ms.
        for (ms, count) in [(16, 50), (18, 7), (13, 2), (100, 1), (0, 5), (4, 1), (12, 1)] {
            intervals.record_many(ms * 1_000_000, count);
        }
        let late = TickClasses::for_rate(60.0).late_intervals(&intervals);
        assert_eq!(late, LateIntervals { near: 9, caught_up: 6, far: 2 });
        assert_eq!(
            TickClasses::for_rate(60.0).late_intervals(&Distribution::new()),
            LateIntervals::default()
        );
    }

    #[test]
    fn counts_beyond_all_measure_do_not_wrap() {
        let huge = TickCounts { due: u64::MAX, on_time: 0, over: u64::MAX, under: u64::MAX, missed: 1 };
        let mut sum = huge;
        sum.add(&huge);
        assert_eq!((sum.due, sum.over, sum.missed), (u64::MAX, u64::MAX, 2));
        assert!(sum.late_share() > Some(1.0) && !sum.balances());
        let mut counts = huge;
        TickClasses::for_rate(60.0).count(&mut counts, 90, u64::MAX);
        assert_eq!((counts.due, counts.over), (u64::MAX, u64::MAX));
    }

    #[test]
    fn missed_ticks_are_late() {
        let counts = TickCounts { due: 10, on_time: 5, missed: 5, ..TickCounts::default() };
        assert_eq!(counts.late_share(), Some(0.5));
        assert_eq!(TickCounts::default().late_share(), None);
    }
}
