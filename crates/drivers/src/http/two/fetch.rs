//! HTTP/2 with responses passed on as they arrive: the socket. A connection's state between reads is in `pieces`.

use std::io;
use std::net::IpAddr;

use socket2::Socket;

use super::line::{Line, Turns as _};
use super::pieces::Pieces;
use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Driver, OpenError, Refused};
use crate::http::fetch::Origin;
use crate::http::fetch::{Fetch, Piece};
use crate::read_buffer::ReadBuffer;
use crate::stream::Stream;

/// A server that allows more requests at once does not get more, as browsers have it.
const REQUESTS_MAX: usize = 256;

/// One open connection.
pub struct Fetch2 {
    line: Line<Pieces>,
    origin: Origin,
}

impl Fetch2 {
    /// Over an established stream.
    pub(crate) async fn over(stream: Stream, to: &Address) -> Result<Self, OpenError> {
        let pieces = Pieces::begin().await.map_err(io::Error::other)?;
        Ok(Fetch2 { line: Line::open(stream, to, pieces).await?, origin: Origin::of(to) })
    }

    /// Gives up an open request, which gets no more events. False: it is not open.
    pub fn cancel(&mut self, tag: u32) -> bool {
        self.line.talk.cancel(tag)
    }
}

impl Driver for Fetch2 {
    type Connecting = Socket;
    type Send<'a> = Fetch<'a>;
    type Received<'a> = Piece<'a>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Socket, OpenError> {
        connect::begin(to.socket, from)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        let stream = Stream::open(begin_connect, to, |tls| &tls.config_http2).await?;
        Fetch2::over(stream, to).await
    }

    /// Refuses when as many requests are open as the server allows, and after a GOAWAY.
    fn send(&mut self, what: Fetch<'_>) -> Result<(), Refused> {
        if self.line.has_room() && self.line.talk.ask(&what.parts(&self.origin), what.tag) {
            Ok(())
        } else {
            Err(Refused(self.line.unsent_bytes()))
        }
    }

    forward!(line);

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Piece<'d>, Broken>> {
        self.line.talk.next(buffer).map_err(Broken::Http).transpose()
    }

    /// None while much waits for the kernel, and after a GOAWAY.
    fn requests_at_once(&self) -> Option<usize> {
        let is_free = self.line.has_room() && !self.line.talk.closes();
        Some(if is_free { self.line.talk.channel().requests_max().min(REQUESTS_MAX) } else { 0 })
    }
}
