//! `perf record` around a client that does not profile itself.
//!
//! It samples the whole life of the process; samples outside the measured part are cut off by the clock that both read.

use std::ffi::OsString;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use inferno::collapse::Collapse as _;
use inferno::collapse::perf::{Folder, Options};
use inflight_analysis::Kind;
use rustix::time::{ClockId, clock_gettime};

/// CPU time between two samples.
const PERIOD_NS: u64 = 1_000_000;

/// A recording.
#[derive(Debug)]
pub struct Perf {
    file: PathBuf,
    from_ns: u64,
    to_ns: u64,
}

impl Perf {
    /// Into this file. Errors: there is no `perf`.
    pub fn new(file: PathBuf) -> anyhow::Result<Perf> {
        let version =
            Command::new("perf").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        match version {
            Ok(status) if status.success() => Ok(Perf { file, from_ns: 0, to_ns: 0 }),
            _ => bail!(
                "--profile: perf is missing; install it (Debian: apt-get install linux-perf) for clients other than node, java and go"
            ),
        }
    }

    /// What precedes the client's own command.
    pub fn words(&self) -> Vec<OsString> {
        let period = PERIOD_NS.to_string();
        let words = [
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-c",
            &period,
            "--call-graph",
            "dwarf,16384",
            "-k",
            "CLOCK_MONOTONIC",
            "-o",
        ];
        let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        words.extend([self.file.clone().into(), "--".into()]);
        words
    }

    /// What was sampled before does not count.
    pub fn begins_now(&mut self) {
        self.from_ns = now_ns();
    }

    /// What is sampled from here on does not count.
    pub fn ends_now(&mut self) {
        self.to_ns = now_ns();
    }

    /// The stacks as `inflight/clients/README.md` wants them. Errors: `perf script` failed.
    pub fn folded(&self) -> anyhow::Result<String> {
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let mut script = Command::new("perf")
            // Without the period, so that each sample counts as one.
            .args(["script", "--no-inline", "-F", "comm,tid,time,event,ip,sym,dso", "--time"])
            .arg(format!("{},{}", seconds(self.from_ns), seconds(self.to_ns)))
            .arg("-i")
            .arg(&self.file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("perf script cannot be started")?;
        let output = script.stdout.take().context("perf script has no output")?;
        let mut options = Options::default();
        options.annotate_kernel = true;
        let mut collapsed = Vec::new();
        Folder::from(options)
            .collapse(BufReader::new(output), &mut collapsed)
            .context("what perf script wrote cannot be read")?;
        let status = script.wait().context("perf script")?;
        anyhow::ensure!(status.success(), "perf script failed: {status}");
        Ok(with_kinds(&String::from_utf8_lossy(&collapsed)))
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        // It is in its own folder, which is removed too.
        let _ = std::fs::remove_file(&self.file);
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// From inferno's form (name of the process first, kernel functions marked, counts) to ours.
fn with_kinds(collapsed: &str) -> String {
    let mut folded = String::new();
    for line in collapsed.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else { continue };
        let count: u64 = count.parse().unwrap_or(0);
        let mut frames = stack.split(';');
        let command = frames.next().unwrap_or_default();
        let frames: Vec<String> = frames.map(frame).collect();
        let frames = if frames.is_empty() { format!("runtime:{command}") } else { frames.join(";") };
        folded += &format!("{frames} {}\n", count * PERIOD_NS / 1000);
    }
    folded
}

/// Names of languages with paths tell whose a function is; those of C belong to libraries and interpreters.
fn frame(name: &str) -> String {
    let (name, kind) = match name.strip_suffix("_[k]") {
        Some(name) => (name, Kind::Kernel),
        None if is_library(name) => (name, Kind::Runtime),
        None => (name, Kind::User),
    };
    format!("{}:{name}", kind.prefix())
}

fn is_library(name: &str) -> bool {
    let bare = name.trim_start_matches(['<', '&', '*', '_']);
    !name.contains("::") || ["core::", "alloc::", "std::"].iter().any(|start| bare.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_microseconds_and_functions_say_whose_they_are() {
        let collapsed = "stepladder;main;inflight::phase::run;<alloc::vec::Vec<T> as core::clone::Clone>::clone;memmove 3\n\
                         stepladder;inflight::phase::run;do_syscall_64_[k];tcp_sendmsg_[k] 2\nstepladder 1\n";
        let expected = "runtime:main;user:inflight::phase::run;runtime:<alloc::vec::Vec<T> as core::clone::Clone>::clone;\
                        runtime:memmove 3000\nuser:inflight::phase::run;kernel:do_syscall_64;kernel:tcp_sendmsg 2000\n\
                        runtime:stepladder 1000\n";
        assert_eq!(with_kinds(collapsed), expected);
    }
}
