//! HTTP/2: many requests at once on a connection, in clear by prior knowledge or behind TLS by ALPN.
//!
//! Answers come in any order and carry the tags of their requests. Not the hot path: the `h2` crate does the protocol,
//! and allocates for each request. A stream that the server resets ends the connection for its bots, with what the
//! protocol says of it as last words. A goodbye without an error is told, and so is each request that it puts off.
//! Not here: pushes (refused in our settings), priorities, trailers (read and dropped).

pub mod request;

#[cfg(feature = "fuzz")]
pub mod fuzz;
mod pipe;
mod talk;

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use socket2::Socket;
use tokio::io::AsyncWrite;

use super::{Fault, Http, Media, Outgoing, Parts, Received};
use crate::address::Address;
use crate::connect;
use crate::driver::{ANSWER_BYTES_MAX, Broken, Closed, Driver, OpenError, Refused};
use crate::read_buffer::ReadBuffer;
use crate::shutdown::Shutdown;
use crate::stream::{self, Stream};
use request::Request;
use talk::{End, Talk};

const PROTOCOL: &str = "HTTP/2";
/// Beyond this much unsent the connection takes no more.
const UNSENT_BYTES_MAX: usize = 128 * 1024;
/// So much of what another protocol says is shown.
const FIRST_BYTES: usize = 60;

/// A request, put together; cheap to clone.
#[derive(Clone, Debug)]
pub struct Prepared(Rc<Request>);

/// One open connection.
pub struct Http2 {
    stream: Stream,
    talk: Box<Talk>,
    shutdown: Shutdown,
}

impl Http for Http2 {
    type Prepared = Prepared;

    const REOPENS: bool = true;

    fn prepare(parts: &Parts<'_>) -> Prepared {
        Prepared(Rc::new(Request::new(parts)))
    }

    fn media(&self) -> Option<Media> {
        self.talk.media()
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
        if to.tls.is_some() && stream.protocol() != Some(b"h2") {
            let why = "it does not offer h2 in the TLS handshake (ALPN)".to_owned();
            return Err(OpenError::WrongProtocol { protocol: PROTOCOL, why });
        }
        let talk = Talk::begin().await.map_err(io::Error::other)?;
        let mut opening = Http2 { stream, talk: Box::new(talk), shutdown: Shutdown::default() };
        opening.await_settings().await?;
        Ok(opening)
    }

    /// Refuses when as many requests are open as the server allows, and once it has said goodbye.
    fn send(&mut self, what: Outgoing<'_, Prepared>) -> Result<(), Refused> {
        let unsent_bytes = self.unsent_bytes();
        if unsent_bytes <= UNSENT_BYTES_MAX && self.talk.ask(&what.prepared.0, what.tag) {
            Ok(())
        } else {
            Err(Refused(unsent_bytes))
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut pipe = self.talk.pipe().borrow_mut();
            if pipe.unsent().is_empty() {
                break;
            }
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, pipe.unsent()))?;
            pipe.wrote(count);
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.shutdown.poll_send(|| Pin::new(&mut self.stream).poll_shutdown(cx)).map(Ok)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        if let Some(end) = self.talk.end() {
            return Poll::Ready(self.end(end));
        }
        // Before a read, since what one read asks for has a bound and was offered to the kernel since.
        if self.talk.pipe().borrow().answer_bytes() > ANSWER_BYTES_MAX {
            return Poll::Ready(Err(Closed::Broken(Broken::UnreadAnswers)));
        }
        let count = match ready!(stream::poll_read(&mut self.stream, cx, buffer.lay(&[]))) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Poll::Ready(Err(Closed::Failed(error)));
            }
            Ok(count) if count > 0 => {
                buffer.filled(count);
                self.talk.pipe().borrow_mut().came(buffer.take(count));
                count
            }
            Ok(_) | Err(_) => {
                self.talk.pipe().borrow_mut().end();
                0
            }
        };
        self.talk.turn();
        if self.talk.pipe().borrow().has_too_many_answers() {
            return Poll::Ready(Err(Closed::Broken(Broken::UnreadAnswers)));
        }
        match self.talk.end() {
            Some(end) if count == 0 => Poll::Ready(self.end(end)),
            _ => Poll::Ready(Ok(count)),
        }
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        self.talk.next(buffer).map_err(Broken::Http).transpose()
    }

    fn close(&mut self) {
        if self.shutdown.say() {
            self.talk.close();
        }
    }

    fn unsent_bytes(&self) -> usize {
        self.talk.pipe().borrow().unsent().len()
    }

    fn tls_ns(&self) -> Option<u64> {
        self.stream.tls_ns()
    }
}

impl Http2 {
    /// What came before the end is heard first.
    fn end(&self, end: End) -> Result<usize, Closed> {
        match end {
            _ if self.talk.has_news() => Ok(0),
            End::OfConnection => Err(Closed::ByPeer(None)),
            End::CutOff => Err(Closed::Broken(Broken::Http(Fault::CutOff))),
        }
    }

    /// Exchanges settings. A server that speaks something else says so with its first bytes.
    async fn await_settings(&mut self) -> Result<(), OpenError> {
        let (mut room, mut first) = ([0; 1024], Vec::new());
        loop {
            poll_fn(|cx| self.poll_flush(cx)).await?;
            if self.talk.requests_max() > 0 {
                return Ok(());
            }
            let count = poll_fn(|cx| stream::poll_read(&mut self.stream, cx, &mut room)).await?;
            if count == 0 {
                return Err(OpenError::ClosedEarly);
            }
            let missing = FIRST_BYTES.saturating_sub(first.len()).min(count);
            first.extend_from_slice(&room[..missing]);
            self.talk.pipe().borrow_mut().came(&room[..count]);
            self.talk.turn();
            if self.talk.end().is_some() {
                return Err(wrong_protocol(&first));
            }
        }
    }
}

/// It ended what we began, and these were its first bytes.
fn wrong_protocol(first: &[u8]) -> OpenError {
    let line = first.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let why = if line.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') && !line.is_empty() {
        format!("it answers \"{}\"", String::from_utf8_lossy(line))
    } else {
        "it ends the connection over our settings".to_owned()
    };
    OpenError::WrongProtocol { protocol: PROTOCOL, why }
}
