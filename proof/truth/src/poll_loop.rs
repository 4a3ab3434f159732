//! POLL, POLL-max, POLL-14: a loop of 30 Hz that answers ten requests per tick.

use std::collections::VecDeque;

use engine::simulation::{Law, simulate_sum};
use measure::Phase;
use plan::Arrivals;

use crate::chain::{PollLoop, largest_rate};
use crate::http::{SECOND_NS, Simulated, closed, mean_ms, open, response_ms, times};
use crate::{Form, Row};

const TICKS_PER_S: u64 = 30;

/// A loop that answers up to ten waiting requests at each of its 30 ticks a second; `queue`: how many are admitted at most.
pub(crate) fn poll_loop(queue: Option<usize>) -> impl FnMut(u64) -> Option<u64> {
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

fn open_p99_ms(rate_per_s: f64, arrivals: Arrivals, hold_s: u64) -> f64 {
    let plan = open(rate_per_s, 256, arrivals, 21);
    response_ms(&simulate_sum::<Simulated>(&plan, times(hold_s), &mut Law(poll_loop(None))), 0.99)
}

pub(crate) fn percentiles(form: Form) -> Vec<Row> {
    let mut rows = Vec::new();
    // Near the ceiling the queue changes slowly, so that exact values need hours of virtual time.
    for (rate_per_s, short_s, long_s) in [
        (30.0, 2_500, 20_000),
        (150.0, 600, 20_000),
        (210.0, 1_200, 20_000),
        (240.0, 2_000, 20_000),
        (270.0, 0, 40_000),
        (285.0, 0, 150_000),
    ] {
        let hold_s = form.of(short_s, long_s);
        if hold_s == 0 {
            continue;
        }
        let plan = open(rate_per_s, 256, Arrivals::Poisson, 11);
        let sum = simulate_sum::<Simulated>(&plan, times(hold_s), &mut Law(poll_loop(None)));
        let exact = PollLoop::new(rate_per_s, None);
        // Of short series alone: 240 per second for half an hour scatters more than that.
        let (p99_error, mean_error) =
            if form == Form::Short && rate_per_s > 230.0 { (0.04, 0.02) } else { (0.03, 0.01) };
        let name = |figure: &str| ("POLL", format!("{rate_per_s} req/s, {figure}"));
        rows.push(Row::close(name("p99"), "ms", exact.quantile_ms(0.99), response_ms(&sum, 0.99), p99_error));
        rows.push(Row::close(name("mean"), "ms", exact.mean_ms(), mean_ms(&sum), mean_error));
    }
    rows
}

pub(crate) fn ceiling(form: Form) -> Vec<Row> {
    let hold_s = form.of(60, 600);
    let mut rows = Vec::new();
    for (requesters, rate_per_s) in [(1, 30.0), (2, 60.0), (5, 150.0), (10, 300.0), (14, 300.0), (20, 300.0)]
    {
        let sum = simulate_sum::<Simulated>(&closed(requesters), times(hold_s), &mut Law(poll_loop(None)));
        let answered = sum.flows[0][Phase::Hold as usize].answered as f64 / hold_s as f64;
        let name = ("POLL-max", format!("{requesters} requesters"));
        rows.push(Row::close(name, "resp./s", rate_per_s, answered, 0.005));
    }
    // Below 300 even arrivals per second no tick meets more than its ten slots, so nothing ever queues; above, the queue grows for
    // ever. The 294 that was published comes from simulations.
    let random = largest_rate(|rate_per_s| PollLoop::new(rate_per_s, None).share_within(50.0) >= 0.99);
    let hold_s = form.of(1_500, 6_000);
    for (arrivals, capacity) in [(Arrivals::Poisson, random), (Arrivals::Even, 300.0)] {
        let below_ms = open_p99_ms(capacity * 0.98, arrivals, hold_s);
        let above_ms = open_p99_ms(capacity * 1.02, arrivals, hold_s);
        let expected = format!("{capacity:.1} req/s at p99 ≤ 50 ms");
        let got = format!("p99 {below_ms:.1} ms 2 % below, {above_ms:.1} ms 2 % above");
        let name = ("POLL-max", format!("capacity, {arrivals} arrivals"));
        rows.push(Row::new(name, expected, got, "± 2 %", below_ms <= 50.0 && above_ms > 50.0));
    }
    rows
}

pub(crate) fn refusals(form: Form) -> Vec<Row> {
    let mut rows = Vec::new();
    let sum_of = |rate_per_s: f64, hold_s: u64| {
        let plan = open(rate_per_s, 256, Arrivals::Poisson, 5);
        simulate_sum::<Simulated>(&plan, times(hold_s), &mut Law(poll_loop(Some(14))))
    };
    for rate_per_s in [240.0, 270.0, 285.0] {
        let sum = sum_of(rate_per_s, form.of(600, 10_000));
        let flow = sum.flows[0][Phase::Hold as usize];
        let share = flow.failed as f64 / flow.sent as f64;
        let exact = PollLoop::new(rate_per_s, Some(14)).refused_share();
        rows.push(Row::close(("POLL-14", format!("{rate_per_s} req/s, refused")), "%", exact, share, 0.1));
    }
    // Refusals are never answered, so above 1 % of them p99 is infinite.
    let as_bad = largest_rate(|rate_per_s| PollLoop::new(rate_per_s, Some(14)).share_within(50.0) >= 0.99);
    let hold_s = form.of(600, 5_000);
    let (below_ms, above_ms) =
        (response_ms(&sum_of(as_bad * 0.9, hold_s), 0.99), response_ms(&sum_of(as_bad * 1.1, hold_s), 0.99));
    let got = format!("p99 {below_ms:.1} ms 10 % below, {above_ms:.1} ms above");
    let expected = format!("{as_bad:.1} req/s at p99 ≤ 50 ms");
    let name = ("POLL-14", "capacity, refusals as bad");
    rows.push(Row::new(name, expected, got, "± 10 %", below_ms <= 50.0 && above_ms > 50.0));
    for (requesters, is_refused) in [(10, false), (14, false), (15, true), (20, true)] {
        let sum = simulate_sum::<Simulated>(&closed(requesters), times(20), &mut Law(poll_loop(Some(14))));
        let flow = sum.flows[0][Phase::Hold as usize];
        let errors_agree = sum.errors[0] == sum.flows[0].iter().map(|flow| flow.failed).sum::<u64>();
        let is_ok = (flow.failed > 0) == is_refused && errors_agree;
        let expected = if is_refused { "some" } else { "0" };
        let name = ("POLL-14", format!("{requesters} requesters, refused"));
        rows.push(Row::new(name, expected, flow.failed, "exact", is_ok));
    }
    rows
}
