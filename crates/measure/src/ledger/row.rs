//! One receiver, as far as it is known during the trial.

use serde::{Deserialize, Serialize};

use super::cell::Arrival;
use super::departures::Departures;
use crate::distribution::{COUNT_MAX, LONGEST_NS};

/// The instant of something that has not happened.
pub(super) const NEVER: u64 = u64::MAX;

/// A worker that keeps up reads within a few milliseconds. One that reads so much later has no time left, and a server whose
/// lines fill the socket meanwhile has to drop them.
pub(super) const READ_LATE_NS: u64 = 250_000_000;

/// A membership, from the request to join to the end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Span {
    /// the request left; members from here on, at the earliest
    pub(super) asked_ns: u64,
    /// the server's word was read; members from here on, at the latest
    pub(super) joined_ns: u64,
    /// the request to leave left, or the connection was cut
    pub(super) leaving_ns: u64,
    /// the connection ended
    pub(super) left_ns: u64,
}

/// What the server itself says of a client's deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    /// lines owed to this client
    pub owed: u64,
    /// handed to the kernel
    pub delivered: u64,
    /// dropped, because its backlog was full
    pub dropped: u64,
    /// still in its backlog
    pub in_flight: u64,
}

/// One receiver besides its cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) late: u64,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
    pub(super) latency_sum_ns: u64,
    pub(super) latency_count: u64,
    pub(super) latency_max_ns: u64,
    /// lines that the server said this client missed, in notices
    pub(super) missed: u64,
    /// of these, told after it was read late: the server dropped them while the bots had no time to read
    pub(super) missed_unread: u64,
    /// its last read was late
    pub(super) is_behind: bool,
    /// until then a notice may refer to messages dropped while nobody read
    pub(super) behind_until_ns: u64,
    /// its last read was not later than that
    pub(super) was_behind: bool,
    /// of what it missed, in memberships before the present one, which the server's own books do not cover
    pub(super) missed_before: u64,
    /// the server's own books, where it tells them
    pub(super) told: Option<ServerReport>,
    /// everything sent before has arrived: the server confirmed it afterwards
    pub(super) is_caught_up: bool,
    /// behaves badly, and is judged separately
    pub(super) is_excluded: bool,
    pub(super) spans: Vec<Span>,
    /// in rooms, which one need not be a member of to speak: when what it had sent may have been cut off
    pub(super) cut_ns: Vec<u64>,
    pub(super) departures: Departures,
}

impl Row {
    /// Counts what did not come in order. True: it came before.
    pub(super) fn came(&mut self, arrival: Arrival) -> bool {
        match arrival {
            Arrival::InOrder => {}
            Arrival::Reordered => self.reordered += 1,
            Arrival::Duplicate => self.duplicated += 1,
        }
        arrival == Arrival::Duplicate
    }

    /// A join request is sent; any previous membership has ended.
    pub(super) fn asked(&mut self, at_ns: u64) {
        self.spans.push(Span { asked_ns: at_ns, joined_ns: NEVER, leaving_ns: NEVER, left_ns: NEVER });
    }

    /// It has not left.
    pub(super) fn stays(&self) -> bool {
        self.spans.last().is_some_and(|span| span.leaving_ns == NEVER)
    }

    /// Whether its counts can have been counted, which is not sure of what was read.
    pub(super) fn is_whole(&self) -> bool {
        let told = self.told.unwrap_or_default();
        let counts = [
            self.late,
            self.duplicated,
            self.reordered,
            self.latency_count,
            self.missed,
            self.missed_unread,
            self.missed_before,
            told.owed,
            told.delivered,
            told.dropped,
            told.in_flight,
        ];
        counts.iter().all(|count| *count <= COUNT_MAX)
            && self.latency_max_ns <= LONGEST_NS
            && self.latency_sum_ns <= self.latency_count.saturating_mul(LONGEST_NS)
            && self.departures.is_whole()
    }

    /// What was measured of one bot in another room.
    pub(super) fn add(&mut self, other: &Row) {
        self.late += other.late;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(other.latency_sum_ns);
        self.latency_count += other.latency_count;
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
    }
}
