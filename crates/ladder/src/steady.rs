//! Whether a hold had settled: the warm-up to cut off at its start, and whether the rest kept its level.
//!
//! Warm-up is found by MSER-5: the cut that minimises the uncertainty of the mean of the rest. The rest is searched for
//! a change of level. A backlog or a response that ends higher than it began is *drifting*: such a server has not shown
//! that it sustains this load, whatever its earlier percentiles say. Any other change is *unsteady*.
//! Invariant: a single outlying second is neither warm-up nor drift; a running median of three removes it first.
//! Units: series have one value per second of the hold; `_ns` where a value is a time.
//! Sources: White, "An effective truncation heuristic", Simulation 69 (1997); White, Cobb and Spratt, WSC 2000 (batches
//! of five); Hoad, Robinson and Davies, J. Oper. Res. Soc. 61 (2010): a minimum in the second half means that nothing
//! settled. The change point is the two-sample maximum over all splits (Hawkins, J. Am. Stat. Assoc. 72, 1977).

use std::fmt;

use measure::Trial;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::wording::{show_ns, show_share};

/// Fewer batches than this say nothing about levels.
const FEWEST_BATCHES: usize = 6;
/// A batch is as long as MSER-5 asks in long holds, shorter when that would leave fewer batches than this.
const BATCHES: usize = 20;
/// The five of MSER-5.
const LONGEST_BATCH_S: usize = 5;
/// A warm-up batch deviates from the settled ones by this many of their standard deviations, more when they are few.
/// MSER alone cuts a third of all stationary series.
const WARM_UP_DEVIATIONS: f64 = 3.0;
/// Of normal noise: the difference of two values has √2 times their deviation, and its median is 0.6745 of that.
const DEVIATIONS_PER_MEDIAN_STEP: f64 = 1.0 / (0.6745 * std::f64::consts::SQRT_2);
/// A change of level must be this certain; the largest of 17 splits of pure noise passes it in about 1 of 300 series.
const CHANGE_STANDARD_ERRORS: f64 = 4.5;
/// … and this large against the scatter of batches, since seconds of a queue resemble their neighbours.
const CHANGE_DEVIATIONS: f64 = 2.0;
/// … and this large against the lower of the two levels.
const CHANGE_RATIO: f64 = 1.5;
/// If this many seconds at the end are worse than all before them, they count as a level of their own, even if a batch is longer.
const END_S: usize = 4;
/// Of the failed share of the replies.
const FAILED_SHARE_FLOOR: f64 = 0.05;

/// How a hold went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum Steadiness {
    /// one level throughout
    Steady,
    /// something that is better small ended higher than it began
    Drifting,
    /// the level changed, but not for the worse to the end
    Unsteady,
}

impl fmt::Display for Steadiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Steadiness::Steady => "steady",
            Steadiness::Drifting => "drifting",
            Steadiness::Unsteady => "unsteady",
        })
    }
}

/// What was found about a hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// the gravest over all series
    pub steadiness: Steadiness,
    /// where the level changed; `None` when steady
    pub change: Option<Change>,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// which series
    pub of: Series,
    /// seconds from the start of the judged hold
    pub after_s: usize,
    /// mean level before
    pub before: f64,
    /// mean level after
    pub after: f64,
}

/// A figure by second. All of them are better small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// messages waiting for their reply at the end of the second
    Backlog,
    /// mean response, ns
    Response,
    /// mean delivery latency, ns
    Delivery,
    /// late share of the ticks
    LateShare,
    /// of what was replied to or cut off: the share that was refused, wrong or cut off
    FailedShare,
}

/// The minimum size of a change: smaller ones do not matter, however certain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floors {
    /// mean response or delivery latency, ns; `None`: replies are not what this server is judged by, so neither they
    /// nor their backlog are looked at
    pub response_ns: Option<f64>,
    /// messages waiting: as many as arrive in this time
    pub backlog_s: f64,
    /// share of ticks
    pub late_share: f64,
}

impl Series {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Series::Backlog => "the backlog",
            Series::Response => "the mean response",
            Series::Delivery => "the mean delivery latency",
            Series::LateShare => "the late share of the ticks",
            Series::FailedShare => "the failed share of the replies",
        }
    }

    /// A level of it for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Series::Backlog => format!("{value:.0} messages"),
            Series::Response | Series::Delivery => show_ns(value),
            Series::LateShare | Series::FailedShare => show_share(value),
        }
    }
}

impl Default for Floors {
    fn default() -> Self {
        Floors { response_ns: Some(5e6), backlog_s: 0.01, late_share: 0.05 }
    }
}

/// How many seconds at the begin of the hold are warm-up: never more than half of it.
///
/// `trial` must be folded without a cut. The late share of the server's ticks tells when there are ticks, else the mean
/// response, else the mean delivery latency, else the rate of sends. 0 when nothing stands out, when nothing settled, or when the hold is too short.
pub fn warm_up_cut(trial: &Trial) -> u32 {
    let late = series(trial, Series::LateShare);
    let of_replies = series(trial, Series::Response);
    let response = if of_replies.is_empty() { series(trial, Series::Delivery) } else { of_replies };
    let cut = if !late.is_empty() {
        warm_up(&late, 0.01)
    } else if !response.is_empty() {
        warm_up(&response, 0.1 * mean(&response))
    } else {
        let rate: Vec<f64> = trial.hold_seconds().map(|second| second.flow.sent as f64).collect();
        warm_up(&rate, 0.02 * mean(&rate))
    };
    cut as u32
}

/// How the judged part of the hold went; `None` when it is too short to tell.
pub fn steadiness(trial: &Trial, floors: &Floors) -> Option<Finding> {
    // Ten messages at least: fewer are just fluctuations of what is in flight.
    let questions = crate::figures::questions(trial).sent as f64;
    let rate_per_s = crate::figures::counted_seconds(trial).map_or(0.0, |seconds| questions / seconds);
    let backlog_floor = (floors.backlog_s * rate_per_s).max(10.0);
    let floors = [
        (Series::Backlog, floors.response_ns.map(|_| backlog_floor)),
        (Series::Response, floors.response_ns),
        (Series::Delivery, floors.response_ns),
        (Series::LateShare, Some(floors.late_share)),
        (Series::FailedShare, Some(FAILED_SHARE_FLOOR)),
    ];
    let mut found = None;
    for (of, floor) in floors {
        let Some(floor) = floor else { continue };
        let Some((steadiness, change)) = change(&series(trial, of), floor) else { continue };
        let change = change.map(|(after_s, before, after)| Change { of, after_s, before, after });
        let finding = Finding { steadiness, change };
        let is_graver =
            found.as_ref().is_none_or(|known: &Finding| rank(steadiness) > rank(known.steadiness));
        if is_graver {
            found = Some(finding);
        }
    }
    // A generator of shots alone, with no per-second criterion, is steady when its rate is.
    found.or_else(|| {
        let rate: Vec<f64> = trial.hold_seconds().map(|second| second.flow.sent as f64).collect();
        let (steadiness, _) = change(&rate, 0.1 * mean(&rate))?;
        let steadiness = if steadiness == Steadiness::Steady { steadiness } else { Steadiness::Unsteady };
        Some(Finding { steadiness, change: None })
    })
}

fn rank(steadiness: Steadiness) -> u8 {
    match steadiness {
        Steadiness::Steady => 0,
        Steadiness::Unsteady => 1,
        Steadiness::Drifting => 2,
    }
}

fn series(trial: &Trial, of: Series) -> Vec<f64> {
    let owes_replies = crate::figures::questions(trial).sent > 0;
    let are_ticks_clear = crate::figures::unclear(trial) == 0;
    trial
        .hold_seconds()
        .filter_map(|second| match of {
            Series::Backlog => owes_replies.then_some(second.flow.open_after as f64),
            Series::Response => second.response_mean_ns,
            Series::Delivery => second.delivery_mean_ns,
            Series::LateShare => second.ticks.late_share().filter(|_| are_ticks_clear),
            Series::FailedShare => {
                let failed = second.flow.failed + second.flow.lost;
                let ended = second.flow.answered + failed;
                (ended > 0).then(|| failed as f64 / ended as f64)
            }
        })
        .collect()
}

/// MSER-5 with a guard: how many of the first values are warm-up. `floor`: smaller differences do not matter.
pub fn warm_up(values: &[f64], floor: f64) -> usize {
    let batch_s = batch_length(values.len());
    let batches = batches(&smooth(values, true), batch_s);
    let count = batches.len();
    if count < FEWEST_BATCHES {
        return 0;
    }
    let most = count / 2;
    let marginal_error = |cut: usize| {
        let rest = &batches[cut..];
        sum_of_squares(rest) / (rest.len() * rest.len()) as f64
    };
    let mut best = (0, marginal_error(0));
    for cut in 1..=most {
        let error = marginal_error(cut);
        if error < best.1 {
            best = (cut, error);
        }
    }
    // The minimum is flat: noise moves it far into the settled part. So the rest only defines the settled level, and
    // the cut is after the last batch that deviates from it.
    let (warm, rest) = batches.split_at(best.0);
    let settled = mean(rest);
    let least_scatter = step_scatter(values, batch_s);
    if standard_errors(rest, rest.len() / 2, least_scatter) >= CHANGE_STANDARD_ERRORS {
        return 0;
    }
    // A rest of few batches was selected for its small scatter.
    let scatter = deviation(rest).max(least_scatter);
    let deviations = WARM_UP_DEVIATIONS * (1.0 + 4.0 / (rest.len() - 1) as f64);
    let farthest = (deviations * scatter).max(floor);
    let cut = warm.iter().rposition(|batch| (batch - settled).abs() > farthest).map_or(0, |at| at + 1);
    // A series that deviates up to the end of the range never settled; then there is no warm-up to cut.
    if cut + 1 >= most { 0 } else { (cut * batch_s).min(values.len() / 2) }
}

/// Index of the first value after a change of level, the level before, the level after.
type LevelStep = (usize, f64, f64);

/// Searches for a change of level; `None` when the series is too short to tell.
fn change(values: &[f64], floor: f64) -> Option<(Steadiness, Option<LevelStep>)> {
    let batch_s = batch_length(values.len());
    let batches = batches(&smooth(values, false), batch_s);
    let count = batches.len();
    if count < FEWEST_BATCHES {
        return None;
    }
    let least_scatter = step_scatter(values, batch_s);
    let mut best: Option<(usize, f64)> = None;
    for split in 2..=count - 2 {
        let certainty = standard_errors(&batches, split, least_scatter);
        if best.is_none_or(|(_, most)| certainty > most) {
            best = Some((split, certainty));
        }
    }
    let (split, certainty) = best?;
    let (first, second) = batches.split_at(split);
    let (before, after) = (mean(first), mean(second));
    let (difference, scatter) = ((after - before).abs(), pooled_deviation(first, second));
    let matters = difference >= floor && before.max(after) >= CHANGE_RATIO * before.min(after);
    // Few batches say little about their own scatter, as in Student's distribution.
    let asked = CHANGE_STANDARD_ERRORS * (1.0 + 2.0 / (count - 2) as f64);
    if let Some(end) = high_end(values, floor) {
        return Some((Steadiness::Drifting, Some(end)));
    }
    if !matters || certainty < asked || difference < CHANGE_DEVIATIONS * scatter {
        return Some((Steadiness::Steady, None));
    }
    let last = &batches[count - (count / 5).max(2)..];
    let stays_up = after > before && median(last) >= before + 0.5 * difference;
    let steadiness = if stays_up { Steadiness::Drifting } else { Steadiness::Unsteady };
    Some((steadiness, Some((split * batch_s, before, after))))
}

/// A level that rose too late for two batches to show it: all of the last seconds are higher than any before, single odd ones
/// aside, by more than those scatter.
fn high_end(values: &[f64], floor: f64) -> Option<LevelStep> {
    let split = values.len().checked_sub(END_S).filter(|split| *split >= 2 * END_S)?;
    let smoothed = smooth(&values[..split], false);
    let end = &values[split..];
    let lowest = end.iter().copied().fold(f64::INFINITY, f64::min);
    // The level may have risen within the last second before.
    let before = &smoothed[..smoothed.len() - 1];
    let highest = before.iter().copied().fold(0.0, f64::max);
    let usual = mean(before);
    let asked = (highest - usual).max(CHANGE_STANDARD_ERRORS * deviation(&values[..split - 1])).max(floor);
    let matters = lowest >= CHANGE_RATIO * usual;
    (matters && lowest - usual > asked).then(|| (split, usual, mean(end)))
}

/// How many standard errors lie between the levels before and after a split.
fn standard_errors(batches: &[f64], split: usize, least_scatter: f64) -> f64 {
    let (first, second) = batches.split_at(split);
    let difference = (mean(second) - mean(first)).abs();
    let per_batch = pooled_deviation(first, second).max(least_scatter);
    let scatter = per_batch * (1.0 / first.len() as f64 + 1.0 / second.len() as f64).sqrt();
    match (difference > 0.0, scatter > 0.0) {
        (false, _) => 0.0,
        (true, false) => f64::INFINITY,
        (true, true) => difference / scatter,
    }
}

/// How many values a batch has in a series of `values`: a cut is a multiple of it.
pub fn batch_length(values: usize) -> usize {
    (values / BATCHES).clamp(1, LONGEST_BATCH_S)
}

/// Means of batches; values left over at the end belong to the last one.
fn batches(values: &[f64], length: usize) -> Vec<f64> {
    let count = values.len() / length;
    (0..count)
        .map(|batch| {
            let end = if batch + 1 == count { values.len() } else { (batch + 1) * length };
            mean(&values[batch * length..end])
        })
        .collect()
}

/// The deviation of a batch, from the steps between neighbours in the raw series. Smoothing takes scatter away and
/// splits are chosen for having little; neither odd seconds nor one change of level widen the median of the steps.
fn step_scatter(values: &[f64], batch_s: usize) -> f64 {
    scatter_of_steps(&batches(values, batch_s))
}

/// The deviation of values around a course that changes slowly, from the steps between neighbours.
pub(crate) fn scatter_of_steps(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    median(&steps) * DEVIATIONS_PER_MEDIAN_STEP
}

/// The running median of three. The last value is smoothed with its two predecessors; so is the first with its
/// successors unless it is kept, because a warm-up may last one second.
fn smooth(values: &[f64], keeps_first: bool) -> Vec<f64> {
    if values.len() < 3 {
        return values.to_vec();
    }
    let mut smoothed: Vec<f64> = (0..values.len())
        .map(|at| {
            let from = at.saturating_sub(1).min(values.len() - 3);
            median(&values[from..from + 3])
        })
        .collect();
    if keeps_first {
        smoothed[0] = values[0];
    }
    smoothed
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Of none, 0.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

fn sum_of_squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean) * (value - mean)).sum()
}

fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 { 0.0 } else { (sum_of_squares(values) / (values.len() - 1) as f64).sqrt() }
}

fn pooled_deviation(first: &[f64], second: &[f64]) -> f64 {
    let freedom = (first.len() + second.len()).saturating_sub(2).max(1);
    ((sum_of_squares(first) + sum_of_squares(second)) / freedom as f64).sqrt()
}

#[cfg(test)]
mod tests;
