//! Whether a run is being recorded at this moment: a locked file beside the store, one per run being recorded.
//!
//! The kernel drops the lock when the process ends, however it ends, so a killed run cannot pass for a living one; a
//! process id could (it is reused, and means nothing in another container). The lock is not taken on the store itself,
//! because closing that descriptor would drop SQLite's own locks.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
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
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        file.lock()?;
        Ok(Live { path, _file: file })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // A file that stays behind is harmless: it is not locked, and ids are never given twice.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// True while a process records `run`. Takes away the file that a killed one left.
pub(crate) fn is_live(store: &Path, run: &RunId) -> bool {
    let path = live_path(store, run);
    let Ok(file) = File::open(&path) else { return false };
    // Shared, so that two readers who look at once do not take each other for the writer.
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = std::fs::remove_file(&path);
            false
        }
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => false,
    }
}
