//! All profilers of a server over one load: perf, and those of runtimes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use measure::Stops;
use serde::{Deserialize, Serialize};

use super::runtime::{Allocations, Asked, Kind, Profile, Runtimes, Served, Window};
use super::{By, NoProfile, Recording, Waits, What};
use crate::ProcessTree;

/// CPU samples as they were taken: by `perf` in each way of finding stacks, or by a runtime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Cpu {
    /// folded, in each way
    Perf([String; 2]),
    /// folded, and samples per second of CPU time
    Runtime(Kind, String, f64),
}

/// What was seen in one hold; `None` is what was not asked for, an error is for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// where CPU time went
    pub cpu: Option<Cpu>,
    /// where threads waited
    pub waits: Option<Result<Waits, String>>,
    /// what was allocated
    pub allocations: Option<Result<Allocations, String>>,
    /// what kept the server's own code from running
    pub stops: Option<Stops>,
    /// what else could not be seen, and why
    pub notes: Vec<String>,
}

/// From before a load until after it. Dropped at any moment, it leaves nothing behind in the server.
#[derive(Debug)]
pub struct Profilers {
    pid: u32,
    asked: Asked,
    /// why perf cannot be used
    no_perf: Option<String>,
    folder: PathBuf,
    runtimes: Runtimes,
    recordings: [Option<Recording>; 2],
    files: [Option<Result<PathBuf, NoProfile>>; 2],
    /// every process of the server that was seen
    pids: Vec<u32>,
}

impl Profilers {
    /// Of the server's process and what it started, with files in `folder`. Before the load, because a runtime may take a second to
    /// begin. `no_perf`: see [`Recording::check`].
    ///
    /// Errors: why nothing of what is asked can be seen.
    pub fn start(
        pid: u32,
        at: &Served,
        asked: Asked,
        no_perf: Option<&NoProfile>,
        folder: &Path,
    ) -> Result<Profilers, String> {
        let pids = processes(pid);
        let runtimes = Runtimes::start(&pids, at, asked, folder);
        if let Some(why) = no_perf.filter(|_| asked.cpu && runtimes.cpu_by().is_none()) {
            let more: String = runtimes.notes().iter().map(|note| format!("; {note}")).collect();
            return Err(format!("{why}{more}"));
        }
        Ok(Profilers {
            pid,
            asked,
            no_perf: no_perf.map(ToString::to_string),
            folder: folder.to_owned(),
            runtimes,
            recordings: [None, None],
            files: [None, None],
            pids,
        })
    }

    fn look_at_processes(&mut self) {
        self.pids.extend(processes(self.pid));
        self.pids.sort_unstable();
        self.pids.dedup();
    }

    /// All processes of the server that were seen.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    fn is_by_perf(&self) -> bool {
        self.asked.cpu && self.runtimes.cpu_by().is_none()
    }

    /// The load begins. Errors: perf cannot be started, or the server has ended.
    pub fn begin(&mut self) -> Result<(), NoProfile> {
        self.look_at_processes();
        if self.pids.is_empty() {
            return Err(NoProfile::Gone);
        }
        // What starts later is recorded too, as a child of these.
        if self.is_by_perf() {
            self.recordings[0] = Some(Recording::of(What::Cpu, &self.pids, &self.folder)?);
        }
        let seen = self.runtimes.waiting();
        let others: Vec<u32> = self.pids.iter().copied().filter(|pid| !seen.contains(pid)).collect();
        if self.asked.waits && self.asked.has_perf && !others.is_empty() {
            self.recordings[1] = Some(Recording::of(What::Waits, &others, &self.folder)?);
        }
        Ok(())
    }

    /// The hold begins; it lasts so long at most.
    pub fn hold_begins(&mut self, length: Duration) {
        self.runtimes.hold_begins(length);
    }

    /// The hold has ended.
    pub fn hold_ends(&mut self) {
        self.runtimes.hold_ends();
        self.look_at_processes();
    }

    /// The load has ended: perf writes its files.
    pub fn stop(&mut self) {
        for (recording, file) in self.recordings.iter_mut().zip(&mut self.files) {
            if let Some(recording) = recording.take() {
                *file = Some(recording.end());
            }
        }
    }

    /// What was seen in the hold. Errors: the samples of the one that was to take them are missing.
    pub fn end(&mut self, window: Window) -> Result<Seen, String> {
        self.stop();
        let (is_by_perf, cpu_by) = (self.is_by_perf(), self.runtimes.cpu_by());
        let (asked, no_perf) = (self.asked, self.no_perf.take());
        let [cpu_file, waits_file] = std::mem::take(&mut self.files);
        let Profile { cpu, waits, allocations, stops, mut notes } =
            std::mem::take(&mut self.runtimes).end(window);
        let all_notes = notes.join("; ");
        let mut seen = Seen { stops, ..Seen::default() };
        if let Some(kind) = cpu_by {
            let none = || format!("{} took no samples: {all_notes}", kind.profiler());
            let samples = cpu.ok_or_else(none)?;
            seen.cpu = Some(Cpu::Runtime(kind, samples.folded, samples.per_s));
        }
        if is_by_perf {
            let file = cpu_file.ok_or("perf was not started")?.map_err(|why| why.to_string())?;
            let folded =
                |by| super::folded(&file, Some(by), window.monotonic_ns, 1).map_err(|why| why.to_string());
            seen.cpu = Some(Cpu::Perf([folded(By::FramePointers)?, folded(By::DebugInformation)?]));
        }
        // Without the waits there is still a profile.
        let by_perf = waits_file.map(|file| super::waits(&file?, window.monotonic_ns));
        seen.waits = match (by_perf, waits) {
            (Some(Ok(of_perf)), Some(waits)) => Some(Ok(of_perf.and(waits))),
            (_, Some(waits)) => Some(Ok(waits)),
            (Some(of_perf), None) => Some(of_perf.map_err(|why| why.to_string())),
            (None, None) => asked.waits.then(|| Err(no_perf.clone().unwrap_or(all_notes))),
        };
        if asked.allocations {
            // The reason is said once.
            let missing = || std::mem::take(&mut notes).join("; ");
            seen.allocations = Some(allocations.ok_or_else(missing));
        }
        seen.notes = notes;
        seen.notes.extend(no_perf.filter(|_| !asked.waits));
        Ok(seen)
    }
}

/// Those that live, without those that ended and were not reaped: perf refuses all for one of them.
fn processes(pid: u32) -> Vec<u32> {
    let Ok(mut tree) = ProcessTree::of(pid) else { return Vec::new() };
    tree.read();
    let mut pids: Vec<u32> = tree.threads().iter().map(|(pid, _)| *pid as u32).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}
