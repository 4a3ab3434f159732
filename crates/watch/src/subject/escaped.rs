//! Processes that left the subject's group: a daemon, or one that began its own session (setsid).
//!
//! A signal to the group does not reach them, and their parent is no longer ours. They carry the subject's mark, an
//! environment variable that its children inherit. One that discarded its environment cannot be found this way.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};

/// The variable that holds a mark.
const NAME: &str = "STEPLADDER_SUBJECT";

/// What tells one subject's processes from all others.
#[derive(Debug)]
pub(super) struct Mark(String);

impl Mark {
    /// A mark that no other subject has or had, put on `command`.
    pub fn put_on(command: &mut Command) -> Mark {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mark = format!("{}.{count}.{}", std::process::id(), since.map_or(0, |since| since.as_nanos()));
        command.env(NAME, &mark);
        Mark(mark)
    }

    /// The living processes that carry it, those of the group `but` left out.
    pub fn escaped(&self, but: Pid) -> Vec<Pid> {
        let Ok(processes) = procfs::process::all_processes() else { return Vec::new() };
        let is_ours = |process: &procfs::process::Process| {
            let stat = process.stat().ok()?;
            let is_alive = !matches!(stat.state, 'Z' | 'X');
            // Another user's environment cannot be read, and is not the subject's.
            let environment = process.environ().ok()?;
            let marked = environment.get(&OsString::from(NAME))?.as_bytes() == self.0.as_bytes();
            (is_alive && marked && stat.pgrp != but.as_raw_nonzero().get()).then_some(stat.pid)
        };
        let found = processes.flatten().filter_map(|process| is_ours(&process));
        found.filter_map(Pid::from_raw).collect()
    }
}

/// Whether a process of this group lives. Those that ended and wait to be reaped do not.
pub(super) fn is_anybody_in(group: Pid) -> bool {
    let Ok(processes) = procfs::process::all_processes() else { return true };
    let is_member = |stat: procfs::process::Stat| {
        stat.pgrp == group.as_raw_nonzero().get() && lives(stat.state, stat.num_threads)
    };
    processes.flatten().filter_map(|process| process.stat().ok()).any(is_member)
}

/// A process whose first thread has ended is shown as a zombie while others of it still end: a large JVM listens for some 100 ms
/// more.
fn lives(state: char, threads: i64) -> bool {
    !matches!(state, 'Z' | 'X') || threads > 1
}

/// Sends a signal to each of them; one that has ended meanwhile needs none.
pub(super) fn signal(processes: &[Pid], signal: Signal) {
    for pid in processes {
        let _ = kill_process(*pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_its_last_thread_has_ended() {
        for (state, threads, expected) in
            [('S', 1, true), ('Z', 1, false), ('Z', 0, false), ('Z', 64, true), ('X', 1, false)]
        {
            assert_eq!(lives(state, threads), expected, "{state} {threads}");
        }
    }
}
