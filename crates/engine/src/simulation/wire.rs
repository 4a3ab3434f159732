//! Simulated connections: drivers without sockets, one for each shape of message.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::task::{Context, Poll};

use drivers::grid::{self, Grid, Kind, Operation, Reply};
use drivers::http::{self, Answer, Http, Outgoing, Parts};
use drivers::websocket::{Message, Received};
use drivers::{Address, Broken, Closed, Driver, Goodbye, OpenError, ReadBuffer, Refused};

use super::server::{End, Said};

thread_local! {
    pub(super) static WIRES: RefCell<Wires> = RefCell::new(Wires::default());
}

#[derive(Default)]
pub(super) struct Wires {
    pub(super) begin_connects: u64,
    pub(super) requests_at_once: Option<usize>,
    pub(super) to_server: VecDeque<(u64, Option<Vec<u8>>)>,
    pub(super) to_bots: BTreeMap<u64, VecDeque<Said>>,
}

/// What goes over a simulated connection: the shape that a real driver's messages have.
pub trait Freight: 'static {
    /// What can be sent.
    type Send<'a>;
    /// What can be received.
    type Received<'a>;
    /// The bytes of a message.
    fn bytes(what: Self::Send<'_>) -> Vec<u8>;
    /// The message of those bytes.
    fn received(bytes: &[u8]) -> Self::Received<'_>;
}

/// Messages as `drivers::WebSocket` has them.
pub struct Messages;

impl Freight for Messages {
    type Send<'a> = Message<'a>;
    type Received<'a> = Received<'a>;

    fn bytes(what: Message<'_>) -> Vec<u8> {
        let (Message::Text(bytes) | Message::Binary(bytes)) = what;
        bytes.to_vec()
    }

    fn received(bytes: &[u8]) -> Received<'_> {
        Received::Text(bytes)
    }
}

/// Blocks of whole lines as `drivers::Tcp` has them.
pub struct Blocks;

impl Freight for Blocks {
    type Send<'a> = &'a [u8];
    type Received<'a> = &'a [u8];

    fn bytes(what: &[u8]) -> Vec<u8> {
        what.to_vec()
    }

    fn received(bytes: &[u8]) -> &[u8] {
        bytes
    }
}

/// Requests and answers as the drivers of HTTP have them.
///
/// A request arrives as its tag and its path; `answer` makes what the server says to it.
pub struct Exchanges;

impl Exchanges {
    /// The tag of a request and its path.
    pub fn request(message: &[u8]) -> (u32, &[u8]) {
        let (tag, path) = message.split_at(TAG_BYTES);
        (u32::from_le_bytes(tag.try_into().unwrap_or_default()), path)
    }

    /// An answer with which the server ends the connection.
    pub fn last_answer(tag: u32, status: u16, body: &[u8]) -> Vec<u8> {
        Exchanges::answer(tag, status | CLOSES, body)
    }

    /// The first byte of an answer to the request with that tag.
    pub fn began(tag: u32) -> Vec<u8> {
        Exchanges::answer(tag, BEGAN, b"")
    }

    /// The server's close.
    pub fn leaving() -> Vec<u8> {
        Exchanges::answer(0, LEAVING, b"")
    }

    /// With its close the server says that it did not process the request with that tag.
    pub fn put_off(tag: u32) -> Vec<u8> {
        Exchanges::answer(tag, PUT_OFF, b"")
    }

    /// An answer to the request with that tag.
    pub fn answer(tag: u32, status: u16, body: &[u8]) -> Vec<u8> {
        [&tag.to_le_bytes()[..], &status.to_le_bytes(), body].concat()
    }
}

const TAG_BYTES: usize = size_of::<u32>();
const STATUS_BYTES: usize = size_of::<u16>();
/// Instead of a status, or in addition to it.
const CLOSES: u16 = 0x8000;
const BEGAN: u16 = 1;
const LEAVING: u16 = 2;
const PUT_OFF: u16 = 3;

impl Freight for Exchanges {
    type Send<'a> = Outgoing<'a, String>;
    type Received<'a> = http::Received<'a>;

    fn bytes(what: Outgoing<'_, String>) -> Vec<u8> {
        [&what.tag.to_le_bytes()[..], what.prepared.as_bytes()].concat()
    }

    fn received(bytes: &[u8]) -> http::Received<'_> {
        let (tag, rest) = Exchanges::request(bytes);
        let (status, body) = rest.split_at(STATUS_BYTES);
        let status = u16::from_le_bytes(status.try_into().unwrap_or_default());
        match status {
            BEGAN => return http::Received::Began { tag },
            LEAVING => return http::Received::Leaving,
            PUT_OFF => return http::Received::PutOff { tag },
            _ => {}
        }
        http::Received::Answer(Answer {
            tag,
            status: status & !CLOSES,
            body,
            body_bytes: body.len() as u64,
            location: None,
            closes: status & CLOSES != 0,
            grpc: None,
        })
    }
}

impl Http for Wire<Exchanges> {
    type Prepared = String;

    const REOPENS: bool = true;

    fn prepare(parts: &Parts<'_>) -> String {
        parts.path.to_owned()
    }

    /// The bytes of a request have no method; a path marks it as one that may not be repeated.
    fn is_idempotent(path: &String) -> bool {
        !path.starts_with("/once")
    }
}

/// Operations and replies as the drivers of data grids have them.
///
/// An operation arrives as its tag, what it does (`get`, `set` or `del`), its key and, behind a blank, the value that it
/// writes, with `@` and the ms of its time to live where it has one; `said` makes what the server says to it.
pub struct Operations;

/// What a simulated data grid says to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridSays<'a> {
    /// the value of a key
    Value(&'a [u8]),
    /// there is none
    NoValue,
    /// it is done
    Done,
    /// it is not, for this reason
    Refused(&'a [u8]),
    /// not now
    Again {
        /// but it may have been executed
        may_have_run: bool,
    },
    /// something else
    Strange,
    /// ports of the loopback whose members own the partitions, in their order
    Owners(&'a [u16]),
}

impl Operations {
    /// The tag of an operation, what it does, its key and its value.
    pub fn operation(message: &[u8]) -> (u32, &[u8], &[u8], &[u8]) {
        let (tag, rest) = Exchanges::request(message);
        let (kind, rest) = rest.split_at(3);
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        (tag, kind, &rest[..end], rest.get(end + 1..).unwrap_or_default())
    }

    /// A reply to the operation with that tag.
    pub fn said(tag: u32, says: GridSays<'_>) -> Vec<u8> {
        let (kind, words) = match says {
            GridSays::Value(value) => (b'v', value),
            GridSays::NoValue => (b'n', &b""[..]),
            GridSays::Done => (b'd', &b""[..]),
            GridSays::Refused(words) => (b'r', words),
            GridSays::Again { may_have_run: false } => (b'a', &b""[..]),
            GridSays::Again { may_have_run: true } => (b'u', &b""[..]),
            GridSays::Strange => (b's', &b""[..]),
            GridSays::Owners(ports) => {
                let ports: Vec<u8> = ports.iter().flat_map(|port| port.to_le_bytes()).collect();
                return [&tag.to_le_bytes()[..], b"o", &ports].concat();
            }
        };
        [&tag.to_le_bytes()[..], &[kind], words].concat()
    }
}

impl Freight for Operations {
    type Send<'a> = Operation<'a, String, String>;
    type Received<'a> = grid::Received<'a>;

    fn bytes(what: Operation<'_, String, String>) -> Vec<u8> {
        let (kind, value) = match what.kind {
            Kind::Get => ("get", ""),
            Kind::Set => ("set", what.value.as_str()),
            Kind::Delete => ("del", ""),
        };
        let ttl = match what.ttl_ms {
            Some(ms) if what.kind == Kind::Set => format!("@{ms}"),
            _ => String::new(),
        };
        let words = [kind.as_bytes(), what.key.as_bytes(), b" ", value.as_bytes(), ttl.as_bytes()];
        [&what.tag.to_le_bytes()[..], &words.concat()].concat()
    }

    fn received(bytes: &[u8]) -> grid::Received<'_> {
        let (tag, rest) = Exchanges::request(bytes);
        let (kind, words) = rest.split_at(1);
        let reply = match kind {
            b"v" => Reply::Value(Some(words)),
            b"n" => Reply::Value(None),
            b"d" => Reply::Done,
            b"r" => Reply::Refused(words),
            b"a" => Reply::Again { words, may_have_run: false },
            b"u" => Reply::Again { words, may_have_run: true },
            b"o" => {
                let port = |bytes: &[u8; 2]| Some(([127, 0, 0, 1], u16::from_le_bytes(*bytes)).into());
                Reply::Owners(words.as_chunks().0.iter().map(port).collect())
            }
            _ => Reply::Strange,
        };
        grid::Received { tag, reply }
    }
}

impl Grid for Wire<Operations> {
    type Key = String;
    type Value = String;

    fn key(name: &str) -> String {
        name.to_owned()
    }

    fn value(text: &str) -> String {
        text.to_owned()
    }

    /// `k7` is of partition 7, over and over.
    fn partition(key: &String, count: u32) -> u32 {
        key[1..].parse::<u32>().unwrap_or(0) % count.max(1)
    }
}

/// A connection to a simulated server.
pub struct Wire<F = Messages> {
    carries: PhantomData<F>,
    peer: u64,
    unsent: Vec<Vec<u8>>,
    is_heard: bool,
    is_broken: bool,
    takes_no_more: bool,
}

/// A driver whose server is simulated.
pub trait Simulated: Driver<Connecting = u64> {
    /// The connection with that number.
    fn to(peer: u64) -> Self;
}

impl<F: Freight> Simulated for Wire<F> {
    fn to(peer: u64) -> Self {
        Wire {
            carries: PhantomData,
            peer,
            unsent: Vec::new(),
            is_heard: true,
            is_broken: false,
            takes_no_more: false,
        }
    }
}

impl<F: Freight> Driver for Wire<F> {
    type Connecting = u64;
    type Send<'a> = F::Send<'a>;
    type Received<'a> = F::Received<'a>;

    fn begin_connect(_: &Address, _: Option<IpAddr>) -> Result<u64, OpenError> {
        WIRES.with_borrow_mut(|wires| {
            wires.begin_connects += 1;
            Ok(wires.begin_connects - 1)
        })
    }

    async fn open(peer: u64, _: &Address) -> Result<Self, OpenError> {
        Ok(Wire::to(peer))
    }

    fn send(&mut self, what: F::Send<'_>) -> Result<(), Refused> {
        if self.takes_no_more {
            return Err(Refused(0));
        }
        self.unsent.push(F::bytes(what));
        Ok(())
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        WIRES.with_borrow_mut(|wires| {
            wires.to_server.extend(self.unsent.drain(..).map(|message| (self.peer, Some(message))));
        });
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        let next = WIRES.with_borrow_mut(|wires| wires.to_bots.get_mut(&self.peer)?.pop_front());
        match next {
            None => Poll::Pending,
            Some(Said::TakesNoMore) => {
                self.takes_no_more = true;
                Poll::Pending
            }
            Some(Said::End(End::Bare)) => Poll::Ready(Err(Closed::ByPeer(None))),
            Some(Said::End(End::Code(code))) => {
                Poll::Ready(Err(Closed::ByPeer(Some(Goodbye { code, reason: Box::default() }))))
            }
            Some(Said::End(End::Reset)) => {
                Poll::Ready(Err(Closed::Failed(io::Error::from_raw_os_error(libc::ECONNRESET))))
            }
            Some(Said::End(End::Broken(message))) => {
                buffer.lay(&message);
                (self.is_heard, self.is_broken) = (false, true);
                Poll::Ready(Ok(message.len()))
            }
            Some(Said::Message(message)) => {
                buffer.lay(&message);
                self.is_heard = false;
                Poll::Ready(Ok(message.len()))
            }
        }
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<F::Received<'d>, Broken>> {
        if std::mem::replace(&mut self.is_heard, true) {
            return None;
        }
        if self.is_broken {
            return Some(Err(Broken::Protocol("planted")));
        }
        let count = buffer.rest().len();
        Some(Ok(F::received(buffer.take(count))))
    }

    fn close(&mut self) {
        WIRES.with_borrow_mut(|wires| wires.to_server.push_back((self.peer, None)));
    }

    fn requests_at_once(&self) -> Option<usize> {
        WIRES.with_borrow(|wires| wires.requests_at_once)
    }

    fn unsent_bytes(&self) -> usize {
        self.unsent.iter().map(Vec::len).sum()
    }
}
