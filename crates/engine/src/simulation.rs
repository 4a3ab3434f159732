//! A simulation: a worker and a simulated server in virtual time, single-threaded and exact.
//!
//! Everything from the plan to the record runs without a socket and without waiting, so a server with a known stall,
//! loss or winner must be recorded as exactly that. For tests and oracles; never part of a run.
//! A message takes no time on the wire; what takes time is what the simulated server says takes time.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use drivers::grid::{self, Grid, Kind, Operation, Reply};
use drivers::http::{self, Answer, Http, Outgoing, Parts};
use drivers::websocket::{Message, Received};
use drivers::{Address, Broken, Closed, Driver, OpenError, ReadBuffer, Refused};
use measure::{Interval, LedgerPart};
use plan::{WorkerPlan, WorkloadSettings as _};

use crate::bots::Bots;
use crate::clock::{Clock, VirtualClock};
use crate::pairing_lock::PairingLock;
use crate::state::{ConnectionId, Shared};
use crate::timeline::{Progress, Timeline};
use crate::worker::{Handover, Worker};

/// A simulated server. `peer` numbers its connections in the order of their arrival.
pub trait Scene {
    /// How long a connection takes until it stands, ns; `None`: it is refused.
    fn opens_after_ns(&mut self, _peer: u64) -> Option<u64> {
        Some(0)
    }
    /// A connection has arrived.
    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says);
    /// A message has arrived.
    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says);
    /// A connection is gone.
    fn closed(&mut self, _peer: u64, _at_ns: u64, _says: &mut Says) {}
}

/// Instant, order, peer and what is said.
type Saying = (u64, u64, u64, Said);

/// What a connection brings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Message(Vec<u8>),
    /// its end
    End(End),
}

/// How a simulated server ends a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// without a word
    Bare,
    /// by a close frame with this code
    Code(u16),
    /// by a reset
    Reset,
    /// by these bytes, which the protocol does not allow
    Broken(Vec<u8>),
}

/// What a simulated server says, and when.
#[derive(Default)]
pub struct Says {
    queue: BinaryHeap<Reverse<Saying>>,
    count: u64,
}

impl Says {
    /// A message that arrives at an instant.
    pub fn message(&mut self, at_ns: u64, peer: u64, message: impl Into<Vec<u8>>) {
        self.count += 1;
        self.queue.push(Reverse((at_ns, self.count, peer, Said::Message(message.into()))));
    }

    /// The end of a connection, at an instant.
    pub fn goodbye(&mut self, at_ns: u64, peer: u64) {
        self.end(at_ns, peer, End::Bare);
    }

    /// The same, in one of the ways in which a connection can end.
    pub fn end(&mut self, at_ns: u64, peer: u64, end: End) {
        self.count += 1;
        self.queue.push(Reverse((at_ns, self.count, peer, Said::End(end))));
    }
}

thread_local! {
    static WIRES: RefCell<Wires> = RefCell::new(Wires::default());
}

#[derive(Default)]
struct Wires {
    begin_connects: u64,
    to_server: VecDeque<(u64, Option<Vec<u8>>)>,
    to_bots: BTreeMap<u64, VecDeque<Said>>,
}

/// What goes over a simulated connection: the shape that a real driver's messages have.
pub trait Freight: 'static {
    /// What can be sent.
    type Send<'a>;
    /// What can be heard.
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

    /// An answer to the request with that tag.
    pub fn answer(tag: u32, status: u16, body: &[u8]) -> Vec<u8> {
        [&tag.to_le_bytes()[..], &status.to_le_bytes(), body].concat()
    }
}

const TAG_BYTES: usize = size_of::<u32>();
const STATUS_BYTES: usize = size_of::<u16>();

impl Freight for Exchanges {
    type Send<'a> = Outgoing<'a, String>;
    type Received<'a> = http::Received<'a>;

    fn bytes(what: Outgoing<'_, String>) -> Vec<u8> {
        [&what.tag.to_le_bytes()[..], what.prepared.as_bytes()].concat()
    }

    fn received(bytes: &[u8]) -> http::Received<'_> {
        let (tag, rest) = Exchanges::request(bytes);
        let (status, body) = rest.split_at(STATUS_BYTES);
        http::Received::Answer(Answer {
            tag,
            status: u16::from_le_bytes(status.try_into().unwrap_or_default()),
            body,
            body_bytes: body.len() as u64,
            location: None,
            closes: false,
            grpc: None,
        })
    }
}

impl Http for Wire<Exchanges> {
    type Prepared = String;

    fn prepare(parts: &Parts<'_>) -> String {
        parts.path.to_owned()
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
        /// but it may have been carried out
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
}

/// A driver whose server is simulated.
pub trait Simulated: Driver<Connecting = u64> {
    /// The connection with that number.
    fn to(peer: u64) -> Self;
}

impl<F: Freight> Simulated for Wire<F> {
    fn to(peer: u64) -> Self {
        Wire { carries: PhantomData, peer, unsent: Vec::new(), is_heard: true, is_broken: false }
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
            Some(Said::End(End::Bare)) => Poll::Ready(Err(Closed::ByPeer(None))),
            Some(Said::End(End::Code(code))) => Poll::Ready(Err(Closed::ByPeer(Some(code)))),
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

    fn unsent_bytes(&self) -> usize {
        self.unsent.iter().map(Vec::len).sum()
    }
}

/// What a worker handed over.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// its seconds
    pub seconds: Vec<Interval>,
    /// its part of the delivery ledger
    pub ledger: Option<LedgerPart>,
}

#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Played>>);

impl Handover for Kept {
    fn swap(&mut self, second: &mut Box<Interval>) {
        self.0.borrow_mut().seconds.push((**second).clone());
    }

    fn ledger(&mut self, part: LedgerPart) {
        self.0.borrow_mut().ledger = Some(part);
    }
}

#[derive(Clone)]
struct Summed(Rc<RefCell<Interval>>);

impl Handover for Summed {
    fn swap(&mut self, second: &mut Box<Interval>) {
        let mut sum = self.0.borrow_mut();
        if let Err(imbalance) = sum.add(second) {
            panic!("an interval of a simulation: {imbalance}");
        }
        // Seconds follow each other: what was open between them is none of the sum's.
        for (flow, last) in sum.flows.iter_mut().flatten().zip(second.flows.iter().flatten()) {
            flow.open_before -= last.open_before;
            flow.open_after = last.open_after;
        }
    }
}

/// The instants of a simulation, ns.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// begin of the hold
    pub hold_ns: u64,
    /// its end
    pub drain_ns: u64,
    /// the generator does nothing within these, as if its core were taken away
    pub generator_stall: Option<(u64, u64)>,
}

fn settings<B: Bots>(plan: &WorkerPlan) -> &B::Settings {
    B::Settings::of(&plan.bots).expect("a simulation is given a plan of its own bots")
}

/// Plays one worker against a simulated server and returns its seconds.
pub fn simulate<B>(plan: &WorkerPlan, times: Times, scene: &mut impl Scene) -> Vec<Interval>
where
    B: Bots<Driver: Simulated>,
{
    play::<B>(plan, times, scene).seconds
}

/// Plays one worker against a simulated server and returns the sum of its seconds: for hours of virtual time.
pub fn simulate_sum<B>(plan: &WorkerPlan, times: Times, scene: &mut impl Scene) -> Interval
where
    B: Bots<Driver: Simulated>,
{
    let sum = Summed(Rc::new(RefCell::new(Interval::new(&B::metric_names(settings::<B>(plan))))));
    play_to::<B>(plan, times, false, scene, Box::new(sum.clone()));
    sum.0.borrow().clone()
}

/// Plays one worker against a simulated server and returns all that it handed over.
pub fn play<B>(plan: &WorkerPlan, times: Times, scene: &mut impl Scene) -> Played
where
    B: Bots<Driver: Simulated>,
{
    play_kept::<B>(plan, times, false, scene)
}

/// The same with a ramp that ends when all units are in, as the phase controller ends it, and at the hold at the latest.
pub fn play_settling<B>(plan: &WorkerPlan, times: Times, scene: &mut impl Scene) -> Played
where
    B: Bots<Driver: Simulated>,
{
    play_kept::<B>(plan, times, true, scene)
}

fn play_kept<B>(plan: &WorkerPlan, times: Times, settles: bool, scene: &mut impl Scene) -> Played
where
    B: Bots<Driver: Simulated>,
{
    let kept = Kept::default();
    play_to::<B>(plan, times, settles, scene, Box::new(kept.clone()));
    Rc::try_unwrap(kept.0).map_or_else(|shared| shared.borrow().clone(), RefCell::into_inner)
}

fn play_to<B>(
    plan: &WorkerPlan,
    times: Times,
    settles: bool,
    scene: &mut impl Scene,
    handover: Box<dyn Handover>,
) where
    B: Bots<Driver: Simulated>,
{
    WIRES.with_borrow_mut(|wires| *wires = Wires::default());
    let timeline = Arc::new(Timeline::default());
    if !settles {
        timeline.settle_at(times.hold_ns);
    }
    timeline.hold_at(times.hold_ns);
    timeline.drain_at(times.drain_ns);
    timeline.stop_at(times.drain_ns + 10_000_000_000);
    let progress = Arc::new(Progress::default());
    let shared = Shared {
        timeline: timeline.clone(),
        progress: progress.clone(),
        pairing_lock: PairingLock::default(),
        met: Arc::default(),
        realtime_zero_ns: 0,
    };
    let of_path = |path: String| {
        let address = move |&socket: &std::net::SocketAddr| Address {
            socket,
            host: "simulated".to_owned(),
            path: path.clone(),
            tls: None,
        };
        plan.sockets().iter().map(address)
    };
    let addresses = B::paths(plan).into_iter().flat_map(of_path).collect();
    let mut worker = Worker::<B>::new(settings::<B>(plan), plan, addresses, shared, handover);
    let clock = VirtualClock::default();
    let mut says = Says::default();
    let mut connections = Connections::default();
    loop {
        worker.due(&clock);
        settle(&mut worker, &clock, scene, &mut says, &mut connections);
        if worker.is_done() {
            break;
        }
        if settles && timeline.settle_ns() == u64::MAX && progress.joined.load(Relaxed) >= plan.units {
            timeline.settle_at(clock.now_ns());
        }
        let arrival_ns = says.queue.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        let arrival_ns = arrival_ns.min(connections.next_open_ns());
        let mut next_ns = worker.next_due_ns().min(arrival_ns).max(clock.now_ns());
        if let Some((from_ns, to_ns)) = times.generator_stall
            && (from_ns..to_ns).contains(&next_ns)
        {
            next_ns = to_ns;
        }
        clock.set(next_ns);
        open_due(&mut worker, &clock, scene, &mut says, &mut connections);
        while let Some(Reverse((at_ns, ..))) = says.queue.peek()
            && *at_ns <= next_ns
        {
            let Some(Reverse((at_ns, _, peer, message))) = says.queue.pop() else { break };
            worker.readable_since(at_ns);
            WIRES.with_borrow_mut(|wires| wires.to_bots.entry(peer).or_default().push_back(message));
            if let Some(&connection) = connections.by_peer.get(&peer) {
                let _ = worker.poll_connection(connection, &mut Context::from_waker(Waker::noop()), &clock);
            }
        }
    }
    worker.finish(&clock);
}

/// Connections by the numbers that the simulated server knows them by.
#[derive(Default)]
struct Connections {
    by_peer: BTreeMap<u64, ConnectionId>,
    /// on their way: when they stand, or are refused
    opening: BinaryHeap<Reverse<(u64, u64, bool)>>,
}

impl Connections {
    fn next_open_ns(&self) -> u64 {
        self.opening.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns)
    }
}

/// Opens what stands by now.
fn open_due<B: Bots<Driver: Simulated>>(
    worker: &mut Worker<B>,
    clock: &VirtualClock,
    scene: &mut impl Scene,
    says: &mut Says,
    connections: &mut Connections,
) {
    while connections.next_open_ns() <= clock.now_ns() {
        let Some(Reverse((_, peer, is_refused))) = connections.opening.pop() else { return };
        let connection = connections.by_peer[&peer];
        // One that was given up on its way never arrives.
        if !worker.awaits(connection, &Context::from_waker(Waker::noop())) {
            continue;
        }
        if is_refused {
            worker.opened(connection, Err(OpenError::Refused), clock);
        } else {
            scene.opened(peer, clock.now_ns(), says);
            worker.opened(connection, Ok(B::Driver::to(peer)), clock);
        }
    }
}

/// Lets everything that happens at this instant happen.
fn settle<B: Bots<Driver: Simulated>>(
    worker: &mut Worker<B>,
    clock: &VirtualClock,
    scene: &mut impl Scene,
    says: &mut Says,
    connections: &mut Connections,
) {
    loop {
        open_due(worker, clock, scene, says, connections);
        let openings: Vec<_> = worker.take_openings().collect();
        let arrived: Vec<_> = WIRES.with_borrow_mut(|wires| wires.to_server.drain(..).collect());
        if openings.is_empty() && arrived.is_empty() {
            return;
        }
        for opening in openings {
            connections.by_peer.insert(opening.begin_connect, opening.connection);
            let after_ns = scene.opens_after_ns(opening.begin_connect);
            let at_ns = clock.now_ns() + after_ns.unwrap_or(0);
            connections.opening.push(Reverse((at_ns, opening.begin_connect, after_ns.is_none())));
        }
        for (peer, message) in arrived {
            match message {
                Some(message) => scene.received(peer, &message, clock.now_ns(), says),
                None => {
                    scene.closed(peer, clock.now_ns(), says);
                    says.goodbye(clock.now_ns(), peer);
                }
            }
        }
    }
}
