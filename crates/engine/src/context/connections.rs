//! Connections in the books: asked for, opened, ended; and how many stand at each moment.

use super::*;

impl<D: Driver> WorkerState<D> {
    pub(super) fn open(&mut self, bot: u32, path: usize) -> ConnectionId {
        self.interval.connections.asked += 1;
        let from = (!self.sources.is_empty()).then(|| {
            self.next_source = (self.next_source + 1) % self.sources.len();
            self.sources[self.next_source]
        });
        let address = path as u32;
        let id = self.new_connection(bot, address);
        match D::begin_connect(&self.addresses[path], from) {
            Ok(begin_connect) => {
                self.opening.push(Opening { connection: id, begin_connect, address });
                self.pacer.push(self.now_ns + OPEN_DEADLINE_NS, Item::OpenDeadline(id));
            }
            Err(error) => self.ended.push((id, Closed::NotOpened(error))),
        }
        id
    }

    pub(super) fn new_connection(&mut self, bot: u32, address: u32) -> ConnectionId {
        let connect_began_ns = self.now_ns;
        let index = self.free_lines.pop().unwrap_or_else(|| {
            self.connections.push(Connection {
                generation: 0,
                bot,
                address,
                state: State::Free,
                waker: None,
                connect_began_ns,
                unsent: Vec::new(),
                tried: 0,
                written: 0,
                first_ask: NO_REQUEST,
                dirty: false,
                reads_from_ns: 0,
                read_bytes_max: usize::MAX,
                read_gap_ns: 0,
            });
            self.connections.len() as u32 - 1
        });
        let connection = &mut self.connections[index as usize];
        connection.generation = connection.generation.wrapping_add(1);
        (connection.bot, connection.address, connection.connect_began_ns) = (bot, address, connect_began_ns);
        (connection.tried, connection.written) = (0, 0);
        (connection.reads_from_ns, connection.read_bytes_max, connection.read_gap_ns) = (0, usize::MAX, 0);
        connection.state = State::Opening;
        ConnectionId { index, generation: connection.generation }
    }

    /// The connection can be used. Returns its bot, `None` when it is no longer awaited.
    pub(crate) fn connection_opened(&mut self, id: ConnectionId, driver: D) -> Option<u32> {
        let now_ns = self.now_ns;
        let connection =
            self.connection_mut(id).filter(|connection| matches!(connection.state, State::Opening))?;
        let tls_ns = driver.tls_ns();
        connection.state = State::Open(Box::new(driver));
        let (bot, connect_began_ns) = (connection.bot, connection.connect_began_ns);
        let phase = self.shared.timeline.phase(connect_began_ns);
        self.interval.record(Measure::Handshake, phase, now_ns.saturating_sub(connect_began_ns));
        if let Some(tls_ns) = tls_ns {
            self.interval.record(Measure::Tls, phase, tls_ns);
        }
        self.interval.connections.opened += 1;
        self.integrate_open(now_ns);
        self.open_count += 1;
        self.shared.progress.opened.fetch_add(1, Relaxed);
        self.shared.progress.open.store(self.open_count, Relaxed);
        Some(bot)
    }

    /// Takes a line out of the books for good. Returns its bot when the bot does not know yet.
    pub(crate) fn connection_ended(&mut self, id: ConnectionId, why: &Closed) -> Option<u32> {
        let drains = self.now_ns >= self.shared.timeline.drain_ns();
        let connection = self.connection_mut(id)?;
        let was = std::mem::replace(&mut connection.state, State::Free);
        connection.dirty = false;
        if let Some(waker) = connection.waker.take() {
            waker.wake();
        }
        let bot = connection.bot;
        connection.tried = 0;
        let unsent = std::mem::take(&mut connection.unsent);
        self.drop_unsent(unsent);
        self.lose_requests(id, drains);
        self.free_lines.push(id.index);
        match was {
            State::Opening => {
                if let Closed::NotOpened(error) = why {
                    self.interval.connections.failed[error.cause_index()] += 1;
                    self.shared.progress.failed.fetch_add(1, Relaxed);
                }
                Some(bot)
            }
            State::Open(_) | State::Lent => {
                self.count_closed();
                Some(bot)
            }
            State::Closing(_) | State::Free => None,
        }
    }

    pub(super) fn integrate_open(&mut self, until_ns: u64) {
        self.open_integral += self.open_count * until_ns.saturating_sub(self.open_since_ns);
        self.open_since_ns = self.open_since_ns.max(until_ns);
    }

    pub(super) fn count_closed(&mut self) {
        self.integrate_open(self.now_ns);
        self.open_count -= 1;
        let connections = &mut self.interval.connections;
        connections.closed += 1;
        connections.open_min = connections.open_min.min(self.open_count);
        self.shared.progress.open.store(self.open_count, Relaxed);
    }

    pub(crate) fn close(&mut self, id: ConnectionId) {
        let drains = self.now_ns >= self.shared.timeline.drain_ns();
        let deadline_ns = self.now_ns + CLOSE_DEADLINE_NS;
        let Some(connection) = self.connection_mut(id) else { return };
        match std::mem::replace(&mut connection.state, State::Free) {
            State::Open(mut driver) => {
                driver.close();
                connection.state = State::Closing(driver);
                let was_dirty = std::mem::replace(&mut connection.dirty, true);
                // What the kernel has not taken by now is booked as not sent, whatever becomes of it.
                connection.tried = 0;
                let unsent = std::mem::take(&mut connection.unsent);
                if !was_dirty {
                    self.dirty.push(id);
                }
                self.drop_unsent(unsent);
                self.lose_requests(id, drains);
                self.count_closed();
                self.pacer.push(deadline_ns, Item::CloseDeadline(id));
            }
            State::Opening => {
                // It is no longer awaited: it is dropped, without a failure of the server's.
                let waker = connection.waker.take();
                connection.state = State::Free;
                connection.tried = 0;
                let unsent = std::mem::take(&mut connection.unsent);
                self.drop_unsent(unsent);
                self.lose_requests(id, drains);
                self.free_lines.push(id.index);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            other => connection.state = other,
        }
    }

    pub(crate) fn shut_sending(&mut self, id: ConnectionId) {
        let Some(connection) = self.connection_mut(id) else { return };
        let State::Open(driver) = &mut connection.state else { return };
        driver.close();
        if !std::mem::replace(&mut connection.dirty, true) {
            self.dirty.push(id);
        }
    }

    pub(crate) fn open_deadline_passed(&mut self, id: ConnectionId) {
        if self.connection_mut(id).is_some_and(|connection| matches!(connection.state, State::Opening)) {
            self.ended.push((id, Closed::NotOpened(OpenError::Timeout)));
        }
    }

    pub(crate) fn close_deadline_passed(&mut self, id: ConnectionId) {
        if self.connection_mut(id).is_some_and(|connection| matches!(connection.state, State::Closing(_))) {
            self.connection_ended(id, &Closed::ByPeer(None));
        }
    }
}
