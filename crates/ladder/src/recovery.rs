//! How long a server takes after an overload until its objectives are met again.
//!
//! The load drops at one instant and no client leaves, so nothing lies between the overload and what is judged here.
//! Each second is judged by the answers received in it to requests planned after the overload. The recovery time is the
//! number of seconds before the first `SECONDS_IN_A_ROW` consecutive seconds that are all met; later ones are ignored.
//! A second that is met counts whatever disturbed it. A missed second that disturbances explain may or may not be the
//! server's fault; if that changes the answer, the answer is unknown.
//! Units: s since the end of the overload; the resolution is one second.

use measure::AfterHold;
use measure::trial::kind;
use measure::{Flow, Measure, Trial};
use serde_json::{Value, json};

use crate::disturbance::{Disturbance, disturbance};
use crate::figures;
use crate::judge::{self, Seen};
use crate::objective::Objective;
use crate::wording::show_number;

/// The server has recovered when this many seconds in a row meet the objectives; a queue that empties and fills again shows
/// within these.
pub const SECONDS_IN_A_ROW: usize = 5;

/// What a second says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// every objective that one second can state was met
    Met,
    /// one was not, or nothing was answered
    NotMet,
    /// one was not, and what else took CPU in this second or in the one before may be why
    Disturbed,
    /// no objective can be stated by one second
    Untold,
}

impl Second {
    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            Second::Met => "met",
            Second::NotMet => "not met",
            Second::Disturbed => "not met, disturbed",
            Second::Untold => "cannot be told",
        }
    }

    /// Judges one second of `AfterHold`.
    pub fn of(second: &Trial, objectives: &[Objective]) -> Second {
        let limit_ns = objectives.iter().filter_map(Objective::response_bound_ns).min_by(f64::total_cmp);
        let second = &without_young_requests(second.clone(), limit_ns);
        let disturbance = disturbance(second);
        let seen: Vec<Second> =
            objectives.iter().map(|objective| Second::by(objective, second, &disturbance)).collect();
        let is_silent =
            figures::questions(second).answered == 0 && second.ops.values().all(|flow| flow.told == 0);
        // Silence of a whole second is explained only by a thread that had no core during it.
        match is_silent {
            true if disturbance.any() && disturbance.explains_messages >= 1.0 => Second::Disturbed,
            true => Second::NotMet,
            false if seen.contains(&Second::NotMet) => Second::NotMet,
            false if seen.contains(&Second::Disturbed) => Second::Disturbed,
            false if seen.contains(&Second::Met) => Second::Met,
            false => Second::Untold,
        }
    }

    fn by(objective: &Objective, second: &Trial, disturbance: &Disturbance) -> Second {
        match judge::look(objective, second, disturbance) {
            Seen::Met | Seen::MetInFairSeconds => Second::Met,
            Seen::NotMet { .. } => Second::NotMet,
            // A single second always has few samples, and five of them in a row decide.
            Seen::Disturbed { .. } if is_unexplained(objective, second, disturbance) => Second::NotMet,
            Seen::Disturbed { .. } => Second::Disturbed,
            // If a percentile has too few samples to be stated, the share beyond the bound is still known.
            Seen::CannotTell { .. } => match objective.is_met_by_share(second) {
                Some(true) => Second::Met,
                Some(false) if disturbance.any() && !is_unexplained(objective, second, disturbance) => {
                    Second::Disturbed
                }
                Some(false) => Second::NotMet,
                None => Second::Untold,
            },
        }
    }
}

fn is_unexplained(objective: &Objective, second: &Trial, disturbance: &Disturbance) -> bool {
    let explained = disturbance.explains_messages.max(disturbance.explains_ticks);
    explained < 1.0 && objective.is_missed_without(second, explained)
}

/// A request that is open when its second ends was not missed yet: its answer counts in the second in which it comes. By Little's law
/// no more are open than are sent within the bound of the response, if all answers keep it; what is more has waited too long.
/// Without such a bound an open request counts once it was given up.
fn without_young_requests(mut second: Trial, limit_ns: Option<f64>) -> Trial {
    let young = |flow: &Flow| match limit_ns {
        Some(limit_ns) => (flow.sent as f64 * limit_ns / 1e9).ceil() as u64,
        None => u64::MAX,
    };
    for flow in second.ops.values_mut() {
        flow.open_after = flow.open_after.saturating_sub(young(flow));
    }
    second
}

/// How it came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// after so many seconds
    Recovered(usize),
    /// not within so many seconds; a few that were met at the end are too few to count
    NotRecovered(usize),
    /// its process ended
    Exited,
    /// the reason
    Unknown(String),
}

/// Why no further second was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// the time was up, or the recovery was known
    AsPlanned,
    /// the server's process ended
    ByExit,
    /// the user ended the run, or a worker broke down
    Early,
}

/// The result of the seconds after an overload, in order.
pub fn recovery(seconds: &[Second], ended: Ended) -> Found {
    let seconds = &with_aftermath(seconds);
    let untold = seconds.iter().filter(|second| **second == Second::Untold).count();
    let disturbed = seconds.iter().filter(|second| **second == Second::Disturbed).count();
    let at_least = recovered_after(seconds, |second| matches!(second, Second::Met | Second::Disturbed));
    let at_most = recovered_after(seconds, |second| second == Second::Met);
    match (at_least, at_most, ended) {
        (_, _, Ended::ByExit) => Found::Exited,
        _ if untold > 0 => {
            Found::Unknown("no objective can be stated by the answers of one second".to_owned())
        }
        (Some(least), Some(most), _) if least == most => Found::Recovered(most),
        (None, None, Ended::AsPlanned) if seconds.len() >= SECONDS_IN_A_ROW => {
            let last = seconds.iter().rev().take_while(|second| **second != Second::NotMet).count();
            Found::NotRecovered(seconds.len() - last)
        }
        (None, None, _) => Found::Unknown(format!("only {} s were seen", seconds.len())),
        (at_least, at_most, _) => {
            let shown = |bound: Option<usize>| bound.map_or("more".to_owned(), |seconds| seconds.to_string());
            Found::Unknown(format!(
                "{} to {} s: in or right before {disturbed} of {} s something else took CPU, which may be why they were not met",
                shown(at_least),
                shown(at_most),
                seconds.len()
            ))
        }
    }
}

/// What a server could not do while something else took CPU it still has to do afterwards: the seconds that follow without one
/// that was met between are as uncertain.
fn with_aftermath(seconds: &[Second]) -> Vec<Second> {
    let mut is_aftermath = false;
    let uncertain = |second: &Second| {
        is_aftermath = match second {
            Second::Disturbed => true,
            Second::NotMet => is_aftermath,
            Second::Met | Second::Untold => false,
        };
        if is_aftermath { Second::Disturbed } else { *second }
    };
    seconds.iter().map(uncertain).collect()
}

/// Whether the last seconds are all met, so that nothing further needs to be seen.
pub fn is_over(seconds: &[Second]) -> bool {
    recovered_after(seconds, |second| second == Second::Met).is_some()
}

/// Seconds before those at the end that are all good; `None` where these are too few.
fn recovered_after(seconds: &[Second], is_good: impl Fn(Second) -> bool) -> Option<usize> {
    let last = seconds.iter().rev().take_while(|second| is_good(**second)).count();
    (last >= SECONDS_IN_A_ROW).then_some(seconds.len() - last)
}

/// What is published of a rung whose load went down after its hold; `None` where it did not.
///
/// `recovery_s` is null unless `outcome` is `recovered`, `not_within_s` unless it is `not recovered`; `seconds` has a word and
/// `response_mean_ns` a mean for each.
pub fn figures_of(trial: &Trial, after: &AfterHold, objectives: &[Objective]) -> Option<Value> {
    let load: f64 = trial.event(kind::RECOVERY)?.text.parse().ok()?;
    let cut_by = trial.event(kind::RECOVERY_ENDS).map_or(kind::INTERRUPTED, |event| event.text.as_str());
    let ended = match trial.event(kind::SUBJECT_EXITED) {
        Some(_) => Ended::ByExit,
        None if cut_by.is_empty() => Ended::AsPlanned,
        None => Ended::Early,
    };
    // A second without a report says nothing.
    let judged =
        |number| after.second(number).map_or(Second::Untold, |second| Second::of(&second, objectives));
    let mut seconds: Vec<Second> = Vec::new();
    for number in 0..after.count() {
        seconds.push(judged(number));
        if is_over(&seconds) {
            break;
        }
    }
    let found = recovery(&seconds, ended);
    let (outcome, recovery_s, not_within_s, why) = match &found {
        Found::Recovered(seconds) => ("recovered", Some(*seconds), None, None),
        Found::NotRecovered(within) => ("not recovered", None, Some(*within), None),
        Found::Exited => ("exited", None, None, None),
        Found::Unknown(why) => ("unknown", None, None, Some(why)),
    };
    let means = (0..seconds.len() as u32).map(|number| {
        after.second(number).and_then(|second| second.distribution(Measure::Response).mean_ns())
    });
    Some(json!({
        "load": load, "outcome": outcome, "recovery_s": recovery_s, "not_within_s": not_within_s,
        "resolution_s": 1, "why": why,
        "seconds_in_a_row": SECONDS_IN_A_ROW, "seconds": seconds.iter().map(|second| second.name()).collect::<Vec<_>>(),
        "response_mean_ns": means.collect::<Vec<_>>(),
    }))
}

/// `7 s after 375`, `not within 30 s after 500` and so on, of what `figures_of` made.
pub(crate) fn in_words(figures: &Value, load: f64) -> Option<String> {
    let after = show_number(load);
    let number = |name: &str| figures.get(name).and_then(Value::as_u64);
    Some(match (figures.get("outcome")?.as_str()?, number("recovery_s"), number("not_within_s")) {
        ("recovered", Some(seconds), _) => format!("{seconds} s after {after}"),
        ("not recovered", _, Some(within)) => format!("not within {within} s after {after}"),
        ("exited", ..) => format!("never after {after}, because the server exited"),
        _ => format!("unknown after {after} ({})", figures.get("why").and_then(Value::as_str).unwrap_or("")),
    })
}

#[cfg(test)]
mod tests;
