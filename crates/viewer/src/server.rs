//! The server: its own low-priority thread, on loopback, until it is dropped.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::Judge;
use crate::archive::Answers;
use crate::bundle::policy_served;
use crate::connections::Answering;
use crate::error::ViewError;
use crate::gate::Gate;
use crate::routes::{Once, Shared, router};
use crate::tick_files::TickFiles;

/// The default port of a viewer.
pub const FIRST_PORT: u16 = 42_068;
/// Ports that are tried after one that is in use.
const FURTHER_PORTS: u16 = 100;
/// Connections that the system queues until we accept them: a flood must not fill the queue before the owner connects,
/// whose browser would retry after a second. The system has its own limit, 4,096 on Linux.
const BACKLOG: i32 = 4_096;
/// Added to the niceness of the viewer's threads: a climb in the same process goes first.
const NICER: i32 = 5;
const TOKEN_BYTES: usize = 24;
/// Pages that follow a run get its end before the viewer stops; readers too slow for that are dropped.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What a viewer shows, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// it may come into being later
    pub store: PathBuf,
    /// on loopback; port 0 is any free one
    pub listen: SocketAddr,
    /// tick logs that may be read
    pub ticks: Vec<PathBuf>,
}

/// A viewer that answers until it is dropped.
#[derive(Debug)]
pub struct Viewer {
    address: SocketAddr,
    token: String,
    once: OnceToken,
    is_closing: Arc<AtomicBool>,
    /// ends after `drop`, when pages that follow a run know of it
    _answering: Answering,
}

struct OnceToken(Arc<Shared>);

impl std::fmt::Debug for OnceToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OnceToken")
    }
}

impl Viewer {
    /// The address it listens on; the port may differ from the requested one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for a browser, with the token. Its fragment is free: `#/live` after it is a view of the page.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token)
    }

    /// An address that opens the page once, within a minute. For the command line of a browser, which other users of the
    /// machine can read. Its fragment is kept.
    pub fn url_once(&self) -> Result<String, ViewError> {
        let token = token()?;
        *self.once.0.once.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Once { token: token.clone(), since: Instant::now() });
        Ok(format!("http://{}/?token={token}", self.address))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }
}

/// Starts a viewer. A port that is taken is passed over for the next free one.
///
/// Errors: `NotLoopback`, `CannotListen`, `CannotStart`.
pub fn serve(options: &Options, judge: Arc<dyn Judge>) -> Result<Viewer, ViewError> {
    if !options.listen.ip().is_loopback() {
        return Err(ViewError::NotLoopback { address: options.listen });
    }
    let cannot_listen = |cause| ViewError::CannotListen { address: options.listen, cause };
    let listener = listen(options.listen).map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    listener.set_nonblocking(true).map_err(cannot_listen)?;
    socket2::SockRef::from(&listener).listen(BACKLOG).map_err(cannot_listen)?;
    let token = token()?;
    let is_closing = Arc::new(AtomicBool::new(false));
    let policy = HeaderValue::from_str(&policy_served())
        .map_err(|error| ViewError::CannotStart { detail: error.to_string() })?;
    let shared = Arc::new(Shared {
        store: options.store.clone(),
        judge,
        gate: Gate::new(address.port(), token.clone()),
        answers: Answers::default(),
        ticks: Mutex::new(TickFiles::new(&options.ticks)),
        followers: Shared::followers(),
        once: Mutex::new(None),
        is_closing: is_closing.clone(),
        policy,
    });
    let once = OnceToken(shared.clone());
    let answering = Answering::begin("viewer", listener, router(shared), LAST_WORDS)
        .map_err(|error| ViewError::CannotStart { detail: format!("no thread ({error})") })?;
    Ok(Viewer { address, token, once, is_closing, _answering: answering })
}

fn listen(asked: SocketAddr) -> io::Result<TcpListener> {
    let mut address = asked;
    for further in 1..=FURTHER_PORTS {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && asked.port() != 0 => {
                let Some(next) = asked.port().checked_add(further) else { break };
                address.set_port(next);
            }
            outcome => return outcome,
        }
    }
    address.set_port(0);
    TcpListener::bind(address)
}

/// Makes this thread less urgent than those that measure. Niceness belongs to a thread on Linux, and the threads it starts
/// inherit it.
pub fn yield_to_others() {
    let nice = rustix::process::nice(0).unwrap_or(0);
    // If this is refused, the viewer runs at normal priority.
    let _ = rustix::process::setpriority_process(None, nice + NICER);
}

fn token() -> Result<String, ViewError> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| ViewError::CannotStart {
        detail: format!("no randomness for its token ({error})"),
    })?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
