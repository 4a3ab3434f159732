//! The universal scalability law (Gunther 1993, 2007): X(N) = λ N / (1 + α (N − 1) + β N (N − 1)), with α, β ≥ 0.
//!
//! N / X is linear in 1/λ, α/λ and β/λ, so the fit is weighted least squares on N / X with errors proportional to it:
//! exact, without a start value that could mislead. Intervals come from a parametric bootstrap of that fit, whose draws
//! have the tails of Student's t for the given number of loads.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Fewer loads than this carry no fit.
pub const LOADS_LEAST: usize = 8;
/// Nothing is predicted for loads beyond this multiple of the largest one.
pub const REACH: f64 = 1.5;
/// A peak whose interval spans more than this factor is not known.
const PEAK_SPAN_MOST: f64 = 2.0;
/// Throughput that is off by more than this in the root mean square does not follow the law.
const ERROR_SHARE_MOST: f64 = 0.1;
const DRAWS: usize = 2000;
const TAIL: f64 = 0.025;

/// A value and its interval of 95 %.
type Estimate = (f64, (f64, f64));

/// A fit and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// λ: the throughput of a load of one, per second
    pub rate_of_one: f64,
    /// α, the share of the work that only one can do at a time
    pub contention: Estimate,
    /// β, the share that each pays to agree with each other
    pub coherency: Estimate,
    /// where throughput is highest
    pub peak: Peak,
    /// the root mean square of the relative errors, corrected for the parameters
    pub error_share: f64,
}

/// Where throughput is highest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Peak {
    /// here
    At {
        /// the load
        load: f64,
        /// begin of its interval of 95 %
        low: f64,
        /// and end
        high: f64,
    },
    /// nowhere up to `REACH` times the largest load
    Beyond,
    /// the loads do not tell
    NotIdentifiable,
}

/// Why there is no fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NotFitted {
    /// fewer than `LOADS_LEAST` loads
    TooFew,
    /// the throughput has another shape
    NotItsShape {
        /// how far it is off, as `Fit::error_share`
        error_share: f64,
    },
}

/// Fits loads and their throughput per second, all above 0.
pub fn fit(points: &[(f64, f64)]) -> Result<Fit, NotFitted> {
    if points.len() < LOADS_LEAST {
        return Err(NotFitted::TooFew);
    }
    let rows: Vec<([f64; 3], f64)> = points.iter().map(|&(load, rate)| row(load, rate)).collect();
    let Some((free, covariance)) = solve(&rows) else { return Err(NotFitted::TooFew) };
    let constrained = constrained(&rows, free);
    let degrees = (points.len() - 3) as f64;
    let squares: f64 = rows.iter().map(|(x, y)| (y - dot(x, &constrained)).powi(2)).sum();
    let error_share = (squares / degrees).sqrt();
    if error_share > ERROR_SHARE_MOST || constrained[0] <= 0.0 {
        return Err(NotFitted::NotItsShape { error_share });
    }
    // The spread is that of the unconstrained fit: a constraint that holds a parameter at 0 must not make it look
    // certain.
    let free_squares: f64 = rows.iter().map(|(x, y)| (y - dot(x, &free)).powi(2)).sum();
    let spread = (free_squares / degrees).sqrt();
    let most = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let draws = draws(free, &covariance, spread, degrees);
    let of = |read: fn(&[f64; 3]) -> f64| -> Estimate {
        let mut values: Vec<f64> = draws.iter().map(read).collect();
        (read(&constrained), quantiles(&mut values))
    };
    let (contention, coherency) = (of(alpha), of(beta));
    Ok(Fit {
        rate_of_one: 1.0 / constrained[0],
        contention,
        coherency,
        peak: peak(&constrained, &draws, most),
        error_share,
    })
}

/// N / X and what it is linear in, both divided by N / X: errors are in proportion to it.
fn row(load: f64, rate: f64) -> ([f64; 3], f64) {
    let y = load / rate;
    ([1.0 / y, (load - 1.0) / y, load * (load - 1.0) / y], 1.0)
}

fn alpha(parameters: &[f64; 3]) -> f64 {
    (parameters[1] / parameters[0]).max(0.0)
}

fn beta(parameters: &[f64; 3]) -> f64 {
    (parameters[2] / parameters[0]).max(0.0)
}

/// Where the derivative is 0; infinite without coherency.
fn peak_of(parameters: &[f64; 3]) -> f64 {
    let (alpha, beta) = (alpha(parameters), beta(parameters));
    if beta > 0.0 { ((1.0 - alpha).max(0.0) / beta).sqrt().max(1.0) } else { f64::INFINITY }
}

fn peak(constrained: &[f64; 3], draws: &[[f64; 3]], most: f64) -> Peak {
    let mut peaks: Vec<f64> = draws.iter().map(peak_of).collect();
    let (low, high) = quantiles(&mut peaks);
    let load = peak_of(constrained);
    match () {
        () if low > REACH * most => Peak::Beyond,
        () if high / low > PEAK_SPAN_MOST || load > REACH * most => Peak::NotIdentifiable,
        () => Peak::At { load, low, high },
    }
}

fn quantiles(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((share * values.len() as f64) as usize).min(values.len() - 1)];
    (at(TAIL), at(1.0 - TAIL))
}

fn dot(x: &[f64; 3], parameters: &[f64; 3]) -> f64 {
    x.iter().zip(parameters).map(|(x, parameter)| x * parameter).sum()
}

/// Least squares, and the inverse of XᵀX; `None` where the loads do not tell the parameters apart.
fn solve(rows: &[([f64; 3], f64)]) -> Option<([f64; 3], [[f64; 3]; 3])> {
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for (x, y) in rows {
        for i in 0..3 {
            right[i] += x[i] * y;
            for j in 0..3 {
                matrix[i][j] += x[i] * x[j];
            }
        }
    }
    // The columns differ by orders of magnitude.
    let scale: [f64; 3] = std::array::from_fn(|i| matrix[i][i].sqrt());
    if scale.contains(&0.0) {
        return None;
    }
    let scaled: [[f64; 3]; 3] =
        std::array::from_fn(|i| std::array::from_fn(|j| matrix[i][j] / (scale[i] * scale[j])));
    let inverse = inverse(&scaled)?;
    let inverse: [[f64; 3]; 3] =
        std::array::from_fn(|i| std::array::from_fn(|j| inverse[i][j] / (scale[i] * scale[j])));
    let parameters = std::array::from_fn(|i| dot(&inverse[i], &right));
    Some((parameters, inverse))
}

/// The least squares with α, β ≥ 0: the best of those that hold none, one or both at 0.
fn constrained(rows: &[([f64; 3], f64)], free: [f64; 3]) -> [f64; 3] {
    if free[1] >= 0.0 && free[2] >= 0.0 {
        return free;
    }
    let squares =
        |parameters: &[f64; 3]| -> f64 { rows.iter().map(|(x, y)| (y - dot(x, parameters)).powi(2)).sum() };
    let with = |second: usize| -> Option<[f64; 3]> {
        let (mut a, mut b, mut c, mut p, mut q) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (x, y) in rows {
            (a, b, c) = (a + x[0] * x[0], b + x[0] * x[second], c + x[second] * x[second]);
            (p, q) = (p + x[0] * y, q + x[second] * y);
        }
        let determinant = a * c - b * b;
        let mut parameters = [0.0; 3];
        parameters[0] = (p * c - q * b) / determinant;
        parameters[second] = (q * a - p * b) / determinant;
        (determinant > 0.0 && parameters[second] >= 0.0).then_some(parameters)
    };
    let alone = {
        let (a, p) = rows.iter().fold((0.0, 0.0), |(a, p), (x, y)| (a + x[0] * x[0], p + x[0] * y));
        [p / a, 0.0, 0.0]
    };
    [with(1), with(2), Some(alone)]
        .into_iter()
        .flatten()
        .min_by(|a, b| squares(a).total_cmp(&squares(b)))
        .unwrap_or(alone)
}

fn inverse(m: &[[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let minor = |i: usize, j: usize| {
        let (a, b) = ((i + 1) % 3, (i + 2) % 3);
        let (c, d) = ((j + 1) % 3, (j + 2) % 3);
        m[a][c] * m[b][d] - m[a][d] * m[b][c]
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * minor(0, j)).sum();
    (determinant.abs() > 1e-12)
        .then(|| std::array::from_fn(|i| std::array::from_fn(|j| minor(j, i) / determinant)))
}

/// Parameters as they might have been fitted: normal with the fit's covariance, over the spread's own uncertainty.
fn draws(centre: [f64; 3], covariance: &[[f64; 3]; 3], spread: f64, degrees: f64) -> Vec<[f64; 3]> {
    let lower = cholesky(covariance);
    let Ok(student) = StudentsT::new(0.0, 1.0, degrees) else { return vec![centre] };
    // The same loads give the same intervals.
    let mut random = fastrand::Rng::with_seed(centre[0].to_bits());
    let mut normal = || {
        let (u, v) = (1.0 - random.f64(), random.f64());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    };
    // A multivariate t has longer tails in every direction than its single parameters' intervals need; so normal draws
    // are stretched to the quantile of t that each single interval has.
    let stretch = student.inverse_cdf(1.0 - TAIL) / 1.959_964;
    (0..DRAWS)
        .map(|_| {
            let z: [f64; 3] = std::array::from_fn(|_| normal() * spread * stretch);
            std::array::from_fn(|i| centre[i] + dot(&lower[i], &z))
        })
        .filter(|draw: &[f64; 3]| draw[0] > 0.0)
        .collect()
}

fn cholesky(m: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let mut lower = [[0.0; 3]; 3];
    for i in 0..3 {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            lower[i][j] = if i == j {
                (m[i][i] - sum).max(0.0).sqrt()
            } else if lower[j][j] > 0.0 {
                (m[i][j] - sum) / lower[j][j]
            } else {
                0.0
            };
        }
    }
    lower
}
