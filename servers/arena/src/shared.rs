//! State shared by all threads of one arena. Counters are atomics; the few locks are held for a handful of
//! instructions, or are only ever tried (`door`, the tallies).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::inbox::Inbox;
use super::lobby::Lobby;
use super::nodes::Nodes;
use super::options::Options;
use super::tally::Exchange;
use servers_shared::address_limit::AddressLimit;
use servers_shared::clock::WallClock;
use servers_shared::thread::Common;

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) fire_interval_ns: u64,
    pub(crate) wall: WallClock,
    pub(crate) start_ns: u64,
    pub(crate) common: Arc<Common>,
    /// The holder of this lock accepts connections; the order of accepting is the order of arrival.
    pub(crate) door: Mutex<AddressLimit>,
    pub(crate) lobby: Mutex<Lobby>,
    /// None: players are paired as they come.
    pub(crate) nodes: Option<Arc<Nodes>>,
    pub(crate) threads_shared: Vec<ThreadShared>,
    /// The first this many threads take connections; the rest wait until these are nearly full.
    pub(crate) first_threads: usize,
    /// Concurrent sockets over all threads: the requested number, or what fits into all tables.
    pub(crate) sockets_max: usize,
    pub(crate) next_player_id: AtomicU64,
    /// When the control thread asks for the tallies next; a resting thread is awake by then.
    pub(crate) next_ask_ns: AtomicU64,
}

impl Shared {
    pub(crate) fn is_full(&self) -> bool {
        self.free_sockets() == 0
    }

    /// How many more sockets it takes.
    pub(crate) fn free_sockets(&self) -> usize {
        let sockets = |thread_shared: &ThreadShared| thread_shared.sockets.load(Ordering::Relaxed);
        self.sockets_max.saturating_sub(self.threads_shared.iter().map(sockets).sum())
    }
}

/// One thread's part of what is shared.
pub(crate) struct ThreadShared {
    pub(crate) inbox: Inbox,
    pub(crate) exchange: Exchange,
    pub(crate) sockets: AtomicUsize,
    pub(crate) games: AtomicUsize,
}

impl ThreadShared {
    pub(crate) fn new() -> ThreadShared {
        ThreadShared {
            inbox: Inbox::default(),
            exchange: Exchange::new(),
            sockets: AtomicUsize::new(0),
            games: AtomicUsize::new(0),
        }
    }
}
