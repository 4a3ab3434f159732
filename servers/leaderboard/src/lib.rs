//! The leaderboard: exact scores, exact ranks, several implementations behind one trait.
//!
//! A library without IO: the network service, the log and signed submissions use it and are not here. `Leaderboard` is
//! one board; `Boards` holds them by name; `Implementation` creates one of each kind. All kinds give the same answers,
//! which one test suite checks, and one benchmark (`bench`) compares them. The product uses `OneLock`.
//! Invariants: every operation takes effect at one moment between its call and its return (linearizable); a bulk is
//! applied whole or not at all; the sequence numbers of a board's changes have no gaps.
//! All operations are O(log n), except `snapshot` and the archive of a season, which are O(n); the archive is built
//! after the board has been released.
//! Order of reading: `types`, `order` (the structure that decides the speed), `zones`, `ranking`, `flat_board`,
//! `implementations`.

mod archive;
mod boards;
mod exclusive;
mod flat_board;
mod implementations;
mod members;
mod memory;
mod name;
mod order;
mod ranking;
mod rules;
mod score;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
mod types;
mod zones;

pub mod bench;

pub use boards::{board_name, check_name};
pub use types::{check_member, check_metadata};

pub use archive::{Archive, Snapshot};
pub use boards::{AtRest, Board, Boards, BoardsError, MAX_BOARD_NAME_BYTES, MAX_SEASONS, Schedule};
pub use implementations::{Implementation, LockWaits};
pub use score::SUM_DIGITS_MAX;
pub use score::{MAX_DIGITS, Score, ScoreError};
pub use types::{
    BulkRefused, Deleted, Direction, MAX_MEMBER_BYTES, MAX_MEMBERS, MAX_METADATA_BYTES, Mode, Options,
    Outcome, Page, Record, Refused, Row, Standing, TieRule, Update,
};

/// One board. Shared by threads; each operation is atomic.
///
/// Units: ranks are 1-based. `sequence` numbers all changes of the board.
pub trait Leaderboard: Send + Sync {
    /// Updates one member, which is created if absent. Returns its score and rank at that moment.
    ///
    /// Errors: a name that cannot be a member's, or a full board.
    fn update(&self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused>;

    /// Applies all updates at one moment, in order, or none.
    ///
    /// Shape: one outcome per item; its rank is the one after the items up to it.
    /// Errors: the first item that is wrong, and why.
    fn update_bulk(&self, updates: &[Update<'_>]) -> Result<Vec<Outcome>, BulkRefused>;

    /// A member's score and rank.
    fn get(&self, member: &str) -> Option<Standing>;

    /// Scores and ranks of several members at one moment, in the order asked.
    fn get_many(&self, members: &[&str]) -> Vec<Option<Standing>>;

    /// A member with its metadata.
    fn row(&self, member: &str) -> Option<Row>;

    /// Removes a member. `None` if it was not there.
    fn delete(&self, member: &str) -> Option<Deleted>;

    /// How many members there are.
    fn count(&self) -> u64;

    /// Up to `limit` members from rank `first` on; `Page::next_rank` is the `first` of the next page.
    fn range(&self, first: u64, limit: usize) -> Page;

    /// Up to `limit` members from the last rank towards the first, beginning with the `first` of them from 1.
    fn range_back(&self, first: u64, limit: usize) -> Page;

    /// The first `limit` members.
    fn top(&self, limit: usize) -> Page {
        self.range(1, limit)
    }

    /// A member with up to `each_side` neighbours before and after it. `None` if it is not there.
    fn around(&self, member: &str, each_side: usize) -> Option<Page>;

    /// Attaches a text to a member, or takes it off. Returns the number of the change; `None` if there is no such member.
    ///
    /// Errors: text longer than `MAX_METADATA_BYTES`.
    fn set_metadata(&self, member: &str, metadata: Option<&str>) -> Result<Option<u64>, Refused>;

    /// Everything at one moment, for storage. O(n).
    fn snapshot(&self) -> Snapshot;

    /// Puts records as they were, ties included: a stored snapshot, or changes replayed from a log.
    ///
    /// Members that exist take the record's state. The count of changes becomes the snapshot's, if that is higher.
    /// Errors: the first record that cannot be a member's; none is restored.
    fn restore(&self, snapshot: &Snapshot) -> Result<(), BulkRefused>;

    /// Empties the board for a new season and returns what it was. Counts as one change, the snapshot's last.
    fn reset(&self) -> Snapshot;

    /// How long threads have waited for locks of this board, or for its owner's answers.
    fn lock_waits(&self) -> LockWaits;
}
