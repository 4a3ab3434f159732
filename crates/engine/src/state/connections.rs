//! The connection table: the connections of a worker, in reusable slots.
//!
//! A slot is free, or holds one connection from connect to close. A `ConnectionId` carries the generation of its slot,
//! so the id of a closed connection never finds the slot's current one.

use std::task::Waker;

use drivers::Reservation;

use super::requests::RequestList;
use super::unsent::Unsent;
use crate::ids::ConnectionId;

pub(crate) struct Connection<D> {
    generation: u32,
    pub(crate) bot: u32,
    pub(crate) state: ConnectionState<D>,
    /// of the task that reads this connection
    pub(crate) waker: Option<Waker>,
    pub(super) connect_began_ns: u64,
    /// encoded, and not taken whole by the kernel
    pub(super) unsent: Vec<Unsent>,
    /// for these, while answers that the server asked for are among them
    pub(super) answers: Reservation,
    /// how many of these, from the front, the kernel was offered already
    pub(super) tried: usize,
    /// bytes that the kernel has taken since the connect
    pub(super) written: u64,
    /// replies that are owed on it
    pub(super) requests: RequestList,
    is_dirty: bool,
    /// how it reads; see `reading`
    pub(crate) reads_from_ns: u64,
    pub(crate) read_bytes_max: usize,
    pub(crate) read_gap_ns: u64,
}

pub(crate) enum ConnectionState<D> {
    /// the slot is free
    Free,
    Opening,
    Open(Box<D>),
    /// closed by this worker; the peer has not answered yet
    Closing(Box<D>),
}

impl<D> Connection<D> {
    fn new(generation: u32, bot: u32, connect_began_ns: u64) -> Self {
        Connection {
            generation,
            bot,
            state: ConnectionState::Opening,
            waker: None,
            connect_began_ns,
            unsent: Vec::new(),
            answers: Reservation::default(),
            tried: 0,
            written: 0,
            requests: RequestList::default(),
            is_dirty: false,
            reads_from_ns: 0,
            read_bytes_max: usize::MAX,
            read_gap_ns: 0,
        }
    }

    /// Enters the connection into the queue of those to flush, once.
    pub(crate) fn mark_dirty(&mut self, id: ConnectionId, dirty: &mut Vec<ConnectionId>) {
        if !std::mem::replace(&mut self.is_dirty, true) {
            dirty.push(id);
        }
    }

    pub(super) fn mark_clean(&mut self) {
        self.is_dirty = false;
    }
}

pub(crate) struct ConnectionTable<D> {
    slots: Vec<Connection<D>>,
    free: Vec<u32>,
}

impl<D> ConnectionTable<D> {
    pub(super) fn with_capacity(connection_count: usize) -> Self {
        ConnectionTable { slots: Vec::with_capacity(connection_count), free: Vec::new() }
    }

    /// A connection whose connect begins now.
    pub(super) fn insert(&mut self, bot: u32, connect_began_ns: u64) -> ConnectionId {
        match self.free.pop() {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                let generation = slot.generation.wrapping_add(1);
                *slot = Connection::new(generation, bot, connect_began_ns);
                ConnectionId { index, generation }
            }
            None => {
                let id = ConnectionId { index: self.slots.len() as u32, generation: 1 };
                self.slots.push(Connection::new(id.generation, bot, connect_began_ns));
                id
            }
        }
    }

    /// `None`: the connection has ended.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection<D>> {
        self.slots.get_mut(id.index as usize).filter(|connection| {
            connection.generation == id.generation && !matches!(connection.state, ConnectionState::Free)
        })
    }

    /// Frees the slot of a connection and wakes its task, which ends. Returns the state that it was in.
    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<ConnectionState<D>> {
        let connection = self.get_mut(id)?;
        let was = std::mem::replace(&mut connection.state, ConnectionState::Free);
        if let Some(waker) = connection.waker.take() {
            waker.wake();
        }
        self.free.push(id.index);
        Some(was)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// The connection in a slot; that of a free slot is found no longer.
    pub(super) fn id_at(&self, slot: usize) -> ConnectionId {
        ConnectionId { index: slot as u32, generation: self.slots[slot].generation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_reused_and_the_id_of_an_ended_connection_finds_nothing() {
        let mut table = ConnectionTable::<()>::with_capacity(1);
        let first = table.insert(7, 1);
        assert!(matches!(table.remove(first), Some(ConnectionState::Opening)));
        assert!(table.is_empty() && table.remove(first).is_none());
        let second = table.insert(8, 2);
        assert_eq!((first.index, table.slot_count(), table.id_at(0)), (second.index, 1, second));
        assert!(table.get_mut(first).is_none());
        assert_eq!(table.get_mut(second).map(|connection| connection.bot), Some(8));
    }
}
