//! How many of a worker's members are certainly ahead of a score, so that a rank that is too good is detected at once.
//!
//! Scores only grow, so an earlier score is a lower bound for ever. A pass over the members inspects a few of them with
//! each acknowledged update and counts their scores in classes. The result of a complete pass holds for each request
//! sent after it ended. Checking a rank takes constant time for any number of members; the price is that a member whose
//! score grew since, or is in the same class, is not counted.

/// Classes per doubling of the score.
const CLASSES: usize = 8;
const CLASS_BITS: u32 = CLASSES.trailing_zeros();
/// For each score of 63 bits.
pub const CLASSES_ALL: usize = (64 - CLASS_BITS as usize) * CLASSES;
/// Members that are looked at for each acknowledged update.
const LOOKS: usize = 4;
/// Updates before the first pass. The pause doubles with each pass, up to 64 times this: short runs are checked early,
/// and long ones spend little on it.
const FIRST_PAUSE: usize = 16;
const DOUBLINGS: u64 = 6;
/// A request that was sent before these passes is held against nothing.
const PASSES_KEPT: usize = 8;

type Counts = [u32; CLASSES_ALL];

/// See the module.
pub struct RankBounds {
    /// of the pass that is under way, by class
    counts: Box<Counts>,
    /// of the last whole passes, by their number: members in this class or a higher one
    at_least: Box<[Counts; PASSES_KEPT]>,
    /// the member that is looked at next
    next: usize,
    /// acknowledged since the last pass
    updates: usize,
    passes: u64,
}

impl RankBounds {
    pub fn new() -> Self {
        RankBounds {
            counts: Box::new([0; CLASSES_ALL]),
            at_least: Box::new([[0; CLASSES_ALL]; PASSES_KEPT]),
            next: 0,
            updates: 0,
            passes: 0,
        }
    }

    /// Whole passes by now.
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// An update was acknowledged: looks at further members of all `members`, whose scores are these at least.
    pub fn look(&mut self, members: usize, score_of: impl Fn(usize) -> i64) {
        self.updates += 1;
        if self.updates <= FIRST_PAUSE << self.passes.min(DOUBLINGS) {
            return;
        }
        let end = (self.next + LOOKS).min(members);
        for member in self.next..end {
            self.counts[class(score_of(member))] += 1;
        }
        self.next = end;
        if self.next < members {
            return;
        }
        (self.next, self.updates) = (0, 0);
        self.passes += 1;
        let mut sum = 0;
        let at_least = &mut self.at_least[kept_at(self.passes)];
        for (at_least, count) in at_least.iter_mut().zip(self.counts.iter_mut()).rev() {
            sum += std::mem::take(count);
            *at_least = sum;
        }
    }

    /// How many members, at least, had more points than `score` when a request was sent. `passes`: those that were complete
    /// by then.
    pub fn of(&self, score: i64, passes: u64) -> u32 {
        let is_kept = self.passes.checked_sub(passes).is_some_and(|ago| ago < PASSES_KEPT as u64);
        let above = class(score) + 1;
        if is_kept { self.at_least[kept_at(passes)].get(above).copied().unwrap_or(0) } else { 0 }
    }
}

fn kept_at(passes: u64) -> usize {
    passes as usize % PASSES_KEPT
}

/// The class of a score; those below 1 are of the first one.
pub fn class(score: i64) -> usize {
    let score = score.max(0) as u64;
    let octave = (63 - CLASS_BITS).saturating_sub(score.leading_zeros());
    let within = (score >> octave) as usize;
    octave as usize * CLASSES + within
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// After passes over these scores.
    fn passed(scores: &[i64], passes: u64) -> RankBounds {
        let mut ahead = RankBounds::new();
        while ahead.passes() < passes {
            ahead.look(scores.len(), |member| scores[member]);
        }
        ahead
    }

    proptest! {
        #[test]
        fn classes_follow_their_scores(one in 0..=i64::MAX, other in 0..=i64::MAX) {
            prop_assert!(class(one.max(other)) < CLASSES_ALL);
            prop_assert!(class(one.min(other)) <= class(one.max(other)));
        }

        #[test]
        fn no_more_are_counted_than_there_are_and_almost_as_many(
            scores in prop::collection::vec(0..100_000i64, 1..300), score in 0..100_000i64
        ) {
            let counted = passed(&scores, 2).of(score, 2) as usize;
            let more_than = |score: i64| scores.iter().filter(|other| **other > score).count();
            prop_assert!(counted <= more_than(score));
            prop_assert!(counted >= more_than(score + score / CLASSES as i64 + 1));
        }
    }

    #[test]
    fn a_pass_says_nothing_of_requests_that_were_sent_before_its_end() {
        let mut ahead = passed(&[10, 20, 30], 1);
        assert_eq!([9, 10, 29, 30].map(|score| ahead.of(score, 1)), [3, 2, 1, 0]);
        assert_eq!([ahead.of(9, 0), ahead.of(9, 2)], [0, 0]);
        assert_eq!([ahead.of(-1, 1), ahead.of(i64::MIN, 1), ahead.of(i64::MAX, 1)], [3, 3, 0]);
        let mut further = |passes: u64| {
            while ahead.passes() < passes {
                ahead.look(3, |_| 40);
            }
            [0, 1, passes].map(|sent| ahead.of(35, sent))
        };
        assert_eq!(further(2), [0, 0, 3], "one that was sent before is held against what was known then");
        assert_eq!(further(PASSES_KEPT as u64), [0, 0, 3]);
        assert_eq!(further(PASSES_KEPT as u64 + 1), [0, 0, 3], "and later against nothing");
        assert_eq!([ahead.of(9, 1), ahead.of(9, 2)], [0, 3]);
    }

    #[test]
    fn a_pass_of_many_members_takes_as_many_updates_as_it_needs() {
        let scores = vec![7; 10 * LOOKS];
        let mut ahead = RankBounds::new();
        let updates = (1..).find(|_| {
            ahead.look(scores.len(), |member| scores[member]);
            ahead.passes() == 1
        });
        assert_eq!(updates, Some(FIRST_PAUSE + 10));
        assert_eq!(ahead.of(6, 1) as usize, scores.len());
    }
}
