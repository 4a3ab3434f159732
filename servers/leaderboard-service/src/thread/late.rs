//! Deadlines for clients, and limits on the memory of answers that wait for clients and of incomplete requests.

use super::super::session::Incomplete;
use super::{Client, KEPT_BYTES, Thread};
use servers_shared::clock;
use servers_shared::slab::Key;
use servers_shared::thread::Core;

/// What a client can be late with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Late {
    Asking,
    Taking,
}

/// Memory that clients of one thread hold together, in bytes.
pub(super) struct Total {
    bytes: usize,
    max: usize,
}

impl Total {
    pub(super) fn new(max: usize) -> Total {
        Total { bytes: 0, max }
    }

    pub(super) fn change(&mut self, before: usize, after: usize) {
        self.bytes = self.bytes + after - before;
    }
}

impl Thread<'_> {
    /// What has begun to come must be whole in time.
    pub(super) fn expect_the_rest(&mut self, key: Key) {
        let Core { clients, deadlines, .. } = &mut self.core;
        let Some(client) = clients.get_mut(key) else { return };
        let incomplete = match &client.session {
            None if client.input.is_empty() => return,
            Some(session) if !client.closes => session.incomplete(),
            _ => Incomplete::One,
        };
        match incomplete {
            Incomplete::None => client.asking.by_ns = None,
            // Counted from when it began, whatever else is answered meanwhile.
            Incomplete::Since(since_ns) => {
                deadlines.renew(Late::Asking, key, &mut client.asking, since_ns + self.request_ns);
            }
            Incomplete::One if client.asking.by_ns.is_none() => self.expect(key),
            Incomplete::One => {}
        }
    }

    /// Notes what waits for the client to take it, and until when. While there is too much of it, those who have kept the
    /// thread waiting for longest are parted from.
    pub(super) fn count_untaken(&mut self, key: Key) {
        let Core { clients, deadlines, .. } = &mut self.core;
        let Some(client) = clients.get_mut(key) else { return };
        // What waits for the disk or the store does not wait for the client.
        let session = client.session.as_ref().filter(|_| !client.is_held);
        let mut bytes = session.map_or(0, |session| session.held_bytes());
        let held_since_ns = session.and_then(|session| session.untaken_since_ns());
        if !client.unsent.is_empty() && !client.is_held {
            bytes += client.unsent.capacity();
            client.unsent_since_ns.get_or_insert_with(clock::now_ns);
        }
        match held_since_ns.into_iter().chain(client.unsent_since_ns).min() {
            Some(since_ns) => {
                deadlines.renew(Late::Taking, key, &mut client.taking, since_ns + self.answer_ns)
            }
            None => client.taking.by_ns = None,
        }
        self.untaken.change(std::mem::replace(&mut client.untaken_bytes, bytes), bytes);
        while self.untaken.bytes > self.untaken.max {
            let waiting = self.core.clients.iter().filter(|(_, client)| client.untaken_bytes > 0);
            match waiting.min_by_key(|(_, client)| client.taking.by_ns) {
                Some((longest, client)) if client.untaken_bytes < self.untaken.bytes => self.part(longest),
                // A single answer may exceed what all together may have.
                _ => return,
            }
        }
    }

    /// Records the memory of incomplete requests. If there is too much of it, the clients whose requests began first
    /// are disconnected: a request that is sent at once is soon complete, however slow others are.
    pub(super) fn count_unfinished(&mut self, key: Key) {
        let Some(client) = self.core.clients.get_mut(key) else { return };
        let session = client.session.as_ref().map_or(0, |session| session.unfinished_bytes());
        // What each connection may keep anyway is not counted.
        let bytes = (client.input.capacity() + session).saturating_sub(KEPT_BYTES);
        self.unfinished.change(std::mem::replace(&mut client.unfinished_bytes, bytes), bytes);
        while self.unfinished.bytes > self.unfinished.max {
            let holding = self.core.clients.iter().filter(|(_, client)| client.unfinished_bytes > 0);
            // Complete requests wait for their client to read answers.
            let due_ns = |client: &Client| client.asking.by_ns.into_iter().chain(client.taking.by_ns).min();
            match holding.min_by_key(|(_, client)| due_ns(client).unwrap_or(u64::MAX)) {
                Some((longest, client)) if client.unfinished_bytes < self.unfinished.bytes => {
                    self.part(longest)
                }
                // A single request may exceed what all together may have.
                _ => return,
            }
        }
    }

    /// The client must have completed its request, or closed, within the time from now.
    pub(super) fn expect(&mut self, key: Key) {
        if let Some(client) = self.core.clients.get_mut(key) {
            let by_ns = clock::now_ns() + self.request_ns;
            self.core.deadlines.renew(Late::Asking, key, &mut client.asking, by_ns);
        }
    }
}

/// Gives back memory of a buffer that was needed for one long request or answer. What little most need is kept.
pub(in super::super) fn give_back(buffer: &mut Vec<u8>) {
    // Only far below its capacity, so that a buffer that empties gradually is copied only a few times.
    if buffer.capacity() > KEPT_BYTES && buffer.len() <= buffer.capacity() / 4 {
        buffer.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_keeps_little_more_than_it_holds_and_what_little_most_need() {
        let capacity = |capacity: usize, bytes: usize| {
            let mut buffer = Vec::with_capacity(capacity);
            buffer.resize(bytes, 0);
            give_back(&mut buffer);
            buffer.capacity()
        };
        for (had, bytes) in
            [(1 << 20, 0), (1 << 20, 1), (1 << 20, 1000), (1 << 20, 1 << 18), (1 << 13, 1 << 10)]
        {
            let kept = capacity(had, bytes);
            assert!(kept <= KEPT_BYTES.max(bytes), "{had} bytes of memory for {bytes}: {kept} kept");
        }
        for (had, bytes) in [(KEPT_BYTES, 0), (1 << 20, 1 << 19)] {
            assert_eq!(capacity(had, bytes), had);
        }
    }
}
