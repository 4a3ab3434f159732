//! Readiness of one thread's sockets.
//!
//! Edge-triggered throughout, but for the listener. An event carries the socket's key and generation, so
//! that one which arrives after its socket was closed and the place given away is recognised as stale.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Key under which the listener is registered; no socket ever gets it.
pub(crate) const LISTENER_KEY: u64 = u64::MAX;

/// At most this many events per call: few enough that the clock is looked at often.
const EVENTS_PER_CALL: usize = 64;

pub(crate) struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

/// What happened on a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    pub(crate) key: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer is gone or half gone: read up to the end of the stream even after a short read.
    pub(crate) ended: bool,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers are passed; the returned descriptor is checked and then owned.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` is open and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Epoll { fd, events: Vec::with_capacity(EVENTS_PER_CALL) })
    }

    /// Watches a socket for input; for room to write as well when `writable`.
    pub(crate) fn add(&self, fd: RawFd, key: u64, writable: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, key, socket_interest(writable))
    }

    pub(crate) fn change(&self, fd: RawFd, key: u64, writable: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, key, socket_interest(writable))
    }

    /// Watches the shared listener. Exclusive: a connection wakes one sleeping thread, not all of them.
    pub(crate) fn add_listener(&self, fd: RawFd) -> io::Result<()> {
        let interest = (libc::EPOLLIN | libc::EPOLLEXCLUSIVE) as u32;
        self.control(libc::EPOLL_CTL_ADD, fd, LISTENER_KEY, interest)
    }

    pub(crate) fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    /// Collects what is ready, waiting at most `timeout_ns` (0 never waits). Returns how many there are.
    pub(crate) fn wait(&mut self, timeout_ns: u64) -> usize {
        self.events.clear();
        let timeout = libc::timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
        };
        let max = EVENTS_PER_CALL as libc::c_int;
        let buffer = self.events.as_mut_ptr();
        let fd = self.fd.as_raw_fd();
        // SAFETY: the vector has room for EVENTS_PER_CALL events, and `timeout` outlives the call.
        let mut count = unsafe { libc::epoll_pwait2(fd, buffer, max, &timeout, std::ptr::null()) };
        if count < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
            let timeout_ms = timeout_ns.div_ceil(1_000_000).min(60_000) as libc::c_int;
            // SAFETY: as above; kernels before 5.11 know only whole milliseconds.
            count = unsafe { libc::epoll_wait(fd, buffer, max, timeout_ms) };
        }
        let count = count.max(0) as usize;
        // SAFETY: the kernel has filled the first `count` events.
        unsafe { self.events.set_len(count) };
        count
    }

    /// True when the last `wait` filled the buffer, so that more may be ready.
    pub(crate) fn may_have_more(&self) -> bool {
        self.events.len() == EVENTS_PER_CALL
    }

    /// The i-th event of the last `wait`.
    pub(crate) fn event(&self, i: usize) -> Readiness {
        let event = self.events[i];
        let bits = event.events;
        let ended = bits & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0;
        Readiness {
            key: event.u64,
            readable: bits & libc::EPOLLIN as u32 != 0 || ended,
            writable: bits & libc::EPOLLOUT as u32 != 0,
            ended,
        }
    }

    fn control(&self, operation: libc::c_int, fd: RawFd, key: u64, interest: u32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest, u64: key };
        // SAFETY: `event` is valid for the duration of the call.
        match unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn socket_interest(writable: bool) -> u32 {
    let interest = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET;
    (if writable { interest | libc::EPOLLOUT } else { interest }) as u32
}
