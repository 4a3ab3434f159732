//! One objective, seen three ways: over all seconds, over the undisturbed ones, and beyond what disturbances explain.
//!
//! Met over all seconds is met: what disturbs makes no figure better but CPU shares, which are read in undisturbed seconds
//! only. Not met is asked about again where it can be asked fairly.

use measure::Trial;

use super::Terms;
use crate::disturbance::{Disturbance, fair_seconds_needed};
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
            Seen::NotMet { over: Over::Unexplained, .. } => "all seconds, beyond what disturbances explain",
            _ => "all seconds",
        }
    }
}

/// The seconds of a trial.
pub(super) struct View<'a> {
    pub trial: &'a Trial,
    pub fair: Option<&'a Trial>,
    pub disturbance: &'a Disturbance,
}

/// Whether so many undisturbed seconds are left that they can be judged by.
pub(super) fn has_enough(fair: &Trial, terms: &Terms) -> bool {
    let asked_s = if terms.hold_ns > 0 {
        terms.hold_ns as f64 / 1e9
    } else {
        fair.hold.as_ref().map_or(0.0, |hold| hold.seconds())
    };
    fair.hold_seconds().count() >= fair_seconds_needed(asked_s)
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
        if !figure.is_disturbable() || (figure.name == "errors" && !super::rules::only_timeouts(self.trial)) {
            return Seen::NotMet { shown, over: Over::All };
        }
        // The books of deliveries know no seconds.
        if let Some(fair) =
            self.fair.filter(|_| !figure.name.starts_with("deliveries.") || figure.name.contains("latency"))
        {
            match objective.evaluate(fair) {
                Outcome::Met { .. } => return Seen::MetInFairSeconds,
                Outcome::NotMet { shown, .. } => return Seen::NotMet { shown, over: Over::Fair },
                Outcome::CannotTell { .. } => {}
            }
        }
        let explained = if figure.counts_workers() {
            self.disturbance.explains_messages
        } else {
            self.disturbance.explains_ticks
        };
        if explained < 1.0 && objective.is_missed_without(self.trial, explained) {
            return Seen::NotMet { shown, over: Over::Unexplained };
        }
        Seen::Disturbed { shown }
    }
}

fn plain(outcome: Outcome, over: Over) -> Seen {
    match outcome {
        Outcome::Met { .. } if over == Over::Fair => Seen::MetInFairSeconds,
        Outcome::Met { .. } => Seen::Met,
        Outcome::NotMet { shown, .. } => Seen::NotMet { shown, over },
        Outcome::CannotTell { why } => Seen::CannotTell { why },
    }
}
