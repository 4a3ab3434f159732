//! The queue against theory, in virtual time: a request that arrives anywhere in a tick is answered at the start of one
//! of the next, ten at a time. Seeded; a failure names the seed.

use hdrhistogram::Histogram;

use super::admission::Admission;
use super::turn::{Priority, Rules, Step, Turn};
use servers_shared::stream::Peer;

const SEED: u64 = 4_207_100;
const SECOND: u64 = 1_000_000_000;

/// What became of the requests of one simulation.
struct Outcome {
    /// From arrival to answer, ns; without those that were refused.
    response_ns: Histogram<u64>,
    refused_share: f64,
    answered_per_s: f64,
}

/// Poisson arrivals at a queue whose answers cost no time, 30 ticks per second and ten slots.
fn poisson(rate_per_s: f64, limit: Option<usize>, arrivals: u64) -> Outcome {
    let mut random = fastrand::Rng::with_seed(SEED);
    let admission = Admission::new(limit);
    let mut turn =
        Turn::new(Rules { slots: 10, period_ns: SECOND / 30, drawing_ns: 0, priority: Priority::Normal });
    let mut response_ns = Histogram::new(3).unwrap();
    let (mut refused, mut at_s, mut tick) = (0u64, 0.0, 0);
    for _ in 0..arrivals {
        at_s -= (1.0 - random.f64()).ln() / rate_per_s;
        let arrived_ns = (at_s * 1e9) as u64;
        while tick * SECOND / 30 <= arrived_ns {
            let now_ns = tick * SECOND / 30;
            tick += 1;
            turn.begin(now_ns, tick * SECOND / 30, 0, |_| Peer::There);
            while let Step::Answer(asked_ns) = turn.next(now_ns) {
                response_ns.record(now_ns - *asked_ns).unwrap();
                admission.leave();
                turn.answered();
            }
        }
        if admission.enter() {
            turn.arrive(arrived_ns, arrived_ns);
        } else {
            refused += 1;
        }
    }
    let answered_per_s = response_ns.len() as f64 / at_s;
    Outcome { response_ns, refused_share: refused as f64 / arrivals as f64, answered_per_s }
}

#[track_caller]
fn check_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = (found - expected).abs() / expected;
    assert!(
        off <= tolerance,
        "{what}: {found:.3} instead of {expected}, {:.1} % off (seed {SEED})",
        off * 100.0
    );
}

#[test]
fn an_unbounded_queue_has_the_response_times_of_theory() {
    // The exact solution of the chain of ticks. The published table (33.0, 33.2, 42.0, 52.3, 87, 159 and 16.7, 16.8,
    // 18.1, 20.3, 28.2, 44.2) came out of simulations: at 285 its p99 lies 3.0 % and its mean 0.8 % below the truth.
    for (rate_per_s, arrivals, p99_ms, mean_ms) in [
        (30.0, 1_000_000, 33.08, 16.67),
        (150.0, 1_000_000, 33.08, 16.82),
        (210.0, 2_000_000, 41.75, 18.06),
        (240.0, 2_000_000, 52.42, 20.33),
        (270.0, 4_000_000, 88.42, 28.15),
        (285.0, 12_000_000, 163.92, 44.57),
    ] {
        let outcome = poisson(rate_per_s, None, arrivals);
        let p99_found_ms = outcome.response_ns.value_at_quantile(0.99) as f64 / 1e6;
        check_near(&format!("p99 at {rate_per_s}"), p99_found_ms, p99_ms, 0.03);
        check_near(&format!("mean at {rate_per_s}"), outcome.response_ns.mean() / 1e6, mean_ms, 0.01);
        assert_eq!(outcome.refused_share, 0.0);
    }
}

#[test]
fn a_queue_of_fourteen_refuses_the_share_of_theory() {
    // The second figure is the exact solution of the chain of ticks, the first the published one.
    for (rate_per_s, published, exact) in
        [(240.0, 0.010, 0.00938), (270.0, 0.029, 0.02806), (285.0, 0.045, 0.04399)]
    {
        let refused_share = poisson(rate_per_s, Some(14), 3_000_000).refused_share;
        check_near(&format!("refused at {rate_per_s}"), refused_share, published, 0.10);
        check_near(&format!("refused at {rate_per_s}"), refused_share, exact, 0.02);
    }
}

#[test]
fn nothing_gets_more_than_three_hundred_answers_per_second() {
    for (rate_per_s, limit) in [(400.0, None), (2_000.0, Some(14))] {
        check_near("answers", poisson(rate_per_s, limit, 100_000).answered_per_s.min(300.0), 300.0, 0.005);
    }
}

/// Requesters with one request at a time, who ask again 50 µs after their answer and 1 ms after a refusal.
fn closed(requesters: usize) -> (f64, u64) {
    const TICKS: u64 = 900;
    let admission = Admission::new(Some(14));
    let rules = Rules { slots: 10, period_ns: SECOND / 30, drawing_ns: 0, priority: Priority::Normal };
    let mut turn = Turn::new(rules);
    let mut asks_ns: Vec<u64> = vec![0; requesters];
    let (mut answered, mut refused) = (0u64, 0);
    for tick in 1..=TICKS {
        let now_ns = tick * SECOND / 30;
        loop {
            let next = (0..requesters).min_by_key(|i| asks_ns[*i]).filter(|i| asks_ns[*i] < now_ns);
            let Some(requester) = next else { break };
            if admission.enter() {
                turn.arrive(asks_ns[requester], requester);
                asks_ns[requester] = u64::MAX;
            } else {
                refused += 1;
                asks_ns[requester] += 1_000_000;
            }
        }
        turn.begin(now_ns, now_ns + SECOND / 30, 0, |_| Peer::There);
        while let Step::Answer(requester) = turn.next(now_ns) {
            asks_ns[*requester] = now_ns + 50_000;
            admission.leave();
            turn.answered();
            answered += 1;
        }
    }
    (answered as f64 * 30.0 / TICKS as f64, refused)
}

#[test]
fn fourteen_requesters_are_never_refused_and_fifteen_are() {
    for requesters in 1..=20 {
        let (answered_per_s, refused) = closed(requesters);
        assert_eq!(answered_per_s, (requesters.min(10) * 30) as f64);
        assert_eq!(refused > 0, requesters > 14, "{requesters} requesters, {refused} refused");
    }
}
