//! A descriptor table per thread, because a common hard limit is 20,000 descriptors *per table*.
//!
//! A thread with its own table must never be handed another thread's descriptor number, nor be woken through one: in
//! its table that number is closed, or a different socket. Threads communicate through memory. What all must see (the
//! listener) is named in `keep` and stays open under the same number.

use std::io;
use std::os::fd::RawFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors left free in every table, for epoll, log files and what libraries open.
const RESERVED: u64 = 64;

/// However low the limit is, tables are not multiplied beyond this: then fewer sockets fit than were allowed.
const THREADS_MAX: usize = 32;

/// Raises the soft limit to the hard one and returns how many sockets one table can hold.
pub fn raise_limit() -> usize {
    let Rlimit { mut current, maximum } = getrlimit(Resource::Nofile);
    if setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok() {
        current = maximum;
    }
    // None: no limit.
    current.unwrap_or(u64::MAX).saturating_sub(RESERVED).clamp(1, 1 << 30) as usize
}

/// How many threads run at once.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// How many threads it takes to hold so many sockets, and no fewer than `at_least`.
pub fn threads_for(sockets: usize, table_sockets: usize, at_least: usize) -> usize {
    sockets.div_ceil(table_sockets).min(THREADS_MAX).max(at_least)
}

/// Gives the calling thread a table with the standard streams and `keep`, and nothing else.
///
/// Errors: kernels before 5.9 do not know the call; the thread then still shares the process's table.
pub fn own(keep: &[RawFd]) -> io::Result<()> {
    let mut flags = libc::CLOSE_RANGE_UNSHARE;
    for (first, last) in gaps(keep) {
        // SAFETY: a plain system call without pointers. It closes only in the new table of this thread.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } != 0 {
            return Err(io::Error::last_os_error());
        }
        flags = 0;
    }
    Ok(())
}

/// The ranges from 3 on that lie between the descriptors to keep. The last one is open-ended.
fn gaps(keep: &[RawFd]) -> Vec<(u32, u32)> {
    let mut kept: Vec<u32> = keep.iter().filter(|fd| **fd >= 3).map(|fd| *fd as u32).collect();
    kept.sort_unstable();
    kept.dedup();
    let mut first = 3;
    let mut gaps = Vec::new();
    for fd in kept {
        if fd > first {
            gaps.push((first, fd - 1));
        }
        first = fd + 1;
    }
    gaps.push((first, u32::MAX));
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn gaps_leave_out_what_is_kept() {
        assert_eq!(gaps(&[]), [(3, u32::MAX)]);
        assert_eq!(gaps(&[3]), [(4, u32::MAX)]);
        assert_eq!(gaps(&[9, 5]), [(3, 4), (6, 8), (10, u32::MAX)]);
        assert_eq!(gaps(&[0, 1, 4]), [(3, 3), (5, u32::MAX)]);
    }

    #[test]
    fn twenty_thousand_games_fit_into_three_tables_and_a_tiny_limit_makes_no_army_of_threads() {
        assert_eq!(threads_for(40_000, 19_936, 2), 3);
        assert_eq!(threads_for(40_000, 1_000_000, 2), 2);
        assert_eq!(threads_for(40_000, 1, 2), THREADS_MAX);
    }

    #[test]
    fn a_thread_closes_its_own_copies_and_leaves_the_processs_alone() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let kept = std::fs::File::open("/dev/null").unwrap();
        let (gone_fd, kept_fd) = (file.as_raw_fd(), kept.as_raw_fd());
        let in_thread = std::thread::spawn(move || {
            own(&[kept_fd]).unwrap();
            // SAFETY: asking for a descriptor's flags touches no memory.
            unsafe { (libc::fcntl(gone_fd, libc::F_GETFD), libc::fcntl(kept_fd, libc::F_GETFD)) }
        });
        let (gone, kept_there) = in_thread.join().unwrap();
        assert_eq!(gone, -1);
        assert!(kept_there >= 0);
        assert!(file.metadata().is_ok(), "the other table still has it");
    }
}
