//! How a server is shut down: by SIGTERM, SIGINT or a handle.
//!
//! Every signal is blocked on the server's threads, so that none interrupts a turn; the control thread, which is the
//! one that called `run`, takes SIGTERM and SIGINT from a descriptor. That thread keeps the process's descriptor table,
//! which is why it may be woken through descriptors and the others may not.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};

use crate::clock;
use crate::wakeup::Wakeup;

/// Ends a server from another thread. Clones end the same server.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<Wakeup>);

impl Shutdown {
    /// A handle that has not been triggered.
    ///
    /// Errors: the process has no descriptor left.
    pub fn new() -> io::Result<Shutdown> {
        Wakeup::new().map(Arc::new).map(Shutdown)
    }

    /// Tells the server to end. Once is enough, and more often does no harm.
    pub fn trigger(&self) {
        self.0.ring();
    }
}

/// Blocks every signal in the calling thread, and gives the old mask back when dropped.
pub struct AllSignalsBlocked {
    old: libc::sigset_t,
}

impl AllSignalsBlocked {
    /// Blocks them for the calling thread and those that it starts.
    pub fn new() -> AllSignalsBlocked {
        // SAFETY: both sets are valid for the calls; an all-zero set is a valid one to overwrite.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut old: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
            AllSignalsBlocked { old }
        }
    }
}

impl Drop for AllSignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: `old` came from the system.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.old, std::ptr::null_mut()) };
    }
}

/// The control thread's ear for the end: signals and the handle.
pub struct Ear {
    signals: OwnedFd,
    handle: Option<Shutdown>,
    old: libc::sigset_t,
}

impl Ear {
    /// Blocks SIGTERM and SIGINT in the calling thread and takes them from a descriptor from now on.
    pub fn new(handle: Option<Shutdown>) -> io::Result<Ear> {
        // SAFETY: the sets are valid for the calls; the descriptor is checked and then owned.
        unsafe {
            let mut ending: libc::sigset_t = std::mem::zeroed();
            let mut old: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut ending);
            libc::sigaddset(&mut ending, libc::SIGTERM);
            libc::sigaddset(&mut ending, libc::SIGINT);
            let fd = libc::signalfd(-1, &ending, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &ending, &mut old);
            Ok(Ear { signals: OwnedFd::from_raw_fd(fd), handle, old })
        }
    }

    /// Waits at most `timeout_ns` for the end, or for something to read from another descriptor.
    pub fn listen(&self, timeout_ns: u64, other: Option<BorrowedFd<'_>>) -> Heard {
        let handle = self.handle.as_ref().map(|handle| handle.0.as_fd());
        let signals = self.signals.as_fd();
        // Absent descriptors are replaced by present ones, and not checked.
        let fds = [Some(signals), handle, other];
        let mut polled = fds.map(|fd| PollFd::from_borrowed_fd(fd.unwrap_or(signals), PollFlags::IN));
        let ready = poll(&mut polled, Some(&clock::timespec(timeout_ns))).is_ok_and(|count| count > 0);
        let heard = |i: usize| ready && fds[i].is_some() && polled[i].revents().contains(PollFlags::IN);
        Heard { the_end: heard(0) || heard(1), the_other: heard(2) }
    }
}

/// What the control thread was woken by, if by anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// A signal or the handle requested the shutdown.
    pub the_end: bool,
    /// The other descriptor has something.
    pub the_other: bool,
}

impl Drop for Ear {
    fn drop(&mut self) {
        let mut taken = [0u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the buffer is as long as said. What was heard is taken, so that it does not strike again.
        unsafe {
            while libc::read(self.signals.as_raw_fd(), taken.as_mut_ptr().cast(), taken.len()) > 0 {}
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.old, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triggered_handle_is_heard_and_an_untriggered_one_is_not() {
        let handle = Shutdown::new().unwrap();
        let ear = Ear::new(Some(handle.clone())).unwrap();
        assert!(!ear.listen(0, None).the_end);
        handle.trigger();
        assert!(ear.listen(1_000_000_000, None).the_end);
    }
}
