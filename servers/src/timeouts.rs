//! One timeout for all clients of a thread: which of them must have done something by when.
//!
//! A client stands in the list once at most, however often it begins anew, so the list is no longer than there are
//! clients and in order of time. What else there is to wait for (`chat::deadlines`) has more kinds, and another list.

use std::collections::VecDeque;
use std::time::Duration;

use crate::slab::{Key, Slab};

pub(crate) struct Timeouts {
    timeout_ns: u64,
    /// When to look at whom.
    list: VecDeque<(u64, Key)>,
}

/// One client's part of it.
#[derive(Default)]
pub(crate) struct Due {
    /// When the client is late; None while nothing is expected of it.
    pub(crate) at_ns: Option<u64>,
    is_listed: bool,
}

impl Timeouts {
    pub(crate) fn new(timeouts: Duration) -> Timeouts {
        Timeouts { timeout_ns: timeouts.as_nanos() as u64, list: VecDeque::new() }
    }

    /// When to look next.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.list.front().map(|(at_ns, _)| *at_ns)
    }

    /// It has to have happened a timeout from now.
    pub(crate) fn expect(&mut self, key: Key, due: &mut Due, now_ns: u64) {
        let at_ns = now_ns + self.timeout_ns;
        due.at_ns = Some(at_ns);
        if !std::mem::replace(&mut due.is_listed, true) {
            self.list.push_back((at_ns, key));
        }
    }

    /// Somebody who is late.
    pub(crate) fn take_late<T>(
        &mut self,
        now_ns: u64,
        clients: &mut Slab<T>,
        due: impl Fn(&mut T) -> &mut Due,
    ) -> Option<Key> {
        while self.next_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            let (_, key) = self.list.pop_front()?;
            let Some(client) = clients.get_mut(key) else { continue };
            let due = due(client);
            due.is_listed = false;
            match due.at_ns {
                None => {}
                Some(at_ns) if at_ns <= now_ns => return Some(key),
                // Something later is expected by now. Looked at again after a whole timeout, so that the list stays
                // in order with one entry per client, however many requests come in two pieces.
                Some(_) => self.expect(key, due, now_ns),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_did_nothing_in_time_is_late_and_who_began_anew_is_looked_at_again() {
        let mut timeouts = Timeouts::new(Duration::from_nanos(100));
        let mut clients: Slab<Due> = Slab::default();
        let [silent, done, anew] = [(); 3].map(|()| clients.insert(|_| Due::default()));
        for key in [silent, done, anew] {
            timeouts.expect(key, clients.get_mut(key).unwrap(), 0);
        }
        clients.get_mut(done).unwrap().at_ns = None;
        timeouts.expect(anew, clients.get_mut(anew).unwrap(), 50);
        let mut late = |now_ns| timeouts.take_late(now_ns, &mut clients, |due| due);
        assert_eq!(late(99), None);
        assert_eq!(late(100), Some(silent));
        assert_eq!(late(100), None);
        assert_eq!(late(199), None, "a whole timeout after the look");
        assert_eq!(late(200), Some(anew));
        assert_eq!(timeouts.next_ns(), None);
    }
}
