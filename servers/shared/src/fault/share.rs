//! A share of events as a fraction, and which events it selects.
//!
//! Exact: of the first n events, floor(n · share) are chosen, for every n. So 1 % is every 100th, and 40 % is the third
//! and the fifth of every five.

use std::num::NonZeroU64;

/// In (0, 1], as a reduced fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    numerator: u64,
    denominator: u64,
}

impl Share {
    /// None unless 0 < numerator ≤ denominator.
    pub(super) fn new(numerator: u64, denominator: u64) -> Option<Share> {
        if numerator == 0 || numerator > denominator {
            return None;
        }
        let divisor = greatest_common_divisor(numerator, denominator);
        Some(Share { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// Every n-th.
    pub fn one_in(n: NonZeroU64) -> Share {
        Share { numerator: 1, denominator: n.get() }
    }

    /// How many of the first `count` events are chosen.
    fn of_first(self, count: u64) -> u128 {
        u128::from(count) * u128::from(self.numerator) / u128::from(self.denominator)
    }

    /// Whether the n-th event is chosen; the first is number 1.
    pub fn falls_on(self, n: u64) -> bool {
        self.of_first(n) > self.of_first(n.saturating_sub(1))
    }

    /// By how much the n-th tick of a loop is run late, when this share of them is: 0 for all others.
    ///
    /// Chosen ticks that follow each other are late by turns of 6 and 12 ms. With one lateness for all of them the
    /// intervals between them would be on time.
    pub fn lateness_ns(self, n: u64) -> u64 {
        if !self.falls_on(n) {
            return 0;
        }
        let neighbours = 2 * u128::from(self.numerator) > u128::from(self.denominator);
        if neighbours && self.of_first(n).is_multiple_of(2) { 2 * LATENESS_NS } else { LATENESS_NS }
    }
}

/// More than the 5 ms that are promised, by a reserve for rounding to whole milliseconds.
const LATENESS_NS: u64 = 6_000_000;

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Counts events and chooses a share of them. Without a share it chooses none, and counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selector {
    share: Option<Share>,
    /// Below the share's denominator.
    level: u64,
}

impl Selector {
    pub(super) fn set(&mut self, share: Option<Share>) {
        if self.share != share {
            *self = Selector { share, level: 0 };
        }
    }

    /// Whether it ever chooses any, as things are.
    pub fn is_planted(&self) -> bool {
        self.share.is_some()
    }

    /// Whether none of the next `events` is chosen. Counts nothing.
    pub(super) fn spares(&self, events: u64) -> bool {
        self.share.is_none_or(|share| self.level_after(share, events) < u128::from(share.denominator))
    }

    /// Counts `events`, none of which is chosen.
    pub(super) fn pass(&mut self, events: u64) {
        if let Some(share) = self.share {
            debug_assert!(self.spares(events));
            self.level = self.level_after(share, events) as u64;
        }
    }

    /// Counts one event; true when it is chosen.
    pub fn selects_next(&mut self) -> bool {
        let Some(share) = self.share else { return false };
        let level = self.level_after(share, 1);
        let chosen = level >= u128::from(share.denominator);
        self.level = (level - if chosen { u128::from(share.denominator) } else { 0 }) as u64;
        chosen
    }

    fn level_after(&self, share: Share, events: u64) -> u128 {
        u128::from(self.level) + u128::from(events) * u128::from(share.numerator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(numerator: u64, denominator: u64) -> Share {
        Share::new(numerator, denominator).unwrap()
    }

    #[test]
    fn a_share_is_above_nothing_and_at_most_everything_and_reduced() {
        assert_eq!(Share::new(0, 7), None);
        assert_eq!(Share::new(8, 7), None);
        assert_eq!(share(40, 100), share(2, 5));
    }

    #[test]
    fn late_ticks_that_follow_each_other_are_not_late_by_the_same() {
        let lateness_ms =
            |share: Share| (1..=6).map(|n| share.lateness_ns(n) / 1_000_000).collect::<Vec<_>>();
        assert_eq!(lateness_ms(share(2, 5)), [0, 0, 6, 0, 6, 0]);
        assert_eq!(lateness_ms(share(1, 1)), [6, 12, 6, 12, 6, 12]);
    }

    proptest! {
        #[test]
        fn a_selector_chooses_exactly_the_share_however_events_are_counted(
            numerator in 1u64..50, more in 0u64..200, runs in prop::collection::vec(0u64..30, 1..60),
        ) {
            let share = share(numerator, numerator + more);
            let mut selector = Selector::default();
            selector.set(Some(share));
            let mut n = 0;
            for run in runs {
                if selector.spares(run) {
                    prop_assert!((n + 1..=n + run).all(|event| !share.falls_on(event)));
                    selector.pass(run);
                    n += run;
                } else {
                    prop_assert!((n + 1..=n + run).any(|event| share.falls_on(event)));
                }
                n += 1;
                prop_assert_eq!(selector.selects_next(), share.falls_on(n));
            }
        }
    }
}
