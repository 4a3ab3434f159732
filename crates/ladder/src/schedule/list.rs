//! The rungs of a list, held once or several times each.

use std::collections::BTreeMap;

use measure::{LoadUnit, Purpose};
use serde::{Deserialize, Serialize};

use super::{Judged, LONGER_MOST, Next, NextTrial, Stop};
use crate::capacity::{Capacity, capacity};
use crate::judge::{AGENT_LOST, Verdict};

/// An open end goes up to this load at most: a server that refuses nothing until then will hardly begin to.
const OPEN_END_MOST: f64 = 1_000.0;
/// 1.1 times 100 is 110, and not 111.
const ROUNDING: f64 = 1e-6;
/// After an overload this share of the largest load that held continues. Under all of it a server has no capacity left
/// to work off a queue, and would never recover; under a small share it would recover whatever it queued.
const RECOVERY_SHARE: f64 = 0.8;
/// `UntilSure` ends when the capacity is this certain.
pub(crate) const SURE: f64 = 0.95;
/// … or when a bounding load was held this often: what is not clear by then is at the knee.
const HOLDS_MOST: usize = 12;
/// Where only one bound exists, no confidence can be stated; so many holds of it are enough.
const HOLDS_OF_A_LONE_BOUND: usize = 5;

/// A rung that lost an agent is held again so many times at the most.
const REPEATED_MOST: usize = 2;

/// How often each rung is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeats {
    /// each so many times
    Times(u32),
    /// each once, then the loads on both sides of the capacity until it is certain to 95 %
    UntilSure,
}

impl Default for Repeats {
    fn default() -> Self {
        Repeats::Times(1)
    }
}

/// In each cell every rung once in ascending order, optionally again in descending order, then again in random order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListSchedule {
    /// loads of the rungs, in any order, no two alike
    pub rungs: Vec<f64>,
    /// axis and value of each cell, in their order; empty: there is but one, without a name
    #[serde(default)]
    pub cells: Vec<BTreeMap<String, String>>,
    /// beyond the last rung loads go on by one until a request fails
    #[serde(default)]
    pub is_open_ended: bool,
    /// after the highest rung the others once more, from the highest down
    #[serde(default)]
    pub from_above: bool,
    /// how often
    #[serde(default)]
    pub repeats: Repeats,
    /// of the random order of repeats
    #[serde(default)]
    pub seed: u64,
    /// multiples of the largest load that held, each > 1, ascending; held once each after everything else, where a load failed
    #[serde(default)]
    pub overload: Vec<f64>,
    /// after each of these a part of the load goes on until the server has recovered
    #[serde(default)]
    pub recovers: bool,
    /// loads that are held longer than the others, ns, because a shorter hold could not decide the objectives
    #[serde(default)]
    pub lengthened: Vec<(f64, u64)>,
    /// how long the others are held, ns, where a trial with too few samples makes later ones longer; 0: it does not
    #[serde(default)]
    pub learns_from_ns: u64,
    /// how many samples a load gives is not known before, so a trial of a lower load makes later ones longer too
    #[serde(default)]
    pub learns_from_lower: bool,
}

/// The trials of one cell.
struct OfCell<'a> {
    names: &'a BTreeMap<String, String>,
    done: &'a [Judged],
    /// only these loads count; `None`: all. The loads of an overload must not move the capacity that they are multiples of
    listed: Option<&'a [f64]>,
}

impl<'a> OfCell<'a> {
    fn trials(&self) -> impl Iterator<Item = &'a Judged> {
        let (names, listed) = (self.names, self.listed);
        let is_listed = move |load| listed.is_none_or(|listed| listed.contains(&load));
        self.done.iter().filter(move |trial| {
            trial.purpose == Purpose::Rung && trial.cell == *names && is_listed(trial.load)
        })
    }

    /// How often a load was held. Where an agent was lost it is held again with those that are left, a few times.
    fn held(&self, load: f64) -> usize {
        let of_load = || self.trials().filter(|trial| trial.load == load);
        let lost = of_load().filter(|trial| trial.signal.as_deref() == Some(AGENT_LOST)).count();
        of_load().count() - lost.min(REPEATED_MOST)
    }

    fn capacity(&self) -> Capacity {
        let trials: Vec<Judged> = self.trials().cloned().collect();
        // The unit is not used.
        capacity(LoadUnit::default(), &trials, None)
    }
}

/// `factor` times a load, rounded up to a whole unit.
fn multiple(load: f64, factor: f64) -> f64 {
    (load * factor - ROUNDING).ceil()
}

/// Of the multiples that may be held after these rungs the highest: the factor, the rung and the load. It is one of the
/// highest rung but one, because the highest must have failed.
pub fn highest_overload(rungs: &[f64], factors: &[f64]) -> Option<(f64, f64, f64)> {
    let factor = factors.iter().copied().max_by(f64::total_cmp)?;
    let highest = rungs.iter().copied().max_by(f64::total_cmp)?;
    let below = rungs.iter().copied().filter(|load| *load < highest).max_by(f64::total_cmp)?;
    Some((factor, below, multiple(below, factor)))
}

impl ListSchedule {
    /// The next trial, given all that were held.
    ///
    /// A rung that could not be judged is not held again for that: whatever spoiled it would do so again, and its user can
    /// see it. Loads go up first, so what stays behind in the server from a high load cannot spoil a low one, and a server
    /// that a high load kills has shown what it holds. Cells come one after the other, because the next may want another
    /// server.
    pub(super) fn next(&self, done: &[Judged]) -> Next {
        // A calibration's null server is another process; its exit says nothing about the subject.
        if done.iter().any(|trial| trial.purpose == Purpose::Rung && trial.subject_exited) {
            return Next::Done(Stop::SubjectExited);
        }
        let nameless = BTreeMap::new();
        for cell in 0..self.cells.len().max(1) {
            let names = self.cells.get(cell).unwrap_or(&nameless);
            let listed = (!self.overload.is_empty()).then_some(self.rungs.as_slice());
            let (among_listed, among_all) =
                (OfCell { names, done, listed }, OfCell { names, done, listed: None });
            let load = self.load_in(&among_listed).map(|load| (load, None));
            if let Some((load, recovery_load)) = load.or_else(|| self.overload_in(&among_listed, &among_all))
            {
                let hold_ns = self.hold_ns(load, &among_all);
                let (seq, cell) = (done.len() as u32, (cell < self.cells.len()).then_some(cell));
                let purpose = Purpose::Rung;
                return Next::Trial(NextTrial { seq, purpose, load, cell, hold_ns, recovery_load });
            }
        }
        Next::Done(Stop::Complete)
    }

    /// How long to hold a load, where that is longer than the plan says.
    ///
    /// A trial that had too few samples to be decided would have too few again. Where it is not known before how many a load
    /// gives, the last trial of a load that is no higher is taken for it: more clients are hardly answered less often.
    fn hold_ns(&self, load: f64, cell: &OfCell<'_>) -> Option<u64> {
        let planned = self.lengthened.iter().find(|one| one.0 == load).map(|one| one.1);
        let most_ns = self.learns_from_ns.saturating_mul(LONGER_MOST);
        let is_like = |trial: &&Judged| trial.load == load || (self.learns_from_lower && trial.load < load);
        let last = cell.trials().filter(is_like).last().filter(|_| most_ns > 0);
        planned.max(last.and_then(|last| last.should_have_held_ns(most_ns)))
    }

    /// The load that a cell still wants.
    fn load_in(&self, cell: &OfCell<'_>) -> Option<f64> {
        let mut rungs = self.rungs.clone();
        rungs.sort_by(f64::total_cmp);
        if let Some(load) = rungs.iter().find(|load| cell.held(**load) == 0) {
            return Some(*load);
        }
        if let Some(load) = self.beyond(rungs.last(), cell) {
            return Some(load);
        }
        // Loads added by an open end are repeated too.
        for trial in cell.trials() {
            if !rungs.contains(&trial.load) {
                rungs.push(trial.load);
            }
        }
        if let Some(load) = self.downwards(&rungs, cell) {
            return Some(load);
        }
        match self.repeats {
            Repeats::Times(times) => self.repeated(rungs, times, cell),
            Repeats::UntilSure => self.until_sure(cell),
        }
    }

    /// The next multiple of the capacity that was not held yet, and the load to go on with after it; `None` where no load failed,
    /// since nothing is known to lie beyond the capacity then.
    fn overload_in(&self, among_listed: &OfCell<'_>, among_all: &OfCell<'_>) -> Option<(f64, Option<f64>)> {
        if self.overload.is_empty() {
            return None;
        }
        let found = among_listed.capacity();
        found.upper_bound?;
        let lower = found.lower_bound?;
        let loads = self.overload.iter().map(|factor| multiple(lower, *factor));
        let load = loads.into_iter().find(|load| among_all.held(*load) == 0)?;
        let recovery_load = (lower * RECOVERY_SHARE + ROUNDING).floor().max(1.0);
        Some((load, self.recovers.then_some(recovery_load)))
    }

    /// The highest load below the top that was held on the way up only.
    ///
    /// The top is the load that the others come after, so it is not held again.
    fn downwards(&self, rungs: &[f64], cell: &OfCell<'_>) -> Option<f64> {
        let top = rungs.iter().copied().max_by(f64::total_cmp).filter(|_| self.from_above)?;
        let left = rungs.iter().copied().filter(|load| *load < top && cell.held(*load) == 1);
        left.max_by(f64::total_cmp)
    }

    /// All loads round by round, each round in a different order: changes of the machine then affect all loads alike.
    fn repeated(&self, mut rungs: Vec<f64>, times: u32, cell: &OfCell<'_>) -> Option<f64> {
        let round = rungs.iter().map(|load| cell.held(*load)).min()?;
        if round >= times as usize {
            return None;
        }
        fastrand::Rng::with_seed(self.seed ^ round as u64).shuffle(&mut rungs);
        rungs.into_iter().find(|load| cell.held(*load) == round)
    }

    fn until_sure(&self, cell: &OfCell<'_>) -> Option<f64> {
        let found = cell.capacity();
        if found.confidence.is_some_and(|confidence| confidence >= SURE) {
            return None;
        }
        let bounds = [found.lower_bound, found.upper_bound];
        let most = if bounds.contains(&None) { HOLDS_OF_A_LONE_BOUND } else { HOLDS_MOST };
        let mut loads: Vec<f64> =
            bounds.into_iter().flatten().filter(|load| cell.held(*load) < most).collect();
        fastrand::Rng::with_seed(self.seed ^ cell.trials().count() as u64).shuffle(&mut loads);
        loads.into_iter().min_by_key(|load| cell.held(*load))
    }

    /// The load beyond the list that a cell still wants; `None` when a request has failed in it.
    ///
    /// A rung that proves nothing ends the way up too: those above it would prove no more.
    fn beyond(&self, last: Option<&f64>, cell: &OfCell<'_>) -> Option<f64> {
        let is_over =
            |trial: &Judged| trial.request_failed || trial.verdict.is_none_or(|one| one == Verdict::Invalid);
        if !self.is_open_ended || cell.trials().any(is_over) {
            return None;
        }
        let highest = cell.trials().map(|trial| trial.load).max_by(f64::total_cmp);
        let load = highest.or(last.copied())? + 1.0;
        (load <= OPEN_END_MOST).then_some(load)
    }
}

#[cfg(test)]
mod tests;
