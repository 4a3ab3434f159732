//! State shared by all threads of one chat, and how they notify each other.
//!
//! A thread that rests between two rounds checks by itself. One that sleeps because it was idle is woken through an
//! event descriptor; all threads keep the same ones under the same numbers, so that the number means the same in each
//! table (see `thread_table`). It is written to at most once per sleep.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::memory::Memory;
use super::nodes::Nodes;
use super::options::Options;
use super::room::Tell;
use super::rooms::Rooms;
use super::totals::Totals;
use servers_shared::address_limit::AddressLimit;
use servers_shared::thread::Common;
use servers_shared::wakeup::Wakeup;

pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) common: Arc<Common>,
    pub(super) address_limit: Mutex<AddressLimit>,
    pub(super) memory: Memory,
    pub(super) rooms: Rooms,
    /// The link to the other nodes, if there are any.
    pub(super) nodes: Option<Arc<Nodes>>,
    /// Names that are taken, in lower case.
    pub(super) names: Mutex<HashSet<String>>,
    pub(super) threads_shared: Vec<ThreadShared>,
}

impl Shared {
    pub(super) fn new(
        options: Options,
        common: Arc<Common>,
        threads_shared: Vec<ThreadShared>,
        nodes: Option<Arc<Nodes>>,
    ) -> Shared {
        let memory = Memory::new(&options);
        Shared {
            common,
            address_limit: Mutex::new(AddressLimit::new(options.per_address_rate, true)),
            rooms: Rooms::new(threads_shared.len(), memory.batches.clone(), nodes.clone()),
            nodes,
            memory,
            names: Mutex::new(HashSet::new()),
            threads_shared,
            options,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        let clients =
            self.threads_shared.iter().map(|thread_shared| thread_shared.clients.load(Ordering::Relaxed));
        clients.sum::<usize>() >= self.options.max_clients
    }

    /// Notifies threads of rooms with new lines.
    pub(super) fn tell(&self, tells: &mut Vec<Tell>) {
        for Tell { thread, local } in tells.drain(..) {
            // Behind the threads comes the link to the other nodes.
            let link = self.nodes.as_ref().map(|nodes| &nodes.notified);
            if let Some(notified) = self.threads_shared.get(thread).or(link) {
                notified.bring(local);
            }
        }
    }

    pub(super) fn go_down(&self) {
        self.common.listener.refuse();
        self.common.going_down.store(true, Ordering::SeqCst);
        self.threads_shared.iter().for_each(|thread_shared| thread_shared.wakeup.ring());
        if let Some(nodes) = &self.nodes {
            nodes.notified.wakeup.ring();
        }
    }

    pub(super) fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for thread_shared in &self.threads_shared {
            sum.add(&thread_shared.totals.lock().unwrap_or_else(PoisonError::into_inner));
        }
        sum.backlog_bytes += self.memory.batches.load(Ordering::Relaxed) as u64;
        sum
    }

    /// What waits for clients, and what is on its way to them, in bytes.
    pub(super) fn backlog_bytes(&self) -> usize {
        let queues = self
            .threads_shared
            .iter()
            .map(|thread_shared| thread_shared.backlog_bytes.load(Ordering::Relaxed));
        self.memory.batches.load(Ordering::Relaxed) + queues.sum::<usize>()
    }
}

/// One thread's part of what is shared.
pub(super) struct ThreadShared {
    /// Rooms with something to fetch, by what the thread calls them.
    due: Mutex<Vec<u32>>,
    has_due: AtomicBool,
    sleeps: AtomicBool,
    pub(super) wakeup: Wakeup,
    pub(super) clients: AtomicUsize,
    /// The memory that its queues need besides the batches.
    pub(super) backlog_bytes: AtomicUsize,
    /// See `Thread::trimmed_for`.
    pub(super) trimmed_for: AtomicU64,
    /// As of the thread's last turn; its own sums add up in there.
    pub(super) totals: Mutex<Totals>,
}

impl ThreadShared {
    pub(super) fn new() -> io::Result<ThreadShared> {
        Ok(ThreadShared {
            due: Mutex::default(),
            has_due: AtomicBool::new(false),
            sleeps: AtomicBool::new(false),
            wakeup: Wakeup::new()?,
            clients: AtomicUsize::new(0),
            backlog_bytes: AtomicUsize::new(0),
            trimmed_for: AtomicU64::new(0),
            totals: Mutex::default(),
        })
    }

    pub(super) fn bring(&self, local: u32) {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).push(local);
        self.has_due.store(true, Ordering::SeqCst);
        if self.sleeps.swap(false, Ordering::SeqCst) {
            self.wakeup.ring();
        }
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
        // A notifier sets `has_due` before it reads `sleeps`: at least one of the two sees the other.
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
