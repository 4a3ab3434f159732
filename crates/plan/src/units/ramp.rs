//! How bots arrive, as people write it: `2ms` or `2ms/each`, `5000/s`, `60s/all`, `0s`.

use std::fmt;
use std::str::FromStr;

use super::{Duration, UnitError, duration_ns, number_and_multiple, refuse_non_numbers};
use crate::plan::{Ramp, RampRule};

const UNITS: &str = "ns, us, ms, s, m, h, /s";
/// What may follow the slash.
const BEHIND_SLASH: &str = "/s after a number, /each or /all after a time";

impl FromStr for RampRule {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<RampRule, UnitError> {
        let text = text.trim();
        let Some((value, of)) = text.rsplit_once('/') else {
            return of_each(text).map_err(|error| match error {
                UnitError::UnknownUnit { text, unit, .. } => {
                    UnitError::UnknownUnit { text, unit, known: UNITS }
                }
                other => other,
            });
        };
        match of.trim() {
            "s" => per_second(text, value.trim()).map(RampRule::Pace),
            "each" => of_each(value),
            "all" => Ok(match duration_ns(value)? {
                0 => RampRule::Pace(Ramp::AtOnce),
                within => RampRule::Total { within },
            }),
            other => Err(UnitError::UnknownUnit {
                text: text.into(),
                unit: format!("/{other}"),
                known: BEHIND_SLASH,
            }),
        }
    }
}

fn of_each(text: &str) -> Result<RampRule, UnitError> {
    Ok(RampRule::Pace(match duration_ns(text)? {
        0 => Ramp::AtOnce,
        ns => Ramp::Every(ns),
    }))
}

fn per_second(text: &str, rate: &str) -> Result<Ramp, UnitError> {
    let (number, multiple) = number_and_multiple(rate);
    refuse_non_numbers(text, number)?;
    // Finite by the line above; a rate beyond a thousand million is "all at once" and should say so.
    let number: f64 = number.parse().map_err(|_| UnitError::NotANumber(text.into()))?;
    let rate_per_s = number * multiple as f64;
    match rate_per_s {
        0.0 => Err(UnitError::Zero { text: text.into(), why: "nothing would ever arrive" }),
        _ if (0.001..=1e9).contains(&rate_per_s) => Ok(Ramp::PerSecond(rate_per_s)),
        _ => Err(UnitError::OutOfRange {
            text: text.into(),
            least: "0.001/s".into(),
            most: "1000000000/s".into(),
        }),
    }
}

impl fmt::Display for RampRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RampRule::Pace(Ramp::Every(ns)) => Duration(ns).fmt(f),
            RampRule::Pace(Ramp::PerSecond(rate_per_s)) => write!(f, "{rate_per_s}/s"),
            RampRule::Pace(Ramp::AtOnce) => f.write_str("0s"),
            RampRule::Total { within } => write!(f, "{}/all", Duration(within)),
        }
    }
}
