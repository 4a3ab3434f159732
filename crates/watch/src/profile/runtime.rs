//! Profiles by the runtimes of servers themselves: the Flight Recorder of a JVM, the inspector of Node.js, `pprof` of Go.
//!
//! They see what `perf` does not: functions that were compiled into their callers, waits of threads whose stacks cannot be
//! unwound, allocations, and all of it where `perf` is not permitted. What is recorded lies within the hold: events are cut to
//! it by their time, and what has no time is started with the hold and ended with it.
//! Invariant: dropped at any moment, recordings are stopped and inspectors that were opened here are closed.

mod flight;
mod go;
mod inspector;
mod jvm;
mod listening;
mod node;
mod pprof;
mod tool;
mod v8;

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use measure::Stops;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::{NoProfile, Waits, names};

/// Processes that are profiled, those with most CPU time.
const PROCESSES_MAX: usize = 16;

/// What a process runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// a Java virtual machine
    Jvm,
    /// Node.js
    Node,
    /// a Go program
    Go,
}

impl Kind {
    /// What profiles it, for people.
    pub fn profiler(self) -> &'static str {
        match self {
            Kind::Jvm => "the JVM's Flight Recorder",
            Kind::Node => "the inspector of Node.js",
            Kind::Go => "Go's pprof",
        }
    }

    /// `None`: it is another program, or it has ended.
    fn of(pid: u32) -> Option<Kind> {
        if node::is_one(pid) {
            Some(Kind::Node)
        } else if jvm::is_one(pid) {
            Some(Kind::Jvm)
        } else {
            go::is_one(pid).then_some(Kind::Go)
        }
    }
}

/// What is recorded of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// where its CPU time goes
    pub cpu: bool,
    /// `perf` is permitted: only a JVM samples CPU itself
    pub has_perf: bool,
    /// where its threads wait
    pub waits: bool,
    /// where its memory is allocated
    pub allocations: bool,
}

/// From and to, of the same hold.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// readings of CLOCK_MONOTONIC, ns
    pub monotonic_ns: (u64, u64),
    /// since 1970, ns
    pub realtime_ns: (u64, u64),
}

impl Window {
    /// Between two instants of a trial, ns since its zero, which is these readings of both clocks.
    pub fn since(zero_ns: (u64, u64), (from_ns, to_ns): (u64, u64)) -> Window {
        let both = |zero_ns: u64| (zero_ns + from_ns, zero_ns + to_ns);
        Window { monotonic_ns: both(zero_ns.0), realtime_ns: both(zero_ns.1) }
    }
}

/// Where a server answers over plain HTTP, on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// its users
    pub origin: Option<SocketAddr>,
    /// who asks for the profiles of Go, with the path, which ends with a slash; `None`: that is looked for
    pub pprof: Option<(SocketAddr, String)>,
}

/// Stacks that were sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// folded, with the number of samples
    pub folded: String,
    /// of them, per second of CPU time
    pub per_s: f64,
}

/// Allocations with one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// from the outermost function inwards, `KIND:FUNCTION;…`
    pub stack: String,
    /// that were allocated in the hold, as the samples tell
    pub bytes: u64,
    /// number of samples
    pub samples: u64,
}

impl Allocation {
    /// The innermost function of the server's own code, else the innermost of all.
    pub fn function(&self) -> &str {
        names::function(&self.stack)
    }
}

/// What was allocated in a hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Allocations {
    /// by stack
    pub each: Vec<Allocation>,
}

impl Allocations {
    /// As folded stacks, in bytes.
    pub fn folded(&self) -> String {
        self.each.iter().map(|one| format!("{} {}\n", one.stack, one.bytes)).collect()
    }
}

/// What the runtime of one process saw in a hold.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// where its CPU time went
    pub cpu: Option<Samples>,
    /// where its threads waited
    pub waits: Option<Waits>,
    /// what it allocated
    pub allocations: Option<Allocations>,
    /// what kept its code from running
    pub stops: Option<Stops>,
}

/// All of one hold.
#[derive(Debug, Default)]
pub struct Profile {
    /// CPU samples of the processes of that kind which used most CPU
    pub cpu: Option<Samples>,
    /// of all of them
    pub waits: Option<Waits>,
    /// of all of them
    pub allocations: Option<Allocations>,
    /// the worst of all of them
    pub stops: Option<Stops>,
    /// what could not be seen and why, for people
    pub notes: Vec<String>,
}

/// A process whose runtime profiles it.
#[derive(Debug)]
enum On {
    Jvm(jvm::Flight),
    Node(Box<node::Inspected>),
    Go(go::Asking),
}

/// The profilers of a server's processes, from before its load until after it.
#[derive(Debug, Default)]
pub struct Runtimes {
    on: Vec<(u32, On)>,
    cpu_by: Option<Kind>,
    /// whose waits are seen by their runtimes
    waiting: Vec<u32>,
    notes: Vec<String>,
    asked: Asked,
}

impl Runtimes {
    /// Of these processes, with files in `folder`.
    ///
    /// That one of them cannot be profiled is one of the notes.
    pub fn start(pids: &[u32], at: &Served, asked: Asked, folder: &Path) -> Runtimes {
        let mut runtimes = Runtimes { asked, ..Runtimes::default() };
        if !(asked.cpu || asked.waits || asked.allocations) {
            return runtimes;
        }
        let mut busy: Vec<(u32, u64)> = pids.iter().map(|pid| (*pid, cpu_ticks(*pid))).collect();
        busy.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
        let main = busy.first().map(|(pid, _)| *pid);
        for (pid, _) in busy.into_iter().take(PROCESSES_MAX) {
            let Some(kind) = Kind::of(pid) else {
                let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
                runtimes.notes.extend(nameless_python(&program).filter(|_| asked.has_perf));
                continue;
            };
            let asked = Asked { cpu: asked.cpu && (kind == Kind::Jvm || !asked.has_perf), ..asked };
            let started = match kind {
                Kind::Jvm => jvm::Flight::start(pid, asked, folder).map(On::Jvm),
                Kind::Node => {
                    node::Inspected::start(pid, at.origin, asked).map(|one| On::Node(Box::new(one)))
                }
                Kind::Go => match go::Asking::start(pid, at, asked) {
                    // Several processes of which one serves the profiles: its own.
                    Ok(one)
                        if runtimes
                            .on
                            .iter()
                            .any(|(_, on)| matches!(on, On::Go(other) if other.is_of(&one))) =>
                    {
                        continue;
                    }
                    // What perf sees is whole without it.
                    Err(_) if !(asked.cpu || asked.waits || asked.allocations) => continue,
                    started => started.map(On::Go),
                },
            };
            match started {
                Ok(on) => runtimes.add(pid, kind, asked, on, main),
                Err(why) => runtimes.notes.push(why.to_string()),
            }
        }
        runtimes
    }

    fn add(&mut self, pid: u32, kind: Kind, asked: Asked, on: On, main: Option<u32>) {
        // With perf only the runtime of the process that does the work replaces it.
        if asked.cpu && self.cpu_by.is_none() && (!asked.has_perf || Some(pid) == main) {
            self.cpu_by = Some(kind);
        }
        if kind == Kind::Jvm && asked.waits {
            self.waiting.push(pid);
        }
        self.on.push((pid, on));
    }

    /// Whose samples tell where CPU time goes; `None`: those of perf.
    pub fn cpu_by(&self) -> Option<Kind> {
        self.cpu_by
    }

    /// What cannot be seen and why, as far as it is known, for people.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The processes whose waits are seen here.
    pub fn waiting(&self) -> &[u32] {
        &self.waiting
    }

    /// The hold begins; it lasts so long at most.
    pub fn hold_begins(&mut self, length: Duration) {
        for (_, on) in &mut self.on {
            match on {
                On::Jvm(one) => one.hold_begins(),
                On::Node(one) => one.hold_begins(length),
                On::Go(one) => one.hold_begins(length),
            }
        }
    }

    /// The hold has ended; what was asked for is fetched later.
    pub fn hold_ends(&mut self) {
        for (_, on) in &mut self.on {
            match on {
                On::Jvm(one) => one.hold_ends(),
                On::Node(one) => one.hold_ends(),
                On::Go(_) => {}
            }
        }
    }

    /// What was seen in the hold. Recordings are stopped, and inspectors that were opened here are closed.
    pub fn end(self, window: Window) -> Profile {
        let Runtimes { on, cpu_by, notes, asked, .. } = self;
        let mut profile = Profile { notes, ..Profile::default() };
        for (_, on) in on {
            let (kind, seen) = match on {
                On::Jvm(one) => (Kind::Jvm, one.end(window)),
                On::Node(one) => (Kind::Node, one.end(window)),
                On::Go(one) => (Kind::Go, one.end(window)),
            };
            match seen {
                Ok((seen, note)) => {
                    profile.take(seen, cpu_by == Some(kind));
                    profile.notes.extend(note);
                }
                Err(why) => profile.notes.push(why.to_string()),
            }
        }
        if asked.allocations && profile.allocations.is_none() && profile.notes.is_empty() {
            profile.notes.push(
                "without a change to the program only a JVM, Node.js and a Go server with /debug/pprof/ tell of them"
                    .to_owned(),
            );
        }
        profile.notes.sort();
        profile.notes.dedup();
        profile
    }
}

/// Of a Python that tells perf nothing, that it is one: what shows is its interpreter.
fn nameless_python(program: &Path) -> Option<String> {
    let version = program.file_name()?.to_str()?.strip_prefix("python3.")?;
    let minor: u32 = version.parse().ok()?;
    (minor < 12).then(|| {
        format!("Python 3.{minor} does not tell perf the names of its functions (3.12 and later do), so those named are the interpreter's")
    })
}

impl Profile {
    fn take(&mut self, seen: Seen, with_cpu: bool) {
        if let Some(cpu) = seen.cpu.filter(|_| with_cpu) {
            let sum = self.cpu.get_or_insert_default();
            sum.folded += &cpu.folded;
            sum.per_s = cpu.per_s;
        }
        if let Some(waits) = seen.waits {
            let sum = self.waits.get_or_insert_default();
            sum.each.extend(waits.each);
            sum.holders.extend(waits.holders);
            sum.covered_ns = sum.covered_ns.max(waits.covered_ns);
        }
        if let Some(allocations) = seen.allocations {
            let sum = self.allocations.get_or_insert_default();
            sum.each.extend(allocations.each);
        }
        if let Some(stops) = seen.stops {
            self.stops = Some(self.stops.take().unwrap_or_default().and(stops));
        }
    }
}

/// CPU time of a process so far, in ticks; 0 where it has ended.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = procfs::process::Process::new(pid as i32).and_then(|process| process.stat());
    stat.map_or(0, |stat| stat.utime + stat.stime)
}

/// Errors: it is another user's, whose files and tools are not to be trusted, or it has ended.
fn check_owner(pid: u32) -> Result<(), NoProfile> {
    let process = std::fs::metadata(format!("/proc/{pid}")).map_err(|_| NoProfile::Gone)?;
    if process.uid() == geteuid().as_raw() { Ok(()) } else { Err(NoProfile::OtherUser { pid }) }
}

/// The name of the program that a process runs; empty where it has ended.
fn program(pid: u32) -> String {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = path.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
    })
}

/// Text of another program as part of a sentence.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ").trim().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_before_3_12_names_no_functions() {
        for (program, is_nameless) in [
            ("/usr/bin/python3.11", true),
            ("/usr/bin/python3.9", true),
            ("/opt/python3.12", false),
            ("/usr/bin/python3", false),
            ("/usr/bin/python3.x", false),
            ("/usr/bin/node", false),
        ] {
            assert_eq!(nameless_python(Path::new(program)).is_some(), is_nameless, "{program}");
        }
    }

    #[test]
    fn an_allocation_is_the_innermost_own_functions_or_else_the_innermost_ones() {
        for (stack, expected) in [
            ("user:main;user:list (a.js:2);runtime:push", "list (a.js:2)"),
            ("runtime:Thread.run;runtime:Array.copy", "Array.copy"),
            ("user:a::b", "a::b"),
            ("", ""),
        ] {
            let one = Allocation { stack: stack.to_owned(), ..Allocation::default() };
            assert_eq!(one.function(), expected, "{stack}");
        }
    }
}
