//! Profiles of processes by `perf`: recorded, and read back as folded stacks. CPU by samples, waiting by switches (`waits`).
//! By their runtimes: `runtime`.
//!
//! Samples are cut to a time by CLOCK_MONOTONIC, which `perf` reads too. A folded line is `KIND:FUNCTION;… COUNT`, outermost
//! function first; KIND is `user` (the program's own code), `runtime` (its runtime, libraries, what C programs are made of) or
//! `kernel`.

mod maps;
mod names;
mod profilers;
mod recording;
pub mod runtime;
mod waits;

use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use inferno::collapse::Collapse as _;
use inferno::collapse::perf::{Folder, Options};
use rustix::time::{ClockId, clock_gettime};

pub use profilers::{Cpu, Profilers, Seen};
pub use recording::{PerfMaps, Recording, SAMPLES_PER_S, What, write_map_of_java};
pub use waits::{On, Wait, Waits, waits};

/// Why there is no profile. Each says what to do, where something can be done.
#[derive(Debug, thiserror::Error)]
pub enum NoProfile {
    /// there is no such program
    #[error("perf is missing; install it (Debian: apt-get install linux-perf)")]
    Missing,
    /// the system refuses
    #[error(
        "perf is not permitted (kernel.perf_event_paranoid is {paranoid}); allow it with sysctl kernel.perf_event_paranoid=1, \
         or run as root"
    )]
    NotPermitted {
        /// as the system has it set, or `unknown`
        paranoid: String,
    },
    /// the processes have ended
    #[error("the server's process has ended")]
    Gone,
    /// its files and tools are not trusted
    #[error(
        "process {pid} belongs to another user; run stepladder as that user to have its runtime profile it"
    )]
    OtherUser {
        /// whose process
        pid: u32,
    },
    /// what it writes is not seen here
    #[error(
        "process {pid} runs in a container, which its Flight Recorder writes into; run stepladder in there"
    )]
    Container {
        /// the process
        pid: u32,
    },
    /// it runs on a JRE
    #[error(
        "{name} is missing, by which process {pid} is profiled; install a JDK (Debian: apt-get install default-jdk-headless)"
    )]
    NoTool {
        /// of the program
        name: &'static str,
        /// the process
        pid: u32,
    },
    /// another program listens where the inspector would
    #[error(
        "port {port} is taken, on which process {pid} would open its inspector; end what listens there, or start the server \
         with --inspect=127.0.0.1:0"
    )]
    PortTaken {
        /// on loopback
        port: u16,
        /// the process
        pid: u32,
    },
    /// what a runtime's profiler, or a tool of it, said
    #[error("{name} failed: {said}")]
    Tool {
        /// of the tool
        name: &'static str,
        /// in one line
        said: String,
    },
    /// anything else, in perf's own words; text of another program is never markup
    #[error("perf failed: {said}")]
    Failed {
        /// its last line
        said: String,
    },
}

/// Whether `perf` can be started.
pub fn is_there() -> bool {
    let version = Command::new("perf").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// CLOCK_MONOTONIC, ns.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How the functions of a stack are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// by frame pointers: all that compiled functions of runtimes have
    FramePointers,
    /// by what the program's file says of each function: all that programs built without frame pointers have
    DebugInformation,
}

impl By {
    /// Both, in one order.
    pub const ALL: [By; 2] = [By::FramePointers, By::DebugInformation];

    /// The events of a recording whose stacks are found so.
    fn event(self) -> &'static str {
        match self {
            By::FramePointers => "framed",
            By::DebugInformation => "unwound",
        }
    }
}

/// What `file` holds between two readings of CLOCK_MONOTONIC, as folded stacks; each sample counts `weight`. `by`: the samples
/// whose stacks were found so, else those of the first event.
///
/// Errors: `perf script` cannot be started, fails, or writes what is no stack.
pub fn folded(
    file: &Path,
    by: Option<By>,
    (from_ns, to_ns): (u64, u64),
    weight: u64,
) -> Result<String, NoProfile> {
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let during = format!("{},{}", seconds(from_ns), seconds(to_ns));
    // Without the period, so that each sample counts as one.
    let options = ["-F", "comm,tid,time,event,ip,sym,dso", "--time", &during];
    script(file, &options, |output| fold(output, by.map(By::event), weight))
}

/// What `perf script` writes about a recording, as `read` reads it.
fn script<T>(
    file: &Path,
    options: &[&str],
    read: impl FnOnce(ChildStdout) -> std::io::Result<T>,
) -> Result<T, NoProfile> {
    let mut script = Command::new("perf")
        .args(["script", "--no-inline"])
        .args(options)
        .arg("-i")
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|_| NoProfile::Missing)?;
    let failed = |said: String| NoProfile::Failed { said };
    let output = script.stdout.take().ok_or_else(|| failed("perf script has no output".to_owned()))?;
    let read = read(output);
    let status = script.wait().map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(format!("perf script: {status}")));
    }
    read.map_err(|error| failed(format!("what perf script wrote cannot be read: {error}")))
}

/// The lines of `perf script` as folded stacks, of one event (else the first one in them).
pub fn fold(script: impl Read, event: Option<&str>, weight: u64) -> std::io::Result<String> {
    let mut options = Options::default();
    options.event_filter = event.map(str::to_owned);
    (options.annotate_kernel, options.annotate_jit) = (true, true);
    let mut collapsed = Vec::new();
    let mut script = BufReader::new(script).take(SCRIPT_BYTES_MAX);
    // A hold without a sample is no mistake, and the folder would take it for one.
    if std::io::BufRead::fill_buf(&mut script)?.is_empty() {
        return Ok(String::new());
    }
    Folder::from(options).collapse(BufReader::new(maps::Renamed::of(script)), &mut collapsed)?;
    Ok(with_kinds(&String::from_utf8_lossy(&collapsed), weight))
}

/// Far more than ten seconds of deep stacks on many cores.
const SCRIPT_BYTES_MAX: u64 = 4 << 30;

/// From inferno's form (name of the process first, kernel and compiled functions marked, counts) to ours.
fn with_kinds(collapsed: &str, weight: u64) -> String {
    let mut folded = String::new();
    // Who compiles functions while it runs is a runtime, and what of it was compiled before is its own.
    let is_runtime = collapsed.contains("_[j]");
    for line in collapsed.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else { continue };
        let count: u64 = count.parse().unwrap_or(0);
        let mut frames = stack.split(';');
        let command = frames.next().unwrap_or_default();
        let mut frames: Vec<String> = frames.map(|frame| names::frame(frame, is_runtime)).collect();
        if !is_runtime && !frames.iter().any(|frame| frame.starts_with(names::OWN)) {
            let own = |frame: String| names::nameless(&frame).unwrap_or(frame);
            frames = frames.into_iter().map(own).collect();
        }
        let frames = if frames.is_empty() { format!("runtime:{command}") } else { frames.join(";") };
        folded += &format!("{frames} {}\n", count * weight);
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_their_weight_and_functions_say_whose_they_are() {
        let collapsed = "stepladder;main;inflight::phase::run;<alloc::vec::Vec<T> as core::clone::Clone>::clone;memmove 3\n\
                         stepladder;inflight::phase::run;do_syscall_64_[k];tcp_sendmsg_[k] 2\nstepladder 1\n";
        let expected = "runtime:main;user:inflight::phase::run;runtime:<alloc::vec::Vec<T> as core::clone::Clone>::clone;\
                        runtime:memmove 3000\nuser:inflight::phase::run;kernel:do_syscall_64;kernel:tcp_sendmsg 2000\n\
                        runtime:stepladder 1000\n";
        assert_eq!(with_kinds(collapsed, 1000), expected);
        let stripped = "server;[libc.so.6];[server];[server];write_[k] 2\nserver;[server];a::b;[server] 1\n";
        let nameless = "user:functions without names (server)";
        assert_eq!(
            with_kinds(stripped, 1),
            format!(
                "runtime:[libc.so.6];{nameless};{nameless};kernel:write 2\nruntime:[server];user:a::b;runtime:[server] 1\n"
            ),
            "beside a name of its own a frame without one may be an interpreter's"
        );
        let of_a_runtime = format!("{collapsed}GC;GCTaskThread::run 1\nhttp;void Server.burn_[j] 1\n");
        let folded = with_kinds(&of_a_runtime, 1);
        assert!(folded.ends_with("runtime:GCTaskThread::run 1\nuser:void Server.burn 1\n"), "{folded}");
    }

    /// Names hold what separates stacks, frames and counts; none of it makes a frame or a count.
    #[test]
    fn the_lines_of_perf_script_become_stacks_whatever_the_names_hold() {
        let script = "node 77 5.001: cpu-clock:u: \n\
                      \t7f01 JS:*renderReport file:///srv/my app/report.mjs:12:28 (/tmp/perf-77.map)\n\
                      \t7f02 JS:~;evil 9 /srv/a;b.js:3:1 (/tmp/perf-77.map)\n\
                      \t7f03 Builtin:InterpreterEntryTrampoline (/tmp/perf-77.map)\n\
                      \t7f04 [unknown] (/usr/bin/node)\n\n\
                      node 77 5.003: cpu-clock:u: \n\
                      \tffffffff81 do_syscall_64+0x10 ([kernel.kallsyms])\n\
                      \t7f05 JS:^ <b>&\u{1b}[31m node:internal/timers:1:2 (/tmp/perf-77.map)\n\n\
                      no stack at all\n";
        let folded = fold(script.as_bytes(), None, 1).unwrap();
        let mut lines: Vec<&str> = folded.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.len(), 2, "{folded}");
        assert!(
            lines[0].starts_with("runtime:") && lines[0].ends_with(";kernel:do_syscall_64 1"),
            "{folded}"
        );
        assert!(
            lines[1].ends_with(";user::evil 9 (a:b.js:3);user:renderReport (report.mjs:12) 1"),
            "{folded}"
        );
        assert!(folded.chars().all(|letter| letter == '\n' || !letter.is_control()), "{folded:?}");
        assert_eq!(fold(&b""[..], None, 1).unwrap(), "");
    }
}
