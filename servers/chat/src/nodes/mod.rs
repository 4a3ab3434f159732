//! Rooms that span nodes: chats that share one NATS server.
//!
//! A line is published once per room, whatever the number of its receivers, and only nodes with members of the room get
//! it. One thread of its own (`link`) does that; to the threads that serve it is one more thread that fetches what is new
//! in the rooms, so that nothing here ever makes them wait.
//! Invariants: a node numbers what is said to a room through it, so that another one books each line that did not come as
//! owed and dropped (`numbers`) · a client has joined once the broker has confirmed the node's subscription and the other
//! nodes have said how far their numbers are · books are told once what was said through this node before has reached
//! the rooms of the others (`fences`). Within a node all members see one order; across nodes the lines of each node keep
//! theirs.

mod fences;
mod link;
pub(super) mod message;
mod numbers;
mod peers;
mod published;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::room::Room;
use super::shared::ThreadShared;
pub(super) use link::Link;

/// A name that no room has: it only wakes a thread.
const NO_ROOM: u32 = u32::MAX;

/// What the threads of a chat share with the one that speaks to the other nodes.
pub(super) struct Nodes {
    /// How it is notified of rooms with new lines, as every thread is.
    pub(super) notified: ThreadShared,
    changes: Mutex<Vec<Change>>,
    /// How often somebody asked whether everything before has reached the other nodes.
    asked: AtomicU64,
    /// Up to which of them that is settled.
    answered: AtomicU64,
    /// Why the last answer was not a plain yes.
    doubt: Mutex<Option<Arc<str>>>,
    /// Sentences for who runs this chat.
    said: Mutex<Vec<String>>,
    is_connected: AtomicBool,
    pub(super) counters: Counters,
}

/// A room that this node has members in now, or none any more.
enum Change {
    Opened(Arc<Room>),
    Closed(Arc<Room>),
}

/// Since the start; published in the metrics.
#[derive(Default)]
pub(super) struct Counters {
    /// Lines that were said here and went to the broker.
    pub(super) published: AtomicU64,
    /// Messages that these were.
    pub(super) messages: AtomicU64,
    /// Lines that were said here and could not go to the broker.
    pub(super) unpublished: AtomicU64,
    /// Lines of other nodes.
    pub(super) received: AtomicU64,
    /// Lines of other nodes that did not come.
    pub(super) missing: AtomicU64,
    /// Messages that no node has sent.
    pub(super) strange: AtomicU64,
    /// Connections to the broker that were lost.
    pub(super) losses: AtomicU64,
    /// Other nodes that are there now.
    pub(super) nodes: AtomicU64,
    /// Fences, and those that not every node answered in time.
    pub(super) fences: AtomicU64,
    pub(super) fences_late: AtomicU64,
    /// What they took in all, ns.
    pub(super) fences_ns: AtomicU64,
}

impl Nodes {
    pub(super) fn new() -> io::Result<Nodes> {
        Ok(Nodes {
            notified: ThreadShared::new()?,
            changes: Mutex::default(),
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            doubt: Mutex::default(),
            said: Mutex::default(),
            is_connected: AtomicBool::new(false),
            counters: Counters::default(),
        })
    }

    /// The first member has come, or the last one has gone. The caller holds what keeps the two in order.
    pub(super) fn opened(&self, room: &Arc<Room>) {
        self.change(Change::Opened(room.clone()));
    }

    /// See `opened`.
    pub(super) fn closed(&self, room: &Arc<Room>) {
        self.change(Change::Closed(room.clone()));
    }

    fn change(&self, change: Change) {
        held(&self.changes).push(change);
        self.notified.bring(NO_ROOM);
    }

    /// Asks whether everything that was said here until now has reached the other nodes; it has, as far as it ever will,
    /// once `answered` is as large as this. The threads are woken then.
    pub(super) fn ask(&self) -> u64 {
        let number = self.asked.fetch_add(1, SeqCst) + 1;
        self.notified.bring(NO_ROOM);
        number
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.load(SeqCst)
    }

    /// What a client should know besides its books: which nodes may not have everything.
    pub(super) fn doubt(&self) -> Option<Arc<str>> {
        held(&self.doubt).clone()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.is_connected.load(Relaxed)
    }

    /// Sentences since the last call.
    pub(super) fn take_said(&self) -> Vec<String> {
        std::mem::take(&mut *held(&self.said))
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
