//! HTTP/1.1: one request at a time on a connection.
//!
//! The hot path of every request workload. A request is encoded once and shared by all connections, an answer is
//! decoded in place in the buffer: nothing is allocated or copied in between, as long as an answer arrives with one
//! read. The body of one that arrives in pieces is only counted, or gathered in a buffer of the connection if something
//! reads it; an idle connection owns no buffer at all.
//! Strict where leniency would hide a server's fault: see `head` and `chunks`, pure and beside this file.
//! Not here: pipelining, redirects, content codings, upgrades.

pub mod chunks;
pub mod connection;
pub mod exchange;
pub mod fetch;
pub mod head;
pub mod pieces;
pub mod request;

use std::net::IpAddr;
use std::rc::Rc;

use socket2::Socket;

use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Driver, OpenError, Refused};
use crate::http::message::{Http, Media, Outgoing, Parts, Received};
use crate::read_buffer::ReadBuffer;
use crate::stream::Stream;
use connection::Connection;
use exchange::Exchange;
use request::Request;

/// A request, encoded; cheap to clone.
#[derive(Clone, Debug)]
pub struct Prepared(Rc<Request>);

/// One open connection.
pub struct Http1 {
    connection: Connection<Exchange>,
}

impl Http for Http1 {
    type Prepared = Prepared;

    const REOPENS: bool = true;

    fn prepare(parts: &Parts<'_>) -> Prepared {
        Prepared(Rc::new(Request::new(parts)))
    }

    fn media(&self) -> Option<Media> {
        self.connection.state.media()
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
        Ok(Http1 { connection: Connection::new(stream) })
    }

    /// Refuses while a request is open, and after an answer that closes the connection.
    fn send(&mut self, what: Outgoing<'_, Prepared>) -> Result<(), Refused> {
        if !self.connection.is_closed() && self.connection.state.ask(&what.prepared.0, what.tag) {
            Ok(())
        } else {
            Err(Refused(self.unsent_bytes()))
        }
    }

    forward!(connection);

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        self.connection.state.next(buffer).map_err(Broken::Http).transpose()
    }
}
