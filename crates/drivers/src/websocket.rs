//! WebSocket, client side, `ws` and `wss`.
//!
//! Our own codec on the workers' hot path: frames are decoded in place out of the shared read buffer and a read may carry
//! many of them. Text is checked for UTF-8, pings are answered, pieces are joined, a message has at most 64 KiB.
//! Knocking connects *and* sends the upgrade request, so a server that accepts in order sees us in order.

pub mod frame;
pub mod handshake;

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::Socket;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::address::Address;
use crate::connect;
use crate::driver::{ANSWER_BYTES_MAX, Broken, Closed, Driver, OpenError, Refused};
use crate::read_buffer::ReadBuffer;
use crate::stream::{self, Stream};
use frame::{Front, Opcode};

/// No message may be larger, in either direction.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Beyond this much unsent the connection takes no more.
const UNSENT_BYTES_MAX: usize = 128 * 1024;
const GOING_AWAY_NORMALLY: u16 = 1000;
/// What stands for a close frame without a code. Source: RFC 6455, section 7.1.5.
const NO_CODE: u16 = 1005;

/// One open WebSocket.
pub struct WebSocket {
    stream: Stream,
    /// encoded, not yet taken by the kernel
    unsent: Vec<u8>,
    /// bytes of pongs since nothing was unsent
    pong_bytes: usize,
    /// the incomplete frame that the last read ended with
    carried: Vec<u8>,
    /// what is carried came with the handshake's answer and has not been looked at
    has_news: bool,
    /// the message whose last piece has not come yet
    pieces: Option<Box<Pieces>>,
    /// the peer sent a close frame with this code
    shutdown: Option<u16>,
    we_closed: bool,
}

struct Pieces {
    opcode: Opcode,
    bytes: Vec<u8>,
}

/// A connection on its way.
pub struct Connecting {
    socket: Socket,
    key: String,
    request: Vec<u8>,
    sent_bytes: usize,
}

/// What can be sent.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// a text message; the caller vouches that it is UTF-8
    Text(&'a [u8]),
    /// a binary message
    Binary(&'a [u8]),
}

/// What can be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// checked UTF-8
    Text(&'a [u8]),
    /// bytes
    Binary(&'a [u8]),
}

impl Driver for WebSocket {
    type Connecting = Connecting;
    type Send<'a> = Message<'a>;
    type Received<'a> = Received<'a>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Connecting, OpenError> {
        let socket = connect::begin(to.socket, from)?;
        let key = handshake::random_key();
        let request = handshake::request(&to.host, &to.path, &key);
        let sent_bytes = if to.tls.is_some() { 0 } else { connect::send_now(&socket, &request)? };
        Ok(Connecting { socket, key, request, sent_bytes })
    }

    async fn open(begin_connect: Connecting, to: &Address) -> Result<Self, OpenError> {
        // What took the request's first bytes stands.
        let tcp = match begin_connect.sent_bytes {
            0 => stream::standing(begin_connect.socket).await?,
            _ => TcpStream::from_std(begin_connect.socket.into())?,
        };
        let mut stream = Stream::over(tcp, to, |tls| &tls.config).await?;
        stream.write_all(&begin_connect.request[begin_connect.sent_bytes..]).await?;
        stream.flush().await?;
        let carried = await_answer(&mut stream, &begin_connect.key).await?;
        Ok(WebSocket::new(stream, carried))
    }

    fn send(&mut self, what: Message<'_>) -> Result<(), Refused> {
        if self.unsent.len() > UNSENT_BYTES_MAX {
            return Err(Refused(UNSENT_BYTES_MAX));
        }
        let (opcode, payload) = match what {
            Message::Text(text) => (Opcode::Text, text),
            Message::Binary(bytes) => (Opcode::Binary, bytes),
        };
        frame::write_frame(&mut self.unsent, opcode, payload, random_mask());
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(stream::poll_write_all(&mut self.stream, cx, &mut self.unsent))?;
        self.pong_bytes = 0;
        if self.unsent.capacity() > UNSENT_BYTES_MAX {
            self.unsent = Vec::new();
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        if let Some(code) = self.shutdown {
            return Poll::Ready(Err(Closed::ByPeer(Some(code))));
        }
        // Here and not at each ping: what one read asks for has a bound, and is flushed before the next one.
        if self.pong_bytes > ANSWER_BYTES_MAX {
            return Poll::Ready(Err(Closed::Broken(Broken::UnreadAnswers)));
        }
        if std::mem::take(&mut self.has_news) {
            let count = self.carried.len();
            buffer.lay(&self.carried);
            self.carried.clear();
            return Poll::Ready(Ok(count));
        }
        match ready!(stream::poll_read(&mut self.stream, cx, buffer.lay(&self.carried))) {
            Err(error) => Poll::Ready(Err(Closed::Failed(error))),
            Ok(0) => Poll::Ready(Err(Closed::ByPeer(None))),
            Ok(count) => {
                self.carried.clear();
                buffer.filled(count);
                Poll::Ready(Ok(count))
            }
        }
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        loop {
            if self.shutdown.is_some() {
                return None;
            }
            let header = match frame::read_header(buffer.rest()) {
                Front::Header(header) => header,
                Front::Incomplete => return self.carry(buffer),
                Front::Broken(why) => return Some(Err(Broken::Protocol(why))),
            };
            let so_far = self.pieces.as_ref().map_or(0, |pieces| pieces.bytes.len());
            // A length is the server's word, up to 2⁶⁴ − 1: it is compared with the room left and never added to.
            if header.payload_bytes > MESSAGE_BYTES_MAX.saturating_sub(so_far) {
                return Some(Err(Broken::TooLarge(MESSAGE_BYTES_MAX)));
            }
            if buffer.rest().len() < header.header_bytes + header.payload_bytes {
                return self.carry(buffer);
            }
            buffer.take(header.header_bytes);
            match (header.opcode, header.is_final) {
                (Opcode::Ping, _) => {
                    let payload = buffer.take(header.payload_bytes);
                    let before = self.unsent.len();
                    frame::write_frame(&mut self.unsent, Opcode::Pong, payload, random_mask());
                    self.pong_bytes += self.unsent.len() - before;
                }
                (Opcode::Pong, _) => drop(buffer.take(header.payload_bytes)),
                (Opcode::Close, _) => {
                    let payload = buffer.take(header.payload_bytes);
                    let code = match *payload {
                        [] => NO_CODE,
                        [high, low, ..] => u16::from_be_bytes([high, low]),
                        [_] => return Some(Err(Broken::Protocol("a close frame with half a code"))),
                    };
                    self.shutdown = Some(code);
                    self.close();
                    return None;
                }
                (Opcode::Text | Opcode::Binary, _) if self.pieces.is_some() => {
                    return Some(Err(Broken::Protocol("a new message inside another")));
                }
                (Opcode::Text, true) => {
                    if std::str::from_utf8(&buffer.rest()[..header.payload_bytes]).is_err() {
                        return Some(Err(Broken::NotUtf8));
                    }
                    return Some(Ok(Received::Text(buffer.take(header.payload_bytes))));
                }
                (Opcode::Binary, true) => {
                    return Some(Ok(Received::Binary(buffer.take(header.payload_bytes))));
                }
                (opcode @ (Opcode::Text | Opcode::Binary), false) => {
                    let bytes = buffer.take(header.payload_bytes).to_vec();
                    self.pieces = Some(Box::new(Pieces { opcode, bytes }));
                }
                (Opcode::Continuation, is_final) => {
                    let Some(pieces) = self.pieces.as_mut() else {
                        return Some(Err(Broken::Protocol("a further piece of no message")));
                    };
                    pieces.bytes.extend_from_slice(buffer.take(header.payload_bytes));
                    if !is_final {
                        continue;
                    }
                    let Some(whole) = self.pieces.take() else { continue };
                    buffer.joined = whole.bytes;
                    if whole.opcode == Opcode::Binary {
                        return Some(Ok(Received::Binary(&buffer.joined)));
                    }
                    if std::str::from_utf8(&buffer.joined).is_err() {
                        return Some(Err(Broken::NotUtf8));
                    }
                    return Some(Ok(Received::Text(&buffer.joined)));
                }
            }
        }
    }

    fn close(&mut self) {
        if !self.we_closed {
            self.we_closed = true;
            let code = GOING_AWAY_NORMALLY.to_be_bytes();
            frame::write_frame(&mut self.unsent, Opcode::Close, &code, random_mask());
        }
    }

    fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }
}

impl WebSocket {
    fn new(stream: Stream, carried: Vec<u8>) -> Self {
        let has_news = !carried.is_empty();
        WebSocket {
            stream,
            unsent: Vec::new(),
            pong_bytes: 0,
            carried,
            has_news,
            pieces: None,
            shutdown: None,
            we_closed: false,
        }
    }

    fn carry<T>(&mut self, buffer: &mut ReadBuffer) -> Option<T> {
        if self.carried.capacity() > 4096 {
            self.carried = Vec::new();
        }
        let rest_bytes = buffer.rest().len();
        self.carried.clear();
        self.carried.extend_from_slice(buffer.take(rest_bytes));
        None
    }
}

/// What follows the answer's header already belongs to the frames.
async fn await_answer(stream: &mut Stream, key: &str) -> Result<Vec<u8>, OpenError> {
    let mut answer = Vec::with_capacity(256);
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(OpenError::ClosedEarly);
        }
        if let Some(header_bytes) = handshake::read_answer(&answer, key)? {
            return Ok(answer.split_off(header_bytes));
        }
    }
}

fn random_mask() -> [u8; 4] {
    fastrand::u32(..).to_ne_bytes()
}

#[cfg(test)]
mod tests;
