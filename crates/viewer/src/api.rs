//! The data sent to the page; web/src/data.ts is generated from these types (`typescript`).

use std::collections::BTreeMap;

use inflight_analysis::{Comparison, ProcessCurve};
use ladder::duel::DuelAnswers;
use ladder::objective::Op;
use ladder::{Capacity, Climb, DisturbedAbove, HoldSpan, Objective, Rung, UnitKind, Verdict};
use measure::ledger::ReceiverBooks;
use measure::ticklog::TickLogFigures;
use measure::{Event, LoadUnit, Purpose};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use ts_rs::TS;

use crate::profile::ProfileGraph;

/// A row of the list of runs.
#[derive(Clone, Debug, Serialize, TS)]
pub struct RunRow {
    /// its id
    pub id: String,
    /// as the user wrote it
    pub subject: String,
    /// what was measured
    pub kind: Kind,
    /// path of the scenario file
    pub scenario: Option<String>,
    /// when it began
    pub started_unix_ms: u64,
    /// where it is
    pub state: State,
    /// of the whole run
    pub verdict: Option<Verdict>,
    /// between which loads
    pub capacity: Option<Capacity>,
    /// of a run without rungs: what it found, in one line
    pub answer: Option<String>,
    /// the small ladder
    pub rungs: Vec<RowRung>,
    /// what it is drawn by
    pub main: Option<MainFigure>,
    /// what people wrote on it
    pub labels: BTreeMap<String, String>,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// one server under rising loads
    Climb,
    /// client libraries on one server
    Bench,
    /// two servers under the same loads
    Duel,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// a process records it
    Running,
    /// it ended by itself
    Finished,
    /// its user ended it
    Interrupted,
    /// it could not go on
    Broken,
    /// its process was killed
    CutOff,
}

/// A rung of the small ladder.
#[derive(Clone, Debug, Serialize, TS)]
pub struct RowRung {
    /// what it was asked to hold
    pub load: f64,
    /// `None` until it was judged
    pub verdict: Option<Verdict>,
    /// the value of the main figure
    pub figure: Option<f64>,
}

/// An objective as the page draws it.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct MainFigure {
    /// of the figure
    pub name: &'static str,
    /// `ns`, `share`, `count`, `per_s`, `bytes`, `number`
    pub unit: &'static str,
    /// `<` …
    pub op: &'static str,
    /// in that unit
    pub bound: f64,
    /// as its author wrote it
    pub text: String,
}

impl From<&Objective> for MainFigure {
    fn from(objective: &Objective) -> Self {
        MainFigure {
            name: objective.figure().name,
            unit: match objective.figure().unit {
                UnitKind::Time => "ns",
                UnitKind::Share => "share",
                UnitKind::Count => "count",
                UnitKind::Rate => "per_s",
                UnitKind::Bytes => "bytes",
                UnitKind::Number | UnitKind::Ok => "number",
            },
            op: match objective.op() {
                Op::Less => "<",
                Op::AtMost => "<=",
                Op::More => ">",
                Op::AtLeast => ">=",
                Op::Equal => "==",
                Op::Unequal => "!=",
            },
            bound: objective.bound(),
            text: objective.to_string(),
        }
    }
}

/// A run with everything the page shows first.
#[derive(Clone, Debug, Serialize, TS)]
pub struct RunPage {
    /// as in the list
    pub run: RunRow,
    /// the command line
    pub command: String,
    /// `--note`
    pub note: Option<String>,
    /// the answers, as in `--json`
    pub climb: Option<Climb>,
    /// of its plan
    pub objectives: Vec<MainFigure>,
    /// loads that it means to hold, while it goes on
    pub planned: Vec<f64>,
    /// how long it means to hold each; null where a count ends a hold
    pub hold_s: Option<f64>,
    /// in their order
    pub trials: Vec<TrialPage>,
    /// of a comparison of client libraries; it has neither `climb` nor trials
    pub bench: Option<BenchPage>,
    /// flame graphs of a run that was profiled; null where the page asks for them
    pub profile: Option<Vec<ProfileGraph>>,
    /// of a duel, whose trials are those of both sides: what is known, as in `duel --json`
    pub duel: Option<DuelAnswers>,
    /// why nothing is said of it, where its plan cannot be read
    pub problem: Option<String>,
}

/// A comparison of client libraries.
#[derive(Clone, Debug, Serialize, TS)]
pub struct BenchPage {
    /// its figures, as in `bench --json`
    pub comparison: Comparison,
    /// of each cell of the comparison: buckets [highest ns, count] of its latencies
    pub latencies: Vec<Vec<(u64, u64)>>,
    /// the processes, in the order in which they ran
    pub processes: Vec<ProcessPage>,
    /// how many it means to start, those that are profiled left out; null where its plan does not say
    pub planned: Option<u64>,
    /// random order of the runs
    pub seed: u64,
    /// version of Stepladder
    pub stepladder: String,
    /// the machine
    #[ts(type = "Record<string, unknown>")]
    pub environment: serde_json::Map<String, serde_json::Value>,
    /// why it could not go on
    pub reason: Option<String>,
}

/// One run of a client.
#[derive(Clone, Debug, Serialize, TS)]
pub struct ProcessPage {
    /// within the run, from 0
    pub number: u32,
    /// as the user named it
    pub client: String,
    /// the task
    pub op: String,
    /// the task
    pub value_bytes: u64,
    /// the task
    pub in_flight: String,
    /// the task
    pub total: u64,
    /// each block has every client and task once
    pub block: u64,
    /// what was profiled; its figures do not count
    pub profile: Option<String>,
    /// it wrote its last line
    pub has_ended: bool,
    /// why it did not reach its total
    pub stopped: Option<String>,
    /// operations per second over its whole measured part
    pub ops_per_s: Option<f64>,
    /// second by second
    pub curve: ProcessCurve,
}

/// A trial. Columns and buckets may be left out (empty); the page asks for them then.
#[derive(Clone, Debug, Serialize, TS)]
pub struct TrialPage {
    /// number within the run
    pub seq: u32,
    /// `rung`, …
    pub purpose: Purpose,
    /// in `load_unit`
    pub load: f64,
    /// `games` …
    pub load_unit: LoadUnit,
    /// simulated clients
    pub bots: u64,
    /// of a sweep
    pub cell: BTreeMap<String, String>,
    /// 0: no ticks
    pub tick_period_ns: u64,
    /// marks on the time axis
    pub events: Vec<Event>,
    /// what is judged; null before it begins
    pub hold: Option<HoldSpan>,
    /// what makes a second disturbed
    pub disturbed_above: DisturbedAbove,
    /// as in `--json`; null for calibrations, while it runs, and where the page finds it in `climb`
    pub rung: Option<Rung>,
    /// one entry per second
    pub series: Series,
    /// seconds per point of the series; above 1 where a long trial was thinned
    pub seconds_per_point: usize,
    /// buckets over the hold, by name
    #[ts(type = "Partial<Record<DistributionName, [number, number][]>>")]
    pub distributions: BTreeMap<&'static str, Vec<(u64, u64)>>,
    /// of a broadcast
    pub slowest: Vec<ReceiverBooks>,
}

/// Columns by name, each as long as the first, which is `t`.
#[derive(Clone, Debug, Default, PartialEq, TS)]
#[ts(type = "Partial<Record<ColumnName, (number | null)[]>>")]
pub struct Series {
    /// in the order they are written
    pub columns: Vec<(&'static str, Vec<Option<f64>>)>,
}

impl Series {
    /// The values of a column.
    pub fn column(&self, name: &str) -> Option<&[Option<f64>]> {
        self.columns.iter().find(|(known, _)| *known == name).map(|(_, values)| values.as_slice())
    }
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.columns.len()))?;
        for (name, values) in &self.columns {
            let short: Vec<Option<Short>> = values.iter().map(|value| value.map(Short)).collect();
            map.serialize_entry(name, &short)?;
        }
        map.end()
    }
}

/// A number of a series: whole where it is whole or large, else with six decimals. What is drawn needs no more, and an
/// hour of seconds is half as long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short(pub f64);

impl Serialize for Short {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.0;
        if value.abs() < 9e15 && (value.fract() == 0.0 || value.abs() >= 1e5) {
            serializer.serialize_i64(value.round() as i64)
        } else {
            serializer.serialize_f64((value * 1e6).round() / 1e6)
        }
    }
}

/// A second of a trial that goes on, or a value that came later for an old one.
#[derive(Clone, Debug, Serialize, TS)]
pub(crate) struct Second {
    /// the trial's number within the run
    pub seq: u32,
    /// seconds since the start of the trial
    pub t: u32,
    /// by column
    #[ts(type = "Partial<Record<ColumnName, number>>")]
    pub values: BTreeMap<&'static str, Short>,
}

/// A tick log.
#[derive(Clone, Debug, Serialize, TS)]
pub struct TickFile {
    /// of the file; text, never markup
    pub name: String,
    /// its sums
    #[serde(flatten)]
    pub figures: TickLogFigures,
    /// per entry of the log
    pub series: Series,
    /// why it cannot be read at all
    pub error: Option<String>,
}
