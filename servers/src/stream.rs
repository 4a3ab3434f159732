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

/// Says that nothing more will be written, and leaves the reading side open.
pub(crate) fn finish_writing(fd: RawFd) {
    // SAFETY: a plain call without pointers; a socket that is already gone is fine.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}
