//! The open model: requests are planned by a stream, go to a free connection, and wait if all are busy.

use drivers::http::Http;
use engine::{BotContext, SendLag};
use measure::Phase;

use super::source::Source;
use super::{PHASES, Planned, Requests, STREAM_REQUEST};

/// The most requests that may wait for a connection; further ones are recorded as not sent.
const WAITING_MAX: usize = 4_000_000;

impl<D: Http, S: Source<D>> Requests<D, S> {
    /// Puts the stream's next request on the clock.
    pub(super) fn plan_next(&mut self, ctx: &mut BotContext<'_, D>) {
        let (Some(stream), Some(origin_ns)) = (&mut self.stream, self.origin_ns) else { return };
        ctx.at(origin_ns + stream.next_ns(), 0, STREAM_REQUEST);
    }

    pub(super) fn count_phase(&mut self, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        if self.tick_period_ns > 0 && ctx.phase(planned_ns) == Phase::Hold {
            let place = planned_ns % self.tick_period_ns * PHASES as u64 / self.tick_period_ns;
            ctx.count(place as usize, 1);
        }
    }

    /// Gives a planned request to a free client, or lets it wait for one.
    pub(super) fn dispatch(&mut self, planned: Planned<D::Prepared>, ctx: &mut BotContext<'_, D>) {
        if let Some(bot) = self.next_free() {
            if !self.http.keep_alive || self.is_lapsed(bot) {
                return self.open_for(bot, planned, ctx);
            }
            self.send(bot, planned, SendLag::Unrecorded, ctx);
            return self.queue_if_free(bot);
        }
        ctx.waits(planned.planned_ns);
        if self.waiting.len() >= WAITING_MAX {
            return self.never_sent(planned, ctx);
        }
        self.waiting.push_back(planned);
        if let Some(bot) = self.spare.pop() {
            if self.http.keep_alive {
                self.open(bot, ctx);
            } else {
                self.is_free(bot, ctx);
            }
        }
    }

    /// The client that has been free for longest.
    pub(super) fn next_free(&mut self) -> Option<u32> {
        while let Some(bot) = self.free.pop_front() {
            self.clients[bot as usize].is_queued = false;
            if self.has_room(bot) {
                return Some(bot);
            }
        }
        None
    }

    fn has_room(&self, bot: u32) -> bool {
        let client = &self.clients[bot as usize];
        if self.is_lapsed(bot) {
            true
        } else if self.http.keep_alive {
            let has_stream = client.open_requests.len() < self.http.streams as usize;
            client.is_open && !client.is_leaving && has_stream && !self.is_spent(client)
        } else {
            client.connection.is_none() && client.pending.is_none()
        }
    }

    fn queue_if_free(&mut self, bot: u32) {
        if self.has_room(bot) && !self.clients[bot as usize].is_queued {
            self.clients[bot as usize].is_queued = true;
            self.free.push_back(bot);
        }
    }

    /// A client has room again: what has waited longest goes first.
    pub(super) fn is_free(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        while self.has_room(bot) {
            let Some(planned) = self.waiting.pop_front() else { break };
            if self.http.keep_alive && !self.is_lapsed(bot) {
                self.send(bot, planned, SendLag::Recorded, ctx);
            } else {
                self.connect_for(bot, planned, ctx);
            }
        }
        self.queue_if_free(bot);
    }
}
