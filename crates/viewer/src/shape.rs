//! What the page is sent, in the shapes of web/src/data.ts; that file says what each field means.

use std::collections::BTreeMap;

use ladder::objective::Op;
use ladder::{Climb, Objective, Rung, UnitKind};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A row of the list of runs.
#[derive(Clone, Debug, Serialize)]
pub struct RunRow {
    /// its id
    pub id: String,
    /// as the user wrote it
    pub subject: String,
    /// path of the scenario file
    pub scenario: Option<String>,
    /// when it began
    pub started_unix_ms: u64,
    /// `running`, `finished`, `interrupted`, `broken`, `cut_off`
    pub state: &'static str,
    /// of the whole run
    pub verdict: Option<&'static str>,
    /// between which loads
    pub capacity: Option<RowCapacity>,
    /// the small ladder
    pub rungs: Vec<RowRung>,
    /// what it is drawn by
    pub main: Option<MainFigure>,
    /// what people wrote on it
    pub labels: BTreeMap<String, String>,
}

/// The bounds of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RowCapacity {
    /// `games`, `clients` …
    pub unit: String,
    /// held
    pub lower_bound: Option<f64>,
    /// did not
    pub upper_bound: Option<f64>,
}

/// A rung of the small ladder.
#[derive(Clone, Debug, Serialize)]
pub struct RowRung {
    /// what it was asked to hold
    pub load: f64,
    /// `None` until it was judged
    pub verdict: Option<String>,
    /// the value of the main figure
    pub figure: Option<f64>,
}

/// An objective as the page draws it.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub planned: Vec<f64>,
    /// in their order
    pub trials: Vec<TrialPage>,
    /// why nothing is said of it, where its plan cannot be read
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A trial. Columns and buckets may be left out (empty); the page asks for them then.
#[derive(Clone, Debug, Serialize)]
pub struct TrialPage {
    /// number within the run
    pub seq: u32,
    /// `rung`, …
    pub purpose: String,
    /// in `load_unit`
    pub load: f64,
    /// `games` …
    pub load_unit: String,
    /// simulated clients
    pub bots: u64,
    /// of a sweep
    pub cell: BTreeMap<String, String>,
    /// 0: no ticks
    pub tick_period_ns: u64,
    /// marks on the time axis
    pub events: Vec<Mark>,
    /// what was judged
    pub hold: Option<HoldSpan>,
    /// as in `--json`; null for calibrations, while it runs, and where the page finds it in `climb`
    pub rung: Option<Rung>,
    /// one entry per second
    pub series: Series,
    /// seconds per point; left out while it is 1
    #[serde(skip_serializing_if = "is_one")]
    pub seconds_per_point: usize,
    /// buckets over the hold, by name
    pub distributions: BTreeMap<&'static str, Vec<(u64, u64)>>,
    /// of a broadcast
    pub slowest: Vec<Slow>,
}

fn is_one(per: &usize) -> bool {
    *per <= 1
}

/// A mark on the time axis.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// since the start of the trial
    pub at_ns: u64,
    /// `hold`, …
    pub kind: String,
    /// for people; never markup
    pub text: String,
}

/// The judged part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HoldSpan {
    /// behind the warm-up cut
    pub from_ns: u64,
    /// end
    pub to_ns: u64,
}

/// A slow receiver.
#[derive(Clone, Debug, Serialize)]
pub struct Slow {
    /// its number in the crowd
    pub receiver: u32,
    /// mean
    pub latency_mean_ns: Option<f64>,
    /// longest
    pub latency_max_ns: Option<u64>,
    /// surely owed, and never came
    pub lost: u64,
}

/// Columns by name, each as long as the first, which is `t`.
#[derive(Clone, Debug, Default, PartialEq)]
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

/// A tick log.
#[derive(Clone, Debug, Serialize)]
pub struct TickFile {
    /// of the file; text, never markup
    pub name: String,
    /// played to their end
    pub games: u64,
    /// ticks by class
    pub on_time: u64,
    /// longer
    pub over: u64,
    /// shorter
    pub under: u64,
    /// never run
    pub missed: u64,
    /// (over + under + missed) / due
    pub late_share: Option<f64>,
    /// whole ms
    pub interval_ms: IntervalMs,
    /// whole ms → count
    pub histogram: BTreeMap<u64, u64>,
    /// per entry of the log
    pub series: Series,
    /// lines that could not be read
    pub malformed: u64,
    /// why it cannot be read at all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The intervals of a tick log, ms.
#[derive(Clone, Debug, Default, Serialize)]
pub struct IntervalMs {
    /// median
    pub p50: Option<u64>,
    /// 0.9 quantile
    pub p90: Option<u64>,
    /// 0.99 quantile
    pub p99: Option<u64>,
    /// longest
    pub max: Option<u64>,
    /// arithmetic
    pub mean: Option<f64>,
}
