//! How often duels err, how often they find a difference, and how well their intervals cover, on planted truth. The
//! short version is `cargo test -p stepladder-ladder duel`.
//!
//! `cargo run --release -p stepladder-ladder --features testing --example duel [DUELS]`

use ladder::duel::world::{Noise, World, duel};
use ladder::duel::{DuelVerdict, Pairs};

fn main() {
    let duels: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000);
    println!("{duels} duels each; block sd: standard deviation of ln(B/A) within a block\n");
    println!(
        "{:<12} {:>8} {:>6} {:>6} {:>7}   different  no larger  undecided  covered  blocks",
        "noise", "block sd", "B/A", "δ", "figures"
    );
    for noise in Noise::ALL {
        for (block_sd, ratio, delta, figures) in [
            (0.04, 1.0, 1e-6, 1),
            (0.04, 1.0, 1e-6, 5),
            (0.02, 1.0, 0.05, 1),
            (0.04, 1.0, 0.05, 1),
            (0.02, 1.05, 0.02, 1),
            (0.04, 1.05, 0.02, 1),
            (0.04, 1.05, 0.02, 5),
            (0.04, 1.03, 0.02, 1),
        ] {
            row(noise, block_sd, ratio, delta, figures, duels);
        }
    }
    println!("\nfixed number of blocks, nominal 95 %: share of intervals that cover the truth");
    println!("{:<12} {:>6}   Student's t   percentile bootstrap", "noise", "blocks");
    for noise in Noise::ALL {
        for blocks in [4, 6, 8, 12, 20] {
            intervals(noise, blocks, duels);
        }
    }
}

fn row(noise: Noise, block_sd: f64, ratio: f64, delta: f64, figures: usize, duels: u64) {
    let rules = duel(figures, 20, delta, 0).rules();
    let (mut different, mut no_larger, mut undecided, mut covered, mut blocks) = (0, 0, 0, 0, 0);
    for seed in 0..duels {
        let duel = duel(figures, 20, delta, seed);
        let mut world = World::new(noise, block_sd, &vec![ratio; figures], seed.wrapping_mul(0x9E37_79B9));
        let load = world.standing(&duel, &rules).loads.remove(0);
        let is = |verdict: DuelVerdict| load.findings.iter().any(|finding| finding.verdict == verdict);
        different += u64::from(is(DuelVerdict::Smaller) || is(DuelVerdict::Larger));
        no_larger += u64::from(is(DuelVerdict::NoDifferenceLargerThanDelta));
        undecided += u64::from(is(DuelVerdict::Undecided));
        let truth = f64::ln(ratio);
        let covers = load.findings[0].range.is_some_and(|(low, high)| low <= truth && truth <= high);
        covered += u64::from(covers);
        blocks += load.blocks as u64;
    }
    let percent = |count: u64| format!("{:.1} %", 100.0 * count as f64 / duels as f64);
    println!(
        "{:<12} {block_sd:>8} {ratio:>6} {delta:>6} {figures:>7} {:>11} {:>10} {:>10} {:>8} {:>7.1}",
        format!("{noise:?}"),
        percent(different),
        percent(no_larger),
        percent(undecided),
        percent(covered),
        blocks as f64 / duels as f64
    );
}

fn intervals(noise: Noise, blocks: usize, duels: u64) {
    const RESAMPLES: usize = 400;
    let truth = 1.05_f64.ln();
    let (mut student, mut bootstrap) = (0, 0);
    let mut random = fastrand::Rng::with_seed(1);
    for seed in 0..duels {
        let logs = World::new(noise, 0.04, &[1.05], seed.wrapping_mul(0x9E37_79B9)).blocks(blocks);
        let covers = |(low, high): (f64, f64)| u64::from(low <= truth && truth <= high);
        student += Pairs::of_values(&logs).range_once(0.05).map_or(0, covers);
        // Rejected alternatives, for comparison; a quarter of the duels is enough.
        if seed % 4 == 0 {
            let mut means: Vec<f64> = (0..RESAMPLES)
                .map(|_| (0..blocks).map(|_| logs[random.usize(..blocks)]).sum::<f64>() / blocks as f64)
                .collect();
            means.sort_by(f64::total_cmp);
            bootstrap += covers((means[RESAMPLES / 40], means[RESAMPLES - 1 - RESAMPLES / 40]));
        }
    }
    let percent = |count: u64, of: u64| format!("{:.1} %", 100.0 * count as f64 / of as f64);
    println!(
        "{:<12} {blocks:>6} {:>13} {:>22}",
        format!("{noise:?}"),
        percent(student, duels),
        percent(bootstrap, duels.div_ceil(4))
    );
}
