//! What all threads of one chat share, and how one learns that another has something for it.
//!
//! A thread that rests between two rounds looks by itself. One that sleeps because nothing was to do is woken
//! through an event descriptor; all threads keep the same ones under the same numbers, so that the number means
//! the same in each one's table (see `thread_table`). It is written to at most once per sleep.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::options::Options;
use super::room::Tell;
use super::rooms::Rooms;
use super::totals::Totals;
use crate::address_limit::AddressLimit;
use crate::fault::Faults;
use crate::listener::Listener;

pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) listener: Listener,
    pub(super) address_limit: Mutex<AddressLimit>,
    pub(super) rooms: Rooms,
    /// Names that are taken, in lower case.
    pub(super) names: Mutex<HashSet<String>>,
    pub(super) threads_shared: Vec<ThreadShared>,
    /// Sockets that fit one thread's descriptor table.
    pub(super) table_sockets: usize,
    pub(super) going_down: AtomicBool,
    pub(super) faults: Option<Arc<Faults>>,
}

impl Shared {
    pub(super) fn is_full(&self) -> bool {
        let clients =
            self.threads_shared.iter().map(|thread_shared| thread_shared.clients.load(Ordering::Relaxed));
        clients.sum::<usize>() >= self.options.max_clients
    }

    /// Tells threads of rooms in which something was said.
    pub(super) fn tell(&self, tells: &mut Vec<Tell>) {
        tells.drain(..).for_each(|Tell { thread, local }| self.threads_shared[thread].bring(local));
    }

    pub(super) fn go_down(&self) {
        self.listener.refuse();
        self.going_down.store(true, Ordering::SeqCst);
        self.threads_shared.iter().for_each(ThreadShared::wake);
    }

    pub(super) fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for thread_shared in &self.threads_shared {
            sum.add(&thread_shared.totals.lock().unwrap_or_else(PoisonError::into_inner));
        }
        sum
    }
}

/// One thread's part of what is shared.
pub(super) struct ThreadShared {
    /// Rooms with something to fetch, by what the thread calls them.
    due: Mutex<Vec<u32>>,
    has_due: AtomicBool,
    sleeps: AtomicBool,
    event: OwnedFd,
    pub(super) clients: AtomicUsize,
    /// As of the thread's last turn; its own sums add up in there.
    pub(super) totals: Mutex<Totals>,
}

impl ThreadShared {
    pub(super) fn new() -> io::Result<ThreadShared> {
        // SAFETY: no pointers; the descriptor is checked and then owned.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(ThreadShared {
            due: Mutex::default(),
            has_due: AtomicBool::new(false),
            sleeps: AtomicBool::new(false),
            // SAFETY: `fd` is open and nobody else owns it.
            event: unsafe { OwnedFd::from_raw_fd(fd) },
            clients: AtomicUsize::new(0),
            totals: Mutex::default(),
        })
    }

    pub(super) fn event(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    fn bring(&self, local: u32) {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).push(local);
        self.has_due.store(true, Ordering::SeqCst);
        if self.sleeps.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Ends the thread's sleep, or the next one at once. The count is never read: watched edge-triggered, every
    /// write is an event.
    pub(super) fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight valid bytes are passed. The write fails only when the counter is full, i.e. awake.
        unsafe { libc::write(self.event(), (&raw const one).cast(), 8) };
    }

    pub(super) fn has_due(&self) -> bool {
        self.has_due.load(Ordering::SeqCst)
    }

    /// Moves what was brought to `due`.
    pub(super) fn fetch(&self, due: &mut Vec<u32>) {
        if self.has_due.swap(false, Ordering::SeqCst) {
            due.append(&mut self.due.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// The thread is about to sleep; false when it must not, because something came.
    pub(super) fn may_sleep(&self) -> bool {
        self.sleeps.store(true, Ordering::SeqCst);
        // Whoever brings something sets `has_due` before it looks at `sleeps`: one of both sees the other.
        let may = !self.has_due();
        if !may {
            self.sleeps.store(false, Ordering::SeqCst);
        }
        may
    }

    pub(super) fn slept(&self) {
        self.sleeps.store(false, Ordering::SeqCst);
    }
}
