//! The arena's lobby: sends each player to the node that has room, by a redirect with a ticket.
//!
//! Players connect here as to an arena. The answer to their handshake is `307 Temporary Redirect` to a node
//! (`serve arena --nats`), with a ticket that lets one player into one game there. The lobby is not on the way of what is
//! played, and a player who is in a game does not need it any more.
//! One thread answers players (`thread`), one listens to the nodes, and this one controls and writes the ticks of all nodes
//! into one log, in the arena's form. What they share is `cluster`, which is pure.

mod cluster;
mod options;
mod thread;

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arena_server::nodes::state::NODES;
use cluster::Cluster;
pub use options::Options;
use servers_shared::ServeError;
use servers_shared::clock::{self, WallClock};
use servers_shared::control::{Crew, END_NS, Listening};
use servers_shared::fault::Server;
use servers_shared::listener::Readiness;
use servers_shared::nats;
use servers_shared::nats::NodeId;
use servers_shared::nats::client::{Change, Client};
use servers_shared::thread::IDLE_REST_NS;
use servers_shared::ticks::log::{Second, TickLog};

/// After the end of a second, until which all nodes have told of it.
const TOLD_WITHIN_MS: u64 = 500;

struct Shared {
    options: Options,
    wall: WallClock,
    cluster: Mutex<Cluster>,
}

impl Shared {
    fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves until SIGTERM, SIGINT or `options.shutdown`.
///
/// `on_listening` is told the address once players are taken; `say` hears what happens to the nodes, in sentences. The calling
/// thread controls.
/// Errors: an address in use, an existing tick log, a tick log that cannot be written, no broker.
pub fn run(
    options: Options,
    on_listening: impl FnOnce(SocketAddr),
    say: impl FnMut(String),
) -> Result<(), ServeError> {
    let broker = nats::with_login(Some(&options.nats), options.nats_login.as_deref())?;
    let broker = broker.unwrap_or_else(|| options.nats.clone());
    let planted = (Server::Arena, &[][..]);
    let listening = Listening::on(options.listen, Readiness::FirstBytes, planted, &options.shutdown)?;
    let address = listening.address;
    let log = TickLog::open_if(options.tick_log.as_deref(), options.append)?;
    let mut client =
        Client::connect(&broker, "stepladder arena-lobby".to_owned(), vec![NODES.to_owned()], None)?;
    let mut crew = listening.crew()?;
    let cluster = Mutex::new(Cluster::new(NodeId::random().0));
    let shared = Arc::new(Shared { options, wall: WallClock::new(), cluster });
    let (own, common) = (shared.clone(), crew.common.clone());
    // One thread: players are placed in the order in which they arrive.
    crew.spawn("players".to_owned(), move || thread::run(&own, &common))?;
    let (theirs, common) = (shared.clone(), crew.common.clone());
    crew.spawn("nodes".to_owned(), move || {
        while !common.going_down.load(Ordering::Acquire) {
            let change = client.turn(IDLE_REST_NS, |_, payload| {
                let now_ns = clock::now_ns();
                theirs.cluster().hear(payload, now_ns, theirs.wall.epoch_ms(now_ns));
            });
            match change {
                Some(Change::Lost(lost)) => theirs.cluster().say(format!(
                    "the connection to {broker} is lost ({lost}); until it is back, no node is heard"
                )),
                Some(Change::Back) => theirs.cluster().say(format!("connected to {broker} again")),
                None => {}
            }
        }
        Ok(())
    })?;
    on_listening(address);
    let from_ms = shared.wall.epoch_ms(clock::now_ns()) / 1000 * 1000;
    let mut control = Control { shared, crew, log, from_ms };
    let served = control.serve(say);
    let ended = control.crew.end(clock::now_ns() + END_NS);
    served.and(ended)
}

/// The calling thread's part.
struct Control {
    shared: Arc<Shared>,
    crew: Crew,
    log: Option<TickLog>,
    /// Where the next line begins, a whole second.
    from_ms: u64,
}

impl Control {
    /// Second by second, until shutdown is requested or something fails.
    fn serve(&mut self, mut say: impl FnMut(String)) -> Result<(), ServeError> {
        loop {
            let now_ms = self.shared.wall.epoch_ms(clock::now_ns());
            let due_ms = self.from_ms + 1000 + TOLD_WITHIN_MS;
            if self.crew.listen(due_ms.saturating_sub(now_ms) * 1_000_000, None).the_end {
                return Ok(());
            }
            let now_ns = clock::now_ns();
            let now_ms = self.shared.wall.epoch_ms(now_ns);
            if now_ms < due_ms {
                continue;
            }
            let mut cluster = self.shared.cluster();
            let told = cluster.take_second(now_ns);
            let said = cluster.take_said();
            drop(cluster);
            said.into_iter().for_each(&mut say);
            // After a long stall the seconds in between become one line.
            let to_ms = (now_ms - TOLD_WITHIN_MS) / 1000 * 1000;
            let second = Second { from_ms: self.from_ms, to_ms, tick_rate: told.tick_rate };
            self.from_ms = to_ms;
            let figures: Vec<(&str, u64)> =
                told.figures.iter().map(|(name, figure)| (name.as_str(), *figure)).collect();
            let games = told.figures.get("games_played").copied().unwrap_or_default();
            // Before the first node there is nothing to tell, and no rate.
            if let Some(log) = self.log.as_mut().filter(|_| told.tick_rate > 0) {
                log.write(second, &told.ticks, games, &figures)?;
            }
            self.crew.check()?;
        }
    }
}
