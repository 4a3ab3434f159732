//! A stored duel: its two plans, its trials as the duel sees them, and what they show. The same during a run and years
//! later.

use anyhow::Context as _;
use climb::judging::{calibrate, facts, judged_trial, link_of, terms};
use climb::stored::ended_early;
use ladder::duel::{Duel, DuelNext, DuelStop, HeldTrial, Rules, Side, Standing};
use ladder::{Asked, Calibration, Climb, Judged, Judgement, Link, Rung, Verdict, answers, rung};
use measure::Purpose;
use plan::Plan;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{RunHead, RunId, RunState, Store};

/// This key of the run's plan, which is A's, holds what makes it a duel. So anything that reads plans of climbs can
/// read it.
const KEY: &str = "duel";

/// What a duel's run stores besides A's plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DuelPlan {
    /// which trials
    pub duel: Duel,
    /// A and B as they were written
    pub texts: [String; 2],
    /// B's plan
    pub b: Plan,
}

impl DuelPlan {
    /// The plan of a run, as JSON.
    pub fn with(&self, a: &Plan) -> anyhow::Result<String> {
        let mut plan = serde_json::to_value(a)?;
        if let Value::Object(fields) = &mut plan {
            fields.insert(KEY.to_owned(), serde_json::to_value(self)?);
        }
        Ok(plan.to_string())
    }
}

/// A duel with its trials, as far as they were read.
pub struct DuelRun {
    id: RunId,
    head: RunHead,
    a: Plan,
    /// what it is to find out, and B's plan
    pub plan: DuelPlan,
    rules: Rules,
    link: Option<Link>,
    calibration: Option<Calibration>,
    held: Vec<HeldTrial>,
    rungs: Vec<Rung>,
    /// why the run is not whole
    pub ended_early: Option<String>,
}

impl DuelRun {
    /// The run without its trials. Errors: it is unknown, no duel, or of another version.
    pub fn open(store: &Store, run: &RunId) -> anyhow::Result<DuelRun> {
        let head = store.run(run)?.head;
        let other = || format!("the plan of run {run} is of another version of Stepladder, or of no duel");
        let mut whole: Value = serde_json::from_str(&head.plan).with_context(other)?;
        let plan: DuelPlan = serde_json::from_value(whole[KEY].take()).with_context(other)?;
        let a: Plan = serde_json::from_value(whole).with_context(other)?;
        Ok(DuelRun {
            id: run.clone(),
            link: link_of(&head)?,
            rules: plan.duel.rules(),
            head,
            a,
            plan,
            calibration: None,
            held: Vec::new(),
            rungs: Vec::new(),
            ended_early: None,
        })
    }

    /// The whole run, also a trial that was cut off.
    pub fn whole(store: &Store, run: &RunId) -> anyhow::Result<DuelRun> {
        let mut whole = DuelRun::open(store, run)?;
        whole.read(store, |_| true)?;
        whole.ended_early = ended_early(&store.run(run)?.state);
        Ok(whole)
    }

    /// Reads and judges the trials that ended since the last call; of a run that is no longer recorded also one that was cut
    /// off.
    pub fn read_on(&mut self, store: &Store) -> anyhow::Result<()> {
        // Read before the trials: one that ends in between is picked up the next time.
        let is_recording = matches!(store.run(&self.id)?.state, RunState::Recording);
        self.read(store, |is_ended| is_ended || !is_recording)
    }

    fn read(&mut self, store: &Store, is_final: impl Fn(bool) -> bool) -> anyhow::Result<()> {
        let records = store.trials(&self.id)?;
        for record in records.into_iter().skip(self.held.len()) {
            if !is_final(record.ended_unix_ms.is_some()) {
                break;
            }
            let head = &record.head;
            let took_ms =
                record.ended_unix_ms.map_or(0, |ended| ended.saturating_sub(record.started_unix_ms));
            let (judged, unfair, figures) = if head.purpose == Purpose::Rung {
                let plan = self.plan_of(Side::of(&head.cell).unwrap_or(Side::A));
                let terms = terms(plan, head.load, self.calibration.as_ref(), self.link.as_ref());
                let (trial, judgement) = judged_trial(store, &self.id, head.seq, &terms)?;
                let figures = self.plan.duel.read(&trial);
                self.rungs.push(rung(&trial, &judgement));
                (
                    Judged::of(&trial, Some(&judgement)),
                    unfair(&judgement, self.plan.duel.disturbed_share_most),
                    figures,
                )
            } else {
                let trial = store.trial(&self.id, head.seq, 0)?;
                calibrate(&mut self.calibration, &trial);
                (Judged::of(&trial, None), None, Vec::new())
            };
            self.held.push(HeldTrial {
                seq: head.seq,
                judged,
                unfair,
                figures,
                took_ns: took_ms * 1_000_000,
            });
        }
        Ok(())
    }

    /// What a side is held with.
    pub fn plan_of(&self, side: Side) -> &Plan {
        match side {
            Side::A => &self.a,
            Side::B => &self.plan.b,
        }
    }

    /// How sure its verdicts must be.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Its id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The next trial, or why there is none.
    pub fn next(&self) -> DuelNext {
        self.plan.duel.next(&self.held, &self.rules)
    }

    /// Why it ended; `None` where more trials would follow, because it goes on or was killed.
    pub fn stop(&self) -> Option<DuelStop> {
        match self.next() {
            DuelNext::Done(stop) => Some(stop),
            DuelNext::Trial(_) | DuelNext::Calibration(_) => None,
        }
    }

    /// What is known.
    pub fn standing(&self) -> Standing {
        self.plan.duel.standing(&self.held, &self.rules)
    }

    /// Why no figure is compared: why a block was dropped, what the last trial lacks, or how the duel ended.
    pub fn why_nothing(&self) -> String {
        if let Some(why) = self.standing().loads.iter().find_map(|load| load.dropped.last()) {
            return why.clone();
        }
        let unstated = self.held.last().and_then(|held| self.plan.duel.first_unstated(&held.figures));
        let stop = || self.stop().map_or("it was cut off", DuelStop::text).to_owned();
        unstated.unwrap_or_else(stop)
    }

    /// The trial that was read last.
    pub fn last_held(&self) -> Option<&HeldTrial> {
        self.held.last()
    }

    /// The rungs that were read, in their order.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// The rungs of both sides in the form of a climb; `None` without any.
    pub fn climb(&self) -> anyhow::Result<Option<Climb>> {
        if self.rungs.is_empty() {
            return Ok(None);
        }
        let facts = facts(&self.id, &self.head, self.a.ladder.load_unit)?;
        let asked = Asked { ended_early: self.ended_early.as_deref(), ..Asked::default() };
        Ok(Some(answers(&facts, self.calibration.as_ref(), self.rungs.clone(), asked)))
    }
}

/// Why a trial says nothing about its server. One that failed its objectives says much.
fn unfair(judgement: &Judgement, disturbed_share_most: f64) -> Option<String> {
    let reason = || judgement.reason.clone().map_or_else(String::new, |reason| format!(": {reason}"));
    match judgement.verdict {
        Verdict::GeneratorLimited | Verdict::Invalid => {
            Some(format!("{}{}", judgement.verdict.name(), reason()))
        }
        Verdict::Pass | Verdict::Fail | Verdict::Inconclusive => {
            let share = judgement.disturbed_share.filter(|share| *share > disturbed_share_most)?;
            Some(format!(
                "{} of its seconds were disturbed (--disturbed 100% keeps such trials)",
                ladder::wording::show_share(share)
            ))
        }
    }
}
