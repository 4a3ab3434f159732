//! When each of a sender's messages was sent, in memory that does not grow with a long hold.
//!
//! Individual instants are needed only near the start or end of a membership. Messages farther from every membership
//! change become one run: a count, and the first and last instant. If a change falls into a run after all, for example
//! because a worker was stopped for longer than the margin, the run is certainly owed to no receiver whose membership
//! cuts it and possibly owed to all of them: the bounds then differ, but stay correct.

use serde::{Deserialize, Serialize};

use super::shared::SharedLedger;

/// A number was taken, and the kernel never took the message.
const NOT_SENT: u64 = u64::MAX;
/// So many are kept one by one before a sender's row looks for a run in them.
const KEPT: usize = 256;

/// Messages that left one after the other and are not told apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    /// when the first left, ns
    pub(super) first_ns: u64,
    /// when the last left, ns
    pub(super) last_ns: u64,
    /// how many left
    pub(super) count: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Piece {
    OneByOne(Box<[u64]>),
    Run(Run),
}

/// One sender's messages, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Departures {
    old: Vec<Piece>,
    /// numbers in `old`
    old_numbers: u32,
    /// those after `old`: when each was sent, ns, or `NOT_SENT`
    recent: Vec<u64>,
    /// of all numbers, those that were never used
    skipped: u32,
}

impl Departures {
    /// How many numbers were taken.
    pub(super) fn numbers(&self) -> u32 {
        self.old_numbers + self.recent.len() as u32
    }

    /// Of these, how many a message has.
    pub(super) fn used(&self) -> u32 {
        self.numbers() - self.skipped
    }

    /// Passes over so many numbers, which no message has.
    pub(super) fn skip(&mut self, count: u32) {
        self.recent.extend((0..count).map(|_| NOT_SENT));
        self.skipped += count;
    }

    /// Takes the next number.
    pub(super) fn push(&mut self, changes: &SharedLedger, margin_ns: u64) {
        if self.recent.len() == self.recent.capacity() && self.recent.len() >= KEPT {
            // Folding that saves less than a quarter would soon be repeated.
            self.fold(changes, margin_ns, self.recent.len() / 4);
        }
        self.recent.push(NOT_SENT);
    }

    /// The last number was not used.
    pub(super) fn pop(&mut self) {
        self.recent.pop();
    }

    /// The kernel took a message.
    pub(super) fn departed(&mut self, seq: u32, at_ns: u64) {
        // A message whose successors are in a run already counts as untimed there, and must not count twice.
        let index = seq.checked_sub(self.old_numbers).map(|index| index as usize);
        if let Some(departure) = index.and_then(|index| self.recent.get_mut(index)) {
            *departure = at_ns;
        }
    }

    /// Makes a run of what left farther than the margin from the last change of any membership, and from any to come, if
    /// that is so many numbers at least.
    pub(super) fn fold(&mut self, changes: &SharedLedger, margin_ns: u64, least: usize) {
        let has_left = |&&at_ns: &&u64| at_ns != NOT_SENT;
        let Some(&now_ns) = self.recent.iter().rev().find(has_left) else { return };
        let after_ns = match changes.changed_ns() {
            0 => 0,
            last_ns => last_ns.saturating_add(margin_ns),
        };
        let before_ns = now_ns.saturating_sub(margin_ns);
        let behind_last = |of: &dyn Fn(u64) -> bool| {
            self.recent.iter().rposition(|&at_ns| at_ns != NOT_SENT && of(at_ns)).map_or(0, |last| last + 1)
        };
        let begin = behind_last(&|at_ns| at_ns <= after_ns);
        let end = behind_last(&|at_ns| at_ns < before_ns);
        if end < begin + least.max(1) {
            return;
        }
        let left = || self.recent[begin..end].iter().filter(has_left);
        let (Some(&first_ns), Some(&last_ns)) = (left().next(), left().next_back()) else { return };
        let run = Run { first_ns, last_ns, count: left().count() as u32 };
        if begin > 0 {
            self.old.push(Piece::OneByOne(self.recent[..begin].into()));
        }
        match self.old.last_mut() {
            Some(Piece::Run(former)) if former.first_ns > after_ns => {
                *former = Run { first_ns: former.first_ns, last_ns, count: former.count + run.count };
            }
            _ => self.old.push(Piece::Run(run)),
        }
        self.old_numbers += end as u32;
        self.recent.drain(..end);
    }

    /// What was sent, in order; a single message is a run of one.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        let old = self.old.iter().flat_map(|piece| match piece {
            Piece::OneByOne(departures) => one_by_one(departures, None),
            Piece::Run(run) => one_by_one(&[], Some(*run)),
        });
        old.chain(one_by_one(&self.recent, None))
    }

    /// Whether its counts are those of its messages, which is not sure of what was read.
    pub(super) fn is_whole(&self) -> bool {
        let pieces = self.old.iter().map(|piece| match piece {
            Piece::OneByOne(departures) => departures.len() as u64,
            Piece::Run(run) => run.count.into(),
        });
        let numbers = u64::from(self.old_numbers) + self.recent.len() as u64;
        let sent: u64 = self.runs().map(|run| u64::from(run.count)).sum();
        numbers <= u64::from(u32::MAX)
            && pieces.sum::<u64>() <= u64::from(self.old_numbers)
            && sent + u64::from(self.skipped) <= numbers
    }

    /// Bytes that the rows of this sender take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let apart =
            |piece: &Piece| if let Piece::OneByOne(departures) = piece { departures.len() } else { 0 };
        let instants = self.recent.capacity() + self.old.iter().map(apart).sum::<usize>();
        instants * size_of::<u64>() + self.old.capacity() * size_of::<Piece>()
    }
}

fn one_by_one(departures: &[u64], run: Option<Run>) -> impl Iterator<Item = Run> + '_ {
    let left = departures.iter().filter(|&&at_ns| at_ns != NOT_SENT);
    run.into_iter().chain(left.map(|&at_ns| Run { first_ns: at_ns, last_ns: at_ns, count: 1 }))
}
