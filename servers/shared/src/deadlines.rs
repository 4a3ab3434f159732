//! Deadlines for the clients of a thread.
//!
//! A deadline is not cancelled: when it expires, the server checks whether it still applies. A recurring one (`Due`) is
//! entered only once, however often it is renewed, so that memory is bounded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::slab::Key;

/// `K` says what is expected.
pub struct Deadlines<K>(BinaryHeap<Reverse<(u64, Key, K)>>);

/// When one client must have done something next.
#[derive(Default)]
pub struct Due {
    /// None while nothing is expected of it.
    pub by_ns: Option<u64>,
    is_listed: bool,
}

impl<K: Copy + Ord> Deadlines<K> {
    /// Without any deadline.
    pub fn new() -> Deadlines<K> {
        Deadlines(BinaryHeap::new())
    }

    /// `what` is due for `key` by then.
    pub fn expect(&mut self, what: K, key: Key, by_ns: u64) {
        self.0.push(Reverse((by_ns, key, what)));
    }

    /// Expects this instead of what `due` was before.
    pub fn renew(&mut self, what: K, key: Key, due: &mut Due, by_ns: u64) {
        due.by_ns = Some(by_ns);
        if !std::mem::replace(&mut due.is_listed, true) {
            self.expect(what, key, by_ns);
        }
    }

    /// When to look next.
    pub fn next_ns(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((by_ns, ..))| *by_ns)
    }

    /// An expectation whose time has come.
    pub fn take(&mut self, now_ns: u64) -> Option<(K, Key)> {
        self.next_ns().filter(|by_ns| *by_ns <= now_ns)?;
        self.0.pop().map(|Reverse((_, key, what))| (what, key))
    }

    /// Whether what was taken holds for `due`; if that begun anew since, it is looked at again.
    pub fn holds(&mut self, what: K, key: Key, due: &mut Due, now_ns: u64) -> bool {
        due.is_listed = false;
        match due.by_ns {
            Some(by_ns) if by_ns > now_ns => {
                self.renew(what, key, due, by_ns);
                false
            }
            by_ns => by_ns.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Slab;

    #[test]
    fn who_did_nothing_in_time_is_late_and_who_began_anew_is_looked_at_again() {
        let mut deadlines = Deadlines::new();
        let mut clients: Slab<Due> = Slab::default();
        let [silent, done, anew] = [(); 3].map(|()| clients.insert(|_| Due::default()));
        for key in [silent, done, anew] {
            deadlines.renew((), key, clients.get_mut(key).unwrap(), 100);
        }
        clients.get_mut(done).unwrap().by_ns = None;
        deadlines.renew((), anew, clients.get_mut(anew).unwrap(), 150);
        let mut late = |now_ns| {
            let mut late = Vec::new();
            while let Some(((), key)) = deadlines.take(now_ns) {
                if deadlines.holds((), key, clients.get_mut(key).unwrap(), now_ns) {
                    late.push(key);
                }
            }
            (late, deadlines.next_ns())
        };
        assert_eq!(late(99), (vec![], Some(100)));
        assert_eq!(late(100), (vec![silent], Some(150)));
        assert_eq!(late(149), (vec![], Some(150)));
        assert_eq!(late(150), (vec![anew], None));
    }

    #[test]
    fn what_is_due_comes_in_the_order_of_time_whatever_it_is() {
        let key = Key { place: 0, generation: 0 };
        let mut deadlines = Deadlines::new();
        [(2, 30), (1, 20), (3, 10)].into_iter().for_each(|(what, by_ns)| deadlines.expect(what, key, by_ns));
        assert_eq!(
            [25, 25, 25, 30].map(|now_ns| deadlines.take(now_ns).map(|(what, _)| what)),
            [Some(3), Some(1), None, Some(2)]
        );
    }
}
