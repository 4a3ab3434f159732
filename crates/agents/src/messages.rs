//! What coordinator and agents say to each other, and how it is encoded.
//!
//! Control messages are JSON, so that a version can read that it is spoken to by another. What is measured is postcard behind
//! deflate: a second of ten operations is a few KB.

mod watching;

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

use anyhow::Context as _;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use measure::{Event, Interval, Reading, Sample, TickSecond};
use plan::{Scheme, Target};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::limits::Limits;

pub use watching::{Followed, Found, Profile, Sought, Sources, Watch};

/// What speaks: programs of other versions may measure other things, and do not merge.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Changes with every change of these messages or of what they contain.
pub const WIRE: u32 = 4;
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
pub fn announcements_of(session: &str) -> String {
    format!("stepladder.announcement.{session}")
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

/// The session's name where what is measured and told comes from agents that watch its server: they are numbered apart.
pub fn watchers_of(session: &str) -> String {
    format!("{session}-watch")
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
    /// what its user allows
    pub limits: Limits,
    /// the session that it belongs to
    pub session: Option<String>,
    /// it makes no load and watches the server of its machine
    pub watches: bool,
    /// its user lets climbs profile that
    pub profiles: bool,
}

impl Hello {
    /// Only the same version measures the same things.
    pub fn is_of_this_version(&self) -> bool {
        (self.version.as_str(), self.wire) == (VERSION, WIRE)
    }
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
    /// whether it can watch this server
    Find(Sought),
    /// to read these ticks from now on, in place of those before
    Follow(Sources),
    /// to watch in a trial
    Watch(Watch),
    /// the trial is over
    EndWatch,
    /// a step of a profile
    Profile(Profile),
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
    /// the server is there
    Found(Found),
    /// it watches no more; the tick rate that it found, Hz
    Watched(Option<f64>),
    /// what was seen is in the object store, under this name: a packed `watch::profile::Seen`
    Profiled(String),
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
pub struct Announcement {
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
        /// packed `Vec<PackedPart>`, cut into pieces
        bytes: Vec<u8>,
    },
    /// all was handed over
    Done,
    /// a bug of ours
    Bug(String),
    /// it cannot go on
    Lost(String),
    /// a second of the server's ticks
    Ticks(Box<TickSecond>),
    /// what happened to the server
    Events(Vec<Event>),
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

/// A random id of 128 bits, as hexadecimal digits.
pub fn random_id() -> String {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Valid messages.
#[cfg(feature = "fuzz")]
pub fn examples() -> Vec<Vec<u8>> {
    use measure::ledger::{PackedPart, SharedLedger};
    use measure::{LedgerPart, LedgerShape, Measure, MetricNames, Phase};

    let names = MetricNames::new(&["say"], &["cut"], &["delivered"], &["refused"]).with_timed_ops(1);
    let mut interval = Interval::new(&names);
    interval.record(Measure::Response, Phase::Hold, 5_000_000);
    let what = What::Second { interval: Box::new(interval), events: Vec::new() };
    let mut part = LedgerPart::new(LedgerShape::alone(2, 2), SharedLedger::default());
    part.asked(0, 5);
    part.joined(0, 9);
    part.next_seq(0);
    part.departed(0, 0, 50);
    let parts = vec![PackedPart::from(part)];
    [postcard::to_stdvec(&Up { seq: 0, trial: 0, what }), postcard::to_stdvec(&parts)]
        .into_iter()
        .flatten()
        .collect()
}

/// Reads bytes as whatever comes from agents.
#[cfg(feature = "fuzz")]
pub fn read_any(bytes: &[u8]) {
    use measure::ledger::PackedPart;

    if let Ok(up) = postcard::from_bytes::<Up>(bytes)
        && let What::Second { interval, .. } = up.what
    {
        let names =
            measure::MetricNames::new(&["say"], &["cut"], &["delivered"], &["refused"]).with_timed_ops(1);
        if let Some(second) = interval.of_names(&names) {
            let mut sum = Interval::new(&names);
            let _ = sum.add(&second);
        }
    }
    let parts = postcard::from_bytes::<Vec<PackedPart>>(bytes).unwrap_or_default();
    let parts: Option<Vec<_>> = parts.into_iter().map(|part| part.unpacked(256)).collect();
    if let Some(parts) = parts
        && parts.iter().all(|part| part.senders() == parts[0].senders())
    {
        measure::ledger::close(&parts);
    }
}

#[cfg(test)]
mod tests {
    use measure::{Flow, Measure, MetricNames, Phase};
    use proptest::prelude::*;

    use super::*;

    fn second(durations: &[(u64, bool)], told: u64) -> Interval {
        let names =
            MetricNames::new(&["shot", "ask"], &["reset"], &["games"], &["refused"]).with_timed_ops(1);
        let mut interval = Interval::new(&names);
        (interval.index, interval.workers) = (7, 1);
        *interval.flow_mut(0, Phase::Hold) = Flow { offered: told, sent: told, told, ..Flow::default() };
        (interval.errors[0], interval.connections.open_min, interval.busy_share_max) = (told, told, 0.25);
        for (ns, is_hold) in durations {
            let phase = if *is_hold { Phase::Hold } else { Phase::Ramp };
            interval.record(Measure::Response, phase, *ns);
            interval.of_op_mut(0).expect("it is timed").record(*ns);
        }
        interval
    }

    /// As the coordinator gets it.
    fn sent(interval: &Interval) -> Interval {
        let what = What::Second { interval: Box::new(interval.clone()), events: Vec::new() };
        let up: Up = unpack(&pack(&Up { seq: 3, trial: 1, what })).expect("it can be read");
        let What::Second { interval: read, .. } = up.what else { panic!("a second was sent") };
        read.of_names(&interval.metric_names).expect("it has these names")
    }

    proptest! {
        #[test]
        fn seconds_of_agents_merge_bucket_for_bucket_as_those_of_workers(
            parts in proptest::collection::vec(
                (proptest::collection::vec((1u64..10_000_000_000, proptest::bool::ANY), 0..60), 0u64..1_000), 1..6
            ),
        ) {
            let seconds: Vec<Interval> = parts.iter().map(|(durations, told)| second(durations, *told)).collect();
            let sum = |seconds: &mut dyn Iterator<Item = Interval>| {
                let mut sum = seconds.next().expect("one");
                seconds.for_each(|second| sum.add(&second).expect("it balances"));
                sum
            };
            let whole = sum(&mut seconds.iter().cloned());
            prop_assert_eq!(&sum(&mut seconds.iter().map(sent)), &whole);
            // Agents merge their workers' seconds before.
            let (left, right) = seconds.split_at(seconds.len() / 2);
            let halves: Vec<Interval> = [left, right]
                .into_iter()
                .filter(|half| !half.is_empty())
                .map(|half| sent(&sum(&mut half.iter().cloned())))
                .collect();
            prop_assert_eq!(sum(&mut halves.into_iter()), whole);
        }
    }

    #[test]
    fn a_second_of_other_names_is_refused_and_damage_is_said() {
        let read: Interval =
            postcard::from_bytes(&postcard::to_stdvec(&second(&[(5, true)], 1)).unwrap()).unwrap();
        assert!(read.of_names(&MetricNames::new(&["shot"], &[], &[], &[])).is_none());
        let packed = pack(&OneSample { at_ns: 1, who: "worker".into(), name: "cpu_s".into(), value: 1.0 });
        assert!(unpack::<OneSample>(&packed[..packed.len() / 2]).is_err());
        assert!(unpack::<Up>(b"not packed").is_err());
    }
}
