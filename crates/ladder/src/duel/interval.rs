//! What the blocks of a duel say about one figure: B against A within each block, and the confidence interval.
//!
//! Ratios are compared as logarithms, figures that may be 0 (shares, counts) as differences. The interval is that of
//! Student's t over the blocks. The order within a block is random, so a block's difference is as likely above its
//! centre as below it, whatever the machine does meanwhile and for however long. For such differences Student's t keeps
//! its stated error rate (Efron 1969; Bakirov & Székely 2005 for levels below 8 %), with four blocks as with twenty.
//! If replies never came, the figure is infinite and has no mean. Then only signs count: the interval is that of the
//! median by the sign test, exact for any distribution (Conover 1999, section 3.2).

use crate::duel::looks::{Looks, student_critical};
use crate::figures::{FigureDoc, FigureValue, UnitKind};

/// How two values of a figure are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// B / A, kept as its natural logarithm
    Ratio,
    /// B − A, for what may be 0
    Difference,
}

impl Scale {
    /// How a figure is compared.
    pub fn of(figure: &FigureDoc) -> Scale {
        match figure.unit {
            UnitKind::Share | UnitKind::Count | UnitKind::Ok => Scale::Difference,
            UnitKind::Time | UnitKind::Rate | UnitKind::Bytes | UnitKind::Number => Scale::Ratio,
        }
    }

    /// A value on the scale as people read it: a ratio, or a difference in the figure's unit.
    pub fn plain(self, value: f64) -> f64 {
        match self {
            Scale::Ratio => value.exp(),
            Scale::Difference => value,
        }
    }

    fn compare(self, a: f64, b: f64) -> Option<f64> {
        match self {
            Scale::Ratio => (a > 0.0 && b > 0.0).then(|| (b / a).ln()),
            Scale::Difference => Some(b - a),
        }
    }
}

/// Distributions are kept to 0.1 %; two rounded values differ by no less noise than this, even when they look equal.
const RATIO_SD_LEAST: f64 = 0.0004;

/// What blocks say about a figure, on its scale. A block that says nothing is only counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    /// of the blocks in which both sides have a value
    values: Vec<f64>,
    /// blocks in which the figure was infinite at A alone
    pub a_never: usize,
    /// and at B alone
    pub b_never: usize,
    /// blocks in which it was not measured on either side, or infinite on both
    pub unstated: usize,
    sd_least: f64,
}

impl Pairs {
    /// The blocks' values of A and B, in any order.
    pub fn of(scale: Scale, blocks: &[(FigureValue, FigureValue)]) -> Pairs {
        let sd_least = if scale == Scale::Ratio { RATIO_SD_LEAST } else { 0.0 };
        let mut pairs = Pairs { sd_least, ..Pairs::default() };
        for block in blocks {
            match *block {
                (FigureValue::Value(a), FigureValue::Value(b)) => match scale.compare(a, b) {
                    Some(value) => pairs.values.push(value),
                    None => pairs.unstated += 1,
                },
                (FigureValue::Infinite, FigureValue::Value(_)) => pairs.a_never += 1,
                (FigureValue::Value(_), FigureValue::Infinite) => pairs.b_never += 1,
                _ => pairs.unstated += 1,
            }
        }
        pairs
    }

    /// The same of values that are on the scale already.
    pub fn of_values(values: &[f64]) -> Pairs {
        Pairs { values: values.to_vec(), ..Pairs::default() }
    }

    /// Blocks that say something.
    pub fn count(&self) -> usize {
        self.values.len() + self.a_never + self.b_never
    }

    /// The estimate, on the scale: the mean, or the median where a value is infinite. `None` without any.
    pub fn centre(&self) -> Option<f64> {
        if self.count() == 0 {
            return None;
        }
        if self.is_finite() {
            return Some(self.values.iter().sum::<f64>() / self.values.len() as f64);
        }
        let sorted = self.sorted();
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        // There is no midpoint between the two infinities.
        Some(if low == high || low.is_infinite() { low } else { 0.5 * (low + high) })
    }

    /// The interval of B against A at this look, on the scale. Infinite on a side where nothing is known; `None` before
    /// the first look.
    pub fn range(&self, looks: &Looks) -> Option<(f64, f64)> {
        let level = looks.level(self.count());
        if level <= 0.0 {
            return None;
        }
        Some(if self.is_finite() {
            self.student(looks.critical(self.count()))
        } else {
            self.median_range(level)
        })
    }

    /// The interval that looks only once and misses with probability `level`; `None` below two blocks.
    pub fn range_once(&self, level: f64) -> Option<(f64, f64)> {
        if self.count() < 2 {
            return None;
        }
        let is_finite = self.is_finite();
        Some(if is_finite {
            self.student(student_critical(level, self.count() - 1))
        } else {
            self.median_range(level)
        })
    }

    fn is_finite(&self) -> bool {
        self.a_never + self.b_never == 0
    }

    fn student(&self, critical: f64) -> (f64, f64) {
        let count = self.values.len() as f64;
        let mean = self.values.iter().sum::<f64>() / count;
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = (squares / (count - 1.0)).sqrt().max(self.sd_least);
        let half = critical * sd / count.sqrt();
        (mean - half, mean + half)
    }

    /// From the k-th smallest to the k-th largest value, the largest k for which the true median lies outside with
    /// probability `level` at most.
    fn median_range(&self, level: f64) -> (f64, f64) {
        let sorted = self.sorted();
        let count = sorted.len();
        let mut outside = 0.0;
        let mut ways = 0.5_f64.powi(count as i32);
        let mut cut = 0;
        for below in 0..count.div_ceil(2) {
            outside += 2.0 * ways;
            if outside > level {
                break;
            }
            cut = below + 1;
            ways *= (count - below) as f64 / (below + 1) as f64;
        }
        match cut {
            0 => (f64::NEG_INFINITY, f64::INFINITY),
            cut => (sorted[cut - 1], sorted[count - cut]),
        }
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = vec![f64::NEG_INFINITY; self.a_never];
        sorted.extend(&self.values);
        sorted.extend(std::iter::repeat_n(f64::INFINITY, self.b_never));
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}
