//! The outcome of a request: its answer, a redirect, a timeout, and what follows.

use drivers::http::{Answer, Http, Outgoing};
use engine::{BotContext, ConnectionId, SendLag};
use plan::HttpModel;

use super::is_redirect;
use super::redirect::{self, RedirectError};
use super::source::Source;
use super::{
    COME_BACK_NS, COME_BACK_STEPS_MAX, NEXT_REQUEST, OpenRequest, Planned, REDIRECTS, RIGHT_ANSWERS,
    Requests, errors, shutdown,
};

/// A reply to a request that is not open: never sent, or answered before.
pub(super) fn count_unpaired<D: Http>(body: &[u8], ctx: &mut BotContext<'_, D>) {
    ctx.error_with(errors::UNPAIRED, || format!("a reply to no open request: \"{}\"", errors::shown(body)));
}

impl<D: Http, S: Source<D>> Requests<D, S> {
    pub(super) fn receive(
        &mut self,
        connection: ConnectionId,
        bot: u32,
        answer: &Answer<'_>,
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        let client = &mut self.clients[bot as usize];
        let Some(at) = client.open_requests.iter().position(|open| open.tag == answer.tag) else {
            return count_unpaired(answer.body, ctx);
        };
        let (chosen, hops) = (client.open_requests[at].chosen, client.open_requests[at].hops);
        if self.http.redirects_max > 0 && (300..400).contains(&answer.status) && answer.location.is_some() {
            match self.follow(connection, bot, at, answer, ctx) {
                Ok(()) => return,
                Err(redirect_error) => {
                    ctx.error_with(redirect_error.cause(), || redirect_error.to_string());
                    let open = self.take_open(bot, at);
                    self.source.abandoned(open.chosen);
                    if let Some(id) = open.id {
                        ctx.failed(id);
                    }
                    return self.go_on(connection, bot, answer.closes, true, at_ns, ctx);
                }
            }
        }
        let open = self.take_open(bot, at);
        shutdown::count_answer(&open, answer.status, ctx);
        let is_right = self.source.check(chosen, answer, |cause, text| {
            ctx.error_with(cause, || text.to_string());
        });
        if is_right {
            if open.id.is_some() {
                ctx.count(RIGHT_ANSWERS, 1);
                ctx.count(REDIRECTS, u64::from(is_redirect(answer.status)));
            }
            if let Some(id) = open.id.filter(|_| !open.has_begun && hops == 0) {
                ctx.began(id, at_ns);
            }
            self.source.learn(chosen, answer, &mut self.clients[bot as usize].captured);
            if let Some(id) = open.id {
                ctx.answered(id, at_ns);
            }
        } else if let Some(id) = open.id {
            ctx.failed(id);
        }
        self.count_found(ctx);
        self.go_on(connection, bot, answer.closes, !is_right, at_ns, ctx);
    }

    pub(super) fn take_open(&mut self, bot: u32, at: usize) -> OpenRequest<D::Prepared> {
        self.open_count -= 1;
        self.clients[bot as usize].open_requests.swap_remove(at)
    }

    /// Requests what a redirect points to, on the same connection; the first request stays open until the last answer.
    fn follow<'a>(
        &mut self,
        connection: ConnectionId,
        bot: u32,
        at: usize,
        answer: &Answer<'a>,
        ctx: &mut BotContext<'_, D>,
    ) -> Result<(), RedirectError<'a>> {
        let location = answer.location.unwrap_or_default();
        let client = &mut self.clients[bot as usize];
        let open = &mut client.open_requests[at];
        open.hops += 1;
        if open.hops > self.http.redirects_max {
            return Err(RedirectError::Loop(open.hops, location));
        }
        let path =
            redirect::local_path(location, &self.authority).ok_or(RedirectError::Elsewhere(location))?;
        if answer.closes {
            return Err(RedirectError::Closes);
        }
        let tag = client.next_tag;
        client.next_tag = tag.wrapping_add(1);
        open.tag = tag;
        let prepared = self.source.redirected(open.chosen, &client.captured, path);
        let Some(prepared) = prepared else { return Err(RedirectError::NotTaken) };
        if !ctx.follow(connection, Outgoing { prepared: &prepared, tag }) {
            return Err(RedirectError::NotTaken);
        }
        Ok(())
    }

    /// After an answer, right or wrong: the next request.
    fn go_on(
        &mut self,
        connection: ConnectionId,
        bot: u32,
        closes: bool,
        has_failed: bool,
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        let client = &mut self.clients[bot as usize];
        client.was_answered = true;
        client.idle_from_ns = at_ns;
        client.failures = if has_failed { client.failures + 1 } else { 0 };
        let failures = client.failures;
        let is_left = self.leaves(bot);
        let lapses = closes && self.may_lapse() && !is_left;
        if lapses {
            self.count_closing(ctx);
        }
        if lapses && !self.clients[bot as usize].open_requests.is_empty() {
            // Requests that the server has accepted are answered.
            self.clients[bot as usize].is_leaving = true;
            return;
        }
        let is_over = closes || !self.http.keep_alive || is_left;
        if is_over {
            // Other requests open on it are lost with it, and recorded as lost when it is closed.
            self.forget_connection(bot, ctx);
            ctx.close(connection);
        }
        match self.http.model {
            HttpModel::Open { .. } if lapses => self.lapse(bot, ctx),
            HttpModel::Open { .. } => {
                if is_over && self.http.keep_alive {
                    self.come_back_later(bot, 0, ctx);
                } else {
                    self.is_free(bot, ctx);
                }
            }
            HttpModel::Closed { think_ns } => {
                if lapses {
                    self.lapse(bot, ctx);
                }
                if ctx.drains() || self.has_left(bot, ctx) {
                    return;
                }
                // A rejected client does not come back at once, which would cause a retry storm.
                let pause_ns = think_ns + COME_BACK_NS * failures.min(COME_BACK_STEPS_MAX);
                if is_over && self.http.keep_alive && !is_left && !lapses {
                    return self.come_back_later(bot, failures, ctx);
                }
                if pause_ns > 0 {
                    self.clients[bot as usize].is_between = is_left;
                    return ctx.at(at_ns + pause_ns, bot, NEXT_REQUEST);
                }
                let chosen = self.source.choose();
                let planned = Planned::new(at_ns, chosen);
                if self.http.keep_alive && !is_left && !lapses {
                    self.send(bot, planned, SendLag::Unrecorded, ctx);
                } else {
                    self.open_for(bot, planned, ctx);
                }
            }
        }
    }

    pub(super) fn look_gap_ns(&self) -> u64 {
        (self.http.timeout_ns / 10).clamp(10_000_000, 1_000_000_000)
    }

    pub(super) fn give_up_the_late(&mut self, ctx: &mut BotContext<'_, D>) {
        let now_ns = ctx.now_ns();
        for bot in 0..self.clients.len() {
            let client = &mut self.clients[bot];
            let is_late =
                |open: &OpenRequest<D::Prepared>| now_ns.saturating_sub(open.sent_ns) > self.http.timeout_ns;
            let Some(late) = client.open_requests.iter().find(|open| is_late(open)) else { continue };
            let is_recorded = late.id.is_some();
            let cause = if late.has_begun { errors::NEVER_ENDED } else { errors::NO_ANSWER };
            let timeout_s = self.http.timeout_ns as f64 / 1e9;
            if is_recorded {
                ctx.error_with(cause, || format!("given up after {timeout_s} s"));
            }
            client.failures += 1;
            if let Some(connection) = self.forget_connection(bot as u32, ctx) {
                ctx.close(connection);
            }
            self.go_on_without_connection(bot as u32, ctx);
        }
    }
}
