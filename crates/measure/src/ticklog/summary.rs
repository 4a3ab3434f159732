//! A tick log as a whole: its sums, its distribution, and its faults.
//!
//! The counters and the histogram are two separate sources. The classes come from the counters if there are any (they
//! know missed ticks and the server's own boundaries), the distribution from the histogram, and if the two contradict
//! each other both are reported.

use std::collections::BTreeMap;

use serde::Serialize;
use ts_rs::TS;

use super::KEPT_EXAMPLES;
use super::second::{Batch, classify};
use crate::distribution::Distribution;
use crate::ticks::{TickClasses, TickCounts};

/// Most different intervals that are counted by whole ms; further ones are rounded up to whole seconds.
const DISTINCT_MS_MAX: usize = 100_000;

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// from 1
    pub line: u64,
    /// in a few words
    pub reason: String,
}

/// The point where another run begins in the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedRun {
    /// first line of the other run, from 1
    pub line: u64,
    /// `process 12 after process 11`, `the time goes back by 3.0 s`, `30 Hz after 60 Hz`
    pub reason: String,
}

/// Counters and histogram of one log contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// ticks run, by the counters
    pub counted: TickCounts,
    /// ticks run, by the histogram; its classes are only meaningful when it is of whole-ms readings
    pub histogram: TickCounts,
}

/// The sums of a tick log.
#[derive(Clone, Debug)]
pub struct TickLogSummary {
    /// lines that are not empty
    pub lines: u64,
    /// lines that could not be read
    pub malformed: u64,
    /// the first few of them
    pub malformed_examples: Vec<Malformed>,
    /// places where another run begins; 0 for a clean log
    pub mixed_runs: u64,
    /// the first few of them
    pub mixed_examples: Vec<MixedRun>,
    /// free lines: a message, no title
    pub messages: u64,
    /// titles that this format does not define, and how many lines had them
    pub other_titles: BTreeMap<String, u64>,
    /// seconds that tell of ticks
    pub seconds: u64,
    /// begin of the first second, realtime ms
    pub from_ms: Option<u64>,
    /// end of the last second, realtime ms
    pub to_ms: Option<u64>,
    /// games played to their end, `None` when the log never says
    pub games: Option<u64>,
    /// whole ms → ticks
    pub histogram: BTreeMap<u64, u64>,
    /// between ticks, finer than ms, where the log tells it
    pub interval: Option<Distribution>,
    /// work per tick, where the log tells it
    pub busy: Option<Distribution>,
    /// actual − scheduled start, where the log tells it
    pub lateness: Option<Distribution>,
    pub(super) counted: Option<TickCounts>,
    pub(super) told_rate_hz: Option<f64>,
    assumed_rate_hz: f64,
    only_whole_ms: bool,
}

/// The figures of a tick log as they are published.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct TickLogFigures {
    /// played to their end; null when the log never says
    pub games: Option<u64>,
    /// ticks by class
    #[serde(flatten)]
    pub counts: TickCounts,
    /// (over + under + missed) / due
    pub late_share: Option<f64>,
    /// between two ticks
    pub interval_ms: IntervalMs,
    /// whole ms → ticks
    pub histogram: BTreeMap<u64, u64>,
    /// lines that could not be read
    pub malformed: u64,
}

/// The intervals of a tick log, ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, TS)]
pub struct IntervalMs {
    /// median
    pub p50: Option<u64>,
    /// 0.9 quantile
    pub p90: Option<u64>,
    /// 0.99 quantile
    pub p99: Option<u64>,
    /// longest
    pub max: Option<u64>,
    /// arithmetic
    pub mean: Option<f64>,
}

impl TickLogSummary {
    /// What is published of it.
    pub fn figures(&self) -> TickLogFigures {
        let counts = self.counts();
        TickLogFigures {
            games: self.games,
            counts,
            late_share: counts.late_share(),
            interval_ms: IntervalMs {
                p50: self.quantile_ms(0.5),
                p90: self.quantile_ms(0.9),
                p99: self.quantile_ms(0.99),
                max: self.max_ms(),
                mean: self.mean_ms(),
            },
            histogram: self.histogram.clone(),
            malformed: self.malformed,
        }
    }

    pub(super) fn new(tick_rate_hz: f64) -> Self {
        TickLogSummary {
            lines: 0,
            malformed: 0,
            malformed_examples: Vec::new(),
            mixed_runs: 0,
            mixed_examples: Vec::new(),
            messages: 0,
            other_titles: BTreeMap::new(),
            seconds: 0,
            from_ms: None,
            to_ms: None,
            games: None,
            histogram: BTreeMap::new(),
            interval: None,
            busy: None,
            lateness: None,
            counted: None,
            told_rate_hz: None,
            assumed_rate_hz: tick_rate_hz,
            only_whole_ms: true,
        }
    }

    /// The log's own tick rate where it tells one, else the assumed one, Hz.
    pub fn tick_rate_hz(&self) -> f64 {
        self.told_rate_hz.unwrap_or(self.assumed_rate_hz)
    }

    /// The boundaries of *on time* at its rate.
    pub fn classes(&self) -> TickClasses {
        TickClasses::for_rate(self.tick_rate_hz())
    }

    /// Ticks by class: the counters where the log has them, else its histogram.
    pub fn counts(&self) -> TickCounts {
        self.counted.unwrap_or_else(|| classify(&self.histogram, self.classes()))
    }

    /// True when the log has counters, so that `counts` does not come from the histogram.
    pub fn has_counters(&self) -> bool {
        self.counted.is_some()
    }

    /// How many ticks the histogram holds.
    pub fn tick_count(&self) -> u64 {
        self.histogram.values().sum()
    }

    /// True when the log tells of no tick at all.
    pub fn has_no_ticks(&self) -> bool {
        self.counts().due == 0 && self.histogram.is_empty()
    }

    /// Ticks that followed the one before within the same ms: the mark of a ticker that catches up.
    pub fn zero_ms(&self) -> u64 {
        self.histogram.get(&0).copied().unwrap_or(0)
    }

    /// The `q` quantile of the intervals in whole ms: the ⌈q·n⌉-th of the sorted intervals. `None` when there are none.
    pub fn quantile_ms(&self, q: f64) -> Option<u64> {
        let rank = (q * self.tick_count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.histogram.iter().find_map(|(&ms, &count)| {
            seen += count;
            (seen >= rank).then_some(ms)
        })
    }

    /// Longest interval in whole ms.
    pub fn max_ms(&self) -> Option<u64> {
        self.histogram.iter().rev().find(|&(_, &count)| count > 0).map(|(&ms, _)| ms)
    }

    /// Mean interval in ms; exact for whole ms. It stays at the period however bad things are, so it judges nothing.
    pub fn mean_ms(&self) -> Option<f64> {
        if let Some(interval) = self.interval.as_ref().filter(|_| !self.only_whole_ms) {
            return interval.mean_ns().map(|ns| ns / 1e6);
        }
        let total_ms: u128 =
            self.histogram.iter().map(|(&ms, &count)| u128::from(ms) * u128::from(count)).sum();
        let ticks = self.tick_count();
        (ticks > 0).then(|| total_ms as f64 / ticks as f64)
    }

    /// Length of the log in seconds.
    pub fn span_s(&self) -> f64 {
        match (self.from_ms, self.to_ms) {
            (Some(from_ms), Some(to_ms)) => to_ms.saturating_sub(from_ms) as f64 / 1e3,
            _ => 0.0,
        }
    }

    /// Both sources, where they contradict each other.
    ///
    /// A histogram of whole-ms readings must have the counters' classes; one in ns only as many ticks as were run,
    /// since the classes are made of clock readings in whole ms that it does not hold.
    pub fn disagreement(&self) -> Option<Disagreement> {
        let mut counted = self.counted.filter(|_| !self.histogram.is_empty())?;
        counted.due -= counted.missed;
        counted.missed = 0;
        let histogram = classify(&self.histogram, self.classes());
        let differ = if self.only_whole_ms { counted != histogram } else { counted.due != histogram.due };
        differ.then_some(Disagreement { counted, histogram })
    }

    pub(super) fn malformed(&mut self, line: u64, reason: String) {
        self.malformed += 1;
        if self.malformed_examples.len() < KEPT_EXAMPLES {
            self.malformed_examples.push(Malformed { line, reason });
        }
    }

    pub(super) fn mixed_run(&mut self, line: u64, reason: String) {
        self.mixed_runs += 1;
        if self.mixed_examples.len() < KEPT_EXAMPLES {
            self.mixed_examples.push(MixedRun { line, reason });
        }
    }

    /// Ticks of a file that tells of each.
    pub(super) fn add_ticks(
        &mut self,
        whole_ms: u64,
        interval_ns: u64,
        busy_ns: Option<u64>,
        count: u64,
        classes: TickClasses,
    ) {
        classes.count(self.counted.get_or_insert_default(), whole_ms, count);
        self.count_interval(whole_ms, count);
        self.only_whole_ms = false;
        self.interval.get_or_insert_default().record_many(interval_ns, count);
        if let Some(busy_ns) = busy_ns {
            self.busy.get_or_insert_default().record_many(busy_ns, count);
        }
    }

    /// A second of such a file is over.
    pub(super) fn add_second(&mut self, from_ms: u64, to_ms: u64) {
        self.seconds += 1;
        self.from_ms.get_or_insert(from_ms);
        self.to_ms = self.to_ms.max(Some(to_ms));
    }

    fn count_interval(&mut self, ms: u64, count: u64) {
        // No honest log has so many, and a hostile one must not exhaust memory.
        let is_known = self.histogram.len() < DISTINCT_MS_MAX || self.histogram.contains_key(&ms);
        let ms = if is_known { ms } else { ms.next_multiple_of(1_000) };
        *self.histogram.entry(ms).or_default() += count;
    }

    pub(super) fn add(&mut self, batch: &Batch) {
        self.seconds += 1;
        let (from_ms, to_ms) = batch.span_ms();
        // The first line of an original log covers the second before it.
        self.from_ms.get_or_insert(from_ms.unwrap_or(to_ms.saturating_sub(1_000)));
        self.to_ms = self.to_ms.max(Some(to_ms));
        if let Some(counts) = batch.counted() {
            self.counted.get_or_insert_default().add(&counts);
        }
        for (ms, count) in batch.intervals_ms() {
            self.count_interval(ms, count);
        }
        self.only_whole_ms &= batch.has_whole_ms() || batch.fine_interval().is_none();
        for (sum, more) in [
            (&mut self.interval, batch.fine_interval()),
            (&mut self.busy, batch.busy()),
            (&mut self.lateness, batch.lateness()),
        ] {
            if let Some(more) = more {
                sum.get_or_insert_with(Distribution::new).add(more);
            }
        }
        if let Some(games) = batch.games() {
            *self.games.get_or_insert(0) += games;
        }
    }
}
