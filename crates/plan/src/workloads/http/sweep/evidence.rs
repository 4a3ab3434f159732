//! Which rungs count: repeats and neighbours must agree with what a single rung says.
//!
//! One pause of the machine spoils a hold of two or three seconds, yet a conclusion from it reads as certain as any
//! other. So a disturbed rung counts only if undisturbed neighbours agree (its next neighbours, if the whole cell was
//! disturbed: a disturbance makes no two rates agree). A load that was held twice counts only if both agree, and the
//! rate of one requester is a base only if something else agrees with it.
//! Not here: how many rungs each conclusion takes (`rates`, `limits`).

use super::{Cell, FIRM_WITHIN, FRAMES_KEPT, SAME_RATE, Step};

/// What agrees with the rate of one requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirmBy {
    /// it is one request per tick
    Ticks,
    /// it is what two and three requesters get, each
    Neighbours,
    /// it is what one requester gets in another cell
    OtherCells,
    /// it is what one requester got when it was held again
    Repeat,
}

impl FirmBy {
    /// As the evidence names it.
    pub fn name(self) -> &'static str {
        match self {
            FirmBy::Ticks => "ticks",
            FirmBy::Neighbours => "neighbours",
            FirmBy::OtherCells => "other cells",
            FirmBy::Repeat => "repeat",
        }
    }
}

/// Two rates are equal within `within` and what the edges of both holds may add or remove.
fn is_same(rate: f64, other: f64, within: f64) -> bool {
    other > 0.0 && (rate / other - 1.0).abs() <= within
}

/// The rungs of a cell that count, ascending, each load once.
pub(super) fn agreeing<'a>(mut held: Vec<Step<'a>>) -> Vec<Step<'a>> {
    // A stable sort: the first hold of a load counts, as in the table.
    held.sort_by(|a, b| a.requesters.total_cmp(&b.requesters));
    let mut steps: Vec<Step<'a>> = Vec::new();
    let mut contradicted: Vec<f64> = Vec::new();
    for step in held {
        match steps.last_mut().filter(|first| first.requesters == step.requesters) {
            Some(first) => {
                let within = SAME_RATE + first.edge + step.edge;
                if is_same(step.rate_per_s, first.rate_per_s, within) && step.is_clean() == first.is_clean() {
                    first.is_repeated = true;
                    first.is_disturbed &= step.is_disturbed;
                } else {
                    contradicted.push(step.requesters);
                }
            }
            None => steps.push(step),
        }
    }
    steps.retain(|step| !contradicted.contains(&step.requesters));
    let counts: Vec<bool> = (0..steps.len()).map(|at| is_borne_out(&steps, at)).collect();
    let mut counts = counts.into_iter();
    steps.retain(|_| counts.next().unwrap_or(false));
    steps
}

/// True for a rung that nothing disturbed, and for one that its neighbours agree with: the undisturbed ones, if there are any.
fn is_borne_out(steps: &[Step<'_>], at: usize) -> bool {
    let step = &steps[at];
    if !step.is_disturbed {
        return true;
    }
    let all_disturbed = steps.iter().all(|step| step.is_disturbed);
    let counts = |other: &&Step<'_>| all_disturbed || !other.is_disturbed;
    let below = steps[..at].iter().rfind(counts);
    let above = steps[at + 1..].iter().find(counts);
    let neighbours: Vec<&Step<'_>> = below.into_iter().chain(above).collect();
    let within = SAME_RATE + step.edge + neighbours.iter().map(|other| other.edge).fold(0.0, f64::max);
    let rates_agree = match (below, above) {
        (Some(below), Some(above)) => {
            // A rate that rises evenly and then stays flat lies between the straight line and the share of the lower
            // one.
            let part = (step.requesters - below.requesters) / (above.requesters - below.requesters);
            let line = below.rate_per_s + part * (above.rate_per_s - below.rate_per_s);
            let share = below.rate_per_s * step.requesters / below.requesters;
            let most = share.min(below.rate_per_s.max(above.rate_per_s)).max(line);
            step.rate_per_s >= (1.0 - within) * line && step.rate_per_s <= (1.0 + within) * most
        }
        (Some(other), None) | (None, Some(other)) => {
            let share = other.rate_per_s * step.requesters / other.requesters;
            is_same(step.rate_per_s, other.rate_per_s, within) || is_same(step.rate_per_s, share, within)
        }
        (None, None) => false,
    };
    let frames: Vec<f64> = neighbours.iter().filter_map(|other| other.frames_per_s).collect();
    let frames_agree = step.frames_per_s.is_none_or(|drawn| {
        let least = frames.iter().copied().fold(f64::INFINITY, f64::min);
        let most = frames.iter().copied().fold(0.0, f64::max);
        frames.is_empty() || (drawn >= FRAMES_KEPT * least && drawn * FRAMES_KEPT <= most)
    });
    rates_agree && frames_agree && neighbours.iter().any(|other| other.is_clean() == step.is_clean())
}

/// What agrees with the base of a cell.
pub(super) fn firm_by(cells: &[Cell<'_>], at: usize) -> Option<FirmBy> {
    let cell = &cells[at];
    let base = cell.base()?;
    if is_same(base.rate_per_s, cell.tick_rate_hz, SAME_RATE + base.edge) {
        return Some(FirmBy::Ticks);
    }
    let next: Vec<&Step<'_>> = cell.clean().filter(|step| step.requesters > 1.0).take(2).collect();
    let agrees = |step: &&Step<'_>| {
        let within = FIRM_WITHIN + base.edge + step.edge;
        is_same(base.rate_per_s, step.rate_per_s / step.requesters, within)
    };
    if next.len() == 2 && next.iter().all(agrees) {
        return Some(FirmBy::Neighbours);
    }
    if base.is_repeated {
        return Some(FirmBy::Repeat);
    }
    let others = cells.iter().enumerate().filter(|(other, _)| *other != at);
    let agrees =
        |other: &Step<'_>| is_same(base.rate_per_s, other.rate_per_s, SAME_RATE + base.edge + other.edge);
    others.filter_map(|(_, other)| other.base()).any(agrees).then_some(FirmBy::OtherCells)
}
