//! A stored run's answers, from what is stored and nothing else.

use ladder::{Climb, Judgement, Purpose, RunFacts, answers};
use measure::Trial;
use store::{RunId, Store};

use crate::judging::{calibration, judge_stored, stored_plan};

/// The answers of a run, finished or not; `None` while it has no rung.
pub fn climb_of(store: &Store, run: &RunId) -> anyhow::Result<Option<Climb>> {
    let plan = stored_plan(store, run)?;
    let mut rungs = Vec::new();
    for trial in store.trials(run)? {
        if trial.head.purpose == Purpose::Rung.name() {
            rungs.push(judge_stored(store, run, &plan, trial.head.seq)?);
        }
    }
    answers_of(store, run, &rungs)
}

/// The answers that these judged rungs of a run give; `None` without any.
pub fn answers_of(store: &Store, run: &RunId, rungs: &[(Trial, Judgement)]) -> anyhow::Result<Option<Climb>> {
    if rungs.is_empty() {
        return Ok(None);
    }
    let plan = stored_plan(store, run)?;
    let head = store.run(run)?.head;
    let facts = RunFacts {
        id: run.to_string(),
        name: head.name,
        subject: head.subject,
        scenario: head.scenario,
        seed: head.seed,
        arrivals: head.arrivals,
        started_unix_ms: head.started_unix_ms,
        stepladder: head.stepladder,
        git: head.git,
        command: head.command,
        environment: serde_json::from_str(&head.environment)?,
        shared_cores: head.shared_cores,
        capacity_unit: plan.ladder.load_unit,
    };
    Ok(Some(answers(&facts, calibration(store, run)?.as_ref(), rungs)))
}
