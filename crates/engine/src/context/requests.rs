//! Replies that are owed: a slab of asks, and a list of them for each connection.

use super::*;

impl<D: Driver> WorkerState<D> {
    pub(super) fn new_request(
        &mut self,
        connection: ConnectionId,
        op: usize,
        phase: Phase,
        planned_ns: u64,
    ) -> RequestId {
        let next = self.connection_mut(connection).map_or(NO_REQUEST, |connection| connection.first_ask);
        let fresh = PendingRequest {
            generation: 0,
            connection,
            next,
            planned_ns,
            sent_ns: None,
            op: op as u16,
            phase,
            free: false,
        };
        let index = match self.free_asks.pop() {
            Some(index) => {
                let generation = self.asks[index as usize].generation.wrapping_add(1);
                self.asks[index as usize] = PendingRequest { generation, ..fresh };
                index
            }
            None => {
                self.asks.push(fresh);
                self.asks.len() as u32 - 1
            }
        };
        if let Some(connection) = self.connection_mut(connection) {
            connection.first_ask = index;
        }
        RequestId { index, generation: self.asks[index as usize].generation }
    }

    /// Books what became of a reply and forgets it.
    pub(super) fn settle(&mut self, ask: RequestId, book: impl FnOnce(&mut Self, &PendingRequest)) -> bool {
        let Some(owed) = self.asks.get(ask.index as usize) else { return false };
        if owed.free || owed.generation != ask.generation {
            return false;
        }
        if owed.sent_ns.is_none() {
            self.book_unsent_up_to(ask);
        }
        let owed = self.unlink(ask.index);
        self.open_asks[usize::from(owed.op)][owed.phase as usize] -= 1;
        book(self, &owed);
        true
    }

    pub(super) fn lose_requests(&mut self, id: ConnectionId, drains: bool) {
        loop {
            let Some(index) = self
                .connections
                .get(id.index as usize)
                .map(|connection| connection.first_ask)
                .filter(|&index| index != NO_REQUEST)
            else {
                return;
            };
            let owed = self.unlink(index);
            // After the hold we end connections ourselves: such replies are unanswered at the stop, not lost, and stay
            // open in the books.
            if drains {
                let at_least_ns = self.now_ns.saturating_sub(owed.planned_ns);
                self.interval.record(Measure::Unanswered, owed.phase, at_least_ns);
            } else {
                self.open_asks[usize::from(owed.op)][owed.phase as usize] -= 1;
                self.interval.flow_mut(usize::from(owed.op), owed.phase).lost += 1;
            }
        }
    }

    /// Takes an ask out of its line's list and frees its place. Lists are short: a line rarely owes more than a few.
    pub(super) fn unlink(&mut self, index: u32) -> PendingRequest {
        let (connection, next) = {
            let owed = &mut self.asks[index as usize];
            owed.free = true;
            (owed.connection, owed.next)
        };
        let first = self.connections[connection.index as usize].first_ask;
        if first == index {
            self.connections[connection.index as usize].first_ask = next;
        } else {
            let mut before = first;
            while before != NO_REQUEST && self.asks[before as usize].next != index {
                before = self.asks[before as usize].next;
            }
            if before != NO_REQUEST {
                self.asks[before as usize].next = next;
            }
        }
        self.free_asks.push(index);
        let owed = &self.asks[index as usize];
        PendingRequest { ..*owed }
    }
}
