//! One thread of the arena: its turn, and how it rests between turns.
//!
//! A turn reads the sockets, reads messages, plays the games whose slot has come, takes connections until the next
//! slot comes, posts its own messages and answers the control thread. While games are on it sleeps by the clock and lets frames
//! wait for at most `TURN_NS_MAX`: woken per frame instead, it would use up to 40 % more of its core. With
//! nobody playing it sleeps in epoll, and an idle arena costs a few wake-ups per second.
//! The other parts of a thread: `greeting` (connections), `session` (bytes), `playing` (games).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::games::Games;
use super::inbox::{SocketKey, ThreadMessage};
use super::shared::{Shared, ThreadShared};
use super::sockets::{Sockets, Stage};
use super::tally::Tally;
use crate::epoll::{Epoll, LISTENER_KEY};
use crate::fault::ThreadFaults;
use crate::ticks::schedule::Grid;
use crate::{clock, sleeper, thread_table};

/// The longest rest while someone plays: how late a shot is noticed at worst, were nothing else late.
const TURN_NS_MAX: u64 = 2_000_000;

/// The longest rest while someone waits for an opponent, who may arrive on another thread.
const WAITING_REST_NS: u64 = 5_000_000;

/// The longest rest at all. The end of the server is noticed this late.
const IDLE_REST_NS: u64 = 250_000_000;

/// A read's worth; also what bounds the replies to one read.
const BUFFER_BYTES: usize = 64 * 1024;

/// Long enough that a turn is rarely cut, and short enough that it begins at once.
const SLICE_NS: u64 = 100_000;

/// From the end of the server until clients that do not close are cut off, at most.
const GOING_DOWN: Duration = Duration::from_secs(1);

/// When a socket has to be in another stage.
pub(super) struct Deadline {
    pub(super) at_ns: u64,
    pub(super) key: SocketKey,
}

pub(super) struct Thread {
    pub(super) shared: Arc<Shared>,
    pub(super) me: usize,
    pub(super) epoll: Epoll,
    pub(super) listening: bool,
    pub(super) listener_ready: bool,
    /// The turn ended before all waiting connections were taken.
    pub(super) more_to_take: bool,
    /// Out of descriptors or memory until then.
    pub(super) back_off_until_ns: u64,
    pub(super) sockets: Sockets,
    pub(super) games: Games,
    /// Sockets of this thread that are in a game, wherever that game is played.
    pub(super) playing_count: usize,
    pub(super) waiting_count: usize,
    /// Letters of this turn, by receiving thread.
    pub(super) outgoing: Vec<Vec<ThreadMessage>>,
    incoming: Vec<ThreadMessage>,
    pub(super) tally: Box<Tally>,
    answered: u64,
    /// How long the games of the last turn took.
    pub(super) played_ns: u64,
    /// Shared by all reads of this thread.
    pub(super) buffer: Box<[u8]>,
    /// For composing what is sent.
    pub(super) scratch: Vec<u8>,
    /// In the order of their deadlines, because all have the same timeout.
    pub(super) openings: VecDeque<Deadline>,
    pub(super) endings: VecDeque<Deadline>,
    /// When the thread ends at the latest; None before the server goes down.
    pub(super) gone_by_ns: Option<u64>,
    pub(super) faults: ThreadFaults,
    /// Letters that a planted fault holds back, with when they are read; in the order of that.
    pub(super) held_back: VecDeque<(u64, ThreadMessage)>,
}

/// A thread's whole life. It must be new: it gives itself a descriptor table of its own.
pub(super) fn run(shared: Arc<Shared>, me: usize) -> std::io::Result<()> {
    // Kernels before 5.9 refuse; then all threads share one table, and only its size is lost.
    let _ = thread_table::own(&[shared.listener.raw()]);
    sleeper::no_timer_slack();
    sleeper::short_slices(SLICE_NS);
    let options = &shared.options;
    let shares = shared.threads_shared.len() as u64;
    let grid = Grid::new(shared.start_ns, options.tick_rate, options.ticker, me as u64, shares);
    let mut thread = Thread {
        me,
        epoll: Epoll::new()?,
        listening: false,
        listener_ready: false,
        more_to_take: false,
        back_off_until_ns: 0,
        sockets: Sockets::default(),
        games: Games::new(grid),
        playing_count: 0,
        waiting_count: 0,
        outgoing: shared.threads_shared.iter().map(|_| Vec::new()).collect(),
        incoming: Vec::new(),
        tally: Box::new(Tally::new()),
        answered: 0,
        played_ns: 0,
        buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        scratch: Vec::new(),
        openings: VecDeque::new(),
        endings: VecDeque::new(),
        gone_by_ns: None,
        faults: ThreadFaults::new(shared.faults.clone()),
        held_back: VecDeque::new(),
        shared,
    };
    thread.live();
    let shared = thread.shared.clone();
    shared.threads_shared[me].exchange.finish(std::mem::replace(&mut thread.tally, Box::new(Tally::new())));
    Ok(())
}

impl Thread {
    fn live(&mut self) {
        let mut wait_ns = 0;
        loop {
            self.read_sockets(wait_ns);
            self.carry_out_faults();
            self.read_letters();
            self.play_due_slots();
            self.keep_listening();
            if self.listener_ready {
                self.take_connections();
            }
            self.cut_the_late();
            self.go_down_when_told();
            self.post_letters();
            self.thread_shared().sockets.store(self.sockets.count(), Ordering::Relaxed);
            self.thread_shared().games.store(self.games.count(), Ordering::Relaxed);
            let shared = self.shared.clone();
            shared.threads_shared[self.me].exchange.answer(&mut self.answered, &mut self.tally);
            if self.is_done() {
                return;
            }
            wait_ns = self.rest();
        }
    }

    pub(super) fn thread_shared(&self) -> &ThreadShared {
        &self.shared.threads_shared[self.me]
    }

    pub(super) fn is_playing(&self) -> bool {
        self.playing_count > 0 || self.games.count() > 0
    }

    fn read_sockets(&mut self, mut wait_ns: u64) {
        self.listener_ready = false;
        let mut began_ns = 0;
        loop {
            let count = self.epoll.wait(wait_ns);
            wait_ns = 0;
            for i in 0..count {
                let ready = self.epoll.event(i);
                if ready.key == LISTENER_KEY {
                    self.listener_ready = true;
                    continue;
                }
                let key = SocketKey::from_bits(ready.key);
                if ready.writable && self.sockets.flush(key, &self.epoll).is_err() {
                    self.part(key);
                }
                if ready.readable {
                    self.read_socket(key, ready.ended);
                }
            }
            if !self.epoll.may_have_more() {
                return;
            }
            // A turn that is late reads for as long as it has last played: a storm of connections then delays no
            // tick by much, and under overload the shots do not starve behind the ticks either.
            let now_ns = clock::now_ns();
            if began_ns == 0 {
                began_ns = now_ns;
            }
            if self.games.next_slot_is_due(now_ns) && now_ns >= began_ns + self.played_ns {
                return;
            }
        }
    }

    fn read_letters(&mut self) {
        let mut messages = std::mem::take(&mut self.incoming);
        self.thread_shared().inbox.fetch(&mut messages);
        for message in messages.drain(..) {
            self.receive(message);
        }
        self.incoming = messages;
    }

    fn post_letters(&mut self) {
        for (thread, messages) in self.outgoing.iter_mut().enumerate() {
            if !messages.is_empty() {
                self.shared.threads_shared[thread].inbox.bring(messages);
            }
        }
    }

    /// Sleeps by the clock while someone plays; otherwise returns how long to sleep in epoll.
    fn rest(&mut self) -> u64 {
        if std::mem::take(&mut self.more_to_take) {
            return 0;
        }
        let now_ns = clock::now_ns();
        if self.is_playing() {
            let latest_ns = now_ns + TURN_NS_MAX;
            // While no tick is run, every slot would be due.
            let stopped = self.faults.now.stops_ticks;
            let until_ns = if stopped { latest_ns } else { self.games.next_wake_ns(latest_ns) };
            if until_ns > now_ns {
                sleeper::sleep_until(until_ns);
            }
            return 0;
        }
        let longest =
            if self.waiting_count > 0 || self.gone_by_ns.is_some() { WAITING_REST_NS } else { IDLE_REST_NS };
        // Just after the question, so that an idle arena's log is not late.
        let ask_ns = self.shared.next_ask_ns.load(Ordering::Relaxed) + 1_000_000;
        let mut until_ns = now_ns + longest.min(self.faults.rest_ns_max());
        if ask_ns > now_ns {
            until_ns = until_ns.min(ask_ns);
        }
        for deadline in self.openings.front().iter().chain(&self.endings.front()) {
            until_ns = until_ns.min(deadline.at_ns);
        }
        until_ns.saturating_sub(now_ns)
    }

    /// Cuts off who did not finish the request in time, or did not close after the stop.
    fn cut_the_late(&mut self) {
        let now_ns = clock::now_ns();
        while self.openings.front().is_some_and(|deadline| deadline.at_ns <= now_ns) {
            let Some(Deadline { key, .. }) = self.openings.pop_front() else { break };
            if matches!(self.sockets.get_mut(key).map(|socket| &socket.stage), Some(Stage::Opening(_))) {
                self.part(key);
            }
        }
        while self.endings.front().is_some_and(|deadline| deadline.at_ns <= now_ns) {
            let Some(Deadline { key, .. }) = self.endings.pop_front() else { break };
            self.part_from_the_late(key);
        }
    }

    fn go_down_when_told(&mut self) {
        if self.gone_by_ns.is_some() || !self.shared.going_down.load(Ordering::Acquire) {
            return;
        }
        let timeouts = self.shared.options.close_timeout.min(GOING_DOWN);
        self.gone_by_ns = Some(clock::now_ns() + timeouts.as_nanos() as u64);
        self.keep_listening();
        self.end_all_games();
        self.say_goodbye();
    }

    fn is_done(&self) -> bool {
        self.gone_by_ns.is_some_and(|by_ns| {
            self.sockets.count() == 0 && self.games.count() == 0 || clock::now_ns() >= by_ns
        })
    }
}
