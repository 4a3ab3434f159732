//! Stored trials become judged trials and a climb: the same functions while a run goes on and years later.

use anyhow::Context as _;
use ladder::{
    Calibration, Course, Intended, Judged, Judgement, Link, ListCourse, Purpose, Terms, disturbance, judge,
    least_disturbed, warm_up_cut,
};
use measure::{Measure, Summary, Trial};
use plan::{Bots, Hold, HttpModel, Plan, SubjectSource, TickSource};
use store::{RunId, Store};

/// Clients of the null server at an easy pace: our own share of every latency.
pub const LATENCY_CLIENTS: f64 = 64.0;
/// Their pace together, messages per second.
pub const LATENCY_RATE_PER_S: f64 = 12_800.0;
/// Clients of the null server in a closed loop: our own ceiling.
pub const CEILING_CLIENTS: f64 = 65.0;

/// Under this name the head of a calibration says which of our drivers it weighs.
pub const PROTOCOL: &str = "protocol";

/// The course that a plan asks for.
pub fn course(plan: &Plan) -> Course {
    let calibrations =
        [(Purpose::CalibrationLatency, LATENCY_CLIENTS), (Purpose::CalibrationCeiling, CEILING_CLIENTS)];
    Course::List(ListCourse {
        calibrations: if plan.generator.calibrate { calibrations.to_vec() } else { Vec::new() },
        rungs: plan.ladder.rungs.clone(),
        cells: plan.ladder.cells.iter().map(|cell| cell.names.clone()).collect(),
        is_open_ended: plan.ladder.is_open_ended,
    })
}

/// A stored run's plan.
pub fn stored_plan(store: &Store, run: &RunId) -> anyhow::Result<Plan> {
    let record = store.run(run)?;
    serde_json::from_str(&record.head.plan)
        .with_context(|| format!("the plan of run {run} is of another version of Stepladder"))
}

/// The stored trials of a run with what is said of them, as the course wants to see them.
///
/// What was stored never changes, so each trial is read and judged once, however often the course is asked.
#[derive(Default)]
pub struct Done {
    judged: Vec<Judged>,
    trials: usize,
}

impl Done {
    /// All of them, with those that were stored since the last call.
    pub fn up_to_now(&mut self, store: &Store, run: &RunId, plan: &Plan) -> anyhow::Result<&[Judged]> {
        for record in store.trials(run)?.into_iter().skip(self.trials) {
            let (trial, judgement) = judge_stored(store, run, plan, record.head.seq)?;
            let judgement = (record.head.purpose == Purpose::Rung.name()).then_some(&judgement);
            self.judged.extend(Judged::of(&trial, judgement));
            self.trials += 1;
        }
        Ok(&self.judged)
    }
}

/// Judges one stored trial, without its warm-up.
pub fn judge_stored(store: &Store, run: &RunId, plan: &Plan, seq: u32) -> anyhow::Result<(Trial, Judgement)> {
    let left_out = |trial: &Trial| least_disturbed(trial, hold_ns(plan)).left_out;
    let (trial, calmer) = store.trial_views(run, seq, warm_up_cut, left_out)?;
    let judgement = judge(&trial, calmer.as_ref(), &terms(store, run, plan, trial.head.load)?);
    Ok((trial, judgement))
}

/// What a rung of a run is judged by.
pub fn terms(store: &Store, run: &RunId, plan: &Plan, load: f64) -> anyhow::Result<Terms> {
    Ok(Terms {
        objectives: plan.objectives.clone(),
        calibration: calibration(store, run)?,
        intended: match &plan.bots {
            // The next game begins when one ends, so a slow server plans fewer shots; the games that stand are judged.
            Bots::Arena(_) => None,
            Bots::Echo(echo) if echo.rate_per_s > 0.0 => Some(Intended::PerSecond(echo.rate_per_s * load)),
            Bots::Chat(chat) => {
                // A load is a whole number of clients by the plan.
                let speakers = chat.speaker_count(load.round() as u64);
                Some(Intended::PerSecond(speakers as f64 * 1e9 / chat.gap_mean_ns()))
            }
            Bots::Http(http) => match http.model {
                HttpModel::Open { .. } => Some(Intended::PerSecond(load)),
                HttpModel::Closed { .. } => None,
            },
            // Each answer starts the next question.
            Bots::Echo(_) => None,
        },
        patience_ns: plan.patience_ns,
        link: link(store, run)?,
        hold_ns: hold_ns(plan),
        tells_ticks: matches!(plan.subject.source, SubjectSource::BuiltIn { .. })
            && matches!(plan.subject.ticks, TickSource::Log(_)),
    })
}

/// How long a hold is to last; 0 where a count ends it.
fn hold_ns(plan: &Plan) -> u64 {
    match plan.ladder.hold {
        Hold::Time(ns) => ns,
        Hold::Ticks(_) | Hold::Games(_) => 0,
    }
}

/// The way to the server, as it was found when the run began.
fn link(store: &Store, run: &RunId) -> anyhow::Result<Option<Link>> {
    let environment: serde_json::Value = serde_json::from_str(&store.run(run)?.head.environment)?;
    Ok(environment.get("link").and_then(|link| {
        Some(Link {
            name: link.get("interface")?.as_str()?.to_owned(),
            is_wireless: link.get("kind")?.as_str()? == "wireless",
            bytes_per_s: link.get("bits_per_s").and_then(serde_json::Value::as_f64).map(|bits| bits / 8.0),
        })
    }))
}

/// The generator as it was measured before the climb; `None` when it was not.
///
/// Of several calibrations those that nothing disturbed count, the last of them; without any the fastest.
pub fn calibration(store: &Store, run: &RunId) -> anyhow::Result<Option<Calibration>> {
    let mut found: Option<Calibration> = None;
    let mut is_fair = false;
    for record in store.trials(run)? {
        let purpose = Purpose::named(&record.head.purpose);
        if purpose == Some(Purpose::Rung) {
            continue;
        }
        let trial = store.trial(run, record.head.seq, 0)?;
        let was_disturbed = disturbance(&trial).any();
        let calibration: &mut Calibration = found.get_or_insert_default();
        calibration.protocol = trial.head.cell.get(PROTOCOL).cloned();
        if purpose == Some(Purpose::CalibrationLatency) {
            let own_latency = trial.distribution(Measure::Response).summary();
            let p99 = |summary: &Option<Summary>| summary.as_ref().and_then(|summary| summary.p99);
            let is_better = match (was_disturbed, is_fair) {
                (false, _) => true,
                (true, true) => false,
                (true, false) => {
                    p99(&calibration.own_latency).is_none()
                        || p99(&own_latency).unwrap_or(u64::MAX)
                            < p99(&calibration.own_latency).unwrap_or(u64::MAX)
                }
            };
            if is_better {
                calibration.own_latency = own_latency;
                calibration.send_lag = trial.distribution(Measure::SendLag).summary();
            }
            is_fair |= !was_disturbed;
            calibration.was_disturbed = !is_fair;
        } else {
            let seconds = trial.hold.as_ref().map_or(0.0, measure::Hold::seconds);
            let ceiling_per_s = (seconds > 0.0).then(|| trial.flow().answered as f64 / seconds);
            calibration.ceiling_per_s =
                [calibration.ceiling_per_s, ceiling_per_s].into_iter().flatten().max_by(f64::total_cmp);
        }
    }
    Ok(found)
}
