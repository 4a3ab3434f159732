//! After the load: reads back its results, over connections that are free or opened for it.
//!
//! If the subject was shut down, this waits until it runs again. Audit requests are planned in the drain, so they are
//! in no figure of the hold; their results are counted separately.

use drivers::http::Http;
use engine::{BotContext, SendLag};

use super::source::Source;
use super::{LOAD_IS_OVER, OWN_COUNTERS_AT, Planned, Requests};

/// Clients that read back at once where each needs a new connection.
const OPENED_MOST: usize = 16;

impl<D: Http, S: Source<D>> Requests<D, S> {
    /// Checks what became of the load once all workers have none open; true when that is done, or cannot be.
    pub(super) fn audit(&mut self, is_quiet: bool, ctx: &mut BotContext<'_, D>) -> bool {
        if is_quiet && !self.has_met {
            self.has_met = true;
            ctx.meet(LOAD_IS_OVER);
        }
        if !self.has_met || ctx.met(LOAD_IS_OVER) < self.workers {
            return false;
        }
        if let Some(stop) = self.stop
            && ctx.subject_stops_ns() < u64::MAX
        {
            if !stop.reads_back {
                return true;
            }
            if !ctx.subject_is_back() {
                return false;
            }
        }
        let mut opening = self.pending_count;
        for bot in 0..self.clients.len() as u32 {
            let client = &self.clients[bot as usize];
            let is_idle = client.is_open && !client.is_leaving && client.open_requests.is_empty();
            let can_open = client.connection.is_none() && client.pending.is_none() && opening < OPENED_MOST;
            if !is_idle && !can_open {
                continue;
            }
            let Some(chosen) = self.source.audit() else { break };
            let planned = Planned::new(ctx.now_ns(), chosen);
            if is_idle {
                self.send(bot, planned, SendLag::Unrecorded, ctx);
            } else {
                opening += 1;
                self.connect_for(bot, planned, ctx);
            }
        }
        self.open_count == 0 && self.pending_count == 0
    }

    /// Hands over what the source has counted since the last time.
    pub(super) fn count_found(&mut self, ctx: &mut BotContext<'_, D>) {
        let mut at = OWN_COUNTERS_AT;
        self.source.take_counts(|more| {
            if more > 0 {
                ctx.count(at, more);
            }
            at += 1;
        });
    }
}
