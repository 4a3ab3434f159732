//! What is known about every figure of a duel after the blocks held so far.
//!
//! One hypothesis per figure and load: B equals A. Holm (1979) over all of them, at every look: a rejected hypothesis
//! stays rejected, and the others are then tested at a wider level (group sequential Holm: Ye et al. 2013; Maurer &
//! Bretz 2013), so that equal servers get any false verdict with probability `ALPHA` at most. The interval shown is
//! valid for its figure alone: a repeated confidence interval (Jennison & Turnbull 1989), valid at whichever look the
//! duel ends. "No difference larger than δ" means that this interval lies within δ on both sides.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::duel::gate::{Gate, GateState};
use crate::duel::interval::{Pairs, Scale};
use crate::duel::looks::{BLOCKS_LEAST, Looks};
use crate::duel::schedule::Block;
use crate::duel::{ALPHA, Duel, SHARE_DELTA};
use crate::figures::{FigureDoc, FigureValue, UnitKind};

/// How sure a verdict must be. The looks are reckoned once and kept.
#[derive(Debug)]
pub struct Rules {
    alpha: f64,
    delta: f64,
    blocks_most: usize,
    /// by how many comparisons share the level
    looks: RefCell<BTreeMap<usize, Arc<Looks>>>,
}

impl Rules {
    /// For a duel of at most `blocks_most` blocks per load. `delta` as of `Duel`; `alpha` in (0, 1).
    pub fn new(alpha: f64, delta: f64, blocks_most: usize) -> Rules {
        Rules { alpha, delta, blocks_most, looks: RefCell::default() }
    }

    /// The looks of one of `sharing` comparisons that may err with `alpha` together.
    pub fn looks(&self, sharing: usize) -> Arc<Looks> {
        let sharing = sharing.max(1);
        let make = || Arc::new(Looks::new(self.alpha / sharing as f64, self.blocks_most));
        self.looks.borrow_mut().entry(sharing).or_insert_with(make).clone()
    }

    fn is_small(&self, figure: &FigureDoc, (low, high): (f64, f64)) -> bool {
        let (least, most) = match (Scale::of(figure), figure.unit) {
            (Scale::Ratio, _) => (-self.delta.ln_1p(), self.delta.ln_1p()),
            (Scale::Difference, UnitKind::Share) => (-SHARE_DELTA, SHARE_DELTA),
            // For a count no difference is known to be negligible.
            (Scale::Difference, _) => (0.0, 0.0),
        };
        least <= low && high <= most
    }
}

/// One figure under one load: its values at A and B, block by block.
#[derive(Clone, Debug)]
pub struct Sample {
    /// which
    pub figure: &'static FigureDoc,
    /// in the order in which they were held
    pub blocks: Vec<(FigureValue, FigureValue)>,
}

impl Sample {
    fn pairs(&self, blocks: usize) -> Pairs {
        Pairs::of(Scale::of(self.figure), &self.blocks[..blocks.min(self.blocks.len())])
    }
}

/// What is known of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum DuelVerdict {
    /// B's is smaller than A's
    Smaller,
    /// B's is larger than A's
    Larger,
    /// they may differ, but by δ at most
    NoDifferenceLargerThanDelta,
    /// the blocks do not tell
    Undecided,
}

/// A figure's verdict and what it rests on.
#[derive(Clone, Debug)]
pub struct Finding {
    /// which
    pub figure: &'static FigureDoc,
    /// how `centre` and `range` are to be read
    pub scale: Scale,
    /// blocks that say something about it
    pub blocks: usize,
    /// its values at A and B, block by block
    pub values: Vec<(FigureValue, FigureValue)>,
    /// the blocks' values, compared
    pub pairs: Pairs,
    /// the estimate, on the scale; `None` before the first block
    pub centre: Option<f64>,
    /// the interval, on the scale; `None` before the first look
    pub range: Option<(f64, f64)>,
    /// what is known
    pub verdict: DuelVerdict,
    /// after how many blocks a difference was known
    pub known_after: Option<usize>,
    /// medians of A and B over the blocks, in the figure's unit
    pub medians: (Option<f64>, Option<f64>),
    /// why a block does not state it, where one does not
    pub unstated_because: Option<String>,
}

impl Finding {
    /// Whether more blocks would not be held for it. A figure that most blocks do not state keeps no duel going.
    fn is_settled(&self) -> bool {
        self.verdict != DuelVerdict::Undecided || (self.blocks >= 1 && self.pairs.unstated > self.blocks)
    }
}

/// What is known of each sample, after all of its blocks.
pub fn findings(samples: &[Sample], rules: &Rules) -> Vec<Finding> {
    let known = holm(samples, rules);
    let alone = rules.looks(1);
    samples
        .iter()
        .zip(known)
        .map(|(sample, known)| {
            let pairs = sample.pairs(usize::MAX);
            let range = pairs.range(&alone);
            let verdict = match known {
                Some((_, Ordering::Less)) => DuelVerdict::Smaller,
                Some(_) => DuelVerdict::Larger,
                None if range.is_some_and(|range| rules.is_small(sample.figure, range)) => {
                    DuelVerdict::NoDifferenceLargerThanDelta
                }
                None => DuelVerdict::Undecided,
            };
            Finding {
                figure: sample.figure,
                scale: Scale::of(sample.figure),
                values: sample.blocks.clone(),
                blocks: pairs.count(),
                centre: pairs.centre(),
                pairs,
                range,
                verdict,
                known_after: known.map(|(blocks, _)| blocks),
                medians: medians(&sample.blocks),
                unstated_because: sample
                    .blocks
                    .iter()
                    .find_map(|(a, b)| unstated(*a).or_else(|| unstated(*b))),
            }
        })
        .collect()
}

/// After how many blocks each sample was known to differ, and in which direction.
fn holm(samples: &[Sample], rules: &Rules) -> Vec<Option<(usize, Ordering)>> {
    let mut known: Vec<Option<(usize, Ordering)>> = vec![None; samples.len()];
    let longest = samples.iter().map(|sample| sample.blocks.len()).max().unwrap_or(0);
    for blocks in BLOCKS_LEAST..=longest {
        loop {
            let left = known.iter().filter(|one| one.is_none()).count();
            let before = left;
            let looks = rules.looks(left.max(1));
            for (sample, known) in samples.iter().zip(&mut known) {
                if known.is_none() {
                    *known = sample.pairs(blocks).range(&looks).and_then(side_of_zero).map(|at| (blocks, at));
                }
            }
            if known.iter().filter(|one| one.is_none()).count() == before {
                break;
            }
        }
    }
    known
}

fn side_of_zero((low, high): (f64, f64)) -> Option<Ordering> {
    match () {
        () if high < 0.0 => Some(Ordering::Less),
        () if low > 0.0 => Some(Ordering::Greater),
        () => None,
    }
}

/// Why a trial does not state a figure; `None`: it does.
pub(super) fn unstated(value: FigureValue) -> Option<String> {
    match value {
        FigureValue::Value(_) | FigureValue::Infinite => None,
        FigureValue::TooFew { count, needed } => {
            Some(format!("{count} samples, and it takes {needed}; hold longer (--hold)"))
        }
        FigureValue::Absent(why) => Some(why.to_owned()),
    }
}

fn medians(blocks: &[(FigureValue, FigureValue)]) -> (Option<f64>, Option<f64>) {
    let median = |side: fn(&(FigureValue, FigureValue)) -> FigureValue| {
        let number = |value| match value {
            FigureValue::Value(value) => Some(value),
            FigureValue::Infinite => Some(f64::INFINITY),
            FigureValue::TooFew { .. } | FigureValue::Absent(_) => None,
        };
        let mut values: Vec<f64> = blocks.iter().filter_map(|block| number(side(block))).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) =
            (values.get(values.len().checked_sub(1)? / 2).copied()?, values.get(values.len() / 2).copied()?);
        Some(if low == high { low } else { 0.5 * (low + high) })
    };
    (median(|block| block.0), median(|block| block.1))
}

/// A gate under one load.
#[derive(Clone, Debug)]
pub struct GateFinding {
    /// which
    pub gate: Gate,
    /// what is known of it
    pub state: GateState,
}

/// What is known under one load.
#[derive(Clone, Debug)]
pub struct LoadStanding {
    /// in the unit of its bots
    pub load: f64,
    /// blocks with both trials
    pub blocks: usize,
    /// why others were dropped, in the order in which they were held
    pub dropped: Vec<String>,
    /// the figures that were measured
    pub findings: Vec<Finding>,
    /// the gates, in the order of the duel's
    pub gates: Vec<GateFinding>,
    /// no further block is needed
    pub is_decided: bool,
}

/// After so many blocks a figure that was never measured will not be.
const UNMEASURED_AFTER: usize = 2;

impl LoadStanding {
    /// Whether no figure is measured here at all, and none will be.
    pub fn is_unmeasured(&self) -> bool {
        self.blocks >= UNMEASURED_AFTER && self.findings.is_empty()
    }

    /// A gate whose figure no block states, and why.
    pub fn unmeasured_gate(&self) -> Option<(&Gate, &str)> {
        let of_gate = |gate: &GateFinding| {
            self.findings.iter().find(|finding| finding.figure.name == gate.gate.figure().name)
        };
        let is_unmeasured = |finding: &&Finding| finding.blocks == 0 && self.blocks >= UNMEASURED_AFTER;
        self.gates.iter().find_map(|gate| {
            let finding = of_gate(gate).filter(is_unmeasured)?;
            Some((
                &gate.gate,
                finding.unstated_because.as_deref().unwrap_or("it was 0 or infinite on both sides"),
            ))
        })
    }
}

/// What is known under all loads.
#[derive(Clone, Debug)]
pub struct Standing {
    /// ascending
    pub loads: Vec<LoadStanding>,
}

impl Duel {
    /// How sure its verdicts must be.
    pub fn rules(&self) -> Rules {
        Rules::new(ALPHA, self.delta, self.blocks_most)
    }

    /// What the blocks of each load say, one list of blocks per load.
    pub(super) fn standing_of(&self, by_load: &[Vec<Block>], rules: &Rules) -> Standing {
        let figures = self.compared();
        let is_gated = |figure: &FigureDoc| self.gates.iter().any(|gate| gate.figure().name == figure.name);
        // The first block decides once and for all which figures there are: later blocks must not choose what is
        // tested.
        let samples_of = |blocks: &[Block]| -> Vec<Sample> {
            let fair: Vec<_> = blocks.iter().filter_map(|block| block.fair.as_ref()).collect();
            let measured = |at: usize| {
                let is_there =
                    |value: &FigureValue| matches!(value, FigureValue::Value(_) | FigureValue::Infinite);
                let is_measured = fair
                    .first()
                    .is_some_and(|(a, b)| a.get(at).is_some_and(is_there) && b.get(at).is_some_and(is_there));
                is_measured || is_gated(figures[at])
            };
            let value =
                |side: &[FigureValue], at: usize| side.get(at).copied().unwrap_or(FigureValue::Infinite);
            (0..figures.len())
                .filter(|at| measured(*at))
                .map(|at| Sample {
                    figure: figures[at],
                    blocks: fair.iter().map(|(a, b)| (value(a, at), value(b, at))).collect(),
                })
                .collect()
        };
        let samples: Vec<Vec<Sample>> = by_load.iter().map(|blocks| samples_of(blocks)).collect();
        let all: Vec<Sample> = samples.iter().flatten().cloned().collect();
        let joint_gates = self.gates.len() * self.loads.len();
        let mut found = findings(&all, rules).into_iter();
        let loads = by_load.iter().zip(&samples).zip(&self.loads).map(|((blocks, samples), load)| {
            let findings: Vec<Finding> = found.by_ref().take(samples.len()).collect();
            let gates = self.gates.iter().map(|gate| {
                let pairs = findings
                    .iter()
                    .find(|finding| finding.figure.name == gate.figure().name)
                    .map(|finding| &finding.pairs);
                let range = |sharing: usize| pairs.and_then(|pairs| pairs.range(&rules.looks(sharing)));
                GateFinding { gate: gate.clone(), state: gate.state(range(1), range(joint_gates)) }
            });
            let gates: Vec<GateFinding> = gates.collect();
            let is_decided = match gates.as_slice() {
                [] => !findings.is_empty() && findings.iter().all(Finding::is_settled),
                gates => gates.iter().all(|one| one.state != GateState::Undecided),
            };
            LoadStanding {
                load: *load,
                blocks: blocks.iter().filter(|block| block.fair.is_some()).count(),
                dropped: blocks.iter().filter_map(|block| block.dropped.clone()).collect(),
                findings,
                gates,
                is_decided,
            }
        });
        Standing { loads: loads.collect() }
    }
}
