//! Requesters and their connections: when one is opened, closed as planned, lost and reopened.
//!
//! In the closed model each requester has one; in the open model each connection of the stream counts as one.

use drivers::http::Http;
use engine::{BotContext, ConnectionId};

use super::source::Source;
use super::{COME_BACK, COME_BACK_NS, COME_BACK_STEPS_MAX, Client, Planned, Requests, TRY_AGAIN, shutdown};

impl<D: Http, S: Source<D>> Requests<D, S> {
    pub(super) fn open(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        let node = (self.first_node + u64::from(bot) * self.workers) % self.nodes;
        self.clients[bot as usize].connection = Some(ctx.open(bot, node as usize));
    }

    /// A connection for one request. Its send lag ends here: how long the connection takes is the server's doing.
    pub(super) fn open_for(&mut self, bot: u32, planned: Planned<D::Prepared>, ctx: &mut BotContext<'_, D>) {
        ctx.waits(planned.planned_ns);
        self.connect_for(bot, planned, ctx);
    }

    pub(super) fn connect_for(
        &mut self,
        bot: u32,
        planned: Planned<D::Prepared>,
        ctx: &mut BotContext<'_, D>,
    ) {
        self.clients[bot as usize].pending = Some(planned);
        self.pending_count += 1;
        self.open(bot, ctx);
    }

    /// A requester whose connection takes no request goes on asking: each attempt is a message that was not sent, and one that
    /// fell silent here would pass for one that is served.
    pub(super) fn try_again_later(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        if self.stream.is_some() || ctx.drains() {
            return;
        }
        let client = &mut self.clients[bot as usize];
        client.is_refused = true;
        client.failures += 1;
        let pause_ns = COME_BACK_NS * client.failures.min(COME_BACK_STEPS_MAX);
        ctx.at(ctx.now_ns() + pause_ns, bot, TRY_AGAIN);
    }

    /// True when a client sends nothing more on its connection: its visit is over, or it is to open another.
    pub(super) fn is_spent(&self, client: &Client<D::Prepared>) -> bool {
        let plan::Visit { requests, reconnect_after } = self.http.visit;
        let is_over = |limit: Option<u64>, count: u64| limit.is_some_and(|limit| count >= limit);
        // Reading back afterwards is not a visit.
        !self.has_met
            && (is_over(requests, client.in_visit) || is_over(reconnect_after, client.on_connection))
    }

    /// Whether a client leaves its connection as planned now. After its visit another client takes its place, which knows
    /// nothing of it.
    pub(super) fn leaves(&mut self, bot: u32) -> bool {
        let client = &self.clients[bot as usize];
        if !self.http.keep_alive || !client.open_requests.is_empty() || !self.is_spent(client) {
            return false;
        }
        let is_visit_over = self.http.visit.requests.is_some_and(|limit| client.in_visit >= limit);
        if is_visit_over {
            let client = &mut self.clients[bot as usize];
            client.in_visit = 0;
            client.captured.clear();
        }
        true
    }

    /// A client no longer has its connection, nor the requests that are open on it.
    pub(super) fn forget_connection(
        &mut self,
        bot: u32,
        ctx: &mut BotContext<'_, D>,
    ) -> Option<ConnectionId> {
        let client = &mut self.clients[bot as usize];
        self.open_count -= client.open_requests.len();
        for open in client.open_requests.drain(..) {
            shutdown::count_lost(&open, ctx);
            self.source.abandoned(open.chosen);
        }
        client.is_open = false;
        client.is_refused = false;
        client.is_leaving = false;
        client.connection.take()
    }

    /// After a connection was lost: who keeps one, or asks in a loop, comes back; a stream's next request gets a new one.
    pub(super) fn go_on_without_connection(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        if self.http.keep_alive || self.stream.is_none() {
            self.come_back_later(bot, self.clients[bot as usize].failures, ctx);
        } else {
            self.is_free(bot, ctx);
        }
    }

    /// A client without a connection gets one: at once after none or a peaceful end, else later.
    pub(super) fn come_back_later(&mut self, bot: u32, failures: u64, ctx: &mut BotContext<'_, D>) {
        if ctx.drains() && self.waiting.is_empty() {
            return;
        }
        match COME_BACK_NS * failures.min(COME_BACK_STEPS_MAX) {
            0 => self.come_back(bot, ctx),
            pause_ns => ctx.at(ctx.now_ns() + pause_ns, bot, COME_BACK),
        }
    }

    pub(super) fn come_back(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        if self.clients[bot as usize].connection.is_some() || self.has_left(bot, ctx) {
            return;
        }
        // A requester that cannot reconnect keeps sending requests; otherwise a dead server would look like an idle
        // one.
        let asks_again = D::REOPENS && self.stream.is_none() && self.clients[bot as usize].has_stood;
        if self.http.keep_alive && !asks_again {
            self.open(bot, ctx);
        } else {
            let chosen = self.source.choose();
            self.open_for(bot, Planned::new(ctx.now_ns(), chosen), ctx);
        }
    }
}
