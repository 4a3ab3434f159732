//! Stops a turn that does not end.
//!
//! What counts is the CPU time of this thread: on a machine that is busy with something else, a turn may take long without
//! being at fault. The engine asks every ten thousand steps, so that a turn of usual length reads no clock at all.

use std::cell::Cell;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A turn that takes more CPU time is stopped.
pub(super) const TURN_CPU: Duration = Duration::from_secs(1);

/// The turn that is under way.
#[derive(Default)]
pub(super) struct Watch {
    is_on: Cell<bool>,
    /// CPU time of the thread when the engine first asked
    first: Cell<Option<Duration>>,
    has_stopped: Cell<bool>,
}

impl Watch {
    pub(super) fn begin(&self) {
        self.is_on.set(true);
        self.first.set(None);
        self.has_stopped.set(false);
    }

    /// Ends the turn. Whether it was stopped.
    pub(super) fn end(&self) -> bool {
        self.is_on.set(false);
        self.has_stopped.take()
    }

    /// Whether this turn was stopped.
    pub(super) fn has_stopped(&self) -> bool {
        self.has_stopped.get()
    }

    /// Whether the engine should stop. Once it should, it should until the turn ends: each of its jobs ends then.
    pub(super) fn stops(&self) -> bool {
        if !self.is_on.get() || self.has_stopped.get() {
            return self.has_stopped.get();
        }
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let now = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        match self.first.get() {
            None => self.first.set(Some(now)),
            Some(first) => self.has_stopped.set(now.saturating_sub(first) > TURN_CPU),
        }
        self.has_stopped.get()
    }
}
