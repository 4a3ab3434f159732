//! Snapshots: all boards in one file, so that the logs before it are no longer needed.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use super::disk::Disk;
use super::frames::{FileKind, FrameWriter};
use super::recovery::{Files, log_name, snapshot_name};
use super::{Log, record};
use crate::leaderboard::Boards;

/// What a snapshot is called until it is complete.
const UNFINISHED: &str = "snapshot.unfinished";

/// A frame of a snapshot ends with the record that reaches this.
const FRAME_BYTES: usize = 1024 * 1024;

/// The thread's life: a snapshot for each log that begins.
pub(super) fn run(log: &Log, boards: &Boards, begins: &mpsc::Receiver<u64>) {
    while let Ok(first) = begins.recv() {
        let number = begins.try_iter().last().unwrap_or(first);
        // A snapshot that cannot be written leaves the older files, from which all can be recovered.
        match write(&*log.disk, number, boards, &mut || is_on_disk(log)) {
            Ok(true) => remove_older(&*log.disk, number),
            Ok(false) => {}
            // Its room may be just what the log needs.
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

/// Writes all boards to `snapshot-NUMBER`. It gets its name when it is complete and `may_count`.
pub(super) fn write(
    disk: &dyn Disk,
    number: u64,
    boards: &Boards,
    may_count: &mut dyn FnMut() -> bool,
) -> io::Result<bool> {
    let mut writer = FrameWriter::begin(disk.create(UNFINISHED)?, FileKind::Snapshot, number)?;
    let mut frame = Vec::new();
    for board in boards.list(None, usize::MAX) {
        record::put_create(&mut frame, board.number, &board.options, &board.name);
        let snapshot = board.leaderboard.snapshot();
        record::put_sequence(&mut frame, board.number, snapshot.sequence);
        for each in &snapshot.records {
            let place = (board.number, snapshot.sequence);
            record::put_member(&mut frame, place, &each.member, &each.score, each.tie);
            if frame.len() >= FRAME_BYTES {
                writer.put(&frame)?;
                frame.clear();
            }
        }
    }
    record::put_end(&mut frame, boards.last_number());
    writer.put(&frame)?;
    writer.sync()?;
    if !may_count() {
        return Ok(false);
    }
    disk.rename(UNFINISHED, &snapshot_name(number))?;
    disk.sync_names()?;
    Ok(true)
}

/// Removes the files that a snapshot has made superfluous.
pub(super) fn remove_older(disk: &dyn Disk, number: u64) {
    let Ok(files) = Files::of(disk) else { return };
    // What cannot be removed is not read any more, either.
    for log in files.logs.iter().filter(|each| **each < number) {
        let _ = disk.remove(&log_name(*log));
    }
    for snapshot in files.snapshots.iter().filter(|each| **each < number) {
        let _ = disk.remove(&snapshot_name(*snapshot));
    }
}
