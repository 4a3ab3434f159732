//! The arena: a two-player shooter over WebSocket, one tick loop per game, as many games as fit.
//!
//! Threads run the games, and this one controls: it takes signals, collects the counters every second, writes the tick
//! log and ends the threads. Sockets are paired in the order in which they came, over all threads (`greeting`).
//! Invariants: a game's every due tick is recorded or missed, exactly once (`ticks::schedule`) · the winner follows
//! from when shots were received, not from when ticks ran (`rules`) · no thread waits for another, and none is woken
//! through a descriptor by another (`inbox`).
//! With `--nats` it is one of several nodes, and a lobby sends it its players (`nodes`).
//! Order of reading: `thread` (a turn), `greeting`, `session`, `playing`; then the pure parts.

mod faults;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod games;
mod greeting;
mod inbox;
mod lobby;
pub(crate) mod message;
pub mod nodes;
mod options;
mod playing;
mod rules;
mod session;
mod shared;
mod shots;
mod sockets;
mod tally;
mod thread;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use options::{Options, Pairing};
pub use servers_shared::ticks::schedule::Ticker;

use lobby::Lobby;
use nodes::state::{State, WAITING_MAX};
use nodes::{Link, Nodes};
use servers_shared::ServeError;
use servers_shared::address_limit::AddressLimit;
use servers_shared::clock::{self, WallClock};
use servers_shared::control::{Crew, END_NS, Listening};
use servers_shared::fault::Server;
use servers_shared::listener::Readiness;
use servers_shared::nats;
use servers_shared::thread::Common;
use servers_shared::thread_table;
use servers_shared::ticks::log::{Second, TickLog};
use shared::{Shared, ThreadShared};
use tally::Tally;

const SECOND_NS: u64 = 1_000_000_000;

/// How long the control thread waits for the threads' counts before it writes a second without the late ones.
const COLLECT_NS_MAX: u64 = 100_000_000;

/// Serves until SIGTERM, SIGINT or `options.shutdown`; then games get their stop and sockets close 1001.
///
/// `on_listening` is told the address once connections are taken; `say` hears sentences about the broker, with `--nats`.
/// The calling thread controls: it must be the
/// one whose signal mask and descriptor table matter, in a program the main one.
/// Errors: options out of range, an address in use, an existing tick log, a tick log that cannot be written, no broker.
pub fn run(
    options: Options,
    on_listening: impl FnOnce(SocketAddr),
    say: impl FnMut(String),
) -> Result<(), ServeError> {
    options.check()?;
    let broker = nats::with_login(options.nats.as_ref(), options.nats_login.as_deref())?;
    let planted = (Server::Arena, &options.faults[..]);
    let listening = Listening::on(options.listen, Readiness::FirstBytes, planted, &options.shutdown)?;
    let (address, table_sockets) = (listening.address, listening.table_sockets);
    let first_threads = options.threads.unwrap_or_else(thread_table::cores);
    let threads = thread_table::threads_for(options.max_connections, table_sockets, first_threads);
    let log = TickLog::open_if(options.tick_log.as_deref(), options.append)?;
    let name = options.node.clone().unwrap_or_else(|| nats::NodeId::random().to_string());
    let node = || Nodes::new(name, options.advertise.as_deref(), address).map(Arc::new);
    let nodes = broker.is_some().then(node).transpose()?;
    let link = broker.zip(nodes.clone()).map(|(broker, nodes)| Link::connect(broker, nodes)).transpose()?;
    let mut crew = listening.crew()?;
    let shared = Arc::new(shared(options, nodes, crew.common.clone(), first_threads, threads));
    for me in 0..threads {
        let shared = shared.clone();
        crew.spawn(format!("arena-{me}"), move || thread::run(shared, me))?;
    }
    if let Some(link) = link {
        let common = crew.common.clone();
        crew.spawn("node".to_owned(), move || link.run(&common))?;
    }
    let mut control = Control { from_ns: shared.start_ns, crew, log, shared };
    on_listening(address);
    let served = control.serve(say);
    let ended = control.end();
    served.and(ended)
}

fn shared(
    options: Options,
    nodes: Option<Arc<Nodes>>,
    common: Arc<Common>,
    first_threads: usize,
    threads: usize,
) -> Shared {
    let (start_ns, wall) = (clock::now_ns(), WallClock::new());
    // All nodes tell of the same seconds, so that a lobby can add them.
    let into_second_ns = nodes.as_ref().map_or(0, |_| wall.epoch_ms(start_ns) % 1000 * 1_000_000);
    Shared {
        fire_interval_ns: options.fire_interval.as_nanos() as u64,
        wall,
        nodes,
        start_ns,
        door: Mutex::new(AddressLimit::new(options.connections_per_address_per_s, options.limit_loopback)),
        lobby: Mutex::new(Lobby::default()),
        threads_shared: (0..threads).map(|_| ThreadShared::new()).collect(),
        first_threads,
        sockets_max: options.max_connections.min(threads * common.table_sockets),
        next_player_id: AtomicU64::new(1),
        next_ask_ns: AtomicU64::new(start_ns + SECOND_NS - into_second_ns),
        common,
        options,
    }
}

/// The calling thread's part.
struct Control {
    shared: Arc<Shared>,
    crew: Crew,
    log: Option<TickLog>,
    /// Where the next line begins.
    from_ns: u64,
}

impl Control {
    /// Second by second, until shutdown is requested or something fails.
    fn serve(&mut self, mut say: impl FnMut(String)) -> Result<(), ServeError> {
        loop {
            let next_ns = self.shared.next_ask_ns.load(Ordering::Relaxed);
            if self.crew.listen(next_ns.saturating_sub(clock::now_ns()), None).the_end {
                return Ok(());
            }
            let now_ns = clock::now_ns();
            if now_ns < next_ns {
                continue;
            }
            self.ask_and_write()?;
            let said = self.shared.nodes.as_ref().map(|nodes| nodes.take_said());
            said.into_iter().flatten().for_each(&mut say);
            // After a long stall the seconds in between become one line, not many empty ones.
            let seconds = (now_ns - next_ns) / SECOND_NS + 1;
            self.shared.next_ask_ns.store(next_ns + seconds * SECOND_NS, Ordering::Relaxed);
            self.crew.check()?;
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
        if let Some(nodes) = &shared.nodes {
            nodes.publish(self.state(nodes, second, sum, &figures).written());
        }
        self.from_ns = to_ns;
        self.log.as_mut().map_or(Ok(()), |log| log.write(second, &sum.ticks, games_played, &figures))
    }

    /// The node as its lobbies see it.
    fn state(&self, nodes: &Nodes, second: Second, sum: &Tally, figures: &[(&str, u64)]) -> State {
        let lobby = self.shared.lobby.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = lobby.half_games().take(WAITING_MAX).collect();
        drop(lobby);
        State {
            node: nodes.id,
            name: nodes.name.clone(),
            address: nodes.advertised.clone(),
            key: nodes.key.clone(),
            free: self.shared.free_sockets() as u64,
            waiting,
            to_ms: second.to_ms,
            tick_rate: second.tick_rate,
            ticks: sum.ticks.clone(),
            figures: figures.iter().map(|(name, figure)| ((*name).to_owned(), *figure)).collect(),
        }
    }

    /// Ends the threads and writes the last line.
    fn end(&mut self) -> Result<(), ServeError> {
        self.shared.lobby.lock().unwrap_or_else(PoisonError::into_inner).close();
        let ended = self.crew.end(clock::now_ns() + END_NS);
        let mut sum = Tally::new();
        for thread_shared in &self.shared.threads_shared {
            thread_shared.exchange.collect(&mut sum);
            thread_shared.sockets.store(0, Ordering::Relaxed);
            thread_shared.games.store(0, Ordering::Relaxed);
        }
        self.write(clock::now_ns(), &sum).and(ended)
    }
}
