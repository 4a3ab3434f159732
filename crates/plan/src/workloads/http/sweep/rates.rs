//! Requesters' throughput: the base rate, the ceiling and its cause, how many are enough, and how the rate scales with
//! them.

use ladder::Conclusion;
use ladder::wording::{show_ns, show_share};
use serde_json::{Value, json};

use super::evidence::FirmBy;
use super::{
    Cell, ENOUGH_OF_CEILING, LASTING_RUNGS, LINEAR_LEAST, PLATEAU_RUNGS, PLATEAU_SPREAD, SAME_RATE,
    SLOTS_WITHIN, SLOTS_WITHIN_MOST, SPEED_UP_RUNGS, SUPER_LINEAR, Step, Sweep, TICK_FULL, median, per_s,
    requesters,
};

/// What one requester gets, whether that is one request per tick, and where nothing else agrees with it.
pub(super) fn base_rate(sweep: &Sweep<'_>) -> Option<Conclusion> {
    let bases: Vec<(&Cell<'_>, &Step<'_>)> =
        sweep.cells.iter().filter_map(|cell| Some((cell, cell.base()?))).collect();
    let is_one_per_tick = |cell: &Cell<'_>| cell.firm_by == Some(FirmBy::Ticks);
    let (ticked, others): (Vec<_>, Vec<_>) = bases.iter().partition(|(cell, _)| is_one_per_tick(cell));
    let mut sentences = Vec::new();
    if let Some((cell, _)) = ticked.first() {
        let rate = median(ticked.iter().map(|(_, step)| step.rate_per_s))?;
        sentences.push(format!(
            "One requester gets {} responses: one request per tick of {} ticks{}.",
            per_s(rate),
            per_s(cell.tick_rate_hz),
            sweep.among(&ticked.iter().map(|(cell, _)| *cell).collect::<Vec<_>>()),
        ));
    }
    for (cell, step) in &others {
        let of = sweep.among(&[*cell]);
        let (rate, ticks) = (per_s(step.rate_per_s), per_s(cell.tick_rate_hz));
        sentences.push(if cell.firm_by.is_some() {
            format!("One requester gets {rate} responses{of}, which is not one per tick ({ticks}).")
        } else {
            let next = cell.clean().find(|step| step.requesters > 1.0);
            let each = next.map_or(String::new(), |next| {
                let each = per_s(next.rate_per_s / next.requesters);
                format!(", and {} get {each} each", requesters(next.requesters))
            });
            format!(
                "The base rate of one requester is not firm{of}: {rate} was measured once, but the ticks are {ticks}{each}."
            )
        });
    }
    let told = |(cell, step): &(&Cell<'_>, &Step<'_>)| {
        json!({
            "cell": cell.json(), "rate_per_s": step.rate_per_s, "tick_rate_per_s": cell.tick_rate_hz,
            "one_per_tick": is_one_per_tick(cell), "agrees_with": cell.firm_by.map(FirmBy::name),
        })
    };
    if bases.is_empty() {
        return None;
    }
    let firm = bases.iter().filter(|(cell, _)| cell.firm_by.is_some());
    let evidence = json!({
        "rate_per_s": median(firm.map(|(_, step)| step.rate_per_s)),
        "one_per_tick": others.is_empty(), "cells": bases.iter().map(told).collect::<Vec<_>>(),
    });
    Some(Conclusion::new("base_rate", &sentences, evidence))
}

/// The rate that a cell never exceeds, however many requesters there are.
pub(super) struct Ceiling {
    pub rate_per_s: f64,
    /// requesters at the first and the last rung of the plateau
    pub from: f64,
    pub to: f64,
    pub rungs: usize,
    pub per_tick: f64,
    pub cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cause {
    /// so many requests are taken per tick
    Slots(u32),
    /// the ticks have no time left: mean busy share
    FullTick(f64),
    Unknown,
}

/// The plateau of a cell; `None` where its rate still rises, or falls, with the number of requesters.
pub(super) fn ceiling_of(cell: &Cell<'_>) -> Option<Ceiling> {
    let highest = cell.steps.iter().max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))?;
    let least = |step: &&Step<'_>| step.rate_per_s >= (1.0 - SAME_RATE - step.edge) * highest.rate_per_s;
    let plateau: Vec<&Step<'_>> = cell.steps.iter().filter(least).collect();
    let (first, last) = (plateau.first()?, plateau.last()?);
    // For 10 and 11 requesters the quotient is 1.1 except for the last bit.
    let is_wide = last.requesters + 1e-9 >= PLATEAU_SPREAD * first.requesters;
    if plateau.len() < PLATEAU_RUNGS || !is_wide || highest.rate_per_s <= 0.0 {
        return None;
    }
    let rate_per_s = median(plateau.iter().map(|step| step.rate_per_s))?;
    let per_tick = rate_per_s / cell.tick_rate_hz;
    let slots = per_tick.round();
    let within = (SLOTS_WITHIN * slots).min(SLOTS_WITHIN_MOST);
    // A requester gets at most one answer per tick, so it takes as many requesters as slots to fill them.
    let is_whole = slots >= 1.0 && (per_tick - slots).abs() <= within && first.requesters >= slots;
    let busy_share = median(plateau.iter().filter_map(|step| step.busy_share));
    let cause = match busy_share.filter(|share| *share > TICK_FULL) {
        Some(share) => Cause::FullTick(share),
        None if is_whole => Cause::Slots(slots as u32),
        None => Cause::Unknown,
    };
    let (from, to) = (first.requesters, last.requesters);
    Some(Ceiling { rate_per_s, from, to, rungs: plateau.len(), per_tick, cause })
}

/// The highest ceiling of all cells, and whose it is.
fn highest<'s, 'a>(sweep: &'s Sweep<'a>) -> Option<(&'s Cell<'a>, Ceiling)> {
    let ceilings = sweep.cells.iter().filter_map(|cell| Some((cell, ceiling_of(cell)?)));
    // Several cells reach the same one; a cell with idle time in its ticks shows why.
    let knows = |one: &Ceiling| matches!(one.cause, Cause::Slots(_));
    ceilings.reduce(|best, one| {
        let is_same = (one.1.rate_per_s / best.1.rate_per_s - 1.0).abs() <= SAME_RATE;
        let is_better =
            if is_same { knows(&one.1) && !knows(&best.1) } else { one.1.rate_per_s > best.1.rate_per_s };
        if is_better { one } else { best }
    })
}

/// The highest rate of all, and its cause.
pub(super) fn ceiling(sweep: &Sweep<'_>) -> Option<Conclusion> {
    let (cell, found) = highest(sweep)?;
    let limit = |step: &&Step<'_>| step.rate_per_s > (1.0 + SAME_RATE + step.edge) * found.rate_per_s;
    let is_exceeded = sweep.cells.iter().flat_map(|cell| &cell.steps).any(|step| limit(&step));
    let whose = if is_exceeded { sweep.among(&[cell]) } else { String::new() };
    let (rate, ticks) = (per_s(found.rate_per_s), per_s(cell.tick_rate_hz));
    let why = match found.cause {
        Cause::Slots(1) => format!("one request per tick at {ticks} (tick quantisation, one slot)"),
        Cause::Slots(slots) => {
            format!("{slots} requests per tick at {ticks} (tick quantisation, {slots} slots)")
        }
        Cause::FullTick(share) => format!(
            "{:.1} per tick at {ticks}, and the ticks are {} busy: there is no time left for more",
            found.per_tick,
            show_share(share)
        ),
        Cause::Unknown => {
            format!(
                "{:.1} per tick at {ticks}, which are no whole slots; look for another cause",
                found.per_tick
            )
        }
    };
    let between = format!("{} to {}", found.from, requesters(found.to));
    let sentence = format!("Nothing gets more than {rate} responses{whose}: {why}; {between} all get that.");
    let (cause, slots) = match found.cause {
        Cause::Slots(slots) => (json!("tick quantisation"), json!(slots)),
        Cause::FullTick(_) => (json!("full ticks"), Value::Null),
        Cause::Unknown => (Value::Null, Value::Null),
    };
    let evidence = json!({
        "ceiling_per_s": found.rate_per_s, "tick_rate_per_s": cell.tick_rate_hz, "per_tick": found.per_tick,
        "cause": cause, "slots": slots, "from_requesters": found.from, "to_requesters": found.to,
        "rungs": found.rungs, "cell": cell.json(), "exceeded_elsewhere": is_exceeded,
    });
    Some(Conclusion::new("ceiling", &[sentence], evidence))
}

/// The fewest requesters that get the ceiling, and what more of them get besides.
pub(super) fn best_requesters(sweep: &Sweep<'_>) -> Option<Conclusion> {
    let (cell, found) = highest(sweep)?;
    let best = enough(cell, &found)?;
    let mut sentence =
        format!("{} reach {} of the ceiling", requesters(best.requesters), show_share(ENOUGH_OF_CEILING));
    let more = cell.clean().rfind(|step| step.requesters > best.requesters);
    if let Some(more) = more {
        sentence +=
            &format!("; {} get {}, which is no more", requesters(more.requesters), per_s(more.rate_per_s));
        let waits = more.service_ns.zip(best.service_ns).filter(|(more, best)| more > &(1.1 * best));
        if let Some((more_ns, best_ns)) = waits {
            sentence += &format!(", and wait {} instead of {}", show_ns(more_ns), show_ns(best_ns));
        }
    }
    let fewer = cell.steps.iter().rfind(|step| step.requesters < best.requesters);
    let is_exact = fewer.is_none_or(|fewer| fewer.requesters + 1.0 >= best.requesters);
    if let Some(fewer) = fewer.filter(|_| !is_exact) {
        sentence += &format!("; between {} and {} none were tried", fewer.requesters, best.requesters);
    }
    let evidence = json!({
        "requesters": best.requesters, "rate_per_s": best.rate_per_s, "ceiling_per_s": found.rate_per_s,
        "service_mean_ns": best.service_ns, "is_exact": is_exact, "cell": cell.json(),
        "more": more.map(|more| json!({
            "requesters": more.requesters, "rate_per_s": more.rate_per_s, "service_mean_ns": more.service_ns,
        })),
    });
    Some(Conclusion::new("best_requesters", &[sentence + "."], evidence))
}

fn enough<'s, 'a>(cell: &'s Cell<'a>, ceiling: &Ceiling) -> Option<&'s Step<'a>> {
    let least = |step: &&Step<'_>| step.rate_per_s >= (ENOUGH_OF_CEILING - step.edge) * ceiling.rate_per_s;
    cell.steps.iter().find(least)
}

/// Requesters up to which a speed-up can be expected: as many as fill the slots, or where the ceiling is reached.
pub(super) fn knee(sweep: &Sweep<'_>) -> f64 {
    let Some((cell, found)) = highest(sweep) else { return f64::INFINITY };
    let best = enough(cell, &found).map_or(f64::INFINITY, |step| step.requesters);
    match found.cause {
        Cause::Slots(slots) => best.min(f64::from(slots)),
        Cause::FullTick(_) | Cause::Unknown => best,
    }
}

/// A speed-up and what was expected of it.
struct SpeedUp {
    requesters: f64,
    times: f64,
    /// what the edges of both holds may add or take
    edges: f64,
    is_repeated: bool,
}

fn speed_ups(cell: &Cell<'_>, up_to: f64) -> Vec<SpeedUp> {
    let Some(base) = cell.firm_base() else { return Vec::new() };
    let several = cell.clean().filter(|step| step.requesters > 1.0 && step.requesters <= up_to);
    several
        .map(|step| SpeedUp {
            requesters: step.requesters,
            times: step.rate_per_s / base.rate_per_s,
            edges: step.edge + base.edge,
            is_repeated: step.is_repeated,
        })
        .collect()
}

/// Outliers that are confirmed, by a neighbouring outlier or by a repeat.
fn borne_out(ups: &[SpeedUp], stands_out: impl Fn(&SpeedUp) -> bool) -> Vec<&SpeedUp> {
    let is_so = |at: Option<usize>| at.and_then(|at| ups.get(at)).is_some_and(&stands_out);
    let is_borne_out = |at: usize| ups[at].is_repeated || is_so(at.checked_sub(1)) || is_so(Some(at + 1));
    (0..ups.len()).filter(|&at| stands_out(&ups[at]) && is_borne_out(at)).map(|at| &ups[at]).collect()
}

fn has_its_share(up: &SpeedUp) -> bool {
    up.times >= (LINEAR_LEAST - up.edges) * up.requesters
}

/// Whether a speed-up is linear; `None` where single rungs disagree and nothing bears them out.
fn is_linear(ups: &[SpeedUp]) -> Option<bool> {
    if !borne_out(ups, |up| !has_its_share(up)).is_empty() {
        return Some(false);
    }
    // One rung below the last may have been spoiled by other load on the machine; it is named.
    let odd = ups.iter().filter(|up| !has_its_share(up)).count();
    (odd < LASTING_RUNGS && ups.last().is_some_and(has_its_share)).then_some(true)
}

/// Whether twice the requesters get twice the responses, as long as there is a ceiling left to reach.
pub(super) fn linearity(sweep: &Sweep<'_>) -> Option<Conclusion> {
    let knee = knee(sweep);
    let found: Vec<(&Cell<'_>, Vec<SpeedUp>, bool)> = sweep
        .cells
        .iter()
        .map(|cell| (cell, speed_ups(cell, knee)))
        .filter(|(_, ups)| ups.len() >= SPEED_UP_RUNGS)
        .filter_map(|(cell, ups)| {
            let is_linear = is_linear(&ups)?;
            Some((cell, ups, is_linear))
        })
        .collect();
    let last = |ups: &[SpeedUp]| {
        ups.last().map_or(String::new(), |up| format!("{:.2} with {}", up.times, up.requesters))
    };
    let (linear, others): (Vec<_>, Vec<_>) = found.iter().partition(|(_, _, is_linear)| *is_linear);
    let mut sentences = Vec::new();
    if let Some((_, ups, _)) = linear.first() {
        let cells: Vec<&Cell<'_>> = linear.iter().map(|(cell, ..)| *cell).collect();
        let up_to = ups.last()?.requesters;
        let mut shown = last(ups);
        if let Some(odd) = linear.iter().find_map(|(_, ups, _)| ups.iter().find(|up| !has_its_share(up))) {
            shown += &format!("; but {:.2} with {}", odd.times, odd.requesters);
        }
        sentences.push(format!(
            "The speed-up is linear up to {}{}: {shown}.",
            requesters(up_to),
            sweep.among(&cells)
        ));
    }
    for (cell, ups, _) in &others {
        sentences.push(format!("It is not linear{}: {}.", sweep.among(&[*cell]), last(ups)));
    }
    if sentences.is_empty() {
        return None;
    }
    let told = |(cell, ups, is_linear): &(&Cell<'_>, Vec<SpeedUp>, bool)| {
        let ups_told: Vec<Value> = ups.iter().map(|up| json!([up.requesters, up.times])).collect();
        json!({ "cell": cell.json(), "is_linear": is_linear, "speed_ups": ups_told })
    };
    let up_to = found.iter().filter_map(|(_, ups, _)| ups.last()).map(|up| up.requesters).fold(0.0, f64::max);
    let evidence = json!({
        "up_to_requesters": up_to, "is_linear": others.is_empty(), "cells": found.iter().map(told).collect::<Vec<_>>(),
    });
    Some(Conclusion::new("linearity", &sentences, evidence))
}

/// Whether anywhere n requesters get more than n times what one gets. Nothing is stated if a single rung shows it and
/// neither a neighbour nor a repeat confirms it.
pub(super) fn super_linearity(sweep: &Sweep<'_>) -> Option<Conclusion> {
    let is_beyond = |up: &SpeedUp| up.times / up.requesters > SUPER_LINEAR + up.edges;
    let cells: Vec<(&Cell<'_>, Vec<SpeedUp>)> = sweep
        .cells
        .iter()
        .map(|cell| (cell, speed_ups(cell, f64::INFINITY)))
        .filter(|(_, ups)| ups.len() >= SPEED_UP_RUNGS)
        .collect();
    let all = || cells.iter().flat_map(|(_, ups)| ups);
    let most = all().map(|up| up.times / up.requesters).max_by(f64::total_cmp)?;
    let beyond: Vec<(&Cell<'_>, &SpeedUp)> = cells
        .iter()
        .flat_map(|(cell, ups)| borne_out(ups, is_beyond).into_iter().map(move |up| (*cell, up)))
        .collect();
    let told = |(cell, up): &(&Cell<'_>, &SpeedUp)| json!({ "cell": cell.json(), "requesters": up.requesters, "speed_up": up.times });
    let evidence = json!({
        "per_requester_most": most, "rungs": all().count(),
        "super_linear": beyond.iter().map(told).collect::<Vec<_>>(),
    });
    if let Some((cell, first)) = beyond.first() {
        let sentence = format!(
            "The speed-up is super-linear at n = {}{}: {:.2}; look for what one requester alone waits for.",
            first.requesters,
            sweep.among(&[*cell]),
            first.times,
        );
        return Some(Conclusion::new("super_linear", &[sentence], evidence));
    }
    if all().any(is_beyond) {
        return None;
    }
    let sentence = format!(
        "The speed-up is never super-linear: no number of requesters gets more than its share (at most {most:.2} of it)."
    );
    Some(Conclusion::new("never_super_linear", &[sentence], evidence))
}
