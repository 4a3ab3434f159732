//! Durability: a log of all changes, written by one thread for all others, and snapshots that shorten it.
//!
//! Changes are made and encoded under one lock (`Log::change`), so the log has them in the order in which they took
//! effect, and replaying it gives the same boards. The writer takes everything gathered since its last write, puts it
//! on disk as one frame with one fdatasync, and publishes how far it has come (`durable`). While the disk works the
//! next frame gathers: nothing waits for a timer.
//! Invariant: an answer is sent only when `durable` has reached the `position` that was read after the answer was made.
//! That holds for reads as well, so nothing is ever shown that a crash could undo.

#[cfg(test)]
mod damage;
mod disk;
mod frames;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
#[cfg(test)]
mod power_cuts;
mod record;
mod recovery;
#[cfg(test)]
mod simulated;
mod snapshots;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};

use super::kept::Kept;
use super::signing::Signed;
use disk::{Directory, Disk};
use frames::{FileKind, FrameWriter};
use leaderboard::{Archive, Board, Deleted, Outcome, Schedule};
pub(super) use record::Answer;
pub use recovery::Recovered;
use recovery::{Files, Torn, log_name};
use servers_shared::ServeError;
use servers_shared::shutdown::AllSignalsBlocked;
use servers_shared::wakeup::Wakeup;
#[cfg(test)]
pub(super) use simulated::SimulatedDisk;

/// How long a directory may be in use before the start is refused, and how often that is looked at.
const LOCK_WAIT: Duration = Duration::from_secs(1);
const LOCK_REST: Duration = Duration::from_millis(20);

/// How often a full disk is tried again.
const FULL_REST: Duration = Duration::from_millis(100);

/// What the service's threads share of the log.
pub(super) struct Log {
    disk: Arc<dyn Disk>,
    pending: Mutex<Pending>,
    /// Held by a thread that makes several changes that must reach the disk in one frame; the writer takes none of them
    /// before. Locked before `pending`.
    together: RwLock<()>,
    filled: Condvar,
    /// Changes that were begun. Written under the lock, before the change is made.
    position: AtomicU64,
    /// Changes that are on disk, or turned out to change nothing.
    durable: AtomicU64,
    /// Rung when `durable` has grown; one for each thread.
    wakeups: Vec<Wakeup>,
    has_failed: AtomicBool,
    is_full: AtomicBool,
    is_ending: AtomicBool,
}

/// Injects a loss: what was acknowledged last is gone, and recovery finds a torn tail.
pub(super) fn lose_last_quarter(directory: &Path) -> io::Result<()> {
    let files = Files::of(&Directory::create(directory)?)?;
    let Some(newest) = files.logs.iter().max() else { return Ok(()) };
    let log = File::options().write(true).open(directory.join(log_name(*newest)))?;
    log.set_len(log.metadata()?.len() * 3 / 4)
}

#[derive(Default)]
struct Pending {
    /// Records that are not on disk yet.
    records: Vec<u8>,
    /// Board and sequence number of the member that the last of them is about, if it is an update.
    last: Option<(u64, u64)>,
}

/// The log's threads, and the directory's lock.
pub(super) struct Writing {
    log: Arc<Log>,
    writer: Option<JoinHandle<io::Result<()>>>,
    snapshots: Option<JoinHandle<()>>,
    _lock: Option<File>,
}

/// What the change's record is appended to.
pub(super) struct Records<'l>(&'l mut Pending);

impl Log {
    /// Recovers what the directory holds into `kept`, and starts to log.
    ///
    /// Errors: a directory that cannot be used or is in use, a damaged file.
    pub(super) fn open(
        directory: &Path,
        kept: &Kept,
        threads: usize,
        snapshot_bytes: u64,
    ) -> Result<(Arc<Log>, Writing, Recovered), ServeError> {
        let failed = ServeError::data(directory);
        let disk = Directory::create(directory).map_err(&failed)?;
        let lock = File::create(directory.join("lock")).map_err(&failed)?;
        // A just forked child of another program holds the lock of a service that has ended, until it calls exec.
        let mut waited = Duration::ZERO;
        while lock.try_lock().is_err() {
            if waited >= LOCK_WAIT {
                return Err(ServeError::DataInUse { path: directory.to_owned() });
            }
            std::thread::sleep(LOCK_REST);
            waited += LOCK_REST;
        }
        let (log, mut writing, recovered) = Log::open_on(Arc::new(disk), kept, threads, snapshot_bytes)?;
        writing._lock = Some(lock);
        Ok((log, writing, recovered))
    }

    /// As `open`, on a disk that nothing else uses.
    pub(super) fn open_on(
        disk: Arc<dyn Disk>,
        kept: &Kept,
        threads: usize,
        snapshot_bytes: u64,
    ) -> Result<(Arc<Log>, Writing, Recovered), ServeError> {
        let (log, segment, begins, recovered) = Log::recover(disk, kept, threads, snapshot_bytes)?;
        let log = Arc::new(log);
        let _blocked = AllSignalsBlocked::new();
        let spawned = ServeError::system("starting a thread");
        let (own, builder) = (log.clone(), std::thread::Builder::new().name("log".to_owned()));
        let writer = builder
            .spawn(move || {
                let written = own.write(segment);
                own.has_failed.store(written.is_err(), Ordering::Release);
                written
            })
            .map_err(spawned)?;
        let (own, kept) = (log.clone(), kept.clone());
        let builder = std::thread::Builder::new().name("snapshots".to_owned());
        let snapshots = builder.spawn(move || snapshots::run(&own, &kept, &begins));
        let snapshots = snapshots.map_err(ServeError::system("starting a thread"))?;
        let writing =
            Writing { log: log.clone(), writer: Some(writer), snapshots: Some(snapshots), _lock: None };
        Ok((log, writing, recovered))
    }

    /// All of `open` but its threads: the log, what its writer needs, and where the snapshot thread is notified of new
    /// segments.
    fn recover(
        disk: Arc<dyn Disk>,
        kept: &Kept,
        threads: usize,
        snapshot_bytes: u64,
    ) -> Result<(Log, Segment, mpsc::Receiver<u64>, Recovered), ServeError> {
        let directory = disk.path("");
        let failed = ServeError::data(&directory);
        let files = Files::of(&*disk).map_err(&failed)?;
        let (recovered, torn) = recovery::recover(&*disk, &files, kept)?;
        // A new log begins after what was read: no log is ever appended to after a crash.
        let number = files.next();
        let goes_on = files.logs.last() == Some(&(number - 1))
            && repair(&*disk, torn.as_ref(), number - 1).map_err(&failed)?;
        if !goes_on {
            snapshots::write(&*disk, number, kept, &mut || true).map_err(&failed)?;
        }
        let writer = new_segment(&*disk, number).map_err(&failed)?;
        let (begun, begins) = mpsc::channel();
        if goes_on {
            // The snapshot of what was read is made while the service runs.
            let _ = begun.send(number);
        } else {
            snapshots::remove_older(&*disk, number);
        }
        let wakeups = (0..threads).map(|_| Wakeup::new()).collect::<io::Result<Vec<_>>>();
        let log = Log {
            disk,
            pending: Mutex::default(),
            together: RwLock::default(),
            filled: Condvar::new(),
            position: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            wakeups: wakeups.map_err(ServeError::system("eventfd"))?,
            has_failed: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
        };
        let segment = Segment { writer, number, snapshot_bytes, begun, taken: Vec::new(), position: 0 };
        Ok((log, segment, begins, recovered))
    }

    /// Makes a change and records it, as one step.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Records<'_>) -> R) -> R {
        let mut pending = self.pending.lock();
        let was_empty = pending.records.is_empty();
        self.position.store(self.position.load(Ordering::Relaxed) + 1, Ordering::Release);
        let changed = change(&mut Records(&mut pending));
        drop(pending);
        if was_empty {
            self.filled.notify_one();
        }
        changed
    }

    /// While this is held, all changes of this thread are one for a crash: it leaves all of them or none.
    pub(super) fn together(&self) -> RwLockReadGuard<'_, ()> {
        self.together.read()
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

    /// The disk has no room: what was changed last waits for it, and no change is begun.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// The writer's life.
    fn write(&self, mut segment: Segment) -> io::Result<()> {
        loop {
            let is_last = self.gather(&mut segment);
            if segment.position == self.durable() {
                return segment.writer.take_back();
            }
            self.commit(&mut segment)?;
            if is_last && self.is_full() {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
    }

    /// Waits for changes and takes them. True when the log ends.
    fn gather(&self, segment: &mut Segment) -> bool {
        let mut pending = self.pending.lock();
        while pending.records.is_empty() && (self.is_full() || self.position() == self.durable()) {
            if self.is_ending.load(Ordering::Acquire) {
                break;
            }
            if self.is_full() {
                self.filled.wait_for(&mut pending, FULL_REST);
                break;
            }
            self.filled.wait(&mut pending);
        }
        drop(pending);
        self.take(segment);
        self.is_ending.load(Ordering::Acquire)
    }

    /// Takes what has gathered.
    fn take(&self, segment: &mut Segment) {
        let _together = self.together.write();
        let mut pending = self.pending.lock();
        pending.last = None;
        segment.take(&mut pending.records, self.position());
    }

    /// Puts what was taken on disk as one frame, and says so. What a full disk refuses is kept for another try.
    fn commit(&self, segment: &mut Segment) -> io::Result<()> {
        if !segment.taken.is_empty() {
            if let Err(error) = segment.writer.put(&segment.taken) {
                if !disk::is_full(&error) {
                    return Err(error);
                }
                segment.writer.take_back()?;
                self.is_full.store(true, Ordering::Release);
                return Ok(());
            }
            segment.writer.sync()?;
            segment.taken.clear();
            segment.taken.shrink_to(1024 * 1024);
        }
        self.is_full.store(false, Ordering::Release);
        self.durable.store(segment.position, Ordering::Release);
        self.wakeups.iter().for_each(Wakeup::ring);
        if segment.writer.bytes() > segment.snapshot_bytes {
            self.begin_segment(segment)?;
        }
        Ok(())
    }

    /// Begins another file, and asks for a snapshot of what is in those before it.
    ///
    /// All that was taken until now is in the old segment, and on disk; what is taken from now on is not.
    fn begin_segment(&self, segment: &mut Segment) -> io::Result<()> {
        let number = segment.number + 1;
        match new_segment(&*self.disk, number) {
            Ok(writer) => {
                (segment.writer, segment.number) = (writer, number);
                // If the thread makes no more snapshots the log stays long, nothing worse.
                let _ = segment.begun.send(number);
                Ok(())
            }
            // The old one goes on: with no file behind it, or it could not be torn.
            Err(error) if disk::is_full(&error) => {
                self.disk.remove(&log_name(number))?;
                self.disk.sync_names()
            }
            Err(error) => Err(error),
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
    /// Records that were taken and are not on disk yet.
    taken: Vec<u8>,
    /// Changes up to this one are in `taken` or on disk.
    position: u64,
}

impl Segment {
    fn take(&mut self, records: &mut Vec<u8>, position: u64) {
        if self.taken.is_empty() {
            std::mem::swap(&mut self.taken, records);
        } else {
            self.taken.append(records);
        }
        self.position = position;
    }
}

/// Makes the last log one that another may follow: what was read of it is on disk, and an unfinished write at its end is
/// cut off. False: no log can follow it.
fn repair(disk: &dyn Disk, torn: Option<&Torn>, last: u64) -> io::Result<bool> {
    let is_good = |torn: &Torn| torn.log == last && torn.at >= frames::FILE_HEAD_BYTES as u64;
    if !torn.is_none_or(is_good) {
        return Ok(false);
    }
    let mut file = disk.open(&log_name(last))?;
    if let Some(torn) = torn {
        file.truncate(torn.at)?;
    }
    // A killed process may have left a write that was read now and is not on disk yet.
    file.sync()?;
    Ok(true)
}

fn new_segment(disk: &dyn Disk, number: u64) -> io::Result<FrameWriter> {
    let mut writer = FrameWriter::begin(disk.create(&log_name(number))?, FileKind::Log, number)?;
    writer.sync()?;
    disk.sync_names()?;
    Ok(writer.with_room(disk.log_room()))
}

impl Records<'_> {
    pub(super) fn updated(&mut self, board: &Board, member: &str, outcome: &Outcome) {
        let Pending { records, last } = &mut *self.0;
        let place = (board.number, outcome.sequence);
        match last {
            Some(last) if (last.0, last.1 + 1) == place => {
                record::put_next_member(records, member, &outcome.score, outcome.tie);
            }
            _ => record::put_member(records, place, member, &outcome.score, outcome.tie, None),
        }
        *last = Some(place);
    }

    /// For the record of anything but an update.
    fn out(&mut self) -> &mut Vec<u8> {
        self.0.last = None;
        &mut self.0.records
    }

    pub(super) fn deleted_member(&mut self, board: &Board, member: &str, deleted: &Deleted) {
        record::put_delete_member(self.out(), (board.number, deleted.sequence), member);
    }

    pub(super) fn created(&mut self, board: &Board) {
        record::put_create(self.out(), board.number, &board.options, &board.name);
    }

    pub(super) fn deleted_board(&mut self, board: &Board) {
        record::put_delete_board(self.out(), board.number);
    }

    /// `sequence` is the number of the change.
    pub(super) fn set_metadata(&mut self, board: &Board, sequence: u64, member: &str, text: Option<&str>) {
        record::put_metadata(self.out(), (board.number, sequence), member, text);
    }

    pub(super) fn ended_season(&mut self, board: &Board, archive: &Archive) {
        let place = (board.number, archive.snapshot().sequence);
        record::put_end_season(self.out(), place, archive.ended_at_s, &archive.season);
    }

    pub(super) fn deleted_season(&mut self, board: &Board, archive: &Archive) {
        record::put_delete_season(self.out(), board.number, archive.snapshot().sequence);
    }

    pub(super) fn scheduled(&mut self, board: &Board, schedule: Option<Schedule>) {
        record::put_schedule(self.out(), board.number, schedule);
    }

    pub(super) fn used_nonce(&mut self, signed: &Signed<'_>) {
        record::put_nonce(self.out(), signed.expires_s, signed.key, signed.nonce);
    }

    pub(super) fn answered(&mut self, answer: &Answer<'_>) {
        record::put_answer(self.out(), answer);
    }
}

impl Writing {
    /// Writes what is left and ends the threads. Errors: the disk refused.
    pub(super) fn end(mut self) -> Result<(), ServeError> {
        let written = self.stop();
        written.map_err(ServeError::data(&self.log.disk.path("")))
    }

    fn stop(&mut self) -> io::Result<()> {
        {
            let _pending = self.log.pending.lock();
            self.log.is_ending.store(true, Ordering::Release);
        }
        self.log.filled.notify_all();
        let written = self.writer.take().map(JoinHandle::join);
        // It ends when the writer, which held the other end of its channel, has.
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
        // Where it matters, `end` was called and has reported.
        let _ = self.stop();
    }
}
