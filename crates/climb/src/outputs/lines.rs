//! `--ndjson`: the lines of a run, written by a separate thread while the run is recorded.
//!
//! The thread reads them from the store, so each was committed first, and no measuring thread waits for it or hands it
//! data. A slow reader gets them later; a closed reader gets no more. At the end of the run neither delays it by more
//! than `LAST_WORDS`, and unwritten lines are reported. Errors in this output change no verdict and no exit code.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use console::say;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use store::export::SecondLines;
use store::{RunId, Store, StoreError};

/// Between two looks for something new.
const LOOK: Duration = Duration::from_millis(100);
/// After the run a reader who takes nothing for so long is left.
const STALLED: Duration = Duration::from_secs(2);
/// After the run the writer waits no longer than this for any reader.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// A pipe that is ready takes so much without blocking (PIPE_BUF).
const PIECE_BYTES: usize = 4096;

/// Where the lines go, open before the run begins.
pub struct LineFile {
    /// `--ndjson FILE`
    name: String,
    file: File,
}

impl LineFile {
    /// Opens it. Errors: it cannot be written; a FIFO without a reader. A file's old content stays until the run
    /// begins.
    pub fn open(path: &Path) -> anyhow::Result<LineFile> {
        let name = format!("--ndjson {}", path.display());
        if path == Path::new("-") {
            return Ok(LineFile { file: say::stdout_as_file().context(name.clone())?, name });
        }
        let mut options = File::options();
        match path.metadata() {
            // Opening a FIFO would block, and a full one would block the thread.
            Ok(found) if !found.is_file() => {
                options.write(true).custom_flags(libc::O_NONBLOCK);
                if found.file_type().is_fifo() {
                    let file = options.open(path).map_err(|error| match error.raw_os_error() {
                        Some(libc::ENXIO) => {
                            anyhow::anyhow!("{name}: nobody reads this FIFO; start its reader first")
                        }
                        _ => anyhow::Error::new(error).context(format!("{name}: cannot be written")),
                    });
                    return Ok(LineFile { file: file?, name });
                }
            }
            _ => {
                options.append(true).create(true);
            }
        }
        let file =
            options.open(path).with_context(|| format!("{name}: cannot be written; check the folder"))?;
        Ok(LineFile { name, file })
    }

    /// Begins to write the lines of a run, in place of what a file held.
    pub fn follow(self, store: &Path, run: &RunId) -> anyhow::Result<LineWriter> {
        if self.file.metadata().is_ok_and(|file| file.is_file()) && self.name != "--ndjson -" {
            self.file.set_len(0).context(self.name.clone())?;
        }
        let name = self.name.clone();
        let over = Arc::new(OnceLock::new());
        let (tell, told) = channel();
        let mut writing =
            Writing { file: self.file, over: over.clone(), lines: SecondLines::new(run.clone()), written: 0 };
        let store: PathBuf = store.to_owned();
        let work = move || {
            viewer::yield_to_others();
            let end = writing.follow(&store).unwrap_or_else(End::Store);
            // The receiver is gone if the wait for this thread was given up.
            let _ = tell.send(Told { end, written: writing.written });
        };
        std::thread::Builder::new().name("ndjson".to_owned()).spawn(work).context(name.clone())?;
        Ok(LineWriter { name, run: run.clone(), over, told })
    }
}

/// A thread that writes lines.
pub struct LineWriter {
    name: String,
    run: RunId,
    over: Arc<OnceLock<Instant>>,
    told: Receiver<Told>,
}

impl LineWriter {
    /// Lets it write what is left, for a limited time. Returns what its user should know; `None`: everything was written.
    pub fn finish(self) -> Option<String> {
        let LineWriter { name, run, over, told } = self;
        let _ = over.set(Instant::now());
        let Told { end, written } = match told.recv_timeout(LAST_WORDS + STALLED) {
            Ok(told) => told,
            Err(RecvTimeoutError::Timeout) => {
                return Some(format!("{name}: it takes nothing, and not all lines were written"));
            }
            Err(RecvTimeoutError::Disconnected) => return Some(format!("{name}: its thread has failed")),
        };
        let all = format!("stepladder export {run} --ndjson FILE writes them all");
        match end {
            End::Whole => None,
            // The reader closed the pipe, as `| head` does.
            End::Closed if name == "--ndjson -" => None,
            End::Closed => Some(format!("{name}: its reader left after {written} lines")),
            End::Stalled { left } => {
                Some(format!("{name}: its reader took {written} lines, and {left} were not written; {all}"))
            }
            End::Failed(error) => Some(format!("{name}: {error}; {written} lines were written; {all}")),
            End::Store(error) => Some(format!("{name}: {error}; {written} lines were written")),
        }
    }
}

struct Told {
    end: End,
    written: u64,
}

/// Why no further line is written.
enum End {
    Whole,
    Closed,
    /// after the run; so many lines were left
    Stalled {
        left: usize,
    },
    Failed(io::Error),
    Store(StoreError),
}

struct Writing {
    file: File,
    over: Arc<OnceLock<Instant>>,
    lines: SecondLines,
    written: u64,
}

impl Writing {
    /// Writes until the run has ended, or nothing more can be written.
    fn follow(&mut self, path: &Path) -> Result<End, StoreError> {
        let store = Store::open_to_read(path)?;
        let mut version = None;
        loop {
            // Read these before the store: what is committed from here on is found by the next look.
            let (is_over, now) = (self.over.get().is_some(), store.version()?);
            if is_over || version != Some(now) {
                version = Some(now);
                if let Some(end) = self.write_new(&store)? {
                    return Ok(end);
                }
            }
            if self.lines.has_ended() || is_over {
                return Ok(End::Whole);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Writes what was committed since. `Some`: nothing more can be written.
    fn write_new(&mut self, store: &Store) -> Result<Option<End>, StoreError> {
        loop {
            let piece = self.lines.step(store)?;
            if piece.is_empty() {
                return Ok(None);
            }
            for (at, line) in piece.iter().enumerate() {
                match self.write(line) {
                    Ok(()) => self.written += 1,
                    Err(End::Stalled { .. }) => {
                        let mut left = piece.len() - at;
                        // The run is over, so this loop terminates.
                        while !self.lines.has_ended() {
                            left += self.lines.step(store)?.len();
                        }
                        return Ok(Some(End::Stalled { left }));
                    }
                    Err(end) => return Ok(Some(end)),
                }
            }
        }
    }

    fn write(&mut self, line: &str) -> Result<(), End> {
        let text = say::json_line(line) + "\n";
        let mut rest = text.as_bytes();
        let mut taken = Instant::now();
        while !rest.is_empty() {
            if let Some(over) = self.over.get() {
                let is_stalled = over.elapsed() > STALLED && taken.elapsed() > STALLED;
                if is_stalled || over.elapsed() > LAST_WORDS {
                    return Err(End::Stalled { left: 0 });
                }
            }
            let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
            let mut ready = [PollFd::new(&self.file, PollFlags::OUT)];
            if matches!(poll(&mut ready, Some(&look)), Ok(0)) {
                continue;
            }
            match self.file.write(&rest[..rest.len().min(PIECE_BYTES)]) {
                Ok(count) => (rest, taken) = (&rest[count..], Instant::now()),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(End::Closed),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOOK),
                Err(error) => return Err(End::Failed(error)),
            }
        }
        Ok(())
    }
}
