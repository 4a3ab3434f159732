//! HTTP/1.1: one request at a time on a connection.
//!
//! The hot path of everything that asks. A request is encoded once and shared by all connections, an answer is decoded
//! in place out of the buffer: between them nothing is allocated, copied or carried, as long as an answer comes with one
//! read. One that comes in pieces is counted through, or gathered in a buffer of the connection where something looks
//! at its body; a quiet connection owns no buffer at all.
//! Strict where leniency would hide a server's fault: see `head` and `chunks`, pure and beside this file.
//! Not here: pipelining, redirects, content codings, upgrades.

pub mod chunks;
pub mod exchange;
pub mod fetch;
pub mod head;
pub mod pieces;
pub mod request;

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use socket2::Socket;
use tokio::io::AsyncWrite;

use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Closed, Driver, OpenError, Refused};
use crate::http::fault::Fault;
use crate::http::message::{Http, Media, Outgoing, Parts, Received};
use crate::read_buffer::ReadBuffer;
use crate::shutdown::Shutdown;
use crate::stream::{self, Stream};
use exchange::{End, Exchange};
use request::Request;

/// A request, encoded; cheap to clone.
#[derive(Clone, Debug)]
pub struct Prepared(Rc<Request>);

/// One open connection.
pub struct Http1 {
    stream: Stream,
    exchange: Exchange,
    shutdown: Shutdown,
}

impl Http for Http1 {
    type Prepared = Prepared;

    const REOPENS: bool = true;

    fn prepare(parts: &Parts<'_>) -> Prepared {
        Prepared(Rc::new(Request::new(parts)))
    }

    fn media(&self) -> Option<Media> {
        self.exchange.media()
    }

    fn is_idempotent(prepared: &Prepared) -> bool {
        prepared.0.is_idempotent
    }
}

impl Driver for Http1 {
    type Connecting = Socket;
    type Send<'a> = Outgoing<'a, Prepared>;
    type Received<'a> = Received<'a>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Socket, OpenError> {
        connect::begin(to.socket, from)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        let stream = Stream::open(begin_connect, to, |tls| &tls.config_http1).await?;
        Ok(Http1 { stream, exchange: Exchange::default(), shutdown: Shutdown::default() })
    }

    /// Refuses while a request is open, and behind an answer that closes the connection.
    fn send(&mut self, what: Outgoing<'_, Prepared>) -> Result<(), Refused> {
        if !self.shutdown.is_said() && self.exchange.ask(&what.prepared.0, what.tag) {
            Ok(())
        } else {
            Err(Refused(self.unsent_bytes()))
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(unsent) = self.exchange.unsent() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, unsent)) {
                Ok(count) => self.exchange.wrote(count),
                // It stopped listening in the middle of the request; perhaps it has answered why.
                Err(error) if self.exchange.has_written() && stops_listening(&error) => {
                    self.exchange.stop_sending();
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.shutdown.poll_send(|| Pin::new(&mut self.stream).poll_shutdown(cx)).map(Ok)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        let is_clean = match ready!(stream::poll_read(&mut self.stream, cx, self.exchange.lay(buffer))) {
            Ok(0) => true,
            // Many servers end the connection without TLS's own goodbye.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Poll::Ready(Err(Closed::Failed(error))),
            Ok(count) => {
                self.exchange.came(count, buffer);
                return Poll::Ready(Ok(count));
            }
        };
        Poll::Ready(match self.exchange.end(is_clean) {
            End::OfAnswer => Ok(0),
            End::OfConnection => Err(Closed::ByPeer(None)),
            End::CutOff => Err(Closed::Broken(Broken::Http(Fault::CutOff))),
        })
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        self.exchange.next(buffer).map_err(Broken::Http).transpose()
    }

    /// What is unsent stays so: who says goodbye no longer waits for an answer.
    fn close(&mut self) {
        if self.shutdown.say() {
            self.exchange.stop_sending();
        }
    }

    fn unsent_bytes(&self) -> usize {
        self.exchange.unsent().map_or(0, <[u8]>::len)
    }

    fn tls_ns(&self) -> Option<u64> {
        self.stream.tls_ns()
    }
}

fn stops_listening(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
