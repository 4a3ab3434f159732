//! Gathers the lines of one second of a tick log into a second.

use std::collections::BTreeMap;

use super::ServerCounter;
use super::line::{GAMES, INTERVALS, Line, ON_TIME, OVER, OWN, OwnSecond, Said, UNDER};
use crate::distribution::Distribution;
use crate::entry::TickSecond;
use crate::sample::ProcessMetric;
use crate::ticks::{TickClasses, TickCounts};

pub(super) const NS_PER_MS: u64 = 1_000_000;
/// Longer than this between two lines of a log that tells every second is a gap, not a second.
const LONGEST_SECOND_MS: u64 = 10_000;

/// One second of a server's ticks as its log tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedSecond {
    /// begin, realtime ms: what the line says, else the time of the second before
    pub from_ms: u64,
    /// end, realtime ms
    pub to_ms: u64,
    /// by class
    pub counts: TickCounts,
    /// between two ticks; whole ms when the log has nothing finer
    pub interval: Distribution,
    /// work per tick
    pub busy: Option<Distribution>,
    /// actual − scheduled start
    pub lateness: Option<Distribution>,
    /// see `TickSecond`
    pub isr_numerator_ns: Option<f64>,
    /// what was counted in this second: `games_played`, `shots` …
    pub counters: Vec<(String, u64)>,
    /// how things stood at its end: `games`, `sockets` …
    pub gauges: Vec<(ProcessMetric, u64)>,
}

impl LoggedSecond {
    /// The second on the trial's clock, `None` when it began before the trial did.
    ///
    /// `zero_realtime_ns` is the realtime (ns since the epoch) at which the trial's clock stood at 0.
    pub fn into_tick_second(self, source: &str, zero_realtime_ns: u64) -> Option<TickSecond> {
        let on_trial_clock = |ms: u64| ms.checked_mul(NS_PER_MS)?.checked_sub(zero_realtime_ns);
        Some(TickSecond {
            source: source.to_owned(),
            from_ns: on_trial_clock(self.from_ms)?,
            to_ns: on_trial_clock(self.to_ms)?,
            counts: self.counts,
            interval: self.interval,
            busy: self.busy,
            lateness: self.lateness,
            isr_numerator_ns: self.isr_numerator_ns,
            counters: self.counters,
        })
    }
}

/// The lines of one second, while they come.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) time_ms: u64,
    titles: Vec<String>,
    intervals: Option<BTreeMap<u64, u64>>,
    counters: BTreeMap<String, u64>,
    own: Option<Box<OwnSecond>>,
}

impl Batch {
    pub(super) fn new(time_ms: u64) -> Self {
        Batch { time_ms, titles: Vec::new(), intervals: None, counters: BTreeMap::new(), own: None }
    }

    pub(super) fn has(&self, title: &str) -> bool {
        self.titles.iter().any(|seen| seen == title)
    }

    pub(super) fn add(&mut self, line: Line) {
        let Some(title) = line.title else { return };
        match line.said {
            Said::Intervals(intervals) => self.intervals = Some(intervals),
            Said::Count(count) => *self.counters.entry(title.clone()).or_default() += count,
            Said::Own(own) => self.own = Some(own),
            Said::Nothing => {}
        }
        if !self.has(&title) {
            self.titles.push(title);
        }
    }

    /// The classes as counted by the server, `None` when the second has only a histogram.
    pub(super) fn counted(&self) -> Option<TickCounts> {
        if let Some(own) = &self.own {
            return Some(own.counts);
        }
        if ![ON_TIME, OVER, UNDER].iter().any(|title| self.counters.contains_key(*title)) {
            return None;
        }
        let count = |title| self.counters.get(title).copied().unwrap_or(0);
        let (on_time, over, under) = (count(ON_TIME), count(OVER), count(UNDER));
        Some(TickCounts { due: on_time + over + under, on_time, over, under, missed: 0 })
    }

    /// Whole ms → ticks. From the original's histogram, else from the finer one of our own line.
    pub(super) fn intervals_ms(&self) -> BTreeMap<u64, u64> {
        if let Some(intervals) = &self.intervals {
            return intervals.clone();
        }
        let mut intervals = BTreeMap::new();
        if let Some(interval) = self.own.as_ref().and_then(|own| own.interval.as_ref()) {
            for (ns, count) in interval.buckets() {
                *intervals.entry(ns / NS_PER_MS).or_default() += count;
            }
        }
        intervals
    }

    /// True when the histogram is of whole-ms clock readings, so that its classes must equal the counters'.
    pub(super) fn has_whole_ms(&self) -> bool {
        self.intervals.is_some()
    }

    pub(super) fn fine_interval(&self) -> Option<&Distribution> {
        self.own.as_ref().and_then(|own| own.interval.as_ref())
    }

    pub(super) fn busy(&self) -> Option<&Distribution> {
        self.own.as_ref().and_then(|own| own.busy.as_ref())
    }

    pub(super) fn lateness(&self) -> Option<&Distribution> {
        self.own.as_ref().and_then(|own| own.lateness.as_ref())
    }

    pub(super) fn games(&self) -> Option<u64> {
        let own = self.own.as_ref().and_then(|own| ServerCounter::GamesPlayed.of(&own.counters));
        own.or_else(|| self.counters.get(GAMES).copied())
    }

    pub(super) fn span_ms(&self) -> (Option<u64>, u64) {
        match &self.own {
            Some(own) => (Some(own.from_ms), own.to_ms),
            None => (None, self.time_ms),
        }
    }

    /// `classes` classifies its ticks if the log has no counters.
    pub(super) fn into_second(
        self,
        previous_to_ms: Option<u64>,
        classes: Option<TickClasses>,
    ) -> LoggedSecond {
        let (from_ms, to_ms) = self.span_ms();
        let from_ms = from_ms
            .or_else(|| previous_to_ms.filter(|&ms| ms < to_ms && to_ms - ms <= LONGEST_SECOND_MS))
            .unwrap_or(to_ms.saturating_sub(1_000));
        let intervals_ms = self.intervals_ms();
        let counts = self.counted().unwrap_or_else(|| {
            // If the log has counters at all, a second without them had none of these ticks.
            classes.map_or(TickCounts::default(), |classes| classify(&intervals_ms, classes))
        });
        let games = self.games();
        let mut counters = self.counters;
        for title in [INTERVALS, ON_TIME, OVER, UNDER, GAMES, OWN] {
            counters.remove(title);
        }
        let mut second = LoggedSecond {
            from_ms,
            to_ms,
            counts,
            interval: Distribution::new(),
            busy: None,
            lateness: None,
            isr_numerator_ns: None,
            counters: counters.into_iter().collect(),
            gauges: Vec::new(),
        };
        match self.own.map(|own| *own) {
            Some(own) => {
                second.counters.extend(own.counters);
                second.gauges = own.gauges;
                second.busy = own.busy;
                second.lateness = own.lateness;
                second.isr_numerator_ns = own.isr_numerator_ns;
                second.interval = own.interval.unwrap_or_else(|| from_whole_ms(&intervals_ms));
            }
            None => {
                second
                    .counters
                    .extend(games.map(|count| (ServerCounter::GamesPlayed.name().to_owned(), count)));
                second.interval = from_whole_ms(&intervals_ms);
            }
        }
        second
    }
}

pub(super) fn classify(intervals_ms: &BTreeMap<u64, u64>, classes: TickClasses) -> TickCounts {
    let mut counts = TickCounts::default();
    intervals_ms.iter().for_each(|(&ms, &count)| classes.count(&mut counts, ms, count));
    counts
}

fn from_whole_ms(intervals_ms: &BTreeMap<u64, u64>) -> Distribution {
    let mut interval = Distribution::new();
    intervals_ms.iter().for_each(|(&ms, &count)| interval.record_many(ms * NS_PER_MS, count));
    interval
}
