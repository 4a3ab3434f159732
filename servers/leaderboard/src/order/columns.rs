//! Sorted columns of at most 64 keys, searched by counting.
//!
//! A key is (score, tie). Scores and ties are separate columns: almost every search is decided by the scores, and the
//! column of ties is not read. Counting all keys below another needs no data-dependent branch, so nothing is
//! mispredicted, and the compiler vectorises it.
//! Invariant: entries from `len` on hold `Column::FILLER`-like values that never count as below a key.

/// The most entries of a leaf, and the most children of an inner node.
pub(super) const WIDTH: usize = 64;

/// Scores or ties are counted in groups of one cache line of `i64`.
const GROUP: usize = 8;

/// A tie as stored: the unsigned order of ties as the order of `i64`, for which vector comparisons exist.
#[inline(always)]
pub(super) fn stored_tie(tie: u64) -> i64 {
    (tie ^ (1 << 63)).cast_signed()
}

/// The inverse of `stored_tie`.
#[inline(always)]
pub(super) fn plain_tie(stored: i64) -> u64 {
    stored.cast_unsigned() ^ (1 << 63)
}

/// What a rank tree can sort by.
pub(crate) trait SortKey: Clone + Ord {
    /// The value of unused entries.
    fn filler() -> Self;

    /// How many of the first `len` scores, which are sorted, are below `score`.
    fn below(scores: &[Self; WIDTH], len: usize, score: &Self) -> usize;

    /// Puts `score` at `at`, moving `at..len` up by one. `len` < `WIDTH`.
    fn open(scores: &mut [Self; WIDTH], at: usize, len: usize, score: Self);

    /// Takes out the score at `at`, moving `at + 1..len` down by one.
    fn close(scores: &mut [Self; WIDTH], at: usize, len: usize);

    /// Replaces the score at `from` by `score` at `to`, moving those in between by one.
    fn shift(scores: &mut [Self; WIDTH], from: usize, to: usize, score: Self);
}

/// Replaces the entry at `from` by `value` at `to`, moving those in between by one.
#[inline(always)]
pub(super) fn shift<T: Copy>(column: &mut [T; WIDTH], from: usize, to: usize, value: T) {
    match from <= to {
        true => column.copy_within(from + 1..=to, from),
        false => column.copy_within(to..from, to + 1),
    }
    column[to] = value;
}

impl SortKey for i64 {
    #[inline(always)]
    fn filler() -> Self {
        i64::MAX
    }

    #[inline(always)]
    fn below(scores: &[Self; WIDTH], len: usize, score: &Self) -> usize {
        let groups = &scores.as_chunks::<GROUP>().0[..len.div_ceil(GROUP)];
        let mut counts = [0_i64; GROUP];
        for group in groups {
            for (count, each) in counts.iter_mut().zip(group) {
                *count += i64::from(each < score);
            }
        }
        counts.iter().sum::<i64>() as usize
    }

    #[inline(always)]
    fn open(scores: &mut [Self; WIDTH], at: usize, len: usize, score: Self) {
        scores.copy_within(at..len, at + 1);
        scores[at] = score;
    }

    #[inline(always)]
    fn close(scores: &mut [Self; WIDTH], at: usize, len: usize) {
        scores.copy_within(at + 1..len, at);
        scores[len - 1] = Self::filler();
    }

    #[inline(always)]
    fn shift(scores: &mut [Self; WIDTH], from: usize, to: usize, score: Self) {
        shift(scores, from, to, score);
    }
}

impl SortKey for super::Score {
    fn filler() -> Self {
        Self::ZERO
    }

    fn below(scores: &[Self; WIDTH], len: usize, score: &Self) -> usize {
        scores[..len].partition_point(|each| each < score)
    }

    fn open(scores: &mut [Self; WIDTH], at: usize, len: usize, score: Self) {
        scores[len] = score;
        scores[at..=len].rotate_right(1);
    }

    fn close(scores: &mut [Self; WIDTH], at: usize, len: usize) {
        scores[at..len].rotate_left(1);
        scores[len - 1] = Self::filler();
    }

    fn shift(scores: &mut [Self; WIDTH], from: usize, to: usize, score: Self) {
        match from <= to {
            true => scores[from..=to].rotate_left(1),
            false => scores[to..=from].rotate_right(1),
        }
        scores[to] = score;
    }
}

/// Up to `WIDTH` keys in order; how many is known to the owner.
#[repr(C, align(64))]
pub(super) struct Keys<S> {
    pub(super) scores: [S; WIDTH],
    pub(super) ties: [i64; WIDTH],
}

impl<S: SortKey> Keys<S> {
    pub(super) fn new() -> Self {
        Self { scores: std::array::from_fn(|_| S::filler()), ties: [i64::MAX; WIDTH] }
    }

    /// How many of the first `len` keys are below (score, tie), or with `or_equal` not above it.
    #[inline(always)]
    pub(super) fn below(&self, len: usize, score: &S, tie: i64, or_equal: bool) -> usize {
        let mut count = S::below(&self.scores, len, score);
        if count < len && self.scores[count] == *score {
            count += self.ties_below(count, len, score, tie, or_equal);
        }
        count
    }

    /// Of the keys `from..len`, how many have this score and a lower tie. Few distinct scores make this common.
    #[inline(always)]
    fn ties_below(&self, from: usize, len: usize, score: &S, tie: i64, or_equal: bool) -> usize {
        // Keys of one score are sorted by tie, so the count is also the number of keys to pass.
        let mut count = 0;
        for at in from..len {
            let lower = (self.ties[at] < tie) | (or_equal & (self.ties[at] == tie));
            count += usize::from(lower & (self.scores[at] == *score));
        }
        count
    }

    #[inline(always)]
    pub(super) fn is(&self, at: usize, score: &S, tie: i64) -> bool {
        self.scores[at] == *score && self.ties[at] == tie
    }

    #[inline(always)]
    pub(super) fn open(&mut self, at: usize, len: usize, score: S, tie: i64) {
        S::open(&mut self.scores, at, len, score);
        self.ties.copy_within(at..len, at + 1);
        self.ties[at] = tie;
    }

    #[inline(always)]
    pub(super) fn close(&mut self, at: usize, len: usize) {
        S::close(&mut self.scores, at, len);
        self.ties.copy_within(at + 1..len, at);
    }

    /// Replaces the key at `from` by another at `to`, moving those in between by one.
    #[inline(always)]
    pub(super) fn shift(&mut self, from: usize, to: usize, score: S, tie: i64) {
        S::shift(&mut self.scores, from, to, score);
        shift(&mut self.ties, from, to, tie);
    }

    /// Appends the keys `from..len` of `other`, where only fillers remain. Returns how many.
    pub(super) fn append(&mut self, own: usize, other: &mut Self, from: usize, len: usize) -> usize {
        for at in from..len {
            self.scores[own + at - from] = std::mem::replace(&mut other.scores[at], S::filler());
            self.ties[own + at - from] = other.ties[at];
        }
        len - from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Score;
    use proptest::prelude::*;

    fn check<S: SortKey + From<i64> + std::fmt::Debug>(mut wanted: Vec<(i64, u64)>, probe: (i64, u64)) {
        wanted.truncate(WIDTH);
        let mut keys = Keys::<S>::new();
        let mut sorted: Vec<(i64, u64)> = Vec::new();
        for (score, tie) in wanted {
            let at = keys.below(sorted.len(), &S::from(score), stored_tie(tie), false);
            assert_eq!(at, sorted.iter().filter(|key| **key < (score, tie)).count());
            keys.open(at, sorted.len(), S::from(score), stored_tie(tie));
            sorted.insert(at, (score, tie));
        }
        // Each key in turn becomes the probe, and is then restored.
        for from in 0..sorted.len() {
            let was = sorted[from];
            for key in [probe, was] {
                let from =
                    sorted.iter().position(|each| *each == if key == was { probe } else { was }).unwrap();
                let mut to = keys.below(sorted.len(), &S::from(key.0), stored_tie(key.1), false);
                to -= usize::from(from < to);
                keys.shift(from, to, S::from(key.0), stored_tie(key.1));
                sorted.remove(from);
                sorted.insert(to, key);
                assert!(sorted.is_sorted());
                for (at, (score, tie)) in sorted.iter().enumerate() {
                    assert!(keys.is(at, &S::from(*score), stored_tie(*tie)));
                }
            }
        }
        while !sorted.is_empty() {
            let (score, tie) = (S::from(probe.0), stored_tie(probe.1));
            let below = sorted.iter().filter(|key| **key < probe).count();
            let not_above = sorted.iter().filter(|key| **key <= probe).count();
            assert_eq!(keys.below(sorted.len(), &score, tie, false), below);
            assert_eq!(keys.below(sorted.len(), &score, tie, true), not_above);
            let at = probe.0.unsigned_abs() as usize % sorted.len();
            keys.close(at, sorted.len());
            sorted.remove(at);
        }
    }

    fn value() -> impl Strategy<Value = i64> {
        prop_oneof![-3..3_i64, Just(i64::MAX), Just(i64::MIN), any::<i64>()]
    }

    fn tie() -> impl Strategy<Value = u64> {
        prop_oneof![0..3_u64, Just(u64::MAX), any::<u64>()]
    }

    proptest! {
        #[test]
        fn counts_agree_with_a_filter_for_narrow_and_wide_scores(
            keys in prop::collection::vec((value(), tie()), 0..80), probe in (value(), tie()),
        ) {
            check::<i64>(keys.clone(), probe);
            check::<Score>(keys, probe);
        }
    }
}
