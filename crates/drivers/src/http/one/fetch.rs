//! HTTP/1.1 with responses passed on as they arrive: the socket. A connection's state between reads is in `pieces`.

use std::net::IpAddr;

use socket2::Socket;

use super::connection::Connection;
use super::pieces::Pieces;
use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Driver, OpenError, Refused};
use crate::http::fetch::Origin;
use crate::http::fetch::{Fetch, Piece};
use crate::read_buffer::ReadBuffer;
use crate::stream::Stream;

/// One open connection.
pub struct Fetch1 {
    connection: Connection<Pieces>,
    origin: Origin,
}

impl Fetch1 {
    /// Over an established stream.
    pub(crate) fn over(stream: Stream, to: &Address) -> Self {
        Fetch1 { connection: Connection::new(stream), origin: Origin::of(to) }
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

    /// Refuses while a request is open, and after an answer that closes the connection.
    fn send(&mut self, what: Fetch<'_>) -> Result<(), Refused> {
        if !self.connection.is_closed() && self.connection.state.ask(&what.parts(&self.origin), what.tag) {
            Ok(())
        } else {
            Err(Refused(self.unsent_bytes()))
        }
    }

    forward!(connection);

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Piece<'d>, Broken>> {
        self.connection.state.next(buffer).map_err(Broken::Http).transpose()
    }
}
