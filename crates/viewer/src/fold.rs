//! The seconds of a trial as columns, and its distributions over the hold, entry by entry.
//!
//! Entries are consumed as they were committed and discarded, so an hour of many bots needs only the memory of its
//! columns. Hold and distributions are those of `measure::Sum`, by which a rung is judged; only the columns are built
//! here.
//! A percentile of a second with fewer than 100 samples beyond it is a gap.

use std::collections::{BTreeMap, BTreeSet};

use ladder::DisturbedAbove;
use measure::Sum;
use measure::ledger::ReceiverBooks;
use measure::{
    Distribution, Entry, Event, Flow, Interval, MachineMetric, Measure, ProcessMetric, Quantile, Reading,
    Sample, ServerCounter, TickSecond, Trial, TrialHead,
};

use crate::api::Series;

/// Distributions besides those of `Measure`.
pub(crate) const CLIENT_TICK_INTERVAL: &str = "client_tick_interval";
pub(crate) const TICK_BUSY: &str = "tick_busy";
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
    Errors "errors", NotSent "not_sent", ConnectsFailed "connects_failed",
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
#[derive(Debug)]
pub(crate) struct Fold {
    sum: Sum,
    rows: BTreeMap<u32, Row>,
    dirty: BTreeSet<u32>,
    has_server_ticks: bool,
    has_client_ticks: bool,
    /// CPU time of subject and worker at the last reading, ns and s, by the index of its column
    cpu: BTreeMap<usize, (u64, f64)>,
    allowed_cores: Option<f64>,
}

impl Fold {
    /// Of nothing yet. The first `cut_s` seconds of the hold are left out of every sum, as they were when it was judged.
    pub fn new(head: TrialHead, cut_s: u32) -> Self {
        Fold {
            sum: Sum::new(head, Vec::new(), cut_s),
            rows: BTreeMap::new(),
            dirty: BTreeSet::new(),
            has_server_ticks: false,
            has_client_ticks: false,
            cpu: BTreeMap::new(),
            allowed_cores: None,
        }
    }

    /// Takes all marks of the trial, before the entries they affect. Known ones are skipped.
    pub fn mark(&mut self, marks: Vec<Event>) {
        let known = self.trial().events.len();
        self.sum.mark(marks.into_iter().skip(known));
    }

    /// Takes one entry.
    pub fn take(&mut self, entry: Entry) {
        self.sum.take(&entry);
        match entry {
            Entry::Interval(interval) => self.interval(&interval),
            Entry::Ticks(second) if second.compared().is_some() => {}
            Entry::Ticks(second) => self.ticks(&second),
            Entry::Sample(sample) => self.sample(&sample),
            Entry::Event(_) | Entry::Books(_) => {}
        }
    }

    /// Its sums so far.
    pub fn trial(&self) -> &Trial {
        self.sum.so_far()
    }

    /// The receivers of a broadcast that waited longest.
    pub fn slowest(&self) -> Vec<ReceiverBooks> {
        let books = self.trial().books.as_ref();
        books.map_or(Vec::new(), |books| books.slowest_first().into_iter().take(SLOWEST).cloned().collect())
    }

    /// What makes one of its seconds disturbed.
    pub fn disturbed_above(&self) -> DisturbedAbove {
        DisturbedAbove::of(self.allowed_cores)
    }

    /// The row of a second, which is sent again.
    fn row(&mut self, index: u32) -> &mut Row {
        self.dirty.insert(index);
        self.rows.entry(index).or_insert_with(|| Row { values: vec![None; NAMES.len()], ..Row::default() })
    }

    fn interval(&mut self, interval: &Interval) {
        let mut flow = Flow::default();
        interval.messages().for_each(|part| flow.add(part));
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
        // Most seconds have none, and an unused column needs no memory.
        for (column, count) in [
            (Column::Errors, interval.errors.iter().sum()),
            (Column::NotSent, flow.not_sent),
            (Column::ConnectsFailed, interval.connections.failed.iter().sum::<u64>()),
        ] {
            if count > 0 {
                row.put(column, count as f64);
            }
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
            // Messages planned in the hold, as they are judged; for a second without any, whatever there was.
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
    }

    fn ticks(&mut self, second: &TickSecond) {
        self.has_server_ticks = true;
        let row = self.row(second.second());
        row.server_ticks.add(&second.counts);
        row.told_ns += second.to_ns.saturating_sub(second.from_ns);
        if let Some(frames) = ServerCounter::Frames.of(&second.counters) {
            *row.frames.get_or_insert(0) += frames;
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let column = match sample.what {
            Reading::Subject(ProcessMetric::CpuTime) => return self.cpu_time(Column::SubjectCpu, sample),
            Reading::Worker(ProcessMetric::CpuTime) => return self.cpu_time(Column::WorkerCpu, sample),
            Reading::Worker(ProcessMetric::AllowedCores) => {
                self.allowed_cores = Some(sample.value);
                return;
            }
            Reading::Subject(ProcessMetric::Rss) => Column::SubjectRss,
            Reading::Worker(ProcessMetric::Rss) => Column::WorkerRss,
            Reading::Machine(MachineMetric::StealShare) => Column::StealShare,
            Reading::Machine(MachineMetric::ThrottleEvents) => Column::ThrottleEvents,
            Reading::Machine(MachineMetric::OthersCores) => Column::OthersCores,
            Reading::Worker(ProcessMetric::WaitingShareMax) => Column::WorkerWaiting,
            Reading::Subject(ProcessMetric::WaitingShareMax) => Column::SubjectWaiting,
            Reading::Thread(_) => Column::SubjectThread,
            _ => return,
        };
        self.row(sample.second()).put(column, sample.value);
    }

    /// CPU time is a total: what was used since the reading before is drawn.
    fn cpu_time(&mut self, column: Column, sample: &Sample) {
        let before = self.cpu.insert(column as usize, (sample.at_ns, sample.value));
        let Some((at_ns, cpu_s)) = before.filter(|(at_ns, _)| *at_ns < sample.at_ns) else { return };
        let cores = (sample.value - cpu_s) / ((sample.at_ns - at_ns) as f64 / 1e9);
        // A restarted subject begins at zero again.
        if cores >= 0.0 {
            self.row(sample.second()).put(column, cores);
        }
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
        let trial = self.trial();
        for &measure in Measure::ALL {
            let bin_ns = if measure == Measure::TickInterval { BIN_NS } else { u64::MAX };
            named.insert(measure.name(), merged(trial.distribution(measure), width, bin_ns));
        }
        // The server's own tick report takes precedence over what clients see, as in a rung.
        let told = trial.ticks.as_ref();
        if let Some(ticks) = told.filter(|ticks| !ticks.interval.is_empty()) {
            let own = merged(&ticks.interval, width, BIN_NS);
            let clients = named.insert(Measure::TickInterval.name(), own);
            named.extend(clients.map(|clients| (CLIENT_TICK_INTERVAL, clients)));
        }
        let busy = told.and_then(|ticks| ticks.busy.as_ref());
        named.extend(busy.map(|busy| (TICK_BUSY, merged(busy, width, u64::MAX))));
        named.retain(|_, buckets| !buckets.is_empty());
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
