//! The names of the totals: families of figures with labels, in seconds and bytes. `docs/method/metrics.md` lists them.

use std::collections::BTreeMap;

use measure::{Flow, MachineMetric, Measure, OverTime, Phase, ProcessMetric, Reading, TickCounts};

use super::{BOUNDS_NS, Buckets, RunSums, known};

/// A longer label value is cut.
const LABEL_CHARS_MAX: usize = 200;

/// Figures of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// with the unit at its end, without what a form adds
    pub name: String,
    /// what its points are
    pub kind: Kind,
    /// `seconds`, `bytes`, `hertz`, `celsius`; empty where there is none
    pub unit: &'static str,
    /// a sentence
    pub help: &'static str,
    /// no two with the same labels
    pub points: Vec<Point>,
}

/// What a family tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 1, with labels that describe the run
    Info,
    /// how things stand
    Gauge,
    /// a sum that never decreases
    Counter,
    /// 1 for the state that the label names if it is the present one, else 0
    StateSet,
    /// durations so far, by their length
    Histogram,
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// names and masked values
    pub labels: Vec<(&'static str, String)>,
    /// of its family's kind
    pub value: Value,
}

/// What a figure is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// whole
    Count(u64),
    /// in the unit of the family; not a number where nothing was measured
    Number(f64),
    /// in seconds
    Durations {
        /// upper edges with how many durations lie up to each, ascending
        up_to: Vec<(f64, u64)>,
        /// of all
        count: u64,
        /// of all, seconds
        sum_s: f64,
    },
}

impl RunSums {
    /// All figures as they stand. `mask` takes secrets, and what else may not be shown, out of label values.
    pub fn families(&self, mask: &dyn Fn(&str) -> String) -> Vec<Family> {
        let (mut out, sums, now) = (Families { all: Vec::new(), mask }, &self.sums, &self.now);
        out.begin("stepladder_run", Kind::Info, "", "The run that these figures belong to.");
        let version = ("version", env!("CARGO_PKG_VERSION").to_owned());
        out.point(vec![("run", out.label(self.run.as_str())), version], Value::Count(1));
        if let Some(trial) = &now.trial {
            out.begin("stepladder_trial", Kind::Gauge, "", "Number of the current trial within the run.");
            out.point(vec![("purpose", trial.purpose.to_string())], Value::Count(u64::from(trial.seq)));
            out.begin(
                "stepladder_load",
                Kind::Gauge,
                "",
                "The load that it holds, in the unit of the climb.",
            );
            let cell: Vec<String> =
                trial.cell.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
            let labels = vec![("unit", trial.load_unit.to_string()), ("cell", out.label(&cell.join(" ")))];
            out.point(labels, Value::Number(trial.load));
        }
        out.begin(
            "stepladder_phase",
            Kind::StateSet,
            "",
            "The phase of the current trial; none between two trials.",
        );
        for phase in Phase::ALL {
            let is_now = u64::from(now.phase == Some(*phase));
            out.point(vec![("stepladder_phase", phase.name().to_owned())], Value::Count(is_now));
        }
        out.begin("stepladder_rungs", Kind::Counter, "", "Rungs that were judged, by verdict.");
        out.counts("verdict", &self.verdicts);
        out.begin("stepladder_connections_asked", Kind::Gauge, "", "Connections that should be open.");
        out.point(vec![], Value::Count(now.asked));
        out.begin("stepladder_connections_open", Kind::Gauge, "", "Connections that are open.");
        out.point(vec![], Value::Count(now.open));
        let help = "Connections that were opened, and that ended.";
        out.begin("stepladder_connections", Kind::Counter, "", help);
        out.states("state", &[("opened", sums.opened), ("closed", sums.closed)]);
        let help = "Attempts to connect that failed, by cause.";
        out.begin("stepladder_connect_failures", Kind::Counter, "", help);
        out.counts("cause", &sums.connect_failures);
        self.messages(&mut out);
        out.begin("stepladder_errors", Kind::Counter, "", "Errors by cause.");
        out.counts("cause", &sums.errors);
        let help = "What the bots of the workload count besides.";
        out.begin("stepladder_counts", Kind::Counter, "", help);
        out.counts("name", &sums.counters);
        let help = "Bytes written to sockets and read from them.";
        out.begin("stepladder_transferred_bytes", Kind::Counter, "bytes", help);
        out.states("direction", &[("sent", sums.bytes_sent), ("received", sums.bytes_received)]);
        out.ticks("stepladder_server_ticks", "Ticks as the server tells them.", &sums.server_ticks);
        out.ticks("stepladder_client_ticks", "Ticks as the clients see them.", &sums.client_ticks);
        self.durations(&mut out);
        self.readings(&mut out);
        out.all
    }

    fn messages(&self, out: &mut Families<'_>) {
        let help =
            "Messages by operation, by the phase for which they were planned, and by what became of them.";
        out.begin("stepladder_messages", Kind::Counter, "", help);
        // Names that differ only in their secrets are merged.
        let mut messages: BTreeMap<(String, &str), Flow> = BTreeMap::new();
        for (operation, by_phase) in &self.sums.messages {
            for (phase, flow) in by_phase {
                messages.entry((out.label(operation), phase)).or_default().add(flow);
            }
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
                let named = [("operation", operation.as_str()), ("phase", phase), ("state", state)];
                let labels = named.map(|(label, value)| (label, value.to_owned()));
                out.point(labels.into(), Value::Count(count));
            }
        }
        let help = "Messages that wait for their reply.";
        out.begin("stepladder_messages_open", Kind::Gauge, "", help);
        out.counts("operation", &self.now.waiting);
    }

    fn durations(&self, out: &mut Families<'_>) {
        for &measure in Measure::ALL {
            let of = |in_hold| self.sums.durations.get(&(measure.name(), in_hold));
            let parts = [("hold", of(true)), ("outside_hold", of(false))];
            if parts.iter().all(|(_, buckets)| buckets.is_none()) {
                continue;
            }
            let name = format!("stepladder_{}_seconds", measure.name());
            out.begin(&name, Kind::Histogram, "seconds", measure.about());
            for (part, buckets) in parts {
                let Some(buckets) = buckets else { continue };
                out.point(vec![("part", part.to_owned())], buckets.value());
            }
        }
    }

    fn readings(&self, out: &mut Families<'_>) {
        let of = |what: &Reading| -> Option<(f64, bool)> {
            let (who, name, over_time) = known(what)?;
            match over_time {
                OverTime::Total => Some((self.sums.totals.get(&(who, name))?.0, true)),
                _ => Some((*self.now.readings.get(&(who, name))?, false)),
            }
        };
        let of_processes = ProcessMetric::ALL.iter().flat_map(|name| {
            [(Reading::Subject(*name), name.about()), (Reading::Worker(*name), name.about())]
        });
        let of_machine = MachineMetric::ALL.iter().map(|name| (Reading::Machine(*name), name.about()));
        for (what, about) in of_processes.chain(of_machine) {
            let Some((value, is_total)) = of(&what) else { continue };
            let (who, name) = what.texts();
            let (name, unit, factor) = in_base_unit(name);
            let kind = if is_total { Kind::Counter } else { Kind::Gauge };
            out.begin(&format!("stepladder_{who}_{name}"), kind, unit, about);
            out.point(vec![], Value::Number(value * factor));
        }
    }
}

impl Buckets {
    fn value(&self) -> Value {
        let up_to = BOUNDS_NS.iter().zip(self.below).map(|(ns, below)| (*ns as f64 / 1e9, below)).collect();
        Value::Durations { up_to, count: self.count, sum_s: self.sum_s }
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

struct Families<'m> {
    all: Vec<Family>,
    mask: &'m dyn Fn(&str) -> String,
}

impl Families<'_> {
    /// Further points belong to it.
    fn begin(&mut self, name: &str, kind: Kind, unit: &'static str, help: &'static str) {
        self.all.push(Family { name: name.to_owned(), kind, unit, help, points: Vec::new() });
    }

    fn point(&mut self, labels: Vec<(&'static str, String)>, value: Value) {
        if let Some(family) = self.all.last_mut() {
            family.points.push(Point { labels, value });
        }
    }

    /// Masked whole, and cut then.
    fn label(&self, text: &str) -> String {
        let mut masked = (self.mask)(text);
        if let Some((end, _)) = masked.char_indices().nth(LABEL_CHARS_MAX) {
            masked.truncate(end);
            masked.push('…');
        }
        masked
    }

    /// Names that are the same without their secrets are one.
    fn counts(&mut self, label: &'static str, counts: &BTreeMap<String, u64>) {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in counts {
            let sum = sums.entry(self.label(name)).or_default();
            *sum = sum.saturating_add(*count);
        }
        for (name, count) in sums {
            self.point(vec![(label, name)], Value::Count(count));
        }
    }

    fn states(&mut self, label: &'static str, counts: &[(&str, u64)]) {
        for (state, count) in counts {
            self.point(vec![(label, (*state).to_owned())], Value::Count(*count));
        }
    }

    fn ticks(&mut self, family: &str, help: &'static str, counts: &TickCounts) {
        if counts.due == 0 {
            return;
        }
        self.begin(family, Kind::Counter, "", help);
        self.states(
            "state",
            &[
                ("due", counts.due),
                ("on_time", counts.on_time),
                ("over", counts.over),
                ("under", counts.under),
                ("missed", counts.missed),
            ],
        );
    }
}
