//! Histograms of one metric: what came between two readings, and which ticks that makes late.
//!
//! A bucket tells how many ticks took no longer than its edge. Where no edge lies at a limit of the classes, the ticks of the
//! bucket around that limit may be on time or late: they are counted as late and as unclear, so both bounds are known.

use std::collections::BTreeMap;

use super::text::Lines;
use crate::ticks::{TickClasses, TickCounts};

/// More than this is no count: doubles hold no larger whole number exactly.
const COUNT_MAX: f64 = 9_007_199_254_740_992.0;
/// Clock readings are this far off, and so are edges, ms.
const READING_MS: f64 = 1e-3;
/// A series may be a little older than it seems, because readings are a second apart and not exactly so.
const NEW_SERIES_MS: f64 = 500.0;

/// All series of a histogram at one moment, by their labels.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// upper edges in ms, ascending; the last is infinite
    edges_ms: Vec<f64>,
    series: BTreeMap<String, Series>,
}

#[derive(Clone, Debug)]
struct Series {
    /// ticks up to each edge
    up_to: Vec<u64>,
    sum_ms: f64,
}

/// What came between two readings.
#[derive(Clone, Debug, Default)]
pub(super) struct Added {
    edges_ms: Vec<f64>,
    up_to: Vec<u64>,
    /// of all its ticks
    pub sum_ms: f64,
}

/// Ticks by class, as far as edges tell them apart.
#[derive(Debug, PartialEq)]
pub(super) struct Classified {
    /// what may be late counts as late
    pub counts: TickCounts,
    /// of the late ones, those that may be on time
    pub unclear: u64,
    /// edges that would tell them apart, ms
    pub missing_ms: Vec<u64>,
}

impl Reading {
    /// `unit_ms`: what 1 stands for. Errors: what is wrong with the lines.
    pub(super) fn of(name: &str, found: BTreeMap<String, Lines>, unit_ms: f64) -> Result<Reading, String> {
        let mut reading = Reading::default();
        for (labels, mut lines) in found {
            lines.at.sort_by(|a, b| a.0.total_cmp(&b.0));
            if lines.at.last().is_none_or(|(edge, _)| *edge != f64::INFINITY) {
                return Err(format!("{name} has no bucket le=\"+Inf\", so its ticks cannot be counted"));
            }
            let edges_ms: Vec<f64> = lines.at.iter().map(|(edge, _)| snapped(edge * unit_ms)).collect();
            if !reading.series.is_empty() && edges_ms != reading.edges_ms {
                return Err(format!("series of {name} have different buckets; give all the same"));
            }
            reading.edges_ms = edges_ms;
            let mut up_to = Vec::with_capacity(lines.at.len());
            for (edge, count) in &lines.at {
                if !(0.0..=COUNT_MAX).contains(count) || count.fract() != 0.0 {
                    return Err(format!(
                        "the bucket le=\"{}\" of {name} holds {}, which is no count",
                        written(*edge),
                        written(*count)
                    ));
                }
                if up_to.last().is_some_and(|before| *count < *before as f64) {
                    return Err(format!(
                        "the bucket le=\"{}\" of {name} holds fewer than the one before it",
                        written(*edge)
                    ));
                }
                up_to.push(*count as u64);
            }
            let all = up_to.last().map_or(0.0, |count| *count as f64);
            if let Some(count) = lines.count.filter(|count| *count != all) {
                return Err(format!("{name}_count is {count}, and its buckets hold {all}"));
            }
            let sum = lines.sum.ok_or_else(|| format!("{name}_sum is missing"))?;
            if !sum.is_finite() || sum < 0.0 {
                return Err(format!("{name}_sum is {}, which is no sum of times", written(sum)));
            }
            reading.series.insert(labels, Series { up_to, sum_ms: sum * unit_ms });
        }
        Ok(reading)
    }

    /// What came since `before`, `elapsed_ms` earlier. Errors: why that cannot be told.
    ///
    /// A series that is new began in between, unless it tells of more time than there was: then it is counted from now on.
    pub(super) fn since(&self, name: &str, before: &Reading, elapsed_ms: u64) -> Result<Added, String> {
        if self.edges_ms != before.edges_ms {
            return Err(format!("the buckets of {name} changed"));
        }
        let mut added =
            Added { edges_ms: self.edges_ms.clone(), up_to: vec![0; self.edges_ms.len()], sum_ms: 0.0 };
        for (labels, now) in &self.series {
            let then = before.series.get(labels);
            if then.is_none() && now.sum_ms > elapsed_ms as f64 + NEW_SERIES_MS {
                continue;
            }
            let mut so_far = 0;
            for (at, sum) in added.up_to.iter_mut().enumerate() {
                let more = now.up_to[at].checked_sub(then.map_or(0, |then| then.up_to[at]));
                // Each bucket alone may not shrink either.
                let more = more.filter(|more| *more >= so_far).ok_or_else(|| reset(name))?;
                so_far = more;
                *sum = sum.saturating_add(more);
            }
            let more_ms = now.sum_ms - then.map_or(0.0, |then| then.sum_ms);
            if more_ms < -READING_MS {
                return Err(reset(name));
            }
            added.sum_ms += more_ms.max(0.0);
        }
        Ok(added)
    }
}

fn reset(name: &str) -> String {
    format!("{name} counts less than a moment ago, as after a restart of the server")
}

/// As the format writes it.
fn written(value: f64) -> String {
    if value.is_infinite() {
        format!("{}Inf", if value > 0.0 { '+' } else { '-' })
    } else {
        value.to_string()
    }
}

/// An edge that is meant to be of whole ms is, though a fraction of a second is not exact.
fn snapped(edge_ms: f64) -> f64 {
    let whole = edge_ms.round();
    if (edge_ms - whole).abs() <= READING_MS { whole } else { edge_ms }
}

impl Added {
    /// How many ticks.
    pub(super) fn count(&self) -> u64 {
        self.up_to.last().copied().unwrap_or(0)
    }

    /// True where a sum shows that ticks are read with a clock finer than ms.
    pub(super) fn shows_finer_clock(&self) -> bool {
        (self.sum_ms - self.sum_ms.round()).abs() > READING_MS
    }

    /// Its ticks by class. `whole_ms`: they were read from a clock of whole ms.
    pub(super) fn classified(&self, classes: TickClasses, whole_ms: bool) -> Classified {
        let (from_ms, to_ms) = (classes.from_ms, classes.to_ms.saturating_add(1));
        let all = self.count();
        let (under, under_most) = self.shorter_than(from_ms, whole_ms);
        let (in_time_least, in_time) = self.shorter_than(to_ms, whole_ms);
        let mut counts = TickCounts { due: all, over: all - in_time_least, ..TickCounts::default() };
        counts.under = under_most.min(in_time_least);
        counts.on_time = in_time_least - counts.under;
        let late_least = under.saturating_add(all - in_time);
        let step_ms = u64::from(whole_ms);
        let missing = [(from_ms, under, under_most), (to_ms, in_time_least, in_time)];
        let missing = missing.iter().filter(|(_, least, most)| least < most);
        Classified {
            counts,
            unclear: (counts.over + counts.under).saturating_sub(late_least),
            missing_ms: missing.map(|(limit_ms, ..)| limit_ms.saturating_sub(step_ms)).collect(),
        }
    }

    /// How many ticks took less than `limit_ms`: at least and at most.
    ///
    /// An edge counts what took exactly as long too. With a clock of whole ms an edge at the limit holds ticks of that length, which
    /// are not shorter, and one a millisecond below has all that are; with a finer clock nothing lies exactly at the limit.
    fn shorter_than(&self, limit_ms: u64, whole_ms: bool) -> (u64, u64) {
        if limit_ms == 0 {
            return (0, 0);
        }
        let limit = limit_ms as f64;
        let has_only_shorter = |edge: f64| if whole_ms { edge < limit } else { edge <= limit };
        let has_all_shorter = |edge: f64| if whole_ms { edge >= limit - 1.0 } else { edge >= limit };
        let edges = || self.edges_ms.iter().zip(&self.up_to);
        let least = edges().rev().find(|(edge, _)| has_only_shorter(**edge)).map_or(0, |(_, count)| *count);
        let most =
            edges().find(|(edge, _)| has_all_shorter(**edge)).map_or(self.count(), |(_, count)| *count);
        (least, most)
    }
}
