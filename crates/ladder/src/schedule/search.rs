//! The search for the capacity by RFC 9971 (MLRsearch): short trials far from the edge, long ones near it, and a load
//! is a bound only by the RFC's classification.
//!
//! A trial has a load and a duration, and either met its objectives or did not. Trials as long as the goal's final ones
//! are full-length, all others short. Short trials alone never make a lower bound; they make an upper one only when
//! more of them fail than the exceed ratio of those that passed explains.
//! The RFC leaves the choice of the next load open. Here there are three phases, each with longer trials and a narrower
//! interval than the one before. A phase starts at the bounds of the last one, moves outwards in growing steps if they
//! do not hold, and halves the interval once both do. A load is held again until it is classified.
//! With several goals every trial counts for each, and a phase ends when it has ended for all of them.
//! Invariant: the next trial is a function of those held; a load that cannot be judged is neither bound and is
//! abandoned after a few tries.
//! Units: loads in the unit of the climb, durations in ns.
//! Source: RFC 9971, Multiple Loss Ratio Search, May 2026: the load classification and the relevant bounds.

use measure::Purpose;
use serde::{Deserialize, Serialize};

use super::{Judged, LONGER_MOST, Met, Next, NextTrial, SECOND_NS, Stop, hold_for_ns, is_cause};
use crate::judge::{ObjectiveResult, Verdict};
use crate::objective::Objective;

/// Each phase's trials last three times as long as those of the one before, so that a hold that went on to twice its
/// length for disturbances still belongs to its own phase.
const PHASES: u32 = 3;
const LONGER_BY: u64 = 3;
/// Seconds are what is stored, and disturbances and warm-up need some.
const SHORTEST_TRIAL_NS: u64 = 3 * SECOND_NS;
/// A load that could not be judged so often, and as often again as it could, is left for another.
const TRIES: usize = 2;
/// Many more than any search needs; a server whose capacity wanders must not keep it going for ever.
const TRIALS_MOST: usize = 200;
/// Later steps outwards are no longer than so many times the width.
const OUTWARD_STEPS_MOST: i32 = 6;
/// A forecast looks at so many capacities and one more.
const FORECASTS: u32 = 16;
/// Far below what one more trial changes of a share, far above the rounding of its digits.
const ROUNDING: f64 = 1e-9;
/// A hold may miss so much of its second.
const SLACK_NS: u64 = SECOND_NS / 2;

/// What a search must reach, in the words of the RFC.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// a trial this long is full-length, ns
    pub final_trial_ns: u64,
    /// full-length trials of this total length decide whether a load holds, ns
    pub duration_sum_ns: u64,
    /// share of them that may miss the objectives, in [0, 1)
    pub exceed_ratio: f64,
    /// (upper − lower) / upper at most, in (0, 1)
    pub width: f64,
}

/// How long the trials of a load were, ns, by length and by whether they met the objectives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// full-length, met
    pub full_low_ns: f64,
    /// full-length, not met
    pub full_high_ns: f64,
    /// short, met
    pub short_low_ns: f64,
    /// short, not met
    pub short_high_ns: f64,
}

/// What the trials of a load make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadClass {
    /// it holds, whatever the missing trials would give
    Lower,
    /// it does not
    Upper,
    /// more trials are needed
    Undecided,
}

impl Tally {
    /// The RFC's classification of a load. No trials: undecided.
    pub fn class(&self, goal: &Goal) -> LoadClass {
        let balancing_ns = self.short_low_ns * goal.exceed_ratio / (1.0 - goal.exceed_ratio);
        let high_ns = self.full_high_ns + (self.short_high_ns - balancing_ns).max(0.0);
        let measured_ns = high_ns + self.full_low_ns;
        let whole_ns = measured_ns.max(goal.duration_sum_ns as f64);
        let missing_ns = whole_ns - measured_ns;
        // A share equal to the exceed ratio is within it, whichever way its last digit was rounded.
        let is_within = |ns: f64| ns <= (goal.exceed_ratio + ROUNDING) * whole_ns;
        if is_within(high_ns + missing_ns) {
            LoadClass::Lower
        } else if !is_within(high_ns) {
            LoadClass::Upper
        } else {
            LoadClass::Undecided
        }
    }
}

/// The bounds that trials show for a goal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// the largest lower bound below the smallest upper one
    pub lower: Option<f64>,
    /// the smallest upper bound
    pub upper: Option<f64>,
    /// lower bounds above the smallest upper one, ascending: the RFC's irregular results
    pub irregular: Vec<f64>,
}

impl Bounds {
    /// (upper − lower) / upper; `None` without both.
    pub fn width(&self) -> Option<f64> {
        Some(1.0 - self.lower? / self.upper?)
    }
}

/// The bounds among classified loads, which ascend.
fn bounds(classes: &[(f64, LoadClass)]) -> Bounds {
    let with = |wanted| classes.iter().filter(move |(_, class)| *class == wanted).map(|(load, _)| *load);
    let upper = with(LoadClass::Upper).next();
    let is_below = |load: &f64| upper.is_none_or(|upper| *load < upper);
    Bounds {
        lower: with(LoadClass::Lower).rfind(is_below),
        upper,
        irregular: with(LoadClass::Lower).filter(|load| !is_below(load)).collect(),
    }
}

/// Every load that was held, ascending, with its class for a goal. `full_ns`: how long a trial of a load must be to be
/// full-length; `told`: whether a trial met the objectives, `None` where it does not count.
fn classes(
    trials: &[Judged],
    goal: &Goal,
    full_ns: impl Fn(f64) -> u64,
    told: impl Fn(&Judged) -> Option<bool>,
) -> Vec<(f64, LoadClass)> {
    let mut tallies: Vec<(f64, Tally)> = Vec::new();
    for trial in trials.iter().filter(|trial| trial.is_rung()) {
        let Some(met) = told(trial) else { continue };
        let at = tallies.iter().position(|(load, _)| *load == trial.load).unwrap_or_else(|| {
            tallies.push((trial.load, Tally::default()));
            tallies.len() - 1
        });
        // If a load needs longer trials than the goal, all of its trials count pro rata.
        let share = trial.held_ns as f64 / full_ns(trial.load) as f64;
        let is_full = trial.is_as_long_as(full_ns(trial.load));
        let tally = &mut tallies[at].1;
        let (sum, share) = match (is_full, met) {
            // A trial extended to see undisturbed seconds counts as its planned length.
            (true, true) => (&mut tally.full_low_ns, 1.0),
            (true, false) => (&mut tally.full_high_ns, 1.0),
            (false, true) => (&mut tally.short_low_ns, share),
            (false, false) => (&mut tally.short_high_ns, share),
        };
        *sum += share * goal.final_trial_ns as f64;
    }
    tallies.sort_by(|a, b| a.0.total_cmp(&b.0));
    tallies.into_iter().map(|(load, tally)| (load, tally.class(goal))).collect()
}

impl Judged {
    fn is_as_long_as(&self, full_ns: u64) -> bool {
        self.held_ns + SLACK_NS >= full_ns || self.was_cut_short_by_server()
    }

    /// Whether it is the server's doing that the hold was short or never began; a longer one would have found the same.
    fn was_cut_short_by_server(&self) -> bool {
        self.subject_exited || self.met == Some(false) && self.held_ns + SLACK_NS < SHORTEST_TRIAL_NS
    }
}

/// Whether a trial met its objectives, also when it was too short to state their figures; `None` where it says nothing
/// about the server.
///
/// A percentile that too few samples decide is then judged by the share of them beyond the bound, which is what the RFC calls
/// the loss ratio. It shows a search the way; of a full-length trial it does not count (`SearchSchedule::told`).
pub(super) fn loss_of(
    verdict: Verdict,
    signal: Option<&str>,
    objectives: &[ObjectiveResult],
) -> Option<bool> {
    match verdict {
        Verdict::Pass => Some(true),
        Verdict::Fail => Some(false),
        Verdict::Inconclusive => {
            let untold = objectives.iter().filter(|one| one.met.is_none());
            if !objectives.iter().any(|one| is_cause(signal, one))
                || objectives.iter().any(|one| one.met == Some(false))
            {
                return None;
            }
            untold.map(|one| one.met_by_share).try_fold(true, |all, one| Some(all && one?))
        }
        Verdict::GeneratorLimited | Verdict::Invalid => None,
    }
}

/// A search between two loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchSchedule {
    /// the first load
    pub start: f64,
    /// no smaller load is held
    pub least: f64,
    /// no larger load is held
    pub most: f64,
    /// loads are whole numbers
    pub is_whole: bool,
    /// what is to be reached
    pub goal: Goal,
    /// messages that decide the percentiles of the objectives where none of them is late, so the least that a trial needs;
    /// 0: none
    pub samples: f64,
    /// messages per second and unit of load; 0: not known before
    pub rate_per_load: f64,
    /// the subject is ours to start again after it ended
    pub restarts_subject: bool,
    /// the one cell of a sweep in which it searches
    #[serde(default)]
    pub cell: Option<usize>,
    /// further goals: what each asks instead of the objectives of the plan, with the same widths and lengths
    #[serde(default)]
    pub goals: Vec<Vec<Objective>>,
}

/// What a phase must reach.
#[derive(Clone, Copy, Debug)]
struct Target {
    goal: Goal,
    number: u32,
}

impl SearchSchedule {
    /// The next trial, given all that were held.
    ///
    /// A subject that ended is started again where that is ours to do; another's end ends the search, for nobody answers.
    pub(super) fn next(&self, done: &[Judged]) -> Next {
        let of_subject = |purpose| done.iter().filter(move |trial| trial.purpose == purpose);
        if !self.restarts_subject && done.iter().any(|trial| !is_calibration(trial) && trial.subject_exited) {
            return Next::Done(Stop::SubjectExited);
        }
        let order = |purpose, load, hold_ns| {
            Next::Trial(NextTrial {
                seq: done.len() as u32,
                purpose,
                load,
                cell: self.cell,
                hold_ns: Some(hold_ns),
                recovery_load: None,
            })
        };
        if of_subject(Purpose::WarmUp).next().is_none() {
            return order(Purpose::WarmUp, self.start, self.trial_ns(0, self.start));
        }
        if of_subject(Purpose::Rung).count() >= TRIALS_MOST {
            return Next::Done(Stop::Complete);
        }
        // A completed phase is not revisited: the longer trials count more.
        let begun = of_subject(Purpose::Rung).map(|trial| self.phase_of(trial)).max().unwrap_or(0);
        let views: Vec<Vec<Judged>> = (0..self.goals.len()).map(|goal| to_goal(done, goal)).collect();
        let each_goal = || std::iter::once(done).chain(views.iter().map(Vec::as_slice));
        for number in begun..PHASES {
            if let Some(load) = each_goal().find_map(|seen| self.load_in(self.target(number), seen)) {
                return order(Purpose::Rung, load, self.longer_ns(number, load, done));
            }
        }
        Next::Done(Stop::Complete)
    }

    /// How long the search takes, ns, shortest and longest, over capacities between the smallest and the largest load.
    ///
    /// It is followed with servers that hold exactly so much and are never disturbed; of several goals the shortest has one
    /// capacity for all, the longest spreads them over the range. `around_ns`: what a trial of a load takes besides its hold.
    pub fn forecast(&self, around_ns: impl Fn(f64) -> u64) -> (u64, u64) {
        let ratio = (self.most / self.least).max(1.0);
        let capacity =
            |at: u32| self.least * ratio.powf(f64::from(at % (FORECASTS + 1)) / f64::from(FORECASTS));
        let goals = 1 + self.goals.len() as u32;
        let spreads = if goals > 1 { vec![0, FORECASTS.div_ceil(goals)] } else { vec![0] };
        let cases = (0..=FORECASTS).flat_map(|at| spreads.iter().map(move |spread| (at, *spread)));
        let times = cases.map(|(at, spread)| {
            self.followed(|goal, load| load <= capacity(at + goal as u32 * spread))
                .iter()
                .map(|trial| trial.held_ns + around_ns(trial.load))
                .sum()
        });
        times.fold((u64::MAX, 0), |(least, most): (u64, u64), ns: u64| (least.min(ns), most.max(ns)))
    }

    /// The trials of a search on a server that meets these goals (0: the plan's own, then the further ones) at these loads.
    pub fn followed(&self, mut holds: impl FnMut(usize, f64) -> bool) -> Vec<Judged> {
        let verdict = |met: bool| if met { Verdict::Pass } else { Verdict::Fail };
        let mut done = Vec::new();
        while let Next::Trial(order) = self.next(&done) {
            let is_judged = order.purpose == Purpose::Rung;
            let met = is_judged.then(|| holds(0, order.load));
            let further = 1..=if is_judged { self.goals.len() } else { 0 };
            let goals = further.map(|goal| holds(goal, order.load)).map(|met| Met {
                verdict: verdict(met),
                signal: None,
                met: Some(met),
                times_as_many: 0.0,
            });
            done.push(Judged {
                purpose: order.purpose,
                load: order.load,
                verdict: met.map(verdict),
                met,
                goals: goals.collect(),
                held_ns: order.hold_ns.unwrap_or(0),
                ..Judged::default()
            });
        }
        done
    }

    /// The bounds that trials show for the goal itself.
    pub fn bounds(&self, done: &[Judged]) -> Bounds {
        bounds(&classes(done, &self.goal, |load| self.full_ns(load), |trial| self.told(trial)))
    }

    /// Whether a trial met the objectives; `None` where it does not count. The share beyond a bound shows a short trial the
    /// way; a full-length one makes a bound, so that it needs more samples.
    pub fn told(&self, trial: &Judged) -> Option<bool> {
        let is_short = !trial.is_as_long_as(self.full_ns(trial.load));
        trial.met.filter(|_| is_short || trial.times_as_many <= 0.0)
    }

    /// How long a trial was, of a full-length one of its load: at most 1.
    pub fn share_of_full(&self, trial: &Judged) -> f64 {
        let full_ns = self.full_ns(trial.load);
        if trial.is_as_long_as(full_ns) { 1.0 } else { trial.held_ns as f64 / full_ns as f64 }
    }

    /// How long a full-length trial of a load is, ns: long enough for the samples that can decide.
    pub fn full_ns(&self, load: f64) -> u64 {
        self.goal.final_trial_ns.max(self.deciding_ns(load))
    }

    /// No shorter trial of a load can decide, ns; 0 where that is not known.
    fn deciding_ns(&self, load: f64) -> u64 {
        hold_for_ns(self.samples, self.rate_per_load * load).unwrap_or(0)
    }

    fn trial_ns(&self, phase: u32, load: f64) -> u64 {
        let shorter_by = LONGER_BY.pow(PHASES - 1 - phase);
        let full_ns = self.full_ns(load);
        match shorter_by {
            1 => full_ns,
            _ => {
                let asked_ns = self.goal.final_trial_ns / shorter_by / SECOND_NS * SECOND_NS;
                // A trial's phase is identified by its length, so it stays shorter than those of the next.
                let next_ns = self.trial_ns(phase + 1, load).saturating_sub(SECOND_NS);
                asked_ns.max(SHORTEST_TRIAL_NS).max(self.deciding_ns(load).min(next_ns))
            }
        }
    }

    /// The same after these trials: where one of this load had too few samples to be told, long enough for those.
    fn longer_ns(&self, phase: u32, load: f64, done: &[Judged]) -> u64 {
        let most_ns = self.longest_ns(load);
        let of_load = done.iter().filter(|trial| trial.is_rung() && trial.load == load);
        let longer_ns = of_load.filter_map(|trial| trial.should_have_held_ns(most_ns)).max();
        longer_ns.unwrap_or(0).max(self.trial_ns(phase, load))
    }

    /// A load is held no longer for want of samples, ns.
    fn longest_ns(&self, load: f64) -> u64 {
        self.full_ns(load).saturating_mul(LONGER_MOST)
    }

    /// In which phase a trial of this length belongs.
    fn phase_of(&self, trial: &Judged) -> u32 {
        let is_long = |phase: &u32| trial.held_ns + SLACK_NS >= self.trial_ns(*phase, trial.load);
        (0..PHASES).rev().find(is_long).unwrap_or(0)
    }

    /// Trials of earlier phases decide alone, the last phase by the requested sum.
    fn target(&self, number: u32) -> Target {
        let goal = if number + 1 == PHASES {
            self.goal
        } else {
            let width = self.goal.width * f64::from(1u32 << (PHASES - 1 - number));
            Goal { duration_sum_ns: self.goal.final_trial_ns, width: width.min(0.5), ..self.goal }
        };
        Target { goal, number }
    }

    fn classes(&self, target: Target, done: &[Judged]) -> Vec<(f64, LoadClass)> {
        classes(done, &target.goal, |load| self.trial_ns(target.number, load), |trial| self.told(trial))
    }

    /// The load that a phase still wants; `None` when it has reached what it must, or cannot.
    fn load_in(&self, target: Target, done: &[Judged]) -> Option<f64> {
        let full_ns = |load: f64| self.trial_ns(target.number, load);
        let classes = self.classes(target, done);
        let found = bounds(&classes);
        let is_inside = |load: f64| {
            found.lower.is_none_or(|lower| load > lower) && found.upper.is_none_or(|upper| load < upper)
        };
        let trials_at =
            |load: f64| done.iter().filter(move |trial| trial.purpose == Purpose::Rung && trial.load == load);
        let untold = |load: f64| trials_at(load).filter(|trial| self.told(trial).is_none()).count();
        let told = |load: f64| trials_at(load).filter(|trial| self.told(trial).is_some()).count();
        // A load whose longest trial had too few samples is not held again, since it would have too few again.
        let is_too_near = |load: f64| {
            let mut untold = trials_at(load).filter(|trial| self.told(trial).is_none());
            untold.any(|trial| {
                trial.times_as_many > 0.0 && trial.held_ns + SLACK_NS >= self.longest_ns(trial.load)
            })
        };
        let is_left = |load: f64| untold(load) >= TRIES + told(load) || is_too_near(load);
        // Loads already started are finished, the lowest first: a lower upper bound may make the others unnecessary.
        let begun = |load: &f64| {
            is_inside(*load)
                && trials_at(*load).any(|trial| trial.held_ns + SLACK_NS >= full_ns(*load))
                && !is_left(*load)
        };
        let undecided =
            classes.iter().filter(|(_, class)| *class == LoadClass::Undecided).map(|(load, _)| *load);
        if let Some(load) = undecided.clone().find(begun) {
            return Some(load);
        }
        // A load without any judged trial has no class yet.
        if let Some(trial) = done.iter().rev().find(|trial| trial.purpose == Purpose::Rung)
            && self.told(trial).is_none()
            && is_inside(trial.load)
            && self.phase_of(trial) == target.number
            && !is_left(trial.load)
        {
            return Some(trial.load);
        }
        let before = (target.number > 0).then(|| bounds(&self.classes(self.target(target.number - 1), done)));
        let before = before.unwrap_or_default();
        // A load that this machine cannot generate ends the way up like the largest load does. Disturbances do not: far
        // enough from the edge a load can be judged despite them.
        let is_beyond_us = |trial: &&Judged| {
            trial.verdict == Some(Verdict::GeneratorLimited) && told(trial.load) == 0 && is_left(trial.load)
        };
        let ours = done.iter().filter(is_beyond_us).map(|trial| trial.load);
        let ceiling =
            ours.filter(|load| found.lower.is_none_or(|lower| *load > lower)).fold(self.most, f64::min);
        let is_new = |load: &f64| is_inside(*load) && !is_left(*load) && *load <= ceiling;
        let with = |class: LoadClass| classes.iter().filter(|(_, one)| *one == class).count() as i32;
        // Outwards in steps that double at first; later the first step is the width and each is longer than the last.
        let outwards = |class: LoadClass| match target.number {
            0 => 2.0,
            _ => (1.0 - target.goal.width).recip().powi(with(class).clamp(1, OUTWARD_STEPS_MOST)),
        };
        match (found.lower, found.upper) {
            (None, None) => {
                let known = [before.lower, before.upper].into_iter().flatten().find(is_new);
                // Next to a load that could not be judged the edge is near; from the start it would be far.
                let beside = before.lower.or(before.upper).and_then(|edge| {
                    let width = 1.0 - target.goal.width;
                    self.first_new([1, 2, 3].map(|times| edge * width.powi(times)), is_new)
                });
                let known = known.or(beside).or(Some(self.start).filter(is_new));
                known.or_else(|| self.first_new([self.least, ceiling], is_new))
            }
            (None, Some(upper)) => before.lower.filter(is_new).or_else(|| {
                let factor = outwards(LoadClass::Upper);
                self.first_new([upper / factor, upper / factor.sqrt(), self.least], is_new)
            }),
            (Some(lower), None) => before.upper.filter(is_new).or_else(|| {
                let factor = outwards(LoadClass::Lower);
                let is_near = 1.0 - lower / ceiling <= target.goal.width;
                let inwards = if is_near { ceiling } else { (lower * ceiling).sqrt() };
                self.first_new([(lower * factor).min(ceiling), inwards], is_new)
            }),
            (Some(lower), Some(upper)) => {
                if 1.0 - lower / upper <= target.goal.width {
                    return None;
                }
                let inner = [before.lower, before.upper].into_iter().flatten().find(is_new);
                let between = |share: f64| lower.powf(1.0 - share) * upper.powf(share);
                inner.or_else(|| self.first_new([0.5, 1.0 / 3.0, 2.0 / 3.0].map(between), is_new))
            }
        }
    }

    /// The first of these loads, as it can be held, that is still of use.
    fn first_new<const N: usize>(&self, loads: [f64; N], is_new: impl Fn(&f64) -> bool) -> Option<f64> {
        loads.into_iter().map(|load| self.rounded(load)).find(is_new)
    }

    /// Whole numbers, or four digits.
    fn rounded(&self, load: f64) -> f64 {
        // A power of ten and its inverse are exact where needed: 225.6, not 225.60000000000002.
        let digits = if self.is_whole { 0.0 } else { 3.0 - load.log10().floor() };
        let scale = 10f64.powf(digits.abs());
        let rounded =
            if digits >= 0.0 { (load * scale).round() / scale } else { (load / scale).round() * scale };
        rounded.clamp(self.least, self.most)
    }
}

/// The trials as a further goal sees them.
fn to_goal(done: &[Judged], goal: usize) -> Vec<Judged> {
    done.iter().map(|trial| trial.to_goal(goal)).collect()
}

fn is_calibration(trial: &Judged) -> bool {
    matches!(trial.purpose, Purpose::CalibrationLatency | Purpose::CalibrationCeiling)
}

#[cfg(test)]
mod tests;
