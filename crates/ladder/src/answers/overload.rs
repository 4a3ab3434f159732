//! Goodput beyond the capacity: the good answers per second that a server still gives to more load than it holds.
//!
//! A good answer is a right one within the tightest bound that an objective sets on the response; without such a bound, any
//! right one. Disturbances only ever lower a goodput: one that stayed high did so despite them, and of one that fell as much is
//! the server's as they do not explain (`Disturbance::explains_messages`). Units: per second of the judged hold.

use measure::{Measure, Trial};
use serde_json::{Value, json};

use crate::contract::{Climb, Conclusion, Rung};
use crate::figures;
use crate::judge::{Evidence, SERVER_EXITED, Verdict};
use crate::objective::Objective;
use crate::wording::{show_ns, show_number, show_share};

/// A server that keeps this share of its goodput holds its level.
const KEPT_SHARE: f64 = 0.9;
/// One that keeps less than this has collapsed.
const COLLAPSED_SHARE: f64 = 0.5;

/// Good answers of a trial; `None` where nothing is answered, as in a room that only receives.
pub(super) fn goodput(trial: &Trial, evidence: &Evidence) -> Option<Value> {
    let seconds = trial.hold.as_ref().map(measure::Hold::seconds).filter(|seconds| *seconds > 0.0)?;
    let objectives = evidence.objectives.iter().filter_map(|one| one.objective.parse::<Objective>().ok());
    let limit_ns = objectives.filter_map(|one| one.response_bound_ns()).min_by(f64::total_cmp);
    let responses = trial.distribution(Measure::Response);
    let asked = responses.count() + figures::never_answered(trial);
    if asked == 0 {
        return None;
    }
    let is_good = |ns: u64| limit_ns.is_none_or(|limit| ns as f64 <= limit);
    let good: u64 = responses.buckets().filter(|&(ns, _)| is_good(ns)).map(|(_, count)| count).sum();
    Some(json!({
        "limit_ns": limit_ns, "asked": asked, "good": good, "seconds": seconds,
        "per_s": good as f64 / seconds, "share": good as f64 / asked as f64,
    }))
}

/// A load and what came of it, all its holds together.
struct Point {
    load: f64,
    per_s: f64,
    asked_per_s: f64,
    /// with all that disturbances explain
    at_most_per_s: f64,
    was_disturbed: bool,
    server_exited: bool,
}

impl Point {
    fn of(climb: &Climb, load: f64) -> Option<Point> {
        let rungs: Vec<&Rung> = climb.rungs.iter().filter(|rung| rung.load == load).collect();
        // What says more about the generator than about the server is no goodput of the server.
        let counts = |rung: &&&Rung| rung.verdict.counts();
        let told: Vec<&Rung> = rungs.iter().filter(counts).copied().collect();
        let sum = |name: &str| {
            let values = told.iter().filter_map(|rung| rung.extra.get("goodput")?.get(name)?.as_f64());
            values.sum::<f64>()
        };
        let seconds = sum("seconds");
        let explained: f64 = told.iter().map(|rung| explained(rung)).sum();
        (seconds > 0.0).then(|| Point {
            load,
            per_s: sum("good") / seconds,
            asked_per_s: sum("asked") / seconds,
            at_most_per_s: (sum("good") + explained).min(sum("asked")) / seconds,
            was_disturbed: told.iter().any(|rung| rung.disturbance.is_some()),
            server_exited: told.iter().any(|rung| rung.signal.as_deref() == Some(SERVER_EXITED)),
        })
    }
}

/// Answers of a rung that may not have been good for what was done to the machine.
fn explained(rung: &Rung) -> f64 {
    let asked = rung.extra.get("goodput").and_then(|goodput| goodput.get("asked")?.as_f64()).unwrap_or(0.0);
    rung.disturbance.as_ref().map_or(0.0, |disturbance| disturbance.explains_messages.min(1.0) * asked)
}

/// What the server gives beyond its capacity; `None` where no load was held there that says something about it.
pub(super) fn conclusion(climb: &Climb) -> Option<Conclusion> {
    let held = climb.capacity.lower_bound?;
    climb.capacity.upper_bound?;
    let mut loads: Vec<f64> = climb.rungs.iter().map(|rung| rung.load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let within = Point::of(climb, held)?;
    let beyond: Vec<Point> =
        loads.into_iter().filter(|load| *load > held).filter_map(|load| Point::of(climb, load)).collect();
    let lowest = beyond.iter().min_by(|a, b| a.per_s.total_cmp(&b.per_s))?;
    let worst = beyond.iter().min_by(|a, b| a.at_most_per_s.total_cmp(&b.at_most_per_s))?;
    let goodput = climb.rungs.iter().find_map(|rung| rung.extra.get("goodput"));
    let limit_ns = goodput.and_then(|goodput| goodput.get("limit_ns")).and_then(Value::as_f64);
    let what = limit_ns.map_or_else(
        || "right answers".to_owned(),
        |limit| format!("right answers within {}", show_ns(limit)),
    );
    let unit = climb.capacity.unit;
    let shown = beyond.iter().map(|point| {
        let share = show_share(point.per_s / point.asked_per_s);
        let remark = match (point.server_exited, point.was_disturbed) {
            (true, _) => "; the server exited",
            (false, true) => "; disturbed",
            (false, false) => "",
        };
        format!(
            "{}/s at {} ({:.2} times; {share} of what was asked{remark})",
            show_number(point.per_s.round()),
            show_number(point.load),
            point.load / held
        )
    });
    let figures = format!(
        "Goodput ({what}): {}/s at {} {unit}, which held; {}.",
        show_number(within.per_s.round()),
        show_number(held),
        shown.collect::<Vec<_>>().join(", ")
    );
    let share = |per_s: f64| if within.per_s > 0.0 { per_s / within.per_s } else { 1.0 };
    let (kept, at_most) = (share(lowest.per_s), share(worst.at_most_per_s));
    let of = match worst.was_disturbed {
        true => format!("at most {}", show_share(at_most)),
        false => show_share(at_most),
    };
    let exited = beyond.iter().find(|point| point.server_exited);
    let (class, sentence) = if let Some(exited) = exited {
        let at = show_number(exited.load);
        ("exited", format!("The server does not survive overload: it exited at {at}."))
    } else if kept >= KEPT_SHARE {
        ("kept", "The server keeps its goodput under overload.".to_owned())
    } else if at_most >= KEPT_SHARE {
        let why = "The goodput fell, but something else took CPU meanwhile: whether the server caused it is not known.";
        ("unknown", why.to_owned())
    } else if at_most < COLLAPSED_SHARE {
        let at = show_number(worst.load);
        ("collapsed", format!("The goodput collapses: {of} of it is left at {at}."))
    } else {
        let at = show_number(worst.load);
        ("degraded", format!("The goodput degrades gradually: {of} of it is left at {at}."))
    };
    let figure = |point: &Point| {
        json!({
            "load": point.load, "times": point.load / held, "per_s": point.per_s, "asked_per_s": point.asked_per_s,
            "at_most_per_s": point.at_most_per_s, "was_disturbed": point.was_disturbed,
        })
    };
    let evidence = json!({
        "limit_ns": limit_ns, "class": class, "held": figure(&within),
        "beyond": beyond.iter().map(figure).collect::<Vec<_>>(),
        "left_out": climb.rungs.iter().filter(|rung| rung.load > held && rung.verdict != Verdict::Pass && !rung.verdict.counts())
            .map(|rung| rung.load).collect::<Vec<_>>(),
    });
    Some(Conclusion::new("overload", &[figures, sentence], evidence))
}

#[cfg(test)]
mod tests;
