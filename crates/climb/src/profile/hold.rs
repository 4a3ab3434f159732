//! One profiled hold: a trial whose entries are summed and not stored, with profilers beside it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use engine::MonotonicClock;
use ladder::Rung;
use measure::trial::kind;
use measure::{Entry, Event, Purpose, Sum, Trial};
use plan::{Cell, HoldLength, Plan};
use watch::ProcessTree;
use watch::profile::runtime::{Asked, Profile, Runtimes, Window};
use watch::profile::{By, NoProfile, PerfMaps, Recording, Waits, What};

use super::held::{Cpu, Held, Seen};
use crate::climb::{Climbing, SubjectTrial};
use crate::context::TrialContext;
use crate::progress::Progress;
use crate::subject::RunningSubject;
use crate::trial::{self, StopReason, TrialEnv, TrialStatus};

/// How loads are profiled: both in the same way.
#[derive(Clone, Copy)]
pub(super) struct How<'a> {
    pub(super) plan: &'a Plan,
    pub(super) asked: Asked,
    /// why perf cannot be used
    pub(super) no_perf: Option<&'a NoProfile>,
}

/// Holds a rung's load once more under profilers. Errors: why there is no profile of it, for the user.
pub(super) fn profiled(
    climbing: &Climbing<'_>,
    how: How<'_>,
    (rung, cell): (&Rung, &Cell),
    folder: &Path,
    (subject, maps): (&mut RunningSubject, &mut PerfMaps),
    progress: &mut Progress,
) -> anyhow::Result<Held> {
    let How { plan, asked, no_perf } = how;
    let place = format!("{} {}", rung.load, rung.load_unit);
    let (target, is_started) = (subject.target.clone(), subject.is_started());
    let order = SubjectTrial {
        plan,
        seq: rung.seq,
        // Not judged.
        purpose: Purpose::WarmUp,
        load: rung.load,
        cell: cell.names.clone(),
        request: cell.request,
        hold: plan.ladder.hold,
        terms: None,
        recovery_load: None,
    };
    let spec = climbing.spec(order, &target, subject)?;
    let Climbing { writer, committed, interrupt, .. } = *climbing;
    // Before its load, because a runtime may take a second to begin.
    let (pids, address) = (processes(subject.pid), origin(subject));
    let runtimes = Runtimes::start(&pids, address, asked, folder);
    let cpu_by = runtimes.cpu_by();
    if let Some(why) = no_perf.filter(|_| cpu_by.is_none()) {
        let more: String = runtimes.notes().iter().map(|note| format!("; {note}")).collect();
        bail!("{why}{more}");
    }
    let by_perf = asked.cpu && cpu_by.is_none();
    let mut env = ProfiledTrial {
        inner: TrialContext::new(plan, subject, writer, committed, interrupt, progress),
        folder,
        by_perf,
        waits: asked.waits && asked.has_perf,
        runtimes,
        hold: plan.ladder.hold,
        recordings: [None, None],
        cpu: None,
        waiting: None,
        origin_ns: 0,
        realtime_zero_ns: 0,
        entries: Vec::new(),
        pids,
        is_started,
    };
    let outcome = trial::run(&spec, climbing.generator, &mut env);
    maps.add(&env.pids);
    outcome?;
    if interrupt.is_asked() {
        bail!("it was interrupted");
    }
    let (entries, origin_ns) = (std::mem::take(&mut env.entries), env.origin_ns);
    let (events, others): (Vec<Entry>, Vec<Entry>) =
        entries.into_iter().partition(|entry| matches!(entry, Entry::Event(_)));
    let events = events
        .into_iter()
        .filter_map(|entry| if let Entry::Event(event) = entry { Some(event) } else { None });
    let mut sum = Sum::new(spec.head.clone(), events.collect(), 0);
    others.iter().for_each(|entry| sum.take(entry));
    let trial: Trial = sum.finish();
    if let Some(exit) = trial.event(kind::SUBJECT_EXITED) {
        bail!("the server ended while it was profiled at {place} ({})", exit.text);
    }
    let hold = trial.hold.as_ref().with_context(|| format!("{place} could not be held again"))?;
    let from = |zero_ns: u64| (zero_ns + hold.from_ns, zero_ns + hold.to_ns);
    let window = Window { monotonic_ns: from(origin_ns), realtime_ns: from(env.realtime_zero_ns) };
    let by_runtimes = std::mem::take(&mut env.runtimes).end(window);
    let mut seen = Seen::default();
    if by_perf {
        let file = env.cpu.take().with_context(|| format!("at {place} perf was not started"))??;
        let folded = |by| watch::profile::folded(&file, Some(by), window.monotonic_ns, 1);
        seen.cpu = Some(Cpu::Perf([folded(By::FramePointers)?, folded(By::DebugInformation)?]));
    }
    // Without the waits there is still a profile.
    let waits = env.waiting.take().map(|file| watch::profile::waits(&file?, window.monotonic_ns));
    put(&mut seen, how, (cpu_by, by_runtimes), waits.map(|waits| waits.map_err(|why| why.to_string())))?;
    Held::of(&trial, rung, seen)
}

/// What the runtimes saw, beside what perf did. Errors: the samples of the one that was to take them are missing.
fn put(
    seen: &mut Seen,
    How { asked, no_perf, .. }: How<'_>,
    (cpu_by, by_runtimes): (Option<watch::profile::runtime::Kind>, Profile),
    by_perf: Option<Result<Waits, String>>,
) -> anyhow::Result<()> {
    let Profile { cpu, waits, allocations, mut notes } = by_runtimes;
    let all_notes = notes.join("; ");
    if let Some(kind) = cpu_by {
        let Some(samples) = cpu else { bail!("{} took no samples: {all_notes}", kind.profiler()) };
        seen.cpu = Some(Cpu::Runtime(kind, samples.folded, samples.per_s));
    }
    seen.waits = match (by_perf, waits) {
        (Some(Ok(of_perf)), Some(waits)) => Some(Ok(of_perf.and(waits))),
        (_, Some(waits)) => Some(Ok(waits)),
        (Some(of_perf), None) => Some(of_perf),
        (None, None) => asked.waits.then(|| Err(no_perf.map_or(all_notes.clone(), ToString::to_string))),
    };
    if asked.allocations {
        // The reason is said once.
        let missing = || std::mem::take(&mut notes).join("; ");
        seen.allocations = Some(allocations.ok_or_else(missing));
    }
    seen.notes = notes;
    if let (Some(why), false) = (no_perf, asked.waits) {
        seen.notes.push(why.to_string());
    }
    Ok(())
}

/// Where the server answers over plain HTTP; `None`: it does not, or on another machine.
fn origin(subject: &RunningSubject) -> Option<SocketAddr> {
    let is_plain = !subject.target.scheme.is_tls();
    Some(subject.address).filter(|address| is_plain && address.ip().is_loopback())
}

/// Those that live, without those that ended and were not reaped: perf refuses all for one of them.
fn processes(pid: Option<u32>) -> Vec<u32> {
    let Some(mut tree) = pid.and_then(|pid| ProcessTree::of(pid).ok()) else { return Vec::new() };
    tree.read();
    let mut pids: Vec<u32> = tree.threads().iter().map(|(pid, _)| *pid as u32).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// A trial's surroundings, with profilers besides.
struct ProfiledTrial<'a> {
    inner: TrialContext<'a>,
    folder: &'a Path,
    /// perf samples CPU
    by_perf: bool,
    /// perf records waits of those whose runtimes do not
    waits: bool,
    runtimes: Runtimes,
    hold: HoldLength,
    recordings: [Option<Recording>; 2],
    cpu: Option<Result<PathBuf, NoProfile>>,
    waiting: Option<Result<PathBuf, NoProfile>>,
    realtime_zero_ns: u64,
    /// zero of the trial's clock, as a reading of CLOCK_MONOTONIC
    origin_ns: u64,
    entries: Vec<Entry>,
    /// every process of the subject that was seen
    pids: Vec<u32>,
    is_started: bool,
}

impl ProfiledTrial<'_> {
    fn look_at_processes(&mut self) {
        self.pids.extend(processes(self.inner.subject.pid));
        self.pids.sort_unstable();
        self.pids.dedup();
    }
}

impl TrialEnv for ProfiledTrial<'_> {
    fn begin(
        &mut self,
        clock: MonotonicClock,
        realtime_zero_ns: u64,
        load_pids: Vec<u32>,
    ) -> anyhow::Result<()> {
        self.inner.begin(clock, realtime_zero_ns, load_pids)?;
        self.origin_ns = clock.origin_ns();
        self.look_at_processes();
        if self.pids.is_empty() {
            return Err(NoProfile::Gone.into());
        }
        self.realtime_zero_ns = realtime_zero_ns;
        // What starts later is recorded too, as a child of these.
        if self.by_perf {
            self.recordings[0] = Some(Recording::of(What::Cpu, &self.pids, self.folder)?);
        }
        let seen = self.runtimes.waiting();
        let others: Vec<u32> = self.pids.iter().copied().filter(|pid| !seen.contains(pid)).collect();
        if self.waits && !others.is_empty() {
            self.recordings[1] = Some(Recording::of(What::Waits, &others, self.folder)?);
        }
        Ok(())
    }

    fn entries(&mut self) -> Vec<Entry> {
        self.inner.entries()
    }

    fn ends(&mut self) -> Option<StopReason> {
        self.inner.ends()
    }

    fn keep(&mut self, entry: Entry) -> anyhow::Result<()> {
        if let Entry::Event(Event { kind, .. }) = &entry {
            if kind == kind::HOLD {
                let HoldLength::Time(ns) = self.hold else { bail!("a profiled hold has a length in time") };
                self.runtimes.hold_begins(Duration::from_nanos(ns));
            } else if kind == kind::DRAIN {
                self.runtimes.hold_ends();
                self.look_at_processes();
            }
        }
        // Its progress is shown although nothing is committed here.
        self.inner.progress.take(None, std::slice::from_ref(&entry));
        self.entries.push(entry);
        Ok(())
    }

    fn show(&mut self, standing: &TrialStatus<'_>) {
        self.inner.show(standing);
    }

    fn end(&mut self) {
        self.inner.end();
        if self.is_started {
            self.pids.iter().for_each(|pid| watch::profile::write_map_of_java(*pid));
        }
        let [cpu, waiting] = &mut self.recordings;
        (self.cpu, self.waiting) = (cpu.take().map(Recording::end), waiting.take().map(Recording::end));
    }
}
