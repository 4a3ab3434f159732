//! The totals of a run at one moment, for programs that follow it while it goes on.
//!
//! Counters are sums over all rungs and warm-ups so far, without calibrations, and never decrease; gauges describe the
//! current trial.
//! Only committed figures appear, and a new measure or reading appears without a change here.
//! `families` names them; `open_metrics` and `otlp` are the two output formats.

mod families;

pub use families::{Family, Kind, Point, Value};

use std::collections::BTreeMap;

use measure::trial::kind;
use measure::{
    Distribution, Entry, Flow, Interval, Measure, OverTime, Phase, Purpose, Reading, Sample, TickCounts,
    TrialHead,
};

use crate::error::StoreError;
use crate::follow::{PIECE, Place};
use crate::run::RunId;
use crate::store::Store;

/// Names of one kind that are distinguished; the others are counted together.
const NAMES_MAX: usize = 200;
const OTHER: &str = "other";
/// Upper bounds of the buckets of durations, ns: anything above the last is below infinity.
const BOUNDS_NS: [u64; 17] = [
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Follows a run and tells its sums.
#[derive(Debug)]
pub struct RunSums {
    run: RunId,
    /// of the trial that is read
    seq: u32,
    place: Place,
    /// verdicts so far, by name
    verdicts: BTreeMap<String, u64>,
    sums: Sums,
    now: Now,
}

/// Over all trials; they only grow.
#[derive(Debug, Default)]
struct Sums {
    messages: BTreeMap<String, BTreeMap<&'static str, Flow>>,
    durations: BTreeMap<(&'static str, bool), Buckets>,
    errors: BTreeMap<String, u64>,
    connect_failures: BTreeMap<String, u64>,
    counters: BTreeMap<String, u64>,
    opened: u64,
    closed: u64,
    bytes_sent: u64,
    bytes_received: u64,
    server_ticks: TickCounts,
    client_ticks: TickCounts,
    /// readings that are totals, by whom and what: what was added so far, and the last reading
    totals: BTreeMap<(&'static str, &'static str), (f64, f64)>,
}

/// How things stand.
#[derive(Debug, Default)]
struct Now {
    trial: Option<TrialHead>,
    phase: Option<Phase>,
    asked: u64,
    open: u64,
    waiting: BTreeMap<String, u64>,
    readings: BTreeMap<(&'static str, &'static str), f64>,
}

/// How many durations are below each of `BOUNDS_NS`, consecutively.
#[derive(Debug, Default)]
struct Buckets {
    below: [u64; BOUNDS_NS.len()],
    count: u64,
    sum_s: f64,
}

impl Buckets {
    fn add(&mut self, values: &Distribution) {
        for (ns, count) in values.buckets() {
            let from = BOUNDS_NS.partition_point(|bound| *bound < ns);
            self.below[from..].iter_mut().for_each(|below| *below = below.saturating_add(count));
            self.count = self.count.saturating_add(count);
        }
        self.sum_s += values.mean_ns().unwrap_or(0.0) * values.count() as f64 / 1e9;
    }
}

impl RunSums {
    /// From the beginning of a run.
    pub fn new(run: RunId) -> Self {
        RunSums {
            run,
            seq: 0,
            place: Place::default(),
            verdicts: BTreeMap::new(),
            sums: Sums::default(),
            now: Now::default(),
        }
    }

    /// Adds what was committed since. Errors: `UnknownRun`, `Damaged`; what came before stays counted.
    pub fn read_on(&mut self, store: &Store) -> Result<(), StoreError> {
        let verdicts = store.all_verdicts(&self.run)?;
        self.verdicts.clear();
        for verdict in verdicts.values().filter_map(|of_trial| of_trial.last()) {
            *self.verdicts.entry(verdict.verdict.clone()).or_default() += 1;
        }
        let marks = store.trial_marks(&self.run)?;
        for (at, mark) in marks.iter().enumerate() {
            if mark.head.seq < self.seq {
                continue;
            }
            if mark.head.seq > self.seq || self.now.trial.is_none() {
                (self.seq, self.place) = (mark.head.seq, Place::default());
                let readings = std::mem::take(&mut self.now.readings);
                self.now = Now { trial: Some(mark.head.clone()), readings, ..Now::default() };
            }
            let is_counted = matches!(mark.head.purpose, Purpose::Rung | Purpose::WarmUp);
            loop {
                let entries = store.entries_behind(&self.run, &mark.head, &mut self.place, PIECE)?;
                if entries.is_empty() {
                    break;
                }
                entries.iter().filter(|_| is_counted).for_each(|entry| self.take(entry));
            }
            let is_over = mark.is_ended() || at + 1 < marks.len();
            if !is_counted || is_over {
                self.now.phase = None;
            }
        }
        Ok(())
    }

    fn take(&mut self, entry: &Entry) {
        match entry {
            Entry::Interval(interval) => self.take_interval(interval),
            Entry::Ticks(second) if second.compared().is_some() => {}
            Entry::Ticks(second) => self.sums.server_ticks.add(&second.counts),
            Entry::Sample(sample) => self.take_reading(sample),
            Entry::Event(event) => {
                self.now.phase = match event.kind.as_str() {
                    kind::SETTLE => Some(Phase::Settle),
                    kind::HOLD => Some(Phase::Hold),
                    kind::DRAIN => Some(Phase::Drain),
                    _ => return,
                };
            }
            Entry::Books(_) => {}
        }
    }

    fn take_interval(&mut self, interval: &Interval) {
        let (sums, now, names) = (&mut self.sums, &mut self.now, &interval.metric_names);
        now.phase.get_or_insert(Phase::Ramp);
        now.waiting.clear();
        for (operation, by_phase) in names.ops.iter().zip(&interval.flows) {
            let mut waiting = 0;
            for (phase, flow) in Phase::ALL.iter().zip(by_phase).filter(|(_, flow)| !flow.is_empty()) {
                let by_phase = sums.messages.entry(bounded(&sums.messages, operation)).or_default();
                by_phase.entry(phase.name()).or_default().add(flow);
                waiting = u64::saturating_add(waiting, flow.open_after);
            }
            let sum = now.waiting.entry(bounded(&now.waiting, operation)).or_default();
            *sum = sum.saturating_add(waiting);
        }
        for &measure in Measure::ALL {
            for in_hold in [true, false] {
                let values = interval.distribution(measure, in_hold);
                if !values.is_empty() {
                    sums.durations.entry((measure.name(), in_hold)).or_default().add(values);
                }
            }
        }
        add(&mut sums.errors, &names.errors, &interval.errors);
        add(&mut sums.counters, &names.counters, &interval.counters);
        let connections = &interval.connections;
        add(&mut sums.connect_failures, &names.connect_failures, &connections.failed);
        for (sum, more) in [
            (&mut sums.opened, connections.opened),
            (&mut sums.closed, connections.closed),
            (&mut sums.bytes_sent, interval.bytes_sent),
            (&mut sums.bytes_received, interval.bytes_received),
        ] {
            *sum = sum.saturating_add(more);
        }
        sums.client_ticks.add(&interval.ticks);
        now.asked = now.trial.as_ref().map_or(0, |trial| trial.connections);
        now.open = connections.open_end;
    }

    fn take_reading(&mut self, sample: &Sample) {
        let Some((who, what, over_time)) = known(&sample.what) else { return };
        if over_time == OverTime::Total {
            if !(sample.value.is_finite() && sample.value >= 0.0) {
                return;
            }
            let (sum, last) = self.sums.totals.entry((who, what)).or_default();
            // A smaller value is from a process that was restarted.
            *sum += if sample.value >= *last { sample.value - *last } else { sample.value };
            *last = sample.value;
        } else {
            self.now.readings.insert((who, what), sample.value);
        }
    }
}

/// For readings with fixed names: programs and threads have arbitrary names that change all the time.
fn known(what: &Reading) -> Option<(&'static str, &'static str, OverTime)> {
    let (who, _) = what.texts();
    let who =
        ["subject", "worker", "machine", "threads", "services"].into_iter().find(|known| *known == who)?;
    match what {
        Reading::Subject(name) | Reading::Worker(name) => Some((who, name.name(), name.over_time())),
        Reading::Machine(name) => Some((who, name.name(), name.over_time())),
        Reading::Threads(state) => Some((who, state.name(), state.over_time())),
        Reading::Services(name) => Some((who, name.name(), name.over_time())),
        Reading::Program(_) | Reading::Thread(_) | Reading::ThreadsNamed(_) | Reading::Other { .. } => None,
    }
}

/// Adds counts by their names. A store may come from elsewhere: what it says beyond all measure stays at the end of the numbers, and
/// names beyond `NAMES_MAX` are one.
fn add(sums: &mut BTreeMap<String, u64>, names: &[String], counts: &[u64]) {
    for (name, count) in names.iter().zip(counts).filter(|(_, count)| **count > 0) {
        let sum = sums.entry(bounded(sums, name)).or_default();
        *sum = sum.saturating_add(*count);
    }
}

/// The name under which something is counted.
fn bounded<T>(sums: &BTreeMap<String, T>, name: &str) -> String {
    if sums.len() < NAMES_MAX || sums.contains_key(name) { name.to_owned() } else { OTHER.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_names_there_are_each_count_enters_once_and_few_are_told_apart() {
        let names: Vec<String> = (0..1_000).map(|at| format!("cause {at}")).collect();
        let mut sums = BTreeMap::new();
        add(&mut sums, &names, &vec![1; names.len()]);
        let first = sums.clone();
        assert_eq!(sums.len(), NAMES_MAX + 1);
        assert_eq!((sums["cause 0"], sums[OTHER]), (1, 800));
        // Later ones stay grouped, so no counter ever decreases.
        add(&mut sums, &names[500..], &vec![1; 500]);
        assert_eq!((sums.len(), sums[OTHER]), (NAMES_MAX + 1, 1_300));
        assert!(first.iter().all(|(name, count)| sums[name] >= *count));
    }

    #[test]
    fn a_long_label_is_masked_whole_and_cut_then() {
        let mut sums = RunSums::new(RunId::read("run-1").expect("an id"));
        let secret = format!("{}planted-secret{}", "x".repeat(190), "é".repeat(1_000));
        add(&mut sums.sums.errors, &[secret], &[3]);
        let families = sums.families(&|text| text.replace("planted-secret", "•"));
        let errors = families.iter().find(|family| family.name == "stepladder_errors").expect("errors");
        let (label, told) = &errors.points[0].labels[0];
        assert_eq!((*label, told.chars().count()), ("cause", 201));
        assert!(told.contains('•') && !told.contains("plant"), "{told}");
        assert_eq!(errors.points[0].value, Value::Count(3));
    }
}
