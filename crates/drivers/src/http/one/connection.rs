//! An HTTP/1.1 connection with its socket, generic over how its answers are reported.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::Socket;
use tokio::io::AsyncWrite;

use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Closed, Driver, OpenError, Refused};
use crate::http::fault::Fault;
use crate::read_buffer::ReadBuffer;
use crate::shutdown::Shutdown;
use crate::stream::{self, Stream};

/// What a connection knows between its reads: its request, and how far the answer is.
pub trait State: 'static {
    /// A request.
    type Send<'a>;
    /// What of an answer is reported at once.
    type Received<'d>;

    /// Of a new connection to there.
    fn new(to: &Address) -> Self;

    /// Takes a request. False: one is open, or the connection takes no more.
    fn send(&mut self, what: Self::Send<'_>) -> bool;

    /// What has come next, if anything can be reported. After a fault the offending bytes are the rest of the buffer.
    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Result<Option<Self::Received<'d>>, Fault>;

    /// What the kernel has not taken yet of the request.
    fn unsent(&self) -> &[u8];

    /// The kernel took so much of it.
    fn wrote(&mut self, count: usize);

    /// True when a part of the request has left.
    fn has_written(&self) -> bool;

    /// Gives up what is unsent; no further request can follow.
    fn stop_sending(&mut self);

    /// Room for one read, after what the last one left incomplete.
    fn lay<'d>(&self, buffer: &'d mut ReadBuffer) -> &'d mut [u8];

    /// `count` bytes were read into that room.
    fn came(&mut self, count: usize, buffer: &mut ReadBuffer);

    /// The stream ended; `is_clean`: the peer said that it would.
    fn end(&mut self, is_clean: bool) -> End;
}

/// What the end of the stream means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// it ends the answer, which `next` gives
    OfAnswer,
    /// nothing was under way
    OfConnection,
    /// the answer's rest will never come
    CutOff,
}

/// One open connection.
pub struct Connection<S> {
    stream: Stream,
    pub(super) state: S,
    shutdown: Shutdown,
}

impl<S: State> Connection<S> {
    /// Over an established stream.
    pub(crate) fn over(stream: Stream, to: &Address) -> Self {
        Connection { stream, state: S::new(to), shutdown: Shutdown::default() }
    }
}

impl<S: State> Driver for Connection<S> {
    type Connecting = Socket;
    type Send<'a> = S::Send<'a>;
    type Received<'d> = S::Received<'d>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Socket, OpenError> {
        connect::begin(to.socket, from)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        let stream = Stream::open(begin_connect, to, |tls| &tls.config_http1).await?;
        Ok(Connection::over(stream, to))
    }

    /// Refuses while a request is open, and after an answer that closes the connection.
    fn send(&mut self, what: S::Send<'_>) -> Result<(), Refused> {
        if !self.shutdown.is_said() && self.state.send(what) {
            Ok(())
        } else {
            Err(Refused(self.unsent_bytes()))
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let unsent = self.state.unsent();
            if unsent.is_empty() {
                break;
            }
            match ready!(Pin::new(&mut self.stream).poll_write(cx, unsent)) {
                Ok(count) => self.state.wrote(count),
                // The server closed its receiving side in the middle of the request; it may have answered why.
                Err(error) if self.state.has_written() && stops_listening(&error) => {
                    self.state.stop_sending();
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.shutdown.poll_send(|| Pin::new(&mut self.stream).poll_shutdown(cx)).map(Ok)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        let is_clean = match ready!(stream::poll_read(&mut self.stream, cx, self.state.lay(buffer))) {
            Ok(0) => true,
            // Many servers close the connection without TLS's close_notify.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Poll::Ready(Err(Closed::Failed(error))),
            Ok(count) => {
                self.state.came(count, buffer);
                return Poll::Ready(Ok(count));
            }
        };
        Poll::Ready(match self.state.end(is_clean) {
            End::OfAnswer => Ok(0),
            End::OfConnection => Err(Closed::ByPeer(None)),
            End::CutOff => Err(Closed::Broken(Broken::Http(Fault::CutOff))),
        })
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<S::Received<'d>, Broken>> {
        self.state.next(buffer).map_err(Broken::Http).transpose()
    }

    /// Unsent data stays unsent: closing means that no answer is awaited any more.
    fn close(&mut self) {
        if self.shutdown.say() {
            self.state.stop_sending();
        }
    }

    fn unsent_bytes(&self) -> usize {
        self.state.unsent().len()
    }

    fn tls_ns(&self) -> Option<u64> {
        self.stream.tls_ns()
    }
}

fn stops_listening(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
