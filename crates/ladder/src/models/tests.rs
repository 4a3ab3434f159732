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
    // A curve that rises ever faster has no knee.
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
