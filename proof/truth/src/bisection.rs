//! BISECT: histories of 32 changes of which one costs ten percent, planted, and found by duels.

use ladder::bisect::{Found, Look, Made, Next, effect, gate, next};
use ladder::duel::Duel;
use ladder::duel::world::{Noise, World, duel};

use crate::duels::name;
use crate::{Form, Row};

const ID: &str = "BISECT";

pub(crate) fn rows(form: Form) -> Vec<Row> {
    let bisections = form.of(60, 300);
    let mut rows = Vec::new();
    for noise in Noise::ALL {
        let (mut right, mut wrong) = (0, 0);
        for seed in 0..bisections {
            let culprit = 1 + fastrand::Rng::with_seed(seed).usize(0..32);
            match planted(culprit, noise, seed) {
                Some(Found::Revision { revision, .. }) if revision == culprit => right += 1,
                Some(Found::Revision { .. }) => wrong += 1,
                _ => {}
            }
        }
        let share = |count: u64| count as f64 / bisections as f64;
        let named = |what: &str| (ID, format!("{}, {bisections} histories: {what}", name(noise)));
        rows.push(Row::share(named("the change is found"), "100 %", share(right), (0.9, 1.0)));
        rows.push(Row::share(named("another one is named"), "0 %", share(wrong), (0.0, 0.05)));
    }
    rows
}

/// A bisection over 32 revisions, the first and 32 behind it, of which one makes p50 ten percent longer.
fn planted(culprit: usize, noise: Noise, seed: u64) -> Option<Found> {
    const REVISIONS: usize = 33;
    const BLOCK_SD: f64 = 0.05;
    let mut random = fastrand::Rng::with_seed(seed);
    let ratio = |a: usize, b: usize| if (a < culprit) == (b < culprit) { 1.0 } else { 1.1 };
    let first = duel(1, 24, 0.02, random.u64(..));
    let compared = |plan: &Duel, ratio: f64, seed: u64| {
        World::new(noise, BLOCK_SD, &[ratio], seed).standing(plan, &plan.rules())
    };
    let standing = compared(&first, ratio(0, REVISIONS - 1), random.u64(..));
    let gate = gate(effect(&standing.loads[0].findings)?)?;
    let mut is_repeated = false;
    let mut made: Vec<Made> = Vec::new();
    loop {
        let (a, b) = match next(REVISIONS, &made) {
            Next::Done(found) => return Some(found),
            Next::Look { revision, is_repeated: again } => {
                is_repeated = again;
                (0, revision)
            }
            Next::Confirm { before, changed } => (before, changed),
        };
        let blocks_most = if is_repeated { 48 } else { 24 };
        let plan = Duel { gates: vec![gate.clone()], ..duel(1, blocks_most, 0.02, random.u64(..)) };
        let standing = compared(&plan, ratio(a, b), random.u64(..));
        let look = Look::of(standing.loads[0].gates[0].state);
        made.push(if a == 0 && matches!(next(REVISIONS, &made), Next::Look { .. }) {
            Made::Looked { revision: b, look }
        } else {
            Made::Confirmed(look)
        });
    }
}
