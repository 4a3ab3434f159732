//! Values as people write them: `60s`, `2Mticks`, `5000/s`, `500,1000,2000`, `5%`.
//!
//! Pure: text in, numbers out. Values are displayed in the same syntax, so they can be typed in again.
//! Units: durations are ns. Not here: which flag or key a value came from (`layers`), so no message names one.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::plan::{Arrivals, HoldLength, Profile};
use crate::vocabulary;
use crate::workloads::Pairing;

pub mod chat;
pub mod grid;
pub mod http;
pub mod network;
pub mod protobuf;
mod ramp;
mod ticks;

pub use ticks::{pprof, tick_file};

/// No duration in a plan is longer than a week: beyond it the author meant another unit.
pub const DURATION_NS_MAX: u64 = 7 * 24 * 3600 * 1_000_000_000;
/// No rung is higher; more clients than ten million are a slip of the keyboard.
pub const RUNG_MAX: f64 = 10_000_000.0;

const DURATION_UNITS: &str = "ns, us, ms, s, m, h";

/// What is wrong with a value; the caller adds its place and an example.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum UnitError {
    /// nothing but blanks
    #[error("nothing is written")]
    Empty,
    /// no IP address with a port
    #[error("\"{0}\" is not an address to listen on, as 127.0.0.1:8125 is")]
    NotAnAddress(String),
    /// no URL of what answers over plain HTTP
    #[error("\"{text}\" is no {what} is: {why}")]
    NotAnEndpoint {
        /// what it should be, with an example
        what: &'static str,
        /// the URL as written, or a word for one that holds a secret
        text: String,
        /// in a few words
        why: String,
    },
    /// letters where a number belongs, or infinity
    #[error("\"{0}\" is not a number")]
    NotANumber(String),
    /// a half client
    #[error("\"{0}\" is not a whole number")]
    NotWhole(String),
    /// below zero
    #[error("\"{0}\" is negative")]
    Negative(String),
    /// zero, where zero means nothing at all
    #[error("\"{text}\" is zero: {why}")]
    Zero {
        /// as written
        text: String,
        /// what zero would mean here
        why: &'static str,
    },
    /// a bare number, where seconds and milliseconds differ by a thousand
    #[error("\"{text}\" has no unit; say {text}s or {text}ms")]
    NoUnit {
        /// as written
        text: String,
    },
    /// a unit that does not exist
    #[error("\"{text}\" has an unknown unit \"{unit}\"; known: {known}")]
    UnknownUnit {
        /// as written
        text: String,
        /// the part after the number
        unit: String,
        /// what may stand there
        known: &'static str,
    },
    /// below or above what makes sense
    #[error("must be between {least} and {most}, got {text}")]
    OutOfRange {
        /// as written
        text: String,
        /// lowest value
        least: String,
        /// highest value
        most: String,
    },
    /// 5 where 5 % was meant
    #[error("a share is between 0 and 1, or 0% and 100%; got {0}")]
    Share(String),
    /// `1s..500ms`
    #[error("the range {0} is empty; write the smaller end first")]
    EmptyRange(String),
    /// more than one bot can do and still keep its planned instants
    #[error(
        "{text} asks each bot for {asked_per_s:.0} lines/s, but one keeps at most {most_per_s:.0}/s; take more bots"
    )]
    TooDense {
        /// as written
        text: String,
        /// lines per second of one bot
        asked_per_s: f64,
        /// lines per second that one bot keeps
        most_per_s: f64,
    },
    /// letters that one of the dialects does not allow in a room
    #[error(
        "\"{0}\" is no name for a room: up to 32 letters, digits, - and _, a letter or digit first, and no # in front"
    )]
    NotARoom(String),
    /// `stalled`
    #[error("{kind} does not say how many misbehave; write {kind}={example}")]
    NoShare {
        /// the kind of fault
        kind: &'static str,
        /// a share, with a period where one belongs
        example: &'static str,
    },
    /// a storm without an interval
    #[error("reconnect-storm={0} does not say how often; write a time behind the share: 20%@30s")]
    NoPeriod(String),
    /// `stalled=5%@30s`
    #[error("{0} bots misbehave all the time; only a reconnect-storm comes every so often (@)")]
    PeriodOfNoStorm(&'static str),
    /// the same rung twice
    #[error("rung {0} is there twice; each load is climbed once")]
    Duplicate(f64),
    /// no rung at all
    #[error("there is no rung to climb")]
    NoRungs,
    /// neither true nor false
    #[error("\"{0}\" is neither true nor false")]
    NotABoolean(String),
    /// not one of a few words
    #[error("\"{text}\" is unknown; known: {known}")]
    UnknownWord {
        /// as written
        text: String,
        /// what may stand there
        known: &'static str,
        /// the word it is nearest to
        nearest: Option<&'static str>,
    },
}

/// Splits `110ms` into `110` and `ms`.
fn number_and_unit(text: &str) -> (&str, &str) {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number.trim(), unit.trim())
}

/// `whole × factor`, or `None` beyond 64 bits. Whole numbers keep every digit; only fractions go through floats.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value = number.parse::<f64>().ok()? * factor as f64;
    (value.is_finite() && (0.0..u64::MAX as f64).contains(&value)).then_some(value.round() as u64)
}

fn refuse_non_numbers(text: &str, number: &str) -> Result<(), UnitError> {
    if text.is_empty() {
        return Err(UnitError::Empty);
    }
    match number.parse::<f64>() {
        Ok(value) if value < 0.0 => Err(UnitError::Negative(text.into())),
        Ok(value) if value.is_finite() => Ok(()),
        _ => Err(UnitError::NotANumber(text.into())),
    }
}

/// `60s`, `500ms`, `2m`, `1.5s`: ns. Zero is a duration; who cannot use it says so.
pub fn duration_ns(text: &str) -> Result<u64, UnitError> {
    let text = text.trim();
    let (number, unit) = number_and_unit(text);
    refuse_non_numbers(text, number)?;
    let factor = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(UnitError::NoUnit { text: text.into() }),
        _ => {
            return Err(UnitError::UnknownUnit {
                text: text.into(),
                unit: unit.into(),
                known: DURATION_UNITS,
            });
        }
    };
    match scaled(number, factor) {
        Some(ns) if ns <= DURATION_NS_MAX => Ok(ns),
        _ => Err(UnitError::OutOfRange { text: text.into(), least: "0s".into(), most: "168h".into() }),
    }
}

/// A duration between two others, both included; the bounds are shown in the units of `Duration`.
pub fn duration_ns_within(text: &str, least_ns: u64, most_ns: u64) -> Result<u64, UnitError> {
    let ns = duration_ns(text)?;
    if (least_ns..=most_ns).contains(&ns) {
        return Ok(ns);
    }
    let shown = |ns| Duration(ns).to_string();
    Err(UnitError::OutOfRange { text: text.trim().into(), least: shown(least_ns), most: shown(most_ns) })
}

/// A duration in ns, shown in the largest unit that keeps it whole and below minutes: `110ms`, `60s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration(pub u64);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (factor, unit) = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")]
            .into_iter()
            .find(|(factor, _)| self.0.is_multiple_of(*factor))
            .unwrap_or((1, "ns"));
        write!(f, "{}{unit}", self.0 / factor)
    }
}

impl FromStr for HoldLength {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<HoldLength, UnitError> {
        let text = text.trim();
        let (number, unit) = number_and_unit(text);
        let counted = |name: &str| {
            let prefix = unit.strip_suffix(name).or_else(|| unit.strip_suffix(&name[..name.len() - 1]))?;
            match prefix.trim() {
                "" => Some(1),
                "k" | "K" => Some(1_000),
                "M" => Some(1_000_000),
                "G" => Some(1_000_000_000),
                _ => None,
            }
        };
        let zero = || UnitError::Zero { text: text.into(), why: "nothing would be measured" };
        let count = |factor| {
            refuse_non_numbers(text, number)?;
            let whole =
                number.parse::<f64>().is_ok_and(|value| (value * factor as f64).fract().abs() < f64::EPSILON);
            match scaled(number, factor) {
                Some(0) => Err(zero()),
                Some(count) if whole && count <= 1_000_000_000_000 => Ok(count),
                Some(_) if !whole => Err(UnitError::NotWhole(text.into())),
                _ => {
                    Err(UnitError::OutOfRange { text: text.into(), least: "1".into(), most: "1000G".into() })
                }
            }
        };
        if let Some(factor) = counted("ticks") {
            return count(factor).map(HoldLength::Ticks);
        }
        if let Some(factor) = counted("games") {
            return count(factor).map(HoldLength::Games);
        }
        match duration_ns(text) {
            Ok(0) => Err(zero()),
            Ok(ns) => Ok(HoldLength::Time(ns)),
            Err(UnitError::UnknownUnit { text, unit, .. }) => {
                let known = "ns, us, ms, s, m, h, ticks, kticks, Mticks, games";
                Err(UnitError::UnknownUnit { text, unit, known })
            }
            Err(other) => Err(other),
        }
    }
}

impl fmt::Display for HoldLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |f: &mut fmt::Formatter<'_>, count: u64, name| match count {
            _ if count.is_multiple_of(1_000_000) => write!(f, "{}M{name}", count / 1_000_000),
            _ => write!(f, "{count}{name}"),
        };
        match *self {
            HoldLength::Time(ns) => Duration(ns).fmt(f),
            HoldLength::Ticks(count) => counted(f, count, "ticks"),
            HoldLength::Games(count) => counted(f, count, "games"),
        }
    }
}

/// One of a few words, or what it is nearest to.
fn word_of<T: Copy>(text: &str, known: &'static str, words: &[(&'static str, T)]) -> Result<T, UnitError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UnitError::Empty);
    }
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        UnitError::UnknownWord {
            text: text.into(),
            known,
            nearest: vocabulary::nearest(text, words.iter().map(|(word, _)| *word)),
        }
    })
}

/// What a load of scripts counts; true: sessions per second.
pub fn load_of_scripts(text: &str) -> Result<bool, UnitError> {
    word_of(text, "bots, sessions/s", &[("bots", false), ("sessions/s", true)])
}

const ARRIVALS: [(&str, Arrivals); 4] = [
    ("poisson", Arrivals::Poisson),
    ("even", Arrivals::Even),
    ("burst", Arrivals::Burst),
    ("closed", Arrivals::Closed),
];

impl FromStr for Arrivals {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Arrivals, UnitError> {
        word_of(text, "poisson, even, burst, closed", &ARRIVALS)
    }
}

impl FromStr for Profile {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Profile, UnitError> {
        const ALL: [(&str, Profile); 4] =
            [("off", Profile::Off), ("cpu", Profile::Cpu), ("alloc", Profile::Alloc), ("all", Profile::All)];
        word_of(text, "off, cpu, alloc, all", &ALL)
    }
}

const PAIRINGS: [(&str, Pairing); 2] = [("pipelined", Pairing::Pipelined), ("strict", Pairing::Strict)];

impl FromStr for Pairing {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Pairing, UnitError> {
        word_of(text, "pipelined, strict", &PAIRINGS)
    }
}

/// A number and what it is counted in: `2k` is two thousand, `1.5M` one and a half million.
fn number_and_multiple(text: &str) -> (&str, u64) {
    let in_thousands = text.strip_suffix(['k', 'K']).map(|number| (number, 1_000));
    let in_millions = || text.strip_suffix('M').map(|number| (number, 1_000_000));
    let (number, multiple) = in_thousands.or_else(in_millions).unwrap_or((text, 1));
    // The unit may follow a blank, but not stand alone.
    (number.trim_end(), multiple)
}

/// A load or a rate: `2000`, `2k`, `1.5M`. Finite and not negative.
fn amount(text: &str) -> Result<f64, UnitError> {
    let (number, multiple) = number_and_multiple(text);
    refuse_non_numbers(text, number)?;
    let value: f64 = number.parse().map_err(|_| UnitError::NotANumber(text.into()))?;
    Ok(value * multiple as f64)
}

/// A load or a rate between two others, both included.
pub fn amount_within(text: &str, least: f64, most: f64) -> Result<f64, UnitError> {
    let text = text.trim();
    let value = amount(text)?;
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(UnitError::OutOfRange { text: text.into(), least: least.to_string(), most: most.to_string() })
}

/// A number of clients, requesters or operations, between two others, both included: `300`, `2k`, `1.5k`.
pub fn count_within(text: &str, least: u64, most: u64) -> Result<u64, UnitError> {
    let text = text.trim();
    if number_and_multiple(text).1 == 1 {
        return whole_within(text, least, most);
    }
    let value = amount(text)?;
    if value.fract() != 0.0 {
        return Err(UnitError::NotWhole(text.into()));
    }
    amount_within(text, least as f64, most as f64).map(|value| value as u64)
}

/// One rung: a positive number up to `RUNG_MAX`.
pub fn rung_load(text: &str) -> Result<f64, UnitError> {
    let text = text.trim();
    let rung = amount(text)?;
    if rung == 0.0 {
        return Err(UnitError::Zero { text: text.into(), why: "a rung without load measures nothing" });
    }
    if rung > RUNG_MAX {
        return Err(UnitError::OutOfRange {
            text: text.into(),
            least: "1".into(),
            most: RUNG_MAX.to_string(),
        });
    }
    Ok(rung)
}

/// `5%` or `0.05`, in [0, 1].
pub fn share(text: &str) -> Result<f64, UnitError> {
    let text = text.trim();
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text, 1.0),
    };
    refuse_non_numbers(text, number)?;
    let share = number.parse::<f64>().map_err(|_| UnitError::NotANumber(text.into()))? / divisor;
    if share <= 1.0 { Ok(share) } else { Err(UnitError::Share(text.into())) }
}

/// A number between two others, both included.
pub fn number_within(text: &str, least: f64, most: f64) -> Result<f64, UnitError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UnitError::Empty);
    }
    match text.parse::<f64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        Ok(value) if value.is_finite() => {
            Err(UnitError::OutOfRange { text: text.into(), least: least.to_string(), most: most.to_string() })
        }
        _ => Err(UnitError::NotANumber(text.into())),
    }
}

/// A whole number between two others, both included.
pub fn whole_within(text: &str, least: u64, most: u64) -> Result<u64, UnitError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UnitError::Empty);
    }
    match (text.parse::<u64>(), text.parse::<f64>()) {
        (Ok(value), _) if (least..=most).contains(&value) => Ok(value),
        (Err(_), Ok(value)) if value.is_finite() && value.fract() != 0.0 => {
            Err(UnitError::NotWhole(text.into()))
        }
        (_, Ok(value)) if value.is_finite() => {
            Err(UnitError::OutOfRange { text: text.into(), least: least.to_string(), most: most.to_string() })
        }
        _ => Err(UnitError::NotANumber(text.into())),
    }
}

/// Free text without the blanks around it; blanks only say nothing.
pub fn not_blank(text: &str) -> Result<String, UnitError> {
    match text.trim() {
        "" => Err(UnitError::Empty),
        text => Ok(text.to_owned()),
    }
}

/// `true` or `false`, and nothing that only looks like it.
pub fn boolean(text: &str) -> Result<bool, UnitError> {
    match text.trim() {
        "true" => Ok(true),
        "false" => Ok(false),
        "" => Err(UnitError::Empty),
        other => Err(UnitError::NotABoolean(other.into())),
    }
}

#[cfg(test)]
mod tests;
