//! A bot's pending requests and its HTTP connections: which carries what, and what may be opened.

use drivers::Address;
use drivers::http::Fetch;
use engine::{BotContext, ConnectionId, RequestId};

use crate::script::AnyDriver;

/// As browsers have them over HTTP/1.1.
const LINES_MAX: usize = 6;

/// A request as the script made it.
pub(in crate::script) struct Wanted {
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
    pub(super) fn fetch(&self) -> Fetch<'_> {
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
pub(in crate::script) struct Requests {
    pub(super) lines: Vec<Line>,
    pub(super) open: Vec<Request>,
}

/// A connection of HTTP.
pub(super) struct Line {
    pub(super) connection: ConnectionId,
    pub(super) to: Address,
    pub(super) is_open: bool,
    /// it carries many requests at once
    pub(super) is_shared: bool,
    /// it takes no further request
    pub(super) is_leaving: bool,
    /// the numbers of requests
    pub(super) carries: Vec<u32>,
    pub(super) has_answered: bool,
}

impl Line {
    pub(super) fn takes_another<D: AnyDriver>(&self, ctx: &mut BotContext<'_, D>) -> bool {
        let mut at_once = || ctx.requests_at_once(self.connection).unwrap_or(1);
        self.is_open && !self.is_leaving && self.carries.len() < at_once()
    }
}

pub(super) struct Request {
    pub(super) wanted: Wanted,
    pub(super) to: Address,
    /// the reply that is owed, once it was sent
    pub(super) owed: Option<RequestId>,
    /// its head has come
    pub(super) has_begun: bool,
    pub(super) was_resent: bool,
    pub(super) put_off_count: u32,
    /// kept over the end of its connection
    pub(super) is_kept: bool,
    pub(super) status: u16,
}

impl Request {
    /// Its connection ends, and it is sent again on another: its reply stays owed, if the kernel took it.
    pub(super) fn keep<D: AnyDriver>(&mut self, ctx: &mut BotContext<'_, D>) {
        self.owed = self.owed.filter(|owed| ctx.keep(*owed));
        self.is_kept = self.owed.is_some();
    }
}

pub(super) fn is_same_server(one: &Address, other: &Address) -> bool {
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

    pub(super) fn line(&mut self, connection: ConnectionId) -> Option<&mut Line> {
        self.lines.iter_mut().find(|line| line.connection == connection)
    }

    pub(super) fn request(&mut self, number: u32) -> Option<&mut Request> {
        self.open.iter_mut().find(|request| request.wanted.number == number)
    }

    pub(super) fn take(&mut self, number: u32) -> Option<Request> {
        let at = self.open.iter().position(|request| request.wanted.number == number)?;
        Some(self.open.swap_remove(at))
    }

    /// The connection that carries a request.
    pub(super) fn line_of(&mut self, number: u32) -> Option<&mut Line> {
        self.lines.iter_mut().find(|line| line.carries.contains(&number))
    }

    /// Whether a server gets a further connection; `may_share`: its connections may carry many requests each.
    pub(super) fn may_open(&self, to: &Address, may_share: bool) -> bool {
        let lines = || self.lines.iter().filter(|line| is_same_server(&line.to, to));
        let is_enough = |line: &Line| !line.is_leaving && (line.is_shared || !line.is_open && may_share);
        lines().count() < LINES_MAX && !lines().any(is_enough)
    }

    /// The oldest request to that server which no connection carries.
    pub(super) fn waiting(&self, to: &Address) -> Option<u32> {
        let is_carried = |number| self.lines.iter().any(|line| line.carries.contains(&number));
        let waits =
            |request: &&Request| is_same_server(&request.to, to) && !is_carried(request.wanted.number);
        self.open.iter().filter(waits).map(|request| request.wanted.number).min()
    }
}
