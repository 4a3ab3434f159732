use Verdict::{Fail, GeneratorLimited, Inconclusive, Invalid, Pass};
use measure::trial::kind;
use measure::{LoadUnit, Measure, Phase, Summary};
use proptest::prelude::*;

use super::*;
use crate::testing::{HOLD_FROM_S, SECOND_NS, TrialBuilder, see_ticks, terms};

fn arena_terms() -> Criteria {
    terms("ticks.late_share < 25%")
}

pub(super) fn asking_terms() -> Criteria {
    terms("response.p99 < 50ms, errors == 0")
}

/// Verdict and signal, and what the reason must say: parts with … between them.
#[track_caller]
pub(super) fn check_judged(judgement: &Judgement, verdict: Verdict, signal: &str, says: &str) {
    let reason = judgement.reason.as_deref().unwrap_or("");
    assert_eq!((judgement.verdict, judgement.signal.as_deref().unwrap_or("")), (verdict, signal), "{reason}");
    for part in says.split(" … ") {
        assert!(reason.contains(part), "\"{part}\" is not in: {reason}");
    }
}

#[track_caller]
pub(super) fn check(builder: &TrialBuilder, terms: &Criteria, verdict: Verdict, signal: &str, says: &str) {
    check_judged(&builder.judged(terms).1, verdict, signal, says);
}

#[track_caller]
pub(super) fn passes(builder: &TrialBuilder, terms: &Criteria) {
    check(builder, terms, Pass, "", "");
}

#[test]
fn a_rung_that_meets_everything_passes_without_a_reason() {
    passes(&TrialBuilder::arena(500.0), &arena_terms());
    passes(&TrialBuilder::asking(1000.0), &asking_terms());
    let judgement = TrialBuilder::arena(500.0).judged(&arena_terms()).1;
    assert_eq!((judgement.reason, judgement.steady), (None, Some(Steadiness::Steady)));
    assert_eq!(judgement.disturbed_share, Some(0.0));
    assert_eq!(judgement.evidence.objectives[0].met, Some(true));
}

#[test]
fn a_broken_objective_is_named_with_its_value_and_bound() {
    let builder = TrialBuilder::arena(2000.0).late(0.312);
    let reason = "ticks.late_share was 31.2 % (objective: ticks.late_share < 25%)";
    check(&builder, &arena_terms(), Fail, "ticks.late_share", reason);
    let mut slow = TrialBuilder::asking(1000.0);
    slow.response_ns = 61_000_000;
    check(&slow, &asking_terms(), Fail, "response.p99", "response.p99 was 61 … < 50ms");
}

#[test]
fn lost_messages_are_infinite_and_not_absent() {
    let builder = TrialBuilder::asking(1000.0).edit(|_, interval| {
        let flow = interval.flow_mut(1, Phase::Hold);
        (flow.offered, flow.sent, flow.lost) = (flow.offered + 50, flow.sent + 50, 50);
    });
    check(&builder, &terms("response.p99 < 50ms"), Fail, "response.p99", "was never");
}

#[test]
fn a_server_that_answers_nobody_fails_even_in_a_short_hold() {
    let mut builder = TrialBuilder::asking(20.0).edit(|_, interval| {
        let flow = interval.flow_mut(1, Phase::Hold);
        (flow.answered, flow.failed) = (0, flow.sent);
        interval.distribution_mut(Measure::Response, true).clear();
    });
    builder.hold_s = 10;
    check(&builder, &terms("response.p99 < 50ms"), Fail, "response.p99", "more than 50ms");
}

#[test]
fn too_few_samples_are_inconclusive() {
    let builder = TrialBuilder { hold_s: 10, ..TrialBuilder::asking(20.0) };
    let says = "response.p99 needs 299 samples to be met and has 200 … hold longer (--hold 17s)";
    check(&builder, &terms("response.p99 < 50ms"), Inconclusive, "response.p99", says);
    // A lower bound on a percentile can only be decided by its value.
    let says = "needs 10000 samples and has 200 … hold longer (--hold 550s)";
    check(&builder, &terms("response.p99 > 1ms"), Inconclusive, "response.p99", says);
}

/// 742 answers in 14 s, some of which came after 300 ms, evenly or all in the seconds from `late_from_s` on.
fn with_late(late: u64, late_from_s: u32) -> TrialBuilder {
    let builder = TrialBuilder { hold_s: 14, ..TrialBuilder::asking(53.0) };
    builder.edit(move |at, interval| {
        let seconds = u64::from(14 - late_from_s);
        let (before, now) = (
            u64::from(at.saturating_sub(late_from_s)),
            u64::from(at + 1).saturating_sub(u64::from(late_from_s)),
        );
        let late = late * now / seconds - late * before / seconds;
        let values = interval.distribution_mut(Measure::Response, true);
        values.clear();
        values.record_many(50_000_000, 53 - late);
        values.record_many(300_000_000, late);
    })
}

#[test]
fn a_percentile_of_few_samples_is_decided_by_how_many_lie_beyond_its_bound() {
    let asked = terms("response.p95 < 200ms");
    passes(&with_late(10, 0), &asked);
    passes(&with_late(0, 0), &asked);
    let says = "more than 200ms (120 of 742 samples were beyond it, 5 % may be)";
    check(&with_late(120, 0), &asked, Fail, "response.p95", says);
    let says = "30 of 742 samples were beyond 200ms … likely to decide, so hold longer";
    check(&with_late(30, 0), &asked, Inconclusive, "response.p95", says);
    let judged = with_late(10, 0).judged(&asked).1.evidence.objectives.remove(0);
    assert_eq!((judged.met, judged.value), (Some(true), None), "the percentile itself is not stated");
    assert_eq!(judged.note.as_deref(), Some("10 of 742 samples were beyond 200ms, 5 % may be"));
    let open = with_late(30, 0).judged(&asked).1.evidence.objectives.remove(0);
    assert!(open.times_as_many.is_some_and(|times| times > 1.0 && times < 3.0), "{open:?}");
}

#[test]
fn few_samples_fail_a_rung_in_fair_seconds_only() {
    let asked = Criteria { hold_ns: 14 * SECOND_NS, ..terms("response.p95 < 200ms") };
    let stolen = |from_s: u32, builder: TrialBuilder| TrialBuilder {
        steal_share: Box::new(move |at| if at >= from_s { 0.6 } else { 0.0 }),
        ..builder
    };
    // Late where the host stole CPU, and on time elsewhere.
    passes(&stolen(9, with_late(120, 9)), &asked);
    check(&stolen(0, with_late(120, 0)), &asked, Inconclusive, "disturbed", "stole");
    passes(&stolen(0, with_late(10, 0)), &asked);
    // Late in the undisturbed seconds too.
    check(&stolen(9, with_late(200, 0)), &asked, Fail, "response.p95", "in the undisturbed seconds");
}

#[test]
fn a_broadcast_is_late_for_all_of_its_members_so_few_deliveries_decide_nothing() {
    let builder = TrialBuilder { hold_s: 10, deliveries_per_s: 100, ..TrialBuilder::asking(100.0) };
    let asked = terms("deliveries.latency.p99 < 50ms");
    let verdict = builder.judged(&asked).1.verdict;
    assert_eq!(verdict, Inconclusive);
}

#[test]
fn a_figure_that_nobody_measured_is_inconclusive() {
    let builder = TrialBuilder { late_share: None, ..TrialBuilder::arena(500.0) };
    check(&builder, &arena_terms(), Inconclusive, "ticks.late_share", "nothing reported the server's ticks");
    let builder = builder.event(9, kind::TICK_LOG, "its clock is 40 s behind");
    let told = "nothing reported the server's ticks (its clock is 40 s behind)";
    check(&builder, &arena_terms(), Inconclusive, "ticks.late_share", told);
    check(&TrialBuilder::arena(500.0), &terms(""), Inconclusive, "no objective", "--objective");
}

#[test]
fn a_broken_objective_outweighs_one_that_cannot_be_told() {
    let builder = TrialBuilder::arena(500.0).late(0.5);
    let terms = terms("deliveries.lost == 0, ticks.late_share < 25%");
    check(&builder, &terms, Fail, "ticks.late_share", "");
}

#[test]
fn books_that_do_not_balance_are_invalid_whatever_else_happened() {
    let bug = TrialBuilder::arena(500.0).late(0.9).event(9, kind::BUG, "worker 1: 3 sent").event(
        9,
        kind::SUBJECT_EXITED,
        "",
    );
    check(&bug, &arena_terms(), Invalid, "bug", "worker 1: 3 sent … bug of Stepladder");
    let doors = TrialBuilder::arena(500.0).edit(|at, interval| {
        if at == 3 {
            interval.flow_mut(0, Phase::Hold).told += 1;
        }
    });
    check(&doors, &arena_terms(), Invalid, "bug", "shot: ");
    let ticks = TrialBuilder::arena(500.0).edit(|_, interval| interval.ticks.due = 7);
    check(&ticks, &arena_terms(), Invalid, "bug", "of the clients' ticks were due");
}

#[test]
fn an_interrupted_trial_is_invalid() {
    let mut cut = TrialBuilder::arena(500.0);
    cut.is_complete = false;
    check(&cut, &arena_terms(), Invalid, "interrupted", "60 s into the hold");
    let mut asked = TrialBuilder::arena(500.0);
    asked.drain_text = "interrupted".to_owned();
    check(&asked, &arena_terms(), Invalid, "interrupted", "");
    // The server was taken down by the same Ctrl-C a moment later; it did not fail.
    let both = asked.event(66, kind::SUBJECT_EXITED, "signal 15");
    check(&both, &arena_terms(), Invalid, "interrupted", "");
    let mut early = TrialBuilder::arena(500.0);
    (early.is_complete, early.has_hold) = (false, false);
    check(&early, &arena_terms(), Invalid, "interrupted", "before its hold began");
}

#[test]
fn a_server_that_exits_has_failed_whenever_it_did() {
    let mut builder = TrialBuilder::arena(500.0).event(12, kind::SUBJECT_EXITED, "killed by signal 9");
    let says = "server exited: killed by signal 9, 12 s into the trial … earlier rungs stand";
    check(&builder, &arena_terms(), Fail, "server exited", says);
    (builder.is_complete, builder.has_hold) = (false, false);
    check(&builder, &arena_terms(), Fail, "server exited", says);
}

#[test]
fn missing_connections_fail_the_server_unless_this_machine_is_the_cause() {
    let opened = |open: u64, cause: usize, count: u64| {
        TrialBuilder::arena(500.0).edit(move |at, interval| {
            interval.connections.open_min = open;
            if at == 0 {
                interval.connections.failed[cause] = count;
            }
        })
    };
    let says = "only 812 of 1000 connections open … 188 attempts failed (refused)";
    check(&opened(812, 0, 188), &arena_terms(), Fail, "connections.open_min", says);
    passes(&opened(960, 0, 40), &arena_terms());
    let says = "no descriptors left (188 times) … more workers";
    check(&opened(812, 1, 188), &arena_terms(), GeneratorLimited, "no descriptors", says);
    check(&opened(999, 2, 1), &arena_terms(), GeneratorLimited, "no ports", "source addresses");
    passes(&opened(1000, 2, 1), &arena_terms());
    let lost = opened(500, 0, 0).edit(|_, interval| interval.errors[0] = 9);
    check(&lost, &arena_terms(), Fail, "connections.open_min", "540 ended early (connection lost)");
    let mut lost = opened(0, 0, 0);
    lost.lost_before_hold = 100;
    let says = &format!("{} ended before the hold (connection lost)", 100 * HOLD_FROM_S);
    check(&lost, &arena_terms(), Fail, "connections.open_min", says);
}

#[test]
fn players_between_two_games_are_not_missing_but_those_who_stay_away_are() {
    let dips = |from: u32, to: u32| {
        TrialBuilder::arena(500.0).edit(move |at, interval| {
            if (from..to).contains(&at) {
                interval.connections.open_min = 300;
            }
        })
    };
    passes(&dips(20, 24), &arena_terms());
    check(&dips(20, 31), &arena_terms(), Fail, "connections.open_min", "only 300 of 1000 … worst 10 s");
    let asking = TrialBuilder::asking(1000.0).edit(|at, interval| {
        if at == 20 {
            interval.connections.open_min = 300;
        }
    });
    check(&asking, &asking_terms(), Fail, "connections.open_min", "worst second");
}

#[test]
fn players_whom_a_late_generator_let_in_late_are_not_missing_because_of_the_server() {
    const LATE_NS: u64 = 900_000_000;
    let missing = |open: u64, lag_ns: u64, lost: u64| {
        let mut builder = TrialBuilder::arena(500.0).edit(move |at, interval| {
            if (20..31).contains(&at) {
                interval.connections.open_min = open;
                interval.errors[0] = lost;
            }
        });
        (builder.send_lag_ns, builder.steal_share) = (lag_ns, Box::new(|_| 0.1));
        builder
    };
    passes(&missing(900, LATE_NS, 0), &arena_terms());
    let says = "872 of 1000 connections open on average … the load generator was late … 900 ms";
    check(&missing(300, LATE_NS, 0), &arena_terms(), GeneratorLimited, "connections.open_min", says);
    for (lag_ns, lost) in [(1_000_000, 0), (LATE_NS, 1)] {
        for open in [900, 300] {
            let builder = missing(open, lag_ns, lost);
            check(&builder, &arena_terms(), Fail, "connections.open_min", "in the worst 10 s");
        }
    }
    // A wrong reply is a separate fault and closes no connection.
    let wrong = missing(900, LATE_NS, 0).edit(|at, interval| interval.errors[1] = u64::from(at == 30));
    check(&wrong, &arena_terms(), Fail, "wrong winner", "");
}

#[test]
fn a_server_that_runs_fewer_games_than_asked_for_does_not_hold_the_load() {
    let mut builder = TrialBuilder { games_running: 420.0, ..TrialBuilder::arena(500.0) };
    passes(&builder, &arena_terms());
    builder.games_running = 300.0;
    check(&builder, &arena_terms(), Fail, "ticks.due", "only 60 % of the ticks that 500 games owe");
    // The first entry covers the time before the first game, and the rest of a short hold may lie between two games.
    (builder.hold_s, builder.log_offset_ns) = (3, SECOND_NS / 2);
    passes(&builder, &arena_terms());
    builder.hold_s = 5;
    check(&builder, &arena_terms(), Fail, "ticks.due", "only 53.3 %");
}

#[test]
fn a_log_of_more_ticks_than_the_games_can_have_passes_nothing() {
    let mut builder = TrialBuilder::arena(500.0);
    // For example, one tick for each of two players.
    builder.games_running = 1_000.0;
    passes(&builder, &arena_terms());
    builder.games_running = 50_000.0;
    let says = "180 M ticks were due by the server's log … 500 games owe 1.8 M in that time … does not tell the truth";
    check(&builder, &arena_terms(), Inconclusive, "inconsistent", says);
    // The server itself reports that its ticks are late.
    check(&builder.late(0.9), &arena_terms(), Fail, "ticks.late_share", "");
}

#[test]
fn replies_that_come_in_waves_are_no_drift_where_only_ticks_are_judged() {
    let mut builder = TrialBuilder::arena(500.0).edit(|at, interval| {
        let open = |at: u32| if at > 30 { 300 } else { 0 };
        let flow = interval.flow_mut(1, Phase::Hold);
        (flow.open_before, flow.open_after) = (open(at), open(at + 1));
        (flow.offered, flow.sent) = (400, 400);
        flow.answered = 400 + flow.open_before - flow.open_after;
    });
    passes(&builder, &arena_terms());
    (builder.tick_period_ns, builder.load_unit) = (0, LoadUnit::Clients);
    check(&builder, &terms("failed == 0"), Fail, "drifting", "");
}

#[test]
fn a_hold_that_never_began_with_all_connected_is_ours() {
    let builder = TrialBuilder { has_hold: false, ..TrialBuilder::arena(500.0) };
    check(&builder, &arena_terms(), Invalid, "no hold", "never began");
}

#[test]
fn less_load_than_intended_is_the_generator() {
    let mut exact = asking_terms();
    exact.intended = Some(Intended::Messages(60_600));
    let says = "99 % of the 60600 intended … limit 99.5 %";
    check(&TrialBuilder::asking(1000.0), &exact, GeneratorLimited, "offered", says);
    exact.intended = Some(Intended::Messages(60_100));
    passes(&TrialBuilder::asking(1000.0), &exact);
    // 600 messages at random moments where 708 were meant may be chance (4.1 standard deviations), where 780 were it is not.
    let mut random = terms("errors == 0");
    random.intended = Some(Intended::PerSecond(11.8));
    passes(&TrialBuilder::asking(10.0), &random);
    random.intended = Some(Intended::PerSecond(13.0));
    check(&TrialBuilder::asking(10.0), &random, GeneratorLimited, "offered", "");
}

#[test]
fn send_lag_is_held_against_the_tightest_bound_the_tick_or_the_patience() {
    // Responses of 60 ms exceed the bound, so the lag is checked before the server is blamed.
    let asking = |send_lag_ns: u64| TrialBuilder {
        send_lag_ns,
        response_ns: 60_000_000,
        ..TrialBuilder::asking(1000.0)
    };
    check(&asking(2_400_000), &asking_terms(), Fail, "response.p99", "");
    let says = "send lag p99 was 2.6 ms … limit 2.5 ms: 5 % of the bound of response.p99 < 50ms";
    check(&asking(2_600_000), &asking_terms(), GeneratorLimited, "send_lag.p99", says);
    let arena = |send_lag_ns: u64| TrialBuilder { send_lag_ns, ..TrialBuilder::arena(500.0) };
    passes(&arena(15_000_000), &arena_terms());
    check(&arena(18_000_000), &arena_terms(), GeneratorLimited, "send_lag.p99", "one tick");
    let patience = terms("errors == 0");
    let failing = |send_lag_ns: u64| {
        asking(send_lag_ns).edit(|at, interval| interval.errors[0] = u64::from(at % 10 == 0))
    };
    check(&failing(51_000_000), &patience, Fail, "errors", "errors was 6");
    let rate = terms("rate_per_s > 2000");
    check(&asking(49_000_000), &rate, Fail, "rate_per_s", "");
    check(&asking(51_000_000), &rate, GeneratorLimited, "send_lag.p99", "5 % of the time after which");
}

#[test]
fn what_is_met_in_spite_of_a_late_generator_is_met_up_to_the_bound_itself() {
    let asking = |send_lag_ns: u64| TrialBuilder {
        send_lag_ns,
        response_ns: 49_000_000,
        ..TrialBuilder::asking(1000.0)
    };
    passes(&asking(2_600_000), &asking_terms());
    passes(&asking(48_000_000), &asking_terms());
    check(&asking(51_000_000), &asking_terms(), GeneratorLimited, "send_lag.p99", "limit 50 ms");
    passes(&asking(900_000_000), &terms("errors == 0"));
}

#[test]
fn a_busy_worker_is_blamed_only_when_it_lags() {
    let busy = |load: f64, send_lag_ns: u64| TrialBuilder {
        busy_share: 0.93,
        send_lag_ns,
        ..TrialBuilder::arena(load)
    };
    passes(&busy(500.0, 1_000_000), &arena_terms());
    let says = "93 % busy … more workers";
    check(&busy(500.0, 20_000_000), &arena_terms(), GeneratorLimited, "worker.busy_share", says);
    // 840 sends allow no p99, but p90; 60 allow none, so the largest lag of a worker without idle time counts.
    check(&busy(1.0, 20_000_000), &arena_terms(), GeneratorLimited, "worker.busy_share", "p50");
    let mut few = busy(1.0, 20_000_000);
    few.shots_per_s = 1;
    check(&few, &arena_terms(), GeneratorLimited, "worker.busy_share", "max");
    few.busy_share = 0.1;
    check(&few, &arena_terms(), GeneratorLimited, "send_lag.p99", "100 % of the sends were later than");
}

#[test]
fn an_own_latency_near_the_bound_limits_the_generator() {
    let own = |p99_ns| {
        let own_latency = Summary {
            p50: Some(1_000),
            p90: Some(1_000),
            p99: Some(p99_ns),
            p999: None,
            max: Some(p99_ns),
            mean: Some(1e3),
            stddev: Some(1.0),
            count: 10_000,
        };
        let calibration = Calibration { own_latency: Some(own_latency), ..Calibration::default() };
        Criteria { calibration: Some(calibration), ..asking_terms() }
    };
    let slow = || TrialBuilder { response_ns: 60_000_000, ..TrialBuilder::asking(1000.0) };
    check(&slow(), &own(4_900_000), Fail, "response.p99", "");
    check(&slow(), &own(5_100_000), GeneratorLimited, "own_latency.p99", "5.1 ms already … limit 5 ms");
    // An objective that was met is met, and a calibration does not condemn a rung whose own sends and receipts were on
    // time.
    passes(&TrialBuilder::asking(1000.0), &own(244_000_000));
    let hears_in_time = slow().edit(|_, interval| {
        interval.distribution_mut(Measure::ReceiveLag, true).record_many(100_000, 1_000);
    });
    check(&hears_in_time, &own(244_000_000), Fail, "response.p99", "");
}

#[test]
fn a_full_link_limits_the_generator() {
    let link = |bytes_per_s| Criteria {
        link: Some(Link { name: "wlan0".to_owned(), is_wireless: true, bytes_per_s }),
        ..arena_terms()
    };
    let late = || TrialBuilder::arena(500.0).late(0.4);
    check(&late(), &link(Some(2e6)), Fail, "ticks.late_share", "");
    check(&late(), &link(None), Fail, "ticks.late_share", "");
    let says = "1 MB/s went over the wireless link wlan0 of 1.2 MB/s";
    check(&late(), &link(Some(1.2e6)), GeneratorLimited, "link", says);
    passes(&TrialBuilder::arena(500.0), &link(Some(1.2e6)));
}

#[test]
fn a_server_and_clients_that_contradict_each_other_are_inconclusive() {
    let seen = |late: u64, late_interval_ns: u64| {
        TrialBuilder::arena(500.0).edit(move |_, interval| see_ticks(interval, 1_000, late, late_interval_ns))
    };
    passes(&seen(100, 25_000_000), &arena_terms());
    let says = "3 % by the server and 60 % by its clients";
    check(&seen(600, 25_000_000), &arena_terms(), Inconclusive, "inconsistent", says);
    check(&seen(100, 90_000_000), &arena_terms(), Inconclusive, "inconsistent", "p99 of the interval");
}

#[test]
fn where_only_clients_tell_ticks_their_view_is_judged() {
    let mut builder =
        TrialBuilder::arena(500.0).edit(|_, interval| see_ticks(interval, 1_000, 400, 25_000_000));
    builder.late_share = None;
    check(&builder, &arena_terms(), Fail, "ticks.late_share", "40 %");
}

#[test]
fn wrong_answers_fail_a_rung_that_meets_its_objectives() {
    let builder = TrialBuilder::arena(500.0).edit(|at, interval| interval.errors[1] = u64::from(at == 7));
    check(&builder, &arena_terms(), Fail, "wrong winner", "wrong winner, 1 time in the hold");
}

#[test]
fn the_most_frequent_of_several_wrong_answers_is_named() {
    let builder = |hits: u64, winners: u64| {
        TrialBuilder::arena(500.0).edit(move |at, interval| {
            if at == 7 {
                (interval.errors[5], interval.errors[1]) = (hits, winners);
            }
        })
    };
    check(&builder(3, 4), &arena_terms(), Fail, "wrong winner", "wrong winner, 4 times in the hold");
    check(&builder(4, 3), &arena_terms(), Fail, "wrong hit", "wrong hit, 4 times in the hold");
}

#[test]
fn a_growing_backlog_fails_whatever_the_percentiles_say() {
    let builder = TrialBuilder::asking(1000.0).edit(|at, interval| {
        let flow = interval.flow_mut(1, Phase::Hold);
        (flow.open_before, flow.open_after) = (u64::from(at) * 3, u64::from(at + 1) * 3);
        flow.answered -= 3;
    });
    check(&builder, &terms("service.p50 < 50ms"), Fail, "drifting", "the backlog rose from");
}

#[test]
fn a_server_that_collapses_late_in_the_hold_does_not_pass() {
    let builder = TrialBuilder::arena(500.0).late_at(|at| if at < 45 { 0.02 } else { 0.7 });
    check(&builder, &arena_terms(), Fail, "drifting", "the late share of the ticks rose from 2 % to 70 %");
}

#[test]
fn one_bad_second_fails_nothing() {
    let builder = TrialBuilder::arena(500.0).late_at(|at| if at == 30 { 1.0 } else { 0.02 });
    passes(&builder, &arena_terms());
}

#[test]
fn a_judgement_survives_its_json() {
    let judgement = TrialBuilder::arena(500.0).late(0.4).judged(&arena_terms()).1;
    let json = serde_json::to_string(&judgement).unwrap();
    assert!(json.contains("\"verdict\":\"FAIL\""));
    assert_eq!(serde_json::from_str::<Judgement>(&json).unwrap(), judgement);
}

mod compared;
mod disturbed;
mod forbidden;
mod games;
mod matrix;
mod nobody_in;
mod silent;
mod unclear;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn judging_twice_and_from_entries_in_another_order_gives_the_same(
        late in 0.0f64..1.0, lag_ns in 0u64..30_000_000, open in 900u64..1_001, seed in 0u64..1_000
    ) {
        let mut builder = TrialBuilder::arena(500.0)
            .late(late)
            .edit(move |_, interval| interval.connections.open_min = open);
        (builder.send_lag_ns, builder.hold_s) = (lag_ns, 20);
        let trial = builder.build();
        let mut entries = builder.entries();
        fastrand::Rng::with_seed(seed).shuffle(&mut entries);
        let shuffled = measure::Trial::from_entries(trial.head.clone(), &entries, 0);
        let judgement = judge(&trial, None, &arena_terms());
        prop_assert_eq!(&judge(&trial, None, &arena_terms()), &judgement);
        prop_assert_eq!(&judge(&shuffled, None, &arena_terms()), &judgement);
    }
}
