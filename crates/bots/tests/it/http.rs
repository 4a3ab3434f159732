//! Requests against servers whose behaviour is known exactly, in virtual time: the oracles CO, POLL, POLL-max, POLL-14
//! and MM1 of docs/method.

mod visits;

use std::collections::VecDeque;

use bots::http::Requests;
use engine::Bots;
use engine::simulation::{Exchanges, Says, Scene, Times, Wire, simulate, simulate_sum};
use measure::{Interval, Measure, Phase, Quantile};
use plan::{Arrivals, BotSettings, HttpBots, HttpCheck, HttpModel, HttpRequest, HttpVersion, WorkerPlan};

use crate::{SECOND_NS, sum_up, worker_plan};

type Simulated = Requests<Wire<Exchanges>>;

const TICKS_PER_S: u64 = 30;

fn requests(model: HttpModel) -> HttpBots {
    let root = HttpRequest {
        name: "root".to_owned(),
        weight: 1.0,
        method: "GET".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
        body: String::new(),
        check: HttpCheck::default(),
        capture: Vec::new(),
    };
    HttpBots {
        model,
        version: HttpVersion::One,
        keep_alive: true,
        streams: 1,
        visit: Default::default(),
        requests: vec![root],
        variables: Vec::new(),
        timeout_ns: 60 * SECOND_NS,
        redirects_max: 0,
        body_bytes_max: 1 << 20,
    }
}

fn open(rate_per_s: f64, connections: u64, arrivals: Arrivals, seed: u64) -> WorkerPlan {
    let bots = BotSettings::Http(requests(HttpModel::Open { connections, connections_max: connections }));
    WorkerPlan {
        rate_per_s,
        arrivals,
        seed,
        stream_phase: 0.3,
        tick_period_ns: 33_333_333,
        ramp: plan::Ramp::AtOnce,
        ..worker_plan(bots, connections)
    }
}

fn closed(requesters: u64) -> WorkerPlan {
    let bots = BotSettings::Http(requests(HttpModel::Closed { think_ns: 0 }));
    WorkerPlan { arrivals: Arrivals::Closed, ramp: plan::Ramp::AtOnce, ..worker_plan(bots, requesters) }
}

fn times(hold_s: u64) -> Times {
    Times { hold_ns: SECOND_NS, drain_ns: (1 + hold_s) * SECOND_NS, generator_stall: None }
}

/// A server that answers each request at the instant that a law names, or refuses it at once (`None`).
struct Law<F>(F);

impl<F: FnMut(u64) -> Option<u64>> Scene for Law<F> {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let (tag, _) = Exchanges::request(message);
        match (self.0)(at_ns) {
            Some(answered_ns) => says.message(answered_ns, peer, Exchanges::answer(tag, 200, b"ok")),
            None => says.message(at_ns, peer, Exchanges::answer(tag, 503, b"")),
        }
    }
}

/// Answers nothing for the first second of every ten.
fn freezing(at_ns: u64) -> Option<u64> {
    let within_ns = at_ns % (10 * SECOND_NS);
    Some(if within_ns < SECOND_NS { at_ns - within_ns + SECOND_NS } else { at_ns })
}

/// A loop that answers up to ten waiting requests at each of its 30 ticks a second; `queue`: how many are admitted at most.
fn poll_loop(queue: Option<usize>) -> impl FnMut(u64) -> Option<u64> {
    let (mut tick, mut taken) = (0u64, 0u32);
    let mut admitted = VecDeque::new();
    move |at_ns| {
        while admitted.front().is_some_and(|answered_ns| *answered_ns <= at_ns) {
            admitted.pop_front();
        }
        if queue.is_some_and(|most| admitted.len() >= most) {
            return None;
        }
        // Who asks at the very instant of a tick is too late for it.
        let next = at_ns * TICKS_PER_S / SECOND_NS + 1;
        if next > tick {
            (tick, taken) = (next, 0);
        } else if taken == 10 {
            (tick, taken) = (tick + 1, 0);
        }
        taken += 1;
        let answered_ns = (tick * SECOND_NS).div_ceil(TICKS_PER_S);
        admitted.push_back(answered_ns);
        Some(answered_ns)
    }
}

/// p of the responses in ms, those that failed counted as infinite.
fn response_ms(sum: &Interval, q: f64) -> f64 {
    let flow = sum.flows[0][Phase::Hold as usize];
    let never = flow.failed + flow.lost + flow.not_sent + flow.open_after;
    match sum.distribution(Measure::Response, true).quantile(q, never) {
        Quantile::Ns(ns) => ns as f64 / 1e6,
        Quantile::Infinite => f64::INFINITY,
        Quantile::TooFew => panic!("too few samples for this percentile"),
    }
}

fn mean_ms(sum: &Interval) -> f64 {
    sum.distribution(Measure::Response, true).summary().and_then(|summary| summary.mean).unwrap() / 1e6
}

#[track_caller]
fn assert_close(what: &str, measured: f64, exact: f64, error_max: f64) {
    let error = measured / exact - 1.0;
    assert!(error.abs() <= error_max, "{what}: {measured:.3} instead of {exact}, {:+.2} %", error * 100.0);
}

#[test]
fn co_the_percentiles_of_a_server_that_freezes_are_exact_whatever_the_number_of_connections() {
    for connections in [8, 64, 2048] {
        for arrivals in [Arrivals::Poisson, Arrivals::Even] {
            let plan = open(2000.0, connections, arrivals, 3);
            // The hold begins with a freeze and holds ten of them whole.
            let times = Times { hold_ns: 10 * SECOND_NS, drain_ns: 110 * SECOND_NS, generator_stall: None };
            let sum = simulate_sum::<Simulated>(&plan, times, &mut Law(freezing));
            for (q, exact_ms) in [(0.95, 500.0), (0.99, 900.0), (0.999, 990.0)] {
                let what = format!("{connections} connections, {arrivals}, p{}", q * 100.0);
                assert_close(&what, response_ms(&sum, q), exact_ms, 0.01);
            }
            let lag_ms = sum.distribution(Measure::SendLag, true).max_ns().unwrap() as f64 / 1e6;
            assert!(lag_ms < 0.1, "that the server froze is no lag of ours: {lag_ms} ms");
            // Of the service times only those on the wire saw the freeze: what coordinated omission would report.
            let hidden = match sum.distribution(Measure::Service, true).quantile(0.99, 0) {
                Quantile::Ns(ns) => ns as f64 / 1e6,
                _ => f64::NAN,
            };
            assert!(connections > 64 || hidden < 1.0, "{connections} connections: {hidden} ms");
        }
    }
}

#[test]
fn co_a_throttled_generator_is_named_and_the_server_is_not_blamed() {
    let plan = open(2000.0, 64, Arrivals::Poisson, 3);
    let stall = Some((12 * SECOND_NS, 13 * SECOND_NS));
    let times = Times { hold_ns: 10 * SECOND_NS, drain_ns: 20 * SECOND_NS, generator_stall: stall };
    let seconds = simulate::<Simulated>(&plan, times, &mut Law(Some));
    let trial = sum_up(seconds, 10, 20);
    // A tenth of the requests was planned while the generator stood still.
    let lag = trial.distribution(Measure::SendLag).quantile(0.99, 0);
    assert!(matches!(lag, Quantile::Ns(880_000_000..=910_000_000)), "{lag:?}");
    let terms = ladder::Terms {
        objectives: vec!["response.p99 < 500ms".parse().unwrap()],
        patience_ns: SECOND_NS,
        ..ladder::Terms::default()
    };
    let judgement = ladder::judge(&trial, None, &terms);
    assert_eq!(judgement.verdict, ladder::Verdict::GeneratorLimited, "{judgement:?}");
}

/// Answers the first request of each connection, and allows no further one.
struct AllowsOne;

impl Scene for AllowsOne {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let (tag, _) = Exchanges::request(message);
        says.takes_no_more(at_ns, peer);
        says.message(at_ns + 1, peer, Exchanges::answer(tag, 200, b"ok"));
    }
}

#[test]
fn a_server_that_allows_no_further_request_fails_whoever_plans_them() {
    for plan in [closed(4), open(100.0, 4, Arrivals::Poisson, 3)] {
        let seconds = simulate::<Simulated>(&plan, times(5), &mut AllowsOne);
        let trial = sum_up(seconds, 1, 6);
        let flow = trial.flow();
        assert!(
            flow.answered <= 4 && flow.not_sent >= 10 && flow.answered + flow.not_sent == flow.offered,
            "{flow:?}"
        );
        let terms = ladder::Terms {
            objectives: vec!["errors == 0".parse().unwrap()],
            patience_ns: SECOND_NS,
            ..ladder::Terms::default()
        };
        let judgement = ladder::judge(&trial, None, &terms);
        assert_eq!(judgement.verdict, ladder::Verdict::Fail, "{judgement:?}");
    }
}

#[test]
fn poll_the_percentiles_of_a_poll_loop_are_those_of_theory() {
    // Near the ceiling the queue remembers long, so that the exact values want more than a test may take; they stand in
    // docs/method and are asked of bench/oracles.
    for (rate_per_s, p99_ms, mean, hold_s, p99_error, mean_error) in [
        (30.0, 33.0, 16.7, 2500, 0.03, 0.01),
        (150.0, 33.2, 16.8, 600, 0.03, 0.01),
        (210.0, 42.0, 18.1, 1200, 0.03, 0.01),
        (240.0, 52.3, 20.3, 2000, 0.04, 0.02),
    ] {
        let plan = open(rate_per_s, 256, Arrivals::Poisson, 11);
        let sum = simulate_sum::<Simulated>(&plan, times(hold_s), &mut Law(poll_loop(None)));
        assert_close(&format!("p99 at {rate_per_s}/s"), response_ms(&sum, 0.99), p99_ms, p99_error);
        assert_close(&format!("mean at {rate_per_s}/s"), mean_ms(&sum), mean, mean_error);
    }
}

#[test]
fn poll_max_one_requester_gets_the_tick_rate_ten_get_all_slots_and_more_get_no_more() {
    for (requesters, rate_per_s) in [(1, 30.0), (2, 60.0), (5, 150.0), (10, 300.0), (14, 300.0), (20, 300.0)]
    {
        let sum = simulate_sum::<Simulated>(&closed(requesters), times(60), &mut Law(poll_loop(None)));
        let answered = sum.flows[0][Phase::Hold as usize].answered as f64 / 60.0;
        assert_close(&format!("{requesters} requesters"), answered, rate_per_s, 0.005);
    }
}

#[test]
fn poll_14_beyond_fourteen_requesters_some_are_refused_and_fourteen_are_not() {
    for (requesters, is_refused) in [(10, false), (14, false), (15, true), (20, true)] {
        let sum = simulate_sum::<Simulated>(&closed(requesters), times(20), &mut Law(poll_loop(Some(14))));
        let flow = sum.flows[0][Phase::Hold as usize];
        assert_eq!(flow.failed > 0, is_refused, "{requesters} requesters: {} refused", flow.failed);
        assert_eq!(sum.errors[0], sum.flows[0].iter().map(|flow| flow.failed).sum::<u64>());
        assert_eq!(sum.samples.len(), usize::from(is_refused) * 3, "the first three are kept verbatim");
    }
}

#[test]
fn poll_14_refusals_are_as_many_as_theory_says_and_count_as_never_answered() {
    for (rate_per_s, refused_share) in [(240.0, 0.010), (270.0, 0.029), (285.0, 0.045)] {
        let plan = open(rate_per_s, 256, Arrivals::Poisson, 5);
        let sum = simulate_sum::<Simulated>(&plan, times(600), &mut Law(poll_loop(Some(14))));
        let flow = sum.flows[0][Phase::Hold as usize];
        let share = flow.failed as f64 / flow.sent as f64;
        assert_close(&format!("refused at {rate_per_s}/s"), share, refused_share, 0.1);
        let p99_ms = response_ms(&sum, 0.99);
        assert_eq!(p99_ms.is_infinite(), rate_per_s > 245.0, "p99 at {rate_per_s}/s: {p99_ms} ms");
    }
}

#[test]
fn poll_even_arrivals_hold_294_where_random_ones_hold_236() {
    let p99_ms = |rate_per_s: f64, arrivals| {
        let plan = open(rate_per_s, 256, arrivals, 21);
        response_ms(&simulate_sum::<Simulated>(&plan, times(1500), &mut Law(poll_loop(None))), 0.99)
    };
    for (arrivals, rate_per_s, holds) in [
        (Arrivals::Poisson, 236.0 * 0.98, true),
        (Arrivals::Poisson, 236.0 * 1.02, false),
        (Arrivals::Even, 294.0 * 0.98, true),
        (Arrivals::Even, 294.0 * 1.025, false),
    ] {
        let p99_ms = p99_ms(rate_per_s, arrivals);
        assert_eq!(p99_ms <= 50.0, holds, "{arrivals} at {rate_per_s}/s: {p99_ms} ms");
    }
}

#[test]
fn mm1_the_exact_percentile_lies_in_the_interval_of_nearly_all_runs() {
    // The p99 of a run of correlated waits: the interval comes from the spread of independent runs' estimates, as
    // theory gives it by replication.
    let (arrivals_per_s, services_per_s) = (500.0, 1000.0);
    let exact_ms = 100f64.ln() / (services_per_s - arrivals_per_s) * 1e3;
    let estimates: Vec<f64> = (0..40)
        .map(|seed| {
            let plan = open(arrivals_per_s, 1024, Arrivals::Poisson, 1000 + seed);
            let mut random = fastrand::Rng::with_seed(seed);
            let mut busy_until_ns = 0.0f64;
            let serve = move |at_ns: u64| {
                let service_ns = -(1.0 - random.f64()).ln() * 1e9 / services_per_s;
                busy_until_ns = busy_until_ns.max(at_ns as f64) + service_ns;
                Some(busy_until_ns as u64)
            };
            response_ms(&simulate_sum::<Simulated>(&plan, times(60), &mut Law(serve)), 0.99)
        })
        .collect();
    let mean = estimates.iter().sum::<f64>() / estimates.len() as f64;
    let variance = estimates.iter().map(|ms| (ms - mean).powi(2)).sum::<f64>() / (estimates.len() - 1) as f64;
    let error_ms = (variance / estimates.len() as f64).sqrt();
    assert!((mean - exact_ms).abs() < 3.0 * error_ms, "{mean} ± {error_ms} ms instead of {exact_ms}");
    assert!(error_ms < 0.02 * exact_ms, "{error_ms} ms would hide an error");
}

#[test]
fn what_is_unanswered_at_the_stop_took_at_least_so_long() {
    let plan = open(100.0, 16, Arrivals::Even, 9);
    // From the fifth second of the hold on the server says nothing more.
    let sum = simulate_sum::<Simulated>(
        &plan,
        times(10),
        &mut Law(|at_ns| Some(if at_ns < 6 * SECOND_NS { at_ns } else { u64::MAX })),
    );
    let flow = sum.flows[0][Phase::Hold as usize];
    assert_eq!(flow.open_after, 16, "one on each connection");
    assert_eq!(flow.offered, 1000);
    assert_eq!(flow.not_sent, 1000 - 500 - 16, "the others never found a free one");
    let bounds = sum.distribution(Measure::Unanswered, true);
    assert_eq!(bounds.count(), 16);
    assert!(bounds.max_ns().unwrap() >= 5 * SECOND_NS);
}

/// Answers each request twice, and with every answer one to a request that was never sent.
struct Stuttering;

impl Scene for Stuttering {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let (tag, _) = Exchanges::request(message);
        for tag in [tag, tag, tag + 1_000_000] {
            says.message(at_ns + 1_000_000, peer, Exchanges::answer(tag, 200, b"ok"));
        }
    }
}

#[test]
fn a_second_reply_and_one_to_no_request_are_errors_and_change_no_request() {
    let plan = open(100.0, 16, Arrivals::Even, 9);
    let sum = simulate_sum::<Simulated>(&plan, times(10), &mut Stuttering);
    let flow = sum.flows[0][Phase::Hold as usize];
    assert_eq!((flow.offered, flow.answered, flow.failed), (1000, 1000, 0));
    let requests: u64 = sum.flows[0].iter().map(|flow| flow.offered).sum();
    let BotSettings::Http(settings) = &plan.bots else { unreachable!("they are of HTTP") };
    let names = Simulated::metric_names(settings);
    let unpaired = names.errors.iter().position(|name| name == "unpaired reply").unwrap();
    assert_eq!(sum.errors[unpaired], 2 * requests);
    assert_eq!(sum.errors.iter().sum::<u64>(), 2 * requests);
}
