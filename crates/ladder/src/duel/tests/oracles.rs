//! Planted truth that must hold for every kind of noise. The oracles CI and AA are in `truth/src/duels.rs`.
//! `cargo run --release -p stepladder-ladder --features testing --example duel` measures the same with more duels.

use super::*;

const DUELS: u64 = 1_000;
/// Standard deviation of ln(B / A) within a block: of busy machines 2 to 4 % are usual.
const BLOCK_SDS: [f64; 2] = [0.02, 0.04];

/// Verdicts of `DUELS` duels of one figure, B over A being `ratio`.
fn verdicts(noise: Noise, block_sd: f64, ratio: f64, delta: f64) -> Vec<(DuelVerdict, Option<(f64, f64)>)> {
    let rules = duel(1, 20, delta, 0).rules();
    let one = |seed| {
        let duel = duel(1, 20, delta, seed);
        let mut world = World::new(noise, block_sd, &[ratio], seed.wrapping_mul(31));
        let finding = world.standing(&duel, &rules).loads.remove(0).findings.remove(0);
        (finding.verdict, finding.range)
    };
    (0..DUELS).map(one).collect()
}

fn share<T>(all: &[T], is: impl Fn(&T) -> bool) -> f64 {
    all.iter().filter(|one| is(one)).count() as f64 / all.len() as f64
}

fn is_different(verdict: DuelVerdict) -> bool {
    matches!(verdict, DuelVerdict::Smaller | DuelVerdict::Larger)
}

#[test]
fn equal_servers_get_a_false_verdict_on_any_of_five_figures_in_5_percent_of_duels_at_most() {
    let rules = duel(5, 12, 1e-6, 0).rules();
    let is_wrong = |seed: &u64| {
        let duel = duel(5, 12, 1e-6, *seed);
        let mut world = World::new(Noise::Independent, 0.03, &[1.0; 5], seed + 9_000);
        let standing = world.standing(&duel, &rules);
        standing.loads[0].findings.iter().any(|finding| is_different(finding.verdict))
    };
    let seeds: Vec<u64> = (0..300).collect();
    let wrong = share(&seeds, is_wrong);
    // 300 duels: 5 % ± 2.5.
    assert!(wrong <= 0.075, "{wrong}");
}

#[test]
fn a_server_that_is_5_percent_slower_is_found() {
    for (noise, sd) in Noise::ALL.into_iter().flat_map(|noise| BLOCK_SDS.map(|sd| (noise, sd))) {
        let all = verdicts(noise, sd, 1.05, 0.02);
        let found = share(&all, |(verdict, _)| *verdict == DuelVerdict::Larger);
        assert!(found >= 0.90, "{noise:?}, block sd {sd}: {found}");
        assert_eq!(share(&all, |(verdict, _)| *verdict == DuelVerdict::Smaller), 0.0, "{noise:?} {sd}");
    }
}

#[test]
fn servers_that_differ_by_more_than_delta_are_not_called_equal() {
    // 3 % apart with δ = 2 %: the interval would have to miss the truth.
    let all = verdicts(Noise::Drifting, 0.04, 1.03, 0.02);
    let wrong = share(&all, |(verdict, _)| *verdict == DuelVerdict::NoDifferenceLargerThanDelta);
    assert!(wrong <= 0.05, "{wrong}");
    let equal = verdicts(Noise::Independent, 0.02, 1.0, 0.05);
    let said = share(&equal, |(verdict, _)| *verdict == DuelVerdict::NoDifferenceLargerThanDelta);
    assert!(said >= 0.95, "and equal ones are: {said}");
}
