//! The null server: says back what it hears, and does nothing else. What an instrument measures against it is
//! the instrument.
//!
//! WebSocket: texts and binaries are echoed, and all frames of one read are answered with one write. Lines over
//! plain TCP: what comes goes back, byte by byte, so a line is echoed as soon as its end is there. HTTP/1.1: every
//! request is answered `200` and `ok`, `/bytes/N` with N bytes, and all requests of one read with one write, up to
//! 64 KiB. A thread per core, each asleep in epoll with a descriptor table of its own, so that an answer leaves at once.
//! Back-pressure instead of a limit: from a client that does not read, nothing more is read.

mod echo;
mod http;
mod thread;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::fault::process::ProcessFaults;
use crate::fault::{Fault, Faults, Server};
use crate::listener::{Listener, Readiness};
use crate::shutdown::{AllSignalsBlocked, Ear};
use crate::{ServeError, Shutdown, clock, thread_table};

/// How long clients have to answer the close frame when the server ends.
const END_NS_MAX: u64 = 2_000_000_000;

/// What a null server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RFC 6455; texts and binaries come back.
    WebSocket,
    /// Plain TCP; every line comes back.
    Lines,
    /// HTTP/1.1; every request is answered `ok`, and `/bytes/N` with N bytes, 1 MiB at most.
    Http,
}

/// How a null server runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one, which `on_listening` is told.
    pub listen: SocketAddr,
    /// What is spoken.
    pub protocol: Protocol,
    /// Threads that answer; None: one per core, and more where `max_connections` does not fit into their tables.
    pub threads: Option<usize>,
    /// Sockets at once; whoever comes on top of that is refused, over WebSocket and HTTP with status 503.
    pub max_connections: usize,
    /// How long a client may take from connecting to the end of its request. Over HTTP from the request's first
    /// byte, and for twice as long at worst; between requests a client may be silent for ever.
    pub handshake_timeout: Duration,
    /// Faults to plant, for testing instruments.
    pub faults: Vec<Fault>,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    pub shutdown: Option<Shutdown>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 42_070)),
            protocol: Protocol::WebSocket,
            threads: None,
            max_connections: 50_000,
            handshake_timeout: Duration::from_secs(5),
            faults: Vec::new(),
            shutdown: None,
        }
    }
}

/// What the threads share.
struct Shared {
    options: Options,
    listener: Listener,
    table_sockets: usize,
    sockets: AtomicUsize,
    going_down: AtomicBool,
}

/// Echoes until SIGTERM, SIGINT or `options.shutdown`; then WebSockets close 1001, and the others just close.
///
/// `on_listening` is told the address once connections are taken.
/// Errors: options out of range, an address in use.
pub fn run(options: Options, on_listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let range = |option, value: usize, range| ServeError::Option { option, value: value.to_string(), range };
    if let Some(threads) = options.threads.filter(|threads| !(1..=256).contains(threads)) {
        return Err(range("threads", threads, "1 to 256"));
    }
    if !(1..=10_000_000).contains(&options.max_connections) {
        return Err(range("max-connections", options.max_connections, "1 to 10000000"));
    }
    let faults = Faults::of(Server::Null, &options.faults)?;
    let table_sockets = thread_table::raise_limit();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    // So many as were asked for, even where their tables hold fewer sockets: a second thread on a core costs the
    // first one a context switch per wake-up, and who names a number measures that core.
    let threads = (options.threads)
        .unwrap_or_else(|| thread_table::threads_for(options.max_connections, table_sockets, cores));
    let listen_error = |source| ServeError::Listen { address: options.listen, source };
    let readiness = match options.protocol {
        Protocol::WebSocket => Readiness::FirstBytes,
        // An instrument opens all its connections before it sends the first request.
        Protocol::Lines | Protocol::Http => Readiness::Connected,
    };
    let listener =
        Listener::bind(options.listen, readiness).map_err(listen_error)?.with_faults(faults.clone());
    let address = listener.address().map_err(ServeError::system("getsockname"))?;
    let ear = Ear::new(options.shutdown.clone()).map_err(ServeError::system("signalfd"))?;
    let shared = Arc::new(Shared {
        options,
        listener,
        table_sockets,
        sockets: AtomicUsize::new(0),
        going_down: AtomicBool::new(false),
    });
    let spawn = |me: usize| {
        let shared = shared.clone();
        std::thread::Builder::new()
            .name(format!("null-{me}"))
            .stack_size(512 * 1024)
            .spawn(move || thread::run(&shared))
    };
    let blocked = AllSignalsBlocked::new();
    let spawned: std::io::Result<Vec<_>> = (0..threads).map(spawn).collect();
    drop(blocked);
    if spawned.is_err() {
        shared.going_down.store(true, Ordering::Release);
    }
    let echoing = spawned.map_err(ServeError::system("starting a thread"))?;
    let _process_faults =
        ProcessFaults::start(faults.as_ref()).map_err(ServeError::system("starting a thread"))?;
    on_listening(address);
    let lost = loop {
        if ear.hears_the_end(1_000_000_000) {
            break None;
        }
        if let Some(thread) = echoing.iter().position(|one| one.is_finished()) {
            break Some(thread);
        }
    };
    shared.listener.refuse();
    shared.going_down.store(true, Ordering::Release);
    let told_ns = clock::now_ns();
    while !echoing.iter().all(|one| one.is_finished()) && clock::now_ns() < told_ns + END_NS_MAX {
        std::thread::sleep(Duration::from_millis(2));
    }
    match lost.or_else(|| echoing.iter().position(|one| !one.is_finished())) {
        Some(thread) => Err(ServeError::ThreadLost { thread }),
        None => Ok(()),
    }
}
