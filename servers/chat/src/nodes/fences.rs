//! Fences: how a node knows that what was said through it has reached the rooms of all other nodes. Pure.
//!
//! A fence goes to the broker behind everything that was published before, and every node answers it once all of that
//! is in its rooms. One is under way at a time; who asks meanwhile waits for the next one, so that a thousand who ask at
//! once cost two. A fence is sent again until it is answered, since a node that lost its connection lost the fence, too.
//! Instants are arguments, in monotonic ns.

use std::collections::BTreeSet;

use servers_shared::nats::NodeId;

/// How long a node may take to answer.
pub(super) const PATIENCE_NS: u64 = 2_000_000_000;

/// From one sending to the next.
const AGAIN_NS: u64 = 300_000_000;

#[derive(Debug, Default)]
pub(super) struct Fences {
    under_way: Option<UnderWay>,
    /// Number of the last fence.
    last: u64,
}

#[derive(Debug)]
struct UnderWay {
    /// Who asked up to this wait for it.
    asked: u64,
    began_ns: u64,
    send_ns: u64,
    /// The broker has not confirmed yet what it was sent before.
    broker: bool,
    nodes: BTreeSet<NodeId>,
}

/// What there is to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing before `due_ns`, unless an answer comes.
    Wait,
    /// Send the fence with this number, and a ping.
    Send(u64),
    /// All who asked up to `asked` can be answered.
    Over { asked: u64, took_ns: u64, late: Vec<NodeId>, broker_is_late: bool },
}

impl Fences {
    /// Whether one is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Begins one, for all who asked up to `asked`, that these nodes answer.
    pub(super) fn begin(&mut self, asked: u64, nodes: BTreeSet<NodeId>, now_ns: u64) {
        self.last += 1;
        self.under_way = Some(UnderWay { asked, began_ns: now_ns, send_ns: now_ns, broker: true, nodes });
    }

    pub(super) fn passed(&mut self, node: NodeId, number: u64) {
        if number == self.last
            && let Some(under_way) = &mut self.under_way
        {
            under_way.nodes.remove(&node);
        }
    }

    /// The broker has confirmed everything that was sent before the last ping.
    pub(super) fn confirmed(&mut self) {
        if let Some(under_way) = &mut self.under_way {
            under_way.broker = false;
        }
    }

    /// A node has ended: there is nobody there to whom anything is owed.
    pub(super) fn is_gone(&mut self, node: NodeId) {
        self.passed(node, self.last);
    }

    pub(super) fn step(&mut self, now_ns: u64) -> Step {
        let Some(under_way) = &mut self.under_way else { return Step::Wait };
        let is_answered = under_way.nodes.is_empty() && !under_way.broker;
        let until_ns = under_way.began_ns + PATIENCE_NS;
        if is_answered || now_ns >= until_ns {
            return self.end(now_ns);
        }
        if now_ns >= under_way.send_ns {
            under_way.send_ns = now_ns + AGAIN_NS;
            return Step::Send(self.last);
        }
        Step::Wait
    }

    /// When `step` has something to do at the latest.
    pub(super) fn due_ns(&self) -> u64 {
        let due_ns = |under_way: &UnderWay| under_way.send_ns.min(under_way.began_ns + PATIENCE_NS);
        self.under_way.as_ref().map_or(u64::MAX, due_ns)
    }

    /// Ends the one that is under way, whatever was answered.
    pub(super) fn end(&mut self, now_ns: u64) -> Step {
        let Some(UnderWay { asked, began_ns, broker, nodes, .. }) = self.under_way.take() else {
            return Step::Wait;
        };
        let took_ns = now_ns.saturating_sub(began_ns);
        Step::Over { asked, took_ns, late: nodes.into_iter().collect(), broker_is_late: broker }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);

    fn begun(nodes: &[NodeId]) -> Fences {
        let mut fences = Fences::default();
        fences.begin(9, nodes.iter().copied().collect(), 1_000);
        assert_eq!(fences.step(1_000), Step::Send(1));
        fences
    }

    fn over(took_ns: u64, late: &[NodeId], broker_is_late: bool) -> Step {
        Step::Over { asked: 9, took_ns, late: late.to_vec(), broker_is_late }
    }

    #[test]
    fn a_fence_is_over_when_the_broker_and_all_nodes_have_answered_it() {
        let mut fences = begun(&[A, B]);
        fences.passed(A, 1);
        fences.confirmed();
        fences.passed(B, 0);
        assert_eq!(fences.step(2_000), Step::Wait, "that was an answer to an earlier one");
        assert_eq!(fences.due_ns(), 1_000 + AGAIN_NS);
        fences.passed(B, 1);
        assert_eq!(fences.step(3_000), over(2_000, &[], false));
        assert_eq!((fences.step(4_000), fences.due_ns()), (Step::Wait, u64::MAX));
    }

    #[test]
    fn it_is_sent_again_and_given_up_with_the_names_of_who_is_late() {
        let mut fences = begun(&[A, B]);
        fences.passed(B, 1);
        assert_eq!(fences.step(1_000 + AGAIN_NS), Step::Send(1));
        assert_eq!(fences.step(1_000 + PATIENCE_NS), over(PATIENCE_NS, &[A], true));
        fences.passed(A, 1);
        fences.begin(10, BTreeSet::new(), 5_000);
        assert_eq!(fences.step(5_000), Step::Send(2));
        fences.confirmed();
        assert!(matches!(fences.step(5_001), Step::Over { asked: 10, took_ns: 1, .. }));
    }

    #[test]
    fn a_node_that_has_ended_is_not_waited_for() {
        let mut fences = begun(&[A]);
        fences.is_gone(A);
        fences.confirmed();
        assert_eq!(fences.step(1_500), over(500, &[], false));
    }
}
