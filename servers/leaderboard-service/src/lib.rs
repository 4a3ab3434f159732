//! The leaderboard as a service: HTTP/JSON, and protobuf messages over WebSocket or gRPC, all on one port.
//!
//! `routes` is the routing table, `responder` turns a request into its answer, `changes` makes the changes, `thread`
//! reads and writes. The messages of `proto/leaderboard.proto` come over `websocket` and `grpc` (`session`), and
//! `calls` executes them; with `--store` there is HTTP only. A thread per core, each with its own connections; they
//! share the boards.
//! A change is answered after it was made: a client that has the answer sees the change in every later answer, on any
//! connection. Ranks count from 1, scores are decimal strings without a bound. Requests are refused with RFC 9457
//! problems, and a refused request has changed nothing.

mod bodies;
mod calls;
mod changes;
#[cfg(test)]
mod full_disk;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod grpc;
mod json;
mod kept;
mod log;
mod messages;
mod once;
mod openapi;
mod planted;
mod problem;
mod protobuf;
mod responder;
mod routes;
mod session;
mod signing;
mod store;
mod tally;
mod thread;
mod websocket;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kept::Kept;
use leaderboard::{self, Boards, Direction, Implementation, TieRule};
use log::Log;
pub use log::Recovered;
use once::Once;
use problem::Problem;
use servers_shared::cli::{self, check, time};
use servers_shared::control::{Crew, END_NS, Listening, REST_NS};
use servers_shared::fault::{self, Fault, Kind, Server};
use servers_shared::listener::Readiness;
use servers_shared::{ServeError, Shutdown, clock, thread_table};
use signing::{Keys, Nonces};
use store::Store;
pub use store::{StoreAddress, StoreAddressError};
use tally::Tally;

/// How a leaderboard service runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42070", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// Threads that answer [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// How threads share a leaderboard: one-lock, sharded, concurrent-map, actor or hashmap-indexset
    #[arg(long, default_value_t = Implementation::OneLock, value_name = "NAME")]
    pub implementation: Implementation,
    /// Leaderboard that exists from the start
    #[arg(long, default_value = "main", value_name = "NAME")]
    pub board: String,
    /// Which scores come first on it: descending or ascending
    #[arg(long, default_value = "descending", value_name = "ORDER", value_parser = bodies::direction)]
    pub direction: Direction,
    /// Who comes first among equal scores on it: random, first or last (who reached the score first or last)
    #[arg(long, default_value = "random", value_name = "RULE", value_parser = bodies::ties)]
    pub ties: TieRule,
    /// Items of one bulk request at most
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub bulk_max: usize,
    /// Bytes of a request's body at most
    #[arg(long, default_value_t = 1024 * 1024, value_name = "BYTES")]
    pub body_max: usize,
    /// Connections at once; further ones are answered 429
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub max_connections: usize,
    /// Answers that wait at once; further changes are answered 429
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub max_pending: usize,
    /// Memory of answers that clients have not taken yet, over all connections. Beyond it those connections are closed
    /// whose answers have waited for longest; each thread has an equal part of it
    #[arg(long, default_value_t = 256 * 1024 * 1024, value_name = "BYTES")]
    pub total_unsent: usize,
    /// Memory of requests that are not whole or wait behind others, over all connections. Beyond it those connections are closed
    /// whose requests began first; each thread has an equal part of it. The gRPC calls of one connection have a sixteenth of
    /// it together; a call that exceeds it is refused
    #[arg(long, default_value_t = 256 * 1024 * 1024, value_name = "BYTES")]
    pub total_unfinished: usize,
    /// How long a request may take from its first byte to its last, and a client to close after its last answer.
    #[arg(skip = Duration::from_secs(10))]
    pub request_timeout: Duration,
    /// How long a client may take for the answers that wait for it. A page of a megabyte gets through a slow line in that.
    #[arg(skip = Duration::from_secs(30))]
    pub answer_timeout: Duration,
    /// How long requests under way may take after SIGTERM
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = time)]
    pub grace: Duration,
    /// Take only changes that are signed with a key of this file: an id and a secret in hexadecimal digits per line
    #[arg(long, value_name = "FILE", conflicts_with = "open")]
    pub keys: Option<PathBuf>,
    /// Take unsigned changes from anyone; the default on loopback without --keys
    #[arg(long)]
    pub open: bool,
    /// Keep all leaderboards in this directory: an answer leaves when its change is on disk [default: memory only]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// With --data: bytes of a log after which a snapshot shortens it; a restart reads the log again, 3 million updates
    /// in about 2 s
    #[arg(long, default_value_t = 128 * 1024 * 1024, value_name = "BYTES")]
    pub snapshot_every: u64,
    /// Keep all leaderboards in this Redis or Valkey, for several services over the same ones: redis://HOST:PORT, or
    /// redis://:PASSWORD@HOST:PORT/DATABASE. Scores then go up to 2^53, further ones are refused
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub store: Option<StoreAddress>,
    /// With --store: how long it may take to answer, before requests are answered 503
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = time)]
    pub store_timeout: Duration,
    /// Faults to plant, for testing instruments.
    #[arg(long = "fault", value_name = fault::FORM, help = fault::HELP, long_help = fault::help(Server::Leaderboard))]
    pub faults: Vec<Fault>,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    #[arg(skip)]
    pub shutdown: Option<Shutdown>,
}

impl Default for Options {
    fn default() -> Options {
        cli::defaults()
    }
}

/// A service that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Where.
    pub address: SocketAddr,
    /// What was found in the data directory; None without one.
    pub recovered: Option<Recovered>,
}

/// What the threads share.
struct Shared {
    options: Options,
    boards: Arc<Boards>,
    /// None: memory only.
    log: Option<Arc<Log>>,
    /// None: the boards are this process's.
    store: Option<Store>,
    /// None: unsigned changes are taken.
    keys: Option<Keys>,
    once: Arc<Once>,
    nonces: Arc<Nonces>,
    tallies: Vec<Arc<Tally>>,
    connections: AtomicUsize,
    /// Answers that were given and may not leave yet.
    pending: AtomicUsize,
}

impl Shared {
    /// Of one thread, with no boards.
    #[cfg(any(test, feature = "fuzz"))]
    fn in_memory(options: Options) -> Shared {
        Shared {
            boards: Arc::new(Boards::new(options.implementation)),
            options,
            log: None,
            store: None,
            keys: None,
            once: Arc::default(),
            nonces: Arc::default(),
            tallies: vec![Arc::new(Tally::new())],
            connections: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
        }
    }

    /// Errors: more items than one request may have.
    fn check_items(&self, items: usize) -> Result<(), Problem> {
        let most = self.options.bulk_max;
        if items <= most {
            return Ok(());
        }
        Err(Problem::new(413, format!("a request has at most {most} items (--bulk-max), not {items}")))
    }

    /// Errors: no further change is taken while so many answers wait.
    fn check_pending(&self) -> Result<(), Problem> {
        if self.pending.load(Ordering::Relaxed) < self.options.max_pending {
            return Ok(());
        }
        let what = if self.store.is_some() { "store" } else { "disk" };
        Err(Problem::new(429, format!("too many answers wait for the {what} (--max-pending)")))
    }
}

/// Answers until SIGTERM, SIGINT or `options.shutdown`; then requests under way are completed within `options.grace`.
///
/// `on_started` is told the address once connections are taken.
/// Errors: options out of range, an address in use, a data directory that is damaged, in use or full.
pub fn run(options: Options, on_started: impl FnOnce(Started)) -> Result<(), ServeError> {
    run_with(options, on_started, |options, kept, threads| {
        let open = |directory| Log::open(directory, kept, threads, options.snapshot_every);
        options.data.as_deref().map(open).transpose()
    })
}

type Opened = Option<(Arc<Log>, log::Writing, Recovered)>;

/// As `run`, with another way to the log.
fn run_with(
    options: Options,
    on_started: impl FnOnce(Started),
    open: impl FnOnce(&Options, &Kept, usize) -> Result<Opened, ServeError>,
) -> Result<(), ServeError> {
    let threads = options.threads.unwrap_or_else(thread_table::cores);
    check("threads", threads, 1..=256, "1 to 256")?;
    check("bulk-max", options.bulk_max, 1..=1_000_000, "1 to 1000000")?;
    check("body-max", options.body_max, 1..=1 << 30, "1 to 1073741824")?;
    check("max-connections", options.max_connections, 1..=10_000_000, "1 to 10000000")?;
    check("total-unsent", options.total_unsent, 1 << 20.., "1048576 bytes and more")?;
    check("total-unfinished", options.total_unfinished, 1 << 20.., "1048576 bytes and more")?;
    if !(1..=leaderboard::MAX_BOARD_NAME_BYTES).contains(&options.board.len()) {
        let (option, value) = ("board", format!("{:?}", options.board));
        return Err(ServeError::Option { option, value, range: "a name has 1 to 256 bytes" });
    }
    if options.store.is_some() {
        check("bulk-max", options.bulk_max, 1..=store::BULK_MAX, "1 to 100000 with --store")?;
        let least = Duration::from_millis(1);
        check("store-timeout", options.store_timeout, least..=Duration::from_secs(60), "1ms to 60s")?;
        store::check_faults(&options.faults)?;
        if options.data.is_some() {
            return Err(ServeError::StoreAndData);
        }
    }
    let keys = options.keys.as_deref().map(Keys::read).transpose()?;
    if keys.is_none() && !options.open && !options.listen.ip().is_loopback() {
        return Err(ServeError::Unsigned { address: options.listen });
    }
    let planted = (Server::Leaderboard, &options.faults[..]);
    let listening = Listening::on(options.listen, Readiness::Connected, planted, &options.shutdown)?;
    let address = listening.address;
    let rules = leaderboard::Options { direction: options.direction, ties: options.ties, seed: None };
    let store = options.store.as_ref();
    let store =
        store.map(|store| Store::open(store, options.store_timeout, threads, (&options.board, rules)));
    let store = store.transpose()?;
    let boards = Arc::new(Boards::new(options.implementation));
    let kept = Kept { boards, once: Arc::default(), nonces: Arc::default() };
    let (log, writing, recovered) = match open(&options, &kept, threads)? {
        Some((log, writing, recovered)) => (Some(log), Some(writing), Some(recovered)),
        None => (None, None, None),
    };
    let mut crew = listening.crew()?;
    let Kept { boards, once, nonces } = kept;
    let shared = Arc::new(Shared {
        options,
        boards,
        log,
        store,
        keys,
        once,
        nonces,
        tallies: (0..threads).map(|_| Arc::new(Tally::new())).collect(),
        connections: AtomicUsize::new(0),
        pending: AtomicUsize::new(0),
    });
    if shared.store.is_none() && shared.boards.get(&shared.options.board).is_none() {
        let created = changes::create_board(&shared, Some(&shared.options.board), rules);
        created.map_err(|problem| ServeError::Board { why: problem.detail().to_owned() })?;
    }
    for me in 0..threads {
        let (shared, common) = (shared.clone(), crew.common.clone());
        crew.spawn(format!("leaderboard-{me}"), move || thread::run(&shared, &common, me))?;
    }
    on_started(Started { address, recovered });
    let served = serve(crew, &shared);
    // The log's error is the cause of the threads' errors.
    let ended = writing.map_or(Ok(()), log::Writing::end).and(served);
    if let Some(directory) = &shared.options.data
        && fault::is_planted(&shared.options.faults, Kind::LoseAtStop)
    {
        log::lose_last_quarter(directory).map_err(ServeError::system("planting a fault in the log"))?;
    }
    ended
}

/// Waits for the end, and gives the threads the time that requests under way have.
fn serve(mut crew: Crew, shared: &Shared) -> Result<(), ServeError> {
    let mut served = Ok(());
    let has_failed = || shared.log.as_ref().is_some_and(|log| log.has_failed());
    let is_planted = |kind| fault::is_planted(&shared.options.faults, kind);
    while served.is_ok() && !has_failed() {
        if crew.listen(REST_NS, None).the_end {
            if !is_planted(Kind::StayAtStop) {
                break;
            }
            std::thread::sleep(Duration::from_nanos(REST_NS));
        }
        served = crew.check();
        changes::end_due_seasons(shared, unix_s());
    }
    if is_planted(Kind::DropAtStop) && served.is_ok() {
        std::process::exit(0);
    }
    let ended = crew.end(clock::now_ns() + shared.options.grace.as_nanos() as u64 + END_NS);
    served.and(ended)
}

/// Seconds since the epoch.
fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
