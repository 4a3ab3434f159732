//! An ordinary HTTP/1.1 server, a thread per connection, in which one limit can be planted.
//!
//! What the causes of a climb's answer are held to: each limit shows to the outside as it does in other people's servers. It
//! blocks in plain system calls on purpose, unlike the other servers here.

mod connection;
mod leak;
mod limit;
mod quota;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leak::Leak;
use limit::Limit;
use quota::Quota;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use servers_shared::cli;
use servers_shared::control::Listening;
use servers_shared::fault::{self, Fault, Kind, Server};
use servers_shared::listener::{NotAccepted, Readiness};
use servers_shared::shutdown::AllSignalsBlocked;
use servers_shared::thread::Common;
use servers_shared::{ServeError, Shutdown};

/// How a limited server runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42062", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// Limits and faults to plant, for testing instruments.
    #[arg(long = "fault", value_name = fault::FORM, help = fault::HELP, long_help = fault::help(Server::Limited))]
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

/// The connection after these is closed.
const CONNECTIONS_MAX: usize = 40;
/// Descriptors of the process with `fd-limit`.
const DESCRIPTORS: u64 = 64;
/// With `accept-backlog`: connections that may wait, and how long each is waited for.
const BACKLOG: i32 = 2;
const ACCEPT_EVERY: Duration = Duration::from_millis(50);
/// After descriptors have run out.
const BACK_OFF: Duration = Duration::from_millis(10);
/// How late the end is noticed.
const REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Of the thread of one connection.
const STACK_BYTES: usize = 128 * 1024;

/// Answers until SIGTERM, SIGINT or `options.shutdown`; then all connections are closed.
///
/// `on_listening` is told the address once connections are taken.
/// Errors: a fault that it cannot plant, an address in use, a quota that is not permitted.
pub fn run(options: Options, on_listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let planted = (Server::Limited, &options.faults[..]);
    let listening = Listening::on(options.listen, Readiness::Connected, planted, &options.shutdown)?;
    let has = |kind| fault::is_planted(&options.faults, kind);
    if has(Kind::AcceptBacklog) {
        rustix::net::listen(listening.listener.as_fd(), BACKLOG)
            .map_err(|error| ServeError::system("listen")(error.into()))?;
    }
    if has(Kind::FdLimit) {
        limit_descriptors(DESCRIPTORS).map_err(ServeError::system("setrlimit"))?;
    }
    // Before there are threads, so that none is outside of it; removed when this returns.
    let quota = has(Kind::Throttled).then(Quota::of_this_process).transpose();
    let _quota = quota.map_err(|why| ServeError::Quota { why })?;
    let acceptor = Acceptor {
        accept_every: has(Kind::AcceptBacklog).then_some(ACCEPT_EVERY),
        connections_max: if has(Kind::MaxConnections) { CONNECTIONS_MAX } else { usize::MAX },
        open: Arc::new(AtomicUsize::new(0)),
        limit: Limit::planted(&options.faults).map_err(ServeError::system("planting a limit"))?,
        leak: Leak::planted(&options.faults),
    };
    let address = listening.address;
    let mut crew = listening.crew()?;
    let common = crew.common.clone();
    crew.spawn("accept".to_owned(), move || acceptor.run(&common))?;
    on_listening(address);
    crew.serve()
}

struct Acceptor {
    accept_every: Option<Duration>,
    connections_max: usize,
    /// connections whose threads live
    open: Arc<AtomicUsize>,
    limit: Limit,
    leak: Leak,
}

impl Acceptor {
    fn run(&self, common: &Arc<Common>) -> io::Result<()> {
        while !common.going_down.load(Ordering::Acquire) {
            if let Some(every) = self.accept_every {
                std::thread::sleep(every);
            }
            match common.listener.accept() {
                Ok((connection, _)) => self.take(connection, common),
                Err(NotAccepted::Nobody) => {
                    let listener = common.listener.as_fd();
                    // That it was interrupted, or the time is up, is looked at like a connection.
                    let _ = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&REST));
                }
                Err(NotAccepted::Failed) => {}
                Err(NotAccepted::Exhausted) => std::thread::sleep(BACK_OFF),
            }
        }
        Ok(())
    }

    /// Gives a connection its thread; without one it is closed.
    fn take(&self, connection: OwnedFd, common: &Arc<Common>) {
        if self.open.load(Ordering::Acquire) >= self.connections_max {
            return;
        }
        let (open, limit, common) = (Counted::new(&self.open), self.limit.clone(), common.clone());
        let leak = self.leak;
        let _blocked = AllSignalsBlocked::new();
        let thread = std::thread::Builder::new().name("connection".to_owned()).stack_size(STACK_BYTES);
        // Where there is no thread, the connection is dropped with the closure.
        let _ = thread.spawn(move || {
            connection::serve(&connection, &limit, leak, &common);
            leak.connection();
            drop(open);
        });
    }
}

/// One of the open connections, until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Counted {
        count.fetch_add(1, Ordering::AcqRel);
        Counted(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn limit_descriptors(count: u64) -> io::Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = rustix::process::Rlimit { current: Some(count), ..getrlimit(Resource::Nofile) };
    Ok(setrlimit(Resource::Nofile, limit)?)
}
