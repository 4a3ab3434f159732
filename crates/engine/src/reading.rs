//! How a connection reads: at full speed, slowly, or not at all. For bots that misbehave on purpose.

use drivers::Driver;

use crate::context::BotContext;
use crate::ids::ConnectionId;
use crate::pacer::Item;
use crate::state::WorkerState;

/// The instant at which a connection that does not read begins to.
const NEVER: u64 = u64::MAX;

impl<D: Driver> BotContext<'_, D> {
    /// From now on the connection reads at most `bytes` every `gap_ns`.
    pub fn read_slowly(&mut self, connection: ConnectionId, bytes: usize, gap_ns: u64) {
        if let Some(connection) = self.state.connections.get_mut(connection) {
            (connection.read_bytes_max, connection.read_gap_ns) = (bytes, gap_ns);
        }
    }

    /// From now on the connection reads nothing.
    pub fn stop_reading(&mut self, connection: ConnectionId) {
        if let Some(connection) = self.state.connections.get_mut(connection) {
            connection.reads_from_ns = NEVER;
        }
    }

    /// From now on the connection reads whatever is there.
    pub fn read_freely(&mut self, id: ConnectionId) {
        if let Some(connection) = self.state.connections.get_mut(id) {
            (connection.read_bytes_max, connection.read_gap_ns) = (usize::MAX, 0);
            self.state.read_again(id);
        }
    }
}

impl<D: Driver> WorkerState<D> {
    pub(crate) fn pause_after_read(&mut self, id: ConnectionId) {
        let now_ns = self.now_ns;
        let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.read_gap_ns > 0)
        else {
            return;
        };
        let again_ns = now_ns + connection.read_gap_ns;
        connection.reads_from_ns = again_ns;
        self.pacer.push(again_ns, Item::Read(id));
    }

    /// A pause is over.
    pub(crate) fn read_again(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.reads_from_ns = 0;
            if let Some(waker) = &connection.waker {
                waker.wake_by_ref();
            }
        }
    }
}
