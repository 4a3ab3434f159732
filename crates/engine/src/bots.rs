//! The trait that every workload implements: all bots of one worker behind one value.

use std::sync::Arc;

use drivers::{Closed, Driver};
use measure::{LedgerShape, MetricNames};
use plan::{WorkerPlan, WorkloadSettings};

use crate::context::BotContext;
use crate::ids::ConnectionId;

/// All bots of one worker. Every call returns at once.
pub trait Bots: Sized + 'static {
    /// The protocol they speak.
    type Driver: Driver;

    /// What the plan says of them.
    type Settings: WorkloadSettings;

    /// The names of what they count; the same for every worker of a trial.
    fn metric_names(settings: &Self::Settings) -> Arc<MetricNames>;

    /// Paths they connect to; `BotContext::open` takes an index into it.
    fn paths(plan: &WorkerPlan) -> Vec<String> {
        vec![plan.target.path.clone()]
    }

    /// The ledger that this worker keeps; `None`: nothing they send owes deliveries.
    fn ledger(_settings: &Self::Settings, _plan: &WorkerPlan) -> Option<LedgerShape> {
        None
    }

    /// Room for all units of this worker.
    fn new(settings: &Self::Settings, plan: &WorkerPlan) -> Self;

    /// The ramp instant of one unit of load has come; `unit` counts this worker's units from 0.
    fn join(&mut self, unit: u32, planned_ns: u64, ctx: &mut BotContext<'_, Self::Driver>);

    /// A connection can be used.
    fn opened(&mut self, connection: ConnectionId, bot: u32, ctx: &mut BotContext<'_, Self::Driver>);

    /// A message was read at `at_ns`.
    fn received(
        &mut self,
        connection: ConnectionId,
        bot: u32,
        received: <Self::Driver as Driver>::Received<'_>,
        at_ns: u64,
        ctx: &mut BotContext<'_, Self::Driver>,
    );

    /// An instant requested with `BotContext::at` has come.
    fn due(&mut self, bot: u32, what: u32, planned_ns: u64, ctx: &mut BotContext<'_, Self::Driver>);

    /// A connection that stood is about to end, and the replies that are owed on it with it; those that the bots keep
    /// (`BotContext::keep`) go on. `closed` follows.
    fn ending(
        &mut self,
        _connection: ConnectionId,
        _bot: u32,
        _why: &Closed,
        _ctx: &mut BotContext<'_, Self::Driver>,
    ) {
    }

    /// A connection ended that the bot did not close itself, or never opened.
    fn closed(
        &mut self,
        connection: ConnectionId,
        bot: u32,
        why: Closed,
        ctx: &mut BotContext<'_, Self::Driver>,
    );

    /// How many units were sent in and are not yet in, where a connection alone does not make them so, such as members
    /// of a room. The ramp lasts until there are none; the bots that count them must make sure that this ends.
    fn pending(&self) -> u64 {
        0
    }

    /// A batch of due items has been served; for work that must not wait behind a backlog of them.
    fn turn(&mut self, _ctx: &mut BotContext<'_, Self::Driver>) {}

    /// Nothing further is planned. Connections are closed by the worker once `has_drained`.
    fn drain(&mut self, _ctx: &mut BotContext<'_, Self::Driver>) {}

    /// Whether the bots go on as planned after the hold, until each has ended: then what is due later comes too.
    fn go_on_to_their_end(&self) -> bool {
        false
    }

    /// The connections are closed now: what the bots still meant to send never leaves.
    fn leave(&mut self, _ctx: &mut BotContext<'_, Self::Driver>) {}

    /// Whether everything that the bots wait for after the hold has come; asked at each turn, for some seconds at most.
    fn has_drained(&mut self, _ctx: &mut BotContext<'_, Self::Driver>) -> bool {
        true
    }
}
