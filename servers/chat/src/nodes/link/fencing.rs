//! The fence: it begins when somebody asks, and ends when everybody has answered or the patience is over.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use servers_shared::clock;
use servers_shared::nats::NodeId;

use super::super::fences::Step;
use super::super::message::{NODES, Word};
use super::super::{NO_ROOM, held};
use super::{Link, Linked};
use crate::shared::Shared;

impl Link {
    /// Begins, sends and ends the fence.
    pub(super) fn fence(&mut self, shared: &Shared) {
        let now_ns = clock::now_ns();
        if self.broker.is_up() && self.broker.confirmed() >= self.fence_ping && self.fence_ping > 0 {
            self.fences.confirmed();
        }
        let asked = self.nodes.asked.load(SeqCst);
        if !self.fences.is_under_way() && asked > self.nodes.answered() {
            self.fences.begin(asked, self.peers.there(), now_ns);
        }
        if self.fences.is_under_way() && !self.broker.is_up() {
            let over = self.fences.end(now_ns);
            return self.fence_is_over(over, shared);
        }
        match self.fences.step(now_ns) {
            Step::Wait => {}
            Step::Send(number) => self.send_fence(number),
            over @ Step::Over { .. } => self.fence_is_over(over, shared),
        }
    }

    fn send_fence(&mut self, number: u64) {
        let dirty = |linked: &&Linked| linked.next > linked.fenced;
        let dirty: Vec<u32> = self.rooms.values().filter(dirty).map(|linked| linked.room.id()).collect();
        for id in dirty {
            if let Some(linked) = self.rooms.get_mut(&id) {
                linked.fencing = linked.next;
            }
            // A line that was lost behind all others shows by this.
            self.tell_numbers(id);
        }
        self.broker.publish(NODES, &[Word::Fence { number }.written(self.me).as_bytes()]);
        self.fence_ping = self.broker.ping();
    }

    fn fence_is_over(&mut self, over: Step, shared: &Shared) {
        let Step::Over { asked, took_ns, late, broker_is_late } = over else { return };
        let doubt = self.doubt(&late, broker_is_late);
        let counters = &self.nodes.counters;
        counters.fences.fetch_add(1, Relaxed);
        counters.fences_ns.fetch_add(took_ns, Relaxed);
        counters.fences_late.fetch_add(u64::from(doubt.is_some()), Relaxed);
        let there = self.peers.there();
        for linked in self.rooms.values_mut() {
            if doubt.is_none() {
                linked.fenced = linked.fencing.max(linked.fenced);
            }
            if (1..=asked).contains(&linked.settles) {
                linked.settles = 0;
                if doubt.is_none() {
                    there.iter().for_each(|node| linked.heard.begin(*node));
                }
                linked.room.confirm(&mut self.tells);
            }
        }
        *held(&self.nodes.doubt) = doubt.map(Arc::from);
        self.nodes.answered.store(asked, SeqCst);
        shared.tell(&mut self.tells);
        shared.threads_shared.iter().for_each(|thread| thread.bring(NO_ROOM));
    }

    fn doubt(&self, late: &[NodeId], broker_is_late: bool) -> Option<String> {
        if let Some((_, _, why)) = &self.lost {
            return Some(format!("the other nodes cannot be reached: {why}"));
        }
        if broker_is_late {
            return Some("the other nodes cannot be reached: the broker does not answer".to_owned());
        }
        let late: Vec<NodeId> =
            late.iter().copied().filter(|node| self.peers.there().contains(node)).collect();
        let names = self.peers.names(&late);
        (!late.is_empty())
            .then(|| format!("not all nodes have answered, so lines to them may be under way: {names}"))
    }
}
