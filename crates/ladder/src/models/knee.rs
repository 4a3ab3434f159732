//! Kneedle (Satopää, Albrecht, Irwin, Raghavan 2011): where a rising, flattening curve bends.
//!
//! The curve is normalised to the unit square. Its knee is the first local maximum of the height above the diagonal
//! after which the height falls by more than S times the mean step. One sensitivity and one set of points prove little,
//! so the knee is also computed without each single point and with other sensitivities, and the spread of these results
//! is reported.

/// Fewer points have no shape.
const POINTS_LEAST: usize = 6;
const SENSITIVITY: f64 = 1.0;
const SENSITIVITIES: [f64; 2] = [0.5, 2.0];
/// A curve that rises above the diagonal by less than this is straight.
const BEND_LEAST: f64 = 0.1;

/// Where a curve bends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// the load
    pub load: f64,
    /// the lowest of the other readings
    pub low: f64,
    /// and the highest
    pub high: f64,
}

/// The knee of loads, ascending, and their throughput. `None`: the curve is straight, or readings of it do not agree that
/// there is one.
pub fn knee(points: &[(f64, f64)]) -> Option<Knee> {
    let load = reading(points, SENSITIVITY)?;
    let without = (1..points.len().saturating_sub(1)).map(|left_out| {
        let rest: Vec<(f64, f64)> =
            points.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, point)| *point).collect();
        reading(&rest, SENSITIVITY)
    });
    let others: Vec<Option<f64>> =
        without.chain(SENSITIVITIES.into_iter().map(|sensitivity| reading(points, sensitivity))).collect();
    let found: Vec<f64> = others.iter().flatten().copied().collect();
    if 2 * found.len() < others.len() {
        return None;
    }
    let (low, high) = found.iter().fold((load, load), |(low, high), one| (low.min(*one), high.max(*one)));
    Some(Knee { load, low, high })
}

fn reading(points: &[(f64, f64)], sensitivity: f64) -> Option<f64> {
    if points.len() < POINTS_LEAST {
        return None;
    }
    let (first, last) = (points.first()?.0, points.last()?.0);
    let (low, high) = points
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), point| (low.min(point.1), high.max(point.1)));
    if last <= first || high <= low {
        return None;
    }
    let above: Vec<f64> = points
        .iter()
        .map(|(load, rate)| (rate - low) / (high - low) - (load - first) / (last - first))
        .collect();
    let step = 1.0 / (points.len() - 1) as f64;
    let mut candidate: Option<usize> = None;
    for at in 1..points.len() {
        let is_maximum = at + 1 < points.len() && above[at] >= above[at - 1] && above[at] > above[at + 1];
        if is_maximum && above[at] >= BEND_LEAST && candidate.is_none_or(|known| above[at] > above[known]) {
            candidate = Some(at);
        }
        if let Some(known) = candidate
            && above[at] < above[known] - sensitivity * step
        {
            return Some(points[known].0);
        }
    }
    None
}
