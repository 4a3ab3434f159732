//! The profile behind a climb: the last load that held and the first that failed, held once more under `perf` or the profilers
//! of runtimes.
//!
//! These holds are not judged and are no trials of the store; what is kept of them are artifacts of the run: both folded
//! stacks, from which the page draws a flame graph, and the conclusion (`ladder::growth`), which every reader of the run shows.
//! Whatever goes wrong here is that conclusion, and the climb's answers stay.

mod held;
mod hold;
mod table;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail};
use console::masks::mask;
use ladder::growth::{self, KeptStacks};
use ladder::wording::show_number;
use ladder::{Climb, Conclusion, Rung, Verdict};
use plan::{HoldLength, Plan, SubjectSource};
use watch::profile::runtime::{Allocations, Asked};
use watch::profile::{PerfMaps, Recording, Waits};

pub use table::table;

use self::held::Profiled;
use self::hold::How;
use crate::climb::Climbing;
use crate::judging::JudgedRun;
use crate::progress::Progress;
use crate::subject::RunningSubject;

/// The artifact with the conclusion, as JSON.
pub const ARTIFACT: &str = "profile.json";
/// No load is held longer for its profile.
const HOLD_NS_MAX: u64 = 10 * SECOND_NS;
const SECOND_NS: u64 = 1_000_000_000;
/// What makes runtimes write the names of what they compile, before the user's own command line. V8's interpreted functions
/// have names too.
const NAMES_FOR_PERF: &str = "export NODE_OPTIONS=\"${NODE_OPTIONS:+$NODE_OPTIONS }--perf-basic-prof --interpreted-frames-native-stack\"\n\
    export JAVA_TOOL_OPTIONS=\"${JAVA_TOOL_OPTIONS:+$JAVA_TOOL_OPTIONS }-XX:+PreserveFramePointer\"\n\
    export PYTHONPERFSUPPORT=1\n";
/// What opens the inspector of each process of Node.js, on a port of its own.
const INSPECTED: &str = "export NODE_OPTIONS=\"${NODE_OPTIONS:+$NODE_OPTIONS }--inspect=127.0.0.1:0\"\n";

/// Two loads of one cell, by whose difference a server is explained.
struct Pair<'a> {
    cell: BTreeMap<String, String>,
    good: &'a Rung,
    bad: &'a Rung,
    /// what gave first, named or suspected
    cause: Option<&'a str>,
}

impl<'a> Pair<'a> {
    /// `None`: nothing held, or nothing failed.
    fn of(climb: &'a Climb) -> Option<Pair<'a>> {
        let whole = std::iter::once((BTreeMap::new(), &climb.capacity));
        let cells = climb.capacity.cells.iter().map(|cell| (cell.cell.clone(), &cell.capacity));
        whole.filter(|_| climb.capacity.cells.is_empty()).chain(cells).find_map(|(cell, capacity)| {
            let held = |load: f64, verdict| {
                let is_it = |rung: &&Rung| {
                    rung.load == load
                        && rung.verdict == verdict
                        && rung.cell.clone().unwrap_or_default() == cell
                };
                climb.rungs.iter().rev().find(is_it)
            };
            let good = held(capacity.lower_bound?, Verdict::Pass)?;
            let bad = held(capacity.upper_bound?, Verdict::Fail)?;
            Some(Pair { cell, good, bad, cause: cause(climb) })
        })
    }
}

fn cause(climb: &Climb) -> Option<&str> {
    let answer = climb.conclusions.iter().find(|part| part.id == "why_not_more")?;
    answer.evidence.get("cause")?.get("name")?.as_str()
}

/// What a run could still be asked, where no profile was: the words for it.
pub fn offer(plan: &Plan, climb: &Climb, pid: Option<u32>) -> Option<String> {
    let is_fit = plan.profile.is_off() && pid.is_some() && Pair::of(climb).is_some();
    // A stored run starts no command without it.
    let start =
        if matches!(plan.subject.source, SubjectSource::Started { .. }) { " --allow-start" } else { "" };
    is_fit.then(|| {
        format!("`stepladder again {} --profile{start}` shows where the server's time went.", climb.run.id)
    })
}

/// Profiles and keeps what is found.
///
/// Errors: the store cannot be written.
pub fn add(
    climbing: &Climbing<'_>,
    judged: &JudgedRun,
    subject: &mut RunningSubject,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let Some(climb) = judged.answers(None)? else { return Ok(()) };
    let mut conclusion = match profiled(climbing, &climb, subject, progress) {
        Ok((conclusion, stacks)) => {
            for (at, one) in stacks.iter().enumerate() {
                let keep = |kept: KeptStacks, folded: Option<String>| match folded {
                    Some(folded) => climbing.writer.artifact(kept.artifacts()[at], folded.as_bytes()),
                    None => Ok(()),
                };
                keep(KeptStacks::Cpu, one.folded.as_ref().map(|folded| folded.text.clone()))?;
                keep(KeptStacks::Waits, one.waits.as_ref().map(Waits::folded))?;
                keep(KeptStacks::Alloc, one.allocations.as_ref().map(Allocations::folded))?;
            }
            conclusion
        }
        Err(error) => growth::none(&mask(&format!("{error:#}"))),
    };
    conclusion.text = mask(&conclusion.text).into_owned();
    Ok(climbing.writer.artifact(ARTIFACT, serde_json::to_string(&conclusion)?.as_bytes())?)
}

/// Errors: why there is no profile, for the user.
fn profiled(
    climbing: &Climbing<'_>,
    climb: &Climb,
    subject: &mut RunningSubject,
    progress: &mut Progress,
) -> anyhow::Result<(Conclusion, [Profiled; 2])> {
    if subject.pid.is_none() && subject.elsewhere.is_none() {
        bail!("the server's process is not known; name it with --pid, or let --start start it")
    }
    let Some(pair) = Pair::of(climb) else { bail!("it needs a load that held and a larger one that failed") };
    let folder = tempfile::tempdir().context("no temporary folder; check TMPDIR")?;
    let profile = climbing.plan.profile;
    // Whether perf may be used at all is asked of a process that lives, and here only of one of this machine.
    let no_perf = match subject.pid.filter(|_| profile.has_cpu() && subject.elsewhere.is_none()) {
        Some(pid) => {
            let of = if subject.has_ended() { std::process::id() } else { pid };
            Recording::check(of, folder.path()).err()
        }
        None => None,
    };
    let asked = Asked {
        cpu: profile.has_cpu(),
        has_perf: no_perf.is_none(),
        waits: profile.has_cpu() && growth::is_asked(pair.cause),
        allocations: profile.has_allocations(),
    };
    let plan = &plan_of(climbing.plan, &pair, asked);
    let options = climbing.plan.ladder.cells.iter().find(|cell| cell.names == pair.cell);
    let cell = options.cloned().unwrap_or_default();
    let unit = pair.good.load_unit;
    progress.say(&format!(
        "profiling at {} and {} {unit} (not judged)",
        show_number(pair.good.load),
        show_number(pair.bad.load)
    ));
    // What runtimes wrote for us goes with them, whatever happens in between.
    let mut maps = PerfMaps::default();
    let how = How { plan, asked, no_perf: no_perf.as_ref() };
    let outcome = (|| {
        subject.restart_with(plan, cell.options.clone())?;
        let good =
            hold::profiled(climbing, how, (pair.good, &cell), folder.path(), (subject, &mut maps), progress)?;
        if plan.ladder.restart_per_rung {
            subject.restart(plan)?;
        }
        let bad =
            hold::profiled(climbing, how, (pair.bad, &cell), folder.path(), (subject, &mut maps), progress)?;
        anyhow::Ok([good, bad])
    })();
    if subject.end_if_started() {
        drop(maps);
    } else {
        maps.forget();
    }
    let [good, bad] = outcome?;
    let stacks = Profiled::both(good, bad)?;
    let mut conclusion = growth::conclusion(&stacks[0].hold, &stacks[1].hold, pair.cause);
    let notes: BTreeSet<&String> = stacks.iter().flat_map(|one| &one.notes).collect();
    notes.into_iter().for_each(|note| conclusion.text += &format!(" Note: {note}."));
    Ok((conclusion, stacks))
}

/// The plan of the profiled holds: nothing is searched, ended or recovered, and a command of the user's starts with what makes
/// names for perf, and opens inspectors.
fn plan_of(plan: &Plan, pair: &Pair<'_>, asked: Asked) -> Plan {
    let mut plan = plan.in_cell(&pair.cell);
    if let SubjectSource::Started { command, .. } = &mut plan.subject.source {
        if asked.cpu {
            command.insert_str(0, NAMES_FOR_PERF);
        }
        command.insert_str(0, INSPECTED);
    }
    plan.ladder.stop = None;
    plan.ladder.recovery_ns = None;
    plan.ladder.hold = match plan.ladder.hold {
        HoldLength::Time(ns) => HoldLength::Time(ns.min(HOLD_NS_MAX)),
        HoldLength::Ticks(_) | HoldLength::Games(_) => HoldLength::Time(HOLD_NS_MAX),
    };
    plan
}
