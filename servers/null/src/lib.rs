//! The null server: echoes its input, and does nothing else. What an instrument measures against it is the instrument.
//!
//! WebSocket: texts and binaries are echoed, and all frames of one read are answered with one write. Lines over plain
//! TCP: input is returned byte by byte, so a line is echoed as soon as its end is there. HTTP/1.1: every request is
//! answered `200` and `ok`, `/bytes/N` with N bytes, and all requests of one read with one write, up to 64 KiB. A
//! thread per core, each asleep in epoll with its own descriptor table, so that an answer is sent at once.
//! Back-pressure instead of a limit: from a client that does not read, nothing more is read.

mod echo;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod http;
mod thread;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use servers_shared::cli::{self, check};
use servers_shared::control::Listening;
use servers_shared::fault::{self, Fault, Server};
use servers_shared::listener::Readiness;
use servers_shared::{ServeError, Shutdown, thread_table};

/// What a null server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Protocol {
    /// texts and binaries come back (RFC 6455)
    #[value(name = "websocket")]
    WebSocket,
    /// plain TCP; every line comes back
    Lines,
    /// HTTP/1.1; every request is answered 200 and "ok", /bytes/N with N bytes, 1 MiB at most
    Http,
}

/// How a null server runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42060", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// What is spoken
    #[arg(long, value_enum, default_value_t = Protocol::WebSocket)]
    pub protocol: Protocol,
    /// Threads that answer [default: one per core, more where sockets need further descriptor tables]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Sockets at once; whoever comes on top of that is refused, over WebSocket and HTTP with status 503.
    #[arg(skip = 50_000_usize)]
    pub max_connections: usize,
    /// How long a client may take from connecting to the end of its request. Over HTTP from the request's first
    /// byte, and over WebSocket for a message, too; between these a client may be silent for ever.
    #[arg(skip = Duration::from_secs(5))]
    pub handshake_timeout: Duration,
    /// Faults to plant, for testing instruments.
    #[arg(long = "fault", value_name = fault::FORM, help = fault::HELP, long_help = fault::help(Server::Null))]
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

/// What the threads share.
struct Shared {
    options: Options,
    sockets: AtomicUsize,
}

/// Echoes until SIGTERM, SIGINT or `options.shutdown`; then WebSockets close 1001, and the others just close.
///
/// `on_listening` is told the address once connections are taken.
/// Errors: options out of range, an address in use.
pub fn run(options: Options, on_listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    check("threads", options.threads.unwrap_or(1), 1..=256, "1 to 256")?;
    check("max-connections", options.max_connections, 1..=10_000_000, "1 to 10000000")?;
    let readiness = match options.protocol {
        Protocol::WebSocket => Readiness::FirstBytes,
        // An instrument opens all its connections before it sends the first request.
        Protocol::Lines | Protocol::Http => Readiness::Connected,
    };
    let planted = (Server::Null, &options.faults[..]);
    let listening = Listening::on(options.listen, readiness, planted, &options.shutdown)?;
    let (address, table_sockets) = (listening.address, listening.table_sockets);
    // As many as requested, even if their tables hold fewer sockets: a second thread on a core costs the first one a
    // context switch per wake-up, and a user who gives a number measures that core.
    let threads = options.threads.unwrap_or_else(|| {
        thread_table::threads_for(options.max_connections, table_sockets, thread_table::cores())
    });
    let mut crew = listening.crew()?;
    let shared = Arc::new(Shared { options, sockets: AtomicUsize::new(0) });
    for me in 0..threads {
        let (shared, common) = (shared.clone(), crew.common.clone());
        crew.spawn(format!("null-{me}"), move || thread::run(&shared, &common))?;
    }
    on_listening(address);
    crew.serve()
}
