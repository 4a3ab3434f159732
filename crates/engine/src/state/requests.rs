//! Pending requests: replies still owed, each until its outcome is known.
//!
//! They are in reusable slots, and a `RequestId` carries the generation of its slot. The requests of one connection
//! form a doubly linked list, whose head the connection holds: a connection with a thousand operations in flight must
//! find the oldest as fast as the latest.
//! Invariant: `open` counts, by operation and phase, the requests that were sent and have no outcome; without it an
//! interval would not balance.

use measure::Phase;

use crate::ids::{ConnectionId, RequestId};

const NO_REQUEST: u32 = u32::MAX;

#[derive(Clone, Copy)]
pub(crate) struct PendingRequest {
    generation: u32,
    /// the one before it in the list of its connection
    earlier: u32,
    /// the one after it
    later: u32,
    is_free: bool,
    pub(super) connection: ConnectionId,
    pub(super) planned_ns: u64,
    /// `None` until the kernel has taken it
    pub(crate) sent_ns: Option<u64>,
    pub(super) op: u16,
    pub(super) phase: Phase,
}

/// The pending requests of one connection.
pub(crate) struct RequestList {
    latest: u32,
}

impl Default for RequestList {
    fn default() -> Self {
        RequestList { latest: NO_REQUEST }
    }
}

pub(crate) struct PendingRequests {
    slots: Vec<PendingRequest>,
    free: Vec<u32>,
    open: Vec<[u64; Phase::COUNT]>,
    /// all of them
    open_count: u64,
}

impl PendingRequests {
    pub(super) fn new(op_count: usize) -> Self {
        PendingRequests {
            slots: Vec::new(),
            free: Vec::new(),
            open: vec![[0; Phase::COUNT]; op_count],
            open_count: 0,
        }
    }

    /// Requests that were sent and have no outcome yet, by operation and phase.
    pub(crate) fn open(&self) -> &[[u64; Phase::COUNT]] {
        &self.open
    }

    /// How many they are.
    #[inline]
    pub(crate) fn open_count(&self) -> u64 {
        self.open_count
    }

    /// Enters a request of a connection, not sent yet.
    #[inline]
    pub(super) fn insert(
        &mut self,
        list: &mut RequestList,
        connection: ConnectionId,
        op: usize,
        phase: Phase,
        planned_ns: u64,
    ) -> RequestId {
        let request = PendingRequest {
            generation: 0,
            earlier: list.latest,
            later: NO_REQUEST,
            is_free: false,
            connection,
            planned_ns,
            sent_ns: None,
            op: op as u16,
            phase,
        };
        let id = match self.free.pop() {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                let generation = slot.generation.wrapping_add(1);
                *slot = PendingRequest { generation, ..request };
                RequestId { index, generation }
            }
            None => {
                self.slots.push(request);
                RequestId { index: self.slots.len() as u32 - 1, generation: 0 }
            }
        };
        if let Some(before) = self.slots.get_mut(list.latest as usize) {
            before.later = id.index;
        }
        list.latest = id.index;
        id
    }

    /// `None`: the reply is owed no longer.
    #[inline]
    pub(crate) fn get(&self, id: RequestId) -> Option<&PendingRequest> {
        let request = self.slots.get(id.index as usize)?;
        (!request.is_free && request.generation == id.generation).then_some(request)
    }

    /// The latest request of a connection.
    pub(super) fn first(&self, list: &RequestList) -> Option<RequestId> {
        let request = self.slots.get(list.latest as usize)?;
        Some(RequestId { index: list.latest, generation: request.generation })
    }

    /// The kernel has taken a request: from now on it is open.
    #[inline]
    pub(super) fn sent(&mut self, id: RequestId, sent_ns: u64) {
        let request = &mut self.slots[id.index as usize];
        request.sent_ns = Some(sent_ns);
        self.open[usize::from(request.op)][request.phase as usize] += 1;
        self.open_count += 1;
    }

    /// Moves a request from the list of one connection to that of another.
    pub(super) fn move_to(&mut self, from: &mut RequestList, to: &mut RequestList, id: RequestId) {
        self.unlink(from, id);
        let request = &mut self.slots[id.index as usize];
        (request.earlier, request.later) = (to.latest, NO_REQUEST);
        if let Some(before) = self.slots.get_mut(to.latest as usize) {
            before.later = id.index;
        }
        to.latest = id.index;
    }

    /// Says on which connection its reply is owed now.
    pub(super) fn set_connection(&mut self, id: RequestId, connection: ConnectionId) {
        self.slots[id.index as usize].connection = connection;
    }

    /// Removes a request that was sent and is answered, failed or lost.
    #[inline]
    pub(super) fn finish(&mut self, list: &mut RequestList, id: RequestId) -> PendingRequest {
        let request = self.remove(list, id);
        self.open[usize::from(request.op)][request.phase as usize] -= 1;
        self.open_count -= 1;
        request
    }

    /// Removes a request that was sent and will have no outcome: it stays open in the record.
    pub(super) fn leave_open(&mut self, list: &mut RequestList, id: RequestId) -> PendingRequest {
        self.remove(list, id)
    }

    /// Removes a request that was never sent.
    pub(super) fn cancel(&mut self, list: &mut RequestList, id: RequestId) {
        self.remove(list, id);
    }

    #[inline]
    fn remove(&mut self, list: &mut RequestList, id: RequestId) -> PendingRequest {
        self.unlink(list, id);
        let request = &mut self.slots[id.index as usize];
        request.is_free = true;
        let request = *request;
        self.free.push(id.index);
        request
    }

    #[inline]
    fn unlink(&mut self, list: &mut RequestList, id: RequestId) {
        let request = self.slots[id.index as usize];
        // No slot has the number `NO_REQUEST`: there are never that many.
        if let Some(before) = self.slots.get_mut(request.earlier as usize) {
            before.later = request.later;
        }
        match self.slots.get_mut(request.later as usize) {
            Some(after) => after.earlier = request.earlier,
            None => list.latest = request.earlier,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ConnectionTable;
    use super::*;

    #[test]
    fn requests_of_a_connection_end_in_any_order_and_are_found_no_longer() {
        let connection = ConnectionTable::<()>::with_capacity(1).insert(0, 0);
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let (mut requests, mut list) = (PendingRequests::new(1), RequestList::default());
            let ids = [10, 20, 30].map(|planned_ns| {
                let id = requests.insert(&mut list, connection, 0, Phase::Hold, planned_ns);
                requests.sent(id, planned_ns + 1);
                id
            });
            for (count, at) in order.into_iter().enumerate() {
                assert_eq!(requests.open()[0][Phase::Hold as usize], 3 - count as u64);
                let request = requests.finish(&mut list, ids[at]);
                assert_eq!(
                    (request.planned_ns, request.sent_ns),
                    (10 * (at as u64 + 1), Some(request.planned_ns + 1))
                );
                assert!(requests.get(ids[at]).is_none());
            }
            assert!(requests.first(&list).is_none());
            let reused = requests.insert(&mut list, connection, 0, Phase::Hold, 40);
            assert_eq!(reused.index, ids[order[2]].index);
            assert!(requests.get(ids[order[2]]).is_none() && requests.get(reused).is_some());
        }
    }

    #[test]
    fn only_what_was_sent_is_open_and_what_has_no_outcome_stays_open() {
        let connection = ConnectionTable::<()>::with_capacity(1).insert(0, 0);
        let (mut requests, mut list) = (PendingRequests::new(1), RequestList::default());
        let [unsent, unanswered] =
            [1, 2].map(|ns| requests.insert(&mut list, connection, 0, Phase::Ramp, ns));
        requests.sent(unanswered, 3);
        requests.cancel(&mut list, unsent);
        requests.leave_open(&mut list, unanswered);
        assert!(requests.first(&list).is_none());
        assert_eq!(requests.open(), [[1, 0, 0, 0]]);
    }
}
