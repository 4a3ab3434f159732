//! Independent records of the same ticks: the server's log, the clients that receive its snapshots, further sources.
//!
//! One of them is judged: the server's own, or the clients' view where there is none. A server that claims to be on time while
//! another record says otherwise does not pass. A disturbance can delay ticks on their way; then neither record is trusted, and
//! the disturbance is named. Behind an emulated network with jitter, loss or a bandwidth ticks come unevenly, and the clients' view
//! is not compared.

use measure::trial::ComparedTicks;
use measure::{Distribution, Measure, Quantile, Trial};

use super::{Case, Ruling, Verdict};
use crate::figures::{self, late_bounds};
use crate::wording::{show_ns, show_share};

/// Two records contradict each other when their late shares lie farther apart than this. The way to the client
/// makes some ticks late for it that were on time at the server, hence as much as a quarter.
pub const LATE_SHARES_APART_MOST: f64 = 0.25;

/// How a source of ticks is written that is its clients.
pub(crate) const CLIENT: &str = "client";
/// How a sentence calls them.
const CLIENTS: &str = "its clients";
const INCONSISTENT: &str = "inconsistent";

/// What one source tells of the ticks of a hold.
struct Record<'a> {
    /// `the server`, `its clients`, `statsd=127.0.0.1:8125`
    name: &'a str,
    /// the least and the most that its late share can be
    late: (f64, f64),
    interval: &'a Distribution,
}

/// The record that is judged, by the name that it has beside one other or beside several.
fn judged(trial: &Trial) -> Option<Record<'_>> {
    let counts = figures::ticks(trial)?;
    let late = late_bounds(&counts, figures::unclear(trial))?;
    let name = if trial.ticks.is_some() { "the server" } else { CLIENTS };
    let own = trial.ticks.as_ref().map(|ticks| &ticks.interval);
    Some(Record { name, late, interval: own.unwrap_or_else(|| trial.distribution(Measure::TickInterval)) })
}

/// The other records, each with that which is judged.
fn pairs(trial: &Trial) -> impl Iterator<Item = (Record<'_>, Record<'_>)> {
    let clients = trial.ticks.as_ref().filter(|_| trial.has_even_network()).and_then(|_| {
        let late = late_bounds(&trial.client_ticks, 0)?;
        let interval = trial.distribution(Measure::TickInterval);
        Some((judged(trial)?, Record { name: CLIENTS, late, interval }))
    });
    let further = trial.compared_ticks.iter().filter_map(|compared| {
        let ticks = compared.ticks.as_ref()?;
        let late = late_bounds(&ticks.counts, compared.unclear)?;
        let judged = judged(trial).filter(|_| trial.ticks.is_some() || trial.has_even_network())?;
        // Where the source that was to be judged told nothing, its clients are.
        let is_it = |name: &&str| trial.ticks.is_some() || *name == CLIENT;
        let name = trial.judged_tick_source().filter(is_it).unwrap_or(judged.name);
        Some((Record { name, ..judged }, Record { name: &compared.source, late, interval: &ticks.interval }))
    });
    clients.into_iter().chain(further)
}

/// Late shares of the judged ticks and of the others, as near to each other as they can be, where these lie too far apart.
fn shares_apart(judged: &Record<'_>, other: &Record<'_>) -> Option<(f64, f64)> {
    let nearest = |of: f64, (least, most): (f64, f64)| of.clamp(least, most);
    let share = nearest(other.late.0, judged.late);
    let shares = (share, nearest(share, other.late));
    ((shares.0 - shares.1).abs() > LATE_SHARES_APART_MOST).then_some(shares)
}

/// True when two records contradict each other; a disturbed hold then goes on for undisturbed seconds.
pub(super) fn is_contradicted(trial: &Trial) -> bool {
    pairs(trial).any(|(judged, other)| shares_apart(&judged, &other).is_some())
}

/// Two witnesses that contradict each other leave the case open; neither is preferred.
pub(super) fn inconsistent(case: &Case<'_>) -> Option<Ruling> {
    pairs(case.trial).find_map(|(judged, other)| {
        let apart = shares_apart(&judged, &other);
        apart.and_then(|shares| late_shares(case, (&judged, &other), shares)).or_else(|| {
            let view = case.fair_view()?;
            let (judged, other) = pairs(view).find(|(_, fair)| fair.name == other.name)?;
            intervals(view, &judged, &other)
        })
    })
}

fn late_shares(
    case: &Case<'_>,
    (judged, other): (&Record<'_>, &Record<'_>),
    shares: (f64, f64),
) -> Option<Ruling> {
    let contradiction = |shares: (f64, f64), culprit| {
        let shown = (show_share(shares.0), show_share(shares.1));
        contradiction("the late share of the ticks", (judged, other), shown, culprit)
    };
    // A disturbance makes ticks late on their way, and never early; those that the server itself judges by have none.
    let is_on_its_way = case.trial.ticks.is_none() || shares.1 > shares.0;
    let explained = if is_on_its_way { case.disturbance.explains_messages } else { 0.0 };
    if (shares.0 - shares.1).abs() - explained > LATE_SHARES_APART_MOST {
        return Some(contradiction(shares, None));
    }
    match case.fair {
        Some(fair) => {
            let (judged, other) = pairs(fair).find(|(_, fair)| fair.name == other.name)?;
            shares_apart(&judged, &other).map(|shares| contradiction(shares, None))
        }
        None => Some(contradiction(shares, Some(case.disturbance.culprit()))),
    }
}

fn intervals(trial: &Trial, judged: &Record<'_>, other: &Record<'_>) -> Option<Ruling> {
    let period_ns = trial.head.tick_period_ns;
    if let (Quantile::Ns(ours_ns), Quantile::Ns(theirs_ns)) =
        (judged.interval.quantile(0.99, 0), other.interval.quantile(0.99, 0))
        && period_ns > 0
        && ours_ns.abs_diff(theirs_ns) > period_ns
    {
        let shown = (show_ns(ours_ns as f64), show_ns(theirs_ns as f64));
        return Some(contradiction("p99 of the interval between ticks", (judged, other), shown, None));
    }
    None
}

/// `culprit`: what may have delayed the ticks on their way.
fn contradiction(
    what: &str,
    (judged, other): (&Record<'_>, &Record<'_>),
    shown: (String, String),
    culprit: Option<String>,
) -> Ruling {
    let is_of_clients = other.name == CLIENTS;
    let remedy = match (culprit, is_of_clients) {
        (None, true) => {
            "look for what stands between them, or for a server that does not tell the truth".to_owned()
        }
        (None, false) => {
            "at least one does not tell the truth; look for what each of them measures".to_owned()
        }
        (Some(culprit), _) => {
            let delayed = if is_of_clients { "the clients" } else { "one of them" };
            let liar = if is_of_clients { "the server" } else { "the other" };
            format!(
                "either the machine delayed {delayed} ({culprit}) or {liar} does not tell the truth; run it again on a \
                 quieter machine"
            )
        }
    };
    let reason = format!(
        "inconsistent: {what} is {} by {} and {} by {}; {remedy}",
        shown.0, judged.name, shown.1, other.name
    );
    Ruling::new(Verdict::Inconclusive, INCONSISTENT, reason)
}

/// Whether a verdict says that this source contradicted the judged one.
pub(crate) fn is_contradicted_by(signal: Option<&str>, reason: Option<&str>, source: &str) -> bool {
    let name = if source == CLIENT { CLIENTS } else { source };
    signal == Some(INCONSISTENT) && reason.is_some_and(|reason| reason.contains(&format!(" by {name}; ")))
}

/// Further sources that told of no ticks in the hold: they neither confirm nor contradict the judged ones.
pub(super) fn remark(trial: &Trial) -> Option<String> {
    let silent = trial.compared_ticks.iter().filter(|compared| !has_told(trial, compared));
    let names: Vec<&str> = silent.map(|compared| compared.source.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!("{} told of no ticks in the hold, so nothing was compared with it", names.join(", "))
    })
}

/// Whether a source told of ticks in the hold.
fn has_told(trial: &Trial, compared: &ComparedTicks) -> bool {
    match compared.ticks.as_ref() {
        Some(ticks) => ticks.counts.due > 0,
        None => compared.source == CLIENT && trial.client_ticks.due > 0,
    }
}
