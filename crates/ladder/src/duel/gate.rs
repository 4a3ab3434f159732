//! Gates of a duel: how much a figure of B may differ from A's, `response.p99 <= +5%`.
//!
//! A figure that can be 0 has no ratio: shares are gated in percentage points (`ticks.late_share <= +1pp`), counts in
//! absolute numbers (`errors <= +0`). A ratio may also be written as a factor: `ops >= 1.0x`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use ts_rs::TS;

use crate::condition::{Condition, ConditionError, Op};
use crate::duel::interval::Scale;
use crate::figures::{FigureDoc, UnitKind};

/// A bound on B's change of a figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Gate {
    text: String,
    figure: &'static FigureDoc,
    op: Op,
    /// on the figure's scale: ln(B / A), or B − A
    bound: f64,
}

/// Whether a gate is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum GateState {
    /// the whole interval keeps the bound
    Met,
    /// the whole interval is beyond it
    NotMet,
    /// the bound is within the interval
    Undecided,
}

impl GateState {
    /// As on screen.
    pub fn in_words(self) -> &'static str {
        match self {
            GateState::Met => "met",
            GateState::NotMet => "not met",
            GateState::Undecided => "undecided",
        }
    }
}

/// A gate that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GateError {
    /// It is no comparison.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// Nothing is called that.
    #[error(
        "\"{text}\": there is no figure \"{name}\"; did you mean {nearest}? stepladder climb --help lists all"
    )]
    UnknownFigure {
        /// as written
        text: String,
        /// its first part
        name: String,
        /// a known one
        nearest: &'static str,
    },
    /// It has no size, so it cannot change by an amount.
    #[error(
        "\"{text}\": {name} is either ok or not and has no size to compare; let it be an objective (--expect)"
    )]
    NoSize {
        /// as written
        text: String,
        /// the figure
        name: &'static str,
    },
    /// A measured difference is never exactly a number.
    #[error(
        "\"{text}\": a change is measured with an interval and equals no number exactly; use < <= > or >="
    )]
    Equality {
        /// as written
        text: String,
    },
    /// The unit of the change does not fit the figure.
    #[error("\"{text}\": \"{value}\" is not how {name} changes; write {expected}")]
    WrongValue {
        /// as written
        text: String,
        /// the figure
        name: &'static str,
        /// the text after the comparison
        value: String,
        /// what may stand there
        expected: &'static str,
    },
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Gate, GateError> {
        let condition = Condition::of(text)?;
        let text = condition.text.to_owned();
        let Some(figure) = super::figure_named(condition.name) else {
            let nearest = FigureDoc::nearest(condition.name).name;
            return Err(GateError::UnknownFigure { text, name: condition.name.to_owned(), nearest });
        };
        if figure.unit == UnitKind::Ok {
            return Err(GateError::NoSize { text, name: figure.name });
        }
        if matches!(condition.op, Op::Equal | Op::Unequal) {
            return Err(GateError::Equality { text });
        }
        match bound(figure, condition.value) {
            Some(bound) => Ok(Gate { text, figure, op: condition.op, bound }),
            None => {
                let value = condition.value.to_owned();
                Err(GateError::WrongValue { text, name: figure.name, value, expected: expected(figure) })
            }
        }
    }
}

/// What a gate on a figure may ask for.
fn expected(figure: &FigureDoc) -> &'static str {
    match (Scale::of(figure), figure.unit) {
        (Scale::Ratio, _) => {
            "a change in percent above -100, as in <= +5% or <= -10%, or a factor, as in <= 1.05x"
        }
        (Scale::Difference, UnitKind::Share) => {
            "a difference in percentage points, as in <= +1pp, because a share may be 0 and has no ratio then"
        }
        (Scale::Difference, _) => "a difference as a number, as in <= +0, because a count may be 0",
    }
}

fn bound(figure: &FigureDoc, value: &str) -> Option<f64> {
    let (sign, rest) = match value.as_bytes().first()? {
        b'+' => (1.0, &value[1..]),
        b'-' => (-1.0, &value[1..]),
        _ => (1.0, value),
    };
    // f64 reads "inf", "nan" and a second sign.
    let number = |text: &str| -> Option<f64> {
        let text = text.trim();
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        is_plain.then(|| text.parse::<f64>().ok()).flatten().map(|number| sign * number)
    };
    match (Scale::of(figure), figure.unit) {
        (Scale::Ratio, _) => {
            // A factor has no sign.
            if let Some(factor) = value.strip_suffix('x') {
                return number(factor).filter(|factor| *factor > 0.0 && rest == value).map(f64::ln);
            }
            let change = number(rest.strip_suffix('%')?)? / 100.0;
            (change > -1.0).then(|| change.ln_1p())
        }
        (Scale::Difference, UnitKind::Share) => Some(number(rest.strip_suffix("pp")?)? / 100.0),
        (Scale::Difference, _) => number(rest),
    }
}

impl Gate {
    /// What it is about.
    pub fn figure(&self) -> &'static FigureDoc {
        self.figure
    }

    /// Whether it is met by a figure that lies within `surely` at the level of one gate, and within `jointly` at the
    /// level of all gates together. All must be met, so each may use its own level for that; one missed gate is enough,
    /// so a miss is decided at the level of all.
    pub fn state(&self, surely: Option<(f64, f64)>, jointly: Option<(f64, f64)>) -> GateState {
        let keeps = |(low, high): (f64, f64)| match self.op {
            Op::Less | Op::AtMost => self.op.holds(high, self.bound),
            _ => self.op.holds(low, self.bound),
        };
        let breaks = |(low, high): (f64, f64)| match self.op {
            Op::Less | Op::AtMost => !self.op.holds(low, self.bound),
            _ => !self.op.holds(high, self.bound),
        };
        if surely.is_some_and(keeps) {
            GateState::Met
        } else if jointly.is_some_and(breaks) {
            GateState::NotMet
        } else {
            GateState::Undecided
        }
    }
}

impl PartialEq for Gate {
    fn eq(&self, other: &Gate) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Gate {
    type Error = GateError;

    fn try_from(text: String) -> Result<Gate, GateError> {
        text.parse()
    }
}

impl From<Gate> for String {
    fn from(gate: Gate) -> String {
        gate.text
    }
}
