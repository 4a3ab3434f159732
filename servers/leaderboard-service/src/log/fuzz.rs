//! For `crate::fuzz`: files as a crash, a bad disk or a third party may leave them.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::disk::{Disk, DiskFile};
use super::frames::{self, Corrupt, End, FileKind};
use super::record::{self, Changes};
use super::recovery::{self, Files, log_name, snapshot_name};
use crate::kept::Kept;
use leaderboard::{Boards, Direction, Implementation, Options, Schedule, Score, TieRule};
use servers_shared::ServeError;

/// A directory that is only read.
struct Given(BTreeMap<String, Vec<u8>>);

impl Disk for Given {
    fn path(&self, name: &str) -> PathBuf {
        name.into()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&self, _: &str) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A log of these payloads, whole and then changed at one place: read back as it was, and never as what was not written.
/// Panics otherwise.
pub fn log_frames(payloads: &[&[u8]], (at, byte): (usize, u8), keep_bytes: usize) {
    let whole = frames::file_of(FileKind::Log, 1, payloads);
    let read = |bytes: &[u8]| {
        let mut found = Vec::new();
        let end = frames::read(bytes, FileKind::Log, 1, |payload| {
            found.push(payload.to_vec());
            true
        });
        (found, end)
    };
    let (found, end) = read(&whole);
    assert!(found == payloads && end == Ok(End::Whole), "a whole file: {end:?}");

    let (found, end) = read(&whole[..keep_bytes.min(whole.len())]);
    assert!(payloads.starts_with(&found.iter().map(Vec::as_slice).collect::<Vec<_>>()), "cut: {end:?}");
    assert!(end.is_ok(), "a file that is cut is torn and not corrupt");

    let mut changed = whole.clone();
    let at = at % changed.len();
    changed[at] ^= byte;
    let (found, end) = read(&changed);
    let found: Vec<&[u8]> = found.iter().map(Vec::as_slice).collect();
    assert!(payloads.starts_with(&found), "changed at {at}: {end:?}");
    if byte != 0 {
        let is_told = match end {
            Ok(End::Torn { at }) | Err(Corrupt { at }) => at <= whole.len(),
            Ok(End::Whole) => false,
        };
        assert!(is_told, "changed at {at} and not told");
    }
}

/// A snapshot of these records and a log of those, with checksums that are right, as another version or a fault of ours would
/// write them; the snapshot ends with so many boards. Returns how many members there are then; `None`: it is refused.
pub fn log_records(snapshot: &[u8], log: &[u8], boards: u64) -> Option<u64> {
    let mut end = Vec::new();
    record::put_end(&mut end, boards);
    let files = BTreeMap::from([
        (snapshot_name(1), frames::file_of(FileKind::Snapshot, 1, &[snapshot, &end])),
        (log_name(1), frames::file_of(FileKind::Log, 1, &[log])),
    ]);
    let mut changes = Changes::of(log);
    while let Ok(Some(_)) = changes.next() {}
    let boards = Arc::new(Boards::new(Implementation::OneLock));
    let kept = Kept { boards, once: Arc::default(), nonces: Arc::default() };
    let disk = Given(files);
    let files = Files::of(&disk).expect("names");
    let recovered: Result<_, ServeError> = recovery::recover(&disk, &files, &kept);
    let (recovered, _) = recovered.ok()?;
    let listed: u64 = kept.boards.list(None, usize::MAX).iter().map(|board| board.leaderboard.count()).sum();
    assert_eq!(recovered.members, listed, "members that were counted and those that are there");
    // Work continues on what was recovered.
    let created = kept.boards.create(Some("another"), Options::default());
    let _ = created.map(|board| board.leaderboard.count());
    Some(recovered.members)
}

/// Records as the service writes them.
pub fn record_seeds() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let options = Options { direction: Direction::Ascending, ties: TieRule::Last, seed: None };
    record::put_create(&mut out, 1, &options, "main");
    record::put_member(&mut out, (1, 1), "ann", &Score::from(-5_i64), 9, Some("blue"));
    record::put_next_member(&mut out, "cid", &Score::from(7_i64), 4);
    let members = out.clone();
    record::put_delete_member(&mut out, (1, 3), "ann");
    record::put_metadata(&mut out, (1, 4), "cid", Some("red"));
    record::put_end_season(&mut out, (1, 5), 100, "spring");
    record::put_schedule(&mut out, 1, Some(Schedule { next_end_s: 200, every_s: 100 }));
    let season = out.clone();
    record::put_nonce(&mut out, 300, "game", b"\xff1");
    let mut archived = Vec::new();
    record::put_create(&mut archived, 1, &options, "main");
    record::put_archive(&mut archived, (1, 7), 100, "spring");
    record::put_next_member(&mut archived, "cid", &Score::from(7_i64), 4);
    record::put_end_archive(&mut archived, 1);
    record::put_sequence(&mut archived, 1, 9);
    record::put_delete_season(&mut archived, 1, 10);
    record::put_delete_board(&mut archived, 1);
    vec![members, season, out, archived]
}
