//! What a late load generator cannot explain, so that a rung can still be decided.
//!
//! For a server that serves in order and never idles, if each request arrives by at most d later, each reply leaves by
//! at most d later (Lindley 1952). So the longest delay of a send and a read bounds what the generator added to any
//! latency, however the delays were distributed. For ticks, late sends affect only those during or right after a time
//! in which sends were late.
//! If the objectives are still missed, or still met, after allowing for that bound, the generator does not matter.
//! Not here: when a generator is late (`generator`).

use measure::{Measure, Trial};

use super::generator::{lag_limit, send_lag_ns, undisturbed_own_latency_ns};
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
    /// every objective is met, and would be had all sends left in time
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
    let is_met = case.meets_all() && tightest(case.terms).is_none() && are_ticks_met(case, seen);
    if is_met { AllTheSame::Met } else { AllTheSame::Unknown }
}

/// Why an objective is missed in spite of everything that the generator can explain; `None` where it may explain it.
fn told_missed(case: &Case<'_>, seen: &Trial, asked: &Asked<'_>) -> Option<String> {
    let Seen::NotMet { shown, .. } = &asked.seen else { return None };
    let objective = asked.objective;
    let explained = if objective.figure().is_late_share_of_server() {
        let explained = BUNCHED_PER_LATE_SEND * share_of_late_sends(seen)?;
        let FigureValue::Value(late) = objective.figure().read(seen) else { return None };
        let is_missed = explained < 1.0
            && !objective.op().holds((late - explained) / (1.0 - explained), objective.bound());
        is_missed.then(|| format!("{} of the ticks", show_share(explained)))
    } else {
        let explained_ns = most_delayed_ns(case, seen)?;
        objective
            .is_quantile_missed_by(seen, explained_ns)
            .then(|| format!("{} of it", show_ns(explained_ns)))
    }?;
    let lag = send_lag_ns(seen, 0.99).map_or(String::new(), |lag_ns| {
        format!(" (send lag p99 {}, limit {})", show_ns(lag_ns), show_ns(lag_limit(case).limit_ns))
    });
    let missed = asked.missed_words(shown, "");
    Some(format!("{missed}; the late load generator{lag} explains at most {explained}"))
}

/// Whether late ticks are asked about, and would be few enough had every tick been late in whose time nothing was sent.
fn are_ticks_met(case: &Case<'_>, seen: &Trial) -> bool {
    let Some(late_sends) = share_of_late_sends(seen) else { return false };
    let is_met = |objective: &Objective| {
        let FigureValue::Value(late) = objective.figure().read(seen) else { return false };
        objective.op().holds((late + WITHHELD_PER_LATE_SEND * late_sends).min(1.0), objective.bound())
    };
    let mut of_ticks = case
        .outcomes
        .iter()
        .map(|asked| asked.objective)
        .filter(|objective| objective.figure().is_late_share_of_server())
        .peekable();
    of_ticks.peek().is_some() && of_ticks.all(is_met)
}

/// The longest that the generator can have delayed one message, ns; `None` where its reads are not timed.
fn most_delayed_ns(case: &Case<'_>, seen: &Trial) -> Option<f64> {
    let sends = seen.distribution(Measure::SendLag);
    let longest_ns = |measure| seen.distribution(measure).max_ns().map(|ns| ns as f64);
    let delays_ns = longest_ns(Measure::SendLag)? + longest_ns(Measure::ReceiveLag)?;
    let cores = seen.worker.allowed_cores.unwrap_or(1.0).max(1.0);
    let gap_ns = counted_seconds(seen)? * 1e9 * cores / sends.count().max(1) as f64;
    let own_ns = undisturbed_own_latency_ns(case.terms).unwrap_or(0.0);
    // A request that just misses its tick waits for the next.
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
    Some(lags.count_above(half_ns) as f64 / lags.count() as f64)
}

#[cfg(test)]
mod tests;
