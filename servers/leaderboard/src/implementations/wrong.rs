//! Boards that are wrong on purpose, for tests that show that the suite detects them.
//!
//! Both pass every check that uses one thread. A `Pause` holds the first update in the middle until another one is
//! complete, so the bad interleaving happens every time and not by chance.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::super::{
    BulkRefused, Deleted, Implementation, Leaderboard, LockWaits, Mode, Options, Outcome, Page, Refused, Row,
    Score, Snapshot, Standing, Update,
};

/// Where the first update waits for the completion of another. Gives up if none comes, as with one thread.
#[derive(Default)]
pub(in super::super) struct Pause {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    armed: bool,
    completed: bool,
}

impl Pause {
    /// A pause that holds the next update.
    pub(in super::super) fn armed() -> Arc<Self> {
        let pause = Self::default();
        pause.state.lock().armed = true;
        Arc::new(pause)
    }

    fn in_the_middle(&self) {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.armed) {
            let patience = Duration::from_secs(2);
            self.changed.wait_while_for(&mut state, |state| !state.completed, patience);
        }
    }

    fn at_the_end(&self) {
        self.state.lock().completed = true;
        self.changed.notify_all();
    }
}

/// Scores and order, each behind its own lock: two updates may reach the order in the wrong sequence.
pub(in super::super) struct UnsynchronisedPair {
    scores: Mutex<HashMap<Box<str>, Score>>,
    order: Box<dyn Leaderboard>,
    pause: Arc<Pause>,
}

impl UnsynchronisedPair {
    pub(in super::super) fn create(options: Options, pause: Arc<Pause>) -> Box<dyn Leaderboard> {
        let order = Implementation::OneLock.create(options);
        Box::new(Self { scores: Mutex::default(), order, pause })
    }
}

/// Reads a score, computes, and writes the result: an update in between is lost.
pub(in super::super) struct CheckThenAct {
    board: Box<dyn Leaderboard>,
    pause: Arc<Pause>,
}

impl CheckThenAct {
    pub(in super::super) fn create(options: Options, pause: Arc<Pause>) -> Box<dyn Leaderboard> {
        Box::new(Self { board: Implementation::OneLock.create(options), pause })
    }
}

/// What is to be written with `Mode::Replace`, or with `Mode::Best` as it came.
fn computed(had: Option<Score>, mode: Mode, score: &Score) -> (Mode, Score) {
    let had = had.unwrap_or_default();
    match mode {
        Mode::Increment => (Mode::Replace, had.plus(score)),
        Mode::Decrement => (Mode::Replace, had.minus(score)),
        Mode::Replace | Mode::Best => (mode, score.clone()),
    }
}

/// The operations that both take from a correct board.
macro_rules! from_board {
    ($board:ident) => {
        fn get_many(&self, members: &[&str]) -> Vec<Option<Standing>> {
            self.$board.get_many(members)
        }
        fn row(&self, member: &str) -> Option<Row> {
            self.$board.row(member)
        }
        fn count(&self) -> u64 {
            self.$board.count()
        }
        fn range(&self, first: u64, limit: usize) -> Page {
            self.$board.range(first, limit)
        }
        fn range_back(&self, first: u64, limit: usize) -> Page {
            self.$board.range_back(first, limit)
        }
        fn around(&self, member: &str, each_side: usize) -> Option<Page> {
            self.$board.around(member, each_side)
        }
        fn set_metadata(&self, member: &str, metadata: Option<&str>) -> Result<Option<u64>, Refused> {
            self.$board.set_metadata(member, metadata)
        }
        fn snapshot(&self) -> Snapshot {
            self.$board.snapshot()
        }
        fn lock_waits(&self) -> LockWaits {
            self.$board.lock_waits()
        }
    };
}

impl Leaderboard for UnsynchronisedPair {
    fn update(&self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused> {
        let (mode, now) = {
            let mut scores = self.scores.lock();
            let (mode, now) = computed(scores.get(member).cloned(), mode, score);
            if mode == Mode::Replace && !member.is_empty() {
                scores.insert(member.into(), now.clone());
            }
            (mode, now)
        };
        self.pause.in_the_middle();
        let outcome = self.order.update(member, mode, &now)?;
        self.scores
            .lock()
            .insert(member.into(), if mode == Mode::Best { outcome.score.clone() } else { now });
        self.pause.at_the_end();
        Ok(outcome)
    }

    fn update_bulk(&self, updates: &[Update<'_>]) -> Result<Vec<Outcome>, BulkRefused> {
        let outcomes = self.order.update_bulk(updates)?;
        let mut scores = self.scores.lock();
        for (update, outcome) in updates.iter().zip(&outcomes) {
            scores.insert(update.member.into(), outcome.score.clone());
        }
        Ok(outcomes)
    }

    fn get(&self, member: &str) -> Option<Standing> {
        let score = self.scores.lock().get(member)?.clone();
        Some(Standing { score, rank: self.order.get(member)?.rank })
    }

    fn delete(&self, member: &str) -> Option<Deleted> {
        self.scores.lock().remove(member);
        self.order.delete(member)
    }

    fn restore(&self, snapshot: &Snapshot) -> Result<(), BulkRefused> {
        self.order.restore(snapshot)?;
        let scores = snapshot.records.iter().map(|record| (record.member.clone(), record.score.clone()));
        self.scores.lock().extend(scores);
        Ok(())
    }

    fn reset(&self) -> Snapshot {
        self.scores.lock().clear();
        self.order.reset()
    }

    from_board!(order);
}

impl Leaderboard for CheckThenAct {
    fn update(&self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused> {
        let had = self.board.get(member).map(|standing| standing.score);
        let (mode, now) = computed(had, mode, score);
        self.pause.in_the_middle();
        let outcome = self.board.update(member, mode, &now)?;
        self.pause.at_the_end();
        Ok(outcome)
    }

    fn update_bulk(&self, updates: &[Update<'_>]) -> Result<Vec<Outcome>, BulkRefused> {
        self.board.update_bulk(updates)
    }

    fn get(&self, member: &str) -> Option<Standing> {
        self.board.get(member)
    }

    fn delete(&self, member: &str) -> Option<Deleted> {
        self.board.delete(member)
    }

    fn restore(&self, snapshot: &Snapshot) -> Result<(), BulkRefused> {
        self.board.restore(snapshot)
    }

    fn reset(&self) -> Snapshot {
        self.board.reset()
    }

    from_board!(board);
}
