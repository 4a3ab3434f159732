//! One thread of the arena: its turn, and how it rests between turns.
//!
//! A turn reads the sockets, reads messages, plays the games whose slot is due, accepts connections until the next
//! slot, posts its own messages and answers the control thread. While games are on it sleeps by the clock and lets
//! frames wait for at most `TURN_NS_MAX`: woken per frame instead, it would use up to 40 % more of its core. Without
//! players it sleeps in epoll, and an idle arena costs a few wake-ups per second.
//! The other parts of a thread: `greeting` (connections), `session` (bytes), `playing` (games).

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::games::Games;
use super::inbox::{SocketKey, ThreadMessage};
use super::shared::{Shared, ThreadShared};
use super::sockets::{Sending, Socket, Stage};
use super::tally::Tally;
use servers_shared::epoll::Readiness;
use servers_shared::thread::{self, Core, ENDING_REST_NS, IDLE_REST_NS, Serve};
use servers_shared::ticks::schedule::Grid;
use servers_shared::{clock, sleeper};

/// The longest rest while someone plays: how late a shot is noticed at worst, were nothing else late.
const TURN_NS_MAX: u64 = 2_000_000;

/// The longest rest while someone waits for an opponent, who may arrive on another thread.
const WAITING_REST_NS: u64 = 5_000_000;

/// What a turn reads of one client, which bounds the replies too: as much as the longest message. A player says 30 bytes at a
/// time; 64 KiB of pings from each of fifty clients would make ticks late.
const BUFFER_BYTES: usize = 4 * 1024;

/// From the end of the server until clients that do not close are cut off, at most.
const GOING_DOWN: Duration = Duration::from_secs(1);

/// Connections after which a due slot has precedence over further ones.
const TAKEN_WHEN_LATE: usize = 8;

/// What a client can be late with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Late {
    /// The end of its request.
    Opening,
    /// Closing, after its stop or our close frame.
    Ending,
}

pub(super) struct Thread {
    pub(super) core: Core<Socket, Late>,
    pub(super) shared: Arc<Shared>,
    pub(super) me: usize,
    /// The turn ended before all waiting connections were taken.
    pub(super) more_to_take: bool,
    pub(super) games: Games,
    /// Sockets of this thread that are in a game, wherever that game is played.
    pub(super) playing_count: usize,
    pub(super) waiting_count: usize,
    /// Letters of this turn, by receiving thread.
    pub(super) outgoing: Vec<Vec<ThreadMessage>>,
    incoming: Vec<ThreadMessage>,
    pub(super) tally: Box<Tally>,
    answered: u64,
    /// When this turn was found to have more to read than one wait tells; 0: it was not.
    reading_since_ns: u64,
    /// How long the games of the last turn took.
    pub(super) played_ns: u64,
    /// For composing what is sent.
    pub(super) scratch: Vec<u8>,
    /// Letters that a planted fault holds back, with when they are read; in the order of that.
    pub(super) held_back: VecDeque<(u64, ThreadMessage)>,
}

/// A thread's whole life.
pub(super) fn run(shared: Arc<Shared>, me: usize) -> io::Result<()> {
    let core = Core::with_own_table(&shared.common, BUFFER_BYTES, std::iter::empty())?;
    let mut thread = Thread::new(shared, me, core);
    thread::live(&mut thread);
    let shared = thread.shared.clone();
    shared.threads_shared[me].exchange.finish(std::mem::replace(&mut thread.tally, Box::new(Tally::new())));
    Ok(())
}

impl Serve for Thread {
    type Client = Socket;
    type Late = Late;

    const TAKEN_PER_TURN: usize = 256;

    fn core(&mut self) -> &mut Core<Socket, Late> {
        &mut self.core
    }

    fn serve(&mut self, key: SocketKey, ready: Readiness) {
        if ready.writable && self.core.flush(key).is_err() {
            self.part(key);
        }
        if ready.readable {
            self.read_socket(key, ready.ended);
        }
    }

    /// A late turn reads for as long as it last spent playing: a storm of connections then delays no tick by much, and
    /// under overload the shots do not starve behind the ticks either.
    fn leaves_sockets(&mut self) -> bool {
        let now_ns = clock::now_ns();
        if self.reading_since_ns == 0 {
            self.reading_since_ns = now_ns;
        }
        self.games.next_slot_is_due(now_ns) && now_ns >= self.reading_since_ns + self.played_ns
    }

    fn turn(&mut self) {
        self.reading_since_ns = 0;
        self.carry_out_faults();
        self.read_letters();
        self.play_due_slots();
    }

    fn may_take(&mut self, taken: usize) -> bool {
        let late = taken >= TAKEN_WHEN_LATE && self.games.next_slot_is_due(clock::now_ns());
        // Every thread reports a full arena to its next client; if only this table is full, other threads still accept.
        let full = self.core.table_is_full() && !self.shared.is_full();
        !late && !full && self.is_called_upon()
    }

    fn take_connections(&mut self) {
        if self.leaves_it_to_others() {
            return;
        }
        let shared = self.shared.clone();
        let Ok(mut door) = shared.door.try_lock() else { return };
        self.more_to_take = thread::take(self, |thread, fd, peer| {
            // The first connection starts the faults' clock.
            thread.core.faults.look();
            let now_ns = clock::now_ns();
            if door.admits(peer.ip(), now_ns) {
                thread.welcome(fd, now_ns);
            }
        });
    }

    fn is_due(&mut self, what: Late, key: SocketKey, _now_ns: u64) {
        match what {
            Late::Opening => {
                if matches!(self.stage(key), Some(Stage::Opening(_))) {
                    self.part(key);
                }
            }
            Late::Ending => self.part_from_the_late(key),
        }
    }

    fn go_down(&mut self) -> u64 {
        self.end_all_games();
        self.say_goodbye();
        self.shared.options.close_timeout.min(GOING_DOWN).as_nanos() as u64
    }

    fn publish(&mut self) {
        self.post_letters();
        let shared = self.shared.clone();
        let thread_shared = &shared.threads_shared[self.me];
        thread_shared.sockets.store(self.core.clients.count(), Ordering::Relaxed);
        thread_shared.games.store(self.games.count(), Ordering::Relaxed);
        thread_shared.exchange.answer(&mut self.answered, &mut self.tally);
    }

    fn is_done(&mut self) -> bool {
        self.core.clients.count() == 0 && self.games.count() == 0 || self.core.has_no_more_time()
    }

    /// Sleeps by the clock while someone plays; otherwise returns how long to sleep in epoll.
    fn rest(&mut self) -> u64 {
        if std::mem::take(&mut self.more_to_take) {
            return 0;
        }
        let now_ns = clock::now_ns();
        if self.is_playing() {
            let latest_ns = now_ns + TURN_NS_MAX;
            // While no tick runs, every slot would be due.
            let stopped = self.core.faults.now.stops_ticks;
            let until_ns = if stopped { latest_ns } else { self.games.next_wake_ns(latest_ns) };
            if until_ns > now_ns {
                sleeper::sleep_until(until_ns);
            }
            return 0;
        }
        let longest_ns = match self.core.is_going_down() {
            true => ENDING_REST_NS,
            false if self.waiting_count > 0 => WAITING_REST_NS,
            false => IDLE_REST_NS,
        };
        // Just after the request, so that an idle arena's log is not late.
        let ask_ns = self.shared.next_ask_ns.load(Ordering::Relaxed) + 1_000_000;
        self.core.rest_ns(longest_ns, Some(ask_ns).filter(|ask_ns| *ask_ns > now_ns))
    }
}

impl Thread {
    fn new(shared: Arc<Shared>, me: usize, core: Core<Socket, Late>) -> Thread {
        let options = &shared.options;
        let shares = shared.threads_shared.len() as u64;
        let grid = Grid::new(shared.start_ns, options.tick_rate, options.ticker, me as u64, shares);
        Thread {
            core,
            me,
            more_to_take: false,
            games: Games::new(grid),
            playing_count: 0,
            waiting_count: 0,
            outgoing: shared.threads_shared.iter().map(|_| Vec::new()).collect(),
            incoming: Vec::new(),
            tally: Box::new(Tally::new()),
            answered: 0,
            reading_since_ns: 0,
            played_ns: 0,
            scratch: Vec::new(),
            held_back: VecDeque::new(),
            shared,
        }
    }

    pub(super) fn thread_shared(&self) -> &ThreadShared {
        &self.shared.threads_shared[self.me]
    }

    pub(super) fn is_playing(&self) -> bool {
        self.playing_count > 0 || self.games.count() > 0
    }

    pub(super) fn stage(&mut self, key: SocketKey) -> Option<&mut Stage> {
        self.core.clients.get_mut(key).map(|socket| &mut socket.stage)
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use servers_shared::testing::UPGRADE;
    use servers_shared::testing::client_frame;
    use servers_shared::testing::flood::{self, Flood};

    #[test]
    fn a_flood_of_pings_keeps_nobody_waiting() {
        let common = flood::common();
        let core = flood::core(&common);
        let mut thread =
            Thread::new(Arc::new(super::super::shared(Default::default(), None, common, 1, 1)), 0, core);
        let admit = |thread: &mut Thread, fd| thread.welcome(fd, clock::now_ns());
        let request = &|_| client_frame(true, 9, b"1", [1, 2, 3, 4]);
        let answers = |heard: &[u8]| flood::count(heard, b"\x8a\x011");
        flood::check(&mut thread, &Flood { admit, opening: UPGRADE, request, answers });
    }
}
