//! Reading from and writing to a non-blocking socket, with no state but the bytes that did not fit.

use std::io;
use std::os::fd::RawFd;

/// What one read gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Bytes(usize),
    /// Nothing there now.
    Empty,
    /// The peer has sent all it will, or the connection broke.
    Ended,
}

/// Reads once into `buffer`.
pub(crate) fn read(fd: RawFd, buffer: &mut [u8]) -> Read {
    // SAFETY: the buffer is as long as said.
    let count = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    match count {
        0 => Read::Ended,
        count if count > 0 => Read::Bytes(count as usize),
        _ => match io::Error::last_os_error().kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Read::Empty,
            _ => Read::Ended,
        },
    }
}

/// Writes as much as the socket takes now; an error means that the connection is broken.
pub(crate) fn write(fd: RawFd, bytes: &[u8]) -> Result<usize, ()> {
    // SAFETY: the bytes are as many as said. MSG_NOSIGNAL: a broken pipe is an error, not a signal.
    let count = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    if count >= 0 {
        return Ok(count as usize);
    }
    match io::Error::last_os_error().kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(()),
    }
}

/// Writes as much of these as the socket takes now, in order; an error means that the connection is broken.
///
/// # Safety
/// The vectors point to memory that is initialised and outlives the call.
pub(crate) unsafe fn write_vectored(fd: RawFd, vectors: &[libc::iovec]) -> Result<usize, ()> {
    let count = match vectors {
        // SAFETY: the caller vouches for the memory. MSG_NOSIGNAL as above.
        [one] => unsafe { libc::send(fd, one.iov_base, one.iov_len, libc::MSG_NOSIGNAL) },
        many => {
            // SAFETY: all-zero is a valid header; the vectors are as many as said.
            unsafe {
                let mut header: libc::msghdr = std::mem::zeroed();
                header.msg_iov = many.as_ptr().cast_mut();
                header.msg_iovlen = many.len();
                libc::sendmsg(fd, &header, libc::MSG_NOSIGNAL)
            }
        }
    };
    if count >= 0 {
        return Ok(count as usize);
    }
    match io::Error::last_os_error().kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(()),
    }
}

/// True when the connection was reset, or both sides have said that they are done.
pub(crate) fn is_gone(fd: RawFd) -> bool {
    let mut poll = libc::pollfd { fd, events: 0, revents: 0 };
    // SAFETY: one valid entry. These two events are told without being asked for.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 && poll.revents & (libc::POLLHUP | libc::POLLERR) != 0 }
}

/// Says that nothing more will be written, and leaves the reading side open.
pub(crate) fn finish_writing(fd: RawFd) {
    // SAFETY: a plain call without pointers; a socket that is already gone is fine.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}

/// From now on closing this socket resets the connection, and throws away what was not sent.
pub(crate) fn reset_on_close(fd: RawFd) {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: the value is a linger of the length that is said. Where it is refused, the peer sees an end.
    unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const at_once).cast(), length) };
}
