//! The chat's own values: gaps and line lengths as ranges, rooms, kinds of faults.

use std::str::FromStr;

use super::{UnitError, duration_ns, duration_ns_within, refuse_non_numbers, share, whole_within};
use crate::vocabulary;
use crate::workloads::{FaultKind, FaultSpec, LINE_BYTES_MIN};

/// A bot that speaks more often than this would be a burst, and a thousand lines a second are no chat.
pub const GAP_NS_MIN: u64 = 1_000_000;
const GAP_NS_MAX: u64 = 3_600_000_000_000;
/// The longest line that our own server takes unasked.
pub const LINE_BYTES_MAX: usize = 4096;
const ROOM_BYTES_MAX: usize = 32;
const STORM_PERIOD_NS_MIN: u64 = 1_000_000_000;
const STORM_PERIOD_NS_MAX: u64 = 3_600_000_000_000;
/// Of the crowd, where a storm says only how often it comes.
const STORM_SHARE: f64 = 0.1;

const FAULT_KINDS: [FaultKind; 5] = [
    FaultKind::SlowReader,
    FaultKind::Stalled,
    FaultKind::HalfOpen,
    FaultKind::Malformed,
    FaultKind::ReconnectStorm,
];
const MISCONDUCTS_LISTED: &str = "slow-reader, stalled, half-open, malformed, reconnect-storm";

/// `500ms..1s`, or `750ms` for equal gaps: shortest and longest time between two lines of one bot, ns.
pub fn gap_ns(text: &str) -> Result<(u64, u64), UnitError> {
    let (from, to) = ends(text, |end| {
        let ns = duration_ns(end)?;
        match ns {
            0 => Err(UnitError::Zero { text: end.into(), why: "a bot would never stop talking" }),
            _ if ns < GAP_NS_MIN => Err(UnitError::TooDense {
                text: end.into(),
                asked_per_s: 1e9 / ns as f64,
                most_per_s: 1e9 / GAP_NS_MIN as f64,
            }),
            _ => duration_ns_within(end, GAP_NS_MIN, GAP_NS_MAX),
        }
    })?;
    in_order(text, from, to)
}

/// `15..58`, or `40` for equal lines: shortest and longest line in bytes, its end included.
pub fn line_bytes(text: &str) -> Result<(usize, usize), UnitError> {
    let (from, to) = ends(text, |end| whole_within(end, LINE_BYTES_MIN as u64, LINE_BYTES_MAX as u64))?;
    // At most 4096 by the line above.
    in_order(text, from as usize, to as usize)
}

/// The two ends of `A..B`, or the same one twice.
fn ends<T: Copy>(text: &str, read: impl Fn(&str) -> Result<T, UnitError>) -> Result<(T, T), UnitError> {
    match text.trim().split_once("..") {
        Some((from, to)) => Ok((read(from.trim())?, read(to.trim())?)),
        None => read(text.trim()).map(|both| (both, both)),
    }
}

fn in_order<T: Ord>(text: &str, from: T, to: T) -> Result<(T, T), UnitError> {
    if from <= to { Ok((from, to)) } else { Err(UnitError::EmptyRange(text.trim().into())) }
}

/// A room's name, in the letters that every dialect allows.
pub fn room(text: &str) -> Result<String, UnitError> {
    let text = text.trim();
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    match text.as_bytes() {
        [] => Err(UnitError::Empty),
        [first, ..]
            if first.is_ascii_alphanumeric()
                && text.bytes().all(is_letter)
                && text.len() <= ROOM_BYTES_MAX =>
        {
            Ok(text.to_owned())
        }
        _ => Err(UnitError::NotARoom(text.into())),
    }
}

impl FaultKind {
    /// As it is written: `slow-reader`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl FromStr for FaultSpec {
    type Err = UnitError;

    /// `stalled=10%`, `reconnect-storm=30s`, `reconnect-storm=20%@30s`.
    fn from_str(text: &str) -> Result<FaultSpec, UnitError> {
        let text = text.trim();
        let (name, value) = text.split_once('=').map_or((text, ""), |(name, value)| (name, value.trim()));
        let name = name.trim();
        if name.is_empty() {
            return Err(UnitError::Empty);
        }
        let Some(kind) = FAULT_KINDS.into_iter().find(|kind| kind.name() == name) else {
            let nearest = vocabulary::nearest(name, FAULT_KINDS.map(FaultKind::name));
            return Err(UnitError::UnknownWord { text: name.into(), known: MISCONDUCTS_LISTED, nearest });
        };
        if value.is_empty() {
            let example = if kind == FaultKind::ReconnectStorm { "20%@30s" } else { "5%" };
            return Err(UnitError::NoShare { kind: kind.name(), example });
        }
        let (share_said, period_said) = match value.split_once('@') {
            Some((share, period)) => (Some(share.trim()), Some(period.trim())),
            None if kind == FaultKind::ReconnectStorm && value.ends_with(|c: char| c.is_alphabetic()) => {
                (None, Some(value))
            }
            None => (Some(value), None),
        };
        let period_ns = match (kind, period_said) {
            (FaultKind::ReconnectStorm, Some(period)) => {
                duration_ns_within(period, STORM_PERIOD_NS_MIN, STORM_PERIOD_NS_MAX)?
            }
            (FaultKind::ReconnectStorm, None) => return Err(UnitError::NoPeriod(value.into())),
            (_, Some(_)) => return Err(UnitError::PeriodOfNoStorm(kind.name())),
            (_, None) => 0,
        };
        let share = share_said.map_or(Ok(STORM_SHARE), some_share)?;
        Ok(FaultSpec { kind, share, period_ns })
    }
}

/// A share above zero.
fn some_share(text: &str) -> Result<f64, UnitError> {
    refuse_non_numbers(text, text.trim_end_matches('%').trim())?;
    match share(text)? {
        0.0 => Err(UnitError::Zero { text: text.into(), why: "no bot would misbehave; leave it out" }),
        share => Ok(share),
    }
}

/// A share in percent, without the dust of binary fractions: 0.07 × 100 is 7.000000000000001.
pub(crate) fn percent(share: f64) -> f64 {
    (share * 1e10).round() / 1e8
}

#[cfg(test)]
mod tests;
