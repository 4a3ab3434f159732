//! An interval: one second of measurements, of one worker or merged. A monoid.
//!
//! Workers fill it, the collector adds the workers' seconds, the store keeps it, a trial is the sum of its intervals.
//! It is reused where it can be; recording into it allocates only for a duration longer than all before.
//! A message counts in the interval where it *happened*; its phase is the one in which it was *planned*.
//! Units: `_ns`; counts are numbers of messages, connections or ticks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::flow::{Flow, Imbalance, Phase};
use crate::ticks::TickCounts;

/// A counter that the engine keeps where the metric names have it: connections open, × ms of the second, so that a second's
/// mean is known besides its worst moment.
pub const OPEN_TIME: &str = "open_connection_ms";

/// Counters of an audit: facts that the bots read back after the hold, and those of them that were wrong.
pub const AUDIT_CHECKED: &str = "audit_checked";
/// See `AUDIT_CHECKED`.
pub const AUDIT_WRONG: &str = "audit_wrong";

/// Counters of a server that was told to end under load: requests that were under way then, and those of them that were
/// never answered or were refused; requests sent after that, which may be refused, and those of them that were.
pub const SHUTDOWN: [&str; 4] =
    ["shutdown_under_way", "shutdown_dropped", "shutdown_later", "shutdown_later_refused"];

/// Counters of cheaters: changes that must be refused, those that were, and those that were accepted.
pub const CHEATS: [&str; 3] = ["cheats_sent", "cheats_refused", "cheats_accepted"];

/// What an error says about the server, as far as it matters to a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// the server's reply was not right
    WrongReply,
    /// something took longer than the bot waits, which a disturbed machine can cause too
    Timeout,
    /// the server or the network ended a connection that stood
    BrokenConnection,
    /// the server paired clients with connections of an earlier time
    Unpaired,
    /// this machine's doing and never the server's
    Generator,
}

/// The names behind the indices of an interval, fixed for one kind of bots and stored with each trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricNames {
    /// operations: index into `Interval::flows`
    pub ops: Vec<String>,
    /// what can go wrong after a connection stands: index into `Interval::errors`
    pub errors: Vec<String>,
    /// what else the bots count: index into `Interval::counters`
    pub counters: Vec<String>,
    /// why a connection did not open: index into `Connections::failed`
    pub connect_failures: Vec<String>,
    /// of errors and failed connects, by name; most are of no kind
    #[serde(default)]
    pub kinds: BTreeMap<String, ErrorKind>,
}

impl MetricNames {
    /// Those names, none of any kind.
    pub fn new(ops: &[&str], errors: &[&str], counters: &[&str], connect_failures: &[&str]) -> Arc<Self> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Arc::new(MetricNames {
            ops: owned(ops),
            errors: owned(errors),
            counters: owned(counters),
            connect_failures: owned(connect_failures),
            kinds: BTreeMap::new(),
        })
    }

    /// The same names, some of them of a kind.
    pub fn with_kinds(self: Arc<Self>, kinds: &[(&str, ErrorKind)]) -> Arc<Self> {
        let mut names = Arc::unwrap_or_clone(self);
        names.kinds.extend(kinds.iter().map(|&(name, kind)| (name.to_owned(), kind)));
        Arc::new(names)
    }

    /// The kind of an error or of a failed connect.
    pub fn kind_of(&self, cause: &str) -> Option<ErrorKind> {
        self.kinds.get(cause).copied()
    }
}

/// What is measured as a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Measure {
    /// answered − planned: what a user feels
    Response,
    /// answered − sent
    Service,
    /// sent − planned: the generator's own lateness
    SendLag,
    /// read − readable: the generator's own slowness in listening
    ReceiveLag,
    /// from the first packet to the connection being usable
    Handshake,
    /// between two snapshots as a client sees them
    TickInterval,
    /// from a server's stamp to the client that reads it (one machine, one clock)
    TickAge,
    /// from the planned send of a broadcast to its receipt
    Delivery,
    /// from the send of a request to the first byte of its answer
    FirstByte,
    /// the part of a handshake that TLS took
    Tls,
    /// planned and unanswered at the stop: they took at least so long
    Unanswered,
}

impl Measure {
    /// All measures in the order of their indices.
    pub const ALL: [Measure; 11] = [
        Measure::Response,
        Measure::Service,
        Measure::SendLag,
        Measure::ReceiveLag,
        Measure::Handshake,
        Measure::TickInterval,
        Measure::TickAge,
        Measure::Delivery,
        Measure::FirstByte,
        Measure::Tls,
        Measure::Unanswered,
    ];

    /// Its name in the store.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Response => "response",
            Measure::Service => "service",
            Measure::SendLag => "send_lag",
            Measure::ReceiveLag => "receive_lag",
            Measure::Handshake => "handshake",
            Measure::TickInterval => "tick_interval",
            Measure::TickAge => "tick_age",
            Measure::Delivery => "delivery",
            Measure::FirstByte => "first_byte",
            Measure::Tls => "tls",
            Measure::Unanswered => "unanswered",
        }
    }

    /// The measure of that name.
    pub fn named(name: &str) -> Option<Measure> {
        Measure::ALL.into_iter().find(|measure| measure.name() == name)
    }
}

/// Connections in one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// attempts begun
    pub asked: u64,
    /// attempts that succeeded
    pub opened: u64,
    /// open ones that ended, for whatever reason
    pub closed: u64,
    /// attempts that failed, by `MetricNames::connect_failures`
    pub failed: Vec<u64>,
    /// open at the worst moment of the interval; added over workers it is a lower bound of the true minimum
    pub open_min: u64,
    /// open when the interval ended
    pub open_end: u64,
}

/// One second of measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// the names behind the indices below
    pub metric_names: Arc<MetricNames>,
    /// seconds since the start of the trial
    pub index: u32,
    /// how many workers' seconds are in it
    pub workers: u32,
    /// messages by operation and by the phase they were planned in
    pub flows: Vec<[Flow; Phase::COUNT]>,
    /// errors by `MetricNames::errors`
    pub errors: Vec<u64>,
    /// what the bots count, by `MetricNames::counters`
    pub counters: Vec<u64>,
    /// connections
    pub connections: Connections,
    /// ticks as the clients see them
    pub ticks: TickCounts,
    /// payload and protocol bytes written to sockets
    pub bytes_sent: u64,
    /// bytes read from sockets
    pub bytes_received: u64,
    /// time the workers did not sleep, ns, added up
    pub busy_ns: u64,
    /// the busiest worker's share of the interval, in [0, 1]
    pub busy_share_max: f64,
    /// the first few errors of each cause as they were met: index into `MetricNames::errors`, and words. They become events
    /// of the trial and are no part of a stored second
    pub samples: Vec<(usize, String)>,
    /// of messages planned in the hold
    hold: Vec<Distribution>,
    /// of all others
    other: Vec<Distribution>,
}

impl Interval {
    /// An empty second with room for everything that `metric_names` names.
    pub fn new(metric_names: &Arc<MetricNames>) -> Self {
        Interval {
            metric_names: metric_names.clone(),
            index: 0,
            workers: 0,
            flows: vec![[Flow::default(); Phase::COUNT]; metric_names.ops.len()],
            errors: vec![0; metric_names.errors.len()],
            counters: vec![0; metric_names.counters.len()],
            connections: Connections {
                failed: vec![0; metric_names.connect_failures.len()],
                ..Connections::default()
            },
            ticks: TickCounts::default(),
            bytes_sent: 0,
            bytes_received: 0,
            busy_ns: 0,
            busy_share_max: 0.0,
            samples: Vec::new(),
            hold: Measure::ALL.iter().map(|_| Distribution::new()).collect(),
            other: Measure::ALL.iter().map(|_| Distribution::new()).collect(),
        }
    }

    /// Records one duration of a message that was planned in `phase`.
    #[inline]
    pub fn record(&mut self, measure: Measure, phase: Phase, ns: u64) {
        self.distribution_mut(measure, phase == Phase::Hold).record(ns);
    }

    /// The distribution of messages planned in the hold (`true`) or outside it.
    pub fn distribution(&self, measure: Measure, in_hold: bool) -> &Distribution {
        if in_hold { &self.hold[measure as usize] } else { &self.other[measure as usize] }
    }

    /// The same, to add to.
    #[inline]
    pub fn distribution_mut(&mut self, measure: Measure, in_hold: bool) -> &mut Distribution {
        if in_hold { &mut self.hold[measure as usize] } else { &mut self.other[measure as usize] }
    }

    /// Both at once: of messages planned in the hold, and of all others.
    pub fn distributions_mut(&mut self, measure: Measure) -> (&mut Distribution, &mut Distribution) {
        (&mut self.hold[measure as usize], &mut self.other[measure as usize])
    }

    /// The flow of one operation and phase.
    #[inline]
    pub fn flow_mut(&mut self, op: usize, phase: Phase) -> &mut Flow {
        &mut self.flows[op][phase as usize]
    }

    /// Adds another worker's part of the same second. Errors: `Imbalance` when either page does not add up.
    pub fn add(&mut self, other: &Interval) -> Result<(), Imbalance> {
        self.balance()?;
        other.balance()?;
        self.workers += other.workers;
        for (mine, theirs) in self.flows.iter_mut().zip(&other.flows) {
            mine.iter_mut().zip(theirs).for_each(|(flow, more)| flow.add(more));
        }
        add_counts(&mut self.errors, &other.errors);
        add_counts(&mut self.counters, &other.counters);
        self.connections.asked += other.connections.asked;
        self.connections.opened += other.connections.opened;
        self.connections.closed += other.connections.closed;
        add_counts(&mut self.connections.failed, &other.connections.failed);
        self.connections.open_min += other.connections.open_min;
        self.connections.open_end += other.connections.open_end;
        self.ticks.add(&other.ticks);
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.busy_ns += other.busy_ns;
        self.busy_share_max = self.busy_share_max.max(other.busy_share_max);
        self.samples.extend(other.samples.iter().cloned());
        self.hold.iter_mut().zip(&other.hold).for_each(|(mine, theirs)| mine.add(theirs));
        self.other.iter_mut().zip(&other.other).for_each(|(mine, theirs)| mine.add(theirs));
        self.balance()
    }

    /// Checks every page. Errors: `Imbalance`.
    pub fn balance(&self) -> Result<(), Imbalance> {
        self.flows.iter().flatten().try_for_each(Flow::balance)
    }

    /// Makes it the empty second `index` again, keeping its memory.
    pub fn reset(&mut self, index: u32) {
        self.index = index;
        self.workers = 0;
        self.flows.iter_mut().for_each(|phases| *phases = [Flow::default(); Phase::COUNT]);
        self.errors.fill(0);
        self.counters.fill(0);
        self.connections.failed.fill(0);
        let failed = std::mem::take(&mut self.connections.failed);
        self.connections = Connections { failed, ..Connections::default() };
        self.ticks = TickCounts::default();
        (self.bytes_sent, self.bytes_received) = (0, 0);
        (self.busy_ns, self.busy_share_max) = (0, 0.0);
        self.samples.clear();
        self.hold.iter_mut().for_each(Distribution::clear);
        self.other.iter_mut().for_each(Distribution::clear);
    }
}

fn add_counts(mine: &mut [u64], theirs: &[u64]) {
    debug_assert_eq!(mine.len(), theirs.len(), "both follow the same metric names");
    mine.iter_mut().zip(theirs).for_each(|(count, more)| *count += more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Arc<MetricNames> {
        MetricNames::new(&["shot"], &["reset"], &["games"], &["refused"])
    }

    fn second(sent: u64, lag_ns: u64) -> Interval {
        let mut interval = Interval::new(&names());
        interval.workers = 1;
        *interval.flow_mut(0, Phase::Hold) = Flow { offered: sent, sent, told: sent, ..Flow::default() };
        interval.record(Measure::SendLag, Phase::Hold, lag_ns);
        interval.connections.open_min = sent;
        interval
    }

    #[test]
    fn merging_workers_in_any_order_gives_the_same_second() {
        let (a, b, c) = (second(1, 10), second(2, 20), second(3, 30));
        let merge = |parts: [&Interval; 3]| {
            let mut sum = Interval::new(&names());
            parts.into_iter().for_each(|part| sum.add(part).unwrap());
            sum
        };
        assert_eq!(merge([&a, &b, &c]), merge([&c, &a, &b]));
        assert_eq!(merge([&a, &b, &c]).flows[0][Phase::Hold as usize].told, 6);
        assert_eq!(merge([&a, &b, &c]).connections.open_min, 6);
    }

    #[test]
    fn a_page_that_does_not_add_up_is_refused_at_the_join() {
        let mut bad = second(1, 10);
        bad.flow_mut(0, Phase::Hold).told = 2;
        assert!(Interval::new(&names()).add(&bad).is_err());
    }

    #[test]
    fn a_reset_second_is_empty() {
        let mut used = second(5, 50);
        used.errors[0] = 3;
        used.reset(7);
        let mut fresh = Interval::new(&names());
        fresh.index = 7;
        assert_eq!(used, fresh);
    }
}
