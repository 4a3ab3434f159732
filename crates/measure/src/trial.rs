//! A trial: one load held once, as the sum of its entries.
//!
//! `Sum` is the only sum there is: what the closing page shows live and what `show` replays later come from the same
//! fold over what was committed, so they cannot differ. A trial keeps its seconds as a series besides the sums, because
//! steadiness and disturbance are read off the series.
//! Units: `_ns` since the start of the trial; shares in [0, 1].

mod host;
mod process;
mod recovery;
mod same_time;
mod sum;
mod tick_cover;

pub use host::HostSecond;
pub use recovery::AfterHold;
pub use same_time::SameTime;
pub use sum::Sum;
pub use tick_cover::{Logged, Silence};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::distribution::Distribution;
use crate::entry::{Entry, Event};
use crate::flow::Flow;
use crate::interval::Measure;
use crate::ledger::Books;
use crate::load_unit::LoadUnit;
use crate::names::{ErrorKind, MetricNames, Role};
use crate::purpose::Purpose;
use crate::ticklog::ServerCounter;
use crate::ticks::TickCounts;

/// Kinds of events that the fold understands; all others are only marks on the time axis.
pub mod kind {
    /// the ramp has ended: all connections stand, or its time is up
    pub const SETTLE: &str = "settle";
    /// the hold begins
    pub const HOLD: &str = "hold";
    /// the hold ends; the text says what ended it (`60s`, `2Mticks`, `1000games`, `interrupted`, …)
    pub const DRAIN: &str = "drain";
    /// a part of the load goes on after the hold, to see when the server recovers; the text is that load
    pub const RECOVERY: &str = "recovery";
    /// that part ends too; the text says what cut it short, and is empty otherwise
    pub const RECOVERY_ENDS: &str = "recovery ends";
    /// the trial is complete: every worker handed over everything
    pub const END: &str = "end";
    /// somebody ended the trial; also the text of a `drain` that was begun by that
    pub const INTERRUPTED: &str = "interrupted";
    /// the subject's process ended during the trial; the text says how
    pub const SUBJECT_EXITED: &str = "subject exited";
    /// the subject was told to end (SIGTERM) as the plan asks, and the hold ended with that; the text says how long it has
    pub const SUBJECT_TOLD_TO_END: &str = "subject told to end";
    /// it ended in time and with status 0; the text says after how long
    pub const SUBJECT_ENDED: &str = "subject ended as told";
    /// it had not ended when its time was over; the text says when
    pub const SUBJECT_STAYED: &str = "subject did not end";
    /// it runs again, on the same data; the text says after how long
    pub const SUBJECT_BACK: &str = "subject started again";
    /// it could not be started again; the text says why
    pub const SUBJECT_NOT_BACK: &str = "subject not started again";
    /// the last lines that it printed before
    pub const SUBJECT_OUTPUT: &str = "subject output";
    /// one of the first errors of its cause, as it was met; the text is `cause: words`
    pub const ERROR: &str = "error";
    /// a function of a script that took much of a worker's time in the hold; the text is a `ScriptFunction`
    pub const SCRIPT_FUNCTION: &str = "script function";
    /// a worker had no time for what was planned before the end of the hold; the text says how many instants it left
    pub const GENERATOR_BEHIND: &str = "generator behind";
    /// the books of a worker did not add up, or another invariant of ours broke
    pub const BUG: &str = "bug";
}

/// What the trial was asked to be; known before it begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialHead {
    /// number within the run, from 0
    pub seq: u32,
    /// what it is for
    pub purpose: Purpose,
    /// the load asked for, in `load_unit`
    pub load: f64,
    /// what it counts
    pub load_unit: LoadUnit,
    /// simulated clients
    pub bots: u64,
    /// connections that should stand during the hold
    pub connections: u64,
    /// ns between two ticks of the subject; 0 when it has no ticks
    pub tick_period_ns: u64,
    /// of a sweep: axis and value; else empty
    #[serde(default)]
    pub cell: BTreeMap<String, String>,
    /// names behind the indices
    pub metric_names: Arc<MetricNames>,
}

impl TrialHead {
    /// Whether the load is a number of games, each with a loop of its own and connections that come and go with it.
    pub fn counts_games(&self) -> bool {
        self.load_unit == LoadUnit::Games
    }
}

/// One second of the series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// seconds since the start of the trial
    pub index: u32,
    /// all operations, planned in any phase
    pub flow: Flow,
    /// the server's own ticks, where it tells them
    pub ticks: TickCounts,
    /// fewest connections open
    pub open_min: u64,
    /// mean response of messages planned in the hold, ns
    pub response_mean_ns: Option<f64>,
    /// mean delivery latency of messages planned in the hold, ns
    pub delivery_mean_ns: Option<f64>,
    /// ticks as the clients see them
    pub client_ticks: TickCounts,
    /// the busiest worker's share
    pub busy_share_max: f64,
    /// what else went on: on the machine, in the workers' threads and in the subject's
    pub host: HostSecond,
}

/// The part that is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    /// begin, after the warm-up cut
    pub from_ns: u64,
    /// end
    pub to_ns: u64,
    /// what ended it
    pub ended_by: String,
}

impl Hold {
    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }

    fn contains(&self, from_ns: u64, to_ns: u64) -> bool {
        from_ns >= self.from_ns && to_ns <= self.to_ns
    }

    fn holds_second(&self, index: u32) -> bool {
        let (from_ns, to_ns) = (u64::from(index) * SECOND_NS, (u64::from(index) + 1) * SECOND_NS);
        from_ns >= self.from_ns && to_ns <= self.to_ns
    }
}

/// Connections over the whole trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct TrialConnections {
    /// that should stand
    pub asked: u64,
    /// open in the worst second of the hold, as the mean over that second
    pub open_min: u64,
    /// open at the worst moment of the hold, when many are between two games for a millisecond
    pub open_least: u64,
    /// open when the hold ended
    pub open: u64,
    /// opened during the ramp
    pub opened_in_ramp: u64,
    /// opened per second of the ramp
    pub rate_per_s: Option<f64>,
    /// attempts over the whole trial
    pub attempts: u64,
    /// failed attempts over the whole trial, by cause
    pub failed: BTreeMap<String, u64>,
}

/// The server's own ticks over the hold.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialTicks {
    /// where they come from
    pub source: String,
    /// by class
    pub counts: TickCounts,
    /// between two ticks
    pub interval: Distribution,
    /// work per tick
    pub busy: Option<Distribution>,
    /// actual − scheduled start
    pub lateness: Option<Distribution>,
    /// instability ratio, where the server tells its parts
    pub isr: Option<f64>,
    /// the end of the hold on which the server reported nothing; its ticks are among the missed
    pub silence: Option<Silence>,
}

/// A process over the hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct ProcessFigures {
    /// mean CPU over the hold, in cores
    pub cpu_cores: f64,
    /// of the cores it may use
    pub cpu_share: Option<f64>,
    /// cores it may use
    pub allowed_cores: Option<f64>,
    /// maximum over the hold
    pub rss_bytes: u64,
    /// maximum over the hold
    pub fds: Option<u64>,
}

/// Facts that bots read back from the server after the hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// facts
    pub checked: u64,
    /// of these, other than they must be
    pub wrong: u64,
    /// further facts that were to be read back and were not: the server refused or did not answer
    pub unread: u64,
}

/// Games over the whole trial, as their players saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Games {
    /// played to their end
    pub played: u64,
    /// how long these took, ms, in sum
    pub played_ms: u64,
    /// that were running when the hold began and still when it ended
    pub unending: u64,
}

/// Lives of bots under way at once, over the hold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AtOnce {
    /// over all seconds
    pub mean: f64,
    /// in the fullest second, as the mean over that second
    pub max: f64,
}

/// Requests around the moment at which the subject was told to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// sent before and not answered yet
    pub under_way: u64,
    /// of these, never answered, or refused
    pub dropped: u64,
    /// sent after that
    pub later: u64,
    /// of these, refused in whichever way
    pub later_refused: u64,
}

/// Changes that cheaters sent, over the whole trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cheats {
    /// all of them
    pub sent: u64,
    /// as they must be
    pub refused: u64,
    /// as they must not be
    pub accepted: u64,
}

/// What one function of a script took over the hold, estimated from samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFunction {
    /// its name as written; empty without one
    pub name: String,
    /// file and line where it begins
    pub place: String,
    /// without what it called
    pub ms: u64,
}

impl std::fmt::Display for ScriptFunction {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} ms: {} ({})", self.ms, self.name, self.place)
    }
}

impl ScriptFunction {
    /// As it is displayed; `None`: it is none.
    pub fn read(text: &str) -> Option<ScriptFunction> {
        let (ms, function) = text.split_once(" ms: ")?;
        let (name, place) = function.rsplit_once(" (")?;
        Some(ScriptFunction {
            name: name.to_owned(),
            place: place.strip_suffix(')')?.to_owned(),
            ms: ms.parse().ok()?,
        })
    }
}

/// One load held once.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// what it was asked to be
    pub head: TrialHead,
    /// the judged part; `None` when the hold never began
    pub hold: Option<Hold>,
    /// true when the trial ran to its end and everything was handed over
    pub complete: bool,
    /// how many seconds of the hold were cut off as warm-up
    pub cut_s: u32,
    /// seconds of the trial that are left out of every sum, by their index; empty in the whole view. What is still
    /// unanswered at the end counts in any view, and so do the ledger's books, which know no seconds
    pub left_out: BTreeSet<u32>,
    /// messages planned in the hold, by operation
    pub ops: BTreeMap<String, Flow>,
    /// response times of messages planned in the hold, by operation, where the bots keep them apart
    pub of_ops: BTreeMap<String, Distribution>,
    /// what the bots recorded in the hold, by name, in thousandths
    pub values: BTreeMap<String, Distribution>,
    /// errors over the hold, by cause
    pub errors: BTreeMap<String, u64>,
    /// errors before the hold, by cause: they say why connections were missing when it began
    pub errors_before_hold: BTreeMap<String, u64>,
    /// the bots' own counters over the hold
    pub counters: BTreeMap<String, u64>,
    /// the server's own counters over the hold
    pub subject_counters: BTreeMap<String, u64>,
    /// time that these counters speak of, ns. A server's entries do not begin and end with the hold, so it is a little
    /// more or less than the hold
    pub subject_told_ns: u64,
    /// the server's counters and what the bots sent, both over exactly the same time; `None` where the server reported nothing
    /// that lies wholly in the hold
    pub same_time: Option<SameTime>,
    /// connections
    pub connections: TrialConnections,
    /// of messages planned in the hold, by `Measure`; handshakes are those of the whole trial
    distributions: Vec<Distribution>,
    /// the server's own ticks
    pub ticks: Option<TrialTicks>,
    /// ticks due in the part of the hold that whole entries of its log cover; `None` where none lies in the hold
    pub logged: Option<Logged>,
    /// an entry of its log speaks of a part of the hold, however small
    pub is_in_log: bool,
    /// ticks as the clients see them
    pub client_ticks: TickCounts,
    /// what was owed to whom, and what came; `None` when nothing owed deliveries. Over the whole trial
    pub books: Option<Books>,
    /// what the bots read back after the hold; `None` where they do not
    pub audit: Option<Audit>,
    /// how games ended; `None` where none are played, and in trials of older versions
    pub games: Option<Games>,
    /// lives of bots that were under way at once; `None` where bots have but one
    pub at_once: Option<AtOnce>,
    /// what became of requests when the subject was told to end; `None` where it was not, or where its bots do not say
    pub shutdown: Option<Shutdown>,
    /// what became of the changes of cheaters; `None` where bots know none
    pub cheats: Option<Cheats>,
    /// bytes per second in both directions over the hold
    pub bytes_per_s: Option<f64>,
    /// the subject's process tree, where it is watched
    pub subject: Option<ProcessFigures>,
    /// this process
    pub worker: ProcessFigures,
    /// the busiest worker's share over the hold
    pub busy_share_max: Option<f64>,
    /// every second of the trial
    pub seconds: Vec<Second>,
    /// every mark
    pub events: Vec<Event>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Trial {
    /// Sums up entries that are all in memory, leaving out the first `cut_s` seconds of the hold as warm-up.
    ///
    /// Entries may come in any order.
    pub fn from_entries(head: TrialHead, entries: &[Entry], cut_s: u32) -> Trial {
        Trial::from_entries_without(head, entries, cut_s, BTreeSet::new())
    }

    /// The same without the seconds of these indices.
    pub fn from_entries_without(
        head: TrialHead,
        entries: &[Entry],
        cut_s: u32,
        left_out: BTreeSet<u32>,
    ) -> Trial {
        let event = |entry: &Entry| if let Entry::Event(event) = entry { Some(event.clone()) } else { None };
        let events = entries.iter().filter_map(event).collect();
        let mut sum = Sum::new(head, events, cut_s).leaving_out(left_out);
        entries.iter().for_each(|entry| sum.take(entry));
        sum.finish()
    }

    /// A distribution over the messages planned in the hold (handshakes: over the whole trial).
    pub fn distribution(&self, measure: Measure) -> &Distribution {
        &self.distributions[measure as usize]
    }

    /// Length of the hold that is in the sums, s: without the seconds left out.
    pub fn held_s(&self) -> f64 {
        let Some(hold) = &self.hold else { return 0.0 };
        let left_out = self.left_out.iter().filter(|index| hold.holds_second(**index)).count();
        (hold.seconds() - left_out as f64).max(0.0)
    }

    /// The subject's thread that used most CPU over the hold: its name and its mean, in cores. `None` where threads were not
    /// readable.
    pub fn busiest_thread(&self) -> Option<(&str, f64)> {
        let mut used: BTreeMap<&str, f64> = BTreeMap::new();
        let mut seconds = 0.0;
        for (name, cores) in self.hold_seconds().filter_map(|second| second.host.subject_thread.as_ref()) {
            *used.entry(name).or_default() += cores;
            seconds += 1.0;
        }
        let (name, sum) = used.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((name, sum / seconds))
    }

    /// All operations together, as planned in the hold.
    pub fn flow(&self) -> Flow {
        self.messages().fold(Flow::default(), |mut sum, (_, flow)| {
            sum.add(flow);
            sum
        })
    }

    /// Operations whose parts are messages, as planned in the hold: all but the lives of bots.
    pub fn messages(&self) -> impl Iterator<Item = (&str, &Flow)> {
        let session = self.head.metric_names.op(Role::Session);
        let all = self.ops.iter().map(|(op, flow)| (op.as_str(), flow));
        all.filter(move |(op, _)| Some(*op) != session)
    }

    /// The seconds that lie wholly in the hold, without those left out.
    pub fn hold_seconds(&self) -> impl Iterator<Item = &Second> {
        self.seconds.iter().filter(|second| {
            self.hold.as_ref().is_some_and(|hold| hold.holds_second(second.index))
                && !self.left_out.contains(&second.index)
        })
    }

    /// The operation of this role as it was planned in the hold; `None` where nothing was sent in it.
    pub fn op(&self, role: Role) -> Option<&Flow> {
        self.ops.get(self.head.metric_names.op(role)?)
    }

    /// The bots' counters of this role over the hold, in their order.
    pub fn counts(&self, role: Role) -> impl Iterator<Item = u64> {
        let names = &self.head.metric_names;
        let count = move |counter: usize| self.counters.get(&names.counters[counter]).copied().unwrap_or(0);
        names.counters(role).map(count)
    }

    /// What the server counted over the hold; `None` where it never told it.
    pub fn told(&self, counter: ServerCounter) -> Option<u64> {
        self.subject_counters.get(counter.name()).copied()
    }

    /// Causes of errors that are of this kind and came up, with their counts: the most frequent first, then by name.
    pub fn errors_of(&self, kind: ErrorKind) -> impl Iterator<Item = (&str, u64)> {
        let is_one = |cause: &str| self.head.metric_names.kind_of(cause) == Some(kind);
        let counts = self.errors.iter().map(|(cause, count)| (cause.as_str(), *count));
        let mut counts: Vec<_> = counts.filter(|(cause, count)| *count > 0 && is_one(cause)).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts.into_iter()
    }

    /// The first errors of each cause as they were met: cause and words, in the order of their time.
    pub fn error_samples(&self) -> impl Iterator<Item = (&str, &str)> {
        let errors = self.events.iter().filter(|event| event.kind == kind::ERROR);
        errors.map(|event| event.text.split_once(": ").unwrap_or((event.text.as_str(), "")))
    }

    /// The functions of scripts that took most time in the hold, over all workers; the largest first.
    pub fn script_functions(&self) -> Vec<ScriptFunction> {
        let events = self.events.iter().filter(|event| event.kind == kind::SCRIPT_FUNCTION);
        let mut all: Vec<ScriptFunction> = Vec::new();
        for function in events.filter_map(|event| ScriptFunction::read(&event.text)) {
            match all.iter_mut().find(|one| (&one.name, &one.place) == (&function.name, &function.place)) {
                Some(sum) => sum.ms = sum.ms.saturating_add(function.ms),
                None => all.push(function),
            }
        }
        all.sort_by_key(|function| std::cmp::Reverse(function.ms));
        all
    }

    /// The first event of a kind.
    pub fn event(&self, kind: &str) -> Option<&Event> {
        self.events.iter().find(|event| event.kind == kind)
    }
}

impl Entry {
    /// The latest moment this entry speaks of, ns since the start of the trial.
    pub fn until_ns(&self) -> u64 {
        match self {
            Entry::Interval(interval) => (u64::from(interval.index) + 1) * SECOND_NS,
            Entry::Sample(sample) => sample.at_ns,
            Entry::Ticks(second) => second.to_ns,
            Entry::Event(event) => event.at_ns,
            // They speak of the whole trial, and so of no moment.
            Entry::Books(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests;
