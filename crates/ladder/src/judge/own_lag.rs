//! What a late load generator cannot explain, so that a rung is decided all the same.
//!
//! A server that serves in order and never idles answers nothing later than it was asked too late: when each request
//! arrives by at most d later, each reply leaves by at most d later (Lindley 1952). So the longest that a send and a read
//! were delayed bounds what the generator added to any latency, however the delays fell. Of ticks, late sends touch only
//! those within or right after a time in which sends were late.
//! Where that much is granted and the objectives are still missed, or still met, the generator decides nothing.
//! Not here: what a late generator is (`generator`).

use measure::{Measure, Trial};

use super::generator::{lag_limit, own_latency_ns, send_lag_ns};
use super::views::Seen;
use super::{Asked, Case, Ruling, Verdict, tightest};
use crate::figures::{FigureValue, counted_seconds};
use crate::objective::Objective;
use crate::wording::{show_ns, show_share};

/// A worker without a core is late for what is due and then for what has arrived; what arrives while it works through a turn
/// is read in the next one.
const DELAYS_PER_MESSAGE: f64 = 2.0;
/// A wait that lasts this many times as long as the sends of a worker lie apart is seen by one of them: with random arrivals
/// in all but e⁻¹⁰ of the cases.
const GAPS_PER_WAIT: f64 = 10.0;
/// Of a time without sends that lasts a tick or longer, at least half of what was due is later than half a tick. So it lasts
/// at most twice the share of such sends …
const WITHHELD_PER_LATE_SEND: f64 = 2.0;
/// … and what comes at once at its end makes two ticks late: at most four times that share.
const BUNCHED_PER_LATE_SEND: f64 = 4.0;

/// What can be said in spite of a late generator.
pub(super) enum AllTheSame {
    /// every objective is met, whatever the late sends would have done in time
    Met,
    /// an objective is missed by more than the generator can explain
    Missed(Ruling),
    /// the generator may be why
    Unknown,
}

/// Asks each objective again, with everything granted that the generator can have caused.
pub(super) fn all_the_same(case: &Case<'_>) -> AllTheSame {
    let Some(seen) = case.fair_view() else { return AllTheSame::Unknown };
    let told: Vec<(&Objective, String)> = case
        .outcomes
        .iter()
        .filter_map(|asked| told_missed(case, seen, asked).map(|told| (asked.objective, told)))
        .collect();
    if let Some((first, _)) = told.first() {
        let reason = told.iter().map(|(_, told)| told.as_str()).collect::<Vec<_>>().join("; ");
        return AllTheSame::Missed(Ruling::new(Verdict::Fail, first.figure().name, reason));
    }
    // Latencies have a limit of their own where all of them are met.
    let asks_for_ticks = case.outcomes.iter().any(|asked| asked.objective.figure().is_late_share_of_server());
    if case.meets_all()
        && asks_for_ticks
        && tightest(case.terms).is_none()
        && case.outcomes.iter().all(|asked| is_met_all_the_same(seen, asked.objective))
    {
        return AllTheSame::Met;
    }
    AllTheSame::Unknown
}

/// Why an objective is missed in spite of everything that the generator can explain; `None` where it may explain it.
fn told_missed(case: &Case<'_>, seen: &Trial, asked: &Asked<'_>) -> Option<String> {
    let objective = asked.objective;
    let name = objective.figure().name;
    let lag = send_lag_ns(seen, 0.99).map_or(String::new(), |lag_ns| {
        format!(" (send lag p99 {}, limit {})", show_ns(lag_ns), show_ns(lag_limit(case).limit_ns))
    });
    let Seen::NotMet { shown, .. } = &asked.seen else { return None };
    if objective.figure().is_late_share_of_server() {
        let explained = BUNCHED_PER_LATE_SEND * share_of_late_sends(seen)?;
        let FigureValue::Value(late) = objective.figure().read(seen) else { return None };
        if explained >= 1.0 || objective.op().holds((late - explained) / (1.0 - explained), objective.bound())
        {
            return None;
        }
        let explained = show_share(explained);
        return Some(format!(
            "{name} was {shown} (objective: {objective}); the late load generator{lag} explains at most {explained} of the ticks"
        ));
    }
    let explained_ns = most_delayed_ns(case, seen)?;
    // What has no time at all was never sent, or was dropped by a server whose replies nobody read.
    objective.is_quantile_missed_by(seen, explained_ns).then(|| {
        let explained = show_ns(explained_ns);
        format!("{name} was {shown} (objective: {objective}); the late load generator{lag} explains at most {explained} of it")
    })
}

/// Whether an objective would be met had all ticks been late in whose time nothing was sent.
fn is_met_all_the_same(seen: &Trial, objective: &Objective) -> bool {
    let figure = objective.figure();
    if !figure.is_late_share_of_server() {
        return true;
    }
    let withheld = share_of_late_sends(seen).map(|share| WITHHELD_PER_LATE_SEND * share);
    matches!((figure.read(seen), withheld), (FigureValue::Value(late), Some(withheld))
        if objective.op().holds((late + withheld).min(1.0), objective.bound()))
}

/// The longest that the generator can have delayed one message, ns; `None` where its reads are not timed.
fn most_delayed_ns(case: &Case<'_>, seen: &Trial) -> Option<f64> {
    let sends = seen.distribution(Measure::SendLag);
    let longest_ns = |measure| seen.distribution(measure).max_ns().map(|ns| ns as f64);
    let delays_ns = longest_ns(Measure::SendLag)? + longest_ns(Measure::ReceiveLag)?;
    let cores = seen.worker.allowed_cores.unwrap_or(1.0).max(1.0);
    let gap_ns = counted_seconds(seen)? * 1e9 * cores / sends.count().max(1) as f64;
    let weighed = case.terms.calibration.as_ref().filter(|weighed| !weighed.was_disturbed);
    let own_ns = weighed.and_then(|_| own_latency_ns(case.terms)).unwrap_or(0.0);
    // A request that comes just too late for its tick waits for the next.
    let tick_ns = seen.head.tick_period_ns as f64;
    Some(DELAYS_PER_MESSAGE * delays_ns + GAPS_PER_WAIT * gap_ns + own_ns + tick_ns)
}

/// Of all sends, those that were later than half a tick; `None` without sends or without ticks.
fn share_of_late_sends(seen: &Trial) -> Option<f64> {
    let half_ns = seen.head.tick_period_ns as f64 / 2.0;
    let lags = seen.distribution(Measure::SendLag);
    if half_ns <= 0.0 || lags.is_empty() {
        return None;
    }
    let late: u64 = lags.buckets().filter(|&(ns, _)| ns as f64 > half_ns).map(|(_, count)| count).sum();
    Some(late as f64 / lags.count() as f64)
}

#[cfg(test)]
mod tests;
