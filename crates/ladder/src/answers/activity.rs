//! What the server and the machine did over a hold: each reading of fixed name, as a mean and a largest second.

use std::collections::BTreeMap;

use measure::{Measure, OverTime, Signal, ThreadsOfName, Trial};

use crate::contract::{NamedThreadsFigures, SignalLevel};

/// The name of the share of time in which all connections were silent at once although answers were owed.
pub(super) const STALLED_SHARE: &str = "stalled_share";

/// Levels over the seconds of the hold, by the signals' names. A total needs two seconds.
pub(super) fn activity(trial: &Trial) -> BTreeMap<String, SignalLevel> {
    let mut series: BTreeMap<Signal, Vec<(u32, f64)>> = BTreeMap::new();
    for second in trial.hold_seconds() {
        for (signal, value) in &second.host.signals {
            series.entry(*signal).or_default().push((second.index, *value));
        }
    }
    let first_s = trial.hold_seconds().map(|second| second.index).min().unwrap_or(0);
    let of = |(signal, values): (Signal, Vec<(u32, f64)>)| {
        let values = match signal.over_time() {
            OverTime::Total => growth(&values),
            OverTime::Largest | OverTime::OfSecond => values,
        };
        Some((signal.name(), level(&values, first_s)?))
    };
    let mut levels: BTreeMap<String, SignalLevel> = series.into_iter().filter_map(of).collect();
    if !trial.distribution(Measure::Stall).is_empty() {
        let stalled: Vec<(u32, f64)> =
            trial.hold_seconds().map(|second| (second.index, second.stalled_share)).collect();
        levels.extend(level(&stalled, first_s).map(|level| (STALLED_SHARE.to_owned(), level)));
    }
    levels
}

/// Names of threads that a rung has.
const NAMES_SHOWN: usize = 5;

/// The names whose threads used most CPU.
pub(super) fn threads(trial: &Trial) -> Vec<NamedThreadsFigures> {
    let figures = |of: ThreadsOfName| NamedThreadsFigures {
        name: of.name,
        cpu_cores: of.cpu_cores,
        cpu_cores_max: of.cpu_cores_max,
    };
    trial.threads_by_name(NAMES_SHOWN).into_iter().map(figures).collect()
}

/// From one second to the next, per second. A total that falls began anew.
fn growth(totals: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let between = |pair: &[(u32, f64)]| {
        let ((from_s, before), (to_s, after)) = (pair[0], pair[1]);
        let seconds = to_s.checked_sub(from_s).filter(|seconds| *seconds > 0)?;
        (after >= before).then(|| (to_s, (after - before) / f64::from(seconds)))
    };
    totals.windows(2).filter_map(between).collect()
}

fn level(values: &[(u32, f64)], first_s: u32) -> Option<SignalLevel> {
    let finite: Vec<(u32, f64)> = values.iter().copied().filter(|(_, value)| value.is_finite()).collect();
    let max = finite.iter().map(|(_, value)| *value).max_by(f64::total_cmp)?;
    let mean = finite.iter().map(|(_, value)| value).sum::<f64>() / finite.len() as f64;
    let half = finite.iter().find(|(_, value)| max > 0.0 && *value >= max / 2.0);
    let half_at_s = half.map(|(index, _)| index.saturating_sub(first_s));
    Some(SignalLevel { mean, max, half_at_s })
}
