//! Ticks told one by one, a line each: JSON objects, or rows of a table as programs that capture frames write them.
//!
//! Every tick becomes an interval, and the intervals of a second become a `LoggedSecond` as from any other log. A line
//! that cannot be read is counted and named. Where no rate is given, the period is found from the first thousand
//! intervals (of a source that is followed two hundred), and the summary says so.
//! Times: realtime where the lines have one; else the time at which a follower read them; else the sum of the intervals.

mod csv;
mod json;
mod statsd;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::second::{LoggedSecond, NS_PER_MS};
use super::{NAME_BYTES_MAX, NAMES_MAX, TickLogSummary};
use crate::distribution::Distribution;
use crate::ticks::{TickClasses, TickCounts};

/// How a file tells of ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TickForm {
    /// a line of JSON per second: the arena's two dialects
    #[default]
    Seconds,
    /// a JSON object per tick
    JsonLines,
    /// a table with a row per frame; the column of intervals, by its name or its number from 1, and its unit
    Csv {
        /// `None`: a name that captures are known to use
        column: Option<String>,
        /// `None`: as the header says, else ms
        unit: Option<TimeUnit>,
    },
    /// lines of StatsD, of which the timings of this metric are intervals
    Statsd {
        /// `None`: of the first timing that comes
        metric: Option<String>,
    },
}

/// A unit of time that a column or a key is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// seconds
    S,
    /// milliseconds
    Ms,
    /// microseconds
    Us,
    /// nanoseconds
    Ns,
}

impl TimeUnit {
    /// All of them, with the words for each.
    const WORDS: [(TimeUnit, &'static [&'static str]); 4] = [
        (TimeUnit::S, &["s", "sec", "seconds"]),
        (TimeUnit::Ms, &["ms", "msec", "milliseconds"]),
        (TimeUnit::Us, &["us", "µs", "usec", "microseconds"]),
        (TimeUnit::Ns, &["ns", "nsec", "nanoseconds"]),
    ];

    /// The unit of that word.
    pub fn named(word: &str) -> Option<TimeUnit> {
        TimeUnit::WORDS.iter().find(|(_, words)| words.contains(&word)).map(|(unit, _)| *unit)
    }

    /// Its usual word.
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::S => "s",
            TimeUnit::Ms => "ms",
            TimeUnit::Us => "us",
            TimeUnit::Ns => "ns",
        }
    }

    pub(super) fn in_ns(self) -> f64 {
        match self {
            TimeUnit::S => 1e9,
            TimeUnit::Ms => 1e6,
            TimeUnit::Us => 1e3,
            TimeUnit::Ns => 1.0,
        }
    }

    /// A number of the realtime clock, whose size tells its unit, in ns since the epoch. `None`: it is none.
    fn realtime_ns(value: f64) -> Option<u64> {
        TimeUnit::of_realtime(value).map(|unit| (value * unit.in_ns()) as u64)
    }

    /// The unit of a number of the realtime clock: between 1973 and 2106 no two can be confused. `None`: it is none.
    fn of_realtime(value: f64) -> Option<TimeUnit> {
        match value {
            1e8..4.3e9 => Some(TimeUnit::S),
            1e11..4.3e12 => Some(TimeUnit::Ms),
            1e14..4.3e15 => Some(TimeUnit::Us),
            1e17..4.3e18 => Some(TimeUnit::Ns),
            _ => None,
        }
    }
}

/// One line, taken apart.
#[derive(Debug)]
struct Frame<'a> {
    /// realtime, ns since the epoch
    at_ns: Option<u64>,
    /// since the tick before of the same loop
    interval_ns: Option<u64>,
    busy_ns: Option<u64>,
    /// which loop; empty where there is one
    id: Cow<'a, str>,
}

/// Intervals without more, each standing for `count`.
#[derive(Debug)]
struct Timings {
    intervals_ns: Vec<u64>,
    count: u64,
}

/// What a line was.
enum Parsed<'a> {
    Frame(Frame<'a>),
    Timings(Timings),
    /// a header, a comment
    Other,
}

#[derive(Debug)]
enum Parser {
    Json,
    Csv(csv::Table),
    Statsd(statsd::Statsd),
}

/// A tick with its interval.
#[derive(Clone, Copy, Debug)]
struct Tick {
    at_ns: u64,
    interval_ns: u64,
    busy_ns: Option<u64>,
    /// so many ticks were like this
    count: u64,
}

/// As many intervals tell the period.
const PERIOD_FROM: usize = 1_000;
/// … where someone waits for them …
const PERIOD_FROM_FOLLOWED: usize = 200;
/// … and at the end of a trial.
const PERIOD_FROM_LEAST: usize = 50;
/// Clock readings in seconds, as floating point numbers, are this far off.
const READING_NS: u64 = 1_000;
/// Longer than an hour is no interval between two ticks.
const LONGEST_NS: f64 = 3.6e12;
const SECOND_NS: u64 = 1_000_000_000;

/// What one line came to.
pub(super) enum Taken {
    Tick,
    /// it tells of no tick
    Other,
}

/// Reads lines of one tick each and gathers them by second.
#[derive(Debug)]
pub(super) struct Frames {
    parser: Parser,
    rate_hz: Option<f64>,
    /// until the period is known
    waiting: Vec<Tick>,
    /// of each loop, when it ticked last
    last_ns: BTreeMap<String, u64>,
    /// where lines have no time: the sum of their intervals
    elapsed_ns: u64,
    /// when a follower read them
    read_at_ns: Option<u64>,
    second: Option<Second>,
    wants_distributions: bool,
    done: Vec<LoggedSecond>,
}

impl Frames {
    /// `None` for logs of whole seconds. `rate_hz`: of its ticks, where known.
    pub(super) fn of(form: TickForm, rate_hz: Option<f64>) -> Option<Frames> {
        let parser = match form {
            TickForm::Seconds => return None,
            TickForm::JsonLines => Parser::Json,
            TickForm::Csv { column, unit } => Parser::Csv(csv::Table::new(column, unit)),
            TickForm::Statsd { metric } => Parser::Statsd(statsd::Statsd::new(metric)),
        };
        Some(Frames {
            parser,
            rate_hz,
            waiting: Vec::new(),
            last_ns: BTreeMap::new(),
            elapsed_ns: 0,
            read_at_ns: None,
            second: None,
            wants_distributions: true,
            done: Vec::new(),
        })
    }

    /// The seconds' distributions stay empty: a table of hours would spend most of its time on them.
    pub(super) fn without_distributions(&mut self) {
        self.wants_distributions = false;
    }

    pub(super) fn awaits_header(&self) -> bool {
        matches!(&self.parser, Parser::Csv(table) if table.awaits_header())
    }

    /// Lines without a time are of this instant, realtime ms. At the end of a trial every second is complete (`u64::MAX`),
    /// which is no time of day: then they are of the instant before.
    pub(super) fn read_at(&mut self, realtime_ms: u64) {
        self.read_at_ns = realtime_ms.checked_mul(NS_PER_MS).or(self.read_at_ns);
    }

    /// Reads a line. Errors: what is wrong with it.
    pub(super) fn line(&mut self, bytes: &[u8], sums: &mut TickLogSummary) -> Result<Taken, String> {
        let parsed = match &mut self.parser {
            Parser::Json => json::parse(bytes)?,
            Parser::Csv(table) => table.parse(bytes)?,
            Parser::Statsd(statsd) => statsd.parse(bytes)?,
        };
        let frame = match parsed {
            Parsed::Frame(frame) => frame,
            Parsed::Timings(Timings { intervals_ns, count }) => {
                intervals_ns
                    .into_iter()
                    .for_each(|interval_ns| self.tick(None, interval_ns, None, count, sums));
                return Ok(Taken::Tick);
            }
            Parsed::Other => return Ok(Taken::Other),
        };
        let before_ns = self.last_ns.get(frame.id.as_ref()).copied();
        if let Some(at_ns) = frame.at_ns {
            let is_new = before_ns.is_none();
            if is_new && (self.last_ns.len() >= NAMES_MAX || frame.id.len() > NAME_BYTES_MAX) {
                return Err(format!("more than {NAMES_MAX} loops, or the name of one is too long"));
            }
            self.last_ns.insert(frame.id.into_owned(), at_ns);
        }
        let since = |(at, before): (u64, u64)| {
            at.checked_sub(before).ok_or_else(|| {
                format!("its time is {:.3} ms before that of the line before", (before - at) as f64 / 1e6)
            })
        };
        let between = frame.at_ns.zip(before_ns).map(since);
        let interval_ns = match (frame.interval_ns, between) {
            (Some(interval_ns), _) => interval_ns,
            (None, Some(between)) => between?,
            // The first of its loop: nothing lies before it.
            (None, None) if frame.at_ns.is_some() => return Ok(Taken::Other),
            (None, None) => return Err("neither \"t\" nor \"dt\"".to_owned()),
        };
        self.tick(frame.at_ns, interval_ns, frame.busy_ns, 1, sums);
        Ok(Taken::Tick)
    }

    fn tick(
        &mut self,
        at_ns: Option<u64>,
        interval_ns: u64,
        busy_ns: Option<u64>,
        count: u64,
        sums: &mut TickLogSummary,
    ) {
        self.elapsed_ns = self.elapsed_ns.saturating_add(interval_ns);
        let at_ns = at_ns.or(self.read_at_ns).unwrap_or(self.elapsed_ns);
        let tick = Tick { at_ns, interval_ns, busy_ns, count };
        match self.rate_hz.map(TickClasses::for_rate) {
            Some(classes) => self.add(tick, classes, sums),
            None => {
                self.waiting.push(tick);
                let is_followed = self.read_at_ns.is_some();
                if self.waiting.len() >= if is_followed { PERIOD_FROM_FOLLOWED } else { PERIOD_FROM } {
                    self.find_period(sums);
                }
            }
        }
    }

    /// The rate of its ticks, found or given, Hz.
    pub(super) fn rate_hz(&self) -> Option<f64> {
        self.rate_hz
    }

    /// The seconds that are over.
    pub(super) fn take_done(&mut self) -> Vec<LoggedSecond> {
        std::mem::take(&mut self.done)
    }

    /// Nothing more comes for what ended before this realtime.
    pub(super) fn close_before(&mut self, realtime_ms: u64, sums: &mut TickLogSummary) {
        if self.second.as_ref().is_some_and(|second| second.to_ms() <= realtime_ms) {
            self.close(sums);
        }
    }

    /// Ticks from before now tell nothing about the period.
    pub(super) fn forget_waiting(&mut self) {
        self.waiting.clear();
    }

    /// A trial ends here: the period is found from fewer intervals, or not at all.
    pub(super) fn end_trial(&mut self, sums: &mut TickLogSummary) {
        if self.waiting.len() >= PERIOD_FROM_LEAST {
            self.find_period(sums);
        }
    }

    /// The file ends here.
    pub(super) fn finish(&mut self, sums: &mut TickLogSummary) {
        self.find_period(sums);
        self.close(sums);
    }

    fn find_period(&mut self, sums: &mut TickLogSummary) {
        let waiting = std::mem::take(&mut self.waiting);
        if self.rate_hz.is_none() {
            self.rate_hz = period_ns(waiting.iter().map(|tick| tick.interval_ns).collect()).map(rate_of);
        }
        if let Some(classes) = self.rate_hz.map(TickClasses::for_rate) {
            waiting.into_iter().for_each(|tick| self.add(tick, classes, sums));
        }
    }

    fn add(&mut self, tick: Tick, classes: TickClasses, sums: &mut TickLogSummary) {
        let mut number = tick.at_ns / SECOND_NS;
        // Loops that write into one file come a little out of order.
        if let Some(second) = self.second.as_ref().filter(|second| second.number == number + 1) {
            number = second.number;
        }
        if self.second.as_ref().is_some_and(|second| second.number != number) {
            self.close(sums);
        }
        let new = || Second { number, counts: TickCounts::default(), ticks: Vec::new() };
        let second = self.second.get_or_insert_with(new);
        let whole_ms = (tick.interval_ns + READING_NS) / NS_PER_MS;
        classes.count(&mut second.counts, whole_ms, tick.count);
        if self.wants_distributions {
            second.ticks.push(tick);
        }
        sums.add_ticks(whole_ms, tick.interval_ns, tick.busy_ns, tick.count, classes);
    }

    fn close(&mut self, sums: &mut TickLogSummary) {
        let Some(second) = self.second.take() else { return };
        sums.add_second(second.number * 1_000, second.to_ms());
        self.done.push(second.into_logged());
    }
}

/// The ticks of one second of the clock.
#[derive(Debug)]
struct Second {
    number: u64,
    counts: TickCounts,
    /// empty where nobody asks for distributions
    ticks: Vec<Tick>,
}

impl Second {
    fn to_ms(&self) -> u64 {
        (self.number + 1) * 1_000
    }

    fn into_logged(self) -> LoggedSecond {
        let mut interval = Distribution::new();
        let mut busy: Option<Distribution> = None;
        for tick in &self.ticks {
            interval.record_many(tick.interval_ns, tick.count);
            if let Some(busy_ns) = tick.busy_ns {
                busy.get_or_insert_default().record(busy_ns);
            }
        }
        LoggedSecond {
            from_ms: self.number * 1_000,
            to_ms: self.to_ms(),
            counts: self.counts,
            interval,
            busy,
            lateness: None,
            isr_numerator_ns: None,
            counters: Vec::new(),
            gauges: Vec::new(),
        }
    }
}

/// The period of a loop with these intervals: the mean of those that lie close to where half of them lie closest together.
/// Readings in whole ms alternate between two values, and both belong to it. `None` without any.
fn period_ns(mut intervals: Vec<u64>) -> Option<f64> {
    intervals.sort_unstable();
    let half = intervals.len().div_ceil(2);
    let width = |window: &[u64]| window.last().zip(window.first()).map_or(0, |(last, first)| last - first);
    let closest = intervals.windows(half.max(1)).min_by_key(|window| width(window))?;
    let centre = closest[closest.len() / 2] as f64;
    let reach = (centre / 10.0).max(1.1e6);
    let (sum, count) = intervals
        .iter()
        .map(|&interval| interval as f64)
        .filter(|interval| (interval - centre).abs() <= reach)
        .fold((0.0, 0u32), |(sum, count), interval| (sum + interval, count + 1));
    (sum > 0.0).then(|| sum / f64::from(count))
}

/// The rate of that period, Hz; a whole number where one is within a percent.
fn rate_of(period_ns: f64) -> f64 {
    let rate_hz = 1e9 / period_ns;
    let whole = rate_hz.round();
    if whole >= 1.0 && (rate_hz / whole - 1.0).abs() <= 0.01 { whole } else { rate_hz }
}

/// A duration in ns. Errors: it is no duration, or longer than an hour.
fn duration_ns(value: f64, unit: TimeUnit, name: &str) -> Result<u64, String> {
    let ns = value * unit.in_ns();
    if ns.is_finite() && (0.0..=LONGEST_NS).contains(&ns) {
        Ok(ns.round() as u64)
    } else {
        Err(format!("{name} is {value} {}, which is no interval between two ticks", unit.name()))
    }
}
