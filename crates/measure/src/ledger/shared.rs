//! State shared by all parts of a trial's ledger: when memberships changed, and the rooms of scripts by name.
//!
//! A script reports who sent which message and who received it, but not when it was planned. So each sender's latest
//! instants are kept here, where the receivers' workers read them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::cell::SEQ_END;

/// Instants that are kept for each sender in each room: at 20 messages a second those of 12 s.
const PLANNED: usize = 256;
/// Instants are stored in µs below the message's number.
const PLANNED_BITS: u32 = 40;
const US: u64 = 1_000;

/// What all parts of a trial share.
#[derive(Clone, Debug, Default)]
pub struct SharedLedger(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// when a membership last began or ended, ns
    changed_ns: AtomicU64,
    rooms: Mutex<HashMap<Box<str>, Arc<SharedRoom>>>,
    /// deliveries that messages owed to the members of their instant
    owed: AtomicU64,
    /// of these, those that came
    delivered: AtomicU64,
}

/// One room.
#[derive(Debug, Default)]
pub(super) struct SharedRoom {
    members: AtomicU64,
    senders: RwLock<HashMap<u32, Arc<Planned>>>,
}

/// When the latest messages of one sender in one room were planned: number + 1, and the instant.
#[derive(Debug)]
pub(super) struct Planned([AtomicU64; PLANNED]);

impl SharedLedger {
    pub(super) fn note(&self, at_ns: u64) {
        self.0.changed_ns.fetch_max(at_ns, Relaxed);
    }

    pub(super) fn changed_ns(&self) -> u64 {
        self.0.changed_ns.load(Relaxed)
    }

    /// A room by its name, which is made by the first that names it.
    pub(super) fn room(&self, name: &str) -> Arc<SharedRoom> {
        let mut rooms = self.0.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(rooms.entry(name.into()).or_default())
    }

    pub(super) fn has_rooms(&self) -> bool {
        !self.0.rooms.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(super) fn owes(&self, deliveries: u64) {
        self.0.owed.fetch_add(deliveries, Relaxed);
    }

    pub(super) fn delivered(&self) {
        self.0.delivered.fetch_add(1, Relaxed);
    }

    /// Every delivery that a message owed to a member of its instant has come. Where members left meanwhile this may stay false.
    pub(super) fn owes_nothing(&self) -> bool {
        self.0.delivered.load(Relaxed) >= self.0.owed.load(Relaxed)
    }
}

impl SharedRoom {
    pub(super) fn members(&self) -> u64 {
        self.members.load(Relaxed)
    }

    pub(super) fn joined(&self) {
        self.members.fetch_add(1, Relaxed);
    }

    pub(super) fn left(&self) {
        self.members.fetch_sub(1, Relaxed);
    }

    /// Where a sender's instants stand; made for those that send.
    pub(super) fn sender(&self, number: u32) -> Arc<Planned> {
        let mut senders = self.senders.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(senders.entry(number).or_default())
    }

    /// The same for those that receive. `None`: it has sent nothing.
    pub(super) fn known_sender(&self, number: u32) -> Option<Arc<Planned>> {
        self.senders.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }
}

impl Default for Planned {
    fn default() -> Planned {
        Planned([const { AtomicU64::new(0) }; PLANNED])
    }
}

impl Planned {
    /// Enters a message. `seq` < `SEQ_END`.
    pub(super) fn enter(&self, seq: u32, planned_ns: u64) {
        debug_assert!(seq < SEQ_END);
        let planned = (planned_ns / US) & ((1 << PLANNED_BITS) - 1);
        self.0[seq as usize % PLANNED].store(u64::from(seq + 1) << PLANNED_BITS | planned, Relaxed);
    }

    /// When a message was planned, ns, to 1 µs; of one that newer ones have displaced the instant of a newer one, so that its
    /// latency is at least what follows. `None`: it was not sent.
    pub(super) fn of(&self, seq: u32) -> Option<u64> {
        let entry = self.0[seq as usize % PLANNED].load(Relaxed);
        let is_sent = entry >> PLANNED_BITS > u64::from(seq);
        is_sent.then_some((entry & ((1 << PLANNED_BITS) - 1)) * US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_those_of_their_message_or_of_a_newer_one() {
        let planned = Planned::default();
        assert_eq!(planned.of(0), None);
        planned.enter(0, 5_000_999);
        planned.enter(SEQ_END - 1, 7_000_000);
        assert_eq!((planned.of(0), planned.of(1)), (Some(5_000_000), None));
        assert_eq!(planned.of(SEQ_END - 1), Some(7_000_000));
        planned.enter(256, 9_000_000);
        assert_eq!(
            (planned.of(0), planned.of(256), planned.of(512)),
            (Some(9_000_000), Some(9_000_000), None)
        );
    }
}
