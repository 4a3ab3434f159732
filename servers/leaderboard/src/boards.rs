//! The boards of a server by name, and the archives of each board's seasons.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::types::{MAX_MEMBERS, check_bulk};
use super::{Archive, BulkRefused, Implementation, Leaderboard, Options, Outcome, Snapshot, Update};

/// The most bytes of a board's name and of a season's.
pub const MAX_BOARD_NAME_BYTES: usize = 256;

/// The most archived seasons of a board.
pub const MAX_SEASONS: usize = 1_000;

/// When seasons end by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The next end, s since the epoch.
    pub next_end_s: u64,
    /// Between two ends, s, > 0.
    pub every_s: u64,
}

impl Schedule {
    /// The schedule after an end at `now_s`: ends that were missed are not made up for.
    #[must_use]
    pub fn after(self, now_s: u64) -> Schedule {
        let missed = now_s.saturating_sub(self.next_end_s) / self.every_s.max(1);
        let next_end_s = self.next_end_s.saturating_add((missed + 1).saturating_mul(self.every_s.max(1)));
        Schedule { next_end_s, ..self }
    }
}

/// All of a board at one moment.
#[derive(Clone, Debug)]
pub struct AtRest {
    /// Its members.
    pub snapshot: Snapshot,
    /// Its archived seasons, oldest first.
    pub archives: Vec<Arc<Archive>>,
    /// When its seasons end by themselves.
    pub schedule: Option<Schedule>,
}

/// A board with its name and its past.
pub struct Board {
    /// Tells it from all boards there were before, of the same name too. From 1.
    pub number: u64,
    /// What it is called.
    pub name: String,
    /// How it orders its members.
    pub options: Options,
    /// The members.
    pub leaderboard: Box<dyn Leaderboard>,
    seasons: Mutex<Seasons>,
}

#[derive(Default)]
struct Seasons {
    archives: Vec<Arc<Archive>>,
    schedule: Option<Schedule>,
}

/// Why a request that concerns boards was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoardsError {
    /// An empty name, or one longer than `MAX_BOARD_NAME_BYTES`.
    #[error("a name has 1 to {MAX_BOARD_NAME_BYTES} bytes, not {bytes}")]
    NameLength {
        /// How long it is.
        bytes: usize,
    },
    /// A board of this name exists; it is not replaced.
    #[error("a board called {name:?} exists; delete it first or choose another name")]
    NameTaken {
        /// Which.
        name: String,
    },
    /// Each board of `Implementation::Actor` has a thread, and the system starts no further one.
    #[error(
        "no thread can be started for a further board ({why}); delete one, or use another implementation"
    )]
    NoThread {
        /// What the system says.
        why: String,
    },
    /// A season of this name was archived before.
    #[error("a season called {season:?} is archived; choose another name")]
    SeasonTaken {
        /// Which.
        season: String,
    },
    /// `MAX_SEASONS` are archived.
    #[error("the board has {MAX_SEASONS} archived seasons; delete some first")]
    SeasonsFull,
    /// A bulk names a board that does not exist.
    #[error("part {part}: there is no board called {name:?}")]
    NoSuchBoard {
        /// Which part of the bulk, from 0.
        part: usize,
        /// The name.
        name: String,
    },
    /// A bulk has an item that is wrong.
    #[error("part {part}: {refused}")]
    Bulk {
        /// Which part of the bulk, from 0.
        part: usize,
        /// Which item, and why.
        refused: BulkRefused,
    },
}

/// Whether a text can be the name of a board or of a season.
pub fn check_name(name: &str) -> Result<(), BoardsError> {
    let bytes = name.len();
    if (1..=MAX_BOARD_NAME_BYTES).contains(&bytes) { Ok(()) } else { Err(BoardsError::NameLength { bytes }) }
}

/// The name itself, or for none one of 32 random hexadecimal digits.
///
/// Errors: a name without a legal length.
pub fn board_name(name: Option<&str>) -> Result<String, BoardsError> {
    let name = name.map_or_else(|| format!("{:032x}", fastrand::u128(..)), str::to_owned);
    check_name(&name)?;
    Ok(name)
}

impl Board {
    /// Ends a season: the standings become its archive, and the board is empty.
    ///
    /// Errors: a name without a legal length, or of a season that is archived; `MAX_SEASONS`.
    pub fn reset(&self, season: &str, ended_at_s: u64) -> Result<Arc<Archive>, BoardsError> {
        let mut seasons = self.seasons.lock();
        seasons.check(season)?;
        let archive = Arc::new(Archive::new(season.to_owned(), ended_at_s, self.leaderboard.reset()));
        seasons.archives.push(archive.clone());
        Ok(archive)
    }

    /// Adds the archive of a season that was stored before.
    ///
    /// Errors: as `reset`.
    pub fn add_archive(&self, archive: Archive) -> Result<(), BoardsError> {
        let mut seasons = self.seasons.lock();
        seasons.check(&archive.season)?;
        seasons.archives.push(Arc::new(archive));
        Ok(())
    }

    /// The archived seasons, oldest first.
    pub fn archives(&self) -> Vec<Arc<Archive>> {
        self.seasons.lock().archives.clone()
    }

    /// The archive of the season with this name.
    pub fn archive(&self, season: &str) -> Option<Arc<Archive>> {
        self.seasons.lock().archives.iter().find(|archive| archive.season == season).cloned()
    }

    /// Removes the archive whose snapshot has this sequence number, which no other has.
    pub fn delete_archive(&self, sequence: u64) -> Option<Arc<Archive>> {
        let mut seasons = self.seasons.lock();
        let at = seasons.archives.iter().position(|archive| archive.snapshot().sequence == sequence)?;
        Some(seasons.archives.remove(at))
    }

    /// When its seasons end by themselves.
    pub fn schedule(&self) -> Option<Schedule> {
        self.seasons.lock().schedule
    }

    /// Its schedule, if a season should have ended by now.
    pub fn due(&self, now_s: u64) -> Option<Schedule> {
        self.schedule().filter(|schedule| schedule.next_end_s <= now_s)
    }

    /// Lets its seasons end by themselves, or no more. Returns what was before.
    pub fn set_schedule(&self, schedule: Option<Schedule>) -> Option<Schedule> {
        std::mem::replace(&mut self.seasons.lock().schedule, schedule)
    }

    /// Everything at one moment, for storage. O(n).
    pub fn at_rest(&self) -> AtRest {
        // No season ends between the members and the archives.
        let seasons = self.seasons.lock();
        let snapshot = self.leaderboard.snapshot();
        AtRest { snapshot, archives: seasons.archives.clone(), schedule: seasons.schedule }
    }
}

impl Seasons {
    /// Whether a season of this name can be added.
    fn check(&self, season: &str) -> Result<(), BoardsError> {
        check_name(season)?;
        if self.archives.iter().any(|archive| archive.season == season) {
            return Err(BoardsError::SeasonTaken { season: season.to_owned() });
        }
        if self.archives.len() >= MAX_SEASONS { Err(BoardsError::SeasonsFull) } else { Ok(()) }
    }
}

/// All boards of a server.
pub struct Boards {
    implementation: Implementation,
    boards: RwLock<BTreeMap<String, Arc<Board>>>,
    /// The highest number that was given to a board.
    last_number: AtomicU64,
}

impl Boards {
    /// No boards yet; all will be of one kind.
    pub fn new(implementation: Implementation) -> Self {
        Self { implementation, boards: RwLock::new(BTreeMap::new()), last_number: AtomicU64::new(0) }
    }

    /// Creates an empty board. Without a name it gets one of 32 random hexadecimal digits.
    ///
    /// Errors: a name without a legal length, or one that is taken; a thread that cannot be started.
    pub fn create(&self, name: Option<&str>, options: Options) -> Result<Arc<Board>, BoardsError> {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        self.create_numbered(number, name, options)
    }

    /// Creates a board that had this number before, as in a log. Boards made later get higher ones.
    ///
    /// Errors: as `create`.
    pub fn create_numbered(
        &self,
        number: u64,
        name: Option<&str>,
        options: Options,
    ) -> Result<Arc<Board>, BoardsError> {
        self.skip_numbers(number);
        let name = board_name(name)?;
        // Created before the lock: an actor starts a thread.
        let leaderboard = self.implementation.try_create(options);
        let leaderboard = leaderboard.map_err(|error| BoardsError::NoThread { why: error.to_string() })?;
        let board = Board { number, name: name.clone(), options, leaderboard, seasons: Mutex::default() };
        let mut boards = self.boards.write();
        if boards.contains_key(&name) {
            return Err(BoardsError::NameTaken { name });
        }
        let board = Arc::new(board);
        boards.insert(name, board.clone());
        Ok(board)
    }

    /// Boards made later get numbers higher than this one.
    pub fn skip_numbers(&self, number: u64) {
        self.last_number.fetch_max(number, Ordering::Relaxed);
    }

    /// The highest number that was given to a board.
    pub fn last_number(&self) -> u64 {
        self.last_number.load(Ordering::Relaxed)
    }

    /// The board of a name.
    pub fn get(&self, name: &str) -> Option<Arc<Board>> {
        self.boards.read().get(name).cloned()
    }

    /// Up to `limit` boards in the order of their names, after the name `after`.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Vec<Arc<Board>> {
        let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let boards = self.boards.read();
        boards
            .range::<str, _>((from, std::ops::Bound::Unbounded))
            .take(limit)
            .map(|(_, b)| b.clone())
            .collect()
    }

    /// Those with a season that should have ended by now. Allocates nothing if there are none.
    pub fn due(&self, now_s: u64) -> Vec<Arc<Board>> {
        self.boards.read().values().filter(|board| board.due(now_s).is_some()).cloned().collect()
    }

    /// Removes a board and its archives; requests that already have it complete on it.
    pub fn delete(&self, name: &str) -> Option<Arc<Board>> {
        self.boards.write().remove(name)
    }

    /// How many boards there are.
    pub fn count(&self) -> usize {
        self.boards.read().len()
    }

    /// Applies a bulk over several boards, all of it or nothing.
    ///
    /// Shape: a list of outcomes per part, as `Leaderboard::update_bulk`. A board may appear in several parts.
    /// Each part takes effect at one moment; parts follow each other, so a reader may see one board before the next.
    /// Errors: the first part that names no board or has a wrong item.
    pub fn update_bulk(&self, parts: &[(&str, Vec<Update<'_>>)]) -> Result<Vec<Vec<Outcome>>, BoardsError> {
        let find = |(part, (name, _)): (usize, &(&str, _))| {
            self.get(name).ok_or_else(|| BoardsError::NoSuchBoard { part, name: (*name).to_owned() })
        };
        let boards = parts.iter().enumerate().map(find).collect::<Result<Vec<_>, _>>()?;
        let refuse = |part| move |refused| BoardsError::Bulk { part, refused };
        for (part, ((_, updates), board)) in parts.iter().zip(&boards).enumerate() {
            let room = MAX_MEMBERS.saturating_sub(board.leaderboard.count());
            check_bulk(updates, room).map_err(refuse(part))?;
        }
        // What was checked can no longer fail, except for a board that others fill to its 4 billion members meanwhile.
        let apply = |(part, ((_, updates), board)): (usize, (&(_, Vec<Update<'_>>), &Arc<Board>))| {
            board.leaderboard.update_bulk(updates).map_err(refuse(part))
        };
        parts.iter().zip(&boards).enumerate().map(apply).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Refused};

    fn update(member: &str, score: i64) -> Update<'_> {
        Update { member, mode: Mode::Increment, score: score.into() }
    }

    #[test]
    fn a_second_board_of_the_same_name_is_refused_and_the_first_stays() {
        let boards = Boards::new(Implementation::OneLock);
        let first = boards.create(Some("week"), Options::default()).unwrap();
        first.leaderboard.update("ann", Mode::Replace, &5_i64.into()).unwrap();
        let taken = boards.create(Some("week"), Options::default()).err();
        assert_eq!(taken, Some(BoardsError::NameTaken { name: "week".into() }));
        assert_eq!(boards.get("week").unwrap().leaderboard.count(), 1);
        for bad in [String::new(), "x".repeat(257)] {
            let refused = boards.create(Some(&bad), Options::default()).err();
            assert_eq!(refused, Some(BoardsError::NameLength { bytes: bad.len() }));
        }
    }

    #[test]
    fn boards_without_a_name_get_one_and_all_are_listed_by_pages() {
        let boards = Boards::new(Implementation::OneLock);
        for _ in 0..5 {
            assert_eq!(boards.create(None, Options::default()).unwrap().name.len(), 32);
        }
        let first = boards.list(None, 3);
        let rest = boards.list(Some(&first[2].name), 3);
        assert_eq!((first.len(), rest.len(), boards.count()), (3, 2, 5));
        let mut names: Vec<_> = first.iter().chain(&rest).map(|board| board.name.clone()).collect();
        assert!(names.is_sorted());
        assert!(boards.delete(&names.remove(0)).is_some());
        assert_eq!(boards.count(), 4);
    }

    #[test]
    fn a_bulk_over_boards_with_one_wrong_part_changes_none_of_them() {
        let boards = Boards::new(Implementation::OneLock);
        let one = boards.create(Some("one"), Options::default()).unwrap();
        boards.create(Some("two"), Options::default()).unwrap();
        let missing = boards.update_bulk(&[("one", vec![update("ann", 1)]), ("three", vec![])]);
        assert_eq!(missing.err(), Some(BoardsError::NoSuchBoard { part: 1, name: "three".into() }));
        let wrong = boards.update_bulk(&[("one", vec![update("ann", 1)]), ("two", vec![update("", 1)])]);
        let refused = BulkRefused { item: 0, cause: Refused::MemberEmpty };
        assert_eq!(wrong.err(), Some(BoardsError::Bulk { part: 1, refused }));
        assert_eq!(one.leaderboard.count(), 0);
        let done = boards.update_bulk(&[("one", vec![update("ann", 1)]), ("one", vec![update("ann", 1)])]);
        assert_eq!(done.unwrap()[1][0].score, 2_i64.into());
    }

    #[test]
    fn a_season_is_archived_under_its_name_once() {
        let boards = Boards::new(Implementation::OneLock);
        let board = boards.create(Some("week"), Options::default()).unwrap();
        for (member, score) in [("ann", 5), ("bob", 7), ("cid", 6)] {
            board.leaderboard.update(member, Mode::Replace, &i64::into(score)).unwrap();
        }
        let archive = board.reset("spring", 7).unwrap();
        assert_eq!(board.leaderboard.count(), 0);
        assert_eq!(archive.get("cid").unwrap().rank, 2);
        assert_eq!(archive.get("dan"), None);
        let page = archive.range(2, 1);
        assert_eq!((&*page.rows[0].member, page.total, page.next_rank()), ("cid", 3, Some(3)));
        assert_eq!(
            board.reset("spring", 7).err(),
            Some(BoardsError::SeasonTaken { season: "spring".into() })
        );
        board.reset("summer", 9).unwrap();
        let seasons: Vec<String> = board.archives().iter().map(|archive| archive.season.clone()).collect();
        assert_eq!(seasons, ["spring", "summer"]);
        assert_eq!(board.archive("summer").unwrap().ended_at_s, 9);
        assert_eq!(board.delete_archive(archive.snapshot().sequence).unwrap().season, "spring");
        assert_eq!((board.archives().len(), board.archive("spring").is_none()), (1, true));
        assert!(board.delete_archive(archive.snapshot().sequence).is_none());
    }

    #[test]
    fn a_schedule_goes_on_from_its_last_end_and_skips_those_it_missed() {
        let schedule = Schedule { next_end_s: 100, every_s: 10 };
        for (now_s, next_end_s) in [(100, 110), (109, 110), (110, 120), (135, 140)] {
            assert_eq!(schedule.after(now_s), Schedule { next_end_s, every_s: 10 }, "{now_s}");
        }
    }
}
