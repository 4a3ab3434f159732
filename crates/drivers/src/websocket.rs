//! WebSocket, client side, `ws` and `wss`.
//!
//! The socket is here; a connection's state between reads is in `codec`, pure and beside this file.
//! Connecting also sends the upgrade request, so a server that accepts in order sees us in order. Where it redirects, opening
//! goes on at the next server (`redirect`).

pub mod codec;
pub mod frame;
pub mod handshake;
pub mod redirect;

use std::borrow::Cow;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::Socket;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Closed, Driver, OpenError, Refused};
use crate::read_buffer::ReadBuffer;
use crate::stream::{self, Stream};
use codec::Codec;
pub use codec::{MESSAGE_BYTES_MAX, Message, Received};

/// One open WebSocket.
pub struct WebSocket {
    stream: Stream,
    codec: Codec,
    redirects: u8,
}

/// A connection on its way.
pub struct Connecting {
    socket: Socket,
    key: String,
    request: Vec<u8>,
    sent_bytes: usize,
    from: Option<IpAddr>,
}

/// What a server does with a handshake.
enum Answered {
    /// what follows the answer's header already belongs to the frames; with it comes which subprotocol was chosen
    Accepted(Vec<u8>, Option<usize>),
    Redirected(redirect::Redirect),
}

impl Driver for WebSocket {
    type Connecting = Connecting;
    type Send<'a> = Message<'a>;
    type Received<'a> = Received<'a>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Connecting, OpenError> {
        let socket = connect::begin(to.socket, from)?;
        let key = handshake::random_key();
        let request = handshake::request(&to.host, &to.path, &key, &to.upgrade);
        let is_later = to.tls.is_some() || to.network.is_some_and(|path| !path.keeps_arrivals);
        let sent_bytes = if is_later { 0 } else { connect::send_now(&socket, &request)? };
        Ok(Connecting { socket, key, request, sent_bytes, from })
    }

    async fn open(begin_connect: Connecting, to: &Address) -> Result<Self, OpenError> {
        WebSocket::open_taking(begin_connect, to, MESSAGE_BYTES_MAX).await.map(|(socket, _)| socket)
    }

    fn send(&mut self, what: Message<'_>) -> Result<(), Refused> {
        self.codec.send(what)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(stream::poll_write_all(&mut self.stream, cx, &mut self.codec.unsent))?;
        self.codec.flushed();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        if let Some(end) = self.codec.ended() {
            return Poll::Ready(Err(end));
        }
        if let Some(count) = self.codec.lay_news(buffer) {
            return Poll::Ready(Ok(count));
        }
        match ready!(stream::poll_read(&mut self.stream, cx, self.codec.lay(buffer))) {
            Err(error) => Poll::Ready(Err(Closed::Failed(error))),
            Ok(0) => Poll::Ready(Err(Closed::ByPeer(None))),
            Ok(count) => {
                self.codec.came(count, buffer);
                Poll::Ready(Ok(count))
            }
        }
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        self.codec.next(buffer)
    }

    fn close(&mut self) {
        self.codec.close();
    }

    fn unsent_bytes(&self) -> usize {
        self.codec.unsent.len()
    }

    fn tls_ns(&self) -> Option<u64> {
        self.stream.tls_ns()
    }

    fn redirects(&self) -> u8 {
        self.redirects
    }
}

impl WebSocket {
    /// Closes with a code (`None`: without one) and a reason; once. Messages are received until the server has
    /// answered.
    pub(crate) fn say_goodbye(&mut self, code: Option<u16>, reason: &str) {
        self.codec.say_goodbye(code, reason);
    }

    /// The same for an owner who takes messages of up to `message_bytes_max`, with the index of the subprotocol that the server
    /// chose.
    pub(crate) async fn open_taking(
        begin_connect: Connecting,
        to: &Address,
        message_bytes_max: usize,
    ) -> Result<(Self, Option<usize>), OpenError> {
        let (mut begun, mut here, mut redirects) = (begin_connect, Cow::Borrowed(to), 0);
        loop {
            let from = begun.from;
            let (stream, answered) = ask(begun, &here).await?;
            match answered {
                Answered::Accepted(carried, subprotocol) => {
                    let codec = Codec::new(carried).taking(message_bytes_max);
                    return Ok((WebSocket { stream, codec, redirects }, subprotocol));
                }
                Answered::Redirected(redirect) if redirects == redirect::REDIRECTS_MAX => {
                    return Err(redirect.refused(&format!(
                        " after {redirects} redirects, which are the most that are followed"
                    )));
                }
                Answered::Redirected(redirect) => {
                    here = Cow::Owned(redirect::follow(&here, &redirect)?);
                    redirects += 1;
                    // A source on loopback reaches only loopback.
                    let is_loopback = here.socket.ip().is_loopback();
                    let from = from.filter(|source| {
                        source.is_loopback() == is_loopback && source.is_ipv4() == here.socket.is_ipv4()
                    });
                    begun = WebSocket::begin_connect(&here, from)?;
                }
            }
        }
    }
}

/// Sends the rest of a request and waits for the answer.
async fn ask(begun: Connecting, to: &Address) -> Result<(Stream, Answered), OpenError> {
    // The socket that took the request's first bytes is connected.
    let tcp = match begun.sent_bytes {
        0 => stream::standing(begun.socket).await?,
        _ => TcpStream::from_std(begun.socket.into())?,
    };
    let has_asked = begun.sent_bytes > 0;
    let mut stream = Stream::over(tcp, to, has_asked, |tls| &tls.config).await?;
    stream.write_all(&begun.request[begun.sent_bytes..]).await?;
    stream.flush().await?;
    let mut answer = Vec::with_capacity(256);
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(OpenError::ClosedEarly);
        }
        match handshake::read_answer(&answer, &begun.key, &to.upgrade.subprotocols) {
            Ok(Some(accepted)) => {
                let carried = answer.split_off(accepted.header_bytes);
                return Ok((stream, Answered::Accepted(carried, accepted.subprotocol)));
            }
            Ok(None) => {}
            Err(refusal) => {
                if let Some(redirect) = redirect::read(&answer) {
                    return Ok((stream, Answered::Redirected(redirect)));
                }
                read_what_is_there(&mut stream, &mut answer).await;
                let read_again = handshake::read_answer(&answer, &begun.key, &to.upgrade.subprotocols);
                return Err(read_again.err().unwrap_or(refusal));
            }
        }
    }
}

/// The body of a refusal may follow in a separate packet. It is not waited for: it may never come.
async fn read_what_is_there(stream: &mut Stream, answer: &mut Vec<u8>) {
    const EXCERPT_BYTES: usize = 1024;
    let mut room = [0; EXCERPT_BYTES];
    let read = poll_fn(|cx| match stream::poll_read(stream, cx, &mut room) {
        Poll::Ready(Ok(count)) => Poll::Ready(count),
        Poll::Ready(Err(_)) | Poll::Pending => Poll::Ready(0),
    });
    let count = read.await;
    answer.extend_from_slice(&room[..count]);
}

#[cfg(test)]
mod tests;
