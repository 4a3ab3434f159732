//! What the servers' command-line options have in common: units, ranges, and shared defaults.

use std::fmt::Debug;
use std::ops::RangeBounds;
use std::time::Duration;

use crate::ServeError;

/// The options of a server that is started without arguments.
pub fn defaults<O: clap::Args>() -> O {
    let command = O::augment_args(clap::Command::new("serve").no_binary_name(true));
    let matches = command.try_get_matches_from(std::iter::empty::<&str>());
    matches.and_then(|matches| O::from_arg_matches(&matches)).expect("every option has a default")
}

/// Refuses a value out of its range by the name of its option.
pub fn check<T: PartialOrd + Debug>(
    option: &'static str,
    value: T,
    allowed: impl RangeBounds<T>,
    range: &'static str,
) -> Result<(), ServeError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(ServeError::Option { option, value: format!("{value:?}"), range })
}

/// A number and its unit, as in `250ms`, from 0 to 24 hours.
pub fn time(text: &str) -> Result<Duration, String> {
    let no_time = || format!("{text:?} is no time from 0s to 24h: a number and ns, us, ms, s, m or h");
    split(text.trim()).and_then(|(number, unit)| scaled(number, unit.trim())).ok_or_else(no_time)
}

/// The same, and 0 without a unit.
pub fn time_or_0(text: &str) -> Result<Duration, String> {
    if text.trim() == "0" { Ok(Duration::ZERO) } else { time(text) }
}

/// Splits a number from its unit; None for any other text.
pub fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit))
}

/// So many of this unit of time, up to 24 hours.
pub fn scaled(number: f64, unit: &str) -> Option<Duration> {
    const DAY: Duration = Duration::from_secs(86_400);
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * seconds).ok().filter(|time| *time <= DAY)
}

/// A number of bytes of at least 1, with its unit.
pub fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => return None,
    };
    let bytes = number * factor;
    (1.0..=1e15).contains(&bytes).then_some(bytes as u64)
}

/// The same as an option's value.
pub fn size(text: &str) -> Result<u64, String> {
    bytes(text).ok_or_else(|| format!("{text:?} is no size: a number and kB, MB or GB"))
}
