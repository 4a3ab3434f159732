//! The part of a plan that one worker thread executes, and what a load requires of this machine.
//!
//! Built once per trial, before any load. Units of load (games, clients) are dealt out round-robin, so that every
//! worker takes part from the start of the ramp and none holds more than one unit more than another.
//! Each worker has its own descriptor table, which is why descriptors are counted per worker here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ladder::disturbance::HOLD_LONGER_MOST;
use ladder::{Allowed, LoadUnit};

use crate::credentials::Login;
use crate::network::Networks;
use crate::plan::{Arrivals, Handshake, HoldLength, Plan, Ramp, SubjectStop};
use crate::ramp;
use crate::scheme::Scheme;
use crate::target::Target;
use crate::workloads::{BotSettings, Broadcast, Demand};

/// What one worker does in one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerPlan {
    /// this worker, from 0
    pub worker: usize,
    /// of so many
    pub workers: usize,
    /// first unit of load (game, client) that is this worker's; its units are `first, first + workers, …`
    pub first_unit: u64,
    /// how many units of load are this worker's
    pub units: u64,
    /// how many units of load there are over all workers
    pub units_total: u64,
    /// bots that may begin within the trial, over all workers: more than units where each ends and another begins
    pub bots_total: u64,
    /// how the units of the whole trial arrive
    pub ramp: Ramp,
    /// the simulated clients
    pub bots: BotSettings,
    /// what they say besides when they open WebSockets
    pub handshake: Handshake,
    /// the law of arrivals
    pub arrivals: Arrivals,
    /// where the subject listens, as written (Host header, path, TLS name)
    pub target: Target,
    /// the same, resolved and pinned
    pub address: SocketAddr,
    /// where the subject is a cluster of several members: all of them, with the one at `address`; else empty
    pub members: Vec<SocketAddr>,
    /// what clients show the subject so that it lets them in; filled in when a trial starts
    pub login: Option<Login>,
    /// source addresses to spread connections over; empty: let the kernel choose
    pub sources: Vec<IpAddr>,
    /// this worker's own seed
    pub seed: u64,
    /// an answer after this is late, ns
    pub patience_ns: u64,
    /// most attempts to open one connection
    pub open_attempts: u32,
    /// ns between two ticks of the subject; 0 when it has none
    pub tick_period_ns: u64,
    /// between the ramp and the hold, ns
    pub settle_ns: u64,
    /// after the hold, data in flight is waited for this long at most, ns
    pub drain_ns: u64,
    /// what is emulated between the bots and the subject
    pub networks: Networks,
    /// that of bot 0 is the one of this turn
    pub first_turn: u64,
    /// requests per second over all workers, where the load is a rate; else 0
    pub rate_per_s: f64,
    /// where in its gap the one stream of evenly planned requests begins, in [0, 1); the same for all workers
    pub stream_phase: f64,
    /// of a sweep's cell: only this one of the bots' requests
    pub request: Option<usize>,
    /// the subject is told to shut down under this load
    pub stop: Option<SubjectStop>,
    /// the part of the load, in (0, 1), that goes on after the hold until the server has recovered
    pub recovery_share: Option<f64>,
    /// what the server may do although it fails a rung otherwise
    pub allowed: Vec<Allowed>,
    /// how far the clocks of any two workers may differ, ns; 0 where all are on one machine
    pub clock_bound_ns: u64,
}

impl WorkerPlan {
    /// A worker that is the only one: `units` of load at `address`, all at once, one attempt each, evenly planned; no ticks.
    pub fn alone(bots: BotSettings, units: u64, scheme: Scheme, address: SocketAddr) -> WorkerPlan {
        WorkerPlan {
            worker: 0,
            workers: 1,
            first_unit: 0,
            units,
            units_total: units,
            bots_total: units,
            ramp: Ramp::AtOnce,
            bots,
            handshake: Handshake::default(),
            arrivals: Arrivals::Even,
            target: Target::at(scheme, address),
            address,
            members: Vec::new(),
            login: None,
            sources: Vec::new(),
            seed: 1,
            patience_ns: 1_000_000_000,
            open_attempts: 1,
            tick_period_ns: 0,
            settle_ns: 0,
            drain_ns: DRAIN_NS,
            networks: Networks::default(),
            first_turn: 0,
            rate_per_s: 0.0,
            stream_phase: 0.0,
            request: None,
            stop: None,
            recovery_share: None,
            allowed: Vec::new(),
            clock_bound_ns: 0,
        }
    }
}

impl WorkerPlan {
    /// The same for this many bots, which run once or again and again, whatever a load counts.
    pub fn of_bots(self, bots: u64) -> WorkerPlan {
        WorkerPlan { units: bots, units_total: bots, bots_total: bots, rate_per_s: 0.0, ..self }
    }

    /// Where connections go: to each member of a cluster, or to the one subject.
    pub fn sockets(&self) -> &[SocketAddr] {
        if self.members.is_empty() { std::slice::from_ref(&self.address) } else { &self.members }
    }
}

/// After the hold, replies and deliveries are waited for this long at most, ns.
pub const DRAIN_NS: u64 = 8_000_000_000;
/// Connections then have so long to close, ns.
pub const CLOSING_NS: u64 = 4_000_000_000;

/// Descriptors of a table that are not sockets of bots: epoll, timers, logs, the standard three, and air.
const DESCRIPTORS_SPARE: u64 = 200;
/// How long the kernel keeps the port of a connection that we closed.
const TIME_WAIT_S: f64 = 60.0;
/// First of the loopback addresses that connections leave from when one address has too few ports: 127.0.0.10.
const SOURCE_FIRST: u32 = u32::from_be_bytes([127, 0, 0, 10]);
/// 127.0.0.10 to 127.0.0.254.
const SOURCES_MAX: usize = 245;

/// What one load asks of the machine that makes it; the preflight compares it with what there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needs {
    /// simulated clients
    pub bots: u64,
    /// connections that stand during the hold
    pub connections: u64,
    /// connections that may be open at once: those that stand, those for one request each, those opened on demand
    pub connections_most: u64,
    /// descriptors for them, over all workers: 10 % more, because a new game's sockets overlap the old one's closing
    pub descriptors: u64,
    /// connections opened per second during the hold, because games end and begin again
    pub opens_per_s: f64,
    /// how long the bots take to arrive, ns
    pub ramp_ns: u64,
    /// memory that the delivery ledger takes by the end of the trial, over all workers; 0 if no deliveries are owed
    pub ledger_bytes: u64,
}

/// A cell of the ledger: one sender at one receiver.
const CELL_BYTES: u64 = 8;
/// What else the ledger knows of a receiver, its memberships included.
const ROW_BYTES: u64 = 512;
/// The instant at which a line left takes 4 bytes, in a list that may just have doubled.
const DEPARTURE_BYTES: u64 = 8;
/// The longest that a hold may wait for ticks.
const HOLD_NS_MOST: u64 = 1_800_000_000_000;

/// What `load` units of the plan need.
pub fn needs(plan: &Plan, load: f64) -> Needs {
    let units = plan.bots.units(load);
    let Demand { bots, connections, connections_max, opens_per_s } = plan.bots.demand(load);
    let connections_most = bots.max(connections).max(connections_max);
    Needs {
        bots,
        connections,
        connections_most,
        descriptors: with_headroom(connections_most),
        opens_per_s,
        ramp_ns: ramp::length_ns(plan.ladder.ramp.of(units), units),
        ledger_bytes: plan.bots.broadcast(load).map_or(0, |broadcast| ledger_bytes(plan, broadcast, units)),
    }
}

/// Bots that may begin under a load: its units, or the sessions that are planned until the longest hold has ended.
pub fn bots_total(plan: &Plan, load: f64) -> u64 {
    let ladder = &plan.ladder;
    if ladder.load_unit != LoadUnit::Sessions {
        return plan.bots.units(load);
    }
    let hold_ns = match ladder.hold {
        HoldLength::Time(ns) => ns,
        HoldLength::Ticks(_) | HoldLength::Games(_) => HOLD_NS_MOST,
    };
    let lengthened = ladder.lengthened.iter().find(|one| one.0 == load).map_or(0, |one| one.1);
    let searched = ladder.search.as_ref().map_or(0, |search| search.full_ns(load));
    let hold_ns = hold_ns.max(lengthened).max(searched) as f64 * f64::from(HOLD_LONGER_MOST);
    let planned = load * (ladder.settle_ns as f64 + hold_ns) / 1e9;
    // Random arrivals may be a few more.
    (planned + 5.0 * planned.sqrt()).ceil() as u64 + 1
}

/// A cell per sender and receiver, a row per receiver, an instant per line; too much rather than too little.
fn ledger_bytes(plan: &Plan, broadcast: Broadcast, units: u64) -> u64 {
    let hold_ns = match plan.ladder.hold {
        HoldLength::Time(ns) => ns,
        HoldLength::Ticks(_) | HoldLength::Games(_) => HOLD_NS_MOST,
    };
    let send_ns = ramp::length_ns(plan.ladder.ramp.of(units), units) as f64
        + plan.ladder.settle_ns as f64
        + hold_ns as f64;
    let messages = broadcast.senders as f64 * (send_ns / broadcast.gap_mean_ns.max(1.0));
    let pairs = broadcast.senders.saturating_mul(units);
    // A float converts to an integer by saturating.
    let log = (messages * DEPARTURE_BYTES as f64) as u64;
    pairs.saturating_mul(CELL_BYTES).saturating_add(units.saturating_mul(ROW_BYTES)).saturating_add(log)
}

/// The workers' shares of one trial: units dealt out in turn, a seed of its own for each.
///
/// There are never more workers than units, since an idle worker would only take time from the others; the list is as
/// long as there are workers. Every worker gets all `sources`, begun at another one, so that they do not all fill the
/// first address before the second. `workers` of zero counts as one.
pub fn split(
    plan: &Plan,
    load: f64,
    target: &Target,
    address: SocketAddr,
    workers: usize,
    sources: &[IpAddr],
) -> Vec<WorkerPlan> {
    let units = plan.bots.units(load);
    let rate_per_s = plan.bots.rate_per_s(load);
    let workers = workers.clamp(1, usize::try_from(units).unwrap_or(usize::MAX).max(1));
    (0..workers)
        .map(|worker| {
            let first_unit = worker as u64;
            let mut sources = sources.to_vec();
            if !sources.is_empty() {
                let turn = worker % sources.len();
                sources.rotate_left(turn);
            }
            WorkerPlan {
                worker,
                workers,
                first_unit,
                units: units.saturating_sub(first_unit).div_ceil(workers as u64),
                units_total: units,
                bots_total: bots_total(plan, load),
                ramp: plan.ladder.ramp.of(units),
                arrivals: plan.arrivals,
                bots: plan.bots.clone(),
                handshake: plan.handshake.clone(),
                target: target.clone(),
                address,
                members: Vec::new(),
                login: None,
                sources,
                seed: worker_seed(plan.seed, first_unit),
                patience_ns: plan.patience_ns,
                open_attempts: plan.generator.open_attempts,
                tick_period_ns: plan.subject.tick_period_ns(),
                settle_ns: plan.ladder.settle_ns,
                drain_ns: plan.bots.drain_ns(plan.patience_ns, &plan.objectives)
                    + plan.networks.allowance_ns(),
                networks: plan.networks.clone(),
                first_turn: Networks::first_turn(plan.seed),
                rate_per_s,
                stream_phase: (worker_seed(plan.seed, u64::MAX - 1) >> 11) as f64 / (1u64 << 53) as f64,
                request: None,
                stop: plan.ladder.stop,
                recovery_share: None,
                allowed: plan.allowed.clone(),
                clock_bound_ns: 0,
            }
        })
        .collect()
}

/// How many workers carry `connections`: one per core, more when their descriptor tables ask for it.
///
/// `descriptors_per_table` is the hard limit of one table; about 200 of it stay spare, and 10 % of the sockets overlap.
pub fn workers_for(connections: u64, cores: usize, descriptors_per_table: u64) -> usize {
    let usable = descriptors_per_table.saturating_sub(DESCRIPTORS_SPARE).max(1);
    let for_descriptors = with_headroom(connections).div_ceil(usable);
    // A worker without a connection would be idle.
    let most = usize::try_from(connections).unwrap_or(usize::MAX).max(1);
    usize::try_from(for_descriptors).unwrap_or(usize::MAX).max(cores).clamp(1, most)
}

/// How many source addresses carry the connections that stand and those whose ports the kernel still keeps.
///
/// `ephemeral_ports_per_address` is the width of the kernel's range, about 28,000. At least 1, at most 245
/// (127.0.0.10 to 127.0.0.254).
pub fn sources_for(connections: u64, opens_per_s: f64, ephemeral_ports_per_address: u64) -> usize {
    let ports = connections as f64 * 1.1 + opens_per_s.max(0.0) * TIME_WAIT_S;
    let addresses = (ports / ephemeral_ports_per_address.max(1) as f64).ceil();
    (addresses as usize).clamp(1, SOURCES_MAX)
}

/// The loopback addresses to connect from: `count` of them from 127.0.0.10 on.
///
/// Empty when one is enough or when the subject is not on IPv4 loopback: other addresses are not ours to take, and
/// IPv6 has a single loopback address. The kernel chooses then.
pub fn loopback_sources(count: usize, to: IpAddr) -> Vec<IpAddr> {
    let is_v4_loopback = matches!(to, IpAddr::V4(v4) if v4.is_loopback());
    if count <= 1 || !is_v4_loopback {
        return Vec::new();
    }
    (SOURCE_FIRST..).take(count.min(SOURCES_MAX)).map(|bits| IpAddr::V4(Ipv4Addr::from(bits))).collect()
}

fn with_headroom(connections: u64) -> u64 {
    connections.saturating_add(connections.div_ceil(10))
}

/// SplitMix64 of seed and worker: neighbouring workers get seeds that have nothing in common.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
fn worker_seed(seed: u64, worker: u64) -> u64 {
    let mut z = seed.wrapping_add(worker.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
