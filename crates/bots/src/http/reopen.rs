//! Connections that the server closes between two requests, as HTTP allows (RFC 9112, section 9.3; RFC 9113, section
//! 6.8).
//!
//! A client whose connection was closed this way has *lapsed*: it counts as free, and its next request opens a
//! connection. The time for that is part of the response, which counts from the plan as always.
//! A request can race with the close: it was sent, and soon the connection ended before a byte of its answer. On a
//! connection that had answered before, or had idled, a request with an idempotent method is sent once more; any other
//! is an error, since nobody knows whether it was executed. Requests beyond a GOAWAY's last stream were not processed,
//! and are always resent.

use drivers::Closed;
use drivers::http::Http;
use engine::{BotContext, SendLag};
use measure::Role;
use plan::HttpModel;

use super::source::Source;
use super::{OpenRequest, Planned, REOPEN_AT, Requests, errors, shutdown};
use crate::disconnects;

/// Its counters, in the order of `Role::Reopened`.
pub(super) const COUNTERS: [&str; 3] = ["connections_reopened", "requests_retried", "closing_answers"];
const REOPENED: usize = REOPEN_AT;
const RETRIED: usize = REOPENED + 1;
const CLOSING: usize = REOPENED + 2;

/// A request that was put off this often is an error: otherwise a server that puts off everything would get requests
/// for ever.
const PUT_OFF_MOST: u32 = 100;
/// No server's idle timeout is shorter.
const IDLE_LEAST_NS: u64 = 50_000_000;
/// A server that is alive does not take longer between its decision to close and the close.
const CROSSING_MOST_NS: u64 = 500_000_000;

/// The names of its counters; a role says that connections may be closed at all.
pub(super) fn counter_roles(reopens: bool) -> impl Iterator<Item = (&'static str, Option<Role>)> {
    COUNTERS.into_iter().map(move |name| (name, reopens.then_some(Role::Reopened)))
}

impl<D: Http, S: Source<D>> Requests<D, S> {
    /// Whether a connection that the server closes between two requests is no loss.
    pub(super) fn may_lapse(&self) -> bool {
        D::REOPENS && self.http.keep_alive
    }

    /// Whether its next request opens a connection.
    pub(super) fn is_lapsed(&self, bot: u32) -> bool {
        let client = &self.clients[bot as usize];
        client.is_lapsed && client.connection.is_none() && client.pending.is_none()
    }

    /// A connection is open.
    pub(super) fn count_reopened(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        let client = &mut self.clients[bot as usize];
        client.has_stood = true;
        client.idle_from_ns = ctx.now_ns();
        if std::mem::take(&mut client.is_lapsed) {
            ctx.count(REOPENED, 1);
        }
    }

    /// An answer said that it is the last on its connection.
    pub(super) fn count_closing(&self, ctx: &mut BotContext<'_, D>) {
        ctx.count(CLOSING, u64::from(self.may_lapse()));
    }

    /// A connection ends by itself: requests that only met the close are taken off it. `closed` follows.
    pub(super) fn keep_those_that_met_the_close(
        &mut self,
        bot: u32,
        why: &Closed,
        ctx: &mut BotContext<'_, D>,
    ) {
        // A server that was told to end must answer what is under way.
        if !self.may_lapse() || !is_plain(why) || ctx.subject_is_signalled() {
            return;
        }
        let mut at = 0;
        while let Some(open) = self.clients[bot as usize].open_requests.get(at) {
            let is_stale = self.clients[bot as usize].was_answered || open.gap_ns > 0;
            let can_repeat = open.prepared.as_ref().is_some_and(D::is_idempotent) && !open.was_retried;
            if !is_stale || !can_repeat || !open.may_have_crossed(ctx.now_ns()) {
                at += 1;
                continue;
            }
            let mut kept = self.take_off(bot, at, ctx);
            if let Some(again) = &mut kept.again {
                again.was_retried = true;
            }
            ctx.count(RETRIED, 1);
            self.retries.push(kept);
        }
    }

    /// Takes a request off its connection, to be sent again.
    fn take_off(&mut self, bot: u32, at: usize, ctx: &mut BotContext<'_, D>) -> Planned<D::Prepared> {
        let mut open = self.take_open(bot, at);
        // What never left is planned anew, with the same bytes.
        open.id = open.id.filter(|id| ctx.keep(*id));
        Planned { planned_ns: open.planned_ns, chosen: open.chosen, again: Some(Box::new(open)) }
    }

    /// The cause of the errors of requests that a connection took with it: its own, or that they met the close of a server
    /// that was tired of waiting.
    pub(super) fn cause_of_end(&self, bot: u32, why: &Closed, now_ns: u64) -> usize {
        let met_close = |open: &OpenRequest<D::Prepared>| {
            open.may_have_crossed(now_ns)
                && !open.was_retried
                && open.gap_ns >= IDLE_LEAST_NS
                && !open.prepared.as_ref().is_some_and(D::is_idempotent)
        };
        let open_requests = &self.clients[bot as usize].open_requests;
        if self.may_lapse() && is_plain(why) && open_requests.iter().any(met_close) {
            errors::CLOSED_AS_SENT
        } else {
            errors::of_end(why)
        }
    }

    /// A client whose connection has ended is free without one. Requests that met the close go first.
    pub(super) fn lapse(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        self.clients[bot as usize].is_lapsed = true;
        let mut retries = std::mem::take(&mut self.retries).into_iter();
        if let Some(first) = retries.next() {
            self.connect_for(bot, first, ctx);
        }
        self.send_again(retries.collect(), ctx);
        if matches!(self.http.model, HttpModel::Open { .. }) {
            self.is_free(bot, ctx);
        }
    }

    /// Requests of a stream go to clients that are free, or wait before all others.
    pub(super) fn send_again(&mut self, again: Vec<Planned<D::Prepared>>, ctx: &mut BotContext<'_, D>) {
        for planned in again.into_iter().rev() {
            self.waiting.push_front(planned);
        }
        while !self.waiting.is_empty() {
            let Some(bot) = self.next_free() else { return };
            self.is_free(bot, ctx);
        }
    }

    /// The server announced a close.
    pub(super) fn leave_when_answered(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        if self.may_lapse() {
            self.clients[bot as usize].is_leaving = true;
            self.end_if_leaving(bot, ctx);
        }
    }

    /// Nothing is open any more on a connection that takes no further request.
    fn end_if_leaving(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        let client = &self.clients[bot as usize];
        if !client.is_leaving || !client.open_requests.is_empty() {
            return;
        }
        if let Some(connection) = self.forget_connection(bot, ctx) {
            ctx.close(connection);
        }
        self.lapse(bot, ctx);
    }

    /// The server did not look at a request and said so.
    pub(super) fn put_off(&mut self, bot: u32, tag: u32, ctx: &mut BotContext<'_, D>) {
        let client = &self.clients[bot as usize];
        let Some(at) = client.open_requests.iter().position(|open| open.tag == tag) else { return };
        // It is lost with its connection, as what is under way to a server that ends.
        if !self.may_lapse() || ctx.subject_is_signalled() {
            return;
        }
        let open = &client.open_requests[at];
        if open.hops > 0 || open.put_off_count >= PUT_OFF_MOST {
            ctx.error_with(errors::LOST, || format!("put off by a GOAWAY {PUT_OFF_MOST} times"));
            let open = self.take_open(bot, at);
            self.source.abandoned(open.chosen);
            if let Some(id) = open.id.filter(|id| ctx.keep(*id)) {
                ctx.lose(id);
            }
            self.clients[bot as usize].failures += 1;
            self.clients[bot as usize].is_leaving = true;
            if self.clients[bot as usize].open_requests.is_empty() {
                if let Some(connection) = self.forget_connection(bot, ctx) {
                    ctx.close(connection);
                }
                self.go_on_without_connection(bot, ctx);
            }
            return;
        }
        let mut kept = self.take_off(bot, at, ctx);
        if let Some(again) = &mut kept.again {
            again.put_off_count += 1;
        }
        ctx.count(RETRIED, 1);
        self.clients[bot as usize].is_leaving = true;
        if self.clients[bot as usize].open_requests.is_empty() {
            self.retries.push(kept);
            self.end_if_leaving(bot, ctx);
        } else {
            self.send_again(vec![kept], ctx);
        }
    }

    /// Sends a request once more on an open connection.
    pub(super) fn resend(
        &mut self,
        bot: u32,
        mut open: Box<OpenRequest<D::Prepared>>,
        send_lag: SendLag,
        ctx: &mut BotContext<'_, D>,
    ) {
        let client = &mut self.clients[bot as usize];
        let connection = client.connection;
        open.tag = client.next_tag;
        client.next_tag = open.tag.wrapping_add(1);
        open.gap_ns = client.gap_ns(ctx.now_ns());
        let is_sent = match (connection, &open.prepared, open.id) {
            (Some(connection), Some(prepared), id) => {
                let what = drivers::http::Outgoing { prepared, tag: open.tag };
                match id {
                    Some(id) => ctx.resend(id, connection, what),
                    None if S::is_recorded(open.chosen) => {
                        open.id = ctx.request(connection, open.chosen.op, open.planned_ns, send_lag, what);
                        open.id.is_some()
                    }
                    None => ctx.follow(connection, what),
                }
            }
            _ => false,
        };
        if !is_sent {
            shutdown::count_lost(&open, ctx);
            self.source.abandoned(open.chosen);
            if let Some(id) = open.id {
                ctx.lose(id);
            }
            return self.try_again_later(bot, ctx);
        }
        let client = &mut self.clients[bot as usize];
        client.is_refused = false;
        client.on_connection += 1;
        client.open_requests.push(*open);
        self.open_count += 1;
    }
}

impl<P> OpenRequest<P> {
    /// The request and the close may have crossed on their way. A server that kept the request for longer than the
    /// connection had idled, or than `CROSSING_MOST_NS`, has dropped it.
    fn may_have_crossed(&self, now_ns: u64) -> bool {
        let waited_ns = now_ns.saturating_sub(self.sent_ns);
        !self.has_begun && self.hops == 0 && waited_ns <= self.gap_ns.clamp(IDLE_LEAST_NS, CROSSING_MOST_NS)
    }
}

/// The connection ended without a message that explains it.
fn is_plain(why: &Closed) -> bool {
    match why {
        Closed::ByPeer(None) => true,
        Closed::Failed(error) => disconnects::is_reset(error),
        _ => false,
    }
}
