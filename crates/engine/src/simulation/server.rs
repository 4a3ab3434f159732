//! The simulated server's interface, and how it sends its messages.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A simulated server. `peer` numbers its connections in the order of their arrival.
pub trait SimulatedServer {
    /// How long a connection takes to open, ns; `None`: it is refused.
    fn opens_after_ns(&mut self, _peer: u64) -> Option<u64> {
        Some(0)
    }
    /// So many requests may be open at once on each connection; `None`: one.
    fn requests_at_once(&self) -> Option<usize> {
        None
    }
    /// A connection has arrived.
    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says);
    /// A message has arrived.
    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says);
    /// A connection has ended.
    fn closed(&mut self, _peer: u64, _at_ns: u64, _says: &mut Says) {}
}

/// Instant, order, peer and the message.
pub(super) type Saying = (u64, u64, u64, Said);

/// What a connection brings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Said {
    Message(Vec<u8>),
    /// from now on it takes no message
    TakesNoMore,
    /// its end
    End(End),
}

/// How a simulated server ends a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// without a word
    Bare,
    /// by a close frame with this code
    Code(u16),
    /// by a reset
    Reset,
    /// by these bytes, which the protocol does not allow
    Broken(Vec<u8>),
}

/// What a simulated server says, and when.
#[derive(Default)]
pub struct Says {
    pub(super) queue: BinaryHeap<Reverse<Saying>>,
    count: u64,
}

impl Says {
    /// A message that arrives at an instant.
    pub fn message(&mut self, at_ns: u64, peer: u64, message: impl Into<Vec<u8>>) {
        self.count += 1;
        self.queue.push(Reverse((at_ns, self.count, peer, Said::Message(message.into()))));
    }

    /// From an instant on the connection is open but takes no message, like one whose server allows no more requests.
    pub fn takes_no_more(&mut self, at_ns: u64, peer: u64) {
        self.count += 1;
        self.queue.push(Reverse((at_ns, self.count, peer, Said::TakesNoMore)));
    }

    /// The end of a connection, at an instant.
    pub fn goodbye(&mut self, at_ns: u64, peer: u64) {
        self.end(at_ns, peer, End::Bare);
    }

    /// The same, in one of the ways in which a connection can end.
    pub fn end(&mut self, at_ns: u64, peer: u64, end: End) {
        self.count += 1;
        self.queue.push(Reverse((at_ns, self.count, peer, Said::End(end))));
    }
}
