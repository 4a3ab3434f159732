//! `{"t": 1795232917249, "dt": 16.7, "busy": 3.1, "id": "room 7"}`: a tick as a JSON object.
//!
//! `dt` and `busy` are ms. A unit may be said in the name: `dt_ns`, `busy_us`, `t_s`. `t` without one is a number of the
//! realtime clock, whose size tells its unit, or a text in ISO 8601.

use std::borrow::Cow;

use serde_json::Value;

use super::{Frame, Parsed, TimeUnit, duration_ns};

/// Takes a line apart. Errors: what is wrong with it.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed<'static>, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| super::super::line::describe(&error))?;
    let Value::Object(fields) = value else { return Err("not a JSON object".to_owned()) };
    let mut frame = Frame { at_ns: None, interval_ns: None, busy_ns: None, id: Cow::Borrowed("") };
    for (key, value) in &fields {
        let (name, unit) = match key.rsplit_once('_') {
            Some((name, word)) => match TimeUnit::named(word) {
                Some(unit) => (name, Some(unit)),
                None => continue,
            },
            None => (key.as_str(), None),
        };
        match (name, value) {
            ("t", Value::String(text)) if unit.is_none() => frame.at_ns = Some(instant_ns(text)?),
            ("t", value) => frame.at_ns = Some(realtime_ns(number(key, value)?, unit)?),
            ("dt", value) => {
                frame.interval_ns =
                    Some(duration_ns(number(key, value)?, unit.unwrap_or(TimeUnit::Ms), key)?);
            }
            ("busy", value) => {
                frame.busy_ns = Some(duration_ns(number(key, value)?, unit.unwrap_or(TimeUnit::Ms), key)?);
            }
            ("id", Value::String(id)) => frame.id = id.clone().into(),
            ("id", Value::Number(id)) => frame.id = id.to_string().into(),
            ("id", _) => return Err("\"id\" is neither a text nor a number".to_owned()),
            _ => {}
        }
    }
    Ok(Parsed::Frame(frame))
}

fn number(key: &str, value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("\"{key}\" is not a number"))
}

/// A reading of the realtime clock in ns since the epoch. Errors: it is none.
fn realtime_ns(value: f64, unit: Option<TimeUnit>) -> Result<u64, String> {
    let ns = match unit {
        None => TimeUnit::realtime_ns(value),
        Some(unit) => {
            let ns = value * unit.in_ns();
            (TimeUnit::of_realtime(ns) == Some(TimeUnit::Ns)).then_some(ns as u64)
        }
    };
    ns.ok_or_else(|| {
        format!("\"t\" is {value}, which is no time of the realtime clock; leave it out and write \"dt\"")
    })
}

/// A time in ISO 8601, with its offset. Errors: it is none.
pub(super) fn instant_ns(text: &str) -> Result<u64, String> {
    let instant: jiff::Timestamp = text
        .trim()
        .parse()
        .map_err(|_| "\"t\" is not a time as 2026-11-27T18:00:00.123Z, with its offset".to_owned())?;
    u64::try_from(instant.as_nanosecond()).map_err(|_| "\"t\" is before 1970".to_owned())
}
