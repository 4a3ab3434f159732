//! The chat: every line goes to every other client of the room, over plain TCP, and every delivery is accounted for.
//!
//! A message is encoded once, shared by all recipients, and sent with everything else from the same window: one write
//! per client and round. Threads serve, and this one controls: it takes signals, reports, serves the metrics and ends
//! the threads.
//! Invariants: every delivery owed to a client is exactly one of delivered, dropped, waiting, or in flight at its close
//! (`queue`) · all members of a room see its lines in one order (`room`) · a stalled client costs a reference per
//! window and bounded memory, and delays nobody · the total waiting for all clients is bounded, too (`memory`) · a line
//! enters its room together with everything that was read before it: the answer to `/books` comes after all of that,
//! whichever threads read it (`flush`).
//! With `--nats` rooms span all chats that share a NATS server (`nodes`).
//! Order of reading: `thread` (a turn), `accept`, `input`, `flush`; then the pure parts, `queue` first.

mod accept;
mod batch;
mod clients;
mod faults;
mod flush;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod input;
mod memory;
mod metrics;
mod nodes;
mod options;
mod queue;
#[cfg(test)]
mod queue_tests;
mod report;
mod room;
mod rooms;
mod shared;
mod splitter;
mod thread;
mod totals;
mod window;
mod words;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

pub use options::{OnFull, Options};
pub use report::Report;
pub use servers_shared::nats::{NatsAddress, NatsAddressError};
pub use totals::{Cuts, Totals};
pub use window::Window;

use metrics::{Metrics, Surroundings};
use nodes::{Link, Nodes};
use servers_shared::control::{Crew, Listening, REST_NS};
use servers_shared::fault::{Fault, Server};
use servers_shared::listener::Readiness;
use servers_shared::{ServeError, clock, thread_table};
use shared::{Shared, ThreadShared};

/// How much longer than the drain it waits for threads that were told to end.
const END_NS: u64 = 1_000_000_000;

/// What a chat has to say while it runs.
#[derive(Debug)]
pub enum News {
    /// Connections are taken now.
    Listening {
        /// The chat's own address.
        address: SocketAddr,
        /// The address of the metrics, if requested.
        metrics: Option<SocketAddr>,
    },
    /// Every `report_every`.
    Report(Report),
    /// With `--nats`: something about the other nodes or the broker that who runs the chat should know.
    Nodes(String),
}

/// Serves until SIGTERM, SIGINT or `options.shutdown`; then clients are told, get what is queued, and are closed.
///
/// `tell` hears when connections are taken, and the reports. The calling thread controls: it must be the one whose
/// signal mask and descriptor table matter, in a program the main one. Returns the closing books, residual 0.
/// Errors: options out of range, an address in use.
pub fn run(options: Options, mut tell: impl FnMut(News)) -> Result<Totals, ServeError> {
    options.check()?;
    let lost = options.lose_one_in.map(Fault::lose_one_in);
    let planted: Vec<Fault> = lost.into_iter().chain(options.faults.iter().copied()).collect();
    let planted = (Server::Chat, &planted[..]);
    let mut listening = Listening::on(options.listen, Readiness::Connected, planted, &options.shutdown)?;
    let first_threads = options.threads.unwrap_or_else(thread_table::cores);
    // The eventfds that wake the threads are in every table, too.
    listening.table_sockets = listening.table_sockets.saturating_sub(first_threads).max(1);
    let threads = thread_table::threads_for(options.max_clients, listening.table_sockets, first_threads);
    let address = listening.address;
    listening.listener.set_send_buffer(options.send_buffer).map_err(ServeError::system("setsockopt"))?;
    let bind = |address| Metrics::bind(address).map_err(|source| ServeError::Metrics { address, source });
    let metrics = options.metrics.map(bind).transpose()?;
    let metrics_address = metrics.as_ref().map(Metrics::address).transpose();
    let metrics_address = metrics_address.map_err(ServeError::system("getsockname"))?;
    let threads_shared: io::Result<Vec<ThreadShared>> = (0..threads).map(|_| ThreadShared::new()).collect();
    let threads_shared = threads_shared.map_err(ServeError::system("eventfd"))?;
    let nodes = options.nats.is_some().then(Nodes::new).transpose();
    let nodes = nodes.map_err(ServeError::system("eventfd"))?.map(Arc::new);
    let mut crew = listening.crew()?;
    let link = options.broker()?.zip(nodes.clone());
    let link = link.map(|(broker, nodes)| {
        Link::connect(&broker, options.node.as_deref(), nodes, crew.common.faults.clone())
    });
    let link = link.transpose()?;
    let shared = Arc::new(Shared::new(options, crew.common.clone(), threads_shared, nodes));
    for me in 0..threads {
        let shared = shared.clone();
        crew.spawn(format!("chat-{me}"), move || thread::run(shared, me))?;
    }
    if let Some(link) = link {
        let shared = shared.clone();
        crew.spawn("nodes".to_owned(), move || link.run(&shared))?;
    }
    let mut control = Control { crew, metrics, shared };
    tell(News::Listening { address, metrics: metrics_address });
    let served = control.serve(tell);
    let ended = control.end();
    served.and(ended)
}

/// The calling thread's part.
struct Control {
    shared: Arc<Shared>,
    crew: Crew,
    metrics: Option<Metrics>,
}

impl Control {
    /// Report by report, until shutdown is requested or something fails.
    fn serve(&mut self, mut tell: impl FnMut(News)) -> Result<(), ServeError> {
        let every_ns = self.shared.options.report_every.as_nanos() as u64;
        let (mut before, mut before_ns) = (Totals::default(), clock::now_ns());
        let mut next_ns = if every_ns == 0 { u64::MAX } else { before_ns + every_ns };
        loop {
            let rest_ns = next_ns.saturating_sub(clock::now_ns()).min(REST_NS);
            let rest_ns = self.metrics.as_ref().map_or(rest_ns, |metrics| rest_ns.min(metrics.rest_ns()));
            let heard = self.crew.listen(rest_ns, self.metrics.as_ref().map(Metrics::as_fd));
            let said = self.shared.nodes.as_ref().map(|nodes| nodes.take_said());
            said.into_iter().flatten().for_each(|sentence| tell(News::Nodes(sentence)));
            if heard.the_end {
                return Ok(());
            }
            if let Some(metrics) = &mut self.metrics {
                let shared = &self.shared;
                metrics.answer(heard.the_other, || {
                    let around = Surroundings {
                        rooms: shared.rooms.count(),
                        on_full: shared.options.on_full,
                        nodes: shared.nodes.clone(),
                    };
                    metrics::text(&shared.totals(), &around)
                });
            }
            // Sleeping threads report no peak, but their queues still hold memory.
            let waiting_bytes = self.shared.memory.take_peak().max(self.shared.backlog_bytes());
            self.crew.memory.waits(waiting_bytes);
            let now_ns = clock::now_ns();
            if now_ns >= next_ns {
                let totals = self.shared.totals();
                tell(News::Report(Report::between(&before, &totals, (now_ns - before_ns) as f64 / 1e9)));
                (before, before_ns) = (totals, now_ns);
                // After a long stall the reports in between become one.
                next_ns += ((now_ns - next_ns) / every_ns + 1) * every_ns;
            }
            self.crew.check()?;
        }
    }

    /// Ends the threads; returns the closing books.
    fn end(&mut self) -> Result<Totals, ServeError> {
        self.shared.go_down();
        self.crew.end(clock::now_ns() + self.shared.options.drain.as_nanos() as u64 + END_NS)?;
        let totals = self.shared.totals();
        debug_assert_eq!(totals.residual(), 0, "{totals:?}");
        Ok(totals)
    }
}
