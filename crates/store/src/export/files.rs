//! Files of exports: each is complete or absent, none that exists is overwritten, and errors name the path.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::StoreError;

/// A file that gets its name only when all of it is written: a process that is killed meanwhile leaves no cut one.
pub(super) struct NewFile {
    part: NamedTempFile,
    path: PathBuf,
}

pub(super) fn create(path: &Path) -> Result<NewFile, StoreError> {
    // Also checked at the end; checking now avoids useless work.
    if path.symlink_metadata().is_ok() {
        return Err(failed(path, io::Error::from_raw_os_error(libc::EEXIST)));
    }
    let part = part_of(path, Permissions::from_mode(0o666)).map_err(|error| failed(path, error))?;
    Ok(NewFile { part, path: path.to_owned() })
}

/// A file in the same folder that is written in place of `path` and can become it when it is whole; dropped, it is removed.
/// `permissions`: the umask takes its share of them. Errors: the folder takes no file.
pub fn part_of(path: &Path, permissions: Permissions) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".stepladder-").suffix(".part").permissions(permissions).tempfile_in(folder)
}

impl NewFile {
    /// All is written; without this call nothing is left.
    pub(super) fn finish(self) -> Result<(), StoreError> {
        let NewFile { part, path } = self;
        part.persist_noclobber(&path).map(drop).map_err(|error| failed(&path, error.error))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.part.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.part.flush()
    }
}

pub(super) fn failed(path: &Path, error: impl std::fmt::Display) -> StoreError {
    StoreError::Output { to: format!("to {}", path.display()), detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let files = std::fs::read_dir(folder).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.csv");
        let mut file = create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap().as_slice(), names(folder.path()).len()),
            (&b"whole"[..], 1)
        );
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        create(&folder.path().join("run.csv")).unwrap().write_all(b"half").unwrap();
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn a_file_that_is_there_stays_whenever_it_came() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.csv");
        let mut late = create(&path).unwrap();
        late.write_all(b"new").unwrap();
        std::fs::write(&path, "old").unwrap();
        for error in [late.finish().err(), create(&path).err()] {
            assert!(error.unwrap().to_string().contains("run.csv"));
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["run.csv"]);
    }
}
