//! What scripts count, by the places that the rest of this module knows.

use std::sync::Arc;

use measure::names::OPEN_TIME;
use measure::{ErrorKind, MetricNames, Role};
use script::{FETCH, Names};

use crate::ends;

/// Causes behind those of `ends`.
pub(super) const THREW: usize = ends::CAUSES.len();
pub(super) const FAILED: usize = THREW + 1;
pub(super) const NOT_IN: usize = THREW + 2;
pub(super) const WRONG_STATUS: usize = THREW + 3;
pub(super) const GIVEN_UP: usize = THREW + 4;
const CHECKS_AT: usize = THREW + 5;
const OWN_CAUSES: [&str; CHECKS_AT - THREW] =
    ["script error", "failed by the script", "not in", "status 400 or above", "given up by the script"];

/// Counters behind the engine's own.
pub(super) const UNEXPECTED: usize = 1;
/// Connections of HTTP that the server had closed between two requests.
pub(super) const REOPENED: usize = 2;
/// Time that the script took, ms.
pub(super) const SCRIPT_MS: usize = 3;
const COUNTERS_AT: usize = 4;

/// Messages that owe nothing.
const MESSAGE: &str = "message";

/// Where the operations, checks and counters of one script are.
pub(super) struct Causes {
    operations: Vec<String>,
    /// of messages that owe nothing
    pub message: usize,
}

impl Causes {
    pub fn of(names: &Names) -> Causes {
        Causes { operations: names.operations.clone(), message: names.operations.len() }
    }

    pub fn check(check: usize) -> usize {
        CHECKS_AT + check
    }

    pub fn counter(counter: usize) -> usize {
        COUNTERS_AT + counter
    }

    /// Where a request counts. They are named while the script runs, and few.
    pub fn of_request(&self, name: &str) -> usize {
        let known = |name: &str| self.operations.iter().position(|known| known == name);
        known(name).or_else(|| known(FETCH)).unwrap_or(self.message)
    }
}

pub(super) fn metric_names(names: &Names) -> Arc<MetricNames> {
    let checks: Vec<String> = names.checks.iter().map(|name| format!("check {name}")).collect();
    let ops: Vec<&str> = names.operations.iter().map(String::as_str).chain([MESSAGE]).collect();
    let causes: Vec<&str> =
        ends::CAUSES.into_iter().chain(OWN_CAUSES).chain(checks.iter().map(String::as_str)).collect();
    let counters: Vec<&str> = [OPEN_TIME, "unexpected", "reopened", "script_ms"]
        .into_iter()
        .chain(names.counters.iter().map(String::as_str))
        .collect();
    let wrong = checks.iter().map(String::as_str).chain([OWN_CAUSES[WRONG_STATUS - THREW]]);
    let kinds: Vec<(&str, ErrorKind)> = [
        (OWN_CAUSES[NOT_IN - THREW], ErrorKind::NotAdmitted),
        (OWN_CAUSES[GIVEN_UP - THREW], ErrorKind::Timeout),
    ]
    .into_iter()
    .chain(wrong.map(|cause| (cause, ErrorKind::WrongReply)))
    .collect();
    ends::metric_names(&ops, &causes, &counters, &kinds)
        .with_timed_ops(names.operations.len())
        .with_counter_roles(&[
            (counters[UNEXPECTED], Role::Unexpected),
            (counters[SCRIPT_MS], Role::ScriptTime),
        ])
}
