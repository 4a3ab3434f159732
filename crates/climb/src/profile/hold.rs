//! One profiled hold: a trial whose entries are summed and not stored, with profilers beside it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Error, bail};
use engine::MonotonicClock;
use ladder::Rung;
use measure::trial::kind;
use measure::{Entry, Event, Purpose, Sum, Trial};
use plan::{Cell, HoldLength, Plan};
use watch::profile::runtime::{Asked, Served, Window};
use watch::profile::{NoProfile, PerfMaps, Profilers, Seen};

use super::held::Held;
use crate::climb::{Climbing, SubjectTrial};
use crate::context::TrialContext;
use crate::progress::Progress;
use crate::subject::RunningSubject;
use crate::trial::{self, Profiling, StopReason, TrialEnv, TrialStatus};

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
    let pprof = plan
        .pprof
        .as_ref()
        .and_then(|at| Some((SocketAddr::new(at.literal_address()?, at.port), at.path.clone())));
    let served = Served { origin: origin(subject), pprof };
    let profiling: Box<dyn Profiling + '_> = match (&subject.elsewhere, subject.pid) {
        (Some(elsewhere), _) => elsewhere.profile(asked, served)?,
        (None, None) => bail!(NoProfile::Gone),
        (None, Some(pid)) => {
            let profilers = Profilers::start(pid, &served, asked, no_perf, folder).map_err(Error::msg)?;
            Box::new(Here { profilers, maps, is_started, zero_ns: (0, 0) })
        }
    };
    let mut env = ProfiledTrial {
        inner: TrialContext::new(plan, subject, writer, committed, interrupt, progress),
        profiling,
        hold: plan.ladder.hold,
        entries: Vec::new(),
    };
    trial::run(&spec, climbing.generator.prepare(&spec)?, &mut env)?;
    if interrupt.is_asked() {
        bail!("it was interrupted");
    }
    let ProfiledTrial { mut profiling, entries, .. } = env;
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
    let seen = profiling.end(hold.from_ns, hold.to_ns)?;
    Held::of(&trial, rung, seen)
}

/// Where the server answers without TLS, if that is asked on its own machine.
fn origin(subject: &RunningSubject) -> Option<SocketAddr> {
    let is_plain = !subject.target.scheme.is_tls();
    let is_there = |address: &SocketAddr| subject.elsewhere.is_some() || address.ip().is_loopback();
    Some(subject.address).filter(is_there).filter(|_| is_plain)
}

/// The server is a process of this machine.
struct Here<'a> {
    profilers: Profilers,
    /// what runtimes write of it for perf
    maps: &'a mut PerfMaps,
    is_started: bool,
    /// zero of the trial's clock, as readings of CLOCK_MONOTONIC and of the clock of the day
    zero_ns: (u64, u64),
}

impl Profiling for Here<'_> {
    fn begin(&mut self, zero_ns: (u64, u64)) -> anyhow::Result<()> {
        self.zero_ns = zero_ns;
        Ok(self.profilers.begin()?)
    }

    fn hold_begins(&mut self, length: Duration) -> anyhow::Result<()> {
        self.profilers.hold_begins(length);
        Ok(())
    }

    fn hold_ends(&mut self) -> anyhow::Result<()> {
        self.profilers.hold_ends();
        Ok(())
    }

    fn stop(&mut self) {
        let pids = self.profilers.pids();
        if self.is_started {
            pids.iter().for_each(|pid| watch::profile::write_map_of_java(*pid));
        }
        self.profilers.stop();
    }

    fn end(&mut self, from_ns: u64, to_ns: u64) -> anyhow::Result<Seen> {
        let window = Window::since(self.zero_ns, (from_ns, to_ns));
        self.profilers.end(window).map_err(Error::msg)
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.maps.add(self.profilers.pids());
    }
}

/// A trial's surroundings, with profilers besides.
struct ProfiledTrial<'a> {
    inner: TrialContext<'a>,
    profiling: Box<dyn Profiling + 'a>,
    hold: HoldLength,
    entries: Vec<Entry>,
}

impl TrialEnv for ProfiledTrial<'_> {
    fn begin(
        &mut self,
        clock: MonotonicClock,
        realtime_zero_ns: u64,
        load_pids: Vec<u32>,
    ) -> anyhow::Result<()> {
        self.inner.begin(clock, realtime_zero_ns, load_pids)?;
        self.profiling.begin((clock.origin_ns(), realtime_zero_ns))
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
                self.profiling.hold_begins(Duration::from_nanos(ns))?;
            } else if kind == kind::DRAIN {
                self.profiling.hold_ends()?;
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
        self.profiling.stop();
    }
}
