//! The open model: operations are planned by a stream independent of replies, and go to the connections in turn.
//!
//! A connection takes many operations at once. An operation that finds all of them full, or none open, waits and is
//! timed from its plan. The wait is the server's doing, so its send lag ends when it found them so.

use std::collections::VecDeque;

use drivers::Grid;
use engine::{BotContext, SendLag};
use plan::WorkerPlan;

use super::{Operations, STREAM_OPERATION, op_of};
use crate::stream::Stream;

/// The most operations at once on one connection; a server that answers none of them is sent no more.
const IN_FLIGHT_MAX: u32 = 10_000;
/// The most operations that may wait for room; further ones are recorded as not sent.
const WAITING_MAX: usize = 4_000_000;

/// The stream of one worker, and those of its operations that have not been sent.
pub(super) struct Clocked {
    stream: Stream,
    /// of the stream, once it has begun
    origin_ns: Option<u64>,
    /// planned instants, the earliest first
    waiting: VecDeque<u64>,
    /// the connection whose turn it is
    next: u32,
}

impl Clocked {
    pub(super) fn new(plan: &WorkerPlan) -> Clocked {
        Clocked { stream: Stream::new(plan), origin_ns: None, waiting: VecDeque::new(), next: 0 }
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl<D: Grid> Operations<D> {
    /// Begins the stream once all are there.
    pub(super) fn begin_stream(&mut self, ctx: &mut BotContext<'_, D>) {
        let Some(clocked) = &mut self.clocked else { return };
        if clocked.origin_ns.is_none() && ctx.settle_ns() != u64::MAX {
            clocked.origin_ns = Some(ctx.settle_ns());
            self.plan_next(ctx);
        }
    }

    /// Puts the stream's next operation on the clock.
    pub(super) fn plan_next(&mut self, ctx: &mut BotContext<'_, D>) {
        let Some(Clocked { stream, origin_ns: Some(origin_ns), .. }) = &mut self.clocked else { return };
        ctx.at(*origin_ns + stream.next_ns(), 0, STREAM_OPERATION);
    }

    /// Gives a planned operation to the next connection with room, or lets it wait for one.
    pub(super) fn dispatch(&mut self, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let count = self.links.len() as u32;
        let first = self.clocked.as_ref().map_or(0, |clocked| clocked.next);
        let with_room = (0..count).map(|turn| (first + turn) % count).find(|at| self.has_room(*at));
        let Some(clocked) = &mut self.clocked else { return };
        if let Some(at) = with_room {
            clocked.next = (at + 1) % count;
            return self.start(at, planned_ns, SendLag::Unrecorded, ctx);
        }
        ctx.waits(planned_ns);
        if clocked.waiting.len() < WAITING_MAX {
            clocked.waiting.push_back(planned_ns);
        } else {
            self.never_sent(planned_ns, ctx);
        }
    }

    fn has_room(&self, at: u32) -> bool {
        self.routes.is_open(at) && self.links[at as usize].in_flight < IN_FLIGHT_MAX
    }

    /// A connection has room again: what has waited longest goes first.
    pub(super) fn send_waiting(&mut self, at: u32, ctx: &mut BotContext<'_, D>) {
        while self.has_room(at)
            && let Some(planned_ns) = self.clocked.as_mut().and_then(|clocked| clocked.waiting.pop_front())
        {
            self.start(at, planned_ns, SendLag::Recorded, ctx);
        }
    }

    /// The connections are closed: what still waits never leaves.
    pub(super) fn give_up_waiting(&mut self, ctx: &mut BotContext<'_, D>) {
        let waiting = self.clocked.as_mut().map(|clocked| std::mem::take(&mut clocked.waiting));
        waiting.into_iter().flatten().for_each(|planned_ns| self.never_sent(planned_ns, ctx));
    }

    fn never_sent(&mut self, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let kind = self.kind();
        ctx.not_sent(op_of(kind), planned_ns);
    }
}
