//! An event descriptor that ends another thread's wait.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd by which one thread ends another one's wait.
#[derive(Debug)]
pub struct Wakeup(OwnedFd);

impl Wakeup {
    /// Errors: the system has no descriptor left.
    pub fn new() -> io::Result<Wakeup> {
        Ok(Wakeup(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Ends the wait, or the next one at once. The count is never read: watched edge-triggered, every ring is an event.
    pub fn ring(&self) {
        // It fails only when the counter is full, i.e. already signalled.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Its descriptor, to keep it in a thread's own table.
    pub fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
