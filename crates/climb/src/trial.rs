//! One trial: one load held once. All components meet here; keep it thin.
//!
//! A generator makes the load, the phase controller starts each phase, the watch samples the subject, and everything
//! that happens leaves as an `Entry`. Nothing is judged here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::bail;
use engine::collector::FromWorker;
use engine::{Clock, Collector, MonotonicClock, Timeline};
use measure::Sum;
use measure::trial::kind;
use measure::{Entry, Event, Interval, LedgerPart, Role};
use plan::WorkerPlan;

use crate::phases::{DRAIN_NS, PhaseController, PhaseTransition, Seen};
use crate::trial::recovering::Recovering;
use crate::trial::subject_end::SubjectEnd;

mod after_hold;
mod connections;
mod load;
mod recovering;
mod spec;
mod subject_end;
mod threads;

pub use self::connections::{addresses, tls, upgrade};
pub use self::load::{Counts, Elsewhere, Generator, Load, Profiling, Sought, Start, ThisProcess};
pub use self::spec::{Recovery, StopReason, TrialEnv, TrialSpec, TrialStatus};
pub use self::threads::{ThreadOptions, Threads};

/// Runs one trial to its end, with a load that was prepared for it.
pub fn run(
    order: &TrialSpec<'_>,
    mut load: Box<dyn Load>,
    context: &mut impl TrialEnv,
) -> anyhow::Result<()> {
    let clock = MonotonicClock::since(engine::clock::monotonic_ns() + load.lead_ns());
    let realtime_zero_ns = engine::clock::realtime_ns() + load.lead_ns();
    context.begin(clock, realtime_zero_ns, load.pids())?;
    keep_networks(order, context)?;
    let timeline = Arc::new(Timeline::default());
    let (says, hears) = channel();
    let begun = load.begin(Start { clock, realtime_zero_ns, timeline: timeline.clone(), says });
    let mut collector = match begun {
        Ok(collector) => collector,
        Err(error) => {
            timeline.drain_at(0);
            timeline.stop_at(0);
            load.end();
            context.end();
            return Err(error);
        }
    };
    let mut stage = stage(order, clock, timeline, load.as_mut());
    let outcome = stage.play(&mut collector, &hears, context);
    // Whatever happened, no worker continues after this.
    stage.timeline.drain_at(0);
    stage.timeline.stop_at(0);
    load.end();
    context.end();
    for entry in load.merge(context.entries()) {
        context.keep(entry)?;
    }
    let is_complete = outcome?;
    if is_complete {
        keep_event(context, clock.now_ns(), kind::END, "")?;
    }
    Ok(())
}

fn stage<'a>(
    order: &'a TrialSpec<'a>,
    clock: MonotonicClock,
    timeline: Arc<Timeline>,
    load: &'a mut dyn Load,
) -> TrialRunner<'a> {
    TrialRunner {
        order,
        clock,
        timeline,
        phases: phases(order).ahead_by(load.ahead_ns()),
        load,
        seen: Seen::default(),
        phase: "ramp",
        server_ticks: 0,
        client_ticks: 0,
        hold: None,
        stop_ns: None,
        hold_end_ns: None,
        subject_end: order.stop.map(SubjectEnd::new),
        ledger: Vec::new(),
        is_incomplete: false,
        so_far: None,
        recovering: None,
        can_be_judged: true,
        told: BTreeMap::new(),
    }
}

fn phases(order: &TrialSpec<'_>) -> PhaseController {
    let units = order.workers.iter().map(|plan| plan.units).sum();
    let allowance_ns = order.workers.first().map_or(0, |plan| plan.networks.allowance_ns());
    PhaseController::new(order.hold, order.settle_ns, units, order.head.connections, ramp_ns(order, units))
        .allowing(allowance_ns)
        .stopping_subject(order.stop.map(|stop| stop.after_ns))
        .recovering(order.recovery.map(|recovery| recovery.within_ns))
}

fn ramp_ns(order: &TrialSpec<'_>, units: u64) -> u64 {
    order.workers.first().map_or(0, |plan| plan::ramp::length_ns(plan.ramp, units))
}

struct TrialRunner<'a> {
    order: &'a TrialSpec<'a>,
    clock: MonotonicClock,
    timeline: Arc<Timeline>,
    load: &'a mut dyn Load,
    phases: PhaseController,
    seen: Seen,
    phase: &'static str,
    /// due in the hold by the server's own word
    server_ticks: u64,
    /// due in the hold as the clients see them, for a server that says nothing
    client_ticks: u64,
    /// begin of the hold
    hold: Option<u64>,
    stop_ns: Option<u64>,
    hold_end_ns: Option<u64>,
    /// the state of the subject's shutdown
    subject_end: Option<SubjectEnd>,
    /// the workers' parts, as they come up
    ledger: Vec<LedgerPart>,
    /// the hold as far as it is known
    so_far: Option<Sum>,
    /// what follows the hold, where a part of the load goes on
    recovering: Option<Recovering>,
    /// see `Seen::can_be_judged`
    can_be_judged: bool,
    /// up to where ticks were told, by source
    told: BTreeMap<String, Told>,
    /// a worker ended by a bug of ours, or an agent was lost: what they had is missing
    is_incomplete: bool,
}

/// Up to when a source reported ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    until_ns: u64,
    /// how long an entry is
    entry_ns: u64,
}

impl Told {
    /// True when the report reaches the end of the hold, except for the edge of an entry.
    fn covers(&self, end_ns: u64) -> bool {
        self.until_ns + self.entry_ns / 10 >= end_ns
    }
}

/// A server's log may tell its last second of the hold so much later. Long enough to call what stays silent dead
/// (`measure::trial`'s cover of the ticks).
const LAST_TICKS_WITHIN_NS: u64 = 4_000_000_000;
/// The hold's outcome is looked at from so long before its end on.
const LOOKS_AHEAD_NS: u64 = 2_000_000_000;

impl TrialRunner<'_> {
    /// Plays until every worker has handed over everything. Returns whether the trial is complete.
    fn play(
        &mut self,
        collector: &mut Collector,
        hears: &Receiver<FromWorker>,
        context: &mut impl TrialEnv,
    ) -> anyhow::Result<bool> {
        loop {
            match hears.recv_timeout(Duration::from_millis(10)) {
                Ok(FromWorker::Second { worker, interval }) => match collector.add(worker, interval) {
                    Ok(None) => {}
                    Ok(Some(mut merged)) => {
                        self.count(&merged);
                        for event in marks(&mut merged) {
                            context.keep(Entry::Event(event))?;
                        }
                        let entry = Entry::Interval(merged);
                        self.look_at(&entry);
                        context.keep(entry)?;
                    }
                    Err(imbalance) => {
                        keep_event(
                            context,
                            self.clock.now_ns(),
                            kind::BUG,
                            &format!("the books: {imbalance}"),
                        )?;
                    }
                },
                Ok(FromWorker::Ledger { part }) => self.ledger.push(*part),
                Ok(FromWorker::Done { .. }) => {
                    if collector.done() {
                        self.keep_last(collector, context)?;
                        self.wait_for_last_ticks(context)?;
                        self.wait_for_end_of_subject(context)?;
                        return Ok(true);
                    }
                }
                Ok(FromWorker::Panicked { why, .. }) => {
                    if self.goes_without(kind::BUG, &why, "a worker panicked", collector, context)? {
                        return Ok(true);
                    }
                }
                Ok(FromWorker::Lost { why, .. }) => {
                    if self.goes_without(kind::AGENT_LOST, &why, "an agent was lost", collector, context)? {
                        return Ok(true);
                    }
                }
                Ok(FromWorker::Broke { why, .. }) => bail!("{why}"),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("the workers ended without a word"),
            }
            self.take_entries(context)?;
            self.conduct(context)?;
            if self.stop_ns.is_some_and(|stop_ns| self.clock.now_ns() > stop_ns + 5_000_000_000) {
                keep_event(context, self.clock.now_ns(), kind::BUG, "a worker did not end in time")?;
                return Ok(false);
            }
        }
    }

    /// A part of the load is missing from now on, and the trial ends. Returns whether nobody is left.
    fn goes_without(
        &mut self,
        kind: &str,
        why: &str,
        ends: &'static str,
        collector: &mut Collector,
        context: &mut impl TrialEnv,
    ) -> anyhow::Result<bool> {
        keep_event(context, self.clock.now_ns(), kind, why)?;
        self.is_incomplete = true;
        self.seen.ends = self.seen.ends.or(Some(ends));
        let is_last = collector.done();
        if is_last {
            self.keep_last(collector, context)?;
        }
        Ok(is_last)
    }

    /// Keeps what the watch and the load's own samplers saw.
    fn take_entries(&mut self, context: &mut impl TrialEnv) -> anyhow::Result<()> {
        for entry in self.load.merge(context.entries()) {
            if let (Some(end), Entry::Event(event)) = (&mut self.subject_end, &entry) {
                end.has_heard |= event.kind == kind::SUBJECT_EXITED;
            }
            if let Entry::Ticks(second) = &entry {
                let told = self.told.entry(second.source.clone()).or_default();
                told.until_ns = told.until_ns.max(second.to_ns);
                told.entry_ns =
                    (second.to_ns - second.from_ns.min(second.to_ns)).clamp(250_000_000, 1_500_000_000);
                if second.compared().is_none() && self.hold.is_some_and(|from_ns| second.to_ns > from_ns) {
                    self.server_ticks += second.counts.due;
                }
            }
            self.look_at(&entry);
            context.keep(entry)?;
        }
        Ok(())
    }

    /// What only the end of all workers completes. Without the part of a worker that panicked the deliveries of the
    /// others cannot be settled.
    fn keep_last(&mut self, collector: &mut Collector, context: &mut impl TrialEnv) -> anyhow::Result<()> {
        for interval in collector.incomplete() {
            context.keep(Entry::Interval(interval))?;
        }
        if !self.ledger.is_empty() && !self.is_incomplete {
            let books = measure::ledger::close(&self.ledger);
            context.keep(Entry::Books(Box::new(books)))?;
        }
        Ok(())
    }

    /// A server that writes its log once per second reports the last second of the hold a little later; a stalled one
    /// never does.
    fn wait_for_last_ticks(&mut self, context: &mut impl TrialEnv) -> anyhow::Result<()> {
        let Some(end_ns) = self.hold_end_ns else { return Ok(()) };
        let covers_all = |told: &BTreeMap<String, Told>| told.values().all(|told| told.covers(end_ns));
        while self.seen.ends.is_none()
            && !covers_all(&self.told)
            && self.clock.now_ns() < end_ns + LAST_TICKS_WITHIN_NS
            && context.ends().is_none()
        {
            std::thread::sleep(Duration::from_millis(20));
            self.take_entries(context)?;
        }
        Ok(())
    }

    /// Adds an entry to what is known of the hold, and towards its end asks whether it can be judged by that.
    fn look_at(&mut self, entry: &Entry) {
        if let (Some(recovering), Some(terms)) = (&mut self.recovering, &self.order.terms) {
            recovering.take(entry, &terms.objectives);
        }
        let (Some(so_far), Some(terms)) = (&mut self.so_far, &self.order.terms) else { return };
        so_far.take(entry);
        let Entry::Interval(interval) = entry else { return };
        let now_ns = u64::from(interval.index + 1) * 1_000_000_000;
        let ends_ns = self.phases.hold_ends_ns();
        if ends_ns.is_none_or(|ends_ns| now_ns + LOOKS_AHEAD_NS >= ends_ns) {
            self.can_be_judged = ladder::has_seen_enough(&so_far.clone().finish(), terms);
        }
    }

    fn count(&mut self, interval: &measure::Interval) {
        let from_ns = u64::from(interval.index) * 1_000_000_000;
        if self.hold.is_some_and(|hold_ns| from_ns >= hold_ns) {
            self.client_ticks += interval.ticks.due;
            self.seen.games_in_hold += interval.counted(Role::GamesPlayed).unwrap_or(0);
        }
    }

    fn conduct(&mut self, context: &mut impl TrialEnv) -> anyhow::Result<()> {
        let now_ns = self.clock.now_ns();
        let Counts { open, joined, failed } = self.load.counts();
        (self.seen.open, self.seen.joined) = (open, joined);
        self.seen.ticks_in_hold = if self.server_ticks > 0 { self.server_ticks } else { self.client_ticks };
        self.seen.can_be_judged = self.can_be_judged;
        self.seen.has_recovered = self.recovering.as_ref().is_some_and(Recovering::is_over);
        if self.seen.ends.is_none() {
            match context.ends() {
                Some(StopReason::Interrupted) => self.seen.ends = Some(kind::INTERRUPTED),
                Some(StopReason::SubjectExited) => self.seen.ends = Some("the subject exited"),
                None => {}
            }
        }
        while self.load.can_announce()
            && let Some(cue) = self.phases.decide(now_ns, &self.seen)
        {
            self.give(cue, context)?;
        }
        self.end_subject(context)?;
        context.show(&TrialStatus {
            head: &self.order.head,
            phase: self.phase,
            now_ns,
            hold_until_ns: self.phases.hold_ends_ns(),
            ramp_ns: ramp_ns(self.order, self.order.workers.iter().map(|plan| plan.units).sum()),
            open: self.seen.open,
            failed,
        });
        Ok(())
    }

    fn give(&mut self, cue: PhaseTransition, context: &mut impl TrialEnv) -> anyhow::Result<()> {
        match cue {
            PhaseTransition::Settle { at_ns, open } => {
                self.timeline.settle_at(at_ns);
                self.phase = "settle";
                let text = format!("{open} of {} connections open", self.order.head.connections);
                keep_event(context, at_ns, kind::SETTLE, &text)
            }
            PhaseTransition::Hold { at_ns } => {
                self.timeline.hold_at(at_ns);
                (self.phase, self.hold) = ("hold", Some(at_ns));
                let begin = Event { at_ns, kind: kind::HOLD.to_owned(), text: String::new() };
                let is_judged = self.order.terms.is_some();
                self.so_far = is_judged.then(|| Sum::new(self.order.head.clone(), vec![begin], 0));
                keep_event(context, at_ns, kind::HOLD, "")
            }
            PhaseTransition::StopSubject { at_ns } => self.begin_end_of_subject(at_ns, context),
            PhaseTransition::Recover { at_ns, ended_by } => self.begin_recovery(at_ns, &ended_by, context),
            PhaseTransition::EndRecovery { at_ns, cut_by } => self.end_recovery(at_ns, cut_by, context),
            PhaseTransition::Drain { at_ns, ended_by } => {
                self.hold_end_ns = Some(at_ns);
                self.begin_drain(at_ns);
                keep_event(context, at_ns, kind::DRAIN, &ended_by)
            }
        }
    }

    /// Nothing is planned from this instant on.
    fn begin_drain(&mut self, at_ns: u64) {
        self.timeline.drain_at(at_ns);
        // An interrupted trial does not wait for its bots' remaining work.
        let is_cut = self.seen.ends.is_some();
        let drain_ns = self.order.workers.iter().map(drain_ns).max();
        let stop_ns = at_ns + drain_ns.filter(|_| !is_cut).unwrap_or(DRAIN_NS);
        self.timeline.stop_at(stop_ns);
        self.stop_ns = Some(stop_ns);
        self.phase = "drain";
    }
}

/// How long a worker may take from the end of the hold to its own, ns.
fn drain_ns(plan: &WorkerPlan) -> u64 {
    plan.drain_ns + plan::CLOSING_NS + plan.networks.allowance_ns()
}

/// Keeps which networks are emulated, where they are.
fn keep_networks(order: &TrialSpec<'_>, context: &mut impl TrialEnv) -> anyhow::Result<()> {
    match order.workers.first() {
        Some(plan) if !plan.networks.is_empty() => {
            let facts = plan.networks.facts(order.head.bots, plan.first_turn);
            keep_event(context, 0, kind::NETWORKS, &serde_json::to_string(&facts)?)
        }
        _ => Ok(()),
    }
}

/// The first errors of each cause, as they were met, and other marks of the bots, out of the second in which they happened.
pub fn marks(second: &mut Interval) -> Vec<Event> {
    let at_ns = (u64::from(second.index) + 1) * 1_000_000_000;
    let samples = std::mem::take(&mut second.samples);
    let names = &second.metric_names.errors;
    let event = |(cause, words): (usize, String)| {
        let text = format!("{}: {words}", names[cause]);
        Event { at_ns, kind: kind::ERROR.to_owned(), text }
    };
    let errors = samples.into_iter().map(event);
    let marks = std::mem::take(&mut second.marks).into_iter();
    errors.chain(marks.map(|(kind, text)| Event { at_ns, kind: kind.to_owned(), text })).collect()
}

fn keep_event(context: &mut impl TrialEnv, at_ns: u64, kind: &str, text: &str) -> anyhow::Result<()> {
    context.keep(Entry::Event(Event { at_ns, kind: kind.to_owned(), text: text.to_owned() }))
}

#[cfg(test)]
mod tests;
