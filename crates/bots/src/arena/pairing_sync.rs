//! Keeping in step with a server that pairs strictly by arrival.
//!
//! Such a server may let a lone player wait for ever, even one whose connection is closed, and pairs the next one with
//! it. Half a pair left behind, by us or by an earlier client, then shifts every pair that follows.
//! *Never leave half a pair*: when the hold ends, half-connected pairs are completed first.
//! *Detect*: if the server may be out of step (`PairingLock::take_doubt`), the first player of a pair connects alone.
//! If a game starts for it now, its opponent is a stranger. The same holds if one of a pair has started and the other
//! still has not long after both are in, or if a game ends with an error before the partner's has started.
//! *Repair*: one extra player makes the number of arrivals even again. If the mismatched player was alone, it was that
//! extra player itself, and it reconnects; otherwise it is replaced, and its waiting partner gets the new one.
//! After a few failed attempts it is an error: `pairing out of step`.

use drivers::Driver;
use drivers::websocket::{Message as Send, Received};
use engine::BotContext;
use plan::Pairing;

use super::{Arena, error, what};

/// How long a player waits alone to find out whether a game begins for it.
const PROBE_NS: u64 = 200_000_000;
/// Extra players for one pair.
const HEALS_MAX: u32 = 3;
/// Half pairs are completed for so long after the hold.
const FINISH_NS: u64 = 3_000_000_000;

/// Whether a pair finds out if the server is in step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Probe {
    /// it does not
    #[default]
    None,
    /// its first player is in, or on its way in, alone
    Alone,
}

impl<D> Arena<D>
where
    D: for<'a> Driver<Send<'a> = Send<'a>, Received<'a> = Received<'a>>,
{
    /// The first player of a pair comes in alone. Meanwhile no other pair comes in.
    pub(super) fn probe(&mut self, unit: u32, ctx: &mut BotContext<'_, D>) {
        self.pairs[unit as usize].probe = Probe::Alone;
        self.knock_unasked(unit * 2, ctx);
    }

    pub(super) fn wait_alone(&mut self, unit: u32, ctx: &mut BotContext<'_, D>) {
        if ctx.drains() {
            return self.bring_the_partner(unit, ctx);
        }
        let game = self.pairs[unit as usize].game;
        ctx.at(ctx.now_ns() + PROBE_NS, unit * 2, what::code(what::PROBE_OVER, game));
    }

    /// No game began for the first player alone: the server is in step, and the partner follows.
    pub(super) fn bring_the_partner(&mut self, unit: u32, ctx: &mut BotContext<'_, D>) {
        let pair = &mut self.pairs[unit as usize];
        if std::mem::take(&mut pair.probe) != Probe::Alone {
            return;
        }
        self.expect_start(unit * 2, ctx);
        self.begin_connect(unit * 2 + 1, ctx);
        if self.pairing == Pairing::Pipelined {
            self.leave_entrance(unit, ctx);
            self.let_in(ctx);
        }
    }

    /// A pair ends before both have started. While it held the pairing lock, half of it may be left behind.
    pub(super) fn doubt_half_pair(&self, unit: u32, ctx: &BotContext<'_, D>) {
        let pair = &self.pairs[unit as usize];
        let is_half_in = pair.is_inside && !pair.has_started();
        if is_half_in && (pair.probe == Probe::Alone || pair.players.iter().any(|player| player.is_open)) {
            ctx.pairing_lock().doubt();
        }
    }

    /// A game began or ended for a player that connected alone: the stranger who had waited is now gone.
    pub(super) fn was_not_alone(&mut self, unit: u32, ctx: &mut BotContext<'_, D>) {
        if self.lets_an_extra_player_in(unit, "a game began before the partner had connected", ctx) {
            self.probe(unit, ctx);
        }
    }

    /// The start of one or both has not come, long after both came in.
    pub(super) fn start_is_missing(&mut self, unit: u32, ctx: &mut BotContext<'_, D>) {
        let pair = &self.pairs[unit as usize];
        let has_one_started = pair.players.iter().any(|player| player.started_ns.is_some());
        // Only the holder of the pairing lock knows which player is waiting at the server. And if neither has started,
        // the server may just be too slow or broken, which one extra player is enough to find out.
        if pair.is_inside && !ctx.drains() && (has_one_started || pair.heals == 0) {
            return self.replace(unit, ctx);
        }
        ctx.error(error::MISSING_START);
        self.fail(unit, ctx);
    }

    /// Replaces the player whose game with a stranger has ended, once its partner is in.
    pub(super) fn replace_the_misled(&mut self, unit: u32, ctx: &mut BotContext<'_, D>) {
        let pair = &self.pairs[unit as usize];
        let is_misled = pair.players[0].stop.is_some() && !pair.has_started();
        if is_misled && pair.players[1].is_open {
            self.replace(unit, ctx);
        }
    }

    fn replace(&mut self, unit: u32, ctx: &mut BotContext<'_, D>) {
        if self.lets_an_extra_player_in(
            unit,
            "only one of two players who had both connected was started",
            ctx,
        ) {
            self.begin_connect(unit * 2, ctx);
        }
    }

    /// The first player leaves for an extra one. False: that was tried often enough, and the pair has failed.
    fn lets_an_extra_player_in(&mut self, unit: u32, words: &str, ctx: &mut BotContext<'_, D>) -> bool {
        let pair = &mut self.pairs[unit as usize];
        let first = std::mem::take(&mut pair.players[0]);
        if let Some(connection) = first.connection {
            ctx.close(connection);
        }
        pair.heals += 1;
        if pair.heals > HEALS_MAX || ctx.drains() {
            // The pair does not give up: while this lasts, the error must be visible in the hold too.
            pair.is_out_of_step = true;
            if !ctx.drains() {
                ctx.error_with(error::OUT_OF_STEP, || {
                    format!("{words}; {HEALS_MAX} extra players did not help")
                });
            }
            self.fail(unit, ctx);
            return false;
        }
        // Events planned for the player that left are not for the extra one.
        pair.game = pair.game.wrapping_add(1);
        true
    }

    /// The hold has ended: pairs with one player in, or nearly, and the other not.
    pub(super) fn finish_half_pairs(&mut self, ctx: &mut BotContext<'_, D>) {
        self.drain_began_ns = ctx.now_ns();
        for unit in 0..self.pairs.len() as u32 {
            let pair = &self.pairs[unit as usize];
            let is_in = pair.players.iter().any(|player| player.connection.is_some());
            if !is_in || pair.has_started() {
                continue;
            }
            self.unfinished.push(unit);
            if pair.probe == Probe::Alone && pair.players[0].is_open {
                self.bring_the_partner(unit, ctx);
            }
        }
    }

    /// True when no player is in without its partner.
    pub(super) fn has_finished(&mut self, ctx: &mut BotContext<'_, D>) -> bool {
        if ctx.now_ns() >= self.drain_began_ns + FINISH_NS + ctx.network_allowance_ns() {
            self.unfinished.clear();
        }
        let pairs = &self.pairs;
        self.unfinished.retain(|unit| {
            let pair = &pairs[*unit as usize];
            let is_in = pair.players.iter().any(|player| player.connection.is_some());
            is_in && !pair.has_started()
        });
        self.unfinished.is_empty()
    }

    /// After the hold one of a pair did not get in and its partner is: it is tried again, so that none is left alone.
    pub(super) fn knock_again_to_finish(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) -> bool {
        let pair = &mut self.pairs[bot as usize / 2];
        let partner = pair.players[1 - bot as usize % 2];
        let waits = partner.connection.is_some() && partner.started_ns.is_none() && !pair.has_started();
        if !waits || !ctx.drains() || pair.heals >= HEALS_MAX {
            return false;
        }
        pair.heals += 1;
        self.knock_unasked(bot, ctx);
        true
    }
}
