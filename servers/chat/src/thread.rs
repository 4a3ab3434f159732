//! One thread of the chat: its turn, and how it rests between turns.
//!
//! A turn reads what is ready, and writes a round when one is due. Lines go to their room as soon as they are read; a
//! round takes everything new in the rooms of this thread's clients and gives each client one write. Between two rounds
//! it sleeps by the clock and lets lines wait in their sockets for at most `STEP_NS_MAX`, because a wake-up per line
//! costs more than the line. When idle it sleeps in epoll; then the first line is sent at once.
//! The other parts of a thread: `accept` (connections), `input` (lines in), `flush` (lines out).

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::accept::Goodbye;
use super::batch::Speech;
use super::clients::{Client, Key};
use super::faults::HeldBack;
use super::room::Tell;
use super::rooms::LocalRooms;
use super::shared::{Shared, ThreadShared};
use super::totals::Totals;
use super::window::Pace;
use servers_shared::epoll::Readiness;
use servers_shared::thread::{self, Core, IDLE_REST_NS, Serve};
use servers_shared::{clock, sleeper};

/// The longest sleep between two looks at the sockets while lines are on their way.
const STEP_NS_MAX: u64 = 2_000_000;

/// A read's worth.
const BUFFER_BYTES: usize = 64 * 1024;

/// How long a client that was sent everything may take to close, before the server does.
pub(super) const LINGER_NS: u64 = 500_000_000;

/// What a client can be late with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Late {
    /// Ending the line that was begun.
    Line,
    /// Getting what it wanted, after it shut its sending side.
    HalfClosed,
    /// Reading what is queued, when it leaves.
    Leaving,
    /// Closing.
    Finished,
}

pub(super) struct Thread {
    pub(super) core: Core<Client, Late>,
    pub(super) shared: Arc<Shared>,
    pub(super) me: usize,
    pub(super) rooms: LocalRooms,
    /// Rooms with something for the next round.
    pub(super) due: Vec<u32>,
    /// Clients that have asked for the accounts: they are answered after the next round.
    pub(super) askers: Vec<Key>,
    /// The same, and up to where the other nodes have to answer before; the smallest number first.
    pub(super) fenced: VecDeque<(u64, Key)>,
    /// Clients with more input than is processed in one turn.
    pub(super) unfinished: Vec<Key>,
    pub(super) pace: Pace,
    /// What a planted fault holds back of what clients sent.
    pub(super) held_back: HeldBack,
    pub(super) totals: Totals,
    /// Halvings of a client's share of memory for which this thread has trimmed.
    pub(super) trimmed_for: u64,
    next_idle_check_ns: u64,
    pub(super) speech: Speech,
    pub(super) tells: Vec<Tell>,
}

/// A thread's whole life.
pub(super) fn run(shared: Arc<Shared>, me: usize) -> io::Result<()> {
    let link = shared.nodes.iter().map(|nodes| nodes.notified.wakeup.raw());
    let wakeups = shared.threads_shared.iter().map(|thread_shared| thread_shared.wakeup.raw()).chain(link);
    let core = Core::with_own_table(&shared.common, BUFFER_BYTES, wakeups)?;
    core.watch_wakeup(&shared.threads_shared[me].wakeup)?;
    thread::live(&mut Thread::new(shared, me, core));
    Ok(())
}

impl Serve for Thread {
    type Client = Client;
    type Late = Late;

    const TAKEN_PER_TURN: usize = 16;

    fn core(&mut self) -> &mut Core<Client, Late> {
        &mut self.core
    }

    fn woke(&mut self, slept: bool) {
        if slept {
            self.thread_shared().slept();
        }
    }

    fn serve(&mut self, key: Key, ready: Readiness) {
        if ready.writable {
            self.unblock(key);
        }
        if ready.readable {
            self.read_client(key, ready.ended);
        }
    }

    fn leaves_sockets(&mut self) -> bool {
        self.round_is_due()
    }

    fn turn(&mut self) {
        self.read_the_unfinished();
        self.carry_out_faults();
        if self.round_is_due() {
            self.flush_rooms();
        }
    }

    fn may_take(&mut self, _taken: usize) -> bool {
        self.thread_behind().is_none() && !self.core.table_is_full()
    }

    fn take_connections(&mut self) {
        thread::take(self, |thread, fd, peer| thread.welcome(fd, peer.ip()));
    }

    /// The thread that is behind may be asleep without polling the listener, since it was ahead before.
    fn listening_changed(&mut self) {
        if let Some(behind) = self.thread_behind() {
            self.shared.threads_shared[behind].wakeup.ring();
        }
    }

    fn is_due(&mut self, what: Late, key: Key, now_ns: u64) {
        match what {
            Late::Line => self.look_at_the_begun_line(key, now_ns),
            Late::HalfClosed => {
                self.totals.cut.half_closed += 1;
                self.let_go(key, Goodbye::Nothing);
            }
            Late::Leaving | Late::Finished => self.part(key),
        }
    }

    fn go_down(&mut self) -> u64 {
        for key in self.core.clients.keys() {
            self.let_go(key, Goodbye::Notice("* the server is going away\n"));
        }
        self.shared.options.drain.as_nanos() as u64
    }

    fn publish(&mut self) {
        self.cut_the_idle();
        self.keep_within_memory();
        if self.core.has_no_more_time() {
            self.core.clients.keys().into_iter().for_each(|key| self.part(key));
        }
        self.totals.clients = self.core.clients.count() as u64;
        self.totals.window_ns = self.pace.window_ns();
        let thread_shared = &self.shared.threads_shared[self.me];
        thread_shared.clients.store(self.core.clients.count(), Ordering::Relaxed);
        *thread_shared.totals.lock().unwrap_or_else(PoisonError::into_inner) = self.totals;
    }

    /// Sleeps by the clock while lines are on their way; otherwise returns how long to sleep in epoll.
    fn rest(&mut self) -> u64 {
        let now_ns = clock::now_ns();
        let next_ns = self.pace.next_ns();
        let waits = !self.unfinished.is_empty();
        if next_ns > now_ns || waits && !self.has_work() {
            // Unfinished clients wait for another thread's room, or for their next turn.
            let until_ns = if waits { now_ns + 50_000 } else { next_ns.min(now_ns + STEP_NS_MAX) };
            sleeper::sleep_until(until_ns);
            return 0;
        }
        if self.has_work() || self.core.is_going_down() || !self.thread_shared().may_sleep() {
            if self.core.is_going_down() && !self.has_work() {
                sleeper::sleep_until(now_ns + STEP_NS_MAX);
            }
            return 0;
        }
        self.core.rest_ns(IDLE_REST_NS, None).max(1)
    }
}

impl Thread {
    fn new(shared: Arc<Shared>, me: usize, core: Core<Client, Late>) -> Thread {
        Thread {
            core,
            me,
            rooms: LocalRooms::default(),
            due: Vec::new(),
            askers: Vec::new(),
            fenced: VecDeque::new(),
            unfinished: Vec::new(),
            pace: Pace::new(shared.options.window),
            held_back: HeldBack::default(),
            totals: Totals::default(),
            trimmed_for: 0,
            next_idle_check_ns: 0,
            speech: Speech::default(),
            tells: Vec::new(),
            shared,
        }
    }

    pub(super) fn thread_shared(&self) -> &ThreadShared {
        &self.shared.threads_shared[self.me]
    }

    fn has_work(&self) -> bool {
        !self.due.is_empty() || !self.askers.is_empty() || self.thread_shared().has_due()
    }

    fn round_is_due(&self) -> bool {
        self.has_work() && clock::now_ns() >= self.pace.next_ns()
    }

    /// Disconnects clients that have been silent for too long; checked eight times in that period.
    fn cut_the_idle(&mut self) {
        let Some(idle) = self.shared.options.idle else { return };
        let (idle_ns, now_ns) = (idle.as_nanos() as u64, clock::now_ns());
        if now_ns < self.next_idle_check_ns {
            return;
        }
        self.next_idle_check_ns = now_ns + (idle_ns / 8).clamp(1_000_000, 1_000_000_000);
        for key in self.core.clients.keys() {
            let is_idle = |client: &mut Client| client.heard_ns < now_ns.saturating_sub(idle_ns);
            if self.is_talking(key) && self.core.clients.get_mut(key).is_some_and(is_idle) {
                self.totals.cut.idle += 1;
                self.let_go(key, Goodbye::Notice("* you said nothing for so long; closing\n"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use servers_shared::testing::flood::{self, Flood};

    #[test]
    fn a_flood_of_lines_keeps_nobody_waiting() {
        let common = flood::common();
        let core = flood::core(&common);
        let shared = Shared::new(Default::default(), common, vec![ThreadShared::new().unwrap()], None);
        let mut thread = Thread::new(Arc::new(shared), 0, core);
        let admit = |thread: &mut Thread, fd| thread.welcome(fd, Ipv4Addr::LOCALHOST.into());
        let request = &|_| b"/x\n".to_vec();
        let answers = |heard: &[u8]| flood::count(heard, b"* there is no /x;");
        let opening = b"/join room\n";
        flood::check(&mut thread, &Flood { admit, opening, request, answers });
    }
}
