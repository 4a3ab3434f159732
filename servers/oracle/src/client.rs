//! One connection of the oracle: its input, its pending answers, and its unsent output.
//!
//! Nothing here knows the clock or the queue: requests come out, answers go in.

use std::os::fd::OwnedFd;

use super::faults::{Faults, Planted};
use super::pages::{Drip, Page, TEXT, Then};
use servers_shared::deadlines::Due;
use servers_shared::http::request::{self, Front, Limits, Request};
use servers_shared::http::response;
use servers_shared::stream;

/// With so many requests unanswered a connection is not read.
const WAITING_MAX: u32 = 64;

/// Nor with so many bytes that wait to be echoed.
const HELD_BYTES_MAX: usize = 64 * 1024;

/// What becomes of what the client says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Talking,
    /// The last request to be answered was read. What follows is ignored.
    Ignoring,
    /// An answer without an end is underway.
    Dripping(Drip),
    /// Nothing more is sent; the client may close.
    Finished,
}

pub(super) struct Client {
    pub(super) fd: OwnedFd,
    pub(super) stage: Stage,
    /// Read and not understood yet.
    pub(super) input: Vec<u8>,
    /// Said and not taken yet.
    pub(super) unsent: Vec<u8>,
    /// Behind what is unsent the connection is closed.
    closes: bool,
    /// Requests that were read and are not answered yet.
    waiting: u32,
    /// Bodies of these.
    held_bytes: usize,
    /// The client has shut its sending side.
    pub(super) ended: bool,
    /// When the client must have completed its request, or closed.
    pub(super) due: Due,
}

/// An answer that is known and not due yet.
pub(super) struct Reply {
    page: Page,
    planted: Planted,
    /// Instead of the page: what was wrong with the request.
    fault: Option<u16>,
    keep_alive: bool,
    head_only: bool,
    /// For `/echo` only.
    body: Vec<u8>,
}

/// The connection is over, in whichever way.
#[derive(Debug)]
pub(super) struct Gone;

impl Client {
    pub(super) fn new(fd: OwnedFd) -> Client {
        Client {
            fd,
            stage: Stage::Talking,
            input: Vec::new(),
            unsent: Vec::new(),
            closes: false,
            waiting: 0,
            held_bytes: 0,
            ended: false,
            due: Due::default(),
        }
    }

    /// False while earlier requests have to be answered, or answers to be taken, first.
    pub(super) fn may_be_read(&self) -> bool {
        self.waiting < WAITING_MAX && self.held_bytes < HELD_BYTES_MAX && self.unsent.is_empty()
    }

    pub(super) fn is_within_a_request(&self) -> bool {
        self.stage == Stage::Talking && !self.input.is_empty() && self.may_be_read()
    }

    /// True when nothing is left to do for a client that has shut its sending side.
    pub(super) fn is_done(&self) -> bool {
        self.ended && self.waiting == 0 && self.unsent.is_empty() && !matches!(self.stage, Stage::Dripping(_))
    }

    /// The next request's reply, if a whole one is there. `number` counts the plain ones.
    pub(super) fn next_reply(&mut self, faults: &Faults, number: &mut u64) -> Option<Reply> {
        if self.stage != Stage::Talking {
            self.input = Vec::new();
            return None;
        }
        if !self.may_be_read() {
            return None;
        }
        let (reply, bytes) = match request::front(&self.input, &Limits::default()) {
            Front::Incomplete => return None,
            Front::Broken(fault) => (Reply::to_a_fault(fault.status()), self.input.len()),
            Front::Whole { request, bytes } => (Reply::to(&request, faults, number), bytes),
        };
        self.input.drain(..bytes);
        if self.input.is_empty() {
            self.input = Vec::new();
        }
        if reply.planted == Planted::NoAnswer {
            self.stage = Stage::Ignoring;
            self.input = Vec::new();
            return None;
        }
        if reply.then() != Then::GoOn {
            self.stage = Stage::Ignoring;
        }
        self.waiting += 1;
        self.held_bytes += reply.body.len();
        Some(reply)
    }

    /// The reply is due.
    pub(super) fn give(&mut self, reply: &Reply, out: &mut Vec<u8>) -> Result<(), Gone> {
        self.waiting -= 1;
        self.held_bytes -= reply.body.len();
        out.clear();
        reply.put(out);
        match reply.then() {
            Then::GoOn => {}
            Then::Close => self.closes = true,
            Then::Drip(drip) => self.stage = Stage::Dripping(drip),
            Then::Reset => {
                stream::reset_on_close(&self.fd);
                return Err(Gone);
            }
        }
        self.say(out)
    }

    /// One more piece of an answer without an end, unless the client has not taken the last one.
    pub(super) fn drip(&mut self, out: &mut Vec<u8>) -> Result<(), Gone> {
        let Stage::Dripping(drip) = self.stage else { return Ok(()) };
        if !self.unsent.is_empty() {
            return Ok(());
        }
        out.clear();
        drip.put(out);
        self.say(out)
    }

    /// There is room again.
    pub(super) fn flush(&mut self) -> Result<(), Gone> {
        let sent = stream::write(&self.fd, &self.unsent).map_err(|()| Gone)?;
        self.unsent.drain(..sent);
        self.close_if_all_is_said();
        Ok(())
    }

    fn say(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        let may_write = self.unsent.is_empty() && !bytes.is_empty();
        let sent = if may_write { stream::write(&self.fd, bytes).map_err(|()| Gone)? } else { 0 };
        self.unsent.extend_from_slice(&bytes[sent..]);
        self.close_if_all_is_said();
        Ok(())
    }

    fn close_if_all_is_said(&mut self) {
        if !self.unsent.is_empty() {
            return;
        }
        self.unsent = Vec::new();
        if self.closes && self.stage != Stage::Finished {
            self.stage = Stage::Finished;
            stream::finish_writing(&self.fd);
        }
    }
}

impl Reply {
    fn to(request: &Request<'_>, faults: &Faults, number: &mut u64) -> Reply {
        let page = match Page::at(request.path()) {
            // HTTP/1.0 has no chunks.
            Page::Chunked if request.http_1_0 => Page::UntilClose,
            page => page,
        };
        let mut planted = Planted::Nothing;
        if page == Page::Plain {
            *number += 1;
            planted = faults.at(*number);
        }
        Reply {
            page,
            planted,
            fault: None,
            keep_alive: request.keep_alive,
            head_only: request.method == "HEAD",
            body: if page == Page::Echo { request.body.to_vec() } else { Vec::new() },
        }
    }

    fn to_a_fault(status: u16) -> Reply {
        Reply {
            page: Page::Plain,
            planted: Planted::Nothing,
            fault: Some(status),
            keep_alive: false,
            head_only: false,
            body: Vec::new(),
        }
    }

    fn then(&self) -> Then {
        match self.page.then() {
            Then::GoOn if !self.keep_alive => Then::Close,
            then => then,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut instead = |status: u16, body: &[u8]| match self.head_only {
            true => response::write_head(out, status, TEXT, self.keep_alive, body.len()),
            false => response::write(out, status, TEXT, self.keep_alive, body),
        };
        match (self.fault, self.planted) {
            (Some(status), _) => instead(status, b""),
            (None, Planted::Status(status)) => instead(status, b""),
            (None, Planted::WrongBody) => instead(200, b"no"),
            (None, Planted::Nothing | Planted::NoAnswer) => {
                self.page.put(out, self.keep_alive, self.head_only, &self.body);
            }
        }
    }
}
