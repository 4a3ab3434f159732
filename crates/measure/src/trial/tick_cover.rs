//! Whether a server's ticks cover the hold to its end: silence counts as missed ticks.
//!
//! A server that hangs writes no line about it. If its last line ends well before the hold does, the ticks due from
//! there on were missed, as many as were due in the time before. A line that spans the end of the hold and is longer
//! than usual (the server stalled and reported later) contributes its part to the hold.
//! Where the source itself failed (`kind::TICKS_LOST`), silence says nothing about the server: with a part of the hold missing its
//! ticks are not known at all.
//! Units: ns since the start of the trial.

use super::Trial;
use super::kind;
use super::parts::{Logged, Silence, TrialTicks};
use crate::entry::TickSecond;
use crate::ticks::TickCounts;

/// An entry may be this much longer than usual before the time after the last one counts as silence: logs are written
/// at least once per second, and a busy machine writes late.
const LATER_THAN_USUAL: f64 = 1.25;
/// … and this much later at least.
const SLACK_NS: u64 = 250_000_000;

/// If a log reports nothing for two of its entries and this long, it is not late: its writer is stalled.
const LISTENED_NS: u64 = 1_500_000_000;

/// A source that failed for more of the hold than this share, and than an entry may be late, does not tell its ticks.
const LOST_SHARE_MOST: f64 = 0.1;

/// Which part of a hold a server's entries cover.
#[derive(Clone, Debug, Default)]
pub(super) struct TickCover {
    source: String,
    /// begin, end and ticks due of each entry
    told: Vec<(u64, u64, u64)>,
    /// entries longer than any usual one are kept whole: one of them may lie across the end
    longest: Vec<TickSecond>,
}

impl TickCover {
    /// Takes an entry, in any order.
    pub fn take(&mut self, told: &TickSecond) {
        if self.source.is_empty() {
            self.source.clone_from(&told.source);
        }
        self.told.push((told.from_ns, told.to_ns, told.counts.due));
        if told.to_ns - told.from_ns.min(told.to_ns) > 1_000_000_000 + SLACK_NS {
            self.longest.push(told.clone());
        }
    }

    /// Which part of the hold whole entries should cover, and what they report; `None` if none is in it.
    fn logged(&self, from_ns: u64, to_ns: u64) -> Option<Logged> {
        let inside =
            || self.told.iter().filter(|(from, to, _)| (from_ns..*to).contains(from) && *to <= to_ns);
        let (first_ns, last_ns) = (inside().map(|told| told.0).min()?, inside().map(|told| told.1).max()?);
        let reaches_in = self.told.iter().filter(|(from, to, _)| *from < from_ns && *to > from_ns);
        // If several loops write one log, the first whole entry may begin before the last earlier one ends.
        let begin_ns = reaches_in.map(|told| told.1.min(first_ns)).max().unwrap_or(from_ns);
        let due = inside().fold(0, |sum: u64, (_, _, due)| sum.saturating_add(*due));
        Some(Logged { from_ns: begin_ns, to_ns: last_ns, due })
    }

    /// Adds the missed ticks of an uncovered end to the server's own.
    pub fn finish(&self, trial: &mut Trial) {
        if let Some(hold) = &trial.hold {
            trial.logged = self.logged(hold.from_ns, hold.to_ns);
            let overlaps = |(from, to, _): &(u64, u64, u64)| *from < hold.to_ns && *to > hold.from_ns;
            trial.is_in_log = self.told.iter().any(overlaps);
        }
        let (told, has_failed) = (trial.ticks.take(), trial.event(kind::TICKS_LOST).is_some());
        trial.ticks = self.to_the_end(trial, told, has_failed);
        if trial.ticks.is_none() {
            trial.logged = None;
        }
    }

    /// These ticks with the missed ones of an uncovered end. A hold that was cut off ends with what is known of it. `None` where
    /// the source itself failed for too much of the hold.
    pub fn to_the_end(
        &self,
        trial: &Trial,
        told: Option<TrialTicks>,
        has_failed: bool,
    ) -> Option<TrialTicks> {
        let Some(hold) = trial.hold.as_ref().filter(|_| trial.complete) else { return told };
        let (from_ns, to_ns) = (hold.from_ns, hold.to_ns);
        if self.told.is_empty() || to_ns <= from_ns {
            return told;
        }
        let mut lengths: Vec<u64> = self.told.iter().map(|(from, to, _)| to.saturating_sub(*from)).collect();
        lengths.sort_unstable();
        // Foreign entries may have any length; longer ones than a hold change nothing.
        let usual_ns = lengths[lengths.len() / 2].min(u64::MAX / 4);
        let allowed_ns = (LATER_THAN_USUAL * usual_ns as f64) as u64 + SLACK_NS;
        if has_failed
            && self.uncovered_ns(from_ns, to_ns)
                > allowed_ns.max((LOST_SHARE_MOST * (to_ns - from_ns) as f64) as u64)
        {
            return None;
        }
        let until_ns = self.told.iter().map(|(_, to, _)| *to).filter(|to| *to <= to_ns).max().unwrap_or(0);
        let silent_from_ns = until_ns.max(from_ns);
        let is_brief = to_ns - silent_from_ns <= allowed_ns;
        if is_brief {
            let last_ns = self.told.iter().map(|(_, to, _)| *to).max().unwrap_or(0);
            let heard_until_ns = trial.event(kind::END).map_or(0, |end| end.at_ns);
            if last_ns >= to_ns || heard_until_ns < last_ns.saturating_add(2 * usual_ns + LISTENED_NS) {
                return told;
            }
        }
        let across = self.longest.iter().find(|long| long.from_ns < to_ns && long.to_ns > to_ns);
        let missed = match across {
            Some(long) => {
                let part = (to_ns - long.from_ns.max(from_ns)) as f64 / (long.to_ns - long.from_ns) as f64;
                (long.counts.missed as f64 * part).round() as u64
            }
            None => {
                (self.due_per_ns(trial, from_ns, until_ns) * (to_ns - silent_from_ns) as f64).round() as u64
            }
        };
        if missed == 0 {
            return told;
        }
        let mut ticks =
            told.unwrap_or_else(|| TrialTicks { source: self.source.clone(), ..TrialTicks::default() });
        if !is_brief {
            ticks.counts.add(&TickCounts { due: missed, missed, ..TickCounts::default() });
        }
        let is_told = across.is_some();
        ticks.silence = Some(Silence { from_ns: silent_from_ns, missed, is_told, is_brief });
        Some(ticks)
    }

    /// How much of the hold no entry covers. Entries of a source that can fail do not overlap.
    fn uncovered_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let part = |(from, to, _): &(u64, u64, u64)| (*to).min(to_ns).saturating_sub((*from).max(from_ns));
        (to_ns - from_ns).saturating_sub(self.told.iter().map(part).fold(0, u64::saturating_add))
    }

    /// Ticks due per ns in the covered part of the hold; where none of it is covered, as many as the load owes.
    fn due_per_ns(&self, trial: &Trial, from_ns: u64, until_ns: u64) -> f64 {
        let covered = self.told.iter().filter(|(_, to, _)| *to > from_ns && *to <= until_ns);
        let (ns, due) = covered.fold((0u64, 0u64), |(ns, sum), (from, to, due)| {
            (ns.saturating_add(to.saturating_sub(*from)), sum.saturating_add(*due))
        });
        if ns > 0 && due > 0 {
            return due as f64 / ns as f64;
        }
        let loops = if trial.head.counts_games() { trial.head.load } else { 1.0 };
        if trial.head.tick_period_ns > 0 { loops / trial.head.tick_period_ns as f64 } else { 0.0 }
    }
}
