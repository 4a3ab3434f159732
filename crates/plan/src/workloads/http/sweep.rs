//! Findings of a sweep of requesters over a server with ticks, in words: rates, ceilings, failures, frames, long
//! answers.
//!
//! A pure function of the published rungs. Each conclusion appears only if its evidence is present, and names it;
//! nothing is concluded about what a cell did not measure. Rungs that say more about this machine than about the server
//! are no evidence, and a single rung is not enough: its result must be confirmed by its neighbours or by a repeat
//! (`evidence`).
//! Invariant: no threshold is so narrow that the edges of a short hold reach it; an edge is one tick of the hold.
//! Units: rates per second, with one decimal in words; speed-ups against one requester, with two.
//! Not here: how the bots and the server were measured (docs/method/http.md).

mod evidence;
mod facts;
mod limits;
mod rates;
mod sizes;

use std::collections::{BTreeMap, BTreeSet};

use ladder::wording::show_cell;
use ladder::{Conclusion, ErrorSample, LoadUnit, Rung, Verdict};
use serde_json::{Value, json};

use evidence::FirmBy;

/// Two rates of one server are the same within this. Ticks are exact; what differs is where a hold begins in one.
const SAME_RATE: f64 = 0.02;
/// So many rungs at the same rate are a plateau …
const PLATEAU_RUNGS: usize = 2;
/// … if the last has so many times the requesters of the first: 51 after 50 rise by no more than a plateau may.
const PLATEAU_SPREAD: f64 = 1.1;
/// A number of slots is whole within 2 % …
const SLOTS_WITHIN: f64 = 0.02;
/// … and within this of a slot: from 25 slots on every number is within 2 % of a whole one.
const SLOTS_WITHIN_MOST: f64 = 0.2;
/// A loop whose ticks are busier than this has no time left, so its ceiling may be time and not slots.
const TICK_FULL: f64 = 0.9;
/// A number of requesters is enough with this share of the ceiling.
const ENOUGH_OF_CEILING: f64 = 0.99;
/// A speed-up of at least this per requester is linear.
const LINEAR_LEAST: f64 = 0.95;
/// One of more than this per requester is super-linear.
const SUPER_LINEAR: f64 = 1.05;
/// It takes so many rungs besides that of one requester to say how a speed-up goes.
const SPEED_UP_RUNGS: usize = 3;
/// Frames have dropped when fewer than this share of those with the fewest requesters are drawn; two seconds of 30 Hz
/// can miss one frame in sixty at either edge.
const FRAMES_KEPT: f64 = 0.9;
/// Responses have collapsed when a cell gets no more than this share of what as many requesters get elsewhere. A tick's
/// granularity alone can cost a slot of ten; a quarter is more than that.
const COLLAPSED: f64 = 0.75;
/// Both must last for so many rungs, to the last one: a single one may have been spoiled by what else ran here.
const LASTING_RUNGS: usize = 2;
/// One requester overloads no loop. Where more of its ticks than this were late nevertheless, something else took its
/// time, and what one requester got is no base for a speed-up.
const BASE_LATE_MOST: f64 = 0.25;
/// An exchange of one chunk: a segment of 1,460 bytes of body and the heads of request and answer.
const SHORT_BYTES_MOST: f64 = 2_000.0;
/// More than two chunks. Anything in between is neither short nor long.
const LONG_BYTES_LEAST: f64 = 3_500.0;
/// Long answers cost when they are slower than this share of the short ones' rate …
const COST_RATE: f64 = 0.95;
/// … or take so many times as long …
const COST_TIME: f64 = 1.1;
/// … or so much more of the processor, of the cores that the server may use.
const COST_CPU_SHARE: f64 = 0.05;
/// What one requester gets is firm where something else agrees with it within this: what two and three get, each.
const FIRM_WITHIN: f64 = 0.05;

/// What never began to be held is no evidence.
const HOLD_LEAST_S: f64 = 0.01;

/// What these rungs show, the plainest first. Empty where there are no requesters or no ticks.
pub(super) fn sweep(rungs: &[Rung]) -> Vec<Conclusion> {
    let cells = Sweep::of(rungs);
    let finders: [fn(&Sweep<'_>) -> Option<Conclusion>; 11] = [
        rates::base_rate,
        rates::ceiling,
        rates::best_requesters,
        rates::linearity,
        rates::super_linearity,
        limits::failures,
        limits::frames_drop,
        limits::responses_collapse,
        limits::short_answers,
        sizes::cost_of_long_answers,
        facts::small_against_large,
    ];
    finders.into_iter().filter_map(|find| find(&cells)).collect()
}

/// One load in one cell.
struct Step<'a> {
    requesters: f64,
    rate_per_s: f64,
    /// what one tick more or less in the hold is of its rate
    edge: f64,
    frames_per_s: Option<f64>,
    /// requests that failed in any way, and connections that did not open
    failures: u64,
    first_error: Option<&'a ErrorSample>,
    /// mean
    service_ns: Option<f64>,
    bytes_per_s: Option<f64>,
    cpu_share: Option<f64>,
    /// mean work of a tick, of its period
    busy_share: Option<f64>,
    /// of the ticks
    late_share: Option<f64>,
    /// something else took the machine's time in a part of the hold
    is_disturbed: bool,
    /// the same load was held again in the same cell, and the rates agree
    is_repeated: bool,
}

/// All loads of one cell, ascending.
struct Cell<'a> {
    names: BTreeMap<String, String>,
    tick_rate_hz: f64,
    steps: Vec<Step<'a>>,
    /// what agrees with the rate of one requester; `None` where nothing does
    firm_by: Option<FirmBy>,
}

/// All cells, in the order in which they were held.
struct Sweep<'a> {
    cells: Vec<Cell<'a>>,
    /// axes with more than one value; the others say nothing in a name
    varying: BTreeSet<String>,
}

impl<'a> Sweep<'a> {
    fn of(rungs: &'a [Rung]) -> Sweep<'a> {
        let mut cells: Vec<Cell<'a>> = Vec::new();
        for rung in rungs.iter().filter(|rung| is_evidence(rung)) {
            let Some(step) = Step::of(rung) else { continue };
            let names = rung.cell.clone().unwrap_or_default();
            let at = cells.iter().position(|cell| cell.names == names).unwrap_or_else(|| {
                let tick_rate_hz = rung.ticks.as_ref().map_or(0.0, |ticks| 1e9 / ticks.period_ns as f64);
                cells.push(Cell { names, tick_rate_hz, steps: Vec::new(), firm_by: None });
                cells.len() - 1
            });
            cells[at].steps.push(step);
        }
        for cell in &mut cells {
            cell.steps = evidence::agreeing(std::mem::take(&mut cell.steps));
        }
        cells.retain(|cell| !cell.steps.is_empty());
        let firm_by: Vec<Option<FirmBy>> = (0..cells.len()).map(|at| evidence::firm_by(&cells, at)).collect();
        cells.iter_mut().zip(firm_by).for_each(|(cell, firm_by)| cell.firm_by = firm_by);
        let varies =
            |axis: &&String| cells.iter().any(|cell| cell.names.get(*axis) != cells[0].names.get(*axis));
        let axes: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.names.keys()).collect();
        let varying = axes.into_iter().filter(varies).cloned().collect();
        Sweep { cells, varying }
    }

    /// A cell by the axes that tell it from the others.
    fn name(&self, cell: &Cell<'_>) -> String {
        let names = cell.names.iter().filter(|(axis, _)| self.varying.contains(*axis));
        show_cell(&names.map(|(axis, value)| (axis.clone(), value.clone())).collect())
    }

    /// ` in all 6 cells`, ` in object · foreground`, ` in A, B and 3 more`; nothing where there is but one cell.
    fn among(&self, cells: &[&Cell<'_>]) -> String {
        match cells {
            [] => String::new(),
            _ if self.cells.len() == 1 => String::new(),
            _ if cells.len() == self.cells.len() => format!(" in all {} cells", cells.len()),
            _ => format!(" in {}", self.listed(cells)),
        }
    }

    fn listed(&self, cells: &[&Cell<'_>]) -> String {
        const NAMED: usize = 3;
        let names: Vec<String> = cells.iter().take(NAMED).map(|cell| self.name(cell)).collect();
        match cells.len().saturating_sub(NAMED) {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }

    /// The cells that differ from one in a single axis, with that axis.
    fn siblings<'s>(&'s self, of: &'s Cell<'a>) -> impl Iterator<Item = (&'s str, &'s Cell<'a>)> {
        self.cells.iter().filter_map(move |other| {
            let mut apart = self.varying.iter().filter(|axis| of.names.get(*axis) != other.names.get(*axis));
            let axis = apart.next()?;
            apart.next().is_none().then_some((axis.as_str(), other))
        })
    }
}

impl<'a> Step<'a> {
    fn of(rung: &'a Rung) -> Option<Step<'a>> {
        let ticks = rung.ticks.as_ref().filter(|ticks| ticks.period_ns > 0)?;
        let period_ns = ticks.period_ns as f64;
        let failed_connects: u64 = rung.connections.counts.failed.values().sum();
        let lost = rung.failed + rung.lost + rung.not_sent + rung.unanswered_at_stop;
        let errors: u64 = rung.errors.values().sum();
        let busy_ns = ticks.busy_ns.as_ref().and_then(|busy| busy.mean);
        Some(Step {
            requesters: rung.load,
            rate_per_s: rung.rate_per_s,
            edge: period_ns / (rung.hold_s * 1e9),
            frames_per_s: rung.frames.as_ref().map(|frames| frames.rate_per_s),
            failures: lost.max(errors) + failed_connects,
            first_error: rung.error_samples.first(),
            service_ns: rung.service_ns.as_ref().and_then(|service| service.mean),
            bytes_per_s: rung.bytes_per_s,
            cpu_share: rung.subject.as_ref().and_then(|subject| subject.process.cpu_share),
            busy_share: busy_ns.map(|ns| ns / period_ns),
            late_share: ticks.late_share,
            is_disturbed: rung.disturbed_share.is_some_and(|share| share > 0.0),
            is_repeated: false,
        })
    }

    fn is_clean(&self) -> bool {
        self.failures == 0
    }

    /// Bytes on the wire per answer, both directions; `None` where some were spent on requests that failed.
    fn bytes_per_answer(&self) -> Option<f64> {
        let bytes = self.bytes_per_s.filter(|_| self.is_clean() && self.rate_per_s > 0.0)?;
        Some(bytes / self.rate_per_s)
    }
}

impl<'a> Cell<'a> {
    fn step(&self, requesters: f64) -> Option<&Step<'a>> {
        self.steps.iter().find(|step| step.requesters == requesters)
    }

    fn clean(&self) -> impl DoubleEndedIterator<Item = &Step<'a>> {
        self.steps.iter().filter(|step| step.is_clean())
    }

    /// What one requester gets of a loop that has nothing else to do.
    fn base(&self) -> Option<&Step<'a>> {
        let is_late = |step: &Step<'_>| step.late_share.is_some_and(|share| share > BASE_LATE_MOST);
        self.step(1.0).filter(|step| step.is_clean() && step.rate_per_s > 0.0 && !is_late(step))
    }

    /// The same, where something else agrees with it: what a speed-up may be told against.
    fn firm_base(&self) -> Option<&Step<'a>> {
        self.base().filter(|_| self.firm_by.is_some())
    }

    fn json(&self) -> Value {
        json!(self.names)
    }
}

/// True when a rung says something about the server: it was judged. Whether it met its objectives does not matter here.
/// A partly disturbed rung may still count, by its neighbours (`evidence::agreeing`).
fn is_evidence(rung: &Rung) -> bool {
    let is_spoiled = match rung.verdict {
        Verdict::Pass | Verdict::Fail => rung.signal.as_deref() == Some("server exited"),
        Verdict::Inconclusive | Verdict::GeneratorLimited | Verdict::Invalid => true,
    };
    rung.load_unit == LoadUnit::Requesters && !is_spoiled && rung.hold_s > HOLD_LEAST_S
}

/// `1 requester`, `10 requesters`
fn requesters(count: f64) -> String {
    if count == 1.0 { "1 requester".to_owned() } else { format!("{count} requesters") }
}

/// `300.0/s`
fn per_s(rate: f64) -> String {
    format!("{rate:.1}/s")
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests;
