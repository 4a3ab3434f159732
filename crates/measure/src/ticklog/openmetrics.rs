//! Ticks out of a metrics endpoint: a histogram of the intervals between ticks, read once per second.
//!
//! Bodies in, facts out. The difference of two readings becomes a `LoggedSecond`. What buckets cannot tell is never guessed: ticks
//! that may be on time or late count as late, and their number is kept beside (`ServerCounter::TicksUnclear`), so that the judge
//! knows both bounds. What tells of no single ticks (a gauge, a summary, the work per tick) is only put into words.
//! Not here: HTTP (`watch::scrape`).

mod buckets;
#[cfg(test)]
mod tests;
mod text;

use buckets::{Added, Reading};

use super::frames::TimeUnit;
use super::second::LoggedSecond;
use super::{KEPT_EXAMPLES, NAME_BYTES_MAX, ServerCounter};
use crate::distribution::Distribution;
use crate::ticks::TickClasses;

/// What there is to say of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// for people
    pub text: String,
    /// ticks are missing because of it, which says nothing about the server
    pub is_loss: bool,
}

impl From<String> for Notice {
    fn from(text: String) -> Notice {
        Notice { text, is_loss: false }
    }
}

/// What a histogram measures is decided after this much time and this many ticks.
const KNOWN_AFTER_MS: u64 = 3_000;
const KNOWN_AFTER_TICKS: u64 = 30;
/// Intervals of a loop add up to the time that passed, but for one at an edge and for late readings …
const ADDS_UP_LEAST: f64 = 0.95;
/// … and their mean is the period, or longer.
const MEAN_LEAST: f64 = 0.9;
/// Differences that wait until that is known; older ones are of a time long before any hold.
const WAITING_MAX: usize = 60;

/// Follows one metric of an endpoint.
#[derive(Debug)]
pub struct MetricReader {
    /// `None` until it is found
    metric: Option<String>,
    unit: Option<TimeUnit>,
    classes: TickClasses,
    before: Option<(u64, Reading)>,
    waiting: Vec<(u64, u64, Added)>,
    /// `None`: not known yet
    is_of_intervals: Option<bool>,
    /// no sum has shown a finer clock
    whole_ms: bool,
    ready: Vec<LoggedSecond>,
    notices: Vec<Notice>,
    /// the failure that was reported last; it is not reported again while it lasts
    told: Option<String>,
    /// how many were told in this trial
    told_count: usize,
    trial: Tally,
}

/// What is put into words at the end of a trial.
#[derive(Debug, Default)]
struct Tally {
    ticks: u64,
    sum_ms: f64,
    unclear: u64,
    missing_ms: Vec<u64>,
    /// first and last count and sum of a summary, ms, and its quantiles in ms
    summary: Option<[(f64, f64); 2]>,
    quantiles: Vec<(f64, f64)>,
    /// least and most of a gauge, ms
    gauge: Option<(f64, f64)>,
}

impl MetricReader {
    /// `metric` `None`: the only histogram of times. `unit` `None`: as the name ends. `tick_rate_hz` > 0.
    pub fn new(metric: Option<String>, unit: Option<TimeUnit>, tick_rate_hz: f64) -> MetricReader {
        let metric = metric.map(|name| name.strip_suffix("_bucket").map(str::to_owned).unwrap_or(name));
        MetricReader {
            metric,
            unit,
            classes: TickClasses::for_rate(tick_rate_hz),
            before: None,
            waiting: Vec::new(),
            is_of_intervals: None,
            whole_ms: true,
            ready: Vec::new(),
            notices: Vec::new(),
            told: None,
            told_count: 0,
            trial: Tally::default(),
        }
    }

    /// Takes an answer that was read at this realtime.
    pub fn take(&mut self, at_ms: u64, body: &[u8]) {
        match self.read(at_ms, body) {
            Ok(()) => self.told = None,
            Err(text) => self.fail(Notice { text, is_loss: true }),
        }
    }

    /// No answer could be read.
    pub fn fail(&mut self, why: Notice) {
        if self.told.as_ref() != Some(&why.text) {
            self.told = Some(why.text.clone());
            // A hostile endpoint may fail in another way each time.
            if self.notices.len() + self.told_count < KEPT_EXAMPLES {
                self.notices.push(why);
            }
        }
    }

    /// The seconds that came since the last call.
    pub fn take_seconds(&mut self) -> Vec<LoggedSecond> {
        std::mem::take(&mut self.ready)
    }

    /// What there is to say since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.told_count += self.notices.len();
        std::mem::take(&mut self.notices)
    }

    /// A trial begins here: what was wrong before, as while the server started, is no part of it.
    pub fn begin_trial(&mut self) {
        self.notices.clear();
        (self.told, self.told_count, self.trial) = (None, 0, Tally::default());
    }

    /// A trial ends here: what it came to is put into words.
    pub fn end_trial(&mut self) {
        let trial = std::mem::take(&mut self.trial);
        let name = self.metric.clone().unwrap_or_default();
        let text = trial.in_words(&name, self.is_of_intervals, self.classes);
        self.notices.extend(text.map(Notice::from));
    }

    fn read(&mut self, at_ms: u64, body: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(body).map_err(|_| "the answer is no text (UTF-8)".to_owned())?;
        if text.trim_start().starts_with('<') {
            return Err(
                "the answer is HTML and no metrics; check the path, which often is /metrics".to_owned()
            );
        }
        if !text.is_empty() && !text.ends_with('\n') {
            return Err("the answer ends in the middle of a line".to_owned());
        }
        let name = self.name(text)?;
        let found = text::find(text, &name)?;
        let is_series = !(found.histograms.is_empty() && found.summaries.is_empty());
        if !is_series && found.kind.as_deref() == Some("counter") {
            return Err(format!("{name} is a counter, which tells of no times; name a histogram"));
        }
        if !is_series && found.values.is_empty() {
            return Err(nothing_named(&name, text));
        }
        let unit = self.unit.or_else(|| text::unit_of(&name)).ok_or_else(|| {
            format!("the unit of {name} is not known; say it behind the name: {name}:s or {name}:ms")
        })?;
        let unit_ms = unit.in_ns() / 1e6;
        if found.histograms.is_empty() {
            return self.trial.show(&name, &found, unit_ms);
        }
        self.histogram(at_ms, &name, Reading::of(&name, found.histograms, unit_ms)?)
    }

    /// The metric that is followed. Errors: none was named, and it is not plain which.
    fn name(&mut self, text: &str) -> Result<String, String> {
        if let Some(name) = &self.metric {
            return Ok(name.clone());
        }
        let names = text::histograms_of_times(text)?;
        match names.first().filter(|name| names.len() == 1 && name.len() <= NAME_BYTES_MAX) {
            Some(name) => Ok(self.metric.insert((*name).to_owned()).clone()),
            None if names.is_empty() => Err("there is no histogram of times (…_seconds)".to_owned()),
            None => Err(format!("which histogram is meant? Name one behind #: {}", text::listed(&names))),
        }
    }

    fn histogram(&mut self, at_ms: u64, name: &str, now: Reading) -> Result<(), String> {
        let Some((before_ms, before)) = self.before.replace((at_ms, now.clone())) else { return Ok(()) };
        // The clock was set back, so the elapsed time is unknown.
        let Some(elapsed_ms) = at_ms.checked_sub(before_ms).filter(|ms| *ms > 0) else { return Ok(()) };
        let added = now.since(name, &before, elapsed_ms);
        let added = added.map_err(|why| format!("{why}; what it told between two readings is left out"))?;
        if added.count() > 0 && added.shows_finer_clock() {
            self.whole_ms = false;
        }
        // A loop that has not begun is no slow one.
        if self.is_of_intervals.is_some() || added.count() > 0 || !self.waiting.is_empty() {
            self.waiting.push((before_ms, at_ms, added));
        }
        if self.is_of_intervals.is_none() {
            self.look_what_it_is_of();
            let excess = self.waiting.len().saturating_sub(WAITING_MAX);
            self.waiting.drain(..excess);
        }
        if let Some(is_of_intervals) = self.is_of_intervals {
            for (from_ms, to_ms, added) in std::mem::take(&mut self.waiting) {
                self.trial.ticks += added.count();
                self.trial.sum_ms += added.sum_ms;
                if is_of_intervals {
                    self.second(from_ms, to_ms, &added);
                }
            }
        }
        Ok(())
    }

    /// Whether the times lie between ticks, or are the work of one: those are shorter and do not add up to the time that passed.
    fn look_what_it_is_of(&mut self) {
        let (mut ms, mut ticks, mut sum_ms) = (0, 0, 0.0);
        // A loop may have begun within the first.
        for (from_ms, to_ms, added) in self.waiting.iter().skip(1) {
            (ms, ticks, sum_ms) = (ms + (to_ms - from_ms), ticks + added.count(), sum_ms + added.sum_ms);
        }
        if ms >= KNOWN_AFTER_MS && ticks >= KNOWN_AFTER_TICKS {
            let period_ms = self.classes.period_ns as f64 / 1e6;
            let adds_up = sum_ms >= ADDS_UP_LEAST * ms as f64;
            self.is_of_intervals = Some(adds_up && sum_ms / ticks as f64 >= MEAN_LEAST * period_ms);
        }
    }

    fn second(&mut self, from_ms: u64, to_ms: u64, added: &Added) {
        let classified = added.classified(self.classes, self.whole_ms);
        self.trial.unclear += classified.unclear;
        if classified.unclear > 0 {
            self.trial.missing_ms = classified.missing_ms;
        }
        let mut counters = vec![("tick_interval_us".to_owned(), (added.sum_ms * 1e3) as u64)];
        if classified.unclear > 0 {
            counters.push((ServerCounter::TicksUnclear.name().to_owned(), classified.unclear));
        }
        self.ready.push(LoggedSecond {
            from_ms,
            to_ms,
            counts: classified.counts,
            interval: Distribution::new(),
            busy: None,
            lateness: None,
            isr_numerator_ns: None,
            counters,
            gauges: Vec::new(),
        });
    }
}

impl Tally {
    /// Takes what is only shown.
    fn show(&mut self, name: &str, found: &text::Found, unit_ms: f64) -> Result<(), String> {
        if found.summaries.is_empty() {
            for value in &found.values {
                if !value.is_finite() {
                    return Err(format!("{name} is {value}, which is no time"));
                }
                let ms = value * unit_ms;
                let (least, most) = self.gauge.unwrap_or((ms, ms));
                self.gauge = Some((least.min(ms), most.max(ms)));
            }
            return Ok(());
        }
        let of =
            |pick: fn(&text::Lines) -> Option<f64>| found.summaries.values().filter_map(pick).sum::<f64>();
        let now = (of(|lines| lines.count), of(|lines| lines.sum) * unit_ms);
        let [first, _] = self.summary.unwrap_or([now, now]);
        self.summary = Some([first, now]);
        // Quantiles of several series cannot be put together.
        let only = found.summaries.values().next().filter(|_| found.summaries.len() == 1);
        let quantiles = only.map_or(&[][..], |lines| &lines.at).iter().filter(|(_, value)| value.is_finite());
        self.quantiles = quantiles.take(5).map(|(q, value)| (*q, value * unit_ms)).collect();
        Ok(())
    }

    /// What must be known of a trial's ticks besides their classes; `None`: nothing.
    fn in_words(&self, name: &str, is_of_intervals: Option<bool>, classes: TickClasses) -> Option<String> {
        const NOT_JUDGED: &str =
            "so no rung is judged by it; a histogram of the intervals between ticks would do";
        let mean_ms = self.sum_ms / self.ticks as f64;
        if let Some((least, most)) = self.gauge {
            return Some(format!(
                "{name} is a gauge, of {least:.1} to {most:.1} ms once per second, {NOT_JUDGED}"
            ));
        }
        if let Some([first, last]) = self.summary {
            let (count, sum_ms) = (last.0 - first.0, last.1 - first.1);
            let mean =
                if count > 0.0 { format!(" of {:.1} ms in the mean", sum_ms / count) } else { String::new() };
            let quantiles: String =
                self.quantiles.iter().map(|(q, ms)| format!(", p{} {ms:.1} ms", shown(q * 100.0))).collect();
            return Some(format!(
                "{name} is a summary: {} ticks{mean}{quantiles} as it says; its quantiles are of a time that it chose, {NOT_JUDGED}",
                shown(count)
            ));
        }
        if is_of_intervals == Some(false) && self.ticks > 0 {
            return Some(format!(
                "{name} is {mean_ms:.1} ms in the mean of {} ticks and does not add up to the time that passed in periods of {:.1} ms: \
                 it tells of the work per tick, or the tick rate is another, {NOT_JUDGED}",
                self.ticks,
                classes.period_ns as f64 / 1e6
            ));
        }
        (self.unclear > 0).then(|| {
            let edges: Vec<String> = self.missing_ms.iter().map(|ms| format!("{ms} ms")).collect();
            format!(
                "{} of {} ticks lie in buckets of {name} that hold ticks on time and late ones; add buckets at {}",
                self.unclear,
                self.ticks,
                edges.join(" and ")
            )
        })
    }
}

/// A number without digits that say nothing.
fn shown(value: f64) -> String {
    format!("{}", (value * 1e3).round() / 1e3)
}

/// There is no such metric; which there are.
fn nothing_named(name: &str, text: &str) -> String {
    let names = text::histograms_of_times(text).unwrap_or_default();
    let there = match names.len() {
        0 => "there is no histogram of times".to_owned(),
        _ => format!("histograms of times are {}", text::listed(&names)),
    };
    format!("no metric is named {name}; {there}")
}
