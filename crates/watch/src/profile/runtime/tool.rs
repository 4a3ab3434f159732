//! Tools of a JDK, run to their end.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::super::NoProfile;
use super::super::recording::ended_within;

/// What is kept of what a tool writes. Less than a pipe holds, so that none waits for its reader.
const SAID_BYTES_MAX: u64 = 48 << 10;
/// A tool writes the same everywhere.
const PLAIN: [&str; 3] = ["-J-Duser.language=en", "-J-Duser.country=US", "-J-Duser.timezone=UTC"];

/// A tool of a JDK.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    name: &'static str,
    path: PathBuf,
}

impl Tool {
    /// The one beside the program of a process, else that on PATH. Errors: there is none.
    pub(super) fn find(name: &'static str, pid: u32) -> Result<Tool, NoProfile> {
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        let beside = program.and_then(|program| Some(program.parent()?.to_owned()));
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let folders = beside.into_iter().chain(std::env::split_paths(&paths));
        let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
        found.map(|path| Tool { name, path }).ok_or(NoProfile::NoTool { name, pid })
    }

    /// To be started: without what the environment asks of every JVM, and without input.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        for name in ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"] {
            command.env_remove(name);
        }
        command.args(PLAIN).stdin(Stdio::null());
        command
    }

    /// Runs it; returns what it wrote. Errors: it cannot be started, does not end in time, or fails.
    pub(super) fn said(&self, arguments: &[&str], patience: Duration) -> Result<String, NoProfile> {
        let mut command = self.command();
        let started = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| self.failed(&error.to_string()))?;
        let status = ended_within(&mut child, patience);
        let status =
            status.ok_or_else(|| self.failed(&format!("it did not end within {} s", patience.as_secs())))?;
        let said = read(child.stdout.take()).map_err(|error| self.failed(&error.to_string()))?;
        if status.success() {
            return Ok(said);
        }
        let complained = read(child.stderr.take()).unwrap_or_default();
        let line = complained.lines().chain(said.lines()).find(|line| !line.trim().is_empty());
        Err(self.failed(line.unwrap_or("it said nothing")))
    }

    pub(super) fn failed(&self, said: &str) -> NoProfile {
        NoProfile::Tool { name: self.name, said: super::plain(said) }
    }
}

fn read(pipe: Option<impl io::Read>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(SAID_BYTES_MAX).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// As a value of a diagnostic command. Errors: a path that none can hold.
pub(super) fn quoted(path: &Path) -> Result<String, NoProfile> {
    let text = path.to_str().filter(|text| !text.contains(['"', '\\']) && !text.contains(char::is_control));
    text.map(|text| format!("\"{text}\"")).ok_or_else(|| NoProfile::Tool {
        name: "jcmd",
        said: format!("{} cannot be written in its commands; set TMPDIR to another folder", path.display()),
    })
}
