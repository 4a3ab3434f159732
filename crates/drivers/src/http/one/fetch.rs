//! HTTP/1.1 whose responses are passed on as they arrive: the socket. The state of a connection between reads is `pieces`.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::Socket;
use tokio::io::AsyncWrite;

use super::exchange::End;
use super::pieces::Pieces;
use super::stops_listening;
use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Closed, Driver, OpenError, Refused};
use crate::http::fault::Fault;
use crate::http::fetch::Origin;
use crate::http::fetch::{Fetch, Piece};
use crate::read_buffer::ReadBuffer;
use crate::shutdown::Shutdown;
use crate::stream::{self, Stream};

/// One open connection.
pub struct Fetch1 {
    stream: Stream,
    pieces: Pieces,
    shutdown: Shutdown,
    origin: Origin,
}

impl Fetch1 {
    /// Over a stream that stands.
    pub(crate) fn over(stream: Stream, to: &Address) -> Self {
        Fetch1 { stream, pieces: Pieces::default(), shutdown: Shutdown::default(), origin: Origin::of(to) }
    }
}

impl Driver for Fetch1 {
    type Connecting = Socket;
    type Send<'a> = Fetch<'a>;
    type Received<'a> = Piece<'a>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Socket, OpenError> {
        connect::begin(to.socket, from)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        let stream = Stream::open(begin_connect, to, |tls| &tls.config_http1).await?;
        Ok(Fetch1::over(stream, to))
    }

    /// Refuses while a request is open, and behind an answer that closes the connection.
    fn send(&mut self, what: Fetch<'_>) -> Result<(), Refused> {
        if !self.shutdown.is_said() && self.pieces.ask(&what.parts(&self.origin), what.tag) {
            Ok(())
        } else {
            Err(Refused(self.unsent_bytes()))
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.pieces.unsent().is_empty() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, self.pieces.unsent())) {
                Ok(count) => self.pieces.wrote(count),
                // It stopped listening in the middle of the request; perhaps it has answered why.
                Err(error) if self.pieces.has_written() && stops_listening(&error) => {
                    self.pieces.stop_sending();
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.shutdown.poll_send(|| Pin::new(&mut self.stream).poll_shutdown(cx)).map(Ok)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        let is_clean = match ready!(stream::poll_read(&mut self.stream, cx, self.pieces.lay(buffer))) {
            Ok(0) => true,
            // Many servers end the connection without TLS's own goodbye.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Poll::Ready(Err(Closed::Failed(error))),
            Ok(count) => {
                self.pieces.came(count, buffer);
                return Poll::Ready(Ok(count));
            }
        };
        Poll::Ready(match self.pieces.end(is_clean) {
            End::OfAnswer => Ok(0),
            End::OfConnection => Err(Closed::ByPeer(None)),
            End::CutOff => Err(Closed::Broken(Broken::Http(Fault::CutOff))),
        })
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Piece<'d>, Broken>> {
        self.pieces.next(buffer).map_err(Broken::Http).transpose()
    }

    /// What is unsent stays so: who says goodbye no longer waits for an answer.
    fn close(&mut self) {
        if self.shutdown.say() {
            self.pieces.stop_sending();
        }
    }

    fn unsent_bytes(&self) -> usize {
        self.pieces.unsent().len()
    }

    fn tls_ns(&self) -> Option<u64> {
        self.stream.tls_ns()
    }
}
