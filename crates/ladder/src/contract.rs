//! The answers of a run as published: the JSON contract, schema 1.
//!
//! Shape: one `Climb` per run, one `Rung` per trial of the subject, in the order they were held.
//! Units: times in ns, shares in [0, 1], loads in `load_unit`. A figure that must not be reported (too few samples, not
//! measured) is null and never zero. Additions are free, any other change raises `SCHEMA`.
//! Invariant: the serialised form validates against tests/run.schema.json, as long as one rung was held.

use std::collections::BTreeMap;

use measure::ledger::{PairBooks, SumOfBooks};
use measure::trial::kind;
use measure::{
    AgentFacts, Audit, Cheats, Event, Flow, LateIntervals, LoadUnit, ProcessFigures, Role, Summary,
    TickCounts, Trial, TrialConnections, ValueSummary,
};
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

/// What the bots read back from the server after the hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct AuditFigures {
    /// facts
    pub checked: u64,
    /// of these, other than they must be
    pub wrong: u64,
    /// further facts that were to be read back and were not: the server refused or did not answer
    #[serde(default, skip_serializing_if = "is_none")]
    #[ts(optional, as = "Option<u64>")]
    pub unread: u64,
    /// `FAIL` when one was wrong, `INCONCLUSIVE` when none was checked or some were not read
    pub verdict: Verdict,
}

/// Of a count that older readers do not know.
fn is_none(count: &u64) -> bool {
    *count == 0
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

impl From<Audit> for AuditFigures {
    fn from(Audit { checked, wrong, unread }: Audit) -> Self {
        let verdict = match (checked, wrong, unread) {
            (1.., 1.., _) => Verdict::Fail,
            (1.., 0, 0) => Verdict::Pass,
            _ => Verdict::Inconclusive,
        };
        AuditFigures { checked, wrong, unread, verdict }
    }
}

/// A server that was told to end under load (SIGTERM).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ShutdownFigures {
    /// when it was told, since the start of the trial
    pub told_ns: u64,
    /// from then until it exited with status 0; null where it did not
    pub exited_after_ns: Option<u64>,
    /// whether it could be started again; null where nobody tried
    pub is_back: Option<bool>,
    /// what became of requests; null where the clients do not say
    pub requests: Option<ShutdownRequests>,
}

/// Requests at the end of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ShutdownRequests {
    /// had left before it was told; each must be answered
    pub under_way: u64,
    /// of these, answered, rightly or wrongly
    pub answered: u64,
    /// of these, refused or never answered
    pub dropped: u64,
    /// sent or planned later
    pub later: u64,
    /// of these, refused, lost or never sent, as they may be
    pub later_refused: u64,
}

impl ShutdownFigures {
    /// Of a trial; `None`: its server was not told to end.
    pub fn of(trial: &Trial) -> Option<ShutdownFigures> {
        let told = trial.event(kind::SUBJECT_TOLD_TO_END)?;
        let ended = trial.event(kind::SUBJECT_ENDED);
        let is_back = match (trial.event(kind::SUBJECT_BACK), trial.event(kind::SUBJECT_NOT_BACK)) {
            (Some(_), _) => Some(true),
            (None, Some(_)) => Some(false),
            (None, None) => None,
        };
        let requests = trial.shutdown.map(|found| ShutdownRequests {
            under_way: found.under_way,
            answered: found.under_way.saturating_sub(found.dropped),
            dropped: found.dropped,
            later: found.later,
            later_refused: found.later_refused,
        });
        let exited_after_ns = ended.map(|ended| ended.at_ns.saturating_sub(told.at_ns));
        Some(ShutdownFigures { told_ns: told.at_ns, exited_after_ns, is_back, requests })
    }
}

/// Changes with no, false, expired or repeated signatures, over the whole trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct CheatFigures {
    /// all of them
    pub sent: u64,
    /// as they must be
    pub refused: u64,
    /// as they must not be
    pub accepted: u64,
    /// `FAIL` when one was accepted, `INCONCLUSIVE` when none was refused
    pub verdict: Verdict,
}

impl CheatFigures {
    /// Of a trial; `None`: nobody cheated.
    pub fn of(trial: &Trial) -> Option<CheatFigures> {
        let Cheats { sent, refused, accepted } = trial.cheats.filter(|cheats| cheats.sent > 0)?;
        let verdict = match (refused, accepted) {
            (_, 1..) => Verdict::Fail,
            (0, 0) => Verdict::Inconclusive,
            (_, 0) => Verdict::Pass,
        };
        Some(CheatFigures { sent, refused, accepted, verdict })
    }
}

/// The judged part of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct HoldSpan {
    /// begin, after the warm-up, since the start of the trial
    pub from_ns: u64,
    /// end; null while the hold goes on
    pub to_ns: Option<u64>,
    /// seconds of warm-up before the begin that were cut off
    pub cut_s: u32,
}

impl HoldSpan {
    /// Of a trial, or of what was summed of it so far.
    pub fn of(trial: &Trial) -> Option<HoldSpan> {
        let hold = trial.hold.as_ref()?;
        let to_ns = (hold.to_ns < u64::MAX).then_some(hold.to_ns);
        Some(HoldSpan { from_ns: hold.from_ns, to_ns, cut_s: trial.cut_s })
    }

    /// How long it was held, with its warm-up, ns; without an end only the warm-up is known.
    pub(crate) fn held_ns(&self) -> u64 {
        let judged_ns = self.to_ns.map_or(0, |to_ns| to_ns.saturating_sub(self.from_ns));
        judged_ns + u64::from(self.cut_s) * 1_000_000_000
    }
}

/// An error as it was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ErrorSample {
    /// under which it is counted in `errors`
    pub cause: String,
    /// what was seen; text from the server under test is never markup
    pub text: String,
}

/// Sessions that were planned in the hold. How long they took is the operation `session`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct SessionFigures {
    /// all of them
    pub planned: u64,
    /// of these, the function returned
    pub ended: u64,
    /// of these, the function threw
    pub failed: u64,
    /// of these, under way when the bots left
    pub unended: u64,
    /// of these, not begun: as many as there may be were under way
    pub not_begun: u64,
    /// under way at once, mean over the hold
    pub at_once: f64,
    /// the same in the fullest second
    pub at_once_max: f64,
}

impl SessionFigures {
    /// Of a trial; `None`: its bots have no sessions.
    pub fn of(trial: &Trial) -> Option<SessionFigures> {
        let (flow, at_once) = (trial.op(Role::Session)?, trial.at_once?);
        Some(SessionFigures {
            planned: flow.offered,
            ended: flow.answered,
            failed: flow.failed + flow.lost,
            unended: flow.open_after,
            not_begun: flow.not_sent,
            at_once: at_once.mean,
            at_once_max: at_once.max,
        })
    }
}

/// Frames of a rung.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct FrameFigures {
    /// drawn per second
    pub rate_per_s: f64,
    /// that should have been drawn; null where the server does not say
    pub due: Option<u64>,
    /// drawn
    pub drawn: u64,
}

impl FrameFigures {
    /// Drawn of those due.
    pub fn share(&self) -> Option<f64> {
        // A frame due before the first entry may be drawn in it.
        self.due.filter(|due| *due > 0).map(|due| (self.drawn as f64 / due as f64).min(1.0))
    }
}

/// Connections of a rung.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct ConnectionFigures {
    /// as they were counted
    #[serde(flatten)]
    pub counts: TrialConnections,
    /// that the server closed between two requests and that were opened again when they were needed, in the hold; absent
    /// where there were none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub reopened: Option<u64>,
    /// requests that met such a close and were sent once more; absent where there were none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub retried: Option<u64>,
    /// to a usable connection
    pub handshake_ns: Option<Summary>,
}

/// Ticks of a rung.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct TickFigures {
    /// `log`, `client` …
    pub source: String,
    /// between two ticks as scheduled
    pub period_ns: u64,
    /// by class
    #[serde(flatten)]
    pub counts: TickCounts,
    /// (over + under + missed) / due
    pub late_share: Option<f64>,
    /// ticks whose work took longer than a period
    pub over_budget_share: Option<f64>,
    /// instability ratio
    pub isr: Option<f64>,
    /// between two ticks
    pub interval_ns: Option<Summary>,
    /// of these, those that were late
    #[serde(default)]
    pub late_intervals: LateIntervals,
    /// work per tick
    pub busy_ns: Option<Summary>,
}

/// Ticks of a rung as its clients saw them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct ClientTickFigures {
    /// by class
    #[serde(flatten)]
    pub counts: TickCounts,
    /// (over + under + missed) / due
    pub late_share: Option<f64>,
    /// between two ticks
    pub interval_ns: Option<Summary>,
    /// of what a tick told when it came
    pub age_ns: Option<Summary>,
}

/// The books of a rung's broadcasts, over the whole trial and the well-behaved receivers.
///
/// `owed_min ≤ owed ≤ owed_max`; the three are one where nobody came or went while others spoke.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct DeliveryFigures {
    /// delivered + lost + unread, without what was not owed
    pub owed: u64,
    /// as they were settled
    #[serde(flatten)]
    pub sum: SumOfBooks,
    /// from the planned send, of messages planned in the hold; its percentiles count lost ones as infinite, which is
    /// null here
    pub latency_ns: Option<Summary>,
    /// messages that left, of all senders
    pub sent: u64,
    /// to all receivers, per second of the hold
    pub rate_per_s: Option<f64>,
    /// came with an unknown sender or number
    pub unknown_messages: u64,
    /// the server tells what it drops
    pub drops_are_told: bool,
    /// the loss rate is at most this, at 95 %; null when something was lost or nothing owed
    pub loss_rate_bound: Option<f64>,
    /// with the highest mean latency
    pub slowest: Option<SlowestReceiver>,
    /// those that behave badly; null when there are none
    pub excluded: Option<SumOfBooks>,
    /// the pairs that lost most or got what was not owed, the worst first, at most 10
    pub worst: Vec<PairBooks>,
}

/// The receiver that waited longest on average, over the whole trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct SlowestReceiver {
    /// its number in the crowd
    pub receiver: u32,
    /// mean
    pub latency_mean_ns: f64,
    /// longest
    pub latency_max_ns: u64,
}

/// The server's process tree over the hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct SubjectFigures {
    /// all of it
    #[serde(flatten)]
    pub process: ProcessFigures,
    /// the thread that used most CPU; null where threads are not readable
    pub busiest_thread: Option<ThreadFigures>,
    /// the names whose threads used most CPU, those first, at most five; empty where threads are not readable
    #[serde(default)]
    pub threads: Vec<NamedThreadsFigures>,
}

/// A reading over the seconds of the hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct SignalLevel {
    /// mean; of a total its growth per second
    pub mean: f64,
    /// largest second
    pub max: f64,
    /// seconds from the start of the hold until it first reached half of its largest value; null where that is 0
    pub half_at_s: Option<u32>,
}

/// A thread over the hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct ThreadFigures {
    /// its name; text from the server under test is never markup
    pub name: String,
    /// mean
    pub cpu_cores: f64,
}

/// All threads of one name over the hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct NamedThreadsFigures {
    /// their name, `*` in place of numbers where several differ in them; text from the server under test is never markup
    pub name: String,
    /// mean
    pub cpu_cores: f64,
    /// largest second
    pub cpu_cores_max: f64,
}

/// This process over the hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct WorkerFigures {
    /// all of it
    #[serde(flatten)]
    pub process: ProcessFigures,
    /// the busiest worker's share of the hold
    pub busy_share_max: Option<f64>,
    /// the most that one worker was on a core in a second
    pub cpu_share_max: Option<f64>,
    /// the most that one worker was kept waiting for a core in a second
    pub waiting_share_max: Option<f64>,
    /// the functions of the bots' script that took most of its time, the largest first; absent where there is no script
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<ScriptFunctionFigures>>")]
    pub script_functions: Vec<ScriptFunctionFigures>,
}

/// A function of a script, estimated from samples of the running function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct ScriptFunctionFigures {
    /// as written; empty without one
    pub name: String,
    /// file and line where it begins
    pub place: String,
    /// of the script's time in the hold, without what it called; in [0, 1]
    pub share: f64,
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
