//! The model: a sorted vector, as simple as possible.

use super::super::{Direction, Mode, Options, Score, TieRule};

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) score: Score,
    pub(super) tie: u64,
    pub(super) metadata: Option<String>,
}

/// A board that sorts all members after each change.
#[derive(Clone, Debug)]
pub(super) struct Model {
    options: Options,
    /// In the order of their ranks.
    pub(super) members: Vec<Member>,
    pub(super) sequence: u64,
}

impl Model {
    pub(super) fn new(options: Options) -> Self {
        Self { options, members: Vec::new(), sequence: 0 }
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member.name == name)
    }

    fn sort(&mut self) {
        let direction = self.options.direction;
        self.members.sort_by(|a, b| {
            let scores = match direction {
                Direction::Ascending => a.score.cmp(&b.score),
                Direction::Descending => b.score.cmp(&a.score),
            };
            scores.then(a.tie.cmp(&b.tie))
        });
    }

    /// Updates a member. Under `random` it takes over the tie that the board drew.
    pub(super) fn update(&mut self, name: &str, mode: Mode, given: &Score, drawn: u64) {
        self.sequence += 1;
        let old = self.position(name).map(|at| self.members.remove(at));
        let had = old.as_ref().map_or(Score::ZERO, |member| member.score.clone());
        let better = match self.options.direction {
            Direction::Ascending => *given < had,
            Direction::Descending => *given > had,
        };
        let score = match mode {
            Mode::Replace => given.clone(),
            Mode::Increment => had.plus(given),
            Mode::Decrement => had.minus(given),
            Mode::Best if better || old.is_none() => given.clone(),
            Mode::Best => had,
        };
        let kept = old.as_ref().filter(|member| member.score == score).map(|member| member.tie);
        let tie = match (self.options.ties, kept) {
            (TieRule::Random, Some(tie)) if mode == Mode::Best => tie,
            (TieRule::Random, _) => drawn,
            (_, Some(tie)) => tie,
            (TieRule::First, None) => self.sequence,
            (TieRule::Last, None) => u64::MAX - self.sequence,
        };
        let metadata = old.and_then(|member| member.metadata);
        self.members.push(Member { name: name.to_owned(), score, tie, metadata });
        self.sort();
    }
}
