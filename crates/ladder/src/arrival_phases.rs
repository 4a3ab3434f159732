//! Detects arrivals locked to the server's ticks: a rung that sampled only a few phases of the tick.
//!
//! On a server that answers in ticks, every request waits for the next tick. Requests at equal intervals may hit the
//! same few phases of the tick for ever, and the measured wait is then that of those phases, not that of real users.
//! The bots count a hold's planned arrivals by their phase in the tick, in 16 bins. Locked requires both
//! *significance*: Rayleigh's test of uniformity, p < 0.001, for arrivals at 1, 2 … 8 phases (harmonics of the tick; p
//! is multiplied by their number), and *relevance*: a twentieth of the mean wait. Significance alone would flag too
//! much: 294 even arrivals per second at 30 ticks hit 49 phases, which is as good as all, but never fill 16 bins alike.
//! Up to 12 phases per tick are found in whatever bins they lie, except 8 phases exactly on bin borders.
//! Units: phases in turns of the tick. Pure; `judge` decides what follows.
//! Sources: Mardia and Jupp, Directional Statistics (2000), 6.3.1 (the test); Fisher, Statistical Analysis of Circular
//! Data (1993), 2.3 (grouped data).

use std::f64::consts::{PI, TAU};

use measure::{Role, Trial};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Arrivals as rare as this by chance alone are not put down to chance.
pub const P_LEAST: f64 = 0.001;
/// Of a resultant over its harmonic. A wait for the next tick that is read off such phases is wrong by up to 0.08 / π of a
/// tick, a twentieth of its mean. Less is not worth withholding a figure.
pub const LEAN_LEAST: f64 = 0.08;

/// As many as the bots have counters of `Role::ArrivalPhase`.
const BINS: usize = 16;
/// Sixteen bins tell no more of them apart: 9 places look like 7.
const HARMONICS: usize = BINS / 2;

/// What the phases of the arrivals say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct ArrivalPhases {
    /// planned arrivals of the hold
    pub count: u64,
    /// the harmonic of the tick that the arrivals follow most: 1 means that they meet one place of the tick
    pub harmonic: u32,
    /// mean resultant length of that harmonic, corrected for the width of the bins, in [0, 1]
    pub resultant: f64,
    /// chance of such phases where none is preferred, over all harmonics looked at
    pub p: f64,
}

impl ArrivalPhases {
    /// True when the latencies of the rung are those of a few places of the tick.
    pub fn is_locked(&self) -> bool {
        self.p < P_LEAST && self.lean() >= LEAN_LEAST
    }

    /// By how much the mean wait may be wrong, in ticks × π: many places per tick, met evenly, are almost all places.
    fn lean(&self) -> f64 {
        self.resultant / f64::from(self.harmonic)
    }
}

/// The phases of a trial's arrivals; `None` where the bots counted none.
pub fn arrival_phases(trial: &Trial) -> Option<ArrivalPhases> {
    let mut counts = [0; BINS];
    counts.iter_mut().zip(trial.counts(Role::ArrivalPhase)).for_each(|(bin, count)| *bin = count);
    of_phases(&counts)
}

/// The same of the counts by bin; `None` of nothing.
fn of_phases(counts: &[u64; BINS]) -> Option<ArrivalPhases> {
    let count: u64 = counts.iter().sum();
    if count == 0 {
        return None;
    }
    let found: Vec<ArrivalPhases> =
        (1..=HARMONICS).map(|harmonic| of_harmonic(counts, count, harmonic)).collect();
    let locked = found.iter().filter(|one| one.is_locked()).max_by(|a, b| a.lean().total_cmp(&b.lean()));
    locked.or_else(|| found.iter().min_by(|a, b| a.p.total_cmp(&b.p))).copied()
}

fn of_harmonic(counts: &[u64; BINS], count: u64, harmonic: usize) -> ArrivalPhases {
    let (mut east, mut north) = (0.0, 0.0);
    for (bin, &arrivals) in counts.iter().enumerate() {
        // The middle of the bin represents all of it.
        let angle = TAU * harmonic as f64 * (bin as f64 + 0.5) / BINS as f64;
        east += arrivals as f64 * angle.cos();
        north += arrivals as f64 * angle.sin();
    }
    let n = count as f64;
    let raw = east.hypot(north) / n;
    // If no phase is preferred neither are the bins' middles, so the test needs no correction. The last harmonic has
    // only one direction left, and its square sum is that of one deviate: half as much.
    let z = n * raw * raw * if harmonic == HARMONICS { 0.5 } else { 1.0 };
    let p = (HARMONICS as f64 * rayleigh_p(z, n)).min(1.0);
    let half_bin = PI * harmonic as f64 / BINS as f64;
    let resultant = (raw * half_bin / half_bin.sin()).min(1.0);
    ArrivalPhases { count, harmonic: harmonic as u32, resultant, p }
}

/// Chance of a Rayleigh statistic `z` = n R² or more; the terms in 1/n serve small samples.
fn rayleigh_p(z: f64, n: f64) -> f64 {
    let first = (2.0 * z - z * z) / (4.0 * n);
    let second = (24.0 * z - 132.0 * z.powi(2) + 76.0 * z.powi(3) - 9.0 * z.powi(4)) / (288.0 * n * n);
    // For z of the size of n the series leaves its range; the probability is then negligible.
    let series = 1.0 + first - second;
    let is_in_range = z < n / 4.0;
    ((-z).exp() * if is_in_range { series.max(0.0) } else { 1.0 }).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_HZ: f64 = 30.0;

    fn bins(phases: impl Iterator<Item = f64>) -> [u64; BINS] {
        let mut counts = [0; BINS];
        phases.for_each(|phase| counts[(phase.rem_euclid(1.0) * BINS as f64) as usize % BINS] += 1);
        counts
    }

    /// Even arrivals at a rate, from a place in the first gap.
    fn even(rate_per_s: f64, hold_s: f64, begin: f64) -> ArrivalPhases {
        let count = (rate_per_s * hold_s) as u64;
        let phases = (0..count).map(|n| (n as f64 + begin) / rate_per_s * TICK_HZ);
        of_phases(&bins(phases)).unwrap()
    }

    #[test]
    fn poisson_arrivals_are_hardly_ever_taken_for_locked() {
        for (rate_per_s, hold_s) in [(30.0, 2.0), (236.0, 2.0), (150.0, 60.0)] {
            let mut locked = 0;
            for seed in 0..10_000 {
                let mut random = fastrand::Rng::with_seed(seed);
                let (mut at_s, mut phases) = (0.0, Vec::new());
                loop {
                    at_s -= (1.0 - random.f64()).ln() / rate_per_s;
                    if at_s >= hold_s {
                        break;
                    }
                    phases.push(at_s * TICK_HZ);
                }
                locked += u32::from(of_phases(&bins(phases.into_iter())).is_some_and(|one| one.is_locked()));
            }
            assert!(locked <= 20, "{locked} of 10,000 at {rate_per_s}/s for {hold_s} s");
        }
    }

    #[test]
    fn even_arrivals_at_multiples_of_the_tick_are_locked() {
        for per_tick in 1..=12 {
            for begin in [0.03, 0.13, 0.45, 0.97] {
                let found = even(TICK_HZ * f64::from(per_tick), 10.0, begin);
                assert!(found.is_locked(), "{per_tick} per tick from {begin}: {found:?}");
                let harmonic = if per_tick <= 8 { per_tick } else { 16 - per_tick };
                assert_eq!(found.harmonic, harmonic as u32);
            }
        }
        // Every second tick, and twice per three ticks: still one and two phases.
        assert!(even(TICK_HZ / 2.0, 60.0, 0.3).is_locked());
        assert!(even(45.0, 10.0, 0.3).is_locked());
    }

    #[test]
    fn even_arrivals_at_other_rates_are_not() {
        for rate_per_s in
            [29.0, 31.7, 47.0, 390.0, 100.3, 236.0, 247.0, 285.0, 294.0, 299.0, 1_000.7, 50_000.0]
        {
            for begin in [0.0, 0.13, 0.5, 0.999] {
                let found = even(rate_per_s, 10.0, begin);
                assert!(!found.is_locked(), "{rate_per_s}/s from {begin}: {found:?}");
            }
        }
    }

    #[test]
    fn the_statistic_says_how_rare_it_is() {
        // For large n, p = exp(−z).
        assert!((rayleigh_p(4.605_17, 1e9) - 0.01).abs() < 1e-6);
        // For small n, p is uniform if no phase is preferred, with or without bins.
        let mut random = fastrand::Rng::with_seed(11);
        let rare = (0..20_000).filter(|_| {
            let counts = bins((0..20).map(|_| random.f64()));
            of_harmonic(&counts, 20, 1).p < 0.05 * HARMONICS as f64
        });
        let rare = rare.count();
        assert!((880..=1_120).contains(&rare), "{rare} of 20,000 at the 5 % point");
        let one_place = of_phases(&{
            let mut counts = [0; BINS];
            counts[3] = 1_000;
            counts
        });
        let one_place = one_place.unwrap();
        assert_eq!((one_place.count, one_place.resultant), (1_000, 1.0));
        assert!(of_phases(&[0; BINS]).is_none());
        assert!(!of_phases(&[25; BINS]).unwrap().is_locked());
    }

    #[test]
    fn a_few_arrivals_prove_nothing() {
        let mut counts = [0; BINS];
        (counts[2], counts[3]) = (2, 2);
        assert!(!of_phases(&counts).unwrap().is_locked());
    }
}
