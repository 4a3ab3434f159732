//! MM1: one queue, one server, exponential service times; p99 = ln 100 / (µ − λ).

use engine::simulation::{Law, simulate_sum};
use ladder::duel::Pairs;
use plan::Arrivals;

use crate::http::{Simulated, open, response_ms, times};
use crate::{Form, Row};

const ID: &str = "MM1";
const ARRIVALS_PER_S: f64 = 500.0;
const SERVICES_PER_S: f64 = 1000.0;
/// Whose percentiles make one interval.
const RUNS: usize = 8;

/// One that serves requests in their order, each for an exponentially distributed time.
pub(crate) fn one_server(services_per_s: f64, seed: u64) -> impl FnMut(u64) -> Option<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut busy_until_ns = 0.0f64;
    move |at_ns: u64| {
        let service_ns = -(1.0 - random.f64()).ln() * 1e9 / services_per_s;
        busy_until_ns = busy_until_ns.max(at_ns as f64) + service_ns;
        Some(busy_until_ns as u64)
    }
}

fn p99_ms(seed: u64) -> f64 {
    let plan = open(ARRIVALS_PER_S, 1024, Arrivals::Poisson, 1000 + seed);
    let mut serve = Law(one_server(SERVICES_PER_S, seed));
    response_ms(&simulate_sum::<Simulated>(&plan, times(60), &mut serve), 0.99)
}

pub(crate) fn rows(form: Form) -> Vec<Row> {
    let exact_ms = 100f64.ln() / (SERVICES_PER_S - ARRIVALS_PER_S) * 1e3;
    let campaigns = form.of(5, 200);
    let runs: Vec<f64> = (0..(campaigns * RUNS) as u64).map(p99_ms).collect();
    let mean = runs.iter().sum::<f64>() / runs.len() as f64;
    let variance = runs.iter().map(|ms| (ms - mean).powi(2)).sum::<f64>() / (runs.len() - 1) as f64;
    let error_ms = (variance / runs.len() as f64).sqrt();
    let name = (ID, format!("p99, mean of {} runs of 60 s", runs.len()));
    let is_ok = (mean - exact_ms).abs() < 3.0 * error_ms && error_ms < 0.02 * exact_ms;
    let got = format!("{mean:.3} ± {error_ms:.3} ms");
    let mut rows = vec![Row::new(name, format!("{exact_ms:.3} ms"), got, "3 standard errors", is_ok)];
    if form == Form::Long {
        // The interval that duels state, of the logarithms of the percentiles of some runs.
        let covers = |runs: &[f64]| {
            let logs: Vec<f64> = runs.iter().map(|ms| ms.ln()).collect();
            let (low, high) = Pairs::of_values(&logs).range_once(0.05).unwrap();
            low <= exact_ms.ln() && exact_ms.ln() <= high
        };
        let covered = runs.chunks(RUNS).filter(|runs| covers(runs)).count() as f64 / campaigns as f64;
        let what = format!("{campaigns} intervals of 95 %, each of {RUNS} runs, contain it");
        rows.push(Row::share((ID, what), "95 %", covered, (0.93, 1.0)));
    }
    rows
}
