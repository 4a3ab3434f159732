//! CO: open arrivals over a fixed set of open connections, against a server that answers nothing for 1 s of every 10 s.

use engine::simulation::{Law, Times, simulate, simulate_sum};
use measure::{Measure, Quantile};
use plan::Arrivals;

use crate::http::{SECOND_NS, Simulated, open, response_ms, trial};
use crate::{Form, Row};

const ID: &str = "CO";

fn freezing(at_ns: u64) -> Option<u64> {
    let within_ns = at_ns % (10 * SECOND_NS);
    Some(if within_ns < SECOND_NS { at_ns - within_ns + SECOND_NS } else { at_ns })
}

pub(crate) fn rows(form: Form) -> Vec<Row> {
    // The hold begins with a freeze and holds all of them whole.
    let hold_s = form.of(100, 1000);
    let mut rows = Vec::new();
    for connections in [8, 64, 2048] {
        for arrivals in [Arrivals::Poisson, Arrivals::Even] {
            let plan = open(2000.0, connections, arrivals, 3);
            let drain_ns = (10 + hold_s) * SECOND_NS;
            let times = Times { hold_ns: 10 * SECOND_NS, drain_ns, generator_stall: None };
            let sum = simulate_sum::<Simulated>(&plan, times, &mut Law(freezing));
            for (q, exact_ms) in [(0.95, 500.0), (0.99, 900.0), (0.999, 990.0)] {
                let what = format!("{connections} connections, {arrivals}, p{}", q * 100.0);
                rows.push(Row::close((ID, what), "ms", exact_ms, response_ms(&sum, q), 0.01));
            }
            let lag_ms = sum.distribution(Measure::SendLag, true).max_ns().unwrap() as f64 / 1e6;
            let what = format!("{connections} connections, {arrivals}, send lag");
            let got = format!("{lag_ms:.3} ms");
            rows.push(Row::new((ID, what), "0 ms", got, "< 0.1 ms", lag_ms < 0.1));
        }
    }
    // What coordinated omission would report: of the service times only those on the wire saw the freeze.
    let times = Times { hold_ns: 10 * SECOND_NS, drain_ns: 110 * SECOND_NS, generator_stall: None };
    let sum = simulate_sum::<Simulated>(&open(2000.0, 8, Arrivals::Poisson, 3), times, &mut Law(freezing));
    let hidden_ms = match sum.distribution(Measure::Service, true).quantile(0.99, 0) {
        Quantile::Ns(ns) => ns as f64 / 1e6,
        _ => f64::NAN,
    };
    let name = (ID, "8 connections, service time p99, which hides the freeze");
    rows.push(Row::new(name, "0 ms", format!("{hidden_ms:.3} ms"), "< 1 ms", hidden_ms < 1.0));
    rows.push(throttled());
    rows
}

/// The generator stands still for the second instead.
fn throttled() -> Row {
    let plan = open(2000.0, 64, Arrivals::Poisson, 3);
    let stall = Some((12 * SECOND_NS, 13 * SECOND_NS));
    let times = Times { hold_ns: 10 * SECOND_NS, drain_ns: 20 * SECOND_NS, generator_stall: stall };
    let seconds = simulate::<Simulated>(&plan, times, &mut Law(Some));
    let terms = ladder::Criteria {
        objectives: vec!["response.p99 < 500ms".parse().unwrap()],
        patience_ns: SECOND_NS,
        ..ladder::Criteria::default()
    };
    let judgement = ladder::judge(&trial(&plan, 2000.0, seconds, times), None, &terms);
    let is_ok = judgement.verdict == ladder::Verdict::GeneratorLimited;
    let name = (ID, "the generator is stopped instead: the server is not blamed");
    Row::new(name, "GENERATOR_LIMITED", judgement.verdict, "the same", is_ok)
}
