//! The climb: from a plan to the three answers.
//!
//! One loop: the schedule says which trial comes next from what is stored, the trial is run and stored, and at the end
//! the answers are a pure function of what is stored. Nothing is judged from memory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{SystemTime, UNIX_EPOCH};

use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::layout;
use console::masks::{mask, mask_own};
use console::say;
use console::signals::Interrupt;
use ladder::{Next, NextTrial, Repeats, Rung, Terms};
use measure::{LoadUnit, Purpose, TrialHead};
use plan::{HoldLength, Plan, Scheme};
use store::{Committed, Outcome, RunEnd, RunHead, RunId, RunKind, RunWriter, Store, StoreError};

use crate::around::Around;
use crate::consent::Consent;
use crate::judging::{JudgedRun, PROTOCOL, schedule};
use crate::outputs::{self, Followers, Outputs};
use crate::preflight::Machine;
use crate::progress::Progress;
use crate::trial::{self, Recovery, TrialSpec};
use crate::under_test::{self, UnderTest};
use crate::{calibration, preflight, show};

const SECOND_NS: u64 = 1_000_000_000;

/// A file that is no store of ours was named by mistake; one that fails or is damaged was not.
pub fn no_store(error: StoreError) -> Failure {
    let is_usage = matches!(
        error,
        StoreError::NoStore { .. }
            | StoreError::NotSqlite { .. }
            | StoreError::Foreign { .. }
            | StoreError::Newer { .. }
            | StoreError::Older { .. }
            | StoreError::OtherTables { .. }
            | StoreError::CannotOpen { .. }
    );
    (if is_usage { Exit::WrongUsage } else { Exit::NotMeasured }, error.into())
}

/// Climbs. Returns the run's id and the exit code.
pub fn climb(
    plan: &Plan,
    consent: &Consent,
    outputs: &Outputs,
    interrupt: &Interrupt,
) -> Result<(RunId, Exit), Failure> {
    under_test::check_options(plan).map_err(wrong_usage)?;
    let machine = Machine::prepare().map_err(not_measured)?;
    let plan = &machine.within_reach(plan);
    // Before anything is started or written: what the ladder asks for that this machine does not have.
    machine.check(plan, None).map_err(not_measured)?;
    outputs.results.prepare().map_err(wrong_usage)?;
    let mut followers = outputs.followed.prepare(&outputs.results.all()).map_err(wrong_usage)?;
    let store = Store::open_or_create(&outputs.store).map_err(no_store)?;
    let mut progress = Progress::new();
    let mut subject = UnderTest::start(plan, consent).map_err(|error| {
        // A name was looked up only now; what it may not mean is the author's mistake all the same.
        let is_usage = error.is::<plan::TargetRefused>();
        (if is_usage { Exit::WrongUsage } else { Exit::NotMeasured }, error)
    })?;
    let told = (&mut progress, &mut followers);
    let outcome = climb_subject(plan, outputs, interrupt, &machine, &store, told, &mut subject);
    progress.clear();
    subject.stop();
    followers.end();
    outcome.map_err(not_measured)
}

fn climb_subject(
    plan: &Plan,
    outputs: &Outputs,
    interrupt: &Interrupt,
    machine: &Machine,
    store: &Store,
    (progress, followers): (&mut Progress, &mut Followers),
    subject: &mut UnderTest,
) -> anyhow::Result<(RunId, Exit)> {
    machine.check(plan, Some(subject.address))?;
    preflight::warnings(plan, subject.address).iter().for_each(|text| progress.say(text));
    plan::ramp_sentence(plan).iter().for_each(|text| progress.say(text));
    plan::search_sentence(plan).iter().for_each(|text| progress.say(text));
    plan::decidable_sentence(plan).iter().for_each(|text| progress.say(text));
    let (tell, committed) = channel();
    let writer = store.begin_run(&run_head(plan, subject.address)?, Some(tell))?;
    let run = writer.id().clone();
    followers.begin(&outputs.store, &run)?;
    let climbing = Climbing { plan, machine, store, writer: &writer, committed: &committed, interrupt };
    let mut judged = JudgedRun::open(store, &run)?;
    let outcome = climbing.all_trials(&mut judged, subject, progress);
    let mut end = run_end(&outcome, interrupt);
    let ended_early = outputs::ended_early_by(&end);
    let climb = judged.read_rest(store).and_then(|()| judged.answers(ended_early.as_deref()));
    if let Ok(Some(climb)) = &climb {
        end.climb = Some(serde_json::to_string(climb)?);
    }
    writer.end_run(end)?;
    outcome?;
    progress.clear();
    let Some(climb) = climb? else {
        say::err_line!(
            "stepladder: run {run} was interrupted before its first rung; there is nothing to judge"
        );
        return Ok((run, Exit::Interrupted));
    };
    outputs.results.write(&climb)?;
    outputs::append_step_summary(&climb);
    if outputs.take_stdout() {
        say::err_own_text!("{}", show::closing(&climb, layout::columns_of(std::io::stderr())));
    } else {
        say::out_text!("{}", show::closing(&climb, layout::columns()));
    }
    Ok((run, if interrupt.is_asked() { Exit::Interrupted } else { Exit::of(&climb) }))
}

/// How a run of trials ended, at this moment; its answers are not in it yet.
pub(crate) fn run_end(outcome: &anyhow::Result<()>, interrupt: &Interrupt) -> RunEnd {
    RunEnd {
        outcome: match outcome {
            Err(_) => Outcome::Broken,
            Ok(()) if interrupt.is_asked() => Outcome::Interrupted,
            Ok(()) => Outcome::Finished,
        },
        reason: outcome.as_ref().err().map(|error| mask(&format!("{error:#}")).into_owned()),
        ended_unix_ms: unix_ms(),
        climb: None,
    }
}

/// A trial of the subject, as far as the plan does not say it.
pub(crate) struct SubjectTrial<'a> {
    /// in its cell of a sweep
    pub plan: &'a Plan,
    pub seq: u32,
    pub purpose: Purpose,
    pub load: f64,
    /// under which names it is stored
    pub cell: BTreeMap<String, String>,
    /// of a sweep: the one request that is made
    pub request: Option<usize>,
    pub hold: HoldLength,
    /// what the hold is judged by: one that cannot be judged yet goes on; `None`: it ends as asked
    pub terms: Option<Terms>,
    /// goes on after the hold until the server has recovered
    pub recovery_load: Option<f64>,
}

/// Stores what a rung was found to be worth.
pub(crate) fn keep_verdict(writer: &RunWriter, rung: &Rung) -> anyhow::Result<()> {
    let verdict = store::StoredVerdict {
        judge: "climb".to_owned(),
        verdict: rung.verdict.name().to_owned(),
        reason: rung.reason.as_ref().map(|reason| mask_own(reason).into_owned()),
        cut_s: rung.hold.map_or(0, |hold| hold.cut_s),
        evidence: serde_json::to_string(&rung.evidence)?,
    };
    Ok(writer.verdict(rung.seq, verdict)?)
}

/// What holding the trials of a plan takes.
pub(crate) struct Climbing<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) machine: &'a Machine,
    pub(crate) store: &'a Store,
    pub(crate) writer: &'a RunWriter,
    pub(crate) committed: &'a Receiver<Committed>,
    pub(crate) interrupt: &'a Interrupt,
}

impl Climbing<'_> {
    fn all_trials(
        &self,
        judged: &mut JudgedRun,
        subject: &mut UnderTest,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let schedule = schedule(self.plan);
        let mut null = None;
        let outcome = loop {
            let Next::Trial(order) = schedule.next(judged.done()) else { break Ok(()) };
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
        subject: &mut UnderTest,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let cell = order.cell.and_then(|cell| self.plan.ladder.cells.get(cell)).cloned().unwrap_or_default();
        let mut plan = self.plan.in_cell(&cell.names);
        if plan.ladder.search.is_some() || plan.ladder.repeat != Repeats::default() {
            // The same arrivals again would say nothing new of the same load.
            plan.seed = plan.seed.wrapping_add(u64::from(order.seq));
        }
        let plan = &plan;
        let is_first = judged.is_untouched();
        // The old one goes first: both may want the same port.
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
            hold,
            // A warm-up is not judged, and so never waits for undisturbed seconds.
            terms: (order.purpose == Purpose::Rung).then_some(terms),
            recovery_load: order.recovery_load,
        };
        self.load_subject(trial, subject, progress)?;
        judged.read_on(self.store)?;
        if order.purpose == Purpose::WarmUp {
            return Ok(());
        }
        let Some(rung) = judged.rungs().last() else { anyhow::bail!("the rung was not stored") };
        keep_verdict(self.writer, rung)?;
        progress.say(&show::rung(rung));
        Ok(())
    }

    /// One load on the subject, held once.
    pub(crate) fn load_subject(
        &self,
        trial: SubjectTrial<'_>,
        subject: &mut UnderTest,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let SubjectTrial { plan, seq, purpose, load, cell, request, hold, terms, recovery_load } = trial;
        let needs = plan::needs(plan, load);
        let target = subject.target.clone();
        let head = TrialHead {
            seq,
            purpose,
            load,
            load_unit: plan.ladder.load_unit,
            bots: needs.bots,
            connections: needs.connections,
            tick_period_ns: plan.subject.tick_period_ns(),
            cell,
            metric_names: bots::catalog::metric_names(&plan.bots, target.scheme)?,
        };
        let mut workers = self.machine.split(plan, load, (&target, subject.address))?;
        for worker in &mut workers {
            worker.request = request;
            worker.members.clone_from(&subject.members);
            worker.recovery_share = recovery_load.map(|lower| lower / load);
        }
        let spec = TrialSpec {
            head,
            workers,
            target: &target,
            hold,
            settle_ns: plan.ladder.settle_ns,
            realtime: plan.generator.realtime,
            spin_ns: plan.generator.spin_ns,
            cores: self.machine.cores.clone(),
            terms,
            stop: plan.ladder.stop,
            recovery: recovery_load
                .zip(plan.ladder.recovery_ns)
                .map(|(load, within_ns)| Recovery { load, within_ns }),
        };
        self.run_trial(&spec, subject, progress)
    }

    /// The same engine against the null server of the subject's protocol: own latency at a pace, own ceiling in a
    /// closed loop.
    pub(crate) fn calibration(
        &self,
        order: &NextTrial,
        scheme: Scheme,
        null: &mut Option<UnderTest>,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let is_closed = order.purpose == Purpose::CalibrationCeiling;
        let plan = calibration::plan_of(self.plan, scheme, is_closed, order.load as u64);
        let server = match null {
            Some(server) => server,
            None => null.insert(UnderTest::start_null(scheme)?),
        };
        let target = server.target.clone();
        let head = TrialHead {
            seq: order.seq,
            purpose: order.purpose,
            load: order.load,
            load_unit: if is_closed { LoadUnit::InFlight } else { LoadUnit::Clients },
            bots: order.load as u64,
            connections: order.load as u64,
            tick_period_ns: 0,
            // Not a cell of the sweep; it tells which of our drivers was weighed.
            cell: BTreeMap::from([(PROTOCOL.to_owned(), scheme.transport().null_protocol().to_owned())]),
            // What the null server speaks, which may be less than the subject does.
            metric_names: bots::catalog::metric_names(&plan.bots, target.scheme)?,
        };
        let trial = TrialSpec {
            head,
            workers: self.machine.split(
                &plan,
                calibration::load(&plan.bots, order.load),
                (&target, server.address),
            )?,
            target: &target,
            // 12,800 messages carry a p99, and both calibrations together stay below 5 s.
            hold: HoldLength::Time(SECOND_NS),
            settle_ns: plan.ladder.settle_ns,
            realtime: plan.generator.realtime,
            spin_ns: plan.generator.spin_ns,
            cores: self.machine.cores.clone(),
            terms: None,
            stop: None,
            recovery: None,
        };
        self.run_trial(&trial, server, progress)
    }

    fn run_trial(
        &self,
        order: &TrialSpec<'_>,
        subject: &mut UnderTest,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        self.writer.begin_trial(&order.head, unix_ms())?;
        // What judging the last trial took is given back, so that this trial's memory is that of its bots.
        // SAFETY: the call takes no pointer and only releases what is free already.
        unsafe { libc::malloc_trim(0) };
        // Nor does memory of long messages stay with the allocator. Unless its threshold is set, the first long one that is freed
        // raises it to that length, and from then on all below it lie among short-lived ones: servers that stalled within bodies
        // took up to half as much again.
        // SAFETY: the call takes no pointer.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_LEAST) };
        let mut around =
            Around::new(self.plan, subject, self.writer, self.committed, self.interrupt, progress);
        let outcome = trial::run(order, &mut around);
        around.flush()?;
        outcome?;
        self.writer.end_trial(unix_ms())?;
        Ok(())
    }
}

/// Memory from this size on is mapped for itself and goes back to the system when it is freed: the C library's own default.
const MAPPED_BYTES_LEAST: libc::c_int = 128 * 1024;

pub(crate) fn stop(null: Option<UnderTest>) {
    if let Some(null) = null {
        null.stop();
    }
}

/// What a run's head says of this moment and this process.
pub(crate) fn head_of_now() -> RunHead {
    RunHead {
        command: mask_own(&command_line(std::env::args_os())).into_owned(),
        git: git_commit(),
        stepladder: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ms: unix_ms(),
        ..RunHead::default()
    }
}

/// The words as a shell takes them. What is not UTF-8 in them is shown by the character that stands for such.
fn command_line(words: impl Iterator<Item = OsString>) -> String {
    words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// The machine.
pub(crate) fn environment() -> serde_json::Map<String, serde_json::Value> {
    let mut environment = watch::environment();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    environment.insert("cores".to_owned(), cores.into());
    environment
}

pub(crate) fn run_head(plan: &Plan, address: SocketAddr) -> anyhow::Result<RunHead> {
    let mut environment = environment();
    if let Ok(link) = watch::NetworkLink::to(address) {
        let described = serde_json::json!({
            "interface": link.interface, "kind": link.kind.name(), "bits_per_s": link.bits_per_s,
        });
        environment.insert("link".to_owned(), described);
    }
    if plan.subject.target().is_some_and(|target| target.insecure) {
        environment.insert("certificates".to_owned(), "any".into());
    }
    Ok(RunHead {
        kind: RunKind::Climb,
        name: plan.name.clone(),
        subject: plan.subject.name.clone(),
        scenario: plan.scenario.clone(),
        seed: plan.seed,
        arrivals: plan.arrivals.to_string(),
        // On loopback both are on this machine; only an affinity of the subject's own could part them.
        shared_cores: address.ip().is_loopback(),
        plan: serde_json::to_string(plan)?,
        environment: serde_json::to_string(&environment)?,
        ..head_of_now()
    })
}

fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty()
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./:,=%@+".contains(letter));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The commit of the folder we stand in, with `+` when files differ from it; `None` outside a repository.
fn git_commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    Some(if is_changed { format!("{commit}+") } else { commit })
}

pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn a_command_line_is_kept_as_a_shell_takes_it_whatever_its_bytes_are() {
        let words = [&b"stepladder"[..], b"climb", b"a b", b"--store", b"\xff.db"];
        let words = words.map(|word| OsString::from_vec(word.to_vec()));
        assert_eq!(command_line(words.into_iter()), "stepladder climb 'a b' --store '\u{fffd}.db'");
    }
}
