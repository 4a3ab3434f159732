//! Whether a percentile stays within an upper bound, decided by how many of its samples exceed it.
//!
//! "p95 < 200 ms" says that at most a share of 5 % exceeds 200 ms. So a count decides, long before the percentile
//! itself may be stated: the objective is met when the upper end of the one-sided 95 % interval for that share is
//! within 5 %, and not met when the lower end exceeds it. The interval is exact for independent samples.
//! Late replies are not independent but come in runs: a queue or a pause delays everything that arrives meanwhile. So
//! once one was seen, four samples are counted as one. If none was seen, nothing is known of runs, and samples count
//! individually.
//! Not here: percentiles that may be stated; they decide by their value.
//! Source: Clopper & Pearson, Biometrika 26 (1934); effective samples: Kish, Survey Sampling (1965), section 8.2.

use measure::distribution::{EXCEEDANCES, samples_needed};
use statrs::function::beta::beta_reg;

/// A share that is exactly what the percentile leaves is taken for less, or for more, with this probability at most. It is the
/// level of every other interval here (`confidence`, duels).
const ERROR_MOST: f64 = 0.05;
/// Samples that count as one once a late one was seen.
const RUN: f64 = 4.0;
/// Fewer late samples than these are one or two runs, and no server fails for those.
const LATE_LEAST: f64 = 20.0;
/// How many times as many samples are looked at next, when asked how many decide.
const STEP: f64 = 1.25;

/// Samples without a late one that meet a bound on the quantile `q` in (0, 1): 59 for 0.95, 299 for 0.99.
pub(super) fn samples_to_meet(q: f64) -> u64 {
    (ERROR_MOST.ln() / q.ln()).ceil() as u64
}

/// How much of a distribution is beyond a bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beyond {
    /// messages whose time is beyond it
    pub timed: u64,
    /// messages without a time, which are beyond every bound: unanswered, lost, never sent
    pub never: u64,
    /// messages in all
    pub all: u64,
    /// the quantile that is to keep the bound, in (0, 1)
    pub q: f64,
    /// a sample does not come with many others by its nature, as the deliveries of one broadcast do
    pub counts_singly: bool,
}

impl Beyond {
    /// Messages beyond the bound, with and without a time.
    pub fn late(&self) -> u64 {
        self.timed + self.never
    }

    /// Of all messages, the percentile lets so large a share lie beyond.
    pub fn allowed(&self) -> f64 {
        1.0 - self.q
    }

    /// More than the percentile leaves.
    pub fn is_exceeded_by(&self, count: u64) -> bool {
        count as f64 > self.allowed() * self.all as f64
    }

    /// The same, and surely: as many as it takes to state a percentile, or more than chance and runs explain.
    pub fn is_proved_by(&self, count: u64) -> bool {
        self.is_exceeded_by(count)
            && (count as f64 >= EXCEEDANCES || self.is_surely_more(count as f64, self.all as f64))
    }

    /// As many samples, or as many of them late, as it takes to state a percentile.
    pub fn are_many(&self) -> bool {
        self.all >= samples_needed(self.q) || self.late() as f64 >= EXCEEDANCES
    }

    /// Certainly no more is beyond the bound than the percentile allows.
    pub fn is_surely_kept(&self) -> bool {
        self.is_surely_less(self.late() as f64, self.all as f64)
    }

    /// The total number of samples likely to decide, if the share beyond the bound stays as seen so far.
    pub fn samples_to_decide(&self) -> u64 {
        let stated = samples_needed(self.q);
        if !self.counts_singly {
            return stated;
        }
        let (late, all) = (self.late() as f64, self.all as f64);
        if late == 0.0 {
            return samples_to_meet(self.q);
        }
        let mut times = STEP;
        while all * times < stated as f64 {
            let (late, all) = (late * times, all * times);
            if self.is_surely_less(late, all) || self.is_surely_more(late, all) {
                return all.ceil() as u64;
            }
            times *= STEP;
        }
        stated
    }

    fn is_surely_less(&self, late: f64, all: f64) -> bool {
        let runs = if late > 0.0 { RUN } else { 1.0 };
        self.counts_singly && at_most(late / runs, all / runs, self.allowed()) <= ERROR_MOST
    }

    fn is_surely_more(&self, late: f64, all: f64) -> bool {
        self.counts_singly
            && late >= LATE_LEAST
            && at_least(late / RUN, all / RUN, self.allowed()) <= ERROR_MOST
    }
}

/// The chance of at most `count` of `all` with probability `share` each; between whole numbers by the beta distribution.
fn at_most(count: f64, all: f64, share: f64) -> f64 {
    if count >= all { 1.0 } else { beta_reg(all - count, count + 1.0, 1.0 - share) }
}

/// The chance of at least `count` of `all`, `count` > 0.
fn at_least(count: f64, all: f64, share: f64) -> f64 {
    beta_reg(count, all - count + 1.0, share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(late: u64, all: u64, q: f64) -> Beyond {
        Beyond { timed: late, never: 0, all, q, counts_singly: true }
    }

    #[test]
    fn bounds_are_those_of_the_binomial_distribution() {
        // 0.95^59 and, by sums of the distribution itself, the chances of 1 and of 3 of 20 with 0.1 each.
        for (got, exact) in [
            (at_most(0.0, 59.0, 0.05), 0.95f64.powi(59)),
            (at_most(1.0, 20.0, 0.1), 0.9f64.powi(20) + 20.0 * 0.1 * 0.9f64.powi(19)),
            (at_least(1.0, 20.0, 0.1), 1.0 - 0.9f64.powi(20)),
            (at_least(3.0, 20.0, 0.1), 0.323_073_194_810),
            (at_most(7.0, 7.0, 0.1), 1.0),
        ] {
            assert!((got - exact).abs() < 1e-9, "{got} {exact}");
        }
        assert_eq!([0.5, 0.9, 0.95, 0.99, 0.999].map(samples_to_meet), [5, 29, 59, 299, 2995]);
    }

    #[test]
    fn a_count_decides_where_chance_and_runs_do_not_explain_it() {
        // late, all, q, what is decided, how many are likely to
        for (late, all, q, decided) in [
            (10, 742, 0.95, Some(true)),
            (120, 742, 0.95, Some(false)),
            (37, 742, 0.95, None),
            (0, 58, 0.95, None),
            (0, 59, 0.95, Some(true)),
            (1, 59, 0.95, None),
            (0, 299, 0.99, Some(true)),
            (2, 299, 0.99, None),
            // One pause that delays a handful is no reason to fail.
            (8, 60, 0.99, None),
            (19, 60, 0.99, None),
            (20, 60, 0.99, Some(false)),
            (200, 200, 0.99, Some(false)),
            (0, 0, 0.95, None),
        ] {
            let seen = beyond(late, all, q);
            let found = match (seen.is_surely_kept(), seen.is_proved_by(late)) {
                (true, false) => Some(true),
                (false, true) => Some(false),
                (is_kept, _) => {
                    assert!(!is_kept, "both ways: {late} of {all}");
                    None
                }
            };
            assert_eq!(found, decided, "{late} of {all} at {q}");
            let bundled = Beyond { counts_singly: false, ..seen };
            assert!(
                !bundled.is_surely_kept() && (late >= 100 || !bundled.is_proved_by(late)),
                "{late} of {all}"
            );
        }
    }

    #[test]
    fn as_many_samples_as_are_said_decide_and_no_more_than_state_the_percentile() {
        for (late, all, q) in [(0, 20, 0.95), (1, 59, 0.95), (14, 742, 0.95), (3, 30, 0.99), (60, 742, 0.95)]
        {
            let needed = beyond(late, all, q).samples_to_decide();
            assert!(needed > all && needed <= samples_needed(q), "{late} of {all}: {needed}");
            if needed < samples_needed(q) {
                let then = (late * needed).div_ceil(all);
                let then = if late * 20 > all { then } else { late * needed / all };
                let seen = beyond(then, needed, q);
                assert!(
                    seen.is_surely_kept() || seen.is_proved_by(then),
                    "{late} of {all}: {then} of {needed}"
                );
            }
        }
        assert_eq!(
            beyond(37, 742, 0.95).samples_to_decide(),
            2_000,
            "at the bound only the percentile itself does"
        );
    }
}
