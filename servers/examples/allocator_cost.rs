//! What `CountingAllocator` costs a program that uses it: `cargo run --release -p stepladder-servers --example allocator_cost`
//!
//! A block is allocated and freed, with the system's allocator, and with the counting one before and after it counts.
//! The three alternate; a figure is the median over the rounds. One thread, so without contention for the counters.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::time::Instant;

use servers::leaderboard::bench::CountingAllocator;

const ROUNDS: usize = 41;
const PAIRS: u32 = 1_000_000;

/// Time of allocating and giving back one block, ns.
fn pair_ns(allocator: &impl GlobalAlloc) -> f64 {
    let layout = Layout::new::<[u64; 8]>();
    let began = Instant::now();
    for _ in 0..PAIRS {
        // SAFETY: the layout is not empty, and the block is given back once, with the same layout.
        unsafe {
            let block = black_box(allocator.alloc(layout));
            assert!(!block.is_null());
            allocator.dealloc(block, layout);
        }
    }
    began.elapsed().as_secs_f64() * 1e9 / f64::from(PAIRS)
}

/// Medians of the system's allocator and of the counting one.
fn medians() -> (f64, f64) {
    let (mut system, mut counting): (Vec<f64>, Vec<f64>) =
        (0..ROUNDS).map(|_| (pair_ns(&System), pair_ns(&CountingAllocator))).unzip();
    let median = |each: &mut Vec<f64>| {
        each.sort_unstable_by(f64::total_cmp);
        each[ROUNDS / 2]
    };
    (median(&mut system), median(&mut counting))
}

fn main() {
    let (system, silent) = medians();
    CountingAllocator::start();
    let (again, counts) = medians();
    println!("a block of 64 bytes allocated and given back, ns:");
    println!("system {system:.2}, counting allocator before it counts {silent:.2}");
    println!("system {again:.2}, counting allocator while it counts {counts:.2}");
}
