//! Redis and Valkey: commands pipelined over one connection, replies in order.
//!
//! Keys and values are encoded in advance, so that an operation is a few copies into the buffer, and a large value is
//! only referenced: a thousand of them in flight take no memory each. A reply is reported as soon as it is complete; a
//! large value is read straight into its final buffer, so that earlier parts are not copied again with each read.
//! The path of the address is a database number. It is selected while the connection opens, after the password if there
//! is one, which also proves that the server speaks this protocol. Not here: clusters.

pub mod resp;

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use send_buffer::SendBuffer;
use socket2::Socket;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::address::{Address, Login};
use crate::connect;
use crate::driver::{Broken, Closed, Driver, OpenError, Refused};
use crate::grid::{Grid, Kind, Operation, Received, Reply};
use crate::read_buffer::{READ_BUFFER_BYTES, ReadBuffer};
use crate::shutdown::Shutdown;
use crate::stream::{self, Stream};
use crate::unfinished::{Carried, FREE_BYTES, Reservation};
use resp::Resp;

/// Beyond this much unsent, without the large values that are only referred to, the connection takes no more.
const HELD_BYTES_MAX: usize = 128 << 20;
/// Contents that one write hands to the kernel.
const SLICES: usize = 64;
/// An incomplete reply that needs at least this much more is read into a separate buffer.
const LARGE_FROM_BYTES: usize = 16 * 1024;
/// No answer to AUTH or SELECT is longer.
const OPENING_BYTES_MAX: usize = 4 * 1024;
const PROTOCOL: &str = "Redis";
/// What the longest reply may have beyond the longest value of the plan.
const UNPLANNED_BYTES: usize = 1 << 20;

/// One open connection.
pub struct Redis {
    stream: Stream,
    unsent: SendBuffer,
    /// operations whose replies have not come, the oldest first
    awaited: VecDeque<Awaited>,
    /// the incomplete reply that the last read ended with
    carried: Carried,
    /// an incomplete large reply, as long as it will be; empty when there is none
    large: Vec<u8>,
    large_filled: usize,
    /// for `large`
    reserved: Reservation,
    reply_bytes_max: usize,
    shutdown: Shutdown,
}

struct Awaited {
    tag: u32,
    kind: Kind,
    /// it has left when the kernel has taken this many bytes
    until: u64,
}

/// A word of a command, encoded.
pub struct Word(Bytes);

impl Word {
    fn of(text: &str) -> Word {
        let mut out = Vec::new();
        resp::put_bulk(&mut out, text.as_bytes());
        Word(out.into())
    }
}

impl Grid for Redis {
    type Key = Word;
    type Value = Word;

    fn key(name: &str) -> Word {
        Word::of(name)
    }

    fn value(text: &str) -> Word {
        Word::of(text)
    }
}

impl Driver for Redis {
    type Connecting = Socket;
    type Send<'a> = Operation<'a, Word, Word>;
    type Received<'a> = Received<'a>;

    /// The kernel chooses the source: Redis's protected mode lets in 127.0.0.1 and no other address of the loopback, and
    /// the few connections of a grid do not use up the ports of one address.
    fn begin_connect(to: &Address, _: Option<IpAddr>) -> Result<Socket, OpenError> {
        connect::begin(to.socket, None)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        let mut stream = Stream::open(begin_connect, to, |tls| &tls.config).await?;
        let database = match to.path.trim_start_matches('/') {
            "" => "0",
            number => number,
        };
        if let Some(Login { user, password }) = &to.login {
            let user = user.as_ref().map(|user| user.as_bytes());
            let words: Vec<&[u8]> =
                [b"AUTH".as_slice()].into_iter().chain(user).chain([password.as_bytes()]).collect();
            carried_out(&mut stream, &words).await?;
        }
        carried_out(&mut stream, &[b"SELECT", database.as_bytes()]).await?;
        Ok(Redis::over(stream, to.reply_bytes_max))
    }

    fn send(&mut self, what: Operation<'_, Word, Word>) -> Result<(), Refused> {
        if self.shutdown.is_said() || self.unsent.held_bytes() > HELD_BYTES_MAX {
            return Err(Refused(HELD_BYTES_MAX));
        }
        let out = self.unsent.buffer();
        out.extend_from_slice(match (what.kind, what.ttl_ms) {
            (Kind::Get, _) => b"*2\r\n$3\r\nGET\r\n",
            (Kind::Set, None) => b"*3\r\n$3\r\nSET\r\n",
            (Kind::Set, Some(_)) => b"*5\r\n$3\r\nSET\r\n",
            (Kind::Delete, _) => b"*2\r\n$3\r\nDEL\r\n",
        });
        out.extend_from_slice(&what.key.0);
        if what.kind == Kind::Set {
            self.unsent.put(&what.value.0);
            if let Some(ttl_ms) = what.ttl_ms {
                let out = self.unsent.buffer();
                out.extend_from_slice(b"$2\r\nPX\r\n");
                resp::put_number_word(out, ttl_ms);
            }
        }
        self.unsent.written();
        self.awaited.push_back(Awaited { tag: what.tag, kind: what.kind, until: self.unsent.queued_until() });
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.unsent.slices(&mut slices);
            let stream = Pin::new(&mut self.stream);
            let sent = ready!(match &slices[..count] {
                [one] => stream.poll_write(cx, one),
                many => stream.poll_write_vectored(cx, many),
            })?;
            self.unsent.sent(sent);
        }
        // TLS may hold records that the socket has not taken.
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.shutdown.poll_send(|| Pin::new(&mut self.stream).poll_shutdown(cx)).map(Ok)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        let is_large = !self.large.is_empty();
        let laid = buffer.lay(self.carried.bytes());
        let room = if is_large { &mut self.large[self.large_filled..] } else { laid };
        match ready!(stream::poll_read(&mut self.stream, cx, room)) {
            Err(error) => Poll::Ready(Err(Closed::Failed(error))),
            Ok(0) => Poll::Ready(Err(Closed::ByPeer(None))),
            Ok(count) if is_large => {
                self.large_filled += count;
                Poll::Ready(Ok(count))
            }
            Ok(count) => {
                self.carried.clear();
                buffer.filled(count);
                Poll::Ready(Ok(count))
            }
        }
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        if !self.large.is_empty() {
            if self.large_filled < self.large.len() {
                return None;
            }
            buffer.joined = std::mem::take(&mut self.large);
            self.reserved.release();
            let bytes = &buffer.joined[..];
            return match resp::front(bytes) {
                Ok(Some(place)) => Some(self.received(place.of(bytes))),
                Ok(None) => Some(Err(Broken::Protocol("a string that is longer than it says"))),
                Err(broken) => Some(Err(Broken::Protocol(broken.0))),
            };
        }
        match resp::front(buffer.rest()) {
            Err(broken) => Some(Err(Broken::Protocol(broken.0))),
            Ok(Some(place)) => {
                let bytes = &*buffer.take(place.reply_bytes);
                Some(self.received(place.of(bytes)))
            }
            Ok(None) => self.carry(buffer).err().map(Err),
        }
    }

    fn close(&mut self) {
        self.shutdown.say();
    }

    fn unsent_bytes(&self) -> usize {
        self.unsent.unsent_bytes()
    }

    fn tls_ns(&self) -> Option<u64> {
        self.stream.tls_ns()
    }
}

impl Redis {
    fn over(stream: Stream, reply_bytes_max: usize) -> Redis {
        Redis {
            stream,
            unsent: SendBuffer::default(),
            awaited: VecDeque::new(),
            carried: Carried::default(),
            large: Vec::new(),
            large_filled: 0,
            reserved: Reservation::default(),
            reply_bytes_max,
            shutdown: Shutdown::default(),
        }
    }

    /// A reply with the operation that it belongs to.
    fn received<'a>(&mut self, reply: Resp<'a>) -> Result<Received<'a>, Broken> {
        // If the command has not been sent yet, this reply is one too many to the command before it.
        let has_left = self.awaited.front().is_some_and(|oldest| oldest.until <= self.unsent.sent_until());
        let asked = if has_left { self.awaited.pop_front() } else { None };
        let Some(Awaited { tag, kind, .. }) = asked else {
            return Err(Broken::Protocol("a reply to nothing that was asked"));
        };
        let reply = match (kind, reply) {
            (_, Resp::Error(words)) => Reply::Refused(words),
            (Kind::Get, Resp::Bulk(value)) => Reply::Value(value),
            (Kind::Set, Resp::Simple(b"OK")) | (Kind::Delete, Resp::Number(0 | 1)) => Reply::Done,
            _ => Reply::Strange,
        };
        Ok(Received { tag, reply })
    }

    /// Keeps an incomplete reply. Errors: it is longer than any expected one, or one of too many; no memory is taken
    /// for it.
    fn carry(&mut self, buffer: &mut ReadBuffer) -> Result<(), Broken> {
        let missing_bytes = resp::missing(buffer.rest());
        let rest = &*buffer.take(buffer.rest().len());
        if rest.len().saturating_add(missing_bytes) > self.reply_bytes_max {
            return Err(Broken::TooLarge(self.reply_bytes_max));
        }
        // The carried remainder must leave room for the next read.
        let is_half_full = missing_bytes > 0 && rest.len() >= READ_BUFFER_BYTES / 2;
        if missing_bytes >= LARGE_FROM_BYTES || is_half_full {
            let rest_bytes = rest.len();
            let whole_bytes = rest_bytes + missing_bytes;
            // The plan's own values have their planned length; longer ones share the common limit.
            let free_bytes = self.reply_bytes_max.saturating_sub(UNPLANNED_BYTES).max(FREE_BYTES);
            self.reserved.grow_to(whole_bytes, free_bytes)?;
            // The memory of the last large reply in this buffer, if it fits: a connection keeps no other's.
            let mut large = std::mem::take(&mut buffer.joined);
            if large.capacity() > 2 * whole_bytes {
                large = Vec::new();
            }
            large.clear();
            large.reserve_exact(whole_bytes);
            large.extend_from_slice(buffer.taken(rest_bytes));
            large.resize(whole_bytes, 0);
            (self.large, self.large_filled) = (large, rest_bytes);
        } else if !rest.is_empty() {
            self.carried.keep(rest)?;
        }
        Ok(())
    }
}

/// Sends a command and waits until it is executed. Errors: the server's error reply.
async fn carried_out(stream: &mut Stream, words: &[&[u8]]) -> Result<(), OpenError> {
    let mut command = Vec::new();
    resp::command(&mut command, words);
    stream.write_all(&command).await?;
    stream.flush().await?;
    let asked = String::from_utf8_lossy(words.first().copied().unwrap_or_default());
    let wrong = |why: String| OpenError::WrongProtocol { protocol: PROTOCOL, why };
    let (mut heard, mut part) = (Vec::new(), [0; 512]);
    loop {
        match resp::reply(&heard) {
            Ok(Some((Resp::Simple(b"OK"), length))) if length == heard.len() => return Ok(()),
            Ok(Some((Resp::Error(words), _))) => return Err(OpenError::Rejected(shown(words))),
            Ok(None) if heard.len() < OPENING_BYTES_MAX => {}
            Ok(_) | Err(_) => {
                return Err(wrong(format!("it answered {asked} with \"{}\"", shown(&heard))));
            }
        }
        match stream.read(&mut part).await? {
            0 => return Err(OpenError::ClosedEarly),
            count => heard.extend_from_slice(&part[..count]),
        }
    }
}

/// The server's bytes as text of one short line.
fn shown(bytes: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 80;
    let text = String::from_utf8_lossy(bytes);
    text.trim_end().chars().take(CHARACTERS_MAX).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;
