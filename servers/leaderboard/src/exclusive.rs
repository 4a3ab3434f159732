//! Boards for one thread at a time: the basis of leaderboards with a single lock or an owning thread.

use super::types::{BulkRefused, Deleted, Mode, Options, Outcome, Page, Refused, Row, Standing, Update};
use super::{Score, Snapshot};

/// The operations of `Leaderboard` behind exclusive access.
pub(super) trait Exclusive: Send + Sync + Sized + 'static {
    fn new(options: Options) -> Self;
    fn count(&self) -> u64;
    fn update(&mut self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused>;
    fn update_bulk(&mut self, updates: &[Update<'_>]) -> Result<Vec<Outcome>, BulkRefused>;
    fn get(&self, member: &str) -> Option<Standing>;
    fn get_many(&self, members: &[&str]) -> Vec<Option<Standing>>;
    fn row(&self, member: &str) -> Option<Row>;
    fn delete(&mut self, member: &str) -> Option<Deleted>;
    fn range(&self, first: u64, limit: usize) -> Page;
    fn range_back(&self, first: u64, limit: usize) -> Page;
    fn around(&self, member: &str, each_side: usize) -> Option<Page>;
    fn set_metadata(&mut self, member: &str, metadata: Option<&str>) -> Result<Option<u64>, Refused>;
    fn snapshot(&self) -> Snapshot;
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), BulkRefused>;
    /// Leaves an empty board, whose count of changes goes on, and returns the full one.
    fn take(&mut self) -> Self;
}
