//! A server that was shut down under load (SIGTERM): it must answer requests in flight and exit with status 0 in time.
//!
//! No disturbance excuses a failure here: the grace period is long, and even a slow process ends. Writes that were
//! acknowledged but are missing after a restart are the audit's business.

use measure::trial::kind;
use measure::{Event, Trial};

use super::{Case, Ruling, Verdict};
use crate::wording::{show_many, show_ns, show_number};

/// The signals, for programs.
const STAYED: &str = "shutdown.grace";
const STATUS: &str = "shutdown.status";
const DROPPED: &str = "shutdown.dropped";
const NOT_BACK: &str = "shutdown.restart";

pub(super) fn shutdown(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let told = trial.event(kind::SUBJECT_TOLD_TO_END)?;
    let when = told_when(trial, told);
    let fail = |signal: &str, reason: String| Some(Ruling::new(Verdict::Fail, signal, reason));
    if let Some(stayed) = trial.event(kind::SUBJECT_STAYED) {
        return fail(
            STAYED,
            format!(
                "the server was told to end (SIGTERM) {when} and still ran {} later ({})",
                show_ns(stayed.at_ns.saturating_sub(told.at_ns) as f64),
                told.text
            ),
        );
    }
    if trial.event(kind::SUBJECT_ENDED).is_none() {
        let Some(exited) = trial.event(kind::SUBJECT_EXITED) else {
            let reason = "the server was told to end, and how it ended was not seen; run it again".to_owned();
            return Some(Ruling::new(Verdict::Invalid, "no end", reason));
        };
        return fail(
            STATUS,
            format!(
                "the server was told to end (SIGTERM) {when} and did not exit with status 0: {}; where a shell stands before \
                 it, start it with exec",
                exited.text
            ),
        );
    }
    if let Some(shutdown) = trial.shutdown.filter(|shutdown| shutdown.dropped > 0) {
        return fail(
            DROPPED,
            format!(
                "{} of {} requests that were under way when the server was told to end (SIGTERM, {when}) were refused or never \
                 answered",
                show_number(shutdown.dropped as f64),
                show_number(shutdown.under_way as f64)
            ),
        );
    }
    let not_back = trial.event(kind::SUBJECT_NOT_BACK)?;
    fail(NOT_BACK, format!("the server ended as told and could not be started again: {}", not_back.text))
}

/// How it ended, for people; `None` where it was not told to, or did not.
pub(super) fn remark(trial: &Trial) -> Option<String> {
    let told = trial.event(kind::SUBJECT_TOLD_TO_END)?;
    let ended = trial.event(kind::SUBJECT_ENDED)?;
    let mut text = format!(
        "told to end (SIGTERM) {}, it exited with status 0 after {}",
        told_when(trial, told),
        show_ns(ended.at_ns.saturating_sub(told.at_ns) as f64)
    );
    if let Some(shutdown) = &trial.shutdown {
        let answered = shutdown.under_way.saturating_sub(shutdown.dropped);
        text += &format!(
            "; {} of {} requests under way were answered, and {} of {} later ones refused",
            show_many(answered),
            show_many(shutdown.under_way),
            show_many(shutdown.later_refused),
            show_many(shutdown.later)
        );
    }
    if let Some(audit) =
        trial.audit.filter(|audit| audit.checked > 0 && trial.event(kind::SUBJECT_BACK).is_some())
    {
        text += &format!(
            "; after a restart {} of {} facts that were read back are right",
            show_many(audit.checked - audit.wrong),
            show_many(audit.checked)
        );
    }
    Some(text)
}

fn told_when(trial: &Trial, told: &Event) -> String {
    let held_ns = trial.event(kind::HOLD).map_or(0, |hold| told.at_ns.saturating_sub(hold.at_ns));
    format!("{} into the hold", show_ns(held_ns as f64))
}

#[cfg(test)]
mod tests;
