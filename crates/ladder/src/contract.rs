//! The answers of a run as published: the JSON contract, schema 1.
//!
//! Shape: one `Climb` per run, one `Rung` per trial of the subject, in the order they were held.
//! Units: times in ns, shares in [0, 1], loads in `load_unit`. A figure that must not be reported (too few samples, not
//! measured) is null and never zero. Additions are free, any other change raises `SCHEMA`.
//! Invariant: the serialised form validates against tests/run.schema.json, as long as one rung was held.

mod figures;

use std::collections::BTreeMap;

use measure::trial::kind;
use measure::{AgentFacts, Event, Flow, LoadUnit, Summary, ValueSummary};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

use crate::answers::TickSourceFigures;
use crate::capacity::Capacity;
use crate::disturbance::Disturbance;
use crate::gate::GateResult;
use crate::judge::{Evidence, NOBODY_IN, SERVER_EXITED, Verdict};
use crate::network::NetworkFigures;
use crate::steady::Steadiness;
use crate::trend::TrendFigures;

pub use figures::*;

/// The contract's number.
pub const SCHEMA: u32 = 1;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Climb {
    /// `SCHEMA`
    pub schema: u32,
    /// what was run, on what
    pub run: RunFacts,
    /// the generator against a server that does nothing
    pub generator: GeneratorFigures,
    /// every rung, in the order they were held
    pub rungs: Vec<Rung>,
    /// how many
    pub capacity: Capacity,
    /// the answers in words
    pub conclusions: Vec<Conclusion>,
    /// what was asked of the whole run; they decide the exit code and not the verdict
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<GateResult>>")]
    pub gates: Vec<GateResult>,
    /// of the whole run
    pub verdict: Verdict,
    /// why the run is not whole: it was interrupted, killed or broke off, or is still recorded; absent of a whole one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub ended_early: Option<String>,
}

/// The part of a stored `Climb` that every version wrote alike.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StoredAnswers {
    /// the answers in words
    pub conclusions: Vec<Conclusion>,
}

/// What is known of a run besides its trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct RunFacts {
    /// unique within a store
    pub id: String,
    /// `--name`
    pub name: Option<String>,
    /// as the user wrote it
    pub subject: String,
    /// path of the scenario file
    pub scenario: Option<String>,
    /// everything random came from it
    pub seed: u64,
    /// `poisson`, `even`, `burst`, `closed`
    pub arrivals: String,
    /// when it began, ms since the epoch
    pub started_unix_ms: u64,
    /// version of this program
    pub stepladder: String,
    /// commit of the user's working directory
    pub git: Option<String>,
    /// the command line
    pub command: String,
    /// the machine
    #[ts(type = "Record<string, unknown>")]
    pub environment: Map<String, Value>,
    /// server and generator run on the same cores
    pub shared_cores: bool,
    /// what the capacity counts: `games`, `clients` …
    pub capacity_unit: LoadUnit,
}

/// Of the environment: the run that this one went on behind, and how many trials it took over.
pub const RESUMED: &str = "resumed";

/// The generator as weighed before the climb.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct GeneratorFigures {
    /// what was spoken to the null server: `http`, `websocket`, `lines`
    pub protocol: Option<String>,
    /// response of the null server at an easy rate
    pub own_latency_ns: Option<Summary>,
    /// send lag at that rate
    pub send_lag_ns: Option<Summary>,
    /// most messages per second
    pub ceiling_per_s: Option<f64>,
}

/// One load held once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Rung {
    /// number of its trial within the run
    pub seq: u32,
    /// what it was asked to hold
    pub load: f64,
    /// of what
    pub load_unit: LoadUnit,
    /// in a sweep: axis and value; absent elsewhere
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<BTreeMap<String, String>>,
    /// simulated clients
    pub bots: u64,
    /// what it is worth
    pub verdict: Verdict,
    /// why it did not pass
    pub reason: Option<String>,
    /// short name of what gave first: `ticks.late_share`, `drifting`, `server exited` …
    pub signal: Option<String>,
    /// when it was held; null where the hold never began
    pub hold: Option<HoldSpan>,
    /// measured, after the warm-up cut
    pub hold_s: f64,
    /// what ended the hold
    pub ended_by: String,
    /// how the hold went
    pub steady: Option<Steadiness>,
    /// share of disturbed seconds
    pub disturbed_share: Option<f64>,
    /// what disturbed them; null where nothing did
    pub disturbance: Option<Disturbance>,
    /// what else must be known of it, also when it passed
    pub remark: Option<String>,
    /// messages planned in the hold
    pub offered: u64,
    /// of these, handed to the kernel
    pub sent: u64,
    /// of these, never handed to the kernel
    pub not_sent: u64,
    /// replied to
    pub answered: u64,
    /// of the answered: after the patience
    pub late: u64,
    /// replied to wrongly
    pub failed: u64,
    /// lost with their connection
    pub lost: u64,
    /// without a reply when the drain ended
    pub unanswered_at_stop: u64,
    /// the same by operation, and where every message ended
    pub flows: BTreeMap<String, Flow>,
    /// errors by cause
    pub errors: BTreeMap<String, u64>,
    /// the first errors of each cause as they were met, at most three of each
    pub error_samples: Vec<ErrorSample>,
    /// answers per second; messages that owe none count when sent
    pub rate_per_s: f64,
    /// sent of what the plan meant to send, where it meant a rate
    pub pace_share: Option<f64>,
    /// both directions
    pub bytes_per_s: Option<f64>,
    /// lives of bots that end with their function and are followed by others; absent where bots have but one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub sessions: Option<SessionFigures>,
    /// connections
    pub connections: ConnectionFigures,
    /// answered − planned; its percentiles count unanswered messages as infinite, which is null here
    pub response_ns: Option<Summary>,
    /// the same of each operation that is kept apart: those of scripts
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(optional, as = "Option<BTreeMap<String, Summary>>")]
    pub operations_ns: BTreeMap<String, Summary>,
    /// what scripts recorded with `bot.record`, by name; without a unit
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(optional, as = "Option<BTreeMap<String, ValueSummary>>")]
    pub recorded: BTreeMap<String, ValueSummary>,
    /// answered − sent
    pub service_ns: Option<Summary>,
    /// sent − planned
    pub send_lag_ns: Option<Summary>,
    /// read − readable
    pub receive_lag_ns: Option<Summary>,
    /// silences of all connections at once, of 20 ms or more while at least four answers were owed; absent where
    /// there was none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub stall_ns: Option<Summary>,
    /// from the send of a request to the first byte of its answer
    pub first_byte_ns: Option<Summary>,
    /// the part of the handshakes that TLS took
    pub tls_ns: Option<Summary>,
    /// of messages without a reply when the drain ended: they took at least so long
    pub unanswered_ns: Option<Summary>,
    /// arrivals met but a few places of the server's tick, so that latencies are those of these places; null where nobody
    /// counted
    pub aliased: Option<bool>,
    /// the server's ticks; its clients' view of them where it tells none
    pub ticks: Option<TickFigures>,
    /// what each source of ticks told, the judged one first; absent where there is only one
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<TickSourceFigures>>")]
    pub tick_sources: Vec<TickSourceFigures>,
    /// ticks as its clients saw them
    pub client_ticks: Option<ClientTickFigures>,
    /// services on this machine that the server asked: `redis-server on port 6379`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<String>>", optional)]
    pub services: Vec<String>,
    /// the networks that were emulated between the clients and the server; absent where there were none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub network: Option<NetworkFigures>,
    /// the agents on other machines that made the load, and how each did; absent where this process made it
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<AgentFacts>>")]
    pub agents: Vec<AgentFacts>,
    /// what the server draws beside its services, as it says itself
    pub frames: Option<FrameFigures>,
    /// the books of broadcasts
    pub deliveries: Option<DeliveryFigures>,
    /// what was claimed against what is
    pub audit: Option<AuditFigures>,
    /// how the server ended under load; absent where it was not told to
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<ShutdownFigures>,
    /// what became of the changes of cheaters; absent where there were none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cheats: Option<CheatFigures>,
    /// the server's process tree
    pub subject: Option<SubjectFigures>,
    /// what the server and the machine did over the hold, by name: every reading of fixed name; absent in older runs
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(optional, as = "Option<BTreeMap<String, SignalLevel>>")]
    pub activity: BTreeMap<String, SignalLevel>,
    /// how the server's figures went in a hold of five minutes or more; absent of shorter ones
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub trends: Option<TrendFigures>,
    /// this process
    pub worker: WorkerFigures,
    /// what a user told of while it was held (`stepladder mark`); absent where there was nothing
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<Mark>>")]
    pub marks: Vec<Mark>,
    /// what it was judged by
    pub evidence: Evidence,
    /// for other programs: what only some bots and servers tell, and under their first names some figures from above.
    /// It is written and never read
    #[ts(skip)]
    pub extra: Map<String, Value>,
}

/// What a user told of while a load was held: `deployed 1.4`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Mark {
    /// since the start of the trial
    pub at_ns: u64,
    /// as it was told; never markup
    pub text: String,
}

impl Mark {
    /// Those among the events of a trial, in their order.
    pub fn among<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Mark> {
        let marks = events.into_iter().filter(|event| event.kind == kind::MARK);
        marks.map(|event| Mark { at_ns: event.at_ns, text: event.text.clone() }).collect()
    }

    /// `marked at 12.3 s: deployed 1.4`
    pub fn in_words(&self) -> String {
        format!("marked at {:.1} s: {}", self.at_ns as f64 / 1e9, self.text)
    }
}

impl Rung {
    /// What its clients waited for, and how long: responses, else deliveries.
    pub(crate) fn latency(&self) -> Option<(&'static str, &Summary)> {
        let deliveries = || Some(("deliveries", self.deliveries.as_ref()?.latency_ns.as_ref()?));
        self.response_ns.as_ref().map(|times| ("responses", times)).or_else(deliveries)
    }

    /// Whether the server's process ended under this load.
    pub(crate) fn server_exited(&self) -> bool {
        self.signal.as_deref() == Some(SERVER_EXITED)
    }

    /// True when no client was let in, neither before the rung nor during it.
    pub fn let_nobody_in(&self) -> bool {
        self.signal.as_deref() == Some(NOBODY_IN)
    }
}

/// One answer in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Conclusion {
    /// `how_many`, `why_not_more`, `can_i_trust_it`; and what the workload concludes besides
    pub id: String,
    /// one or two sentences
    pub text: String,
    /// the figures behind it
    #[ts(type = "Record<string, unknown>")]
    pub evidence: Map<String, Value>,
}

impl Climb {
    /// Places of the rungs of each cell, in the order in which the cells were held.
    pub(crate) fn rungs_by_cell(&self) -> Vec<Vec<usize>> {
        let mut cells: Vec<Vec<usize>> = Vec::new();
        for (at, rung) in self.rungs.iter().enumerate() {
            match cells.iter_mut().find(|cell| self.rungs[cell[0]].cell == rung.cell) {
                Some(cell) => cell.push(at),
                None => cells.push(vec![at]),
            }
        }
        cells
    }
}

impl Conclusion {
    /// `evidence` is a JSON object; what is none is left out.
    pub fn new(id: &str, sentences: &[String], evidence: Value) -> Conclusion {
        let evidence = match evidence {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        Conclusion { id: id.to_owned(), text: sentences.join(" "), evidence }
    }
}
