//! A duel as JUnit XML: a test case per load and figure, one per gate, and one for the duel itself if no gate already
//! explains a nonzero exit code.
//!
//! A figure decides nothing, so its case passes, or is `skipped` if nothing is known yet; the finding is in
//! `system-out`.

use std::io;

use console::exit::Exit;
use ladder::duel::{DuelVerdict, GateState};

use super::file::{Case, Found, State, file};
use crate::outputs::duel_answer::DuelAnswer;

/// The whole file.
pub fn report(answer: &DuelAnswer) -> io::Result<String> {
    let (run, duel) = (&answer.run, &answer.duel);
    let properties = [
        ("run", run.id.clone()),
        ("a", duel.a.clone()),
        ("b", duel.b.clone()),
        ("seed", duel.seed.to_string()),
        ("stepladder", run.stepladder.clone()),
        ("git", run.git.clone().unwrap_or_default()),
    ];
    file(run, &properties, &cases(answer), &answer.plain_text())
}

fn cases(answer: &DuelAnswer) -> Vec<Case> {
    let mut cases = Vec::new();
    for (place, load) in answer.loads() {
        let at = format!("at {place}");
        let figures = load.figures.iter().map(|figure| Case {
            group: "figures",
            name: format!("{} {at}", figure.figure),
            seconds: 0.0,
            state: match figure.verdict {
                DuelVerdict::Undecided => State::Skipped(format!("undecided: {}", figure.change)),
                DuelVerdict::Smaller | DuelVerdict::Larger | DuelVerdict::NoDifferenceLargerThanDelta => {
                    State::Passed
                }
            },
        });
        let gates = load.gates.iter().map(|gate| Case {
            group: "gates",
            name: format!("gate {} {at}", gate.gate),
            seconds: 0.0,
            state: match gate.state {
                GateState::Met => State::Passed,
                GateState::NotMet => State::Failure(found("NOT_MET", answer)),
                GateState::Undecided => State::Error(found("UNDECIDED", answer)),
            },
        });
        cases.extend(figures.chain(gates));
    }
    let is_explained = cases.iter().any(|case| matches!(case.state, State::Failure(_) | State::Error(_)));
    if !is_explained || answer.exit == Exit::Interrupted {
        let state = match answer.exit {
            Exit::Met => State::Passed,
            Exit::NotMet => State::Failure(found("FAIL", answer)),
            Exit::NotMeasured | Exit::WrongUsage => State::Error(found("NOT_MEASURED", answer)),
            Exit::Interrupted => State::Error(found("ENDED_EARLY", answer)),
        };
        cases.push(Case { group: "run", name: "duel".to_owned(), seconds: 0.0, state });
    }
    cases
}

/// What was found, and why the duel ended.
fn found(kind: &'static str, answer: &DuelAnswer) -> Found {
    Found { kind, message: answer.found.join(" "), details: answer.found.join("\n") }
}

#[cfg(test)]
mod tests;
