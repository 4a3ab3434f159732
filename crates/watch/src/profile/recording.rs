//! `perf record` over processes that run already.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getuid, kill_process, set_parent_process_death_signal};

use super::{By, NoProfile};

/// Stacks per second of CPU time.
pub const SAMPLES_PER_S: u32 = 499;
/// How long perf may take to finish its file after it is told to end.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// How long a Java virtual machine may take to write the names of its functions.
const JCMD_PATIENCE: Duration = Duration::from_secs(10);
/// How long a first look at a process takes.
const LOOK_S: &str = "0.05";

/// No recording of waits is larger: at 5,000 a second and 5 KB each, ten seconds. What does not fit any more is left out.
const WAITS_SIZE_MAX: &str = "--max-size=256M";
/// What of a thread's stack is kept to be unwound, bytes: its innermost functions.
const STACK_BYTES: u32 = 4096;

/// What is recorded of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// stacks at a steady rate of CPU time
    Cpu,
    /// stacks of threads that leave the CPU, and when they are back
    Waits,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Cpu => "cpu",
            What::Waits => "waits",
        }
    }

    fn options(self) -> Vec<String> {
        let unwound = format!("call-graph=dwarf,stack-size={STACK_BYTES}");
        // Unwinding needs the mappings of data too (-d).
        match self {
            What::Cpu => {
                let event =
                    |way: &str, by: By| format!("cpu-clock/freq={SAMPLES_PER_S},{way},name={}/", by.event());
                vec![
                    "-d".to_owned(),
                    "-e".to_owned(),
                    event("call-graph=fp", By::FramePointers),
                    "-e".to_owned(),
                    event(&unwound, By::DebugInformation),
                ]
            }
            // In one way only: perf mixes up two events that switches cause at one instant. The C library keeps no frame
            // pointers where it waits.
            What::Waits => vec![
                "-d".to_owned(),
                "--switch-events".to_owned(),
                WAITS_SIZE_MAX.to_owned(),
                "-e".to_owned(),
                format!("cs/period=1,{unwound}/"),
            ],
        }
    }
}

/// A recording that goes on. Dropped, it is ended and its file is left.
#[derive(Debug)]
pub struct Recording {
    child: Child,
    file: PathBuf,
    said: PathBuf,
}

impl Recording {
    /// Of these processes and what they start, into `folder`. Errors: perf cannot be started.
    pub fn of(what: What, pids: &[u32], folder: &Path) -> Result<Recording, NoProfile> {
        Self::start(what, pids, folder, &[])
    }

    /// Whether `pid` can be recorded at all; it is for a moment.
    pub fn check(pid: u32, folder: &Path) -> Result<(), NoProfile> {
        let recording = Self::start(What::Cpu, &[pid], folder, &["--", "sleep", LOOK_S])?;
        let file = recording.wait()?;
        // It is only a try.
        let _ = std::fs::remove_file(file);
        Ok(())
    }

    fn start(what: What, pids: &[u32], folder: &Path, until: &[&str]) -> Result<Recording, NoProfile> {
        let of = |ending| folder.join(format!("{}.{ending}", what.name()));
        let (file, said) = (of("data"), of("said"));
        let cannot =
            |error: std::io::Error| NoProfile::Failed { said: format!("{}: {error}", said.display()) };
        let output = File::create(&said).map_err(cannot)?;
        let pids = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut command = Command::new("perf");
        command
            .args(["record", "-q"])
            .args(what.options())
            .args(["-k", "CLOCK_MONOTONIC", "-p", &pids, "-o"])
            .arg(&file)
            .args(until)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output);
        // SAFETY: only system calls between fork and exec, no allocation and no lock.
        unsafe {
            command.pre_exec(|| {
                // Our threads block the signal that ends perf.
                let mut none = std::mem::zeroed();
                libc::sigemptyset(&mut none);
                if libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(set_parent_process_death_signal(Some(Signal::INT))?)
            });
        }
        let child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => NoProfile::Missing,
            _ => NoProfile::Failed { said: error.to_string() },
        })?;
        Ok(Recording { child, file, said })
    }

    /// Ends it; returns the file. Errors: what perf said.
    pub fn end(self) -> Result<PathBuf, NoProfile> {
        // A recording that ended by itself is not reaped yet, so the signal meets nobody else.
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        self.wait()
    }

    fn wait(mut self) -> Result<PathBuf, NoProfile> {
        let status = ended_within(&mut self.child, END_PATIENCE);
        let status = status.ok_or_else(|| NoProfile::Failed { said: "it did not end in time".to_owned() })?;
        let has_data = std::fs::metadata(&self.file).is_ok_and(|file| file.len() > 0);
        if status.success() || has_data && std::os::unix::process::ExitStatusExt::signal(&status).is_some() {
            return Ok(self.file.clone());
        }
        let mut said = Vec::new();
        if let Ok(file) = File::open(&self.said) {
            let _ = file.take(1 << 16).read_to_end(&mut said);
        }
        Err(why(&String::from_utf8_lossy(&said)))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// How a process ended; `None`: not in time, so that it was killed.
pub(super) fn ended_within(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begin.elapsed() < patience => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// A Java virtual machine writes the names of what it compiled when it is asked to (JDK 17). That it does not is no mistake.
pub fn write_map_of_java(pid: u32) {
    if !std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "java") {
        return;
    }
    let mut jcmd = Command::new("jcmd");
    jcmd.arg(pid.to_string()).arg("Compiler.perfmap");
    let started = jcmd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    // A machine that is stopped never answers.
    let _ = started.map(|mut jcmd| ended_within(&mut jcmd, JCMD_PATIENCE));
}

/// What perf's message means.
fn why(said: &str) -> NoProfile {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&[
        "perf_event_paranoid",
        "Permission denied",
        "Operation not permitted",
        "No permission",
        "Access to performance",
    ]) {
        let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        let paranoid = paranoid.map_or("unknown".to_owned(), |text| text.trim().to_owned());
        return NoProfile::NotPermitted { paranoid };
    }
    if has(&["No such process", "Couldn't create thread/CPU maps", "failed to get thread map"]) {
        return NoProfile::Gone;
    }
    let line = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    let line: String = line.replace(char::is_control, " ").trim().chars().take(200).collect();
    NoProfile::Failed { said: line }
}

/// What runtimes write for perf, of processes that were started here: maps of compiled functions, and beside them a log of V8 in
/// the process's folder. It is removed when this is dropped.
#[derive(Debug, Default)]
pub struct PerfMaps(BTreeMap<u32, Option<PathBuf>>);

impl PerfMaps {
    /// Of these processes as well, which still live.
    pub fn add(&mut self, pids: &[u32]) {
        for pid in pids {
            let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).ok();
            let known = self.0.entry(*pid).or_default();
            *known = folder.or(known.take());
        }
    }

    /// Leaves it all: the processes were not started here.
    pub fn forget(mut self) {
        self.0.clear();
    }
}

impl Drop for PerfMaps {
    fn drop(&mut self) {
        for (pid, folder) in &self.0 {
            remove_ours(&PathBuf::from(format!("/tmp/perf-{pid}.map")));
            let entries =
                folder.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
            let ending = format!("-{pid}-v8.log");
            let is_log = |name: &str| name.starts_with("isolate-0x") && name.ends_with(&ending);
            for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_log)) {
                remove_ours(&entry.path());
            }
        }
    }
}

/// Only what our own user wrote, and no link that leads elsewhere.
fn remove_ours(path: &Path) {
    let is_ours = path.symlink_metadata().is_ok_and(|file| file.is_file() && file.uid() == getuid().as_raw());
    if is_ours {
        // That it stays does no harm.
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_says_is_told_from_what_can_be_done_about_it() {
        let refused = "Error:\nAccess to performance monitoring and observability operations is limited.\n\
                       Consider adjusting /proc/sys/kernel/perf_event_paranoid setting";
        let told = why(refused).to_string();
        assert!(
            told.contains("not permitted") && told.contains("sysctl kernel.perf_event_paranoid=1"),
            "{told}"
        );
        assert!(matches!(why("Couldn't create thread/CPU maps: No such process\n"), NoProfile::Gone));
        assert_eq!(why("a\n\u{1b}[1mout of memory\n\n").to_string(), "perf failed: [1mout of memory");
        assert_eq!(why("").to_string(), "perf failed: it said nothing");
    }

    #[test]
    fn maps_are_removed_with_their_owner_and_links_are_left() {
        let own = std::process::id();
        let log = std::env::current_dir().unwrap().join(format!("isolate-0xabc-{own}-v8.log"));
        std::fs::write(&log, "").unwrap();
        let mut maps = PerfMaps::default();
        maps.add(&[own]);
        drop(maps);
        assert!(!log.exists());
        let pid = u32::MAX - own;
        let path = format!("/tmp/perf-{pid}.map");
        let mut maps = PerfMaps::default();
        maps.add(&[pid]);
        std::fs::write(&path, "").unwrap();
        drop(maps);
        assert!(!Path::new(&path).exists());
        let mut maps = PerfMaps::default();
        maps.add(&[pid]);
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        drop(maps);
        assert!(Path::new(&path).symlink_metadata().is_ok());
        std::fs::remove_file(&path).unwrap();
    }
}
