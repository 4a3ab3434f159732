//! Memory used by waiting lines, over all threads, and how much of it one client may hold.
//!
//! Lines are shared by all clients that wait for them, so a batch is counted once, from when it is frozen until its
//! last reference is dropped; a queue's own memory is counted by its thread. While the sum exceeds the cap, a client's
//! share is halved, starting from the most that one client can hold: a client above the share loses the excess as
//! `--on-full` says, and one below it loses nothing. Each thread trims its own clients, and the next step waits until
//! all have. Below half the cap the share doubles again, slowly.
//! The cap is exceeded by at most the input of one step. Two lines per client are allowed whatever the cap is.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::options::Options;
use super::queue::PIECE_BYTES;

/// From one doubling of the share to the next, and from the last halving to the first doubling.
const RAISE_NS: u64 = 250_000_000;

/// What a line takes at most beyond `--max-line`: the name before it, its end, and what a queue notes about it.
const LINE_EXTRA_BYTES: usize = 64 + PIECE_BYTES;

/// A sum of bytes that what is counted in it leaves by itself.
pub(super) type Counter = Arc<AtomicUsize>;

/// So many bytes in a counter, until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Counted {
    counter: Option<Counter>,
    bytes: usize,
}

impl Counted {
    pub(super) fn new(counter: &Counter, bytes: usize) -> Counted {
        counter.fetch_add(bytes, Ordering::Relaxed);
        Counted { counter: Some(counter.clone()), bytes }
    }

    /// Other bytes in the same counter, if there is one.
    pub(super) fn another(&self, bytes: usize) -> Counted {
        self.counter.as_ref().map_or_else(Counted::default, |counter| Counted::new(counter, bytes))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(counter) = &self.counter {
            counter.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

pub(super) struct Memory {
    /// The memory of all frozen batches that are still referenced.
    pub(super) batches: Counter,
    cap: usize,
    share_max: usize,
    share_min: usize,
    /// Bytes that may wait for one client.
    share: AtomicUsize,
    /// How often the share was halved.
    halvings: AtomicU64,
    /// Held by who changes the share: the instant before which it does not grow.
    raise_ns: Mutex<u64>,
    /// The most that was held since `take_peak`.
    peak: AtomicUsize,
}

/// What a look at the memory led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// All threads have to trim their clients.
    Halved,
    Raised,
    None,
}

impl Memory {
    pub(super) fn new(options: &Options) -> Memory {
        let line_bytes = options.max_line + LINE_EXTRA_BYTES;
        let share_min = 2 * line_bytes;
        let share_max = options.backlog.saturating_mul(line_bytes).min(options.total_backlog).max(share_min);
        Memory {
            batches: Counter::default(),
            cap: options.total_backlog,
            share_max,
            share_min,
            share: AtomicUsize::new(share_max),
            halvings: AtomicU64::new(0),
            raise_ns: Mutex::new(0),
            peak: AtomicUsize::new(0),
        }
    }

    pub(super) fn share(&self) -> usize {
        self.share.load(Ordering::Relaxed)
    }

    pub(super) fn halvings(&self) -> u64 {
        self.halvings.load(Ordering::Acquire)
    }

    /// Brings the share in line with what is held now, in bytes; `all_have_trimmed` for the share of today.
    pub(super) fn look(&self, held: usize, all_have_trimmed: impl Fn(u64) -> bool, now_ns: u64) -> Change {
        self.peak.fetch_max(held, Ordering::Relaxed);
        let share = self.share();
        let exceeds = held > self.cap && share > self.share_min;
        let has_room = held < self.cap / 2 && share < self.share_max;
        if !exceeds && !has_room {
            return Change::None;
        }
        // Another thread is doing it.
        let Ok(mut raise_ns) = self.raise_ns.try_lock() else { return Change::None };
        if self.share() != share || !all_have_trimmed(self.halvings()) {
            return Change::None;
        }
        if exceeds {
            self.share.store((share / 2).max(self.share_min), Ordering::Relaxed);
            self.halvings.fetch_add(1, Ordering::Release);
            *raise_ns = now_ns + RAISE_NS;
            Change::Halved
        } else if now_ns >= *raise_ns {
            self.share.store((2 * share).min(self.share_max), Ordering::Relaxed);
            *raise_ns = now_ns + RAISE_NS;
            Change::Raised
        } else {
            Change::None
        }
    }

    /// The most that was held since the last call.
    pub(super) fn take_peak(&self) -> usize {
        self.peak.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    fn memory() -> Memory {
        Memory::new(&Options { total_backlog: 16 * MB, backlog: 3000, ..Options::default() })
    }

    #[test]
    fn the_share_is_halved_once_all_have_trimmed_and_grows_again_when_there_is_room() {
        let memory = memory();
        let most = memory.share();
        assert!(most > 8 * MB && most <= 16 * MB, "{most}");
        assert_eq!(memory.look(16 * MB, |_| true, 0), Change::None, "it fits");
        assert_eq!(memory.look(16 * MB + 1, |_| true, 0), Change::Halved);
        assert_eq!((memory.share(), memory.halvings()), (most / 2, 1));
        assert_eq!(memory.look(16 * MB + 1, |_| false, 0), Change::None, "a thread has not trimmed yet");
        assert_eq!(memory.look(16 * MB + 1, |halvings| halvings == 1, 0), Change::Halved);
        assert_eq!(memory.look(9 * MB, |_| true, 10 * RAISE_NS), Change::None, "neither much nor little");
        assert_eq!(memory.look(MB, |_| true, RAISE_NS - 1), Change::None, "too early");
        assert_eq!(memory.look(MB, |_| true, RAISE_NS), Change::Raised);
        assert_eq!(memory.look(MB, |_| true, RAISE_NS + 1), Change::None);
        assert_eq!(memory.look(MB, |_| true, 2 * RAISE_NS), Change::Raised);
        assert_eq!(memory.share(), most / 4 * 4);
        assert_eq!(memory.take_peak(), 16 * MB + 1);
        assert_eq!(memory.take_peak(), 0);
    }

    #[test]
    fn two_lines_stay_allowed_whatever_the_cap_is() {
        let memory = memory();
        while memory.look(usize::MAX, |_| true, 0) == Change::Halved {}
        assert!(memory.share() >= 2 * (Options::default().max_line + 34 + 2));
        assert_eq!(memory.look(usize::MAX, |_| true, 0), Change::None);
    }

    #[test]
    fn what_is_counted_leaves_with_what_it_belongs_to() {
        let counter = Counter::default();
        let one = Counted::new(&counter, 5);
        let two = one.another(7);
        assert_eq!(counter.load(Ordering::Relaxed), 12);
        drop(one);
        assert_eq!(counter.load(Ordering::Relaxed), 7);
        drop(two);
        assert_eq!(counter.load(Ordering::Relaxed), 0);
    }
}
