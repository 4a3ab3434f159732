//! Requests against planted servers in virtual time. Servers with exactly known percentiles are in `proof/truth`.

mod reopen;
mod visits;

use bots::http::Requests;
use engine::Bots;
use engine::simulation::{Exchanges, Law, Says, SimulatedServer, Times, Wire, simulate, simulate_sum};
use measure::{Measure, Phase};
use plan::{Arrivals, BotSettings, HttpBots, HttpModel, HttpRequest, WorkerPlan};

use crate::{SECOND_NS, sum_up, worker_plan};

type Simulated = Requests<Wire<Exchanges>>;

fn requests(model: HttpModel) -> HttpBots {
    HttpBots::plain(model, vec![HttpRequest::get("/")], 60 * SECOND_NS)
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

/// Answers the first request of each connection, and allows no further one.
struct AllowsOne;

impl SimulatedServer for AllowsOne {
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
        let terms = ladder::Criteria {
            objectives: vec!["errors == 0".parse().unwrap()],
            patience_ns: SECOND_NS,
            ..ladder::Criteria::default()
        };
        let judgement = ladder::judge(&trial, None, &terms);
        assert_eq!(judgement.verdict, ladder::Verdict::Fail, "{judgement:?}");
    }
}

#[test]
fn what_is_unanswered_at_the_stop_took_at_least_so_long() {
    let plan = open(100.0, 16, Arrivals::Even, 9);
    // From the fifth second of the hold on the server stays silent.
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

impl SimulatedServer for Stuttering {
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

#[test]
fn a_stall_is_when_all_connections_are_silent_at_once_and_not_when_one_is_slow_or_the_worker_was_away() {
    const MS: u64 = 1_000_000;
    let stalls = |plan: &WorkerPlan, generator_stall, law: &mut dyn FnMut(u64) -> Option<u64>| {
        let sum = simulate_sum::<Simulated>(plan, Times { generator_stall, ..times(10) }, &mut Law(law));
        let stalls = sum.distribution(Measure::Stall, true);
        (stalls.count(), stalls.max_ns().unwrap_or(0) / MS)
    };
    let quick = |at_ns: u64| Some(at_ns + MS);
    let freezing = |at_ns: u64| {
        let within_ns = at_ns % (2 * SECOND_NS);
        Some(if within_ns < 300 * MS { at_ns - within_ns + 300 * MS } else { at_ns + MS })
    };
    let open_loop = open(200.0, 16, Arrivals::Even, 9);
    assert_eq!(stalls(&open_loop, None, &mut { quick }), (0, 0));
    // Until the fourth answer is owed, 15 to 20 ms of each freeze pass.
    let (count, longest_ms) = stalls(&open_loop, None, &mut { freezing });
    assert!(count == 5 && (275..=300).contains(&longest_ms), "{count} of {longest_ms} ms");
    // Each request takes long, and not all at the same time; only before the first answer nothing has come.
    assert_eq!(stalls(&open_loop, None, &mut |at_ns| Some(at_ns + 75 * MS)).0, 1);
    assert_eq!(stalls(&open_loop, Some((3 * SECOND_NS, 4 * SECOND_NS)), &mut { quick }).0, 0);
    // One request after the other is silent in between, and nothing else could come.
    assert_eq!(stalls(&closed(1), None, &mut |at_ns| Some(at_ns + 300 * MS)).0, 0);
    assert_eq!(stalls(&open(2.0, 16, Arrivals::Even, 9), None, &mut { quick }).0, 0, "nothing is owed");
}
