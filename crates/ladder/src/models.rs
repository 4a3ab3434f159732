//! Models of throughput against concurrency, as annotations: they never decide a verdict.
//!
//! Models apply to closed loops, where the load is the number of requests or operations in flight, and report only what
//! the evidence supports: `usl` gives intervals and refuses what the loads do not determine, `knee` reports a knee only
//! if a load failed above it. Both are pure functions of the published rungs; their random draws are seeded from the
//! loads.
//! Method and sources: docs/method/models.md.

mod knee;
mod usl;

use std::collections::BTreeMap;

use measure::LoadUnit;
use serde_json::json;

use crate::capacity::Capacity;
use crate::contract::{Conclusion, Rung};
use crate::wording::{show_number, show_share};
pub use knee::{Knee, knee};
pub use usl::{Fit, NotFitted, Peak, fit};

/// What never began to be held is no evidence.
const HOLD_LEAST_S: f64 = 0.01;

/// What the models say of these rungs; nothing where there are cells, rates or other loads than closed ones.
pub(crate) fn conclusions(rungs: &[Rung], capacity: &Capacity) -> Vec<Conclusion> {
    let points = points(rungs);
    let unit = capacity.unit;
    // Next to other programs throughput can have any shape.
    let is_undisturbed = rungs.iter().all(|rung| rung.disturbance.is_none());
    [scalability(&points, unit, is_undisturbed), bend(&points, capacity)].into_iter().flatten().collect()
}

/// Concurrency and throughput per second of each load, ascending; of a load that was held several times, the mean.
fn points(rungs: &[Rung]) -> Vec<(f64, f64)> {
    let is_closed = |rung: &Rung| matches!(rung.load_unit, LoadUnit::InFlight | LoadUnit::Requesters);
    // A rung that says more about this machine than about the server is no evidence; a failed load is.
    let counts = |rung: &Rung| rung.verdict.counts() && rung.hold_s > HOLD_LEAST_S && rung.rate_per_s > 0.0;
    if !rungs.iter().all(|rung| is_closed(rung) && rung.cell.as_ref().is_none_or(BTreeMap::is_empty)) {
        return Vec::new();
    }
    let mut by_load: Vec<(f64, Vec<f64>)> = Vec::new();
    for rung in rungs.iter().filter(|rung| counts(rung)) {
        match by_load.iter_mut().find(|(load, _)| *load == rung.load) {
            Some((_, rates)) => rates.push(rung.rate_per_s),
            None => by_load.push((rung.load, vec![rung.rate_per_s])),
        }
    }
    by_load.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    by_load.iter().map(|(load, rates)| (*load, mean(rates))).collect()
}

fn scalability(points: &[(f64, f64)], unit: LoadUnit, is_undisturbed: bool) -> Option<Conclusion> {
    let fit = match fit(points) {
        Ok(fit) => fit,
        Err(NotFitted::TooFew) => return None,
        Err(NotFitted::NotItsShape { .. }) if !is_undisturbed => return None,
        Err(NotFitted::NotItsShape { error_share }) => {
            let text = format!(
                "The throughput does not follow the universal scalability law (it is off by {} on average), so nothing is \
                 read from that law.",
                show_share(error_share)
            );
            return Some(Conclusion::new(
                "scalability",
                &[text],
                json!({ "fitted": false, "error_share": error_share }),
            ));
        }
    };
    let percent = |share: f64| show_number(share * 100.0);
    let part = |what: &str, (value, (low, high)): (f64, (f64, f64))| {
        format!("{what} {} % ({} to {} %)", percent(value), percent(low), percent(high))
    };
    let mut sentences = vec![format!(
        "By the universal scalability law: {}, {}, with intervals of 95 %.",
        part("contention α", fit.contention),
        part("coherency β", fit.coherency),
    )];
    let most = points.last().map_or(0.0, |point| point.0);
    sentences.push(match fit.peak {
        Peak::At { load, low, high } => format!(
            "Throughput is highest at {} {unit} ({} to {}).",
            show_number(load.round()),
            show_number(low.round()),
            show_number(high.round())
        ),
        Peak::Beyond => format!(
            "No peak up to {} {unit}; what lies further out cannot be read from these loads.",
            show_number((usl::REACH * most).round())
        ),
        Peak::NotIdentifiable => {
            "Where throughput is highest cannot be told from these loads: the peak's interval spans more than a factor of two."
                .to_owned()
        }
    });
    let interval =
        |(value, (low, high)): (f64, (f64, f64))| json!({ "value": value, "low": low, "high": high });
    let peak = match fit.peak {
        Peak::At { load, low, high } => json!({ "load": load, "low": low, "high": high }),
        Peak::Beyond => json!("beyond"),
        Peak::NotIdentifiable => json!("not identifiable"),
    };
    let evidence = json!({
        "fitted": true, "contention": interval(fit.contention), "coherency": interval(fit.coherency),
        "rate_of_one_per_s": fit.rate_of_one, "peak": peak, "error_share": fit.error_share, "loads": points.len(),
    });
    Some(Conclusion::new("scalability", &sentences, evidence))
}

fn bend(points: &[(f64, f64)], capacity: &Capacity) -> Option<Conclusion> {
    // If nothing failed the curve may continue in any way.
    let upper = capacity.upper_bound?;
    let found = knee(points)?;
    if found.load > upper {
        return None;
    }
    let unit = capacity.unit;
    let spread = if found.low == found.high {
        String::new()
    } else {
        format!(", between {} and {} by other readings", show_number(found.low), show_number(found.high))
    };
    let text = format!(
        "Up to {} {unit} more load brings more throughput, beyond that little (Kneedle{spread}).",
        show_number(found.load)
    );
    let evidence = json!({ "load": found.load, "low": found.low, "high": found.high, "loads": points.len() });
    Some(Conclusion::new("knee", &[text], evidence))
}

#[cfg(test)]
mod tests;
