//! The files of a data directory: all that the log needs of a file system, so that tests can substitute another one.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// One directory of files by name.
///
/// What was written is on disk after `DiskFile::sync`, names and what they stand for after `sync_names`. Before that a
/// crash may take back any part of it, in any order.
pub(crate) trait Disk: Send + Sync {
    /// Where a file is, for messages.
    fn path(&self, name: &str) -> PathBuf;

    /// The names of all files.
    fn names(&self) -> io::Result<Vec<String>>;

    /// All of a file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// An empty file; one that has the name already is replaced.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// A file that is there.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name; one that has it already is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes what `create`, `rename` and `remove` did durable.
    fn sync_names(&self) -> io::Result<()>;

    /// Room that a log gets at once, in bytes: as much as it has already, within these bounds.
    fn log_room(&self) -> RangeInclusive<u64> {
        64 * 1024..=8 * 1024 * 1024
    }
}

/// A file that is written.
pub(crate) trait DiskFile: Send {
    /// Errors: some of it may have been written.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Puts zeros on disk from `offset`, which is the file's end or behind it, up to `end`. What is written over them
    /// changes neither the file's length nor its blocks, so that a `sync` of it needs to write nothing else.
    ///
    /// Errors: some of it may have been done.
    fn extend(&mut self, offset: u64, end: u64) -> io::Result<()>;

    /// Cuts the file to this length.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;

    /// Syncs its bytes to disk. After an error it is unknown which of them are there, so a retry cannot be trusted.
    fn sync(&mut self) -> io::Result<()>;
}

/// The file system's directory.
pub(super) struct Directory(pub(super) PathBuf);

impl Directory {
    /// Makes the directory durable, with those above it that did not exist.
    pub(super) fn create(path: &Path) -> io::Result<Directory> {
        let missing: Vec<&Path> = path.ancestors().take_while(|each| !each.exists()).collect();
        std::fs::create_dir_all(path)?;
        for each in missing {
            let above = each.parent().filter(|above| !above.as_os_str().is_empty());
            sync_directory(above.unwrap_or(Path::new(".")))?;
        }
        Ok(Directory(path.to_owned()))
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

impl Disk for Directory {
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
            // Names that are not UTF-8 are not ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.path(name))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let options = OpenOptions::new().write(true).create(true).truncate(true).open(self.path(name))?;
        Ok(Box::new(options))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().write(true).open(self.path(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        sync_directory(&self.0)
    }
}

impl DiskFile for File {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn extend(&mut self, offset: u64, end: u64) -> io::Result<()> {
        // Written and not only allocated: unwritten blocks would have to be marked as written later.
        let zeros = vec![0; 1024 * 1024];
        let mut at = offset;
        while at < end {
            let bytes = (end - at).min(zeros.len() as u64);
            self.write_all_at(&zeros[..bytes as usize], at)?;
            at += bytes;
        }
        self.sync_data()
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Whether an error says that there is no room, which may change.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
