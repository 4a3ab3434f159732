//! A TCP connection, plain or over TLS, whose framing the address names.
//!
//! Separate from `Tcp`, whose framing is a type, so that the built-in workloads pay for no dispatch at run time.
//! Messages larger than one read are gathered as they arrive, up to the address's limit on replies.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::Socket;
use tokio::io::AsyncWrite;

use super::frames::Frames;
use super::framing::{Front, MESSAGE_BYTES_MAX, UNSENT_BYTES_MAX};
use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Closed, Driver, OpenError, Refused};
use crate::protocol::Protocol;
use crate::read_buffer::ReadBuffer;
use crate::shutdown::Shutdown;
use crate::stream::{self, Stream};
use crate::unfinished::{Carried, FREE_BYTES, Reservation};

/// One open connection.
pub struct Framed {
    stream: Stream,
    frames: Frames,
    /// encoded, not yet taken by the kernel
    unsent: Vec<u8>,
    /// the incomplete message that the last read ended with
    carried: Carried,
    /// a message of more than `MESSAGE_BYTES_MAX`, as far as it has come
    gathered: Option<Box<Gathered>>,
    /// no message may be larger
    bytes_max: usize,
    shutdown: Shutdown,
}

struct Gathered {
    bytes: Vec<u8>,
    reserved: Reservation,
    missing: Missing,
}

/// What is still to come of a message.
enum Missing {
    Bytes(usize),
    /// all up to this byte
    Until(u8),
}

impl Gathered {
    /// Takes what has come of it. Whether it is whole now.
    fn take(&mut self, buffer: &mut ReadBuffer, bytes_max: usize) -> Result<bool, Broken> {
        let rest = buffer.rest();
        let (count, is_whole) = match self.missing {
            Missing::Bytes(missing) => (missing.min(rest.len()), missing <= rest.len()),
            Missing::Until(end) => memchr::memchr(end, rest).map_or((rest.len(), false), |at| (at + 1, true)),
        };
        if self.bytes.len() + count > bytes_max {
            return Err(Broken::TooLarge(bytes_max));
        }
        if let Missing::Bytes(missing) = &mut self.missing {
            *missing -= count;
        }
        self.bytes.extend_from_slice(buffer.take(count));
        self.reserved.grow_to(self.bytes.capacity(), FREE_BYTES)?;
        Ok(is_whole)
    }
}

impl Driver for Framed {
    type Connecting = Socket;
    /// One message.
    type Send<'a> = &'a [u8];
    /// One message; of `Frames::Raw` what came.
    type Received<'a> = &'a [u8];

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Socket, OpenError> {
        connect::begin(to.socket, from)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        let stream = Stream::open(begin_connect, to, |tls| &tls.config).await?;
        let frames = match to.speaks {
            Protocol::Tcp(frames) => frames,
            _ => Frames::default(),
        };
        Ok(Framed {
            stream,
            frames,
            unsent: Vec::new(),
            carried: Carried::default(),
            gathered: None,
            bytes_max: to.reply_bytes_max.max(MESSAGE_BYTES_MAX),
            shutdown: Shutdown::default(),
        })
    }

    /// Refuses also what is longer than its frame can say.
    fn send(&mut self, what: &[u8]) -> Result<(), Refused> {
        // After a shutdown the kernel takes nothing either, and would end the connection because of the attempt.
        if self.shutdown.is_said() || self.unsent.len() > UNSENT_BYTES_MAX {
            return Err(Refused(UNSENT_BYTES_MAX));
        }
        if self.frames.write(&mut self.unsent, what) {
            Ok(())
        } else {
            Err(Refused(self.frames.message_bytes_max()))
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(stream::poll_write_all(&mut self.stream, cx, &mut self.unsent))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.shutdown.poll_send(|| Pin::new(&mut self.stream).poll_shutdown(cx)).map(Ok)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        match ready!(stream::poll_read(&mut self.stream, cx, buffer.lay(self.carried.bytes()))) {
            Ok(0) => Poll::Ready(Err(self.end())),
            // Many servers close the connection without TLS's close_notify.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Err(self.end())),
            Err(error) => Poll::Ready(Err(Closed::Failed(error))),
            Ok(count) => {
                self.carried.clear();
                buffer.filled(count);
                Poll::Ready(Ok(count))
            }
        }
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<&'d [u8], Broken>> {
        if self.gathered.is_some() {
            return self.gather(buffer).transpose();
        }
        match self.frames.front(buffer.rest()) {
            Front::Whole { header_bytes, payload_bytes } => {
                buffer.take(header_bytes);
                Some(Ok(self.frames.heard(buffer.take(payload_bytes))))
            }
            Front::Incomplete => {
                let rest_bytes = buffer.rest().len();
                self.carried.keep(buffer.take(rest_bytes)).err().map(|exhausted| Err(exhausted.into()))
            }
            Front::TooLarge => {
                let missing = match (self.frames.header(buffer.rest()), self.frames.end()) {
                    (Some((header_bytes, payload_bytes)), _) if payload_bytes <= self.bytes_max => {
                        buffer.take(header_bytes);
                        Missing::Bytes(payload_bytes)
                    }
                    (None, Some(end)) => Missing::Until(end),
                    _ => return Some(Err(Broken::TooLarge(self.bytes_max))),
                };
                let (bytes, reserved) = (Vec::new(), Reservation::default());
                self.gathered = Some(Box::new(Gathered { bytes, reserved, missing }));
                self.gather(buffer).transpose()
            }
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

impl Framed {
    pub(crate) fn frames(&self) -> Frames {
        self.frames
    }

    /// The message that is gathered, once it is whole.
    fn gather<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Result<Option<&'d [u8]>, Broken> {
        let Some(gathered) = &mut self.gathered else { return Ok(None) };
        if !gathered.take(buffer, self.bytes_max)? {
            return Ok(None);
        }
        buffer.joined = self.gathered.take().map_or(Vec::new(), |whole| whole.bytes);
        Ok(Some(self.frames.heard(&buffer.joined)))
    }

    /// What the end of the stream means.
    fn end(&self) -> Closed {
        if self.carried.bytes().is_empty() && self.gathered.is_none() {
            Closed::ByPeer(None)
        } else {
            Closed::Broken(Broken::Protocol("the connection ended inside a message"))
        }
    }
}
