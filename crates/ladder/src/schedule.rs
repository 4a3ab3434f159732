//! The schedule: the next trial of a run, as a pure function of those that were held.
//!
//! A run that was cut off goes on where its stored trials end, and replaying them asks for the same trials again.
//! Invariant: no trial is asked for twice, and none after something that would make it meaningless.
//! Not here: how a trial is run, and what its numbers mean (`judge`). Duels have a schedule of their own (`duel`).

use std::collections::BTreeMap;

use measure::trial::kind;
use measure::{Purpose, Trial};
use serde::{Deserialize, Serialize};

use crate::disturbance::disturbance;
use crate::figures;
use crate::judge::{Judgement, Verdict};

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
}

/// A trial that was held, as far as a schedule must know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// what it was for
    pub purpose: Purpose,
    /// the load it was asked to hold
    pub load: f64,
    /// axis and value of the cell it was held in; empty where there is but one
    #[serde(default)]
    pub cell: BTreeMap<String, String>,
    /// its verdict; `None` for a calibration, which is not judged
    pub verdict: Option<Verdict>,
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

impl Judged {
    /// What a schedule must know of a trial; `None` when its purpose is no word of ours.
    pub fn of(trial: &Trial, judgement: Option<&Judgement>) -> Option<Judged> {
        let drained = trial.event(kind::DRAIN).is_some_and(|event| event.text == kind::INTERRUPTED);
        let subject_exited = trial.event(kind::SUBJECT_EXITED).is_some();
        Some(Judged {
            purpose: trial.head.purpose,
            load: trial.head.load,
            cell: trial.head.cell.clone(),
            verdict: judgement.map(|judgement| judgement.verdict),
            was_interrupted: trial.event(kind::INTERRUPTED).is_some() || drained,
            subject_exited,
            request_failed: figures::any_failed(trial) || judgement.is_some_and(Judgement::stopped_replying),
            was_disturbed: disturbance(trial).any(),
        })
    }
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
    /// the subject is gone; higher loads would meet nobody
    SubjectExited,
}

/// The ways to choose the next trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// the rungs of a list, once each in every cell
    List(ListSchedule),
}

impl Schedule {
    /// The next trial, given all that were held, in any order.
    pub fn next(&self, done: &[Judged]) -> Next {
        match self {
            Schedule::List(list) => list.next(done),
        }
    }
}

/// A calibration that was disturbed is held again, so many times in all.
pub const CALIBRATIONS_MOST: usize = 3;

/// An open end goes on to this load at most: a server that refuses nobody until then will hardly begin to.
const OPEN_END_MOST: f64 = 1_000.0;

/// Calibrations as listed, then cell by cell each rung once in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListSchedule {
    /// purpose and load of each calibration, in their order
    pub calibrations: Vec<(Purpose, f64)>,
    /// loads of the rungs, in any order, each held as often as it is listed
    pub rungs: Vec<f64>,
    /// axis and value of each cell, in their order; empty: there is but one, without a name
    #[serde(default)]
    pub cells: Vec<BTreeMap<String, String>>,
    /// beyond the last rung loads go on by one until a request fails
    #[serde(default)]
    pub is_open_ended: bool,
}

/// What tells one trial of a list from another. Calibrations belong to no cell.
type Place<'a> = (Purpose, f64, Option<&'a BTreeMap<String, String>>);

impl ListSchedule {
    /// The next trial, given all that were held, in any order.
    ///
    /// A rung that could not be judged is not repeated: whatever spoiled it would do so again, and its user can see it.
    /// Loads go up, so what stays behind in the server from a high load cannot spoil a low one. Cells come one after the
    /// other, because the next may want another server.
    pub fn next(&self, done: &[Judged]) -> Next {
        if done.iter().any(|trial| trial.was_interrupted) {
            return Next::Done(Stop::Interrupted);
        }
        // The null server of a calibration is another process; that it ended says nothing about the subject.
        if done.iter().any(|trial| trial.purpose == Purpose::Rung && trial.subject_exited) {
            return Next::Done(Stop::SubjectExited);
        }
        let mut rungs = self.rungs.clone();
        rungs.sort_by(f64::total_cmp);
        let mut held: Vec<Place<'_>> = done.iter().map(place_of).collect();
        let mut is_held = |place: Place<'_>| {
            held.iter().position(|other| *other == place).map(|at| held.swap_remove(at)).is_some()
        };
        let trial =
            |purpose, load, cell| Next::Trial(NextTrial { seq: done.len() as u32, purpose, load, cell });
        for &(purpose, load) in &self.calibrations {
            if !self.is_calibrated(purpose, load, CALIBRATIONS_MOST, done) {
                return trial(purpose, load, None);
            }
        }
        let nameless = BTreeMap::new();
        for cell in 0..self.cells.len().max(1) {
            let names = self.cells.get(cell).unwrap_or(&nameless);
            let cell = (cell < self.cells.len()).then_some(cell);
            for &load in &rungs {
                if !is_held((Purpose::Rung, load, Some(names))) {
                    return trial(Purpose::Rung, load, cell);
                }
            }
            if let Some(load) = self.beyond(rungs.last(), names, done) {
                return trial(Purpose::Rung, load, cell);
            }
        }
        // What the machine did before the climb it need not do after it.
        for &(purpose, load) in
            self.calibrations.iter().filter(|(purpose, _)| *purpose == Purpose::CalibrationLatency)
        {
            if !self.is_calibrated(purpose, load, CALIBRATIONS_MOST + 1, done) {
                return trial(purpose, load, None);
            }
        }
        Next::Done(Stop::Complete)
    }

    /// Whether a calibration was held undisturbed, or as often as it may be.
    fn is_calibrated(&self, purpose: Purpose, load: f64, most: usize, done: &[Judged]) -> bool {
        let held = || done.iter().filter(|trial| trial.purpose == purpose && trial.load == load);
        held().any(|trial| !trial.was_disturbed) || held().count() >= most
    }

    /// The load beyond the list that a cell still wants; `None` when a request has failed in it.
    ///
    /// A rung that proves nothing ends the way up too: those above it would prove no more.
    fn beyond(&self, last: Option<&f64>, cell: &BTreeMap<String, String>, done: &[Judged]) -> Option<f64> {
        let of_cell = || done.iter().filter(|trial| trial.purpose == Purpose::Rung && trial.cell == *cell);
        let is_over =
            |trial: &Judged| trial.request_failed || trial.verdict.is_none_or(|one| one == Verdict::Invalid);
        if !self.is_open_ended || of_cell().any(is_over) {
            return None;
        }
        let highest = of_cell().map(|trial| trial.load).max_by(f64::total_cmp);
        let load = highest.or(last.copied())? + 1.0;
        (load <= OPEN_END_MOST).then_some(load)
    }
}

fn place_of(trial: &Judged) -> Place<'_> {
    (trial.purpose, trial.load, (trial.purpose == Purpose::Rung).then_some(&trial.cell))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule() -> Schedule {
        Schedule::List(ListSchedule {
            calibrations: vec![(Purpose::CalibrationLatency, 100.0), (Purpose::CalibrationCeiling, 64.0)],
            rungs: vec![2000.0, 500.0, 1000.0],
            ..ListSchedule::default()
        })
    }

    /// Follows a schedule; `verdict` says how each rung goes.
    fn follow(schedule: &Schedule, held: impl Fn(&NextTrial) -> Judged) -> (Vec<NextTrial>, Stop) {
        let (mut done, mut orders) = (Vec::new(), Vec::new());
        loop {
            match schedule.next(&done) {
                Next::Done(stop) => return (orders, stop),
                Next::Trial(order) => {
                    done.push(held(&order));
                    orders.push(order);
                    assert!(orders.len() < 4_000, "a schedule must end");
                }
            }
        }
    }

    fn passes(order: &NextTrial) -> Judged {
        let verdict = (order.purpose == Purpose::Rung).then_some(Verdict::Pass);
        Judged {
            purpose: order.purpose,
            load: order.load,
            cell: order.cell.map_or_else(BTreeMap::new, |cell| cells()[cell].clone()),
            verdict,
            was_interrupted: false,
            subject_exited: false,
            request_failed: false,
            was_disturbed: false,
        }
    }

    fn cells() -> Vec<BTreeMap<String, String>> {
        let cell = |service: &str, view: &str| {
            [("service", service), ("view", view)]
                .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
                .into()
        };
        vec![cell("root", "background"), cell("object", "background"), cell("root", "foreground")]
    }

    /// Cells of requesters; `open` without an end.
    fn sweep(rungs: &[f64], is_open_ended: bool) -> Schedule {
        Schedule::List(ListSchedule {
            calibrations: vec![(Purpose::CalibrationLatency, 1.0)],
            rungs: rungs.to_vec(),
            cells: cells(),
            is_open_ended,
        })
    }

    fn loads(orders: &[NextTrial]) -> Vec<f64> {
        orders.iter().filter(|order| order.purpose == Purpose::Rung).map(|order| order.load).collect()
    }

    #[test]
    fn calibrations_come_first_then_each_rung_once_upwards() {
        let (orders, stop) = follow(&schedule(), passes);
        assert_eq!(stop, Stop::Complete);
        assert_eq!(orders.iter().map(|order| order.seq).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(orders[0].purpose, Purpose::CalibrationLatency);
        assert_eq!(orders[1].purpose, Purpose::CalibrationCeiling);
        assert_eq!(loads(&orders), [500.0, 1000.0, 2000.0]);
    }

    #[test]
    fn a_disturbed_calibration_is_held_again_and_once_more_after_the_climb() {
        let purposes = |orders: &[NextTrial]| orders.iter().map(|order| order.purpose).collect::<Vec<_>>();
        let latency = Purpose::CalibrationLatency;
        let noisy = |until: u32| {
            follow(&schedule(), move |order| Judged {
                was_disturbed: order.purpose == latency && order.seq < until,
                ..passes(order)
            })
        };
        let count = |until| purposes(&noisy(until).0).iter().filter(|purpose| **purpose == latency).count();
        assert_eq!((count(0), count(1), count(2)), (1, 2, 3));
        let (orders, stop) = noisy(u32::MAX);
        assert_eq!((count(u32::MAX), stop), (4, Stop::Complete));
        assert_eq!(purposes(&orders).last(), Some(&latency));
        assert_eq!(loads(&orders), [500.0, 1000.0, 2000.0], "and it keeps no load from being held");
    }

    #[test]
    fn failed_limited_and_invalid_rungs_are_held_once_and_do_not_end_the_climb() {
        for verdict in [Verdict::Fail, Verdict::GeneratorLimited, Verdict::Inconclusive, Verdict::Invalid] {
            let (orders, stop) =
                follow(&schedule(), |order| Judged { verdict: Some(verdict), ..passes(order) });
            assert_eq!((loads(&orders), stop), (vec![500.0, 1000.0, 2000.0], Stop::Complete), "{verdict}");
        }
    }

    #[test]
    fn nothing_follows_a_dead_subject_or_an_interruption() {
        let dies = |order: &NextTrial| Judged { subject_exited: order.load == 1000.0, ..passes(order) };
        let (orders, stop) = follow(&schedule(), dies);
        assert_eq!((loads(&orders), stop), (vec![500.0, 1000.0], Stop::SubjectExited));
        let stops = |order: &NextTrial| Judged { was_interrupted: order.load == 64.0, ..passes(order) };
        let (orders, stop) = follow(&schedule(), stops);
        assert_eq!((loads(&orders), stop), (vec![], Stop::Interrupted));
    }

    #[test]
    fn the_null_server_of_a_calibration_may_end() {
        let ends =
            |order: &NextTrial| Judged { subject_exited: order.purpose != Purpose::Rung, ..passes(order) };
        assert_eq!(follow(&schedule(), ends).1, Stop::Complete);
    }

    #[test]
    fn a_load_that_is_listed_twice_is_held_twice() {
        let twice = Schedule::List(ListSchedule { rungs: vec![500.0, 500.0], ..ListSchedule::default() });
        assert_eq!(loads(&follow(&twice, passes).0), [500.0, 500.0]);
    }

    #[test]
    fn the_next_trial_follows_from_the_stored_ones_in_any_order() {
        let mut done: Vec<Judged> = follow(&schedule(), passes).0.iter().take(3).map(passes).collect();
        let next = schedule().next(&done);
        done.reverse();
        assert_eq!(schedule().next(&done), next);
        assert_eq!(next, Next::Trial(NextTrial { seq: 3, purpose: Purpose::Rung, load: 1000.0, cell: None }));
    }

    fn places(orders: &[NextTrial]) -> Vec<(Option<usize>, f64)> {
        let rungs = orders.iter().filter(|order| order.purpose == Purpose::Rung);
        rungs.map(|order| (order.cell, order.load)).collect()
    }

    #[test]
    fn cells_are_climbed_one_after_the_other_and_calibrated_once() {
        let (orders, stop) = follow(&sweep(&[2.0, 1.0], false), passes);
        assert_eq!(stop, Stop::Complete);
        let expected = [(0, 1.0), (0, 2.0), (1, 1.0), (1, 2.0), (2, 1.0), (2, 2.0)];
        assert_eq!(places(&orders), expected.map(|(cell, load)| (Some(cell), load)));
        assert_eq!((orders.len(), orders[0].cell), (7, None));
    }

    #[test]
    fn an_open_end_goes_on_in_each_cell_until_a_request_fails_in_it() {
        // The cells refuse from 3, 5 and 2 requesters on.
        let first_refusal = [3.0, 5.0, 2.0];
        let refuses = |order: &NextTrial| {
            let limit = order.cell.map_or(f64::INFINITY, |cell| first_refusal[cell]);
            Judged { request_failed: order.load >= limit, ..passes(order) }
        };
        let (orders, stop) = follow(&sweep(&[1.0], true), refuses);
        assert_eq!(stop, Stop::Complete);
        for (cell, limit) in first_refusal.iter().enumerate() {
            let held: Vec<f64> =
                orders.iter().filter(|one| one.cell == Some(cell)).map(|one| one.load).collect();
            assert_eq!(held, (1..=*limit as u32).map(f64::from).collect::<Vec<_>>(), "cell {cell}");
        }
        // A refusal within the list is the end already; the rest of the list is held all the same.
        let (orders, _) = follow(&sweep(&[1.0, 2.0, 4.0], true), refuses);
        assert_eq!(places(&orders).iter().filter(|(cell, _)| *cell == Some(2)).count(), 3);
        assert_eq!(places(&orders)[..4].last(), Some(&(Some(1), 1.0)));
    }

    #[test]
    fn an_open_end_has_an_end() {
        let (orders, stop) = follow(&sweep(&[998.0], true), passes);
        assert_eq!((orders.len(), stop), (1 + 3 * 3, Stop::Complete));
        let proves_nothing = |order: &NextTrial| Judged { verdict: Some(Verdict::Invalid), ..passes(order) };
        assert_eq!(follow(&sweep(&[1.0], true), proves_nothing).0.len(), 1 + 3);
        let dies = |order: &NextTrial| Judged { subject_exited: order.load == 4.0, ..passes(order) };
        let (orders, stop) = follow(&sweep(&[1.0], true), dies);
        assert_eq!((loads(&orders), stop), (vec![1.0, 2.0, 3.0, 4.0], Stop::SubjectExited));
    }

    #[test]
    fn a_sweep_that_was_cut_off_anywhere_goes_on_as_if_it_had_not_been() {
        let refuses = |order: &NextTrial| Judged { request_failed: order.load >= 6.0, ..passes(order) };
        let schedule = sweep(&[1.0, 3.0], true);
        let (orders, _) = follow(&schedule, refuses);
        let done: Vec<Judged> = orders.iter().map(refuses).collect();
        for held in 0..orders.len() {
            let mut before = done[..held].to_vec();
            before.reverse();
            assert_eq!(schedule.next(&before), Next::Trial(orders[held].clone()));
        }
        let mut places = places(&orders);
        places.dedup();
        assert_eq!(places.len(), 3 * 5, "nothing twice");
    }
}
