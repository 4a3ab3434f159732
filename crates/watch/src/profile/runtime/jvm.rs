//! The Flight Recorder of a Java virtual machine (17 on), by `jcmd` and `jfr` of its JDK.
//!
//! Its stacks have the functions that were compiled into others. A recording is started before the load, and its events are cut
//! to the hold.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Signal, set_parent_process_death_signal};

use super::tool::{Tool, quoted};
use super::{Asked, Seen, Window, check_owner, flight};
use crate::profile::NoProfile;

/// How long a machine may take to answer a command: one that is overloaded is slow.
const PATIENCE: Duration = Duration::from_secs(20);
/// A library that every such process has mapped.
const LIBRARY: &[u8] = b"/libjvm.so";
/// Maps of a process, at most.
const MAPS_BYTES_MAX: u64 = 16 << 20;
/// Shorter waits are not recorded: a pool has one for each task.
const WAIT_LEAST: &str = "1 ms";
/// Ten seconds of these are read in a few.
const ALLOCATIONS_MAX: &str = "500/s";
/// A recording is not larger.
const SIZE_MAX: &str = "maxsize=256m";
/// Where stepladder is killed, the recording ends all the same.
const LENGTH_MAX: &str = "duration=10m";
/// What is read of what `jfr` prints: far more than that many events.
const PRINTED_BYTES_MAX: u64 = 4 << 30;

/// Whether a process is one, and not only called so: `jcmd` ends others with its signal.
pub(super) fn is_one(pid: u32) -> bool {
    let mut maps = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/maps"));
    let read = file.and_then(|file| file.take(MAPS_BYTES_MAX).read_to_end(&mut maps));
    match read {
        Ok(_) => maps.windows(LIBRARY.len()).any(|part| part == LIBRARY),
        // Another user's: that it cannot be profiled is to be said.
        Err(_) => super::program(pid) == "java",
    }
}

/// A recording that goes on. Dropped, it is stopped and nothing of it is kept.
#[derive(Debug)]
pub(super) struct Flight {
    pid: u32,
    jcmd: Tool,
    jfr: Tool,
    name: String,
    file: PathBuf,
    asked: Asked,
    is_on: bool,
    /// CPU time of its threads as the hold began, and what it came to
    before: BTreeMap<i32, u64>,
    cpu_s: f64,
}

impl Flight {
    /// Errors: why there is none, and what to do.
    pub(super) fn start(pid: u32, asked: Asked, folder: &Path) -> Result<Flight, NoProfile> {
        check_owner(pid)?;
        let mounts = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        if mounts(&pid.to_string()) != mounts("self") {
            return Err(NoProfile::Container { pid });
        }
        let (jcmd, jfr) = (Tool::find("jcmd", pid)?, Tool::find("jfr", pid)?);
        let settings = folder.join(format!("{pid}.jfc"));
        std::fs::write(&settings, settings_for(asked))
            .map_err(|error| jcmd.failed(&format!("{}: {error}", settings.display())))?;
        let name = format!("stepladder-{}", std::process::id());
        let file = folder.join(format!("{pid}.jfr"));
        let mut flight =
            Flight { pid, jcmd, jfr, name, file, asked, is_on: false, before: BTreeMap::new(), cpu_s: 0.0 };
        let settings = format!("settings={}", quoted(&settings)?);
        // From here on it may have begun, whatever is heard of it.
        flight.is_on = true;
        let said = flight.tell("JFR.start", &[&settings, LENGTH_MAX, "disk=true", SIZE_MAX])?;
        if said.contains("Started recording") {
            return Ok(flight);
        }
        flight.is_on = false;
        Err(flight.jcmd.failed(why(&said)))
    }

    pub(super) fn hold_begins(&mut self) {
        self.before = java_ticks(self.pid);
    }

    pub(super) fn hold_ends(&mut self) {
        let after = java_ticks(self.pid);
        let used =
            after.iter().map(|(tid, ticks)| ticks.saturating_sub(self.before.get(tid).copied().unwrap_or(0)));
        self.cpu_s = used.sum::<u64>() as f64 / procfs::ticks_per_second() as f64;
    }

    fn tell(&self, command: &str, more: &[&str]) -> Result<String, NoProfile> {
        let (pid, name) = (self.pid.to_string(), format!("name={}", self.name));
        self.jcmd.said(&[&[pid.as_str(), command, name.as_str()], more].concat(), PATIENCE)
    }

    /// Stops it and reads what it has of the hold. Errors: the process has ended, or what its tools said.
    pub(super) fn end(mut self, window: Window) -> Result<(Seen, Option<String>), NoProfile> {
        if !is_one(self.pid) {
            self.is_on = false;
            return Err(NoProfile::Gone);
        }
        let said = self.tell("JFR.stop", &[&format!("filename={}", quoted(&self.file)?)])?;
        if !said.contains("Stopped recording") {
            return Err(self.jcmd.failed(why(&said)));
        }
        self.is_on = false;
        let seen = self.read(window);
        // It is in a folder that is removed.
        let _ = std::fs::remove_file(&self.file);
        Ok((seen?, None))
    }

    fn read(&self, window: Window) -> Result<Seen, NoProfile> {
        let events = events(self.asked).map(|(name, _)| name).collect::<Vec<_>>().join(",");
        let mut command = self.jfr.command();
        command
            .args(["print", "--stack-depth", &flight::DEPTH_MAX.to_string(), "--events", &events])
            .arg(&self.file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // SAFETY: one system call between fork and exec, no allocation and no lock.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let failed = |error: std::io::Error| self.jfr.failed(&error.to_string());
        let mut child = command.spawn().map_err(failed)?;
        let printed = child.stdout.take().ok_or_else(|| self.jfr.failed("it has no output"))?;
        let read = flight::read(printed.take(PRINTED_BYTES_MAX), window.realtime_ns);
        // Where reading ended early it has nothing to write to any more.
        let status = child.wait().map_err(failed)?;
        let recorded = read.map_err(failed)?;
        if !status.success() {
            return Err(self.jfr.failed(&status.to_string()));
        }
        Ok(recorded.seen(self.asked, self.cpu_s))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if self.is_on && is_one(self.pid) {
            // Without a file name nothing is written.
            let _ = self.tell("JFR.stop", &[]);
        }
    }
}

/// CPU time of the threads that run Java, by thread, in ticks: without those of the machine itself.
fn java_ticks(pid: u32) -> BTreeMap<i32, u64> {
    let tasks = procfs::process::Process::new(pid as i32).and_then(|process| process.tasks());
    let stats = tasks.into_iter().flatten().flatten().filter_map(|task| task.stat().ok());
    stats.filter(|stat| !is_of_machine(&stat.comm)).map(|stat| (stat.pid, stat.utime + stat.stime)).collect()
}

/// What a machine calls its threads, of which the kernel keeps 15 bytes.
fn is_of_machine(thread: &str) -> bool {
    const THEIRS: [&str; 11] = [
        "GC Thread",
        "G1 ",
        "VM Thread",
        "VM Periodic",
        "C1 Compiler",
        "C2 Compiler",
        "ZWorker",
        "ZDriver",
        "ZDirector",
        "Shenandoah",
        "JFR ",
    ];
    THEIRS.iter().any(|start| thread.starts_with(start))
}

/// The line of an answer that says what is wrong: the first one is the process.
fn why(said: &str) -> &str {
    said.lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or("it said nothing")
}

/// The events that are recorded, with what is set of each.
fn events(asked: Asked) -> impl Iterator<Item = (&'static str, &'static [(&'static str, &'static str)])> {
    const EVERY: &[(&str, &str)] = &[("threshold", "0 ms")];
    const WAIT: &[(&str, &str)] = &[("stackTrace", "true"), ("threshold", WAIT_LEAST)];
    let cpu: &[(&str, &[(&str, &str)])] = &[("jdk.ExecutionSample", &[("period", "10 ms")])];
    let allocations: &[(&str, &[(&str, &str)])] =
        &[("jdk.ObjectAllocationSample", &[("stackTrace", "true"), ("throttle", ALLOCATIONS_MAX)])];
    let stops = flight::STOPS.iter().map(|name| (*name, EVERY));
    let cpu = cpu.iter().copied().filter(move |_| asked.cpu);
    let waits = flight::WAITS.iter().map(|(name, _)| (*name, WAIT)).filter(move |_| asked.waits);
    let allocations = allocations.iter().copied().filter(move |_| asked.allocations);
    stops.chain(cpu).chain(waits).chain(allocations)
}

/// A file of settings with these events only.
fn settings_for(asked: Asked) -> String {
    let mut text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration version=\"2.0\" label=\"Stepladder\">\n"
            .to_owned();
    for (name, settings) in events(asked) {
        text += &format!("  <event name=\"{name}\"><setting name=\"enabled\">true</setting>");
        for (setting, value) in settings {
            text += &format!("<setting name=\"{setting}\">{value}</setting>");
        }
        text += "</event>\n";
    }
    text + "</configuration>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_is_recorded() {
        let asked = Asked { allocations: true, ..Asked::default() };
        let settings = settings_for(asked);
        assert!(settings.contains("<event name=\"jdk.ObjectAllocationSample\">"), "{settings}");
        assert!(settings.contains("<setting name=\"throttle\">500/s</setting>"), "{settings}");
        assert!(
            !settings.contains("jdk.ThreadPark") && !settings.contains("jdk.ExecutionSample"),
            "{settings}"
        );
        let waits = settings_for(Asked { waits: true, ..Asked::default() });
        assert!(waits.contains("<event name=\"jdk.ThreadPark\">") && waits.contains(">1 ms<"), "{waits}");
        for settings in [settings, waits] {
            assert!(
                flight::STOPS.iter().all(|name| settings.contains(name)),
                "stops are always told: {settings}"
            );
        }
    }

    #[test]
    fn a_program_that_is_only_called_so_is_no_jvm() {
        assert!(!is_one(std::process::id()));
        assert!(!is_one(u32::MAX));
    }

    #[test]
    fn threads_of_the_machine_are_told_from_those_of_the_program() {
        for (thread, expected) in [
            ("C2 CompilerThre", true),
            ("GC Thread#0", true),
            ("G1 Young RemSet", true),
            ("VM Periodic Tas", true),
            ("pool-1-thread-1", false),
            ("java", false),
            ("C2", false),
        ] {
            assert_eq!(is_of_machine(thread), expected, "{thread}");
        }
    }

    #[test]
    fn the_reason_is_the_line_after_the_process() {
        for (said, expected) in [
            ("77:\nCould not parse settings file '/x.jfc'\n", "Could not parse settings file '/x.jfc'"),
            ("77:\n\n", "it said nothing"),
            ("", "it said nothing"),
        ] {
            assert_eq!(why(said), expected, "{said}");
        }
    }
}
