//! Planted duels: servers whose true ratio is known, on machines with known disturbances. For tests and measurements of
//! the method.

use std::collections::BTreeMap;
use std::f64::consts::PI;

use measure::Purpose;

use crate::duel::{Duel, DuelNext, DuelStop, DuelTrial, HeldTrial, Rules, Side, Standing};
use crate::figures::FigureValue;
use crate::judge::Verdict;
use crate::schedule::{Judged, NextTrial};

const TRIAL_NS: u64 = 10_000_000_000;

/// How trials of the same server differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// independently, normal
    Independent,
    /// the machine drifts: nine tenths of the variance of a block come from a state that follows the last one by 0.7 (AR(1))
    Drifting,
    /// a trial is the mean of a few dozen messages that share the luck of their tick
    Clustered,
    /// independently, Student's t with 3 degrees of freedom: every thirtieth trial is off by three standard deviations
    HeavyTailed,
}

impl Noise {
    /// All of them.
    pub const ALL: [Noise; 4] = [Noise::Independent, Noise::Drifting, Noise::Clustered, Noise::HeavyTailed];
}

/// Two servers on a machine.
#[derive(Clone, Debug)]
pub struct World {
    noise: Noise,
    /// standard deviation of ln(B / A) within a block
    block_sd: f64,
    /// B's true figures over A's
    ratios: Vec<f64>,
    random: fastrand::Rng,
    machine: f64,
}

const FOLLOWS: f64 = 0.7;
const MACHINE_PART: f64 = 0.9;
const TICKS: usize = 12;
const MESSAGES: usize = 4;
/// Of the variance of a message, what its tick brings.
const TICK_PART: f64 = 0.8;

impl World {
    /// One figure for each ratio; each has independent noise.
    pub fn new(noise: Noise, block_sd: f64, ratios: &[f64], seed: u64) -> World {
        let mut world = World {
            noise,
            block_sd,
            ratios: ratios.to_vec(),
            random: fastrand::Rng::with_seed(seed),
            machine: 0.0,
        };
        world.machine = world.normal() * world.machine_sd();
        world
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.random.f64(), self.random.f64());
        (-2.0 * u.ln()).sqrt() * (2.0 * PI * v).cos()
    }

    /// So that two neighbouring states differ by the machine's part of the block's variance.
    fn machine_sd(&self) -> f64 {
        self.block_sd * (MACHINE_PART / (2.0 * (1.0 - FOLLOWS))).sqrt()
    }

    /// The figures of a trial.
    pub fn trial(&mut self, side: Side) -> Vec<f64> {
        let sd = self.machine_sd();
        self.machine = FOLLOWS * self.machine + (1.0 - FOLLOWS * FOLLOWS).sqrt() * sd * self.normal();
        let ratios = self.ratios.clone();
        ratios.iter().map(|ratio| self.figure() * if side == Side::B { *ratio } else { 1.0 }).collect()
    }

    fn figure(&mut self) -> f64 {
        let sd = self.block_sd / 2.0_f64.sqrt();
        match self.noise {
            Noise::Independent => (sd * self.normal()).exp(),
            Noise::Drifting => (self.machine + (1.0 - MACHINE_PART).sqrt() * sd * self.normal()).exp(),
            Noise::HeavyTailed => {
                let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
                // The variance of Student's t with 3 degrees of freedom is 3.
                (sd / 3.0_f64.sqrt() * self.normal() / (squares / 3.0).sqrt()).exp()
            }
            Noise::Clustered => {
                let tick_sd = sd * (TICK_PART * TICKS as f64).sqrt();
                let message_sd = sd * ((1.0 - TICK_PART) * (TICKS * MESSAGES) as f64).sqrt();
                let mut sum = 0.0;
                for _ in 0..TICKS {
                    let tick = tick_sd * self.normal();
                    sum += (0..MESSAGES).map(|_| (tick + message_sd * self.normal()).exp()).sum::<f64>();
                }
                sum / (TICKS * MESSAGES) as f64
            }
        }
    }

    /// ln(B / A) of each of so many blocks whose order is random, of the first figure.
    pub fn blocks(&mut self, count: usize) -> Vec<f64> {
        let block = |world: &mut World| {
            let first = if world.random.bool() { Side::A } else { Side::B };
            let before = world.trial(first)[0];
            let after = world.trial(if first == Side::A { Side::B } else { Side::A })[0];
            if first == Side::A { (after / before).ln() } else { (before / after).ln() }
        };
        (0..count).map(|_| block(self)).collect()
    }

    /// Holds the trial that a duel requested.
    pub fn hold(&mut self, order: &DuelTrial) -> HeldTrial {
        let figures = self.trial(order.side).into_iter().map(FigureValue::Value).collect();
        let verdict = Some(Verdict::Pass);
        held(order.seq, Purpose::Rung, order.load, order.side.cell(), verdict, figures)
    }

    /// Holds what a duel asks for until it asks for nothing more.
    pub fn fight(&mut self, duel: &Duel, rules: &Rules) -> (Vec<HeldTrial>, DuelStop) {
        let mut held = Vec::new();
        loop {
            match duel.next(&held, rules) {
                DuelNext::Done(stop) => return (held, stop),
                DuelNext::Trial(order) => held.push(self.hold(&order)),
                DuelNext::Calibration(order) => held.push(calibration(&order)),
            }
        }
    }

    /// What is known when a duel asks for nothing more.
    pub fn standing(&mut self, duel: &Duel, rules: &Rules) -> Standing {
        let (held, _) = self.fight(duel, rules);
        duel.standing(&held, rules)
    }
}

/// A calibration that nothing disturbed.
pub fn calibration(order: &NextTrial) -> HeldTrial {
    held(order.seq, order.purpose, order.load, BTreeMap::new(), None, Vec::new())
}

fn held(
    seq: u32,
    purpose: Purpose,
    load: f64,
    cell: BTreeMap<String, String>,
    verdict: Option<Verdict>,
    figures: Vec<FigureValue>,
) -> HeldTrial {
    HeldTrial {
        seq,
        judged: Judged { purpose, load, cell, verdict, ..Judged::default() },
        unfair: None,
        figures,
        took_ns: TRIAL_NS,
    }
}

/// A duel over the first `figures` percentiles of the response under one load.
pub fn duel(figures: usize, blocks_most: usize, delta: f64, seed: u64) -> Duel {
    const NAMES: [&str; 5] =
        ["response.p50", "response.p99", "service.p50", "service.p99", "subject.cpu_per_message"];
    Duel {
        seed,
        loads: vec![100.0],
        calibrations: Vec::new(),
        figures: NAMES[..figures].iter().map(|name| (*name).to_owned()).collect(),
        gates: Vec::new(),
        delta,
        blocks_most,
        disturbed_share_most: 1.0,
        budget_ns: u64::MAX / 2,
    }
}
