//! The oracle HIST in full: so many values (100 million unless said) against an exact sort. Takes 8 bytes of memory per
//! value. `cargo run --release -p measure --example hist [COUNT]`

use std::time::Instant;

use measure::{Distribution, Quantile};

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000_000);
    let mut state = 42u64;
    let mut values: Vec<u64> = (0..count)
        .map(|_| {
            // SplitMix64, spread over nine and a half magnitudes from a microsecond on.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let uniform = ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
            (1e3 * 3.6e9f64.powf(uniform)) as u64
        })
        .collect();
    let mut parts = vec![Distribution::new(); 8];
    let began = Instant::now();
    for (at, &ns) in values.iter().enumerate() {
        parts[at % 8].record(ns);
    }
    let record_ns = began.elapsed().as_secs_f64() * 1e9 / count as f64;
    let merged = |order: &mut dyn Iterator<Item = usize>| {
        let mut sum = Distribution::new();
        order.for_each(|at| sum.add(&parts[at]));
        sum
    };
    let sum = merged(&mut (0..8));
    let is_same = merged(&mut (0..8).rev()).to_v2() == sum.to_v2();
    values.sort_unstable();
    println!(
        "{count} values, {record_ns:.1} ns each to record; merged forwards and backwards: same bytes {is_same}"
    );
    for q in [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999] {
        let exact = values[((q * count as f64).ceil() as usize).max(1) - 1] as f64;
        match sum.quantile(q, 0) {
            Quantile::Ns(ns) => {
                let error = (ns as f64 / exact - 1.0) * 100.0;
                println!("p{:<8} {ns:>16} ns, exactly {exact:>16} ns, {error:+.4} %", q * 100.0);
            }
            other => println!("p{:<8} {other:?}", q * 100.0),
        }
    }
}
