//! HIST: percentiles against an exact sort, and parts merged in any order.

use measure::{Distribution, Quantile};

use crate::{Form, Row};

const ID: &str = "HIST";

/// From a microsecond to an hour, each magnitude equally likely: what latencies of a stalling server look like.
fn durations(count: usize) -> Vec<u64> {
    let mut state = 42u64;
    let mut uniform = || {
        // SplitMix64, so that the values are the same on every machine.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count).map(|_| (1e3 * 3.6e9f64.powf(uniform())) as u64).collect()
}

pub(crate) fn rows(form: Form) -> Vec<Row> {
    let count = form.of(1_000_000, 100_000_000);
    let mut values = durations(count);
    let mut parts = vec![Distribution::new(); 16];
    values.iter().enumerate().for_each(|(at, ns)| parts[at % 16].record(*ns));
    let merged = |order: &mut dyn Iterator<Item = usize>| {
        let mut sum = Distribution::new();
        order.for_each(|at| sum.add(&parts[at]));
        sum
    };
    let sum = merged(&mut (0..16));
    values.sort_unstable();
    let mut worst = 0.0f64;
    for q in [0.001, 0.01, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999] {
        let exact = values[(q * values.len() as f64).ceil() as usize - 1] as f64;
        let error = match sum.quantile(q, 0) {
            Quantile::Ns(ns) => (ns as f64 - exact).abs() / exact,
            _ => f64::INFINITY,
        };
        worst = worst.max(error);
    }
    let name = (ID, format!("{count} values, p0.1 to p99.99 against a sort, largest error"));
    let mut rows = vec![Row::new(name, "0 %", format!("{:.4} %", worst * 100.0), "0.1 %", worst <= 0.001)];
    let orders: [(&str, Vec<usize>); 2] =
        [("backwards", (0..16).rev().collect()), ("shuffled", (0..16).map(|at| (at * 7 + 3) % 16).collect())];
    for (order, indexes) in orders {
        let is_same = merged(&mut indexes.into_iter()).to_v2() == sum.to_v2();
        let got = if is_same { "the same" } else { "others" };
        let name = (ID, format!("16 parts of {count} values merged {order}"));
        rows.push(Row::new(name, "the same bytes", got, "0", is_same));
    }
    rows
}
