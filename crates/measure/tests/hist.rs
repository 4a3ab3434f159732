//! The oracle HIST: percentiles against an exact sort, and parts merged in any order. A million values here; the
//! example `hist` does the same with a hundred million.

use measure::{Distribution, Quantile};

/// From a microsecond to an hour, each magnitude equally likely: what latencies of a stalling server look like.
fn durations(count: usize, seed: u64) -> Vec<u64> {
    let mut state = seed;
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

#[test]
fn percentiles_of_a_million_values_are_within_a_thousandth_of_those_of_a_sort() {
    let mut values = durations(1_000_000, 1);
    let mut distribution = Distribution::new();
    values.iter().for_each(|&ns| distribution.record(ns));
    values.sort_unstable();
    for q in [0.001, 0.01, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999] {
        let rank = (q * values.len() as f64).ceil() as usize;
        let exact = values[rank - 1] as f64;
        let Quantile::Ns(ns) = distribution.quantile(q, 0) else { panic!("p{q} was not stated") };
        let error = (ns as f64 - exact).abs() / exact;
        assert!(error <= 0.001, "p{}: {ns} instead of {exact}, {error}", q * 100.0);
    }
}

#[test]
fn parts_merged_in_any_order_are_the_same_to_the_bit() {
    let parts: Vec<Distribution> = (0..16)
        .map(|seed| {
            let mut part = Distribution::new();
            durations(10_000, seed).iter().for_each(|&ns| part.record(ns));
            part
        })
        .collect();
    let merged = |order: &mut dyn Iterator<Item = usize>| {
        let mut sum = Distribution::new();
        order.for_each(|at| sum.add(&parts[at]));
        sum.to_v2()
    };
    let forwards = merged(&mut (0..16));
    assert_eq!(merged(&mut (0..16).rev()), forwards);
    assert_eq!(merged(&mut (0..16).map(|at| (at * 7 + 3) % 16)), forwards);
}
