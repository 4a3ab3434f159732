//! A rung may pass under adverse conditions but may fail only under fair ones.

use measure::trial::kind;
use measure::{Entry, MachineMetric, ProcessMetric, Reading, Sample};

use super::*;
use crate::testing::HOLD_FROM_S;

/// Another program takes so many of the two cores in these seconds of the hold, while the server's threads wait so long.
pub(super) fn beside(
    builder: TrialBuilder,
    seconds: std::ops::Range<u32>,
    cores: f64,
    waiting: f64,
) -> TrialBuilder {
    builder.sampled(move |at| {
        let is_beside = seconds.contains(&at);
        let (cores, waiting) = if is_beside { (cores, waiting) } else { (0.0, 0.0) };
        let mut readings = threads(waiting);
        readings.push((Reading::Machine(MachineMetric::OthersCores), cores));
        if is_beside {
            readings.push((Reading::Program("cc1".into()), cores * 0.6));
            readings.push((Reading::Program("dpkg".into()), cores * 0.4));
        }
        readings
    })
}

/// The server's busiest thread and ours have slack, and waited this share of the time for a core.
pub(super) fn threads(waiting: f64) -> Vec<(Reading, f64)> {
    vec![
        (Reading::Subject(ProcessMetric::WaitingShareMax), waiting),
        (Reading::Worker(ProcessMetric::WaitingShareMax), waiting),
        (Reading::Worker(ProcessMetric::CpuShareMax), 0.2),
        (Reading::Thread("node".into()), 0.3),
    ]
}

/// A compiler uses this many of the two cores in every second.
pub(super) fn beside_cc1(builder: TrialBuilder, cores: f64) -> TrialBuilder {
    builder.sampled(move |_| {
        vec![(Reading::Machine(MachineMetric::OthersCores), cores), (Reading::Program("cc1".into()), cores)]
    })
}

pub(super) fn steal(builder: TrialBuilder, share: f64) -> TrialBuilder {
    TrialBuilder { steal_share: Box::new(move |_| share), ..builder }
}

/// Another run of Stepladder goes on in all seconds.
fn beside_another_run(builder: TrialBuilder) -> TrialBuilder {
    builder.sampled(|_| vec![(Reading::Machine(MachineMetric::OtherRuns), 1.0)])
}

#[test]
fn beside_another_run_nothing_fails_that_it_may_explain_what_is_met_is_met_and_a_dead_server_never_passes() {
    let says = "another Stepladder run";
    let late = || TrialBuilder::arena(500.0).late(0.4);
    check(&beside_another_run(late()), &arena_terms(), Inconclusive, "disturbed", says);
    check(&late(), &arena_terms(), Fail, "ticks.late_share", "");
    passes(&beside_another_run(TrialBuilder::arena(500.0)), &arena_terms());
    let remark = beside_another_run(TrialBuilder::arena(500.0)).judged(&arena_terms()).1.remark.unwrap();
    assert!(remark.contains("another Stepladder run went on for 60 s"), "{remark}");
    let dead = beside_another_run(TrialBuilder::arena(500.0).event(9, kind::SUBJECT_EXITED, "signal 9"));
    check(&dead, &arena_terms(), Fail, "server exited", "");
}

/// Late by this share in these seconds, 2 % in all others.
fn late_in(seconds: std::ops::Range<u32>, share: f64) -> TrialBuilder {
    TrialBuilder::arena(500.0).late_at(move |at| if seconds.contains(&at) { share } else { 0.02 })
}

#[test]
fn objectives_that_are_met_in_spite_of_disturbances_are_met_and_it_is_said() {
    for builder in
        [steal(TrialBuilder::arena(500.0), 0.07), beside(TrialBuilder::arena(500.0), 0..60, 1.1, 0.3)]
    {
        passes(&builder, &arena_terms());
        let (_, judgement) = builder.judged(&arena_terms());
        assert_eq!(judgement.disturbed_share, Some(1.0));
        assert!(judgement.remark.unwrap().starts_with("100 % of the hold was disturbed: "));
    }
    let remark = |builder: TrialBuilder| builder.judged(&arena_terms()).1.remark.unwrap();
    assert!(remark(steal(TrialBuilder::arena(500.0), 0.12)).ends_with("the host stole 12 % of the CPU"));
    let says = "other programs used 1.1 of 2 cores: cc1 0.7, dpkg 0.4";
    assert!(remark(beside(TrialBuilder::arena(500.0), 0..60, 1.1, 0.3)).contains(says));
}

#[test]
fn what_is_late_only_while_others_had_the_cpu_is_judged_by_the_other_seconds() {
    let builder = beside(late_in(0..29, 0.9), 0..28, 1.1, 0.45);
    passes(&builder, &arena_terms());
    let remark = builder.judged(&arena_terms()).1.remark.unwrap();
    assert!(remark.ends_with("ticks.late_share judged by the 31 undisturbed seconds"), "{remark}");
}

#[test]
fn what_is_late_in_the_undisturbed_seconds_too_fails() {
    let builder = beside(TrialBuilder::arena(500.0).late(0.4), 0..28, 1.1, 0.2);
    let says = "ticks.late_share was 40 % in the undisturbed seconds";
    check(&builder, &arena_terms(), Fail, "ticks.late_share", says);
}

#[test]
fn too_few_undisturbed_seconds_are_inconclusive_and_the_culprit_is_named() {
    let says = "ticks.late_share was … other programs used 1.1 of 2 cores: cc1 0.7, dpkg 0.4";
    let builder = beside(late_in(0..40, 0.5), 0..40, 1.1, 0.4);
    check(&builder, &arena_terms(), Inconclusive, "disturbed", says);
    let stolen = steal(TrialBuilder::arena(500.0).late(0.3), 0.12);
    check(&stolen, &arena_terms(), Inconclusive, "disturbed", "the host stole 12 % of the CPU");
}

#[test]
fn what_disturbed_the_second_before_the_hold_is_named_although_nothing_did_in_the_hold() {
    let builder = beside(TrialBuilder::arena(500.0), 0..0, 0.0, 0.0);
    let mut entries = builder.entries();
    let before_ns = u64::from(HOLD_FROM_S) * 1_000_000_000;
    for (what, value) in
        [(Reading::Machine(MachineMetric::OthersCores), 1.1), (Reading::Program("cc1".into()), 1.1)]
    {
        entries.push(Entry::Sample(Sample { at_ns: before_ns, what, value }));
    }
    let found = crate::disturbance(&Trial::from_entries(builder.build().head, &entries, 0));
    assert_eq!((found.seconds, found.disturbed), (60, 1));
    assert_eq!(found.culprit(), "other programs used 1.1 of 2 cores: cc1 1.1");
}

#[test]
fn others_disturb_nothing_where_every_thread_had_a_core_when_it_wanted_one() {
    let beside_late = |cores, waiting| beside(TrialBuilder::arena(500.0).late(0.4), 0..60, cores, waiting);
    let says = "ticks.late_share was 40 %";
    // Other programs use 0.4 of 2 cores all the time, and no thread waits.
    let harmless = beside_late(0.4, 0.005);
    check(&harmless, &arena_terms(), Fail, "ticks.late_share", says);
    assert_eq!(harmless.judged(&arena_terms()).1.disturbed_share, Some(0.0));
    // The same with waits, with more cores taken, with a thread that has little slack, or where waits are not known.
    let short = beside_late(0.4, 0.005).sampled(|_| vec![(Reading::Thread("node".into()), 0.7)]);
    let busy_worker =
        beside_late(0.4, 0.005).sampled(|_| vec![(Reading::Worker(ProcessMetric::CpuShareMax), 0.7)]);
    let late = TrialBuilder::arena(500.0).late(0.4);
    let unknown = late.sampled(|_| vec![(Reading::Machine(MachineMetric::OthersCores), 0.4)]);
    for builder in [beside_late(0.4, 0.02), beside_late(0.6, 0.005), short, busy_worker, unknown] {
        assert_eq!(builder.judged(&arena_terms()).1.disturbed_share, Some(1.0));
    }
}

#[test]
fn what_the_disturbances_cannot_explain_fails_even_when_every_second_was_disturbed() {
    // Threads that were kept off their cores for 5 % of the time make at most 10 % of the ticks late.
    let builder = |late: f64| steal(beside(TrialBuilder::arena(500.0).late(late), 0..60, 0.05, 0.0), 0.05);
    let says = "40 % in the least disturbed seconds, more than the disturbances of the machine explain";
    check(&builder(0.40), &arena_terms(), Fail, "ticks.late_share", says);
    // 10.5 of 34 points are explained, and 23.5 of the remaining 89.5 are more than a quarter; for 32 points they are
    // not.
    check(&builder(0.34), &arena_terms(), Fail, "ticks.late_share", "");
    check(&builder(0.32), &arena_terms(), Inconclusive, "disturbed", "");
    // A thread without slack explains everything: a short delay makes everything after it late.
    let full = builder(0.9).sampled(|_| vec![(Reading::Thread("node".into()), 0.88)]);
    check(&full, &arena_terms(), Inconclusive, "disturbed", "");
}

#[test]
fn a_server_that_is_late_fails_by_the_seconds_in_which_disturbances_explain_least() {
    // Every second is disturbed: 20 of them a little, 40 so much that they explain half of what is due.
    let builder = |calm: f64, rough: f64| {
        let is_calm = |at: u32| at % 30 < 10;
        let builder = beside_cc1(TrialBuilder::arena(500.0), 1.0);
        let builder = builder.late_at(move |at| if is_calm(at) { calm } else { rough });
        builder.sampled(move |at| threads(if is_calm(at) { 0.02 } else { 0.25 }))
    };
    let terms = |asked_s: u64| Criteria { hold_ns: asked_s * SECOND_NS, ..arena_terms() };
    // Over all of them 34 points are explained, over the best 15 only 4.
    let says = "40 % in the least disturbed seconds … more than the disturbances";
    check(&builder(0.4, 0.4), &terms(30), Fail, "ticks.late_share", says);
    // Half of the seconds are needed, and the badly disturbed ones among those explain too much.
    check(&builder(0.4, 0.4), &terms(60), Inconclusive, "disturbed", "");
    // Late where it was disturbed most, and not where it was disturbed less: nothing was undisturbed, so no verdict.
    check(&builder(0.1, 0.6), &terms(30), Inconclusive, "disturbed", "");
}

#[test]
fn ticks_that_a_server_counts_by_seconds_of_its_own_are_kept_with_the_least_disturbed_seconds() {
    // The log's seconds begin in the middle of ours, and every other one of ours is a little less disturbed.
    let builder = beside_cc1(TrialBuilder::arena(500.0).late(0.42), 1.0)
        .sampled(|at| threads(if at.is_multiple_of(2) { 0.07 } else { 0.09 }))
        .sampled(|_| vec![(Reading::Thread("node".into()), 0.1)]);
    let builder = TrialBuilder { log_offset_ns: SECOND_NS / 2, ..builder };
    check(&builder, &arena_terms(), Fail, "ticks.late_share", "42 % in the least disturbed seconds");
}

#[test]
fn a_loop_with_few_ticks_can_have_each_of_them_hit_by_a_short_wait() {
    // 60 ticks per second on one loop: 2 % of waiting are 20 waits of a millisecond, each at a tick.
    let one = TrialBuilder::arena(1.0).late(0.4);
    check(&beside(one, 0..60, 1.1, 0.02), &arena_terms(), Inconclusive, "disturbed", "");
    let many = TrialBuilder::arena(500.0).late(0.4);
    check(&beside(many, 0..60, 1.1, 0.02), &arena_terms(), Fail, "ticks.late_share", "");
}

#[test]
fn a_server_that_stands_still_for_a_second_is_late_in_it_whatever_disturbed_the_others() {
    // 5 % of waiting in each of 60 seconds explains a tenth of the ticks; 6 of them were late altogether.
    let strict = terms("ticks.late_share < 5%");
    let stood_still = late_in(20..26, 1.0);
    let says = "more than the disturbances of the machine explain";
    check(&beside(stood_still, 0..60, 1.1, 0.05), &strict, Fail, "ticks.late_share", says);
    // The same if 49 seconds were undisturbed and nothing was late in them.
    let in_disturbed_ones = late_in(20..26, 1.0);
    check(&beside(in_disturbed_ones, 18..28, 1.1, 0.05), &strict, Fail, "ticks.late_share", says);
    let evenly = TrialBuilder::arena(500.0).late(0.12);
    check(&beside(evenly, 0..60, 1.1, 0.05), &strict, Inconclusive, "disturbed", "");
}

#[test]
fn a_percentile_beyond_what_disturbances_explain_fails() {
    let slow = |slow: u64| {
        let builder = TrialBuilder::asking(1000.0).edit(move |_, interval| {
            let response = interval.distribution_mut(Measure::Response, true);
            response.clear();
            response.record_many(2_000_000, 1_000 - slow);
            response.record_many(90_000_000, slow);
        });
        beside(builder, 0..60, 0.4, 0.02)
    };
    // Four times 2 % of waiting at server and generator, plus the event at the start of each wait: 9.6 % of slow
    // answers and no more.
    check(&slow(90), &asking_terms(), Inconclusive, "disturbed", "");
    check(&slow(120), &asking_terms(), Fail, "response.p99", "more than the disturbances");
}

/// A second without a core leaves half of its requests open, in a hold in which something takes a little CPU throughout.
/// `open_after`: requests open by the number of seconds since then; while any are, each reply takes `slow_ms`.
fn after_a_wait(
    open_after: impl Fn(u32) -> u64 + 'static,
    slow_ms: impl Fn(u32) -> u64 + 'static,
) -> TrialBuilder {
    let open = move |at: u32| at.checked_sub(20).map_or(0, &open_after);
    waiting_at_20(TrialBuilder::asking(1000.0).edit(move |at, interval| {
        let flow = interval.flow_mut(1, Phase::Hold);
        (flow.open_before, flow.open_after) = (at.checked_sub(1).map_or(0, &open), open(at));
        flow.answered = flow.answered + flow.open_before - flow.open_after;
        if flow.open_before + flow.open_after > 0 {
            let answered = flow.answered;
            let response = interval.distribution_mut(Measure::Response, true);
            response.clear();
            response.record_many(slow_ms(at - 20) * 1_000_000, answered);
        }
    }))
}

/// Second 20 without a core; something takes CPU throughout.
fn waiting_at_20(builder: TrialBuilder) -> TrialBuilder {
    builder.sampled(|at| {
        let waiting = if at == 20 { 0.95 } else { 0.002 };
        vec![
            (Reading::Machine(MachineMetric::OthersCores), 0.6),
            (Reading::Subject(ProcessMetric::WaitingShareMax), waiting),
            (Reading::Worker(ProcessMetric::WaitingShareMax), waiting),
            (Reading::Worker(ProcessMetric::CpuShareMax), 0.1),
        ]
    })
}

#[test]
fn what_a_server_works_off_after_a_wait_is_no_failure_and_what_it_does_not_work_off_is() {
    let judged = |builder, verdict, signal, says| check(&builder, &asking_terms(), verdict, signal, says);
    let shrinks = |later: u32| 500u64.saturating_sub(u64::from(later) * 100);
    judged(after_a_wait(shrinks, |_| 400), Inconclusive, "disturbed", "response.p99");
    // All connections are busy, and the backlog waits at the load generator.
    let all_busy = |later: u32| if later < 5 { 500 } else { 0 };
    let falls = |later: u32| 2_000 - 400 * u64::from(later.min(4));
    judged(after_a_wait(all_busy, falls), Inconclusive, "disturbed", "response.p99");
    let stays = |later: u32| if later < 20 { 500 } else { 0 };
    judged(after_a_wait(stays, |_| 400), Fail, "response.p99", "more than the disturbances");
}

/// A second without a core after which deliveries take long, in a hold in which something takes a little CPU throughout.
/// `slow_ms`: how long, by the number of seconds since then; 0: as long as before.
fn broadcasts_after_a_wait(slow_ms: impl Fn(u32) -> u64 + 'static) -> TrialBuilder {
    let builder = TrialBuilder::chat(100).edit(move |at, interval| {
        let slow_ms = at.checked_sub(20).map_or(0, &slow_ms);
        if slow_ms > 0 {
            let delivery = interval.distribution_mut(Measure::Delivery, true);
            let count = delivery.count();
            delivery.clear();
            delivery.record_many(slow_ms * 1_000_000, count);
        }
    });
    waiting_at_20(builder)
}

#[test]
fn deliveries_that_come_sooner_from_second_to_second_after_a_wait_are_no_failure_and_others_are() {
    let terms = terms("deliveries.latency.p99 < 50ms");
    let falls = |later: u32| 2_000u64.saturating_sub(400 * u64::from(later));
    check(&broadcasts_after_a_wait(falls), &terms, Inconclusive, "disturbed", "deliveries.latency");
    let stays = |later: u32| if later < 20 { 400 } else { 0 };
    check(
        &broadcasts_after_a_wait(stays),
        &terms,
        Fail,
        "deliveries.latency.p99",
        "more than the disturbances",
    );
}

#[test]
fn wrong_answers_refusals_and_a_crash_fail_however_disturbed_the_machine_was() {
    let noisy = |builder: TrialBuilder| beside(steal(builder, 0.3), 0..60, 1.5, 0.5);
    let wrong =
        noisy(TrialBuilder::arena(500.0).edit(|at, interval| interval.errors[1] = u64::from(at == 7)));
    check(&wrong, &arena_terms(), Fail, "wrong winner", "");
    let refused = noisy(TrialBuilder::asking(100.0).rejected(3, "GET /: status 503"));
    check(&refused, &terms("errors == 0"), Fail, "errors", "status 503");
    let dead = noisy(TrialBuilder::arena(500.0).event(12, kind::SUBJECT_EXITED, "signal 9"));
    check(&dead, &arena_terms(), Fail, "server exited", "");
}

#[test]
fn a_share_of_errors_fails_on_a_disturbed_machine_only_by_what_no_disturbance_causes() {
    let noisy = |builder: TrialBuilder| beside(steal(builder, 0.3), 0..60, 1.5, 0.5);
    let share = terms("errors.share < 5%");
    let refused = |count| TrialBuilder::asking(100.0).rejected(count, "GET /: status 503");
    check(&noisy(refused(8)), &share, Fail, "errors.share", "8 % … status 503");
    passes(&noisy(refused(2)), &share);
    // 8 % in all, of which 2 % were refused: that may be the machine, and one refusal does not prove otherwise.
    let both = || TrialBuilder::asking(100.0).timing_out(6).rejected(2, "GET /: status 503");
    check(&noisy(both()), &share, Inconclusive, "disturbed", "errors.share was 8 %");
    check(&both(), &share, Fail, "errors.share", "8 %");
    // An objective of zero errors is different, and so is a count that the refusals alone exceed.
    check(&noisy(both()), &terms("errors == 0"), Fail, "errors", "status 503");
    check(&noisy(both()), &terms("errors < 100"), Fail, "errors", "");
    check(&noisy(both()), &terms("errors < 200"), Inconclusive, "disturbed", "");
}

#[test]
fn timeouts_in_disturbed_seconds_are_judged_by_the_others() {
    let builder = |seconds: std::ops::Range<u32>| {
        let builder = TrialBuilder::asking(100.0).edit(move |at, interval| {
            let count = if seconds.contains(&at) { 30 } else { 0 };
            let flow = interval.flow_mut(1, Phase::Hold);
            (flow.answered, flow.lost) = (flow.answered - count, count);
            interval.errors[3] = count;
        });
        beside(builder, 0..28, 1.1, 0.45)
    };
    let share = terms("errors.share < 5%");
    passes(&builder(0..28), &share);
    check(&builder(10..50), &share, Fail, "errors.share", "in the undisturbed seconds");
}

#[test]
fn a_generator_that_is_late_only_in_disturbed_seconds_was_disturbed() {
    let builder = |late_from: u32| {
        TrialBuilder::asking(1000.0).edit(move |at, interval| {
            let (lag_ns, response_ns) =
                if at >= late_from { (9_000_000, 70_000_000) } else { (100_000, 2_000_000) };
            for (measure, ns) in [(Measure::SendLag, lag_ns), (Measure::Response, response_ns)] {
                interval.distribution_mut(measure, true).clear();
                interval.distribution_mut(measure, true).record_many(ns, 1_000);
            }
        })
    };
    check(&builder(40), &asking_terms(), GeneratorLimited, "send_lag.p99", "");
    passes(&beside(builder(40), 40..60, 1.2, 0.4), &asking_terms());
    check(&beside(builder(20), 20..60, 1.2, 0.4), &asking_terms(), Inconclusive, "disturbed", "");
}

#[test]
fn what_limits_the_generator_is_said() {
    let with = |name: ProcessMetric, value: f64| {
        let late = TrialBuilder { send_lag_ns: 20_000_000, ..TrialBuilder::arena(500.0) };
        late.sampled(move |_| vec![(Reading::Worker(name), value)])
    };
    let own_cores = "give the generator cores of its own";
    for (name, value, signal, says) in [
        (ProcessMetric::CpuShareMax, 0.97, "worker.cpu", "the busiest worker used 97 % of a core"),
        (ProcessMetric::CpuShareMax, 0.8, "send_lag.p99", own_cores),
        (ProcessMetric::WaitingShareMax, 0.34, "worker.waiting", "waited for a core 34 % of a second"),
        (ProcessMetric::WaitingShareMax, 0.1, "send_lag.p99", own_cores),
    ] {
        check(&with(name, value), &arena_terms(), GeneratorLimited, signal, says);
    }
    for (busy_share, signal) in [(0.8, "send_lag.p99"), (0.81, "worker.busy_share")] {
        let builder = TrialBuilder { send_lag_ns: 20_000_000, busy_share, ..TrialBuilder::arena(500.0) };
        check(&builder, &arena_terms(), GeneratorLimited, signal, "");
    }
}

#[test]
fn waiting_for_the_server_on_shared_cores_is_no_disturbance() {
    let builder = TrialBuilder::arena(500.0).late(0.4).sampled(|_| {
        vec![
            (Reading::Machine(MachineMetric::OthersCores), 0.01),
            (Reading::Worker(ProcessMetric::WaitingShareMax), 0.4),
        ]
    });
    check(&builder, &arena_terms(), Fail, "ticks.late_share", "");
}

#[test]
fn a_share_of_the_cpu_that_others_flattered_is_read_in_undisturbed_seconds() {
    let cpu = terms("subject.cpu_share < 90%");
    passes(&TrialBuilder::arena(500.0), &cpu);
    passes(&beside(TrialBuilder::arena(500.0), 0..10, 1.1, 0.2), &cpu);
    let says = "other programs took CPU";
    check(
        &beside(TrialBuilder::arena(500.0), 0..60, 1.1, 0.2),
        &cpu,
        Inconclusive,
        "subject.cpu_share",
        says,
    );
}

/// The server's log says 3 %.
fn seen_late(late: u64) -> TrialBuilder {
    TrialBuilder::arena(500.0).edit(move |_, interval| see_ticks(interval, 1_000, late, 90_000_000))
}

#[test]
fn ticks_a_little_later_on_their_way_to_a_disturbed_client_contradict_no_server() {
    passes(&beside(seen_late(250), 0..60, 1.1, 0.2), &arena_terms());
}

#[test]
fn clients_that_see_otherwise_for_half_of_the_ticks_let_no_server_pass_whatever_the_machine_explains() {
    let says = "3 % by the server and 50 % by its clients … other programs used 1.1 … run it again";
    check(&beside(seen_late(500), 0..60, 1.1, 0.2), &arena_terms(), Inconclusive, "inconsistent", says);
    let says = "does not tell the truth";
    check(&beside(seen_late(1_000), 0..60, 0.3, 0.05), &arena_terms(), Inconclusive, "inconsistent", says);
}

#[test]
fn clients_behind_an_emulated_network_are_no_witnesses_where_it_delays_ticks_unevenly() {
    let behind = |jitter_ns: u64| {
        let facts = measure::NetworkFacts {
            name: "own".to_owned(),
            share: 1.0,
            bots: 1_000,
            latency_ns: 80_000_000,
            jitter_ns,
            loss: 0.0,
            bits_per_s: None,
        };
        seen_late(1_000).event(0, kind::NETWORKS, &serde_json::to_string(&[facts]).unwrap())
    };
    passes(&behind(20_000_000), &arena_terms());
    check(&behind(0), &arena_terms(), Inconclusive, "inconsistent", "");
}

#[test]
fn witnesses_that_agree_in_undisturbed_seconds_do_not_contradict_each_other() {
    let late_in = |seconds: std::ops::Range<u32>| {
        TrialBuilder::arena(500.0).edit(move |at, interval| {
            see_ticks(interval, 1_000, if seconds.contains(&at) { 1_000 } else { 50 }, 25_000_000);
        })
    };
    passes(&beside(late_in(0..20), 0..20, 1.1, 0.2), &arena_terms());
    check(&beside(late_in(0..60), 0..20, 1.1, 0.2), &arena_terms(), Inconclusive, "inconsistent", "");
}

#[test]
fn a_hold_goes_on_only_while_it_is_undecided() {
    let enough = |builder: TrialBuilder| {
        let terms = Criteria { hold_ns: 60 * SECOND_NS, ..arena_terms() };
        crate::judge::has_seen_enough(&builder.build(), &terms)
    };
    assert!(enough(TrialBuilder::arena(500.0).late(0.9)), "nothing was disturbed");
    assert!(enough(beside(TrialBuilder::arena(500.0), 0..60, 1.1, 0.2)), "everything is met");
    assert!(!enough(beside(seen_late(500), 0..60, 1.1, 0.2)), "the clients see otherwise");
    assert!(
        enough(beside(TrialBuilder::arena(500.0).late(0.9), 0..28, 1.1, 0.2)),
        "31 seconds were undisturbed"
    );
    let undecided = || TrialBuilder::arena(500.0).late(0.4);
    assert!(!enough(beside(undecided(), 0..40, 1.1, 0.2)), "19 are too few");
    assert!(enough(beside(undecided(), 0..40, 1.1, 0.02)), "the disturbances explain 3 of 40 points");
}

#[test]
fn a_generator_that_sends_little_is_late_when_a_good_part_of_it_is() {
    let builder = |late: u64| {
        let sent = move |at: u32, interval: &mut measure::Interval| {
            let lags = interval.distribution_mut(Measure::SendLag, true);
            lags.clear();
            lags.record_many(100_000, 3);
            // 180 sends in all: far too few for a p99, and for a p90 with a hundred beyond it.
            if u64::from(at) < late {
                lags.record_many(60_000_000, 1);
            }
        };
        TrialBuilder { response_ns: 70_000_000, ..TrialBuilder::asking(3.0) }.edit(sent)
    };
    let says = "25 % of the sends were later than";
    check(&builder(60), &asking_terms(), GeneratorLimited, "send_lag.p99", says);
    let (_, judgement) = builder(9).judged(&asking_terms());
    assert_ne!(judgement.verdict, GeneratorLimited, "{:?}", judgement.reason);
}
