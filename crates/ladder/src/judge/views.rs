//! One objective, evaluated three ways: over all seconds, over the undisturbed ones, and beyond what disturbances
//! explain (in the least disturbed seconds, and in all).
//!
//! Met over all seconds is met: a disturbance improves no figure except CPU shares, which are read from undisturbed
//! seconds only. An objective that is not met is evaluated again where conditions were fair.

use measure::Trial;

use crate::disturbance::{Disturbance, LeastDisturbed};
use crate::objective::{Objective, Outcome};

/// What a trial says about an objective once disturbances are allowed for.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// met over all seconds
    Met,
    /// not met over all seconds, but over the undisturbed ones
    MetInFairSeconds,
    /// not met
    NotMet {
        /// the value for people
        shown: String,
        /// over which seconds
        over: Over,
    },
    /// not met, and a disturbance may be why
    Disturbed {
        /// the value over all seconds
        shown: String,
    },
    /// not measured, or not often enough
    CannotTell {
        /// for people
        why: String,
    },
}

/// Which seconds an objective was not met in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// in all of the hold, with nothing disturbed, or the figure is one that no disturbance makes worse
    All,
    /// in the undisturbed seconds alone
    Fair,
    /// in the least disturbed seconds, by more than the disturbances can explain
    LeastDisturbed,
    /// in all of the hold, by more than the disturbances can explain
    Unexplained,
}

impl Seen {
    /// True when it held.
    pub fn is_met(&self) -> bool {
        matches!(self, Seen::Met | Seen::MetInFairSeconds)
    }

    /// `None` where it cannot be told.
    pub fn met(&self) -> Option<bool> {
        match self {
            Seen::Met | Seen::MetInFairSeconds => Some(true),
            Seen::NotMet { .. } => Some(false),
            Seen::Disturbed { .. } | Seen::CannotTell { .. } => None,
        }
    }

    /// Which seconds decided, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Seen::MetInFairSeconds | Seen::NotMet { over: Over::Fair, .. } => "undisturbed seconds",
            Seen::NotMet { over: Over::LeastDisturbed, .. } => {
                "least disturbed seconds, beyond what disturbances explain"
            }
            Seen::NotMet { over: Over::Unexplained, .. } => "all seconds, beyond what disturbances explain",
            _ => "all seconds",
        }
    }
}

/// The seconds of a trial.
pub(super) struct View<'a> {
    pub trial: &'a Trial,
    /// without its disturbed seconds, where it has enough others
    pub fair: Option<&'a Trial>,
    /// otherwise: its least disturbed seconds, and what disturbances explain in these
    pub least: Option<(&'a Trial, &'a LeastDisturbed)>,
    pub disturbance: &'a Disturbance,
}

impl View<'_> {
    /// What it says about an objective.
    pub fn look(&self, objective: &Objective) -> Seen {
        let figure = objective.figure();
        let whole = objective.evaluate(self.trial);
        if !self.disturbance.any() {
            return plain(whole, Over::All);
        }
        if figure.is_flattered() {
            let why = "other programs took CPU that the server might have used, and too few seconds were undisturbed; \
                       run it again on a quiet machine";
            return match self.fair {
                Some(fair) => plain(objective.evaluate(fair), Over::Fair),
                None => Seen::CannotTell { why: why.to_owned() },
            };
        }
        let Outcome::NotMet { shown, .. } = whole else { return plain(whole, Over::All) };
        if !figure.is_disturbable() || objective.is_certainly_missed(self.trial) {
            return Seen::NotMet { shown, over: Over::All };
        }
        let whole = self.disturbance;
        let is_unexplained_in_all =
            is_unexplained(objective, self.trial, whole.explains_ticks, whole.explains_messages);
        let knows_seconds = !figure.is_of_books();
        if let Some(fair) = self.fair.filter(|_| knows_seconds) {
            match objective.evaluate(fair) {
                // A server that stalls while the machine is only slightly disturbed does so by itself.
                Outcome::Met { .. } if !is_unexplained_in_all => return Seen::MetInFairSeconds,
                Outcome::Met { .. } => {}
                Outcome::NotMet { shown, .. } => return Seen::NotMet { shown, over: Over::Fair },
                Outcome::CannotTell { .. } => {}
            }
        }
        if let Some((trial, least)) = self.least.filter(|_| knows_seconds)
            && let Outcome::NotMet { shown, .. } = objective.evaluate(trial)
            && is_unexplained(objective, trial, least.explains_ticks, least.explains_messages)
        {
            return Seen::NotMet { shown, over: Over::LeastDisturbed };
        }
        if is_unexplained_in_all {
            return Seen::NotMet { shown, over: Over::Unexplained };
        }
        Seen::Disturbed { shown }
    }
}

/// Whether an objective is not met even without what disturbances explain, at most, of ticks or of messages. What they explain
/// is an estimate, so few samples do not do.
fn is_unexplained(objective: &Objective, trial: &Trial, of_ticks: f64, of_messages: f64) -> bool {
    let explained = if objective.figure().counts_workers() { of_messages } else { of_ticks };
    explained < 1.0 && objective.has_many_samples(trial) && objective.is_missed_without(trial, explained)
}

fn plain(outcome: Outcome, over: Over) -> Seen {
    match outcome {
        Outcome::Met { .. } if over == Over::Fair => Seen::MetInFairSeconds,
        Outcome::Met { .. } => Seen::Met,
        Outcome::NotMet { shown, .. } => Seen::NotMet { shown, over },
        Outcome::CannotTell { why, .. } => Seen::CannotTell { why },
    }
}
