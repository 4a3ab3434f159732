use measure::{LoadUnit, Phase};

use super::super::tests::{check, passes};
use super::*;
use crate::judge::Intended;
use crate::steady::Steadiness;
use crate::testing::{TrialBuilder, terms};
use Verdict::{Fail, GeneratorLimited, Inconclusive};

const ALIKE: [u64; 16] = [40; 16];
/// One request per tick, always at the same place.
const ONE_PLACE: [u64; 16] = [0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn short(load: f64) -> TrialBuilder {
    TrialBuilder { hold_s: 2, ..TrialBuilder::polling(load) }
}

#[test]
fn two_seconds_of_requests_are_judged() {
    passes(&short(1.0), &terms("errors == 0"));
    passes(&short(1.0), &terms("errors == 0, frames.share > 99%"));
    check(&short(1.0), &terms("frames.rate_per_s > 60.5"), Fail, "frames.rate_per_s", "was 60/s");
}

#[test]
fn a_hold_in_which_nobody_asked_anything_shows_nothing() {
    let silent = TrialBuilder { questions_per_s: 0, ..short(4.0) };
    let says = "no client sent a request";
    check(&silent, &terms("errors == 0"), Inconclusive, "nothing asked", says);
    let in_flight = TrialBuilder { load_unit: LoadUnit::InFlight, ..silent };
    check(&in_flight, &terms("errors == 0"), Inconclusive, "nothing asked", says);
    // Listeners of a chat need not send anything.
    let listening = TrialBuilder { load_unit: LoadUnit::Clients, ..in_flight };
    assert_ne!(listening.judged(&terms("errors == 0")).1.signal.as_deref(), Some("nothing asked"));
}

#[test]
fn requests_that_are_rejected_fail_by_their_count_and_in_their_words() {
    let builder = short(15.0).rejected(12, "status 503: \"busy\"");
    let says = "errors was 24 (objective: errors == 0); the first: rejected (429, 503): status 503: \"busy\"";
    check(&builder, &terms("errors == 0"), Fail, "errors", says);
    // 24 of 1800: more than one in a hundred took for ever.
    let builder = TrialBuilder { hold_s: 60, ..TrialBuilder::polling(15.0) }.rejected(12, "status 503");
    check(&builder, &terms("response.p99 < 50ms"), Fail, "response.p99", "was never");
}

#[test]
fn a_server_that_cuts_off_whom_it_refuses_fails_by_its_errors_and_not_by_its_connections() {
    let cut_off = |objective: &str| {
        let builder = short(15.0).rejected(12, "status 503").edit(|_, interval| {
            interval.connections.open_min = 11;
            interval.connections.failed[0] = 3;
        });
        let judgement = builder.judged(&terms(objective)).1;
        (judgement.verdict, judgement.signal.unwrap_or_default())
    };
    assert_eq!(cut_off("errors == 0"), (Fail, "errors".to_owned()));
    // Reported even if no objective asked for it.
    assert_eq!(cut_off("rate_per_s > 1"), (Fail, "connections.open_min".to_owned()));
    let no_ports = short(15.0).rejected(12, "status 503").edit(|_, interval| {
        interval.connections.open_min = 11;
        interval.connections.failed[2] = 3;
    });
    check(&no_ports, &terms("errors == 0"), GeneratorLimited, "no ports", "");
    let silent = short(15.0).edit(|_, interval| interval.connections.open_min = 11);
    check(&silent, &terms("errors == 0"), Fail, "connections.open_min", "only 11 of 15");
}

#[test]
fn where_no_connection_is_to_stand_none_is_missing() {
    let builder = TrialBuilder { connections: 0, ..short(5.0) };
    passes(&builder, &terms("errors == 0"));
    let mut rate = terms("errors == 0");
    rate.intended = Some(Intended::PerSecond(300.0));
    passes(&builder, &rate);
    rate.intended = Some(Intended::PerSecond(400.0));
    check(&builder, &rate, GeneratorLimited, "offered", "");
}

#[test]
fn latencies_read_at_one_place_of_the_tick_are_not_believed() {
    let latency = terms("errors == 0, response.p50 < 50ms");
    passes(&short(10.0).phases(ALIKE), &latency);
    let says = "one place of the server's tick … response.p50 is theirs … --arrivals poisson";
    check(&short(10.0).phases(ONE_PLACE), &latency, Inconclusive, "aliased", says);
    let slow = TrialBuilder { response_ns: 90_000_000, ..short(10.0) }.phases(ONE_PLACE);
    check(&slow, &latency, Inconclusive, "aliased", "");
    let judgement = slow.judged(&latency).1;
    assert_eq!(judgement.evidence.arrival_phases.unwrap().harmonic, 1);
}

#[test]
fn correctness_is_believed_wherever_in_the_tick_a_request_comes() {
    let refused = short(10.0).phases(ONE_PLACE).rejected(12, "status 503");
    check(&refused, &terms("response.p50 < 10ms, errors == 0"), Fail, "errors", "was 24");
    let no_latency = terms("errors == 0");
    passes(&short(10.0).phases(ONE_PLACE), &no_latency);
    assert!(short(10.0).phases(ONE_PLACE).judged(&no_latency).1.arrival_phases.unwrap().is_locked());
    let wrong = short(10.0).phases(ONE_PLACE).edit(|_, interval| interval.errors[1] = 1);
    check(&wrong, &terms("response.p50 < 50ms"), Fail, "wrong winner", "");
}

#[test]
fn a_queue_that_comes_and_goes_is_no_drift_but_one_that_grows_is() {
    let waiting = |open: fn(u32) -> u64| {
        TrialBuilder { load_unit: LoadUnit::Requests, ..TrialBuilder::polling(5.0) }.edit(
            move |at, interval| {
                let flow = interval.flow_mut(1, Phase::Hold);
                (flow.open_before, flow.open_after) = (open(at), open(at + 1));
                (flow.offered, flow.sent) = (300, 300);
                flow.answered = 300 + flow.open_before - flow.open_after;
            },
        )
    };
    let errors = terms("failed == 0");
    let flickers = waiting(|at| if at > 30 { 22 } else { 5 });
    passes(&flickers, &errors);
    check(&waiting(|at| u64::from(at) * 5), &errors, Fail, "drifting", "the backlog rose from");
}

#[test]
fn late_ticks_are_no_drift_of_requests_unless_they_are_asked_about() {
    let builder = TrialBuilder::polling(5.0).late_at(|at| if at < 30 { 0.02 } else { 0.2 });
    passes(&builder, &terms("errors == 0"));
    assert_eq!(builder.judged(&terms("errors == 0")).1.steady, Some(Steadiness::Steady));
    check(&builder, &terms("ticks.late_share < 25%"), Fail, "drifting", "");
}
