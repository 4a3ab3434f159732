//! A duel: whether one server is faster or slower than another under the same load, and by how much.
//!
//! Both are held under the same loads in blocks of two trials, one per side, in random order. `schedule` picks the next
//! trial, `interval` compares figures block by block, `looks` keeps repeated looks from inflating the error rate,
//! `verdicts` states what is known of each figure, `gate` checks changes against the user's bounds. Pure: a replay of
//! the same trials picks the same next trial and reaches the same verdicts.
//! Invariant: a block counts with both of its trials or not at all, and no trial is excluded because of its figures.
//! Method and sources: docs/method/duel.md.

mod contract;
mod gate;
mod interval;
pub mod libraries;
mod looks;
mod schedule;
mod verdicts;
mod wording;

pub use contract::{DuelAnswers, DuelBlock, DuelFigure, DuelGate, DuelLoad, ended};
pub use gate::{Gate, GateError, GateState};
pub use interval::{Pairs, Scale};
pub(crate) use looks::student_critical;
pub use looks::{BLOCKS_LEAST, BLOCKS_MOST, Looks};
pub use schedule::{Block, DuelNext, DuelStop, DuelTrial, HeldTrial, Side};
pub use verdicts::{DuelVerdict, Finding, GateFinding, LoadStanding, Rules, Sample, Standing, findings};
pub use wording::blocks;

use measure::{Purpose, Trial};
use serde::{Deserialize, Serialize};

use crate::figures::{FigureDoc, FigureValue};

/// The probability that a duel of equal servers ends with any false verdict.
pub const ALPHA: f64 = 0.05;
/// Shares that differ by less than this many points are taken for equal.
pub const SHARE_DELTA: f64 = 0.01;

/// What a duel is to find out, and how long it may take. It is stored with the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Duel {
    /// the order within the blocks comes from it
    pub seed: u64,
    /// ascending
    pub loads: Vec<f64>,
    /// purpose and load of each calibration, in their order
    pub calibrations: Vec<(Purpose, f64)>,
    /// what is compared: names of figures; those that were not measured are left out
    pub figures: Vec<String>,
    /// bounds that B's change must keep; where there are any, the duel ends when all of them are decided
    pub gates: Vec<Gate>,
    /// ratios that differ by less count as equal, e.g. 0.05; > 0
    pub delta: f64,
    /// blocks under each load at most, `BLOCKS_LEAST` to `BLOCKS_MOST`
    pub blocks_most: usize,
    /// a trial does not count if a larger share was disturbed, in [0, 1]
    pub disturbed_share_most: f64,
    /// how long all trials together may take, ns
    pub budget_ns: u64,
}

impl Duel {
    /// Figures that matter to the users of most servers, as far as they are measured. `is_closed`: each reply starts the next
    /// request, so that a faster server answers more of them; else the rate is the plan's.
    pub fn usual_figures(is_closed: bool) -> Vec<String> {
        const FIGURES: [&str; 7] = [
            "response.p50",
            "response.p99",
            "deliveries.latency.p50",
            "deliveries.latency.p99",
            "ticks.late_share",
            "errors.share",
            "subject.cpu_per_message",
        ];
        let rate = is_closed.then_some("rate_per_s");
        rate.into_iter().chain(FIGURES).map(str::to_owned).collect()
    }

    /// All figures that are read off a trial: those that are compared, then those that only gates name.
    pub fn compared(&self) -> Vec<&'static FigureDoc> {
        let mut figures: Vec<&'static FigureDoc> =
            self.figures.iter().filter_map(|name| figure_named(name)).collect();
        for gate in &self.gates {
            if !figures.iter().any(|figure| figure.name == gate.figure().name) {
                figures.push(gate.figure());
            }
        }
        figures
    }

    /// Why a trial with these figures (as `read` gives them) does not state the first that it does not state.
    pub fn first_unstated(&self, figures: &[FigureValue]) -> Option<String> {
        let names = self.compared();
        names.iter().zip(figures).find_map(|(figure, value)| {
            verdicts::unstated(*value).map(|why| format!("{}: {why}", figure.name))
        })
    }

    /// The figures of one trial, in the order of `compared`.
    pub fn read(&self, trial: &Trial) -> Vec<FigureValue> {
        self.compared().iter().map(|figure| figure.read(trial)).collect()
    }
}

/// A figure of servers or of client libraries.
fn figure_named(name: &str) -> Option<&'static FigureDoc> {
    FigureDoc::named(name).or_else(|| libraries::named(name))
}

#[cfg(any(test, feature = "testing"))]
pub mod world;

#[cfg(test)]
mod tests;
