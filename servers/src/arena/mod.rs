//! The arena: a two-player shooter over WebSocket, one tick loop per game, as many games as fit.
//!
//! Threads play, and this one controls: it takes signals, asks every second what was counted, writes the tick
//! log and ends the threads. Sockets are paired in the order in which they came, over all threads (`greeting`).
//! Invariants: a game's every due tick is recorded or missed, exactly once (`ticks::schedule`) · who wins follows from
//! when shots were received, not from when ticks ran (`rules`) · no thread waits for another, and none is woken
//! through a descriptor by another (`inbox`).
//! Order of reading: `thread` (a turn), `greeting`, `session`, `playing`; then the pure parts.

mod faults;
mod games;
mod greeting;
mod inbox;
mod lobby;
mod message;
mod options;
mod playing;
mod rules;
mod session;
mod shared;
mod shots;
mod sockets;
mod tally;
mod thread;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use crate::ticks::schedule::Ticker;
pub use options::{Options, Pairing};

use crate::ServeError;
use crate::address_limit::AddressLimit;
use crate::clock::{self, WallClock};
use crate::fault::process::ProcessFaults;
use crate::fault::{Faults, Server};
use crate::listener::{Listener, Readiness};
use crate::shutdown::{AllSignalsBlocked, Ear};
use crate::thread_table;
use crate::ticks::log::{Second, TickLog};
use lobby::Lobby;
use shared::{Shared, ThreadShared};
use tally::Tally;

const SECOND_NS: u64 = 1_000_000_000;

/// How long the control thread waits for the threads' counts before it writes a second without the late ones.
const COLLECT_NS_MAX: u64 = 100_000_000;

/// How long it waits for threads that were told to end.
const END_NS_MAX: u64 = 2 * SECOND_NS;

/// Serves until SIGTERM, SIGINT or `options.shutdown`; then games get their stop and sockets close 1001.
///
/// `on_listening` is told the address once connections are taken. The calling thread controls: it must be the
/// one whose signal mask and descriptor table matter, in a program the main one.
/// Errors: options out of range, an address in use, an existing tick log, a tick log that cannot be written.
pub fn run(options: Options, on_listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    options.check()?;
    let faults = Faults::of(Server::Arena, &options.faults)?;
    let table_sockets = thread_table::raise_limit();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let first_threads = options.threads.unwrap_or(cores);
    let threads = thread_table::threads_for(options.max_connections, table_sockets, first_threads);
    let listen_error = |source| ServeError::Listen { address: options.listen, source };
    let listener = Listener::bind(options.listen, Readiness::FirstBytes).map_err(listen_error)?;
    let listener = listener.with_faults(faults.clone());
    let address = listener.address().map_err(ServeError::system("getsockname"))?;
    let log = match &options.tick_log {
        Some(path) => Some(TickLog::open(path, options.append)?),
        None => None,
    };
    let ear = Ear::new(options.shutdown.clone()).map_err(ServeError::system("signalfd"))?;
    let _process_faults =
        ProcessFaults::start(faults.as_ref()).map_err(ServeError::system("starting a thread"))?;
    let shared =
        Arc::new(Shared { faults, ..shared(options, listener, first_threads, threads, table_sockets) });
    let mut control = Control {
        threads: spawn(&shared, threads).map_err(ServeError::system("starting a thread"))?,
        from_ns: shared.start_ns,
        log,
        ear,
        shared,
    };
    on_listening(address);
    let served = control.serve();
    let ended = control.end();
    served.and(ended)
}

fn shared(
    options: Options,
    listener: Listener,
    first_threads: usize,
    threads: usize,
    table_sockets: usize,
) -> Shared {
    let start_ns = clock::now_ns();
    Shared {
        fire_interval_ns: options.fire_interval.as_nanos() as u64,
        wall: WallClock::new(),
        start_ns,
        listener,
        door: Mutex::new(AddressLimit::new(options.connections_per_address_per_s, options.limit_loopback)),
        lobby: Mutex::new(Lobby::default()),
        threads_shared: (0..threads).map(|_| ThreadShared::new()).collect(),
        first_threads,
        table_sockets,
        sockets_max: options.max_connections.min(threads * table_sockets),
        next_player_id: AtomicU64::new(1),
        next_ask_ns: AtomicU64::new(start_ns + SECOND_NS),
        going_down: AtomicBool::new(false),
        faults: None,
        options,
    }
}

type Played = JoinHandle<io::Result<()>>;

fn spawn(shared: &Arc<Shared>, threads: usize) -> io::Result<Vec<Option<Played>>> {
    // Threads inherit the mask: no signal ever interrupts one.
    let _blocked = AllSignalsBlocked::new();
    let spawn = |me: usize| {
        let shared = shared.clone();
        let builder = std::thread::Builder::new().name(format!("arena-{me}")).stack_size(512 * 1024);
        builder.spawn(move || thread::run(shared, me)).map(Some)
    };
    let spawned: io::Result<Vec<_>> = (0..threads).map(spawn).collect();
    if spawned.is_err() {
        shared.going_down.store(true, Ordering::Release);
    }
    spawned
}

/// The calling thread's part.
struct Control {
    shared: Arc<Shared>,
    threads: Vec<Option<Played>>,
    log: Option<TickLog>,
    ear: Ear,
    /// Where the next line begins.
    from_ns: u64,
}

impl Control {
    /// Second by second, until the end is told or something fails.
    fn serve(&mut self) -> Result<(), ServeError> {
        loop {
            let next_ns = self.shared.next_ask_ns.load(Ordering::Relaxed);
            if self.ear.hears_the_end(next_ns.saturating_sub(clock::now_ns())) {
                return Ok(());
            }
            let now_ns = clock::now_ns();
            if now_ns < next_ns {
                continue;
            }
            self.ask_and_write()?;
            // After a long stall the seconds in between are one line, not many empty ones.
            let seconds = (now_ns - next_ns) / SECOND_NS + 1;
            self.shared.next_ask_ns.store(next_ns + seconds * SECOND_NS, Ordering::Relaxed);
            if let Some(thread) =
                self.threads.iter().position(|one| one.as_ref().is_some_and(|one| one.is_finished()))
            {
                return Err(self.lost(thread));
            }
        }
    }

    fn ask_and_write(&mut self) -> Result<(), ServeError> {
        let asked_ns = clock::now_ns();
        let mut sum = Tally::new();
        self.shared.threads_shared.iter().for_each(|thread_shared| thread_shared.exchange.ask());
        let mut missing: Vec<usize> = (0..self.shared.threads_shared.len()).collect();
        loop {
            missing.retain(|thread| !self.shared.threads_shared[*thread].exchange.collect(&mut sum));
            if missing.is_empty() || clock::now_ns() > asked_ns + COLLECT_NS_MAX {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.write(asked_ns, &sum)
    }

    fn write(&mut self, to_ns: u64, sum: &Tally) -> Result<(), ServeError> {
        let shared = &self.shared;
        let total =
            |count: fn(&ThreadShared) -> usize| shared.threads_shared.iter().map(count).sum::<usize>() as u64;
        let second = Second {
            from_ms: shared.wall.epoch_ms(self.from_ns),
            to_ms: shared.wall.epoch_ms(to_ns),
            tick_rate: shared.options.tick_rate,
        };
        let counts = sum.counts;
        let games_played = counts.won_by_1 + counts.won_by_2;
        let figures = [
            ("games", total(|thread_shared| thread_shared.games.load(Ordering::Relaxed))),
            ("games_played", games_played),
            ("waiting", shared.lobby.lock().unwrap_or_else(PoisonError::into_inner).waiting_count()),
            ("sockets", total(|thread_shared| thread_shared.sockets.load(Ordering::Relaxed))),
            ("shots", counts.shots),
            ("shots_accepted", counts.shots_accepted),
            ("shots_early", counts.shots_early),
            ("shots_lost", counts.shots_lost),
            ("won_by_1", counts.won_by_1),
            ("won_by_2", counts.won_by_2),
            ("abandoned", counts.abandoned),
        ];
        self.from_ns = to_ns;
        self.log.as_mut().map_or(Ok(()), |log| log.write(second, &sum.ticks, games_played, &figures))
    }

    /// Ends the threads and writes the last line.
    fn end(&mut self) -> Result<(), ServeError> {
        self.shared.lobby.lock().unwrap_or_else(PoisonError::into_inner).close();
        self.shared.listener.refuse();
        self.shared.going_down.store(true, Ordering::Release);
        let told_ns = clock::now_ns();
        let mut result = Ok(());
        for thread in 0..self.threads.len() {
            let running = |one: &Option<Played>| one.as_ref().is_some_and(|one| !one.is_finished());
            while running(&self.threads[thread]) && clock::now_ns() < told_ns + END_NS_MAX {
                std::thread::sleep(Duration::from_millis(2));
            }
            let stuck = running(&self.threads[thread]);
            if stuck || !matches!(self.threads[thread].take().map(JoinHandle::join), None | Some(Ok(Ok(()))))
            {
                result = Err(ServeError::ThreadLost { thread });
            }
        }
        let mut sum = Tally::new();
        for thread_shared in &self.shared.threads_shared {
            thread_shared.exchange.collect(&mut sum);
            thread_shared.sockets.store(0, Ordering::Relaxed);
            thread_shared.games.store(0, Ordering::Relaxed);
        }
        self.write(clock::now_ns(), &sum).and(result)
    }

    /// What a thread that ended by itself has to say.
    fn lost(&mut self, thread: usize) -> ServeError {
        match self.threads[thread].take().map(JoinHandle::join) {
            Some(Ok(Err(source))) => ServeError::System { call: "epoll_create1", source },
            _ => ServeError::ThreadLost { thread },
        }
    }
}
