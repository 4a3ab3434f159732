//! An objective: `NAME OP VALUE [unit]` over the figures of a rung, such as `ticks.late_share < 25%`.
//!
//! It is written, stored and shown as the same text. Parsing refuses what could not be evaluated, and suggests the
//! nearest known name and an example, so an accepted plan holds only meaningful objectives.
//! Bad messages (refused, lost, never sent, never answered) enter percentiles of the response as infinite: an objective
//! cannot be met by answering only the easy ones. Late answers enter the percentile with their actual time.

use std::fmt;
use std::str::FromStr;

use measure::Trial;
use measure::distribution::samples_needed;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

pub use crate::condition::Op;
use crate::condition::{Condition, ConditionError, bound_in, split_number};
use crate::figures::{FigureDoc, FigureValue, Of, Own, Source, UnitKind, bounds, sample};
use crate::wording::{show_number, show_share};

use beyond::{Beyond, samples_to_meet};

/// One condition that a rung must meet.
#[derive(Clone, Debug)]
pub struct Objective {
    figure: &'static FigureDoc,
    op: Op,
    /// in the figure's inner unit
    bound: f64,
    /// the number and unit as their author wrote them
    bound_text: String,
}

/// What an objective says about a trial. Values are in the figure's inner unit, `f64::INFINITY` for *never*.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// it held
    Met {
        /// what was measured; `None` for a percentile that too few samples state
        value: Option<f64>,
        /// for people, how it is known to be met although it has no value
        shown: Option<String>,
    },
    /// it did not
    NotMet {
        /// what was measured, or the bound itself when only "beyond the bound" may be stated
        value: f64,
        /// the same for people: `61.3 ms`, `more than 50ms`
        shown: String,
    },
    /// nobody knows
    CannotTell {
        /// what is missing
        why: String,
        /// where only samples are missing: as many times as many are likely to decide, > 1
        more: Option<f64>,
    },
}

/// An objective that cannot be read: the author's mistake, refused before the run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ObjectiveError {
    /// Nothing is compared; write a comparison and a value.
    #[error("objective \"{text}\" compares nothing; write NAME OP VALUE, for example: {EXAMPLE}")]
    NoComparison {
        /// as written
        text: String,
    },
    /// `=`, `=>`, `<>`.
    #[error(
        "objective \"{text}\": \"{op}\" is no comparison; use < <= > >= == or !=, for example: {EXAMPLE}"
    )]
    UnknownComparison {
        /// as written
        text: String,
        /// the signs
        op: String,
    },
    /// A misspelt figure.
    #[error(
        "objective \"{text}\": there is no figure \"{name}\"; did you mean {nearest}? For example: {example}"
    )]
    UnknownFigure {
        /// as written
        text: String,
        /// the name
        name: String,
        /// the known one
        nearest: &'static str,
        /// of the known one
        example: String,
    },
    /// Not a number, or one with a unit of another kind.
    #[error("objective \"{text}\": {name} is {kind}, but \"{value}\" is not; for example: {example}")]
    WrongValue {
        /// as written
        text: String,
        /// the figure
        name: &'static str,
        /// what it is measured in, with its units
        kind: &'static str,
        /// the text after the comparison
        value: String,
        /// of this figure
        example: String,
    },
    /// `ticks.late_share < 25`.
    #[error(
        "objective \"{text}\": {name} is a share between 0 and 1; did you mean {value}%? For example: {example}"
    )]
    ShareAboveOne {
        /// as written
        text: String,
        /// the figure
        name: &'static str,
        /// the number
        value: String,
        /// of this figure
        example: String,
    },
    /// `audit > ok`.
    #[error("objective \"{text}\": {name} is either ok or not; for example: {name} == ok")]
    NotOrdered {
        /// as written
        text: String,
        /// the figure
        name: &'static str,
    },
}

const EXAMPLE: &str = "ticks.late_share < 25%";

impl Objective {
    /// What is compared.
    pub fn figure(&self) -> &'static FigureDoc {
        self.figure
    }

    /// How it is compared.
    pub fn op(&self) -> Op {
        self.op
    }

    /// With what, in the figure's inner unit.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// Judges one trial. Pure; a figure that was not measured is `CannotTell` and never zero.
    pub fn evaluate(&self, trial: &Trial) -> Outcome {
        let met = |value| Outcome::Met { value: Some(value), shown: None };
        if let Some((least, most)) = bounds(trial, self.figure.name) {
            return self.within(least, most);
        }
        match self.figure.read(trial) {
            FigureValue::Value(value) if self.op.holds(value, self.bound) => met(value),
            FigureValue::Value(value) => Outcome::NotMet { value, shown: self.figure.unit.show(value) },
            FigureValue::Infinite if self.op.holds(f64::INFINITY, self.bound) => met(f64::INFINITY),
            FigureValue::Infinite => Outcome::NotMet { value: f64::INFINITY, shown: "never".to_owned() },
            FigureValue::Absent(why) => Outcome::CannotTell { why: why.to_owned(), more: None },
            FigureValue::TooFew { count, needed } => match self.beyond(trial, self.bound) {
                Some(beyond) => self.by_count(&beyond, trial),
                None => {
                    let more = (count > 0).then(|| needed as f64 / count as f64);
                    let why = format!(
                        "{} needs {} samples and has {}; {}",
                        self.figure.name,
                        show_number(needed as f64),
                        show_number(count as f64),
                        longer(trial, more)
                    );
                    Outcome::CannotTell { why, more }
                }
            },
        }
    }

    /// Of a value that is only known to lie between two: met where both meet it.
    fn within(&self, least: f64, most: f64) -> Outcome {
        let show = |value| self.figure.unit.show(value);
        let is_one = least == most;
        let shown = if is_one { show(most) } else { format!("between {} and {}", show(least), show(most)) };
        let holds = [least, most].map(|value| self.op.holds(value, self.bound));
        let is_exact = matches!(self.op, Op::Equal | Op::Unequal);
        if holds[0] != holds[1] || (is_exact && !is_one && (least..=most).contains(&self.bound)) {
            let why = format!(
                "{} is {shown}: its source does not tell ticks on time and late ones apart",
                self.figure.name
            );
            return Outcome::CannotTell { why, more: None };
        }
        match holds[0] {
            true => Outcome::Met { value: None, shown: Some(shown) },
            false => Outcome::NotMet {
                value: if matches!(self.op, Op::Less | Op::AtMost) { least } else { most },
                shown,
            },
        }
    }

    /// A percentile that too few samples state, by how many of them lie beyond the bound.
    ///
    /// So a server that answers nobody fails even in a short hold, and one that is seldom late passes in it.
    fn by_count(&self, beyond: &Beyond, trial: &Trial) -> Outcome {
        let (bound, allowed) = (&self.bound_text, show_share(beyond.allowed()));
        let [late, all] = [beyond.late(), beyond.all].map(|count| show_number(count as f64));
        let were = if beyond.late() == 1 { "was" } else { "were" };
        if beyond.is_proved_by(beyond.late()) {
            let shown =
                format!("more than {bound} ({late} of {all} samples {were} beyond it, {allowed} may be)");
            return Outcome::NotMet { value: self.bound, shown };
        }
        if beyond.is_surely_kept() {
            let shown = format!("{late} of {all} samples {were} beyond {bound}, {allowed} may be");
            return Outcome::Met { value: None, shown: Some(shown) };
        }
        let needed = beyond.samples_to_decide();
        let more = (beyond.all > 0).then(|| needed as f64 / beyond.all as f64);
        let (name, needed, longer) = (self.figure.name, show_number(needed as f64), longer(trial, more));
        let why = match beyond.late() {
            0 => format!("{name} needs {needed} samples to be met and has {all}; {longer}"),
            _ => format!(
                "{late} of {all} samples {were} beyond {bound}, where {name} leaves {allowed}; about {needed} samples are likely \
                 to decide, so {longer}"
            ),
        };
        Outcome::CannotTell { why, more }
    }

    /// Replies that its percentile needs at the least to be decided: those without a late one that meet an upper bound, and
    /// otherwise those that state it. `None` for figures that are no percentile of requests.
    pub fn samples_of_responses(&self) -> Option<u64> {
        match self.figure.source {
            Source::Quantile(Of::Response | Of::Service | Of::SendLag | Of::Operation(_), q) => {
                Some(match self.op {
                    Op::Less | Op::AtMost => samples_to_meet(q),
                    _ => samples_needed(q),
                })
            }
            _ => None,
        }
    }

    /// The bound in ns when this limits a latency from above, whichever percentile: response, service, deliveries.
    pub fn latency_bound_ns(&self) -> Option<f64> {
        self.bound_of(|of| matches!(of, Of::Response | Of::Service | Of::Delivery | Of::Operation(_)))
    }

    /// The same of one operation alone.
    pub fn bound_of_operation_ns(&self, operation: &str) -> Option<f64> {
        self.bound_of(|of| matches!(of, Of::Operation(name) if name == operation))
    }

    /// The same of the response alone.
    pub(crate) fn response_bound_ns(&self) -> Option<f64> {
        self.bound_of(|of| of == Of::Response)
    }

    fn bound_of(&self, is_one: impl Fn(Of) -> bool) -> Option<f64> {
        let is_meant = self.figure.distribution().is_some_and(is_one);
        (is_meant && matches!(self.op, Op::Less | Op::AtMost)).then_some(self.bound)
    }

    /// Whether an objective over errors is not met by those errors alone that no disturbance causes: wrong, refused or lost
    /// replies, and not what only took too long. `false` for every other figure.
    pub(crate) fn is_certainly_missed(&self, trial: &Trial) -> bool {
        self.figure.certain_reading(trial).is_some_and(|value| !self.op.holds(value, self.bound))
    }

    /// Whether the errors that the server itself caused miss it, whatever the generator did not send or read.
    pub(crate) fn is_missed_by_the_server(&self, trial: &Trial) -> bool {
        self.figure.caused_reading(trial).is_some_and(|value| !self.op.holds(value, self.bound))
    }

    /// Whether the share of samples beyond the bound is as small as the percentile requires, however few samples there
    /// are; `None` without samples, and for figures that are not percentiles with an upper bound.
    pub(crate) fn is_met_by_share(&self, trial: &Trial) -> Option<bool> {
        let beyond = self.beyond(trial, self.bound)?;
        (beyond.all > 0).then(|| !beyond.is_exceeded_by(beyond.late()))
    }

    /// Whether a percentile may be stated, or as many samples lie beyond its bound as that takes; `true` for other figures.
    pub(crate) fn has_many_samples(&self, trial: &Trial) -> bool {
        self.beyond(trial, self.bound).is_none_or(|beyond| beyond.are_many())
    }

    /// Whether a percentile with an upper bound exceeds it by more than `ns`, counting only messages whose time is
    /// known, by the same rules.
    pub(crate) fn is_quantile_missed_by(&self, trial: &Trial, ns: f64) -> bool {
        self.beyond(trial, self.bound + ns).is_some_and(|beyond| beyond.is_proved_by(beyond.timed))
    }

    /// For a percentile with an upper bound: the samples beyond `bound`, in the figure's internal unit.
    fn beyond(&self, trial: &Trial, bound: f64) -> Option<Beyond> {
        let (Source::Quantile(of, q), Op::Less | Op::AtMost) = (self.figure.source, self.op) else {
            return None;
        };
        let (values, never) = sample(trial, of).ok()?;
        let timed = values.count_above(bound * of.per_unit());
        // A late tick makes the next one early, and a late broadcast is late for all of its members.
        let counts_singly =
            !matches!(of, Of::Delivery | Of::TickInterval | Of::TickBusy | Of::ClientInterval);
        Some(Beyond { timed, never, all: values.count() + never, q, counts_singly })
    }
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        Objective::read(text, &|_| None)
    }
}

impl Objective {
    /// Reads an objective over figures that are always there, or over one of the bots' own, such as `move.p99 < 50ms`; `own`
    /// says what their names stand for.
    pub fn read(text: &str, own: &dyn Fn(&str) -> Option<Own>) -> Result<Objective, ObjectiveError> {
        let Condition { text, name, op, value } = Condition::of(text).map_err(|error| match error {
            ConditionError::NoComparison { text } => ObjectiveError::NoComparison { text },
            ConditionError::UnknownComparison { text, op } => ObjectiveError::UnknownComparison { text, op },
        })?;
        let figure = FigureDoc::named(name).or_else(|| FigureDoc::of_bots(name, own));
        let figure = figure.ok_or_else(|| {
            let nearest = FigureDoc::nearest(name);
            ObjectiveError::UnknownFigure {
                text: text.to_owned(),
                name: name.to_owned(),
                nearest: nearest.name,
                example: example(nearest),
            }
        })?;
        let (number, unit) = split_number(value);
        let bound = bound_in(figure.unit, number, unit).ok_or_else(|| ObjectiveError::WrongValue {
            text: text.to_owned(),
            name: figure.name,
            kind: figure.unit.in_words(),
            value: value.to_owned(),
            example: example(figure),
        })?;
        if figure.unit == UnitKind::Share && bound > 1.0 {
            return Err(ObjectiveError::ShareAboveOne {
                text: text.to_owned(),
                name: figure.name,
                value: number.to_owned(),
                example: example(figure),
            });
        }
        if figure.unit == UnitKind::Ok && !matches!(op, Op::Equal | Op::Unequal) {
            return Err(ObjectiveError::NotOrdered { text: text.to_owned(), name: figure.name });
        }
        Ok(Objective { figure, op, bound, bound_text: format!("{number}{unit}") })
    }

    /// Reads one that was accepted before: names of the bots' own were looked up then, and a time has a unit.
    pub(crate) fn stored(text: &str) -> Result<Objective, ObjectiveError> {
        Objective::read(text, &|_| Some(Own::Operation))
            .or_else(|wrong| Objective::read(text, &|_| Some(Own::Value)).map_err(|_| wrong))
    }
}

/// What to do about too few samples, where `more` times as many are likely to be enough; a tenth more, since rates vary.
fn longer(trial: &Trial, more: Option<f64>) -> String {
    let hold_s = trial.hold.as_ref().zip(more).map(|(hold, more)| (hold.seconds() * more * 1.1).ceil());
    match hold_s {
        Some(hold_s) if (1.0..=86_400.0).contains(&hold_s) => format!("hold longer (--hold {hold_s}s)"),
        _ => "hold longer".to_owned(),
    }
}

fn example(figure: &FigureDoc) -> String {
    let condition = match figure.unit {
        UnitKind::Time => "< 50ms",
        UnitKind::Share if figure.name == "connections.open_share" => "> 99%",
        UnitKind::Share if figure.name == "subject.cpu_share" => "< 90%",
        UnitKind::Share => "< 25%",
        UnitKind::Count if figure.name == "connections.open_min" => ">= 1000",
        UnitKind::Count if figure.name == "subject.fds" => "< 10k",
        UnitKind::Count => "== 0",
        UnitKind::Rate => "> 1000",
        UnitKind::Bytes => "< 500MB",
        UnitKind::Number => "< 1.5",
        UnitKind::Ok => "== ok",
    };
    format!("{} {condition}", figure.name)
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.figure.name, self.op.sign(), self.bound_text)
    }
}

impl PartialEq for Objective {
    /// Two objectives are equal when they mean the same, however their bounds are written.
    fn eq(&self, other: &Self) -> bool {
        self.figure.name == other.figure.name && self.op == other.op && self.bound == other.bound
    }
}

impl Serialize for Objective {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Objective {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Objective::stored(&text).map_err(serde::de::Error::custom)
    }
}

mod beyond;
mod unexplained;

#[cfg(test)]
mod tests;
