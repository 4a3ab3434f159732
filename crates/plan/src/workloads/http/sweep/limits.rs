//! Where the server breaks down: the first failures, dropped frames, collapsed responses, and that short answers cause
//! neither.

use ladder::Conclusion;
use serde_json::{Value, json};

use super::{COLLAPSED, Cell, FRAMES_KEPT, LASTING_RUNGS, SAME_RATE, Step, Sweep, per_s, requesters, sizes};

/// From how many requesters on requests fail, and in which words the first one did.
pub(super) fn failures(sweep: &Sweep<'_>) -> Option<Conclusion> {
    let first_failing = |cell: &'_ Cell<'_>| cell.steps.iter().position(|step| !step.is_clean());
    let mut begins: Vec<(&Cell<'_>, usize)> =
        sweep.cells.iter().filter_map(|cell| Some((cell, first_failing(cell)?))).collect();
    begins.sort_by(|a, b| a.0.steps[a.1].requesters.total_cmp(&b.0.steps[b.1].requesters));
    let (first_cell, at) = *begins.first()?;
    let step = &first_cell.steps[at];
    let where_it_is = |(cell, at): &&(&Cell<'_>, usize)| cell.steps[*at].requesters == step.requesters;
    let alike: Vec<&Cell<'_>> = begins.iter().filter(where_it_is).map(|(cell, _)| *cell).collect();
    let before = at.checked_sub(1).map(|before| first_cell.steps[before].requesters);
    let none_before = match before {
        Some(before) => format!("none failed up to {before}"),
        None => "fewer were not tried".to_owned(),
    };
    let mut sentence =
        format!("Failures begin at {}{} ({none_before})", requesters(step.requesters), sweep.among(&alike));
    if let Some(error) = step.first_error {
        let words = if error.text.is_empty() { String::new() } else { format!(": {}", error.text) };
        sentence += &format!("; the first: {}{words}", error.cause);
    }
    sentence.push('.');
    let mut sentences = vec![sentence];
    let later = begins.len() - alike.len();
    if let Some((cell, at)) = begins.get(alike.len()) {
        let from = requesters(cell.steps[*at].requesters);
        let whose = if later == 1 { sweep.name(cell) } else { format!("{later} other cells") };
        sentences.push(format!("In {whose} they begin at {from} or more."));
    }
    let told = |(cell, at): &(&Cell<'_>, usize)| {
        let step = &cell.steps[*at];
        json!({
            "cell": cell.json(), "requesters": step.requesters, "failures": step.failures,
            "none_up_to": at.checked_sub(1).map(|before| cell.steps[before].requesters),
            "first": step.first_error,
        })
    };
    let evidence = json!({
        "requesters": step.requesters, "none_up_to": before, "first": step.first_error,
        "cells": begins.iter().map(told).collect::<Vec<_>>(),
    });
    Some(Conclusion::new("failures", &sentences, evidence))
}

/// How the frames of a cell went with the number of requesters.
struct Drop<'s, 'a> {
    cell: &'s Cell<'a>,
    /// frames per second with the fewest requesters
    base_per_s: f64,
    first: &'s Step<'a>,
    last: &'s Step<'a>,
}

/// The first load from which on frames are missing for good. One rung alone may have been spoiled by what else ran.
fn drop_of<'s, 'a>(cell: &'s Cell<'a>) -> Option<Drop<'s, 'a>> {
    let mut told = cell.steps.iter().filter(|step| step.frames_per_s.is_some());
    let base_per_s = told.next()?.frames_per_s.filter(|frames| *frames > 0.0)?;
    let kept = |step: &Step<'_>| step.frames_per_s.is_some_and(|frames| frames >= FRAMES_KEPT * base_per_s);
    let rest: Vec<&Step<'a>> = told.collect();
    let from = rest.iter().rposition(|step| kept(step)).map_or(0, |at| at + 1);
    let (first, last) = (rest.get(from)?, rest.last()?);
    (rest.len() - from >= LASTING_RUNGS).then_some(Drop { cell, base_per_s, first, last })
}

fn keeps_frames(cell: &Cell<'_>) -> bool {
    cell.steps.iter().any(|step| step.frames_per_s.is_some()) && drop_of(cell).is_none()
}

/// Cells that draw fewer frames with more requesters, and what keeps them elsewhere.
pub(super) fn frames_drop(sweep: &Sweep<'_>) -> Option<Conclusion> {
    let drops: Vec<Drop<'_, '_>> = sweep.cells.iter().filter_map(drop_of).collect();
    if drops.is_empty() {
        return None;
    }
    let mut sentences = Vec::new();
    for drop in &drops {
        let frames = |step: &Step<'_>| per_s(step.frames_per_s.unwrap_or(0.0));
        let mut sentence = format!(
            "Frames drop{} from {} on: {} of {}",
            sweep.among(&[drop.cell]),
            requesters(drop.first.requesters),
            frames(drop.first),
            per_s(drop.base_per_s),
        );
        if drop.last.requesters > drop.first.requesters {
            sentence += &format!(", {} with {}", frames(drop.last), drop.last.requesters);
        }
        let collapse = collapse_of(sweep, drop.cell);
        if collapse.is_none() && sweep.cells.len() > 1 {
            sentence += &format!("; its responses stay at {} there", per_s(drop.last.rate_per_s));
        }
        sentence += &contrast(sweep, drop.cell, keeps_frames, "keep their frames");
        sentences.push(sentence + ".");
    }
    let told = |drop: &Drop<'_, '_>| {
        let frames: Vec<Value> =
            drop.cell.steps.iter().map(|step| json!([step.requesters, step.frames_per_s])).collect();
        json!({
            "cell": drop.cell.json(), "from_requesters": drop.first.requesters, "base_per_s": drop.base_per_s,
            "frames_per_s": frames,
        })
    };
    let kept: Vec<Value> = sweep.cells.iter().filter(|cell| keeps_frames(cell)).map(Cell::json).collect();
    let evidence = json!({ "cells": drops.iter().map(told).collect::<Vec<_>>(), "kept_in": kept });
    Some(Conclusion::new("frames_drop", &sentences, evidence))
}

/// `; with priority normal they keep their frames`: cells that differ in one axis only and fare better.
fn contrast(sweep: &Sweep<'_>, cell: &Cell<'_>, is_better: fn(&Cell<'_>) -> bool, how: &str) -> String {
    let better: Vec<String> = sweep
        .siblings(cell)
        .filter(|(_, other)| is_better(other))
        .filter_map(|(axis, other)| Some(format!("{axis} {}", other.names.get(axis)?)))
        .take(3)
        .collect();
    if better.is_empty() { String::new() } else { format!("; with {} they {how}", better.join(" or ")) }
}

/// What as many requesters get in the cell that gives them most, against what they get here.
struct Collapse<'s, 'a> {
    cell: &'s Cell<'a>,
    first: &'s Step<'a>,
    worst: &'s Step<'a>,
    elsewhere: &'s Cell<'a>,
    elsewhere_per_s: f64,
}

/// Loads from which on responses fall behind for good, up to the last one without failures.
fn collapse_of<'s, 'a>(sweep: &'s Sweep<'a>, cell: &'s Cell<'a>) -> Option<Collapse<'s, 'a>> {
    // Of cells that get the same, the one that differs least says most.
    let best_at = |step: &Step<'_>| {
        let rate_in = |other: &Cell<'_>| {
            other.step(step.requesters).filter(|same| same.is_clean()).map(|same| same.rate_per_s)
        };
        let others = || sweep.cells.iter().filter(|other| !std::ptr::eq(*other, cell));
        let best_per_s = others().filter_map(rate_in).max_by(f64::total_cmp)?;
        let gets_it = |other: &&'s Cell<'a>| {
            rate_in(other).is_some_and(|rate| rate >= (1.0 - SAME_RATE - step.edge) * best_per_s)
        };
        let nearest = sweep.siblings(cell).map(|(_, other)| other).find(gets_it);
        let elsewhere = nearest.or_else(|| others().find(gets_it))?;
        Some((elsewhere, rate_in(elsewhere)?))
    };
    type Fallen<'s, 'a> = Option<(&'s Step<'a>, &'s Cell<'a>, f64)>;
    let fallen = |step: &'s Step<'a>| -> Fallen<'s, 'a> {
        let (elsewhere, best_per_s) = best_at(step)?;
        (step.rate_per_s <= COLLAPSED * best_per_s).then_some((step, elsewhere, best_per_s))
    };
    let several: Vec<Fallen<'_, '_>> =
        cell.clean().filter(|step| step.requesters > 1.0).map(fallen).collect();
    let from = several.iter().rposition(Option::is_none).map_or(0, |at| at + 1);
    let lasting: Vec<_> = several[from..].iter().flatten().collect();
    let share = |one: &&(&Step<'_>, &Cell<'_>, f64)| one.0.rate_per_s / one.2;
    let worst = lasting.iter().copied().min_by(|a, b| share(a).total_cmp(&share(b)))?;
    (lasting.len() >= LASTING_RUNGS).then_some(Collapse {
        cell,
        first: lasting[0].0,
        worst: worst.0,
        elsewhere: worst.1,
        elsewhere_per_s: worst.2,
    })
}

/// Cells whose responses fall far behind what as many requesters get elsewhere.
pub(super) fn responses_collapse(sweep: &Sweep<'_>) -> Option<Conclusion> {
    let found: Vec<Collapse<'_, '_>> =
        sweep.cells.iter().filter_map(|cell| collapse_of(sweep, cell)).collect();
    if found.is_empty() {
        return None;
    }
    let mut sentences = Vec::new();
    for collapse in &found {
        let mut sentence = format!(
            "Responses collapse{} from {} on: {} with {}, where {} gets {}",
            sweep.among(&[collapse.cell]),
            requesters(collapse.first.requesters),
            per_s(collapse.worst.rate_per_s),
            collapse.worst.requesters,
            sweep.name(collapse.elsewhere),
            per_s(collapse.elsewhere_per_s),
        );
        if let Some(frames) = collapse.worst.frames_per_s.filter(|_| keeps_frames(collapse.cell)) {
            sentence += &format!("; the frames stay at {}", per_s(frames));
        }
        sentences.push(sentence + ".");
    }
    let told = |collapse: &Collapse<'_, '_>| {
        json!({
            "cell": collapse.cell.json(), "from_requesters": collapse.first.requesters,
            "requesters": collapse.worst.requesters, "rate_per_s": collapse.worst.rate_per_s,
            "elsewhere": collapse.elsewhere.json(), "elsewhere_per_s": collapse.elsewhere_per_s,
            "frames_per_s": collapse.worst.frames_per_s,
        })
    };
    let evidence = json!({ "cells": found.iter().map(told).collect::<Vec<_>>() });
    Some(Conclusion::new("responses_collapse", &sentences, evidence))
}

/// Where long answers cost responses or frames, short ones of the same server in the same state do not.
pub(super) fn short_answers(sweep: &Sweep<'_>) -> Option<Conclusion> {
    let suffers = |cell: &Cell<'_>| drop_of(cell).is_some() || collapse_of(sweep, cell).is_some();
    let mut pairs: Vec<(&Cell<'_>, &Cell<'_>)> = Vec::new();
    for long in sweep.cells.iter().filter(|cell| sizes::is_long(cell) && suffers(cell)) {
        let of_service = sweep.siblings(long).filter(|(axis, _)| *axis == sizes::SERVICE);
        pairs.extend(of_service.filter(|(_, other)| sizes::is_short(other)).map(|(_, short)| (short, long)));
    }
    // If one cell suffers too, or has no frame data, nothing can be said about short answers.
    let does_neither = |cell: &Cell<'_>| !suffers(cell) && keeps_frames(cell);
    if pairs.is_empty() || !pairs.iter().all(|(short, _)| does_neither(short)) {
        return None;
    }
    let mut sentences = vec!["Short answers do neither.".to_owned()];
    for (short, long) in &pairs {
        let Some(step) = short.clean().next_back() else { continue };
        sentences.push(format!(
            "{} ({}) gets {} and keeps {} frames with {}, where {} ({}) does not.",
            sweep.name(short),
            sizes::show_size(short),
            per_s(step.rate_per_s),
            per_s(step.frames_per_s.unwrap_or(0.0)),
            requesters(step.requesters),
            sweep.name(long),
            sizes::show_size(long),
        ));
    }
    let told = |(short, long): &(&Cell<'_>, &Cell<'_>)| {
        json!({
            "short": short.json(), "short_bytes": sizes::bytes_of(short), "long": long.json(),
            "long_bytes": sizes::bytes_of(long),
        })
    };
    let evidence = json!({ "pairs": pairs.iter().map(told).collect::<Vec<_>>() });
    Some(Conclusion::new("short_answers", &sentences, evidence))
}
