//! Parses a condition, `NAME OP VALUE`, as used by objectives and by gates of benchmarks.
//!
//! The caller knows which names exist and their units. Pure text and numbers.

use thiserror::Error;

use crate::figures::UnitKind;

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
}

/// A text with one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition<'a> {
    /// all of it, without the blanks around it
    pub text: &'a str,
    /// the text before the comparison
    pub name: &'a str,
    /// the comparison
    pub op: Op,
    /// the text after it
    pub value: &'a str,
}

/// A text that is no condition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConditionError {
    /// Nothing is compared; write a comparison and a value.
    #[error("\"{text}\" compares nothing; write NAME OP VALUE")]
    NoComparison {
        /// as written
        text: String,
    },
    /// `=`, `=>`, `<>`.
    #[error("\"{text}\": \"{op}\" is no comparison; use < <= > >= == or !=")]
    UnknownComparison {
        /// as written
        text: String,
        /// the signs
        op: String,
    },
}

impl<'a> Condition<'a> {
    /// Takes a text apart. Errors: there is no comparison in it, or none of the six.
    pub fn of(text: &'a str) -> Result<Condition<'a>, ConditionError> {
        let text = text.trim();
        let is_sign = |c: char| matches!(c, '<' | '>' | '=' | '!');
        let no_comparison = || ConditionError::NoComparison { text: text.to_owned() };
        let at = text.find(is_sign).ok_or_else(no_comparison)?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let value_at = rest.find(|c| !is_sign(c)).ok_or_else(no_comparison)?;
        let (signs, value) = (&rest[..value_at], rest[value_at..].trim());
        if name.is_empty() || value.is_empty() {
            return Err(no_comparison());
        }
        let &(op, _) = Op::ALL.iter().find(|(_, sign)| *sign == signs).ok_or_else(|| {
            ConditionError::UnknownComparison { text: text.to_owned(), op: signs.to_owned() }
        })?;
        Ok(Condition { text, name, op, value })
    }

    /// The value as a number in the inner unit of its kind; `None` when number or unit do not fit.
    pub fn bound(&self, kind: UnitKind) -> Option<f64> {
        let (number, unit) = split_number(self.value);
        bound_in(kind, number, unit)
    }
}

impl UnitKind {
    /// What a value of this kind is, with its units: `a rate per second (1000, 12k)`.
    pub fn in_words(self) -> &'static str {
        match self {
            UnitKind::Time => "a time (ns, us, ms, s)",
            UnitKind::Share => "a share (25% or 0.25)",
            UnitKind::Count => "a count (12, 12k, 12M)",
            UnitKind::Rate => "a rate per second (1000, 12k)",
            UnitKind::Bytes => "a number of bytes (500MB, 2GiB)",
            UnitKind::Number => "a number without unit (1.5)",
            UnitKind::Ok => "either ok or not",
        }
    }
}

impl Op {
    pub(crate) const ALL: [(Op, &'static str); 6] = [
        (Op::Less, "<"),
        (Op::AtMost, "<="),
        (Op::More, ">"),
        (Op::AtLeast, ">="),
        (Op::Equal, "=="),
        (Op::Unequal, "!="),
    ];

    /// Whether the comparison is true of these.
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Op::Less => value < bound,
            Op::AtMost => value <= bound,
            Op::More => value > bound,
            Op::AtLeast => value >= bound,
            Op::Equal => value == bound,
            Op::Unequal => value != bound,
        }
    }

    pub(crate) fn sign(self) -> &'static str {
        Op::ALL.iter().find(|(op, _)| *op == self).map_or("", |(_, sign)| sign)
    }
}

pub(crate) fn split_number(value: &str) -> (&str, &str) {
    let end = value.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(value.len());
    (&value[..end], value[end..].trim())
}

/// The bound in the inner unit of its kind; `None` when number or unit do not fit.
pub(crate) fn bound_in(kind: UnitKind, number: &str, unit: &str) -> Option<f64> {
    if kind == UnitKind::Ok {
        return (number.is_empty() && unit == "ok").then_some(1.0);
    }
    let per_unit = match kind {
        UnitKind::Time => match unit {
            "ns" => 1.0,
            // Two letters look alike: the micro sign and the Greek mu.
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return None,
        },
        UnitKind::Share => match unit {
            "%" => 0.01,
            "" => 1.0,
            _ => return None,
        },
        UnitKind::Count | UnitKind::Rate => {
            let unit = if kind == UnitKind::Rate { unit.strip_suffix("/s").unwrap_or(unit) } else { unit };
            match unit {
                "" => 1.0,
                "k" => 1e3,
                "M" => 1e6,
                _ => return None,
            }
        }
        UnitKind::Bytes => match unit {
            "" | "B" => 1.0,
            "k" | "kB" => 1e3,
            "M" | "MB" => 1e6,
            "G" | "GB" => 1e9,
            "KiB" => 1024.0,
            "MiB" => 1_048_576.0,
            "GiB" => 1_073_741_824.0,
            _ => return None,
        },
        UnitKind::Number => match unit {
            "" => 1.0,
            _ => return None,
        },
        UnitKind::Ok => return None,
    };
    let number: f64 = number.parse().ok()?;
    // 25% must be the same share as 0.25, which multiplying by 0.01 does not always give.
    Some(if unit == "%" { number / 100.0 } else { number * per_unit })
}
