//! Rooms: memberships, messages and who received them go into the delivery ledger.
//!
//! A bot without a connection is a member of no room. After the hold a worker waits until everything owed has arrived,
//! or has timed out.

use engine::BotContext;
use measure::ledger::Heard;

use super::names::THREW;
use super::{AnyDriver, Scripts, Stage};

/// Deliveries in flight after the hold are waited for this long at most; the engine's own drain is a little longer.
const DRAIN_NS_MAX: u64 = 7_000_000_000;

impl<D: AnyDriver> Scripts<D> {
    pub(super) fn said(
        &mut self,
        bot: u32,
        room: &str,
        seq: u64,
        planned_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        let now_ns = ctx.now_ns();
        if let Err(wrong) = ctx.ledger().said(bot, room, seq, (planned_ns, now_ns)) {
            ctx.error_with(THREW, || wrong.to_string());
        }
    }

    pub(super) fn heard(&mut self, bot: u32, room: &str, from: u64, seq: u64, ctx: &mut BotContext<'_, D>) {
        if ctx.heard(bot, room, from, seq) == Heard::New
            && let Some(delivered) = self.causes.delivered
        {
            ctx.count(delivered, 1);
        }
    }

    /// A connection of a bot has ended; with the last of them it is a member of no room any more.
    pub(super) fn look_at_membership(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        // What arrives after a close is discarded.
        if self.bots[bot as usize].sockets.iter().all(|socket| socket.stage == Stage::Closing) {
            let now_ns = ctx.now_ns();
            ctx.ledger().cut_off(bot, now_ns);
        }
    }

    /// Whether nothing that is owed in rooms can come any more.
    pub(super) fn rooms_have_drained(&mut self, ctx: &mut BotContext<'_, D>) -> bool {
        let waits_until_ns = self.drain_began_ns + self.patience_ns.min(DRAIN_NS_MAX);
        let has_drained = ctx.ledger().rooms_owe_nothing() || ctx.now_ns() >= waits_until_ns;
        if has_drained {
            ctx.ledger().rooms_have_caught_up();
        }
        has_drained
    }
}
