//! Whether a thread watches the listener.
//!
//! The listener is level-triggered: it is watched only while a connection may be taken, since one that may not would wake
//! the thread without end.

use crate::clock;
use crate::epoll::Epoll;
use crate::listener::Listener;

/// How long nothing is taken after descriptors or memory ran out.
pub(crate) const BACK_OFF_NS: u64 = 50_000_000;

#[derive(Default)]
pub(crate) struct AcceptInterest {
    is_open: bool,
    /// Descriptors or memory ran out; 0: they did not.
    shut_until_ns: u64,
}

impl AcceptInterest {
    /// Watches the listener where a connection may be taken and nothing has run out.
    pub(crate) fn keep(&mut self, epoll: &Epoll, listener: &Listener, may_take: bool) {
        if self.shut_until_ns > 0 && clock::now_ns() >= self.shut_until_ns {
            self.shut_until_ns = 0;
        }
        let wanted = may_take && self.shut_until_ns == 0;
        if wanted == self.is_open {
            return;
        }
        let listener = listener.raw();
        let changed = if wanted { epoll.add_listener(listener) } else { epoll.remove(listener) };
        if changed.is_ok() {
            self.is_open = wanted;
        }
    }

    /// Descriptors or memory have run out.
    pub(crate) fn back_off(&mut self) {
        self.shut_until_ns = clock::now_ns() + BACK_OFF_NS;
    }

    /// When to look again, if something has run out.
    pub(crate) fn look_again_ns(&self) -> Option<u64> {
        Some(self.shut_until_ns).filter(|at_ns| *at_ns > 0)
    }
}
