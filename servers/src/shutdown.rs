//! How a server is told to end: by SIGTERM, SIGINT or a handle.
//!
//! Every signal is blocked on the server's threads, so that none interrupts a turn; the control thread, which
//! is the one that called `run`, takes SIGTERM and SIGINT from a descriptor. That thread keeps the process's
//! descriptor table, which is why it may be woken through descriptors and the others may not.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Ends a server from another thread. Clones end the same server.
#[derive(Clone, Debug)]
pub struct Shutdown {
    event: Arc<OwnedFd>,
}

impl Shutdown {
    /// A handle that has not been triggered.
    ///
    /// Errors: the process has no descriptor left.
    pub fn new() -> io::Result<Shutdown> {
        // SAFETY: no pointers; the descriptor is checked and then owned.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` is open and nobody else owns it.
        Ok(Shutdown { event: Arc::new(unsafe { OwnedFd::from_raw_fd(fd) }) })
    }

    /// Tells the server to end. Once is enough, and more often does no harm.
    pub fn trigger(&self) {
        let one = 1u64;
        // SAFETY: eight valid bytes are passed. The write fails only when the counter is full, i.e. triggered.
        unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

/// Blocks every signal in the calling thread, and gives the old mask back when dropped.
pub(crate) struct AllSignalsBlocked {
    old: libc::sigset_t,
}

impl AllSignalsBlocked {
    pub(crate) fn new() -> AllSignalsBlocked {
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
pub(crate) struct Ear {
    signals: OwnedFd,
    handle: Option<Shutdown>,
    old: libc::sigset_t,
}

impl Ear {
    /// Blocks SIGTERM and SIGINT in the calling thread and takes them from a descriptor from now on.
    pub(crate) fn new(handle: Option<Shutdown>) -> io::Result<Ear> {
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

    /// Waits at most `timeout_ns` for the end; true when it has come.
    pub(crate) fn hears_the_end(&self, timeout_ns: u64) -> bool {
        self.listen(timeout_ns, None).the_end
    }

    /// Waits at most `timeout_ns` for the end, or for something to read from another descriptor.
    pub(crate) fn listen(&self, timeout_ns: u64, other: Option<RawFd>) -> Heard {
        // Negative descriptors are skipped by the system.
        let poll_for =
            |fd: Option<RawFd>| libc::pollfd { fd: fd.unwrap_or(-1), events: libc::POLLIN, revents: 0 };
        let handle = self.handle.as_ref().map(|handle| handle.event.as_raw_fd());
        let mut fds = [Some(self.signals.as_raw_fd()), handle, other].map(poll_for);
        let timeout = libc::timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: three valid entries.
        let ready = unsafe { libc::ppoll(fds.as_mut_ptr(), 3, &timeout, std::ptr::null()) };
        let [signal, handle, other] = fds.map(|fd| ready > 0 && fd.revents & libc::POLLIN != 0);
        Heard { the_end: signal || handle, the_other: other }
    }
}

/// What the control thread was woken by, if by anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) the_end: bool,
    pub(crate) the_other: bool,
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
        assert!(!ear.hears_the_end(0));
        handle.trigger();
        assert!(ear.hears_the_end(1_000_000_000));
    }
}
