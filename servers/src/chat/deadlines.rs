//! When something has to have happened. Every kind has one timeout, so each kind's deadlines are in order.

use std::collections::VecDeque;
use std::time::Duration;

use super::clients::Key;
use super::options::Options;

/// How long a client that was told everything may take to close, before the server does.
const LINGER: Duration = Duration::from_millis(500);

/// What has to have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The line that was begun is ended.
    Line,
    /// The client that shut its sending side has got what it wanted.
    HalfClosed,
    /// The client that leaves has read what is queued.
    Leaving,
    /// It has closed.
    Finished,
}

const KINDS: [What; 4] = [What::Line, What::HalfClosed, What::Leaving, What::Finished];

pub(super) struct Deadlines {
    timeout_ns: [u64; KINDS.len()],
    queues: [VecDeque<(u64, Key)>; KINDS.len()],
}

impl Deadlines {
    pub(super) fn new(options: &Options) -> Deadlines {
        let timeouts = [options.line_timeout, options.half_closed, options.drain, LINGER];
        Deadlines { timeout_ns: timeouts.map(|time| time.as_nanos() as u64), queues: Default::default() }
    }

    pub(super) fn timeout_ns(&self, what: What) -> u64 {
        self.timeout_ns[what as usize]
    }

    /// It has to have happened a timeout from `from_ns`, which is now or a little before.
    pub(super) fn expect(&mut self, what: What, key: Key, from_ns: u64) {
        let queue = &mut self.queues[what as usize];
        let at_ns = from_ns + self.timeout_ns[what as usize];
        let place = match queue.back() {
            Some((last_ns, _)) if *last_ns > at_ns => {
                queue.partition_point(|(other_ns, _)| *other_ns <= at_ns)
            }
            _ => queue.len(),
        };
        queue.insert(place, (at_ns, key));
    }

    /// One of those whose time has come.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<(What, Key)> {
        KINDS.into_iter().find_map(|what| {
            let queue = &mut self.queues[what as usize];
            queue.front().filter(|(at_ns, _)| *at_ns <= now_ns)?;
            queue.pop_front().map(|(_, key)| (what, key))
        })
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.queues.iter().filter_map(|queue| queue.front()).map(|(at_ns, _)| *at_ns).min()
    }
}
