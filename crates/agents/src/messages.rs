//! What coordinator and agents say to each other, and how it is encoded.
//!
//! Control messages are JSON, so that a version can read that it is spoken to by another. What is measured is postcard behind
//! deflate: a second of ten operations is a few KB.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

use anyhow::Context as _;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use measure::{Event, Interval, Reading, Sample};
use plan::{Scheme, Target};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What speaks: programs of other versions may measure other things, and do not merge.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Changes with every change of these messages or of what they contain.
pub const WIRE: u32 = 1;
/// A message that unpacks to more is not one of ours.
const UNPACKED_MOST: u64 = 256 << 20;

/// Anyone asks every agent who it is.
pub const WHO: &str = "stepladder.who";
/// What is measured comes up below this subject.
pub const UP: &str = "stepladder.up";

/// Where an agent is asked.
pub fn ask_of(id: &str) -> String {
    format!("stepladder.ask.{id}")
}

/// Where the coordinator of a session announces how things stand.
pub fn cues_of(session: &str) -> String {
    format!("stepladder.cue.{session}")
}

/// Where an agent of a session tells how things stand.
pub fn state_of(session: &str, agent: usize) -> String {
    format!("stepladder.state.{session}.{agent}")
}

/// Where all of them do.
pub fn states_of(session: &str) -> String {
    format!("stepladder.state.{session}.*")
}

/// Where what an agent of a session measures comes up.
pub fn up_of(session: &str, agent: usize) -> String {
    format!("{UP}.{session}.{agent}")
}

/// Where that of all of them does.
pub fn ups_of(session: &str) -> String {
    format!("{UP}.{session}.*")
}

/// An agent, as it introduces itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// version of the program
    pub version: String,
    /// see `WIRE`
    pub wire: u32,
    /// as its user calls it
    pub name: String,
    /// its own, new with each start
    pub id: String,
    /// the machine's name
    pub host: String,
    /// boot of the machine; the same: the same machine
    pub boot: String,
    /// network namespace; the same on the same machine: the same loopback
    pub net: String,
    /// namespace of processes
    pub pids: String,
    /// its process
    pub pid: u32,
    /// kind of processor
    pub arch: String,
    /// cores that it may use
    pub cores: u32,
    /// descriptors that a table may have
    pub descriptors: u64,
    /// ephemeral ports per source address and target
    pub ports: u64,
    /// most bots that it plays; `None`: no limit of its user
    pub bots_most: Option<u64>,
    /// the session that it belongs to
    pub session: Option<String>,
}

/// Who holds the agents of a broker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// its session
    pub session: String,
    /// its machine
    pub host: String,
    /// its process
    pub pid: u32,
    /// its version
    pub version: String,
}

/// What a coordinator asks of one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// what its clock reads
    Time,
    /// to play for this session, as its agent of this number
    Join {
        /// which holds the lease
        session: String,
        /// from 0
        number: usize,
    },
    /// to get ready for a trial
    Prepare(Box<Order>),
    /// to begin it
    Begin(Begin),
    /// it is its turn to pair players; answered when that is over
    Pair {
        /// what the one before knew
        is_in_step: bool,
    },
    /// it is needed no longer
    Leave,
}

/// What an agent answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// its clock, ns
    Time(u64),
    /// done
    Done,
    /// ready, over this link to the subject
    Ready(String),
    /// its turn is over; whether the server is in step
    Paired(bool),
    /// it will not, and why
    Refused(String),
}

/// One trial for one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// number of the trial in the session
    pub trial: u32,
    /// SHA-256 of the bundle that has the plan, as hexadecimal digits: its name in the object store
    pub bundle: String,
    /// in the plan's unit of load
    pub load: f64,
    /// the subject as written
    pub target: Target,
    /// the same, resolved and pinned
    pub address: SocketAddr,
    /// of a cluster, all of its members
    pub members: Vec<SocketAddr>,
    /// of a sweep's cell: the one request that is made
    pub request: Option<usize>,
    /// the part of the load that goes on after the hold
    pub recovery_share: Option<f64>,
    /// its own null server, which speaks as this scheme does, is the subject
    pub null: Option<Scheme>,
    /// workers of all agents
    pub workers: usize,
    /// the first that is this agent's
    pub first: usize,
    /// how many are
    pub count: usize,
    /// how far the clocks of two agents may differ, ns
    pub clock_bound_ns: u64,
    /// it reads the machine that it runs on
    pub reads_machine: bool,
    /// processes on that machine that belong to the climb
    pub load_pids: Vec<u32>,
    /// pairing is done in turns
    pub in_turns: bool,
}

/// What a trial is made of, the same for all agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bundle {
    /// a `Plan` as JSON, without the values of secrets
    pub plan: String,
    /// path and text of files that bots take rows from
    pub files: Vec<(String, String)>,
}

/// The common start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// of this trial
    pub trial: u32,
    /// the zero of the trial's clock, as the agent's own clock reads it, ns
    pub zero_ns: u64,
    /// the same, ns since the epoch, by the coordinator's clock
    pub realtime_zero_ns: u64,
}

/// How things stand in a trial: all that the coordinator has decided so far. Said again and again, so one that is lost does not
/// matter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cue {
    /// `None`: between two trials
    pub trial: Option<u32>,
    /// instants of the timeline, in the order of `Timeline::instants`; `u64::MAX` while unknown
    pub instants: Vec<u64>,
    /// how many bots have reached each meeting point, over all agents
    pub met: [u64; 2],
}

/// How things stand at an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// `None`: it plays none
    pub trial: Option<u32>,
    /// connections open
    pub open: u64,
    /// units of load that are in
    pub joined: u64,
    /// failed attempts
    pub failed: u64,
    /// how many of its bots have reached each meeting point
    pub met: [u64; 2],
    /// a pair of its waits for a turn
    pub wants_to_pair: bool,
    /// it learnt of an instant so long after it had come, ns
    pub late_ns: u64,
}

/// What comes up from an agent, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Up {
    /// number in the session, from 0
    pub seq: u64,
    /// of this trial
    pub trial: u32,
    /// what
    pub what: What,
}

/// What is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum What {
    /// a second of all its workers
    Second {
        /// merged
        interval: Box<Interval>,
        /// what happened in it
        events: Vec<Event>,
    },
    /// readings of its process, and of its machine
    Samples(Vec<OneSample>),
    /// a piece of the parts of its ledger
    Ledger {
        /// it is the last
        is_last: bool,
        /// postcard of `Vec<LedgerPart>`, cut into pieces
        bytes: Vec<u8>,
    },
    /// all was handed over
    Done,
    /// a bug of ours
    Bug(String),
    /// it cannot go on
    Lost(String),
}

/// A sample as the store writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneSample {
    at_ns: u64,
    who: String,
    name: String,
    value: f64,
}

impl From<&Sample> for OneSample {
    fn from(sample: &Sample) -> Self {
        let (who, name) = sample.what.texts();
        OneSample { at_ns: sample.at_ns, who: who.to_owned(), name: name.to_owned(), value: sample.value }
    }
}

impl From<OneSample> for Sample {
    fn from(one: OneSample) -> Self {
        let OneSample { at_ns, who, name, value } = one;
        Sample { at_ns, what: Reading::of_texts(&who, &name), value }
    }
}

/// A control message.
pub fn to_json(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("control messages have texts as keys and finite numbers")
}

/// Reads one. Errors: it is none of ours.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(bytes).context("the broker handed over a message that is none of Stepladder's")
}

/// What is measured, packed.
pub fn pack(message: &impl Serialize) -> Vec<u8> {
    let bytes = postcard::to_stdvec(message).expect("what is measured has no maps of unknown length");
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&bytes).and_then(|()| packed.finish()).expect("writing to memory does not fail")
}

/// Reads it. Errors: it is damaged, or unpacks to more than any second or bundle.
pub fn unpack<T: DeserializeOwned>(packed: &[u8]) -> anyhow::Result<T> {
    let mut bytes = Vec::new();
    DeflateDecoder::new(packed)
        .take(UNPACKED_MOST)
        .read_to_end(&mut bytes)
        .context("what an agent measured is damaged")?;
    postcard::from_bytes(&bytes).context("what an agent measured cannot be read")
}

/// 128 bits that nobody else has, as hexadecimal digits.
pub fn random_id() -> String {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
