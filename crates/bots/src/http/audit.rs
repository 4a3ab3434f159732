//! What became of the load: asked of the server once no worker has a request open, by sources that audit.

use drivers::http::Http;
use engine::{BotContext, SendLag};

use super::source::Source;
use super::{Client, PHASES, Planned, Requests};

/// Counters of a source that audits, behind the phases.
const AUDIT_CHECKED_AT: usize = PHASES;
/// Where workers meet.
const LOAD_IS_OVER: usize = 0;

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
        let idle = |client: &Client| client.is_open && client.open_requests.is_empty();
        for bot in 0..self.clients.len() {
            if !idle(&self.clients[bot]) {
                continue;
            }
            let Some(chosen) = self.source.audit() else { break };
            let planned = Planned { planned_ns: ctx.now_ns(), chosen };
            self.send(bot as u32, planned, SendLag::Unrecorded, ctx);
        }
        self.open_count == 0
    }

    pub(super) fn count_audited(&mut self, ctx: &mut BotContext<'_, D>) {
        let (checked, wrong) = self.source.take_audited();
        if checked > 0 {
            ctx.count(AUDIT_CHECKED_AT, checked);
            ctx.count(AUDIT_CHECKED_AT + 1, wrong);
        }
    }
}
