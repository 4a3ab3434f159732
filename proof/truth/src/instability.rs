//! ISR: an outlier of s periods every λ ticks gives (s − 1)/(s + λ − 1), less the return that the last one lacks.

use servers::ticks::truth::regular_outliers;

use crate::{Form, Row};

pub(crate) fn rows(form: Form) -> Vec<Row> {
    let outliers = form.of(10_000, 1_000_000);
    let row = |(s, every): (u64, u64)| {
        let told = regular_outliers(s, every, outliers);
        let got = told.isr_numerator_ns as f64 / (told.due as f64 * 2.0 * 20e6);
        let known = (s - 1) as f64 / (s + every - 1) as f64;
        let exact = known * (1.0 - 1.0 / (2 * outliers) as f64);
        let name = ("ISR", format!("{outliers} outliers of {s} periods, one in {every} ticks"));
        let is_ok = (got - exact).abs() <= 1e-9;
        Row::new(name, format!("{exact:.10}"), format!("{got:.10}"), "1e-9", is_ok)
    };
    [(2, 10), (5, 20), (20, 50)].into_iter().map(row).collect()
}
