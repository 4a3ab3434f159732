//! The text of a metrics endpoint, taken apart: Prometheus' text format 0.0.4 and OpenMetrics 1.0.0.
//!
//! One malformed line spoils the whole answer, as it does for Prometheus: half of a histogram is none.
//! Sources: <https://prometheus.io/docs/instrumenting/exposition_formats/>, <https://prometheus.io/docs/specs/om/open_metrics_spec/>.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::super::frames::TimeUnit;

/// As much of a bad line is repeated.
const SHOWN_CHARS: usize = 40;
/// As many histograms are named to someone who named none of them.
const LISTED_MAX: usize = 8;
/// No histogram of ticks has more buckets.
const BUCKETS_MAX: usize = 1_000;

/// What stands under one name, by the other labels of its series.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// lines `NAME_bucket` with `NAME_sum` and `NAME_count`
    pub histograms: BTreeMap<String, Lines>,
    /// lines with a quantile
    pub summaries: BTreeMap<String, Lines>,
    /// lines with nothing but a value
    pub values: Vec<f64>,
    /// the type that the text declares, if any
    pub kind: Option<String>,
}

/// The lines of one series.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// the edge (`le`) or quantile, and its value
    pub at: Vec<(f64, f64)>,
    pub sum: Option<f64>,
    pub count: Option<f64>,
}

/// A line with a value.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, Cow<'a, str>)>,
    value: f64,
}

/// All there is of `metric`. Errors: what is wrong with the text, and where.
pub(super) fn find(text: &str, metric: &str) -> Result<Found, String> {
    let mut found = Found::default();
    let mut totals: BTreeMap<String, Lines> = BTreeMap::new();
    for (number, line) in lines(text) {
        if let Some(words) = line.strip_prefix("# TYPE ") {
            found.kind = words
                .strip_prefix(metric)
                .and_then(|rest| rest.strip_prefix(' '))
                .map(str::to_owned)
                .or(found.kind);
        }
        let sample = read(number, line)?;
        let Some((sample, part)) = sample.and_then(|sample| {
            let part = sample.name.strip_prefix(metric)?;
            Some((sample, part))
        }) else {
            continue;
        };
        let again = || format!("line {number} says {} again", shown(line));
        match part {
            "_bucket" | "" => {
                let key = if part.is_empty() { "quantile" } else { "le" };
                let place = sample.labels.iter().position(|(name, _)| *name == key);
                let Some(place) = place else {
                    if part.is_empty() {
                        found.values.push(sample.value);
                        continue;
                    }
                    return Err(format!("line {number} is a bucket without le: {}", shown(line)));
                };
                let mut labels = sample.labels;
                let (_, edge) = labels.remove(place);
                let edge: f64 = edge
                    .parse()
                    .ok()
                    .filter(|edge: &f64| !edge.is_nan())
                    .ok_or_else(|| format!("line {number}: {key} is no number: {}", shown(line)))?;
                let series = if part.is_empty() { &mut found.summaries } else { &mut found.histograms };
                let series = series.entry(key_of(labels)).or_default();
                if series.at.iter().any(|(known, _)| *known == edge) {
                    return Err(again());
                }
                if series.at.len() >= BUCKETS_MAX {
                    return Err(format!("line {number}: {metric} has more than {BUCKETS_MAX} buckets"));
                }
                series.at.push((edge, sample.value));
            }
            "_sum" | "_count" => {
                let lines = totals.entry(key_of(sample.labels)).or_default();
                let place = if part == "_sum" { &mut lines.sum } else { &mut lines.count };
                if place.replace(sample.value).is_some() {
                    return Err(again());
                }
            }
            "_total" => found.kind = Some("counter".to_owned()),
            _ => {}
        }
    }
    for (labels, told) in totals {
        // A summary needs no quantiles.
        let is_of_histogram = found.histograms.contains_key(&labels);
        let series = if is_of_histogram { &mut found.histograms } else { &mut found.summaries };
        let series = series.entry(labels).or_default();
        (series.sum, series.count) = (told.sum, told.count);
    }
    Ok(found)
}

/// Names of histograms whose unit is one of time. Errors: what is wrong with the text, and where.
pub(super) fn histograms_of_times(text: &str) -> Result<BTreeSet<&str>, String> {
    let mut names = BTreeSet::new();
    for (number, line) in lines(text) {
        let Some(sample) = read(number, line)? else { continue };
        let name = sample.name.strip_suffix("_bucket").filter(|name| unit_of(name).is_some());
        names.extend(name.filter(|_| sample.labels.iter().any(|(name, _)| *name == "le")));
    }
    Ok(names)
}

/// The unit with which a name ends: `tick_interval_seconds`.
pub(super) fn unit_of(name: &str) -> Option<TimeUnit> {
    name.rsplit_once('_').and_then(|(_, word)| TimeUnit::named(word))
}

/// `a_seconds, b_seconds and 3 more`.
pub(super) fn listed(names: &BTreeSet<&str>) -> String {
    let some: Vec<&str> = names.iter().copied().take(LISTED_MAX).collect();
    let more = names.len() - some.len();
    some.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// The lines that are not empty, numbered from 1, up to the end mark of OpenMetrics.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let all = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    all.take_while(|(_, line)| *line != "# EOF").filter(|(_, line)| !line.is_empty())
}

/// `None` for a comment. Errors: it is neither comment nor sample.
fn read(number: usize, line: &str) -> Result<Option<Sample<'_>>, String> {
    if line.starts_with('#') {
        return Ok(None);
    }
    let sample = sample(line);
    sample.map(Some).ok_or_else(|| format!("line {number} is no sample of a metric: {}", shown(line)))
}

/// `NAME{LABEL="VALUE",…} VALUE [TIME] [# EXEMPLAR]`.
fn sample(line: &str) -> Option<Sample<'_>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let end = line.find(|c| !is_part(c))?;
    let (name, rest) = line.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut labels = Vec::new();
    let mut rest = rest.trim_start();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            inside = inside.trim_start();
            if let Some(after) = inside.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, after) = inside.split_once('=')?;
            let (value, after) = quoted(after.trim_start())?;
            labels.push((label.trim(), value));
            let after = after.trim_start();
            inside = after.strip_prefix(',').or_else(|| after.starts_with('}').then_some(after))?;
        }
    }
    let mut words = rest.split_ascii_whitespace();
    let value = words.next()?.parse().ok()?;
    match words.next() {
        Some(word) if !word.starts_with('#') => {
            word.parse::<f64>().ok()?;
            words.next().is_none_or(|word| word.starts_with('#')).then_some(())?;
        }
        _ => {}
    }
    Some(Sample { name, labels, value })
}

/// A text in quotes, and what follows it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let text = text.strip_prefix('"')?;
    let end = text.find(['"', '\\'])?;
    if text[end..].starts_with('"') {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Cow::Owned(value), &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// What tells one series from the others.
fn key_of(mut labels: Vec<(&str, Cow<'_, str>)>) -> String {
    labels.sort_unstable();
    labels.iter().map(|(name, value)| format!("{name}={value:?},")).collect()
}

fn shown(line: &str) -> String {
    let short: String = line.chars().take(SHOWN_CHARS).collect();
    format!("{short:?}")
}
