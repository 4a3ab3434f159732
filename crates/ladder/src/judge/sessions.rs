//! Sessions: bots that end with their function and are replaced by others.
//!
//! Their connections come and go, so a server that turns bots away shows in how many sessions and connection attempts
//! failed.

use measure::trial::kind;
use measure::{ErrorKind, Role};

use super::rules::{OFFERED_SHARE_LEAST, OPEN_SHARE_LEAST, first_words};
use super::{Asked, Case, DISTURBED, Ruling, Verdict, generator};
use crate::objective::Outcome;
use crate::wording::{show_many, show_ns, show_number};

/// The most frequent cause of errors; its words say why sessions failed.
fn why(case: &Case<'_>) -> String {
    let most = case.trial.errors.iter().filter(|(_, count)| **count > 0).max_by_key(|(_, count)| **count);
    most.map_or(String::new(), |(cause, _)| format!(" ({cause}){}", first_words(case.trial, cause)))
}

/// More than a few sessions failed: the rest is a different load than requested.
pub(super) fn failed(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let flow = trial.op(Role::Session)?;
    let connections = &trial.connections;
    let kind_of = |cause: &str| trial.head.metric_names.kind_of(cause);
    if let Some((cause, count)) = connections
        .failed
        .iter()
        .find(|(cause, count)| **count > 0 && kind_of(cause) == Some(ErrorKind::Generator))
    {
        return Some(generator::no_room_for(cause, *count, "some connections of sessions could not open"));
    }
    let most = 1.0 - OPEN_SHARE_LEAST;
    let refused: u64 = connections.failed.values().sum();
    if refused as f64 > most * connections.attempts as f64 {
        let cause = connections.failed.iter().max_by_key(|(_, count)| **count).map_or("", |(cause, _)| cause);
        let (count, all) = (show_many(refused), show_many(connections.attempts));
        let reason = format!("{count} of {all} attempts to connect failed ({cause})");
        return Some(unless_disturbed(case, "connections.failed", reason, refused < connections.attempts));
    }
    let (failed, ended) = (flow.failed + flow.lost, flow.failed + flow.lost + flow.answered);
    if failed as f64 <= most * ended as f64 {
        return None;
    }
    let reason = format!("{} of {} sessions failed{}", show_many(failed), show_many(ended), why(case));
    Some(unless_disturbed(case, "sessions.failed", reason, flow.answered > 0))
}

/// A disturbance can make some sessions fail; it does not explain that all do.
fn unless_disturbed(case: &Case<'_>, signal: &str, reason: String, some_are_right: bool) -> Ruling {
    if case.disturbance.any() && some_are_right {
        let reason = format!("{reason}, and that may not be the server: {}", case.disturbance.culprit());
        return Ruling::new(Verdict::Inconclusive, DISTURBED, reason);
    }
    Ruling::new(Verdict::Fail, signal, reason)
}

/// The maximum number of sessions was in progress, and further ones were not started. Objectives missed by those that
/// started would have been missed by more of them too; otherwise nothing is known about the requested load.
pub(super) fn bounded(case: &Case<'_>) -> Option<Ruling> {
    let flow = case.trial.op(Role::Session)?;
    if flow.not_sent as f64 <= (1.0 - OFFERED_SHARE_LEAST) * flow.offered as f64 {
        return None;
    }
    let mut begun = case.trial.clone();
    if let Some(session) = case.trial.head.metric_names.op(Role::Session).and_then(|op| begun.ops.get_mut(op))
    {
        (session.offered, session.not_sent) = (session.sent, 0);
    }
    let is_missed = |asked: &Asked<'_>| matches!(asked.objective.evaluate(&begun), Outcome::NotMet { .. });
    if case.outcomes.iter().any(is_missed) {
        return None;
    }
    let at_once = case.trial.at_once.unwrap_or_default().max;
    let reason = format!(
        "{} of {} sessions were not begun, because {} were under way, as many as --sessions-max allows; raise it, or see that \
         the bot's function returns",
        show_many(flow.not_sent),
        show_many(flow.offered),
        show_number(at_once.round()),
    );
    Some(Ruling::new(Verdict::GeneratorLimited, "sessions.at_once", reason))
}

/// Sessions that never ended. A server that hangs and a function that never returns look alike here: where an objective names
/// their time, it has decided.
pub(super) fn unended(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let flow = trial.op(Role::Session).filter(|flow| flow.open_after > 0)?;
    let at_ns = |kind: &str| trial.event(kind).map(|event| event.at_ns);
    let waited = at_ns(kind::END).zip(at_ns(kind::DRAIN)).map_or(String::new(), |(end_ns, drain_ns)| {
        format!(" when the bots left, {} after the hold", show_ns(end_ns.saturating_sub(drain_ns) as f64))
    });
    let reason = format!(
        "{} of {} sessions had not ended{waited}; see that the bot's function returns, and give --patience as long as a session \
         may take",
        show_many(flow.open_after),
        show_many(flow.offered),
    );
    Some(Ruling::new(Verdict::Inconclusive, "sessions.unended", reason))
}

#[cfg(test)]
mod tests {
    use measure::{Flow, MetricNames, Trial};

    use super::*;
    use crate::judge::judge;
    use crate::testing::{TrialBuilder, terms};

    /// What a trial is worth in which a hundred sessions were planned.
    fn judged(edit: impl Fn(&mut Trial, &mut Flow)) -> (Verdict, Option<String>, String) {
        let mut trial = TrialBuilder::asking(200.0).build();
        let mut names = MetricNames::clone(&trial.head.metric_names);
        names.ops.push("session".to_owned());
        trial.head.metric_names = std::sync::Arc::new(names).with_op_roles(&[("session", Role::Session)]);
        let mut flow = Flow { offered: 100, sent: 100, answered: 100, ..Flow::default() };
        edit(&mut trial, &mut flow);
        trial.ops.insert("session".to_owned(), flow);
        let judgement = judge(&trial, None, &terms("errors == 0"));
        (judgement.verdict, judgement.signal, judgement.reason.unwrap_or_default())
    }

    #[test]
    fn sessions_that_fail_or_never_end_do_not_pass_whatever_the_objectives() {
        assert_eq!(judged(|_, _| {}).0, Verdict::Pass);
        let few = judged(|_, flow| (flow.answered, flow.failed) = (96, 4));
        assert_eq!(few.0, Verdict::Pass, "what is thrown is an error by its own cause: {few:?}");
        let (verdict, signal, reason) = judged(|_, flow| (flow.answered, flow.failed) = (90, 10));
        assert_eq!((verdict, signal.as_deref()), (Verdict::Fail, Some("sessions.failed")));
        assert_eq!(reason, "10 of 100 sessions failed");
        let (verdict, signal, reason) = judged(|_, flow| (flow.answered, flow.open_after) = (99, 1));
        assert_eq!((verdict, signal.as_deref()), (Verdict::Inconclusive, Some("sessions.unended")));
        assert!(reason.starts_with("1 of 100 sessions had not ended when the bots left"), "{reason}");
    }

    #[test]
    fn sessions_that_could_not_begin_say_nothing_for_the_server_and_excuse_nothing() {
        let half = |_: &mut Trial, flow: &mut Flow| (flow.offered, flow.not_sent) = (200, 100);
        let (verdict, signal, reason) = judged(half);
        assert_eq!((verdict, signal.as_deref()), (Verdict::GeneratorLimited, Some("sessions.at_once")));
        assert!(reason.starts_with("100 of 200 sessions were not begun"), "{reason}");
        let wrong = judged(|trial, flow| {
            half(trial, flow);
            trial.errors.insert("connection lost".to_owned(), 1);
        });
        assert_eq!((wrong.0, wrong.1.as_deref()), (Verdict::Fail, Some("errors")));
    }

    #[test]
    fn connections_of_sessions_that_cannot_open_are_the_servers_or_this_machines() {
        let refused = |cause: &'static str, count: u64| {
            judged(move |trial, _| {
                trial.connections.failed.insert(cause.to_owned(), count);
                trial.connections.attempts += count;
            })
        };
        let (verdict, signal, _) = refused("refused", 1_000_000);
        assert_eq!((verdict, signal.as_deref()), (Verdict::Fail, Some("connections.failed")));
        let (verdict, _, reason) = refused("no ports", 3);
        assert_eq!(verdict, Verdict::GeneratorLimited);
        assert!(
            reason.ends_with("this machine had no ports left (3 times); use more source addresses"),
            "{reason}"
        );
    }
}
