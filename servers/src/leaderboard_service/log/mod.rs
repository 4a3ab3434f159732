//! Durability: a log of all changes, written by one thread for all others, and snapshots that shorten it.
//!
//! Changes are made and encoded under one lock (`Log::change`), so the log has them in the order in which they took
//! effect, and replaying it gives the same boards. The writer takes all that has gathered since its last write, puts
//! it on disk as one frame with one fdatasync, and says how far it has come (`durable`). While the disk works the next
//! frame gathers: nothing waits for a timer.
//! Invariant: an answer leaves only when `durable` has reached the `position` that was read after the answer was made.
//! That holds for reads as well, so nothing is ever shown that a crash could take back.

mod frames;
mod record;
mod recovery;
mod snapshots;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use crate::ServeError;
use crate::leaderboard::{Board, Boards, Deleted, Outcome};
use crate::shutdown::AllSignalsBlocked;
use crate::wakeup::Wakeup;
use frames::{FileKind, FrameWriter};
pub use recovery::Recovered;
use recovery::{Files, log_path};

/// What the service's threads share of the log.
pub(super) struct Log {
    directory: PathBuf,
    pending: Mutex<Pending>,
    filled: Condvar,
    /// Changes that were begun. Written under the lock, before the change is made.
    position: AtomicU64,
    /// Changes that are on disk, or turned out to change nothing.
    durable: AtomicU64,
    /// Rung when `durable` has grown; one for each thread.
    wakeups: Vec<Wakeup>,
    has_failed: AtomicBool,
    is_ending: AtomicBool,
}

/// Plants a loss: what was acknowledged last is gone, and recovery finds a torn tail.
pub(super) fn lose_last_quarter(directory: &Path) -> io::Result<()> {
    let files = Files::of(directory).map_err(io::Error::other)?;
    let Some(newest) = files.logs.iter().max() else { return Ok(()) };
    let log = File::options().write(true).open(log_path(directory, *newest))?;
    log.set_len(log.metadata()?.len() * 3 / 4)
}

#[derive(Default)]
struct Pending {
    /// Records that are not on disk yet.
    records: Vec<u8>,
}

/// The threads behind the log, and the directory's lock.
pub(super) struct Writing {
    log: Arc<Log>,
    writer: Option<JoinHandle<io::Result<()>>>,
    snapshots: Option<JoinHandle<()>>,
    _lock: File,
}

/// What the change's record is appended to.
pub(super) struct Records<'l>(&'l mut Vec<u8>);

impl Log {
    /// Recovers what the directory holds into `boards`, and starts to log.
    ///
    /// Errors: a directory that cannot be used or is in use, a damaged file.
    pub(super) fn open(
        directory: &Path,
        boards: &Arc<Boards>,
        threads: usize,
        snapshot_bytes: u64,
    ) -> Result<(Arc<Log>, Writing, Recovered), ServeError> {
        let failed = ServeError::data(directory);
        std::fs::create_dir_all(directory).map_err(&failed)?;
        let lock = File::create(directory.join("lock")).map_err(&failed)?;
        lock.try_lock().map_err(|_| ServeError::DataInUse { path: directory.to_owned() })?;
        let files = Files::of(directory)?;
        let recovered = recovery::recover(directory, &files, boards)?;
        // What was read becomes a snapshot, and a new log begins behind it: no log is ever appended to after a crash.
        let number = files.next();
        snapshots::write(directory, number, boards, &mut || true).map_err(&failed)?;
        let segment = new_segment(directory, number).map_err(&failed)?;
        snapshots::remove_older(directory, number);
        let wakeups = (0..threads).map(|_| Wakeup::new()).collect::<io::Result<Vec<_>>>();
        let log = Arc::new(Log {
            directory: directory.to_owned(),
            pending: Mutex::default(),
            filled: Condvar::new(),
            position: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            wakeups: wakeups.map_err(ServeError::system("eventfd"))?,
            has_failed: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
        });
        let (begun, begins) = mpsc::channel();
        let _blocked = AllSignalsBlocked::new();
        let spawned = ServeError::system("starting a thread");
        let (own, builder) = (log.clone(), std::thread::Builder::new().name("log".to_owned()));
        let writer = builder
            .spawn(move || {
                let written = own.write(Segment { writer: segment, number, snapshot_bytes, begun });
                own.has_failed.store(written.is_err(), Ordering::Release);
                written
            })
            .map_err(spawned)?;
        let (own, boards) = (log.clone(), boards.clone());
        let builder = std::thread::Builder::new().name("snapshots".to_owned());
        let snapshots = builder.spawn(move || snapshots::run(&own, &boards, &begins));
        let snapshots = snapshots.map_err(ServeError::system("starting a thread"))?;
        let writing =
            Writing { log: log.clone(), writer: Some(writer), snapshots: Some(snapshots), _lock: lock };
        Ok((log, writing, recovered))
    }

    /// Makes a change and records it, as one step.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Records<'_>) -> R) -> R {
        let mut pending = self.pending.lock();
        let was_empty = pending.records.is_empty();
        self.position.store(self.position.load(Ordering::Relaxed) + 1, Ordering::Release);
        let changed = change(&mut Records(&mut pending.records));
        drop(pending);
        if was_empty {
            self.filled.notify_one();
        }
        changed
    }

    /// What has to be durable before an answer that was made until now may leave.
    pub(super) fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// The disk refused: nothing becomes durable any more.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// One for each thread of the service.
    pub(super) fn wakeups(&self) -> &[Wakeup] {
        &self.wakeups
    }

    /// The writer's life.
    fn write(&self, mut segment: Segment) -> io::Result<()> {
        let mut records = Vec::new();
        loop {
            let mut pending = self.pending.lock();
            while pending.records.is_empty() && self.position() == self.durable() {
                if self.is_ending.load(Ordering::Acquire) {
                    return Ok(());
                }
                self.filled.wait(&mut pending);
            }
            std::mem::swap(&mut pending.records, &mut records);
            let position = self.position();
            drop(pending);
            if !records.is_empty() {
                segment.writer.put(&records)?;
                segment.writer.sync()?;
                records.clear();
                records.shrink_to(1024 * 1024);
            }
            self.durable.store(position, Ordering::Release);
            self.wakeups.iter().for_each(Wakeup::ring);
            if segment.writer.bytes() > segment.snapshot_bytes {
                // All that was taken until now is in the old segment, and on disk; what is taken from now on is not.
                segment.number += 1;
                segment.writer = new_segment(&self.directory, segment.number)?;
                // A thread that makes no more snapshots leaves the log long, which is all.
                let _ = segment.begun.send(segment.number);
            }
        }
    }
}

/// The file that the writer appends to.
struct Segment {
    writer: FrameWriter,
    number: u64,
    /// With so many bytes a new segment begins, and a snapshot is made.
    snapshot_bytes: u64,
    /// Told the number of each new segment.
    begun: mpsc::Sender<u64>,
}

fn new_segment(directory: &Path, number: u64) -> io::Result<FrameWriter> {
    let file = File::create_new(log_path(directory, number))?;
    let writer = FrameWriter::begin(file, FileKind::Log, number)?;
    writer.sync()?;
    sync_directory(directory)?;
    Ok(writer)
}

/// Makes new names in a directory durable.
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

impl Records<'_> {
    pub(super) fn updated(&mut self, board: &Board, member: &str, outcome: &Outcome) {
        let place = (board.number, outcome.sequence);
        record::put_member(self.0, place, member, &outcome.score, outcome.tie);
    }

    pub(super) fn deleted_member(&mut self, board: &Board, member: &str, deleted: &Deleted) {
        record::put_delete_member(self.0, (board.number, deleted.sequence), member);
    }

    pub(super) fn created(&mut self, board: &Board) {
        record::put_create(self.0, board.number, &board.options, &board.name);
    }

    pub(super) fn deleted_board(&mut self, board: &Board) {
        record::put_delete_board(self.0, board.number);
    }
}

impl Writing {
    /// Writes what is left and ends the threads. Errors: the disk refused.
    pub(super) fn end(mut self) -> Result<(), ServeError> {
        let written = self.stop();
        written.map_err(ServeError::data(&self.log.directory))
    }

    fn stop(&mut self) -> io::Result<()> {
        {
            let _pending = self.log.pending.lock();
            self.log.is_ending.store(true, Ordering::Release);
        }
        self.log.filled.notify_all();
        let written = self.writer.take().map(JoinHandle::join);
        // It ends when the writer has, which held the other end of its channel.
        let _ = self.snapshots.take().map(JoinHandle::join);
        match written {
            Some(Ok(written)) => written,
            Some(Err(_)) => Err(io::Error::other("the log's thread has panicked; this is a bug")),
            None => Ok(()),
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // Where it matters, `end` was called and has told.
        let _ = self.stop();
    }
}
