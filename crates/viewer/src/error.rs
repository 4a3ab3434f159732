//! What can go wrong with the viewer, in messages that say what to do.

use std::io;
use std::net::SocketAddr;

use store::StoreError;

/// Why a stored run could not be judged: what the caller's `Judge` says, for people.
pub type Unjudged = Box<dyn std::error::Error + Send + Sync>;

/// Why the viewer could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The address is not of this machine alone. Remedy: loopback, and a tunnel for other machines.
    #[error(
        "--listen {address} is not loopback; other machines would need TLS and a token of yours, which are not built; \
         listen on 127.0.0.1 and reach it through a tunnel: ssh -L {port}:127.0.0.1:{port} THIS-HOST", port = address.port()
    )]
    NotLoopback {
        /// as asked for
        address: SocketAddr,
    },
    /// No port is free there, or the address is not ours. Remedy: another address.
    #[error("cannot listen on {address} ({cause}); name another address with --listen 127.0.0.1:PORT")]
    CannotListen {
        /// as asked for
        address: SocketAddr,
        /// what the system says
        cause: io::Error,
    },
    /// The system gives no thread or no randomness.
    #[error("the viewer cannot start: {detail}")]
    CannotStart {
        /// what is missing
        detail: String,
    },
    /// The program was built without npm. Remedy: build with it.
    #[error(
        "this program was built without its page, which a report carries; install Node.js with npm and build again"
    )]
    NoPage,
    /// What the store says.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run's plan cannot be read.
    #[error("run {run} cannot be judged: {cause}")]
    Unjudged {
        /// which
        run: String,
        /// what the judge says
        cause: Unjudged,
    },
}
