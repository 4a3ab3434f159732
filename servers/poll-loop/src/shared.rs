//! State shared by the two threads and the controlling one.
//!
//! Requests go from the network to the loop through a non-blocking channel; the loop sends answers on the connection
//! they came from. A lock is held for some ns, except a connection's own during one send.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::admission::Admission;
use super::connection::Connection;
use super::options::Options;
use super::services::Ask;
use super::turn::Frames;
use servers_shared::slab::Key;
use servers_shared::thread::Common;
use servers_shared::ticks::TickTally;
use servers_shared::wakeup::Wakeup;

pub(super) struct Shared {
    pub(super) options: Options,
    /// Shuts down when everything admitted was answered, or there is no more time.
    pub(super) common: Arc<Common>,
    pub(super) admission: Admission,
    /// Wakes the network.
    pub(super) wakeup: Wakeup,
    /// Connections with more to read, now that they were answered.
    pub(super) resumed: Mutex<Vec<Key>>,
    pub(super) sockets: AtomicUsize,
    /// Requests that wholly arrived; = refused + answers + dropped + those admitted and not yet answered.
    pub(super) requests: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Of the loop, as of its last tick.
    pub(super) looped: Mutex<Looped>,
    /// The server is shutting down: no more clients are accepted.
    pub(super) draining: AtomicBool,
    /// The network has seen that.
    pub(super) shut: AtomicBool,
}

/// What the loop has counted.
#[derive(Clone, Debug)]
pub(super) struct Looped {
    pub(super) ticks: Box<TickTally>,
    /// Since the server's start.
    pub(super) answers: u64,
    /// Requests whose client disconnected before its answer was complete.
    pub(super) dropped: u64,
    pub(super) frames: Frames,
}

/// A request on its way to the loop.
pub(super) struct Arrival {
    pub(super) connection: Arc<Connection>,
    pub(super) ask: Ask,
    pub(super) at_ns: u64,
}

impl Shared {
    pub(super) fn new(options: Options, common: Arc<Common>) -> io::Result<Shared> {
        Ok(Shared {
            admission: Admission::new(options.queue),
            wakeup: Wakeup::new()?,
            resumed: Mutex::default(),
            sockets: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            looped: Mutex::new(Looped::new()),
            draining: AtomicBool::new(false),
            shut: AtomicBool::new(false),
            options,
            common,
        })
    }

    /// Begins the shutdown: no more connections or requests are accepted.
    pub(super) fn drain(&self) {
        self.common.listener.refuse();
        self.draining.store(true, Ordering::Release);
        self.wakeup.ring();
    }

    /// Ends both threads.
    pub(super) fn close(&self) {
        self.common.going_down.store(true, Ordering::Release);
        self.wakeup.ring();
    }

    /// The network reads on where it stopped.
    pub(super) fn resume(&self, key: Key) {
        self.resumed.lock().unwrap_or_else(PoisonError::into_inner).push(key);
        self.wakeup.ring();
    }

    pub(super) fn looped(&self) -> MutexGuard<'_, Looped> {
        self.looped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Looped {
    pub(super) fn new() -> Looped {
        Looped { ticks: Box::new(TickTally::new()), answers: 0, dropped: 0, frames: Frames::default() }
    }
}
