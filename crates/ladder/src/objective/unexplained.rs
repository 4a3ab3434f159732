//! Whether an objective is missed by more than the machine's disturbances explain.
//!
//! A wait of length w delays what was due during it, and the event at its start: at n events per second, waits that sum
//! to W per second delay at most `W·n` of them, plus one per wait. Delays longer than d need waits longer than d, of
//! which there are at most `W/d`, and none if W in total is shorter. So each d is a separate test of the same values,
//! and one that cannot be explained is enough.

use measure::{Second, Trial};

use super::{Objective, Op};
use crate::disturbance::explained_by_second;
use crate::figures::{FigureValue, Of, Source, sample};

/// Classes of ticks end a whole millisecond from the period (`measure::TickClasses`).
const LATE_TICK_S: f64 = 0.001;
/// The smallest delay that is asked about, as a share of the bound …
const LEAST_DELAY_SHARE: f64 = 0.1;
/// … and how much longer each next one is.
const DELAY_STEP: f64 = 1.25;
/// Waits that no reading shows: below the limits from which on a second counts as disturbed, in two neighbours.
const UNSEEN_WAIT_S: f64 = 0.15;
/// Standard deviations of the count of messages that waits can hit by chance.
const CHANCE_SIGMAS: f64 = 3.0;

impl Objective {
    /// Whether the objective is not met even without what threads that had no core for `kept_away` of the time can
    /// explain. Only percentiles, maxima and shares of late ticks can be asked so; all others are `false`.
    pub fn is_missed_without(&self, trial: &Trial, kept_away: f64) -> bool {
        let (Op::Less | Op::AtMost) = self.op else { return false };
        match self.figure.source {
            Source::Quantile(of, q) => self.is_quantile_missed_without(trial, of, q, kept_away),
            Source::Max(of) => self.is_quantile_missed_without(trial, of, 1.0, kept_away),
            _ if self.figure.name.ends_with("late_share") => {
                let FigureValue::Value(late) = self.figure.read(trial) else { return false };
                let excused = self.excused_share(trial, kept_away);
                excused < 1.0 && !self.op.holds((late - excused) / (1.0 - excused), self.bound)
            }
            _ => false,
        }
    }

    /// More messages than the quantile leaves are beyond the bound by more than some d, besides those that waits longer
    /// than d can have delayed. Those are taken out of all messages too: a wait does not know which of them the server
    /// makes late anyway.
    fn is_quantile_missed_without(&self, trial: &Trial, of: Of, q: f64, kept_away: f64) -> bool {
        let Ok((values, never)) = sample(trial, of) else { return false };
        // The effect of a wait on a value that is not a time is unknown.
        if matches!(of, Of::Value(_)) {
            return false;
        }
        let seconds = trial.hold_seconds().count() as f64;
        let (all, waited_s) = ((values.count() + never) as f64, kept_away * seconds);
        let threads = threads(trial);
        let by_waits = {
            let mean = kept_away * all;
            mean + CHANCE_SIGMAS * mean.sqrt()
        };
        let buckets: Vec<(u64, u64)> = values.buckets().collect();
        let mut delay_s = LEAST_DELAY_SHARE * self.bound / 1e9;
        loop {
            let beyond_ns = self.bound + delay_s * 1e9;
            let above: u64 = buckets
                .iter()
                .rev()
                .take_while(|(ns, _)| *ns as f64 > beyond_ns)
                .map(|(_, count)| count)
                .sum();
            let waits = threads * ((waited_s + UNSEEN_WAIT_S) / delay_s).floor();
            // A message never sent or never answered has no time, so none that is too long for a wait.
            let (beyond, excused) = match waits < 1.0 {
                true => (above as f64, 0.0),
                false => ((above + never) as f64, by_waits + waits),
            };
            if beyond > excused && beyond - excused > (1.0 - q) * (all - excused) {
                return true;
            }
            if (above == 0 && (never == 0 || waits < 1.0)) || delay_s <= 0.0 {
                return false;
            }
            delay_s *= DELAY_STEP;
        }
    }

    /// The share of all ticks that disturbances can have made late: over the hold as a whole, or second by second where
    /// that is less. A second cannot have more late ticks excused than it has.
    fn excused_share(&self, trial: &Trial, kept_away: f64) -> f64 {
        let by_clients = self.figure.counts_workers();
        let ticks = |second: &Second| if by_clients { second.client_ticks } else { second.ticks };
        let all = match by_clients {
            true => trial.client_ticks,
            false => trial.ticks.as_ref().map(|ticks| ticks.counts).unwrap_or_default(),
        };
        let threads = threads(trial);
        let seconds = trial.hold_seconds().filter(|second| ticks(second).due > 0).count().max(1) as f64;
        let over_all = late_share(kept_away, all.due as f64 / seconds / threads);
        let by_second = explained_by_second(trial, by_clients);
        let excused = |second: &Second| {
            let (due, late) = (ticks(second).due, ticks(second).due.saturating_sub(ticks(second).on_time));
            let kept_away = by_second.get(&second.index).copied().unwrap_or(0.0);
            let share = late_share(kept_away, due.max(1) as f64 / threads);
            (late as f64).min(share * due as f64)
        };
        let excused: f64 = trial.hold_seconds().map(excused).sum();
        over_all.min(excused / all.due.max(1) as f64)
    }
}

/// What waits may lie on: as many threads as there are cores, and a wait holds up one.
fn threads(trial: &Trial) -> f64 {
    trial.worker.allowed_cores.unwrap_or(1.0).max(1.0)
}

/// The share of `per_s` ticks per second that waits of `kept_away` of the time make late, at most.
fn late_share(kept_away: f64, per_s: f64) -> f64 {
    kept_away * (1.0 + 1.0 / (per_s * LATE_TICK_S))
}

#[cfg(test)]
mod tests;
