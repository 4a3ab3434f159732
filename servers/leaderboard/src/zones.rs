//! The order of a board over scores of any size.
//!
//! Three zones in a row: scores below the range of `i64`, within it, beyond it. Almost every score is in the middle
//! zone, whose keys are 16 bytes; the outer ones hold exact scores of any size. A rank is a rank within a zone plus the
//! sizes of the zones before. So no score, however large, makes a board convert itself, and all operations stay O(log
//! n) for any mixture.
//! Here everything is sorted ascending by key; a descending board stores reversed scores (`rules`).
//! Generic over the ordered set, so that the peer (`indexset`) differs from our own tree in nothing else.

use std::collections::HashMap;

use super::Score;
use super::order::{RankTree, SortKey};

/// A key that sorts: a score, reversed on descending boards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Within the range of `i64`, without its lowest value.
    Narrow(i64),
    /// Outside.
    Wide(Score),
}

/// Stands for a wide key, whose score is kept in `Zones::wide`.
const WIDE: i64 = i64::MIN;

impl Key {
    #[inline(always)]
    pub(super) fn of(score: Score) -> Self {
        match score.as_i64() {
            Some(narrow) if narrow != WIDE => Self::Narrow(narrow),
            _ => Self::Wide(score),
        }
    }

    pub(super) fn into_score(self) -> Score {
        match self {
            Self::Narrow(narrow) => Score::from(narrow),
            Self::Wide(score) => score,
        }
    }
}

/// A member's place: its key, if that is narrow, and its tie. 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    narrow: i64,
    pub(super) tie: u64,
}

impl Place {
    /// The key, unless it is wide.
    #[inline(always)]
    pub(super) fn narrow(&self) -> Option<i64> {
        (self.narrow != WIDE).then_some(self.narrow)
    }

    /// The place of a narrow key.
    #[inline(always)]
    pub(super) fn of(narrow: i64, tie: u64) -> Self {
        debug_assert!(narrow != WIDE);
        Self { narrow, tie }
    }
}

/// An ordered set of keys with exact ranks, 0-based.
pub(super) trait OrderedSet<S>: Send + Sync {
    fn new() -> Self;
    fn len(&self) -> u64;
    /// `None`, and no change, if another member has exactly this key and keys must differ.
    fn insert(&mut self, score: S, tie: u64, id: u32) -> Option<u64>;
    fn remove(&mut self, score: &S, tie: u64, id: u32) -> bool;
    /// As `remove`, then `insert`; if the latter is refused, nothing is changed.
    fn relocate(&mut self, old: (&S, u64), new: (S, u64), id: u32) -> Option<u64>;
    fn rank(&self, score: &S, tie: u64, id: u32) -> u64;
    /// Calls `each` from rank `first` on until it returns `false`.
    fn visit(&self, first: u64, each: &mut dyn FnMut(&S, u64, u32) -> bool);
}

impl<S: SortKey + Send + Sync> OrderedSet<S> for RankTree<S> {
    fn new() -> Self {
        RankTree::new()
    }
    fn len(&self) -> u64 {
        RankTree::len(self)
    }
    fn insert(&mut self, score: S, tie: u64, id: u32) -> Option<u64> {
        RankTree::insert(self, score, tie, id)
    }
    fn remove(&mut self, score: &S, tie: u64, _: u32) -> bool {
        RankTree::remove(self, score, tie)
    }
    #[inline]
    fn relocate(&mut self, old: (&S, u64), new: (S, u64), id: u32) -> Option<u64> {
        RankTree::relocate(self, old, new, id)
    }
    #[inline]
    fn rank(&self, score: &S, tie: u64, _: u32) -> u64 {
        RankTree::rank(self, score, tie)
    }
    fn visit(&self, first: u64, each: &mut dyn FnMut(&S, u64, u32) -> bool) {
        RankTree::visit(self, first, each);
    }
}

impl<S: SortKey + Send + Sync> OrderedSet<S> for indexset::BTreeSet<(S, u64, u32)> {
    fn new() -> Self {
        Self::new()
    }
    fn len(&self) -> u64 {
        indexset::BTreeSet::len(self) as u64
    }
    fn insert(&mut self, score: S, tie: u64, id: u32) -> Option<u64> {
        let key = (score, tie, id);
        let rank = indexset::BTreeSet::rank(self, &key) as u64;
        indexset::BTreeSet::insert(self, key).then_some(rank)
    }
    fn remove(&mut self, score: &S, tie: u64, id: u32) -> bool {
        indexset::BTreeSet::remove(self, &(score.clone(), tie, id))
    }
    fn relocate(&mut self, old: (&S, u64), new: (S, u64), id: u32) -> Option<u64> {
        OrderedSet::remove(self, old.0, old.1, id);
        OrderedSet::insert(self, new.0, new.1, id)
    }
    fn rank(&self, score: &S, tie: u64, id: u32) -> u64 {
        indexset::BTreeSet::rank(self, &(score.clone(), tie, id)) as u64
    }
    fn visit(&self, first: u64, each: &mut dyn FnMut(&S, u64, u32) -> bool) {
        for (score, tie, id) in self.range_idx(first as usize..) {
            if !each(score, *tie, *id) {
                return;
            }
        }
    }
}

/// A kind of ordered set, for both kinds of key.
pub(super) trait Sets {
    type Set<S: SortKey + Send + Sync>: OrderedSet<S>;
}

/// The own tree.
pub(super) struct Trees;

impl Sets for Trees {
    type Set<S: SortKey + Send + Sync> = RankTree<S>;
}

/// `indexset`, what the own tree is compared with.
pub(super) struct IndexSets;

impl Sets for IndexSets {
    type Set<S: SortKey + Send + Sync> = indexset::BTreeSet<(S, u64, u32)>;
}

/// All members of a board in order. Ranks are 0-based.
pub(super) struct Zones<F: Sets> {
    low: F::Set<Score>,
    pub(super) middle: F::Set<i64>,
    high: F::Set<Score>,
    /// The keys of the members in the outer zones.
    wide: HashMap<u32, Score>,
}

impl<F: Sets> Zones<F> {
    pub(super) fn new() -> Self {
        let (low, high) = (OrderedSet::new(), OrderedSet::new());
        Self { low, middle: OrderedSet::new(), high, wide: HashMap::new() }
    }

    pub(super) fn len(&self) -> u64 {
        self.low.len() + self.middle.len() + self.high.len()
    }

    /// Members before the middle zone.
    #[inline(always)]
    pub(super) fn before_middle(&self) -> u64 {
        self.low.len()
    }

    pub(super) fn key(&self, id: u32, place: Place) -> Key {
        match place.narrow() {
            Some(narrow) => Key::Narrow(narrow),
            None => Key::Wide(self.wide[&id].clone()),
        }
    }

    /// Puts a new member in order. If its tie is taken among equal scores, `redraw` makes another of it.
    pub(super) fn insert(
        &mut self,
        id: u32,
        key: Key,
        mut tie: u64,
        redraw: &mut dyn FnMut(u64) -> u64,
    ) -> (u64, Place) {
        loop {
            if let Some((rank, place)) = self.try_insert(id, &key, tie) {
                return (rank, place);
            }
            tie = redraw(tie);
        }
    }

    fn try_insert(&mut self, id: u32, key: &Key, tie: u64) -> Option<(u64, Place)> {
        let (rank, narrow) = match key {
            Key::Narrow(narrow) => (self.middle.insert(*narrow, tie, id)? + self.before_middle(), *narrow),
            Key::Wide(score) => {
                let (zone, before) = if score.is_negative() {
                    (&mut self.low, 0)
                } else {
                    (&mut self.high, self.low.len() + self.middle.len())
                };
                let rank = zone.insert(score.clone(), tie, id)? + before;
                self.wide.insert(id, score.clone());
                (rank, WIDE)
            }
        };
        Some((rank, Place { narrow, tie }))
    }

    pub(super) fn remove(&mut self, id: u32, place: Place) -> Key {
        let key = self.key(id, place);
        let found = match &key {
            Key::Narrow(narrow) => self.middle.remove(narrow, place.tie, id),
            Key::Wide(score) => {
                self.wide.remove(&id);
                let zone = if score.is_negative() { &mut self.low } else { &mut self.high };
                zone.remove(score, place.tie, id)
            }
        };
        debug_assert!(found, "every member is in order");
        key
    }

    /// Moves a member to another key or tie, which differ from `old`. Returns its rank.
    #[inline]
    pub(super) fn relocate(
        &mut self,
        id: u32,
        old: Place,
        key: Key,
        mut tie: u64,
        redraw: &mut dyn FnMut(u64) -> u64,
    ) -> (u64, Place) {
        if let (Some(from), Key::Narrow(to)) = (old.narrow(), &key) {
            loop {
                if let Some(rank) = self.middle.relocate((&from, old.tie), (*to, tie), id) {
                    return (rank + self.before_middle(), Place::of(*to, tie));
                }
                tie = redraw(tie);
            }
        }
        self.remove(id, old);
        self.insert(id, key, tie, redraw)
    }

    #[inline]
    pub(super) fn rank(&self, id: u32, place: Place) -> u64 {
        if let Some(narrow) = place.narrow() {
            return self.middle.rank(&narrow, place.tie, id) + self.before_middle();
        }
        let score = &self.wide[&id];
        if score.is_negative() {
            return self.low.rank(score, place.tie, id);
        }
        self.low.len() + self.middle.len() + self.high.rank(score, place.tie, id)
    }

    /// Calls `each` with (key, tie, id) from rank `first` on, at most `limit` times.
    pub(super) fn visit(&self, first: u64, limit: usize, mut each: impl FnMut(Key, u64, u32)) {
        let mut left = limit;
        let mut take = |key: Key, tie: u64, id: u32| {
            if left > 0 {
                left -= 1;
                each(key, tie, id);
            }
            left > 0
        };
        let (low, middle) = (self.low.len(), self.middle.len());
        self.low.visit(first, &mut |score, tie, id| take(Key::Wide(score.clone()), tie, id));
        self.middle
            .visit(first.saturating_sub(low), &mut |score, tie, id| take(Key::Narrow(*score), tie, id));
        self.high.visit(first.saturating_sub(low + middle), &mut |score, tie, id| {
            take(Key::Wide(score.clone()), tie, id)
        });
    }
}
