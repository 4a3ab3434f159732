//! Silence is data: ticks must cover the hold to its end, and open requests must be answered.
//!
//! Silence is judged by whole seconds and never by one late line; what a disturbance of a second or two can cause is
//! left to the objectives.

use measure::names::ROOM_DELIVERIES;
use measure::{Books, Hold, Second, Trial};

use super::{Case, DISTURBED, Ruling, Verdict};
use crate::disturbance::explained_by_second;
use crate::wording::{show_many, show_ns};

/// The signal of a server that replies no more.
pub(super) const STOPPED_REPLYING: &str = "stopped replying";

/// Fewer silent seconds at the end of a hold than this prove nothing.
const SILENT_SECONDS_LEAST: usize = 2;
/// … and neither does a silence shorter than this share of the hold, where answers are rare.
const SILENT_SHARE_LEAST: f64 = 0.05;

/// A worker that waited for a core for more of a second hardly read during it.
const STARVED_SHARE: f64 = 0.5;

/// The server's loop, or its log, stopped before the hold ended.
pub(super) fn no_ticks(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let hold = trial.hold.as_ref()?;
    // An entry that spans a whole short hold shows that the server ran, but not what it did in the hold alone.
    if trial.ticks.is_none() && !trial.is_in_log && case.terms.tells_ticks && trial.complete {
        let reason =
            "no tick throughout the hold: the server, which writes its ticks to a log, wrote none".to_owned();
        return Some(Ruling::new(Verdict::Fail, "ticks.silence", reason));
    }
    let told = trial
        .ticks
        .as_ref()
        .and_then(|ticks| ticks.silence.as_ref())
        .filter(|silence| !silence.is_brief || case.terms.tells_ticks);
    let (from_ns, missed, how) = match told {
        Some(silence) if silence.is_told => {
            (silence.from_ns, silence.missed, "by the server's own later word")
        }
        Some(silence) => (silence.from_ns, silence.missed, "the server reported nothing from then on"),
        None => {
            let ticks = |second: &Second| server_or_client_ticks(trial, second) > 0;
            let from = stopped(trial, ticks).filter(|_| trial.seconds.iter().any(ticks))?;
            let ran: Vec<u64> = trial
                .hold_seconds()
                .filter(|second| second.index < from)
                .map(|second| server_or_client_ticks(trial, second))
                .collect();
            let mean = ran.iter().sum::<u64>() as f64 / ran.len().max(1) as f64;
            let silent = trial.hold_seconds().filter(|second| second.index >= from).count();
            let whose = if trial.ticks.is_some() { "the server's log" } else { "the clients" };
            (u64::from(from) * 1_000_000_000, (mean * silent as f64) as u64, whose)
        }
    };
    let at = show_ns(from_ns.saturating_sub(hold.from_ns) as f64);
    let reason = match told {
        Some(_) => format!(
            "no tick from {at} of the hold on, {} before its end: {} ticks were missed ({how})",
            show_ns((hold.to_ns - from_ns) as f64),
            show_many(missed),
        ),
        None => format!(
            "no tick from {at} of the hold on, {} before its end, by {how}: about {} ticks were missed",
            show_ns((hold.to_ns - from_ns) as f64),
            show_many(missed),
        ),
    };
    if told.is_some_and(|silence| silence.is_told) && is_kept_away_from(trial, from_ns) {
        let reason = format!("{reason}, and that may not be the server: {}", case.disturbance.culprit());
        return Some(Ruling::new(Verdict::Inconclusive, DISTURBED, reason));
    }
    Some(Ruling::new(Verdict::Fail, "ticks.silence", reason))
}

/// Whether disturbances explain all of each second from here to the end of the hold. Of a server that never ticks again this
/// says nothing.
fn is_kept_away_from(trial: &Trial, from_ns: u64) -> bool {
    let explained = explained_by_second(trial, false);
    let of = |second: &Second| explained.get(&second.index).copied().unwrap_or(0.0);
    trial
        .hold_seconds()
        .filter(|second| u64::from(second.index + 1) * 1_000_000_000 > from_ns)
        .all(|second| of(second) >= 1.0)
}

/// The server's log goes on, and its clients hear nothing any more.
pub(super) fn clients_hear_nothing(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let hold = trial.hold.as_ref().filter(|_| trial.ticks.is_some())?;
    let hears = |second: &Second| second.client_ticks.due > 0;
    let from = stopped(trial, hears).filter(|_| trial.seconds.iter().any(hears))?;
    let from_ns = u64::from(from) * 1_000_000_000;
    let reason = format!(
        "the server's clients heard nothing from {} of the hold on, {} before its end, although its tick log goes on",
        show_ns(from_ns.saturating_sub(hold.from_ns) as f64),
        show_ns((hold.to_ns - from_ns) as f64),
    );
    Some(Ruling::new(Verdict::Fail, "client_ticks.silence", reason))
}

fn server_or_client_ticks(trial: &Trial, second: &Second) -> u64 {
    let counts = if trial.ticks.is_some() { second.ticks } else { second.client_ticks };
    counts.due
}

/// Requests were open and nothing was answered any more.
pub(super) fn no_replies(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let hold = trial.hold.as_ref()?;
    let is_owed = trial.hold_seconds().any(|second| second.flow.answered > 0 || second.flow.open_before > 0);
    let asked = |second: &Second| second.flow.open_before + second.flow.not_sent > 0;
    if !is_owed || !trial.hold_seconds().any(asked) {
        return None;
    }
    // Answered or failed: it replied. Seconds in which it owed nothing and accepted requests are no silence.
    let replied = |second: &Second| {
        second.flow.answered + second.flow.failed > 0
            || second.flow.open_before + second.flow.open_after + second.flow.not_sent == 0
    };
    let last = trial.hold_seconds().last()?;
    let from = stopped(trial, replied)?;
    if answers_all(trial) && is_starved(trial, from) {
        return None;
    }
    let unanswered = last.flow.open_after + trial.flow().not_sent;
    let when = since(hold, from);
    let reason = match unanswered.max(trial.flow().open_after) {
        0 => format!("stopped replying: no reply {when}; what was asked was given up before its end"),
        count => format!(
            "stopped replying: no reply {when}, with {} requests unanswered or never sent at its end",
            show_many(count)
        ),
    };
    Some(Ruling::new(Verdict::Fail, STOPPED_REPLYING, reason))
}

/// Whether everything that was asked was answered in the end.
fn answers_all(trial: &Trial) -> bool {
    let flow = trial.flow();
    flow.open_after + flow.not_sent + flow.lost == 0
}

/// Whether a worker had no core for most of each second from here to the end of the hold: what was not read then may have
/// come. The kernel reports a wait when it ends, so it may have begun in the second before.
fn is_starved(trial: &Trial, from: u32) -> bool {
    let waited = |second: &Second| second.host.worker_waiting_share.unwrap_or(0.0) > STARVED_SHARE;
    let of = |index: u32| trial.seconds.iter().any(|second| second.index == index && waited(second));
    trial
        .hold_seconds()
        .filter(|second| second.index >= from)
        .all(|second| of(second.index) || of(second.index + 1))
}

/// Broadcasts were owed, none was delivered any more in the hold, and not all came afterwards.
pub(super) fn no_deliveries(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let hold = trial.hold.as_ref()?;
    // If the bots had no time to read, the silence may be theirs.
    let is_known = |books: &&Books| books.judged.lost > 0 && books.judged.unread == 0;
    let books = trial.books.as_ref().filter(is_known)?;
    let Some(from) = stopped(trial, delivers) else { return none_to_the_end(trial, books) };
    // Messages sent in the last second may still be in flight. Clients that wait to be let in send nothing.
    let last = trial.hold_seconds().last()?;
    let silent = trial.hold_seconds().filter(|second| (from..last.index).contains(&second.index));
    let sent: u64 = silent.map(|second| second.flow.sent).sum();
    if sent + last.flow.open_after == 0 {
        return None;
    }
    let (when, lost) = (since(hold, from), show_many(books.judged.lost));
    let reason = match books.judged.delivered {
        0 => format!("no delivery ever came: all {lost} that were owed were lost{}", check_the_script(trial)),
        _ => format!("stopped delivering: no delivery {when}; {lost} deliveries were lost"),
    };
    Some(Ruling::new(Verdict::Fail, "deliveries.silence", reason))
}

/// What a server does not deliver and what a script does not tell look the same from here.
fn check_the_script(trial: &Trial) -> &'static str {
    if trial.head.metric_names.counters.iter().any(|name| name == ROOM_DELIVERIES) {
        "; if the server does deliver, the script does not call room.received for what comes: two bots of it show that \
         (stepladder try --count 2)"
    } else {
        ""
    }
}

/// The server stopped so late in the hold that only the drain shows it: clients wait there for the server's word that
/// everything came, none of them got it, and nothing at all was delivered for seconds.
fn none_to_the_end(trial: &Trial, books: &Books) -> Option<Ruling> {
    let judged = &books.judged;
    let last = trial.hold_seconds().last()?;
    let silent = trial
        .seconds
        .iter()
        .rev()
        .take_while(|second| second.index >= last.index && !delivers(second))
        .count();
    if judged.not_caught_up < judged.receivers || silent < SILENT_SECONDS_LEAST {
        return None;
    }
    let reason = format!(
        "stopped delivering: no delivery in the {silent} s after the hold, although all {} receivers were waiting; {} \
         deliveries were lost",
        judged.receivers,
        show_many(judged.lost)
    );
    Some(Ruling::new(Verdict::Fail, "deliveries.silence", reason))
}

fn delivers(second: &Second) -> bool {
    second.delivery_mean_ns.is_some()
}

/// From which moment of the hold on there was silence, given its first second.
fn since(hold: &Hold, from: u32) -> String {
    match (u64::from(from) * 1_000_000_000).saturating_sub(hold.from_ns) {
        0 => "throughout the hold".to_owned(),
        at_ns => format!("from {} of the hold on", show_ns(at_ns as f64)),
    }
}

/// The first of the seconds at the end of the hold in which nothing happens any more; `None` where something does, or
/// where the silence is too short to tell.
fn stopped(trial: &Trial, happens: impl Fn(&Second) -> bool) -> Option<u32> {
    let seconds: Vec<&Second> = trial.hold_seconds().collect();
    let silent = seconds.iter().rev().take_while(|second| !happens(second)).count();
    let enough = SILENT_SECONDS_LEAST.max((SILENT_SHARE_LEAST * seconds.len() as f64).ceil() as usize);
    // So long an emulated network may hold back what the server said.
    let enough = enough + (trial.slow_round_trip_ns() / 1_000_000_000) as usize;
    // If the hold is silent throughout, one second is enough when that is all there is.
    let enough = enough.min(seconds.len().max(1));
    (silent > 0 && silent >= enough).then(|| seconds[seconds.len() - silent].index)
}
