//! How long a client stays and keeps its connection, against a server whose connections take 3 ms and whose answers 1 ms.

use std::collections::BTreeMap;

use measure::Interval;
use plan::Visit;

use super::*;

const MS: u64 = 1_000_000;

/// Counts what comes over each connection.
#[derive(Default)]
struct Doors(BTreeMap<u64, u64>);

impl SimulatedServer for Doors {
    fn opens_after_ns(&mut self, _: u64) -> Option<u64> {
        Some(3 * MS)
    }

    fn opened(&mut self, peer: u64, _: u64, _: &mut Says) {
        self.0.insert(peer, 0);
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        *self.0.entry(peer).or_default() += 1;
        let (tag, _) = Exchanges::request(message);
        says.message(at_ns + MS, peer, Exchanges::answer(tag, 200, b"ok"));
    }
}

fn with_visit(plan: WorkerPlan, visit: Visit) -> WorkerPlan {
    let BotSettings::Http(http) = plan.bots.clone() else { panic!("{plan:?}") };
    WorkerPlan { bots: BotSettings::Http(HttpBots { visit, ..http }), ..plan }
}

/// Answers per second and mean response in ms of four clients in a closed loop, and the most requests on a connection.
fn held(visit: Visit) -> (f64, f64, u64) {
    let mut doors = Doors::default();
    let sum = simulate_sum::<Simulated>(&with_visit(closed(4), visit), times(10), &mut doors);
    let flow = sum.flows[0][Phase::Hold as usize];
    assert_eq!((flow.failed, flow.lost, flow.not_sent), (0, 0, 0), "a visit that ends is no error");
    assert_eq!(sum.errors.iter().sum::<u64>(), 0);
    (flow.answered as f64 / 10.0, mean_ms(&sum), doors.0.values().copied().max().unwrap_or(0))
}

#[test]
fn a_client_that_stays_asks_on_one_connection() {
    let (rate, response_ms, most) = held(Visit::default());
    assert_close("rate", rate, 4000.0, 0.005);
    assert_close("response", response_ms, 1.0, 0.01);
    assert!(most > 10_000, "{most}");
}

#[test]
fn a_client_of_one_request_opens_a_connection_for_it_which_its_response_counts() {
    let (rate, response_ms, most) = held(Visit { requests: Some(1), reconnect_after: None });
    assert_close("rate", rate, 1000.0, 0.005);
    assert_close("response", response_ms, 4.0, 0.01);
    assert_eq!(most, 1);
}

#[test]
fn a_connection_takes_as_many_requests_as_a_visit_or_a_client_allows_whichever_are_fewer() {
    for visit in [
        Visit { requests: Some(10), reconnect_after: None },
        Visit { requests: None, reconnect_after: Some(10) },
        Visit { requests: Some(10), reconnect_after: Some(25) },
    ] {
        let (rate, response_ms, most) = held(visit);
        // Ten answers and one connection take 13 ms.
        assert_close("rate", rate, 4.0 * 10.0 / 0.013, 0.005);
        assert_close("response", response_ms, 1.3, 0.01);
        assert_eq!(most, 10, "{visit:?}");
    }
}

#[test]
fn connections_of_a_rate_are_renewed_between_requests_and_none_is_lost() {
    let visit = Visit { requests: None, reconnect_after: Some(5) };
    let plan = with_visit(open(1000.0, 16, Arrivals::Even, 3), visit);
    let mut doors = Doors::default();
    let sum = simulate_sum::<Simulated>(&plan, times(10), &mut doors);
    let flow = sum.flows[0][Phase::Hold as usize];
    assert!((9_999..=10_001).contains(&flow.offered), "{}", flow.offered);
    assert_eq!(flow.answered, flow.offered);
    assert_eq!(doors.0.values().copied().max(), Some(5));
    let taken = sum.distribution(Measure::Handshake, true);
    assert!(taken.count() > 1_900, "handshakes are counted apart: {}", taken.count());
}

fn mean_ms(sum: &Interval) -> f64 {
    sum.distribution(Measure::Response, true).summary().and_then(|summary| summary.mean).unwrap() / 1e6
}

#[track_caller]
fn assert_close(what: &str, measured: f64, exact: f64, error_max: f64) {
    let error = measured / exact - 1.0;
    assert!(error.abs() <= error_max, "{what}: {measured:.3} instead of {exact}, {:+.2} %", error * 100.0);
}
