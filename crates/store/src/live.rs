//! Whether a run is being recorded at this moment: a locked file beside the store, one per run being recorded.
//!
//! The kernel drops the lock when the process ends, however it ends, so a killed run never looks live. A process id
//! could mislead (it is reused, and means nothing in another container). The lock is not taken on the store itself,
//! because closing that descriptor would drop SQLite's own locks.
//!
//! Only the process that created such a file removes it. One left by a killed run stays: it is empty and not locked,
//! and readers of a store remove nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::run::RunId;

/// Held while a run is recorded; dropping it takes the file away.
pub(crate) struct Live {
    path: PathBuf,
    /// open as long as the run lives: closing it unlocks
    _file: File,
}

fn live_path(store: &Path, run: &RunId) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(format!("-live-{run}"));
    PathBuf::from(name)
}

impl Live {
    /// Says that `run` is being recorded; call it before anyone can see the run.
    pub fn begin(store: &Path, run: &RunId) -> io::Result<Live> {
        let path = live_path(store, run);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).custom_flags(NEITHER_LINK_NOR_WAIT);
        let file = options.open(&path)?;
        file.lock()?;
        Ok(Live { path, _file: file })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // A leftover file is harmless: it is not locked, and ids are never reused.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Neither follow a symbolic link that someone placed there, nor wait for a FIFO's peer.
const NEITHER_LINK_NOR_WAIT: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// True while a process records `run`.
pub(crate) fn is_live(store: &Path, run: &RunId) -> bool {
    let path = live_path(store, run);
    let opened = OpenOptions::new().read(true).custom_flags(NEITHER_LINK_NOR_WAIT).open(&path);
    let Ok(file) = opened else { return false };
    // Shared, so that two concurrent readers do not take each other for the writer.
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
