//! Operations that were put into the send buffer and not answered yet.
//!
//! A correlation id is the operation's slot and a number that changes whenever the slot is reused, so that a late
//! answer matches nothing. Deadlines are checked only when the earliest can have passed: with one timeout for all
//! operations that is once per timeout, not once per operation.

use slab::Slab;

/// An operation in flight.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub token: T,
    correlation: i64,
    /// position in the send buffer after its last byte
    pub queued_until: u64,
    pub deadline_ns: u64,
}

/// All operations in flight on one connection.
#[derive(Debug)]
pub(super) struct InFlight<T> {
    entries: Slab<Entry<T>>,
    /// as high bits of correlations; below 2³¹
    turn: u32,
    /// no deadline is earlier
    earliest_ns: u64,
}

impl<T> InFlight<T> {
    pub fn new() -> Self {
        InFlight { entries: Slab::new(), turn: 0, earliest_ns: u64::MAX }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The correlation that `insert` will give to the next operation.
    pub fn next_correlation(&self) -> i64 {
        i64::from(self.turn) << 32 | self.entries.vacant_key() as i64
    }

    /// Adds the operation that was written with `next_correlation`.
    pub fn insert(&mut self, token: T, queued_until: u64, deadline_ns: u64) {
        let correlation = self.next_correlation();
        self.turn = (self.turn + 1) & (i32::MAX as u32);
        self.earliest_ns = self.earliest_ns.min(deadline_ns);
        self.entries.insert(Entry { token, correlation, queued_until, deadline_ns });
    }

    /// The operation with this correlation, if it is still pending.
    pub fn remove(&mut self, correlation: i64) -> Option<Entry<T>> {
        let at = place(correlation);
        match self.entries.get(at) {
            Some(entry) if entry.correlation == correlation => Some(self.entries.remove(at)),
            _ => None,
        }
    }

    /// No operation's deadline is earlier; `None` without operations.
    pub fn earliest_ns(&self) -> Option<u64> {
        if self.entries.is_empty() { None } else { Some(self.earliest_ns) }
    }

    /// Takes out every operation whose deadline is not later than `now_ns`.
    pub fn expire(&mut self, now_ns: u64, mut expired: impl FnMut(Entry<T>)) {
        if now_ns < self.earliest_ns {
            return;
        }
        let due: Vec<usize> =
            self.entries.iter().filter(|(_, entry)| entry.deadline_ns <= now_ns).map(|(at, _)| at).collect();
        due.into_iter().for_each(|at| expired(self.entries.remove(at)));
        self.earliest_ns = self.entries.iter().map(|(_, entry)| entry.deadline_ns).min().unwrap_or(u64::MAX);
    }

    /// Takes out all.
    pub fn drain(&mut self) -> impl Iterator<Item = Entry<T>> + '_ {
        self.earliest_ns = u64::MAX;
        self.entries.drain()
    }
}

fn place(correlation: i64) -> usize {
    correlation as u32 as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_does_not_end_the_operation_that_took_its_place() {
        let mut in_flight = InFlight::new();
        let first = in_flight.next_correlation();
        in_flight.insert('a', 0, 10);
        let mut expired = Vec::new();
        in_flight.expire(9, |entry| expired.push(entry.token));
        assert!(expired.is_empty());
        in_flight.expire(10, |entry| expired.push(entry.token));
        assert_eq!(expired, ['a']);
        let second = in_flight.next_correlation();
        assert_eq!(place(first), place(second));
        in_flight.insert('b', 0, 20);
        assert!(in_flight.remove(first).is_none());
        assert_eq!(in_flight.remove(second).expect("b").token, 'b');
        assert!(in_flight.remove(second).is_none());
        assert_eq!(in_flight.earliest_ns(), None);
    }

    #[test]
    fn operations_expire_at_their_own_deadlines() {
        let mut in_flight = InFlight::new();
        for deadline in [30, 10, 20, 10] {
            in_flight.insert(deadline, 0, deadline);
        }
        let mut expired = Vec::new();
        for now in 0..40 {
            in_flight.expire(now, |entry| expired.push((now, entry.token)));
        }
        assert_eq!(expired, [(10, 10), (10, 10), (20, 20), (30, 30)]);
        assert_eq!(in_flight.len(), 0);
    }
}
