//! The tree against a sorted vector, and its own invariants after every step.

use super::*;
use proptest::prelude::*;

impl<S: SortKey> RankTree<S> {
    /// Checks counts, fences and order below a node; returns its keys' number.
    fn check(&self, node: u32, height: usize, low: Option<(S, i64)>, high: Option<(S, i64)>) -> u64 {
        let inner = &self.nodes[node];
        let mut total = 0;
        for slot in 0..inner.len {
            let fence = |at: usize| (inner.fences.scores[at].clone(), inner.fences.ties[at]);
            let below = if slot == 0 { low.clone() } else { Some(fence(slot - 1)) };
            let above = if slot + 1 == inner.len { high.clone() } else { Some(fence(slot)) };
            let (child, count) = (inner.children[slot], u64::from(inner.counts[slot]));
            if height > 1 {
                assert_eq!(self.check(child, height - 1, below, above), count);
            } else {
                let leaf = &self.leaves[child];
                let keys: Vec<(S, i64)> = (0..count as usize)
                    .map(|at| (leaf.keys.scores[at].clone(), leaf.keys.ties[at]))
                    .collect();
                assert!(keys.is_sorted_by(|a, b| a < b));
                assert!(below.is_none_or(|fence| keys.first().is_none_or(|key| *key >= fence)));
                assert!(above.is_none_or(|fence| keys.last().is_none_or(|key| *key < fence)));
            }
            total += count;
        }
        total
    }

    fn check_all(&self) {
        if self.height > 0 {
            assert_eq!(self.check(self.root, self.height, None, None), self.len);
        }
    }
}

/// Inserts, moves and removes as `steps` say, beside a sorted vector.
fn compare<S: SortKey + From<i64> + std::fmt::Debug>(steps: &[(u8, i64, u64)]) {
    let mut tree = RankTree::<S>::new();
    let mut model: Vec<(S, u64, u32)> = Vec::new();
    let place = |model: &[(S, u64, u32)], score: &S, tie: u64| {
        model.partition_point(|(s, t, _)| (s, *t) < (score, tie))
    };
    for (number, &(kind, score, tie)) in steps.iter().enumerate() {
        let score = S::from(score);
        let at = place(&model, &score, tie);
        let taken = model.get(at).is_some_and(|(s, t, _)| *s == score && *t == tie);
        let chosen = (tie as usize).checked_rem(model.len());
        match (kind % 4, chosen) {
            (0, _) | (_, None) => {
                let rank = tree.insert(score.clone(), tie, number as u32);
                assert_eq!(rank, (!taken).then_some(at as u64));
                if !taken {
                    model.insert(at, (score, tie, number as u32));
                }
            }
            (1, Some(chosen)) => {
                let (s, t, _) = model.remove(chosen);
                assert!(tree.remove(&s, t));
                assert!(!tree.remove(&s, t));
            }
            (_, Some(chosen)) => {
                let (s, t, id) = model[chosen].clone();
                let moved = tree.relocate((&s, t), (score.clone(), tie), id);
                if taken {
                    assert_eq!(moved, None);
                } else {
                    model.remove(chosen);
                    let at = place(&model, &score, tie);
                    model.insert(at, (score.clone(), tie, id));
                    assert_eq!(moved, Some(at as u64));
                    assert_eq!(tree.rank(&score, tie), at as u64);
                }
            }
        }
        assert_eq!(tree.len(), model.len() as u64);
    }
    tree.check_all();
    for first in [0, 1, model.len() / 2, model.len()] {
        let mut seen = Vec::new();
        tree.visit(first as u64, &mut |s, t, id| {
            seen.push((s.clone(), t, id));
            true
        });
        assert_eq!(seen, model[first.min(model.len())..]);
    }
}

fn step() -> impl Strategy<Value = (u8, i64, u64)> {
    let score = prop_oneof![3 => -40..40_i64, 3 => any::<i64>(), 1 => Just(i64::MAX), 1 => Just(i64::MIN)];
    (any::<u8>(), score, prop_oneof![0..4_u64, any::<u64>()])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_history_agrees_with_a_sorted_vector(steps in prop::collection::vec(step(), 0..1500)) {
        compare::<i64>(&steps);
        compare::<Score>(&steps);
    }
}

/// Grows to several levels and shrinks to nothing: every kind of split, merge and loss of a root.
#[test]
fn a_tree_of_several_levels_grows_moves_and_shrinks_to_nothing() {
    const COUNT: u64 = 70_000;
    let mut random = fastrand::Rng::with_seed(7);
    for distinct in [10, i64::MAX] {
        let mut tree = RankTree::<i64>::new();
        let mut keys: Vec<(i64, u64)> = Vec::new();
        // In order, which leaves every node half full and the tree as high as it gets.
        keys.extend((0..COUNT).map(|_| (random.i64(0..distinct), random.u64(..))));
        keys.sort_unstable();
        for (id, key) in keys.iter().enumerate() {
            assert_eq!(tree.insert(key.0, key.1, id as u32), Some(id as u64));
        }
        assert!(tree.height >= 3, "{}", tree.height);
        tree.check_all();
        for (id, key) in keys.iter_mut().enumerate() {
            let new = (random.i64(0..distinct), random.u64(..));
            assert!(tree.relocate((&key.0, key.1), new, id as u32).is_some());
            *key = new;
        }
        tree.check_all();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        for (rank, key) in sorted.iter().enumerate() {
            assert_eq!(tree.rank(&key.0, key.1), rank as u64);
        }
        random.shuffle(&mut keys);
        for (number, key) in keys.iter().enumerate() {
            assert!(tree.remove(&key.0, key.1));
            if number % 5_000 == 0 {
                tree.check_all();
            }
        }
        assert_eq!((tree.len(), tree.height), (0, 1));
    }
}

#[test]
fn prepared_moves_stay_true_when_others_change_the_shape_between() {
    let mut tree = RankTree::<i64>::new();
    for id in 0..1_000 {
        tree.insert(i64::from(id), 0, id);
    }
    let prepared = tree.prepare((&500, 0), (&2_000, 0));
    for id in 1_000..5_000 {
        tree.insert(i64::from(id) + 1_000, 0, id);
    }
    assert_eq!(tree.relocate_prepared(prepared, (&500, 0), (2_000, 0), 500), None, "taken since");
    assert_eq!(tree.relocate_prepared(prepared, (&500, 0), (2_000, 1), 500), Some(1_000));
    tree.check_all();
}
