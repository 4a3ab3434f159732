//! What the subject's active threads are doing: in which call each is, looked at now and then.
//!
//! `/proc/PID/task/TID/syscall` names the system call that a thread is in, or says that it runs. Looks come at irregular moments, so that
//! they cannot keep step with the ticks of a server, and the more seldom the longer they take. The mean over the looks of a second is the number of threads in each state. Reading it
//! needs the right to trace the process: the same user, and where the kernel restricts that (Yama) a process of our own.
//! Source: man 5 proc_pid_syscall.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::{io, str};

use measure::ThreadState;

use crate::threads::thread_cpu_s;

/// Threads that are looked at, of more some by chance.
const LOOKED_AT_MAX: usize = 64;
/// Between two looks at least and at most: sixteen a second in the mean.
const GAP_LEAST_NS: u64 = 30_000_000;
const GAP_MOST_NS: u64 = 95_000_000;
/// Looks take at most this share of a core; those that would take more come more seldom.
const LOOKS_SHARE: f64 = 0.001;
/// But one a second at least.
const SLOWER_MAX: f64 = 16.0;
/// How much a look counts in the mean of what they take.
const NEWEST_WEIGHT: f64 = 0.1;

/// Looks again and again.
#[derive(Debug)]
pub(crate) struct ThreadStates {
    proc: PathBuf,
    active: Vec<(i32, i32)>,
    /// how many active threads each of these stands for
    weight: f64,
    /// the file of each of them, open: opening it takes longer than reading it
    files: BTreeMap<(i32, i32), File>,
    /// CPU time of a look, s, in the mean over the last ones
    cost_s: f64,
    counts: [u32; ThreadState::ALL.len()],
    looks: u32,
    /// a thread could not be looked at although it lives
    is_refused: bool,
    random: u64,
}

impl ThreadStates {
    pub(crate) fn new() -> ThreadStates {
        ThreadStates {
            proc: PathBuf::from("/proc"),
            active: Vec::new(),
            weight: 1.0,
            files: BTreeMap::new(),
            cost_s: 0.0,
            counts: [0; ThreadState::ALL.len()],
            looks: 0,
            is_refused: false,
            random: 0x9E37_79B9_7F4A_7C15,
        }
    }

    /// Time until the next look, ns.
    pub(crate) fn gap_ns(&mut self) -> u64 {
        let gap_ns = GAP_LEAST_NS + self.drawn() % (GAP_MOST_NS - GAP_LEAST_NS);
        let mean_s = (GAP_LEAST_NS + GAP_MOST_NS) as f64 / 2e9;
        (gap_ns as f64 * (self.cost_s / mean_s / LOOKS_SHARE).clamp(1.0, SLOWER_MAX)) as u64
    }

    fn drawn(&mut self) -> u64 {
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Looks at every active thread once.
    pub(crate) fn look(&mut self) {
        if self.is_refused || self.active.is_empty() {
            return;
        }
        let begin_s = thread_cpu_s();
        let mut is_seen = false;
        for at in 0..self.active.len() {
            let thread @ (pid, tid) = self.active[at];
            let mut text = [0; TEXT_BYTES];
            match self.read(thread, &mut text) {
                Ok(text) => {
                    let in_disk_wait = || {
                        fs::read_to_string(self.proc.join(format!("{pid}/task/{tid}/stat"))).is_ok_and(
                            |stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('D')),
                        )
                    };
                    if let Some(state) = state_of(text, in_disk_wait) {
                        self.counts[state as usize] += 1;
                        is_seen = true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => self.is_refused = true,
                // It has ended, or the kernel has no such file.
                Err(_) => {
                    self.files.remove(&thread);
                }
            }
        }
        // A look that saw nothing is none: 0 would claim that no thread did anything.
        self.looks += u32::from(is_seen);
        let cost_s = (thread_cpu_s() - begin_s).max(0.0);
        self.cost_s += NEWEST_WEIGHT * (cost_s - self.cost_s);
    }

    /// The beginning of a thread's file, where the number of its system call stands.
    fn read<'a>(&mut self, thread: (i32, i32), text: &'a mut [u8; TEXT_BYTES]) -> io::Result<&'a str> {
        let (pid, tid) = thread;
        if !self.files.contains_key(&thread) {
            let path = self.proc.join(format!("{pid}/task/{tid}/syscall"));
            self.files.insert(thread, File::open(path)?);
        }
        let count = self.files[&thread].read_at(text, 0)?;
        str::from_utf8(&text[..count]).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// The mean number of threads in each state since it was asked before; nothing where there was no look. From here on these
    /// threads are looked at.
    pub(crate) fn take(&mut self, active: Vec<(i32, i32)>) -> Vec<(ThreadState, f64)> {
        let looks = std::mem::take(&mut self.looks);
        let counts = std::mem::take(&mut self.counts);
        let weight = self.weight;
        self.choose(active);
        self.files.retain(|thread, _| self.active.contains(thread));
        if looks == 0 || self.is_refused {
            return Vec::new();
        }
        let mean =
            |&state: &ThreadState| (state, weight * f64::from(counts[state as usize]) / f64::from(looks));
        ThreadState::ALL.iter().map(mean).collect()
    }

    /// Of many threads a random sample: where threads take turns, the one that holds a lock now is not one that was busy a second ago.
    fn choose(&mut self, mut active: Vec<(i32, i32)>) {
        let count = active.len();
        for at in 0..count.min(LOOKED_AT_MAX) {
            let other = at + (self.drawn() % (count - at) as u64) as usize;
            active.swap(at, other);
        }
        active.truncate(LOOKED_AT_MAX);
        self.weight = count as f64 / active.len().max(1) as f64;
        self.active = active;
    }
}

/// How much of a file is read; the number comes first.
const TEXT_BYTES: usize = 32;

/// By the first word of the file; `None` where it says nothing. `-1`: blocked outside of a call.
fn state_of(text: &str, in_disk_wait: impl Fn() -> bool) -> Option<ThreadState> {
    let word = text.split_ascii_whitespace().next()?;
    if word == "running" {
        return Some(ThreadState::Running);
    }
    let state = match word.parse::<libc::c_long>().ok()? {
        libc::SYS_futex => ThreadState::Futex,
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 | libc::SYS_ppoll | libc::SYS_pselect6 => {
            ThreadState::Events
        }
        libc::SYS_accept | libc::SYS_accept4 | libc::SYS_io_uring_enter => ThreadState::Events,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait | libc::SYS_poll | libc::SYS_select => ThreadState::Events,
        libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_sync_file_range
        | libc::SYS_msync
        | libc::SYS_syncfs => ThreadState::Disk,
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => ThreadState::Sleep,
        libc::SYS_read | libc::SYS_write | libc::SYS_readv | libc::SYS_writev | libc::SYS_connect => {
            if in_disk_wait() {
                ThreadState::Disk
            } else {
                ThreadState::Transfer
            }
        }
        libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_sendto | libc::SYS_sendmsg => {
            ThreadState::Transfer
        }
        _ if in_disk_wait() => ThreadState::Disk,
        _ => ThreadState::OtherCall,
    };
    Some(state)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier, Mutex};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn calls_are_known_by_their_numbers() {
        let state = |text: &str, on_disk: bool| state_of(text, || on_disk);
        let call = |number: libc::c_long| format!("{number} 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n");
        assert_eq!(state("running\n", true), Some(ThreadState::Running));
        assert_eq!(state(&call(libc::SYS_futex), false), Some(ThreadState::Futex));
        assert_eq!(state(&call(libc::SYS_epoll_pwait), false), Some(ThreadState::Events));
        assert_eq!(state(&call(libc::SYS_fsync), false), Some(ThreadState::Disk));
        assert_eq!(state(&call(libc::SYS_write), true), Some(ThreadState::Disk));
        assert_eq!(state(&call(libc::SYS_write), false), Some(ThreadState::Transfer));
        assert_eq!(state("-1 0x7f 0x7f\n", true), Some(ThreadState::Disk));
        assert_eq!(state("-1 0x7f 0x7f\n", false), Some(ThreadState::OtherCall));
        assert_eq!((state("", false), state("perhaps\n", false)), (None, None));
    }

    #[test]
    fn threads_of_this_process_are_seen_where_they_wait() {
        let lock = Arc::new(Mutex::new(()));
        let tids = Arc::new(Mutex::new(Vec::new()));
        let begun = Arc::new(Barrier::new(3));
        let tid = || rustix::thread::gettid().as_raw_nonzero().get();
        let held = lock.lock().unwrap();
        let threads: Vec<_> = [false, true]
            .into_iter()
            .map(|sleeps| {
                let (lock, tids, begun) = (lock.clone(), tids.clone(), begun.clone());
                std::thread::spawn(move || {
                    tids.lock().unwrap().push(tid());
                    begun.wait();
                    if sleeps {
                        std::thread::sleep(Duration::from_secs(2));
                    } else {
                        drop(lock.lock().unwrap());
                    }
                })
            })
            .collect();
        begun.wait();
        let pid = std::process::id() as i32;
        let active: Vec<(i32, i32)> = tids.lock().unwrap().iter().map(|tid| (pid, *tid)).collect();
        let mut states = ThreadStates::new();
        states.take(active.clone());
        let begin = Instant::now();
        // Both are asleep soon.
        let seen = loop {
            states.look();
            let seen = states.take(active.clone());
            let of = |wanted| seen.iter().find(|(state, _)| *state == wanted).map_or(0.0, |(_, mean)| *mean);
            if of(ThreadState::Futex) == 1.0 && of(ThreadState::Sleep) == 1.0 {
                break true;
            }
            if begin.elapsed() > Duration::from_millis(1_800) {
                break false;
            }
        };
        drop(held);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(seen, "one waits for the lock, one sleeps");
    }

    #[test]
    fn looks_that_see_no_thread_tell_nothing_and_do_not_lower_the_mean() {
        let proc = tempfile::tempdir().unwrap();
        let task = proc.path().join("10/task/10");
        fs::create_dir_all(&task).unwrap();
        let mut states = ThreadStates { proc: proc.path().to_owned(), ..ThreadStates::new() };
        states.take(vec![(10, 10)]);
        states.look();
        assert_eq!(states.take(vec![(10, 10)]), [], "a kernel without the file");
        states.look();
        fs::write(task.join("syscall"), "running\n").unwrap();
        states.look();
        let seen = states.take(vec![(10, 10)]);
        assert!(
            seen.contains(&(ThreadState::Running, 1.0)) && seen.contains(&(ThreadState::Disk, 0.0)),
            "{seen:?}"
        );
    }

    #[test]
    fn of_many_threads_some_stand_for_all_whatever_their_order() {
        let proc = tempfile::tempdir().unwrap();
        let threads: Vec<(i32, i32)> = (1..=256).map(|tid| (10, tid)).collect();
        for (_, tid) in &threads {
            let task = proc.path().join(format!("10/task/{tid}"));
            fs::create_dir_all(&task).unwrap();
            let text = if *tid > 192 { "running\n".to_owned() } else { format!("{} 0x1\n", libc::SYS_futex) };
            fs::write(task.join("syscall"), text).unwrap();
        }
        let mut states = ThreadStates { proc: proc.path().to_owned(), ..ThreadStates::new() };
        states.take(threads.clone());
        let mut running = 0.0;
        for _ in 0..30 {
            states.look();
            let seen = states.take(threads.clone());
            assert!((seen.iter().map(|(_, mean)| mean).sum::<f64>() - 256.0).abs() < 1e-9);
            running += seen.iter().find(|(state, _)| *state == ThreadState::Running).unwrap().1 / 30.0;
        }
        assert!((50.0..78.0).contains(&running), "64 of 256 run, and the last ones: {running}");
        states.choose(threads[..5].to_vec());
        assert_eq!((states.weight, states.active.len()), (1.0, 5));
        states.choose(Vec::new());
        assert!(states.active.is_empty());
    }

    #[test]
    fn gaps_keep_no_step_and_stay_within_their_bounds() {
        let mut states = ThreadStates::new();
        let gaps: Vec<u64> = (0..1_000).map(|_| states.gap_ns()).collect();
        assert!(gaps.iter().all(|gap| (GAP_LEAST_NS..GAP_MOST_NS).contains(gap)));
        let mean = gaps.iter().sum::<u64>() / 1_000;
        assert!((60_000_000..65_000_000).contains(&mean), "{mean}");
        states.cost_s = 2.0 * LOOKS_SHARE * 0.0625;
        let slower = (0..1_000).map(|_| states.gap_ns()).sum::<u64>() / 1_000;
        assert!(
            (120_000_000..130_000_000).contains(&slower),
            "looks that take twice as long come half as often: {slower}"
        );
        states.cost_s = 1.0;
        assert!((0..1_000).all(|_| states.gap_ns() <= 16 * GAP_MOST_NS));
    }
}
