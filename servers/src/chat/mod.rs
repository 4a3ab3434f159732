//! The chat: every line goes to every other client of the room, over plain TCP, and every delivery is accounted for.
//!
//! A message is encoded once, shared by all who get it, and leaves with what else was said in the window: one
//! write per client and round. Threads serve, and this one controls: it takes signals, reports, answers for the
//! metrics and ends the threads.
//! Invariants: what is owed to a client is delivered, dropped, waiting, or was in flight at its close, and only one
//! of these (`queue`) · all members of a room see its lines in one order (`room`) · who is stalled costs a reference
//! per window and bounded memory, and delays nobody · a line is said with everything that was read before it: the
//! answer to `/books` stands behind all of that, whichever threads read it (`flush`).
//! Order of reading: `thread` (a turn), `accept`, `input`, `flush`; then the pure parts, `queue` first.

mod accept;
mod batch;
mod clients;
mod deadlines;
mod faults;
mod flush;
mod input;
mod metrics;
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

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub use options::{OnFull, Options};
pub use report::Report;
pub use totals::{Cuts, Totals};
pub use window::Window;

use crate::address_limit::AddressLimit;
use crate::fault::process::ProcessFaults;
use crate::fault::{Faults, Server};
use crate::listener::{Listener, Readiness};
use crate::shutdown::{AllSignalsBlocked, Ear};
use crate::{ServeError, clock, thread_table};
use metrics::{Metrics, Surroundings};
use rooms::Rooms;
use shared::{Shared, ThreadShared};

const SECOND_NS: u64 = 1_000_000_000;

/// The longest rest of the control thread: how late it notices that a thread has ended by itself.
const REST_NS: u64 = SECOND_NS;

/// How much longer than the drain it waits for threads that were told to end.
const END_NS: u64 = SECOND_NS;

/// What a chat has to say while it runs.
#[derive(Debug)]
pub enum News {
    /// Connections are taken now.
    Listening {
        /// The chat's own address.
        address: SocketAddr,
        /// Where the figures are, if asked for.
        metrics: Option<SocketAddr>,
    },
    /// Every `report_every`.
    Report(Report),
}

/// Serves until SIGTERM, SIGINT or `options.shutdown`; then clients are told, get what is queued, and are closed.
///
/// `tell` hears when connections are taken, and the reports. The calling thread controls: it must be the one whose
/// signal mask and descriptor table matter, in a program the main one. Returns the closing books, residual 0.
/// Errors: options out of range, an address in use.
pub fn run(options: Options, mut tell: impl FnMut(News)) -> Result<Totals, ServeError> {
    options.check()?;
    let faults = Faults::of(Server::Chat, &options.faults)?;
    let table_sockets = thread_table::raise_limit();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let first_threads = options.threads.unwrap_or(cores);
    // The events that wake the threads are in every table, too.
    let table_sockets = table_sockets.saturating_sub(first_threads).max(1);
    let threads = thread_table::threads_for(options.max_clients, table_sockets, first_threads);
    let listen_error = |source| ServeError::Listen { address: options.listen, source };
    let listener = Listener::bind(options.listen, Readiness::Connected).map_err(listen_error)?;
    let listener = listener.with_faults(faults.clone());
    let address = listener.address().map_err(ServeError::system("getsockname"))?;
    listener.set_send_buffer(options.send_buffer).map_err(ServeError::system("setsockopt"))?;
    let metrics = match options.metrics {
        Some(address) => {
            Some(Metrics::bind(address).map_err(|source| ServeError::Metrics { address, source })?)
        }
        None => None,
    };
    let metrics_address = match &metrics {
        Some(metrics) => Some(metrics.address().map_err(ServeError::system("getsockname"))?),
        None => None,
    };
    let ear = Ear::new(options.shutdown.clone()).map_err(ServeError::system("signalfd"))?;
    let threads_shared: io::Result<Vec<ThreadShared>> = (0..threads).map(|_| ThreadShared::new()).collect();
    let shared = Arc::new(Shared {
        listener,
        address_limit: Mutex::new(AddressLimit::new(options.per_address_rate, true)),
        rooms: Rooms::new(threads),
        names: Mutex::new(HashSet::new()),
        threads_shared: threads_shared.map_err(ServeError::system("eventfd"))?,
        table_sockets,
        going_down: AtomicBool::new(false),
        faults,
        options,
    });
    let _process_faults =
        ProcessFaults::start(shared.faults.as_ref()).map_err(ServeError::system("starting a thread"))?;
    let mut control = Control {
        threads: spawn(&shared).map_err(ServeError::system("starting a thread"))?,
        metrics,
        ear,
        shared,
    };
    tell(News::Listening { address, metrics: metrics_address });
    let served = control.serve(tell);
    let ended = control.end();
    served.and(ended)
}

type Served = JoinHandle<io::Result<()>>;

fn spawn(shared: &Arc<Shared>) -> io::Result<Vec<Served>> {
    // Threads inherit the mask: no signal ever interrupts one.
    let _blocked = AllSignalsBlocked::new();
    let spawn = |me: usize| {
        let shared = shared.clone();
        let builder = std::thread::Builder::new().name(format!("chat-{me}")).stack_size(512 * 1024);
        builder.spawn(move || thread::run(shared, me))
    };
    let spawned: io::Result<Vec<_>> = (0..shared.threads_shared.len()).map(spawn).collect();
    if spawned.is_err() {
        shared.go_down();
    }
    spawned
}

/// The calling thread's part.
struct Control {
    shared: Arc<Shared>,
    threads: Vec<Served>,
    metrics: Option<Metrics>,
    ear: Ear,
}

impl Control {
    /// Report by report, until the end is told or something fails.
    fn serve(&mut self, mut tell: impl FnMut(News)) -> Result<(), ServeError> {
        let every_ns = self.shared.options.report_every.as_nanos() as u64;
        let (mut before, mut before_ns) = (Totals::default(), clock::now_ns());
        let mut next_ns = if every_ns == 0 { u64::MAX } else { before_ns + every_ns };
        loop {
            let rest_ns = next_ns.saturating_sub(clock::now_ns()).min(REST_NS);
            let heard = self.ear.listen(rest_ns, self.metrics.as_ref().map(Metrics::raw));
            if heard.the_end {
                return Ok(());
            }
            if let Some(metrics) = self.metrics.as_ref().filter(|_| heard.the_other) {
                let shared = &self.shared;
                metrics.answer(|| {
                    let around =
                        Surroundings { rooms: shared.rooms.count(), on_full: shared.options.on_full };
                    metrics::text(&shared.totals(), &around)
                });
            }
            let now_ns = clock::now_ns();
            if now_ns >= next_ns {
                let totals = self.shared.totals();
                tell(News::Report(Report::between(&before, &totals, (now_ns - before_ns) as f64 / 1e9)));
                (before, before_ns) = (totals, now_ns);
                // After a long stall the reports in between are one.
                next_ns += ((now_ns - next_ns) / every_ns + 1) * every_ns;
            }
            if let Some(thread) = self.threads.iter().position(|one| one.is_finished()) {
                return Err(ServeError::ThreadLost { thread });
            }
        }
    }

    /// Ends the threads; returns the closing books.
    fn end(&mut self) -> Result<Totals, ServeError> {
        self.shared.go_down();
        let by_ns = clock::now_ns() + self.shared.options.drain.as_nanos() as u64 + END_NS;
        for (thread, one) in self.threads.drain(..).enumerate() {
            while !one.is_finished() && clock::now_ns() < by_ns {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            if !one.is_finished() {
                return Err(ServeError::ThreadLost { thread });
            }
            match one.join() {
                Ok(Ok(())) => {}
                Ok(Err(source)) => return Err(ServeError::System { call: "epoll", source }),
                Err(_) => return Err(ServeError::ThreadLost { thread }),
            }
        }
        let totals = self.shared.totals();
        debug_assert_eq!(totals.residual(), 0, "{totals:?}");
        Ok(totals)
    }
}
