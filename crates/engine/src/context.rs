//! What bots can do, and the books that are kept while they do it.
//!
//! A message is entered into the books when its fate is known: sent (the kernel took it) or not sent (refused, or the
//! connection ended first). So an interval's page always adds up. Send lag is from the plan until the kernel was first
//! offered the message: what a server that does not read adds to it is the server's, and stands in the latencies.
//! Instants are ns since the start of the trial.

mod connections;
mod requests;
mod sending;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use drivers::{Address, Closed, Driver, OpenError};
use measure::interval::OPEN_TIME;
use measure::{Interval, LedgerPart, Measure, Phase, TickClasses, TickCounts};

use crate::clock::Clock;
use crate::pacer::{Item, Pacer};
use crate::pairing_lock::PairingLock;
use crate::timeline::{Progress, Timeline};

/// A connection must be usable this long after its connect began.
pub(crate) const OPEN_DEADLINE_NS: u64 = 5_000_000_000;
/// A close must be answered this long after it was sent.
pub(crate) const CLOSE_DEADLINE_NS: u64 = 2_000_000_000;
const NO_REQUEST: u32 = u32::MAX;
/// So many errors of each cause are kept verbatim by one worker.
const SAMPLES_MAX: u8 = 3;
/// So much is shown of what broke a protocol.
const ERROR_EXCERPT_BYTES: usize = 120;

/// A connection of this worker; never reused for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// A reply that is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    index: u32,
    generation: u32,
}

pub(crate) struct Connection<D> {
    pub(crate) generation: u32,
    pub(crate) bot: u32,
    pub(crate) address: u32,
    pub(crate) state: State<D>,
    pub(crate) waker: Option<Waker>,
    connect_began_ns: u64,
    /// encoded, and not taken whole by the kernel
    unsent: Vec<Unsent>,
    /// so many of these, from the front, the kernel was offered already
    tried: usize,
    /// bytes that the kernel has taken since the connection was asked for
    written: u64,
    first_ask: u32,
    dirty: bool,
    /// how it reads; see `reading`
    pub(crate) reads_from_ns: u64,
    pub(crate) read_bytes_max: usize,
    pub(crate) read_gap_ns: u64,
}

pub(crate) enum State<D> {
    Free,
    Opening,
    Open(Box<D>),
    Closing(Box<D>),
    /// the driver is lent out for the length of a call
    Lent,
}

struct Unsent {
    planned_ns: u64,
    /// it has departed when `Connection::written` is as much
    end: u64,
    owes: Owes,
    op: u16,
    phase: Phase,
    /// that it waited for a connection stands in the books already; see `BotContext::waits`
    lag_is_booked: bool,
}

/// What a message owes once it has left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owes {
    Nothing,
    /// index of an ask
    Reply(u32),
    /// one delivery to each member
    Deliveries {
        sender: u32,
        seq: u32,
    },
}

struct PendingRequest {
    generation: u32,
    connection: ConnectionId,
    next: u32,
    planned_ns: u64,
    /// `None` while it waits for the kernel
    sent_ns: Option<u64>,
    op: u16,
    phase: Phase,
    free: bool,
}

/// A connection whose connect has begun, for the thread to wait on.
pub(crate) struct Opening<D: Driver> {
    pub(crate) connection: ConnectionId,
    pub(crate) begin_connect: D::Connecting,
    pub(crate) address: u32,
}

/// So many points may a kind of bots agree on.
pub const MEETING_POINTS: usize = 2;

/// What one worker shares with the rest of the process.
#[derive(Clone)]
pub struct Shared {
    /// the phases
    pub timeline: Arc<Timeline>,
    /// counters for the progress line
    pub progress: Arc<Progress>,
    /// one group at a time
    pub pairing_lock: PairingLock,
    /// how many bots have come to each of the points that their kind agreed on
    pub met: Arc<[AtomicU64; MEETING_POINTS]>,
    /// the zero of the trial's clock, ns since the epoch: to read what other processes stamp
    pub realtime_zero_ns: u64,
}

/// Everything of a worker but its bots.
pub(crate) struct WorkerState<D: Driver> {
    pub(crate) connections: Vec<Connection<D>>,
    free_lines: Vec<u32>,
    asks: Vec<PendingRequest>,
    free_asks: Vec<u32>,
    /// replies owed, by operation and phase
    open_asks: Vec<[u64; Phase::COUNT]>,
    pub(crate) pacer: Pacer,
    pub(crate) dirty: Vec<ConnectionId>,
    pub(crate) opening: Vec<Opening<D>>,
    /// ended, and their bots do not know yet
    pub(crate) ended: Vec<(ConnectionId, Closed)>,
    pub(crate) interval: Box<Interval>,
    pub(crate) open_count: u64,
    /// connections × ns of this page, up to `open_since_ns`
    open_integral: u64,
    open_since_ns: u64,
    /// where the metric_names counts the above, if it does
    open_time_counter: Option<usize>,
    addresses: Vec<Address>,
    sources: Vec<IpAddr>,
    next_source: usize,
    patience_ns: u64,
    classes: TickClasses,
    pub(crate) shared: Shared,
    /// what is owed to whom, where messages owe deliveries
    pub(crate) ledger: Option<Box<LedgerPart>>,
    /// errors of each cause that were kept verbatim
    samples_kept: Vec<u8>,
    /// what broke the protocol of the connection that is ending
    error_excerpt: Vec<u8>,
    /// the last reading of the clock
    pub(crate) now_ns: u64,
}

/// What bots can do during a call.
pub struct BotContext<'a, D: Driver> {
    pub(crate) core: &'a mut WorkerState<D>,
}

impl<D: Driver> BotContext<'_, D> {
    /// ns since the start of the trial, as of this call.
    pub fn now_ns(&self) -> u64 {
        self.core.now_ns
    }

    /// An instant of the trial in ns since the epoch.
    pub fn realtime_ns(&self, at_ns: u64) -> u64 {
        self.core.shared.realtime_zero_ns + at_ns
    }

    /// The phase of what is planned at an instant.
    pub fn phase(&self, planned_ns: u64) -> Phase {
        self.core.shared.timeline.phase(planned_ns)
    }

    /// True once nothing further is to be planned.
    pub fn drains(&self) -> bool {
        self.core.now_ns >= self.core.shared.timeline.drain_ns()
    }

    /// Begins a connection for `bot`; `opened` or `closed` reports the outcome. The connect has begun before this returns.
    pub fn open(&mut self, bot: u32, path: usize) -> ConnectionId {
        self.core.open(bot, path)
    }

    /// Sends a message that owes nothing. It counts as not sent when the connection is gone or takes no more.
    pub fn send(&mut self, connection: ConnectionId, op: usize, planned_ns: u64, what: D::Send<'_>) {
        if self.core.encode(connection, op, planned_ns, what) {
            self.core.enter_unsent(connection, op, planned_ns, Owes::Nothing);
        }
    }

    /// Sends a message that owes a delivery to each member, by its number from `BotContext::next_seq`. False: it was not sent.
    pub fn broadcast(
        &mut self,
        connection: ConnectionId,
        op: usize,
        planned_ns: u64,
        (sender, seq): (u32, u32),
        what: D::Send<'_>,
    ) -> bool {
        let is_taken = self.core.encode(connection, op, planned_ns, what);
        if is_taken {
            self.core.enter_unsent(connection, op, planned_ns, Owes::Deliveries { sender, seq });
        }
        is_taken
    }

    /// Books a planned message that could not even be tried, because its bot has no connection.
    pub fn not_sent(&mut self, op: usize, planned_ns: u64) {
        let phase = self.phase(planned_ns);
        self.core.book_not_sent(op, phase);
    }

    /// Sends a message that owes a reply. `None`: it was not sent.
    pub fn request(
        &mut self,
        connection: ConnectionId,
        op: usize,
        planned_ns: u64,
        what: D::Send<'_>,
    ) -> Option<RequestId> {
        self.ask_with(connection, op, planned_ns, what, false)
    }

    /// The same for a message that found all connections busy, after `waits`.
    pub fn request_after_waiting(
        &mut self,
        connection: ConnectionId,
        op: usize,
        planned_ns: u64,
        what: D::Send<'_>,
    ) -> Option<RequestId> {
        self.ask_with(connection, op, planned_ns, what, true)
    }

    fn ask_with(
        &mut self,
        connection: ConnectionId,
        op: usize,
        planned_ns: u64,
        what: D::Send<'_>,
        lag_is_booked: bool,
    ) -> Option<RequestId> {
        if !self.core.encode(connection, op, planned_ns, what) {
            return None;
        }
        let phase = self.phase(planned_ns);
        let ask = self.core.new_request(connection, op, phase, planned_ns);
        self.core.enter_unsent_with(connection, op, planned_ns, Owes::Reply(ask.index), lag_is_booked);
        Some(ask)
    }

    /// Sends what belongs to a reply that is owed already, such as the next request of a redirect: no message of its own in
    /// the books. False: the connection takes it no longer.
    pub fn follow(&mut self, connection: ConnectionId, what: D::Send<'_>) -> bool {
        self.core.follow(connection, what)
    }

    /// A planned message finds all connections busy. That this worker noticed it in time is booked now as its send lag;
    /// what follows until a connection is free is the server's doing and stands in the response.
    pub fn waits(&mut self, planned_ns: u64) {
        let phase = self.phase(planned_ns);
        let lag_ns = self.core.now_ns.saturating_sub(planned_ns);
        self.core.interval.record(Measure::SendLag, phase, lag_ns);
    }

    /// The first byte of a reply has come.
    pub fn began(&mut self, ask: RequestId, at_ns: u64) {
        let Some(owed) = self.core.asks.get(ask.index as usize) else { return };
        if owed.free || owed.generation != ask.generation {
            return;
        }
        let (phase, sent_ns) = (owed.phase, owed.sent_ns.unwrap_or(at_ns));
        self.core.interval.record(Measure::FirstByte, phase, at_ns.saturating_sub(sent_ns));
    }

    /// When everybody is there, or later; ns, `u64::MAX` until it is known.
    pub fn settle_ns(&self) -> u64 {
        let timeline = &self.core.shared.timeline;
        timeline.settle_ns().min(timeline.hold_ns())
    }

    /// Counts an error and keeps its words, if it is one of the first of its cause.
    pub fn error_with(&mut self, cause: usize, words: impl FnOnce() -> String) {
        self.error(cause);
        let kept = &mut self.core.samples_kept[cause];
        if *kept < SAMPLES_MAX {
            *kept += 1;
            self.core.interval.samples.push((cause, words()));
        }
    }

    /// The bytes that broke the protocol of the connection whose end is being told, as far as they are worth showing.
    pub fn error_excerpt(&self) -> &[u8] {
        &self.core.error_excerpt
    }

    /// Enters a reply that is owed to the connection itself, such as a greeting; requested at `sent_ns`, by connecting.
    ///
    /// It has no send lag: a connect may have waited for the server's own pace, which says nothing about this machine.
    /// That wait stands in the response, not in the service time.
    pub fn expect(
        &mut self,
        connection: ConnectionId,
        op: usize,
        planned_ns: u64,
        sent_ns: u64,
    ) -> Option<RequestId> {
        let phase = self.phase(planned_ns);
        self.core.connection_mut(connection)?;
        let ask = self.core.new_request(connection, op, phase, planned_ns);
        self.core.book_departed(op, phase, Some(ask.index), sent_ns);
        Some(ask)
    }

    /// The reply has come. Returns false when it is owed no longer.
    pub fn answered(&mut self, ask: RequestId, at_ns: u64) -> bool {
        self.core.settle(ask, |core, owed| {
            let response_ns = at_ns.saturating_sub(owed.planned_ns);
            let patience_ns = core.patience_ns;
            let flow = core.interval.flow_mut(usize::from(owed.op), owed.phase);
            flow.answered += 1;
            flow.late += u64::from(response_ns > patience_ns);
            core.interval.record(Measure::Response, owed.phase, response_ns);
            let sent_ns = owed.sent_ns.unwrap_or(at_ns);
            core.interval.record(Measure::Service, owed.phase, at_ns.saturating_sub(sent_ns));
        })
    }

    /// The reply has come and is wrong.
    pub fn failed(&mut self, ask: RequestId) -> bool {
        self.core.settle(ask, |core, owed| {
            core.interval.flow_mut(usize::from(owed.op), owed.phase).failed += 1;
        })
    }

    /// Calls `Bots::due` at an instant. What is planned after the hold never comes.
    pub fn at(&mut self, planned_ns: u64, bot: u32, what: u32) {
        self.core.pacer.push(planned_ns, Item::Bot { bot, what });
    }

    /// Ends a connection politely. Its bot hears no more of it; replies still owed are lost, but after the hold.
    pub fn close(&mut self, connection: ConnectionId) {
        self.core.close(connection);
    }

    /// Counts an error by its index in the metric_names.
    pub fn error(&mut self, cause: usize) {
        self.core.interval.errors[cause] += 1;
    }

    /// Adds to a counter of the metric_names.
    pub fn count(&mut self, counter: usize, more: u64) {
        self.core.interval.counters[counter] += more;
    }

    /// Books a tick as a client sees it: `interval_ns` since the last one, `interval_ms` between whole-ms readings,
    /// `missed` ticks that never came in between, `age_ns` since the server's stamp.
    pub fn tick(&mut self, at_ns: u64, interval_ns: u64, interval_ms: u64, missed: u64, age_ns: Option<u64>) {
        let phase = self.phase(at_ns);
        let interval = &mut self.core.interval;
        self.core.classes.count(&mut interval.ticks, interval_ms, 1);
        interval.ticks.add(&TickCounts { due: missed, missed, ..TickCounts::default() });
        interval.record(Measure::TickInterval, phase, interval_ns);
        if let Some(age_ns) = age_ns {
            interval.record(Measure::TickAge, phase, age_ns);
        }
    }

    /// One group at a time, over all workers.
    pub fn pairing_lock(&self) -> &PairingLock {
        &self.core.shared.pairing_lock
    }
}

impl<D: Driver> WorkerState<D> {
    pub(crate) fn new(
        interval: Box<Interval>,
        plan: &plan::WorkerPlan,
        addresses: Vec<Address>,
        shared: Shared,
    ) -> Self {
        let (op_count, cause_count) = (interval.metric_names.ops.len(), interval.metric_names.errors.len());
        let open_time_counter = interval.metric_names.counters.iter().position(|name| name == OPEN_TIME);
        let rate_hz = if plan.tick_period_ns > 0 { 1e9 / plan.tick_period_ns as f64 } else { 60.0 };
        let room = plan.units as usize * 2 + 64;
        WorkerState {
            connections: Vec::with_capacity(room),
            free_lines: Vec::new(),
            asks: Vec::new(),
            free_asks: Vec::new(),
            open_asks: vec![[0; Phase::COUNT]; op_count],
            pacer: Pacer::with_capacity(room * 2),
            dirty: Vec::with_capacity(64),
            opening: Vec::new(),
            ended: Vec::new(),
            interval,
            open_count: 0,
            open_integral: 0,
            open_since_ns: 0,
            open_time_counter,
            addresses,
            sources: plan.sources.clone(),
            next_source: plan.worker,
            patience_ns: plan.patience_ns,
            classes: TickClasses::for_rate(rate_hz),
            shared,
            ledger: None,
            samples_kept: vec![0; cause_count],
            error_excerpt: Vec::new(),
            now_ns: 0,
        }
    }

    pub(crate) fn keep_error_excerpt(&mut self, bytes: &[u8]) {
        self.error_excerpt.clear();
        self.error_excerpt.extend_from_slice(&bytes[..bytes.len().min(ERROR_EXCERPT_BYTES)]);
    }

    pub(crate) fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection<D>> {
        self.connections.get_mut(id.index as usize).filter(|connection| {
            connection.generation == id.generation && !matches!(connection.state, State::Free)
        })
    }

    /// Closes the page of a second that ends at `end_ns`: what is open now is open after it.
    pub(crate) fn close_interval(&mut self, end_ns: u64) {
        self.integrate_open(end_ns);
        let open_time_ms = std::mem::take(&mut self.open_integral) / 1_000_000;
        if let Some(counter) = self.open_time_counter {
            self.interval.counters[counter] += open_time_ms;
        }
        for (phases, open) in self.interval.flows.iter_mut().zip(&self.open_asks) {
            for (flow, &open) in phases.iter_mut().zip(open) {
                flow.open_after = open;
            }
        }
        self.interval.connections.open_end = self.open_count;
    }

    /// Opens the page of the next second on an empty interval.
    pub(crate) fn open_interval(&mut self) {
        for (phases, open) in self.interval.flows.iter_mut().zip(&self.open_asks) {
            for (flow, &open) in phases.iter_mut().zip(open) {
                flow.open_before = open;
            }
        }
        self.interval.connections.open_min = self.open_count;
        self.interval.workers = 1;
    }
}
