//! Connecting, reading from and writing to a non-blocking socket, with no state except the bytes that did not fit.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use rustix::net::{recv, send, sendmsg, shutdown, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Begins a connection to another server, without waiting for it: non-blocking, and without Nagle's delay. Returns whether it is
/// there already. Errors: it is refused at once.
pub fn connect(address: SocketAddr) -> io::Result<(OwnedFd, bool)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    let is_connected = match socket.connect(&SockAddr::from(address)) {
        Ok(()) => true,
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => false,
        Err(error) => return Err(error),
    };
    Ok((socket.into(), is_connected))
}

/// What one read gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// So many were read.
    Bytes(usize),
    /// Nothing there now.
    Empty,
    /// The peer has sent all it will, or the connection broke.
    Ended,
}

/// Reads once into `buffer`.
#[inline]
pub fn read(fd: impl AsFd, buffer: &mut [u8]) -> Read {
    match recv(fd, buffer, RecvFlags::empty()) {
        Ok((_, 0)) => Read::Ended,
        Ok((_, count)) => Read::Bytes(count),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Read::Empty,
        Err(_) => Read::Ended,
    }
}

/// Reads once into a buffer's free room after its content, of which there must be some.
#[inline]
pub fn append(fd: impl AsFd, buffer: &mut Vec<u8>) -> Read {
    match recv(fd, spare_capacity(buffer), RecvFlags::empty()) {
        Ok((0, _)) => Read::Ended,
        Ok((count, _)) => Read::Bytes(count),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Read::Empty,
        Err(_) => Read::Ended,
    }
}

/// Writes as much as the socket takes now; an error means that the connection is broken.
#[inline]
pub fn write(fd: impl AsFd, bytes: &[u8]) -> Result<usize, ()> {
    // A broken pipe is an error, not a signal.
    taken(send(fd, bytes, SendFlags::NOSIGNAL))
}

#[inline]
fn taken(sent: Result<usize, Errno>) -> Result<usize, ()> {
    match sent {
        Ok(count) => Ok(count),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(0),
        Err(_) => Err(()),
    }
}

/// Writes as much of these as the socket takes now, in order; an error means that the connection is broken.
#[inline]
pub fn write_vectored(fd: impl AsFd, vectors: &[IoSlice<'_>]) -> Result<usize, ()> {
    match vectors {
        [one] => write(fd, one),
        many => taken(sendmsg(fd, many, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)),
    }
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// It is there.
    There,
    /// It sends nothing more: it waits for its answers, or has closed; only writing to it tells which.
    HalfClosed,
    /// The connection was reset, or both sides have said that they are done.
    Gone,
}

/// What is known of the peer without reading or writing.
#[inline]
pub fn peer(fd: impl AsFd) -> Peer {
    // HUP and ERR are always reported.
    let mut one = [PollFd::new(&fd, PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut one, Some(&at_once)) {
        Ok(1) if one[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) => Peer::Gone,
        Ok(1) => Peer::HalfClosed,
        _ => Peer::There,
    }
}

/// True when nothing that is written would be read.
#[inline]
pub fn is_gone(fd: impl AsFd) -> bool {
    peer(fd) == Peer::Gone
}

/// Says that nothing more will be written, and leaves the reading side open.
#[inline]
pub fn finish_writing(fd: impl AsFd) {
    // A socket that is already closed is fine.
    let _ = shutdown(fd, Shutdown::Write);
}

/// Ends the connection in both directions, even where another descriptor still refers to it.
#[inline]
pub fn end(fd: impl AsFd) {
    let _ = shutdown(fd, Shutdown::Both);
}

/// From now on closing this socket resets the connection, and throws away what was not sent.
#[inline]
pub fn reset_on_close(fd: impl AsFd) {
    // If it is refused, the peer sees a normal end.
    let _ = sockopt::set_socket_linger(fd, Some(Duration::ZERO));
}
