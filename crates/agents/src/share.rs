//! Which workers of a trial are whose. Pure.

use std::ops::Range;

/// Deals `workers` out in order, in proportion to `weights` (cores), so that the sum is `workers`: agent i plays the range i,
/// which may be empty. Weights of 0 count as 1.
pub fn shares(workers: usize, weights: &[u32]) -> Vec<Range<usize>> {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight.max(1))).sum();
    let mut before = 0u64;
    let end = |weight: u64| (weight * workers as u64 * 2 + total) / (2 * total.max(1));
    let of_one = |&weight: &u32| {
        let from = end(before);
        before += u64::from(weight.max(1));
        from as usize..end(before) as usize
    };
    weights.iter().map(of_one).collect()
}

/// How many of `units` of load, dealt out in turn over `workers`, these workers have.
pub fn units_of(range: &Range<usize>, units: u64, workers: usize) -> u64 {
    range.clone().map(|worker| units.saturating_sub(worker as u64).div_ceil(workers.max(1) as u64)).sum()
}

/// Of all `bots` of a load, those of the workers that have `own` of its `units`.
pub fn bots_of(bots: u64, own: u64, units: u64) -> u64 {
    share_of(bots as f64, own, units).round() as u64
}

/// Of something of all `units` of a load, what `own` of them have.
pub fn share_of(all: f64, own: u64, units: u64) -> f64 {
    all * own as f64 / units.max(1) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_worker_is_played_once_and_every_unit_too(
            workers in 0usize..200, weights in proptest::collection::vec(0u32..64, 1..20), units in 0u64..10_000
        ) {
            let shares = shares(workers, &weights);
            let played: Vec<usize> = shares.iter().cloned().flatten().collect();
            prop_assert_eq!(played, (0..workers).collect::<Vec<_>>());
            if workers > 0 {
                let sum: u64 = shares.iter().map(|range| units_of(range, units, workers)).sum();
                prop_assert_eq!(sum, units);
            }
        }
    }

    #[test]
    fn machines_with_more_cores_play_more_workers() {
        assert_eq!(shares(8, &[2, 4, 2]), [0..2, 2..6, 6..8]);
        assert_eq!(shares(4, &[2, 2]), [0..2, 2..4]);
        assert_eq!(shares(1, &[2, 2]), [0..1, 1..1]);
    }
}
