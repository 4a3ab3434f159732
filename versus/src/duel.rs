//! `stepladder duel A B`: whether one server is faster or slower than another, and how certain that is.
//!
//! Both servers run side by side, but only one is loaded at a time, in blocks of random order (`ladder::duel`). Trials
//! are stored like those of a climb, in cells named by their side; verdicts, page and JSON are derived from the store.

mod options;
pub mod page;
pub(crate) mod record;
mod sides;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use climb::outputs::{self, DuelAnswer, Followers, ResultFiles};
use climb::preflight::{self, Machine};
use climb::progress::Progress;
use climb::stored::ended_early_by;
use climb::stored::no_store;
use climb::subject::{self, RunningSubject};
use climb::trial::{Generator as _, ThisProcess};
use climb::viewing::Viewing;
use climb::{Climbing, SubjectTrial};
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::masks::mask_own;
use console::say;
use console::signals::Interrupt;
use ladder::NextTrial;
use ladder::duel::{DuelNext, DuelTrial, Side};
use measure::Purpose;
use plan::{HoldLength, Plan};
use store::{Committed, RunHead, RunId, RunKind, RunRecord, RunWriter, Store};

pub use self::options::DuelArgs;
pub use self::options::{Asked, Decided, budget_ns};
pub use self::page::contract;
use self::record::DuelPlan;
pub use self::record::DuelRun;
pub use self::sides::{SidePlan, words_of_side, wrong_in_side};
use crate::replay::Replay;

/// `stepladder duel` of two servers.
pub fn duel(args: &DuelArgs, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let decided = args.decide().map_err(wrong_usage)?;
    let machine = Machine::prepare().map_err(not_measured)?;
    check(&decided, &machine)?;
    args.wait.enter(|| interrupt.is_asked())?;
    args.results.prepare().map_err(wrong_usage)?;
    let mut followers = args.followed.prepare(&args.results.all()).map_err(wrong_usage)?;
    let store = Store::open_or_create(&args.store).map_err(no_store)?;
    let beside = Viewing::begin(&args.store, args.view, args.report.as_deref(), Arc::new(Replay::default()))?;
    let mut progress = Progress::new();
    let run = fight(&decided, &machine, &store, (&mut progress, &mut followers), interrupt)?;
    followers.end();
    let Some(mut answer) = page::answer(&run).map_err(not_measured)? else {
        say::err_line!(
            "stepladder: run {} was interrupted before its first block; nothing can be compared",
            run.id()
        );
        return Ok(Exit::Interrupted);
    };
    if interrupt.is_asked() {
        answer.exit = Exit::Interrupted;
    }
    args.results.write(&answer).map_err(not_measured)?;
    outputs::append_step_summary(&answer);
    page::print(&answer, args.results.take_stdout() || args.followed.takes_stdout());
    beside.end(&args.store, run.id(), interrupt)?;
    Ok(answer.exit)
}

/// Errors: a side has options that its server does not, or this machine cannot hold it.
pub fn check(decided: &Decided, machine: &Machine) -> Result<(), Failure> {
    for side in [&decided.a, &decided.b] {
        subject::check_options(&side.plan).map_err(wrong_usage)?;
        machine.check(&side.plan, None).map_err(not_measured)?;
    }
    Ok(())
}

/// Starts both sides and holds them in turns until everything asked is known, or the time is up; also by an interruption.
pub fn fight(
    decided: &Decided,
    machine: &Machine,
    store: &Store,
    (progress, followers): (&mut Progress, &mut Followers),
    interrupt: &Interrupt,
) -> Result<DuelRun, Failure> {
    let mut subjects = Subjects::start(decided)?;
    let outcome = hold_all(decided, machine, store, &mut subjects, (progress, followers), interrupt);
    progress.clear();
    subjects.a.stop();
    subjects.b.stop();
    DuelRun::whole(store, &outcome.map_err(not_measured)?).map_err(not_measured)
}

/// What a stored duel of two servers says. `None`: it holds no block yet.
pub fn stored_answer(store: &Store, record: &RunRecord) -> anyhow::Result<Option<DuelAnswer>> {
    DuelRun::whole(store, &record.id).and_then(|duel| page::answer(&duel))
}

/// `stepladder show` of a duel, of servers or of client libraries. `answer`: what it says.
pub fn show(
    answer: anyhow::Result<Option<DuelAnswer>>,
    record: &RunRecord,
    results: &ResultFiles,
) -> Result<Exit, Failure> {
    let Some(answer) = answer.map_err(not_measured)? else {
        say::err_line!("stepladder: run {} holds no block yet", record.id);
        return Ok(Exit::NotMeasured);
    };
    // Only one of the two goes to standard output, as with a climb.
    results.prepare().map_err(wrong_usage)?;
    results.write(&answer).map_err(not_measured)?;
    if !results.take_stdout() {
        say::out_text!("{}", answer.text);
    }
    Ok(Exit::Met)
}

/// The server of a side, by its name, did not come up.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotStarted(&'static str);

/// Both servers, started.
struct Subjects {
    a: RunningSubject,
    b: RunningSubject,
}

impl Subjects {
    fn start(decided: &Decided) -> Result<Subjects, Failure> {
        let start = |side: &SidePlan, name: &'static str| {
            RunningSubject::start(&side.plan, &side.consent).map_err(|error| {
                // The name was resolved only now, but an address that must not be loaded is still a usage error.
                let is_usage = error.is::<plan::TargetRefused>();
                (if is_usage { Exit::WrongUsage } else { Exit::NotMeasured }, error.context(NotStarted(name)))
            })
        };
        let a = start(&decided.a, "A")?;
        match start(&decided.b, "B") {
            Ok(b) => Ok(Subjects { a, b }),
            Err(failure) => {
                a.stop();
                Err(failure)
            }
        }
    }

    fn of(&mut self, side: Side) -> &mut RunningSubject {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }
}

fn hold_all(
    decided: &Decided,
    machine: &Machine,
    store: &Store,
    subjects: &mut Subjects,
    (progress, followers): (&mut Progress, &mut Followers),
    interrupt: &Interrupt,
) -> anyhow::Result<RunId> {
    for (side, plan) in [(Side::A, &decided.a.plan), (Side::B, &decided.b.plan)] {
        let address = subjects.of(side).address;
        machine.check(plan, Some(address))?;
        preflight::warnings(plan, address).iter().for_each(|text| progress.say(text));
    }
    plan::ramp_sentence(&decided.a.plan).iter().for_each(|text| progress.say(text));
    decided.remarks.iter().for_each(|text| progress.say(text));
    let (tell, committed) = channel();
    let writer = store.begin_run(&run_head(decided, subjects)?, Some(tell))?;
    let id = writer.id().clone();
    followers.begin(store.path(), &id)?;
    let mut run = DuelRun::open(store, &id)?;
    let holding = Holding { machine, store, writer: &writer, committed: &committed, interrupt };
    let outcome = holding.all_trials(&mut run, subjects, progress);
    let mut end = climb::stored::run_end(&outcome, interrupt);
    run.ended_early = ended_early_by(&end);
    let answer = run.read_on(store).and_then(|()| page::answer(&run));
    if let Ok(Some(answer)) = &answer {
        end.climb = Some(answer.json.to_string());
    }
    writer.end_run(end)?;
    outcome?;
    answer?;
    Ok(id)
}

fn run_head(decided: &Decided, subjects: &Subjects) -> anyhow::Result<RunHead> {
    let (a, b) = (&decided.a, &decided.b);
    let plan = DuelPlan {
        duel: decided.duel.clone(),
        texts: [mask_own(&a.text).into_owned(), mask_own(&b.text).into_owned()],
        b: b.plan.clone(),
    };
    let shared_cores = ThisProcess.shares_cores(subjects.a.address, subjects.a.is_here());
    Ok(RunHead {
        kind: RunKind::Duel,
        subject: format!("{} against {}", b.plan.subject.name, a.plan.subject.name),
        name: a.plan.name.clone().or_else(|| Some(format!("duel-{}", a.plan.subject.name))),
        plan: plan.with(&a.plan)?,
        ..climb::stored::run_head(&a.plan, None, subjects.a.address, shared_cores)?
    })
}

/// What holding the trials of both sides takes.
struct Holding<'a> {
    machine: &'a Machine,
    store: &'a Store,
    writer: &'a RunWriter,
    committed: &'a Receiver<Committed>,
    interrupt: &'a Interrupt,
}

impl Holding<'_> {
    fn climbing<'a>(&'a self, plan: &'a Plan) -> Climbing<'a> {
        let Holding { machine, store, writer, committed, interrupt } = *self;
        Climbing { plan, machine, generator: &ThisProcess, store, writer, committed, interrupt }
    }

    fn all_trials(
        &self,
        run: &mut DuelRun,
        subjects: &mut Subjects,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let mut null = None;
        let outcome = loop {
            if self.interrupt.is_asked() {
                break Ok(());
            }
            let held = match run.next() {
                DuelNext::Done(_) => break Ok(()),
                DuelNext::Calibration(order) => self.calibration(&order, run, subjects, &mut null, progress),
                DuelNext::Trial(order) => {
                    climb::stop(null.take());
                    self.trial(&order, run, subjects, progress)
                }
            };
            if let Err(error) = held.and_then(|()| run.read_on(self.store)) {
                break Err(error);
            }
            if let Err(error) = self.say(run, progress) {
                break Err(error);
            }
        };
        climb::stop(null);
        outcome
    }

    fn calibration(
        &self,
        order: &NextTrial,
        run: &DuelRun,
        subjects: &Subjects,
        null: &mut Option<RunningSubject>,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let scheme = subjects.a.target.scheme;
        self.climbing(run.plan_of(Side::A)).calibration(order, scheme, null, progress)
    }

    fn trial(
        &self,
        order: &DuelTrial,
        run: &DuelRun,
        subjects: &mut Subjects,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        let plan = run.plan_of(order.side);
        // A sweep has at most one cell here, and its server was started with that cell's options.
        let cell = plan.ladder.cells.first().cloned().unwrap_or_default();
        let mut in_cell = plan.in_cell(&cell.names);
        // Both sides of a block get the same arrivals, and each block different ones: their randomness is in the
        // interval too.
        in_cell.seed = in_cell.seed.wrapping_add(order.block as u64);
        let is_first =
            run.rungs().iter().all(|rung| rung.cell.as_ref().and_then(Side::of) != Some(order.side));
        let subject = subjects.of(order.side);
        if plan.ladder.restart_per_rung && !is_first {
            subject.restart(plan)?;
        }
        let trial = SubjectTrial {
            plan: &in_cell,
            seq: order.seq,
            purpose: Purpose::Rung,
            load: order.load,
            cell: order.side.cell(),
            request: cell.request,
            hold: plan.ladder.hold,
            // Both sides are held equally long: a hold extended until it can be judged would depend on what it
            // measures.
            terms: None,
            recovery_load: None,
        };
        debug_assert!(matches!(trial.hold, HoldLength::Time(_)));
        debug_assert!(plan.ladder.stop.is_none(), "such a plan is refused");
        self.climbing(plan).load_subject(trial, subject, progress)
    }

    /// Stores and says what the last trial was, and what is known after a whole block.
    fn say(&self, run: &DuelRun, progress: &mut Progress) -> anyhow::Result<()> {
        let Some(last) = run.last_held() else { return Ok(()) };
        let Some(side) = Side::of(&last.judged.cell) else { return Ok(()) };
        let Some(rung) = run.rungs().last() else { return Ok(()) };
        climb::stored::keep_verdict(self.writer, rung)?;
        if let Some(why) = &last.unfair {
            progress.say(&page::dropped(side, why));
            return Ok(());
        }
        let is_whole = !matches!(run.next(), DuelNext::Trial(DuelTrial { begins_block: false, .. }));
        let standing = run.standing();
        if let Some(load) =
            standing.loads.iter().find(|load| load.load == last.judged.load).filter(|_| is_whole)
        {
            progress.say(&page::after_block(load, rung.load_unit, run.plan.duel.blocks_most));
        }
        Ok(())
    }
}
