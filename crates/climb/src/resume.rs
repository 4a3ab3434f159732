//! What a run that ended early held whole, so that another goes on behind it.

use anyhow::bail;
use measure::Purpose;
use plan::Plan;
use serde_json::{Value, json};
use store::{Outcome, RunId, RunState, Store, TrialRecord};

use crate::judging::JudgedRun;
use crate::subject::FoundRate;

/// A run whose first trials another takes over.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// which
    pub run: RunId,
    /// how many of its trials, from the first
    pub trials: u32,
    /// what it had found of the subject's ticks
    pub found_rate: FoundRate,
}

impl Resumed {
    /// Errors: the run is whole, still recorded, or of another version.
    pub fn of(store: &Store, run: &RunId) -> anyhow::Result<Resumed> {
        let record = store.run(run)?;
        match &record.state {
            RunState::Recording => bail!("run {run} is still recorded; end that climb first"),
            RunState::Ended(end) if end.outcome == Outcome::Finished => {
                bail!("run {run} is whole, so nothing of it is left; stepladder again {run} repeats it")
            }
            RunState::Ended(_) | RunState::CutOff(_) => {}
        }
        let version = env!("CARGO_PKG_VERSION");
        if record.head.stepladder != version {
            let theirs = &record.head.stepladder;
            bail!(
                "run {run} is of version {theirs} and this is {version}: half a climb with each would be none; stepladder again {run} \
                 repeats it whole"
            );
        }
        let judged = JudgedRun::whole(store, run)?;
        let trials = store.trials(run)?;
        let is_whole = |at: usize| {
            trials[at].ended_unix_ms.is_some() && judged.done().get(at).is_some_and(|it| !it.was_interrupted)
        };
        let whole = (0..trials.len()).take_while(|at| is_whole(*at)).count();
        let (whole, found_rate) = with_rate(judged.plan(), &trials[..whole]);
        // Numbers of trials are stored in 32 bits.
        Ok(Resumed { run: run.clone(), trials: whole as u32, found_rate })
    }

    /// What the new run says of it beside its machine.
    pub(crate) fn noted(&self) -> Value {
        json!({ "run": self.run.as_str(), "trials": self.trials })
    }
}

/// How many of these trials are of use, and the tick rate that they found. The first load finds it for the next one: alone it is held
/// again.
fn with_rate(plan: &Plan, whole: &[TrialRecord]) -> (usize, FoundRate) {
    let is_of_subject = |trial: &&TrialRecord| matches!(trial.head.purpose, Purpose::Rung | Purpose::WarmUp);
    let mut loads = whole.iter().filter(is_of_subject);
    if !plan.subject.finds_tick_rate() {
        return (whole.len(), FoundRate::NotYet);
    }
    match (loads.next(), loads.next_back()) {
        (Some(first), None) => (first.head.seq as usize, FoundRate::NotYet),
        (Some(_), Some(last)) if last.head.tick_period_ns > 0 => {
            (whole.len(), FoundRate::Hz(1e9 / last.head.tick_period_ns as f64))
        }
        (Some(_), Some(_)) => (whole.len(), FoundRate::None),
        (None, _) => (whole.len(), FoundRate::NotYet),
    }
}

#[cfg(test)]
mod tests {
    use measure::TrialHead;
    use plan::{Flags, resolve};

    use super::*;

    #[test]
    fn the_load_that_finds_the_tick_rate_is_taken_over_with_the_next_one_only() {
        let trial = |(seq, (purpose, tick_period_ns)): (usize, &(Purpose, u64))| TrialRecord {
            head: TrialHead {
                seq: seq as u32,
                purpose: *purpose,
                tick_period_ns: *tick_period_ns,
                ..TrialHead::default()
            },
            started_unix_ms: 0,
            ended_unix_ms: Some(1),
            whole_s: 1,
        };
        let check = |words: &str, trials: &[(Purpose, u64)], expected| {
            let plan = resolve(&Flags::of(words), None, 1).expect("a plan");
            let trials: Vec<TrialRecord> = trials.iter().enumerate().map(trial).collect();
            assert_eq!(with_rate(&plan, &trials), expected, "{words} {}", trials.len());
        };
        let (calibration, rung) = (Purpose::CalibrationLatency, Purpose::Rung);
        let found = "http://127.0.0.1:1/ --rate 10 --ticks statsd=127.0.0.1:8125/tick";
        check(found, &[(calibration, 0)], (1, FoundRate::NotYet));
        check(found, &[(calibration, 0), (rung, 0)], (1, FoundRate::NotYet));
        check(found, &[(calibration, 0), (rung, 0), (rung, 40_000_000)], (3, FoundRate::Hz(25.0)));
        check(found, &[(rung, 0), (rung, 0), (calibration, 0)], (3, FoundRate::None));
        check("http://127.0.0.1:1/ --rate 10", &[(calibration, 0), (rung, 0)], (2, FoundRate::NotYet));
    }
}
