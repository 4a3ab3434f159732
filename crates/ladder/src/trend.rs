//! Whether something of the server grows in the course of a long hold: its memory, descriptors, latency or lateness.
//!
//! The first tenth of the hold is left out, and each stretch of the rest (`measure::Stretches`, 14 to 29 of them) is one
//! value: the median of its seconds, or a percentile of its own distribution. The slope is that of Theil and Sen, the
//! median of the slopes of all pairs, which a quarter of outliers does not move. Its interval is Student's t over the
//! residuals, widened as far as neighbours resemble each other. A growth must be certain, must matter, and must go on
//! to the end: a cache that fills, a collector's sawtooth and a step are none.
//! Nothing is judged by it. Units: slopes per hour, in the series' own unit.
//! Sources: Sen, J. Am. Stat. Assoc. 63 (1968); the number of independent values in an autocorrelated series is that of
//! Bartlett, J. R. Stat. Soc. 98 (1935), with the autocorrelation corrected as in Kendall, Biometrika 41 (1954).

use std::collections::BTreeMap;

use measure::{Distribution, ProcessMetric, Quantile, Second, Signal, Stretch, Trial};
use serde::{Deserialize, Serialize};
use serde_json::json;
use ts_rs::TS;

use crate::contract::{Climb, Conclusion, Rung};
use crate::duel::student_critical;
use crate::figures::UnitKind;
use crate::steady::{median, scatter_of_steps};
use crate::wording::show_number;

/// Shorter holds, with their warm-up, tell no slope.
const HOLD_S_LEAST: f64 = 300.0;
/// The part of a hold that is left out as warm-up.
const WARM_UP_SHARE: f64 = 0.1;
/// Fewer values tell no slope, because too many are missing.
const FEWEST: usize = 12;
/// The interval misses the slope with this probability.
const LEVEL: f64 = 0.05;
/// Residuals count as at most this many robust deviations.
const RESIDUAL_DEVIATIONS: f64 = 3.0;
/// For normal noise, the deviation is this many times the median of the absolute values.
const DEVIATIONS_PER_MEDIAN: f64 = 1.0 / 0.6745;
/// For normal noise, the median of several values scatters this much more than their mean.
const MEDIAN_SCATTER: f64 = 1.25;
/// The standard error of Theil and Sen's slope over that of least squares, for normal noise.
const THEIL_SEN_SCATTER: f64 = 1.05;
/// More autocorrelation than this cannot be told from so few values.
const AUTOCORRELATION_MOST: f64 = 0.9;
/// A third rises on if it rises by this part of the rise before it.
const GOES_ON: f64 = 0.5;
/// … minus this many standard errors of that difference.
const GOES_ON_ERRORS: f64 = 0.5;
/// A leak costs a byte of each request or connection at least.
const BYTES_LEAST: f64 = 1.0;

/// How the server's figures went in a long hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct TrendFigures {
    /// length of a stretch of the hold, of which each gives one value, s
    pub stretch_s: u32,
    /// stretches looked at: without the first tenth of the hold
    pub stretches: u32,
    /// requests or messages that were sent in them, per hour
    pub sent_per_hour: f64,
    /// connections that ended in them, per hour
    pub closed_per_hour: f64,
    /// by the figure's name, as in objectives
    pub of: BTreeMap<String, Trend>,
}

/// How one figure went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Trend {
    /// at the end of the hold, by the slope; bytes, a count, or ns
    pub level: f64,
    /// slope per hour
    pub per_hour: f64,
    /// lower end of its 95 % interval
    pub per_hour_min: f64,
    /// upper end
    pub per_hour_max: f64,
    /// it is certain, it matters, and it went on to the end
    pub grows: bool,
    /// at this slope it doubles so long after the end of the hold, h; null unless it grows
    pub doubles_after_h: Option<f64>,
    /// growth per request or message; null where that is no explanation
    pub per_sent: Option<f64>,
    /// growth per connection that ended; null where that is no explanation
    pub per_closed: Option<f64>,
}

/// A figure whose course is looked at.
#[derive(Clone, Copy)]
struct Figure {
    /// as in objectives
    name: &'static str,
    /// for people
    words: &'static str,
    unit: UnitKind,
    /// growth over the stretches that matters: this share of the level …
    share_least: f64,
    /// … and this much
    least: f64,
    of: Of,
}

#[derive(Clone, Copy)]
enum Of {
    Process(ProcessMetric),
    Quantile(f64, fn(&Stretch) -> &Distribution),
}

const fn process(
    name: &'static str,
    words: &'static str,
    unit: UnitKind,
    least: f64,
    of: ProcessMetric,
) -> Figure {
    Figure { name, words, unit, share_least: 0.01, least, of: Of::Process(of) }
}

const fn time(name: &'static str, words: &'static str, q: f64, of: fn(&Stretch) -> &Distribution) -> Figure {
    Figure { name, words, unit: UnitKind::Time, share_least: 0.05, least: 20e3, of: Of::Quantile(q, of) }
}

const FIGURES: [Figure; 8] = [
    process("subject.rss_bytes", "memory", UnitKind::Bytes, 50e3, ProcessMetric::Rss),
    process("subject.fds", "descriptors", UnitKind::Count, 2.0, ProcessMetric::Fds),
    time("response.p50", "response at p50", 0.5, |stretch| &stretch.response),
    time("response.p99", "response at p99", 0.99, |stretch| &stretch.response),
    time("deliveries.latency.p50", "delivery latency at p50", 0.5, |stretch| &stretch.delivery),
    time("deliveries.latency.p99", "delivery latency at p99", 0.99, |stretch| &stretch.delivery),
    time("ticks.interval.p99", "interval between ticks at p99", 0.99, |stretch| &stretch.tick_interval),
    time("ticks.lateness.p99", "lateness of ticks at p99", 0.99, |stretch| &stretch.tick_lateness),
];

/// Of a trial; `None`: its hold was too short, or nothing is known of its server.
pub(crate) fn figures(trial: &Trial) -> Option<TrendFigures> {
    let hold_s = trial.hold.as_ref()?.seconds();
    if hold_s + f64::from(trial.cut_s) < HOLD_S_LEAST {
        return None;
    }
    let stretch_s = trial.stretches.length_s;
    let whole = (hold_s / f64::from(stretch_s)) as u32;
    let left_out = (f64::from(whole) * WARM_UP_SHARE).ceil() as u32;
    let stretches = left_out..whole;
    let stretch_of = |index| trial.hold_second(index).map(|second| second / stretch_s);
    let is_in = |index| stretch_of(index).is_some_and(|stretch| stretches.contains(&stretch));
    let (mut sent, mut closed) = (0, 0);
    for second in trial.hold_seconds().filter(|second| is_in(second.index)) {
        sent += second.flow.sent;
        closed += second.closed;
    }
    let hours_of = |stretches: u32| f64::from(stretches) * f64::from(stretch_s) / 3600.0;
    let span_h = hours_of(whole - left_out);
    let (sent_per_hour, closed_per_hour) = (sent as f64 / span_h, closed as f64 / span_h);
    let by_stretch = |of: fn(&Second) -> u64| counted(trial, of, &stretch_of);
    let (sent_by, closed_by) = (by_stretch(|second| second.flow.sent), by_stretch(|second| second.closed));
    let value = |figure: &Figure, stretch: u32| match figure.of {
        Of::Process(metric) => {
            let of_stretch = trial.hold_seconds().filter(|second| stretch_of(second.index) == Some(stretch));
            let signal = Signal::Subject(metric);
            let values: Vec<f64> =
                of_stretch.filter_map(|second| second.host.signals.get(&signal).copied()).collect();
            (!values.is_empty()).then(|| median(&values))
        }
        Of::Quantile(q, of) => match of(trial.stretches.all.get(stretch as usize)?).quantile(q, 0) {
            Quantile::Ns(ns) => Some(ns as f64),
            Quantile::TooFew | Quantile::Infinite => None,
        },
    };
    let trend = |figure: &Figure| {
        let middle = |stretch| hours_of(stretch) + hours_of(1) / 2.0;
        let values: Vec<(u32, f64)> =
            stretches.clone().filter_map(|stretch| Some((stretch, value(figure, stretch)?))).collect();
        let fit =
            Fit::of(&values.iter().map(|(stretch, value)| (middle(*stretch), *value)).collect::<Vec<_>>())?;
        let level = fit.at(hold_s / 3600.0);
        let grows = fit.is_growth(figure.share_least, figure.least);
        let per = |counts: &BTreeMap<u32, f64>, least: f64| {
            let points = values.iter().filter_map(|(stretch, value)| Some((*counts.get(stretch)?, *value)));
            median_slope(&points.collect::<Vec<_>>()).filter(|each| grows && *each > 0.0 && *each >= least)
        };
        let (per_sent, per_closed) = match figure.unit {
            UnitKind::Bytes => (per(&sent_by, BYTES_LEAST), per(&closed_by, BYTES_LEAST)),
            UnitKind::Count => (per(&sent_by, 0.0), per(&closed_by, 0.0)),
            _ => (None, None),
        };
        let doubles_after_h = grows.then(|| level / fit.slope);
        let (per_hour, per_hour_min, per_hour_max) =
            (fit.slope, fit.slope - fit.reach, fit.slope + fit.reach);
        let trend = Trend {
            level,
            per_hour,
            per_hour_min,
            per_hour_max,
            grows,
            doubles_after_h,
            per_sent,
            per_closed,
        };
        Some((figure.name.to_owned(), trend))
    };
    let of: BTreeMap<String, Trend> = FIGURES.iter().filter_map(trend).collect();
    let stretches = whole - left_out;
    (!of.is_empty()).then_some(TrendFigures { stretch_s, stretches, sent_per_hour, closed_per_hour, of })
}

/// Of each stretch how many there had been by then: the median of its seconds, as a figure of the process is.
///
/// What is leaked each time is the slope over these. The slope over time divided by a rate would differ from it as far as arrivals
/// are uneven: their sum is a random walk, whose slope is not its mean.
fn counted(
    trial: &Trial,
    of: fn(&Second) -> u64,
    stretch_of: &dyn Fn(u32) -> Option<u32>,
) -> BTreeMap<u32, f64> {
    let mut by_stretch: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut sum = 0;
    for second in &trial.seconds {
        sum += of(second);
        if let Some(stretch) = stretch_of(second.index) {
            by_stretch.entry(stretch).or_default().push(sum as f64);
        }
    }
    by_stretch.into_iter().map(|(stretch, sums)| (stretch, median(&sums))).collect()
}

/// The median of the slopes of all pairs of points, in ascending order of their first numbers; `None` where none ascends.
fn median_slope(points: &[(f64, f64)]) -> Option<f64> {
    let before = |(at, point): (usize, &(f64, f64))| {
        let slope = |before: &(f64, f64)| (point.1 - before.1) / (point.0 - before.0);
        points[..at].iter().filter(|before| before.0 < point.0).map(slope).collect::<Vec<_>>()
    };
    let slopes: Vec<f64> = points.iter().enumerate().flat_map(before).collect();
    (!slopes.is_empty()).then(|| median(&slopes))
}

/// A line through values over time.
#[derive(Clone, Copy, Debug)]
struct Fit {
    slope: f64,
    /// at time 0
    start: f64,
    /// from the slope to either end of its interval
    reach: f64,
    span: f64,
    /// medians of the thirds of the values
    thirds: [f64; 3],
    /// standard error of a third's median, from the steps between neighbours: no curve widens it
    third_error: f64,
}

impl Fit {
    /// `points`: time and value, in order of time. `None` where they are too few.
    fn of(points: &[(f64, f64)]) -> Option<Fit> {
        let count = points.len();
        if count < FEWEST {
            return None;
        }
        let slope = median_slope(points)?;
        let without_slope: Vec<f64> = points.iter().map(|(at, value)| value - slope * at).collect();
        let start = median(&without_slope);
        let residuals = without_slope.iter().map(|value| value - start);
        let robust = DEVIATIONS_PER_MEDIAN * median(&residuals.clone().map(f64::abs).collect::<Vec<_>>());
        // More than half of the values may lie on the line; then there is nothing to measure outliers by.
        let most = if robust > 0.0 { RESIDUAL_DEVIATIONS * robust } else { f64::INFINITY };
        let residuals: Vec<f64> = residuals.map(|residual| residual.clamp(-most, most)).collect();
        let n = count as f64;
        let offset = residuals.iter().sum::<f64>() / n;
        let squares: f64 = residuals.iter().map(|residual| (residual - offset).powi(2)).sum();
        let neighbours: f64 = residuals.windows(2).map(|pair| (pair[0] - offset) * (pair[1] - offset)).sum();
        let seen = if squares > 0.0 { neighbours / squares } else { 0.0 };
        let correlation = (seen + (1.0 + 4.0 * seen) / n).clamp(0.0, AUTOCORRELATION_MOST);
        let inflation = (1.0 + correlation) / (1.0 - correlation);
        let mean_time = points.iter().map(|point| point.0).sum::<f64>() / n;
        let spread: f64 = points.iter().map(|point| (point.0 - mean_time).powi(2)).sum();
        let error = THEIL_SEN_SCATTER * (squares / (n - 2.0) / spread * inflation).sqrt();
        let degrees = (n / inflation - 2.0).max(2.0) as usize;
        let third = count / 3;
        let values: Vec<f64> = points.iter().map(|point| point.1).collect();
        let step = scatter_of_steps(&values);
        Some(Fit {
            slope,
            start,
            reach: error * student_critical(LEVEL, degrees),
            span: points[count - 1].0 - points[0].0,
            thirds: [&values[..third], &values[third..count - third], &values[count - third..]].map(median),
            third_error: MEDIAN_SCATTER * step / (third as f64).sqrt(),
        })
    }

    fn at(&self, time: f64) -> f64 {
        self.start + self.slope * time
    }

    /// Certain, of a size that matters, and still going on.
    fn is_growth(&self, share_least: f64, least: f64) -> bool {
        let [first, middle, last] = self.thirds;
        let grown = self.slope * self.span;
        let matters = grown > share_least * first.abs() && grown > least;
        let (before, after) = (middle - first, last - middle);
        // The difference `after − GOES_ON · before` has the weights 1, 1 + GOES_ON and GOES_ON of the thirds.
        let error = self.third_error * (1.0 + (1.0 + GOES_ON).powi(2) + GOES_ON.powi(2)).sqrt();
        let goes_on = before > 0.0 && after > 0.0 && after > GOES_ON * before - GOES_ON_ERRORS * error;
        self.slope > self.reach && matters && goes_on
    }
}

/// What grew under the load that tells most: the largest that held, else the one held longest, else the largest.
pub(crate) fn conclusion(climb: &Climb) -> Option<Conclusion> {
    let told = climb.rungs.iter().filter_map(|rung| Some((rung, rung.trends.as_ref()?)));
    let (rung, trends) = told.max_by(|(a, _), (b, _)| {
        let held = |rung: &Rung| climb.capacity.lower_bound == Some(rung.load);
        held(a)
            .cmp(&held(b))
            .then(a.hold_s.round().total_cmp(&b.hold_s.round()))
            .then(a.load.total_cmp(&b.load))
    })?;
    let place =
        format!("Over {} at {} {}", show_hours(rung.hold_s / 3600.0), show_number(rung.load), rung.load_unit);
    let known = FIGURES.iter().filter_map(|figure| Some((figure, trends.of.get(figure.name)?)));
    let (grow, keep): (Vec<_>, Vec<_>) = known.partition(|(_, trend)| trend.grows);
    let sent = if rung.answered > 0 { "request" } else { "message" };
    let kept = keep.iter().map(|(figure, trend)| figure.kept(trend)).collect::<Vec<_>>().join(", ");
    let mut sentences = Vec::new();
    for (figure, trend) in &grow {
        let whose = if sentences.is_empty() { format!("{place} the server's") } else { "Its".to_owned() };
        sentences.push(format!("{whose} {}", figure.growth(trend, sent)));
    }
    match (grow.is_empty(), keep.is_empty()) {
        (true, _) => sentences.push(format!("{place} nothing of the server grew: {kept}.")),
        (false, false) => sentences.push(format!("No certain growth: {kept}.")),
        (false, true) => {}
    }
    let evidence = json!({ "load": rung.load, "hold_s": rung.hold_s, "trends": trends });
    Some(Conclusion::new("trends", &sentences, evidence))
}

impl Figure {
    /// `memory 50 MB (-0.2 MB/h to 0.1 MB/h)`
    fn kept(&self, trend: &Trend) -> String {
        let Trend { level, per_hour_min, per_hour_max, .. } = trend;
        format!(
            "{} {} ({} to {})",
            self.words,
            self.unit.show(*level),
            self.slope(*per_hour_min),
            self.slope(*per_hour_max)
        )
    }

    /// `memory grew by 4.1 MB/h (3.9 MB/h to 4.3 MB/h) to 210 MB, which doubles it in 2.1 days: about 210 B per
    /// connection that ended.`
    fn growth(&self, trend: &Trend, sent: &str) -> String {
        let Trend { level, per_hour, per_hour_min, per_hour_max, doubles_after_h, .. } = trend;
        let doubles = doubles_after_h
            .map_or(String::new(), |hours| format!(", which doubles it in {}", show_hours(hours)));
        let closed = trend.per_closed.map(|each| self.each(each, "connection", " that ended"));
        let why = match (closed, trend.per_sent.map(|each| self.each(each, sent, ""))) {
            (Some(closed), Some(sent)) => format!(": {closed}, or {sent}, as both went on evenly"),
            (Some(one), None) | (None, Some(one)) => format!(": {one}"),
            (None, None) => String::new(),
        };
        format!(
            "{} grew by {} ({} to {}) to {}{doubles}{why}.",
            self.words,
            self.slope(*per_hour),
            self.slope(*per_hour_min),
            self.slope(*per_hour_max),
            self.unit.show(*level),
        )
    }

    /// `-0.2 MB/h`
    fn slope(&self, per_hour: f64) -> String {
        let sign = if per_hour < 0.0 { "-" } else { "" };
        format!("{sign}{}/h", self.unit.show(per_hour.abs()))
    }

    /// `about 210 B per connection that ended`, `about one per 20 requests`
    fn each(&self, each: f64, thing: &str, which: &str) -> String {
        match each {
            each if each >= 1.0 => format!("about {} per {thing}{which}", self.unit.show(each)),
            each => format!("about one per {} {thing}s{which}", show_number((1.0 / each).round())),
        }
    }
}

/// `40 min`, `3.2 h`, `9.1 days`, `2.5 years`
fn show_hours(hours: f64) -> String {
    match hours {
        hours if hours < 1.0 => format!("{} min", show_number(hours * 60.0)),
        hours if hours < 48.0 => format!("{} h", show_number(hours)),
        hours if hours < 2.0 * 365.0 * 24.0 => format!("{} days", show_number(hours / 24.0)),
        hours => format!("{} years", show_number(hours / 24.0 / 365.0)),
    }
}

#[cfg(test)]
mod tests;
