//! Ranks from earlier answers. They show at once that a rank is too bad for its score, whoever else is on the board.
//!
//! Scores only grow and nobody leaves. Suppose A was reported at rank a with s points, and B, requested after that
//! answer arrived, is reported at rank b with fewer points. At the moment of A's rank, the members with s points or
//! more included everyone at a or better, A among them, so a ≤ their number. At the later moment of B's rank they all
//! still have s points or more, which is more than B has, so they are all ahead of B: their number ≤ b − 1. Hence a <
//! b. Otherwise one of the two ranks is wrong, whatever other clients did meanwhile: other workers, other programs,
//! members of earlier trials.
//! Both must be a score and a rank of one moment; `Members` excludes members that were updated while being requested.
//!
//! Only the worst reported rank of each class of scores is kept, and the state is numbered now and then: a request
//! stores the number, and is checked against what was reported before it was sent. Pure.

use super::rank_bounds::{CLASSES_ALL, class};

/// A new number is given after this many ranks.
const TOLD_PER_NUMBER: usize = 32;
/// A request that was sent before these numbers is held against nothing.
const KEPT: usize = 16;

/// A rank and the score that was reported with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankAnswer {
    pub rank: u64,
    pub score: i64,
}

type Worst = [RankAnswer; CLASSES_ALL];

/// See the module.
pub struct RankHistory {
    /// the worst rank of each class of scores
    worst: Box<Worst>,
    /// by number: the same, followed by the worst rank of all classes above this one
    known: Vec<(Worst, Worst)>,
    told: usize,
    numbers: u64,
}

impl RankHistory {
    pub fn new() -> Self {
        const NOTHING: Worst = [RankAnswer { rank: 0, score: 0 }; CLASSES_ALL];
        RankHistory { worst: Box::new(NOTHING), known: vec![(NOTHING, NOTHING); KEPT], told: 0, numbers: 0 }
    }

    /// What a request that is going to be sent remembers.
    pub fn number(&self) -> u64 {
        self.numbers
    }

    /// Records a reported rank that is believed.
    pub fn tell(&mut self, told: RankAnswer) {
        let worst = &mut self.worst[class(told.score)];
        // Of equal ranks the one with the higher score is the stronger evidence.
        if (told.rank, told.score) > (worst.rank, worst.score) {
            *worst = told;
        }
        self.told += 1;
        if self.told < TOLD_PER_NUMBER {
            return;
        }
        self.told = 0;
        self.numbers += 1;
        let (of_class, above) = &mut self.known[kept_at(self.numbers)];
        let mut worst_above = RankAnswer::default();
        for at in (0..CLASSES_ALL).rev() {
            (of_class[at], above[at]) = (self.worst[at], worst_above);
            if of_class[at].rank > worst_above.rank {
                worst_above = of_class[at];
            }
        }
    }

    /// One with more points that was reported at no better a rank, before a request with this number was sent; `None`:
    /// there is none.
    pub fn contradicted(&self, told: RankAnswer, number: u64) -> Option<RankAnswer> {
        let is_kept = number > 0 && self.numbers.checked_sub(number).is_some_and(|ago| ago < KEPT as u64);
        let (of_class, above) = &self.known[kept_at(number)];
        let at = class(told.score);
        let contradicts = |other: &RankAnswer| other.score > told.score && other.rank >= told.rank;
        [of_class[at], above[at]].into_iter().find(|other| is_kept && contradicts(other))
    }

    /// One of two ranks that contradict each other is wrong, and it may be this one: held against it, many right ones would be.
    pub fn forget(&mut self, told: RankAnswer) {
        let kept = self.known.iter_mut().flat_map(|(of_class, above)| [of_class, above]);
        for other in kept.chain([&mut *self.worst]).flatten().filter(|other| **other == told) {
            *other = RankAnswer::default();
        }
    }
}

fn kept_at(number: u64) -> usize {
    number as usize % KEPT
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A request: whom it is about, what it adds, how long it takes until the board and back.
    #[derive(Clone, Copy, Debug)]
    struct Request {
        member: usize,
        points: i64,
        there: u64,
        back: u64,
    }

    const MEMBERS: usize = 24;
    /// Of these, the first are requested; the others belong to other clients, and are updated without notice.
    const OWN: usize = 16;

    /// What the answers to these requests, sent one per unit of time, contradict. `lies`: what is reported instead of a
    /// rank.
    fn contradictions(requests: &[Request], ties: bool, lies: impl Fn(usize, u64) -> u64) -> usize {
        let mut events: Vec<(u64, u8, usize)> = Vec::new();
        for (at, request) in requests.iter().enumerate() {
            let sent = at as u64;
            events.push((sent, 0, at));
            events.push((sent + request.there, 1, at));
            events.push((sent + request.there + request.back, 2, at));
        }
        events.sort_unstable();
        let mut scores = [0i64; MEMBERS];
        let mut open = [0u32; MEMBERS];
        let mut changes = [0u32; MEMBERS];
        let mut behind = RankHistory::new();
        let mut sent = vec![(0, 0); requests.len()];
        let mut answers = vec![RankAnswer::default(); requests.len()];
        let mut found = 0;
        for (_, what, at) in events {
            let Request { member, points, .. } = requests[at];
            match what {
                0 => {
                    sent[at] = (behind.number(), changes[member] + open[member]);
                    open[member] += u32::from(points > 0);
                }
                1 => {
                    scores[member] += points;
                    let score = scores[member];
                    let ahead = |(other, of_other): (usize, &i64)| {
                        *of_other > score || !ties && *of_other == score && other < member
                    };
                    let ahead = scores.iter().enumerate().filter(|(other, of)| ahead((*other, of))).count();
                    answers[at] = RankAnswer { rank: lies(at, ahead as u64 + 1), score };
                }
                _ => {
                    if points > 0 {
                        open[member] -= 1;
                        changes[member] += 1;
                    }
                    let was_quiet =
                        open[member] == 0 && changes[member] == sent[at].1 + u32::from(points > 0);
                    if member < OWN && was_quiet {
                        found += usize::from(behind.contradicted(answers[at], sent[at].0).is_some());
                        behind.tell(answers[at]);
                    }
                }
            }
        }
        found
    }

    fn request() -> impl Strategy<Value = Request> {
        (0..MEMBERS, prop_oneof![Just(0), 1..1000i64], 0..20u64, 0..20u64)
            .prop_map(|(member, points, there, back)| Request { member, points, there, back })
    }

    proptest! {
        /// Requests overlap, arrive in another order than they were sent in, and foreign members overtake.
        #[test]
        fn no_right_board_is_contradicted(requests in prop::collection::vec(request(), 0..1500), ties: bool) {
            prop_assert_eq!(contradictions(&requests, ties, |_, rank| rank), 0);
        }

        #[test]
        fn a_board_that_tells_some_ranks_too_bad_is(
            requests in prop::collection::vec(request(), 1500), every in 2usize..20, worse in 20u64..1000
        ) {
            let lies = |at: usize, rank: u64| if at.is_multiple_of(every) { rank + worse } else { rank };
            prop_assert!(contradictions(&requests, false, lies) > 0);
        }
    }

    #[test]
    fn a_request_is_held_against_what_was_told_before_it_was_sent_and_nothing_else() {
        let mut behind = RankHistory::new();
        let told = |rank, score| RankAnswer { rank, score };
        let fill = |behind: &mut RankHistory, numbers: usize| {
            (0..numbers * TOLD_PER_NUMBER).for_each(|_| behind.tell(told(1, 1_000_000)));
        };
        behind.tell(told(9, 500));
        assert_eq!(behind.contradicted(told(3, 400), behind.number()), None, "not numbered yet");
        fill(&mut behind, 1);
        let first = behind.number();
        assert_eq!(behind.contradicted(told(9, 400), first), Some(told(9, 500)));
        assert_eq!(behind.contradicted(told(9, 499), first), Some(told(9, 500)), "of the same class");
        for right in [told(10, 400), told(9, 500), told(3, 501), told(1, i64::MAX)] {
            assert_eq!(behind.contradicted(right, first), None, "{right:?}");
        }
        assert_eq!(behind.contradicted(told(9, 400), 0), None, "sent before");
        behind.tell(told(20, 600));
        fill(&mut behind, 1);
        assert_eq!(behind.contradicted(told(15, 400), first), None, "sent before the second was told");
        assert_eq!(behind.contradicted(told(15, 400), behind.number()), Some(told(20, 600)));
        fill(&mut behind, KEPT);
        assert_eq!(behind.contradicted(told(9, 400), first), None, "so long ago that it is not kept");
    }
}
