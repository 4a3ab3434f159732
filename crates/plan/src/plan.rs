//! The plan of a run: types, ranges and units; no behaviour.

use std::collections::BTreeMap;
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
    /// clients of an echo server; what calibration uses. The target's scheme says over what: WebSocket or TCP lines
    Echo(EchoBots),
    /// people in a room where each line goes to all others
    Chat(ChatBots),
    /// requests over HTTP
    Http(HttpBots),
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

/// People in a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatBots {
    /// how the subject is spoken to
    pub dialect: Dialect,
    /// shortest time between two lines of one bot, ns; > 0
    pub gap_min_ns: u64,
    /// longest, ns; gaps are uniform in between, or exponential with their mean where arrivals are `poisson`
    pub gap_max_ns: u64,
    /// shortest line in bytes, its end included; at least `LINE_BYTES_MIN`
    pub line_min_bytes: usize,
    /// longest line in bytes, its end included
    pub line_max_bytes: usize,
    /// so many of the bots speak, the first ones; `None`: all
    pub talkers: Option<u64>,
    /// the room, channel or subject, in letters that every dialect allows; the bots put IRC's `#` in front
    pub room: String,
    /// the subject sends each line back to its sender too
    pub echoes: bool,
    /// shares of the crowd that behave badly; they are judged apart. The shares add up to at most 1
    pub misbehave: Vec<Misbehaviour>,
}

/// A line carries who sent it, which of its lines it is, when it was planned, and a check: 14 characters and its end.
pub const LINE_BYTES_MIN: usize = 15;

impl ChatBots {
    /// Mean time between two lines of one bot, ns.
    pub fn gap_mean_ns(&self) -> f64 {
        (self.gap_min_ns as f64 + self.gap_max_ns as f64) / 2.0
    }

    /// How the bot number `unit` of the whole crowd behaves badly, if it does.
    ///
    /// Kinds are spread evenly over the crowd (a golden-ratio sequence), so that shares hold in any part of it.
    pub fn misconduct_of(&self, unit: u64) -> Option<&Misbehaviour> {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let place = ((unit + 1) as f64 * GOLDEN).fract();
        let mut end = 0.0;
        self.misbehave.iter().find(|misbehaviour| {
            end += misbehaviour.share;
            place < end
        })
    }

    /// Whether the bot number `unit` speaks. Those that send nothing sensible do not.
    pub fn speaks(&self, unit: u64) -> bool {
        let is_mute = |misbehaviour: &Misbehaviour| {
            matches!(misbehaviour.kind, Misconduct::HalfOpen | Misconduct::Malformed)
        };
        self.talkers.is_none_or(|talkers| unit < talkers) && !self.misconduct_of(unit).is_some_and(is_mute)
    }

    /// How many of a crowd of `units` speak.
    pub fn speaker_count(&self, units: u64) -> u64 {
        (0..units).filter(|&unit| self.speaks(unit)).count() as u64
    }
}

/// An IRC message, its end included (RFC 2812, section 2.3); servers cut off what is longer.
const IRC_MESSAGE_BYTES: usize = 512;
/// `:nick!user@host ` as servers put it in front: nicknames of 9, users of 20, hosts of 63 bytes at most.
const IRC_PREFIX_BYTES: usize = 1 + 9 + 1 + 20 + 1 + 63 + 1;

impl Dialect {
    /// Bytes that are left for a line and its end in a room; `None`: the protocol sets no limit that matters here.
    pub fn line_bytes_most(self, room: &str) -> Option<usize> {
        match self {
            Dialect::Lines | Dialect::Nats | Dialect::Mqtt => None,
            // The line's own end counts as one byte wherever it is sent; IRC's has two.
            Dialect::Irc => {
                let around =
                    IRC_PREFIX_BYTES + "PRIVMSG #".len() + room.len() + " :".len() + "\r\n".len() - 1;
                Some(IRC_MESSAGE_BYTES.saturating_sub(around))
            }
        }
    }
}

/// How a chat is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// bare lines: our own chat server, and whatever netcat could talk to
    Lines,
    /// RFC 2812: register, join, PRIVMSG, PING
    Irc,
    /// the NATS client protocol: SUB, PUB, MSG
    Nats,
    /// MQTT 3.1.1 at QoS 0: SUBSCRIBE, PUBLISH; a publisher that subscribes gets its own messages too
    Mqtt,
}

/// A kind of bad behaviour and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Misbehaviour {
    /// what they do
    pub kind: Misconduct,
    /// of the crowd, in (0, 1]
    pub share: f64,
    /// ns between two storms; 0 for all other kinds
    pub period_ns: u64,
}

/// What some clients do to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misconduct {
    /// reads 1 KB per second
    SlowReader,
    /// stops reading once it has joined
    Stalled,
    /// shuts its sending side and goes on listening
    HalfOpen,
    /// all of them cut their connections and come back at once, every period
    ReconnectStorm,
    /// sends what the protocol does not allow
    Malformed,
}

/// Requests over HTTP, and the connections that they go over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpBots {
    /// when a request is planned, and what a load counts
    pub model: HttpModel,
    /// 1.1 or 2
    pub version: HttpVersion,
    /// connections stay for further requests; `false`: each request has one of its own
    pub keep_alive: bool,
    /// most requests at once on one connection of HTTP/2; 1 for HTTP/1.1
    pub streams: u32,
    /// what is asked; never empty
    pub requests: Vec<HttpRequest>,
    /// what `{name}` in a path, header or body stands for
    pub variables: Vec<Variable>,
    /// a request that was not answered whole after this is given up, and its connection with it, ns
    pub timeout_ns: u64,
    /// so many redirects are followed, to the same host; 0: a redirect is an answer like any other
    pub redirects_max: u32,
    /// an answer's body may be so long
    pub body_bytes_max: u64,
}

/// When a request is planned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpModel {
    /// by a clock: a load is requests per second over all connections. One that finds all busy waits for the first to be
    /// free, and is timed from its plan
    Open {
        /// opened before the hold
        connections: u64,
        /// more are opened up to this many when all are busy; at least `connections`
        connections_max: u64,
    },
    /// each answer starts the next request of its requester: a load is requesters, each with one connection
    Closed {
        /// between an answer and the next request, ns
        think_ns: u64,
    },
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpVersion {
    /// RFC 9112
    #[serde(rename = "1.1")]
    One,
    /// RFC 9113; without TLS by prior knowledge
    #[serde(rename = "2")]
    Two,
}

/// One kind of request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// as it is called in tables; unique
    pub name: String,
    /// how often it is chosen, relative to the others; > 0
    pub weight: f64,
    /// `GET`, `POST` …
    pub method: String,
    /// path and query, beginning with `/`; may hold `{variable}`
    pub path: String,
    /// name and value; values may hold `{variable}`
    pub headers: Vec<(String, String)>,
    /// may hold `{variable}`
    pub body: String,
    /// what a right answer is
    pub check: HttpCheck,
    /// what is kept of an answer for later requests of the same connection: variable and JSON pointer (RFC 6901)
    pub capture: Vec<(String, String)>,
}

/// What a right answer is. An answer that is not right fails the rung.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpCheck {
    /// first and last status of each range, both included; empty: 200 to 399
    pub status: Vec<(u16, u16)>,
    /// the body holds this text
    pub contains: Option<String>,
    /// the body is JSON, with this value at that pointer (RFC 6901); without a value anything may stand there
    pub json: Vec<(String, Option<serde_json::Value>)>,
    /// shortest and longest body in bytes
    pub body_bytes: Option<(u64, u64)>,
}

impl HttpCheck {
    /// Whether the body must be kept to be checked.
    pub fn reads_body(&self) -> bool {
        self.contains.is_some() || !self.json.is_empty()
    }

    /// Whether a status is right.
    pub fn allows(&self, status: u16) -> bool {
        match self.status.as_slice() {
            [] => (200..=399).contains(&status),
            ranges => ranges.iter().any(|&(first, last)| (first..=last).contains(&status)),
        }
    }
}

/// A name that stands for changing text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    /// without its braces
    pub name: String,
    /// what it stands for
    pub law: VariableLaw,
}

/// How the text of a variable is chosen, anew for each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableLaw {
    /// a whole number, all equally likely, both ends included
    Whole(i64, i64),
    /// one of these, all equally likely; never empty
    OneOf(Vec<String>),
    /// 1, 2, 3 …, different at every request of the whole trial
    Counter,
    /// what the last answer with a capture of that name held on this connection; this text before there was one
    Captured(String),
}

/// One combination of a sweep's axes; every load is held once in each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// axis and value: `service` `object`, `view` `foreground` …
    pub names: BTreeMap<String, String>,
    /// options of the built-in server, behind those of the subject
    pub options: Vec<String>,
    /// only this one of the bots' requests; `None`: all, by weight
    pub request: Option<usize>,
}

/// Which loads, and how each is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    /// ascending, > 0, never empty
    pub rungs: Vec<f64>,
    /// `games`, `clients`, `requesters`, `req/s`, `in_flight`
    pub load_unit: String,
    /// how the bots of each rung arrive
    pub ramp: RampRule,
    /// between the ramp and the hold, ns
    pub settle_ns: u64,
    /// when a hold has seen enough
    pub hold: Hold,
    /// a fresh subject for each rung
    pub restart_per_rung: bool,
    /// combinations in each of which all loads are held, in this order; empty: there is but one
    #[serde(default)]
    pub cells: Vec<Cell>,
    /// loads go on beyond the last rung, one more each, until a request fails
    #[serde(default)]
    pub is_open_ended: bool,
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
