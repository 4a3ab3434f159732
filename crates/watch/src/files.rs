//! Files named by a user, a scenario or a server: opened without blocking, and read with a limit.
//!
//! A scenario may come from elsewhere, and so may a folder of files: a name that ends in `.yaml` may be a link to an
//! endless device, or a FIFO without a writer. So a file must be regular, and nothing is read beyond a limit.
//! Not here: stores.

use std::fs::{File, FileType};
use std::io::{self, IsTerminal as _, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// What a name may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// regular files: a scenario may give the name, or its file may come from elsewhere
    Files,
    /// pipes and terminals too, as of `<(…)` and `/dev/stdin`: only the user names it, on the command line
    FilesAndPipes,
}

/// Opens a file without waiting for anything but a pipe that is accepted. Errors: what else it is, and what to do.
pub fn open(path: &Path, accepts: Accepts) -> io::Result<File> {
    let accepts_pipes = accepts == Accepts::FilesAndPipes;
    let may_wait = accepts_pipes && path.metadata()?.file_type().is_fifo();
    // Without O_NONBLOCK, opening a FIFO waits for its writer; a terminal must not become that of this process.
    let flags = if may_wait { 0 } else { libc::O_NONBLOCK | libc::O_NOCTTY };
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?.file_type();
    if found.is_file() || may_wait && found.is_fifo() {
        return Ok(file);
    }
    if accepts_pipes && file.is_terminal() {
        // Reopened in blocking mode, because reads must wait for typed input.
        return File::open(path);
    }
    let wanted = if accepts_pipes { "a regular file or a pipe" } else { "a regular file" };
    let text = format!("it is {}; name {wanted}", kind_of(found));
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// All of a file as text, which is at most so long. Errors: those of `read`; bytes that are not UTF-8.
pub fn read_text(path: &Path, accepts: Accepts, bytes_max: u64) -> io::Result<String> {
    // The standard library's wording for the same error.
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
    String::from_utf8(read(path, accepts, bytes_max)?).map_err(no_text)
}

/// All of a file, which is at most so long. Errors: those of `open`; a longer file.
pub fn read(path: &Path, accepts: Accepts, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path, accepts)?;
    let too_long = || {
        let text =
            format!("it is longer than {} MiB, which is the most that is read; shorten it", bytes_max >> 20);
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    };
    let length = file.metadata()?.len();
    if length > bytes_max {
        return Err(too_long());
    }
    // A file may grow meanwhile, and a pipe has no known length.
    let mut bytes = Vec::new();
    (&mut file).take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(too_long()) } else { Ok(bytes) }
}

fn kind_of(found: FileType) -> &'static str {
    match found {
        _ if found.is_dir() => "a folder",
        _ if found.is_fifo() => "a pipe",
        _ if found.is_socket() => "a socket",
        _ if found.is_char_device() || found.is_block_device() => "a device",
        _ => "no regular file",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;

    use super::*;

    fn said(path: &Path, accepts: Accepts) -> String {
        read_text(path, accepts, 1 << 20)
            .map_or_else(|error| error.to_string(), |text| format!("read {text}"))
    }

    fn fifo(folder: &Path) -> PathBuf {
        let path = folder.join("pipe.yaml");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()), "a FIFO");
        path
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once_and_by_what_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("zero.yaml");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
        for accepts in [Accepts::Files, Accepts::FilesAndPipes] {
            assert!(said(&link, accepts).starts_with("it is a device; name a regular file"), "{accepts:?}");
            assert!(said(folder.path(), accepts).starts_with("it is a folder; name a regular file"));
        }
        assert_eq!(said(&fifo(folder.path()), Accepts::Files), "it is a pipe; name a regular file");
        assert!(said(&folder.path().join("none"), Accepts::Files).contains("No such file"));
    }

    #[test]
    fn a_pipe_is_read_where_the_user_may_name_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = fifo(folder.path());
        let writer = {
            let path = path.clone();
            std::thread::spawn(move || {
                File::options()
                    .write(true)
                    .open(path)
                    .and_then(|mut pipe| pipe.write_all(b"a: 1"))
                    .expect("a reader")
            })
        };
        assert_eq!(said(&path, Accepts::FilesAndPipes), "read a: 1");
        writer.join().expect("it wrote");
    }

    #[test]
    fn nothing_is_read_beyond_the_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("long.yaml");
        std::fs::write(&path, "x".repeat(1 << 20)).expect("a file");
        assert!(said(&path, Accepts::Files).starts_with("read xxx"));
        std::fs::write(&path, "x".repeat((1 << 20) + 1)).expect("a file");
        let expected = "it is longer than 1 MiB, which is the most that is read; shorten it";
        assert_eq!(said(&path, Accepts::Files), expected);
        let pipe = fifo(folder.path());
        let end = pipe.clone();
        let writer = std::thread::spawn(move || {
            let mut pipe = File::options().write(true).open(end).expect("a reader");
            // It ends with the reader.
            while pipe.write_all(&[b'x'; 1 << 16]).is_ok() {}
        });
        assert_eq!(said(&pipe, Accepts::FilesAndPipes), expected);
        writer.join().expect("it ended");
    }
}
