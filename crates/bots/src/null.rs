//! A bot without a socket: measures the cost and the lateness of the pacer and the recording alone.

use std::sync::Arc;

use drivers::{Closed, Nowhere};
use engine::{BotContext, Bots, ConnectionId};
use measure::MetricNames;
use plan::{EchoBots, WorkerPlan};

/// All pulses of one worker: `units` bots, each at the plan's echo rate.
pub struct NullBot {
    connections: Vec<Option<ConnectionId>>,
    gap_ns: u64,
    phases: fastrand::Rng,
}

impl Bots for NullBot {
    type Driver = Nowhere;
    type Settings = EchoBots;

    fn metric_names(_: &EchoBots) -> Arc<MetricNames> {
        crate::disconnects::metric_names(&["pulse"], &[], &[], &[])
    }

    fn new(echo: &EchoBots, plan: &WorkerPlan) -> Self {
        NullBot {
            connections: vec![None; plan.units as usize],
            gap_ns: (1e9 / echo.rate_per_s.max(1e-3)) as u64,
            phases: fastrand::Rng::with_seed(plan.seed),
        }
    }

    fn join(&mut self, unit: u32, _: u64, ctx: &mut BotContext<'_, Nowhere>) {
        ctx.open(unit, 0);
    }

    fn opened(&mut self, connection: ConnectionId, bot: u32, ctx: &mut BotContext<'_, Nowhere>) {
        self.connections[bot as usize] = Some(connection);
        ctx.at(ctx.now_ns() + self.phases.u64(0..self.gap_ns), bot, 0);
    }

    fn received(
        &mut self,
        _: ConnectionId,
        _: u32,
        received: std::convert::Infallible,
        _: u64,
        _: &mut BotContext<'_, Nowhere>,
    ) {
        match received {}
    }

    fn due(&mut self, bot: u32, _: u32, planned_ns: u64, ctx: &mut BotContext<'_, Nowhere>) {
        ctx.at(planned_ns + self.gap_ns, bot, 0);
        if let Some(connection) = self.connections[bot as usize] {
            ctx.send(connection, 0, planned_ns, ());
        }
    }

    fn closed(&mut self, _: ConnectionId, bot: u32, _: Closed, _: &mut BotContext<'_, Nowhere>) {
        self.connections[bot as usize] = None;
    }
}
