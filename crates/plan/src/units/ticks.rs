//! Where ticks are read, as people write it: `log=game.log`, `statsd=:8125/server.tick`.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use measure::ticklog::{TickForm, TimeUnit};

use super::UnitError;
use crate::plan::TickSource;
use crate::scheme::Scheme;
use crate::target::{Target, TargetError};
use crate::vocabulary;

impl FromStr for TickSource {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<TickSource, UnitError> {
        let text = text.trim();
        let (word, value) =
            text.split_once('=').map_or((text, None), |(word, value)| (word, Some(value.trim())));
        match (word.trim(), value) {
            ("none", None) => Ok(TickSource::None),
            ("client", None) => Ok(TickSource::Client),
            ("log", None) => Ok(TickSource::Log(None)),
            ("log" | "jsonl" | "csv", Some("")) | ("", None) => Err(UnitError::Empty),
            ("log", Some(path)) => Ok(TickSource::Log(Some(PathBuf::from(path)))),
            ("jsonl", Some(path)) => Ok(TickSource::Frames(TickForm::JsonLines, PathBuf::from(path))),
            ("csv", Some(table)) => {
                let (form, path) = table_of(table);
                Ok(TickSource::Frames(form, path))
            }
            ("statsd", Some(text)) => statsd_of(text),
            ("openmetrics", Some(text)) => openmetrics_of(text),
            (word, _) => Err(UnitError::UnknownWord {
                text: text.into(),
                known: TICK_SOURCES,
                nearest: vocabulary::nearest(
                    word,
                    ["log", "jsonl", "csv", "client", "none", "statsd", "openmetrics"],
                ),
            }),
        }
    }
}

impl fmt::Display for TickSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TickSource::None => f.write_str("none"),
            TickSource::Client => f.write_str("client"),
            TickSource::Log(None) => f.write_str("log"),
            TickSource::Log(Some(path)) => write!(f, "log={}", path.display()),
            TickSource::Frames(TickForm::Csv { column, unit }, path) => {
                write!(f, "csv={}", path.display())?;
                column.iter().try_for_each(|column| write!(f, ":{column}"))?;
                unit.iter().try_for_each(|unit| write!(f, ":{}", unit.name()))
            }
            TickSource::Frames(_, path) => write!(f, "jsonl={}", path.display()),
            TickSource::Statsd { address, metric } => {
                write!(f, "statsd={address}")?;
                metric.iter().try_for_each(|metric| write!(f, "/{metric}"))
            }
            TickSource::OpenMetrics { endpoint, metric, unit } => {
                write!(f, "openmetrics={endpoint}")?;
                metric.iter().try_for_each(|metric| write!(f, "#{metric}"))?;
                unit.iter().try_for_each(|unit| write!(f, ":{}", unit.name()))
            }
        }
    }
}

const TICK_SOURCES: &str =
    "log=FILE, jsonl=FILE, csv=FILE:COLUMN, statsd=ADDRESS/METRIC, openmetrics=URL#METRIC, client, none";

/// `http://127.0.0.1:9100/metrics`, `http://127.0.0.1:9100/metrics#METRIC:UNIT`. The usual path is `/metrics`.
fn openmetrics_of(text: &str) -> Result<TickSource, UnitError> {
    let (url, metric) = text.split_once('#').map_or((text, ""), |(url, metric)| (url, metric.trim()));
    let (metric, unit) = match metric.rsplit_once(':') {
        Some((name, word)) if TimeUnit::named(word).is_some() => (name, TimeUnit::named(word)),
        _ => (metric, None),
    };
    let endpoint = endpoint_of(url, "metrics endpoint, as http://127.0.0.1:9100/metrics", "/metrics")?;
    let metric = Some(metric.to_owned()).filter(|metric| !metric.is_empty());
    Ok(TickSource::OpenMetrics { endpoint: Box::new(endpoint), metric, unit })
}

/// A URL that is asked over plain HTTP. `what` it is, with an example; `usual`: its path where none is written.
fn endpoint_of(url: &str, what: &'static str, usual: &str) -> Result<Target, UnitError> {
    let wrong = |why: String| UnitError::NotAnEndpoint { what, text: url.to_owned(), why };
    let mut endpoint: Target = match url.trim().parse::<Target>() {
        // What stands before the host is a secret.
        Err(why @ TargetError::Credentials { .. }) => {
            let text = url.rsplit_once('@').map_or("…".to_owned(), |(_, host)| format!("…@{host}"));
            return Err(UnitError::NotAnEndpoint { what, text, why: why.to_string() });
        }
        Ok(endpoint) if endpoint.scheme == Scheme::Http => endpoint,
        Ok(_) | Err(TargetError::NoScheme(_) | TargetError::UnknownScheme { .. }) => {
            return Err(wrong("only http:// is asked".to_owned()));
        }
        Err(why) => return Err(wrong(why.to_string())),
    };
    if endpoint.path == "/" {
        endpoint.path = usual.to_owned();
    }
    Ok(endpoint)
}

/// `http://127.0.0.1:6060`, where a Go program serves `net/http/pprof`; with a path where that is not `/debug/pprof/`.
///
/// Errors: as of every endpoint, and it is not on this machine, where the program is.
pub fn pprof(text: &str) -> Result<Target, UnitError> {
    let what = "address of Go's pprof, as http://127.0.0.1:6060/debug/pprof/";
    let mut endpoint = endpoint_of(text, what, "/debug/pprof/")?;
    if endpoint.host == "localhost" {
        endpoint.host = Ipv4Addr::LOCALHOST.to_string();
    }
    if !endpoint.literal_address().is_some_and(|address| address.is_loopback()) {
        let why = "the server's process is on this machine, so its address is localhost, 127.0.0.1 or [::1]";
        return Err(UnitError::NotAnEndpoint { what, text: text.to_owned(), why: why.to_owned() });
    }
    if !endpoint.path.ends_with('/') {
        endpoint.path.push('/');
    }
    Ok(endpoint)
}

/// `127.0.0.1:8125`, `:8125/METRIC`.
fn statsd_of(text: &str) -> Result<TickSource, UnitError> {
    let (address, metric) =
        text.split_once('/').map_or((text, None), |(address, metric)| (address, Some(metric.to_owned())));
    let full = if address.starts_with(':') { format!("127.0.0.1{address}") } else { address.to_owned() };
    let address = full.parse().map_err(|_| UnitError::NotAnAddress(address.into()))?;
    Ok(TickSource::Statsd { address, metric: metric.filter(|metric| !metric.is_empty()) })
}

/// A file of ticks as a word names it: `log=FILE`, `jsonl=FILE`, `csv=FILE:COLUMN:UNIT`; of a bare path its ending tells.
pub fn tick_file(text: &str) -> (TickForm, PathBuf) {
    match text.parse() {
        Ok(TickSource::Frames(form, path)) => return (form, path),
        Ok(TickSource::Log(Some(path))) => return (TickForm::Seconds, path),
        _ => {}
    }
    let path = PathBuf::from(text);
    let is = |ending: &str| path.extension().is_some_and(|have| have.eq_ignore_ascii_case(ending));
    let form =
        if is("csv") || is("tsv") { TickForm::Csv { column: None, unit: None } } else { TickForm::Seconds };
    (form, path)
}

/// `FILE`, `FILE:COLUMN` or `FILE:COLUMN:UNIT`.
fn table_of(text: &str) -> (TickForm, PathBuf) {
    let (rest, unit) = match text.rsplit_once(':') {
        Some((rest, word)) if rest.contains(':') && TimeUnit::named(word).is_some() => {
            (rest, TimeUnit::named(word))
        }
        _ => (text, None),
    };
    let (path, column) = match rest.split_once(':') {
        Some((path, column)) if !column.is_empty() => (path, Some(column.to_owned())),
        _ => (rest, None),
    };
    (TickForm::Csv { column, unit }, PathBuf::from(path))
}
