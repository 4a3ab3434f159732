//! The service time: when a request that arrived at a given time is answered, and when the server is frozen.
//!
//! Pure. One queue, first come first served, one server: a request that arrives at `a` while the server is busy until
//! `b` is answered at `max(a, b) + s`, and that is the server's next `b`. Instants are sums of planned times alone, so
//! that a late wake-up delays one answer and never the later ones.
//! With exponential service of mean 1/µ and Poisson arrivals at rate λ < µ the time in the system is exponential, too,
//! with rate µ − λ: p99 = ln 100 / (µ − λ). The random numbers are ours, because the arrivals are the instrument's.
//! Units: ns, of the monotonic clock or since the start.

use std::time::Duration;

/// How long the server takes for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// No time at all.
    None,
    /// Always as long.
    Fixed(Duration),
    /// Exponentially distributed, from a seed: the n-th request takes the same time in every run.
    Exponential {
        /// Mean of the distribution.
        mean: Duration,
        /// Of the random numbers.
        seed: u64,
    },
}

/// A planted stall: the first `length` of every period of `every`, counted from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Freeze {
    /// Above 0 and below `every`.
    pub(super) length: Duration,
    /// From the beginning of one stall to the beginning of the next.
    pub(super) every: Duration,
}

impl Freeze {
    /// When the stall ends that the server is in, if it is in one.
    pub(super) fn end_ns(self, since_start_ns: u64) -> Option<u64> {
        let into_ns = since_start_ns % self.every_ns();
        let length_ns = self.length.as_nanos() as u64;
        (into_ns < length_ns).then_some(since_start_ns - into_ns + length_ns)
    }

    /// When the next stall begins.
    pub(super) fn next_ns(self, since_start_ns: u64) -> u64 {
        (since_start_ns / self.every_ns() + 1) * self.every_ns()
    }

    fn every_ns(self) -> u64 {
        self.every.as_nanos() as u64
    }
}

/// The queue and its server.
#[derive(Debug)]
pub(super) struct Line {
    service: Service,
    random: Random,
    busy_until_ns: u64,
}

impl Line {
    pub(super) fn new(service: Service) -> Line {
        let seed = if let Service::Exponential { seed, .. } = service { seed } else { 0 };
        Line { service, random: Random(seed), busy_until_ns: 0 }
    }

    /// When a request arriving now is answered, after all that arrived before.
    pub(super) fn answer_ns(&mut self, arrival_ns: u64) -> u64 {
        let service_ns = match self.service {
            Service::None => 0,
            Service::Fixed(time) => time.as_nanos() as u64,
            // Rounded, since truncating would shorten the mean by half a nanosecond.
            Service::Exponential { mean, .. } => {
                (-self.random.in_0_1().ln() * mean.as_nanos() as f64).round() as u64
            }
        };
        self.busy_until_ns = self.busy_until_ns.max(arrival_ns) + service_ns;
        self.busy_until_ns
    }
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA'14).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In (0, 1], in steps of 2⁻⁵³: its logarithm is always finite.
    fn in_0_1(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Times in the system of `count` Poisson arrivals at `per_s`, sorted, ns.
    fn times_in_the_system(service: Service, per_s: f64, count: usize) -> Vec<u64> {
        let mut line = Line::new(service);
        let mut random = fastrand::Rng::with_seed(5);
        let mut arrival_ns = 0.0;
        let mut times: Vec<u64> = (0..count)
            .map(|_| {
                arrival_ns += -(1.0 - random.f64()).ln() * 1e9 / per_s;
                line.answer_ns(arrival_ns as u64) - arrival_ns as u64
            })
            .collect();
        times.sort_unstable();
        times
    }

    #[track_caller]
    fn check_within(measured: f64, exact: f64, share: f64) {
        assert!((measured / exact - 1.0).abs() < share, "{measured} instead of {exact}");
    }

    #[test]
    fn one_exponential_server_has_the_percentiles_of_the_theory() {
        let service = Service::Exponential { mean: Duration::from_millis(1), seed: 1 };
        for (per_s, tolerance) in [(100.0, 0.01), (500.0, 0.01), (800.0, 0.02)] {
            let times = times_in_the_system(service, per_s, 2_000_000);
            let quantile = |q: f64| times[(q * times.len() as f64) as usize] as f64 / 1e9;
            check_within(quantile(0.99), 100f64.ln() / (1_000.0 - per_s), tolerance);
            check_within(quantile(0.5), 2f64.ln() / (1_000.0 - per_s), tolerance);
            let mean = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e9;
            check_within(mean, 1.0 / (1_000.0 - per_s), tolerance);
        }
    }

    #[test]
    fn one_fixed_server_waits_half_as_long_on_average() {
        // Pollaczek and Khinchine: mean wait = ρ s / (2 (1 − ρ)).
        let times = times_in_the_system(Service::Fixed(Duration::from_millis(1)), 800.0, 2_000_000);
        let mean_ms = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e6;
        check_within(mean_ms, 1.0 + 0.8 / (2.0 * 0.2), 0.01);
    }

    #[test]
    fn who_comes_together_is_answered_one_after_the_other_and_idle_time_is_not_saved_up() {
        let mut line = Line::new(Service::Fixed(Duration::from_millis(2)));
        assert_eq!([10, 10, 11].map(|at| line.answer_ns(at * MS)), [12 * MS, 14 * MS, 16 * MS]);
        assert_eq!(line.answer_ns(100 * MS), 102 * MS);
        let mut line = Line::new(Service::None);
        assert_eq!([10, 10, 11].map(|at| line.answer_ns(at)), [10, 10, 11]);
    }

    #[test]
    fn the_same_seed_gives_the_same_times_and_another_one_others() {
        let times = |seed| {
            let mut line = Line::new(Service::Exponential { mean: Duration::from_millis(1), seed });
            (0..20).map(|_| line.answer_ns(0)).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
    }

    #[test]
    fn random_numbers_are_those_of_the_paper() {
        // The reference implementation's first numbers for this seed.
        let mut random = Random(1_234_567);
        let numbers = [(); 3].map(|()| random.next());
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_stall_is_the_first_part_of_every_period() {
        let freeze = Freeze { length: Duration::from_millis(100), every: Duration::from_millis(1_000) };
        assert_eq!(freeze.end_ns(0), Some(100 * MS));
        assert_eq!(freeze.end_ns(100 * MS - 1), Some(100 * MS));
        assert_eq!(freeze.end_ns(100 * MS), None);
        assert_eq!(freeze.end_ns(1_000 * MS - 1), None);
        assert_eq!(freeze.end_ns(7_050 * MS), Some(7_100 * MS));
        assert_eq!(freeze.next_ns(0), 1_000 * MS);
        assert_eq!(freeze.next_ns(999 * MS), 1_000 * MS);
        assert_eq!(freeze.next_ns(1_000 * MS), 2_000 * MS);
        let frozen_ms = (0..10_000).filter(|ms| freeze.end_ns(ms * MS).is_some()).count();
        assert_eq!(frozen_ms, 1_000);
    }
}
