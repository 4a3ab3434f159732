//! The next trial of a duel, as a pure function of the trials held so far.
//!
//! In each round, every load that is still open gets one block: A and B, in an order drawn from the seed. A fair coin
//! decides each block separately, because the interval relies on the order being independent from block to block. If a
//! trial was unfair, its whole block is dropped and another one is held.

use std::collections::BTreeMap;

use measure::Purpose;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::duel::Duel;
use crate::duel::gate::GateState;
use crate::duel::verdicts::{Rules, Standing};
use crate::figures::FigureValue;
use crate::schedule::{Judged, NextTrial, next_calibration};

/// After this many dropped blocks in a row nothing more is held: whatever spoils them does so every time.
const DROPPED_MOST: usize = 4;

/// One of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Side {
    /// what B is compared with
    A,
    /// what is compared
    B,
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::A, Side::B];
    /// Under this name the cell of a trial says which side was held.
    pub const AXIS: &str = "side";

    /// `A` or `B`.
    pub fn name(self) -> &'static str {
        match self {
            Side::A => "A",
            Side::B => "B",
        }
    }

    /// The cell of its trials.
    pub fn cell(self) -> BTreeMap<String, String> {
        BTreeMap::from([(Side::AXIS.to_owned(), self.name().to_owned())])
    }

    /// The side of a trial in this cell.
    pub fn of(cell: &BTreeMap<String, String>) -> Option<Side> {
        let name = cell.get(Side::AXIS)?;
        Side::BOTH.into_iter().find(|side| side.name() == name)
    }

    fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// A trial that a duel asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct DuelTrial {
    /// number within the run, from 0
    pub seq: u32,
    /// the load, in the unit of its bots
    pub load: f64,
    /// whose
    pub side: Side,
    /// the how-manieth block of its load it belongs to, from 0, dropped ones included
    pub block: usize,
    /// it is the first of its block
    pub begins_block: bool,
}

/// A trial that was held, as far as a duel must know it.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldTrial {
    /// number within the run
    pub seq: u32,
    /// its verdict and its end
    pub judged: Judged,
    /// why it says nothing about its server; `None`: it does
    pub unfair: Option<String>,
    /// its figures, in the order of `Duel::compared`
    pub figures: Vec<FigureValue>,
    /// from its beginning to its end, ns
    pub took_ns: u64,
}

/// Two trials of one load that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// the figures of A and B, where both trials were held and fair
    pub fair: Option<(Vec<FigureValue>, Vec<FigureValue>)>,
    /// why it does not count; `None`: it does, or is not complete yet
    pub dropped: Option<String>,
    /// what is held of it, while it is not complete
    open: Option<Side>,
    took_ns: u64,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum DuelNext {
    /// calibrate the generator
    Calibration(NextTrial),
    /// hold this
    Trial(DuelTrial),
    /// nothing; why
    Done(DuelStop),
}

/// Why a duel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum DuelStop {
    /// everything that was asked is known
    Known,
    /// as many blocks were held as had been planned
    Blocks,
    /// another block would not end within the budget
    Budget,
    /// a gate's figure, or every figure under a load, is not measured
    NotMeasured,
    /// one block after the other had to be dropped
    Unfair,
    /// the user ended it
    Interrupted,
    /// A's process ended under load
    ExitedA,
    /// B's process ended under load
    ExitedB,
    /// of client libraries: operations of A failed
    FailedA,
    /// of client libraries: operations of B failed
    FailedB,
}

impl Duel {
    /// The next trial, given all that were held, in any order.
    pub fn next(&self, held: &[HeldTrial], rules: &Rules) -> DuelNext {
        let blocks = self.blocks(held);
        // Most cases need no figures.
        self.without_looking(held, &blocks)
            .unwrap_or_else(|| self.choose(held, &blocks, &self.standing_of(&blocks, rules)))
    }

    /// What is known by now.
    pub fn standing(&self, held: &[HeldTrial], rules: &Rules) -> Standing {
        self.standing_of(&self.blocks(held), rules)
    }

    fn without_looking(&self, held: &[HeldTrial], blocks: &[Vec<Block>]) -> Option<DuelNext> {
        if held.iter().any(|trial| trial.judged.was_interrupted) {
            return Some(DuelNext::Done(DuelStop::Interrupted));
        }
        let exited = held.iter().find(|one| one.judged.purpose == Purpose::Rung && one.judged.subject_exited);
        if let Some(trial) = exited {
            return Some(DuelNext::Done(match Side::of(&trial.judged.cell) {
                Some(Side::B) => DuelStop::ExitedB,
                _ => DuelStop::ExitedA,
            }));
        }
        let seq = held.len() as u32;
        let judged: Vec<Judged> = held.iter().map(|trial| trial.judged.clone()).collect();
        if let Some(next) = next_calibration(&self.calibrations, &judged) {
            return Some(DuelNext::Calibration(next));
        }
        let half = |(at, of_load): (usize, &Vec<Block>)| Some((at, of_load.last()?.open?));
        let (at, side) = blocks.iter().enumerate().find_map(half)?;
        Some(self.trial(seq, at, side.other(), (blocks[at].len() - 1, false)))
    }

    fn choose(&self, held: &[HeldTrial], blocks: &[Vec<Block>], standing: &Standing) -> DuelNext {
        let loads = &standing.loads;
        let mut gates = loads.iter().flat_map(|load| &load.gates);
        // One missed gate is an answer, whatever the others would give.
        if gates.any(|gate| gate.state == GateState::NotMet) || loads.iter().all(|load| load.is_decided) {
            return DuelNext::Done(DuelStop::Known);
        }
        if loads.iter().any(|load| load.unmeasured_gate().is_some() || load.is_unmeasured()) {
            return DuelNext::Done(DuelStop::NotMeasured);
        }
        let dropped_in_a_row =
            |of_load: &Vec<Block>| of_load.iter().rev().take_while(|block| block.dropped.is_some()).count();
        if blocks.iter().any(|of_load| dropped_in_a_row(of_load) >= DROPPED_MOST) {
            return DuelNext::Done(DuelStop::Unfair);
        }
        let is_open = |at: &usize| !loads[*at].is_decided && loads[*at].blocks < self.blocks_most;
        let Some(at) = (0..loads.len()).filter(is_open).min_by_key(|at| blocks[*at].len()) else {
            return DuelNext::Done(DuelStop::Blocks);
        };
        let took_ns: u64 = held.iter().map(|trial| trial.took_ns).sum();
        let longest_ns = blocks.iter().flatten().map(|block| block.took_ns).max().unwrap_or(0);
        if took_ns + longest_ns > self.budget_ns {
            return DuelNext::Done(DuelStop::Budget);
        }
        let block = blocks[at].len();
        self.trial(held.len() as u32, at, self.first_of(at, block), (block, true))
    }

    fn trial(&self, seq: u32, load: usize, side: Side, (block, begins_block): (usize, bool)) -> DuelNext {
        DuelNext::Trial(DuelTrial { seq, load: self.loads[load], side, block, begins_block })
    }

    /// Which side begins a block of a load.
    fn first_of(&self, load: usize, block: usize) -> Side {
        let mut coins = fastrand::Rng::with_seed(self.seed);
        for _ in 0..block * self.loads.len() + load {
            coins.bool();
        }
        if coins.bool() { Side::A } else { Side::B }
    }

    /// The blocks of each load, from the trials in the order in which they were held.
    pub(super) fn blocks(&self, held: &[HeldTrial]) -> Vec<Vec<Block>> {
        let mut in_order: Vec<&HeldTrial> = held.iter().collect();
        in_order.sort_by_key(|trial| trial.seq);
        let mut blocks: Vec<Vec<Block>> = vec![Vec::new(); self.loads.len()];
        let mut first: Vec<Option<&HeldTrial>> = vec![None; self.loads.len()];
        for trial in in_order {
            let Some(side) = Side::of(&trial.judged.cell) else { continue };
            let Some(at) = self.loads.iter().position(|load| *load == trial.judged.load) else { continue };
            let why = trial.unfair.as_ref().map(|why| format!("{}: {why}", side.name()));
            match first[at].take() {
                None => {
                    let open = why.is_none().then_some(side);
                    first[at] = open.map(|_| trial);
                    blocks[at].push(Block { fair: None, dropped: why, open, took_ns: trial.took_ns });
                }
                Some(before) => {
                    let fair = why.is_none().then(|| {
                        let (before, this) = (before.figures.clone(), trial.figures.clone());
                        if side == Side::B { (before, this) } else { (this, before) }
                    });
                    let took_ns = before.took_ns + trial.took_ns;
                    let complete = Block { fair, dropped: why, open: None, took_ns };
                    if let Some(block) = blocks[at].last_mut() {
                        *block = complete;
                    }
                }
            }
        }
        blocks
    }
}
