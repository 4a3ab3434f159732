//! When a thread may write again: the coalescing window.
//!
//! Sends dominate the cost, about 5 µs each whatever their size up to some kB, so lines sent together are cheap. `Auto`
//! bounds the share of a core spent on writing: a round of writes that used t of processor time is followed by a rest
//! of `REST_PER_ROUND` t. The window is thus proportional to the number of clients to write to, and nearly zero for a
//! few, without knowing how many there are or what a write costs here. Processor time, not wall time: if the round has
//! to share its core, wall time would include the others' work, and the window would grow with something the server
//! cannot change.
//! Pure: instants are arguments, in monotonic ns.

use std::fmt;
use std::time::Duration;

/// How long lines are gathered before they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// In proportion to the processor time of the last round of writes.
    Auto,
    /// From the start of one round to the start of the next, however long it takes.
    Fixed(Duration),
}

/// A thread writes for at most a sixth of its core's time.
const REST_PER_ROUND: u64 = 5;

/// The longest rest, for a room so large that one round uses more than a fifth of this.
const REST_NS_MAX: u64 = 100_000_000;

impl fmt::Display for Window {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Window::Auto => write!(
                out,
                "window: auto, a round of writes that used t of processor time is followed by a rest of \
                 {REST_PER_ROUND} t, at most {} ms",
                REST_NS_MAX / 1_000_000
            ),
            Window::Fixed(window) => write!(out, "window: {window:?} from round to round, as asked"),
        }
    }
}

/// One thread's rounds.
#[derive(Debug)]
pub(super) struct Pace {
    window: Window,
    /// The next round begins no earlier.
    next_ns: u64,
    /// The window in force, from round to round.
    last_ns: u64,
}

impl Pace {
    pub(super) fn new(window: Window) -> Pace {
        Pace { window, next_ns: 0, last_ns: 0 }
    }

    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// From the beginning of the last round to the earliest beginning of the next.
    pub(super) fn window_ns(&self) -> u64 {
        self.last_ns
    }

    /// A round is over that used `cost_ns` of processor time.
    pub(super) fn rest(&mut self, began_ns: u64, ended_ns: u64, cost_ns: u64) {
        self.next_ns = match self.window {
            Window::Auto => ended_ns + (REST_PER_ROUND * cost_ns).min(REST_NS_MAX),
            Window::Fixed(window) => ended_ns.max(began_ns + window.as_nanos() as u64),
        };
        self.last_ns = self.next_ns - began_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_window_follows_the_rounds_and_stays_below_its_cap() {
        let mut pace = Pace::new(Window::Auto);
        assert_eq!(pace.next_ns(), 0, "the first line leaves at once");
        for (took_ns, cost_ns, window_ns) in
            [(20_000, 20_000, 120_000), (9 * MS, 3 * MS, 24 * MS), (40 * MS, 40 * MS, 140 * MS)]
        {
            pace.rest(MS, MS + took_ns, cost_ns);
            assert_eq!((pace.next_ns(), pace.window_ns()), (MS + window_ns, window_ns));
        }
    }

    #[test]
    fn a_fixed_window_counts_from_beginning_to_beginning_unless_a_round_takes_longer() {
        let mut pace = Pace::new(Window::Fixed(Duration::from_millis(10)));
        pace.rest(MS, 4 * MS, MS);
        assert_eq!(pace.next_ns(), 11 * MS);
        pace.rest(MS, 16 * MS, MS);
        assert_eq!((pace.next_ns(), pace.window_ns()), (16 * MS, 15 * MS));
    }
}
