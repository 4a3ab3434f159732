//! The plan of a run: types, ranges and units; no behaviour.

use std::path::PathBuf;

use ladder::Objective;
use serde::{Deserialize, Serialize};

use crate::target::Target;

/// One climb, completely decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// the server under test
    pub subject: Subject,
    /// the simulated clients
    pub bots: Bots,
    /// which loads, how long
    pub ladder: Ladder,
    /// what a rung must meet; never empty
    pub objectives: Vec<Objective>,
    /// the law of arrivals, named beside every number
    pub arrivals: Arrivals,
    /// an answer after this is late, ns; at least 1 ms
    pub patience_ns: u64,
    /// everything random comes from it
    pub seed: u64,
    /// how this process makes the load
    pub generator: Generator,
    /// the run's name (`--name master`)
    pub name: Option<String>,
    /// free text kept with the run
    pub note: Option<String>,
    /// path of the scenario file, where there was one
    pub scenario: Option<String>,
    /// hosts outside loopback and private ranges that the user may load
    pub may_load: Vec<String>,
}

/// The server under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// as the user wrote it: `arena`, `ws://…`
    pub name: String,
    /// how it comes to run
    pub source: SubjectSource,
    /// where its ticks are told
    pub ticks: TickSource,
    /// its tick rate, Hz; 0 when it has none
    pub tick_rate_hz: f64,
}

impl Subject {
    /// ns between two ticks; 0 when it has none
    pub fn tick_period_ns(&self) -> u64 {
        if self.tick_rate_hz > 0.0 { (1e9 / self.tick_rate_hz).round() as u64 } else { 0 }
    }
}

/// How the subject comes to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectSource {
    /// our reference server, started as a process of its own on a free loopback port
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
    /// runs already; we watch the process
    Running {
        /// where it listens
        target: Target,
        /// its process, when the user named one
        pid: Option<u32>,
    },
}

/// Where a subject's ticks are told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TickSource {
    /// it has no ticks
    None,
    /// a tick log in the arena's format; for a built-in server the path is chosen at start
    Log(Option<PathBuf>),
    /// only the clients' view
    Client,
}

/// The simulated clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bots {
    /// pairs of players of the arena
    Arena(ArenaBots),
    /// clients of an echo server; what calibration uses
    Echo(EchoBots),
}

/// Pairs of players.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArenaBots {
    /// player 1 fires every so many ns (110 ms)
    pub fast_ns: u64,
    /// player 2 (200 ms)
    pub slow_ns: u64,
    /// how pairs are kept together on their way in
    pub pairing: Pairing,
    /// share of the games that ask for a snapshot at every tick, in [0, 1]
    pub snapshots: f64,
    /// a game that has not ended after this is counted as a missing stop, ns
    pub longest_game_ns: u64,
}

/// How the two bots of a pair reach the server next to each other; the protocol knows no names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pairing {
    /// both connect back to back, the next pair right after: for servers that accept in order
    Pipelined,
    /// the second connects when the first is in, the next pair when both have started: for any server
    Strict,
}

/// Clients of an echo server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EchoBots {
    /// messages per second and client; 0 means a closed loop, each answer starts the next
    pub rate_per_s: f64,
    /// size of each message
    pub payload_bytes: usize,
}

/// Which loads, and how each is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    /// ascending, > 0, never empty
    pub rungs: Vec<f64>,
    /// `games`, `clients`, `requesters`, `req/s`, `in_flight`
    pub load_unit: String,
    /// how the bots arrive
    pub ramp: Ramp,
    /// between the ramp and the hold, ns
    pub settle_ns: u64,
    /// when a hold has seen enough
    pub hold: Hold,
    /// a fresh subject for each rung
    pub restart_per_rung: bool,
}

/// How the bots arrive.
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

/// When a hold has seen enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// a time, ns
    Time(u64),
    /// so many ticks due at the subject
    Ticks(u64),
    /// so many games played to their end
    Games(u64),
}

/// The law of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// exponential gaps
    Poisson,
    /// equal gaps, a random phase per bot
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
}
