//! How a rank tree changes its shape: splits on the way down, merges on the way up.

use super::columns::{SortKey, WIDTH};
use super::node::{Leaf, Node};
use super::{MERGED, Path, RankTree, SPARSE};

impl<S: SortKey> RankTree<S> {
    /// Makes the first leaf and the root above it.
    pub(super) fn plant(&mut self) {
        let leaf = self.new_leaf();
        self.root = self.new_node(Node::of(leaf, 0));
        self.height = 1;
    }

    fn new_leaf(&mut self) -> u32 {
        self.free_leaves.pop().unwrap_or_else(|| self.leaves.push(Leaf::new()))
    }

    fn new_node(&mut self, node: Node<S>) -> u32 {
        match self.free_nodes.pop() {
            Some(free) => {
                self.nodes[free] = node;
                free
            }
            None => self.nodes.push(node),
        }
    }

    /// Splits the full nodes on the way to a key, and its leaf if that is full.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&mut self, score: &S, tie: i64) {
        self.shape += 1;
        if self.nodes[self.root].len == WIDTH {
            let total = self.nodes[self.root].total();
            self.root = self.new_node(Node::of(self.root, total));
            self.height += 1;
        }
        let mut node = self.root;
        for level in 1..self.height {
            debug_assert!(level < super::MAX_HEIGHT);
            let mut slot = self.nodes[node].slot(score, tie);
            if self.nodes[self.nodes[node].children[slot]].len == WIDTH {
                self.split_node(node, slot);
                slot = self.nodes[node].slot(score, tie);
            }
            node = self.nodes[node].children[slot];
        }
        let slot = self.nodes[node].slot(score, tie);
        if self.nodes[node].counts[slot] as usize == WIDTH {
            self.split_leaf(node, slot);
        }
    }

    fn split_node(&mut self, parent: u32, slot: usize) {
        let child = self.nodes[parent].children[slot];
        let (upper, fence) = self.nodes[child].split();
        let (lower_total, upper_total) = (self.nodes[child].total(), upper.total());
        let upper = self.new_node(upper);
        let parent = &mut self.nodes[parent];
        parent.counts[slot] = lower_total;
        parent.add_child(slot, fence, upper, upper_total);
    }

    fn split_leaf(&mut self, parent: u32, slot: usize) {
        const HALF: usize = WIDTH / 2;
        let lower = self.nodes[parent].children[slot];
        let upper = self.new_leaf();
        let (from, to) = self.leaves.pair_mut(lower, upper);
        let moved = to.append(0, from, HALF, WIDTH);
        let fence = (to.keys.scores[0].clone(), to.keys.ties[0]);
        let parent = &mut self.nodes[parent];
        parent.counts[slot] = HALF as u32;
        parent.add_child(slot, fence, upper, moved as u32);
    }

    /// Merges the leaf of a path with a neighbour if both fit, and the nodes above it likewise.
    #[cold]
    #[inline(never)]
    pub(super) fn merge_around(&mut self, path: &Path) {
        let (node, slot) = path.steps[self.height - 1];
        let fits = |counts: &[u32], at: usize| counts[at] as usize + counts[at + 1] as usize <= MERGED;
        let Some(at) = neighbours(slot, self.nodes[node].len, |at| fits(&self.nodes[node].counts, at)) else {
            return;
        };
        self.shape += 1;
        self.merge_leaves(node, at);
        for level in (0..self.height - 1).rev() {
            let (node, slot) = path.steps[level];
            let inner = &self.nodes[node];
            let len = |at: usize| self.nodes[inner.children[at]].len;
            if len(slot as usize) >= SPARSE {
                break;
            }
            let Some(at) = neighbours(slot, inner.len, |at| len(at) + len(at + 1) <= MERGED) else { break };
            self.merge_nodes(node, at);
        }
        while self.height > 1 && self.nodes[self.root].len == 1 {
            self.free_nodes.push(self.root);
            self.root = self.nodes[self.root].children[0];
            self.height -= 1;
        }
    }

    fn merge_leaves(&mut self, parent: u32, at: usize) {
        let parent = &mut self.nodes[parent];
        let (one, next) = (parent.children[at], parent.children[at + 1]);
        let (own, moved) = (parent.counts[at] as usize, parent.counts[at + 1] as usize);
        parent.remove_child_after(at);
        parent.counts[at] = (own + moved) as u32;
        let (to, from) = self.leaves.pair_mut(one, next);
        to.append(own, from, 0, moved);
        self.free_leaves.push(next);
    }

    fn merge_nodes(&mut self, parent: u32, at: usize) {
        let parent = &mut self.nodes[parent];
        let (one, next) = (parent.children[at], parent.children[at + 1]);
        parent.counts[at] += parent.counts[at + 1];
        let fence = parent.remove_child_after(at);
        let (to, from) = self.nodes.pair_mut(one, next);
        to.absorb(from, fence);
        self.free_nodes.push(next);
    }
}

/// The lower of two neighbours that include `slot` and may merge.
fn neighbours(slot: u32, len: usize, may_merge: impl Fn(usize) -> bool) -> Option<usize> {
    let slot = slot as usize;
    let pairs = [slot.checked_sub(1), (slot + 1 < len).then_some(slot)];
    pairs.into_iter().flatten().find(|&at| may_merge(at))
}
