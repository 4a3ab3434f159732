//! How certain it is that the capacity lies between two loads, given how often each load held.
//!
//! The capacity is the load at which half of the holds would pass. The probability that a hold passes falls with the
//! load along a logistic curve over the logarithm of the load; in addition, some holds fail for unrelated reasons. The
//! curve's width and that share are unknown, so every combination on a grid is weighted by its likelihood. A priori all
//! capacities (by their logarithm), widths and shares of the grid are equally likely.
//! The confidence is the weight of the capacities between the two loads, and the interval holds 95 % of all weight.
//! Tests plant capacities and count how often both contain them.
//! Source: Bayes' theorem on a grid; the logistic pass curve is the psychometric function of Wichmann and Hill,
//! Perception & Psychophysics 63 (2001), whose lapse rate is the share of failures without a cause.

/// Widths of the pass curve: at capacity × (1 ± width) 73 % and 27 % of holds pass.
const WIDTHS: [f64; 6] = [0.001, 0.003, 0.01, 0.02, 0.04, 0.08];
/// Shares of holds that fail whatever the load.
const LAPSES: [f64; 5] = [0.0, 0.02, 0.05, 0.1, 0.2];
/// A hold far above the capacity passes by chance with this probability.
const FALSE_PASS: f64 = 0.002;
/// Capacities of the grid between two neighbouring loads, and outside of them.
const STEPS: usize = 48;
/// The grid ends at this factor below the smallest and above the largest load.
const BEYOND: f64 = 4.0;

/// The holds of one load. Holds that are shorter than they should be count in proportion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Holds {
    pub load: f64,
    pub passed: f64,
    pub failed: f64,
}

/// The estimated capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Whereabouts {
    /// the probability that it is between the two bounds, in [0, 1]
    pub confidence: f64,
    /// it is below with probability 0.025, 0.5 and 0.975
    pub quantiles: [f64; 3],
}

/// Where the capacity lies, by what was seen.
///
/// `holds`: one entry per load, ascending, among them both bounds. Loads are > 0.
pub(crate) fn whereabouts(holds: &[Holds], lower: f64, upper: f64) -> Whereabouts {
    let (Some(first), Some(last)) = (holds.first(), holds.last()) else {
        return Whereabouts { confidence: 0.0, quantiles: [0.0, 0.0, f64::INFINITY] };
    };
    let mut edges: Vec<f64> = vec![(first.load / BEYOND).ln()];
    edges.extend(holds.iter().map(|one| one.load.ln()));
    edges.push((last.load * BEYOND).ln());
    let grid: Vec<(f64, f64)> = edges.windows(2).flat_map(|edge| cells(edge[0], edge[1])).collect();
    let logs: Vec<Vec<f64>> = grid.iter().map(|(capacity, _)| curves(holds, *capacity).collect()).collect();
    let most = logs.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let of_cell = |(logs, (_, width)): (&Vec<f64>, &(f64, f64))| {
        logs.iter().map(|log| (log - most).exp()).sum::<f64>() * width
    };
    let weights: Vec<f64> = logs.iter().zip(&grid).map(of_cell).collect();
    let whole: f64 = weights.iter().sum();
    let is_inside = |capacity: f64| (lower.ln()..=upper.ln()).contains(&capacity);
    let inside: f64 =
        grid.iter().zip(&weights).filter(|((at, _), _)| is_inside(*at)).map(|(_, weight)| weight).sum();
    let quantile = |q: f64| {
        let mut sum = 0.0;
        let is_reached = |weight: &f64| {
            sum += weight;
            sum >= q * whole
        };
        let at = weights.iter().position(is_reached).unwrap_or(grid.len() - 1);
        grid[at].0.exp()
    };
    Whereabouts { confidence: inside / whole, quantiles: [0.025, 0.5, 0.975].map(quantile) }
}

/// Middle and width of each cell between two logarithms.
fn cells(from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
    let width = (to - from) / STEPS as f64;
    (0..STEPS).map(move |at| (from + (at as f64 + 0.5) * width, width))
}

/// The logarithm of the chance of what was seen, for a capacity and each curve.
fn curves(holds: &[Holds], capacity: f64) -> impl Iterator<Item = f64> {
    let curves = WIDTHS.iter().flat_map(|width| LAPSES.iter().map(move |lapse| (*width, *lapse)));
    curves.map(move |(width, lapse)| {
        let of_load = |one: &Holds| {
            let holds = 1.0 / (1.0 + ((one.load.ln() - capacity) / width).exp());
            let passes = FALSE_PASS + (1.0 - FALSE_PASS) * (1.0 - lapse) * holds;
            let ln =
                |count: f64, chance: f64| if count == 0.0 { 0.0 } else { count * chance.max(1e-12).ln() };
            ln(one.passed, passes) + ln(one.failed, 1.0 - passes)
        };
        holds.iter().map(of_load).sum()
    })
}
