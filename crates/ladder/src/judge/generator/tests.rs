//! Whose delay it was: the generator's, or the server's.

use measure::{Event, Flow, MetricNames, Phase};

use super::*;
use crate::judge::judge;
use crate::testing::{TrialBuilder, terms};
use Verdict::{Fail, GeneratorLimited, Inconclusive};

#[test]
fn a_generator_that_sends_nothing_for_want_of_time_says_nothing_of_the_server() {
    let judged = |busy_share: f64, open: u64| {
        let builder =
            TrialBuilder { questions_per_s: 0, send_lag_ns: 0, busy_share, ..TrialBuilder::asking(100.0) };
        let mut trial = builder.build();
        let flow = Flow { offered: 800, not_sent: 800, ..Flow::default() };
        trial.ops.values_mut().for_each(|known| *known = Flow::default());
        *trial.ops.values_mut().next().unwrap() = flow;
        trial.seconds.iter_mut().for_each(|second| second.flow = flow);
        trial.connections.open_min = open;
        trial.seconds.iter_mut().for_each(|second| second.open_min = open);
        judge(&trial, None, &terms("errors == 0")).verdict
    };
    assert_eq!(judged(0.99, 100), GeneratorLimited);
    assert_eq!(judged(0.2, 100), Fail, "a server that takes nothing");
    assert_eq!(judged(0.99, 40), Fail, "connections are gone");
}

/// Twenty of 120 messages a second never left; in the hold every second was disturbed where the host stole CPU.
#[test]
fn messages_that_a_worker_without_time_never_sent_are_no_errors_of_the_server() {
    let judged_by =
        |objective: &str, busy_share: f64, (cause, count): (&str, u64), is_sent: bool, open: u64| {
            let builder = TrialBuilder {
                busy_share,
                send_lag_ns: 2_000_000_000,
                steal_share: Box::new(|_| 0.2),
                ..TrialBuilder::asking(100.0)
            };
            let builder = builder.edit(move |at, interval| {
                let flow = interval.flow_mut(1, Phase::Hold);
                flow.offered += 20;
                if is_sent {
                    flow.sent += 20;
                    (flow.open_before, flow.open_after) = (20 * u64::from(at), 20 * u64::from(at + 1));
                } else {
                    flow.not_sent = 20;
                }
            });
            let mut trial = builder.build();
            if count > 0 {
                trial.errors.insert(cause.to_owned(), count);
            }
            trial.connections.open_min = open;
            trial.seconds.iter_mut().for_each(|second| second.open_min = open);
            let judgement = judge(&trial, None, &terms(objective));
            (judgement.verdict, judgement.reason.unwrap_or_default())
        };
    const NONE: (&str, u64) = ("", 0);
    let judged_as = |busy_share: f64, error: (&str, u64), is_sent: bool, open: u64| {
        judged_by("errors == 0", busy_share, error, is_sent, open)
    };
    let judged = |busy_share: f64, error: (&str, u64)| judged_as(busy_share, error, false, 100);
    assert_eq!(judged_as(0.99, NONE, true, 100).0, GeneratorLimited, "replies that were not read");
    assert_eq!(judged_as(0.3, NONE, true, 100).0, Fail, "replies that never came");
    assert_eq!(judged_as(0.99, NONE, false, 99).0, Fail, "a connection is gone");
    let (verdict, reason) = judged(0.99, NONE);
    assert_eq!(verdict, GeneratorLimited, "{reason}");
    assert!(reason.contains("1200 of 7200 messages never left") && reason.contains("99 % busy"), "{reason}");
    assert_eq!(judged(0.3, NONE).0, Inconclusive, "late beside others");
    for cause in ["refused", "wrong answer", "status 500", "closed"] {
        assert_eq!(judged(0.99, (cause, 3)).0, Fail, "{cause} is certain");
    }
    // Two refused messages are allowed; that 1,200 never left is this machine's doing and breaks nothing.
    for objective in ["errors < 10", "errors.share < 0.1%"] {
        let judged =
            |busy_share, refused| judged_by(objective, busy_share, ("refused", refused), false, 100).0;
        assert_eq!(judged(0.99, 2), GeneratorLimited, "{objective}");
        assert_eq!(judged(0.99, 12), Fail, "{objective}: more were refused than may be");
        assert_eq!(judged(0.3, 2), Inconclusive, "{objective}: late beside others");
    }
    let on_time = TrialBuilder::asking(100.0).edit(|_, interval| {
        let flow = interval.flow_mut(1, Phase::Hold);
        (flow.offered, flow.not_sent) = (flow.offered + 20, 20);
    });
    assert_eq!(on_time.judged(&terms("errors == 0")).1.verdict, Fail, "a server that does not read");
}

#[test]
fn what_a_worker_never_came_to_was_not_asked_of_the_server() {
    let builder = TrialBuilder::asking(100.0).event(70, kind::GENERATOR_BEHIND, "1200");
    let (_, judgement) = builder.event(70, kind::GENERATOR_BEHIND, "34").judged(&terms("errors == 0"));
    assert_eq!(judgement.verdict, GeneratorLimited);
    let reason = judgement.reason.unwrap();
    assert!(reason.contains("no time for 1234 timers"), "{reason}");
}

/// 100 connections are requested; 60 are open, and the others have causes.
#[test]
fn bots_that_wait_in_vain_blame_nobody_while_a_worker_has_no_time() {
    let judged = |busy_share: f64, causes: &[(&str, u64)]| {
        let builder = TrialBuilder { busy_share, ..TrialBuilder::asking(100.0) };
        let mut trial = builder.build();
        (trial.connections.open_min, trial.connections.open, trial.connections.opened_in_ramp) = (60, 60, 60);
        trial.seconds.iter_mut().for_each(|second| second.open_min = 60);
        let causes = causes.iter().map(|(cause, count)| ((*cause).to_owned(), *count));
        trial.connections.failed = causes.collect();
        let judgement = judge(&trial, None, &terms("errors == 0"));
        (judgement.verdict, judgement.reason.unwrap())
    };
    let (verdict, reason) = judged(0.99, &[("timeout", 40)]);
    assert_eq!(verdict, GeneratorLimited, "{reason}");
    assert!(reason.contains("40 attempts failed (timeout)") && reason.contains("99 % busy"), "{reason}");
    assert_eq!(judged(0.99, &[]).0, GeneratorLimited, "the others had not opened yet");
    for (busy_share, causes) in [
        (0.9, &[("timeout", 40)][..]),
        (0.5, &[("timeout", 40)]),
        (0.99, &[("refused", 40)]),
        (0.99, &[("timeout", 34), ("refused", 6)]),
    ] {
        let (verdict, reason) = judged(busy_share, causes);
        assert_eq!(verdict, Fail, "{busy_share} {causes:?}: {reason}");
    }
}

#[test]
fn a_worker_that_had_no_time_after_the_hold_excuses_nothing() {
    let judged = |is_after: bool| {
        let mut trial = TrialBuilder { busy_share: 0.2, ..TrialBuilder::asking(100.0) }.build();
        trial.connections.open_min = 60;
        trial.seconds.iter_mut().for_each(|second| second.open_min = 60);
        trial.connections.failed = [("timeout".to_owned(), 40)].into();
        let ends = (trial.hold.as_ref().unwrap().to_ns / 1_000_000_000) as u32;
        let mut last = trial.seconds.iter().rfind(|second| second.index < ends).unwrap().clone();
        trial.seconds.retain(|second| second.index < last.index);
        last.index += u32::from(is_after);
        last.busy_share_max = 0.99;
        trial.seconds.push(last);
        judge(&trial, None, &terms("errors == 0")).verdict
    };
    assert_eq!(judged(false), GeneratorLimited);
    assert_eq!(judged(true), Fail);
}

#[test]
fn what_scripts_take_is_said_of_the_bots_cpu() {
    let mut trial = TrialBuilder::arena(500.0).build();
    assert_eq!(of_script(&trial), "", "these bots are no scripts");
    let names = MetricNames::new(&[], &[], &["script_ms"], &[]);
    trial.head.metric_names = names.with_counter_roles(&[("script_ms", Role::ScriptTime)]);
    trial.worker.cpu_cores = 0.8;
    let script_ms = trial.held_s() * 1e3 * 0.4;
    trial.counters.insert("script_ms".to_owned(), script_ms as u64);
    assert_eq!(of_script(&trial), ", and scripts took 50 % of the bots' CPU");
    for (name, place, share) in
        [("decode", "codec.ts:41", 0.4), ("", "a (b).ts:3", 0.3), ("decode", "codec.ts:41", 0.2)]
    {
        let ms = (script_ms * share) as u64;
        let text = ScriptFunction { name: name.to_owned(), place: place.to_owned(), ms }.to_string();
        trial.events.push(Event { kind: kind::SCRIPT_FUNCTION.to_owned(), text, ..Event::default() });
    }
    let expected = ", and scripts took 50 % of the bots' CPU, most of it in decode (codec.ts:41)";
    assert_eq!(of_script(&trial), expected);
    trial.events.truncate(trial.events.len() - 3);
    let text = "1200 ms:  (a.ts:3)".to_owned();
    trial.events.push(Event { kind: kind::SCRIPT_FUNCTION.to_owned(), text, ..Event::default() });
    assert!(of_script(&trial).ends_with(" of it in a function without a name (a.ts:3)"));
}
