//! Readiness of one thread's sockets.
//!
//! Edge-triggered throughout, except for the listener. An event carries the socket's key and generation, so an event
//! that arrives after its socket was closed and the slot reused is recognised as stale.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

/// Key under which the listener is registered; no socket ever gets it.
pub const LISTENER_KEY: u64 = u64::MAX;

/// The same for a thread's wakeup.
pub const WAKEUP_KEY: u64 = u64::MAX - 1;

/// At most this many events per call: few enough that the clock is looked at often.
const EVENTS_PER_CALL: usize = 64;

/// An epoll instance and the events of its last wait.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

/// What happened on a socket.
#[derive(Clone, Copy, Debug)]
pub struct Readiness {
    /// As the descriptor was added.
    pub key: u64,
    /// There is something to read, or an error to find.
    pub readable: bool,
    /// It takes more.
    pub writable: bool,
    /// The peer has closed or half-closed: read up to the end of the stream even after a short read.
    pub ended: bool,
}

impl Readiness {
    /// Of a socket that was not read to the end: what came since is not announced again.
    #[inline]
    pub fn to_read_on(key: u64) -> Readiness {
        Readiness { key, readable: true, writable: false, ended: true }
    }
}

impl Epoll {
    /// Errors: the system has no descriptor left.
    #[inline]
    pub fn new() -> io::Result<Epoll> {
        let fd = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Epoll { fd, events: Vec::with_capacity(EVENTS_PER_CALL) })
    }

    /// Watches a socket for input; for room to write as well when `writable`.
    #[inline]
    pub fn add(&self, fd: impl AsFd, key: u64, writable: bool) -> io::Result<()> {
        Ok(epoll::add(&self.fd, fd, EventData::new_u64(key), socket_interest(writable))?)
    }

    /// From now on with (`writable`) or without events for room to write.
    #[inline]
    pub fn change(&self, fd: impl AsFd, key: u64, writable: bool) -> io::Result<()> {
        Ok(epoll::modify(&self.fd, fd, EventData::new_u64(key), socket_interest(writable))?)
    }

    /// Watches the shared listener. Exclusive: a connection wakes one sleeping thread, not all of them.
    #[inline]
    pub fn add_listener(&self, fd: impl AsFd) -> io::Result<()> {
        let interest = EventFlags::IN | EventFlags::EXCLUSIVE;
        Ok(epoll::add(&self.fd, fd, EventData::new_u64(LISTENER_KEY), interest)?)
    }

    /// No events of it any longer.
    #[inline]
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, fd)?)
    }

    /// Collects what is ready, waiting at most `timeout_ns` (0 never waits). Returns how many there are.
    pub fn wait(&mut self, timeout_ns: u64) -> usize {
        self.events.clear();
        let timeout = libc::timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as _,
            tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
        };
        let max = EVENTS_PER_CALL as libc::c_int;
        let buffer = self.events.as_mut_ptr();
        let fd = self.fd.as_raw_fd();
        let (timeout, no_signals) = (&raw const timeout, std::ptr::null::<libc::sigset_t>());
        // Not every C library has it as a function.
        // SAFETY: the vector has room for EVENTS_PER_CALL events, and `timeout` outlives the call.
        let told =
            unsafe { libc::syscall(libc::SYS_epoll_pwait2, fd, buffer, max, timeout, no_signals, 0_usize) };
        let mut count = told as libc::c_int;
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
    #[inline]
    pub fn may_have_more(&self) -> bool {
        self.events.len() == EVENTS_PER_CALL
    }

    /// The i-th event of the last `wait`.
    #[inline]
    pub fn event(&self, i: usize) -> Readiness {
        let event = self.events[i];
        let flags = EventFlags::from_bits_retain(event.events);
        let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        Readiness {
            key: event.u64,
            readable: flags.contains(EventFlags::IN) || ended,
            writable: flags.contains(EventFlags::OUT),
            ended,
        }
    }
}

#[inline]
fn socket_interest(writable: bool) -> EventFlags {
    let interest = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if writable { interest | EventFlags::OUT } else { interest }
}
