//! The rules of a verdict, one function each, in evaluation order.
//!
//! A rule returns nothing (`None`) or decides. Reasons name what was measured, the limit and the remedy.

use std::collections::BTreeMap;

use measure::trial::kind;
use measure::{Books, ErrorKind, HostSecond, Role, Trial};

use super::views::{Over, Seen};
use super::{Asked, Case, Ruling, Verdict, generator, reopened};
use crate::figures;
use crate::objective::Objective;
use crate::steady::Steadiness;
use crate::wording::{show_ns, show_number, show_share};

/// Fewer than this share of the connections open in the worst second fails a rung: what a load test of another load
/// shows is not worth much, but a few of many do not make it another load.
pub const OPEN_SHARE_LEAST: f64 = 0.95;
/// Players leave between two games, and games that began together end together. So where games are played, a
/// connection is missing only when it is missing in every second of this many.
pub const COMES_BACK_WITHIN_S: usize = 10;
/// Less than this share of the intended messages counts as a different load than requested.
pub const OFFERED_SHARE_LEAST: f64 = 0.995;

/// Figures whose value the first error explains best.
const COUNTS_OF_ERRORS: [&str; 6] = ["refused", "errors", "errors.share", "failed", "lost", "unanswered"];

/// What a rung is called whose verdict a disturbance took away.
pub(crate) const DISTURBED: &str = "disturbed";

const ATTEMPTS_FAILED: &str = "attempts failed";
const INTERRUPTED: &str = kind::INTERRUPTED;
/// The signal of a rung during which the subject's process ended.
pub(crate) const SERVER_EXITED: &str = "server exited";
/// The signal of a rung whose load was made without one of its agents.
pub(crate) const AGENT_LOST: &str = kind::AGENT_LOST;
/// The signal of a rung before and during which no client was accepted.
pub(crate) const NOBODY_IN: &str = "nobody in";

pub(super) fn books(case: &Case<'_>) -> Option<Ruling> {
    let invalid = |why: String| {
        let reason = format!(
            "books do not balance: {why}; this is a bug of Stepladder, and its numbers prove nothing"
        );
        Some(Ruling::new(Verdict::Invalid, "bug", reason))
    };
    if let Some(bug) = case.trial.event(kind::BUG) {
        let reason = format!("{}; this is a bug of Stepladder, and its numbers prove nothing", bug.text);
        return Some(Ruling::new(Verdict::Invalid, "bug", reason));
    }
    for (op, flow) in &case.trial.ops {
        if let Err(imbalance) = flow.balance() {
            return invalid(format!("{op}: {imbalance}"));
        }
    }
    for second in &case.trial.seconds {
        if let Err(imbalance) = second.flow.balance() {
            return invalid(format!("second {}: {imbalance}", second.index));
        }
    }
    if let Some(Err(imbalance)) = case.trial.books.as_ref().map(Books::balance) {
        return invalid(format!("deliveries: {imbalance}"));
    }
    let server = case.trial.ticks.as_ref().map(|ticks| ("the server's", ticks.counts));
    for (whose, counts) in server.into_iter().chain([("the clients'", case.trial.client_ticks)]) {
        if !counts.balances() {
            let (due, sum) = (counts.due, counts.on_time + counts.over + counts.under + counts.missed);
            return invalid(format!("{due} of {whose} ticks were due, but {sum} are in a class"));
        }
    }
    None
}

/// What an agent did not send is missing, and nothing is scaled up in its place.
pub(super) fn agent_lost(case: &Case<'_>) -> Option<Ruling> {
    let lost = case.trial.event(kind::AGENT_LOST)?;
    let reason = format!(
        "agent lost: {}, {} into the trial; its share of the load is missing, so this load proves nothing",
        lost.text,
        show_ns(lost.at_ns as f64)
    );
    Some(Ruling::new(Verdict::Invalid, AGENT_LOST, reason))
}

/// A server that exits ends its trial early too, so an early end alone is no interruption when the server has gone.
pub(super) fn interrupted(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let exited_ns = trial.event(kind::SUBJECT_EXITED).map(|event| event.at_ns);
    let asked_ns = trial
        .events
        .iter()
        .filter(|event| event.kind == INTERRUPTED || (event.kind == kind::DRAIN && event.text == INTERRUPTED))
        .map(|event| event.at_ns)
        .min();
    let was_asked = asked_ns.is_some_and(|at_ns| exited_ns.is_none_or(|exited_ns| at_ns <= exited_ns));
    let was_cut = !trial.complete && exited_ns.is_none();
    if !was_asked && !was_cut {
        return None;
    }
    let held = match &trial.hold {
        Some(hold) => format!("{} into the hold", show_ns((hold.to_ns - hold.from_ns) as f64)),
        None => "before its hold began".to_owned(),
    };
    let reason =
        format!("interrupted: the trial ended {held}; what was measured until then is intact; run it again");
    Some(Ruling::new(Verdict::Invalid, INTERRUPTED, reason))
}

pub(super) fn exited(case: &Case<'_>) -> Option<Ruling> {
    let told_ns = case.trial.event(kind::SUBJECT_TOLD_TO_END).map_or(u64::MAX, |told| told.at_ns);
    let event = case.trial.event(kind::SUBJECT_EXITED).filter(|event| event.at_ns < told_ns)?;
    let how = if event.text.is_empty() { "no exit status is known" } else { event.text.as_str() };
    let at = show_ns(event.at_ns as f64);
    let output: Vec<&str> = case
        .trial
        .events
        .iter()
        .filter(|event| event.kind == kind::SUBJECT_OUTPUT)
        .flat_map(|event| event.text.lines())
        .collect();
    let last_words =
        if output.is_empty() { String::new() } else { format!("; its last output: {}", output.join(" | ")) };
    let reason = format!("server exited: {how}, {at} into the trial; earlier rungs stand{last_words}");
    Some(Ruling::new(Verdict::Fail, SERVER_EXITED, reason))
}

/// A server that never let a client of the run in has shown nothing about a load: it may want credentials, or be another
/// server than the one that was meant.
pub(super) fn nobody_in(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    if !case.terms.is_first_contact || trial.connections.asked == 0 || came_in(trial) {
        return None;
    }
    let counts = [&trial.connections.failed, &trial.errors_before_hold, &trial.errors];
    let causes = counts.into_iter().flatten().filter(|(_, count)| **count > 0);
    let because = causes
        .max_by_key(|(_, count)| **count)
        .map_or(String::new(), |(cause, count)| format!(": {count} {cause}{}", first_words(trial, cause)));
    let reason = format!(
        "no client was let in, neither before this load nor under it, so nothing is known of what the server holds{because}; see \
         what it asks of a client"
    );
    Some(Ruling::new(Verdict::Inconclusive, NOBODY_IN, reason))
}

/// Whether a client was in for longer than it takes to turn it away.
fn came_in(trial: &Trial) -> bool {
    let connections = &trial.connections;
    let opened = connections.attempts.saturating_sub(connections.failed.values().sum());
    let broken = |counts: &BTreeMap<String, u64>| -> u64 {
        let kind = |cause: &str| trial.head.metric_names.kind_of(cause);
        let is_end =
            |cause: &str| matches!(kind(cause), Some(ErrorKind::BrokenConnection | ErrorKind::Refused));
        counts.iter().filter(|(cause, _)| is_end(cause)).map(|(_, count)| count).sum()
    };
    let outside: u64 = trial.errors_of(ErrorKind::NotAdmitted).map(|(_, count)| count).sum();
    let stood = connections.open_min > 0
        || connections.open > 0
        || trial.books.as_ref().is_some_and(|books| books.judged.delivered > 0)
        || opened > broken(&trial.errors) + broken(&trial.errors_before_hold);
    trial.flow().answered > 0 || stood && outside < connections.asked
}

/// Missing connections, whoever is to blame.
pub(super) fn connections(case: &Case<'_>) -> Option<Ruling> {
    let ours = generator::no_room(case);
    if ours.is_some() {
        return ours;
    }
    let trial = case.trial;
    let connections = &trial.connections;
    let asked = connections.asked;
    let open = open_throughout(trial);
    if open as f64 >= OPEN_SHARE_LEAST * asked as f64 {
        return None;
    }
    // An HTTP server may close a connection between two requests; it is at fault for those that cannot be opened.
    let failed: u64 = connections.failed.values().sum();
    let cannot_open = failed as f64 > (1.0 - OPEN_SHARE_LEAST) * connections.attempts as f64
        || (open_in_ramp(trial) as f64) < OPEN_SHARE_LEAST * asked as f64;
    if reopened::is_allowed(trial) && !cannot_open {
        return None;
    }
    let told = [
        (&connections.failed, ATTEMPTS_FAILED),
        (&trial.errors_before_hold, "ended before the hold"),
        (&trial.errors, "ended early"),
    ];
    let mut causes: Vec<(&str, u64, &str)> = told
        .into_iter()
        .flat_map(|(counts, what)| counts.iter().map(move |(cause, count)| (cause.as_str(), *count, what)))
        // A wrong reply closes no connection.
        .filter(|(cause, count, _)| {
            *count > 0 && trial.head.metric_names.kind_of(cause) != Some(ErrorKind::WrongReply)
        })
        .collect();
    causes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let when =
        if trial.head.counts_games() { format!("{COMES_BACK_WITHIN_S} s") } else { "second".to_owned() };
    let what = format!("only {open} of {asked} connections open in the worst {when}");
    if waited_in_vain(trial, &causes) {
        let so_far =
            if causes.is_empty() { "the others had not opened yet".to_owned() } else { told_causes(&causes) };
        if let Some(ours) = generator::buried(case, &format!("{what}: {so_far}")) {
            return Some(ours);
        }
    }
    let late_ns = generator::late_ns(case, 0.99).filter(|_| trial.head.counts_games());
    let because = match (causes.as_slice(), late_ns) {
        ([], _) if open_in_ramp(trial) < asked => {
            format!(
                "only {} opened before the hold began and nothing says why; try a slower --ramp",
                open_in_ramp(trial)
            )
        }
        ([], Some(late_ns)) => return opened_late(trial, late_ns),
        // Only a script ends a bot by itself.
        ([], None) if trial.counts(Role::ScriptTime).next().is_some() => {
            "the script had closed the others, or its function had returned; let it last as long as the load is held".to_owned()
        }
        ([], None) => "the others ended without an error".to_owned(),
        (causes, _) => told_causes(causes) + &first_words(trial, causes[0].0),
    };
    Some(Ruling::new(Verdict::Fail, "connections.open_min", format!("{what}, because {because}")))
}

/// The largest of the causes (name, count, what happened) of missing connections.
fn told_causes(causes: &[(&str, u64, &str)]) -> String {
    let told = causes.iter().take(3).map(|(cause, count, what)| format!("{count} {what} ({cause})"));
    told.collect::<Vec<_>>().join(", ")
}

/// Whether connections are missing because bots timed out waiting for the server, which also happens if a worker reads
/// its answers too late. What a script makes of it is no separate cause.
fn waited_in_vain(trial: &Trial, causes: &[(&str, u64, &str)]) -> bool {
    let (mut in_vain, mut by_server, mut unknown) = (0, 0, 0);
    for (cause, count, what) in causes {
        match trial.head.metric_names.kind_of(cause) {
            Some(ErrorKind::Timeout | ErrorKind::NotAdmitted) => in_vain += count,
            Some(_) => by_server += count,
            None if *what == ATTEMPTS_FAILED => by_server += count,
            None => unknown += count,
        }
    }
    let is_late = causes.is_empty() && open_in_ramp(trial) < trial.connections.asked;
    (is_late || in_vain > unknown)
        && by_server as f64 <= (1.0 - OPEN_SHARE_LEAST) * trial.connections.asked as f64
}

/// Players whose games ended normally and whose next connections a late generator opened late: this is no evidence
/// against the server. A few such seconds change little; many of them are a different load than requested.
fn opened_late(trial: &Trial, late_ns: f64) -> Option<Ruling> {
    let asked = trial.connections.asked;
    let open: Vec<u64> = trial.hold_seconds().map(|second| second.open_min).collect();
    let mean = open.iter().sum::<u64>() as f64 / open.len().max(1) as f64;
    if mean >= OPEN_SHARE_LEAST * asked as f64 {
        return None;
    }
    let reason = format!(
        "{} of {asked} connections open on average: the load generator was late to open the others (send lag p99 {}), and \
         no attempt failed; give it cores of its own or --realtime",
        show_number(mean),
        show_ns(late_ns),
    );
    Some(Ruling::new(Verdict::GeneratorLimited, "connections.open_min", reason))
}

/// Connections opened before the hold.
fn open_in_ramp(trial: &Trial) -> u64 {
    trial.connections.opened_in_ramp
}

/// `; the first: words` of a cause, where they were kept.
pub(super) fn first_words(trial: &Trial, cause: &str) -> String {
    let words = trial.error_samples().find(|(known, words)| *known == cause && !words.is_empty());
    words.map_or(String::new(), |(_, words)| format!("; the first: {words}"))
}

/// Open connections that the server closed, reset or broke within the hold: bots that reconnect at once fill the gap,
/// but users would have been disconnected.
pub(super) fn broken_connections(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    // Bots that misbehave on purpose are rightly disconnected.
    if trial.books.as_ref().is_some_and(|books| books.receivers.iter().any(|receiver| receiver.is_excluded)) {
        return None;
    }
    let causes: Vec<(&str, u64)> = trial.errors_of(ErrorKind::BrokenConnection).collect();
    let broken: u64 = causes.iter().map(|(_, count)| count).sum();
    let asked = trial.connections.asked;
    if asked == 0 || broken as f64 <= (1.0 - OPEN_SHARE_LEAST) * asked as f64 {
        return None;
    }
    let causes: Vec<String> = causes.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
    // A bot comes in again, so more may break than stand.
    let reason = format!(
        "the server broke {broken} connections in the hold, of {asked} that should stand: {}",
        causes.join(", ")
    );
    Some(Ruling::new(Verdict::Fail, "connections.broken", reason))
}

/// Clients with open connections that the server had not accepted when the hold began: those that were accepted are a
/// different load than requested, and the server is the cause.
pub(super) fn not_admitted(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let outside: u64 = trial.errors_of(ErrorKind::NotAdmitted).map(|(_, count)| count).sum();
    let asked = trial.connections.asked;
    if asked == 0 || outside as f64 <= (1.0 - OPEN_SHARE_LEAST) * asked as f64 {
        return None;
    }
    let cause = trial.errors_of(ErrorKind::NotAdmitted).next().map_or("", |(cause, _)| cause);
    let reason = format!(
        "the server had not let in {outside} of {asked} clients when the hold began{}",
        first_words(trial, cause)
    );
    if let Some(ours) = generator::buried(case, &reason) {
        return Some(ours);
    }
    // A disturbance can delay some clients; it does not explain that none got in.
    if case.disturbance.any() && outside < asked {
        let reason = format!("{reason}, and that may not be the server: {}", case.disturbance.culprit());
        return Some(Ruling::new(Verdict::Inconclusive, DISTURBED, reason));
    }
    Some(Ruling::new(Verdict::Fail, "clients.admitted", reason))
}

/// Connections that stood throughout the hold, or that came up when there was none.
pub(super) fn open_throughout(trial: &Trial) -> u64 {
    if trial.hold.is_none() {
        return trial.connections.opened_in_ramp;
    }
    if !trial.head.counts_games() {
        return trial.connections.open_min;
    }
    let open: Vec<u64> = trial.hold_seconds().map(|second| second.open_min).collect();
    let window = COMES_BACK_WITHIN_S.min(open.len()).max(1);
    open.windows(window).filter_map(|seconds| seconds.iter().max().copied()).min().unwrap_or(0)
}

pub(super) fn never_held(case: &Case<'_>) -> Option<Ruling> {
    let reason = match &case.trial.hold {
        None => "the hold never began although connections stood; run it again",
        Some(hold) if hold.seconds() <= 0.0 => "the hold lasted no time after the warm-up cut; hold longer",
        Some(_) => return None,
    };
    Some(Ruling::new(Verdict::Invalid, "no hold", reason.to_owned()))
}

/// The largest reading of a second of the hold.
pub(crate) fn most(trial: &Trial, read: fn(&HostSecond) -> Option<f64>) -> Option<f64> {
    trial.hold_seconds().filter_map(|second| read(&second.host)).max_by(f64::total_cmp)
}

/// Objectives that no disturbance can have broken: wrong or refused answers, and what else is the server's own doing.
pub(super) fn certain_objectives(case: &Case<'_>) -> Option<Ruling> {
    let is_certain = |asked: &&Asked<'_>| {
        let figure = asked.objective.figure();
        matches!(asked.seen, Seen::NotMet { over: Over::All, .. })
            // Of a count of errors without replies that may be outstanding because the generator is late.
            && (!figure.is_disturbable() || asked.objective.is_missed_by_the_server(case.trial))
    };
    broken(case, &case.outcomes.iter().filter(is_certain).collect::<Vec<_>>())
}

pub(super) fn objectives(case: &Case<'_>) -> Option<Ruling> {
    // Latencies sampled at a few phases of the tick prove nothing, for better or worse.
    let is_believed = |objective: &Objective| !case.is_locked() || !objective.figure().is_phase_dependent();
    let is_broken =
        |asked: &&Asked<'_>| is_believed(asked.objective) && matches!(asked.seen, Seen::NotMet { .. });
    let missed: Vec<&Asked<'_>> = case.outcomes.iter().filter(is_broken).collect();
    // Ticks of the server are late whatever was not sent or read.
    let may_be_ours = missed.iter().all(|asked| !asked.objective.figure().is_late_share_of_server());
    if !missed.is_empty()
        && may_be_ours
        && let Some(ours) = generator::undone(case)
    {
        return Some(ours);
    }
    broken(case, &missed).or_else(|| {
        let (first, shown) = case.outcomes.iter().find_map(|asked| match &asked.seen {
            Seen::Disturbed { shown } if is_believed(asked.objective) => Some((asked.objective, shown)),
            _ => None,
        })?;
        let reason = format!(
            "{} was {shown} (objective: {first}), and that may not be the server: {}, and fewer than half of the seconds \
             asked for were undisturbed; run it again on a quieter machine",
            first.figure().name,
            case.disturbance.culprit(),
        );
        Some(Ruling::new(Verdict::Inconclusive, DISTURBED, reason))
    })
}

/// These objectives were not met; `None` without any.
fn broken(case: &Case<'_>, asked: &[&Asked<'_>]) -> Option<Ruling> {
    let first = asked.first()?.objective;
    let told = |asked: &&Asked<'_>| {
        let Seen::NotMet { shown, over } = &asked.seen else { return String::new() };
        let seconds = match over {
            Over::All => "",
            Over::Fair => " in the undisturbed seconds",
            Over::LeastDisturbed => {
                " in the least disturbed seconds, more than the disturbances of the machine explain"
            }
            Over::Unexplained => ", more than the disturbances of the machine explain",
        };
        asked.missed_words(shown, seconds)
    };
    let mut reason = asked.iter().map(told).collect::<Vec<_>>().join("; ");
    if COUNTS_OF_ERRORS.contains(&first.figure().name) {
        let flow = case.trial.flow();
        let silent = [(flow.open_after, "never answered"), (flow.not_sent, "never sent")];
        for (count, what) in silent.into_iter().filter(|(count, _)| *count > 0) {
            reason.push_str(&format!("; {} {what}", show_number(count as f64)));
        }
        if let Some((cause, words)) = case.trial.error_samples().next() {
            reason.push_str(&format!("; the first: {cause}"));
            if !words.is_empty() && !cause.ends_with(words) {
                reason.push_str(&format!(": {words}"));
            }
        }
    }
    Some(Ruling::new(Verdict::Fail, first.figure().name, reason))
}

/// Messages that never left, or never had their reply, are bad by default: a server that reads nothing keeps its ticks easily.
pub(super) fn not_done(case: &Case<'_>) -> Option<Ruling> {
    let flow = figures::spoken(case.trial);
    let unanswered = figures::questions(case.trial).open_after;
    let (not_sent, offered) = (flow.not_sent, flow.offered);
    let (count, what, signal) = if not_sent >= unanswered {
        (not_sent, "never left, because the server did not read or had closed the connection", "not_sent")
    } else {
        (unanswered, "were never answered", "unanswered")
    };
    if count as f64 <= (1.0 - OFFERED_SHARE_LEAST) * offered as f64 {
        return None;
    }
    let of = format!("{} of {} messages {what}", show_number(count as f64), show_number(offered as f64));
    generator::undone(case)
        .or_else(|| generator::late_beside_others(case, &of))
        .or_else(|| Some(Ruling::new(Verdict::Fail, signal, of)))
}

/// A server that answers fast but wrongly does not hold the load, even if no objective asked for it. In the arena the
/// winner of each game is known in advance.
pub(super) fn wrong_answers(case: &Case<'_>) -> Option<Ruling> {
    let (name, count) = case.trial.errors_of(ErrorKind::WrongReply).next()?;
    let times = if count == 1 { "time" } else { "times" };
    let first = first_words(case.trial, name);
    let reason = format!("the server's answers are not right: {name}, {count} {times} in the hold{first}");
    Some(Ruling::new(Verdict::Fail, name, reason))
}

/// What the server holds after the load is not what it acknowledged.
pub(super) fn audit(case: &Case<'_>) -> Option<Ruling> {
    let audit = case.trial.audit.filter(|audit| audit.wrong > 0)?;
    // The bots prefix the error text with the name of the request.
    let name = case.trial.head.metric_names.op(Role::Audit);
    let is_of_audit = |words: &str| words.split_once(": ").is_some_and(|(op, _)| Some(op) == name);
    let words = case.trial.error_samples().find(|(_, words)| is_of_audit(words));
    let first = words.map_or(String::new(), |(_, words)| format!("; the first: {words}"));
    let reason = format!(
        "audit: {} of {} facts that were read back after the hold are wrong{first}",
        show_number(audit.wrong as f64),
        show_number(audit.checked as f64)
    );
    Some(Ruling::new(Verdict::Fail, "audit", reason))
}

/// The server still pairs by players of an earlier time, and the bots could not mend it: nothing is known of this load.
pub(super) fn out_of_step(case: &Case<'_>) -> Option<Ruling> {
    let (cause, count) = case.trial.errors_of(ErrorKind::Unpaired).next()?;
    let reason = format!(
        "pairing out of step: the server paired players with connections that had died ({count} times), and the bots could \
         not bring it back in step; restart the server for each rung (--restart-per-rung){}",
        first_words(case.trial, cause)
    );
    Some(Ruling::new(Verdict::Invalid, "pairing", reason))
}

pub(super) fn drifting(case: &Case<'_>) -> Option<Ruling> {
    let finding = case.finding.as_ref().filter(|finding| finding.steadiness == Steadiness::Drifting)?;
    let change = finding.change.as_ref()?;
    let reason = format!(
        "drifting: {} rose from {} to {} after {} s of the hold and did not come back; the server has not shown that it \
         holds this load for longer",
        change.of.name(),
        change.of.show(change.before),
        change.of.show(change.after),
        change.after_s,
    );
    Some(Ruling::new(Verdict::Fail, "drifting", reason))
}

/// What could not be read back is unknown: a server that loses an update may refuse the request for it.
pub(super) fn unread(case: &Case<'_>) -> Option<Ruling> {
    let audit = case.trial.audit.filter(|audit| audit.unread > 0)?;
    let asked = audit.checked.saturating_add(audit.unread);
    let reason = format!(
        "audit: {} of {} facts could not be read back after the hold ({}): the server refused or did not answer, so it is not \
         known whether it still has what it acknowledged",
        show_number(audit.unread as f64),
        show_number(asked as f64),
        show_share(audit.unread as f64 / asked as f64),
    );
    Some(Ruling::new(Verdict::Inconclusive, "audit", reason))
}

pub(super) fn too_little(case: &Case<'_>) -> Option<Ruling> {
    if case.outcomes.is_empty() {
        let reason = "no objective was given, so nothing could be met; write one with --objective".to_owned();
        return Some(Ruling::new(Verdict::Inconclusive, "no objective", reason));
    }
    let (objective, why) = case.outcomes.iter().find_map(|asked| match &asked.seen {
        Seen::CannotTell { why } => Some((asked.objective, why)),
        _ => None,
    })?;
    let mut reason = format!("cannot tell whether {objective} held: {why}");
    // The source may have told what was wrong with it.
    let of_ticks = case.trial.ticks.is_none() && objective.figure().name.starts_with("ticks.");
    if let Some(told) = case.trial.event(kind::TICK_LOG).filter(|_| of_ticks) {
        reason += &format!(" ({})", told.text);
    }
    Some(Ruling::new(Verdict::Inconclusive, objective.figure().name, reason))
}
