//! What a node has heard of a room from the others: up to which line of each, and what is missing. Pure.

use std::collections::HashMap;

use servers_shared::nats::NodeId;

use super::message::Front;

/// Of one room.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    nodes: HashMap<NodeId, Heard>,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    opening: u64,
    /// The next line's number.
    next: u64,
    members: u32,
}

/// What a message comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Lines before it that never came.
    pub(super) missing: u64,
    /// Of its lines, those at its beginning that had come before.
    pub(super) known: u32,
}

impl Numbers {
    /// Compares a message with those before it. The first one of a node only says where its numbers are, unless the node
    /// was told to `begin`.
    pub(super) fn hear(&mut self, front: Front) -> Found {
        let Front { from, opening, first, count, members } = front;
        let end = first + u64::from(count);
        let Some(heard) = self.nodes.get_mut(&from) else {
            self.nodes.insert(from, Heard { opening, next: end, members });
            return Found::default();
        };
        if opening < heard.opening {
            // From before it left the room: none of it is owed any more.
            return Found { missing: 0, known: count };
        }
        // It has left the room and come back, and numbers anew.
        let next = if opening > heard.opening { 0 } else { heard.next };
        let known = next.saturating_sub(first).min(u64::from(count)) as u32;
        *heard = Heard { opening, next: next.max(end), members };
        Found { missing: first.saturating_sub(next), known }
    }

    /// A node that is there and has nobody in the room: its first line will have the number 0.
    pub(super) fn begin(&mut self, node: NodeId) {
        self.nodes.entry(node).or_insert(Heard { opening: 0, next: 0, members: 0 });
    }

    /// A node has ended, or was silent for too long. Its numbers are kept, in case it is heard again.
    pub(super) fn is_gone(&mut self, node: NodeId) {
        if let Some(heard) = self.nodes.get_mut(&node) {
            heard.members = 0;
        }
    }

    pub(super) fn forget(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }

    /// Clients that are in the room through other nodes, and how many nodes these are.
    pub(super) fn elsewhere(&self) -> (u32, u32) {
        let with_members = self.nodes.values().filter(|heard| heard.members > 0);
        with_members
            .fold((0, 0), |(members, nodes), heard| (heard.members.saturating_add(members), nodes + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);

    fn front(from: NodeId, opening: u64, first: u64, count: u32) -> Front {
        Front { from, opening, first, count, members: 5 }
    }

    #[test]
    fn each_line_that_never_came_is_missing_once_whatever_its_place() {
        let mut numbers = Numbers::default();
        let mut check = |from, opening, first, count, missing, known| {
            let found = numbers.hear(front(from, opening, first, count));
            assert_eq!(found, Found { missing, known }, "{from} {opening} {first} {count}");
        };
        check(A, 1, 57, 0, 0, 0);
        check(A, 1, 57, 3, 0, 0);
        check(A, 1, 60, 1, 0, 0);
        check(A, 1, 63, 2, 2, 0);
        // What is lost at the end shows by the next message without lines, and only once.
        check(A, 1, 70, 0, 5, 0);
        check(A, 1, 70, 0, 0, 0);
        // Again, or in part: never twice.
        check(A, 1, 68, 4, 0, 2);
        check(A, 1, 60, 2, 0, 2);
        check(A, 1, 72, 1, 0, 0);
        // Another node has numbers of its own.
        check(B, 9, 1, 1, 0, 0);
        // Out and in again: what was said since then and did not come is missing, what is older is not.
        check(A, 4, 2, 1, 2, 0);
        check(A, 1, 73, 1, 0, 1);
        check(A, 4, 3, 1, 0, 0);
    }

    #[test]
    fn of_a_node_that_was_there_before_its_first_line_counts() {
        let mut numbers = Numbers::default();
        numbers.hear(front(A, 1, 10, 0));
        numbers.begin(A);
        numbers.begin(B);
        assert_eq!(numbers.hear(front(A, 1, 10, 1)).missing, 0, "its numbers were known");
        assert_eq!(numbers.hear(front(B, 1, 3, 1)).missing, 3);
    }

    #[test]
    fn members_elsewhere_are_those_of_nodes_that_are_there() {
        let mut numbers = Numbers::default();
        numbers.begin(B);
        assert_eq!(numbers.elsewhere(), (0, 0));
        numbers.hear(front(A, 1, 0, 0));
        numbers.hear(front(B, 1, 0, 0));
        assert_eq!(numbers.elsewhere(), (10, 2));
        numbers.is_gone(A);
        assert_eq!(numbers.elsewhere(), (5, 1));
        assert_eq!(numbers.hear(front(A, 1, 4, 0)).missing, 4, "it was only silent");
        numbers.forget(A);
        assert_eq!(numbers.hear(front(A, 1, 9, 0)).missing, 0);
    }
}
