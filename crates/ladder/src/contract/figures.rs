//! The figures of a rung: its shutdown, errors, sessions, ticks, deliveries, server and load generator.

use measure::ledger::{PairBooks, SumOfBooks};
use measure::trial::kind;
use measure::{
    Audit, Cheats, LateIntervals, ProcessFigures, Role, Summary, TickCounts, Trial, TrialConnections,
};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::judge::Verdict;

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
