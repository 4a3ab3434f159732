//! `stepladder selftest`: whether the verdicts are right on this machine.
//!
//! Each case climbs one rung against a reference server with a known fault (or none), as a process of its own, and compares
//! what came with what must come; for causes two rungs, of which the upper one must fail. One climb at a time, because two would disturb each other.
//! Invariant: nothing that was started outlives this process, and nothing is written outside a temporary folder.
//! In files of their own: the table of cases (`cases`), what agrees with what (`expectation`), processes (`child`).

mod cases;
mod child;
mod expectation;
mod list;
mod outcome;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use console::exit::Exit;
use console::say;
use console::scratch::ScratchFolder;
use console::signals::Interrupt;
use serde_json::{Value, json};

pub use cases::{CASES, Case, Machine, NO_QUOTA, Subject, When};
pub use child::hog;
pub use expectation::Agreement;
pub use list::{expected_seconds, markdown, plain};
pub use outcome::{Came, Outcome};

/// What to run and where to write.
#[derive(Clone, Debug)]
pub struct Options {
    /// only the cases that cover every kind of verdict
    pub quick: bool,
    /// the cases of five minutes, too
    pub long: bool,
    /// only cases whose line in the list contains this
    pub only: Option<String>,
    /// an array with one object per case goes here; `-` is standard output
    pub json: Option<PathBuf>,
}

impl Options {
    /// The cases that were asked for, in the order of the table.
    pub fn cases(&self) -> Vec<&'static Case> {
        let is_named =
            |case: &&Case| self.only.as_ref().is_none_or(|text| case.line().contains(text.as_str()));
        let is_due = |case: &&Case| match case.when {
            When::Quick => true,
            When::Else => !self.quick,
            When::Long => self.long,
        };
        CASES.iter().filter(is_due).filter(is_named).collect()
    }
}

/// How a case went.
struct Ran {
    case: &'static Case,
    came: Came,
    agreement: Agreement,
    seconds: f64,
}

/// Runs the cases. Returns the exit code: 0 when all agree, 1 when one is wrong, 130 when interrupted.
/// Errors: nothing could be started or written.
pub fn run(options: &Options, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let cases = options.cases();
    let to_stdout = options.json.as_deref() == Some(Path::new("-"));
    let mut print = Printer { to_stderr: to_stdout };
    let folder = ScratchFolder::new("selftest").context("no temporary folder; check TMPDIR")?;
    if let Some(path) = options.json.as_deref().filter(|_| !to_stdout) {
        let file = File::options().append(true).create(true).open(path);
        file.with_context(|| format!("--json {}: cannot be written; check the folder", path.display()))?;
    }
    let minutes = expected_seconds(&cases) / 60.0;
    print.line(&format!("{} cases, about {minutes:.0} min; one climb at a time", cases.len()));
    let mut ran = Vec::new();
    for case in cases {
        let begin = Instant::now();
        let Some(came) = child::climb(case, folder.path(), interrupt)? else { break };
        let agreement = expectation::compare(case, &came);
        let one = Ran { case, came, agreement, seconds: begin.elapsed().as_secs_f64() };
        print.line(&one.line());
        ran.push(one);
    }
    print.line(&summary(&ran));
    write_json(&ran, options.json.as_deref())?;
    Ok(exit_code(ran.iter().map(|one| &one.agreement), interrupt.is_asked()))
}

fn exit_code<'a>(agreements: impl Iterator<Item = &'a Agreement>, is_interrupted: bool) -> Exit {
    let all: Vec<&Agreement> = agreements.collect();
    let not_run = all.iter().filter(|agreement| matches!(agreement, Agreement::NotRun { .. })).count();
    match is_interrupted {
        true => Exit::Interrupted,
        false if all.contains(&&Agreement::Wrong) => Exit::NotMet,
        false if not_run > 0 && not_run == all.len() => Exit::NotMeasured,
        false => Exit::Met,
    }
}

impl Ran {
    fn line(&self) -> String {
        let (case, took) = (self.case, Duration::from_secs_f64(self.seconds).as_secs());
        let expected = case.expected_text();
        let agreement = match &self.agreement {
            Agreement::Ok => "ok".to_owned(),
            Agreement::Undecided { disturbed_by } => format!("undecided (disturbed: {disturbed_by})"),
            Agreement::NotRun { why } => format!("NOT RUN: {why}"),
            Agreement::Wrong => format!("WRONG: {}", self.came.reason),
        };
        let (subject, fault) = (case.subject.name(), case.what());
        let got = match self.came.short() {
            got if case.is_about_causes() && !self.came.cause.is_empty() => {
                format!("{got}: {}", self.came.cause)
            }
            got => match &self.came.grows {
                Some(grows) if case.when == When::Long => format!("{got}, growing: {}", growing(grows)),
                _ => got,
            },
        };
        format!("{subject:<9}  {fault:<52}  expected {expected:<34}  got {got:<34}  {took:>3} s  {agreement}")
    }

    fn json(&self) -> Value {
        let case = self.case;
        let (status, disturbed_by) = match &self.agreement {
            Agreement::Ok => ("ok", None),
            Agreement::Undecided { disturbed_by } => ("undecided", Some(disturbed_by)),
            Agreement::NotRun { .. } => ("not run", None),
            Agreement::Wrong => ("wrong", None),
        };
        let expected: Vec<Value> = case.expected.iter().map(Outcome::json).collect();
        let never: Vec<&str> = case.never.iter().map(|verdict| verdict.name()).collect();
        json!({
            "subject": case.subject.name(), "arguments": case.arguments, "faults": case.faults,
            "machine": case.machine.name(), "command": case.command(), "expected": expected, "never": never,
            "got": self.came.json(), "status": status, "disturbed_by": disturbed_by, "seconds": self.seconds,
        })
    }
}

/// `subject.fds 1.00, subject.rss_bytes 10017.42`, each per connection that ended.
fn growing(grows: &[(String, Option<f64>)]) -> String {
    let one = |(figure, each): &(String, Option<f64>)| match each {
        Some(each) => format!("{figure} {each:.2}"),
        None => figure.clone(),
    };
    if grows.is_empty() { "nothing".to_owned() } else { grows.iter().map(one).collect::<Vec<_>>().join(", ") }
}

fn summary(ran: &[Ran]) -> String {
    let count = |is: fn(&Agreement) -> bool| ran.iter().filter(|one| is(&one.agreement)).count();
    let ok = count(|agreement| matches!(agreement, Agreement::Ok));
    let undecided = count(|agreement| matches!(agreement, Agreement::Undecided { .. }));
    let wrong = count(|agreement| matches!(agreement, Agreement::Wrong));
    let not_run = count(|agreement| matches!(agreement, Agreement::NotRun { .. }));
    let seconds: f64 = ran.iter().map(|one| one.seconds).sum();
    let conclusion = if ran.len() == not_run {
        "nothing was run"
    } else if wrong > 0 {
        "some verdicts are not right on this machine"
    } else if undecided > 0 {
        "no verdict was wrong; repeat the undecided cases on a quieter machine"
    } else if not_run > 0 {
        "no verdict was wrong; this machine does not permit some of the cases"
    } else {
        "every verdict was right"
    };
    let not_run = if not_run > 0 { format!(", {not_run} NOT RUN") } else { String::new() };
    format!(
        "{} cases in {:.0} min: {ok} ok, {undecided} undecided, {wrong} WRONG{not_run}; {conclusion}",
        ran.len(),
        seconds / 60.0
    )
}

fn write_json(ran: &[Ran], path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let cases: Vec<Value> = ran.iter().map(Ran::json).collect();
    let text = serde_json::to_string_pretty(&cases)?;
    if path == Path::new("-") {
        say::json_to_stdout(&text);
        return Ok(());
    }
    let mut file = File::create(path).with_context(|| format!("--json {}", path.display()))?;
    writeln!(file, "{text}").with_context(|| format!("--json {}", path.display()))
}

/// Lines for people go to standard error when standard output is JSON.
struct Printer {
    to_stderr: bool,
}

impl Printer {
    fn line(&mut self, text: &str) {
        if self.to_stderr {
            say::err_line!("{text}");
        } else {
            say::out_line!("{text}");
        }
    }
}

#[cfg(test)]
mod tests;
