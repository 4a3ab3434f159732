//! The script's counters, by the indices that the rest of this module uses.

use std::sync::Arc;

use measure::names::{HANDSHAKE_REDIRECTS, OPEN_TIME, ROOM_DELIVERIES};
use measure::{ErrorKind, MetricNames, Role};
use plan::{SESSION, ScriptBots};
use script::{FETCH, Names};

use crate::disconnects;

/// Causes after those of `ends`.
pub(super) const THREW: usize = disconnects::CAUSES.len();
pub(super) const FAILED: usize = THREW + 1;
pub(super) const NOT_IN: usize = THREW + 2;
pub(super) const WRONG_STATUS: usize = THREW + 3;
pub(super) const GIVEN_UP: usize = THREW + 4;
pub(super) const STOPPED: usize = THREW + 5;
const CHECKS_AT: usize = THREW + 6;
const OWN_CAUSES: [&str; CHECKS_AT - THREW] = [
    "script error",
    "failed by the script",
    "not in",
    "status 400 or above",
    "given up by the script",
    "script stopped",
];

/// Counters after the engine's own.
pub(super) const UNEXPECTED: usize = 1;
/// Connections of HTTP that the server had closed between two requests.
pub(super) const REOPENED: usize = 2;
/// Time that the script took, ms.
pub(super) const SCRIPT_MS: usize = 3;
/// Time that sessions were under way, ms.
pub(super) const SESSION_MS: usize = 4;
const COUNTERS_AT: usize = 6;

/// Messages that owe nothing.
const MESSAGE: &str = "message";

/// Where the operations, checks and counters of one script are.
pub(super) struct Causes {
    operations: Vec<String>,
    /// of messages that owe nothing
    pub message: usize,
    /// of deliveries in rooms, where there are some
    pub delivered: Option<usize>,
}

impl Causes {
    pub fn of(names: &Names) -> Causes {
        let delivered = names.calls_room.then_some(COUNTERS_AT + names.counters.len());
        Causes { operations: names.operations.clone(), message: names.operations.len(), delivered }
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

/// The operation of sessions, where bots have several.
pub(super) fn session_op(settings: &ScriptBots) -> Option<usize> {
    let ops = &settings.bundle.names.operations;
    settings.load.has_sessions().then(|| ops.iter().position(|op| op == SESSION))?
}

pub(super) fn metric_names(settings: &ScriptBots) -> Arc<MetricNames> {
    let names = &settings.bundle.names;
    let has_sessions = session_op(settings).is_some();
    let checks: Vec<String> = names.checks.iter().map(|name| format!("check {name}")).collect();
    let ops: Vec<&str> = names.operations.iter().map(String::as_str).chain([MESSAGE]).collect();
    let causes: Vec<&str> =
        disconnects::CAUSES.into_iter().chain(OWN_CAUSES).chain(checks.iter().map(String::as_str)).collect();
    let own = [OPEN_TIME, "unexpected", "reopened", "script_ms", "session_ms", HANDSHAKE_REDIRECTS];
    let counters: Vec<&str> = own
        .into_iter()
        .chain(names.counters.iter().map(String::as_str))
        .chain(names.calls_room.then_some(ROOM_DELIVERIES))
        .collect();
    let wrong = checks.iter().map(String::as_str).chain([OWN_CAUSES[WRONG_STATUS - THREW]]);
    let kinds: Vec<(&str, ErrorKind)> = [
        (OWN_CAUSES[NOT_IN - THREW], ErrorKind::NotAdmitted),
        (OWN_CAUSES[GIVEN_UP - THREW], ErrorKind::Timeout),
    ]
    .into_iter()
    .chain(wrong.map(|cause| (cause, ErrorKind::WrongReply)))
    .collect();
    let roles = [(counters[UNEXPECTED], Role::Unexpected), (counters[SCRIPT_MS], Role::ScriptTime)];
    let delivered = names.calls_room.then_some((ROOM_DELIVERIES, Role::Delivered));
    let roles: Vec<(&str, Role)> = roles.into_iter().chain(delivered).collect();
    let names = disconnects::metric_names(&ops, &causes, &counters, &kinds)
        .with_timed_ops(names.operations.len())
        .with_values(&names.recorded)
        .with_counter_roles(&roles);
    if !has_sessions {
        return names;
    }
    names
        .with_op_roles(&[(SESSION, Role::Session)])
        .with_counter_roles(&[(counters[SESSION_MS], Role::SessionTime)])
}
