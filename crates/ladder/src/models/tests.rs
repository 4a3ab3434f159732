use super::*;

fn usl(load: f64, rate: f64, alpha: f64, beta: f64) -> f64 {
    rate * load / (1.0 + alpha * (load - 1.0) + beta * load * (load - 1.0))
}

const LOADS: [f64; 12] = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 80.0, 96.0];

fn noisy(alpha: f64, beta: f64, noise: f64, seed: u64) -> Vec<(f64, f64)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut normal = || {
        let (u, v) = (1.0 - random.f64(), random.f64());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    };
    LOADS.iter().map(|load| (*load, usl(*load, 1000.0, alpha, beta) * (noise * normal()).exp())).collect()
}

#[test]
fn usl_planted_parameters_lie_in_their_intervals_as_often_as_these_say() {
    const SERIES: u64 = 1000;
    for (alpha, beta, noise) in
        [(0.05, 0.0005, 0.02), (0.02, 0.0002, 0.05), (0.2, 0.001, 0.01), (0.1, 0.002, 0.03)]
    {
        let (mut alphas, mut betas) = (0, 0);
        for seed in 0..SERIES {
            let Ok(fit) = fit(&noisy(alpha, beta, noise, seed)) else { panic!("no fit") };
            let holds = |(_, (low, high)): (f64, (f64, f64)), truth: f64| low <= truth && truth <= high;
            alphas += u64::from(holds(fit.contention, alpha));
            betas += u64::from(holds(fit.coherency, beta));
        }
        let share = |count: u64| count as f64 / SERIES as f64;
        println!(
            "α {alpha}, β {beta}, noise {noise}: inside {:.1} % and {:.1} %",
            100.0 * share(alphas),
            100.0 * share(betas)
        );
        for count in [alphas, betas] {
            assert!(
                (0.93..=0.97).contains(&share(count)),
                "α {alpha}, β {beta}, noise {noise}: {}",
                share(count)
            );
        }
    }
}

#[test]
fn usl_a_peak_that_the_loads_do_not_tell_is_not_told() {
    const SERIES: u64 = 1000;
    let told = |alpha: f64, beta: f64, noise: f64| {
        let is_told = |seed: &u64| {
            matches!(fit(&noisy(alpha, beta, noise, *seed)).map(|fit| fit.peak), Ok(Peak::At { .. }))
        };
        (0..SERIES).filter(is_told).count()
    };
    // Without coherency there is no peak; with very little it lies at ten times the largest load.
    for (alpha, beta, noise) in [(0.05, 0.0, 0.03), (0.0, 0.0, 0.03), (0.3, 7e-7, 0.03)] {
        let wrong = told(alpha, beta, noise);
        println!("α {alpha}, β {beta}, noise {noise}: a peak is told in {wrong} of {SERIES}");
        assert!(wrong <= SERIES as usize / 100, "α {alpha}, β {beta}: {wrong}");
    }
    let right = told(0.05, 0.0005, 0.02);
    assert!(right >= 950, "a peak within the loads is told: {right} of {SERIES}");
}

#[test]
fn usl_a_peak_within_the_loads_lies_in_its_interval() {
    let truth = ((1.0_f64 - 0.05) / 0.0005).sqrt();
    let holds = |seed: &u64| match fit(&noisy(0.05, 0.0005, 0.02, *seed)).map(|fit| fit.peak) {
        Ok(Peak::At { low, high, .. }) => low <= truth && truth <= high,
        _ => false,
    };
    let inside = (0..1000).filter(holds).count();
    assert!(inside >= 920, "{inside} of 1000");
}

#[test]
fn usl_what_it_cannot_carry_is_refused() {
    let points = noisy(0.05, 0.0005, 0.0, 1);
    assert_eq!(fit(&points[..7]), Err(NotFitted::TooFew));
    // A loop that takes ten requests per tick: straight up to ten, then flat. The law has no such corner.
    let loop_of: Vec<(f64, f64)> = LOADS.iter().map(|load| (*load, 30.0 * load.min(10.0))).collect();
    assert!(matches!(fit(&loop_of), Err(NotFitted::NotItsShape { .. })), "{:?}", fit(&loop_of));
    let exact = fit(&points).expect("a fit");
    assert!(
        (exact.contention.0 - 0.05).abs() < 1e-9 && (exact.coherency.0 - 0.0005).abs() < 1e-9,
        "{exact:?}"
    );
    assert!((exact.rate_of_one - 1000.0).abs() < 1e-6);
}

#[test]
fn knee_a_corner_is_found_and_a_line_has_none() {
    let loads: Vec<f64> = (1..=20).map(f64::from).collect();
    let corner: Vec<(f64, f64)> = loads.iter().map(|load| (*load, 30.0 * load.min(10.0))).collect();
    let found = knee(&corner).expect("a corner");
    assert_eq!(found.load, 10.0);
    assert!(found.low >= 9.0 && found.high <= 11.0, "{found:?}");
    let line: Vec<(f64, f64)> = loads.iter().map(|load| (*load, 30.0 * load)).collect();
    assert_eq!(knee(&line), None);
    assert_eq!(knee(&corner[..5]), None);
    // Rising ever faster is no knee.
    let convex: Vec<(f64, f64)> = loads.iter().map(|load| (*load, load * load)).collect();
    assert_eq!(knee(&convex), None);
}

#[test]
fn knee_noise_alone_bends_no_line() {
    let mut bent = 0;
    for seed in 0..500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let line: Vec<(f64, f64)> = (1..=16)
            .map(|load| (f64::from(load), 30.0 * f64::from(load) * (1.0 + 0.04 * (random.f64() - 0.5))))
            .collect();
        bent += usize::from(knee(&line).is_some());
    }
    assert!(bent <= 5, "{bent} of 500");
}
