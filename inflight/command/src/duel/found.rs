//! The results of a stored duel of two libraries, derived from its lines, and so the same years later.

use anyhow::Context as _;
use climb::judging::facts;
use climb::outputs::DuelAnswer;
use console::comparing;
use console::say;
use inflight_analysis::{Run, duel as processes};
use ladder::Difference;
use ladder::duel::{Duel, DuelAnswers, DuelNext, DuelStop, HeldTrial, Side, Standing};
use measure::LoadUnit;
use serde::{Deserialize, Serialize};
use store::{RunEnd, RunId, RunRecord, RunState, Store};
use versus::duel::page;

use crate::stored::stored;

/// As it is stored in the run's plan.
#[derive(Serialize, Deserialize)]
pub struct LibraryDuel {
    pub duel: Duel,
    pub texts: [String; 2],
    pub differs: Vec<Difference>,
    /// what both do, or each of them
    pub what: String,
}

/// The result of a stored duel.
pub struct Found {
    plan: LibraryDuel,
    standing: Standing,
    answers: DuelAnswers,
    stop: Option<DuelStop>,
    /// library and runtime of each side
    versions: [Option<String>; 2],
    /// why operations of a side count as failed
    failure: Option<(Side, String)>,
    contract: serde_json::Value,
}

/// Whether a stored comparison is a duel.
pub fn is_duel(record: &RunRecord) -> bool {
    serde_json::from_str::<serde_json::Value>(&record.head.plan).is_ok_and(|plan| plan["duel"].is_object())
}

impl Found {
    /// `None`: no process ended.
    pub fn of(store: &Store, record: &RunRecord) -> anyhow::Result<Option<Found>> {
        let plan: LibraryDuel = serde_json::from_str(&record.head.plan)
            .with_context(|| format!("the plan of run {} is of another version of Stepladder", record.id))?;
        let report = stored(store, &record.id)?;
        let side_of = |client: &str| {
            Side::BOTH.into_iter().find(|side| client.starts_with(&format!("{} ", side.name())))
        };
        let mut runs: Vec<(u32, Side, &Run)> = Vec::new();
        let (mut versions, mut failure) = ([None, None], None);
        for cell in &report.cells {
            let Some(side) = side_of(&cell.client) else { continue };
            for (block, run) in &cell.runs {
                versions[usize::from(side == Side::B)] = Some(format!("{} on {}", run.client, run.runtime));
                let why = processes::failure(&cell.key, run).map(|why| (side, why));
                failure = failure.or(why);
                runs.push((*block, side, &**run));
            }
        }
        if runs.is_empty() {
            return Ok(None);
        }
        // Within a block the order does not matter.
        runs.sort_by_key(|(block, ..)| *block);
        let duel = &plan.duel;
        let of_run = |(seq, (_, side, run)): (usize, &(u32, Side, &Run))| {
            processes::held(duel, seq as u32, *side, run, 0)
        };
        let held: Vec<HeldTrial> = runs.iter().enumerate().map(of_run).collect();
        let rules = duel.rules();
        let standing = duel.standing(&held, &rules);
        let stop = match processes::next(duel, &held, &rules, failure.as_ref().map(|(side, _)| *side)) {
            DuelNext::Done(stop) => Some(stop),
            // The schedule would continue: the budget was spent, or the user ended it.
            _ => match &record.state {
                RunState::Ended(RunEnd { outcome: store::Outcome::Finished, .. }) => Some(DuelStop::Budget),
                RunState::Ended(RunEnd { outcome: store::Outcome::Interrupted, .. }) => {
                    Some(DuelStop::Interrupted)
                }
                _ => None,
            },
        };
        let answers = DuelAnswers::of(duel, &standing, &rules, &plan.texts, stop, plan.differs.clone());
        let mut contract = serde_json::to_value(report.contract())?;
        contract["duel"] = serde_json::to_value(&answers)?;
        if let Some((side, why)) = &failure {
            contract["duel"]["failure"] = serde_json::json!({ "side": side.name(), "reason": why });
        }
        Ok(Some(Found { plan, standing, answers, stop, versions, failure, contract }))
    }

    /// In the form of every duel. `record`: of its run.
    pub fn answer(self, record: &RunRecord) -> anyhow::Result<DuelAnswer> {
        let mut found = self.sentences();
        found.push(self.answers.ended.clone());
        Ok(DuelAnswer {
            run: facts(&record.id, &record.head, LoadUnit::InFlight)?,
            places: vec![self.plan.what.clone(); self.answers.loads.len()],
            found,
            text: self.page(&record.id),
            exit: page::exit(&self.standing.loads, self.stop),
            duel: self.answers,
            json: self.contract,
        })
    }

    /// `At get 3 B, 100 in flight, 8 blocks: ops slower with B, −9.1 % (…).`
    fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> =
            self.failure.iter().map(|(side, why)| format!("{} failed: {why}.", side.name())).collect();
        sentences.extend(
            self.standing
                .loads
                .iter()
                .flat_map(|load| page::sentences(load, &self.plan.what, self.plan.duel.delta)),
        );
        sentences
    }

    fn page(&self, run: &RunId) -> String {
        let bold = anstyle::Style::new().bold();
        let mut text = String::new();
        for (at, side) in Side::BOTH.into_iter().enumerate() {
            let line = if at == 0 { "\n" } else { "" };
            text += &format!("{line}{bold}{}{bold:#}  {}", side.name(), say::in_line(&self.plan.texts[at]));
            if let Some(version) = &self.versions[at] {
                text += &format!("  ({})", say::in_line(version));
            }
            text.push('\n');
        }
        for difference in &self.plan.differs {
            text += &format!("   {}\n", comparing::as_text(difference));
        }
        for load in &self.standing.loads {
            text += &page::table(load, &self.plan.what, self.plan.duel.delta);
        }
        if let Some((side, why)) = &self.failure {
            text += &format!("\n{} failed: {}\n", side.name(), say::in_line(why));
        }
        text += &format!("\n{}\n", self.answers.ended);
        text += page::HOW_TO_READ;
        text + &format!("run {run} · stepladder show {run}\n")
    }
}

/// `stepladder show` of such a duel. `None`: no process ended.
pub fn stored_answer(store: &Store, record: &RunRecord) -> anyhow::Result<Option<DuelAnswer>> {
    Found::of(store, record)?.map(|found| found.answer(record)).transpose()
}

/// In the list of runs.
pub fn answer(store: &Store, record: &RunRecord) -> anyhow::Result<String> {
    let found = Found::of(store, record)?;
    Ok(found.map_or("no block was held".to_owned(), |found| found.sentences().join(" ")))
}
