use measure::{Measure, Phase};
use proptest::prelude::*;

use super::super::tests::{asking_terms, check, passes};
use super::*;
use crate::judge::{Calibration, Criteria, Link};
use crate::testing::{TrialBuilder, terms};
use Verdict::{Fail, GeneratorLimited, Inconclusive, Pass};

const MS: u64 = 1_000_000;

fn late_ticks(bound: &str) -> Criteria {
    terms(&format!("ticks.late_share < {bound}"))
}

/// 1,000 requests per second with this response time, each sent 2.6 ms late and read within 1 ms.
fn lagging(response_ms: u64) -> TrialBuilder {
    let builder = TrialBuilder {
        send_lag_ns: 2_600_000,
        response_ns: response_ms * MS,
        ..TrialBuilder::asking(1000.0)
    };
    builder.edit(|_, interval| interval.distribution_mut(Measure::ReceiveLag, true).record_many(MS, 1_000))
}

/// An arena in which this share of the ticks is late, and this share of the 7,000 shots per second is sent 30 ms late.
fn arena(late: f64, late_sends: f64) -> TrialBuilder {
    TrialBuilder::arena(500.0).late(late).edit(move |_, interval| {
        let lags = interval.distribution_mut(Measure::SendLag, true);
        let count = lags.count();
        let late = (count as f64 * late_sends) as u64;
        lags.clear();
        lags.record_many(30 * MS, late);
        lags.record_many(MS, count - late);
    })
}

#[test]
fn latencies_beyond_what_a_late_generator_explains_fail() {
    // Twice 3.6 ms, and ten gaps of 2 ms between two sends of a worker: an allowance of 27.2 ms.
    let says = "response.p99 was 80 … send lag p99 2.6 ms, limit 2.5 ms … explains at most 27.2 ms of it";
    check(&lagging(80), &asking_terms(), Fail, "response.p99", says);
    check(&lagging(76), &asking_terms(), GeneratorLimited, "send_lag.p99", "");
    passes(&lagging(49), &asking_terms());
}

#[test]
fn a_generator_whose_delays_are_not_all_known_blames_nobody() {
    let deaf =
        TrialBuilder { send_lag_ns: 2_600_000, response_ns: 5_000 * MS, ..TrialBuilder::asking(1000.0) };
    check(&deaf, &asking_terms(), GeneratorLimited, "send_lag.p99", "");
    let busy = TrialBuilder { busy_share: 0.93, ..lagging(5_000) };
    check(&busy, &asking_terms(), GeneratorLimited, "worker.busy_share", "");
    let link = Some(Link { name: "wlan0".to_owned(), is_wireless: true, bytes_per_s: Some(1.0) });
    check(&lagging(5_000), &Criteria { link, ..asking_terms() }, GeneratorLimited, "send_lag.p99", "");
    // Two of a hundred were never sent, and all others were answered in time.
    let unsent = lagging(40).edit(|_, interval| {
        let flow = interval.flow_mut(1, Phase::Hold);
        (flow.offered, flow.not_sent) = (flow.offered + 20, 20);
    });
    check(&unsent, &terms("response.p99 < 50ms"), GeneratorLimited, "send_lag.p99", "");
}

/// A generator that does not read in time fills the queues of a server, which has to drop.
#[test]
fn what_a_server_drops_behind_a_late_generator_is_not_held_against_it() {
    let dropped = |latency_ms: u64| {
        let builder =
            TrialBuilder { send_lag_ns: 2_600_000, delivery_ns: latency_ms * MS, ..TrialBuilder::chat(1000) };
        builder
            .receivers(|receiver| {
                (receiver.sum.delivered, receiver.sum.dropped, receiver.sum.lost) = (56_943, 2_997, 2_997)
            })
            .edit(|_, interval| {
                interval.distribution_mut(Measure::ReceiveLag, true).record_many(8 * MS, 1_000)
            })
    };
    let terms = terms("deliveries.latency.p99 < 50ms");
    check(&dropped(30), &terms, GeneratorLimited, "send_lag.p99", "");
    check(&dropped(100), &terms, Fail, "deliveries.latency.p99", "late load");
}

#[test]
fn one_long_delay_is_granted_to_every_message() {
    let once = |ms: u64| {
        lagging(300).edit(move |at, interval| {
            let lags = interval.distribution_mut(Measure::SendLag, true);
            lags.record_many(ms * MS, u64::from(at == 30));
        })
    };
    check(&once(100), &asking_terms(), Fail, "response.p99", "at most 222 ms");
    check(&once(200), &asking_terms(), GeneratorLimited, "send_lag.p99", "");
}

#[test]
fn the_generators_own_latency_is_granted_too() {
    let own = |p99_ns| {
        let mut distribution = measure::Distribution::new();
        distribution.record_many(p99_ns, 20_000);
        let weighed = Calibration { own_latency: distribution.summary(), ..Calibration::default() };
        Criteria { calibration: Some(weighed), ..asking_terms() }
    };
    check(&lagging(100), &own(20 * MS), Fail, "response.p99", "at most 47");
    check(&lagging(100), &own(30 * MS), GeneratorLimited, "send_lag.p99", "");
}

#[test]
fn late_ticks_beyond_those_that_late_sends_can_touch_fail() {
    let says = "ticks.late_share was 70 % … explains at most 40 % of the ticks";
    check(&arena(0.7, 0.1), &late_ticks("25%"), Fail, "ticks.late_share", says);
    check(&arena(0.5, 0.1), &late_ticks("25%"), GeneratorLimited, "send_lag.p99", "");
    check(&arena(0.99, 0.25), &late_ticks("25%"), GeneratorLimited, "send_lag.p99", "");
}

#[test]
fn late_ticks_are_few_enough_whatever_late_sends_would_have_added() {
    passes(&arena(0.03, 0.05), &late_ticks("25%"));
    check(&arena(0.03, 0.15), &late_ticks("25%"), GeneratorLimited, "send_lag.p99", "");
    check(&arena(0.03, 0.05), &late_ticks("5%"), GeneratorLimited, "send_lag.p99", "");
    // Neither a server without tick reports nor errors alone say anything about the load that was missing.
    check(&arena(0.03, 0.05), &terms("errors == 0"), GeneratorLimited, "send_lag.p99", "");
}

#[test]
fn a_hold_without_undisturbed_seconds_is_left_to_what_disturbances_explain() {
    let stolen = TrialBuilder { steal_share: Box::new(|_| 0.3), ..lagging(70) };
    let (_, judgement) = stolen.judged(&asking_terms());
    assert_eq!(judgement.verdict, Inconclusive, "{:?}", judgement.reason);
}

/// One second of 2,000 requests to a server that serves them in order, `work_ns` each, as seen by a generator that is
/// stalled at the given times: every send and read that falls into a stall happens at its end.
fn seen(stalls: &[(u64, u64)], work_ns: u64) -> TrialBuilder {
    let awake = |at_ns: u64| {
        stalls.iter().fold(at_ns, |at, &(from, to)| if (from..to).contains(&at) { to } else { at })
    };
    let (mut free_at, mut responses, mut lags) = (0, Vec::new(), Vec::new());
    for number in 0..2_000u64 {
        let planned = number * 500_000;
        let sent = awake(planned);
        free_at = sent.max(free_at) + work_ns;
        let read = awake(free_at);
        responses.push(read - planned);
        lags.push(sent - planned);
    }
    // What arrives while the worker is stalled is reported by its next poll, and read at once.
    let reads = vec![0; responses.len()];
    let builder = TrialBuilder { questions_per_s: 2_000, ..TrialBuilder::asking(1000.0) };
    builder.edit(move |_, interval| {
        for (measure, values) in
            [(Measure::Response, &responses), (Measure::SendLag, &lags), (Measure::ReceiveLag, &reads)]
        {
            let of = interval.distribution_mut(measure, true);
            of.clear();
            values.iter().for_each(|ns| of.record(*ns));
        }
    })
}

proptest! {
    /// A server that meets the objective by itself never fails, however its generator stalls.
    #[test]
    fn a_server_that_keeps_its_bound_never_fails_for_its_generator(
        mut stalls in prop::collection::vec((0..1_000 * MS, 1..120 * MS).prop_map(|(from, length)| (from, from + length)), 0..12),
        work_ns in 1_000..499_000u64,
        bound_ms in 1..40u64,
    ) {
        stalls.sort_unstable();
        let terms = terms(&format!("response.p99 < {bound_ms}ms"));
        let (_, alone) = seen(&[], work_ns).judged(&terms);
        prop_assert_eq!(alone.verdict, Pass, "{:?}", alone.reason);
        let (_, judgement) = seen(&stalls, work_ns).judged(&terms);
        let is_beyond_the_limit = judgement.evidence.send_lag_p99_ns > judgement.evidence.send_lag_limit_ns;
        prop_assert!(judgement.verdict != Fail || !is_beyond_the_limit, "{:?}", judgement.reason);
    }
}

#[test]
fn a_server_that_is_overloaded_fails_in_spite_of_stalls() {
    // 2,000 requests a second of 0.6 ms each: after a second it is 200 ms behind, and stalls of 10 ms explain 20.
    let stalls: Vec<(u64, u64)> =
        (0..9).map(|number| (number * 100 * MS, (number * 100 + 10) * MS)).collect();
    check(&seen(&stalls, 600_000), &terms("response.p99 < 50ms"), Fail, "response.p99", "late load");
}
