//! Ticks that a server skipped without counting them: after a pause its snapshot numbers continue as if there had been
//! none.
//!
//! The client's own clock says how many ticks an interval has. A stalled network, a client that reads late and a server
//! that catches up on ticks after a pause also delay snapshots, but then everything delayed arrives at once, and soon
//! nothing is missing. What is still missing after that was never run.
//! A server that merely ticks a little too slowly is excluded: only an interval that is too long by a period or more
//! starts a pause.
//! Pure. Units: ns.

/// Delayed snapshots have arrived once a pause ended this long ago, and `CATCH_UP_TICKS` ago.
const CATCH_UP_NS: u64 = 100_000_000;
/// The same in ticks. A further gap within that time starts the wait again, for `GAPS_NS` at most.
const CATCH_UP_TICKS: u64 = 4;
/// A server whose gaps never end would otherwise never be found out.
const GAPS_NS: u64 = 10_000_000_000;

/// A pause of one game's snapshots, as long as it is not known whether its ticks were left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pause {
    /// when the snapshot came that ended its first gap; `None`: there is none
    began_ns: Option<u64>,
    /// … and its last
    ended_ns: u64,
    /// how much later the snapshots since come than their numbers say
    behind_ns: i64,
}

impl Pause {
    /// A snapshot came `interval_ns` after the last one, `ticks` later by its number. Ticks that are now known to be left out.
    pub fn see(&mut self, at_ns: u64, interval_ns: u64, ticks: u64, period_ns: u64) -> u64 {
        let ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let late_ns = ns(interval_ns).saturating_sub(ns(ticks.saturating_mul(period_ns)));
        let is_gap = late_ns >= ns(period_ns);
        let began_ns = match self.began_ns {
            None if !is_gap => return 0,
            began_ns => began_ns.unwrap_or(at_ns),
        };
        self.began_ns = Some(began_ns);
        if is_gap && at_ns.saturating_sub(began_ns) < GAPS_NS {
            self.ended_ns = at_ns;
        }
        self.behind_ns = self.behind_ns.saturating_add(late_ns);
        if self.behind_ns < ns(period_ns) {
            *self = Pause::default();
            return 0;
        }
        if at_ns.saturating_sub(self.ended_ns) < CATCH_UP_NS.max(CATCH_UP_TICKS.saturating_mul(period_ns)) {
            return 0;
        }
        let left_out = self.behind_ns.unsigned_abs() / period_ns.max(1);
        *self = Pause::default();
        left_out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PERIOD_NS: u64 = 16_666_667;

    /// Ticks found to be left out of snapshots that come at these times with these numbers.
    fn left_out(snapshots: impl IntoIterator<Item = (u64, u64)>) -> u64 {
        let (mut pause, mut last, mut sum) = (Pause::default(), None, 0);
        for (at_ns, number) in snapshots {
            if let Some((last_ns, last_number)) = last.replace((at_ns, number)) {
                sum += pause.see(at_ns, at_ns - last_ns, number - last_number, PERIOD_NS);
            }
        }
        sum
    }

    /// When each of 600 ticks is run by a server that stalls from the 100th for `pause` ticks.
    fn ticks(pause: u64, run: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        (0..600)
            .map(|number| {
                (PERIOD_NS * if number < 100 { number } else { run(number).max(100 + pause) }, number)
            })
            .collect()
    }

    #[test]
    fn ticks_that_a_pause_left_out_are_found_and_those_that_are_run_afterwards_are_not_missing() {
        assert_eq!(left_out(ticks(0, |number| number)), 0, "there is no pause");
        assert_eq!(
            left_out(ticks(18, |number| number + 18)),
            18,
            "the numbers go on as if there had been none"
        );
        assert_eq!(left_out(ticks(600, |number| number + 600)), 600, "ten seconds");
        assert_eq!(left_out(ticks(18, |number| number)), 0, "all that were due are run at once");
        let skips = ticks(0, |number| number).into_iter().filter(|(_, number)| !(100..118).contains(number));
        assert_eq!(left_out(skips), 0, "the numbers say which are missing");
        let every_second = (0..20).flat_map(|second| {
            (0..30).map(move |tick| (PERIOD_NS * (60 * second + tick), 30 * second + tick))
        });
        assert_eq!(left_out(every_second), 19 * 30, "half of each second");
        let half = (0..2_000).map(|tick| (PERIOD_NS * (2 * tick - tick % 2), tick));
        assert!(left_out(half) > 1_000, "every other pair of ticks");
    }

    #[test]
    fn a_server_that_ticks_a_little_too_slowly_or_at_numbers_beyond_all_measure_leaves_nothing_out() {
        assert_eq!(left_out((0..600).map(|number| (number * PERIOD_NS * 19 / 10, number))), 0);
        let mut pause = Pause::default();
        assert_eq!(pause.see(u64::MAX, u64::MAX, u64::MAX, u64::MAX), 0);
        assert_eq!(pause.see(u64::MAX, 0, 0, 0), 0);
    }

    proptest! {
        /// An honest server over a network that stalls for up to two seconds at a time, and a client that reads late by
        /// up to a period: snapshots arrive in order, none before it was sent, and all delayed ones arrive at once.
        #[test]
        fn a_stalled_network_and_a_late_client_are_no_pause_of_the_server(
            stalls in prop::collection::vec((0u64..10_000_000_000, 0u64..2_000_000_000), 0..12),
            lags in prop::collection::vec(0u64..PERIOD_NS / 2, 600),
        ) {
            let mut last_ns = 0;
            let came = (0..600u64).map(|number| {
                let sent_ns = number * PERIOD_NS;
                let mut at_ns = sent_ns + lags[number as usize];
                for (from_ns, length_ns) in &stalls {
                    if (*from_ns..from_ns + length_ns).contains(&sent_ns) {
                        at_ns = at_ns.max(from_ns + length_ns);
                    }
                }
                last_ns = at_ns.max(last_ns);
                (last_ns, number)
            });
            prop_assert_eq!(left_out(came.collect::<Vec<_>>()), 0);
        }

        /// However the pauses lie: no more is found than was left out, and nearly all of it.
        #[test]
        fn what_is_found_is_what_was_left_out(pauses in prop::collection::vec((12u64..60, 3u64..100), 1..12)) {
            let (mut at, mut number, mut all) = (0, 0, 0);
            let mut came = Vec::new();
            for (runs, pause) in &pauses {
                came.extend((0..*runs).map(|tick| (PERIOD_NS * (at + tick), number + tick)));
                (at, number, all) = (at + runs + pause, number + runs, all + pause);
            }
            came.extend((0..12).map(|tick| (PERIOD_NS * (at + tick), number + tick)));
            prop_assert_eq!(left_out(came), all);
        }
    }
}
