//! How an update changes a score, and how ties are ordered: the rules that all implementations share.

use super::Score;
use super::types::{Direction, Mode, Options, TieRule};
use super::zones::Key;

/// The rules of one board, with the state that ties need.
pub(super) struct Rules {
    options: Options,
    random: fastrand::Rng,
    /// Changes so far.
    pub(super) sequence: u64,
}

impl Rules {
    pub(super) fn new(options: Options) -> Self {
        let random = options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        Self { options, random, sequence: 0 }
    }

    pub(super) fn options(&self) -> Options {
        self.options
    }

    /// Counts a change. Returns its number.
    #[inline(always)]
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Ranks ascend with keys, whatever the direction of the board.
    pub(super) fn key(&self, score: &Score) -> Key {
        match self.options.direction {
            Direction::Ascending => Key::of(score.clone()),
            Direction::Descending => Key::of(score.reversed()),
        }
    }

    /// The inverse of `key`.
    #[inline(always)]
    pub(super) fn score(&self, key: Key) -> Score {
        match (key, self.options.direction) {
            (Key::Narrow(key), _) => self.narrow_score(key).into(),
            (key, Direction::Ascending) => key.into_score(),
            (key, Direction::Descending) => key.into_score().reversed(),
        }
    }

    #[inline(always)]
    fn narrow_score(&self, key: i64) -> i64 {
        match self.options.direction {
            Direction::Ascending => key,
            Direction::Descending => !key,
        }
    }

    /// The key after an update of a member with key `old`, if all three are narrow.
    #[inline(always)]
    pub(super) fn narrow_update(&self, old: i64, mode: Mode, score: &Score) -> Option<i64> {
        let (given, had) = (score.as_i64()?, self.narrow_score(old));
        let now = match mode {
            Mode::Replace | Mode::Best => given,
            Mode::Increment => had.checked_add(given)?,
            Mode::Decrement => had.checked_sub(given)?,
        };
        let key = self.narrow_score(now);
        let key = if mode == Mode::Best { key.min(old) } else { key };
        (key != i64::MIN).then_some(key)
    }

    /// The key after an update, for scores of any size. `old` is `None` for a new member.
    pub(super) fn update(&self, old: Option<Key>, mode: Mode, score: &Score) -> Key {
        let given = self.key(score);
        match (mode, old) {
            (Mode::Replace, _) | (Mode::Best, None) => given,
            (Mode::Best, Some(old)) => {
                if given.clone().into_score() < old.clone().into_score() {
                    given
                } else {
                    old
                }
            }
            (Mode::Increment, old) => {
                let had = old.map_or(Score::ZERO, |old| self.score(old));
                self.key(&had.plus(score))
            }
            (Mode::Decrement, old) => {
                let had = old.map_or(Score::ZERO, |old| self.score(old));
                self.key(&had.minus(score))
            }
        }
    }

    /// The tie of a member after an update with number `sequence`. `unchanged` is its tie if its key stays the same.
    #[inline(always)]
    pub(super) fn tie(&mut self, mode: Mode, unchanged: Option<u64>, sequence: u64) -> u64 {
        match (self.options.ties, unchanged) {
            (TieRule::Random, Some(tie)) if mode == Mode::Best => tie,
            (TieRule::Random, _) => self.random.u64(..),
            (_, Some(tie)) => tie,
            (TieRule::First, None) => sequence,
            (TieRule::Last, None) => !sequence,
        }
    }
}

/// Another tie if the drawn one is taken: only restored records and chances of 2⁻⁶⁴ lead here.
pub(super) fn next_free_tie(taken: u64) -> u64 {
    taken.wrapping_add(1)
}
