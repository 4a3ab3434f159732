//! How operations end, and why connections do.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::wire::{Answer, Refused, ServerError, SessionError};

/// How an operation ended.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// the member answered
    Ok(Answer<'a>),
    /// it was not executed, or changes nothing, or the member reports that it failed
    Failed(Failure),
    /// it was sent and its answer never came: it may have been executed or not. Never counts as success
    Unknown(Failure),
}

/// Why an operation did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// The member says so.
    #[error("the member refused or failed to carry it out: {0}")]
    Server(ServerError),
    /// Its connection ended before the answer came.
    #[error("{0}")]
    ConnectionLost(Arc<Down>),
    /// No answer came within `Config::invocation_timeout`.
    #[error("no answer within {} s (Config::invocation_timeout)", .0.as_secs_f64())]
    Timeout(Duration),
    /// No member was connected within `Config::invocation_timeout`, or too much waits for one already. Nothing was sent.
    #[error("no member is connected{}", .0.as_ref().map(|down| format!("; last: {down}")).unwrap_or_default())]
    NotConnected(Option<Arc<Down>>),
    /// The answer is larger than `Limits::message_bytes` and was skipped.
    #[error("its answer takes {bytes} bytes, with a limit of {limit_bytes} (Limits::message_bytes)")]
    AnswerTooLarge {
        /// as far as its frames said
        bytes: usize,
        /// what it may take
        limit_bytes: usize,
    },
    /// Nothing was sent, because a limit is reached.
    #[error("{0}")]
    Refused(Refused),
    /// The answer came, and its value is of another type than requested.
    #[error("{0}")]
    Data(#[from] crate::wire::data::DataError),
    /// The answer is not one to its operation; an error in this client or in the member.
    #[error("{0}")]
    Internal(&'static str),
    /// The client was closed.
    #[error("the client was closed")]
    Closed,
}

/// A member that was not reached, or whose connection ended.
#[derive(Debug)]
pub struct Down {
    /// the member's address
    pub address: SocketAddr,
    /// why
    pub cause: DownCause,
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.cause)
    }
}

/// Why a connection did not open, or ended.
#[derive(Debug, thiserror::Error)]
pub enum DownCause {
    /// The kernel reported an error.
    #[error("{0}")]
    Io(io::Error),
    /// TLS failed: the certificate is not trusted, or the other side speaks no TLS.
    #[error("no TLS connection ({0})")]
    Tls(rustls::Error),
    /// The member ended it.
    #[error("the member closed the connection")]
    ClosedByMember,
    /// The protocol was broken, the member refused us, or it fell silent.
    #[error("{0}")]
    Session(#[from] SessionError),
    /// It belongs to another cluster than the members that are connected.
    #[error("the member belongs to another cluster than the members connected before")]
    OtherCluster,
    /// The same member is connected by another address.
    #[error("this member is connected by another address already")]
    Double,
    /// The cluster no longer counts it as a member.
    #[error("the member left the cluster")]
    Left,
}

impl From<io::Error> for DownCause {
    fn from(error: io::Error) -> Self {
        match error.downcast() {
            Ok(tls) => DownCause::Tls(tls),
            Err(error) => DownCause::Io(error),
        }
    }
}

impl DownCause {
    /// Whether trying again cannot help, unless another process begins to listen there.
    pub fn is_hopeless(&self) -> bool {
        match self {
            DownCause::Session(SessionError::Silent(_) | SessionError::AuthenticationTimeout) => false,
            DownCause::Session(_) | DownCause::OtherCluster | DownCause::Tls(_) => true,
            _ => false,
        }
    }
}

/// Why a client did not get connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// An address that cannot be resolved.
    #[error("address {address:?}: {why}; expected HOST or HOST:PORT, such as 127.0.0.1:5701")]
    Address {
        /// as it was given
        address: String,
        /// what is wrong with it
        why: String,
    },
    /// No member let us in.
    #[error(
        "cannot connect to cluster {cluster:?} at {addresses} ({why}; tried {tries} times in {:.1} s); start a member \
         there, or check addresses and cluster name",
        .elapsed.as_secs_f64()
    )]
    NoMember {
        /// the cluster's name
        cluster: String,
        /// all addresses that were tried
        addresses: String,
        /// what happened last
        why: String,
        /// connections that were begun
        tries: u32,
        /// how long it was tried
        elapsed: Duration,
    },
    /// No member let us in, and with the last one TLS failed. `Config::tls` says what is trusted.
    #[error("{address}: no TLS connection ({why})")]
    Tls {
        /// of the member
        address: SocketAddr,
        /// what failed
        why: String,
    },
    /// The kernel gave no poll, thread or waker.
    #[error("cannot start the client: {0}")]
    Io(#[from] io::Error),
}
