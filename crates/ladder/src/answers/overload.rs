//! Goodput beyond capacity: the good answers per second that a server still gives at loads above its capacity.
//!
//! A good answer is a correct one within the tightest bound that an objective sets on the response; without such a
//! bound, any correct one. Disturbances only ever lower goodput. Goodput that stayed high did so despite them; of a
//! drop, the server accounts for what they do not explain (`Disturbance::explains_messages`). Units: per second of the
//! judged hold.

use measure::{LoadUnit, Measure, Trial};
use serde_json::{Value, json};

use crate::contract::{Climb, Conclusion, Rung};
use crate::figures;
use crate::judge::Evidence;
use crate::objective::Objective;
use crate::recovery;
use crate::wording::{show_ns, show_number, show_share};

/// A server that keeps this share of its goodput holds its level.
const KEPT_SHARE: f64 = 0.9;
/// One that keeps less than this has collapsed.
const COLLAPSED_SHARE: f64 = 0.5;

/// Good answers of a trial; `None` where nothing is answered, as in a room that only receives.
pub(super) fn goodput(trial: &Trial, evidence: &Evidence) -> Option<Value> {
    let seconds = trial.hold.as_ref().map(measure::Hold::seconds).filter(|seconds| *seconds > 0.0)?;
    let objectives = evidence.objectives.iter().filter_map(|one| Objective::stored(&one.objective).ok());
    let limit_ns = objectives.filter_map(|one| one.response_bound_ns()).min_by(f64::total_cmp);
    let responses = trial.distribution(Measure::Response);
    let asked = responses.count() + figures::never_answered(trial);
    if asked == 0 {
        return None;
    }
    let good = responses.count() - limit_ns.map_or(0, |limit_ns| responses.count_above(limit_ns));
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
        // A rung that says more about the generator than about the server has no goodput of the server.
        let told: Vec<&Rung> =
            climb.rungs.iter().filter(|rung| rung.load == load && rung.verdict.counts()).collect();
        let sum = |name: &str| told.iter().filter_map(|rung| stored(rung, name)).sum::<f64>();
        let seconds = sum("seconds");
        let explained: f64 = told.iter().map(|rung| explained(rung)).sum();
        (seconds > 0.0).then(|| Point {
            load,
            per_s: sum("good") / seconds,
            asked_per_s: sum("asked") / seconds,
            at_most_per_s: (sum("good") + explained).min(sum("asked")) / seconds,
            was_disturbed: told.iter().any(|rung| rung.disturbance.is_some()),
            server_exited: told.iter().any(|rung| rung.server_exited()),
        })
    }
}

/// Answers of a rung that may not have been good for what was done to the machine.
fn explained(rung: &Rung) -> f64 {
    let asked = stored(rung, "asked").unwrap_or(0.0);
    rung.disturbance.as_ref().map_or(0.0, |disturbance| disturbance.explains_messages.min(1.0) * asked)
}

/// A number of what `goodput` made.
fn stored(rung: &Rung, name: &str) -> Option<f64> {
    rung.extra.get("goodput")?.get(name)?.as_f64()
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
    let limit_ns = climb.rungs.iter().find_map(|rung| stored(rung, "limit_ns"));
    let (class, sentence) = class(&within, &beyond)?;
    let figure = |point: &Point| {
        json!({
            "load": point.load, "times": point.load / held, "per_s": point.per_s, "asked_per_s": point.asked_per_s,
            "at_most_per_s": point.at_most_per_s, "was_disturbed": point.was_disturbed,
        })
    };
    let evidence = json!({
        "limit_ns": limit_ns, "class": class, "held": figure(&within),
        "beyond": beyond.iter().map(figure).collect::<Vec<_>>(),
        "left_out": climb.rungs.iter().filter(|rung| rung.load > held && !rung.verdict.counts())
            .map(|rung| rung.load).collect::<Vec<_>>(),
    });
    let figures = in_words(&within, &beyond, climb.capacity.unit, limit_ns);
    let sentences: Vec<String> = [figures, sentence].into_iter().chain(recoveries(climb)).collect();
    Some(Conclusion::new("overload", &sentences, evidence))
}

/// `Recovery (objectives met again, for 5 s in a row, at 200 req/s): 0 s after 300, 7 s after 375.`; `None` where no load went down.
fn recoveries(climb: &Climb) -> Option<String> {
    let recovered: Vec<(&Rung, &Value)> =
        climb.rungs.iter().filter_map(|rung| Some((rung, rung.extra.get("recovery")?))).collect();
    let lower = recovered.first()?.1.get("load")?.as_f64()?;
    // A generator that was late was presumably also late under the lower load.
    let shown = recovered.iter().filter_map(|(rung, figures)| match rung.verdict.counts() {
        true => recovery::in_words(figures, rung.load),
        false => Some(format!("unknown after {} ({})", show_number(rung.load), rung.verdict)),
    });
    Some(format!(
        "Recovery (objectives met again, for {} s in a row, at {} {}): {}.",
        recovery::SECONDS_IN_A_ROW,
        show_number(lower),
        climb.capacity.unit,
        shown.collect::<Vec<_>>().join(", ")
    ))
}

/// `Goodput (right answers within 60 ms): 249/s at 250 req/s, which held; 298/s at 375 (1.50 times; …).`
fn in_words(within: &Point, beyond: &[Point], unit: LoadUnit, limit_ns: Option<f64>) -> String {
    let within_limit = limit_ns.map_or_else(String::new, |limit| format!(" within {}", show_ns(limit)));
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
            point.load / within.load
        )
    });
    format!(
        "Goodput (right answers{within_limit}): {}/s at {} {unit}, which held; {}.",
        show_number(within.per_s.round()),
        show_number(within.load),
        shown.collect::<Vec<_>>().join(", ")
    )
}

/// What becomes of the goodput, as a word and as a sentence; `None` where nothing was held beyond the capacity.
fn class(within: &Point, beyond: &[Point]) -> Option<(&'static str, String)> {
    let lowest = beyond.iter().min_by(|a, b| a.per_s.total_cmp(&b.per_s))?;
    let worst = beyond.iter().min_by(|a, b| a.at_most_per_s.total_cmp(&b.at_most_per_s))?;
    let share = |per_s: f64| if within.per_s > 0.0 { per_s / within.per_s } else { 1.0 };
    let at_most = share(worst.at_most_per_s);
    let prefix = if worst.was_disturbed { "at most " } else { "" };
    let left = format!("{prefix}{} of it is left at {}", show_share(at_most), show_number(worst.load));
    Some(if let Some(exited) = beyond.iter().find(|point| point.server_exited) {
        let at = show_number(exited.load);
        ("exited", format!("The server does not survive overload: it exited at {at}."))
    } else if share(lowest.per_s) >= KEPT_SHARE {
        ("kept", "The server keeps its goodput under overload.".to_owned())
    } else if at_most >= KEPT_SHARE {
        let why = "The goodput fell, but something else took CPU meanwhile: whether the server caused it is not known.";
        ("unknown", why.to_owned())
    } else if at_most < COLLAPSED_SHARE {
        ("collapsed", format!("The goodput collapses: {left}."))
    } else {
        ("degraded", format!("The goodput degrades gradually: {left}."))
    })
}

#[cfg(test)]
mod tests;
