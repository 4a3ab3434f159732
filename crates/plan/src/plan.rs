//! The plan of a run: types, ranges and units; no behaviour.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Component, PathBuf};

use ladder::{Allowed, Gate, LoadUnit, Objective, Repeats, SearchSchedule};
use measure::ticklog::{TickForm, TimeUnit};
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr, VariantArray};

use crate::network::Networks;
use crate::target::Target;
use crate::workloads::BotSettings;

#[cfg(test)]
pub(crate) mod usual;

/// One climb, completely decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// the server under test
    pub subject: Subject,
    /// the simulated clients
    pub bots: BotSettings,
    /// what they say besides when they open WebSockets
    #[serde(default, skip_serializing_if = "Handshake::is_empty")]
    pub handshake: Handshake,
    /// which loads, how long
    pub ladder: Ladder,
    /// what a rung must meet; never empty
    pub objectives: Vec<Objective>,
    /// what the whole run must meet; they decide the exit code
    #[serde(default)]
    pub gates: Vec<Gate>,
    /// what the server may do although it fails a rung otherwise
    #[serde(default)]
    pub allowed: Vec<Allowed>,
    /// the law of arrivals, shown with every number
    pub arrivals: Arrivals,
    /// an answer after this is late, ns; at least 1 ms
    pub patience_ns: u64,
    /// everything random comes from it
    pub seed: u64,
    /// how this process makes the load
    pub generator: Generator,
    /// what is emulated between the bots and the subject
    #[serde(default, skip_serializing_if = "Networks::is_empty")]
    pub networks: Networks,
    /// the run's name (`--name master`)
    pub name: Option<String>,
    /// free text kept with the run
    pub note: Option<String>,
    /// path of the scenario file, where there was one
    pub scenario: Option<String>,
    /// hosts outside loopback and private ranges that the user may load
    pub may_load: Vec<String>,
    /// what is profiled behind the climb
    #[serde(default, skip_serializing_if = "Profile::is_off")]
    pub profile: Profile,
    /// where a Go server serves its profiles over plain HTTP: loopback, its path ends with a slash; `None`: it is looked for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pprof: Option<Box<Target>>,
}

/// What of the subject is profiled behind the climb, where one load held and a larger one failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Profile {
    /// nothing
    #[default]
    Off,
    /// where its CPU time goes, and where requests wait
    Cpu,
    /// where its memory is allocated
    Alloc,
    /// both
    All,
}

impl Profile {
    /// Every one, as options write it.
    pub const NAMES: &[&str] = &["off", "cpu", "alloc", "all"];

    /// Whether CPU and waits are profiled.
    pub fn has_cpu(self) -> bool {
        matches!(self, Profile::Cpu | Profile::All)
    }

    /// Whether allocations are profiled.
    pub fn has_allocations(self) -> bool {
        matches!(self, Profile::Alloc | Profile::All)
    }

    /// Whether nothing is profiled.
    pub fn is_off(&self) -> bool {
        *self == Profile::Off
    }
}

/// What a WebSocket handshake says besides what the protocol asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshake {
    /// name and value, with `${NAME}` for what the environment fills in when a trial starts
    pub headers: Vec<(String, String)>,
    /// offered in this order
    pub subprotocols: Vec<String>,
}

impl Handshake {
    fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.subprotocols.is_empty()
    }
}

/// The server under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// as the user wrote it: `arena`, `ws://…`
    pub name: String,
    /// how it is started
    pub source: SubjectSource,
    /// where its ticks are reported: the source that is judged
    pub ticks: TickSource,
    /// further sources, which are compared with that one
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared_ticks: Vec<TickSource>,
    /// its tick rate, Hz; 0 when it has none or it is to be found
    pub tick_rate_hz: f64,
}

impl Subject {
    /// Where it listens; `None` of a built-in server, which chooses by itself.
    pub fn target(&self) -> Option<&Target> {
        match &self.source {
            SubjectSource::BuiltIn { .. } => None,
            SubjectSource::Started { target, .. } | SubjectSource::Running { target, .. } => Some(target),
        }
    }

    /// All sources of its ticks, the judged one first.
    pub fn tick_sources(&self) -> impl Iterator<Item = &TickSource> {
        std::iter::once(&self.ticks).chain(&self.compared_ticks)
    }

    /// True when its tick rate is to be found from its ticks, at the lowest load.
    pub fn finds_tick_rate(&self) -> bool {
        self.tick_rate_hz == 0.0 && self.ticks.tells_rate()
    }

    /// ns between two ticks; 0 when it has none
    pub fn tick_period_ns(&self) -> u64 {
        if self.tick_rate_hz > 0.0 { (1e9 / self.tick_rate_hz).round() as u64 } else { 0 }
    }
}

/// How the subject is started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectSource {
    /// our reference server, started as a separate process on a free loopback port
    BuiltIn {
        /// `arena`
        server: String,
        /// what followed `--` on the command line
        options: Vec<String>,
    },
    /// started by us with the user's command, watched and stopped
    Started {
        /// a command line for `sh -c`
        command: String,
        /// where it listens
        target: Target,
    },
    /// runs already; we watch its process or control group where it is named
    Running {
        /// where it listens
        target: Target,
        /// its process, when the user named one
        pid: Option<u32>,
        /// its control group, when the user named one
        #[serde(default)]
        cgroup: Option<PathBuf>,
    },
}

/// Where a subject's ticks are reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TickSource {
    /// it has no ticks
    None,
    /// a tick log in the arena's format; for a built-in server the path is chosen at start
    Log(Option<PathBuf>),
    /// a file with a line per tick
    Frames(TickForm, PathBuf),
    /// timings that come as StatsD
    Statsd {
        /// where to listen
        address: SocketAddr,
        /// `None`: of the first timing that comes
        metric: Option<String>,
    },
    /// a metric of an endpoint that is asked once per second
    OpenMetrics {
        /// where it answers
        endpoint: Box<Target>,
        /// `None`: the only histogram of times
        metric: Option<String>,
        /// `None`: as its name ends
        unit: Option<TimeUnit>,
    },
    /// only the clients' view
    Client,
}

impl TickSource {
    /// Whether both are read at the same place, whatever they take from there.
    pub fn is_at_place_of(&self, other: &TickSource) -> bool {
        let file = |source: &TickSource| match source {
            TickSource::Log(Some(path)) | TickSource::Frames(_, path) => {
                Some(path.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>())
            }
            _ => None,
        };
        match (self, other) {
            (TickSource::Statsd { address, .. }, TickSource::Statsd { address: other, .. }) => {
                address == other
            }
            (TickSource::OpenMetrics { endpoint, .. }, TickSource::OpenMetrics { endpoint: other, .. }) => {
                endpoint == other
            }
            _ => self == other || file(self).is_some_and(|path| file(other) == Some(path)),
        }
    }

    /// True when it tells single ticks, whose intervals show how often there are any.
    pub fn tells_rate(&self) -> bool {
        matches!(self, TickSource::Frames(..) | TickSource::Statsd { .. })
    }
}

/// One combination of a sweep's axes; every load is held once in each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// axis and value: `service` `object`, `view` `foreground` …
    pub names: BTreeMap<String, String>,
    /// options of the built-in server, after those of the subject
    pub options: Vec<String>,
    /// only this one of the bots' requests; `None`: all, by weight
    pub request: Option<usize>,
}

/// What of the clients a cell may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Axis {
    /// updates in one request of a leaderboard's client
    Bulk,
    /// requests of one client over HTTP
    RequestsPerBot,
    /// requests on one connection over HTTP
    ReconnectAfter,
}

impl Axis {
    /// All of them, the outermost first.
    pub const ALL: &[Axis] = <Axis as VariantArray>::VARIANTS;

    /// As cells, tables and scenarios name it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Cell {
    /// Where a cell is on an axis; `None` where it does not say.
    pub fn value_of(&self, axis: Axis) -> Option<u64> {
        self.names.get(axis.name())?.parse().ok()
    }
}

impl Plan {
    /// The plan as it is in a cell, named by axis and value.
    pub fn in_cell(&self, names: &BTreeMap<String, String>) -> Plan {
        let cell = Cell { names: names.clone(), ..Cell::default() };
        Plan { bots: self.bots.in_cell(&cell), ..self.clone() }
    }
}

/// Which loads, and how each is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    /// ascending, > 0, never empty
    pub rungs: Vec<f64>,
    /// `games`, `clients`, `requesters`, `req/s`, `in_flight`
    pub load_unit: LoadUnit,
    /// how the bots of each rung arrive
    pub ramp: RampRule,
    /// between the ramp and the hold, ns
    pub settle_ns: u64,
    /// how long each load is held
    pub hold: HoldLength,
    /// a fresh subject for each rung
    pub restart_per_rung: bool,
    /// combinations for each of which all loads are held, in this order; empty: there is only one
    #[serde(default)]
    pub cells: Vec<Cell>,
    /// loads go on beyond the last rung, one more each, until a request fails
    #[serde(default)]
    pub is_open_ended: bool,
    /// the subject is told to shut down under each load
    #[serde(default)]
    pub stop: Option<SubjectStop>,
    /// after the highest load the others once more, from the highest down
    #[serde(default)]
    pub from_above: bool,
    /// how often each load is held
    #[serde(default)]
    pub repeat: Repeats,
    /// multiples of the largest load that held, > 1, ascending; each is held once at the end
    #[serde(default)]
    pub overload: Vec<f64>,
    /// after each of these a part of the load goes on until the server has recovered, for so long at most, ns
    #[serde(default)]
    pub recovery_ns: Option<u64>,
    /// loads that are held longer than `hold` says, ns, because a shorter hold could not decide the objectives
    #[serde(default)]
    pub lengthened: Vec<(f64, u64)>,
    /// the hold was not fixed, so loads with too few samples may be held longer
    #[serde(default)]
    pub lengthens: bool,
    /// the capacity is searched for, and `rungs` holds only where the search starts
    #[serde(default)]
    pub search: Option<SearchSchedule>,
}

/// A subject that is told to shut down (SIGTERM) under load, which ends the hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectStop {
    /// after the start of the hold, ns; whole seconds
    pub after_ns: u64,
    /// how long it may take to end, ns
    pub grace_ns: u64,
    /// it is started again on the same data, for the audit
    pub reads_back: bool,
}

/// How the bots of each rung arrive, as its author said it. `of` makes the pace of a rung of it.
///
/// Stored plans hold either the pace itself or `{"within": ns}`, so plans of earlier builds are read as they are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RampRule {
    /// the same pace on every rung, so the ramp takes longer with more units of load
    Pace(Ramp),
    /// all units of a rung within the same time, so they arrive faster with more of them
    Total {
        /// that time, ns; > 0
        within: u64,
    },
}

/// At which pace the units of load arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ramp {
    /// one unit of load (a game, a client) every so many ns
    Every(u64),
    /// so many units of load per second
    PerSecond(f64),
    /// all at once
    AtOnce,
}

/// How long each load is held.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldLength {
    /// a time, ns
    Time(u64),
    /// so many ticks due at the subject
    Ticks(u64),
    /// so many games played to their end
    Games(u64),
}

/// The law of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Arrivals {
    /// exponential gaps
    Poisson,
    /// equal gaps, a random phase per bot; a chat's gaps are uniform in their range
    Even,
    /// all at the same moment
    Burst,
    /// each answer starts the next
    Closed,
}

/// How this process makes the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// worker threads; `None`: one per core, more when descriptors ask for it
    pub workers: Option<usize>,
    /// SCHED_FIFO for the workers
    pub realtime: bool,
    /// busy wait before a planned instant, ns; at most 50 000
    pub spin_ns: u64,
    /// most attempts to open one connection before its bot gives up
    pub open_attempts: u32,
    /// measure the generator against a server that does nothing before the climb
    #[serde(default = "yes")]
    pub calibrate: bool,
}

/// Plans that were stored before the field existed were calibrated.
fn yes() -> bool {
    true
}
