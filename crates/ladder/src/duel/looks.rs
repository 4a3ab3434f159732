//! The confidence required at each look: a duel looks at its data after every block and may stop at any of them, and
//! all looks together err with the allowed probability.
//!
//! Alpha spending (Lan & DeMets 1983): after n of at most N blocks the part (n/N)² of the allowed error has been spent
//! (the power family of Kim & DeMets 1987, ρ = 2). The boundary of each look follows from what is left to spend there
//! and from the paths that have not crossed before, by recursive numerical integration (Armitage, McPherson & Rowe
//! 1969).
//! It is a boundary of the normal statistic; its level is then applied to Student's t (the significance level approach,
//! Jennison & Turnbull 2000, section 4.4). A duel that ends early for another reason has spent less, never more.
//! Not here: what is looked at (`interval`).

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::erf;

/// Blocks before the first look. With fewer, an interval of Student's t is too wide to decide anything.
pub const BLOCKS_LEAST: usize = 4;
/// Blocks under one load at most. More than this many looks change no boundary that matters.
pub const BLOCKS_MOST: usize = 100;

/// Of the spent error: 1 spends evenly and ends clear cases earliest, 3 keeps nearly everything for the end. With 2 the last of
/// 20 looks is a fifth wider than one that is the only one.
const SPENDING_POWER: i32 = 2;
/// What of the allowed error is planned to be spent. Levels of the normal statistic fit Student's t exactly at each look by
/// itself; over many looks with few blocks it crosses more often than planned, 5.7 % of duels instead of 5 (bench/duel).
const PLANNED_PART: f64 = 0.85;
/// Of the paths' positions, in standard deviations of one block. The density is as smooth as one of them.
const GRID_STEP: f64 = 0.25;
const GRID_INTERVALS_LEAST: usize = 32;

/// The levels of all looks of one comparison.
#[derive(Clone, Debug)]
pub struct Looks {
    /// by number of blocks; 0 where there is no look
    nominal: Vec<f64>,
    /// the quantile of Student's t that goes with it
    critical: Vec<f64>,
}

impl Looks {
    /// Looks after each of `BLOCKS_LEAST` to `blocks_most` blocks that err with probability `alpha` in all, in (0, 1).
    pub fn new(alpha: f64, blocks_most: usize) -> Looks {
        let nominal = nominal_levels(alpha, blocks_most.clamp(BLOCKS_LEAST, BLOCKS_MOST));
        let critical = nominal
            .iter()
            .enumerate()
            .map(
                |(blocks, level)| {
                    if *level > 0.0 { student_critical(*level, blocks - 1) } else { f64::INFINITY }
                },
            )
            .collect();
        Looks { nominal, critical }
    }

    /// The two-sided level of the look after this number of blocks. 0 where no look is planned; beyond the last look, its level.
    pub fn level(&self, blocks: usize) -> f64 {
        self.nominal[blocks.min(self.nominal.len() - 1)]
    }

    /// How many standard errors an interval reaches after so many blocks.
    pub fn critical(&self, blocks: usize) -> f64 {
        match self.critical.get(blocks) {
            Some(critical) => *critical,
            None => student_critical(self.level(blocks), blocks - 1),
        }
    }
}

/// How many standard errors a two-sided interval of Student's t reaches that misses with probability `level`.
pub fn student_critical(level: f64, degrees: usize) -> f64 {
    let student = StudentsT::new(0.0, 1.0, degrees as f64).expect("degrees of freedom are at least 1");
    // From the lower tail: 1 − level would lose the digits of a small level.
    -student.inverse_cdf(level / 2.0)
}

/// Of `alpha`, what has been spent after `blocks` of `blocks_most`.
pub(super) fn spent(alpha: f64, blocks: usize, blocks_most: usize) -> f64 {
    let planned = if blocks_most > BLOCKS_LEAST { PLANNED_PART * alpha } else { alpha };
    planned * (blocks as f64 / blocks_most as f64).powi(SPENDING_POWER)
}

fn nominal_levels(alpha: f64, blocks_most: usize) -> Vec<f64> {
    let mut levels = vec![0.0; blocks_most + 1];
    let first = spent(alpha, BLOCKS_LEAST, blocks_most);
    levels[BLOCKS_LEAST] = first;
    let mut sd = (BLOCKS_LEAST as f64).sqrt();
    let mut bound = erf::erfc_inv(first) * std::f64::consts::SQRT_2 * sd;
    let mut paths = Paths::within(bound, |sum| density(sum / sd) / sd);
    for (blocks, level) in levels.iter_mut().enumerate().skip(BLOCKS_LEAST + 1) {
        let to_spend = spent(alpha, blocks, blocks_most) - spent(alpha, blocks - 1, blocks_most);
        bound = paths.bound_crossed_by(to_spend, bound);
        sd = (blocks as f64).sqrt();
        *level = 2.0 * upper_tail(bound / sd);
        let before = paths;
        paths = Paths::within(bound, |sum| before.density_after(sum));
    }
    levels
}

/// The paths that have crossed no boundary so far: the density of their sum. It is the same on both sides of 0, so only one
/// is kept.
struct Paths {
    /// from 0 to the boundary
    sums: Vec<f64>,
    /// density times Simpson's weight at each
    weighted: Vec<f64>,
}

impl Paths {
    fn within(bound: f64, density: impl Fn(f64) -> f64) -> Paths {
        let intervals = ((bound / GRID_STEP).ceil() as usize).max(GRID_INTERVALS_LEAST).next_multiple_of(2);
        let step = bound / intervals as f64;
        let sums: Vec<f64> = (0..=intervals).map(|at| at as f64 * step).collect();
        let simpson = |at: usize| match at {
            0 => 1.0,
            at if at == intervals => 1.0,
            at if at % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let weighted =
            sums.iter().enumerate().map(|(at, sum)| simpson(at) * step / 3.0 * density(*sum)).collect();
        Paths { sums, weighted }
    }

    fn density_after(&self, sum: f64) -> f64 {
        let both = |from: f64| density(sum - from) + density(sum + from);
        self.sums.iter().zip(&self.weighted).map(|(from, weight)| weight * both(*from)).sum()
    }

    /// The probability that the next block leads beyond a bound, on either side.
    fn crossing(&self, bound: f64) -> f64 {
        let beyond = |from: f64| upper_tail(bound - from) + upper_tail(bound + from);
        2.0 * self.sums.iter().zip(&self.weighted).map(|(from, weight)| weight * beyond(*from)).sum::<f64>()
    }

    fn bound_crossed_by(&self, probability: f64, near: f64) -> f64 {
        let (mut low, mut high) = (0.0, 2.0 * near + 10.0);
        // More iterations gain nothing beyond f64's precision.
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            if self.crossing(middle) > probability { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }
}

fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

fn upper_tail(z: f64) -> f64 {
    0.5 * erf::erfc(z / std::f64::consts::SQRT_2)
}
