//! A dead server never passes: silence counts as missed ticks and missed replies, at any moment of the hold.

use measure::{Entry, Interval, MachineMetric, ProcessMetric, Reading, Trial};

use super::disturbed::steal;
use super::*;
use crate::testing::{HOLD_FROM_S, lose};

/// The same trial, with nothing in the server's log from a second of the hold on.
fn hung(builder: &TrialBuilder, from_s: u32) -> Trial {
    let until_ns = u64::from(HOLD_FROM_S + from_s) * SECOND_NS;
    let told = |entry: &Entry| !matches!(entry, Entry::Ticks(second) if second.to_ns > until_ns);
    let entries: Vec<Entry> = builder.entries().into_iter().filter(told).collect();
    Trial::from_entries(builder.build().head, &entries, 0)
}

#[track_caller]
fn check_trial(trial: &Trial, verdict: Verdict, signal: &str, says: &str) {
    check_judged(&judge(trial, None, &arena_terms()), verdict, signal, says);
}

#[test]
fn a_server_that_hangs_in_the_hold_fails_whenever_it_does() {
    let builder = TrialBuilder { hold_s: 30, ..TrialBuilder::arena(20.0) };
    let says = "no tick from 12 s of the hold on, 18 s before its end … 21600 ticks were missed";
    check_trial(&hung(&builder, 12), Fail, "ticks.silence", says);
    check_trial(&hung(&builder, 28), Fail, "ticks.silence", "2 s before its end");
    check_trial(&hung(&builder, 1), Fail, "ticks.silence", "34800 ticks were missed");
    check_trial(&hung(&builder, 30), Pass, "", "");
    // The last line of a log written once per second may come after the hold.
    check_trial(&hung(&builder, 29), Pass, "", "");
}

/// The trial of a server of 10 s that stood still from 1.6 s before the end of the hold on. `ticks_again`: 0.6 s after the hold it
/// told so, in one line over 2.6 s in which 2,622 ticks were missed.
fn stood_still_at_the_end(builder: &TrialBuilder, ticks_again: bool) -> Trial {
    let end_ns = u64::from(HOLD_FROM_S + 10) * SECOND_NS;
    let mut entries = builder.entries();
    entries.retain(|entry| !matches!(entry, Entry::Ticks(second) if second.to_ns > end_ns - 2 * SECOND_NS));
    if ticks_again {
        let mut late = entries
            .iter()
            .find_map(|entry| if let Entry::Ticks(second) = entry { Some(second.clone()) } else { None })
            .unwrap();
        (late.from_ns, late.to_ns) = (end_ns - 2 * SECOND_NS, end_ns + 600_000_000);
        late.counts.missed = 2_622;
        late.counts.due += 2_622;
        entries.push(Entry::Ticks(late));
    }
    Trial::from_entries(builder.build().head, &entries, 0)
}

#[test]
fn a_line_across_the_end_of_the_hold_gives_it_its_part_of_the_missed_ticks() {
    let builder = TrialBuilder { hold_s: 10, ..TrialBuilder::arena(20.0) };
    let trial = stood_still_at_the_end(&builder, true);
    let silence = trial.ticks.as_ref().unwrap().silence.as_ref().unwrap();
    assert_eq!((silence.missed, silence.is_told), (2_017, true), "2,622 × 2 / 2.6");
    check_trial(&trial, Fail, "ticks.silence", "by the server's own later word");
}

#[test]
fn a_server_that_was_kept_from_its_core_at_the_end_and_ticked_again_is_not_silent() {
    // Nothing else ran until the last two seconds, in which the server got no core.
    let builder = TrialBuilder { hold_s: 10, ..TrialBuilder::arena(20.0) }.sampled(|at| {
        let away = if at >= 8 { 1.0 } else { 0.0 };
        vec![
            (Reading::Machine(MachineMetric::OthersCores), 2.0 * away),
            (Reading::Subject(ProcessMetric::WaitingShareMax), away),
            (Reading::Worker(ProcessMetric::WaitingShareMax), 0.0),
            (Reading::Worker(ProcessMetric::CpuShareMax), 0.1),
        ]
    });
    let dead = stood_still_at_the_end(&builder, false);
    check_trial(&dead, Fail, "ticks.silence", "the server reported nothing from then on");
    let alive = stood_still_at_the_end(&builder, true);
    check_trial(&alive, Inconclusive, "disturbed", "by the server's own later word … other programs");
}

#[test]
fn a_log_that_goes_on_while_the_loop_stands_still_fails() {
    let builder = TrialBuilder { hold_s: 30, ..TrialBuilder::arena(20.0) };
    let mut entries = builder.entries();
    for entry in &mut entries {
        if let Entry::Ticks(second) = entry
            && second.from_ns >= u64::from(HOLD_FROM_S + 12) * SECOND_NS
        {
            second.counts = Default::default();
            second.interval = measure::Distribution::new();
        }
    }
    let trial = Trial::from_entries(builder.build().head, &entries, 0);
    check_trial(&trial, Fail, "ticks.silence", "no tick from 12 s of the hold on");
}

#[test]
fn a_server_of_ours_that_dies_in_the_last_second_or_before_the_first_entry_fails() {
    let builder = TrialBuilder { hold_s: 30, ..TrialBuilder::arena(20.0) };
    let ours = Criteria { tells_ticks: true, ..arena_terms() };
    let late_end = |trial: &Trial| {
        let mut trial = trial.clone();
        // The trial kept listening for 4 s, and nothing came.
        trial
            .events
            .iter_mut()
            .filter(|event| event.kind == kind::END)
            .for_each(|event| event.at_ns += 4 * SECOND_NS);
        trial
    };
    let build = |from_s: u32| {
        let until_ns = u64::from(HOLD_FROM_S + from_s) * SECOND_NS;
        let mut entries = builder.entries();
        entries.retain(|entry| !matches!(entry, Entry::Ticks(second) if second.to_ns > until_ns));
        for entry in &mut entries {
            if let Entry::Event(event) = entry
                && event.kind == kind::END
            {
                event.at_ns += 4 * SECOND_NS;
            }
        }
        Trial::from_entries(builder.build().head, &entries, 0)
    };
    for from_s in [0, 29] {
        let judgement = judge(&build(from_s), None, &ours);
        assert_eq!(judgement.signal.as_deref(), Some("ticks.silence"), "{from_s}: {:?}", judgement.reason);
    }
    // A foreign server may not report when its games have ended, and one that reports nothing at all may use another
    // log.
    assert_eq!(judge(&build(29), None, &arena_terms()).verdict, Pass);
    assert_eq!(judge(&build(0), None, &arena_terms()).verdict, Inconclusive);
    assert_eq!(judge(&late_end(&build(30)), None, &ours).verdict, Pass);
}

#[test]
fn a_server_that_ticks_on_and_tells_its_clients_nothing_fails() {
    let hears_until = |until: u32| {
        TrialBuilder::arena(20.0).edit(move |at, interval| {
            if at < until {
                see_ticks(interval, 180, 2, 25_000_000);
            }
        })
    };
    let says = "heard nothing from 50 s of the hold on, 10 s before its end";
    check(&hears_until(50), &arena_terms(), Fail, "client_ticks.silence", says);
    passes(&hears_until(59), &arena_terms());
}

#[test]
fn a_server_that_throws_its_clients_out_fails_although_they_come_back() {
    let resets = |count: u64| {
        TrialBuilder::arena(500.0)
            .edit(move |at, interval| interval.errors[0] = if at == 20 { count } else { 0 })
    };
    let says =
        "the server broke 1000 connections in the hold, of 1000 that should stand: 1000 connection lost";
    check(&resets(1000), &arena_terms(), Fail, "connections.broken", says);
    passes(&resets(40), &arena_terms());
}

#[test]
fn a_room_that_lets_too_few_in_fails_and_no_late_generator_is_blamed() {
    let half = TrialBuilder::chat(100).not_admitted(50, 11);
    let says = "had not let in 50 of 100 clients when the hold began; the first: had asked 11 s before";
    // A client that is not let in sends nothing: fewer lines are offered than were planned, which is not the
    // generator's fault.
    let terms = Criteria { intended: Some(Intended::PerSecond(200.0)), ..terms("deliveries.lost == 0") };
    check(&half, &terms, Fail, "clients.admitted", says);
}

#[test]
fn clients_that_see_no_more_ticks_are_a_silence_where_nothing_else_tells_them() {
    let mut builder = TrialBuilder::arena(20.0).edit(|at, interval| {
        if at < 40 {
            see_ticks(interval, 60, 1, 25_000_000);
        }
    });
    builder.late_share = None;
    check(
        &builder,
        &arena_terms(),
        Fail,
        "ticks.silence",
        "no tick from 40 s of the hold on … by the clients",
    );
}

/// Clients that ask one after the other; the server answers up to a second of the hold and never again.
pub(super) fn stops_replying(from_s: u32) -> TrialBuilder {
    TrialBuilder::asking(4.0).edit(move |at, interval| {
        let flow = interval.flow_mut(1, Phase::Hold);
        let open = |at: u32| if at >= from_s { 4 } else { 0 };
        if at >= from_s {
            (flow.offered, flow.sent, flow.answered) = (0, 0, 0);
            interval.distribution_mut(Measure::Response, true).clear();
        }
        let flow = interval.flow_mut(1, Phase::Hold);
        (flow.open_before, flow.open_after) = (open(at), open(at + 1));
        if at + 1 == from_s {
            (flow.offered, flow.sent) = (flow.offered + 4, flow.sent + 4);
        }
    })
}

#[test]
fn a_server_that_stops_replying_fails_whatever_its_objectives() {
    for objective in ["errors == 0", "service.p50 < 50ms", "rate_per_s > 0.1"] {
        let says = "stopped replying: no reply from 20 s of the hold on … 4 requests unanswered";
        check(&stops_replying(20), &terms(objective), Fail, "stopped replying", says);
    }
}

/// Answers come back as late as the network lets them; what is silent for longer is dead behind it as well.
#[test]
fn silence_behind_an_emulated_network_is_longer_than_its_round_trip() {
    let facts = |latency_ns, loss| measure::NetworkFacts {
        name: "far".to_owned(),
        share: 1.0,
        bots: 4,
        latency_ns,
        jitter_ns: 0,
        loss,
        bits_per_s: None,
    };
    // Of 60 s: silent for 4 s, and for 40 s.
    for (from_s, networks, is_dead) in [
        (56, vec![], true),
        (56, vec![facts(80_000_000, 0.0)], true),
        (56, vec![facts(1_500_000_000, 0.0)], true),
        (56, vec![facts(80_000_000, 0.0), facts(3_000_000_000, 0.0)], false),
        (56, vec![facts(1_000_000_000, 0.01)], false),
        (20, vec![facts(3_000_000_000, 0.0)], true),
        (20, vec![facts(1_000_000_000, 0.01)], true),
    ] {
        let told = serde_json::to_string(&networks).unwrap();
        let trial = stops_replying(from_s).event(0, kind::NETWORKS, &told).build();
        let judgement = judge(&trial, None, &terms("errors == 0"));
        let is_silent = judgement.signal.as_deref() == Some("stopped replying");
        assert_eq!(is_silent, is_dead, "{from_s} s, {networks:?}: {:?}", judgement.reason);
    }
}

#[test]
fn requests_that_are_open_from_before_the_hold_and_never_answered_fail_it() {
    // Each client sent one request in the ramp, was answered, sent another, and waits: in the hold nothing is planned
    // at all.
    let builder = TrialBuilder::asking(4.0).edit(|_, interval| {
        let hold = interval.flow_mut(1, Phase::Hold);
        (hold.offered, hold.sent, hold.answered) = (0, 0, 0);
        let settle = interval.flow_mut(1, Phase::Settle);
        (settle.open_before, settle.open_after) = (4, 4);
        for measure in [Measure::Response, Measure::Service, Measure::SendLag] {
            interval.distribution_mut(measure, true).clear();
        }
    });
    let mut entries = builder.entries();
    let first = entries
        .iter_mut()
        .find_map(|entry| if let Entry::Interval(interval) = entry { Some(interval) } else { None });
    let ramp = first.unwrap().flow_mut(1, Phase::Ramp);
    (ramp.offered, ramp.sent, ramp.answered) = (4, 4, 4);
    // The single answer may have gone to a probe before the bots' requests.
    let never_answered = builder.build();
    for trial in [Trial::from_entries(builder.build().head, &entries, 0), never_answered] {
        let judgement = judge(&trial, None, &terms("errors == 0"));
        assert_eq!((judgement.verdict, judgement.signal.as_deref()), (Fail, Some("stopped replying")));
        assert!(judgement.reason.unwrap().contains("no reply throughout the hold"));
    }
}

#[test]
fn messages_that_the_server_never_reads_fail_a_rung_that_keeps_its_ticks() {
    let builder = TrialBuilder::arena(20.0).edit(|_, interval| {
        let shot = interval.flow_mut(0, Phase::Hold);
        (shot.not_sent, shot.sent, shot.told) = (shot.offered, 0, 0);
    });
    check(&builder, &arena_terms(), Fail, "not_sent", "of 16800 messages never left");
}

/// A room in which everything works until this second of the hold; then nothing is delivered.
fn room_that_stops(from: u32, sends: bool) -> TrialBuilder {
    // The last messages sent wait in the server for ever.
    let room = TrialBuilder::chat(100).receivers(|one| lose(one, 10, 0, 10));
    room.edit(move |at, interval| {
        if at >= from {
            interval.distribution_mut(Measure::Delivery, true).clear();
            if !sends {
                let say = interval.flow_mut(0, Phase::Hold);
                (say.offered, say.sent, say.told) = (0, 0, 0);
            }
        }
    })
}

#[test]
fn a_room_in_which_nothing_is_delivered_any_more_fails_however_disturbed_the_machine_was() {
    let asked = terms("deliveries.latency.p99 < 50ms");
    let says = "stopped delivering: no delivery from 50 s of the hold on";
    for builder in [room_that_stops(50, true), steal(room_that_stops(50, true), 0.1)] {
        check(&builder, &asked, Fail, "deliveries.silence", says);
    }
    let says = "stopped delivering: no delivery throughout the hold";
    check(&room_that_stops(0, true), &asked, Fail, "deliveries.silence", says);
    // If the bots had no time to read, the silence may be theirs.
    let unread = room_that_stops(50, true).receivers(|one| (one.sum.unread, one.sum.lost) = (5, 5));
    check(&unread, &asked, GeneratorLimited, "deliveries.unread", "500 of … were not read");
    // One second may be network delay, and if nothing is sent nothing arrives.
    for builder in [room_that_stops(59, true), room_that_stops(50, false)] {
        let (_, judgement) = builder.judged(&asked);
        assert_ne!(judgement.signal.as_deref(), Some("deliveries.silence"), "{:?}", judgement.reason);
    }
}

#[test]
fn a_hold_in_which_nobody_says_a_word_shows_nothing() {
    let mute = TrialBuilder::chat(100).edit(|_, interval| {
        *interval.flow_mut(0, Phase::Hold) = measure::Flow::default();
        interval.distribution_mut(Measure::Delivery, true).clear();
    });
    // What was sent before and after the hold arrived.
    let says = "nothing was said in the hold";
    check(&mute, &terms("deliveries.lost == 0"), Inconclusive, "nothing asked", says);
}

/// A room whose server stops within the last second of the hold, `silent_s` before the clients gave up waiting for it;
/// `waiting` of its 20 receivers never had its word that all had come.
fn room_that_stops_at_the_end(waiting: u32, silent_s: u32) -> (Trial, Trial) {
    let builder = steal(TrialBuilder::chat(20), 0.1).receivers(move |receiver| {
        if receiver.receiver < waiting {
            lose(receiver, 3, 0, 0);
            receiver.sum.not_caught_up = 1;
        }
    });
    let mut entries = builder.entries();
    for at in 0..silent_s + 1 {
        let mut interval = Interval::new(&builder.build().head.metric_names);
        (interval.index, interval.workers) = (HOLD_FROM_S + builder.hold_s + at, 1);
        if at == 0 {
            interval.distribution_mut(measure::Measure::Delivery, true).record_many(5_000_000, 10);
        }
        entries.push(Entry::Interval(Box::new(interval)));
    }
    let head = builder.build().head;
    let trial = Trial::from_entries(head.clone(), &entries, 0);
    let left_out = crate::disturbance::least_disturbed(&trial, 0).left_out;
    let calmer = Trial::from_entries_without(head, &entries, 0, left_out);
    (trial, calmer)
}

#[test]
fn a_room_whose_server_stops_in_the_last_second_of_the_hold_fails_however_disturbed_the_machine_was() {
    let asked = terms("deliveries.lost == 0");
    let signal = |waiting: u32, silent_s: u32| {
        let (trial, calmer) = room_that_stops_at_the_end(waiting, silent_s);
        judge(&trial, Some(&calmer), &asked).signal
    };
    assert_eq!(signal(20, 8).as_deref(), Some("deliveries.silence"));
    // One receiver got the reply, or the drain was too short to tell: the missing delivery may be due to the machine.
    assert_eq!(signal(19, 8).as_deref(), Some("disturbed"));
    assert_eq!(signal(20, 1).as_deref(), Some("disturbed"));
}

/// 10 requests a second; those of the last three seconds are answered after the hold, or never. `waiting`: for this
/// share of these seconds the worker had no core.
fn late_at_the_end(answers: bool, waiting: f64) -> Trial {
    let builder = TrialBuilder::asking(10.0).edit(|at, interval| {
        let open_before = u64::from(at.saturating_sub(57)) * 10;
        if at >= 57 {
            let ask = interval.flow_mut(1, Phase::Hold);
            (ask.answered, ask.open_before, ask.open_after) = (0, open_before, open_before + 10);
        }
    });
    let builder = builder.sampled(move |at| {
        vec![(Reading::Worker(ProcessMetric::WaitingShareMax), if at >= 58 { waiting } else { 0.0 })]
    });
    let mut drain = Interval::new(&crate::testing::names());
    (drain.index, drain.workers) = (HOLD_FROM_S + builder.hold_s, 1);
    let (answered, open_after) = if answers { (30, 0) } else { (0, 30) };
    let ask = drain.flow_mut(1, Phase::Hold);
    (ask.open_before, ask.answered, ask.open_after) = (30, answered, open_after);
    let mut entries = builder.entries();
    entries.push(Entry::Interval(Box::new(drain)));
    Trial::from_entries(builder.build().head, &entries, 0)
}

#[test]
fn replies_that_a_worker_without_a_core_could_not_read_are_no_silence_and_those_that_never_came_are() {
    let verdict = |answers, waiting| {
        let judgement = judge(&late_at_the_end(answers, waiting), None, &terms("errors == 0"));
        (judgement.verdict, judgement.signal)
    };
    assert_eq!(verdict(true, 0.9), (Pass, None));
    for (answers, waiting) in [(true, 0.1), (false, 0.9), (false, 0.1)] {
        assert_eq!(verdict(answers, waiting), (Fail, Some("stopped replying".to_owned())));
    }
}
