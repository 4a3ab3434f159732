//! When requests are planned: one stream per worker, from the plan, the seed and a counter alone.
//!
//! The workers' streams together are the stream of the trial: Poisson streams add up to one; even ones interleave.
//! At first the rate rises linearly, so that a server is not hit by the full load in one instant: with the full rate
//! reached after T, what would be planned at u under the full rate is planned at √(2Tu) until then, and at u + T/2
//! after.
//! Units: ns since the stream's origin.

use plan::{Arrivals, WorkerPlan};

/// The planned instants of one worker.
pub struct Stream {
    arrivals: Arrivals,
    /// between two requests of this worker
    gap_ns: f64,
    /// the first of them, where gaps are equal
    first_ns: f64,
    /// requests that are planned together
    burst: u64,
    climb_ns: f64,
    planned: u64,
    /// of a Poisson stream: the last instant under the full rate
    last_ns: f64,
    random: fastrand::Rng,
}

impl Stream {
    /// The stream of one worker; `plan.rate_per_s` must be > 0. Bursts are as large as there are connections.
    pub fn new(plan: &WorkerPlan) -> Stream {
        let gap_of_all_ns = 1e9 / plan.rate_per_s;
        let workers = plan.workers as f64;
        let (burst, gap_ns, first_ns) = match plan.arrivals {
            Arrivals::Burst => {
                // Each worker's share of a burst is its share of the connections, all at the same instant.
                let period_ns = gap_of_all_ns * plan.units_total as f64;
                (plan.units.max(1), period_ns, plan.stream_phase * period_ns)
            }
            Arrivals::Poisson | Arrivals::Even | Arrivals::Closed => {
                (1, gap_of_all_ns * workers, (plan.worker as f64 + plan.stream_phase) * gap_of_all_ns)
            }
        };
        Stream {
            arrivals: plan.arrivals,
            gap_ns,
            first_ns,
            burst,
            climb_ns: plan.settle_ns as f64 / 2.0,
            planned: 0,
            last_ns: 0.0,
            random: fastrand::Rng::with_seed(plan.seed),
        }
    }

    /// The next instant; never before the last one.
    pub fn next_ns(&mut self) -> u64 {
        let at_ns = match self.arrivals {
            Arrivals::Poisson => {
                // 1 − [0, 1) is never 0, so the logarithm is finite.
                self.last_ns -= (1.0 - self.random.f64()).ln() * self.gap_ns;
                self.last_ns
            }
            Arrivals::Even | Arrivals::Burst | Arrivals::Closed => {
                self.first_ns + (self.planned / self.burst) as f64 * self.gap_ns
            }
        };
        self.planned += 1;
        let climbed_ns = if at_ns < self.climb_ns / 2.0 {
            (2.0 * self.climb_ns * at_ns).sqrt()
        } else {
            at_ns + self.climb_ns / 2.0
        };
        climbed_ns as u64
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use plan::{EchoBots, Scheme};
    use proptest::prelude::*;

    use super::*;

    fn worker(worker: usize, workers: usize, rate_per_s: f64, arrivals: Arrivals) -> WorkerPlan {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        WorkerPlan {
            worker,
            workers,
            first_unit: worker as u64,
            units_total: 8 * workers as u64,
            arrivals,
            seed: 7 + worker as u64,
            rate_per_s,
            stream_phase: 0.25,
            ..WorkerPlan::alone(
                EchoBots { rate_per_s: 1.0, payload_bytes: 1 }.into(),
                8,
                Scheme::Http,
                address,
            )
        }
    }

    fn instants(plan: &WorkerPlan, count: usize) -> Vec<u64> {
        let mut stream = Stream::new(plan);
        (0..count).map(|_| stream.next_ns()).collect()
    }

    #[test]
    fn even_streams_of_two_workers_interleave_to_one() {
        let mut all: Vec<u64> =
            (0..2).flat_map(|index| instants(&worker(index, 2, 1000.0, Arrivals::Even), 5)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).map(|n| 250_000 + n * 1_000_000).collect::<Vec<u64>>());
    }

    #[test]
    fn a_burst_is_as_large_as_there_are_connections() {
        // 16 connections over two workers at 1000/s: a burst of 16 every 16 ms, half of it from each.
        let plan = worker(1, 2, 1000.0, Arrivals::Burst);
        let at = instants(&plan, 20);
        assert!(at[..8].iter().all(|&ns| ns == 4_000_000), "{at:?}");
        assert!(at[8..16].iter().all(|&ns| ns == 20_000_000), "{at:?}");
        assert_eq!(at[16], 36_000_000);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_the_law() {
        let at = instants(&worker(0, 1, 1000.0, Arrivals::Poisson), 100_001);
        let gaps: Vec<f64> = at.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "mean {mean} ms");
        assert!((variance.sqrt() - 1.0).abs() < 0.02, "deviation {} ms", variance.sqrt());
    }

    #[test]
    fn the_rate_climbs_linearly_to_the_full_one() {
        let plan = WorkerPlan { settle_ns: 2_000_000_000, ..worker(0, 1, 1000.0, Arrivals::Even) };
        let at = instants(&plan, 2000);
        let within = |from_ms: u64, to_ms: u64| {
            at.iter().filter(|&&ns| (from_ms * 1_000_000..to_ms * 1_000_000).contains(&ns)).count()
        };
        // A second of ramp is worth half a second at the full rate.
        assert!(within(0, 1000).abs_diff(500) <= 1, "{}", within(0, 1000));
        assert!(within(0, 500).abs_diff(125) <= 1, "{}", within(0, 500));
        assert!(within(1000, 2000).abs_diff(1000) <= 1, "{}", within(1000, 2000));
    }

    proptest! {
        #[test]
        fn instants_never_go_back(
            rate_per_s in 0.1f64..1e6,
            settle_ns in 0u64..10_000_000_000,
            law in 0usize..3,
        ) {
            let arrivals = [Arrivals::Poisson, Arrivals::Even, Arrivals::Burst][law];
            let plan = WorkerPlan { settle_ns, ..worker(1, 3, rate_per_s, arrivals) };
            let at = instants(&plan, 200);
            prop_assert!(at.is_sorted());
        }
    }
}
