//! How a connection opens and closes, and what closing it does to its messages.

use std::sync::atomic::Ordering::Relaxed;

use drivers::{Address, Broken, Closed, Driver, OpenError};

use super::{ConnectionState, Destination, Opening, Owes, WorkerState};
use crate::ids::ConnectionId;
use crate::pacer::Item;

/// A connection must be usable this long after its connect began, and what an emulated network takes besides.
const OPEN_DEADLINE_NS: u64 = 5_000_000_000;
/// A close must be answered this long after it was sent; the same.
const CLOSE_DEADLINE_NS: u64 = 2_000_000_000;

impl<D: Driver> WorkerState<D> {
    /// Begins a connection; `path` is an index into the addresses.
    pub(crate) fn open(&mut self, bot: u32, path: usize) -> ConnectionId {
        self.open_to(bot, Destination::Known(self.address_of(bot, path) as u32))
    }

    /// Begins a connection to a given address.
    pub(crate) fn open_at(&mut self, bot: u32, mut address: Address) -> ConnectionId {
        self.put_behind(bot, &mut address);
        self.open_to(bot, Destination::Own(Box::new(address)))
    }

    fn open_to(&mut self, bot: u32, to: Destination) -> ConnectionId {
        self.recorder.connect_began();
        let from = (!self.sources.is_empty()).then(|| {
            self.next_source = (self.next_source + 1) % self.sources.len();
            self.sources[self.next_source]
        });
        let id = self.connections.insert(bot, self.now_ns);
        let address = match &to {
            Destination::Known(path) => &self.addresses[*path as usize],
            Destination::Own(address) => address,
        };
        match D::begin_connect(address, from) {
            Ok(begin_connect) => {
                self.opening.push(Opening { connection: id, begin_connect, to });
                let deadline_ns = self.now_ns + OPEN_DEADLINE_NS + self.networks.allowance_ns;
                self.pacer.push(deadline_ns, Item::OpenDeadline(id));
            }
            Err(error) => self.ended.push((id, Closed::NotOpened(error))),
        }
        id
    }

    /// The connection can be used. Returns its bot, `None` when it is no longer awaited.
    pub(crate) fn connection_opened(&mut self, id: ConnectionId, driver: D) -> Option<u32> {
        let connection = self
            .connections
            .get_mut(id)
            .filter(|connection| matches!(connection.state, ConnectionState::Opening))?;
        let (tls_ns, redirects) = (driver.tls_ns(), driver.redirects());
        connection.state = ConnectionState::Open(Box::new(driver));
        let (bot, connect_began_ns) = (connection.bot, connection.connect_began_ns);
        let phase = self.phase(connect_began_ns);
        let handshake_ns = self.now_ns.saturating_sub(connect_began_ns);
        self.recorder.connection_opened(phase, handshake_ns, tls_ns, self.now_ns);
        self.recorder.redirected(redirects);
        self.shared.progress.opened.fetch_add(1, Relaxed);
        self.shared.progress.open.store(self.recorder.open_count(), Relaxed);
        Some(bot)
    }

    /// The bot of an open connection that it did not close.
    pub(crate) fn bot_of_open(&mut self, id: ConnectionId) -> Option<u32> {
        let connection = self.connections.get_mut(id)?;
        matches!(connection.state, ConnectionState::Open(_)).then_some(connection.bot)
    }

    /// The driver of an open connection that was not closed.
    pub(crate) fn open_driver(&mut self, id: ConnectionId) -> Option<&D> {
        match &self.connections.get_mut(id)?.state {
            ConnectionState::Open(driver) => Some(driver),
            _ => None,
        }
    }

    /// Removes a connection that has ended. Returns its bot when the bot does not know yet.
    pub(crate) fn connection_ended(&mut self, id: ConnectionId, why: &Closed) -> Option<u32> {
        let bot = self.connections.get_mut(id)?.bot;
        self.end_messages(id);
        match self.connections.remove(id)? {
            ConnectionState::Opening => {
                if let Closed::NotOpened(error) = why {
                    self.recorder.connect_failed(error.cause_index());
                    self.shared.progress.failed.fetch_add(1, Relaxed);
                }
                Some(bot)
            }
            ConnectionState::Open(_) => {
                self.record_closed();
                Some(bot)
            }
            ConnectionState::Closing(_) | ConnectionState::Free => None,
        }
    }

    /// Closes a connection cleanly. Its bot gets no more events from it.
    pub(crate) fn close(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        match std::mem::replace(&mut connection.state, ConnectionState::Opening) {
            ConnectionState::Open(mut driver) => {
                driver.close();
                connection.state = ConnectionState::Closing(driver);
                connection.mark_dirty(id, &mut self.dirty);
                self.end_messages(id);
                self.record_closed();
                let deadline_ns = self.now_ns + CLOSE_DEADLINE_NS + self.networks.allowance_ns;
                self.pacer.push(deadline_ns, Item::CloseDeadline(id));
            }
            // Nobody waits for it any more: remove it, without counting a failure of the server.
            ConnectionState::Opening => {
                self.end_messages(id);
                self.connections.remove(id);
            }
            other => connection.state = other,
        }
    }

    /// Ends a connection whose server does not read the answers that it asks for. Told once, when this call is over.
    pub(crate) fn break_off(&mut self, id: ConnectionId) {
        let connection = self.connections.get_mut(id);
        let is_open =
            connection.is_some_and(|connection| matches!(connection.state, ConnectionState::Open(_)));
        let is_told = self.ended.last().is_some_and(|(last, _)| *last == id);
        if is_open && !is_told {
            self.ended.push((id, Closed::Broken(Broken::UnreadAnswers)));
        }
    }

    /// Ends all connections politely.
    pub(crate) fn close_all(&mut self) {
        for slot in 0..self.connections.slot_count() {
            self.close(self.connections.id_at(slot));
        }
    }

    /// Gives each message of an ending connection its outcome. What the kernel has not taken by now is recorded as not
    /// sent, whatever happens to the bytes.
    fn end_messages(&mut self, id: ConnectionId) {
        let drains = self.drains();
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.tried = 0;
        for message in std::mem::take(&mut connection.unsent) {
            self.recorder.not_sent(usize::from(message.op), message.phase);
            if let Owes::Reply(request) = message.owes {
                self.requests.cancel(&mut connection.requests, request);
            }
        }
        while let Some(request) = self.requests.first(&connection.requests) {
            // After the hold the worker itself closes connections: replies still owed are unanswered at the stop, not
            // lost, and stay open in the record.
            if drains {
                let request = self.requests.leave_open(&mut connection.requests, request);
                self.recorder.unanswered(&request, self.now_ns);
            } else {
                let request = self.requests.finish(&mut connection.requests, request);
                self.recorder.lost(&request);
            }
        }
    }

    fn record_closed(&mut self) {
        self.recorder.connection_closed(self.now_ns);
        self.shared.progress.open.store(self.recorder.open_count(), Relaxed);
    }

    /// Ends the sending side of a connection.
    pub(crate) fn shut_sending(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let ConnectionState::Open(driver) = &mut connection.state else { return };
        driver.close();
        connection.mark_dirty(id, &mut self.dirty);
    }

    pub(crate) fn open_deadline_passed(&mut self, id: ConnectionId) {
        let connection = self.connections.get_mut(id);
        if connection.is_some_and(|connection| matches!(connection.state, ConnectionState::Opening)) {
            self.ended.push((id, Closed::NotOpened(OpenError::Timeout)));
        }
    }

    pub(crate) fn close_deadline_passed(&mut self, id: ConnectionId) {
        let connection = self.connections.get_mut(id);
        if connection.is_some_and(|connection| matches!(connection.state, ConnectionState::Closing(_))) {
            self.connection_ended(id, &Closed::ByPeer(None));
        }
    }
}
