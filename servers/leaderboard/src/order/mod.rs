//! The order of a board: keys in sorted order with exact ranks, the structure that decides how fast a board is.
//!
//! A B+ tree of width 64 whose inner nodes count the members below each child. A rank is the sum of the counts to the
//! left of the path plus the position in the leaf; the member of a rank is found by the same counts. All operations are
//! O(log n), in practice three inner nodes that stay in the cache and one leaf that does not.
//!
//! With a million members the time goes into cache and TLB misses, not into comparisons. Hence: scores, ties and ids
//! are columns, so that a search reads scores only; searches count without branches (`columns`); leaves are on huge
//! pages (`memory`); a move prefetches the lines of its old and its new leaf before it waits for either; and a bulk
//! prepares many moves before it makes the first (`prepare`, `relocate_prepared`).
//! Invariant: no two keys are equal; `count` of a child is the number of keys below it.
//! Units: ranks here are 0-based, the number of keys below.

mod columns;
mod node;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use columns::SortKey;
use columns::{WIDTH, plain_tie, stored_tie};
use node::{Leaf, Node, prefetch_change, prefetch_search};

use super::Score;
use super::memory::Chunked;

/// A leaf with fewer members is merged with a neighbour where both fit into `MERGED`.
const SPARSE: usize = 20;
/// The most entries that a merge leaves: far enough below `WIDTH` that the next insertion does not split it again.
const MERGED: usize = 52;
/// Levels of inner nodes. Two neighbours hold more than `MERGED` entries together, so 4 billion members need 7.
const MAX_HEIGHT: usize = 8;

/// From the root to a leaf: which node and which of its children, level by level.
#[derive(Clone, Copy)]
struct Path {
    steps: [(u32, u32); MAX_HEIGHT],
    leaf: u32,
}

/// Where a move begins and ends; stays true until the tree changes its shape.
#[derive(Clone, Copy)]
pub(crate) struct Prepared {
    from: Path,
    to: Path,
    shape: u64,
}

/// The leaf of a key, and how many keys lie before that leaf; true until the tree changes.
#[derive(Clone, Copy)]
pub(crate) struct Located {
    leaf: u32,
    len: usize,
    before: u64,
}

/// Keys (score, tie) with the id of their member, in order, with exact ranks.
pub(crate) struct RankTree<S> {
    leaves: Chunked<Leaf<S>>,
    nodes: Chunked<Node<S>>,
    free_leaves: Vec<u32>,
    free_nodes: Vec<u32>,
    root: u32,
    /// Levels of inner nodes; 0 until the first key comes.
    height: usize,
    len: u64,
    /// Goes up with every split and merge, which make prepared paths untrue.
    shape: u64,
}

/// Runs the vector form of a method where the processor has AVX2, else the same code compiled without.
macro_rules! vectorised {
    ($self:ident . $wide:ident | $plain:ident ( $($argument:expr),* )) => {{
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, and the method needs nothing else.
            return unsafe { $self.$wide($($argument),*) };
        }
        $self.$plain($($argument),*)
    }};
}

impl<S: SortKey> RankTree<S> {
    pub(crate) fn new() -> Self {
        Self {
            leaves: Chunked::new(),
            nodes: Chunked::new(),
            free_leaves: Vec::new(),
            free_nodes: Vec::new(),
            root: 0,
            height: 0,
            len: 0,
            shape: 0,
        }
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[inline(always)]
    fn descend(&self, score: &S, tie: i64) -> Path {
        let mut path = Path { steps: [(0, 0); MAX_HEIGHT], leaf: self.root };
        for step in &mut path.steps[..self.height] {
            let node = &self.nodes[path.leaf];
            let slot = node.slot(score, tie);
            *step = (path.leaf, slot as u32);
            path.leaf = node.children[slot];
        }
        path
    }

    /// Members in the leaf of a path.
    #[inline(always)]
    fn count(&self, path: &Path) -> usize {
        let (node, slot) = path.steps[self.height - 1];
        self.nodes[node].counts[slot as usize] as usize
    }

    /// Keys in the leaves before that of a path.
    #[inline(always)]
    fn before(&self, path: &Path) -> u64 {
        // A loop and not `sum`: the closure would be compiled separately, without AVX2.
        let mut before = 0;
        for &(node, slot) in &path.steps[..self.height] {
            before += self.nodes[node].before(slot as usize);
        }
        before
    }

    #[inline(always)]
    fn add_to_counts(&mut self, path: &Path, change: i32) {
        for &(node, slot) in &path.steps[..self.height] {
            let count = &mut self.nodes[node].counts[slot as usize];
            *count = count.wrapping_add_signed(change);
        }
    }

    /// How many keys are below (score, tie).
    #[inline]
    pub(crate) fn rank(&self, score: &S, tie: u64) -> u64 {
        if self.height == 0 {
            return 0;
        }
        vectorised!(self.rank_avx2 | rank_here(score, stored_tie(tie)))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn rank_avx2(&self, score: &S, tie: i64) -> u64 {
        self.rank_here(score, tie)
    }

    #[inline(always)]
    fn rank_here(&self, score: &S, tie: i64) -> u64 {
        let located = self.locate_here(score, tie);
        self.rank_located_here(&located, score, tie)
    }

    /// Finds the leaf of a key and asks for its cache lines, for `rank_located`. The tree is not empty.
    #[inline]
    pub(crate) fn locate(&self, score: &S, tie: u64) -> Located {
        vectorised!(self.locate_avx2 | locate_here(score, stored_tie(tie)))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn locate_avx2(&self, score: &S, tie: i64) -> Located {
        self.locate_here(score, tie)
    }

    #[inline(always)]
    fn locate_here(&self, score: &S, tie: i64) -> Located {
        let path = self.descend(score, tie);
        let len = self.count(&path);
        prefetch_search(self.leaves.place(path.leaf), len);
        Located { leaf: path.leaf, len, before: self.before(&path) }
    }

    /// As `rank`, for a key that was located in the tree as it is.
    #[inline]
    pub(crate) fn rank_located(&self, located: &Located, score: &S, tie: u64) -> u64 {
        vectorised!(self.rank_located_avx2 | rank_located_here(located, score, stored_tie(tie)))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn rank_located_avx2(&self, located: &Located, score: &S, tie: i64) -> u64 {
        self.rank_located_here(located, score, tie)
    }

    #[inline(always)]
    fn rank_located_here(&self, located: &Located, score: &S, tie: i64) -> u64 {
        located.before + self.leaves[located.leaf].keys.below(located.len, score, tie, false) as u64
    }

    /// Finds the leaves of both ends of a move and asks for their cache lines. The tree is not empty.
    #[inline]
    pub(crate) fn prepare(&self, old: (&S, u64), new: (&S, u64)) -> Prepared {
        let (old, new) = ((old.0, stored_tie(old.1)), (new.0, stored_tie(new.1)));
        vectorised!(self.prepare_avx2 | prepare_here(old, new))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn prepare_avx2(&self, old: (&S, i64), new: (&S, i64)) -> Prepared {
        self.prepare_here(old, new)
    }

    #[inline(always)]
    fn prepare_here(&self, old: (&S, i64), new: (&S, i64)) -> Prepared {
        let from = self.descend(old.0, old.1);
        prefetch_change(self.leaves.place(from.leaf), self.count(&from));
        // Most scores grow by little, and stay in their leaf.
        let to = if self.leads_to(&from, new.0, new.1) { from } else { self.descend(new.0, new.1) };
        if to.leaf != from.leaf {
            prefetch_change(self.leaves.place(to.leaf), self.count(&to));
        }
        Prepared { from, to, shape: self.shape }
    }

    /// Whether a key is in the leaf of a path, as far as the lowest node knows: not for its first and last child.
    #[inline(always)]
    fn leads_to(&self, path: &Path, score: &S, tie: i64) -> bool {
        let (node, slot) = path.steps[self.height - 1];
        let (node, slot) = (&self.nodes[node], slot as usize);
        slot > 0 && slot + 1 < node.len && {
            let fence = |at: usize| (&node.fences.scores[at], node.fences.ties[at]);
            (score, tie) >= fence(slot - 1) && (score, tie) < fence(slot)
        }
    }

    /// Moves the member `id` from key `old`, which exists, to key `new`. Returns its rank.
    ///
    /// Errors: `None`, and nothing is changed, if `new` is taken.
    #[inline]
    pub(crate) fn relocate(&mut self, old: (&S, u64), new: (S, u64), id: u32) -> Option<u64> {
        let prepared = self.prepare(old, (&new.0, new.1));
        self.relocate_prepared(prepared, old, new, id)
    }

    /// As `relocate`, for a move that was prepared with the same keys.
    #[inline]
    pub(crate) fn relocate_prepared(
        &mut self,
        prepared: Prepared,
        old: (&S, u64),
        new: (S, u64),
        id: u32,
    ) -> Option<u64> {
        let (old, new) = ((old.0, stored_tie(old.1)), (new.0, stored_tie(new.1)));
        vectorised!(self.relocate_avx2 | relocate_here(prepared, old, new, id))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn relocate_avx2(&mut self, prepared: Prepared, old: (&S, i64), new: (S, i64), id: u32) -> Option<u64> {
        self.relocate_here(prepared, old, new, id)
    }

    #[inline(always)]
    fn relocate_here(
        &mut self,
        mut prepared: Prepared,
        old: (&S, i64),
        new: (S, i64),
        id: u32,
    ) -> Option<u64> {
        if prepared.shape != self.shape {
            prepared = self.prepare_here(old, (&new.0, new.1));
        }
        if self.count(&prepared.to) == WIDTH && prepared.from.leaf != prepared.to.leaf {
            self.make_room(&new.0, new.1);
            prepared = self.prepare_here(old, (&new.0, new.1));
        }
        let Prepared { from, to, .. } = prepared;
        let (from_len, to_len) = (self.count(&from), self.count(&to));
        let target = &self.leaves[to.leaf];
        let mut at = target.keys.below(to_len, &new.0, new.1, false);
        if at < to_len && target.keys.is(at, &new.0, new.1) {
            return None;
        }
        if from.leaf == to.leaf {
            let leaf = &mut self.leaves[from.leaf];
            let old_at = leaf.keys.below(from_len, old.0, old.1, false);
            debug_assert!(leaf.keys.is(old_at, old.0, old.1));
            at -= usize::from(old_at < at);
            leaf.shift(old_at, at, new, id);
            return Some(self.before(&to) + at as u64);
        }
        let (source, target) = self.leaves.pair_mut(from.leaf, to.leaf);
        let old_at = source.keys.below(from_len, old.0, old.1, false);
        debug_assert!(source.keys.is(old_at, old.0, old.1));
        source.close(old_at, from_len);
        target.open(at, to_len, new, id);
        self.add_to_counts(&from, -1);
        self.add_to_counts(&to, 1);
        let rank = self.before(&to) + at as u64;
        if from_len - 1 < SPARSE {
            self.merge_around(&from);
        }
        Some(rank)
    }

    /// Adds a key. Returns its rank.
    ///
    /// Errors: `None`, and nothing is changed, if the key is taken.
    pub(crate) fn insert(&mut self, score: S, tie: u64, id: u32) -> Option<u64> {
        let tie = stored_tie(tie);
        if self.height == 0 {
            self.plant();
        }
        let mut path = self.descend(&score, tie);
        if self.count(&path) == WIDTH {
            self.make_room(&score, tie);
            path = self.descend(&score, tie);
        }
        let len = self.count(&path);
        let leaf = &mut self.leaves[path.leaf];
        let at = leaf.keys.below(len, &score, tie, false);
        if at < len && leaf.keys.is(at, &score, tie) {
            return None;
        }
        leaf.open(at, len, (score, tie), id);
        self.add_to_counts(&path, 1);
        self.len += 1;
        Some(self.before(&path) + at as u64)
    }

    /// Removes a key. Returns whether it existed.
    pub(crate) fn remove(&mut self, score: &S, tie: u64) -> bool {
        let tie = stored_tie(tie);
        if self.height == 0 {
            return false;
        }
        let path = self.descend(score, tie);
        let len = self.count(&path);
        let leaf = &mut self.leaves[path.leaf];
        let at = leaf.keys.below(len, score, tie, false);
        if at == len || !leaf.keys.is(at, score, tie) {
            return false;
        }
        leaf.close(at, len);
        self.add_to_counts(&path, -1);
        self.len -= 1;
        if len - 1 < SPARSE {
            self.merge_around(&path);
        }
        true
    }

    /// Calls `each` with the key and member of every rank from `first` on, until it returns `false`.
    pub(crate) fn visit(&self, first: u64, each: &mut dyn FnMut(&S, u64, u32) -> bool) {
        let mut rank = first;
        while rank < self.len {
            // Leaves have no links to each other: one descent per leaf costs less than maintaining links.
            let (mut node, mut left, mut len) = (self.root, rank, 0);
            for _ in 0..self.height {
                let inner = &self.nodes[node];
                let mut slot = 0;
                while left >= u64::from(inner.counts[slot]) {
                    left -= u64::from(inner.counts[slot]);
                    slot += 1;
                }
                (node, len) = (inner.children[slot], inner.counts[slot] as usize);
            }
            let leaf = &self.leaves[node];
            for at in left as usize..len {
                if !each(&leaf.keys.scores[at], plain_tie(leaf.keys.ties[at]), leaf.ids[at]) {
                    return;
                }
            }
            rank += len as u64 - left;
        }
    }
}
