//! Which values a key may have, as far as this worker can know: its own writes, in order.
//!
//! Each write gives a key another of the worker's values (`Versions::variant`), so that a value shows who wrote it and
//! roughly when. A read is stale if the value found had certainly been overwritten before the read was sent: a later
//! write of the same worker was answered before the read began, and that write began after the found one was answered.
//! Operations that may have run concurrently prove nothing, nor do other workers' writes; if a worker has more writes
//! of a key in flight than it has values, they cannot be told apart.
//! A deletion is a write without a value: what it removed must not be found again.
//! A write whose reply never came may be executed at any time, so its value is never stale.

use inflight::VARIANTS;

/// The place of a write among those of one worker on one key, from 1 on, and the last of those that were over when it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) number: u32,
    over: u32,
}

/// One worker's writes on one key.
#[derive(Clone, Copy, Debug, Default)]
struct Key {
    /// the last that was sent
    newest: u32,
    /// it and all before it are over
    over: u32,
    /// those of the 64 after `over` that are over
    over_behind: u64,
    in_flight: u32,
    /// it and all before it were overwritten
    stale: u32,
    /// a write was answered that began after the values of earlier loads were overwritten
    is_settled: bool,
    /// own values that may come again at any time, by their place among the own ones
    uncertain: u64,
}

/// One worker's writes on all keys.
#[derive(Debug)]
pub(super) struct Versions {
    worker: usize,
    /// workers share the values
    workers: usize,
    /// values of this worker
    own: usize,
    keys: Vec<Key>,
}

/// What was known of a key when a read was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    stale: u32,
    is_settled: bool,
}

impl Versions {
    /// `keys`: 0 where reads and writes are not mixed, so that nothing has to be told apart; `own_max`: how many values a
    /// worker may have, at least 2.
    pub(super) fn new(worker: usize, workers: usize, keys: usize, own_max: usize) -> Versions {
        // With fewer than two values each, workers could not tell writes apart.
        let keys = if 2 * workers <= VARIANTS { keys } else { 0 };
        let own = VARIANTS.saturating_sub(worker).div_ceil(workers).min(own_max);
        Versions { worker, workers, own, keys: vec![Key::default(); keys] }
    }

    /// Whether values tell who wrote them.
    pub(super) fn are_told_apart(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The variants of the values that this worker writes.
    pub(super) fn own(&self) -> impl Iterator<Item = usize> + use<> {
        let (worker, workers) = (self.worker, self.workers);
        (0..self.own).map(move |place| worker + workers * place)
    }

    /// The place of a write's value among the own ones; `first` is the key's value in a load that only reads.
    fn place(&self, first: usize, number: u32) -> usize {
        (first + number as usize) % self.own
    }

    /// The value of a write.
    pub(super) fn variant(&self, first: usize, write: Write) -> usize {
        if self.keys.is_empty() {
            return first;
        }
        self.worker + self.workers * self.place(first, write.number)
    }

    /// A write is sent.
    pub(super) fn begin(&mut self, key: usize) -> Write {
        let Some(key) = self.keys.get_mut(key) else { return Write::default() };
        key.newest += 1;
        key.in_flight += 1;
        Write { number: key.newest, over: key.over }
    }

    /// A write was not sent after all; it was the last that began.
    pub(super) fn take_back(&mut self, key: usize) {
        if let Some(key) = self.keys.get_mut(key) {
            key.newest -= 1;
            key.in_flight -= 1;
        }
    }

    /// A write was executed and answered. `settles`: it began when all values of earlier loads were overwritten.
    pub(super) fn done(&mut self, key: usize, write: Write, settles: bool) {
        let Some(key) = self.keys.get_mut(key) else { return };
        if settles {
            key.is_settled = true;
            key.stale = key.stale.max(write.over);
        }
        key.end(write.number);
    }

    /// A write was refused or its reply is lost. `may_come`: it may still be executed.
    pub(super) fn ended(&mut self, key: usize, first: usize, write: Write, may_come: bool) {
        if self.keys.is_empty() {
            return;
        }
        let place = self.place(first, write.number);
        let key = &mut self.keys[key];
        key.uncertain |= u64::from(may_come) << place;
        key.end(write.number);
    }

    /// A read is sent.
    pub(super) fn look(&self, key: usize) -> Read {
        let key = self.keys.get(key).copied().unwrap_or_default();
        Read { stale: key.stale, is_settled: key.is_settled }
    }

    /// Whether a read that has found this value must not have.
    pub(super) fn is_stale(&self, key: usize, first: usize, read: Read, variant: usize) -> bool {
        let is_own = variant % self.workers == self.worker;
        let Some(key) = self.keys.get(key).filter(|_| read.is_settled && is_own) else { return false };
        let found = variant / self.workers;
        if key.uncertain >> found & 1 == 1 {
            return false;
        }
        let later = (key.newest - read.stale) as usize;
        // Any of the later writes may have been found.
        later < self.own && (read.stale + 1..=key.newest).all(|number| self.place(first, number) != found)
    }
}

impl Key {
    fn end(&mut self, number: u32) {
        self.in_flight -= 1;
        if self.in_flight == 0 {
            (self.over, self.over_behind) = (self.newest, 0);
            return;
        }
        // Older writes are forgotten until none is in flight; meanwhile less is known.
        let behind = number - self.over - 1;
        if behind < u64::BITS {
            self.over_behind |= 1 << behind;
        }
        let more = self.over_behind.trailing_ones();
        self.over += more;
        self.over_behind = self.over_behind.checked_shr(more).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: usize = 5;

    /// One worker of two, and one key that was written twice, one write after the other.
    fn written_twice() -> (Versions, Write, Write) {
        let mut versions = Versions::new(1, 2, 1, VARIANTS);
        let old = versions.begin(0);
        versions.done(0, old, true);
        let new = versions.begin(0);
        versions.done(0, new, true);
        (versions, old, new)
    }

    fn is_stale(versions: &Versions, read: Read, write: Write) -> bool {
        versions.is_stale(0, FIRST, read, versions.variant(FIRST, write))
    }

    #[test]
    fn a_value_that_was_overwritten_before_the_read_is_stale_and_the_last_one_is_not() {
        let (mut versions, old, new) = written_twice();
        let read = versions.look(0);
        assert!(is_stale(&versions, read, old) && !is_stale(&versions, read, new));
        // A write sent after the read may be found too.
        let later = versions.begin(0);
        assert!(!is_stale(&versions, read, later));
        versions.done(0, later, true);
        assert!(!is_stale(&versions, read, new), "the read may have come before");
        assert!(is_stale(&versions, versions.look(0), new));
    }

    #[test]
    fn writes_that_were_in_flight_together_may_come_in_either_order() {
        let mut versions = Versions::new(0, 1, 1, VARIANTS);
        let [one, other] = [(); 2].map(|()| versions.begin(0));
        versions.done(0, other, true);
        versions.done(0, one, true);
        let read = versions.look(0);
        assert!(!is_stale(&versions, read, one) && !is_stale(&versions, read, other));
    }

    #[test]
    fn writes_that_are_over_in_any_order_count_once_those_before_them_are() {
        let mut versions = Versions::new(0, 1, 1, VARIANTS);
        let [a, b, c] = [(); 3].map(|()| versions.begin(0));
        versions.done(0, c, true);
        versions.done(0, a, true);
        let after_a = versions.begin(0);
        versions.done(0, after_a, true);
        let read = versions.look(0);
        assert!(
            is_stale(&versions, read, a) && !is_stale(&versions, read, b) && !is_stale(&versions, read, c)
        );
        versions.done(0, b, true);
        let last = versions.begin(0);
        versions.done(0, last, true);
        let read = versions.look(0);
        assert!([a, b, c, after_a].iter().all(|write| is_stale(&versions, read, *write)));
    }

    #[test]
    fn what_other_workers_wrote_and_what_may_still_come_is_never_stale() {
        let (mut versions, old, new) = written_twice();
        let read = versions.look(0);
        assert!(!versions.is_stale(0, FIRST, read, versions.variant(FIRST, old) - 1), "the other worker's");
        let lost = versions.begin(0);
        versions.ended(0, FIRST, lost, true);
        let refused = versions.begin(0);
        versions.ended(0, FIRST, refused, false);
        let last = versions.begin(0);
        versions.done(0, last, true);
        let read = versions.look(0);
        assert!(is_stale(&versions, read, new) && is_stale(&versions, read, refused));
        assert!(!is_stale(&versions, read, lost) && !is_stale(&versions, read, last));
    }

    #[test]
    fn before_a_write_of_this_load_is_over_nothing_is_stale() {
        let mut versions = Versions::new(0, 1, 1, VARIANTS);
        let early = versions.begin(0);
        versions.done(0, early, false);
        let read = versions.look(0);
        assert!((0..VARIANTS).all(|variant| !versions.is_stale(0, FIRST, read, variant)));
    }

    #[test]
    fn with_more_writes_than_values_none_is_told_apart_and_it_recovers() {
        let mut versions = Versions::new(0, 1, 1, VARIANTS);
        let first = versions.begin(0);
        versions.done(0, first, true);
        let held: Vec<Write> = (0..200).map(|_| versions.begin(0)).collect();
        let read = versions.look(0);
        assert!((0..VARIANTS).all(|variant| !versions.is_stale(0, FIRST, read, variant)));
        held.iter().rev().for_each(|write| versions.done(0, *write, true));
        let last = versions.begin(0);
        versions.done(0, last, true);
        let read = versions.look(0);
        assert!(is_stale(&versions, read, held[199]) && !is_stale(&versions, read, last));
    }

    #[test]
    fn all_values_of_a_worker_are_its_own_and_each_comes_in_turn() {
        for workers in [1, 2, 3, 31] {
            for worker in 0..workers {
                let mut versions = Versions::new(worker, workers, 1, VARIANTS);
                let own: std::collections::BTreeSet<usize> = (0..versions.own)
                    .map(|_| {
                        let write = versions.begin(0);
                        versions.variant(FIRST, write)
                    })
                    .collect();
                assert_eq!(own, versions.own().collect(), "{worker} of {workers}");
                assert!(own.iter().all(|variant| *variant < VARIANTS && variant % workers == worker));
            }
        }
    }
}
