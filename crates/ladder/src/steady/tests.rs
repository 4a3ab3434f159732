use super::*;

/// Standard normal noise with the given correlation of neighbours, from a seed.
struct Noise {
    random: fastrand::Rng,
    correlation: f64,
    last: f64,
}

impl Noise {
    fn new(seed: u64, correlation: f64) -> Self {
        let mut noise = Noise { random: fastrand::Rng::with_seed(seed), correlation, last: 0.0 };
        noise.last = noise.normal();
        noise
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.random.f64(), self.random.f64());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn next(&mut self) -> f64 {
        let fresh = self.normal();
        self.last = self.correlation * self.last + (1.0 - self.correlation * self.correlation).sqrt() * fresh;
        self.last
    }
}

fn stationary(seed: u64, length: usize, correlation: f64) -> Vec<f64> {
    let mut noise = Noise::new(seed, correlation);
    (0..length).map(|_| 10.0 + noise.next()).collect()
}

fn share_of(seeds: std::ops::Range<u64>, happens: impl Fn(u64) -> bool) -> f64 {
    let all = (seeds.end - seeds.start) as f64;
    seeds.filter(|&seed| happens(seed)).count() as f64 / all
}

#[test]
fn stationary_noise_is_rarely_cut_and_rarely_called_a_change() {
    for (length, correlation) in [(10, 0.0), (30, 0.0), (60, 0.0), (60, 0.5), (200, 0.0), (200, 0.5)] {
        let cut = share_of(0..2_000, |seed| warm_up(&stationary(seed, length, correlation), 0.1) > 0);
        assert!(cut <= 0.05, "{length} s, correlation {correlation}: cut in {cut}");
        let changed = share_of(0..2_000, |seed| {
            let values: Vec<f64> = stationary(seed, length, correlation).iter().map(|v| v - 8.0).collect();
            change(&values, 0.1).unwrap().0 != Steadiness::Steady
        });
        assert!(changed <= 0.01, "{length} s, correlation {correlation}: a change in {changed}");
    }
}

#[test]
fn a_growing_backlog_is_drifting() {
    for length in [12, 30, 60, 300] {
        let drifting = share_of(0..500, |seed| {
            let mut noise = Noise::new(seed, 0.3);
            let values: Vec<f64> =
                (0..length).map(|at| 20.0 + 200.0 * at as f64 / length as f64 + 5.0 * noise.next()).collect();
            change(&values, 10.0).unwrap().0 == Steadiness::Drifting
        });
        assert!(drifting >= if length < 20 { 0.9 } else { 0.99 }, "{length} s: {drifting}");
    }
}

#[test]
fn a_collapse_late_in_the_hold_is_drifting() {
    for collapse_s in [20, 40, 50, 54] {
        let values: Vec<f64> =
            (0..60).map(|at| if at < collapse_s { 0.01 } else { 0.7 } + 0.001 * f64::from(at % 3)).collect();
        assert_eq!(change(&values, 0.05).unwrap().0, Steadiness::Drifting, "after {collapse_s} s");
        // Only a collapse in the first half could be taken for a warm-up; then the collapsed part is judged.
        assert!(warm_up(&values, 0.01) <= 21);
    }
}

#[test]
fn the_last_four_seconds_are_drifting_when_all_are_worse_than_any_before() {
    let collapsing = |seconds: usize| -> Vec<f64> {
        let mut values = stationary(11, 60, 0.3);
        values[60 - seconds..].iter_mut().for_each(|value| *value += 40.0);
        values
    };
    for seconds in 4..10 {
        assert_eq!(change(&collapsing(seconds), 0.1).unwrap().0, Steadiness::Drifting, "{seconds} s");
    }
    assert_eq!(change(&collapsing(2), 0.1).unwrap().0, Steadiness::Steady, "two odd seconds");
    // Such seconds occurred before, and went away.
    let mut again = collapsing(4);
    again[20..24].iter_mut().for_each(|value| *value += 40.0);
    assert_ne!(change(&again, 0.1).unwrap().0, Steadiness::Drifting);
}

#[test]
fn one_odd_second_is_neither_warm_up_nor_drift() {
    for at in [3, 10, 29, 30, 45, 58, 59] {
        let mut values = stationary(7, 60, 0.0);
        values[at] = 500.0;
        assert_eq!(warm_up(&values, 0.1), 0, "at {at} s");
        assert_eq!(change(&values, 0.1).unwrap().0, Steadiness::Steady, "at {at} s");
    }
}

#[test]
fn a_level_that_falls_or_comes_back_is_unsteady() {
    let falls: Vec<f64> = (0..60).map(|at| if at < 40 { 50.0 } else { 10.0 } + f64::from(at % 2)).collect();
    assert_eq!(change(&falls, 5.0).unwrap().0, Steadiness::Unsteady);
    let comes_back: Vec<f64> =
        (0..60).map(|at| if (15..45).contains(&at) { 50.0 } else { 10.0 } + f64::from(at % 2)).collect();
    assert_ne!(change(&comes_back, 5.0).unwrap().0, Steadiness::Drifting);
}

#[test]
fn a_change_too_small_to_matter_is_none() {
    let values: Vec<f64> = (0..60).map(|at| if at < 30 { 0.010 } else { 0.030 }).collect();
    assert_eq!(change(&values, 0.05).unwrap().0, Steadiness::Steady);
}

#[test]
fn a_series_that_never_settles_is_not_cut() {
    let values: Vec<f64> = (0..60).map(f64::from).collect();
    assert_eq!(warm_up(&values, 0.1), 0);
}

#[test]
fn a_short_series_says_nothing() {
    assert_eq!(warm_up(&[9.0, 1.0, 1.0, 1.0, 1.0], 0.1), 0);
    assert_eq!(change(&[1.0; 5], 0.1), None);
    assert_eq!(change(&[], 0.1), None);
}

#[test]
fn a_warm_up_of_one_second_is_seen() {
    let mut values = stationary(3, 12, 0.0);
    values[0] = 60.0;
    assert_eq!(warm_up(&values, 0.1), 1);
}
