//! One readers-writer lock around a whole board.
//!
//! Updates exclude each other, so two threads update no faster than one; but an update holds the lock for about
//! a microsecond, and reads share it.

use parking_lot::RwLock;

use super::super::exclusive::Exclusive;
use super::super::{
    BulkRefused, Deleted, Leaderboard, LockWaits, Mode, Options, Outcome, Page, Refused, Row, Score,
    Snapshot, Standing, Update,
};
use super::waits::Waits;

pub(super) struct OneLock<B> {
    board: RwLock<B>,
    waits: Waits,
}

impl<B: Exclusive> OneLock<B> {
    pub(super) fn new(options: Options) -> Self {
        Self { board: RwLock::new(B::new(options)), waits: Waits::default() }
    }
}

impl<B: Exclusive> Leaderboard for OneLock<B> {
    fn update(&self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused> {
        self.waits.write_lock(&self.board).update(member, mode, score)
    }

    fn update_bulk(&self, updates: &[Update<'_>]) -> Result<Vec<Outcome>, BulkRefused> {
        self.waits.write_lock(&self.board).update_bulk(updates)
    }

    fn get(&self, member: &str) -> Option<Standing> {
        self.waits.read_lock(&self.board).get(member)
    }

    fn get_many(&self, members: &[&str]) -> Vec<Option<Standing>> {
        self.waits.read_lock(&self.board).get_many(members)
    }

    fn row(&self, member: &str) -> Option<Row> {
        self.waits.read_lock(&self.board).row(member)
    }

    fn delete(&self, member: &str) -> Option<Deleted> {
        self.waits.write_lock(&self.board).delete(member)
    }

    fn count(&self) -> u64 {
        self.waits.read_lock(&self.board).count()
    }

    fn range(&self, first: u64, limit: usize) -> Page {
        self.waits.read_lock(&self.board).range(first, limit)
    }

    fn range_back(&self, first: u64, limit: usize) -> Page {
        self.waits.read_lock(&self.board).range_back(first, limit)
    }

    fn around(&self, member: &str, each_side: usize) -> Option<Page> {
        self.waits.read_lock(&self.board).around(member, each_side)
    }

    fn set_metadata(&self, member: &str, metadata: Option<&str>) -> Result<Option<u64>, Refused> {
        self.waits.write_lock(&self.board).set_metadata(member, metadata)
    }

    fn snapshot(&self) -> Snapshot {
        self.waits.read_lock(&self.board).snapshot()
    }

    fn restore(&self, snapshot: &Snapshot) -> Result<(), BulkRefused> {
        self.waits.write_lock(&self.board).restore(snapshot)
    }

    fn reset(&self) -> Snapshot {
        // A separate statement, so that the lock is released before the snapshot is made.
        let season = self.waits.write_lock(&self.board).take();
        season.snapshot()
    }

    fn lock_waits(&self) -> LockWaits {
        self.waits.read()
    }
}
