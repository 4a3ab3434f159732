//! Other runs of this program on this machine: each takes CPU from the others, so each must know of them.
//!
//! Every run, of whatever user, locks a slot in one machine-wide file and writes its identity there. The kernel
//! releases the slot when the process ends, however it ends, so a killed run leaves nothing behind. The environment
//! variable `STEPLADDER_LOCK` names another file; if empty, the check is skipped.
//! Invariant: what others wrote there is read as numbers and never as text.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Names the file instead of the machine's.
pub const LOCK_VARIABLE: &str = "STEPLADDER_LOCK";
/// The machine's: a folder of each user or program would not show what others run.
const MACHINES: &str = "/tmp/stepladder.lock";
const PLACE_BYTES: u64 = 64;
/// More runs at once are not counted.
const PLACES: u64 = 256;
/// How often a run that waits for others looks for them.
const LOOK: Duration = Duration::from_millis(200);
/// A process with more ancestors is none of ours.
const ANCESTORS_MOST: usize = 64;

/// Another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherRun {
    /// its process; 0 where it has not said so yet
    pub pid: u32,
    /// when it began, ms since the epoch; 0 where it has not said so yet
    pub since_unix_ms: u64,
}

/// The places of all runs, and ours.
#[derive(Debug)]
struct Places {
    file: File,
}

/// Ours, from the moment on in which this process counts as a run.
static ENTERED: OnceLock<Places> = OnceLock::new();

/// This process is a run from now on until it ends. Returns the others that go on, whose number is sampled from here on.
///
/// `waits`: only once none of them does; `tell` hears of the first that is waited for, and `gives_up` is asked meanwhile.
/// Errors: it gave up, of kind `Interrupted`. A file that cannot be used is none: then nothing is known of others.
pub fn enter(
    waits: bool,
    tell: impl FnOnce(OtherRun),
    gives_up: impl Fn() -> bool,
) -> io::Result<Vec<OtherRun>> {
    let path = std::env::var_os(LOCK_VARIABLE).map_or_else(|| PathBuf::from(MACHINES), PathBuf::from);
    if path.as_os_str().is_empty() {
        return Ok(Vec::new());
    }
    let Ok(places) = Places::open(&path) else { return Ok(Vec::new()) };
    if waits {
        places.wait(tell, gives_up)?;
    }
    if places.take().is_err() {
        return Ok(Vec::new());
    }
    let others = places.others();
    let _ = ENTERED.set(places);
    Ok(others)
}

/// How many other runs go on now; `None`: this process is none, or it is not known.
pub fn count() -> Option<usize> {
    ENTERED.get().map(|places| places.others().len())
}

impl Places {
    /// Errors: it is no file that this user may write.
    fn open(path: &Path) -> io::Result<Places> {
        let options = || {
            let mut options = OpenOptions::new();
            // Follows no link, and blocks on no pipe.
            options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
            options
        };
        // In a world-writable folder another user's file may be opened but not created.
        let file = options().open(path).or_else(|_| {
            let file = options().create_new(true).open(path)?;
            // For every user, whatever our umask is.
            file.set_permissions(std::fs::Permissions::from_mode(0o666))?;
            Ok::<_, io::Error>(file)
        });
        // Two processes may create it at the same moment: then one of them has.
        let file = file.or_else(|_| options().open(path))?;
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Places { file })
    }

    /// Waits until no other run goes on, and holds all places then, so that of several that wait one goes on.
    fn wait(&self, tell: impl FnOnce(OtherRun), gives_up: impl Fn() -> bool) -> io::Result<()> {
        let mut tell = Some(tell);
        while !self.lock(libc::F_WRLCK, 0, PLACES)? {
            if let (Some(tell), Some(other)) = (tell.take(), self.others().first()) {
                tell(*other);
            }
            if gives_up() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Takes a place, gives back all others, and writes who we are. Errors: there is none.
    fn take(&self) -> io::Result<()> {
        for place in 0..PLACES {
            if self.lock(libc::F_WRLCK, place, 1)? {
                self.lock(libc::F_UNLCK, place + 1, PLACES - place - 1)?;
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let text = format!("{} {}\n", std::process::id(), now.as_millis());
                let text = format!("{text:<width$}", width = PLACE_BYTES as usize);
                return self.file.write_all_at(text.as_bytes(), place * PLACE_BYTES);
            }
        }
        Err(io::ErrorKind::StorageFull.into())
    }

    /// Those that hold a place, without the processes that this one started and those that started it.
    fn others(&self) -> Vec<OtherRun> {
        let mut others = Vec::new();
        let mut place = 0;
        while let Some(held) = self.first_held(place) {
            let other = self.read(held);
            if !is_family(other.pid) {
                others.push(other);
            }
            place = held + 1;
        }
        others
    }

    fn read(&self, place: u64) -> OtherRun {
        let mut bytes = [0; PLACE_BYTES as usize];
        let count = self.file.read_at(&mut bytes, place * PLACE_BYTES).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        let mut words = text.split_whitespace();
        let pid = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        OtherRun { pid, since_unix_ms: words.next().and_then(|word| word.parse().ok()).unwrap_or(0) }
    }

    /// Locks places, or gives them back. False: another run holds one of them.
    fn lock(&self, how: libc::c_int, from: u64, count: u64) -> io::Result<bool> {
        // A length of 0 would mean everything from there on.
        if count == 0 {
            return Ok(true);
        }
        let range = range(how, from, count);
        // SAFETY: the descriptor is ours, and the pointer is to a value of ours that the call only reads.
        match unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &range) } {
            -1 => match io::Error::last_os_error() {
                error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
                error => Err(error),
            },
            _ => Ok(true),
        }
    }

    /// The first place from here on that another run holds.
    fn first_held(&self, from: u64) -> Option<u64> {
        let count = PLACES.checked_sub(from).filter(|count| *count > 0)?;
        let mut range = range(libc::F_WRLCK, from, count);
        // SAFETY: the descriptor is ours, and the pointer is to a value of ours that lives through the call.
        let status = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &mut range) };
        let is_held = status == 0 && range.l_type != libc::F_UNLCK as libc::c_short;
        // If a waiting process holds all of them, the first requested slot.
        is_held.then(|| (range.l_start as u64 / PLACE_BYTES).max(from))
    }
}

fn range(how: libc::c_int, from: u64, count: u64) -> libc::flock {
    // SAFETY: a plain structure of numbers, for which zero is a value.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = how as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = (from * PLACE_BYTES) as libc::off_t;
    range.l_len = (count * PLACE_BYTES) as libc::off_t;
    range
}

/// Whether a process started this one or was started by it, directly or not: a self-test climbs in separate processes.
fn is_family(pid: u32) -> bool {
    let own = std::process::id();
    pid != 0 && (pid == own || ancestors(own).any(|one| one == pid) || ancestors(pid).any(|one| one == own))
}

fn ancestors(pid: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(parent(pid), |pid| parent(*pid)).take(ANCESTORS_MOST)
}

fn parent(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The preceding name may contain blanks and brackets.
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &Path) -> Places {
        Places::open(path).expect("a file that may be written")
    }

    #[test]
    fn a_run_sees_the_others_until_they_end_and_of_these_it_reads_numbers_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        // To the kernel, two open file descriptions are like two processes.
        let (ours, theirs) = (opened(&path), opened(&path));
        ours.take().unwrap();
        assert_eq!(ours.first_held(0), None, "nothing but our own place");
        theirs.take().unwrap();
        assert_eq!((ours.first_held(0), theirs.first_held(0)), (Some(1), Some(0)));
        assert_eq!(ours.read(1).pid, std::process::id());
        assert!(ours.read(1).since_unix_ms > 1_700_000_000_000);
        assert!(ours.others().is_empty(), "both are this very process");
        theirs.file.write_all_at(b"\x1b[2J rm -rf / 1", PLACE_BYTES).unwrap();
        assert_eq!(ours.others(), [OtherRun { pid: 0, since_unix_ms: 0 }]);
        // The kernel does the same when a process ends.
        drop(theirs);
        assert!(ours.first_held(0).is_none() && ours.others().is_empty());
    }

    #[test]
    fn of_several_that_wait_one_goes_on_and_one_that_gives_up_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = opened(&path);
        first.take().unwrap();
        let waiting = opened(&path);
        let gave_up = waiting.wait(|_| {}, || true).unwrap_err();
        assert_eq!(gave_up.kind(), io::ErrorKind::Interrupted);
        drop(first);
        waiting.wait(|_| panic!("there is nothing to wait for"), || true).unwrap();
        let other = opened(&path);
        assert!(other.wait(|_| {}, || true).is_err(), "the other that waited was first");
        waiting.take().unwrap();
        assert_eq!(other.first_held(0), Some(0));
        assert!(
            other.lock(libc::F_WRLCK, 1, PLACES - 1).unwrap(),
            "it keeps one place and gives back the others"
        );
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link")).unwrap();
        for path in [folder.path().join("link"), folder.path().to_owned(), PathBuf::from("/dev/null")] {
            assert!(Places::open(&path).is_err(), "{}", path.display());
        }
    }
}
