//! The sums of a run at one moment as OpenMetrics text, for programs that ask again and again while it goes on.
//!
//! Counters are sums over all rungs and warm-ups so far, without calibrations, and never decrease; gauges describe the current trial.
//! Metric names are made from the names in the store, so a new measure or reading appears without a change here. Only committed
//! figures appear.
//! Units: seconds and bytes, as the format's conventions ask; docs/method/metrics.md lists the names.
//! Source: OpenMetrics 1.0.0, <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
//! Not here: masks, connections (`stepladder`, `viewer`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use measure::trial::kind;
use measure::{
    Distribution, Entry, Flow, Interval, Measure, OfMachine, OfProcess, OverTime, Phase, Purpose, Reading,
    Sample, TickCounts, TrialHead,
};

use crate::error::StoreError;
use crate::follow::Place;
use crate::run::RunId;
use crate::store::Store;

/// Entries that are read at once.
const PIECE: u32 = 128;
/// Upper bounds of the buckets of durations, ns: what is above the last lies below infinity.
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
pub struct OpenMetrics {
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
    messages: BTreeMap<(String, &'static str), Flow>,
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

/// How many durations lie below each of `BOUNDS_NS`, behind each other.
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

impl OpenMetrics {
    /// From the beginning of a run.
    pub fn new(run: RunId) -> Self {
        OpenMetrics {
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
        for (operation, by_phase) in names.ops.iter().zip(&interval.flows) {
            let mut waiting = 0;
            for (phase, flow) in Phase::ALL.iter().zip(by_phase).filter(|(_, flow)| !flow.is_empty()) {
                sums.messages.entry((operation.clone(), phase.name())).or_default().add(flow);
                waiting = u64::saturating_add(waiting, flow.open_after);
            }
            now.waiting.insert(operation.clone(), waiting);
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
            // One that is smaller is of a process that was started anew.
            *sum += if sample.value >= *last { sample.value - *last } else { sample.value };
            *last = sample.value;
        } else {
            self.now.readings.insert((who, what), sample.value);
        }
    }

    /// The text, ended by `# EOF`. Names of operations and causes stand in it as label values, escaped. `mask` takes secrets out of
    /// them before: in the finished text it could break the format.
    pub fn text(&self, mask: &dyn Fn(&str) -> String) -> String {
        let (mut out, sums, now) = (Text { text: String::new(), mask }, &self.sums, &self.now);
        out.family("stepladder_run", "info", "", "The run that these figures belong to.");
        out.sample(
            "stepladder_run_info",
            &[("run", &*mask(self.run.as_str())), ("version", env!("CARGO_PKG_VERSION"))],
            1.0,
        );
        if let Some(trial) = &now.trial {
            out.family("stepladder_trial", "gauge", "", "Number of the current trial within the run.");
            out.sample("stepladder_trial", &[("purpose", &trial.purpose.to_string())], f64::from(trial.seq));
            out.family("stepladder_load", "gauge", "", "The load that it holds, in the unit of the climb.");
            let cell: Vec<String> =
                trial.cell.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
            let labels = [("unit", &*trial.load_unit.to_string()), ("cell", &*mask(&cell.join(" ")))];
            out.sample("stepladder_load", &labels, trial.load);
        }
        out.family(
            "stepladder_phase",
            "stateset",
            "",
            "The phase of the current trial; none between two trials.",
        );
        for phase in Phase::ALL {
            let labels = [("stepladder_phase", phase.name())];
            out.sample("stepladder_phase", &labels, f64::from(u8::from(now.phase == Some(*phase))));
        }
        out.family("stepladder_rungs", "counter", "", "Rungs that were judged, by verdict.");
        out.counts("stepladder_rungs", "verdict", &self.verdicts);
        out.family("stepladder_connections_asked", "gauge", "", "Connections that should be open.");
        out.sample("stepladder_connections_asked", &[], now.asked as f64);
        out.family("stepladder_connections_open", "gauge", "", "Connections that are open.");
        out.sample("stepladder_connections_open", &[], now.open as f64);
        out.family("stepladder_connections", "counter", "", "Connections that were opened, and that ended.");
        for (state, count) in [("opened", sums.opened), ("closed", sums.closed)] {
            out.sample("stepladder_connections_total", &[("state", state)], count as f64);
        }
        out.family(
            "stepladder_connect_failures",
            "counter",
            "",
            "Attempts to connect that failed, by cause.",
        );
        out.counts("stepladder_connect_failures", "cause", &sums.connect_failures);
        self.messages(&mut out);
        out.family("stepladder_errors", "counter", "", "Errors by cause.");
        out.counts("stepladder_errors", "cause", &sums.errors);
        out.family("stepladder_counts", "counter", "", "What the bots of the workload count besides.");
        out.counts("stepladder_counts", "name", &sums.counters);
        out.family(
            "stepladder_transferred_bytes",
            "counter",
            "bytes",
            "Bytes written to sockets and read from them.",
        );
        for (direction, bytes) in [("sent", sums.bytes_sent), ("received", sums.bytes_received)] {
            out.sample("stepladder_transferred_bytes_total", &[("direction", direction)], bytes as f64);
        }
        out.ticks("stepladder_server_ticks", "Ticks as the server tells them.", &sums.server_ticks);
        out.ticks("stepladder_client_ticks", "Ticks as the clients see them.", &sums.client_ticks);
        self.durations(&mut out);
        self.readings(&mut out);
        out.text.push_str("# EOF\n");
        out.text
    }

    fn messages(&self, out: &mut Text<'_>) {
        let help =
            "Messages by operation, by the phase for which they were planned, and by what became of them.";
        out.family("stepladder_messages", "counter", "", help);
        let mut messages: BTreeMap<(String, &str), Flow> = BTreeMap::new();
        for ((operation, phase), flow) in &self.sums.messages {
            messages.entry(((out.mask)(operation), phase)).or_default().add(flow);
        }
        for ((operation, phase), flow) in &messages {
            let states = [
                ("offered", flow.offered),
                ("not_sent", flow.not_sent),
                ("sent", flow.sent),
                ("told", flow.told),
                ("answered", flow.answered),
                ("late", flow.late),
                ("failed", flow.failed),
                ("lost", flow.lost),
            ];
            for (state, count) in states {
                let labels = [("operation", operation.as_str()), ("phase", phase), ("state", state)];
                out.sample("stepladder_messages_total", &labels, count as f64);
            }
        }
        out.family("stepladder_messages_open", "gauge", "", "Messages that wait for their reply.");
        for (operation, count) in out.masked(&self.now.waiting) {
            out.sample("stepladder_messages_open", &[("operation", &operation)], count as f64);
        }
    }

    fn durations(&self, out: &mut Text<'_>) {
        for &measure in Measure::ALL {
            let name = format!("stepladder_{}_seconds", measure.name());
            let parts: Vec<_> = [(true, "hold"), (false, "outside_hold")]
                .into_iter()
                .filter_map(|(in_hold, part)| {
                    Some((part, self.sums.durations.get(&(measure.name(), in_hold))?))
                })
                .collect();
            if parts.is_empty() {
                continue;
            }
            out.family(&name, "histogram", "seconds", measure.about());
            for (part, buckets) in parts {
                for (bound_ns, below) in BOUNDS_NS.iter().zip(buckets.below) {
                    let bound = format!("{:?}", *bound_ns as f64 / 1e9);
                    out.sample(&format!("{name}_bucket"), &[("part", part), ("le", &bound)], below as f64);
                }
                let labels = [("part", part), ("le", "+Inf")];
                out.sample(&format!("{name}_bucket"), &labels, buckets.count as f64);
                out.sample(&format!("{name}_count"), &[("part", part)], buckets.count as f64);
                out.sample(&format!("{name}_sum"), &[("part", part)], buckets.sum_s);
            }
        }
    }

    fn readings(&self, out: &mut Text<'_>) {
        let of = |what: &Reading| -> Option<(f64, bool)> {
            let (who, name, over_time) = known(what)?;
            match over_time {
                OverTime::Total => Some((self.sums.totals.get(&(who, name))?.0, true)),
                _ => Some((*self.now.readings.get(&(who, name))?, false)),
            }
        };
        let of_processes = OfProcess::ALL.iter().flat_map(|name| {
            [(Reading::Subject(*name), name.about()), (Reading::Worker(*name), name.about())]
        });
        let of_machine = OfMachine::ALL.iter().map(|name| (Reading::Machine(*name), name.about()));
        for (what, about) in of_processes.chain(of_machine) {
            let Some((value, is_total)) = of(&what) else { continue };
            let (who, name) = what.texts();
            let (name, unit, factor) = in_base_unit(name);
            let family = format!("stepladder_{who}_{name}");
            out.family(&family, if is_total { "counter" } else { "gauge" }, unit, about);
            let suffix = if is_total { "_total" } else { "" };
            out.sample(&format!("{family}{suffix}"), &[], value * factor);
        }
    }
}

/// Of the readings whose names are ours: programs and threads have names of their own, and change all the time.
fn known(what: &Reading) -> Option<(&'static str, &'static str, OverTime)> {
    let (who, _) = what.texts();
    let who = ["subject", "worker", "machine"].into_iter().find(|known| *known == who)?;
    match what {
        Reading::Subject(name) | Reading::Worker(name) => Some((who, name.name(), name.over_time())),
        Reading::Machine(name) => Some((who, name.name(), name.over_time())),
        Reading::Program(_) | Reading::Thread(_) | Reading::Other { .. } => None,
    }
}

/// A name of the store with its unit spelt out: `cpu_s` is `cpu_seconds`. The unit, and the factor to it.
fn in_base_unit(name: &str) -> (String, &'static str, f64) {
    let units = [
        ("_ms", "seconds", 1e-3),
        ("_s", "seconds", 1.0),
        ("_bytes", "bytes", 1.0),
        ("_hz", "hertz", 1.0),
        ("_c", "celsius", 1.0),
    ];
    for (suffix, unit, factor) in units {
        if let Some(stem) = name.strip_suffix(suffix) {
            return (format!("{stem}_{unit}"), unit, factor);
        }
    }
    (name.to_owned(), "", 1.0)
}

/// A store may come from elsewhere: what it says beyond all measure stays at the end of the numbers.
fn add(sums: &mut BTreeMap<String, u64>, names: &[String], counts: &[u64]) {
    for (name, count) in names.iter().zip(counts).filter(|(_, count)| **count > 0) {
        let sum = sums.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
}

struct Text<'m> {
    text: String,
    mask: &'m dyn Fn(&str) -> String,
}

impl Text<'_> {
    /// Names that are the same without their secrets are one.
    fn masked(&self, counts: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in counts {
            let sum = sums.entry((self.mask)(name)).or_default();
            *sum = sum.saturating_add(*count);
        }
        sums
    }

    /// The head of a family of samples. `unit` may be empty; otherwise the name ends with it.
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", escaped(help));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let opening = if at == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{opening}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = match value {
            value if value.fract() == 0.0 && value.abs() < 1e15 => writeln!(self.text, " {value:.0}"),
            value if value.is_finite() => writeln!(self.text, " {value:?}"),
            // What is no number was not measured.
            _ => writeln!(self.text, " NaN"),
        };
    }

    fn counts(&mut self, family: &str, label: &str, counts: &BTreeMap<String, u64>) {
        for (name, count) in self.masked(counts) {
            self.sample(&format!("{family}_total"), &[(label, &name)], count as f64);
        }
    }

    fn ticks(&mut self, family: &str, help: &str, counts: &TickCounts) {
        if counts.due == 0 {
            return;
        }
        self.family(family, "counter", "", help);
        let states = [
            ("due", counts.due),
            ("on_time", counts.on_time),
            ("over", counts.over),
            ("under", counts.under),
            ("missed", counts.missed),
        ];
        for (state, count) in states {
            self.sample(&format!("{family}_total"), &[("state", state)], count as f64);
        }
    }
}

/// As label values and help texts are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
