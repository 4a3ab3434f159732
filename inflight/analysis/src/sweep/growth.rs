//! How time grows with size: the model, its intervals, and its name.
//!
//! time = fixed + c · size^k, fitted to the logarithms of the times, since their errors are proportional to them. k
//! gives the shape: 1 is linear. Its interval is that of all k whose best fit is not worse than the best of all by more
//! than chance explains (profile likelihood, F with 1 and n − 3 degrees of freedom). One point for each size, however
//! often it was measured: repeats within a size are no evidence about the shape.

use super::super::statistics::student_t;

/// Fewer sizes do not tell a shape.
pub const SIZES_MIN: usize = 6;

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// How time grows with size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// it does not grow, as far as these figures can tell
    Flat,
    /// k below 1
    SubLinear,
    /// k is 1, or so near that nobody needs to know
    Linear,
    /// k above 1
    SuperLinear,
    /// it grows, and the figures leave open how
    Unclear,
}

impl Shape {
    pub(super) fn name(self) -> &'static str {
        match self {
            Shape::Flat => "flat",
            Shape::SubLinear => "sub-linear",
            Shape::Linear => "linear",
            Shape::SuperLinear => "super-linear",
            Shape::Unclear => "unclear",
        }
    }
}

/// What was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pub shape: Shape,
    /// k
    pub exponent: Estimate,
    /// of the straight line through the times, ns
    pub fixed_ns: Estimate,
    /// of the straight line, ns per byte
    pub ns_per_byte: Estimate,
}

/// Exponents from here to there are called linear: below a tenth of difference caches and page sizes decide.
const NEAR_LINEAR: (f64, f64) = (0.9, 1.1);
/// An interval of the exponent that reaches further than this says nothing about being linear.
const TELLING: (f64, f64) = (0.7, 1.4);
/// Growth over the whole range of less than this share of the fixed part is none.
const FLAT_SHARE: f64 = 0.1;
/// Exponents that are tried: in hundredths.
const EXPONENTS: std::ops::RangeInclusive<u32> = 5..=300;

impl Growth {
    /// From sizes in bytes and times in ns, each above 0. `None` below [`SIZES_MIN`] different sizes.
    pub(super) fn of(points: &[(f64, f64)]) -> Option<Growth> {
        let mut sizes: Vec<f64> = points.iter().map(|(size, _)| *size).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        if sizes.len() < SIZES_MIN || points.iter().any(|(size, ns)| *size <= 0.0 || *ns <= 0.0) {
            return None;
        }
        let line = Fit::of(points, 1.0);
        let (fixed_ns, ns_per_byte) = line.intervals(points);
        let fits: Vec<Fit> =
            EXPONENTS.map(|hundredths| Fit::of(points, f64::from(hundredths) / 100.0)).collect();
        let best = fits.iter().min_by(|one, other| one.error.total_cmp(&other.error))?;
        let degrees = points.len() - 3;
        let allowed = best.error * (1.0 + student_t(degrees).powi(2) / degrees as f64) + f64::EPSILON;
        let plausible = || fits.iter().filter(|fit| fit.error <= allowed).map(|fit| fit.exponent);
        let exponent = Estimate {
            value: best.exponent,
            low: plausible().fold(f64::INFINITY, f64::min),
            high: plausible().fold(0.0, f64::max),
        };
        let largest = sizes.last()?;
        let grows = best.slope * largest.powf(best.exponent);
        let shape = match exponent {
            _ if ns_per_byte.low <= 0.0 && grows < FLAT_SHARE * best.fixed
                || grows < FLAT_SHARE / 2.0 * best.fixed =>
            {
                Shape::Flat
            }
            Estimate { low, .. } if low > NEAR_LINEAR.1 => Shape::SuperLinear,
            Estimate { high, .. } if high < NEAR_LINEAR.0 => Shape::SubLinear,
            Estimate { low, high, .. } if low >= TELLING.0 && high <= TELLING.1 => Shape::Linear,
            _ => Shape::Unclear,
        };
        Some(Growth { shape, exponent, fixed_ns, ns_per_byte })
    }
}

/// fixed + slope · size^exponent, neither below 0.
struct Fit {
    exponent: f64,
    fixed: f64,
    slope: f64,
    /// squares of the differences of logarithms
    error: f64,
}

/// Weighted sums over the points, x being the power of the size.
#[derive(Default)]
struct Sums {
    weight: f64,
    x: f64,
    xx: f64,
    y: f64,
    xy: f64,
}

impl Sums {
    fn of(points: &[(f64, f64)], exponent: f64, weight: impl Fn(f64, f64) -> f64) -> Sums {
        points.iter().fold(Sums::default(), |sums, (size, ns)| {
            let (x, weight) = (size.powf(exponent), weight(*size, *ns));
            Sums {
                weight: sums.weight + weight,
                x: sums.x + weight * x,
                xx: sums.xx + weight * x * x,
                y: sums.y + weight * ns,
                xy: sums.xy + weight * x * ns,
            }
        })
    }

    fn determinant(&self) -> f64 {
        self.weight * self.xx - self.x * self.x
    }
}

/// Weights follow the fit; a handful of rounds settles them.
const ROUNDS: usize = 12;

impl Fit {
    fn of(points: &[(f64, f64)], exponent: f64) -> Fit {
        let mut fit = Fit { exponent, fixed: 0.0, slope: 0.0, error: f64::INFINITY };
        for round in 0..ROUNDS {
            let weight = |size: f64, ns: f64| {
                let expected = if round == 0 { ns } else { fit.at(size) };
                expected.max(f64::MIN_POSITIVE).powi(-2)
            };
            let sums = Sums::of(points, exponent, weight);
            let slope = (sums.weight * sums.xy - sums.x * sums.y) / sums.determinant();
            let fixed = (sums.y - slope * sums.x) / sums.weight;
            // If one part would be below 0, the other one alone fits best.
            (fit.fixed, fit.slope) = match (fixed, slope) {
                (_, slope) if slope < 0.0 || !slope.is_finite() => (sums.y / sums.weight, 0.0),
                (fixed, _) if fixed < 0.0 => (0.0, sums.xy / sums.xx),
                both => both,
            };
        }
        fit.error = points.iter().map(|(size, ns)| (ns / fit.at(*size)).ln().powi(2)).sum();
        fit
    }

    fn at(&self, size: f64) -> f64 {
        self.fixed + self.slope * size.powf(self.exponent)
    }

    /// Of the fixed part and the slope.
    fn intervals(&self, points: &[(f64, f64)]) -> (Estimate, Estimate) {
        let sums = Sums::of(points, self.exponent, |size, _| self.at(size).powi(-2));
        let degrees = points.len() - 2;
        let variance = self.error / degrees as f64;
        let half = |of: f64| student_t(degrees) * (variance * of / sums.determinant()).sqrt();
        let around =
            |value: f64, half: f64| Estimate { value, low: (value - half).max(0.0), high: value + half };
        (around(self.fixed, half(sums.xx)), around(self.slope, half(sums.weight)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 8] = [16.0, 64.0, 256.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0];

    fn planted(of: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        SIZES.iter().map(|size| (*size, of(*size))).collect()
    }

    /// The same with errors in proportion, evenly up to `share`.
    fn noisy(random: &mut fastrand::Rng, share: f64, of: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        planted(of)
            .into_iter()
            .map(|(size, ns)| (size, ns * (1.0 + share * (2.0 * random.f64() - 1.0))))
            .collect()
    }

    fn shape(points: &[(f64, f64)]) -> Shape {
        Growth::of(points).unwrap().shape
    }

    #[test]
    fn exact_figures_get_their_names_and_their_truth() {
        let line = Growth::of(&planted(|size| 12_000.0 + 0.3 * size)).unwrap();
        assert_eq!(line.shape, Shape::Linear);
        assert!((line.fixed_ns.value - 12_000.0).abs() < 1.0 && (line.ns_per_byte.value - 0.3).abs() < 1e-4);
        assert_eq!(shape(&planted(|size| 12_000.0 + 1e-4 * size * size)), Shape::SuperLinear);
        assert_eq!(shape(&planted(|size| 12_000.0 + 0.3 * size + 3e-6 * size * size)), Shape::SuperLinear);
        assert_eq!(shape(&planted(|size| 1000.0 + 40.0 * size.sqrt())), Shape::SubLinear);
        assert_eq!(shape(&planted(|_| 12_000.0)), Shape::Flat);
        assert_eq!(shape(&planted(|size| 12_000.0 + 0.001 * size)), Shape::Flat);
        assert_eq!(shape(&planted(|size| 0.3 * size)), Shape::Linear);
    }

    #[test]
    fn what_was_published_is_super_linear() {
        // Gets of 3 B, 1 KB and 100 KB at 90,933, 23,591 and 105 per second; the sizes between on the power that joins them.
        let points: Vec<(f64, f64)> = [3.0, 32.0, 256.0, 1024.0, 8192.0, 32_768.0, 102_400.0]
            .iter()
            .map(|size: &f64| (*size, 11_000.0 + 31_400.0 * (size / 1024.0).powf(1.239)))
            .collect();
        assert_eq!(shape(&points), Shape::SuperLinear);
    }

    #[test]
    fn too_few_sizes_tell_nothing() {
        let points = planted(|size| 1000.0 + size);
        assert!(Growth::of(&points[..5]).is_none());
        assert!(Growth::of(&[points[0]; 9]).is_none());
        assert!(Growth::of(&points[..6]).is_some());
    }

    #[test]
    fn noise_seldom_gives_a_line_another_name() {
        let mut random = fastrand::Rng::with_seed(11);
        let (mut wrong, mut linear) = (0, 0);
        for _ in 0..200 {
            match shape(&noisy(&mut random, 0.1, |size| 12_000.0 + 0.5 * size)) {
                Shape::SuperLinear | Shape::SubLinear | Shape::Flat => wrong += 1,
                Shape::Linear => linear += 1,
                Shape::Unclear => {}
            }
        }
        assert!(wrong <= 10, "{wrong} of 200 were called something else");
        assert!(linear >= 100, "only {linear} of 200 were called linear");
    }

    #[test]
    fn noise_does_not_hide_a_square() {
        let mut random = fastrand::Rng::with_seed(12);
        let found = |share: f64, random: &mut fastrand::Rng| {
            let one = |random: &mut fastrand::Rng| {
                shape(&noisy(random, share, |size| 12_000.0 + 0.3 * size + 2e-5 * size * size))
            };
            (0..100).filter(|_| one(random) == Shape::SuperLinear).count()
        };
        assert!(found(0.1, &mut random) >= 90);
        assert!(found(0.3, &mut random) >= 50);
    }

    #[test]
    fn the_intervals_of_a_line_hold_the_truth_as_often_as_they_say() {
        let mut random = fastrand::Rng::with_seed(13);
        let (mut fixed, mut slope) = (0, 0);
        for _ in 0..400 {
            let line = Growth::of(&noisy(&mut random, 0.1, |size| 12_000.0 + 0.5 * size)).unwrap();
            let holds = |estimate: Estimate, truth: f64| estimate.low <= truth && truth <= estimate.high;
            fixed += usize::from(holds(line.fixed_ns, 12_000.0));
            slope += usize::from(holds(line.ns_per_byte, 0.5));
        }
        assert!(
            (360..=396).contains(&fixed) && (360..=396).contains(&slope),
            "{fixed} and {slope} of 400, 380 expected"
        );
    }
}
