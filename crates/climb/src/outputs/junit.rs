//! A climb or a duel as JUnit XML, for the test reports of CI systems.
//!
//! Shape: `testsuites` with one `testsuite`. A climb has a `testcase` per hold of a load and per gate; without gates,
//! one for the verdict of the whole run. `system-out` holds the command, the machine and the results page. For duels
//! see `of_duel`. Times are in seconds.
//! Invariant: there is a failure or an error exactly if the exit code is not 0. What could not be determined is an
//! `error` and never passes; a rung that did not hold is `skipped`, with its reason, where gates or the search decide.
//! Format: the schema that Jenkins and Surefire accept (junit-10.xsd), with its order of elements.

mod file;
mod of_duel;

use std::collections::BTreeMap;
use std::io;

use ladder::wording::{show_cell, show_number};
use ladder::{Climb, GateResult, Rung, Verdict};

use self::file::{Case, Found, State, file};
pub use self::of_duel::report as report_of_duel;

/// The whole file.
pub fn report(climb: &Climb) -> io::Result<String> {
    file(&climb.run, &properties(climb), &cases(climb), &ladder::results_page(climb).to_string())
}

fn properties(climb: &Climb) -> Vec<(&'static str, String)> {
    let run = &climb.run;
    let bound = |bound: Option<f64>| bound.map_or(String::new(), show_number);
    vec![
        ("run", run.id.clone()),
        ("subject", run.subject.clone()),
        ("verdict", climb.verdict.to_string()),
        ("capacity.unit", climb.capacity.unit.to_string()),
        ("capacity.lower_bound", bound(climb.capacity.lower_bound)),
        ("capacity.upper_bound", bound(climb.capacity.upper_bound)),
        ("seed", run.seed.to_string()),
        ("stepladder", run.stepladder.clone()),
        ("git", run.git.clone().unwrap_or_default()),
    ]
}

fn cases(climb: &Climb) -> Vec<Case> {
    // Rungs decide only if the run has no gates and did not pass.
    let rungs_decide = climb.gates.is_empty() && climb.verdict != Verdict::Pass;
    let names = names(&climb.rungs);
    let rungs = climb.rungs.iter().zip(names).map(|(rung, name)| Case {
        group: "rungs",
        name,
        seconds: rung.hold_s,
        state: of_rung(rung, rungs_decide),
    });
    let mut cases: Vec<Case> = rungs.collect();
    let whole = |group, name: &str, state| Case { group, name: name.to_owned(), seconds: 0.0, state };
    if climb.gates.is_empty() {
        cases.push(whole("run", "verdict", of_run(climb)));
    }
    cases
        .extend(climb.gates.iter().map(|gate| whole("gates", &format!("gate {}", gate.gate), of_gate(gate))));
    if let Some(why) = &climb.ended_early {
        let found = Found { kind: "ENDED_EARLY", message: why.clone(), details: why.clone() };
        cases.push(whole("run", "whole", State::Error(found)));
    }
    cases
}

/// Names that are the same in every run of the same plan, so that CI systems recognise them.
fn names(rungs: &[Rung]) -> Vec<String> {
    let mut held: BTreeMap<String, u32> = BTreeMap::new();
    let mut names = Vec::new();
    for rung in rungs {
        let mut name = format!("{} {}", show_number(rung.load), rung.load_unit);
        if let Some(cell) = &rung.cell {
            name += &format!(", {}", show_cell(cell));
        }
        let count = held.entry(name.clone()).or_default();
        *count += 1;
        names.push(if *count == 1 { name } else { format!("{name}, hold {count}") });
    }
    names
}

fn of_rung(rung: &Rung, decides: bool) -> State {
    let reason = rung.reason.clone().unwrap_or_else(|| "no reason is stored".to_owned());
    if rung.verdict == Verdict::Pass {
        return State::Passed;
    }
    if !decides {
        return State::Skipped(format!("{}: {reason}", rung.verdict));
    }
    let mut details = vec![reason.clone()];
    details.extend(rung.remark.clone());
    details.extend(
        rung.errors.iter().filter(|(_, count)| **count > 0).map(|(cause, count)| format!("{cause}: {count}")),
    );
    details.extend(rung.error_samples.iter().map(|one| format!("{}, for example: {}", one.cause, one.text)));
    state(rung.verdict, reason, details.join("\n"))
}

fn of_run(climb: &Climb) -> State {
    let answers: Vec<&str> = climb.conclusions.iter().map(|answer| answer.text.as_str()).collect();
    let first = answers.first().copied().unwrap_or_default().to_owned();
    state(climb.verdict, first, answers.join("\n"))
}

fn state(verdict: Verdict, message: String, details: String) -> State {
    let found = Found { kind: verdict.name(), message, details };
    match verdict {
        Verdict::Pass => State::Passed,
        Verdict::Fail => State::Failure(found),
        Verdict::GeneratorLimited | Verdict::Inconclusive | Verdict::Invalid => State::Error(found),
    }
}

fn of_gate(gate: &GateResult) -> State {
    let found = |kind| Found { kind, message: gate.found.clone(), details: gate.found.clone() };
    match gate.met {
        Some(true) => State::Passed,
        Some(false) => State::Failure(found("NOT_MET")),
        None => State::Error(found("CANNOT_BE_TOLD")),
    }
}

#[cfg(test)]
mod tests;
