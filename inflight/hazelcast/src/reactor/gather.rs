//! How long to let answers accumulate before going on.
//!
//! Many operations in flight are cheap only if they travel together. A member that answers one by one wakes its client
//! for each answer and is then itself woken for each request; both can get stuck in that mode. Measured with 100 in
//! flight against one member: 2 operations per turn and 9 to 12 µs of CPU each, against 40 and 1.5 µs when they travel
//! together.
//! So a turn that brings only a few of the operations in flight waits once for more, for a share of the time that an
//! operation takes anyway: the member keeps most of the operations and never runs dry, and an operation takes longer by
//! no more than that share. Turns do not wait if few operations are in flight, if operations are fast, or if the turn
//! brought enough. Nor do large answers wait: the accumulated bytes must be few compared to the socket's buffer, or the
//! member stops sending (100 KB, measured: 4 against 9 thousand operations/s). Pure: the caller sleeps. Units: ns.
//! Source of the estimate: Little's law, time per operation = operations in flight / operations per time.

/// Fewer operations in flight have nothing to gather.
const IN_FLIGHT_MIN: usize = 8;
/// A shorter pause is not worth its wake-up, and sleeping is no more exact than this.
const PAUSE_NS_MIN: u64 = 50_000;
/// A longer one would save nothing more.
const PAUSE_NS_MAX: u64 = 250_000;
/// Answers larger than this on average do not gather.
const ANSWER_BYTES_MAX: f64 = 4096.0;
/// The rate is taken over windows of at least this …
const WINDOW_NS: u64 = 2_000_000;
/// … and forgotten when none ended for so long.
const STALE_NS: u64 = 100_000_000;

/// The rate at which operations end, and the pause that follows from it.
#[derive(Debug)]
pub(super) struct Gather {
    /// in [0, 1)
    share: f64,
    begun_ns: u64,
    ended: u64,
    bytes: u64,
    /// mean time between two ends in the last whole window; 0 while it is not known
    ns_per_end: f64,
    /// mean size of an answer, likewise
    bytes_per_end: f64,
}

impl Gather {
    pub fn new(share: f64) -> Self {
        Gather {
            share: share.clamp(0.0, 0.9),
            begun_ns: 0,
            ended: 0,
            bytes: 0,
            ns_per_end: 0.0,
            bytes_per_end: 0.0,
        }
    }

    /// So many bytes were received.
    pub fn received(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// So many operations ended in the turn that ends now.
    pub fn ended(&mut self, ended: usize, now_ns: u64) {
        self.ended += ended as u64;
        let elapsed_ns = now_ns.saturating_sub(self.begun_ns);
        if elapsed_ns < WINDOW_NS {
            return;
        }
        let is_stale = elapsed_ns > STALE_NS || self.ended == 0;
        let per_end = |sum: u64| if is_stale { 0.0 } else { sum as f64 / self.ended as f64 };
        (self.ns_per_end, self.bytes_per_end) = (per_end(elapsed_ns), per_end(self.bytes));
        (self.begun_ns, self.ended, self.bytes) = (now_ns, 0, 0);
    }

    /// How long to wait for more in a turn that brought `count`, with so many still in flight. 0: not at all.
    pub fn pause_ns(&self, count: usize, in_flight: usize) -> u64 {
        let is_enough = in_flight < IN_FLIGHT_MIN || count as f64 >= in_flight as f64 * self.share;
        if is_enough || self.bytes_per_end > ANSWER_BYTES_MAX {
            return 0;
        }
        let pause_ns = (self.ns_per_end * in_flight as f64 * self.share) as u64;
        if pause_ns < PAUSE_NS_MIN { 0 } else { pause_ns.min(PAUSE_NS_MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One turn after the other, each with so many ends, 100 µs apart.
    fn steady(ended_per_turn: usize, bytes_per_end: usize) -> Gather {
        let mut gather = Gather::new(0.125);
        (1..100).for_each(|turn| {
            gather.received(ended_per_turn * bytes_per_end);
            gather.ended(ended_per_turn, turn * 100_000);
        });
        gather
    }

    #[test]
    fn the_pause_is_a_share_of_the_time_an_operation_takes() {
        // 10 per 100 µs and 100 in flight: 1 ms each.
        let gather = steady(10, 30);
        assert!((120_000..=130_000).contains(&gather.pause_ns(2, 100)), "{}", gather.pause_ns(2, 100));
        assert_eq!(gather.pause_ns(1, 20), 0, "25 us are not worth a wake-up");
        assert_eq!(gather.pause_ns(0, 7), 0);
        assert_eq!(gather.pause_ns(13, 100), 0, "enough have come");
        assert_eq!(gather.pause_ns(2, 100_000), PAUSE_NS_MAX);
        assert_eq!(steady(10, 100_000).pause_ns(2, 100), 0, "large answers");
    }

    #[test]
    fn nothing_waits_before_the_rate_is_known_or_after_it_became_stale() {
        assert_eq!(Gather::new(0.125).pause_ns(2, 1000), 0);
        assert_eq!(Gather::new(0.0).pause_ns(2, 1000), 0);
        let mut gather = steady(10, 30);
        gather.ended(1, 10_000_000_000);
        assert_eq!(gather.pause_ns(2, 100), 0);
        let mut gather = steady(10, 30);
        // A window with what ended before, and one without anything.
        gather.ended(0, 13_000_000);
        gather.ended(0, 16_000_000);
        assert_eq!(gather.pause_ns(2, 100), 0);
    }
}
