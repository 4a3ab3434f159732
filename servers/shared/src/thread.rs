//! The skeleton of a server's thread: sockets, connections, deadlines, shutdown, and the order of a turn.
//!
//! A server implements `Serve`; calls are resolved at compile time. A turn reads what is ready, does the server's own
//! work, accepts connections, drops clients that missed a deadline, and rests. `Common` is what a thread shares with
//! others, plus what the server adds to it.
//! A server handles a bounded part of one client's input per turn, and the rest in a later turn
//! (`Core::read_on_later`): a client that sends without end would otherwise block all others, and the server's
//! shutdown, for ever.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::deadlines::Deadlines;
use crate::epoll::{Epoll, LISTENER_KEY, Readiness, WAKEUP_KEY};
use crate::fault::{Faults, ThreadFaults};
use crate::listener::{Listener, NotAccepted};
use crate::slab::{Key, Slab};
use crate::wakeup::Wakeup;
use crate::{clock, sleeper, thread_table};

/// How long nothing is taken after descriptors or memory ran out.
const BACK_OFF_NS: u64 = 50_000_000;

/// The longest rest of a thread with nothing to do: how late it notices the end of the server.
pub const IDLE_REST_NS: u64 = 250_000_000;

/// The longest rest while waiting for the last clients.
pub const ENDING_REST_NS: u64 = 5_000_000;

/// What all threads of one server share, whichever it is.
pub struct Common {
    /// The socket that all threads accept from.
    pub listener: Listener,
    /// Faults of the whole process.
    pub faults: Option<Arc<Faults>>,
    /// Sockets that fit one thread's descriptor table.
    pub table_sockets: usize,
    /// Set once, when the server ends.
    pub going_down: AtomicBool,
    /// Clients of all threads, as of their last turns.
    pub clients: AtomicUsize,
    /// Most of them at once since the controlling thread last looked, which is once a second.
    pub clients_most: AtomicUsize,
}

impl Common {
    /// `table_sockets`: how many sockets one thread's table of descriptors holds.
    pub fn new(listener: Listener, faults: Option<Arc<Faults>>, table_sockets: usize) -> Common {
        let [clients, clients_most] = [(); 2].map(|()| AtomicUsize::new(0));
        Common { listener, faults, table_sockets, going_down: AtomicBool::new(false), clients, clients_most }
    }
}

/// What every thread has. `C` is a client, `K` what it can be late with.
pub struct Core<C, K> {
    /// What it shares with the other threads.
    pub common: Arc<Common>,
    /// Its events.
    pub epoll: Epoll,
    /// Its connections.
    pub clients: Slab<C>,
    /// What is due, and when.
    pub deadlines: Deadlines<K>,
    /// Faults as this thread plays them.
    pub faults: ThreadFaults,
    /// Shared by all reads of this thread.
    pub buffer: Box<[u8]>,
    /// Clients with more to read than one turn may take.
    pub(crate) unread: VecDeque<Key>,
    /// Of this thread, as `Common::clients` has them.
    clients_told: usize,
    is_listening: bool,
    listener_is_ready: bool,
    /// Nothing is taken before this instant, because descriptors or memory ran out.
    shut_until_ns: u64,
    /// When the thread ends at the latest; None before the server goes down.
    gone_by_ns: Option<u64>,
    /// `gone_by_ns` had come in this turn
    time_is_over: bool,
}

impl<C, K: Copy + Ord> Core<C, K> {
    /// For the calling thread, which must be new: it gets its own descriptor table, with `keep` and the listener.
    pub fn with_own_table(
        common: &Arc<Common>,
        buffer_bytes: usize,
        keep: impl Iterator<Item = RawFd>,
    ) -> io::Result<Core<C, K>> {
        let keep: Vec<RawFd> = keep.chain([common.listener.raw()]).collect();
        // Kernels before 5.9 refuse; then all threads share one table, and only its size is lost.
        let _ = thread_table::own(&keep);
        Core::new(common, buffer_bytes)
    }

    /// Errors: the system has no descriptor left.
    pub fn new(common: &Arc<Common>, buffer_bytes: usize) -> io::Result<Core<C, K>> {
        sleeper::be_prompt();
        Ok(Core {
            common: common.clone(),
            epoll: Epoll::new()?,
            clients: Slab::default(),
            deadlines: Deadlines::new(),
            faults: ThreadFaults::new(common.faults.clone()),
            buffer: vec![0; buffer_bytes].into_boxed_slice(),
            unread: VecDeque::new(),
            clients_told: 0,
            is_listening: false,
            listener_is_ready: false,
            shut_until_ns: 0,
            gone_by_ns: None,
            time_is_over: false,
        })
    }

    /// Another thread may end this thread's wait by this.
    pub fn watch_wakeup(&self, wakeup: &Wakeup) -> io::Result<()> {
        self.epoll.add(wakeup, WAKEUP_KEY, false)
    }

    /// Whether the server ends.
    pub fn is_going_down(&self) -> bool {
        self.gone_by_ns.is_some()
    }

    /// Whether the time is over that clients have to go. Settled once in each turn: what is published then and whether the
    /// thread ends must not differ.
    pub fn has_no_more_time(&self) -> bool {
        self.time_is_over
    }

    /// This client is served again in a later turn, whatever its socket reports.
    pub fn read_on_later(&mut self, key: Key) {
        self.unread.push_back(key);
    }

    /// Whether its table of descriptors holds as many sockets as it can.
    pub fn table_is_full(&self) -> bool {
        self.clients.count() >= self.common.table_sockets
    }

    /// Takes in a client and watches its socket for input, and for room as well when `writable`.
    pub fn insert(
        &mut self,
        fd: OwnedFd,
        writable: bool,
        client: impl FnOnce(Key, OwnedFd) -> C,
    ) -> Option<Key> {
        let mut watched = Ok(());
        let key = self.clients.insert(|key| {
            watched = self.epoll.add(&fd, key.to_bits(), writable);
            client(key, fd)
        });
        if watched.is_err() {
            self.clients.remove(key);
            return None;
        }
        Some(key)
    }

    fn tell_clients(&mut self) {
        let clients = self.clients.count();
        if clients != self.clients_told {
            // The sum may wrap in between, but never in the end.
            let more = clients.wrapping_sub(self.clients_told);
            let before = self.common.clients.fetch_add(more, Ordering::Relaxed);
            self.common.clients_most.fetch_max(before.wrapping_add(more), Ordering::Relaxed);
            self.clients_told = clients;
        }
    }

    /// How long to rest from now: `longest_ns`, or until something is due.
    pub fn rest_ns(&self, longest_ns: u64, also_at_ns: Option<u64>) -> u64 {
        let now_ns = clock::now_ns();
        let shut_until_ns = Some(self.shut_until_ns).filter(|at_ns| *at_ns > 0);
        let due_ns = [self.deadlines.next_ns(), shut_until_ns, also_at_ns].into_iter().flatten().min();
        let until_due_ns = due_ns.map_or(u64::MAX, |at_ns| at_ns.saturating_sub(now_ns));
        longest_ns.min(self.faults.rest_ns_max()).min(until_due_ns)
    }
}

/// What a server's threads do.
pub trait Serve: Sized {
    /// What is kept of a connection.
    type Client;
    /// What a client can be late with.
    type Late: Copy + Ord;

    /// Connections taken in one turn.
    const TAKEN_PER_TURN: usize;

    /// The part that every server's thread has.
    fn core(&mut self) -> &mut Core<Self::Client, Self::Late>;

    /// The wait for sockets is over; `slept` when it was one.
    fn woke(&mut self, _slept: bool) {}

    /// Something happened on this client's socket, if the client is still there.
    fn serve(&mut self, key: Key, ready: Readiness);

    /// The thread's wakeup was rung.
    fn rung(&mut self) {}

    /// More sockets may be ready, or have more to read; whether the turn goes on before they are read.
    fn leaves_sockets(&mut self) -> bool {
        true
    }

    /// The server's own work in a turn.
    fn turn(&mut self) {}

    /// Whether one more connection may be taken, after so many in this turn. The listener is watched only while this is
    /// true of none: it is level-triggered, and a connection that may not be taken would wake the thread without end.
    fn may_take(&mut self, taken: usize) -> bool;

    /// Connections wait: see `take`.
    fn take_connections(&mut self);

    /// From now on the listener is watched, or not.
    fn listening_changed(&mut self) {}

    /// The time has come by which this client was to have done this.
    fn is_due(&mut self, what: Self::Late, key: Key, now_ns: u64);

    /// Whether late clients are disconnected in this turn.
    fn may_cut(&mut self) -> bool {
        true
    }

    /// The server goes down: takes leave of the clients; returns how long these have to go.
    fn go_down(&mut self) -> u64;

    /// The end of a turn: what others see of it.
    fn publish(&mut self) {}

    /// Whether the thread, which is going down, may end.
    fn is_done(&mut self) -> bool {
        let core = self.core();
        core.clients.count() == 0 || core.has_no_more_time()
    }

    /// Rests without the sockets, or returns how long to wait for them.
    fn rest(&mut self) -> u64;
}

/// Runs `exchange` with the buffer that all reads of a thread share and with the one in which it writes its answers, both
/// taken out of the thread meanwhile.
pub fn with_buffers<S: Serve, T>(
    server: &mut S,
    answers: fn(&mut S) -> &mut Vec<u8>,
    exchange: impl FnOnce(&mut S, &mut [u8], &mut Vec<u8>) -> T,
) -> T {
    let mut buffer = std::mem::take(&mut server.core().buffer);
    let mut written = std::mem::take(answers(server));
    let outcome = exchange(server, &mut buffer, &mut written);
    server.core().buffer = buffer;
    *answers(server) = written;
    outcome
}

/// A thread's whole life.
pub fn live<S: Serve>(server: &mut S) {
    let mut next_ns = Some(0);
    while let Some(wait_ns) = next_ns {
        next_ns = turn(server, wait_ns);
    }
}

/// One turn, which begins with a wait for the sockets of at most `wait_ns`. Returns how long the next one may wait; None
/// when the thread ends.
pub(crate) fn turn<S: Serve>(server: &mut S, wait_ns: u64) -> Option<u64> {
    read_sockets(server, wait_ns);
    read_on(server);
    server.turn();
    if std::mem::take(&mut server.core().listener_is_ready) {
        server.take_connections();
    }
    if server.core().deadlines.next_ns().is_some() && server.may_cut() {
        let now_ns = clock::now_ns();
        while let Some((what, key)) = server.core().deadlines.take(now_ns) {
            server.is_due(what, key, now_ns);
        }
    }
    if !server.core().is_going_down() && server.core().common.going_down.load(Ordering::Acquire) {
        // Set before clients are closed: it affects how they are.
        server.core().gone_by_ns = Some(u64::MAX);
        let by_ns = clock::now_ns() + server.go_down();
        server.core().gone_by_ns = Some(by_ns);
    }
    keep_listening(server);
    let core = server.core();
    core.time_is_over = core.gone_by_ns.is_some_and(|by_ns| clock::now_ns() >= by_ns);
    server.core().tell_clients();
    server.publish();
    if server.core().is_going_down() && server.is_done() {
        return None;
    }
    Some(if server.core().unread.is_empty() { server.rest() } else { 0 })
}

fn read_sockets<S: Serve>(server: &mut S, mut wait_ns: u64) {
    loop {
        let count = server.core().epoll.wait(wait_ns);
        server.woke(wait_ns > 0);
        wait_ns = 0;
        for i in 0..count {
            let ready = server.core().epoll.event(i);
            match ready.key {
                LISTENER_KEY => server.core().listener_is_ready = true,
                WAKEUP_KEY => server.rung(),
                bits => server.serve(Key::from_bits(bits), ready),
            }
        }
        if !server.core().epoll.may_have_more() || server.leaves_sockets() {
            return;
        }
    }
}

/// Serves those who had more to read than a turn may take, one after the other.
fn read_on<S: Serve>(server: &mut S) {
    for _ in 0..server.core().unread.len() {
        let Some(key) = server.core().unread.pop_front() else { return };
        server.serve(key, Readiness::to_read_on(key.to_bits()));
        if server.leaves_sockets() {
            return;
        }
    }
}

/// Takes connections for as long as the server may; true when more may be waiting.
pub fn take<S: Serve>(server: &mut S, mut greet: impl FnMut(&mut S, OwnedFd, SocketAddr)) -> bool {
    for taken in 0..S::TAKEN_PER_TURN {
        if !server.may_take(taken) {
            break;
        }
        match server.core().common.listener.accept() {
            Ok((fd, peer)) => greet(server, fd, peer),
            Err(NotAccepted::Nobody) => return false,
            Err(NotAccepted::Failed) => {}
            Err(NotAccepted::Exhausted) => {
                server.core().shut_until_ns = clock::now_ns() + BACK_OFF_NS;
                return false;
            }
        }
    }
    true
}

/// Watches the listener while a connection may be taken and nothing has run out.
fn keep_listening<S: Serve>(server: &mut S) {
    let may_take = !server.core().is_going_down() && server.may_take(0);
    let core = server.core();
    if core.shut_until_ns > 0 && clock::now_ns() >= core.shut_until_ns {
        core.shut_until_ns = 0;
    }
    let wanted = may_take && core.shut_until_ns == 0;
    if wanted == core.is_listening {
        return;
    }
    let listener = core.common.listener.as_fd();
    let changed = if wanted { core.epoll.add_listener(listener) } else { core.epoll.remove(listener) };
    if changed.is_ok() {
        core.is_listening = wanted;
    }
    server.listening_changed();
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;

    /// One client that never goes, and a turn whose publishing takes longer than clients have.
    struct Slow {
        core: Core<OwnedFd, ()>,
        was_over: Vec<bool>,
    }

    impl Serve for Slow {
        type Client = OwnedFd;
        type Late = ();
        const TAKEN_PER_TURN: usize = 1;

        fn core(&mut self) -> &mut Core<OwnedFd, ()> {
            &mut self.core
        }

        fn serve(&mut self, _: Key, _: Readiness) {}

        fn may_take(&mut self, _: usize) -> bool {
            false
        }

        fn take_connections(&mut self) {}

        fn is_due(&mut self, (): (), _: Key, _: u64) {}

        fn go_down(&mut self) -> u64 {
            30_000_000
        }

        fn publish(&mut self) {
            self.was_over.push(self.core.has_no_more_time());
            std::thread::sleep(Duration::from_millis(60));
        }

        fn rest(&mut self) -> u64 {
            1
        }
    }

    /// One client that never has been read to the end.
    struct Flooded {
        core: Core<OwnedFd, ()>,
        served: usize,
        turns: usize,
    }

    impl Serve for Flooded {
        type Client = OwnedFd;
        type Late = ();
        const TAKEN_PER_TURN: usize = 1;

        fn core(&mut self) -> &mut Core<OwnedFd, ()> {
            &mut self.core
        }

        fn serve(&mut self, key: Key, ready: Readiness) {
            assert!(ready.readable && ready.ended, "what came since is not announced: {ready:?}");
            self.served += 1;
            self.core.read_on_later(key);
        }

        fn turn(&mut self) {
            self.turns += 1;
            self.core.common.going_down.store(self.turns == 10, Ordering::Release);
        }

        fn may_take(&mut self, _: usize) -> bool {
            false
        }

        fn take_connections(&mut self) {}

        fn is_due(&mut self, (): (), _: Key, _: u64) {}

        fn go_down(&mut self) -> u64 {
            0
        }

        fn rest(&mut self) -> u64 {
            panic!("it does not rest while a client has more to read")
        }
    }

    #[test]
    fn a_client_that_sends_without_end_is_served_once_in_a_turn_and_does_not_hinder_the_end() {
        let listener =
            Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), crate::listener::Readiness::Connected).unwrap();
        let common = Common::new(listener, None, 1);
        let mut core = Core::new(&Arc::new(common), 1).unwrap();
        let (client, _other) = UnixStream::pair().unwrap();
        let key = core.insert(client.into(), false, |_, fd| fd).unwrap();
        core.read_on_later(key);
        let mut flooded = Flooded { core, served: 0, turns: 0 };
        live(&mut flooded);
        assert_eq!((flooded.served, flooded.turns), (10, 10));
    }

    #[test]
    fn a_thread_ends_in_the_turn_that_published_its_end() {
        let listener =
            Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), crate::listener::Readiness::Connected).unwrap();
        let common = Common::new(listener, None, 1);
        common.going_down.store(true, Ordering::Release);
        let mut core = Core::new(&Arc::new(common), 1).unwrap();
        let (client, _server) = UnixStream::pair().unwrap();
        core.insert(client.into(), false, |_, fd| fd).unwrap();
        let mut slow = Slow { core, was_over: Vec::new() };
        live(&mut slow);
        // The deadline passes while the first turn publishes; the thread may end only in a turn that has published
        // this.
        assert_eq!(slow.was_over.pop(), Some(true));
        assert!(!slow.was_over.contains(&true));
    }
}
