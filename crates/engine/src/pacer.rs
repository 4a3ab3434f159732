//! The pacer: what is due next.
//!
//! A heap of absolute instants. It never sleeps, reads a clock or opens a socket.
//! Invariant: an intended time comes from the plan and a counter alone, never from the arrival of a reply. Otherwise a
//! slow server slows down the requests, and its slowness disappears from the histogram (coordinated omission).
//! Units: ns since the start of the trial. Source: G. Tene, wrk2 README.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ids::ConnectionId;

/// What falls due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// a bot asked to be called
    Bot {
        /// which
        bot: u32,
        /// what it wants to do then; its own code
        what: u32,
    },
    /// a connection that paused reads again
    Read(ConnectionId),
    /// a connection must be open by now
    OpenDeadline(ConnectionId),
    /// a close must be answered by now
    CloseDeadline(ConnectionId),
}

/// A heap of instants.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    heap: BinaryHeap<Reverse<(u64, Item)>>,
}

impl Pacer {
    pub(crate) fn with_capacity(items: usize) -> Self {
        Pacer { heap: BinaryHeap::with_capacity(items) }
    }

    pub(crate) fn push(&mut self, at_ns: u64, item: Item) {
        self.heap.push(Reverse((at_ns, item)));
    }

    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<(u64, Item)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due)
    }
}
