//! Two independent records of the same ticks: the server's log, and the clients that receive its snapshots.
//!
//! A server that claims to be on time while its clients see otherwise does not pass. A disturbance can delay ticks on
//! their way to the client; then neither record is trusted, and the disturbance is named. Behind an emulated network with jitter,
//! loss or a bandwidth ticks come unevenly, and the two are not compared.

use measure::{Measure, Quantile, Trial};

use super::{Case, Ruling, Verdict};
use crate::figures::bounds;
use crate::wording::{show_ns, show_share};

/// Server and clients contradict each other when their late shares lie farther apart than this. The way to the client
/// makes some ticks late for it that were on time at the server, hence as much as a quarter.
pub const LATE_SHARES_APART_MOST: f64 = 0.25;

/// Late shares of the ticks by the server and by its clients, where these lie too far apart.
fn shares_apart(trial: &Trial) -> Option<(f64, f64)> {
    if !trial.has_even_network() {
        return None;
    }
    let (most, clients) = (trial.ticks.as_ref()?.counts.late_share()?, trial.client_ticks.late_share()?);
    let (least, most) = bounds(trial, "ticks.late_share").unwrap_or((most, most));
    let shares = (clients.clamp(least, most), clients);
    ((shares.0 - shares.1).abs() > LATE_SHARES_APART_MOST).then_some(shares)
}

/// True when server and clients contradict each other; a disturbed hold then goes on for undisturbed seconds.
pub(super) fn is_contradicted(trial: &Trial) -> bool {
    shares_apart(trial).is_some()
}

/// Two witnesses that contradict each other leave the case open; neither is preferred.
pub(super) fn inconsistent(case: &Case<'_>) -> Option<Ruling> {
    shares_apart(case.trial).and_then(|shares| late_shares(case, shares)).or_else(|| intervals(case))
}

fn late_shares(case: &Case<'_>, shares: (f64, f64)) -> Option<Ruling> {
    const WHAT: &str = "the late share of the ticks";
    let (server, clients) = shares;
    // A disturbance makes ticks late on their way to the client, and never early.
    let explained = if clients > server { case.disturbance.explains_messages } else { 0.0 };
    if (server - clients).abs() - explained > LATE_SHARES_APART_MOST {
        return contradiction(WHAT, show_share(server), show_share(clients), None);
    }
    match case.fair {
        Some(fair) => shares_apart(fair)
            .and_then(|(server, clients)| contradiction(WHAT, show_share(server), show_share(clients), None)),
        None => {
            contradiction(WHAT, show_share(server), show_share(clients), Some(case.disturbance.culprit()))
        }
    }
}

fn intervals(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.fair_view().filter(|trial| trial.has_even_network())?;
    let server = trial.ticks.as_ref()?;
    let period_ns = trial.head.tick_period_ns;
    if let (Quantile::Ns(ours_ns), Quantile::Ns(theirs_ns)) =
        (server.interval.quantile(0.99, 0), trial.distribution(Measure::TickInterval).quantile(0.99, 0))
        && period_ns > 0
        && ours_ns.abs_diff(theirs_ns) > period_ns
    {
        let what = "p99 of the interval between ticks";
        return contradiction(what, show_ns(ours_ns as f64), show_ns(theirs_ns as f64), None);
    }
    None
}

/// `culprit`: what may have delayed the ticks on their way.
fn contradiction(what: &str, server: String, clients: String, culprit: Option<String>) -> Option<Ruling> {
    let remedy = match culprit {
        None => "look for what stands between them, or for a server that does not tell the truth".to_owned(),
        Some(culprit) => format!(
            "either the machine delayed the clients ({culprit}) or the server does not tell the truth; run it again on a \
             quieter machine"
        ),
    };
    let reason =
        format!("inconsistent: {what} is {server} by the server and {clients} by its clients; {remedy}");
    Some(Ruling::new(Verdict::Inconclusive, "inconsistent", reason))
}
