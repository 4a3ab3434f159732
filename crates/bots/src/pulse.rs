//! A pulse without a socket: what the pacer and the books cost, and how late they are, by themselves.

use std::sync::Arc;

use drivers::{Closed, Nowhere, OpenError};
use engine::{Bots, Hand, LineId};
use measure::Vocabulary;
use plan::WorkerPlan;

/// All pulses of one worker: `units` bots, each at the plan's echo rate.
pub struct Pulse {
    lines: Vec<Option<LineId>>,
    gap_ns: u64,
    phases: fastrand::Rng,
}

impl Bots for Pulse {
    type Driver = Nowhere;

    fn vocabulary(_: &plan::Bots) -> Arc<Vocabulary> {
        Vocabulary::new(&["pulse"], &[], &[], &OpenError::CAUSES)
    }

    fn new(plan: &WorkerPlan) -> Self {
        let plan::Bots::Echo(echo) = &plan.bots else { panic!("the catalog gave us somebody else's plan") };
        Pulse {
            lines: vec![None; plan.units as usize],
            gap_ns: (1e9 / echo.rate_per_s.max(1e-3)) as u64,
            phases: fastrand::Rng::with_seed(plan.seed),
        }
    }

    fn join(&mut self, unit: u32, _: u64, hand: &mut Hand<'_, Nowhere>) {
        hand.open(unit, 0);
    }

    fn opened(&mut self, line: LineId, bot: u32, hand: &mut Hand<'_, Nowhere>) {
        self.lines[bot as usize] = Some(line);
        hand.at(hand.now_ns() + self.phases.u64(0..self.gap_ns), bot, 0);
    }

    fn heard(
        &mut self,
        _: LineId,
        _: u32,
        heard: std::convert::Infallible,
        _: u64,
        _: &mut Hand<'_, Nowhere>,
    ) {
        match heard {}
    }

    fn due(&mut self, bot: u32, _: u32, planned_ns: u64, hand: &mut Hand<'_, Nowhere>) {
        hand.at(planned_ns + self.gap_ns, bot, 0);
        if let Some(line) = self.lines[bot as usize] {
            hand.tell(line, 0, planned_ns, ());
        }
    }

    fn closed(&mut self, _: LineId, bot: u32, _: Closed, _: &mut Hand<'_, Nowhere>) {
        self.lines[bot as usize] = None;
    }
}
