//! Leaves and inner nodes of a rank tree: splitting, merging, counting.

use super::columns::{Keys, SortKey, WIDTH, shift};
use crate::memory::prefetch;

/// Up to `WIDTH` members in order. How many it holds is in its parent's `counts`.
#[repr(C, align(64))]
pub(super) struct Leaf<S> {
    pub(super) keys: Keys<S>,
    pub(super) ids: [u32; WIDTH],
}

impl<S: SortKey> Leaf<S> {
    pub(super) fn new() -> Self {
        Self { keys: Keys::new(), ids: [0; WIDTH] }
    }

    #[inline(always)]
    pub(super) fn open(&mut self, at: usize, len: usize, key: (S, i64), id: u32) {
        self.keys.open(at, len, key.0, key.1);
        self.ids.copy_within(at..len, at + 1);
        self.ids[at] = id;
    }

    #[inline(always)]
    pub(super) fn close(&mut self, at: usize, len: usize) {
        self.keys.close(at, len);
        self.ids.copy_within(at + 1..len, at);
    }

    /// Replaces the key at `from` by another of the same member at `to`, moving those in between by one.
    #[inline(always)]
    pub(super) fn shift(&mut self, from: usize, to: usize, key: (S, i64), id: u32) {
        self.keys.shift(from, to, key.0, key.1);
        shift(&mut self.ids, from, to, id);
    }

    /// Appends the members `from..len` of `other` after the first `own`. Returns how many.
    pub(super) fn append(&mut self, own: usize, other: &mut Self, from: usize, len: usize) -> usize {
        let moved = self.keys.append(own, &mut other.keys, from, len);
        self.ids[own..own + moved].copy_from_slice(&other.ids[from..len]);
        moved
    }
}

/// Asks for the cache lines of the first `bytes` bytes of a column.
#[inline(always)]
fn prefetch_column<T>(column: *const T, bytes: usize) {
    for line in 0..bytes.div_ceil(64) {
        prefetch(column.cast::<u8>().wrapping_add(line * 64));
    }
}

/// Asks for what a search in the first `len` members of a leaf reads.
#[inline(always)]
pub(super) fn prefetch_search<S>(leaf: *const Leaf<S>, len: usize) {
    prefetch_column(leaf, len * size_of::<S>());
}

/// Asks for what a search in the first `len` members of a leaf reads, and a change to them writes.
#[inline(always)]
pub(super) fn prefetch_change<S>(leaf: *const Leaf<S>, len: usize) {
    prefetch_search(leaf, len);
    let ties = leaf.wrapping_byte_add(WIDTH * size_of::<S>());
    prefetch_column(ties, len * size_of::<i64>());
    prefetch_column(ties.wrapping_byte_add(WIDTH * size_of::<i64>()), len * size_of::<u32>());
}

/// An inner node: children in order, how many members are below each, and the keys that separate them.
///
/// Invariant: keys below child i are < fence i ≤ keys below child i + 1. Fences need not be keys that exist.
#[repr(C, align(64))]
pub(super) struct Node<S> {
    pub(super) fences: Keys<S>,
    pub(super) counts: [u32; WIDTH],
    pub(super) children: [u32; WIDTH],
    /// Children, from 1 to `WIDTH`; one fence fewer.
    pub(super) len: usize,
}

impl<S: SortKey> Node<S> {
    pub(super) fn of(child: u32, count: u32) -> Self {
        let mut node = Self { fences: Keys::new(), counts: [0; WIDTH], children: [0; WIDTH], len: 1 };
        node.children[0] = child;
        node.counts[0] = count;
        node
    }

    /// The child below which a key is.
    #[inline(always)]
    pub(super) fn slot(&self, score: &S, tie: i64) -> usize {
        self.fences.below(self.len - 1, score, tie, true)
    }

    /// Members below the children before `slot`.
    #[inline(always)]
    pub(super) fn before(&self, slot: usize) -> u64 {
        // Counted by cache lines with a mask: a loop of `slot` steps would mispredict its end almost every time.
        const GROUP: usize = 16;
        let mut sum = [0_u32; GROUP];
        for (number, group) in self.counts.as_chunks::<GROUP>().0[..slot.div_ceil(GROUP)].iter().enumerate() {
            for (lane, (sum, count)) in sum.iter_mut().zip(group).enumerate() {
                let wanted = number * GROUP + lane < slot;
                *sum += count & 0_u32.wrapping_sub(u32::from(wanted));
            }
        }
        sum.iter().map(|&part| u64::from(part)).sum()
    }

    /// Members below this node.
    pub(super) fn total(&self) -> u32 {
        self.counts[..self.len].iter().sum()
    }

    /// Inserts a child after `slot`, separated by `fence`. The node has room.
    pub(super) fn add_child(&mut self, slot: usize, fence: (S, i64), child: u32, count: u32) {
        self.fences.open(slot, self.len - 1, fence.0, fence.1);
        self.counts.copy_within(slot + 1..self.len, slot + 2);
        self.children.copy_within(slot + 1..self.len, slot + 2);
        self.counts[slot + 1] = count;
        self.children[slot + 1] = child;
        self.len += 1;
    }

    /// Removes the child after `slot` and the fence between them. Returns the fence.
    pub(super) fn remove_child_after(&mut self, slot: usize) -> (S, i64) {
        let fence = (self.fences.scores[slot].clone(), self.fences.ties[slot]);
        self.fences.close(slot, self.len - 1);
        self.counts.copy_within(slot + 2..self.len, slot + 1);
        self.children.copy_within(slot + 2..self.len, slot + 1);
        self.len -= 1;
        fence
    }

    /// Moves the upper half of a full node into a new one. Returns it with the fence between the two.
    pub(super) fn split(&mut self) -> (Self, (S, i64)) {
        const HALF: usize = WIDTH / 2;
        let mut upper = Self::of(0, 0);
        upper.fences.append(0, &mut self.fences, HALF, WIDTH - 1);
        upper.children[..HALF].copy_from_slice(&self.children[HALF..]);
        upper.counts[..HALF].copy_from_slice(&self.counts[HALF..]);
        upper.len = HALF;
        let fence = (self.fences.scores[HALF - 1].clone(), self.fences.ties[HALF - 1]);
        self.fences.scores[HALF - 1] = S::filler();
        self.len = HALF;
        (upper, fence)
    }

    /// Takes over all children of the next node, from which `fence` separates this one. Both fit into one.
    pub(super) fn absorb(&mut self, next: &mut Self, fence: (S, i64)) {
        (self.fences.scores[self.len - 1], self.fences.ties[self.len - 1]) = fence;
        self.fences.append(self.len, &mut next.fences, 0, next.len - 1);
        let both = self.len + next.len;
        self.children[self.len..both].copy_from_slice(&next.children[..next.len]);
        self.counts[self.len..both].copy_from_slice(&next.counts[..next.len]);
        self.len = both;
    }
}
