//! Parses and checks one line of a tick log; no sums.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::distribution::{COUNT_MAX, Distribution};
use crate::sample::ProcessMetric;
use crate::ticks::TickCounts;

/// A line that could be read.
#[derive(Debug)]
pub struct Line {
    /// realtime of the server, ms since the epoch
    pub time_ms: u64,
    /// process id and host name as written; `None` when the line does not say
    pub process: Option<(String, String)>,
    /// `None` for a free message
    pub title: Option<String>,
    /// what it says
    pub said: Said,
}

/// What a titled line says.
#[derive(Debug)]
pub enum Said {
    /// a histogram of the intervals between ticks, whole ms → ticks
    Intervals(BTreeMap<u64, u64>),
    /// one of the original's counters
    Count(u64),
    /// our reference server's own line
    Own(Box<OwnSecond>),
    /// a message, or something this format does not define
    Nothing,
}

/// A second as our reference server tells it.
#[derive(Debug)]
pub struct OwnSecond {
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
    pub(super) tick_rate_hz: Option<f64>,
    pub(super) counts: TickCounts,
    pub(super) interval: Option<Distribution>,
    pub(super) busy: Option<Distribution>,
    pub(super) lateness: Option<Distribution>,
    pub(super) isr_numerator_ns: Option<f64>,
    /// what happened in this second
    pub(super) counters: Vec<(String, u64)>,
    /// how things stand at its end; adding these over time would mean nothing
    pub(super) gauges: Vec<(ProcessMetric, u64)>,
}

/// The title of our reference server's own line.
pub const OWN: &str = "stepladder";
pub(super) const INTERVALS: &str = "tickInterval";
pub(super) const ON_TIME: &str = "tickOnTime";
pub(super) const OVER: &str = "tickIntervalOverrun";
pub(super) const UNDER: &str = "tickIntervalUnderrun";
pub(super) const GAMES: &str = "games-played";

/// No time of the realtime clock is later: year 2100, which also fits in ns.
const LATEST_MS: u64 = 4_102_444_800_000;
/// Nothing that lasts longer than an hour is an interval between two ticks, or the time that one line tells of.
const LONGEST_INTERVAL_MS: u64 = 3_600_000;
/// No loop ticks more seldom than once an hour, or faster than clocks are read.
pub const RATES_HZ: std::ops::RangeInclusive<f64> = 1.0 / 3_600.0..=1e9;
/// A sum over the ticks of one line: as many as there can be, each an hour off.
const LARGEST_ISR_NS: f64 = 1e12 * 3.6e12;
/// Fields of the own line that are not counters.
const STRUCTURE: [&str; 13] = [
    "level",
    "time",
    "pid",
    "hostname",
    "title",
    "from_ms",
    "to_ms",
    "tick_rate",
    "due",
    "on_time",
    "over",
    "under",
    "missed",
];

impl Line {
    /// Takes one line apart. The error says what is wrong with it, in a few words.
    pub fn parse(bytes: &[u8]) -> Result<Line, String> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| describe(&error))?;
        let Value::Object(fields) = value else { return Err("not a JSON object".to_owned()) };
        let time_ms = time(&fields, "time")?.ok_or("no \"time\"")?;
        let title = match fields.get("title") {
            None => None,
            Some(Value::String(title)) => Some(title.clone()),
            Some(_) => return Err("\"title\" is not a text".to_owned()),
        };
        let said = match title.as_deref() {
            Some(INTERVALS) => Said::Intervals(point_set(&fields)?),
            Some(ON_TIME | OVER | UNDER | GAMES) => {
                Said::Count(whole(&fields, "count")?.ok_or("a counter without \"count\"")?)
            }
            Some(OWN) => Said::Own(Box::new(OwnSecond::read(&fields, time_ms)?)),
            // An unknown title may well be a counter; in any case it is not an error.
            Some(_) => whole(&fields, "count").ok().flatten().map_or(Said::Nothing, Said::Count),
            None => Said::Nothing,
        };
        let process = match (fields.get("pid"), fields.get("hostname")) {
            (None, None) => None,
            (pid, hostname) => Some((plain(pid), plain(hostname))),
        };
        Ok(Line { time_ms, process, title, said })
    }

    /// True when the title belongs to the format, so that the line is part of a second.
    pub(super) fn is_told(&self) -> bool {
        matches!(self.title.as_deref(), Some(INTERVALS | ON_TIME | OVER | UNDER | GAMES | OWN))
    }

    /// Its title, and the counters that it tells.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let counters = match &self.said {
            Said::Own(own) => own.counters.as_slice(),
            _ => &[],
        };
        self.title.as_deref().into_iter().chain(counters.iter().map(|(name, _)| name.as_str()))
    }

    pub(super) fn tick_rate_hz(&self) -> Option<f64> {
        if let Said::Own(own) = &self.said { own.tick_rate_hz } else { None }
    }
}

impl OwnSecond {
    fn read(fields: &Map<String, Value>, time_ms: u64) -> Result<Self, String> {
        let count = |name| Ok::<u64, String>(whole(fields, name)?.unwrap_or(0));
        let (on_time, over, under) = (count("on_time")?, count("over")?, count("under")?);
        let missed = count("missed")?;
        let classes = on_time + over + under + missed;
        let counts =
            TickCounts { due: whole(fields, "due")?.unwrap_or(classes), on_time, over, under, missed };
        if !counts.balances() {
            return Err(format!("{} ticks due, but its classes add up to {classes}", counts.due));
        }
        let to_ms = time(fields, "to_ms")?.unwrap_or(time_ms);
        let from_ms = time(fields, "from_ms")?.unwrap_or(to_ms.saturating_sub(1_000));
        if from_ms > to_ms {
            return Err("its \"from_ms\" lies after its \"to_ms\"".to_owned());
        }
        if to_ms - from_ms > LONGEST_INTERVAL_MS {
            return Err(format!("it tells of {} s, which cannot be true", (to_ms - from_ms) / 1_000));
        }
        let tick_rate_hz = fields.get("tick_rate").and_then(Value::as_f64).filter(|&rate_hz| rate_hz > 0.0);
        if let Some(rate_hz) = tick_rate_hz.filter(|rate_hz| !RATES_HZ.contains(rate_hz)) {
            return Err(format!("\"tick_rate\" is {rate_hz:e} Hz, which cannot be true"));
        }
        let mut own = OwnSecond {
            from_ms,
            to_ms,
            tick_rate_hz,
            counts,
            interval: histogram(fields, "interval_ns")?,
            busy: histogram(fields, "busy_ns")?,
            lateness: histogram(fields, "lateness_ns")?,
            isr_numerator_ns: fields
                .get("isr_numerator_ns")
                .and_then(Value::as_f64)
                .filter(|&ns| (0.0..LARGEST_ISR_NS).contains(&ns)),
            counters: Vec::new(),
            gauges: Vec::new(),
        };
        for (name, value) in fields {
            // A field with its own unit is a measurement, not a count of something.
            if STRUCTURE.contains(&name.as_str()) || name.ends_with("_ns") {
                continue;
            }
            let Some(count) = value.as_u64() else { continue };
            if count > COUNT_MAX && (name.ends_with("_us") || name.ends_with("_ms")) {
                // A clock time.
                continue;
            }
            if count > COUNT_MAX {
                return Err(cannot_be(name, count));
            }
            match ProcessMetric::GAUGES.into_iter().find(|gauge| gauge.name() == name) {
                Some(gauge) => own.gauges.push((gauge, count)),
                None => own.counters.push((name.clone(), count)),
            }
        }
        Ok(own)
    }
}

fn point_set(fields: &Map<String, Value>) -> Result<BTreeMap<u64, u64>, String> {
    let Some(Value::Object(points)) = fields.get("pointSet") else {
        return Err("a tickInterval without \"pointSet\"".to_owned());
    };
    let mut intervals = BTreeMap::new();
    let mut ticks = 0u64;
    for (key, value) in points {
        let ms: u64 = key.parse().map_err(|_| format!("{key:?} is not a number of whole ms"))?;
        let count = value.as_u64().ok_or_else(|| format!("the count of {key} ms is not a whole number"))?;
        // Keys may be written in two ways ("7", "07"), so the sum is bounded.
        ticks = count.saturating_add(ticks);
        if ms > LONGEST_INTERVAL_MS || ticks > COUNT_MAX {
            return Err(format!("{count} ticks of {ms} ms, which cannot be true"));
        }
        *intervals.entry(ms).or_default() += count;
    }
    Ok(intervals)
}

fn histogram(fields: &Map<String, Value>, name: &str) -> Result<Option<Distribution>, String> {
    let text = match fields.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(_) => return Err(format!("{name:?} is not a text")),
    };
    let bytes = STANDARD.decode(text).map_err(|error| format!("{name:?} is not base64: {error}"))?;
    Distribution::from_v2(&bytes).map(Some).map_err(|error| format!("{name:?} is {error}"))
}

/// A field that holds a time, ms since the epoch; `None` when it is absent.
fn time(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    whole_up_to(fields, name, LATEST_MS)
}

/// A field that holds a whole number, `None` when it is absent.
fn whole(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    whole_up_to(fields, name, COUNT_MAX)
}

fn whole_up_to(fields: &Map<String, Value>, name: &str, largest: u64) -> Result<Option<u64>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) if number <= largest => Ok(Some(number)),
            Some(number) => Err(cannot_be(name, number)),
            None => Err(format!("{name:?} is {value}, not a whole number")),
        },
    }
}

fn cannot_be(name: &str, number: u64) -> String {
    format!("{name:?} is {number}, which cannot be true")
}

fn plain(value: Option<&Value>) -> String {
    match value {
        None => "?".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The parser's own position counts lines of one line; only its column helps.
pub(super) fn describe(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return format!("cut off after {} characters", error.column());
    }
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("not JSON: {what} at column {}", error.column())
}
