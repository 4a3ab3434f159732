//! Recovers a data directory: the newest snapshot, and what was logged since.
//!
//! `snapshot-N` holds everything before `log-N`; a missing one is made while the service runs. A snapshot is renamed to
//! its name when it is complete, so an incomplete one is damaged. Only the last log with frames may end within one. A
//! board's snapshot may be newer than the beginning of the log after it; its count of changes says which records it
//! already includes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::{fmt, io};

use super::disk::Disk;
use super::frames::{self, Corrupt, End, FileKind};
use super::record::{Change, Changes, Unfit};
use crate::kept::Kept;
use crate::signing::Signed;
use leaderboard::{Archive, Board, BoardsError, Record, Snapshot};
use servers_shared::ServeError;

/// Records that are restored at once.
const BATCH: usize = 4_096;

/// What was found when a service started with a data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Members of all leaderboards.
    pub members: u64,
    /// Changes that were read from logs.
    pub changes: u64,
    /// Bytes of an unfinished write at the end of the last log, which were dropped: nothing in them was acknowledged.
    pub torn_bytes: u64,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "recovered {} members, {} changes from the log", self.members, self.changes)?;
        match self.torn_bytes {
            0 => Ok(()),
            bytes => write!(f, "; dropped an unfinished write of {bytes} bytes at its end"),
        }
    }
}

/// The files of a data directory by their numbers, ascending.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) logs: Vec<u64>,
    pub(super) snapshots: Vec<u64>,
}

pub(super) fn log_name(number: u64) -> String {
    format!("log-{number:020}")
}

pub(super) fn snapshot_name(number: u64) -> String {
    format!("snapshot-{number:020}")
}

impl Files {
    pub(super) fn of(disk: &dyn Disk) -> io::Result<Files> {
        let mut files = Files::default();
        for name in disk.names()? {
            match name.split_once('-').map(|(kind, number)| (kind, number.parse())) {
                Some(("log", Ok(number))) => files.logs.push(number),
                Some(("snapshot", Ok(number))) => files.snapshots.push(number),
                _ => {}
            }
        }
        files.logs.sort_unstable();
        files.snapshots.sort_unstable();
        Ok(files)
    }

    /// The number that no file has yet.
    pub(super) fn next(&self) -> u64 {
        self.logs.iter().chain(&self.snapshots).max().map_or(1, |last| last + 1)
    }
}

/// The log that ends within a frame.
#[derive(Debug)]
pub(super) struct Torn {
    pub(super) log: u64,
    /// Where that frame begins; 0: the file's header is not whole.
    pub(super) at: u64,
}

/// Puts everything that the directory holds into `kept`, which is empty.
pub(super) fn recover(
    disk: &dyn Disk,
    files: &Files,
    kept: &Kept,
) -> Result<(Recovered, Option<Torn>), ServeError> {
    let mut replay = Replay {
        disk,
        kept,
        archive: None,
        known: BTreeMap::new(),
        batch: Vec::new(),
        batch_of: (0, 0),
        is_complete: false,
        changes: 0,
    };
    let newest = files.snapshots.last().copied();
    if let Some(number) = newest {
        let name = snapshot_name(number);
        let (end, bytes) = replay.file(&name, FileKind::Snapshot, number)?;
        let offset = match end {
            End::Torn { at } => Some(at as u64),
            End::Whole => (!replay.is_complete).then_some(bytes),
        };
        if let Some(offset) = offset {
            return Err(ServeError::DataCorrupt { path: disk.path(&name), offset });
        }
        replay.changes = 0;
    }
    let mut torn: Option<(Torn, u64)> = None;
    let logs = files.logs.iter().copied().filter(|number| *number >= newest.unwrap_or(0));
    // A service begins with a snapshot and the log of the same number; later ones are numbered consecutively.
    for (number, expected) in logs.zip(newest.unwrap_or(1)..) {
        if newest.is_none() || number != expected {
            let missing = if newest.is_none() { snapshot_name(number) } else { log_name(expected) };
            return Err(ServeError::DataMissing { path: disk.path(&missing) });
        }
        let (name, had) = (log_name(number), replay.changes);
        let (end, bytes) = replay.file(&name, FileKind::Log, number)?;
        // Whatever follows a frame was written after that frame was completely on disk.
        if let (Some((torn, _)), true) = (&torn, replay.changes > had) {
            return Err(ServeError::DataCorrupt { path: disk.path(&log_name(torn.log)), offset: torn.at });
        }
        if let End::Torn { at } = end
            && torn.is_none()
        {
            let at = at as u64;
            torn = Some((Torn { log: number, at }, bytes - at));
        }
    }
    let members = replay.known.values().map(|known| known.board.leaderboard.count()).sum();
    let torn_bytes = torn.as_ref().map_or(0, |(_, bytes)| *bytes);
    Ok((Recovered { members, changes: replay.changes, torn_bytes }, torn.map(|(torn, _)| torn)))
}

/// A board that exists at this point of the replay.
struct Known {
    board: Arc<Board>,
    /// Members' metadata, which the log's records of updates do not repeat.
    metadata: HashMap<Box<str>, Box<str>>,
    /// Changes up to this one are in the snapshot.
    in_snapshot: u64,
}

struct Replay<'b> {
    disk: &'b dyn Disk,
    kept: &'b Kept,
    /// The archived season whose members are being read.
    archive: Option<(Archive, Vec<Record>)>,
    known: BTreeMap<u64, Known>,
    /// Records of one board that were read and not restored yet.
    batch: Vec<Record>,
    /// Their board, and the last one's sequence number.
    batch_of: (u64, u64),
    /// The snapshot's end was read.
    is_complete: bool,
    changes: u64,
}

impl Replay<'_> {
    /// How the file ends, and how many bytes it has without zeros at its end.
    fn file(&mut self, name: &str, kind: FileKind, number: u64) -> Result<(End, u64), ServeError> {
        let path = self.disk.path(name);
        let bytes = self.disk.read(name).map_err(ServeError::data(&path))?;
        let mut unfit = None;
        let read = frames::read(&bytes, kind, number, |payload| {
            let mut changes = Changes::of(payload);
            loop {
                match changes.next() {
                    Ok(Some(change)) => unfit = self.apply(change).err(),
                    Ok(None) => return true,
                    Err(()) => return false,
                }
                if unfit.is_some() {
                    return false;
                }
            }
        });
        let read = read.and_then(|end| {
            unfit = self.flush().err();
            if unfit.is_some() { Err(Corrupt { at: bytes.len() }) } else { Ok(end) }
        });
        let end = read.map_err(|Corrupt { at }| match unfit {
            None => ServeError::DataCorrupt { path, offset: at as u64 },
            Some(Unfit::Board(error @ BoardsError::NoThread { .. })) => {
                ServeError::Board { why: error.to_string() }
            }
            Some(unfit) => ServeError::DataInvalid { path, offset: at as u64, what: unfit.to_string() },
        })?;
        Ok((end, frames::used_bytes(&bytes) as u64))
    }

    /// Errors: the change cannot be made, so the service has not made it before.
    fn apply(&mut self, change: Change<'_>) -> Result<(), Unfit> {
        change.check()?;
        self.changes += 1;
        match change {
            Change::Put { record, .. } if self.archive.is_some() => {
                if let Some((_, records)) = &mut self.archive {
                    records.push(record);
                }
            }
            Change::Put { board, sequence, record } => {
                if self
                    .known
                    .get(&board)
                    .is_none_or(|known| sequence <= known.in_snapshot && self.is_complete)
                {
                    return Ok(());
                }
                if self.batch_of.0 != board || self.batch.len() >= BATCH {
                    self.flush()?;
                }
                self.batch.push(record);
                self.batch_of = (board, sequence);
            }
            Change::Create { board, options, name } => {
                if self.known.contains_key(&board) {
                    return Ok(());
                }
                match self.kept.boards.create_numbered(board, Some(name), options) {
                    Ok(created) => {
                        let known = Known { board: created, metadata: HashMap::new(), in_snapshot: 0 };
                        self.known.insert(board, known);
                    }
                    // This board was deleted before the snapshot was made: nothing follows for it.
                    Err(BoardsError::NameTaken { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Change::DeleteBoard { board } => {
                self.flush()?;
                if let Some(known) = self.known.remove(&board) {
                    self.kept.boards.delete(&known.board.name);
                }
            }
            Change::DeleteMember { board, sequence, member } => {
                self.flush()?;
                if let Some(known) = self.news_of(board, sequence) {
                    known.metadata.remove(member);
                    known.board.leaderboard.delete(member);
                    raise(&known.board, sequence);
                }
            }
            Change::Metadata { board, sequence, member, text } => {
                self.flush()?;
                if let Some(known) = self.news_of(board, sequence) {
                    match text {
                        Some(text) => known.metadata.insert(member.into(), text.into()),
                        None => known.metadata.remove(member),
                    };
                    known.board.leaderboard.set_metadata(member, text)?;
                    raise(&known.board, sequence);
                }
            }
            Change::EndSeason { board, sequence, ended_at_s, season } => {
                self.flush()?;
                if let Some(known) = self.news_of(board, sequence) {
                    known.metadata.clear();
                    known.board.reset(season, ended_at_s)?;
                    raise(&known.board, sequence);
                }
            }
            Change::DeleteSeason { board, sequence } => {
                if let Some(known) = self.known.get(&board) {
                    known.board.delete_archive(sequence);
                }
            }
            Change::Schedule { board, schedule } => {
                if let Some(known) = self.known.get(&board) {
                    known.board.set_schedule(schedule);
                }
            }
            Change::Nonce { expires_s, key, nonce } => {
                self.kept.nonces.restore(&Signed { key, nonce, expires_s });
            }
            Change::Answer(answer) => self.kept.once.restore(&answer),
            Change::Archive { sequence, ended_at_s, season, .. } => {
                self.flush()?;
                let empty = Snapshot { sequence, records: Vec::new() };
                self.archive = Some((Archive::new(season.to_owned(), ended_at_s, empty), Vec::new()));
            }
            Change::EndArchive { board } => {
                if let Some((archive, records)) = self.archive.take()
                    && let Some(known) = self.known.get(&board)
                {
                    let snapshot = Snapshot { sequence: archive.snapshot().sequence, records };
                    let archive = Archive::new(archive.season, archive.ended_at_s, snapshot);
                    known.board.add_archive(archive)?;
                }
            }
            Change::Sequence { board, sequence } => {
                if let Some(known) = self.known.get_mut(&board) {
                    known.in_snapshot = sequence;
                    raise(&known.board, sequence);
                }
            }
            Change::End { board } => {
                self.flush()?;
                self.is_complete = true;
                self.kept.boards.skip_numbers(board);
            }
        }
        Ok(())
    }

    /// The board, if it has not had this change yet.
    fn news_of(&mut self, board: u64, sequence: u64) -> Option<&mut Known> {
        self.known.get_mut(&board).filter(|known| sequence > known.in_snapshot)
    }

    fn flush(&mut self) -> Result<(), Unfit> {
        let (board, sequence) = self.batch_of;
        let mut records = std::mem::take(&mut self.batch);
        if let Some(known) = self.known.get_mut(&board)
            && !records.is_empty()
        {
            for record in &mut records {
                match &record.metadata {
                    Some(text) => drop(known.metadata.insert(record.member.clone(), text.clone())),
                    None if known.metadata.is_empty() => {}
                    None => record.metadata = known.metadata.get(&record.member).cloned(),
                }
            }
            known.board.leaderboard.restore(&Snapshot { sequence, records })?;
        }
        Ok(())
    }
}

fn raise(board: &Board, sequence: u64) {
    // Without records nothing can be refused.
    let _ = board.leaderboard.restore(&Snapshot { sequence, records: Vec::new() });
}
