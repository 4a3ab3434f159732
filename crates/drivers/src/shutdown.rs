//! The progress of a connection's shutdown: requested by us, then sent after all unsent data.
//!
//! It closes our sending side only, so that the server's last bytes can still be read.
//! Not here: WebSocket, whose close is a frame.

use std::io;
use std::task::{Poll, ready};

/// The shutdown of our side.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Shutdown {
    #[default]
    NotSaid,
    /// the sending side is closed after unsent data
    Said,
    /// it has ended
    Sent,
}

impl Shutdown {
    pub(crate) fn is_said(self) -> bool {
        self != Shutdown::NotSaid
    }

    /// True the first time.
    pub(crate) fn say(&mut self) -> bool {
        let is_first = *self == Shutdown::NotSaid;
        if is_first {
            *self = Shutdown::Said;
        }
        is_first
    }

    /// Closes the sending side by `shutdown`, once, if requested. Nothing must be unsent by now. Pending while TLS's
    /// close_notify does not fit into the socket.
    pub(crate) fn poll_send(&mut self, shutdown: impl FnOnce() -> Poll<io::Result<()>>) -> Poll<()> {
        if *self == Shutdown::Said {
            // If the peer was faster there is nothing left to shut down, and reading reports what happened to the
            // connection.
            let _ = ready!(shutdown());
            *self = Shutdown::Sent;
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goodbye_that_did_not_fit_is_sent_later_and_once() {
        let mut shutdown = Shutdown::default();
        assert!(shutdown.poll_send(|| panic!("nothing was said")).is_ready());
        assert!(shutdown.say() && !shutdown.say());
        assert!(shutdown.poll_send(|| Poll::Pending).is_pending());
        assert!(shutdown.poll_send(|| Poll::Ready(Ok(()))).is_ready());
        assert!(shutdown.poll_send(|| panic!("it was sent")).is_ready());
    }
}
