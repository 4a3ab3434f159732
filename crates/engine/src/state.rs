//! The state of a worker: everything but its bots.
//!
//! Three parts have files of their own: the connection table (`connections`), the pending requests (`requests`) and the
//! recorder, which fills the interval of the current second (`recorder`). What needs several of them is here: opening
//! and closing a connection (`lifecycle`), and sending a message (`sending`).
//! A message is recorded when its outcome is known: sent (the kernel took it) or not sent (it was refused, or the
//! connection ended first). So every interval balances.
//! Instants are ns since the start of the trial.

mod connections;
mod lifecycle;
mod recorder;
mod requests;
mod sending;
mod unsent;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use drivers::{Address, Closed, Driver};
use measure::ledger::SharedLedger;
use measure::{Interval, LedgerPart, Phase};

pub(crate) use self::connections::{ConnectionState, ConnectionTable};
pub(crate) use self::recorder::Recorder;
pub(crate) use self::requests::PendingRequests;
use self::requests::RequestList;
pub use self::unsent::SendLag;
pub(crate) use self::unsent::{Owes, Unsent};
use crate::ids::ConnectionId;
use crate::network::BotNetworks;
use crate::pacer::Pacer;
use crate::pairing_lock::PairingLock;
use crate::timeline::{Progress, Timeline};

/// At most this much is kept of what broke a protocol.
const ERROR_EXCERPT_BYTES: usize = 120;

/// How many meeting points a kind of bots may have; see `BotContext::meet`.
pub const MEETING_POINTS: usize = 2;

/// A connection whose connect has begun, for the thread to wait on.
pub(crate) struct Opening<D: Driver> {
    pub(crate) connection: ConnectionId,
    pub(crate) begin_connect: D::Connecting,
    pub(crate) to: Destination,
}

/// Where a connection goes.
pub(crate) enum Destination {
    /// an index into the addresses that every worker knows
    Known(u32),
    /// its own address
    Own(Box<Address>),
}

/// What one worker shares with the rest of the process.
#[derive(Clone, Default)]
pub struct Shared {
    /// the phases
    pub timeline: Arc<Timeline>,
    /// counters for the progress line
    pub progress: Arc<Progress>,
    /// one group at a time
    pub pairing_lock: PairingLock,
    /// when any worker last heard from the server, ns since the start of the trial; up to 5 ms behind
    pub heard_ns: Arc<AtomicU64>,
    /// how many bots have reached each of the points that their kind agreed on
    pub met: Arc<[AtomicU64; MEETING_POINTS]>,
    /// of these, those on other machines, as far as is known here
    pub met_elsewhere: Arc<[AtomicU64; MEETING_POINTS]>,
    /// of all workers' parts of the ledger, where messages owe deliveries
    pub shared_ledger: SharedLedger,
    /// the zero of the trial's clock, ns since the epoch: to read what other processes stamp
    pub realtime_zero_ns: u64,
}

/// Everything of a worker but its bots.
pub(crate) struct WorkerState<D: Driver> {
    pub(crate) connections: ConnectionTable<D>,
    pub(crate) requests: PendingRequests,
    /// replies that are owed by no connection: until their requests are sent again, or because they have none (`begin`)
    kept: RequestList,
    pub(crate) recorder: Recorder,
    pub(crate) pacer: Pacer,
    /// connections with something to flush at the end of this turn
    pub(crate) dirty: Vec<ConnectionId>,
    pub(crate) opening: Vec<Opening<D>>,
    /// ended, and their bots do not know yet
    pub(crate) ended: Vec<(ConnectionId, Closed)>,
    /// of each of its networks in turn, where they are emulated
    pub(crate) addresses: Vec<Address>,
    pub(crate) networks: BotNetworks,
    sources: Vec<IpAddr>,
    next_source: usize,
    pub(crate) shared: Shared,
    /// what is owed to whom, where messages owe deliveries
    pub(crate) ledger: Option<Box<LedgerPart>>,
    /// what broke the protocol of the connection that is ending
    error_excerpt: Vec<u8>,
    /// the last reading of the clock
    pub(crate) now_ns: u64,
    /// how long what is being read was there before
    pub(crate) read_lag_ns: u64,
}

impl<D: Driver> WorkerState<D> {
    pub(crate) fn new(
        interval: Box<Interval>,
        plan: &plan::WorkerPlan,
        addresses: Vec<Address>,
        shared: Shared,
    ) -> Self {
        let room = plan.units as usize * 2 + 64;
        WorkerState {
            connections: ConnectionTable::with_capacity(room),
            kept: RequestList::default(),
            requests: PendingRequests::new(interval.metric_names.ops.len()),
            networks: BotNetworks::new(plan, &interval.metric_names),
            recorder: Recorder::new(interval, plan),
            pacer: Pacer::with_capacity(room * 2),
            dirty: Vec::with_capacity(64),
            opening: Vec::new(),
            ended: Vec::new(),
            addresses,
            sources: plan.sources.clone(),
            next_source: plan.worker,
            shared,
            ledger: None,
            error_excerpt: Vec::new(),
            now_ns: 0,
            read_lag_ns: 0,
        }
    }

    /// The phase of what is planned at an instant.
    pub(crate) fn phase(&self, planned_ns: u64) -> Phase {
        self.shared.timeline.phase(planned_ns)
    }

    /// True once nothing further is to be planned.
    pub(crate) fn drains(&self) -> bool {
        self.now_ns >= self.shared.timeline.drain_ns()
    }

    pub(crate) fn error_excerpt(&self) -> &[u8] {
        &self.error_excerpt
    }

    pub(crate) fn keep_error_excerpt(&mut self, bytes: &[u8]) {
        self.error_excerpt.clear();
        self.error_excerpt.extend_from_slice(&bytes[..bytes.len().min(ERROR_EXCERPT_BYTES)]);
    }
}
