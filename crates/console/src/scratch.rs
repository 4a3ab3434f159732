//! A temporary folder that is removed however this process ends.

use std::io;
use std::path::Path;

use tempfile::TempDir;
use watch::ExitGuard;

/// What children of this process still write there ends with them, five seconds after it at the latest.
const REMOVE: &str = "rm -rf -- \"$1\"; sleep 6; rm -rf -- \"$1\"";

/// Goes when it is dropped, and when this process is killed.
#[derive(Debug)]
pub struct ScratchFolder {
    // Drop order matters: while the folder is removed, the guard still watches.
    folder: TempDir,
    _exit_guard: ExitGuard,
}

impl ScratchFolder {
    /// A new folder in TMPDIR whose name begins with `stepladder-NAME-`.
    ///
    /// Errors: TMPDIR takes no folder, or there is no shell.
    pub fn new(name: &str) -> io::Result<ScratchFolder> {
        let folder = tempfile::Builder::new().prefix(&format!("stepladder-{name}-")).tempdir()?;
        let exit_guard = ExitGuard::run(REMOVE, [folder.path()])?;
        Ok(ScratchFolder { folder, _exit_guard: exit_guard })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
