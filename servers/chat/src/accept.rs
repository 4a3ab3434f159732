//! Connections: accepted, distributed evenly to the threads, welcomed; and how clients leave.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::batch;
use super::clients::{Client, Key, Stage};
use super::rooms::LOBBY;
use super::thread::{Late, Thread};
use servers_shared::{clock, stream};

/// A thread with so many more clients than another leaves the next ones to that one: every client costs its
/// thread one write per round, so the fullest thread would set everybody's latency.
const CLIENTS_AHEAD_MAX: usize = 8;

/// The last message to a client.
pub(super) enum Goodbye<'t> {
    Notice(&'t str),
    Books,
    Nothing,
}

impl Thread {
    /// Another thread that should take the next connection, if any.
    pub(super) fn thread_behind(&self) -> Option<usize> {
        let counts = self
            .shared
            .threads_shared
            .iter()
            .map(|thread_shared| thread_shared.clients.load(Ordering::Relaxed));
        let (thread, fewest) = counts.enumerate().min_by_key(|(_, count)| *count)?;
        (self.core.clients.count() > fewest + CLIENTS_AHEAD_MAX).then_some(thread)
    }

    pub(super) fn welcome(&mut self, fd: OwnedFd, peer: IpAddr) {
        self.look_at_faults();
        let now_ns = clock::now_ns();
        let admitted =
            self.shared.address_limit.lock().unwrap_or_else(PoisonError::into_inner).admits(peer, now_ns);
        if !admitted {
            self.totals.refused_rate += 1;
            return refuse(&fd, b"* too many connections from your address, come back in a second\n");
        }
        if self.shared.is_full() {
            self.totals.refused_full += 1;
            return refuse(&fd, b"* the server is full, come back later\n");
        }
        let me = self.me;
        let client = |key: Key, fd| Client::new(key, fd, batch::sender_id(me, key.place), now_ns);
        let Some(key) = self.core.insert(fd, true, client) else { return };
        if self.core.faults.now.stops_answers {
            self.mute(key);
        }
        self.thread_shared().clients.store(self.core.clients.count(), Ordering::Relaxed);
        let here = self.enter(key, LOBBY);
        self.tell(key, &format!("* welcome to {LOBBY}, {here} here; /help lists what you can say\n"));
        self.flush(key);
    }

    /// Puts a client that is in no room into this one; returns how many are there then.
    pub(super) fn enter(&mut self, key: Key, name: &str) -> u32 {
        let Some(client) = self.core.clients.get_mut(key) else { return 0 };
        let (rooms, me) = (&mut self.rooms, self.me);
        self.shared.rooms.enter(name, |room| {
            let local = rooms.place_for(room);
            let (position, here) = room.enter(me, local, client.name.clone());
            client.room = local;
            client.member_index = rooms.add(local, key.place);
            client.position = position;
            client.own_end = 0;
            here
        })
    }

    /// Hands a client what is still owed to it and takes it out of its room.
    pub(super) fn exit(&mut self, key: Key) {
        self.settle(key);
        let Some(client) = self.core.clients.get_mut(key) else { return };
        let (place, index) = (client.room, client.member_index);
        let Some(room) = self.rooms.get_mut(place).map(|local| local.room.clone()) else { return };
        self.shared.rooms.leave(&room, self.me, client.name.as_deref());
        if let Some(moved) = self.rooms.remove(place, index)
            && let Some(client) = self.core.clients.at(moved)
        {
            client.member_index = index;
        }
    }

    /// The client is no longer read, gets what is queued and, after `farewell`, the end.
    pub(super) fn let_go(&mut self, key: Key, farewell: Goodbye<'_>) {
        if !self.is_talking(key) {
            return;
        }
        self.exit(key);
        let drain_ns = self.shared.options.drain.as_nanos() as u64;
        self.core.deadlines.expect(Late::Leaving, key, clock::now_ns() + drain_ns);
        let Some(client) = self.core.clients.get_mut(key) else { return };
        client.stage = Stage::Leaving;
        client.splitter = Default::default();
        match farewell {
            Goodbye::Notice(text) => client.queue.tell(text.as_bytes()),
            Goodbye::Books => client.queue.say_bye(),
            Goodbye::Nothing => {}
        }
        self.flush(key);
    }

    pub(super) fn is_talking(&mut self, key: Key) -> bool {
        self.core.clients.get_mut(key).is_some_and(|client| client.stage == Stage::Talking)
    }

    /// Closes the connection and its books.
    pub(super) fn part(&mut self, key: Key) {
        if self.is_talking(key) {
            self.exit(key);
        }
        let Some(client) = self.core.clients.remove(key) else { return };
        if let Some(name) = &client.name {
            self.shared.free_name(name);
        }
        let (account, waiting) = (client.queue.account(), client.queue.waiting());
        debug_assert_eq!(account.owed, account.delivered + account.dropped + waiting, "a client's books");
        self.totals.waiting -= waiting;
        self.totals.backlog_bytes -= client.counted_bytes;
        self.totals.in_flight_at_close += waiting;
        self.thread_shared().clients.store(self.core.clients.count(), Ordering::Relaxed);
    }
}

/// Says why, as far as it can be said at once, and closes.
fn refuse(fd: &OwnedFd, why: &[u8]) {
    let _ = stream::write(fd, why);
    stream::finish_writing(fd);
}
