//! `stepladder duel 'bench …' 'bench …'`: whether one client library is faster or slower than another, or than itself
//! before a change, as a performance unit test.
//!
//! In each block each side's process executes its plan once, in random order (`ladder::duel`,
//! `inflight_analysis::duel`). The lines of all processes are stored like those of `bench --target`, and everything
//! shown is derived from them.

mod found;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use climb::outputs::{self};
use climb::viewing::Viewing;
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::say;
use console::scratch::ScratchFolder;
use console::signals::Interrupt;
use inflight_analysis::{Note, Run, duel as processes};
use ladder::Difference;
use ladder::duel::{BLOCKS_LEAST, Duel, DuelNext, Gate, HeldTrial, Side, libraries};
use store::Store;
use versus::Replay;
use versus::duel::{page, words_of_side, wrong_in_side};
use versus::libraries::Asked;

use self::found::{Found, LibraryDuel};
pub use self::found::{answer, is_duel, stored_answer};
use crate::lines::Record;
use crate::member::Member;
use crate::options::{Options, Task};
use crate::runner::{self, Client, How};
use crate::stored::{end, head};

/// Options of `bench --target` that are about a whole comparison.
const NOT_OF_SIDES: [&str; 11] = [
    "--runs",
    "--sweep",
    "--view",
    "--report",
    "--json",
    "--lines",
    "--timeline",
    "--profile",
    "--name",
    "--store",
    "--seed",
];
/// Operations of the process that shows how fast a side is before the first block.
const PILOT: u64 = 20_000;
/// Without `--total` a process measures for so long, s: shorter ones are mostly start-up.
const SECONDS_LEAST: f64 = 0.3;
const SECONDS_MOST: f64 = 2.0;
/// Blocks that a budget is divided by for that.
const BLOCKS_MEANT: f64 = 12.0;
/// More blocks are not planned: looks at many blocks are stricter from the first one on.
const BLOCKS_MOST: usize = 30;

/// A side, ready to be run.
struct SideTask {
    client: Client,
    task: Task,
    target: String,
    member: Member,
    /// `--total` was given
    has_total: bool,
}

#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct SideArgs {
    #[command(flatten)]
    options: Options,
}

impl SideTask {
    fn read(side: Side, text: &str) -> anyhow::Result<SideTask> {
        let name = side.name();
        let words = words_of_side(name, text)?;
        let is_said = |flag: &str| {
            words
                .iter()
                .any(|word| word == flag || word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')))
        };
        if let Some(flag) = NOT_OF_SIDES.into_iter().find(|flag| is_said(flag)) {
            bail!("{name}, `{text}`: {flag} is about a whole comparison, not about one side; leave it out");
        }
        let args = SideArgs::try_parse_from(&words[1..]);
        let options = args.map_err(|error| wrong_in_side(name, text, &error))?.options;
        let of_side = || format!("{name}, `{text}`");
        let target = options.target().with_context(of_side)?.to_owned();
        let mut tasks = options.tasks(&target).with_context(of_side)?;
        let mut clients = options.clients(&target).with_context(of_side)?;
        let (Some(task), Some(client), true) =
            (tasks.pop(), clients.pop(), tasks.is_empty() && clients.is_empty())
        else {
            bail!(
                "{name}, `{text}`: a side is one client that does one thing; name one of --client, --op, --value and --in-flight"
            );
        };
        let group = options.group().with_context(of_side)?;
        let member = Member::of(&target, options.pid, group);
        Ok(SideTask { client, task, target, member, has_total: is_said("--total") })
    }

    /// Carries out its plan once. `None`: interrupted.
    fn run(&self, record: &mut Record<'_>, interrupt: &Interrupt) -> anyhow::Result<Option<Run>> {
        let ran = self.client.run(&self.task.plan, &self.member, record, interrupt, How::Plain)?;
        Ok(ran.map(|ran| ran.run))
    }

    /// The same task with another number of operations.
    fn of_total(&self, total: u64) -> Task {
        let mut task = self.task.clone();
        task.key.total = total;
        task.plan["total"] = total.into();
        task
    }

    /// How fast it is and how long its process takes besides, from one that counts for nothing. `None`: interrupted.
    fn pilot(&mut self, interrupt: &Interrupt) -> anyhow::Result<Option<Pilot>> {
        let asked = self.task.clone();
        self.task = self.of_total(if self.has_total { asked.key.total.min(PILOT) } else { PILOT });
        let folder = ScratchFolder::new("pilot").context("no temporary folder; check TMPDIR")?;
        let store = Store::open_or_create(folder.path().join("pilot.db"))?;
        let writer = store.begin_run(&head(&self.target, 0, "{}".to_owned())?, None)?;
        let mut record = Record::new(&writer, None);
        record.begin(&self.note("pilot", 0, 0))?;
        let began = Instant::now();
        let ran = self.run(&mut record, interrupt);
        let took_s = began.elapsed().as_secs_f64();
        self.task = asked;
        Ok(ran?.map(|run| Pilot { ops_per_s: run.rate_per_s(), around_s: (took_s - run.elapsed_s).max(0.0) }))
    }

    fn note(&self, label: &str, cell: u64, block: u64) -> Note {
        Note::Process {
            cell,
            block,
            client: format!("{label} {}", self.client.name()),
            plan: self.task.plan.clone(),
            profile: None,
        }
    }
}

struct Pilot {
    ops_per_s: f64,
    around_s: f64,
}

impl Pilot {
    /// How long a process takes that carries out `total` operations, s.
    fn seconds(&self, total: u64) -> f64 {
        self.around_s + total as f64 / self.ops_per_s
    }
}

/// Runs it, prints what is known, and stores every line.
pub fn duel(asked: Asked<'_>, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let [a, b] = asked.texts;
    let sides = (SideTask::read(Side::A, a), SideTask::read(Side::B, b));
    let mut sides = [sides.0.map_err(wrong_usage)?, sides.1.map_err(wrong_usage)?];
    check_gates(&asked.gates).map_err(wrong_usage)?;
    if sides[0].has_total && sides[1].has_total && sides[0].task.key.total != sides[1].task.key.total {
        return Err(wrong_usage(anyhow::anyhow!(
            "A and B do different numbers of operations; give both the same --total"
        )));
    }
    asked.results.prepare().map_err(wrong_usage)?;
    let store = Store::open_or_create(asked.store).map_err(climb::stored::no_store)?;
    let beside = Viewing::begin(asked.store, asked.view, asked.report, Arc::new(Replay::default()))?;
    let began = Instant::now();
    let Some(pilots) = pilots(&mut sides, interrupt).map_err(not_measured)? else {
        say::err_line!("stepladder: interrupted before the first block; nothing can be compared");
        return Ok(Exit::Interrupted);
    };
    let plan = planned(&mut sides, &pilots, &asked, began.elapsed()).map_err(wrong_usage)?;
    say::err_line!(
        "duel: {} operations per process, {} blocks at most, in {} s at most",
        sides[0].task.key.total,
        plan.duel.blocks_most,
        plan.duel.budget_ns.div_ceil(1_000_000_000)
    );
    let stored_plan = serde_json::to_string(&plan).map_err(not_measured)?;
    let head = head(&sides[0].target, plan.duel.seed, stored_plan).map_err(not_measured)?;
    let writer = store.begin_run(&head, None).map_err(not_measured)?;
    let run = writer.id().clone();
    let mut record = Record::new(&writer, None);
    let fought = fight(&plan.duel, &sides, &mut record, interrupt);
    drop(record);
    end(writer, &fought, interrupt).map_err(not_measured)?;
    fought.map_err(not_measured)?;
    let record = store.run(&run).map_err(not_measured)?;
    let Some(found) = Found::of(&store, &record).map_err(not_measured)? else {
        say::err_line!(
            "stepladder: run {run} was interrupted before its first block; nothing can be compared"
        );
        return Ok(Exit::Interrupted);
    };
    let mut answer = found.answer(&record).map_err(not_measured)?;
    if interrupt.is_asked() {
        answer.exit = Exit::Interrupted;
    }
    asked.results.write(&answer).map_err(not_measured)?;
    outputs::append_step_summary(&answer);
    page::print(&answer, asked.results.take_stdout());
    beside.end(asked.store, &run, interrupt)?;
    Ok(answer.exit)
}

/// Errors: a gate on a figure of servers.
fn check_gates(gates: &[Gate]) -> anyhow::Result<()> {
    match gates.iter().find(|gate| libraries::named(gate.figure().name).is_none()) {
        None => Ok(()),
        Some(gate) => bail!(
            "--gate '{gate}': {} is a figure of servers; of client libraries there are {}",
            gate.figure().name,
            libraries::names()
        ),
    }
}

fn pilots(sides: &mut [SideTask; 2], interrupt: &Interrupt) -> anyhow::Result<Option<[Pilot; 2]>> {
    let mut pilot = |at: usize| sides[at].pilot(interrupt).with_context(|| Side::BOTH[at].name());
    let Some(a) = pilot(0)? else { return Ok(None) };
    Ok(pilot(1)?.map(|b| [a, b]))
}

/// How many operations each process does, and how many blocks there may be. Errors: too little time for any verdict.
fn planned(
    sides: &mut [SideTask; 2],
    pilots: &[Pilot; 2],
    asked: &Asked<'_>,
    spent: Duration,
) -> anyhow::Result<LibraryDuel> {
    let budget_s = asked.budget_ns as f64 / 1e9;
    let left_s = budget_s - spent.as_secs_f64();
    let around_s = pilots[0].around_s + pilots[1].around_s;
    let said = sides.iter().find(|side| side.has_total).map(|side| side.task.key.total);
    let total = said.unwrap_or_else(|| {
        let seconds = ((left_s / BLOCKS_MEANT - around_s) / 2.0).clamp(SECONDS_LEAST, SECONDS_MOST);
        let slower = pilots[0].ops_per_s.min(pilots[1].ops_per_s);
        ((slower * seconds) as u64).div_ceil(1_000).max(PILOT / 1_000) * 1_000
    });
    for side in sides.iter_mut() {
        side.task = side.of_total(total);
    }
    let block_s = pilots[0].seconds(total) + pilots[1].seconds(total);
    let blocks_most = ((left_s / block_s) as usize).min(BLOCKS_MOST);
    if blocks_most < BLOCKS_LEAST {
        bail!(
            "--budget {budget_s:.0}s: {total} operations at A and B take about {block_s:.1} s, and no verdict is possible before \
             {BLOCKS_LEAST} such blocks; give --budget {:.0}s or fewer operations (--total)",
            (block_s * BLOCKS_LEAST as f64 + spent.as_secs_f64()).ceil()
        );
    }
    let in_flight = sides[0].task.key.in_flight.parse().unwrap_or(0.0);
    let duel = Duel {
        seed: fastrand::u64(..),
        loads: vec![in_flight],
        calibrations: Vec::new(),
        figures: libraries::usual_figures(),
        gates: asked.gates.clone(),
        delta: asked.delta,
        blocks_most,
        disturbed_share_most: 1.0,
        budget_ns: asked.budget_ns.saturating_sub(spent.as_nanos() as u64),
    };
    let texts = asked.texts.map(str::to_owned);
    let keys = [&sides[0].task.key, &sides[1].task.key].map(ToString::to_string);
    let what = if keys[0] == keys[1] { keys[0].clone() } else { format!("A: {}; B: {}", keys[0], keys[1]) };
    Ok(LibraryDuel { duel, texts, differs: differences(sides), what })
}

/// Settings of the plans, and the clients, that are not the same.
fn differences([a, b]: &[SideTask; 2]) -> Vec<Difference> {
    let client = |side: &SideTask| serde_json::Value::from(side.client.name());
    let difference = |what: &str, old: serde_json::Value, new: serde_json::Value| {
        (old != new).then(|| Difference { what: what.to_owned(), old, new })
    };
    let settings = ["target", "op", "value_bytes", "in_flight", "keys", "cluster", "ca", "insecure"];
    let of_plan = |what: &&str| difference(what, a.task.plan[what].clone(), b.task.plan[what].clone());
    difference("client", client(a), client(b))
        .into_iter()
        .chain(settings.iter().filter_map(of_plan))
        .collect()
}

/// Runs both sides in turns until everything asked is known, an operation failed, or the time is up; also by an interruption.
fn fight(
    duel: &Duel,
    sides: &[SideTask; 2],
    record: &mut Record<'_>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let rules = duel.rules();
    let mut held: Vec<HeldTrial> = Vec::new();
    let mut failed = None;
    while let DuelNext::Trial(trial) = processes::next(duel, &held, &rules, failed) {
        if interrupt.is_asked() {
            return Ok(());
        }
        let at = usize::from(trial.side == Side::B);
        let side = &sides[at];
        runner::progress(held.len() + 1, 2 * duel.blocks_most, trial.side.name(), &side.task.key.to_string());
        record.begin(&side.note(trial.side.name(), at as u64, trial.block as u64))?;
        let began = Instant::now();
        let ran = side.run(record, interrupt);
        runner::clear_progress();
        let Some(run) = ran.with_context(|| trial.side.name())? else { return Ok(()) };
        if processes::failure(&side.task.key, &run).is_some() {
            failed = Some(trial.side);
        }
        held.push(processes::held(duel, trial.seq, trial.side, &run, began.elapsed().as_nanos() as u64));
    }
    Ok(())
}
