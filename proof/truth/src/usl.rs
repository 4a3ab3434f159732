//! USL: planted contention and coherency, found by the fit of the universal scalability law.

use ladder::models::{Fit, Peak, fit};

use crate::{Form, Row, normal, share_of};

const ID: &str = "USL";
const LOADS: [f64; 12] = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 80.0, 96.0];

fn noisy(alpha: f64, beta: f64, noise: f64, seed: u64) -> Vec<(f64, f64)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let law = |load: f64| 1000.0 * load / (1.0 + alpha * (load - 1.0) + beta * load * (load - 1.0));
    LOADS.iter().map(|load| (*load, law(*load) * (noise * normal(&mut random)).exp())).collect()
}

pub(crate) fn rows(form: Form) -> Vec<Row> {
    let series = form.of(1_000, 4_000);
    let mut rows = Vec::new();
    for (alpha, beta, noise) in [(0.05, 5e-4, 0.02), (0.02, 2e-4, 0.05), (0.2, 1e-3, 0.01), (0.1, 2e-3, 0.03)]
    {
        let planted = format!("α {alpha}, β {beta}, noise {} %, {series} series", noise * 100.0);
        let fits: Vec<_> = (0..series).map(|seed| fit(&noisy(alpha, beta, noise, seed)).unwrap()).collect();
        let mut row = |what: &str, truth: f64, of: fn(&Fit) -> (f64, f64)| {
            let holds = fits.iter().map(of).filter(|(low, high)| *low <= truth && truth <= *high).count();
            let name = (ID, format!("{planted}: intervals contain {what}"));
            rows.push(Row::share(name, "95 %", holds as f64 / fits.len() as f64, (0.93, 0.97)));
        };
        row("α", alpha, |fit| fit.contention.1);
        row("β", beta, |fit| fit.coherency.1);
    }
    // Without coherency there is no peak; with very little it lies at ten times the largest load.
    for (alpha, beta, noise) in [(0.05, 0.0, 0.03), (0.0, 0.0, 0.03), (0.3, 7e-7, 0.03)] {
        let told =
            share_of(0..series, |seed| matches!(peak(alpha, beta, noise, seed), Some(Peak::At { .. })));
        let name = (ID, format!("α {alpha}, β {beta}, {series} series: a peak is not told"));
        rows.push(Row::share(name, "100 %", 1.0 - told, (0.99, 1.0)));
    }
    let truth = ((1.0_f64 - 0.05) / 5e-4).sqrt();
    let told = |is: &dyn Fn(f64, f64) -> bool| {
        share_of(0..series, |seed| match peak(0.05, 5e-4, 0.02, seed) {
            Some(Peak::At { low, high, .. }) => is(low, high),
            _ => false,
        })
    };
    let name = (ID, format!("a peak within the loads, {series} series: it is told"));
    rows.push(Row::share(name, "100 %", told(&|_, _| true), (0.95, 1.0)));
    let name = (ID, format!("a peak within the loads, {series} series: told, and in its interval"));
    let inside = told(&|low, high| low <= truth && truth <= high);
    rows.push(Row::share(name, "95 %", inside, (0.92, 1.0)));
    rows
}

fn peak(alpha: f64, beta: f64, noise: f64, seed: u64) -> Option<Peak> {
    fit(&noisy(alpha, beta, noise, seed)).ok().map(|fit| fit.peak)
}
