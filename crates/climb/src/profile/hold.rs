//! One profiled hold: a trial whose entries are summed and not stored, with `perf` beside it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use engine::MonotonicClock;
use ladder::Rung;
use measure::trial::kind;
use measure::{Entry, Event, Purpose, Sum, Trial};
use plan::{Cell, Plan};
use watch::ProcessTree;
use watch::profile::{By, NoProfile, PerfMaps, Recording, What};

use super::Held;
use crate::climb::{Climbing, SubjectTrial};
use crate::context::TrialContext;
use crate::progress::Progress;
use crate::subject::RunningSubject;
use crate::trial::{self, StopReason, TrialEnv, TrialStatus};

/// Holds a rung's load once more under perf; `waits`: where threads wait is recorded as well. Errors: why there is no profile of
/// it, for the user.
pub(super) fn profiled(
    climbing: &Climbing<'_>,
    (plan, waits): (&Plan, bool),
    (rung, cell): (&Rung, &Cell),
    folder: &Path,
    (subject, maps): (&mut RunningSubject, &mut PerfMaps),
    progress: &mut Progress,
) -> anyhow::Result<Held> {
    let place = format!("{} {}", rung.load, rung.load_unit);
    let (target, is_started) = (subject.target.clone(), subject.is_started());
    let asked = SubjectTrial {
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
    let spec = climbing.spec(asked, &target, subject)?;
    let Climbing { writer, committed, interrupt, .. } = *climbing;
    let mut env = ProfiledTrial {
        inner: TrialContext::new(plan, subject, writer, committed, interrupt, progress),
        folder,
        waits,
        recordings: Vec::new(),
        recorded: Vec::new(),
        origin_ns: 0,
        entries: Vec::new(),
        pids: Vec::new(),
        is_started,
    };
    let outcome = trial::run(&spec, &mut env);
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
    let mut recorded = std::mem::take(&mut env.recorded).into_iter();
    let file = recorded.next().with_context(|| format!("at {place} perf was not started"))??;
    let hold = trial.hold.as_ref().with_context(|| format!("{place} could not be held again"))?;
    let during_ns = (origin_ns + hold.from_ns, origin_ns + hold.to_ns);
    let folded = |by| watch::profile::folded(&file, Some(by), during_ns, 1);
    let both = [folded(By::FramePointers)?, folded(By::DebugInformation)?];
    // Without the waits there is still a profile.
    let waits = recorded.next().map(|file| watch::profile::waits(&file?, during_ns));
    Held::of(&trial, rung, both, waits)
}

/// A trial's surroundings, with perf besides.
struct ProfiledTrial<'a> {
    inner: TrialContext<'a>,
    folder: &'a Path,
    waits: bool,
    /// of CPU, then of waits
    recordings: Vec<Recording>,
    recorded: Vec<Result<PathBuf, NoProfile>>,
    /// zero of the trial's clock, as a reading of CLOCK_MONOTONIC
    origin_ns: u64,
    entries: Vec<Entry>,
    /// every process of the subject that was seen
    pids: Vec<u32>,
    is_started: bool,
}

impl ProfiledTrial<'_> {
    fn look_at_processes(&mut self) {
        let Some(mut tree) = self.inner.subject.pid.and_then(|pid| ProcessTree::of(pid).ok()) else { return };
        tree.read();
        // Not those that ended and were not reaped: perf refuses all for one of them.
        self.pids.extend(tree.threads().iter().map(|(pid, _)| *pid as u32));
        self.pids.sort_unstable();
        self.pids.dedup();
    }
}

impl TrialEnv for ProfiledTrial<'_> {
    fn begin(&mut self, clock: MonotonicClock, realtime_zero_ns: u64) -> anyhow::Result<()> {
        self.inner.begin(clock, realtime_zero_ns)?;
        self.origin_ns = clock.origin_ns();
        self.look_at_processes();
        if self.pids.is_empty() {
            return Err(NoProfile::Gone.into());
        }
        // What starts later is recorded too, as a child of these.
        self.recordings.push(Recording::of(What::Cpu, &self.pids, self.folder)?);
        if self.waits {
            self.recordings.push(Recording::of(What::Waits, &self.pids, self.folder)?);
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
        if matches!(&entry, Entry::Event(Event { kind, .. }) if kind == kind::DRAIN) {
            self.look_at_processes();
        }
        // The line that shows the trial's progress; nothing is committed here.
        self.inner.progress.committed(std::slice::from_ref(&entry));
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
        self.recorded = self.recordings.drain(..).map(Recording::end).collect();
    }
}
