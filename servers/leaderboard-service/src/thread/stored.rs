//! The thread's connection to a store: polled like its clients' sockets, and used in the same turns.

use std::io;
use std::sync::atomic::Ordering;

use super::super::responder::Responder;
use super::super::store::Remote;
use super::Thread;
use servers_shared::fault::ThreadFaults;
use servers_shared::slab;
use servers_shared::thread::Core;

/// Under this key the store's socket is watched; no client ever gets it.
pub(super) const KEY: u64 = u64::MAX - 2;

/// Requests of one client that wait at once; further ones are read when these are answered.
pub(super) const PORTION: usize = 256;

/// Takes a finished answer and the client that it is for.
type Deliver<'a> = &'a mut dyn FnMut(slab::Key, &[u8]);

impl Thread<'_> {
    /// Watches a new connection to the store.
    pub(super) fn watch_store(&mut self) -> io::Result<()> {
        let socket = self.remote.as_ref().and_then(|remote| remote.socket());
        socket.map_or(Ok(()), |socket| self.core.epoll.add(socket, KEY, true))
    }

    /// Something happened on the connection to the store.
    pub(super) fn hear_store(&mut self) {
        self.with_store(|remote, responder, faults, deliver| remote.receive(responder, faults, deliver));
    }

    /// Sends this turn's requests, and maintains the connection.
    pub(super) fn turn_store(&mut self) {
        let mut is_new = false;
        self.with_store(|remote, responder, faults, deliver| {
            is_new = remote.turn(responder, faults, deliver)
        });
        if is_new && let Err(error) = self.watch_store() {
            self.with_store(|remote, responder, faults, deliver| {
                remote.give_up(&error, responder, faults, deliver);
            });
        }
    }

    /// Whether answers for this client wait for the store. It is held then.
    pub(super) fn awaits_store(&mut self, key: slab::Key) -> bool {
        let Some(client) = self.core.clients.get_mut(key).filter(|client| client.awaited > 0) else {
            return false;
        };
        client.is_held = true;
        self.shared.pending.fetch_add(client.awaited, Ordering::Relaxed);
        true
    }

    /// Lets the store's replies come in, and writes to the clients that wait for nothing more.
    fn with_store(&mut self, run: impl FnOnce(&mut Remote, &mut Responder, &mut ThreadFaults, Deliver<'_>)) {
        let (Some(mut remote), Some(store)) = (self.remote.take(), &self.shared.store) else { return };
        let (mut count, mut answered) = (0, Vec::new());
        let Core { clients, faults, .. } = &mut self.core;
        run(&mut remote, &mut self.responder, faults, &mut |key, answer| {
            count += 1;
            let Some(client) = clients.get_mut(key) else { return };
            client.unsent.extend_from_slice(answer);
            client.awaited -= 1;
            if client.awaited == 0 {
                answered.push(key);
            }
        });
        remote.publish(store, self.me);
        self.remote = Some(remote);
        self.shared.pending.fetch_sub(count, Ordering::Relaxed);
        for key in answered {
            if let Some(client) = self.core.clients.get_mut(key) {
                client.is_held = false;
                // Injected delay comes on top; with a store there is no disk to wait for.
                self.hold(key, 1, false);
                self.converse(key, true);
            }
        }
    }
}
