//! The subject's process: started with its own conditions, awaited until it listens, monitored for its exit, stopped.
//!
//! It gets a process group (else Ctrl-C would end the server before the bots), the limits, affinity and timer slack
//! that we were given, and no blocked or ignored signals. It is signalled to end when the *thread* that started it
//! ends, so start it from one that lives as long as the run, never from a worker. Our exit guard ends its children, and
//! processes that left its group are found by a mark (`escaped`).
//! Two threads read its output into bounded memory, so that it never blocks on us; the last lines go into the messages.
//! Its exit is observed without reaping it: until `stop` its pid cannot be reused.

mod escaped;
mod exit;
mod output;
/// Looks until it is so; false when time is up.
fn wait_until(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !is_so() {
        if begin.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process_group, set_parent_process_death_signal,
    test_kill_process_group,
};

use escaped::Mark;
pub use exit::{Exit, ExitWatch};
use output::Output;

use crate::exit_guard::ExitGuard;
use crate::inherited::Inherited;
use crate::preflight::Listens;

/// How long a subject may take to end by itself once it was asked to.
pub const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// How long a killed process is waited for: one stuck in the kernel may take for ever.
const KILL_PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);
/// Listing all processes costs milliseconds.
const LOOKS_PER_LISTING: u32 = 5;
const CONNECT_PATIENCE: Duration = Duration::from_millis(500);
/// How many of its last lines go into a message.
const TOLD_LINES: usize = 12;
/// How many of its last lines are kept with the trial in which it ended.
const OUTPUT_LINES: usize = 5;
const OUTPUT_LINE_CHARS: usize = 200;
/// A child of the subject may hold its output open for ever.
const OUTPUT_PATIENCE: Duration = Duration::from_millis(300);

/// The subject could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program is not there or may not be run.
    #[error("cannot start `{command}` ({source}); check the path and that it is executable")]
    Spawn {
        /// as the user wrote it
        command: String,
        /// the system's reason
        source: io::Error,
    },
    /// A server from an earlier run would be measured in place of the new one.
    #[error(
        "something listens on {address} already, so the bots could not tell it from the new server; stop it, or \
         measure it as it runs by leaving out --start"
    )]
    Taken {
        /// where
        address: SocketAddr,
    },
}

/// The subject was started but cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// It ended.
    #[error("`{command}` ended before it was ready: {exit}{told}")]
    Exited {
        /// as the user wrote it
        command: String,
        /// how it ended
        exit: Exit,
        /// its last lines, with the words that introduce them
        told: String,
    },
    /// It runs but does not listen.
    #[error(
        "`{command}` runs but does not accept connections on {addresses} after {waited_s:.0} s; check that it listens \
         on that address{told}"
    )]
    NotListening {
        /// as the user wrote it
        command: String,
        /// where it should listen
        addresses: String,
        /// how long was waited
        waited_s: f64,
        /// its last lines, with the words that introduce them
        told: String,
    },
    /// It runs but never said where it listens.
    #[error("`{command}` runs but did not print a URL within {waited_s:.0} s{told}")]
    NoUrl {
        /// as the user wrote it
        command: String,
        /// how long was waited
        waited_s: f64,
        /// its last lines, with the words that introduce them
        told: String,
    },
}

/// A process of ours. Dropped without `stop`, its whole group is killed at once.
#[derive(Debug)]
pub struct Started {
    command: String,
    child: Child,
    group: Pid,
    output: Output,
    exit_guard: Option<ExitGuard>,
    mark: Mark,
    stopped: bool,
}

/// How a subject was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// how it ended
    pub exit: Exit,
    /// true when it had ended before it was asked to
    pub by_itself: bool,
    /// true when it had to be killed, or left processes that had to be
    pub killed: bool,
    /// true when something of it is left although it was killed: stuck in the kernel, or another user's
    pub is_left: bool,
    /// how many processes it had started that left its process group; they were ended too
    pub escaped_count: usize,
}

impl Stopped {
    /// What had to be done beyond asking it to end, for the user; `None` when it ended as asked.
    pub fn trouble(&self) -> Option<String> {
        let patience_s = STOP_PATIENCE.as_secs();
        let escaped = match self.escaped_count {
            0 => None,
            1 => Some(
                "a process that the server had started left its process group (setsid, or as a daemon)"
                    .to_owned(),
            ),
            many => Some(format!(
                "{many} processes that the server had started left its process group (setsid, or as daemons)"
            )),
        };
        let trouble = self.trouble_with_group(patience_s);
        match (escaped, trouble) {
            (Some(escaped), Some(trouble)) => Some(format!("{escaped}; {trouble}")),
            (Some(escaped), None) => Some(format!("{escaped}; it was found and ended as well")),
            (None, trouble) => trouble,
        }
    }

    fn trouble_with_group(&self, patience_s: u64) -> Option<String> {
        match (self.is_left, self.killed, self.by_itself) {
            (true, ..) => Some(format!(
                "the server or a process it started did not end within {} s of SIGKILL (it is stuck in the kernel, or \
                 belongs to another user); it is left running",
                KILL_PATIENCE.as_secs()
            )),
            (false, true, false) => Some(format!(
                "the server did not end within {patience_s} s of SIGTERM, so it was killed (SIGKILL)"
            )),
            (false, true, true) => Some(format!(
                "the server had ended, but processes it started did not end within {patience_s} s of SIGTERM, so they \
                 were killed (SIGKILL)"
            )),
            (false, false, _) => None,
        }
    }
}

/// The user's command line, as a shell runs it.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line);
    command
}

/// Errors: `Taken` when something accepts connections on `address`; asked before a subject is started there.
pub fn refuse_taken(address: SocketAddr, listens: Listens) -> Result<(), StartError> {
    match listens.at(&address, CONNECT_PATIENCE) {
        Ok(_) => Err(StartError::Taken { address }),
        Err(_) => Ok(()),
    }
}

impl Started {
    /// Starts `command`; `shown` is what the user wrote, for messages. Its standard streams are taken over.
    pub fn start(mut command: Command, shown: &str) -> Result<Self, StartError> {
        let inherited = Inherited::remember();
        let parent = getpid();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        // SAFETY: only system calls between fork and exec, no allocation and no lock.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::TERM))?;
                if getppid() != Some(parent) {
                    // The parent ended in between, so the signal will never come.
                    return Err(io::ErrorKind::Interrupted.into());
                }
                inherited.restore();
                let mut none = std::mem::zeroed();
                libc::sigemptyset(&mut none);
                // This program treats SIGXFSZ as an error; the subject gets the default action.
                libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
                if libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) != 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let mark = Mark::put_on(&mut command);
        let mut child =
            command.spawn().map_err(|source| StartError::Spawn { command: shown.to_owned(), source })?;
        let output = Output::read(child.stdout.take(), child.stderr.take());
        let group = Pid::from_child(&child);
        // Without a shell there is no exit guard; then our end signals only the leader, by its death signal.
        let exit_guard = ExitGuard::end_group(group).ok();
        Ok(Started { command: shown.to_owned(), child, group, output, exit_guard, mark, stopped: false })
    }

    /// Its process number, which is also its group's.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What tells of its end; may be given to another thread.
    pub fn exit_watch(&self) -> ExitWatch {
        ExitWatch::child(self.group)
    }

    /// How it ended, `None` while it runs. Does not wait.
    pub fn try_exit(&self) -> Option<Exit> {
        self.exit_watch().peek()
    }

    /// The last lines it printed, control characters removed; its own text, never markup.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        self.output.last_lines(count)
    }

    /// What a subject that has ended printed last: at most 5 lines of 200 characters each, control characters removed;
    /// its own text, never markup. `None` when it printed nothing. Waits at most 0.3 s for what is still on its way.
    pub fn last_output(&self) -> Option<String> {
        self.output.wait_until_closed(OUTPUT_PATIENCE);
        let lines = self.last_lines(OUTPUT_LINES);
        let cut = |line: &String| {
            let end = line.char_indices().nth(OUTPUT_LINE_CHARS);
            end.map_or_else(|| line.clone(), |(end, _)| format!("{}…", &line[..end]))
        };
        (!lines.is_empty()).then(|| lines.iter().map(cut).collect::<Vec<_>>().join("\n"))
    }

    /// Waits until it accepts TCP connections; returns how long that took.
    ///
    /// A connection that is closed at once is all the server sees. Errors: it ended, or `within` is over.
    pub fn wait_until_listening(
        &self,
        addresses: &[SocketAddr],
        listens: Listens,
        within: Duration,
    ) -> Result<SocketAddr, NotReady> {
        let begin = Instant::now();
        loop {
            let patience = within.saturating_sub(begin.elapsed()).clamp(POLL, CONNECT_PATIENCE);
            let accepts = |address: &&SocketAddr| listens.at(address, patience).is_ok();
            if let Some(address) = addresses.iter().find(accepts) {
                // Something listens; if our process has ended, it was another one.
                return match self.try_exit() {
                    None => Ok(*address),
                    Some(exit) => Err(self.exited(exit)),
                };
            }
            if let Some(exit) = self.try_exit() {
                return Err(self.exited(exit));
            }
            if begin.elapsed() >= within {
                let (command, told) = (self.command.clone(), self.told());
                return Err(NotReady::NotListening {
                    command,
                    addresses: addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" or "),
                    waited_s: within.as_secs_f64(),
                    told,
                });
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits for the first URL that it prints on its standard output, and returns it.
    ///
    /// Our reference servers say there where they listen. Errors: it ended, or `within` is over.
    pub fn wait_for_url(&self, within: Duration) -> Result<String, NotReady> {
        let begin = Instant::now();
        loop {
            // Check this first: the URL of a server that has ended leads nowhere.
            if let Some(exit) = self.try_exit() {
                return Err(self.exited(exit));
            }
            if let Some(url) = self.output.wait_for_url(POLL) {
                return Ok(url);
            }
            if begin.elapsed() >= within {
                let (command, told) = (self.command.clone(), self.told());
                return Err(NotReady::NoUrl { command, waited_s: within.as_secs_f64(), told });
            }
        }
    }

    /// Asks its whole group to end (SIGTERM), and does not wait; its end is seen by `try_exit`.
    pub fn tell_to_end(&self) {
        // If the group has already ended, that is detected.
        let _ = kill_process_group(self.group, Signal::TERM);
    }

    /// Asks its whole group to end, waits up to `STOP_PATIENCE`, then kills what is left.
    pub fn stop(mut self) -> Stopped {
        self.stop_within(STOP_PATIENCE)
    }

    fn stop_within(&mut self, patience: Duration) -> Stopped {
        self.stopped = true;
        let before = self.try_exit();
        let _ = kill_process_group(self.group, Signal::TERM);
        // A stopped process (SIGSTOP) would only see the other signal once it continues.
        let _ = kill_process_group(self.group, Signal::CONT);
        let mut exit = before;
        let (mut killed, mut is_left) = (false, false);
        if !self.wait_for_group(&mut exit, patience) {
            killed = true;
            let _ = kill_process_group(self.group, Signal::KILL);
            is_left = !self.wait_for_group(&mut exit, KILL_PATIENCE);
        }
        let escaped_count = self.end_escaped(patience, &mut killed, &mut is_left);
        // It must not signal a group whose id may soon be reused.
        drop(self.exit_guard.take());
        let exit = exit.unwrap_or(Exit::UNKNOWN);
        Stopped { exit, by_itself: before.is_some(), killed, is_left, escaped_count }
    }

    /// Ends what left the group, in the same way as the group; returns how many there were.
    fn end_escaped(&self, patience: Duration, killed: &mut bool, is_left: &mut bool) -> usize {
        let escaped = self.mark.escaped(self.group);
        let count = escaped.len();
        if count == 0 {
            return 0;
        }
        escaped::signal(&escaped, Signal::TERM);
        escaped::signal(&escaped, Signal::CONT);
        if !self.wait_for_escaped(patience) {
            *killed = true;
            escaped::signal(&self.mark.escaped(self.group), Signal::KILL);
            *is_left |= !self.wait_for_escaped(KILL_PATIENCE);
        }
        count
    }

    fn wait_for_escaped(&self, patience: Duration) -> bool {
        wait_until(patience, || self.mark.escaped(self.group).is_empty())
    }

    /// Waits for the leader, reaps it, and waits for the rest of its group; false when time is up.
    fn wait_for_group(&mut self, exit: &mut Option<Exit>, patience: Duration) -> bool {
        let mut looked = 0u32;
        wait_until(patience, || {
            if exit.is_none() {
                *exit = self.try_exit();
            }
            // Until the leader is reaped it reserves the group's id for us, but counts as a member.
            if exit.is_none() || !self.child.try_wait().is_ok_and(|status| status.is_some()) {
                return false;
            }
            // Any other error means that there are processes that we may not signal. Ended processes that nobody reaped
            // are still members: process 1 of a container may reap late or never.
            let is_empty = test_kill_process_group(self.group) == Err(Errno::SRCH);
            looked += 1;
            is_empty || looked.is_multiple_of(LOOKS_PER_LISTING) && !escaped::is_anybody_in(self.group)
        })
    }

    fn exited(&self, exit: Exit) -> NotReady {
        self.output.wait_until_closed(OUTPUT_PATIENCE);
        NotReady::Exited { command: self.command.clone(), exit, told: self.told() }
    }

    fn told(&self) -> String {
        let lines = self.last_lines(TOLD_LINES);
        if lines.is_empty() {
            return "; it printed nothing".to_owned();
        }
        lines.iter().fold("; its last lines:".to_owned(), |told, line| told + "\n  " + line)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.stopped {
            self.stop_within(Duration::ZERO);
        }
    }
}
