//! What the shape of clients' requests costs, in words: how many users, how long they keep a connection, how large a
//! bulk is.
//!
//! A pure function of the published rungs of an HTTP load without ticks; `http::sweep` covers servers with ticks. Rungs
//! that say more about this machine than about the server are no evidence, and neither is a single rung: a cost is
//! stated only if every comparison made points the same way, and if there are at least two of them.
//! Units: CPU in cores and as a share of those that the server may use.

mod bulk;
mod connections;
#[cfg(test)]
mod tests;

use ladder::wording::show_cell;
use ladder::{Conclusion, Rung, Verdict};
use serde_json::{Value, json};

use crate::plan::Axis;

/// Less than this is no difference: the edges of a hold and the readings of CPU reach it.
const NOISE: f64 = 0.05;
/// A shape that costs so much more is worth a sentence.
const WORTH_TELLING: f64 = 0.10;
/// Of the cores that the server may use; beyond it latencies are those of a queue.
const FULL_SHARE: f64 = 0.90;
/// What never began to be held is no evidence.
const HOLD_LEAST_S: f64 = 0.01;

/// What these rungs show, the plainest first.
pub(super) fn conclusions(rungs: &[Rung]) -> Vec<Conclusion> {
    let steps = steps(rungs);
    let found = [
        connections::one_user(&steps),
        connections::short_visits(&steps),
        bulk::cheapest(&steps),
        bulk::full_by_load(&steps),
        bulk::full_by_bulk(&steps),
    ];
    found.into_iter().flatten().collect()
}

/// One load in one cell; of several holds of it the last, if all agree.
struct Step<'a> {
    rung: &'a Rung,
    load: f64,
    passes: bool,
    rate_per_s: f64,
    cpu_cores: Option<f64>,
    cpu_share: Option<f64>,
    p99_ns: Option<f64>,
    handshake_ns: Option<f64>,
}

impl Step<'_> {
    fn on(&self, axis: Axis) -> Option<u64> {
        self.rung.cell.as_ref()?.get(axis.name())?.parse().ok()
    }

    /// The cell without an axis: steps that differ in nothing else have the same.
    fn beside(&self, axis: Axis) -> Vec<(&str, &str)> {
        let cell = self.rung.cell.iter().flatten();
        cell.filter(|(name, _)| *name != axis.name())
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    fn cell(&self) -> Vec<(&str, &str)> {
        self.rung.cell.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// ` (bulk 16)`; nothing where there is one cell
    fn shown_cell(&self) -> String {
        self.rung.cell.as_ref().map_or(String::new(), |cell| format!(" ({})", show_cell(cell)))
    }

    /// CPU seconds of the server for each response
    fn cpu_per_response(&self) -> Option<f64> {
        self.cpu_cores.filter(|_| self.rate_per_s > 0.0).map(|cores| cores / self.rate_per_s)
    }

    fn json(&self) -> Value {
        json!({
            "cell": self.rung.cell, "load": self.load, "load_unit": self.rung.load_unit, "met": self.passes,
            "rate_per_s": self.rate_per_s, "cpu_cores": self.cpu_cores, "cpu_share": self.cpu_share,
            "response_p99_ns": self.p99_ns, "handshake_mean_ns": self.handshake_ns,
        })
    }
}

fn is_evidence(rung: &Rung) -> bool {
    let is_judged = rung.verdict.counts() && rung.signal.as_deref() != Some("server exited");
    is_judged
        && rung.load_unit.counts_requests()
        && rung.ticks.is_none()
        && rung.hold_s > HOLD_LEAST_S
        // CPU cost next to another program is unknown.
        && rung.disturbance.is_none()
}

/// The rungs that count; a load that was held twice in a cell only where both agree.
fn steps(rungs: &[Rung]) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut contradicted: Vec<usize> = Vec::new();
    for rung in rungs.iter().filter(|rung| is_evidence(rung)) {
        let process = rung.subject.as_ref().map(|subject| &subject.process);
        let step = Step {
            rung,
            load: rung.load,
            passes: rung.verdict == Verdict::Pass,
            rate_per_s: rung.rate_per_s,
            cpu_cores: process.map(|process| process.cpu_cores),
            cpu_share: process.and_then(|process| process.cpu_share),
            p99_ns: rung.response_ns.as_ref().and_then(|summary| summary.p99).map(|ns| ns as f64),
            handshake_ns: rung.connections.handshake_ns.as_ref().and_then(|summary| summary.mean),
        };
        let same = |known: &Step<'_>| known.load == step.load && known.rung.cell == rung.cell;
        match steps.iter().position(same) {
            Some(at) if agree(&steps[at], &step) => steps[at] = step,
            Some(at) => contradicted.push(at),
            None => steps.push(step),
        }
    }
    let mut at = 0;
    steps.retain(|_| {
        at += 1;
        !contradicted.contains(&(at - 1))
    });
    steps
}

fn agree(one: &Step<'_>, other: &Step<'_>) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= WORTH_TELLING * a.max(b);
    let cpu = one.cpu_cores.zip(other.cpu_cores).is_none_or(|(a, b)| near(a, b));
    one.passes == other.passes && cpu && near(one.rate_per_s, other.rate_per_s)
}

/// The distinct cells, in the order in which they were held.
fn cells<'s, 'a>(steps: &'s [Step<'a>]) -> Vec<Vec<&'s Step<'a>>> {
    let mut cells: Vec<Vec<&Step<'_>>> = Vec::new();
    for step in steps {
        match cells.iter_mut().find(|cell| cell[0].rung.cell == step.rung.cell) {
            Some(cell) => cell.push(step),
            None => cells.push(vec![step]),
        }
    }
    cells.iter_mut().for_each(|cell| cell.sort_by(|a, b| a.load.total_cmp(&b.load)));
    cells
}
