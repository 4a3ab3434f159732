//! The rules that apply only to request loads: refused connections, arrivals locked to ticks, drift.
//!
//! A server that refuses requests often closes their connections too. The user's objectives take precedence: errors are
//! reported first, quoting the first one, and missing connections only if no objective decided.

use measure::{LoadUnit, Trial};

use super::{Case, Criteria, Ruling, Verdict, generator, rules};
use crate::figures;
use crate::steady::Floors;
use crate::wording::show_share;

/// A server that answers in ticks has a tick's arrivals waiting whenever one looks; a few ticks' worth come and go at a
/// high load without growing.
pub const BACKLOG_TICKS: f64 = 4.0;

/// True when a load counts requesters or requests per second.
pub(super) fn asks(trial: &Trial) -> bool {
    trial.head.load_unit.counts_requests()
}

/// Missing connections, unless they went missing together with requests: those are asked about first.
pub(super) fn connections(case: &Case<'_>) -> Option<Ruling> {
    let explains = asks(case.trial) && figures::any_failed(case.trial);
    if explains { generator::no_room(case) } else { rules::connections(case) }
}

/// What changes matter to a server of requests: on one with ticks, none smaller than a tick; and how many of its ticks are
/// late only where that is asked.
pub(super) fn floors(trial: &Trial, terms: &Criteria) -> Floors {
    let floors = Floors::default();
    let period_ns = trial.head.tick_period_ns as f64;
    let asks_for_ticks = terms.objectives.iter().any(|objective| objective.figure().is_of_ticks());
    Floors {
        response_ns: floors.response_ns.map(|least_ns| least_ns.max(period_ns)),
        backlog_s: floors.backlog_s.max(BACKLOG_TICKS * period_ns / 1e9),
        late_share: if asks_for_ticks { floors.late_share } else { f64::INFINITY },
    }
}

/// Even arrivals that hit the same few phases of every tick: correctness is still judged, latencies are not.
pub(super) fn aliased(case: &Case<'_>) -> Option<Ruling> {
    let found = case.arrival_phases.filter(|found| found.is_locked())?;
    let objective =
        case.outcomes.iter().map(|asked| asked.objective).find(|one| one.figure().is_phase_dependent())?;
    let places = match found.harmonic {
        1 => "one place".to_owned(),
        _ => "a few places".to_owned(),
    };
    let reason = format!(
        "aliased: the arrivals met {places} of the server's tick again and again (resultant {} at harmonic {}, p < 0.001), so \
         {} is theirs and not that of users; use --arrivals poisson, or a rate that is no simple part or multiple of \
         the tick rate",
        show_share(found.resultant),
        found.harmonic,
        objective.figure().name,
    );
    Some(Ruling::new(Verdict::Inconclusive, "aliased", reason))
}

/// A hold in which no request or line was offered shows nothing, however well everything else was met. Bots that keep
/// sending prevent this; it is checked anyway, because such a hold would meet every objective.
pub(super) fn nothing_asked(case: &Case<'_>) -> Option<Ruling> {
    let head = &case.trial.head;
    let is_chat = case.trial.books.is_some();
    let is_asked = asks(case.trial) || head.load_unit == LoadUnit::InFlight || is_chat;
    let flow = case.trial.flow();
    if !is_asked || flow.offered > 0 || flow.open_before > 0 {
        return None;
    }
    let (asked, request) = if is_chat { ("said", "line") } else { ("asked", "request") };
    let reason = format!(
        "nothing was {asked} in the hold, so nothing was shown: no client sent a {request}; see the errors of the connections, \
         and run it again"
    );
    Some(Ruling::new(Verdict::Inconclusive, "nothing asked", reason))
}

#[cfg(test)]
mod tests;
