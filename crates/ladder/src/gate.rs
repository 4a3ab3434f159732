//! A gate: a condition on a whole run that decides the exit code, `capacity >= 1000` or `response.p99 at 1000 < 50ms`.
//!
//! A climb that finds a server's limit has not failed; a gate defines what counts as failure. It judges no rung.
//! It is written, stored and shown as the same text. A gate that could never fail or never hold is refused before the
//! run.
//! Invariant: a gate that cannot be evaluated is neither met nor missed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use ts_rs::TS;

use crate::capacity::{Capacity, is_majority};
use crate::condition::{Condition, ConditionError, Op};
use crate::contract::Rung;
use crate::judge::Verdict;
use crate::objective::{Objective, ObjectiveError};
use crate::wording::show_number;

const CAPACITY: &str = "capacity";
const AT: &str = " at ";
const EXAMPLES: &str = "capacity >= 1000, or response.p99 at 1000 < 50ms";

/// A condition that a run must meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    text: String,
    asks: Asks,
}

#[derive(Clone, Debug, PartialEq)]
enum Asks {
    /// of the bounds
    Capacity { op: Op, load: f64 },
    /// of a figure at one load
    Figure { objective: Objective, load: f64 },
}

/// What a run says of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct GateResult {
    /// as its author wrote it
    pub gate: String,
    /// null where that cannot be told
    pub met: Option<bool>,
    /// what was found, or what is missing
    pub found: String,
}

/// A gate that cannot be read: the author's mistake, refused before the run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum GateError {
    /// nothing is compared
    #[error("gate {0}; for example: {EXAMPLES}")]
    Condition(#[from] ConditionError),
    /// the figure's part
    #[error("of the gate, {0}")]
    Objective(#[from] ObjectiveError),
    /// `capacity == 1000`
    #[error(
        "gate \"{0}\": a capacity lies between two bounds, so it is compared by < <= > or >=; for example: capacity >= 1000"
    )]
    ExactCapacity(String),
    /// `capacity >= many`
    #[error("gate \"{text}\": \"{value}\" is no load; write a number above 0, for example: {EXAMPLES}")]
    NoLoad {
        /// as written
        text: String,
        /// where the load should stand
        value: String,
    },
    /// `response.p99 < 50ms`
    #[error("gate \"{text}\": at which load? write {name} at LOAD, for example: {EXAMPLES}")]
    NoPlace {
        /// as written
        text: String,
        /// the figure
        name: String,
    },
}

impl Gate {
    /// The load at which it asks for a figure; `None`: it asks for the capacity.
    pub fn load(&self) -> Option<f64> {
        match &self.asks {
            Asks::Figure { load, .. } => Some(*load),
            Asks::Capacity { .. } => None,
        }
    }

    /// What it asks of the rungs of a load, as an objective that decides nothing about them.
    pub fn objective(&self) -> Option<&Objective> {
        match &self.asks {
            Asks::Figure { objective, .. } => Some(objective),
            Asks::Capacity { .. } => None,
        }
    }

    /// What a run says of it. The evidence of the rungs must have been gathered with `Criteria::gates`.
    pub fn result(&self, capacity: &Capacity, rungs: &[Rung]) -> GateResult {
        let (met, found) = match &self.asks {
            Asks::Capacity { op, load } => of_capacity(*op, *load, capacity),
            Asks::Figure { objective, load } => of_rungs(objective, *load, rungs),
        };
        GateResult { gate: self.text.clone(), met, found }
    }
}

/// The capacity itself is not known, only that it is at least the lower bound and below the upper one.
fn of_capacity(op: Op, load: f64, capacity: &Capacity) -> (Option<bool>, String) {
    let (lower, upper) = (capacity.lower_bound, capacity.upper_bound);
    let is_above = match op {
        Op::More => lower.is_some_and(|lower| lower > load),
        _ => lower.is_some_and(|lower| lower >= load),
    };
    let is_below = upper.is_some_and(|upper| upper <= load);
    let met = match op {
        Op::AtLeast | Op::More if is_above => Some(true),
        Op::AtLeast | Op::More if is_below => Some(false),
        Op::AtMost | Op::Less if is_below => Some(true),
        Op::AtMost | Op::Less if is_above => Some(false),
        _ => None,
    };
    let found = match (lower, upper) {
        (Some(lower), Some(upper)) => format!("{} held, {} did not", show_number(lower), show_number(upper)),
        (Some(lower), None) => format!("{} held, and nothing failed", show_number(lower)),
        (None, Some(upper)) => format!("{} did not hold, and no smaller load did", show_number(upper)),
        (None, None) => "no load was found to hold or to fail".to_owned(),
    };
    (met, found)
}

/// Of several holds the majority decides, as it does about the load.
fn of_rungs(objective: &Objective, load: f64, rungs: &[Rung]) -> (Option<bool>, String) {
    let text = objective.to_string();
    let there = || rungs.iter().filter(|rung| rung.load == load);
    // Latencies caused by this machine say nothing about the server, for better or worse.
    let is_fair = |rung: &&Rung| !matches!(rung.verdict, Verdict::GeneratorLimited | Verdict::Invalid);
    let results = || {
        there()
            .filter(is_fair)
            .flat_map(|rung| rung.evidence.gates.iter().filter(|one| one.objective == text))
    };
    let has_failed = there().any(|rung| rung.verdict == Verdict::Fail);
    let count = |wanted: bool| results().filter(|one| one.met == Some(wanted)).count();
    let (met, missed) = (count(true), count(false));
    if met + missed == 0 {
        let notes = results().find_map(|one| one.note.clone()).into_iter();
        let reasons = there().find_map(|rung| rung.reason.clone().or_else(|| rung.remark.clone()));
        let mut why = notes.chain(reasons).collect::<Vec<_>>().join("; ");
        if there().next().is_none() {
            why = "this load was not held".to_owned();
        } else if why.is_empty() {
            why = "it was not measured".to_owned();
        }
        // A server that did not hold the load does not meet a gate by lacking the figure.
        return (has_failed.then_some(false), why);
    }
    let mut values: Vec<f64> = results().filter_map(|one| one.value).collect();
    values.sort_by(f64::total_cmp);
    let shown = match (values.first(), values.last()) {
        (Some(least), Some(most)) if least == most => objective.figure().unit.show(*least),
        (Some(least), Some(most)) => {
            format!("{} to {}", objective.figure().unit.show(*least), objective.figure().unit.show(*most))
        }
        // A figure with too few samples has no value.
        _ => results()
            .filter(|one| one.met == Some(true))
            .find_map(|one| one.note.as_ref())
            .map_or_else(|| "never".to_owned(), |note| format!("within its bound ({note})")),
    };
    let holds =
        if met + missed == 1 { String::new() } else { format!(", met by {met} of {} holds", met + missed) };
    (Some(is_majority(met, missed)), format!("{} was {shown}{holds}", objective.figure().name))
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        Gate::read(text, &|figure| figure.parse())
    }
}

impl Gate {
    /// Reads a gate; `objective` reads what it asks of a figure, which may be one of the bots' own.
    pub fn read(
        text: &str,
        objective: &dyn Fn(&str) -> Result<Objective, ObjectiveError>,
    ) -> Result<Gate, GateError> {
        let Condition { text, name, op, value } = Condition::of(text)?;
        let load_of = |value: &str| {
            let load = value.trim().replace(['_', ','], "").parse::<f64>();
            let no_load = || GateError::NoLoad { text: text.to_owned(), value: value.trim().to_owned() };
            load.ok().filter(|load| load.is_finite() && *load > 0.0).ok_or_else(no_load)
        };
        let asks = if name == CAPACITY {
            if matches!(op, Op::Equal | Op::Unequal) {
                return Err(GateError::ExactCapacity(text.to_owned()));
            }
            Asks::Capacity { op, load: load_of(value)? }
        } else {
            let (figure, load) = name
                .split_once(AT)
                .ok_or_else(|| GateError::NoPlace { text: text.to_owned(), name: name.to_owned() })?;
            let objective = objective(&format!("{} {} {value}", figure.trim(), op.sign()))?;
            Asks::Figure { objective, load: load_of(load)? }
        };
        Ok(Gate { text: text.to_owned(), asks })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Gate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Gate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Gate::read(&text, &Objective::stored).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use measure::LoadUnit;

    use super::*;
    use crate::judge::{Criteria, Verdict, judge};
    use crate::schedule::Judged;
    use crate::testing::TrialBuilder;

    fn capacity(held: &[(f64, Verdict)]) -> Capacity {
        let trials: Vec<Judged> = held
            .iter()
            .map(|&(load, verdict)| Judged { load, verdict: Some(verdict), ..Judged::default() })
            .collect();
        crate::capacity(LoadUnit::Clients, &trials, None)
    }

    #[test]
    fn a_gate_on_the_capacity_is_told_by_its_bounds() {
        use Verdict::{Fail, Pass};
        let between = capacity(&[(500.0, Pass), (1000.0, Fail)]);
        let check = |text: &str, capacity: &Capacity, met: Option<bool>| {
            assert_eq!(text.parse::<Gate>().unwrap().result(capacity, &[]).met, met, "{text}");
        };
        check("capacity >= 500", &between, Some(true));
        check("capacity > 500", &between, None);
        check("capacity >= 700", &between, None);
        check("capacity >= 1000", &between, Some(false));
        check("capacity >= 2,000", &between, Some(false));
        check("capacity < 1000", &between, Some(true));
        check("capacity < 500", &between, Some(false));
        let held = capacity(&[(500.0, Pass)]);
        check("capacity >= 500", &held, Some(true));
        check("capacity >= 600", &held, None);
        let none = capacity(&[(500.0, Fail)]);
        check("capacity >= 500", &none, Some(false));
        check("capacity >= 400", &none, None);
        check("capacity >= 1", &capacity(&[]), None);
    }

    fn rung(load: f64, gate: &Gate) -> Rung {
        let trial = TrialBuilder::asking(load).build();
        let gates = vec![gate.objective().unwrap().clone()];
        let terms = Criteria { gates, patience_ns: 1_000_000_000, ..Criteria::default() };
        crate::rung(&trial, &judge(&trial, None, &terms))
    }

    #[test]
    fn a_gate_on_a_figure_asks_the_rungs_of_its_load() {
        let check = |text: &str, met: Option<bool>| {
            let gate: Gate = text.parse().unwrap();
            let found = gate.result(&capacity(&[]), &[rung(500.0, &gate), rung(1000.0, &gate)]);
            assert_eq!(found.met, met, "{found:?}");
        };
        check("response.p99 at 500 < 1s", Some(true));
        check("response.p99 at 1000 < 1ns", Some(false));
        check("response.p99 at 2000 < 1s", None);
        check("deliveries.lost at 500 == 0", None);
    }

    #[test]
    fn a_gate_that_few_samples_meet_says_how_many() {
        let gate: Gate = "response.p99 at 20 < 1s".parse().unwrap();
        let found = gate.result(&capacity(&[]), &[rung(20.0, &gate)]);
        let says = "response.p99 was within its bound (0 of 1200 samples were beyond 1s, 1 % may be)";
        assert_eq!((found.met, found.found.as_str()), (Some(true), says));
    }

    #[test]
    fn a_gate_that_cannot_be_read_is_refused_in_words_that_help() {
        let refused = |text: &str| text.parse::<Gate>().unwrap_err().to_string();
        assert!(refused("capacity").contains("compares nothing"));
        assert!(refused("capacity == 3").contains("between two bounds"));
        assert!(refused("capacity >= many").contains("is no load"));
        assert!(refused("capacity >= 0").contains("is no load"));
        assert!(refused("response.p99 < 50ms").contains("at which load?"));
        assert!(refused("response.p98 at 10 < 50ms").contains("did you mean"));
        assert!(refused("response.p99 at x < 50ms").contains("is no load"));
    }

    #[test]
    fn it_is_stored_as_it_was_written() {
        let gate: Gate = " response.p99 at 1,000 < 50ms ".parse().unwrap();
        let stored = serde_json::to_string(&gate).unwrap();
        assert_eq!(stored, "\"response.p99 at 1,000 < 50ms\"");
        assert_eq!(serde_json::from_str::<Gate>(&stored).unwrap(), gate);
        assert_eq!(gate.load(), Some(1000.0));
    }
}
