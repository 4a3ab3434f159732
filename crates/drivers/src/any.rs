//! A connection of any kind that a script can open: WebSocket, TCP with frames, UDP, HTTP for `fetch`.
//!
//! The address names the protocol (`Protocol`), so one kind of bot can hold connections of all kinds. The built-in
//! workloads keep their drivers as types: this one dispatches on every call, a cost that does not belong on their hot
//! path.
//! A WebSocket, of which there may be many thousands, is stored inline; everything else is boxed.
//! Calls that belong to another protocol are refused: a text on an HTTP connection, a request on any other.

use std::io;
use std::net::IpAddr;
use std::task::{Context, Poll};

use socket2::Socket;

use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Closed, Driver, OpenError, Refused};
use crate::http::fetch::{Fetch, Piece};
use crate::http::one::Fetch1;
use crate::http::two::Fetch2;
pub use crate::protocol::{HttpVersion, Protocol};
use crate::read_buffer::ReadBuffer;
use crate::stream::Stream;
use crate::tcp::framed::Framed;
use crate::tcp::frames::Frames;
use crate::udp::Udp;
use crate::websocket::{self, Message, WebSocket};

/// What can be sent.
#[derive(Clone, Copy, Debug)]
pub enum Send<'a> {
    /// text, which the caller vouches is UTF-8; over TCP and UDP its bytes
    Text(&'a [u8]),
    /// bytes
    Binary(&'a [u8]),
    /// a request, over HTTP
    Request(Fetch<'a>),
    /// gives up the open request of this tag, over HTTP/2: it gets no more events. Over HTTP/1.1 it is refused, since
    /// only closing the connection gives up a request
    Cancel(u32),
    /// closes a WebSocket, which stays open until the server has answered; nothing is sent after it
    Close {
        /// one that a client may send; `None`: the close frame is empty
        code: Option<u16>,
        /// at most 123 bytes, and none without a code
        reason: &'a str,
    },
}

/// What can be received.
#[derive(Debug)]
pub enum Received<'d> {
    /// checked UTF-8: a text message, or a line without its end
    Text(&'d [u8]),
    /// a binary message, a frame, a datagram, what came of a raw stream, or a line that is not UTF-8
    Binary(&'d [u8]),
    /// of an answer, over HTTP
    Http(Piece<'d>),
}

/// One open connection.
pub struct Any(Kind);

enum Kind {
    /// with the subprotocol that the server chose
    WebSocket(WebSocket, Box<str>),
    Tcp(Box<Framed>),
    Udp(Box<Udp>),
    Http1(Box<Fetch1>),
    Http2(Box<Fetch2>),
}

/// A connection on its way.
pub struct Connecting(Begun);

enum Begun {
    WebSocket(Box<websocket::Connecting>),
    Socket(Socket),
}

impl Driver for Any {
    type Connecting = Connecting;
    type Send<'a> = Send<'a>;
    type Received<'a> = Received<'a>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Connecting, OpenError> {
        Ok(Connecting(match to.speaks {
            Protocol::WebSocket => Begun::WebSocket(Box::new(WebSocket::begin_connect(to, from)?)),
            Protocol::Udp => Begun::Socket(Udp::begin_connect(to, from)?),
            Protocol::Tcp(_) | Protocol::Http(_) => Begun::Socket(connect::begin(to.socket, from)?),
        }))
    }

    async fn open(begin_connect: Connecting, to: &Address) -> Result<Self, OpenError> {
        let socket = match begin_connect.0 {
            Begun::WebSocket(begun) => {
                let (socket, chosen) = WebSocket::open_taking(*begun, to, to.reply_bytes_max).await?;
                let chosen = chosen.and_then(|index| to.upgrade.subprotocols.get(index));
                return Ok(Any(Kind::WebSocket(socket, chosen.map_or("", String::as_str).into())));
            }
            Begun::Socket(socket) => socket,
        };
        Ok(Any(match to.speaks {
            Protocol::Udp => Kind::Udp(Box::new(Udp::open(socket, to).await?)),
            Protocol::Http(HttpVersion::One) => Kind::Http1(Box::new(Fetch1::open(socket, to).await?)),
            Protocol::Http(HttpVersion::Two) => Kind::Http2(Box::new(Fetch2::open(socket, to).await?)),
            Protocol::Http(HttpVersion::Any) => {
                let stream = Stream::open(socket, to, |tls| &tls.config_http).await?;
                if stream.protocol() == Some(b"h2") {
                    Kind::Http2(Box::new(Fetch2::over(stream, to).await?))
                } else {
                    Kind::Http1(Box::new(Fetch1::over(stream, to)))
                }
            }
            // A connection started as WebSocket has been opened above.
            Protocol::Tcp(_) | Protocol::WebSocket => Kind::Tcp(Box::new(Framed::open(socket, to).await?)),
        }))
    }

    #[inline]
    fn send(&mut self, what: Send<'_>) -> Result<(), Refused> {
        match (&mut self.0, what) {
            (Kind::WebSocket(socket, _), Send::Text(text)) => socket.send(Message::Text(text)),
            (Kind::WebSocket(socket, _), Send::Binary(bytes)) => socket.send(Message::Binary(bytes)),
            (Kind::WebSocket(socket, _), Send::Close { code, reason }) => {
                socket.say_goodbye(code, reason);
                Ok(())
            }
            (kind, what) => kind.send(what),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::WebSocket(socket, _) => socket.poll_flush(cx),
            Kind::Tcp(socket) => socket.poll_flush(cx),
            Kind::Udp(socket) => socket.poll_flush(cx),
            Kind::Http1(socket) => socket.poll_flush(cx),
            Kind::Http2(socket) => socket.poll_flush(cx),
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        match &mut self.0 {
            Kind::WebSocket(socket, _) => socket.poll_read(cx, buffer),
            Kind::Tcp(socket) => socket.poll_read(cx, buffer),
            Kind::Udp(socket) => socket.poll_read(cx, buffer),
            Kind::Http1(socket) => socket.poll_read(cx, buffer),
            Kind::Http2(socket) => socket.poll_read(cx, buffer),
        }
    }

    #[inline]
    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        let Kind::WebSocket(socket, _) = &mut self.0 else { return self.0.next(buffer) };
        Some(socket.next(buffer)?.map(|message| match message {
            websocket::Received::Text(text) => Received::Text(text),
            websocket::Received::Binary(bytes) => Received::Binary(bytes),
        }))
    }

    fn close(&mut self) {
        match &mut self.0 {
            Kind::WebSocket(socket, _) => socket.close(),
            Kind::Tcp(socket) => socket.close(),
            Kind::Udp(socket) => socket.close(),
            Kind::Http1(socket) => socket.close(),
            Kind::Http2(socket) => socket.close(),
        }
    }

    fn unsent_bytes(&self) -> usize {
        match &self.0 {
            Kind::WebSocket(socket, _) => socket.unsent_bytes(),
            Kind::Tcp(socket) => socket.unsent_bytes(),
            Kind::Udp(socket) => socket.unsent_bytes(),
            Kind::Http1(socket) => socket.unsent_bytes(),
            Kind::Http2(socket) => socket.unsent_bytes(),
        }
    }

    fn tls_ns(&self) -> Option<u64> {
        match &self.0 {
            Kind::WebSocket(socket, _) => socket.tls_ns(),
            Kind::Tcp(socket) => socket.tls_ns(),
            Kind::Udp(_) => None,
            Kind::Http1(socket) => socket.tls_ns(),
            Kind::Http2(socket) => socket.tls_ns(),
        }
    }

    fn redirects(&self) -> u8 {
        if let Kind::WebSocket(socket, _) = &self.0 { socket.redirects() } else { 0 }
    }

    fn requests_at_once(&self) -> Option<usize> {
        match &self.0 {
            Kind::Http2(socket) => socket.requests_at_once(),
            _ => None,
        }
    }

    fn subprotocol(&self) -> &str {
        match &self.0 {
            Kind::WebSocket(_, chosen) => chosen,
            _ => "",
        }
    }
}

/// What is no WebSocket, kept out of the way of what is.
impl Kind {
    #[inline(never)]
    fn send(&mut self, what: Send<'_>) -> Result<(), Refused> {
        match (self, what) {
            (Kind::Tcp(socket), Send::Text(bytes) | Send::Binary(bytes)) => socket.send(bytes),
            (Kind::Udp(socket), Send::Text(bytes) | Send::Binary(bytes)) => socket.send(bytes),
            (Kind::Http1(socket), Send::Request(fetch)) => socket.send(fetch),
            (Kind::Http2(socket), Send::Request(fetch)) => socket.send(fetch),
            (Kind::Http2(socket), Send::Cancel(tag)) => {
                if socket.talk.cancel(tag) {
                    Ok(())
                } else {
                    Err(Refused(0))
                }
            }
            _ => Err(Refused(0)),
        }
    }

    #[inline(never)]
    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        Some(match self {
            Kind::WebSocket(..) => return None,
            Kind::Tcp(socket) => {
                let may_be_text = matches!(socket.frames(), Frames::Lines | Frames::Until(_));
                socket.next(buffer)?.map(|bytes| match bytes {
                    line if may_be_text && std::str::from_utf8(line).is_ok() => Received::Text(line),
                    bytes => Received::Binary(bytes),
                })
            }
            Kind::Udp(socket) => socket.next(buffer)?.map(Received::Binary),
            Kind::Http1(socket) => socket.next(buffer)?.map(Received::Http),
            Kind::Http2(socket) => socket.next(buffer)?.map(Received::Http),
        })
    }
}

#[cfg(test)]
mod tests;
