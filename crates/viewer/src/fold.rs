//! The seconds of a trial as columns, and its distributions over the hold, entry by entry.
//!
//! Entries are taken as they were committed and thrown away, so an hour of many bots needs the memory of its columns.
//! The rules are those of `measure::Trial`, by which a rung is judged: a distribution is summed over the messages planned
//! in the hold that happened from its (cut) begin on, a server's ticks over the entries that end in the hold.
//! A percentile of a second with fewer than 100 samples beyond it is a gap.

use std::collections::{BTreeMap, BTreeSet};

use measure::trial::kind;
use measure::{Books, Distribution, Entry, Event, Flow, Interval, Measure, Quantile, Sample, TickSecond};

use crate::shape::{HoldSpan, Series, Slow};

const SECOND_NS: u64 = 1_000_000_000;
const TICK_INTERVAL: &str = "tick_interval";
/// Tick intervals are classed and drawn in whole ms.
const BIN_NS: u64 = 1_000_000;
/// Receivers of a broadcast that are shown.
const SLOWEST: usize = 20;

macro_rules! columns {
    ($($variant:ident $name:literal),* $(,)?) => {
        /// A column of the series.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Column { $($variant),* }

        /// Their names, in the order of `Column`.
        pub(crate) const NAMES: &[&str] = &[$($name),*];
    };
}

columns! {
    Offered "offered", Sent "sent", Answered "answered", Failed "failed", Lost "lost", Late "late", Open "open",
    ResponseMean "response_mean_ns", ResponseP50 "response_p50_ns", ResponseP99 "response_p99_ns",
    ServiceP50 "service_p50_ns", ServiceP99 "service_p99_ns", SendLagP99 "send_lag_p99_ns",
    DeliveryMean "delivery_mean_ns", DeliveryP99 "delivery_p99_ns", TicksDue "ticks_due",
    TicksOnTime "ticks_on_time", TicksOver "ticks_over", TicksUnder "ticks_under", TicksMissed "ticks_missed",
    LateShare "late_share", Frames "frames", SubjectCpu "subject_cpu_cores", SubjectRss "subject_rss_bytes",
    WorkerCpu "worker_cpu_cores", WorkerRss "worker_rss_bytes", BusyShare "busy_share", StealShare "steal_share",
    ThrottleEvents "throttle_events", OthersCores "others_cores", WorkerWaiting "worker_waiting_share",
    SubjectWaiting "subject_waiting_share", SubjectThread "subject_thread_cores", Bytes "bytes",
}

/// One second.
#[derive(Clone, Debug, Default)]
struct Row {
    values: Vec<Option<f64>>,
    client_ticks: measure::TickCounts,
    server_ticks: measure::TickCounts,
    frames: Option<u64>,
    told_ns: u64,
}

impl Row {
    fn put(&mut self, column: Column, value: f64) {
        self.values.resize(NAMES.len(), None);
        if value.is_finite() {
            self.values[column as usize] = Some(value);
        }
    }
}

/// A trial, as far as its entries were taken.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    rows: BTreeMap<u32, Row>,
    dirty: BTreeSet<u32>,
    /// every mark, as it came
    pub events: Vec<Event>,
    /// the judged part, where it is known beforehand
    judged: Option<HoldSpan>,
    has_server_ticks: bool,
    has_client_ticks: bool,
    sums: Vec<Distribution>,
    tick_interval: Distribution,
    tick_busy: Distribution,
    /// cpu_s of subject and worker at the last reading
    cpu: BTreeMap<&'static str, (u64, f64)>,
    /// of a broadcast, the slowest first
    pub slowest: Vec<Slow>,
}

impl Fold {
    /// `judged` is the hold behind its warm-up cut; without it the hold is read off the marks as they come, uncut.
    pub fn new(judged: Option<HoldSpan>) -> Self {
        let sums = Measure::ALL.iter().map(|_| Distribution::new()).collect();
        Fold { judged, sums, ..Fold::default() }
    }

    /// Takes one entry.
    pub fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Interval(interval) => self.interval(&interval),
            Entry::Ticks(second) => self.ticks(&second),
            Entry::Sample(sample) => self.sample(&sample),
            Entry::Event(event) => self.events.push(event),
            Entry::Books(books) => self.slowest = slowest(&books),
        }
    }

    /// The hold: as it was judged, else from its mark to the mark of its end.
    fn hold(&self) -> Option<HoldSpan> {
        self.judged.or_else(|| {
            let at = |kind| self.events.iter().find(|event| event.kind == kind).map(|event| event.at_ns);
            let from_ns = at(kind::HOLD)?;
            Some(HoldSpan { from_ns, to_ns: at(kind::DRAIN).unwrap_or(u64::MAX) })
        })
    }

    /// The judged part; `None` while the hold goes on.
    pub fn hold_span(&self) -> Option<HoldSpan> {
        self.hold().filter(|hold| hold.to_ns < u64::MAX)
    }

    /// The row of a second, which is sent again.
    fn row(&mut self, index: u32) -> &mut Row {
        self.dirty.insert(index);
        self.rows.entry(index).or_insert_with(|| Row { values: vec![None; NAMES.len()], ..Row::default() })
    }

    fn interval(&mut self, interval: &Interval) {
        let mut flow = Flow::default();
        interval.flows.iter().flatten().for_each(|part| flow.add(part));
        self.has_client_ticks |= interval.ticks.due > 0;
        let row = self.row(interval.index);
        for (column, count) in [
            (Column::Offered, flow.offered),
            (Column::Sent, flow.sent),
            (Column::Answered, flow.answered),
            (Column::Failed, flow.failed),
            (Column::Lost, flow.lost),
            (Column::Late, flow.late),
            (Column::Open, interval.connections.open_end),
            (Column::Bytes, interval.bytes_sent + interval.bytes_received),
        ] {
            row.put(column, count as f64);
        }
        row.put(Column::BusyShare, interval.busy_share_max);
        row.client_ticks = interval.ticks;
        for (measure, mean, p50, p99) in [
            (
                Measure::Response,
                Some(Column::ResponseMean),
                Some(Column::ResponseP50),
                Some(Column::ResponseP99),
            ),
            (Measure::Service, None, Some(Column::ServiceP50), Some(Column::ServiceP99)),
            (Measure::SendLag, None, None, Some(Column::SendLagP99)),
            (Measure::Delivery, Some(Column::DeliveryMean), None, Some(Column::DeliveryP99)),
        ] {
            // Messages planned in the hold, as they are judged; of a second without any, what there was.
            let in_hold = !interval.distribution(measure, true).is_empty();
            let values = interval.distribution(measure, in_hold);
            if let (Some(column), Some(mean_ns)) = (mean, values.mean_ns()) {
                row.put(column, mean_ns);
            }
            for (column, q) in [(p50, 0.5), (p99, 0.99)] {
                if let (Some(column), Quantile::Ns(ns)) = (column, values.quantile(q, 0)) {
                    row.put(column, ns as f64);
                }
            }
        }
        let in_judged = self.hold().is_some_and(|hold| u64::from(interval.index) * SECOND_NS >= hold.from_ns);
        for measure in Measure::ALL {
            if measure == Measure::Handshake {
                [true, false]
                    .into_iter()
                    .for_each(|part| self.sums[measure as usize].add(interval.distribution(measure, part)));
            } else if in_judged {
                self.sums[measure as usize].add(interval.distribution(measure, true));
            }
        }
    }

    fn ticks(&mut self, second: &TickSecond) {
        let hold = self.hold();
        self.has_server_ticks = true;
        // Entries of less than a second, and those that lie across two, belong to the second of their middle.
        let index = ((second.from_ns + second.to_ns) / 2 / SECOND_NS) as u32;
        let row = self.row(index);
        row.server_ticks.add(&second.counts);
        row.told_ns += second.to_ns.saturating_sub(second.from_ns);
        if let Some((_, frames)) = second.counters.iter().find(|(name, _)| name == "frames") {
            *row.frames.get_or_insert(0) += frames;
        }
        if hold.is_some_and(|hold| second.to_ns > hold.from_ns && second.to_ns <= hold.to_ns) {
            self.tick_interval.add(&second.interval);
            if let Some(busy) = &second.busy {
                self.tick_busy.add(busy);
            }
        }
    }

    fn sample(&mut self, sample: &Sample) {
        // A reading at the end of a second speaks of that second.
        let index = (sample.at_ns.saturating_sub(SECOND_NS / 2) / SECOND_NS) as u32;
        let (column, value) = match (sample.who, &*sample.name) {
            ("subject" | "worker", "cpu_s") => {
                let before = self.cpu.insert(sample.who, (sample.at_ns, sample.value));
                let Some((at_ns, cpu_s)) = before.filter(|(at_ns, _)| *at_ns < sample.at_ns) else { return };
                let cores = (sample.value - cpu_s) / ((sample.at_ns - at_ns) as f64 / 1e9);
                let column = if sample.who == "subject" { Column::SubjectCpu } else { Column::WorkerCpu };
                // A subject that was restarted begins at nought again.
                if cores < 0.0 {
                    return;
                }
                (column, cores)
            }
            ("subject", "rss_bytes") => (Column::SubjectRss, sample.value),
            ("worker", "rss_bytes") => (Column::WorkerRss, sample.value),
            ("machine", "steal_share") => (Column::StealShare, sample.value),
            ("machine", "throttle_events") => (Column::ThrottleEvents, sample.value),
            ("machine", "others_cores") => (Column::OthersCores, sample.value),
            ("worker", "waiting_share_max") => (Column::WorkerWaiting, sample.value),
            ("subject", "waiting_share_max") => (Column::SubjectWaiting, sample.value),
            ("thread", _) => (Column::SubjectThread, sample.value),
            _ => return,
        };
        self.row(index).put(column, value);
    }

    /// The values of a second by column; what was not measured is left out.
    fn values(&self, row: &Row) -> Vec<Option<f64>> {
        let mut values = row.values.clone();
        let counts = if self.has_server_ticks { row.server_ticks } else { row.client_ticks };
        if (self.has_server_ticks || self.has_client_ticks) && counts.due > 0 {
            for (column, count) in [
                (Column::TicksDue, counts.due),
                (Column::TicksOnTime, counts.on_time),
                (Column::TicksOver, counts.over),
                (Column::TicksUnder, counts.under),
                (Column::TicksMissed, counts.missed),
            ] {
                values[column as usize] = Some(count as f64);
            }
            values[Column::LateShare as usize] = counts.late_share();
        }
        if let Some(frames) = row.frames.filter(|_| row.told_ns > 0) {
            values[Column::Frames as usize] = Some(frames as f64 * 1e9 / row.told_ns as f64);
        }
        values
    }

    /// The seconds that changed since the last call, ascending.
    pub fn changed(&mut self) -> Vec<(u32, Vec<(&'static str, f64)>)> {
        let dirty = std::mem::take(&mut self.dirty);
        let of = |index: u32| {
            let values = self.values(self.rows.get(&index)?);
            let named = NAMES.iter().zip(values).filter_map(|(&name, value)| Some((name, value?)));
            Some((index, named.collect()))
        };
        dirty.into_iter().filter_map(of).collect()
    }

    /// All seconds as columns; those without a single value are left out.
    pub fn series(&self) -> Series {
        if self.rows.is_empty() {
            return Series::default();
        }
        let mut columns: Vec<(&'static str, Vec<Option<f64>>)> =
            NAMES.iter().map(|&name| (name, Vec::with_capacity(self.rows.len()))).collect();
        for row in self.rows.values() {
            columns.iter_mut().zip(self.values(row)).for_each(|((_, column), value)| column.push(value));
        }
        columns.retain(|(_, column)| column.iter().any(Option::is_some));
        let t = self.rows.keys().map(|&index| Some(f64::from(index))).collect();
        columns.insert(0, ("t", t));
        Series { columns }
    }

    /// Buckets [highest ns, count] over the hold, by name; empty ones are left out.
    ///
    /// With a `width` above 1, neighbours within that ratio become one bucket under the highest of them. Tick intervals are
    /// told in whole ms, so no bucket of theirs reaches from one to the next.
    pub fn distributions(&self, width: f64) -> BTreeMap<&'static str, Vec<(u64, u64)>> {
        let mut named = BTreeMap::new();
        let ours = Measure::ALL.iter().map(|measure| (measure.name(), &self.sums[*measure as usize]));
        for (name, values) in ours.filter(|(_, values)| !values.is_empty()) {
            let bin_ns = if name == TICK_INTERVAL { BIN_NS } else { u64::MAX };
            named.insert(name, merged(values, width, bin_ns));
        }
        // The server's own word on its ticks goes before what clients see of them, as in a rung.
        let told = [(TICK_INTERVAL, &self.tick_interval, BIN_NS), ("tick_busy", &self.tick_busy, u64::MAX)];
        for (name, values, bin_ns) in told {
            if !values.is_empty()
                && let Some(clients) = named.insert(name, merged(values, width, bin_ns))
            {
                named.insert("client_tick_interval", clients);
            }
        }
        named
    }
}

/// Merges neighbours within the ratio `width` that round to the same multiple of `bin_ns`.
fn merged(values: &Distribution, width: f64, bin_ns: u64) -> Vec<(u64, u64)> {
    let mut buckets: Vec<(u64, u64)> = Vec::new();
    let mut begin = 0;
    let bin = |ns: u64| ns.saturating_add(bin_ns / 2) / bin_ns;
    for (ns, count) in values.buckets() {
        match buckets.last_mut() {
            Some(last) if ns as f64 <= begin as f64 * width && bin(ns) == bin(begin) => {
                *last = (ns, last.1 + count);
            }
            _ => {
                begin = ns;
                buckets.push((ns, count));
            }
        }
    }
    buckets
}

fn slowest(books: &Books) -> Vec<Slow> {
    let mut slow: Vec<_> = books.receivers.iter().filter(|receiver| !receiver.is_apart).collect();
    slow.sort_by(|one, other| {
        let mean = |of: &measure::ledger::ReceiverBooks| of.latency_mean_ns.unwrap_or(-1.0);
        mean(other).total_cmp(&mean(one)).then(one.receiver.cmp(&other.receiver))
    });
    slow.into_iter()
        .take(SLOWEST)
        .map(|receiver| Slow {
            receiver: receiver.receiver,
            latency_mean_ns: receiver.latency_mean_ns,
            latency_max_ns: receiver.latency_max_ns,
            lost: receiver.sum.lost,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_tick_intervals_stay_in_their_millisecond() {
        let mut values = Distribution::new();
        // 17.4 and 17.6 ms are within 3 % of each other, and the second is late.
        for ns in [17_100_000, 17_400_000, 17_600_000, 17_900_000] {
            values.record(ns);
        }
        let per_ms = |bin_ns| -> Vec<u64> {
            merged(&values, 1.03, bin_ns).iter().map(|(ns, _)| (ns + BIN_NS / 2) / BIN_NS).collect()
        };
        assert_eq!(per_ms(BIN_NS), [17, 18]);
        assert_eq!(per_ms(u64::MAX), [18, 18], "within the ratio of 17.1 ms, and one beyond it");
        assert_eq!(merged(&values, 1.03, BIN_NS).iter().map(|(_, count)| count).sum::<u64>(), 4);
    }
}
