//! The judge for the viewer and for reports: replays stored climbs and duels by their plans.

use std::sync::{Mutex, PoisonError};

use climb::judging::JudgedRun;
use ladder::duel::DuelAnswers;
use ladder::{Climb, Objective};
use store::{RunId, RunState, Store};
use viewer::{Judge, Unjudged};

use crate::duel::page;
use crate::duel::record::DuelRun;

/// Judges stored runs by their plans. A rung is judged once, however often the page asks.
#[derive(Default)]
pub struct Replay {
    /// the run that was requested last
    known: Mutex<Option<(RunId, JudgedRun)>>,
    /// the duel that was requested last
    duel: Mutex<Option<(RunId, DuelRun)>>,
}

impl Judge for Replay {
    fn climb(&self, store: &Store, run: &RunId) -> Result<Option<Climb>, Unjudged> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let judged = match &mut *known {
            Some((id, judged)) if id == run => judged,
            other => &mut other.insert((run.clone(), JudgedRun::open(store, run)?)).1,
        };
        judged.read_on(store)?;
        let ended_early = match store.run(run)?.state {
            // The page shows that itself, beside growing figures.
            RunState::Recording => None,
            state => climb::stored::ended_early(&state),
        };
        Ok(judged.answers(ended_early.as_deref())?)
    }

    fn duel(&self, store: &Store, run: &RunId) -> Result<Option<(Climb, DuelAnswers)>, Unjudged> {
        let mut known = self.duel.lock().unwrap_or_else(PoisonError::into_inner);
        let duel = match &mut *known {
            Some((id, duel)) if id == run => duel,
            other => &mut other.insert((run.clone(), DuelRun::open(store, run)?)).1,
        };
        duel.read_on(store)?;
        Ok(page::contract(duel)?)
    }

    fn objectives(&self, store: &Store, run: &RunId) -> Result<Vec<Objective>, Unjudged> {
        Ok(JudgedRun::open(store, run)?.plan().objectives.clone())
    }
}
