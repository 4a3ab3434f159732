//! A script's HTTP requests, and the connections that carry them.
//!
//! As in a browser, a bot has at most six HTTP/1.1 connections to a server, and each carries one request at a time. A
//! request that finds all of them busy waits; it is timed from its planned instant. Over HTTP/2 one connection carries
//! as many as the server allows. Which version a TLS server speaks is known once a connection is open: until then there
//! is only one.
//! A server may close a connection between two requests: a request that meets this is sent once more if that is safe
//! (decision 037).
//! A response counts as answered when it is complete, and an event stream when it begins, since it may never end.
//! Redirects and cookies are left to the script.

mod lines;

use drivers::any::{HttpVersion, Protocol, Send};
use drivers::http::{Head, Piece};
use drivers::{Address, Closed};
use engine::{BotContext, ConnectionId, SendLag};

use super::names::{GIVEN_UP, REOPENED, WRONG_STATUS};
use super::tell::tell;
use super::{AnyDriver, Scripts};
use crate::disconnects;
use lines::{Line, Request, is_same_server};
pub(super) use lines::{Requests, Wanted};

/// A server may put off a request so often, by a GOAWAY or by refusing its stream; each time may cost a connection.
const PUT_OFF_MOST: u32 = 5;
const ERROR_STATUS: u16 = 400;

impl<D: AnyDriver> Scripts<D> {
    fn requests(&mut self, bot: u32) -> &mut Requests {
        self.bots[bot as usize].requests.get_or_insert_default()
    }

    /// Sends a request on a connection that is free, on a new one, or later.
    pub(super) fn request(&mut self, bot: u32, wanted: Wanted, to: Address, ctx: &mut BotContext<'_, D>) {
        let (number, planned_ns) = (wanted.number, wanted.planned_ns);
        let request = Request {
            wanted,
            to,
            owed: None,
            has_begun: false,
            was_resent: false,
            put_off_count: 0,
            is_kept: false,
            status: 0,
        };
        self.requests(bot).open.push(request);
        if !self.place(bot, number, SendLag::Unrecorded, ctx) {
            ctx.waits(planned_ns);
        }
    }

    /// Gives a request a connection. False: it waits for one.
    fn place(&mut self, bot: u32, number: u32, lag: SendLag, ctx: &mut BotContext<'_, D>) -> bool {
        let requests = self.requests(bot);
        let Some(to) = requests.request(number).map(|request| request.to.clone()) else { return true };
        let mut lines = requests.lines.iter_mut().filter(|line| is_same_server(&line.to, &to));
        if let Some(line) = lines.find(|line| line.takes_another(ctx)) {
            line.carries.push(number);
            let connection = line.connection;
            self.send_request(bot, number, connection, lag, ctx);
            return true;
        }
        let may_share = match to.speaks {
            Protocol::Http(HttpVersion::Any) => to.tls.is_some() && !self.speaks_one.contains(&to.socket),
            speaks => speaks == Protocol::Http(HttpVersion::Two),
        };
        let requests = self.requests(bot);
        if requests.may_open(&to, may_share) {
            let connection = ctx.open_at(bot, to.clone());
            let line = Line {
                connection,
                to,
                is_open: false,
                is_shared: false,
                is_leaving: false,
                carries: vec![number],
                has_answered: false,
            };
            self.requests(bot).lines.push(line);
        }
        false
    }

    /// Gives connections to what waits for one to this server. Whether something got one.
    fn place_waiting(&mut self, bot: u32, to: &Address, ctx: &mut BotContext<'_, D>) -> bool {
        let mut has_placed = false;
        while let Some(number) = self.requests(bot).waiting(to) {
            self.place(bot, number, SendLag::Recorded, ctx);
            if self.requests(bot).waiting(to) == Some(number) {
                break;
            }
            has_placed = true;
        }
        has_placed
    }

    fn send_request(
        &mut self,
        bot: u32,
        number: u32,
        connection: ConnectionId,
        lag: SendLag,
        ctx: &mut BotContext<'_, D>,
    ) {
        let Some(request) = self.requests(bot).request(number) else { return };
        let (op, planned_ns) = (request.wanted.op, request.wanted.planned_ns);
        let what = Send::Request(request.wanted.fetch());
        let has_left = match request.owed.filter(|_| request.is_kept) {
            Some(owed) => {
                request.is_kept = false;
                ctx.resend(owed, connection, what)
            }
            None => {
                request.owed = ctx.request(connection, op, planned_ns, lag, what);
                request.owed.is_some()
            }
        };
        if !has_left {
            self.request_ends(bot, number);
            self.request_failed(bot, number, "the connection takes no request", ctx);
        }
    }

    /// An HTTP connection is open.
    pub(super) fn request_can_leave(
        &mut self,
        bot: u32,
        connection: ConnectionId,
        ctx: &mut BotContext<'_, D>,
    ) {
        let is_shared = ctx.requests_at_once(connection).is_some();
        let Some(line) = self.requests(bot).line(connection) else { return };
        (line.is_open, line.is_shared) = (true, is_shared);
        let (to, numbers) = (line.to.clone(), line.carries.clone());
        if to.tls.is_some() && !is_shared && !self.speaks_one.contains(&to.socket) {
            self.speaks_one.push(to.socket);
        }
        for number in numbers {
            self.send_request(bot, number, connection, SendLag::Recorded, ctx);
        }
        self.place_waiting(bot, &to, ctx);
    }

    /// A connection may have become free for what waits, or for its end.
    fn go_on(&mut self, bot: u32, connection: ConnectionId, ctx: &mut BotContext<'_, D>) {
        let Some(line) = self.requests(bot).line(connection) else { return };
        if line.is_leaving && line.carries.is_empty() {
            return self.drop_line(bot, connection, ctx);
        }
        let to = line.to.clone();
        self.place_waiting(bot, &to, ctx);
    }

    /// A part of an answer.
    pub(super) fn piece(
        &mut self,
        bot: u32,
        connection: ConnectionId,
        piece: Piece<'_>,
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        match piece {
            Piece::Head(head) => self.head(bot, &head, at_ns, ctx),
            Piece::Part { tag, bytes } => {
                let is_open = self.requests(bot).request(tag).is_some();
                if let Ok(script) = &mut self.script
                    && is_open
                {
                    script.body_part(bot, tag, bytes, at_ns);
                }
            }
            Piece::End { tag, closes } => {
                self.settle(bot, tag, at_ns, ctx);
                self.request_ends(bot, tag);
                tell(bot, at_ns, || "the response is whole".to_owned());
                if let Ok(script) = &mut self.script {
                    script.body_end(bot, tag, at_ns);
                }
                if let Some(line) = self.requests(bot).line(connection) {
                    line.has_answered = true;
                    line.is_leaving |= closes;
                }
                self.go_on(bot, connection, ctx);
            }
            Piece::Failed { tag, fault, words } => {
                let words = if words.is_empty() {
                    fault.to_string()
                } else {
                    format!("{fault}: {}", disconnects::shown(words))
                };
                if let Some(request) = self.requests(bot).request(tag)
                    && let Some(owed) = request.owed.take()
                {
                    ctx.failed(owed);
                }
                let cause = words.clone();
                ctx.error_with(disconnects::BROKEN, || cause);
                self.request_ends(bot, tag);
                self.request_failed(bot, tag, &words, ctx);
                self.go_on(bot, connection, ctx);
            }
            Piece::Leaving => {
                if let Some(line) = self.requests(bot).line(connection) {
                    line.is_leaving = true;
                }
                self.go_on(bot, connection, ctx);
            }
            Piece::PutOff { tag } => {
                self.put_off(bot, tag, ctx);
                self.go_on(bot, connection, ctx);
            }
        }
    }

    /// The server did not look at a request: it is sent again, but not without end.
    fn put_off(&mut self, bot: u32, number: u32, ctx: &mut BotContext<'_, D>) {
        let Some(request) = self.requests(bot).request(number) else { return };
        request.put_off_count += 1;
        request.keep(ctx);
        if request.put_off_count < PUT_OFF_MOST {
            if let Some(line) = self.requests(bot).line_of(number) {
                line.carries.retain(|carried| *carried != number);
            }
            self.place(bot, number, SendLag::Recorded, ctx);
            return;
        }
        let words = format!(
            "the server put off {} {} {PUT_OFF_MOST} times (GOAWAY or REFUSED_STREAM): it has more requests or connections than it takes",
            request.wanted.method, request.wanted.path
        );
        match request.owed.take() {
            Some(owed) => ctx.lose(owed),
            None => ctx.not_sent(request.wanted.op, request.wanted.planned_ns),
        }
        let said = words.clone();
        ctx.error_with(disconnects::LOST, || said);
        self.request_ends(bot, number);
        self.request_failed(bot, number, &words, ctx);
    }

    fn head(&mut self, bot: u32, head: &Head<'_>, at_ns: u64, ctx: &mut BotContext<'_, D>) {
        let text = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
        let Some(request) = self.requests(bot).request(head.tag) else { return };
        request.has_begun = true;
        request.status = head.status;
        if let Some(owed) = request.owed {
            ctx.began(owed, at_ns);
        }
        tell(bot, at_ns, || format!("<- status {}", head.status));
        let is_stream = head.headers.get("content-type").is_some_and(|kind| {
            kind.split(|byte| *byte == b';')
                .next()
                .unwrap_or_default()
                .trim_ascii()
                .eq_ignore_ascii_case(b"text/event-stream")
        });
        if is_stream {
            self.settle(bot, head.tag, at_ns, ctx);
        }
        let headers: Vec<(String, String)> =
            head.headers.iter().map(|(name, value)| (text(name), text(value))).collect();
        if let Ok(script) = &mut self.script {
            script.responded(bot, head.tag, head.status, &text(head.reason), &headers, at_ns);
        }
    }

    /// The reply counts as come: rightly, or with a status that says that it is none.
    fn settle(&mut self, bot: u32, number: u32, at_ns: u64, ctx: &mut BotContext<'_, D>) {
        let Some(request) = self.requests(bot).request(number) else { return };
        let Some(owed) = request.owed.take() else { return };
        if request.status < ERROR_STATUS {
            ctx.answered(owed, at_ns);
        } else {
            let words =
                format!("{} {}: status {}", request.wanted.method, request.wanted.path, request.status);
            ctx.failed(owed);
            ctx.error_with(WRONG_STATUS, || words);
        }
    }

    /// The script wants no more of a request. Over HTTP/1.1 only the end of the connection says so.
    pub(super) fn cancel(&mut self, bot: u32, number: u32, ctx: &mut BotContext<'_, D>) {
        let Some(request) = self.requests(bot).take(number) else { return };
        match request.owed {
            Some(owed) if request.has_begun => {
                ctx.answered(owed, ctx.now_ns());
            }
            Some(owed) => {
                ctx.failed(owed);
                ctx.error_with(GIVEN_UP, || {
                    format!(
                        "{} {} had no answer when the script gave it up",
                        request.wanted.method, request.wanted.path
                    )
                });
            }
            None if request.has_begun => {}
            None => ctx.not_sent(request.wanted.op, request.wanted.planned_ns),
        }
        let Some(line) = self.requests(bot).line_of(number) else { return };
        line.carries.retain(|carried| *carried != number);
        let (connection, is_open) = (line.connection, line.is_open);
        if is_open && line.is_shared && ctx.follow(connection, Send::Cancel(number)) {
            self.go_on(bot, connection, ctx);
        } else if is_open {
            self.drop_line(bot, connection, ctx);
        }
    }

    /// Removes a request that is over, and frees its connection.
    fn request_ends(&mut self, bot: u32, number: u32) {
        let requests = self.requests(bot);
        requests.take(number);
        if let Some(line) = requests.line_of(number) {
            line.carries.retain(|carried| *carried != number);
        }
    }

    pub(super) fn request_failed(&mut self, bot: u32, number: u32, why: &str, ctx: &mut BotContext<'_, D>) {
        tell(bot, ctx.now_ns(), || format!("!! the request failed: {why}"));
        if let Ok(script) = &mut self.script {
            script.request_failed(bot, number, why, ctx.now_ns());
        }
    }

    fn forget_line(&mut self, bot: u32, connection: ConnectionId) {
        self.requests(bot).lines.retain(|line| line.connection != connection);
    }

    /// Closes a connection; what waits for one may get another.
    fn drop_line(&mut self, bot: u32, connection: ConnectionId, ctx: &mut BotContext<'_, D>) {
        let to = self.requests(bot).line(connection).map(|line| line.to.clone());
        self.forget_line(bot, connection);
        ctx.close(connection);
        if let Some(to) = to {
            self.place_waiting(bot, &to, ctx);
        }
    }

    /// A connection is about to end: a request that only met the close between two requests stays owed.
    pub(super) fn request_meets_the_close(
        &mut self,
        bot: u32,
        connection: ConnectionId,
        why: &Closed,
        ctx: &mut BotContext<'_, D>,
    ) {
        let Some(requests) = self.bots[bot as usize].requests.as_mut() else { return };
        let Some(line) = requests.line(connection).filter(|line| line.has_answered) else { return };
        if !matches!(why, Closed::ByPeer(None) | Closed::Failed(_)) {
            return;
        }
        for number in line.carries.clone() {
            let Some(request) = requests.request(number) else { continue };
            if !request.has_begun && !request.was_resent && request.wanted.fetch().is_idempotent() {
                request.was_resent = true;
                request.keep(ctx);
            }
        }
    }

    /// A connection of HTTP has ended.
    pub(super) fn line_closed(
        &mut self,
        bot: u32,
        connection: ConnectionId,
        why: &Closed,
        ctx: &mut BotContext<'_, D>,
    ) {
        let Some(requests) = self.bots[bot as usize].requests.as_mut() else { return };
        let Some(line) = requests.line(connection) else { return };
        let (numbers, to) = (line.carries.clone(), line.to.clone());
        self.forget_line(bot, connection);
        let (mut is_reopened, mut is_counted) = (false, false);
        let was_idle = numbers.is_empty();
        for number in numbers {
            let Some(request) = self.requests(bot).request(number) else { continue };
            let is_again =
                request.was_resent && !request.has_begun && (request.is_kept || request.owed.is_none());
            if is_again && !matches!(why, Closed::NotOpened(_)) {
                is_reopened = true;
                self.place(bot, number, SendLag::Recorded, ctx);
                continue;
            }
            let (op, planned_ns, was_sent) =
                (request.wanted.op, request.wanted.planned_ns, request.owed.is_some());
            if let Some(owed) = request.owed.take().filter(|_| request.is_kept) {
                ctx.lose(owed);
            } else if !was_sent {
                ctx.not_sent(op, planned_ns);
            }
            let words = disconnects::words(why, &disconnects::shown(ctx.error_excerpt()));
            if !std::mem::replace(&mut is_counted, true) {
                disconnects::count(why, ctx);
            }
            self.request_ends(bot, number);
            self.request_failed(bot, number, &words, ctx);
        }
        is_reopened |= self.place_waiting(bot, &to, ctx) && was_idle;
        ctx.count(REOPENED, u64::from(is_reopened));
    }
}
