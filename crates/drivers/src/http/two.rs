//! HTTP/2: many concurrent requests on a connection, in clear text by prior knowledge or over TLS by ALPN.
//!
//! Answers come in any order and carry the tags of their requests. Not the hot path: the `h2` crate implements the
//! protocol, and allocates for each request. A stream that the server resets ends the connection for its bots, with the
//! protocol's error as the reason. A GOAWAY without an error is reported, and so is each request that it leaves
//! unprocessed.
//! Not here: pushes (refused in our settings), priorities, trailers (read and dropped).

pub mod fetch;
pub mod request;

mod channel;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod line;
mod pieces;
mod pipe;
mod talk;

use std::io;
use std::net::IpAddr;
use std::rc::Rc;

use socket2::Socket;

use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Driver, OpenError, Refused};
use crate::http::message::{Http, Media, Outgoing, Parts, Received};
use crate::read_buffer::ReadBuffer;
use crate::stream::Stream;
use line::Line;
use request::Request;
use talk::Talk;

/// A request, put together; cheap to clone.
#[derive(Clone, Debug)]
pub struct Prepared(Rc<Request>);

/// One open connection.
pub struct Http2 {
    line: Line<Talk>,
}

impl Http for Http2 {
    type Prepared = Prepared;

    const REOPENS: bool = true;

    fn prepare(parts: &Parts<'_>) -> Prepared {
        Prepared(Rc::new(Request::new(parts)))
    }

    fn media(&self) -> Option<Media> {
        self.line.talk.media()
    }

    fn is_idempotent(prepared: &Prepared) -> bool {
        prepared.0.is_idempotent
    }
}

impl Driver for Http2 {
    type Connecting = Socket;
    type Send<'a> = Outgoing<'a, Prepared>;
    type Received<'a> = Received<'a>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Socket, OpenError> {
        connect::begin(to.socket, from)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        let stream = Stream::open(begin_connect, to, |tls| &tls.config_http2).await?;
        let talk = Talk::begin().await.map_err(io::Error::other)?;
        Ok(Http2 { line: Line::open(stream, to, talk).await? })
    }

    /// Refuses when as many requests are open as the server allows, and after a GOAWAY.
    fn send(&mut self, what: Outgoing<'_, Prepared>) -> Result<(), Refused> {
        if self.line.has_room() && self.line.talk.ask(&what.prepared.0, what.tag) {
            Ok(())
        } else {
            Err(Refused(self.line.unsent_bytes()))
        }
    }

    forward!(line);

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        self.line.talk.next(buffer).map_err(Broken::Http).transpose()
    }
}
