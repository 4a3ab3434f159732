//! The other nodes that share the broker: who is there, and since when one is silent. Pure.

use std::collections::{BTreeSet, HashMap};

use servers_shared::nats::NodeId;

/// A node that was not heard for so long is not there.
pub(super) const SILENT_NS: u64 = 5_000_000_000;

/// A node that was not heard for so long is forgotten, with its numbers.
const FORGOTTEN_NS: u64 = 600_000_000_000;

#[derive(Default)]
pub(super) struct Peers {
    nodes: HashMap<NodeId, Peer>,
}

struct Peer {
    name: Box<str>,
    heard_ns: u64,
    is_there: bool,
}

/// What has changed with the time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    Silent(NodeId),
    Forgotten(NodeId),
}

impl Peers {
    /// A node says that it is there; true when it was not before.
    pub(super) fn hear(&mut self, node: NodeId, name: &str, now_ns: u64) -> bool {
        let new = || Peer { name: name.into(), heard_ns: now_ns, is_there: false };
        let peer = self.nodes.entry(node).or_insert_with(new);
        peer.heard_ns = now_ns;
        !std::mem::replace(&mut peer.is_there, true)
    }

    /// It has ended.
    pub(super) fn remove(&mut self, node: NodeId) -> bool {
        self.nodes.remove(&node).is_some()
    }

    /// This node could hear nobody until now.
    pub(super) fn hear_again(&mut self, now_ns: u64) {
        self.nodes.values_mut().filter(|peer| peer.is_there).for_each(|peer| peer.heard_ns = now_ns);
    }

    /// Who is silent or forgotten as of now.
    pub(super) fn look(&mut self, now_ns: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        self.nodes.retain(|node, peer| {
            let silent_ns = now_ns.saturating_sub(peer.heard_ns);
            if silent_ns >= SILENT_NS && std::mem::replace(&mut peer.is_there, false) {
                changes.push(Change::Silent(*node));
            }
            let is_kept = silent_ns < FORGOTTEN_NS;
            if !is_kept {
                changes.push(Change::Forgotten(*node));
            }
            is_kept
        });
        changes
    }

    /// Nodes that are there.
    pub(super) fn there(&self) -> BTreeSet<NodeId> {
        self.nodes.iter().filter(|(_, peer)| peer.is_there).map(|(node, _)| *node).collect()
    }

    /// Whether a node of this name is there.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.nodes.values().any(|peer| peer.is_there && &*peer.name == name)
    }

    /// The names of these, for a sentence: at most eight of them.
    pub(super) fn names(&self, nodes: &[NodeId]) -> String {
        let name = |node: &NodeId| {
            self.nodes.get(node).map_or_else(|| node.to_string(), |peer| peer.name.to_string())
        };
        let mut names: Vec<String> = nodes.iter().map(name).collect();
        names.sort();
        let more = names.len().saturating_sub(8);
        names.truncate(8);
        let listed = names.join(", ");
        if more > 0 { format!("{listed} and {more} more") } else { listed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);

    #[test]
    fn a_node_is_there_until_it_is_silent_and_known_until_it_is_forgotten() {
        let mut peers = Peers::default();
        assert!(peers.hear(A, "a", 0) && peers.hear(B, "b", 0) && !peers.hear(B, "b", 1_000));
        assert!(peers.has_name("a") && !peers.has_name("c"));
        assert_eq!(peers.look(SILENT_NS - 1), []);
        assert_eq!(peers.look(SILENT_NS), [Change::Silent(A)]);
        assert_eq!((peers.there(), peers.has_name("a")), (BTreeSet::from([B]), false));
        assert_eq!(peers.look(SILENT_NS), [], "it is said once");
        assert!(peers.hear(A, "a", SILENT_NS + 1), "it is back");
        peers.hear_again(2 * SILENT_NS);
        assert_eq!(peers.look(3 * SILENT_NS - 1), [], "this node itself could not hear them");
        let later = peers.look(2 * SILENT_NS + FORGOTTEN_NS);
        assert_eq!(later.iter().filter(|change| matches!(change, Change::Forgotten(_))).count(), 2);
        assert!(peers.there().is_empty());
    }

    #[test]
    fn names_are_told_in_order_and_not_too_many() {
        let mut peers = Peers::default();
        for node in (1..=10).rev() {
            peers.hear(NodeId(node), &format!("n{node:02}"), 0);
        }
        let all: Vec<NodeId> = peers.there().into_iter().collect();
        assert_eq!(peers.names(&all[1..3]), "n02, n03");
        assert_eq!(peers.names(&all), "n01, n02, n03, n04, n05, n06, n07, n08 and 2 more");
    }
}
