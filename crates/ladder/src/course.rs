//! The course: the next trial of a run, as a pure function of those that were held.
//!
//! A run that was cut off goes on where its stored trials end, and replaying them asks for the same trials again.
//! Invariant: no trial is asked for twice, and none after something that would make it meaningless.
//! Not here: how a trial is run, and what its numbers mean (`judge`). Search and duels will be further courses.

use std::fmt;

use measure::Trial;
use measure::trial::kind;
use serde::{Deserialize, Serialize};

use crate::judge::{Judgement, Verdict};

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Purpose {
    /// the null server at an easy rate: our own share of every latency
    #[serde(rename = "calibration latency")]
    CalibrationLatency,
    /// the null server as fast as it goes: our own ceiling
    #[serde(rename = "calibration ceiling")]
    CalibrationCeiling,
    /// the subject under one load
    #[serde(rename = "rung")]
    Rung,
}

impl Purpose {
    /// All purposes.
    pub const ALL: [Purpose; 3] = [Purpose::CalibrationLatency, Purpose::CalibrationCeiling, Purpose::Rung];

    /// Its name in the head of a trial.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::CalibrationLatency => "calibration latency",
            Purpose::CalibrationCeiling => "calibration ceiling",
            Purpose::Rung => "rung",
        }
    }

    /// The purpose of that name.
    pub fn named(name: &str) -> Option<Purpose> {
        Purpose::ALL.into_iter().find(|purpose| purpose.name() == name)
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A trial that a course asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialOrder {
    /// number within the run, from 0
    pub seq: u32,
    /// what it is for
    pub purpose: Purpose,
    /// the load, in the unit of its bots
    pub load: f64,
}

/// A trial that was held, as far as a course must know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// what it was for
    pub purpose: Purpose,
    /// the load it was asked to hold
    pub load: f64,
    /// its verdict; `None` for a calibration, which is not judged
    pub verdict: Option<Verdict>,
    /// the user ended it
    pub was_interrupted: bool,
    /// the subject's process ended during it
    pub subject_exited: bool,
}

impl Judged {
    /// What a course must know of a trial; `None` when its purpose is no word of ours.
    pub fn of(trial: &Trial, judgement: Option<&Judgement>) -> Option<Judged> {
        let drained = trial.event(kind::DRAIN).is_some_and(|event| event.text == "interrupted");
        let subject_exited = trial.event(kind::SUBJECT_EXITED).is_some();
        Some(Judged {
            purpose: Purpose::named(&trial.head.purpose)?,
            load: trial.head.load,
            verdict: judgement.map(|judgement| judgement.verdict),
            was_interrupted: trial.event("interrupted").is_some() || drained,
            subject_exited,
        })
    }
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// hold this
    Trial(TrialOrder),
    /// nothing; why
    Done(Stop),
}

/// Why a course ends.
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
pub enum Course {
    /// the rungs of a list, once each
    List(ListCourse),
}

impl Course {
    /// The next trial, given all that were held, in any order.
    pub fn next(&self, done: &[Judged]) -> Next {
        match self {
            Course::List(list) => list.next(done),
        }
    }
}

/// Calibrations as listed, then each rung once in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListCourse {
    /// purpose and load of each calibration, in their order
    pub calibrations: Vec<(Purpose, f64)>,
    /// loads of the rungs, in any order, each held as often as it is listed
    pub rungs: Vec<f64>,
}

impl ListCourse {
    /// The next trial, given all that were held, in any order.
    ///
    /// A rung that could not be judged is not repeated: whatever spoiled it would do so again, and its user can see it.
    /// Loads go up, so what stays behind in the server from a high load cannot spoil a low one.
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
        let mut held: Vec<(Purpose, f64)> = done.iter().map(|trial| (trial.purpose, trial.load)).collect();
        let asked =
            self.calibrations.iter().copied().chain(rungs.into_iter().map(|load| (Purpose::Rung, load)));
        for order in asked {
            match held.iter().position(|trial| *trial == order) {
                Some(at) => {
                    held.swap_remove(at);
                }
                None => {
                    let (purpose, load) = order;
                    return Next::Trial(TrialOrder { seq: done.len() as u32, purpose, load });
                }
            }
        }
        Next::Done(Stop::Complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course() -> Course {
        Course::List(ListCourse {
            calibrations: vec![(Purpose::CalibrationLatency, 100.0), (Purpose::CalibrationCeiling, 64.0)],
            rungs: vec![2000.0, 500.0, 1000.0],
        })
    }

    /// Follows a course; `verdict` says how each rung goes.
    fn follow(course: &Course, held: impl Fn(&TrialOrder) -> Judged) -> (Vec<TrialOrder>, Stop) {
        let (mut done, mut orders) = (Vec::new(), Vec::new());
        loop {
            match course.next(&done) {
                Next::Done(stop) => return (orders, stop),
                Next::Trial(order) => {
                    done.push(held(&order));
                    orders.push(order);
                    assert!(orders.len() < 100, "a course must end");
                }
            }
        }
    }

    fn passes(order: &TrialOrder) -> Judged {
        let verdict = (order.purpose == Purpose::Rung).then_some(Verdict::Pass);
        let (was_interrupted, subject_exited) = (false, false);
        Judged { purpose: order.purpose, load: order.load, verdict, was_interrupted, subject_exited }
    }

    fn loads(orders: &[TrialOrder]) -> Vec<f64> {
        orders.iter().filter(|order| order.purpose == Purpose::Rung).map(|order| order.load).collect()
    }

    #[test]
    fn calibrations_come_first_then_each_rung_once_upwards() {
        let (orders, stop) = follow(&course(), passes);
        assert_eq!(stop, Stop::Complete);
        assert_eq!(orders.iter().map(|order| order.seq).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(orders[0].purpose, Purpose::CalibrationLatency);
        assert_eq!(orders[1].purpose, Purpose::CalibrationCeiling);
        assert_eq!(loads(&orders), [500.0, 1000.0, 2000.0]);
    }

    #[test]
    fn failed_limited_and_invalid_rungs_are_held_once_and_do_not_end_the_climb() {
        for verdict in [Verdict::Fail, Verdict::GeneratorLimited, Verdict::Inconclusive, Verdict::Invalid] {
            let (orders, stop) =
                follow(&course(), |order| Judged { verdict: Some(verdict), ..passes(order) });
            assert_eq!((loads(&orders), stop), (vec![500.0, 1000.0, 2000.0], Stop::Complete), "{verdict}");
        }
    }

    #[test]
    fn nothing_follows_a_dead_subject_or_an_interruption() {
        let dies = |order: &TrialOrder| Judged { subject_exited: order.load == 1000.0, ..passes(order) };
        let (orders, stop) = follow(&course(), dies);
        assert_eq!((loads(&orders), stop), (vec![500.0, 1000.0], Stop::SubjectExited));
        let stops = |order: &TrialOrder| Judged { was_interrupted: order.load == 64.0, ..passes(order) };
        let (orders, stop) = follow(&course(), stops);
        assert_eq!((loads(&orders), stop), (vec![], Stop::Interrupted));
    }

    #[test]
    fn the_null_server_of_a_calibration_may_end() {
        let ends =
            |order: &TrialOrder| Judged { subject_exited: order.purpose != Purpose::Rung, ..passes(order) };
        assert_eq!(follow(&course(), ends).1, Stop::Complete);
    }

    #[test]
    fn a_load_that_is_listed_twice_is_held_twice() {
        let twice = Course::List(ListCourse { calibrations: Vec::new(), rungs: vec![500.0, 500.0] });
        assert_eq!(loads(&follow(&twice, passes).0), [500.0, 500.0]);
    }

    #[test]
    fn the_next_trial_follows_from_the_stored_ones_in_any_order() {
        let mut done: Vec<Judged> = follow(&course(), passes).0.iter().take(3).map(passes).collect();
        let next = course().next(&done);
        done.reverse();
        assert_eq!(course().next(&done), next);
        assert_eq!(next, Next::Trial(TrialOrder { seq: 3, purpose: Purpose::Rung, load: 1000.0 }));
    }

    #[test]
    fn purposes_are_stored_by_their_names() {
        for purpose in Purpose::ALL {
            assert_eq!(Purpose::named(purpose.name()), Some(purpose));
            assert_eq!(serde_json::to_string(&purpose).unwrap(), format!("\"{purpose}\""));
        }
    }
}
