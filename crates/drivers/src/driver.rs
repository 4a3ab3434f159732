//! The trait that every protocol implements, and the ways in which a connection fails.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::task::{Context, Poll};

use crate::address::Address;
use crate::read_buffer::ReadBuffer;
use crate::unfinished::Exhausted;

/// One connection to the subject.
///
/// It is opened in two steps, because the order in which connections reach a server can matter (the arena pairs its
/// players by order of arrival): `begin_connect` puts the connection into the server's queue without waiting, `open` waits
/// until it is usable.
pub trait Driver: Sized + 'static {
    /// A connection on its way.
    type Connecting: 'static;
    /// What can be sent.
    type Send<'a>;
    /// What can be received.
    type Received<'a>;

    /// Begins a connection and returns at once; where the kernel allows it the first bytes are already sent.
    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Self::Connecting, OpenError>;

    /// Waits until the connection can be used.
    fn open(begin_connect: Self::Connecting, to: &Address) -> impl Future<Output = Result<Self, OpenError>>;

    /// Encodes into the connection's buffer. Never waits. Errors: `Refused` when too much is waiting already.
    fn send(&mut self, what: Self::Send<'_>) -> Result<(), Refused>;

    /// Hands the buffer to the kernel. The clock is read by the caller, just before.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Reads once into the buffer, after what the last read left incomplete. Returns how many bytes came.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>>;

    /// The next whole message in the buffer; `None` when only a part is left, which the driver takes back.
    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Self::Received<'d>, Broken>>;

    /// Closes cleanly; must be flushed like anything else.
    fn close(&mut self);

    /// Bytes that wait for the kernel.
    fn unsent_bytes(&self) -> usize;

    /// How long TLS took while the connection was opened, ns; `None` without TLS.
    fn tls_ns(&self) -> Option<u64> {
        None
    }

    /// How many redirects led to this connection.
    fn redirects(&self) -> u8 {
        0
    }

    /// How many requests may be open at once on this connection, as things are now; `None`: one, and more connections for more.
    fn requests_at_once(&self) -> Option<usize> {
        None
    }

    /// The subprotocol that a WebSocket server chose; empty without one, and if none was requested.
    fn subprotocol(&self) -> &str {
        ""
    }
}

/// Within an `impl Driver` of something around a connection: what only the connection does.
macro_rules! forward {
    ($connection:tt) => {
        fn poll_flush(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<std::io::Result<()>> {
            self.$connection.poll_flush(cx)
        }

        fn poll_read(
            &mut self,
            cx: &mut std::task::Context<'_>,
            buffer: &mut $crate::read_buffer::ReadBuffer,
        ) -> std::task::Poll<Result<usize, $crate::driver::Closed>> {
            self.$connection.poll_read(cx, buffer)
        }

        fn close(&mut self) {
            self.$connection.close();
        }

        fn unsent_bytes(&self) -> usize {
            self.$connection.unsent_bytes()
        }

        fn tls_ns(&self) -> Option<u64> {
            self.$connection.tls_ns()
        }
    };
}

/// Why a connection did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing listens there, or its queue is full and it says so.
    #[error("connection refused")]
    Refused,
    /// No answer within the time a connection may take.
    #[error("no answer in time")]
    Timeout,
    /// The server ended the connection while it was being opened.
    #[error("closed by the server during the handshake")]
    ClosedEarly,
    /// This process has no descriptor left; raise the limit or use more workers.
    #[error("this process has no descriptor left")]
    NoDescriptors,
    /// No local port is left for this source and target; use more source addresses.
    #[error("no local port is left for this source address")]
    NoPorts,
    /// The network has no way there.
    #[error("unreachable: {0}")]
    Unreachable(io::Error),
    /// The server speaks the protocol and does not take this connection: it is full (status 429 or 503), or wants credentials
    /// (401, 403 or 407). What it answered.
    #[error("rejected by the server: it answered {0}")]
    Rejected(String),
    /// The server answered, but not as this protocol asks.
    #[error("not a {protocol} server: {why}")]
    WrongProtocol {
        /// the protocol we spoke
        protocol: &'static str,
        /// what it said instead
        why: String,
    },
    /// The server sends this connection somewhere else, and it does not go there. Why.
    #[error("{0}")]
    Redirected(String),
    /// The certificate or the TLS handshake failed.
    #[error("TLS: {0}")]
    Tls(String),
    /// Anything else that the kernel reported.
    #[error("{0}")]
    Other(io::Error),
}

impl OpenError {
    /// All causes, in the order of `cause_index`.
    pub const CAUSES: [&'static str; 11] = [
        "refused",
        "timeout",
        "closed early",
        "no descriptors",
        "no ports",
        "unreachable",
        "wrong protocol",
        "tls",
        "other",
        "rejected",
        "redirected",
    ];

    /// Those in which an answer timed out.
    pub const TIMEOUTS: [&'static str; 1] = ["timeout"];
    /// Of these: this machine had nothing left to open a connection with.
    pub const OF_THIS_MACHINE: [&'static str; 2] = ["no descriptors", "no ports"];

    /// Index into `CAUSES`.
    pub fn cause_index(&self) -> usize {
        match self {
            OpenError::Refused => 0,
            OpenError::Timeout => 1,
            OpenError::ClosedEarly => 2,
            OpenError::NoDescriptors => 3,
            OpenError::NoPorts => 4,
            OpenError::Unreachable(_) => 5,
            OpenError::WrongProtocol { .. } => 6,
            OpenError::Tls(_) => 7,
            OpenError::Other(_) => 8,
            OpenError::Rejected(_) => 9,
            OpenError::Redirected(_) => 10,
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ECONNREFUSED) => OpenError::Refused,
            Some(libc::ETIMEDOUT) => OpenError::Timeout,
            Some(libc::ECONNRESET | libc::EPIPE) => OpenError::ClosedEarly,
            Some(libc::EMFILE | libc::ENFILE) => OpenError::NoDescriptors,
            Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE) => OpenError::NoPorts,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => OpenError::Unreachable(error),
            _ if error.kind() == io::ErrorKind::UnexpectedEof => OpenError::ClosedEarly,
            _ => OpenError::Other(error),
        }
    }
}

/// Why an open connection ended.
#[derive(Debug)]
pub enum Closed {
    /// It never opened.
    NotOpened(OpenError),
    /// The peer closed it; with its protocol's close message if it sent one.
    ByPeer(Option<Goodbye>),
    /// The kernel reported an error on it.
    Failed(io::Error),
    /// The peer broke the protocol.
    Broken(Broken),
}

/// How a peer said that it ends a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goodbye {
    /// close code; 1005 means none
    pub code: u16,
    /// its words, at most 123 bytes; often empty, which takes no memory
    pub reason: Box<str>,
}

/// The peer broke the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Bytes that the protocol does not allow.
    #[error("protocol error: {0}")]
    Protocol(&'static str),
    /// Text that is not UTF-8.
    #[error("text that is not UTF-8")]
    NotUtf8,
    /// A message beyond the cap.
    #[error("a message of more than {0} bytes")]
    TooLarge(usize),
    /// It is one of too many large messages that have not ended.
    #[error(
        "messages that have not ended take more than {} MiB over all connections",
        crate::UNFINISHED_BYTES_MAX >> 20
    )]
    TooManyUnfinished,
    /// An answer that is none.
    #[error("{0}")]
    Http(crate::http::fault::Fault),
    /// The peer asks for answers (pings, settings) and does not read them.
    #[error("it asks for answers, such as pongs, and does not read them")]
    UnreadAnswers,
}

impl From<Exhausted> for Broken {
    fn from(_: Exhausted) -> Self {
        Broken::TooManyUnfinished
    }
}

/// What a peer makes us say (pongs, acknowledgements) may take so much while it reads nothing, or less where the answers to
/// all peers take too much together; beyond it the peer breaks the protocol. Our own messages do not count: a server that is
/// slow to read them may still ask whether we are there.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A message could not be taken because too much waits for the kernel already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {0} bytes wait for the kernel")]
pub struct Refused(pub usize);
