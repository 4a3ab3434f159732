//! How long the bots of a rung take to arrive, and the message about it before a climb.
//!
//! Pure arithmetic over the plan. A rule applies to the whole ladder; a rung's pace follows from it and the rung's
//! units.
//! Units: `_ns`; units of load are games, clients, requesters or, if the load is a rate, connections.
//! Not here: the syntax (`units::ramp`), when a unit really arrives (`engine`).

use ladder::wording::show_ns;

use crate::plan::{Plan, Ramp, RampRule};
use crate::units::Duration;

/// A ramp that takes longer than this may not be what its author meant, ns.
const LONG_NS: u64 = 300_000_000_000;
/// A gap of at least this may have been meant as the time of a whole ramp, ns.
const TOTAL_LEAST_NS: u64 = 1_000_000_000;
/// What the hint suggests where a gap is too short to have been meant as the whole, ns.
const TOTAL_USUAL_NS: u64 = 60_000_000_000;

impl RampRule {
    /// The pace of a rung of so many units of load.
    ///
    /// A total is spread evenly: the last unit arrives one gap before it ends, and a single unit at once.
    pub fn of(self, units: u64) -> Ramp {
        match self {
            RampRule::Pace(pace) => pace,
            RampRule::Total { within: 0 } => Ramp::AtOnce,
            RampRule::Total { within } => Ramp::PerSecond(units.max(1) as f64 / (within as f64 / 1e9)),
        }
    }
}

/// From the first unit's arrival to the last one's, ns.
pub fn length_ns(ramp: Ramp, units: u64) -> u64 {
    let gaps = units.saturating_sub(1);
    match ramp {
        Ramp::Every(gap_ns) => gaps.saturating_mul(gap_ns),
        // A float converts to an integer by saturating.
        Ramp::PerSecond(rate_per_s) => (gaps as f64 / rate_per_s * 1e9) as u64,
        Ramp::AtOnce => 0,
    }
}

/// How the bots arrive and how long the largest rung's ramp takes, to be said before the climb; `None` where all arrive at
/// once. Where it takes more than five minutes the sentence says how to set the total instead.
pub fn ramp_sentence(plan: &Plan) -> Option<String> {
    let largest = plan.ladder.rungs.iter().copied().fold(0.0, f64::max);
    let units = plan.bots.units(largest);
    let (one, several) = plan.bots.unit_names();
    let named = if units == 1 { one } else { several };
    let total_ns = length_ns(plan.ladder.ramp.of(units), units);
    let takes = format!("{} for {units} {named}", show_length(total_ns));
    let mut sentence = match plan.ladder.ramp {
        RampRule::Pace(Ramp::AtOnce) => return None,
        RampRule::Pace(Ramp::Every(gap_ns)) => {
            format!("ramp: one {one} every {}, {takes}", show_ns(gap_ns as f64))
        }
        RampRule::Pace(Ramp::PerSecond(rate)) => format!("ramp: {rate} {several} per second, {takes}"),
        RampRule::Total { within } => format!(
            "ramp: all {several} of a rung within {}, one every {} for {units} {named}",
            show_length(within),
            show_ns(within as f64 / units.max(1) as f64)
        ),
    };
    if total_ns > LONG_NS && !matches!(plan.ladder.ramp, RampRule::Total { .. }) {
        let total = Duration(match plan.ladder.ramp {
            RampRule::Pace(Ramp::Every(gap_ns)) if gap_ns >= TOTAL_LEAST_NS => gap_ns,
            _ => TOTAL_USUAL_NS,
        });
        let shown = show_length(total.0);
        sentence += &format!("; for {shown} in all write --ramp {total}/all");
    }
    Some(sentence)
}

/// `38 ms`, `60 s`, `99 minutes`, `16.7 hours`
pub fn show_length(ns: u64) -> String {
    let minutes = ns as f64 / 60e9;
    let at_most_one_decimal = |value: f64| {
        let text = format!("{value:.1}");
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    match ns {
        0 => "0 s".to_owned(),
        ns if ns < LONG_NS => show_ns(ns as f64),
        _ if minutes < 180.0 => format!("{} minutes", at_most_one_decimal(minutes)),
        _ => format!("{} hours", at_most_one_decimal(minutes / 60.0)),
    }
}

#[cfg(test)]
mod tests;
