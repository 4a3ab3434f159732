//! An interval: one second of measurements, of one worker or merged. A monoid.
//!
//! Workers fill it, the collector adds the workers' seconds, the store keeps it, and a trial is the sum of its
//! intervals.
//! It is reused where possible; recording into it allocates only for a duration longer than all before.
//! A message counts in the interval in which it *happened*; its phase is the one in which it was *planned*.
//! Units: `_ns`; counts are numbers of messages, connections or ticks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::{EnumMessage, IntoStaticStr, VariantArray};

use crate::distribution::Distribution;
use crate::flow::{Flow, Imbalance, Phase};
use crate::names::{MetricNames, Role};
use crate::ticks::TickCounts;

/// What is measured as a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, VariantArray, IntoStaticStr, EnumMessage)]
#[repr(usize)]
#[strum(serialize_all = "snake_case")]
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
    /// all connections silent at once although several answers were owed
    Stall,
}

impl Measure {
    /// All measures in the order of their indices.
    pub const ALL: &[Measure] = <Measure as VariantArray>::VARIANTS;

    /// Its name in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What it is: the words above it.
    pub fn about(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }

    /// Whether it counts outside the hold too: connections are opened before it.
    pub fn is_of_whole_trial(self) -> bool {
        matches!(self, Measure::Handshake | Measure::Tls)
    }

    /// The measure of that name.
    pub fn named(name: &str) -> Option<Measure> {
        Measure::ALL.iter().copied().find(|measure| measure.name() == name)
    }
}

/// Connections in one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
///
/// Its encoding leaves out what its reader knows (`names`), and what becomes events (`samples`, `marks`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// the names behind the indices below
    #[serde(skip)]
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
    #[serde(skip)]
    pub samples: Vec<(usize, String)>,
    /// further marks that the bots set, as kind and text; they become events too
    #[serde(skip)]
    pub marks: Vec<(&'static str, String)>,
    /// of messages planned in the hold
    hold: Vec<Distribution>,
    /// of all others
    other: Vec<Distribution>,
    /// response times of messages planned in the hold, by operation, where they are kept apart
    of_ops: Vec<Distribution>,
    /// what the bots recorded in turns planned in the hold, by `MetricNames::values`, in thousandths
    values: Vec<Distribution>,
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
            marks: Vec::new(),
            hold: Measure::ALL.iter().map(|_| Distribution::new()).collect(),
            other: Measure::ALL.iter().map(|_| Distribution::new()).collect(),
            of_ops: (0..metric_names.timed_ops).map(|_| Distribution::new()).collect(),
            values: metric_names.values.iter().map(|_| Distribution::new()).collect(),
        }
    }

    /// A second that was read, with the names that its reader knows. `None`: it has other counts than these names.
    pub fn of_names(mut self, names: &Arc<MetricNames>) -> Option<Interval> {
        let measures = Measure::ALL.len();
        let fits = self.flows.len() == names.ops.len()
            && self.errors.len() == names.errors.len()
            && self.counters.len() == names.counters.len()
            && self.connections.failed.len() == names.connect_failures.len()
            && (self.hold.len(), self.other.len()) == (measures, measures)
            && self.of_ops.len() == names.timed_ops
            && self.values.len() == names.values.len();
        self.metric_names = names.clone();
        if fits { Some(self) } else { None }
    }

    /// Response times of one operation in the hold; `None` where they are not kept apart.
    pub fn of_op(&self, op: usize) -> Option<&Distribution> {
        self.of_ops.get(op)
    }

    /// The same, to add to.
    #[inline]
    pub fn of_op_mut(&mut self, op: usize) -> Option<&mut Distribution> {
        self.of_ops.get_mut(op)
    }

    /// What the bots recorded in turns planned in the hold, in thousandths.
    pub fn value(&self, value: usize) -> &Distribution {
        &self.values[value]
    }

    /// The same, to add to.
    pub fn value_mut(&mut self, value: usize) -> &mut Distribution {
        &mut self.values[value]
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

    /// The same second with what was planned after the hold in place of what was planned in it, and the reverse.
    pub(crate) fn planned_after_hold(&self) -> Interval {
        let mut turned = self.clone();
        for phases in &mut turned.flows {
            phases.swap(Phase::Hold as usize, Phase::Drain as usize);
        }
        std::mem::swap(&mut turned.hold, &mut turned.other);
        turned
    }

    /// Messages of every operation, by the phase they were planned in: all but the lives of bots, which consist of messages.
    pub fn messages(&self) -> impl Iterator<Item = &Flow> {
        let session = self.metric_names.op_index(Role::Session);
        let all = self.flows.iter().enumerate();
        all.filter(move |(op, _)| Some(*op) != session).flat_map(|(_, phases)| phases)
    }

    /// What the bots counted in this role; `None` where they count no such thing.
    pub fn counted(&self, role: Role) -> Option<u64> {
        self.metric_names.counters(role).next().map(|counter| self.counters[counter])
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
        self.marks.extend(other.marks.iter().cloned());
        self.hold.iter_mut().zip(&other.hold).for_each(|(mine, theirs)| mine.add(theirs));
        self.other.iter_mut().zip(&other.other).for_each(|(mine, theirs)| mine.add(theirs));
        self.of_ops.iter_mut().zip(&other.of_ops).for_each(|(mine, theirs)| mine.add(theirs));
        self.values.iter_mut().zip(&other.values).for_each(|(mine, theirs)| mine.add(theirs));
        self.balance()
    }

    /// Adds the second that follows: what was open in between cancels out. Errors: as `add`.
    pub fn append(&mut self, next: &Interval) -> Result<(), Imbalance> {
        self.add(next)?;
        for (flow, last) in self.flows.iter_mut().flatten().zip(next.flows.iter().flatten()) {
            flow.open_before -= last.open_before;
            flow.open_after = last.open_after;
        }
        Ok(())
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
        self.marks.clear();
        self.hold.iter_mut().for_each(Distribution::clear);
        self.other.iter_mut().for_each(Distribution::clear);
        self.of_ops.iter_mut().for_each(Distribution::clear);
        self.values.iter_mut().for_each(Distribution::clear);
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
            .with_timed_ops(1)
            .with_values(&["damage".to_owned()])
    }

    fn second(sent: u64, lag_ns: u64) -> Interval {
        let mut interval = Interval::new(&names());
        interval.workers = 1;
        *interval.flow_mut(0, Phase::Hold) = Flow { offered: sent, sent, told: sent, ..Flow::default() };
        interval.record(Measure::SendLag, Phase::Hold, lag_ns);
        interval.of_op_mut(0).unwrap().record(lag_ns);
        interval.value_mut(0).record_value(0);
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
        assert_eq!(merge([&a, &b, &c]).of_op(0).unwrap().count(), 3);
        assert_eq!(merge([&a, &b, &c]).value(0).value_summary().unwrap().max, Some(0.0));
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
