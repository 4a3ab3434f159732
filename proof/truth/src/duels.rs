//! CI and AA: intervals and false verdicts of duels, for four kinds of noise.

use ladder::duel::world::{Noise, World, duel};
use ladder::duel::{DuelVerdict, Pairs};

use crate::{Form, Row, share_of};

/// Of ln(B / A) within a block; 2 to 4 % are usual on busy machines.
const BLOCK_SD: f64 = 0.04;

/// In words.
pub(crate) fn name(noise: Noise) -> &'static str {
    match noise {
        Noise::Independent => "independent noise",
        Noise::Drifting => "AR(1) noise",
        Noise::Clustered => "noise clustered by tick",
        Noise::HeavyTailed => "heavy-tailed noise",
    }
}

/// What is stated of a duel: the interval of the mean change over a number of blocks that was fixed beforehand, and the one
/// at whichever look a duel ends.
pub(crate) fn intervals(form: Form) -> Vec<Row> {
    let campaigns = form.of(2_000, 10_000);
    let truth = 1.05_f64.ln();
    let mut rows = Vec::new();
    for noise in Noise::ALL {
        for blocks in [4, 8, 20] {
            let covered = share_of(0..campaigns, |seed| {
                let logs = World::new(noise, BLOCK_SD, &[1.05], seed * 77 + blocks as u64).blocks(blocks);
                let (low, high) = Pairs::of_values(&logs).range_once(0.05).unwrap();
                low <= truth && truth <= high
            });
            let what = format!("{}, {blocks} blocks, {campaigns} intervals contain the change", name(noise));
            rows.push(Row::share(("CI", what), "95 %", covered, (0.93, 0.97)));
        }
    }
    rows
}

pub(crate) fn equal_servers(form: Form) -> Vec<Row> {
    let duels = form.of(1_000, 10_000);
    // A δ that no duel of 20 blocks can show makes every duel look 17 times, which is the worst case.
    let rules = duel(1, 20, 1e-6, 0).rules();
    let mut rows = Vec::new();
    for noise in Noise::ALL {
        let mut covered = 0;
        let mut wrong = 0;
        for seed in 0..duels {
            let duel = duel(1, 20, 1e-6, seed);
            let mut world = World::new(noise, BLOCK_SD, &[1.0], seed.wrapping_mul(31));
            let finding = world.standing(&duel, &rules).loads.remove(0).findings.remove(0);
            wrong += u64::from(matches!(finding.verdict, DuelVerdict::Smaller | DuelVerdict::Larger));
            covered += u64::from(finding.range.is_some_and(|(low, high)| low <= 0.0 && 0.0 <= high));
        }
        let share = |count: u64| count as f64 / duels as f64;
        let what = format!("{}, {duels} duels of equal servers, told apart", name(noise));
        rows.push(Row::share(("AA", what), "5 %", share(wrong), (0.01, 0.064)));
        let what = format!("{}, {duels} intervals at the end of a duel contain 0", name(noise));
        rows.push(Row::share(("AA", what), "95 %", share(covered), (0.936, 1.0)));
    }
    rows
}
