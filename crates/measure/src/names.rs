//! The names behind the indices of an interval, and the role of each.
//!
//! A kind of bot declares its names once. A name is for people. Code that must know what an operation, a counter or an
//! error means checks its role or kind, never the name: a request in a user's scenario may have any name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The counter of `Role::OpenTime`.
pub const OPEN_TIME: &str = "open_connection_ms";

/// The counter of `Role::HandshakeRedirects`.
pub const HANDSHAKE_REDIRECTS: &str = "handshake_redirects";

/// The counter of deliveries in rooms, which bots of scripts keep books of.
pub const ROOM_DELIVERIES: &str = "deliveries in rooms";

/// What an error says about the server, as far as it matters to a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// the server's reply was not right
    WrongReply,
    /// something took longer than the bot waits, which a disturbed machine can cause too
    Timeout,
    /// the server or the network ended a connection that stood
    BrokenConnection,
    /// the server paired clients with connections of an earlier time
    Unpaired,
    /// the server had not let a connected client in when the hold began, long after it asked
    NotAdmitted,
    /// the server reported an error to a client, or threw it out
    Refused,
    /// this machine's doing and never the server's
    Generator,
}

/// What an operation or a counter is for, where a reader must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// operation: owes no answer, and the server may count those that reach it
    Shot,
    /// operation: only keeps a conversation going (greetings, answers to a PING, rubbish); a plan's rate does not count it
    Keep,
    /// operation: reads back after the hold what the server acknowledged
    Audit,
    /// operation: a life of a bot, from its planned beginning to the end of its function. It consists of messages and is none
    Session,
    /// counter: lives under way, × ms of the second, so that the mean of a second is known
    SessionTime,
    /// counter: games that were played to their end
    GamesPlayed,
    /// counter: games that ended without a result: no stop came in time, or the stops carried an error
    GamesFailed,
    /// counter: how long the games took that were played to their end, ms, in sum
    GameTime,
    /// counter: games that were running when the hold began and still when it ended
    GamesUnending,
    /// counter: deliveries that came, at all receivers
    Delivered,
    /// counter that the engine keeps: connections open, × ms of the second, so that a second's mean is known besides its
    /// worst moment
    OpenTime,
    /// counter that the engine keeps: redirects of handshakes that were followed, of connections that stand
    HandshakeRedirects,
    /// counter: facts that the audit read back
    AuditChecked,
    /// counter: of these, other than they must be
    AuditWrong,
    /// counter: facts that the audit requested without an answer, or had no time to request
    AuditUnread,
    /// counters: planned arrivals of the hold by their place in the server's tick, one counter for each, in their order
    ArrivalPhase,
    /// four counters of a server that was told to end under load, in this order: requests that were under way then, and those
    /// of them that were never answered or were refused; requests sent after that, which may be refused, and those of them
    /// that were
    Shutdown,
    /// three counters of cheaters, in this order: changes that must be refused, those that were, those that were accepted
    Cheats,
    /// two counters of reads from a data grid that were planned in the hold, in this order: those that found a value, and
    /// those that found none
    Lookups,
    /// a counter of the time that scripts took, ms over all workers
    ScriptTime,
    /// a counter of answers without a request, or duplicates
    Unexpected,
    /// two counters of answers over HTTP that were right, in this order: all of them, and those of them that were redirects
    /// that were not followed
    Redirects,
    /// three counters of a protocol whose connections a server may close between two requests, in this order: those that were
    /// opened again when they were needed, requests that were sent once more because they met the close, and answers with
    /// which the server ended its connection
    Reopened,
}

/// The names behind the indices of an interval, fixed for one kind of bots and stored with each trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredNames")]
pub struct MetricNames {
    /// operations: index into `Interval::flows`
    pub ops: Vec<String>,
    /// what can go wrong once a connection is open: index into `Interval::errors`
    pub errors: Vec<String>,
    /// what else the bots count: index into `Interval::counters`
    pub counters: Vec<String>,
    /// why a connection did not open: index into `Connections::failed`
    pub connect_failures: Vec<String>,
    /// the response times of the first so many operations are kept apart: index into `Interval::of_op`
    pub timed_ops: usize,
    /// distributions of the bots' own, without a unit: index into `Interval::value`
    pub values: Vec<String>,
    /// of errors and failed connects, by name; most are of no kind
    kinds: BTreeMap<String, ErrorKind>,
    /// of operations, by name; most have none
    op_roles: BTreeMap<String, Role>,
    /// of counters, by name; most have none
    counter_roles: BTreeMap<String, Role>,
}

impl MetricNames {
    /// Those names, none of any kind or role.
    pub fn new(ops: &[&str], errors: &[&str], counters: &[&str], connect_failures: &[&str]) -> Arc<Self> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Arc::new(MetricNames {
            ops: owned(ops),
            errors: owned(errors),
            counters: owned(counters),
            connect_failures: owned(connect_failures),
            ..MetricNames::default()
        })
    }

    /// The same names, some of them of a kind.
    pub fn with_kinds(self: Arc<Self>, kinds: &[(&str, ErrorKind)]) -> Arc<Self> {
        let mut names = Arc::unwrap_or_clone(self);
        names.kinds.extend(kinds.iter().map(|&(name, kind)| (name.to_owned(), kind)));
        Arc::new(names)
    }

    /// The same names, with the response times of the first `count` operations kept apart.
    pub fn with_timed_ops(self: Arc<Self>, count: usize) -> Arc<Self> {
        let mut names = Arc::unwrap_or_clone(self);
        names.timed_ops = count.min(names.ops.len());
        Arc::new(names)
    }

    /// The same names, with distributions of the bots' own.
    pub fn with_values(self: Arc<Self>, values: &[String]) -> Arc<Self> {
        let mut names = Arc::unwrap_or_clone(self);
        names.values.extend_from_slice(values);
        Arc::new(names)
    }

    /// The same names, some operations with a role.
    pub fn with_op_roles(self: Arc<Self>, roles: &[(&str, Role)]) -> Arc<Self> {
        let mut names = Arc::unwrap_or_clone(self);
        names.op_roles.extend(roles.iter().map(|&(name, role)| (name.to_owned(), role)));
        Arc::new(names)
    }

    /// The same names, some counters with a role.
    pub fn with_counter_roles(self: Arc<Self>, roles: &[(&str, Role)]) -> Arc<Self> {
        let mut names = Arc::unwrap_or_clone(self);
        names.counter_roles.extend(roles.iter().map(|&(name, role)| (name.to_owned(), role)));
        Arc::new(names)
    }

    /// The kind of an error or of a failed connect.
    pub fn kind_of(&self, cause: &str) -> Option<ErrorKind> {
        self.kinds.get(cause).copied()
    }

    /// The role of an operation.
    pub fn role_of_op(&self, op: &str) -> Option<Role> {
        self.op_roles.get(op).copied()
    }

    /// The first operation of this role.
    pub fn op(&self, role: Role) -> Option<&str> {
        self.ops.iter().map(String::as_str).find(|op| self.role_of_op(op) == Some(role))
    }

    /// Its index.
    pub fn op_index(&self, role: Role) -> Option<usize> {
        self.ops.iter().position(|op| self.role_of_op(op) == Some(role))
    }

    /// The counters of this role by their indices, in their order.
    pub fn counters(&self, role: Role) -> impl Iterator<Item = usize> {
        let is_one = move |name: &String| self.counter_roles.get(name) == Some(&role);
        self.counters.iter().enumerate().filter(move |(_, name)| is_one(name)).map(|(index, _)| index)
    }
}

/// The names as a trial has them. Trials of older versions have no roles: there the names themselves said what they were for.
#[derive(Deserialize)]
struct StoredNames {
    ops: Vec<String>,
    errors: Vec<String>,
    counters: Vec<String>,
    connect_failures: Vec<String>,
    #[serde(default)]
    timed_ops: usize,
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    kinds: BTreeMap<String, ErrorKind>,
    op_roles: Option<BTreeMap<String, Role>>,
    counter_roles: Option<BTreeMap<String, Role>>,
}

impl From<StoredNames> for MetricNames {
    fn from(stored: StoredNames) -> Self {
        let roles = |names: &[String], role_of: fn(&str) -> Option<Role>| {
            names.iter().filter_map(|name| Some((name.clone(), role_of(name)?))).collect()
        };
        MetricNames {
            op_roles: stored.op_roles.unwrap_or_else(|| roles(&stored.ops, old_op)),
            counter_roles: stored.counter_roles.unwrap_or_else(|| roles(&stored.counters, old_counter)),
            timed_ops: stored.timed_ops.min(stored.ops.len()),
            ops: stored.ops,
            errors: stored.errors,
            counters: stored.counters,
            connect_failures: stored.connect_failures,
            values: stored.values,
            kinds: stored.kinds,
        }
    }
}

fn old_op(name: &str) -> Option<Role> {
    Some(match name {
        "shot" => Role::Shot,
        "keep" => Role::Keep,
        "audit" => Role::Audit,
        _ => return None,
    })
}

fn old_counter(name: &str) -> Option<Role> {
    Some(match name {
        "games_played" => Role::GamesPlayed,
        "delivered" => Role::Delivered,
        OPEN_TIME => Role::OpenTime,
        "audit_checked" => Role::AuditChecked,
        "audit_wrong" => Role::AuditWrong,
        _ if name.starts_with("phase_") => Role::ArrivalPhase,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r#"{"ops": ["keep", "say"], "errors": [], "counters": ["games", "phase_00", "delivered", "phase_01"],
        "connect_failures": [], "kinds": {"reset": "BrokenConnection"}}"#;

    #[test]
    fn a_name_has_the_role_that_was_declared_and_no_other() {
        let names = MetricNames::new(&["keep", "hail"], &[], &["keep", "b", "a"], &[])
            .with_timed_ops(1)
            .with_op_roles(&[("hail", Role::Keep)])
            .with_counter_roles(&[("a", Role::ArrivalPhase), ("b", Role::ArrivalPhase)]);
        let stored: MetricNames = serde_json::from_str(&serde_json::to_string(&*names).unwrap()).unwrap();
        assert_eq!(stored, *names);
        assert_eq!((stored.op(Role::Keep), stored.role_of_op("keep")), (Some("hail"), None));
        assert_eq!(stored.counters(Role::ArrivalPhase).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(stored.counters(Role::Keep).count(), 0);
    }

    #[test]
    fn names_of_a_version_without_roles_have_those_that_they_said() {
        let names: MetricNames = serde_json::from_str(OLD).unwrap();
        assert_eq!((names.op(Role::Keep), names.op(Role::Shot)), (Some("keep"), None));
        assert_eq!(names.counters(Role::ArrivalPhase).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(names.counters(Role::Delivered).collect::<Vec<_>>(), [2]);
        assert_eq!(names.kind_of("reset"), Some(ErrorKind::BrokenConnection));
    }
}
