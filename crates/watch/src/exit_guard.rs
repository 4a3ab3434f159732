//! Cleanup for a process that ends without having done it: killed, or by a second Ctrl-C.
//!
//! A parent-death signal reaches only the child, and if that is a shell, its own children would go on. A separate
//! process waits for a pipe that closes when we end, for whatever reason, and then acts. If that process is killed too,
//! nothing is done.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

/// Takes effect when this process ends; dropped before, it does nothing.
#[derive(Debug)]
pub struct ExitGuard {
    waiting: Child,
}

impl ExitGuard {
    /// Ends a process group: SIGTERM, and after five seconds SIGKILL.
    ///
    /// Errors: there is no shell.
    pub fn end_group(group: Pid) -> io::Result<ExitGuard> {
        let group = group.as_raw_nonzero().to_string();
        ExitGuard::run("kill -TERM -\"$1\"; sleep 5; kill -KILL -\"$1\"", [group])
    }

    /// Runs a line of the shell, in which `$1`, `$2` … are `words`. Errors: there is no shell.
    pub fn run<W: AsRef<OsStr>>(line: &str, words: impl IntoIterator<Item = W>) -> io::Result<ExitGuard> {
        let waiting = Command::new("/bin/sh")
            .args(["-c", &format!("read -r _; {line}"), "sh"])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(ExitGuard { waiting })
    }
}

impl Drop for ExitGuard {
    fn drop(&mut self) {
        // The pipe is still open, so it has not begun.
        let _ = self.waiting.kill().and_then(|()| self.waiting.wait());
    }
}
