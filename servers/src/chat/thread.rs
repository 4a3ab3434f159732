//! One thread of the chat: its turn, and how it rests between turns.
//!
//! A turn reads what is ready, and writes a round when one is due. Lines go to their room as soon as they are
//! read; a round takes all that is new in the rooms of this thread's clients and gives each client one write.
//! Between two rounds it sleeps by the clock and lets lines wait in their sockets for at most `STEP_NS_MAX`,
//! because a wake-up per line costs more than the line. With nothing to do it sleeps in epoll; then the first
//! line leaves at once.
//! The other parts of a thread: `accept` (connections), `input` (lines in), `flush` (lines out).

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::accept::Goodbye;
use super::batch::Speech;
use super::clients::{Clients, Key};
use super::deadlines::{Deadlines, What};
use super::faults::HeldBack;
use super::room::Tell;
use super::rooms::LocalRooms;
use super::shared::{Shared, ThreadShared};
use super::totals::Totals;
use super::window::Pace;
use crate::epoll::{Epoll, LISTENER_KEY};
use crate::fault::ThreadFaults;
use crate::{clock, sleeper, thread_table};

/// The longest sleep between two looks at the sockets while lines are on their way.
const STEP_NS_MAX: u64 = 2_000_000;

/// The longest rest at all.
const IDLE_REST_NS: u64 = 250_000_000;

/// A read's worth.
const BUFFER_BYTES: usize = 64 * 1024;

/// Short enough that a round begins at once though the core is busy.
const SLICE_NS: u64 = 100_000;

/// Under this key the thread's own event is watched; no client ever gets it.
const EVENT_KEY: u64 = u64::MAX - 1;

pub(super) struct Thread {
    pub(super) shared: Arc<Shared>,
    pub(super) me: usize,
    pub(super) epoll: Epoll,
    pub(super) listening: bool,
    pub(super) listener_ready: bool,
    /// Out of descriptors or memory until then.
    pub(super) back_off_until_ns: u64,
    pub(super) clients: Clients,
    pub(super) rooms: LocalRooms,
    /// Rooms with something for the next round.
    pub(super) due: Vec<u32>,
    /// Who has asked for books: they are told after the next round.
    pub(super) askers: Vec<Key>,
    /// Who had more to say than is heard in one turn.
    pub(super) unfinished: Vec<Key>,
    pub(super) pace: Pace,
    pub(super) faults: ThreadFaults,
    /// What a planted fault holds back of what clients sent.
    pub(super) held_back: HeldBack,
    pub(super) totals: Totals,
    pub(super) deadlines: Deadlines,
    /// When the thread ends at the latest; None before the server goes down.
    gone_by_ns: Option<u64>,
    next_idle_check_ns: u64,
    /// Shared by all reads of this thread.
    pub(super) buffer: Box<[u8]>,
    pub(super) speech: Speech,
    pub(super) tells: Vec<Tell>,
    pub(super) vectors: Vec<libc::iovec>,
}

/// A thread's whole life. It must be new: it gives itself a descriptor table of its own.
pub(super) fn run(shared: Arc<Shared>, me: usize) -> std::io::Result<()> {
    let mut keep: Vec<_> = shared.threads_shared.iter().map(ThreadShared::event).collect();
    keep.push(shared.listener.raw());
    // Kernels before 5.9 refuse; then all threads share one table, and only its size is lost.
    let _ = thread_table::own(&keep);
    sleeper::no_timer_slack();
    sleeper::short_slices(SLICE_NS);
    let options = &shared.options;
    let epoll = Epoll::new()?;
    epoll.add(shared.threads_shared[me].event(), EVENT_KEY, false)?;
    let mut thread = Thread {
        me,
        epoll,
        listening: false,
        listener_ready: false,
        back_off_until_ns: 0,
        clients: Clients::default(),
        rooms: LocalRooms::default(),
        due: Vec::new(),
        askers: Vec::new(),
        unfinished: Vec::new(),
        pace: Pace::new(options.window),
        faults: ThreadFaults::new(shared.faults.clone()),
        held_back: HeldBack::default(),
        totals: Totals::default(),
        deadlines: Deadlines::new(options),
        gone_by_ns: None,
        next_idle_check_ns: 0,
        buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        speech: Speech::default(),
        tells: Vec::new(),
        vectors: Vec::new(),
        shared,
    };
    thread.live();
    Ok(())
}

impl Thread {
    fn live(&mut self) {
        let mut wait_ns = 0;
        loop {
            self.read_sockets(wait_ns);
            self.read_the_unfinished();
            self.carry_out_faults();
            if self.has_work() && clock::now_ns() >= self.pace.next_ns() {
                self.flush_rooms();
            }
            self.keep_listening();
            if self.listener_ready {
                self.take_connections();
            }
            self.cut_the_late();
            self.go_down_when_told();
            self.publish();
            if self.is_done() {
                return;
            }
            wait_ns = self.rest();
        }
    }

    pub(super) fn thread_shared(&self) -> &ThreadShared {
        &self.shared.threads_shared[self.me]
    }

    pub(super) fn is_going_down(&self) -> bool {
        self.gone_by_ns.is_some()
    }

    fn has_work(&self) -> bool {
        !self.due.is_empty() || !self.askers.is_empty() || self.thread_shared().has_due()
    }

    fn read_sockets(&mut self, mut wait_ns: u64) {
        self.listener_ready = false;
        loop {
            let count = self.epoll.wait(wait_ns);
            if std::mem::take(&mut wait_ns) > 0 {
                self.thread_shared().slept();
            }
            for i in 0..count {
                let ready = self.epoll.event(i);
                match ready.key {
                    LISTENER_KEY => self.listener_ready = true,
                    EVENT_KEY => {}
                    bits => {
                        let key = Key::from_bits(bits);
                        if ready.writable {
                            self.unblock(key);
                        }
                        if ready.readable {
                            self.read_client(key, ready.ended);
                        }
                    }
                }
            }
            if !self.epoll.may_have_more() || self.has_work() && clock::now_ns() >= self.pace.next_ns() {
                return;
            }
        }
    }

    fn publish(&mut self) {
        self.totals.clients = self.clients.count() as u64;
        self.totals.window_ns = self.pace.window_ns();
        let thread_shared = &self.shared.threads_shared[self.me];
        thread_shared.clients.store(self.clients.count(), Ordering::Relaxed);
        *thread_shared.totals.lock().unwrap_or_else(PoisonError::into_inner) = self.totals;
    }

    /// Sleeps by the clock while lines are on their way; otherwise returns how long to sleep in epoll.
    fn rest(&mut self) -> u64 {
        let now_ns = clock::now_ns();
        let next_ns = self.pace.next_ns();
        let waits = !self.unfinished.is_empty();
        if next_ns > now_ns || waits && !self.has_work() {
            // Those who are unfinished wait for their room on another thread, or for their next turn.
            let until_ns = if waits { now_ns + 50_000 } else { next_ns.min(now_ns + STEP_NS_MAX) };
            sleeper::sleep_until(until_ns);
            return 0;
        }
        if self.has_work() || self.is_going_down() || !self.thread_shared().may_sleep() {
            if self.is_going_down() && !self.has_work() {
                sleeper::sleep_until(now_ns + STEP_NS_MAX);
            }
            return 0;
        }
        let mut until_ns = now_ns + IDLE_REST_NS.min(self.faults.rest_ns_max());
        if let Some(at_ns) = self.deadlines.next_ns() {
            until_ns = until_ns.min(at_ns);
        }
        if self.back_off_until_ns > 0 {
            until_ns = until_ns.min(self.back_off_until_ns);
        }
        until_ns.saturating_sub(now_ns).max(1)
    }

    fn cut_the_late(&mut self) {
        let now_ns = clock::now_ns();
        while let Some((what, key)) = self.deadlines.take_due(now_ns) {
            match what {
                What::Line => self.look_at_the_begun_line(key, now_ns),
                What::HalfClosed => {
                    self.totals.cut.half_closed += 1;
                    self.let_go(key, Goodbye::Nothing);
                }
                What::Leaving | What::Finished => self.part(key),
            }
        }
        if let Some(idle) = self.shared.options.idle
            && now_ns >= self.next_idle_check_ns
        {
            let idle_ns = idle.as_nanos() as u64;
            self.next_idle_check_ns = now_ns + (idle_ns / 8).clamp(1_000_000, 1_000_000_000);
            self.cut_the_idle(now_ns.saturating_sub(idle_ns));
        }
    }

    fn go_down_when_told(&mut self) {
        if self.is_going_down() || !self.shared.going_down.load(Ordering::SeqCst) {
            return;
        }
        self.gone_by_ns = Some(clock::now_ns() + self.shared.options.drain.as_nanos() as u64);
        self.keep_listening();
        for key in self.clients.keys() {
            self.let_go(key, Goodbye::Notice("* the server is going away\n"));
        }
    }

    fn is_done(&mut self) -> bool {
        let Some(by_ns) = self.gone_by_ns else { return false };
        if self.clients.count() > 0 && clock::now_ns() >= by_ns {
            self.clients.keys().into_iter().for_each(|key| self.part(key));
            self.publish();
        }
        self.clients.count() == 0
    }
}
