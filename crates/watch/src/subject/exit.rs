//! How a process ended, and how to notice that without reaping it.

use std::fmt;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::process::started_ticks;

/// How a process ended. Displayed in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// its exit code, when it ended by itself
    pub code: Option<i32>,
    /// the signal that ended it
    pub signal: Option<i32>,
}

/// Tells of a process's end. A copy may live on any thread.
#[derive(Clone, Copy, Debug)]
pub struct ExitWatch(Whose);

#[derive(Clone, Copy, Debug)]
enum Whose {
    /// our child: we learn how it ended
    Child(Pid),
    /// not ours: we only see that it has ended
    Other { pid: u32, started_ticks: u64 },
}

impl ExitWatch {
    pub(super) fn child(pid: Pid) -> Self {
        ExitWatch(Whose::Child(pid))
    }

    /// Watches a process that we did not start (`--pid`); it is never signalled. Errors: no such process.
    pub fn of_running(pid: u32) -> std::io::Result<Self> {
        Ok(ExitWatch(Whose::Other { pid, started_ticks: started_ticks(pid)? }))
    }

    /// How it ended, `None` while it runs. Does not wait, and reaps nothing.
    pub fn peek(&self) -> Option<Exit> {
        match self.0 {
            Whose::Child(pid) => {
                let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                match waitid(WaitId::Pid(pid), how) {
                    Ok(None) => None,
                    Ok(Some(status)) => {
                        Some(Exit { code: status.exit_status(), signal: status.terminating_signal() })
                    }
                    Err(rustix::io::Errno::INTR) => None,
                    Err(_) => Some(Exit::UNKNOWN),
                }
            }
            Whose::Other { pid, started_ticks: before } => match started_ticks(pid) {
                Ok(now) if now == before => None,
                _ => Some(Exit::UNKNOWN),
            },
        }
    }
}

impl Exit {
    /// It has ended, and we do not know how.
    pub const UNKNOWN: Exit = Exit { code: None, signal: None };
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => {
                write!(f, "exit code {code}")?;
                match code {
                    126 => write!(f, " (found but not executable)"),
                    127 => write!(f, " (command not found)"),
                    // A shell reports this way that its own child was ended by a signal.
                    129..=159 => write!(f, " (its shell reports {})", signal(code - 128)),
                    _ => Ok(()),
                }
            }
            (None, Some(number)) => write!(f, "killed by {}", signal(number)),
            (None, None) => write!(f, "gone (it was not started here, so how it ended is not known)"),
        }
    }
}

fn signal(number: i32) -> String {
    let known = match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT (Ctrl-C)",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT, its own abort",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL, by a user or by the kernel when memory ran out",
        libc::SIGSEGV => "SIGSEGV, a bad memory access",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU, a CPU limit",
        libc::SIGSYS => "SIGSYS, a forbidden system call",
        _ => return format!("signal {number}"),
    };
    known.to_owned()
}
