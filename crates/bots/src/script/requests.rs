//! The requests of a script over HTTP, and the connections that carry them.
//!
//! As in a browser a bot has at most six connections to a server, each carries one request at a time, and a request that finds
//! all of them busy waits; it is timed from its planned instant. A server may close a connection between two requests: one
//! that meets that is sent once more if that is safe (decision 037). A response counts as answered when it is whole, and a
//! stream of events when it begins, since it may never end. Redirects and cookies are the script's.

use drivers::any::Send;
use drivers::http::{Fetch, Head, Piece};
use drivers::{Address, Closed};
use engine::{BotContext, ConnectionId, RequestId, SendLag};

use super::names::{GIVEN_UP, REOPENED, WRONG_STATUS};
use super::tell::tell;
use super::{AnyDriver, Scripts};
use crate::ends;

/// As browsers have them over HTTP/1.1.
const LINES_MAX: usize = 6;
const ERROR_STATUS: u16 = 400;

/// A request as the script asked for it.
pub(super) struct Wanted {
    /// the script's own, and the tag of its answer
    pub number: u32,
    pub op: usize,
    pub planned_ns: u64,
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Wanted {
    fn fetch(&self) -> Fetch<'_> {
        Fetch {
            tag: self.number,
            method: &self.method,
            path: &self.path,
            headers: &self.headers,
            body: &self.body,
            keep_alive: true,
        }
    }
}

/// Requests of one bot that are not done, and its connections of HTTP.
#[derive(Default)]
pub(super) struct Requests {
    lines: Vec<Line>,
    open: Vec<Request>,
}

/// A connection of HTTP.
struct Line {
    connection: ConnectionId,
    to: Address,
    is_open: bool,
    /// the number of a request
    carries: Option<u32>,
    has_answered: bool,
}

struct Request {
    wanted: Wanted,
    to: Address,
    /// the reply that is owed, once it was sent
    owed: Option<RequestId>,
    /// its head has come
    has_begun: bool,
    was_resent: bool,
    /// kept over the end of its connection
    is_kept: bool,
    status: u16,
}

impl Request {
    /// Its connection ends, and it is sent again on another: its reply stays owed, if the kernel took it.
    fn keep<D: AnyDriver>(&mut self, ctx: &mut BotContext<'_, D>) {
        self.owed = self.owed.filter(|owed| ctx.keep(*owed));
        self.is_kept = self.owed.is_some();
    }
}

fn is_same_server(one: &Address, other: &Address) -> bool {
    one.socket == other.socket && one.host == other.host && one.tls.is_some() == other.tls.is_some()
}

impl Requests {
    /// No answer is awaited. Streams that go on owe none.
    pub fn owe_nothing(&self) -> bool {
        self.open.iter().all(|request| request.owed.is_none() && request.has_begun)
    }

    /// All its connections.
    pub fn connections(&self) -> Vec<ConnectionId> {
        self.lines.iter().map(|line| line.connection).collect()
    }

    fn line(&mut self, connection: ConnectionId) -> Option<&mut Line> {
        self.lines.iter_mut().find(|line| line.connection == connection)
    }

    fn request(&mut self, number: u32) -> Option<&mut Request> {
        self.open.iter_mut().find(|request| request.wanted.number == number)
    }

    fn take(&mut self, number: u32) -> Option<Request> {
        let at = self.open.iter().position(|request| request.wanted.number == number)?;
        Some(self.open.swap_remove(at))
    }

    /// The oldest request to that server which no connection carries.
    fn waiting(&self, to: &Address) -> Option<u32> {
        let is_carried = |number| self.lines.iter().any(|line| line.carries == Some(number));
        let waits =
            |request: &&Request| is_same_server(&request.to, to) && !is_carried(request.wanted.number);
        self.open.iter().filter(waits).map(|request| request.wanted.number).min()
    }
}

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
        let of_server = |line: &&mut Line| is_same_server(&line.to, &to);
        let free =
            requests.lines.iter_mut().filter(of_server).find(|line| line.is_open && line.carries.is_none());
        if let Some(line) = free {
            line.carries = Some(number);
            let connection = line.connection;
            self.send_request(bot, number, connection, lag, ctx);
            return true;
        }
        if requests.lines.iter_mut().filter(of_server).count() < LINES_MAX {
            let connection = ctx.open_at(bot, to.clone());
            let line = Line { connection, to, is_open: false, carries: Some(number), has_answered: false };
            self.requests(bot).lines.push(line);
        }
        false
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

    /// A connection of HTTP stands.
    pub(super) fn request_can_leave(
        &mut self,
        bot: u32,
        connection: ConnectionId,
        ctx: &mut BotContext<'_, D>,
    ) {
        let Some(line) = self.requests(bot).line(connection) else { return };
        line.is_open = true;
        match line.carries {
            Some(number) => self.send_request(bot, number, connection, SendLag::Recorded, ctx),
            None => self.take_next(bot, connection, ctx),
        }
    }

    /// A connection is free for what waits.
    fn take_next(&mut self, bot: u32, connection: ConnectionId, ctx: &mut BotContext<'_, D>) {
        let requests = self.requests(bot);
        let Some(to) = requests.line(connection).map(|line| line.to.clone()) else { return };
        let Some(number) = requests.waiting(&to) else { return };
        if let Some(line) = requests.line(connection) {
            line.carries = Some(number);
        }
        self.send_request(bot, number, connection, SendLag::Recorded, ctx);
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
                tell(at_ns, || "the response is whole".to_owned());
                if let Ok(script) = &mut self.script {
                    script.body_end(bot, tag, at_ns);
                }
                if let Some(line) = self.requests(bot).line(connection) {
                    line.has_answered = true;
                    if closes {
                        self.drop_line(bot, connection, ctx);
                    } else {
                        self.take_next(bot, connection, ctx);
                    }
                }
            }
            Piece::Failed { tag, fault, words } => {
                let words = if words.is_empty() {
                    fault.to_string()
                } else {
                    format!("{fault}: {}", ends::shown(words))
                };
                if let Some(request) = self.requests(bot).request(tag)
                    && let Some(owed) = request.owed.take()
                {
                    ctx.failed(owed);
                }
                let cause = words.clone();
                ctx.error_with(ends::BROKEN, || cause);
                self.request_ends(bot, tag);
                self.request_failed(bot, tag, &words, ctx);
            }
            Piece::Leaving => self.forget_line(bot, connection),
            Piece::PutOff { tag } => {
                let Some(request) = self.requests(bot).request(tag) else { return };
                request.keep(ctx);
                self.forget_line(bot, connection);
                self.place(bot, tag, SendLag::Recorded, ctx);
            }
        }
    }

    fn head(&mut self, bot: u32, head: &Head<'_>, at_ns: u64, ctx: &mut BotContext<'_, D>) {
        let text = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
        let Some(request) = self.requests(bot).request(head.tag) else { return };
        request.has_begun = true;
        request.status = head.status;
        if let Some(owed) = request.owed {
            ctx.began(owed, at_ns);
        }
        tell(at_ns, || format!("<- status {}", head.status));
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
        let line = self.requests(bot).lines.iter().find(|line| line.carries == Some(number));
        let Some((connection, is_open)) = line.map(|line| (line.connection, line.is_open)) else { return };
        if is_open {
            self.drop_line(bot, connection, ctx);
        } else if let Some(line) = self.requests(bot).line(connection) {
            line.carries = None;
        }
    }

    /// Removes a request that is over, and frees its connection.
    fn request_ends(&mut self, bot: u32, number: u32) {
        let requests = self.requests(bot);
        requests.take(number);
        for line in requests.lines.iter_mut().filter(|line| line.carries == Some(number)) {
            line.carries = None;
        }
    }

    pub(super) fn request_failed(&mut self, bot: u32, number: u32, why: &str, ctx: &mut BotContext<'_, D>) {
        tell(ctx.now_ns(), || format!("!! the request failed: {why}"));
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
            self.place_next(bot, &to, ctx);
        }
    }

    /// What waits for a connection to this server may get one. Whether something waited.
    fn place_next(&mut self, bot: u32, to: &Address, ctx: &mut BotContext<'_, D>) -> bool {
        let Some(number) = self.requests(bot).waiting(to) else { return false };
        self.place(bot, number, SendLag::Recorded, ctx);
        true
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
        let Some(line) = requests.line(connection) else { return };
        let (Some(number), true) = (line.carries, line.has_answered) else { return };
        let Some(request) = requests.request(number) else { return };
        let may_lapse = matches!(why, Closed::ByPeer(None) | Closed::Failed(_));
        if !may_lapse || request.has_begun || request.was_resent || !request.wanted.fetch().is_idempotent() {
            return;
        }
        request.was_resent = true;
        request.keep(ctx);
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
        let (number, to) = (line.carries, line.to.clone());
        self.forget_line(bot, connection);
        let Some(number) = number else {
            let is_reopened = self.place_next(bot, &to, ctx);
            return ctx.count(REOPENED, u64::from(is_reopened));
        };
        let Some(request) = self.requests(bot).request(number) else { return };
        let is_again =
            request.was_resent && !request.has_begun && (request.is_kept || request.owed.is_none());
        if is_again && !matches!(why, Closed::NotOpened(_)) {
            ctx.count(REOPENED, 1);
            self.place(bot, number, SendLag::Recorded, ctx);
            return;
        }
        let (op, planned_ns, was_sent) =
            (request.wanted.op, request.wanted.planned_ns, request.owed.is_some());
        if let Some(owed) = request.owed.take().filter(|_| request.is_kept) {
            ctx.lose(owed);
        } else if !was_sent {
            ctx.not_sent(op, planned_ns);
        }
        let words = ends::words(why, &ends::shown(ctx.error_excerpt()));
        ends::count(why, ctx);
        self.request_ends(bot, number);
        self.request_failed(bot, number, &words, ctx);
        self.place_next(bot, &to, ctx);
    }
}
