//! What happens to requests when the subject gets SIGTERM under load.
//!
//! A request that was sent before the signal is in flight and must be answered; one sent later may be refused. What was
//! encoded before a worker's last turn had been sent when that turn began. The worker did not know of the signal then,
//! so the signal had not been sent. What was sent since then may have been sent after it, and counts as later.

use drivers::http::Http;
use engine::BotContext;

use super::source::Source;
use super::{OpenRequest, PHASES, Planned, Requests};

/// Its counters, in the order of `Role::Shutdown`; they follow the phases.
pub(super) const COUNTERS: [&str; 4] =
    ["shutdown_under_way", "shutdown_dropped", "shutdown_later", "shutdown_later_refused"];
const UNDER_WAY: usize = PHASES;
const DROPPED: usize = PHASES + 1;
const LATER: usize = PHASES + 2;
const LATER_REFUSED: usize = PHASES + 3;
/// Servers that go down tell so with this status (RFC 9110, section 15.6.4).
const UNAVAILABLE: u16 = 503;

/// Whether a request had been sent when the subject was told to shut down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AtStop {
    /// the subject was not told to end while it was open
    #[default]
    Untouched,
    UnderWay,
    Later,
}

impl<D: Http, S: Source<D>> Requests<D, S> {
    /// Looks once which requests are under way.
    pub(super) fn note_stop(&mut self, ctx: &mut BotContext<'_, D>) {
        let before_ns = std::mem::replace(&mut self.last_turn_ns, ctx.now_ns());
        if self.has_noted_stop || !ctx.subject_is_signalled() {
            return;
        }
        self.has_noted_stop = true;
        for open in self.clients.iter_mut().flat_map(|client| &mut client.open_requests) {
            // Requests that are not part of the load are owed nothing.
            let Some(id) = open.id else { continue };
            let has_left = ctx.departed_ns(id).is_some_and(|at_ns| at_ns < before_ns);
            open.at_stop = if has_left { AtStop::UnderWay } else { AtStop::Later };
            ctx.count(if has_left { UNDER_WAY } else { LATER }, 1);
        }
    }

    /// A request is sent now. Returns from when it counts as planned: one that waited for a connection when the subject
    /// was told to shut down has not reached it, and says nothing about the load before.
    pub(super) fn enter_at_stop(&self, planned_ns: u64, ctx: &mut BotContext<'_, D>) -> (u64, AtStop) {
        let stops_ns = ctx.subject_stops_ns();
        // Reading back is not load.
        if ctx.now_ns() < stops_ns || self.has_met {
            return (planned_ns, AtStop::Untouched);
        }
        let at_stop = if self.has_noted_stop { AtStop::Later } else { AtStop::Untouched };
        ctx.count(LATER, u64::from(self.has_noted_stop));
        (planned_ns.max(stops_ns), at_stop)
    }

    /// A request that was planned never left.
    pub(super) fn never_sent(&mut self, planned: Planned<D::Prepared>, ctx: &mut BotContext<'_, D>) {
        if let Some((open, id)) = planned.again.as_ref().and_then(|open| Some((open, open.id?))) {
            // It was sent once, and its reply is owed.
            count_lost(open, ctx);
            ctx.lose(id);
            return self.source.abandoned(planned.chosen);
        }
        let (planned_ns, at_stop) = self.enter_at_stop(planned.planned_ns, ctx);
        if at_stop == AtStop::Later {
            ctx.count(LATER_REFUSED, 1);
        }
        if S::is_recorded(planned.chosen) {
            ctx.not_sent(planned.chosen.op, planned_ns);
        }
        self.source.abandoned(planned.chosen);
    }

    /// Requests waiting for a connection to a subject that has ended are given up.
    pub(super) fn give_up_waiting(&mut self, ctx: &mut BotContext<'_, D>) {
        while self.has_noted_stop
            && let Some(planned) = self.waiting.pop_front()
        {
            self.never_sent(planned, ctx);
        }
    }
}

/// A whole response has come.
pub(super) fn count_answer<D: Http>(
    open: &OpenRequest<D::Prepared>,
    status: u16,
    ctx: &mut BotContext<'_, D>,
) {
    if status == UNAVAILABLE {
        count_lost(open, ctx);
    }
}

/// None will come.
pub(super) fn count_lost<D: Http>(open: &OpenRequest<D::Prepared>, ctx: &mut BotContext<'_, D>) {
    match open.at_stop {
        AtStop::Untouched => {}
        AtStop::UnderWay => ctx.count(DROPPED, 1),
        AtStop::Later => ctx.count(LATER_REFUSED, 1),
    }
}
