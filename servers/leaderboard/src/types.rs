//! A board's inputs and outputs. Plain data; ranks are 1-based here.

use super::Score;

/// The most bytes of a member's name.
pub const MAX_MEMBER_BYTES: usize = 256;
/// The most bytes of a member's metadata.
pub const MAX_METADATA_BYTES: usize = 1_024;
/// The most members of one board.
pub const MAX_MEMBERS: u64 = u32::MAX as u64 - 1;

/// Which scores come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// The highest score has rank 1.
    #[default]
    Descending,
    /// The lowest score has rank 1, as with times.
    Ascending,
}

/// Who comes first among equal scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TieRule {
    /// By a 64-bit number drawn at each update, so that no member gains by its name or its punctuality.
    #[default]
    Random,
    /// Who reached the score first. An update that leaves the score as it was keeps the place.
    First,
    /// Who reached the score last. An update that leaves the score as it was keeps the place.
    Last,
}

/// How a board orders its members. Fixed for the life of the board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which scores come first.
    pub direction: Direction,
    /// Who comes first among equal scores.
    pub ties: TieRule,
    /// The seed of the random ties, for tests; drawn anew if absent. A board that is restored needs another one, or its
    /// first ties repeat.
    pub seed: Option<u64>,
}

/// What an update does with the given score. A member that is new counts as having 0, except for `Best`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The score becomes the given one.
    Replace,
    /// The given score is added.
    Increment,
    /// The given score is subtracted.
    Decrement,
    /// The score becomes the given one if that ranks before it; else nothing changes. A new member takes it.
    Best,
}

/// One item of a bulk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// Whose score.
    pub member: &'a str,
    /// What to do with it.
    pub mode: Mode,
    /// By or to how much.
    pub score: Score,
}

/// A member's state after an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The score it now has.
    pub score: Score,
    /// Its rank at the moment of the update, from 1.
    pub rank: u64,
    /// The number that decides among equal scores, lower first; a durability log restores the order with it.
    pub tie: u64,
    /// Position of this change among all changes of the board, from 1 and without gaps.
    pub sequence: u64,
}

/// A member's score and rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its score.
    pub score: Score,
    /// Its rank, from 1.
    pub rank: u64,
}

/// A member that was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// The score it had.
    pub score: Score,
    /// Position of this change among all changes of the board.
    pub sequence: u64,
}

/// A line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// From 1.
    pub rank: u64,
    /// Its name.
    pub member: Box<str>,
    /// Its score.
    pub score: Score,
    /// What the caller attached to the member.
    pub metadata: Option<Box<str>>,
}

/// Neighbouring ranks, all of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Members of the board at that moment.
    pub total: u64,
    /// In the order of their ranks.
    pub rows: Vec<Row>,
}

impl Page {
    /// The rank at which the next page begins; `None` on the last.
    pub fn next_rank(&self) -> Option<u64> {
        self.rows.last().map(|row| row.rank + 1).filter(|&rank| rank <= self.total)
    }
}

/// All that a board knows of a member: what a snapshot or a log stores and `restore` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub member: Box<str>,
    /// Its score.
    pub score: Score,
    /// Decides among equal scores, lower first.
    pub tie: u64,
    /// What the caller attached.
    pub metadata: Option<Box<str>>,
}

/// Why a request was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// An empty name.
    #[error("a member's name has at least one byte")]
    MemberEmpty,
    /// A name longer than `MAX_MEMBER_BYTES`.
    #[error("a member's name has at most {MAX_MEMBER_BYTES} bytes, not {bytes}")]
    MemberTooLong {
        /// How long it is.
        bytes: usize,
    },
    /// Metadata longer than `MAX_METADATA_BYTES`.
    #[error("metadata has at most {MAX_METADATA_BYTES} bytes, not {bytes}")]
    MetadataTooLong {
        /// How long it is.
        bytes: usize,
    },
    /// `MAX_MEMBERS` are there.
    #[error("the board is full: it has {MAX_MEMBERS} members")]
    Full,
}

/// Why a bulk was refused. No item was applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("item {item}: {cause}")]
pub struct BulkRefused {
    /// The first item that is wrong, from 0.
    pub item: usize,
    /// What is wrong with it.
    pub cause: Refused,
}

/// Whether a name can be a member's.
pub fn check_member(name: &str) -> Result<(), Refused> {
    match name.len() {
        0 => Err(Refused::MemberEmpty),
        bytes if bytes > MAX_MEMBER_BYTES => Err(Refused::MemberTooLong { bytes }),
        _ => Ok(()),
    }
}

/// Whether a text can be metadata.
pub fn check_metadata(metadata: Option<&str>) -> Result<(), Refused> {
    match metadata.map_or(0, str::len) {
        bytes if bytes > MAX_METADATA_BYTES => Err(Refused::MetadataTooLong { bytes }),
        _ => Ok(()),
    }
}

/// Checks all items of a bulk before the first is applied. `room` is for how many new members the board has room.
pub(super) fn check_bulk(updates: &[Update<'_>], room: u64) -> Result<(), BulkRefused> {
    for (item, update) in updates.iter().enumerate() {
        check_member(update.member).map_err(|cause| BulkRefused { item, cause })?;
    }
    // Conservative: counts existing members as new ones, which matters only for boards that are nearly full anyway.
    if updates.len() as u64 > room {
        return Err(BulkRefused { item: room as usize, cause: Refused::Full });
    }
    Ok(())
}
