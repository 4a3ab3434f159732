//! The schedule: the next trial of a run, as a pure function of the trials held so far.
//!
//! An interrupted run resumes where its stored trials end, and replaying them requests the same trials again.
//! Invariant: no trial is requested twice, and none after a result that would make it meaningless.
//! Not here: how a trial is run, and what its numbers mean (`judge`). Duels have their own schedule (`duel`).

use std::collections::BTreeMap;

use measure::trial::kind;
use measure::{Purpose, Trial};
use serde::{Deserialize, Serialize};

use crate::contract::{HoldSpan, Rung};
use crate::disturbance::disturbance;
use crate::figures;
use crate::judge::{Evidence, GoalResult, Judgement, ObjectiveResult, Verdict};

mod list;
mod search;

pub(crate) use list::SURE;
pub use list::{ListSchedule, Repeats, highest_overload};
pub use search::{Bounds, Goal, LoadClass, SearchSchedule, Tally};

use search::loss_of;

/// A calibration that was disturbed is held again, so many times in all.
pub const CALIBRATIONS_MOST: usize = 3;
/// A load whose trials have too few samples to be decided is held so many times as long as asked at the most.
pub const LONGER_MOST: u64 = 4;
const SECOND_NS: u64 = 1_000_000_000;

/// The shortest hold of whole seconds that gives so many samples at a rate, ns; `None` where the rate is not known.
///
/// Arrivals are random: it has four standard deviations more.
pub fn hold_for_ns(samples: f64, rate_per_s: f64) -> Option<u64> {
    let seconds = (samples + 4.0 * samples.sqrt()) / rate_per_s;
    (samples > 0.0 && rate_per_s > 0.0).then(|| (seconds.ceil() as u64).saturating_mul(SECOND_NS))
}

/// A trial that a schedule asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NextTrial {
    /// number within the run, from 0
    pub seq: u32,
    /// what it is for
    pub purpose: Purpose,
    /// the load, in the unit of its bots
    pub load: f64,
    /// which cell of the sweep it is held in; `None` where there is but one, and for calibrations
    #[serde(default)]
    pub cell: Option<usize>,
    /// how long to hold it, ns; `None`: as the plan says
    #[serde(default)]
    pub hold_ns: Option<u64>,
    /// the load that goes on after the hold, until the server has recovered
    #[serde(default)]
    pub recovery_load: Option<f64>,
}

/// A trial that was held, as far as a schedule must know it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// what it was for
    pub purpose: Purpose,
    /// the load it was asked to hold
    pub load: f64,
    /// axis and value of the cell it was held in; empty where there is but one
    #[serde(default)]
    pub cell: BTreeMap<String, String>,
    /// its verdict; `None` for a calibration or a warm-up, which are not judged
    pub verdict: Option<Verdict>,
    /// what gave, where it did not pass
    #[serde(default)]
    pub signal: Option<String>,
    /// whether it met its objectives, also where it was too short to be sure; `None` where it says nothing about the server
    #[serde(default)]
    pub met: Option<bool>,
    /// it could not be told for want of samples alone, and so many times as many are likely to; 0: not so
    #[serde(default)]
    pub times_as_many: f64,
    /// the same to each further goal of a search, in their order
    #[serde(default)]
    pub goals: Vec<Met>,
    /// how long it was held, with its warm-up, ns
    #[serde(default)]
    pub held_ns: u64,
    /// the user ended it
    pub was_interrupted: bool,
    /// the subject's process ended during it
    pub subject_exited: bool,
    /// a request of it was refused, cut off, answered wrongly or never
    #[serde(default)]
    pub request_failed: bool,
    /// something other than server and generator took CPU during its hold
    #[serde(default)]
    pub was_disturbed: bool,
}

/// What a trial says to one goal of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Met {
    /// by the goal's objectives
    pub verdict: Verdict,
    /// what gave, where it did not pass
    pub signal: Option<String>,
    /// as in `Judged`
    pub met: Option<bool>,
    /// as in `Judged`
    #[serde(default)]
    pub times_as_many: f64,
}

/// What the objectives of a trial say to a schedule.
struct Said {
    met: Option<bool>,
    times_as_many: f64,
}

impl Said {
    fn by(verdict: Verdict, signal: Option<&str>, objectives: &[ObjectiveResult]) -> Said {
        Said {
            met: loss_of(verdict, signal, objectives),
            times_as_many: missing_samples(verdict, signal, objectives),
        }
    }
}

/// Whether an objective without an answer is why a trial could not be told; a disturbance for instance is another reason.
fn is_cause(signal: Option<&str>, one: &ObjectiveResult) -> bool {
    one.met.is_none() && signal.is_some_and(|signal| one.objective.starts_with(signal))
}

/// How many times as many samples are likely to decide every objective of a trial that could not be told for want of them
/// alone; 0 for any other trial.
fn missing_samples(verdict: Verdict, signal: Option<&str>, objectives: &[ObjectiveResult]) -> f64 {
    let is_untold = verdict == Verdict::Inconclusive && objectives.iter().any(|one| is_cause(signal, one));
    let mut times = objectives.iter().filter(|one| one.met.is_none()).map(|one| one.times_as_many);
    let most = times.try_fold(0.0, |most, one| one.map(|times| f64::max(most, times)));
    most.filter(|_| is_untold).unwrap_or(0.0)
}

impl Judged {
    /// What a schedule must know of a trial.
    pub fn of(trial: &Trial, judgement: Option<&Judgement>) -> Judged {
        let drained = trial.event(kind::DRAIN).is_some_and(|event| event.text == kind::INTERRUPTED);
        let subject_exited = trial.event(kind::SUBJECT_EXITED).is_some();
        let said = judgement
            .map(|found| Said::by(found.verdict, found.signal.as_deref(), &found.evidence.objectives));
        Judged {
            purpose: trial.head.purpose,
            load: trial.head.load,
            cell: trial.head.cell.clone(),
            verdict: judgement.map(|judgement| judgement.verdict),
            signal: judgement.and_then(|judgement| judgement.signal.clone()),
            met: said.as_ref().and_then(|said| said.met),
            times_as_many: said.as_ref().map_or(0.0, |said| said.times_as_many),
            goals: judgement.map_or(Vec::new(), |found| of_goals(&found.evidence)),
            held_ns: HoldSpan::of(trial).map_or(0, |hold| hold.held_ns()),
            was_interrupted: trial.event(kind::INTERRUPTED).is_some() || drained,
            subject_exited,
            request_failed: figures::any_failed(trial) || judgement.is_some_and(Judgement::stopped_replying),
            was_disturbed: disturbance(trial).any(),
        }
    }
}

impl From<&Rung> for Judged {
    /// What the published figures of a rung still tell of it, which is what a capacity needs.
    fn from(rung: &Rung) -> Judged {
        let said = Said::by(rung.verdict, rung.signal.as_deref(), &rung.evidence.objectives);
        Judged {
            purpose: Purpose::Rung,
            load: rung.load,
            cell: rung.cell.clone().unwrap_or_default(),
            verdict: Some(rung.verdict),
            signal: rung.signal.clone(),
            met: said.met,
            times_as_many: said.times_as_many,
            goals: of_goals(&rung.evidence),
            held_ns: rung.hold.map_or(0, |hold| hold.held_ns()),
            subject_exited: rung.server_exited(),
            ..Judged::default()
        }
    }
}

impl Judged {
    /// Whether it says something about the subject.
    pub(crate) fn is_rung(&self) -> bool {
        self.purpose == Purpose::Rung
    }

    /// The same trial as a further goal of a search sees it.
    pub(crate) fn to_goal(&self, goal: usize) -> Judged {
        let mut seen = Judged { goals: Vec::new(), met: None, times_as_many: 0.0, ..self.clone() };
        if let Some(found) = self.goals.get(goal) {
            seen.verdict = Some(found.verdict);
            seen.signal.clone_from(&found.signal);
            (seen.met, seen.times_as_many) = (found.met, found.times_as_many);
        }
        seen
    }

    /// How long it should have been held, at the most `most_ns`, to be told by every goal; `None` where it was told, or where a
    /// longer hold would not help.
    pub(crate) fn should_have_held_ns(&self, most_ns: u64) -> Option<u64> {
        let times = self.goals.iter().map(|goal| goal.times_as_many).fold(self.times_as_many, f64::max);
        (times > 0.0).then(|| ((self.held_ns as f64 * times) as u64).next_multiple_of(SECOND_NS).min(most_ns))
    }
}

fn of_goals(evidence: &Evidence) -> Vec<Met> {
    let of_goal = |found: &GoalResult| {
        let Said { met, times_as_many } = Said::by(found.verdict, found.signal.as_deref(), &found.objectives);
        Met { verdict: found.verdict, signal: found.signal.clone(), met, times_as_many }
    };
    evidence.goals.iter().map(of_goal).collect()
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// hold this
    Trial(NextTrial),
    /// nothing; why
    Done(Stop),
}

/// Why a schedule ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// every trial was held
    Complete,
    /// the user ended it
    Interrupted,
    /// the subject has ended; higher loads would find no server
    SubjectExited,
}

/// Calibrations, the trials of the subject, and a calibration more where those before were disturbed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// purpose and load of each calibration, in their order
    pub calibrations: Vec<(Purpose, f64)>,
    /// the loads of the subject
    pub loads: Loads,
}

/// The ways to choose the next load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loads {
    /// the rungs of a list in every cell
    List(ListSchedule),
    /// the capacity, narrowed down
    Search(SearchSchedule),
}

impl Schedule {
    /// The next trial, given all that were held, in their order.
    pub fn next(&self, done: &[Judged]) -> Next {
        if done.iter().any(|trial| trial.was_interrupted) {
            return Next::Done(Stop::Interrupted);
        }
        if let Some(missing) = next_calibration(&self.calibrations, done) {
            return Next::Trial(missing);
        }
        let next = match &self.loads {
            Loads::List(list) => list.next(done),
            Loads::Search(search) => search.next(done),
        };
        if next != Next::Done(Stop::Complete) {
            return next;
        }
        // The machine's state before the climb need not be its state after it.
        let mut after = self.calibrations.iter().copied().filter(|one| one.0 == Purpose::CalibrationLatency);
        let missing = after.find(|one| !is_calibrated(*one, CALIBRATIONS_MOST + 1, done));
        missing.map_or(next, |one| Next::Trial(calibration(one, done)))
    }
}

/// The calibration that must be held before the subject is loaded.
pub(crate) fn next_calibration(calibrations: &[(Purpose, f64)], done: &[Judged]) -> Option<NextTrial> {
    let mut missing = calibrations.iter().filter(|one| !is_calibrated(**one, CALIBRATIONS_MOST, done));
    missing.next().map(|one| calibration(*one, done))
}

fn calibration((purpose, load): (Purpose, f64), done: &[Judged]) -> NextTrial {
    NextTrial { seq: done.len() as u32, purpose, load, cell: None, hold_ns: None, recovery_load: None }
}

/// Whether a calibration was held undisturbed, or as often as it may be.
fn is_calibrated((purpose, load): (Purpose, f64), most: usize, done: &[Judged]) -> bool {
    let held = || done.iter().filter(|trial| trial.purpose == purpose && trial.load == load);
    held().any(|trial| !trial.was_disturbed) || held().count() >= most
}
