//! Further sources of ticks: they confirm the judged one, or the rung is inconclusive; one that tells nothing is named.

use measure::trial::kind;
use measure::{Entry, Trial};

use super::disturbed::beside;
use super::*;
use crate::testing::HOLD_FROM_S;

const STATSD: &str = "statsd=127.0.0.1:8125";
const METRICS: &str = "openmetrics=http://127.0.0.1:9100/metrics";

/// A log with this late share, and StatsD with that one.
fn told(log: f64, statsd: f64) -> TrialBuilder {
    TrialBuilder::arena(500.0).late(log).compared(STATSD, move |_| Some(statsd))
}

#[test]
fn a_source_that_another_one_contradicts_passes_nothing_and_fails_nothing() {
    for (log, statsd, verdict, says) in [
        (0.03, 0.05, Pass, ""),
        (0.03, 0.27, Pass, ""),
        (0.4, 0.3, Fail, "40 %"),
        (0.03, 0.29, Inconclusive, "3 % by log=game.log and 29 % by statsd=127.0.0.1:8125; at least one"),
        (0.6, 0.0, Inconclusive, "60 % by log=game.log and 0 % by statsd=127.0.0.1:8125; at least one"),
    ] {
        let signal = match verdict {
            Pass => "",
            Fail => "ticks.late_share",
            _ => "inconsistent",
        };
        check(&told(log, statsd), &arena_terms(), verdict, signal, says);
    }
    let one_of_two = told(0.03, 0.03).compared(METRICS, |_| Some(0.5));
    let says = "3 % by log=game.log and 50 % by openmetrics=http://127.0.0.1:9100/metrics;";
    check(&one_of_two, &arena_terms(), Inconclusive, "inconsistent", says);
}

#[test]
fn intervals_more_than_a_period_apart_contradict_each_other() {
    // 3 % of the ticks took 25 ms by the log, and by StatsD another time.
    let slow = |interval_ns: u64| {
        let builder = told(0.03, 0.03);
        let mut entries = builder.entries();
        for entry in &mut entries {
            if let Entry::Ticks(second) = entry
                && second.compared().is_some()
            {
                second.interval = measure::Distribution::new();
                second.interval.record_many(17_000_000, 97_000);
                second.interval.record_many(interval_ns, 3_000);
            }
        }
        judge(&Trial::from_entries(builder.build().head, &entries, 0), None, &arena_terms())
    };
    assert_eq!(slow(40_000_000).verdict, Pass);
    let says = "p99 of the interval between ticks is 25 ms by log=game.log and 45 ms by statsd";
    check_judged(&slow(45_000_000), Inconclusive, "inconsistent", says);
}

#[test]
fn a_histogram_contradicts_only_beyond_both_of_its_bounds() {
    let told = |most: f64, unclear: f64| {
        let mut builder = TrialBuilder::arena(500.0).compared(METRICS, move |_| Some(most));
        builder.compared[0].unclear_share = unclear;
        builder
    };
    passes(&told(0.6, 0.5), &arena_terms());
    let says = "3 % by log=game.log and 50 % by openmetrics";
    check(&told(0.6, 0.1), &arena_terms(), Inconclusive, "inconsistent", says);
}

#[test]
fn a_source_that_tells_nothing_fails_no_rung_and_is_named() {
    let silent = TrialBuilder::arena(500.0).compared(STATSD, |_| None);
    let lost =
        |seconds: std::ops::Range<u32>| {
            TrialBuilder::arena(500.0)
                .compared(STATSD, move |at| (!seconds.contains(&at)).then_some(0.03))
                .event(HOLD_FROM_S + 5, kind::COMPARED_LOST, &format!("{STATSD}: connection refused"))
        };
    let remark_of = |builder: &TrialBuilder| {
        let (_, judgement) = builder.judged(&arena_terms());
        assert_eq!(judgement.verdict, Pass, "{:?}", judgement.reason);
        judgement.remark.unwrap_or_default()
    };
    let nothing = "statsd=127.0.0.1:8125 told of no ticks in the hold, so nothing was compared with it";
    assert_eq!(remark_of(&silent), nothing);
    assert_eq!(remark_of(&lost(5..30)), format!("{STATSD}: connection refused; {nothing}"));
    assert_eq!(remark_of(&lost(5..6)), format!("{STATSD}: connection refused"), "a second is no matter");
    let unseen = TrialBuilder::arena(500.0).compared("client", |_| None);
    assert!(remark_of(&unseen).starts_with("client told of no ticks"));
    // One that was there and fell silent says as much as a log that does.
    let fell_silent = TrialBuilder::arena(500.0).compared(STATSD, |at| (at < 30).then_some(0.0));
    let says = "3 % by log=game.log and 50 % by statsd";
    check(&fell_silent, &arena_terms(), Inconclusive, "inconsistent", says);
}

#[test]
fn undisturbed_seconds_decide_between_two_sources() {
    let late_in = |seconds: std::ops::Range<u32>| {
        let late = move |at: u32| Some(if seconds.contains(&at) { 1.0 } else { 0.03 });
        TrialBuilder::arena(500.0).compared(STATSD, late)
    };
    passes(&beside(late_in(0..20), 0..20, 1.1, 0.2), &arena_terms());
    let all = beside(late_in(0..60), 0..20, 1.1, 0.2);
    check(&all, &arena_terms(), Inconclusive, "inconsistent", "3 % by log … 100 % by statsd");
}

#[test]
fn where_clients_are_judged_the_servers_own_ticks_may_contradict_them() {
    let seen = |log: f64| {
        let mut builder = TrialBuilder::arena(500.0)
            .edit(|_, interval| see_ticks(interval, 1_000, 100, 25_000_000))
            .event(0, kind::TICK_SOURCE, "client");
        builder.late_share = None;
        builder.compared("log=game.log", move |_| Some(log))
    };
    passes(&seen(0.1), &arena_terms());
    let says = "10 % by client and 50 % by log=game.log";
    check(&seen(0.5), &arena_terms(), Inconclusive, "inconsistent", says);
}
