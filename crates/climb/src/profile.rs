//! The profile behind a climb: the last load that held and the first that failed, held once more under `perf`.
//!
//! These holds are not judged and are no trials of the store; what is kept of them are artifacts of the run: both folded
//! stacks, from which the page draws a flame graph, and the conclusion (`ladder::growth`), which every reader of the run shows.
//! Whatever goes wrong here is that conclusion, and the climb's answers stay.

mod hold;
mod waiting;

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use console::layout::wrapped;
use console::masks::mask;
use inflight_analysis::{Kind, Stacks};
use ladder::growth::{self, Growth, KeptStacks, ProfiledHold};
use ladder::wording::{show_ns, show_number, show_share};
use ladder::{Climb, Conclusion, Rung, Verdict};
use measure::trial::Hold;
use measure::{ErrorKind, Flow, Measure, Trial};
use plan::{HoldLength, Plan, SubjectSource};
use watch::profile::{NoProfile, PerfMaps, Recording, SAMPLES_PER_S, Waits};

use crate::climb::Climbing;
use crate::judging::JudgedRun;
use crate::progress::Progress;
use crate::subject::RunningSubject;

/// The artifact with the conclusion, as JSON.
pub const ARTIFACT: &str = "profile.json";
/// No load is held longer for its profile.
const HOLD_NS_MAX: u64 = 10 * SECOND_NS;
const SECOND_NS: u64 = 1_000_000_000;
/// A name in the table is no longer.
const NAME_WIDTH: usize = 90;
/// What its figures take.
const FIGURES_WIDTH: usize = 45;
/// Of two holds' shares together.
const UNWOUND_MORE: f64 = 0.1;
/// The table leaves out functions with less than this share of the server's CPU.
const SHARE_SHOWN: f64 = 0.002;
/// What makes runtimes write the names of what they compile, before the user's own command line. V8's interpreted functions
/// have names too.
const NAMES_FOR_PERF: &str = "export NODE_OPTIONS=\"${NODE_OPTIONS:+$NODE_OPTIONS }--perf-basic-prof --interpreted-frames-native-stack\"\n\
    export JAVA_TOOL_OPTIONS=\"${JAVA_TOOL_OPTIONS:+$JAVA_TOOL_OPTIONS }-XX:+PreserveFramePointer\"\n\
    export PYTHONPERFSUPPORT=1\n";

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
                let keep = |kept: KeptStacks, text: &str| {
                    climbing.writer.artifact(kept.artifacts()[at], text.as_bytes())
                };
                keep(KeptStacks::Cpu, &one.folded.text)?;
                one.waits.as_ref().map_or(Ok(()), |waits| keep(KeptStacks::Waits, &waits.folded()))?;
            }
            conclusion
        }
        Err(error) => growth::none(&mask(&format!("{error:#}"))),
    };
    conclusion.text = mask(&conclusion.text).into_owned();
    Ok(climbing.writer.artifact(ARTIFACT, serde_json::to_string(&conclusion)?.as_bytes())?)
}

/// Folded stacks, as text and read.
struct Folded {
    text: String,
    stacks: Stacks,
}

impl Folded {
    /// Errors: the stacks are none.
    fn of(text: String) -> anyhow::Result<Folded> {
        let stacks = Stacks::read(&text)?;
        Ok(Folded { text, stacks })
    }

    /// The share of samples that reach the server's own code.
    fn own_share(&self) -> f64 {
        let is_own = |frames: &[inflight_analysis::Frame]| frames.iter().any(|(kind, _)| *kind == Kind::User);
        let own: u64 = self.stacks.each().filter(|(frames, _)| is_own(frames)).map(|(_, count)| count).sum();
        own as f64 / self.stacks.sum().max(1) as f64
    }

    fn functions(&self) -> BTreeMap<String, u64> {
        let mut functions: BTreeMap<String, u64> = BTreeMap::new();
        for one in self.stacks.top(usize::MAX) {
            let name =
                if one.kind == Kind::Kernel { format!("{} (kernel)", one.function) } else { one.function };
            *functions.entry(name).or_default() += one.own;
        }
        functions
    }
}

/// Operations that the server was done with, per second of the hold: those that ended in it. Of an overloaded server many that
/// were planned in the hold end long after it, and one that was given up is not done.
fn done_per_s(trial: &Trial, hold: &Hold) -> f64 {
    let whole = hold.from_ns.div_ceil(SECOND_NS)..hold.to_ns / SECOND_NS;
    let seconds = trial.seconds.iter().filter(|second| whole.contains(&u64::from(second.index)));
    let done = |flow: &Flow| flow.answered + flow.told + flow.failed;
    let (count, sum) = seconds.fold((0, 0), |(count, sum), second| (count + 1, sum + done(&second.flow)));
    let given_up: u64 = trial.errors_of(ErrorKind::Timeout).map(|(_, count)| count).sum();
    sum.saturating_sub(given_up) as f64 / f64::from(count.max(1))
}

/// One hold, its stacks in each way of finding them, and its waits where they were recorded.
struct Held {
    hold: ProfiledHold,
    by: [Folded; 2],
    waits: Option<Waits>,
}

impl Held {
    /// Errors: the load was never held, or the stacks are none.
    fn of(
        trial: &Trial,
        judged: &Rung,
        [framed, unwound]: [String; 2],
        waits: Option<Result<Waits, NoProfile>>,
    ) -> anyhow::Result<Held> {
        let Some(hold) = &trial.hold else {
            bail!("{} {} could not be held again", judged.load, judged.load_unit)
        };
        let rate_per_s = done_per_s(trial, hold);
        let operations = (rate_per_s * hold.seconds()).round() as u64;
        let per_operation = |cores: f64, rate: f64| (rate > 0.0).then_some(cores * 1e9 / rate);
        let times = trial.distribution(Measure::Response).summary();
        let waiting = waits.as_ref().map(|waits| match waits {
            Ok(waits) => Ok(waiting::of(waits, trial)),
            Err(why) => Err(mask(&why.to_string()).into_owned()),
        });
        let waits = waits.and_then(Result::ok);
        let hold = ProfiledHold {
            load: judged.load,
            load_unit: judged.load_unit,
            hold_s: hold.seconds(),
            operations,
            samples: 0,
            samples_per_s: f64::from(SAMPLES_PER_S),
            cpu_ns: trial.subject.as_ref().and_then(|used| per_operation(used.cpu_cores, rate_per_s)),
            judged_cpu_ns: judged
                .subject
                .as_ref()
                .and_then(|used| per_operation(used.process.cpu_cores, judged.rate_per_s)),
            rate_per_s,
            judged_rate_per_s: judged.rate_per_s,
            p99_ns: times.as_ref().and_then(|summary| summary.p99),
            p50_ns: times.as_ref().and_then(|summary| summary.p50),
            judged_p50_ns: judged.response_ns.as_ref().and_then(|summary| summary.p50),
            judged_p99_ns: judged.response_ns.as_ref().and_then(|summary| summary.p99),
            functions: BTreeMap::new(),
            waiting,
        };
        Ok(Held { hold, by: [Folded::of(framed)?, Folded::of(unwound)?], waits })
    }

    fn by(self, at: usize) -> Profiled {
        let [framed, unwound] = self.by;
        let folded = if at == 0 { framed } else { unwound };
        let hold = ProfiledHold { samples: folded.stacks.sum(), functions: folded.functions(), ..self.hold };
        Profiled { hold, folded, waits: self.waits }
    }
}

/// One hold with the stacks that tell most.
struct Profiled {
    hold: ProfiledHold,
    folded: Folded,
    waits: Option<Waits>,
}

impl Profiled {
    /// Both holds with stacks found in the same way: by frame pointers, unless debug information reaches the server's own code
    /// in so much more of them.
    fn both(good: Held, bad: Held) -> [Profiled; 2] {
        let shares = [0, 1].map(|at| good.by[at].own_share() + bad.by[at].own_share());
        let at = usize::from(shares[1] > shares[0] + UNWOUND_MORE);
        [good.by(at), bad.by(at)]
    }
}

/// Errors: why there is no profile, for the user.
fn profiled(
    climbing: &Climbing<'_>,
    climb: &Climb,
    subject: &mut RunningSubject,
    progress: &mut Progress,
) -> anyhow::Result<(Conclusion, [Profiled; 2])> {
    let Some(pid) = subject.pid else {
        bail!("the server's process is not known; name it with --pid, or let --start start it")
    };
    let Some(pair) = Pair::of(climb) else { bail!("it needs a load that held and a larger one that failed") };
    let folder = tempfile::tempdir().context("no temporary folder; check TMPDIR")?;
    // Whether perf may be used at all is asked of a process that lives.
    Recording::check(if subject.has_ended() { std::process::id() } else { pid }, folder.path())?;
    let plan = &plan_of(climbing.plan, &pair);
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
    let asked = (plan, growth::is_asked(pair.cause));
    let outcome = (|| {
        subject.restart_with(plan, cell.options.clone())?;
        let good = hold::profiled(
            climbing,
            asked,
            (pair.good, &cell),
            folder.path(),
            (subject, &mut maps),
            progress,
        )?;
        if plan.ladder.restart_per_rung {
            subject.restart(plan)?;
        }
        let bad = hold::profiled(
            climbing,
            asked,
            (pair.bad, &cell),
            folder.path(),
            (subject, &mut maps),
            progress,
        )?;
        anyhow::Ok([good, bad])
    })();
    if subject.end_if_started() {
        drop(maps);
    } else {
        maps.forget();
    }
    let [good, bad] = outcome?;
    let stacks = Profiled::both(good, bad);
    Ok((growth::conclusion(&stacks[0].hold, &stacks[1].hold, pair.cause), stacks))
}

/// The plan of the profiled holds: nothing is searched, ended or recovered, and a command of the user's starts with what makes
/// names for perf.
fn plan_of(plan: &Plan, pair: &Pair<'_>) -> Plan {
    let mut plan = plan.in_cell(&pair.cell);
    if let SubjectSource::Started { command, .. } = &mut plan.subject.source {
        command.insert_str(0, NAMES_FOR_PERF);
    }
    plan.ladder.stop = None;
    plan.ladder.recovery_ns = None;
    plan.ladder.hold = match plan.ladder.hold {
        HoldLength::Time(ns) => HoldLength::Time(ns.min(HOLD_NS_MAX)),
        HoldLength::Ticks(_) | HoldLength::Games(_) => HoldLength::Time(HOLD_NS_MAX),
    };
    plan
}

/// The functions that grew most, as tables at most so wide: of CPU, and of waiting where that was asked; and how to see the flame
/// graph. Empty without a profile.
pub fn table(climb: &Climb, columns: Option<usize>) -> String {
    let Some(conclusion) = climb.conclusions.iter().find(|part| part.id == growth::PROFILE) else {
        return String::new();
    };
    let per = conclusion.evidence.get("per").and_then(serde_json::Value::as_str).unwrap_or("operation");
    let grew = growth::listed(conclusion, "grew");
    let has_grown = grew.iter().any(|one| one.is_sure);
    let (listed, heading) = if has_grown {
        (grew, "The functions that grew most")
    } else {
        (growth::listed(conclusion, "most"), "The functions that took most")
    };
    let heading = format!("{heading}: CPU per {per}, and share of the server's CPU");
    let cpu = rows(conclusion, (&heading, has_grown), listed, columns);
    let waits = growth::listed(conclusion, growth::WAITS);
    let heading = format!("The functions that waited longer: waiting per {per}, and share of all waiting");
    rows(conclusion, (&heading, true), waits, columns)
        + &cpu
        + &flame_graph(conclusion, &climb.run.id, columns)
}

/// How to see it, where stacks were taken.
fn flame_graph(conclusion: &Conclusion, run: &str, columns: Option<usize>) -> String {
    if KeptStacks::Cpu.ns_per_weight(conclusion).is_none() {
        return String::new();
    }
    let words = format!(
        "Flame graph of both loads: `stepladder view`, or `stepladder report {run} -o {run}.html` for one file."
    );
    format!("\n  {}\n", wrapped(&words, 2, columns))
}

/// One table; `marks`: functions whose growth may be chance are marked.
fn rows(
    conclusion: &Conclusion,
    (heading, marks): (&str, bool),
    mut listed: Vec<Growth>,
    columns: Option<usize>,
) -> String {
    listed.retain(|one| one.bad.share >= SHARE_SHOWN);
    if listed.is_empty() {
        return String::new();
    }
    let load = |name: &str| {
        let load = conclusion.evidence.get(name).and_then(|hold| hold.get("load"));
        load.and_then(serde_json::Value::as_f64).map_or(String::new(), show_number)
    };
    let (good, bad) = (load("good"), load("bad"));
    let legend = if marks && listed.iter().any(|one| !one.is_sure) { " (?: may be chance)" } else { "" };
    let mut text = format!(
        "\n  {}\n  {:>10} {:>10}   {:>8} {:>8}\n",
        wrapped(&format!("{heading}{legend}"), 2, columns),
        format!("at {good}"),
        format!("at {bad}"),
        good,
        bad
    );
    let name_width =
        columns.map_or(NAME_WIDTH, |columns| columns.saturating_sub(FIGURES_WIDTH)).min(NAME_WIDTH);
    for one in listed {
        let function: String = one.function.chars().take(name_width).collect();
        text += &format!(
            "  {:>10} {:>10}   {:>8} {:>8} {}{function}\n",
            show_ns(one.good.ns),
            show_ns(one.bad.ns),
            show_share(one.good.share),
            show_share(one.bad.share),
            if one.is_sure || !marks { " " } else { "?" }
        );
    }
    text
}
