//! The climb: from a plan to the three answers.
//!
//! One loop: the schedule derives the next trial from the store, the trial is run and stored, and at the end the
//! answers are a pure function of the store. Nothing is judged from memory.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};

use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::layout;
use console::say;
use console::signals::Interrupt;
use ladder::wording::show_number;
use ladder::{Criteria, Next, NextTrial, Repeats};
use measure::{LoadUnit, Purpose, TrialHead};
use plan::{HoldLength, Plan, Scheme, Target};
use store::{Committed, Outcome, RunId, RunWriter, Store};

use crate::consent::Consent;
use crate::context::TrialContext;
use crate::judging::{JudgedRun, PROTOCOL, schedule};
use crate::outputs::{self, Followers, Outputs};
use crate::preflight::Machine;
use crate::progress::Progress;
use crate::resume::Resumed;
use crate::stored::{ended_early_by, keep_verdict, no_store, run_end, run_head, unix_ms};
use crate::subject::{self, RunningSubject};
use crate::trial::{self, Generator, Recovery, ThreadOptions, TrialSpec};
use crate::{calibration, page, preflight, profile};

const SECOND_NS: u64 = 1_000_000_000;

/// Climbs, behind what another run held whole where there is one. Returns the run's id and the exit code.
pub fn climb(
    plan: &Plan,
    resumed: Option<&Resumed>,
    consent: &Consent,
    outputs: &Outputs,
    interrupt: &Interrupt,
    generator: &dyn Generator,
) -> Result<(RunId, Exit), Failure> {
    subject::check_options(plan).map_err(wrong_usage)?;
    let machine = generator.machine().map_err(not_measured)?;
    let plan = &machine.within_reach(plan);
    // Before anything is started or written: check that this machine has what the ladder needs.
    machine.check(plan, None).map_err(not_measured)?;
    outputs.results.prepare().map_err(wrong_usage)?;
    let mut followers = outputs.followed.prepare(&outputs.results.all()).map_err(wrong_usage)?;
    let store = Store::open_or_create(&outputs.store).map_err(no_store)?;
    let mut progress = Progress::new();
    let mut subject = RunningSubject::start_watched(plan, consent, generator).map_err(|error| {
        // The name was resolved only now, but an address that must not be loaded is still a usage error.
        let is_usage = error.is::<plan::TargetRefused>();
        (if is_usage { Exit::WrongUsage } else { Exit::NotMeasured }, error)
    })?;
    let told = (&mut progress, &mut followers);
    let outcome =
        climb_subject((plan, resumed), outputs, interrupt, (&machine, generator), &store, told, &mut subject);
    progress.clear();
    subject.stop();
    followers.end();
    outcome.map_err(not_measured)
}

fn climb_subject(
    (plan, resumed): (&Plan, Option<&Resumed>),
    outputs: &Outputs,
    interrupt: &Interrupt,
    (machine, generator): (&Machine, &dyn Generator),
    store: &Store,
    (progress, followers): (&mut Progress, &mut Followers),
    subject: &mut RunningSubject,
) -> anyhow::Result<(RunId, Exit)> {
    machine.check(plan, Some(subject.address))?;
    preflight::warnings(plan, subject.address).iter().for_each(|text| progress.say(text));
    plan::ramp_sentence(plan).iter().for_each(|text| progress.say(text));
    plan::search_sentence(plan).iter().for_each(|text| progress.say(text));
    plan::decidable_sentence(plan).iter().for_each(|text| progress.say(text));
    let (tell, committed) = channel();
    let shared_cores = generator.shares_cores(subject.address, subject.is_here());
    let head = run_head(plan, resumed, subject.address, shared_cores)?;
    let writer = match resumed {
        None => store.begin_run(&head, Some(tell))?,
        Some(old) => store.begin_run_after(&head, (&old.run, old.trials), Some(tell))?,
    };
    let run = writer.id().clone();
    followers.begin(&outputs.store, &run)?;
    let climbing =
        Climbing { plan, machine, generator, store, writer: &writer, committed: &committed, interrupt };
    let mut judged = JudgedRun::open(store, &run)?;
    if !outputs.plain && !outputs.take_stdout() {
        progress.view(plan, &head.subject, &run);
    }
    if let Some(old) = resumed {
        judged.read_on(store)?;
        subject.found_before(old.found_rate);
        let held = judged.rungs().iter().map(|rung| format!("{} {}", show_number(rung.load), rung.verdict));
        let held = held.collect::<Vec<_>>().join(", ");
        let held = if held.is_empty() { "no load of it is whole" } else { &held };
        progress.say(&format!("run {run} goes on behind run {}: {held}", old.run));
    }
    let mut outcome = climbing.all_trials(&mut judged, subject, progress);
    let mut end = run_end(&outcome, interrupt);
    if end.outcome == Outcome::Finished && !plan.profile.is_off() {
        // Ctrl-C ends the profile only: the climb is whole.
        let added = judged.read_rest(store);
        outcome = added.and_then(|()| profile::add(&climbing, &judged, subject, progress));
    }
    let ended_early = ended_early_by(&end);
    let climb = judged.read_rest(store).and_then(|()| judged.answers(ended_early.as_deref()));
    if let Ok(Some(climb)) = &climb {
        end.climb = Some(serde_json::to_string(climb)?);
    }
    writer.end_run(end)?;
    progress.clear();
    // The loads that were held before an error are reported too.
    let Some(climb) = climb? else {
        outcome?;
        say::err_line!(
            "stepladder: run {run} was interrupted before its first rung; there is nothing to judge"
        );
        return Ok((run, Exit::Interrupted));
    };
    outputs.results.write(&climb)?;
    outputs::append_step_summary(&climb);
    let columns =
        if outputs.take_stdout() { layout::columns_of(std::io::stderr()) } else { layout::columns() };
    let goes_on = ended_early.is_some().then(|| format!("go on with it: stepladder again {run} --resume"));
    let offer = goes_on.or_else(|| profile::offer(plan, &climb, subject.pid));
    // Above the summary, which is the last screen.
    let profile = page::profile(&climb, columns);
    let summary = page::summary(&climb, columns, offer.as_deref());
    if outputs.take_stdout() {
        say::err_own_text!("{profile}{summary}");
    } else {
        say::out_text!("{profile}{summary}");
    }
    outcome?;
    Ok((run, if interrupt.is_asked() { Exit::Interrupted } else { Exit::of(&climb) }))
}

/// A trial of the subject, as far as the plan does not say it.
pub struct SubjectTrial<'a> {
    /// in its cell of a sweep
    pub plan: &'a Plan,
    /// its place in the run, from 0
    pub seq: u32,
    /// what it is held for
    pub purpose: Purpose,
    /// in the plan's unit of load
    pub load: f64,
    /// under which names it is stored
    pub cell: BTreeMap<String, String>,
    /// of a sweep: the one request that is made
    pub request: Option<usize>,
    /// how long it holds
    pub hold: HoldLength,
    /// what the hold is judged by: one that cannot be judged yet goes on; `None`: it ends as asked
    pub terms: Option<Criteria>,
    /// goes on after the hold until the server has recovered
    pub recovery_load: Option<f64>,
}

/// What holding the trials of a plan takes.
pub struct Climbing<'a> {
    /// what is held
    pub plan: &'a Plan,
    /// what it is held with
    pub machine: &'a Machine,
    /// and what makes its load
    pub generator: &'a dyn Generator,
    /// where it is stored
    pub store: &'a Store,
    /// by this
    pub writer: &'a RunWriter,
    /// and what was stored already
    pub committed: &'a Receiver<Committed>,
    /// whether the user wants it to end
    pub interrupt: &'a Interrupt,
}

impl Climbing<'_> {
    fn all_trials(
        &self,
        judged: &mut JudgedRun,
        subject: &mut RunningSubject,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let schedule = schedule(self.plan);
        let mut null = None;
        let outcome = loop {
            let Next::Trial(order) = schedule.next(judged.done()) else { break Ok(()) };
            progress.next(self.plan, judged.done(), &order, self.interrupt);
            if self.interrupt.is_asked() {
                break Ok(());
            }
            let outcome = match order.purpose {
                Purpose::Rung | Purpose::WarmUp => {
                    stop(null.take());
                    self.rung(&order, judged, subject, progress)
                }
                Purpose::CalibrationLatency | Purpose::CalibrationCeiling => {
                    let outcome = self.calibration(&order, subject.target.scheme, &mut null, progress);
                    outcome.and_then(|()| judged.read_on(self.store))
                }
            };
            if outcome.is_err() {
                break outcome;
            }
        };
        stop(null);
        outcome
    }

    fn rung(
        &self,
        order: &NextTrial,
        judged: &mut JudgedRun,
        subject: &mut RunningSubject,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let cell = order.cell.and_then(|cell| self.plan.ladder.cells.get(cell)).cloned().unwrap_or_default();
        let mut plan = self.plan.in_cell(&cell.names);
        if plan.ladder.search.is_some() || plan.ladder.repeat != Repeats::default() {
            // The same arrivals again would add no information about the same load.
            plan.seed = plan.seed.wrapping_add(u64::from(order.seq));
        }
        let is_sought = plan.subject.finds_tick_rate();
        subject.found_rate.put_into(&mut plan);
        let plan = &plan;
        let is_first = judged.is_untouched();
        // The old server goes first: both may use the same port.
        if !subject.has_options(&cell.options) {
            subject.restart_with(plan, cell.options)?;
        } else if (plan.ladder.restart_per_rung && !is_first)
            || ((plan.ladder.stop.is_some() || plan.ladder.search.is_some()) && subject.has_ended())
        {
            subject.restart(plan)?;
        }
        let mut terms = judged.terms(order.load, &cell.names);
        let mut hold = plan.ladder.hold;
        if let Some(hold_ns) = order.hold_ns {
            (hold, terms.hold_ns) = (HoldLength::Time(hold_ns), hold_ns);
        }
        let trial = SubjectTrial {
            plan,
            seq: order.seq,
            purpose: order.purpose,
            load: order.load,
            cell: cell.names,
            request: cell.request,
            hold: progress.lengthened(hold),
            // A warm-up is not judged, and so never waits for undisturbed seconds.
            terms: (order.purpose == Purpose::Rung).then_some(terms),
            recovery_load: order.recovery_load,
        };
        self.load_subject(trial, subject, progress)?;
        judged.read_on(self.store)?;
        if is_sought {
            subject.keep_rate(plan).iter().for_each(|text| progress.say(text));
        }
        if order.purpose == Purpose::WarmUp {
            return Ok(());
        }
        let Some(rung) = judged.rungs().last() else { anyhow::bail!("the rung was not stored") };
        keep_verdict(self.writer, rung)?;
        progress.judged(rung, || judged.answers(None))
    }

    /// One load on the subject, held once.
    pub fn load_subject(
        &self,
        trial: SubjectTrial<'_>,
        subject: &mut RunningSubject,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let target = subject.target.clone();
        let spec = self.spec(trial, &target, subject)?;
        self.run_trial(&spec, subject, progress)
    }

    /// What such a trial is, for `trial::run`.
    pub fn spec<'t>(
        &self,
        trial: SubjectTrial<'_>,
        target: &'t Target,
        subject: &RunningSubject,
    ) -> anyhow::Result<TrialSpec<'t>> {
        let SubjectTrial { plan, seq, purpose, load, cell, request, hold, terms, recovery_load } = trial;
        let needs = plan::needs(plan, load);
        let head = TrialHead {
            seq,
            purpose,
            load,
            load_unit: plan.ladder.load_unit,
            bots: needs.bots,
            connections: needs.connections,
            tick_period_ns: plan.subject.tick_period_ns(),
            cell,
            metric_names: plan.networks.named(bots::catalog::metric_names(&plan.bots, target.scheme)?),
        };
        let mut workers = self.machine.split(plan, load, (target, subject.address))?;
        for worker in &mut workers {
            worker.request = request;
            worker.members.clone_from(&subject.members);
            worker.recovery_share = recovery_load.map(|lower| lower / load);
        }
        Ok(TrialSpec {
            head,
            plan: plan.clone(),
            load,
            workers,
            target,
            null: None,
            is_here: subject.is_here(),
            hold,
            settle_ns: plan.ladder.settle_ns,
            threads: ThreadOptions::of(plan, &self.machine.cores),
            terms,
            stop: plan.ladder.stop,
            recovery: recovery_load
                .zip(plan.ladder.recovery_ns)
                .map(|(load, within_ns)| Recovery { load, within_ns }),
        })
    }

    /// The same engine against the null server of the subject's protocol: own latency at a pace, own ceiling in a
    /// closed loop.
    pub fn calibration(
        &self,
        order: &NextTrial,
        scheme: Scheme,
        null: &mut Option<RunningSubject>,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let is_closed = order.purpose == Purpose::CalibrationCeiling;
        let plan = calibration::plan_of(self.plan, scheme, is_closed, order.load as u64);
        let server = match null {
            Some(server) => server,
            None => null.insert(RunningSubject::start_null(scheme)?),
        };
        let target = server.target.clone();
        let load = calibration::load(&plan.bots, order.load);
        let head = TrialHead {
            seq: order.seq,
            purpose: order.purpose,
            load: order.load,
            load_unit: if is_closed { LoadUnit::InFlight } else { LoadUnit::Clients },
            bots: order.load as u64,
            connections: order.load as u64,
            tick_period_ns: 0,
            // Not a cell of the sweep; it records which of our drivers was measured.
            cell: BTreeMap::from([(PROTOCOL.to_owned(), scheme.transport().null_protocol().to_owned())]),
            // The null server's protocol, which may be less than what the subject speaks.
            metric_names: bots::catalog::metric_names(&plan.bots, target.scheme)?,
        };
        let trial = TrialSpec {
            head,
            null: Some(scheme),
            plan: plan.clone(),
            load,
            workers: self.machine.split(&plan, load, (&target, server.address))?,
            target: &target,
            is_here: false,
            // 12,800 messages allow a p99, and both calibrations together stay below 5 s.
            hold: HoldLength::Time(SECOND_NS),
            settle_ns: plan.ladder.settle_ns,
            threads: ThreadOptions::of(&plan, &self.machine.cores),
            terms: None,
            stop: None,
            recovery: None,
        };
        self.run_trial(&trial, server, progress)
    }

    fn run_trial(
        &self,
        order: &TrialSpec<'_>,
        subject: &mut RunningSubject,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        give_memory_back();
        // A load that cannot be made is no trial.
        let load = self.generator.prepare(order)?;
        self.writer.begin_trial(&order.head, unix_ms())?;
        let mut context =
            TrialContext::new(self.plan, subject, self.writer, self.committed, self.interrupt, progress);
        let outcome = trial::run(order, load, &mut context);
        context.flush()?;
        outcome?;
        self.writer.end_trial(unix_ms())?;
        Ok(())
    }
}

/// What judging the last trial took is given back, so that this trial's memory is that of its bots.
fn give_memory_back() {
    /// Memory from this size on is mapped for itself and goes back to the system when it is freed: the C library's own default.
    #[cfg(target_env = "gnu")]
    const MAPPED_BYTES_LEAST: libc::c_int = 128 * 1024;
    // SAFETY: the call takes no pointer and only releases what is free already.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
    // Nor does memory of long messages stay with the allocator. Unless its threshold is set, the first long one that is freed
    // raises it to that length, and from then on all below it lie among short-lived ones: servers that stalled within bodies
    // took up to half as much again.
    // SAFETY: the call takes no pointer.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_LEAST);
    }
}

/// Stops the null server of the calibrations, where one runs.
pub fn stop(null: Option<RunningSubject>) {
    if let Some(null) = null {
        null.stop();
    }
}
