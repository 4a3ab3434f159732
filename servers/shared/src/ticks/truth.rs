//! The loop's own unsteadiness figure for ticks at planted instants. Compiled for `proof/truth` only.

use super::schedule::{GameTicks, Grid, Ticker};

/// What a game reports of planted ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedTicks {
    /// Σ |max(b, tᵢ) − max(b, tᵢ₋₁)|, as it goes into the log, ns
    pub isr_numerator_ns: u64,
    /// ticks run and missed
    pub due: u64,
}

/// `outliers` ticks of `periods` periods each, every one of them the last of `every` ticks, on a loop of 50 Hz.
///
/// At 50 Hz every instant of the schedule is a whole number of ns, so that no rounding is part of the result.
pub fn regular_outliers(periods: u64, every: u64, outliers: u64) -> PlantedTicks {
    let grid = Grid::new(1_000_000_000, 50, Ticker::Steady, 0, 1);
    let slots = grid.slots() as u64;
    let mut ticks = GameTicks::new(&grid, 0);
    let (mut told, mut n) = (PlantedTicks { isr_numerator_ns: 0, due: 0 }, 0);
    for recorded in 1..=every * outliers {
        n += if recorded % every == 0 { periods } else { 1 };
        if let Some(tick) = ticks.take(&grid, grid.turn_ns(n * slots)) {
            told.isr_numerator_ns += tick.unsteadiness_ns;
            told.due += 1 + tick.missed;
        }
    }
    told
}
