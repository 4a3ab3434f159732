//! A trial: one load held once, as the sum of its entries.
//!
//! `Sum` is the only sum: what the results page shows live and what `show` replays later come from the same fold over
//! what was committed, so they cannot differ. A trial keeps its seconds as a series besides the sums, because
//! steadiness and disturbance are computed from the series.
//! Units: `_ns` since the start of the trial; shares in [0, 1].

mod compared;
mod host;
pub mod kind;
mod parts;
mod process;
pub(crate) mod recovery;
mod same_time;
mod stretches;
pub(crate) mod sum;
mod threads;
mod tick_cover;

use std::collections::{BTreeMap, BTreeSet};

pub use compared::ComparedTicks;
pub use host::HostSecond;
pub use parts::{
    AtOnce, Audit, Cheats, Games, Hold, Logged, ProcessFigures, ScriptFunction, Second, Shutdown, Silence,
    TrialConnections, TrialHead, TrialTicks,
};
pub use same_time::SameTime;
pub use stretches::{Stretch, Stretches};
pub use threads::ThreadsOfName;

use crate::distribution::Distribution;
use crate::entry::Event;
use crate::flow::Flow;
use crate::interval::Measure;
use crate::ledger::Books;
use crate::names::{ErrorKind, Role};
use crate::seconds::SECOND_NS;
use crate::ticklog::ServerCounter;
use crate::ticks::TickCounts;

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
    /// time that these counters cover, ns. A server's entries are not aligned with the hold, so it is slightly more or
    /// less than the hold
    pub subject_told_ns: u64,
    /// the server's counters and what the bots sent, both over exactly the same time; `None` if the server reported
    /// nothing that is wholly in the hold
    pub same_time: Option<SameTime>,
    /// connections
    pub connections: TrialConnections,
    /// of messages planned in the hold, by `Measure`; handshakes are those of the whole trial
    distributions: Vec<Distribution>,
    /// the server's own ticks
    pub ticks: Option<TrialTicks>,
    /// ticks due in the part of the hold that whole entries of its log cover; `None` if none is in the hold
    pub logged: Option<Logged>,
    /// an entry of its log covers some part of the hold
    pub is_in_log: bool,
    /// ticks as the clients see them
    pub client_ticks: TickCounts,
    /// what was told by each further source of ticks, in the order in which they were given; empty where one was given
    pub compared_ticks: Vec<ComparedTicks>,
    /// what was owed to whom, and what came; `None` when nothing owed deliveries. Over the whole trial
    pub books: Option<Books>,
    /// what the bots read back after the hold; `None` where they do not
    pub audit: Option<Audit>,
    /// how games ended; `None` where none are played, and in trials of older versions
    pub games: Option<Games>,
    /// lives of bots that were under way at once; `None` where bots have but one
    pub at_once: Option<AtOnce>,
    /// what happened to requests when the subject was told to shut down; `None` if it was not, or if its bots do not
    /// report it
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
    /// the hold in a few stretches of equal length
    pub stretches: Stretches,
    /// every mark
    pub events: Vec<Event>,
}

impl Trial {
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

    /// How many seconds of the judged hold lie before this one; `None` where it began earlier.
    pub fn hold_second(&self, index: u32) -> Option<u32> {
        let first = self.hold.as_ref()?.from_ns.div_ceil(SECOND_NS);
        u64::from(index).checked_sub(first).map(|before| before as u32)
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

    /// The source of ticks that is judged, as it was written; `None` where only one was given.
    pub fn judged_tick_source(&self) -> Option<&str> {
        self.event(kind::TICK_SOURCE).map(|event| event.text.as_str())
    }

    /// The first event of a kind.
    pub fn event(&self, kind: &str) -> Option<&Event> {
        self.events.iter().find(|event| event.kind == kind)
    }
}

#[cfg(test)]
mod tests;
