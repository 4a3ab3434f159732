//! UDP: one datagram is one message, in both directions, empty ones too.
//!
//! The socket is connected, so the kernel delivers only what comes from the server, and reports when its host says that
//! nothing listens there (ICMP, "port unreachable"). There is no handshake and no close: a connection is usable at
//! once, and ends when we say so.
//! Behind an emulated network datagrams wait here on both ways (`delayed`).
//! A datagram that the network drops leaves no trace here; the bots know what they miss.
//! A datagram counts for its payload and the 8 bytes of its header, here and in the recorded bytes: an empty one is
//! sent, waits for the kernel and arrives like any other.
//! Source: RFC 768; RFC 1122, section 4.1.3.3.

mod delayed;

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::task::{Context, Poll, Waker};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Closed, Driver, OpenError, Refused};
use crate::network::now_ns;
use crate::protocol::DATAGRAM_BYTES_MAX;
use crate::read_buffer::{READ_BUFFER_BYTES, ReadBuffer};
use crate::unfinished::FREE_BYTES;

use delayed::Delayed;

/// Over IPv6, and so the room for one.
const ROOM_BYTES: usize = 65_535;
/// The prefix of a datagram in the buffers here, its length; as long as the header of UDP.
const HEADER_BYTES: usize = 8;
/// Beyond this much unsent the connection takes no more.
const UNSENT_BYTES_MAX: usize = 128 * 1024;

// A read always has room for one datagram of maximum length.
const _: () = assert!(HEADER_BYTES + ROOM_BYTES <= READ_BUFFER_BYTES);

/// One connected socket.
pub struct Udp {
    /// not tokio's own, which wakes no task that reads when nothing but an error is there
    socket: AsyncFd<UdpSocket>,
    /// each with its length in front, not yet taken by the kernel
    unsent: Vec<u8>,
    /// a datagram has come since the server's host last refused one of ours
    has_heard: bool,
    is_closed: bool,
    /// of the task that reads, for the end that is ours
    reader: Option<Waker>,
    /// what is under way, behind an emulated network
    delayed: Option<Box<Delayed>>,
}

impl Driver for Udp {
    type Connecting = Socket;
    type Send<'a> = &'a [u8];
    type Received<'a> = &'a [u8];

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Socket, OpenError> {
        let family = Domain::for_address(to.socket);
        let socket = Socket::new(family, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        if let Some(source) = from {
            socket.bind(&std::net::SocketAddr::new(source, 0).into())?;
        }
        errors_are_urgent(&socket)?;
        socket.connect(&to.socket.into())?;
        Ok(socket)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        let interest = Interest::READABLE | Interest::WRITABLE | Interest::PRIORITY;
        // SAFETY: the socket owns its descriptor and is not replaced while it is registered.
        let socket = unsafe { AsyncFd::register_with_interest(begin_connect.into(), interest) }
            .map_err(io::Error::from)?;
        let delayed = to.network.as_ref().map(|path| Box::new(Delayed::new(path)));
        Ok(Udp { socket, unsent: Vec::new(), has_heard: false, is_closed: false, reader: None, delayed })
    }

    /// Refuses also a datagram that is longer than `DATAGRAM_BYTES_MAX`.
    fn send(&mut self, what: &[u8]) -> Result<(), Refused> {
        if what.len() > DATAGRAM_BYTES_MAX {
            return Err(Refused(DATAGRAM_BYTES_MAX));
        }
        if self.is_closed || self.unsent.len() > UNSENT_BYTES_MAX {
            return Err(Refused(UNSENT_BYTES_MAX));
        }
        self.unsent.extend_from_slice(&(what.len() as u64).to_le_bytes());
        self.unsent.extend_from_slice(what);
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(mut delayed) = self.delayed.take() {
            let flushed = self.flush_delayed(&mut delayed, cx);
            self.delayed = Some(delayed);
            return Poll::Ready(flushed);
        }
        let mut sent_bytes = 0;
        let outcome = loop {
            let Some(datagram) = datagram(&self.unsent[sent_bytes..]) else { break Poll::Ready(Ok(())) };
            match self.socket.get_ref().send(datagram) {
                Ok(_) => sent_bytes += HEADER_BYTES + datagram.len(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => match self.poll_room(cx) {
                    Poll::Ready(Ok(())) => {}
                    other => break other,
                },
                // The kernel reports an error for an earlier datagram instead of sending this one, which is retried.
                Err(error) => match refused(error, &mut self.has_heard) {
                    Ok(()) => {}
                    Err(error) => break Poll::Ready(Err(error)),
                },
            }
        };
        self.forget_sent(sent_bytes);
        if self.is_closed && self.unsent.is_empty() {
            self.wake_reader();
        }
        outcome
    }

    /// Reads datagrams until none is there, or until there may be no room for the next: one is never cut. One call of the
    /// kernel each, since a call for many (`recvmmsg`) would need room for one of full length per datagram.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        if let Some(mut delayed) = self.delayed.take() {
            let read = self.poll_read_delayed(&mut delayed, cx, buffer);
            self.delayed = Some(delayed);
            return read;
        }
        if self.is_closed && self.unsent.is_empty() {
            return Poll::Ready(Err(Closed::ByPeer(None)));
        }
        let (room, limit_bytes) = buffer.lay_whole();
        let mut count = 0;
        // A connection that reads slowly on purpose takes at least one datagram: none can be read in parts.
        while count == 0 || (count < limit_bytes && room.len() - count >= HEADER_BYTES + ROOM_BYTES) {
            let (header, payload) = room[count..].split_at_mut(HEADER_BYTES);
            match self.socket.get_ref().recv(payload) {
                Ok(bytes) => {
                    self.has_heard = true;
                    header.copy_from_slice(&(bytes as u64).to_le_bytes());
                    count += HEADER_BYTES + bytes;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && count > 0 => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => match self.poll_news(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(Closed::Failed(error))),
                    Poll::Pending => {
                        self.keep_reader(cx);
                        return Poll::Pending;
                    }
                },
                Err(error) => match refused(error, &mut self.has_heard) {
                    Ok(()) => {}
                    // Earlier datagrams are delivered first; a persistent error is reported again.
                    Err(_) if count > 0 => break,
                    Err(error) => return Poll::Ready(Err(Closed::Failed(error))),
                },
            }
        }
        buffer.filled(count);
        Poll::Ready(Ok(count))
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<&'d [u8], Broken>> {
        let bytes = datagram(buffer.rest())?.len();
        buffer.take(HEADER_BYTES);
        Some(Ok(buffer.take(bytes)))
    }

    /// Nothing is sent to the server: the connection ends once all is sent.
    fn close(&mut self) {
        self.is_closed = true;
    }

    fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }
}

/// The first datagram of those that lie with their lengths in front.
fn datagram(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    rest.get(..u64::from_le_bytes(*length) as usize)
}

/// What an error of the kernel means, which may be about a datagram sent earlier.
///
/// A server that has spoken is forgiven one refusal: it may be starting again, and a real client would go on too. The second
/// without a datagram in between ends the connection, as does the first where nothing ever came: nothing has ever listened
/// there, and a load on it would measure nothing.
fn refused(error: io::Error, has_heard: &mut bool) -> io::Result<()> {
    if error.kind() != io::ErrorKind::ConnectionRefused {
        return Err(error);
    }
    if std::mem::take(has_heard) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nothing listens on that UDP port"))
}

/// Makes an error something to read (EPOLLPRI beside EPOLLERR): else it wakes only who waits to write, and a refusal
/// would be known no sooner than with the next datagram. Source: socket(7) does not name it; Linux 3.10, net/core/datagram.c.
fn errors_are_urgent(socket: &Socket) -> io::Result<()> {
    connect::turn_on(socket, libc::SOL_SOCKET, libc::SO_SELECT_ERR_QUEUE)
}

impl Udp {
    /// Ready: something may have come since the kernel said that nothing is there.
    fn poll_news(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.socket.poll_read_ready(cx) {
            Poll::Ready(Ok(mut guard)) => guard.clear_ready(),
            other => return other.map_ok(drop),
        }
        // Polled again, to register for wake-up, or because something arrived meanwhile.
        self.socket.poll_read_ready(cx).map_ok(|mut guard| guard.retain_ready())
    }

    /// The same for writability. After an error tokio treats a socket as writable for good, so that nothing would wake
    /// this task: then it reschedules itself, after the others.
    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.socket.poll_write_ready(cx) {
            Poll::Ready(Ok(mut guard)) => guard.clear_ready(),
            other => return other.map_ok(drop),
        }
        if let Poll::Ready(Ok(mut guard)) = self.socket.poll_write_ready(cx) {
            guard.retain_ready();
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Takes all that is to be sent, and sends what is due.
    fn flush_delayed(&mut self, delayed: &mut Delayed, cx: &Context<'_>) -> io::Result<()> {
        delayed.owner().keep(cx.waker());
        delayed.take(&self.unsent);
        self.forget_sent(self.unsent.len());
        let now_ns = now_ns();
        self.send_due(delayed, now_ns)?;
        delayed.arm(now_ns);
        if self.is_closed && delayed.has_sent_all() {
            self.wake_reader();
        }
        Ok(())
    }

    fn send_due(&mut self, delayed: &mut Delayed, now_ns: u64) -> io::Result<()> {
        while let Some(datagram) = delayed.next_to_send(now_ns) {
            let bytes = datagram.len();
            match self.socket.get_ref().send(datagram) {
                // What a full device does not take is lost.
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    refused(error, &mut self.has_heard)?;
                }
                _ => delayed.sent(bytes, now_ns),
            }
        }
        Ok(())
    }

    /// Takes what has come, and reads what is due of that.
    fn poll_read_delayed(
        &mut self,
        delayed: &mut Delayed,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuffer,
    ) -> Poll<Result<usize, Closed>> {
        delayed.owner().keep(cx.waker());
        let now_ns = now_ns();
        self.send_due(delayed, now_ns).map_err(Closed::Failed)?;
        if self.is_closed && self.unsent.is_empty() && delayed.has_sent_all() {
            return Poll::Ready(Err(Closed::ByPeer(None)));
        }
        let (room, limit_bytes) = buffer.lay_whole();
        while delayed.has_room() {
            let (header, payload) = room.split_at_mut(HEADER_BYTES);
            match self.socket.get_ref().recv(payload) {
                Ok(bytes) => {
                    self.has_heard = true;
                    header.copy_from_slice(&(bytes as u64).to_le_bytes());
                    delayed.receive(&room[..HEADER_BYTES + bytes]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => match self.poll_news(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(Closed::Failed(error))),
                    Poll::Pending => break,
                },
                Err(error) => refused(error, &mut self.has_heard).map_err(Closed::Failed)?,
            }
        }
        let mut count = 0;
        while count == 0 || (count < limit_bytes && room.len() - count >= HEADER_BYTES + ROOM_BYTES) {
            let Some(bytes) = delayed.read(now_ns, &mut room[count..]) else { break };
            count += bytes;
        }
        delayed.awaits(count == 0);
        if count == 0 {
            self.keep_reader(cx);
            delayed.arm(now_ns);
            return Poll::Pending;
        }
        buffer.filled(count);
        Poll::Ready(Ok(count))
    }

    fn forget_sent(&mut self, bytes: usize) {
        if bytes < self.unsent.len() {
            self.unsent.drain(..bytes);
        } else if self.unsent.capacity() > FREE_BYTES {
            self.unsent = Vec::new();
        } else {
            self.unsent.clear();
        }
    }

    fn keep_reader(&mut self, cx: &Context<'_>) {
        if self.reader.as_ref().is_none_or(|reader| !reader.will_wake(cx.waker())) {
            self.reader = Some(cx.waker().clone());
        }
    }

    /// No byte of the server's ends the wait of the task that reads.
    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

#[cfg(test)]
mod tests;
