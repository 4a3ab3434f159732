//! Plain TCP: lines, length-prefixed frames, or raw bytes.
//!
//! A message's wire format is a `Framing`, pure and beside this file. A read may bring many messages and a write may
//! carry many; all messages of a read share one receive time, the worker's. Text is not checked for UTF-8 here: a judge
//! counts what it got, and some protocols carry bytes.
//! Shutdown closes our sending side only, once everything is sent, so that the server's last bytes can still be read.
//! Not here: TLS, which only `Framed` is asked for.

pub mod framed;
pub mod frames;
pub mod framing;
pub mod length_prefixed;
pub mod lines;
pub mod packets;

use std::io;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::Socket;
use tokio::io::AsyncWrite;

use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Closed, Driver, OpenError, Refused};
use crate::read_buffer::ReadBuffer;
use crate::shutdown::Shutdown;
use crate::stream::{self, Stream};
use crate::unfinished::Carried;
pub use framed::Framed;
pub use frames::Frames;
use framing::UNSENT_BYTES_MAX;
pub use framing::{Framing, Front, MESSAGE_BYTES_MAX, Raw};
pub use length_prefixed::LengthPrefixed;
pub use lines::{Lines, lines};
pub use packets::Packets;

/// One open TCP connection.
pub struct Tcp<F> {
    stream: Stream,
    /// encoded, not yet taken by the kernel
    unsent: Vec<u8>,
    /// the incomplete message that the last read ended with
    carried: Carried,
    shutdown: Shutdown,
    framed: PhantomData<F>,
}

impl<F: Framing> Driver for Tcp<F> {
    type Connecting = Socket;
    /// Whole lines with their ends for `Lines`, one payload for `LengthPrefixed`, anything for `Raw`.
    type Send<'a> = &'a [u8];
    /// A block of whole lines for `Lines` (see `lines`), one payload for `LengthPrefixed`, what came for `Raw`.
    type Received<'a> = &'a [u8];

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Socket, OpenError> {
        connect::begin(to.socket, from)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        Ok(Tcp::new(Stream::open(begin_connect, to, |tls| &tls.config).await?))
    }

    fn send(&mut self, what: &[u8]) -> Result<(), Refused> {
        // After a shutdown the kernel takes nothing either, and would end the connection because of the attempt.
        if self.shutdown.is_said() || self.unsent.len() > UNSENT_BYTES_MAX {
            return Err(Refused(UNSENT_BYTES_MAX));
        }
        F::write(&mut self.unsent, what);
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(stream::poll_write_all(&mut self.stream, cx, &mut self.unsent))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.shutdown.poll_send(|| Pin::new(&mut self.stream).poll_shutdown(cx)).map(Ok)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        match ready!(stream::poll_read(&mut self.stream, cx, buffer.lay(self.carried.bytes()))) {
            Err(error) => Poll::Ready(Err(Closed::Failed(error))),
            Ok(0) => Poll::Ready(Err(Closed::ByPeer(None))),
            Ok(count) => {
                self.carried.clear();
                buffer.filled(count);
                Poll::Ready(Ok(count))
            }
        }
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<&'d [u8], Broken>> {
        match F::front(buffer.rest()) {
            Front::Whole { header_bytes, payload_bytes } => {
                buffer.take(header_bytes);
                Some(Ok(buffer.take(payload_bytes)))
            }
            Front::Incomplete => {
                let rest_bytes = buffer.rest().len();
                self.carried.keep(buffer.take(rest_bytes)).err().map(|exhausted| Err(exhausted.into()))
            }
            Front::TooLarge => Some(Err(Broken::TooLarge(MESSAGE_BYTES_MAX))),
        }
    }

    fn close(&mut self) {
        self.shutdown.say();
    }

    fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    fn tls_ns(&self) -> Option<u64> {
        self.stream.tls_ns()
    }
}

impl<F> Tcp<F> {
    fn new(stream: Stream) -> Self {
        Tcp {
            stream,
            unsent: Vec::new(),
            carried: Carried::default(),
            shutdown: Shutdown::default(),
            framed: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests;
