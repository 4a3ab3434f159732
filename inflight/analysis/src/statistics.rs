//! Means, spreads, and intervals of Student's t.

/// Mean and standard deviation.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// of the values
    pub mean: f64,
    /// of the sample; 0 below two values
    pub stddev: f64,
}

/// A ratio: its geometric mean with the 95 % interval of Student's t over the logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// geometric
    pub mean: f64,
    /// of the interval
    pub low: f64,
    /// of the interval
    pub high: f64,
}

impl Ratio {
    /// From the logarithms of ratios that were measured independently. `None` below two of them.
    pub fn of_logs(logs: &[f64]) -> Option<Ratio> {
        if logs.len() < 2 {
            return None;
        }
        let Spread { mean, stddev } = spread(logs);
        let half = student_t(logs.len() - 1) * stddev / (logs.len() as f64).sqrt();
        Some(Ratio { mean: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() })
    }
}

pub(super) fn spread(values: &[f64]) -> Spread {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let stddev = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
    Spread { mean, stddev }
}

/// Two-sided 95 % quantile of Student's t.
pub(super) fn student_t(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    // Beyond the table its last value is conservative.
    TABLE[degrees.clamp(1, TABLE.len()) - 1]
}
