//! Why a rung failed: the cause by what the server was doing, against the largest load that held.
//!
//! Rules in order, each over one rung's readings. A cause is *named* when what was read is sufficient for it, *suspected* when it fits and
//! does not exclude others, and *open* otherwise. The first named one is the answer, else the first suspected one. It never
//! changes a verdict.
//! Not here: how the readings are taken (`watch`), and what each can tell (docs/method/server-activity.md).

mod rules;

use measure::{MachineMetric, ProcessMetric, Signal, ThreadState};
use serde_json::{Value, json};

use crate::contract::{Climb, Rung, SignalLevel};

/// Signals that are listed as having changed most.
const MOVED_SHOWN: usize = 8;

/// How sure a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// what was read is sufficient for it
    Named,
    /// it fits, and others are not excluded
    Suspected,
    /// nothing that was read points to it
    Open,
}

impl Standing {
    fn text(self) -> &'static str {
        match self {
            Standing::Named => "named",
            Standing::Suspected => "suspected",
            Standing::Open => "open",
        }
    }
}

/// What gave first, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    /// for programs: `cpu`, `thread`, `lock` …
    pub name: &'static str,
    pub standing: Standing,
    /// sentences for people
    pub text: String,
}

impl Cause {
    fn named(name: &'static str, text: String) -> Option<Cause> {
        Some(Cause { name, standing: Standing::Named, text })
    }

    fn suspected(name: &'static str, text: String) -> Option<Cause> {
        Some(Cause { name, standing: Standing::Suspected, text })
    }

    /// As a sentence of the answer: a suspicion says that it is one.
    pub fn sentence(&self) -> String {
        let mut letters = self.text.chars();
        match (self.standing, letters.next()) {
            (Standing::Suspected, Some(first)) => {
                format!("Suspected: {}{}", first.to_lowercase(), letters.as_str())
            }
            _ => self.text.clone(),
        }
    }

    /// For the evidence of the answer.
    pub fn json(&self) -> Value {
        json!({ "name": self.name, "standing": self.standing.text(), "text": self.text })
    }
}

/// The cause of a rung's failure; `None` where the server's process is not watched, or where its reason is the cause: the
/// server was gone, silent or wrong.
pub(super) fn cause(climb: &Climb, rung: &Rung) -> Option<Cause> {
    let seen = Seen::of(climb, rung)?;
    let found = rules::fitting(&seen);
    let first = |standing| found.iter().find(|cause| cause.standing == standing).cloned();
    first(Standing::Named).or_else(|| first(Standing::Suspected)).or_else(|| first(Standing::Open))
}

/// The largest load that held below this rung, in the same cell.
pub(super) fn held_below<'a>(climb: &'a Climb, rung: &Rung) -> Option<&'a Rung> {
    let is_below = |other: &&Rung| {
        other.verdict == crate::judge::Verdict::Pass && other.load < rung.load && other.cell == rung.cell
    };
    climb.rungs.iter().filter(is_below).max_by(|a, b| a.load.total_cmp(&b.load))
}

/// The readings that changed most from one rung to the other, those first: names, both means, and when each first reached half of
/// its largest value in the second rung.
pub(super) fn moved(good: &Rung, bad: &Rung) -> Vec<Value> {
    let change = |before: f64, after: f64| {
        // A reading that begins at nothing has grown a hundredfold at most.
        let floor = 0.01 * before.abs().max(after.abs());
        if floor > 0.0 { ((after.abs() + floor) / (before.abs() + floor)).ln() } else { 0.0 }
    };
    let mut both: Vec<(&String, f64, &SignalLevel, f64)> = bad
        .activity
        .iter()
        .filter_map(|(name, level)| {
            // Where nothing stalled there is no reading.
            let none = (name == super::activity::STALLED_SHARE).then_some(0.0);
            let before = good.activity.get(name).map(|level| level.mean).or(none)?;
            Some((name, before, level, change(before, level.mean)))
        })
        .filter(|(.., change)| change.abs() > 0.1)
        .collect();
    both.sort_by(|a, b| b.3.abs().total_cmp(&a.3.abs()));
    let shown = both.into_iter().take(MOVED_SHOWN).map(|(name, before, level, _)| {
        json!({ "name": name, "held": before, "failed": level.mean, "half_at_s": level.half_at_s })
    });
    shown.collect()
}

/// A failed rung with its readings.
struct Seen<'a> {
    climb: &'a Climb,
    rung: &'a Rung,
    good: Option<&'a Rung>,
    /// that decided on the rung
    signal: &'a str,
    cpu_cores: f64,
    /// of the cores that the server may use
    cpu_share: f64,
}

/// Failures that are a cause themselves: the server was gone, silent or wrong.
const CAUSES_THEMSELVES: [&str; 6] = [
    "ticks.silence",
    "stopped replying",
    "server exited",
    "not_sent",
    "deliveries.unknown_messages",
    "pairing",
];

impl<'a> Seen<'a> {
    fn of(climb: &'a Climb, rung: &'a Rung) -> Option<Seen<'a>> {
        let signal = rung.signal.as_deref().unwrap_or("");
        let process = &rung.subject.as_ref()?.process;
        Some(Seen {
            climb,
            rung,
            good: held_below(climb, rung),
            signal,
            cpu_cores: process.cpu_cores,
            cpu_share: process.cpu_share?,
        })
    }

    /// Whether CPU, locks and the like have anything to do with the failure.
    fn is_about_speed(&self) -> bool {
        !CAUSES_THEMSELVES.contains(&self.signal) && !self.rung.errors.contains_key(self.signal)
    }

    fn level(&self, signal: Signal) -> Option<&SignalLevel> {
        self.rung.activity.get(&signal.name())
    }

    fn mean(&self, metric: ProcessMetric) -> Option<f64> {
        Some(self.level(Signal::Subject(metric))?.mean)
    }

    fn max(&self, metric: ProcessMetric) -> Option<f64> {
        Some(self.level(Signal::Subject(metric))?.max)
    }

    /// Active threads in this state, in the mean over the hold.
    fn threads(&self, state: ThreadState) -> Option<f64> {
        Some(self.level(Signal::Threads(state))?.mean)
    }

    fn of_machine(&self, metric: MachineMetric) -> Option<f64> {
        Some(self.level(Signal::Machine(metric))?.mean)
    }

    /// The busiest thread's name and its share of a core.
    fn busiest_thread(&self) -> Option<(&'a str, f64)> {
        let thread = self.rung.subject.as_ref()?.busiest_thread.as_ref()?;
        Some((&thread.name, thread.cpu_cores))
    }

    /// Of connections that were asked for, those that could not be opened or were closed by the server.
    fn is_about_connections(&self) -> bool {
        self.signal.starts_with("connections.")
            || ["refused", "errors", "errors.share", "failed", "lost", "nobody let in"].contains(&self.signal)
            || self.rung.errors.contains_key(self.signal)
    }
}

#[cfg(test)]
mod tests;
