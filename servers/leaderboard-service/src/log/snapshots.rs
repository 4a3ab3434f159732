//! Snapshots: the complete state in one file, so that the logs before it are no longer needed.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use super::disk::Disk;
use super::frames::{FileKind, FrameWriter};
use super::recovery::{Files, log_name, snapshot_name};
use super::{Log, record};
use crate::kept::Kept;
use leaderboard::{AtRest, Snapshot};

/// What a snapshot is called until it is complete.
const UNFINISHED: &str = "snapshot.unfinished";

/// A frame of a snapshot ends with the record that reaches this.
const FRAME_BYTES: usize = 1024 * 1024;

/// The thread's life: a snapshot for each log that begins.
pub(super) fn run(log: &Log, kept: &Kept, begins: &mpsc::Receiver<u64>) {
    while let Ok(first) = begins.recv() {
        let number = begins.try_iter().last().unwrap_or(first);
        // If a snapshot cannot be written the older files remain, from which everything can be recovered.
        match write(&*log.disk, number, kept, &mut || is_on_disk(log)) {
            Ok(true) => remove_older(&*log.disk, number),
            Ok(false) => {}
            // Its space may be just what the log needs.
            Err(_) => drop(log.disk.remove(UNFINISHED)),
        }
    }
}

/// Waits until all changes that a snapshot may hold are on disk. False when that will not be waited for.
///
/// Otherwise a snapshot could keep a part of a change that a crash takes back.
fn is_on_disk(log: &Log) -> bool {
    let position = log.position();
    while log.durable() < position {
        if log.has_failed() || log.is_ending.load(Ordering::Acquire) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Writes all that is kept to `snapshot-NUMBER`. It gets its name when it is complete and `may_count`.
pub(super) fn write(
    disk: &dyn Disk,
    number: u64,
    kept: &Kept,
    may_count: &mut dyn FnMut() -> bool,
) -> io::Result<bool> {
    let mut writer = FrameWriter::begin(disk.create(UNFINISHED)?, FileKind::Snapshot, number)?;
    let mut out = Frames { writer: &mut writer, frame: Vec::new() };
    for board in kept.boards.list(None, usize::MAX) {
        let AtRest { snapshot, archives, schedule } = board.at_rest();
        record::put_create(&mut out.frame, board.number, &board.options, &board.name);
        record::put_sequence(&mut out.frame, board.number, snapshot.sequence);
        out.members(board.number, &snapshot)?;
        for archive in archives {
            let place = (board.number, archive.snapshot().sequence);
            record::put_archive(&mut out.frame, place, archive.ended_at_s, &archive.season);
            out.members(board.number, archive.snapshot())?;
            record::put_end_archive(&mut out.frame, board.number);
        }
        if schedule.is_some() {
            record::put_schedule(&mut out.frame, board.number, schedule);
        }
    }
    kept.nonces.each(|signed| {
        record::put_nonce(&mut out.frame, signed.expires_s, signed.key, signed.nonce);
    });
    // Nothing is written while changes with such a key wait.
    let mut answers = vec![Vec::new()];
    kept.once.each(|answer| {
        if let Some(last) = answers.last_mut() {
            record::put_answer(last, answer);
        }
        if answers.last().is_some_and(|last| last.len() >= FRAME_BYTES) {
            answers.push(Vec::new());
        }
    });
    for each in answers.into_iter().filter(|each| !each.is_empty()) {
        out.put()?;
        out.frame = each;
    }
    record::put_end(&mut out.frame, kept.boards.last_number());
    out.put()?;
    writer.sync()?;
    if !may_count() {
        return Ok(false);
    }
    disk.rename(UNFINISHED, &snapshot_name(number))?;
    disk.sync_names()?;
    Ok(true)
}

/// What gathers for the next frame of a snapshot.
struct Frames<'w> {
    writer: &'w mut FrameWriter,
    frame: Vec<u8>,
}

impl Frames<'_> {
    fn members(&mut self, board: u64, snapshot: &Snapshot) -> io::Result<()> {
        for each in &snapshot.records {
            let (place, metadata) = ((board, snapshot.sequence), each.metadata.as_deref());
            record::put_member(&mut self.frame, place, &each.member, &each.score, each.tie, metadata);
            self.put_if_full()?;
        }
        Ok(())
    }

    fn put_if_full(&mut self) -> io::Result<()> {
        if self.frame.len() >= FRAME_BYTES { self.put() } else { Ok(()) }
    }

    fn put(&mut self) -> io::Result<()> {
        self.writer.put(&self.frame)?;
        self.frame.clear();
        Ok(())
    }
}

/// Removes the files that a snapshot has made superfluous.
pub(super) fn remove_older(disk: &dyn Disk, number: u64) {
    let Ok(files) = Files::of(disk) else { return };
    // What cannot be removed is no longer read, either.
    for log in files.logs.iter().filter(|each| **each < number) {
        let _ = disk.remove(&log_name(*log));
    }
    for snapshot in files.snapshots.iter().filter(|each| **each < number) {
        let _ = disk.remove(&snapshot_name(*snapshot));
    }
}
