//! Turns stored trials into judged trials and a climb, with the same functions during a run and years later.

use std::collections::BTreeMap;

use anyhow::Context as _;
use ladder::{
    Asked, Calibration, Climb, Conclusion, Criteria, Gate, Intended, Judged, Judgement, Link, ListSchedule,
    Loads, Next, NextTrial, RunFacts, Rung, Schedule, answers, disturbance, judge, least_disturbed, rung,
    warm_up_cut,
};
use measure::{LoadUnit, Measure, Purpose, Summary, Trial};
use plan::{HoldLength, Plan, SubjectSource, TickSource};
use store::{RunHead, RunId, RunKind, RunState, Store};

use crate::profile;

/// Clients of the null server at an easy pace: our own share of every latency.
pub const LATENCY_CLIENTS: f64 = 64.0;
/// Their pace together, messages per second.
pub const LATENCY_RATE_PER_S: f64 = 12_800.0;
/// Clients of the null server in a closed loop: our own ceiling.
pub const CEILING_CLIENTS: f64 = 65.0;

/// Under this name the head of a calibration says which of our drivers it weighs.
pub const PROTOCOL: &str = "protocol";

/// The schedule that a plan asks for.
pub fn schedule(plan: &Plan) -> Schedule {
    let calibrations =
        [(Purpose::CalibrationLatency, LATENCY_CLIENTS), (Purpose::CalibrationCeiling, CEILING_CLIENTS)];
    let list = || ListSchedule {
        rungs: plan.ladder.rungs.clone(),
        cells: plan.ladder.cells.iter().map(|cell| cell.names.clone()).collect(),
        is_open_ended: plan.ladder.is_open_ended,
        from_above: plan.ladder.from_above,
        repeats: plan.ladder.repeat,
        seed: plan.seed,
        overload: plan.ladder.overload.clone(),
        recovers: plan.ladder.recovery_ns.is_some(),
        lengthened: plan.ladder.lengthened.clone(),
        learns_from_ns: if plan.ladder.lengthens { hold_ns(plan) } else { 0 },
        learns_from_lower: plan.ladder.rungs.iter().any(|load| plan.bots.intended_per_s(*load).is_none()),
    };
    Schedule {
        calibrations: if plan.generator.calibrate { calibrations.to_vec() } else { Vec::new() },
        loads: plan.ladder.search.clone().map_or_else(|| Loads::List(list()), Loads::Search),
    }
}

/// A run with its trials judged, as far as it was read. What was stored never changes, so each trial is read and judged
/// once, and only its figures are kept, while the climb goes on as well as afterwards.
pub struct JudgedRun {
    id: RunId,
    head: RunHead,
    plan: Plan,
    link: Option<Link>,
    calibration: Option<Calibration>,
    /// trials that were read
    read: usize,
    done: Vec<Judged>,
    rungs: Vec<Rung>,
    /// what a profile behind the climb found
    profile: Option<Conclusion>,
}

impl JudgedRun {
    /// The run without its trials. Errors: it is unknown, or its plan is of another version.
    pub fn open(store: &Store, run: &RunId) -> anyhow::Result<JudgedRun> {
        let head = store.run(run)?.head;
        if head.kind == RunKind::Bench {
            anyhow::bail!(
                "run {run} compared client libraries and has no rungs; stepladder show {run} prints its table"
            );
        }
        let plan = serde_json::from_str(&head.plan)
            .with_context(|| format!("the plan of run {run} is of another version of Stepladder"))?;
        let link = link_of(&head)?;
        let (id, done, rungs) = (run.clone(), Vec::new(), Vec::new());
        Ok(JudgedRun { id, head, plan, link, calibration: None, read: 0, done, rungs, profile: None })
    }

    /// The whole run, also a trial that was cut off.
    pub fn whole(store: &Store, run: &RunId) -> anyhow::Result<JudgedRun> {
        let mut whole = JudgedRun::open(store, run)?;
        whole.read_rest(store)?;
        Ok(whole)
    }

    /// Reads and judges the trials that ended since the last call; of a run that is no longer recorded also one that was
    /// cut off.
    pub fn read_on(&mut self, store: &Store) -> anyhow::Result<()> {
        // Read before the trials: one that ends in between is picked up the next time.
        let is_recording = matches!(store.run(&self.id)?.state, RunState::Recording);
        self.read(store, |is_ended| is_ended || !is_recording)
    }

    /// Reads and judges all trials that were not read yet. Nothing may be recorded any more.
    pub fn read_rest(&mut self, store: &Store) -> anyhow::Result<()> {
        self.read(store, |_| true)?;
        // What another version wrote is left out.
        self.profile =
            store.artifact(&self.id, profile::ARTIFACT)?.and_then(|it| serde_json::from_slice(&it).ok());
        Ok(())
    }

    fn read(&mut self, store: &Store, is_final: impl Fn(bool) -> bool) -> anyhow::Result<()> {
        for mark in store.trial_marks(&self.id)?.into_iter().skip(self.read) {
            if !is_final(mark.is_ended()) {
                break;
            }
            match mark.head.purpose {
                Purpose::Rung => {
                    let terms = self.terms(mark.head.load, &mark.head.cell);
                    let terms = Criteria { hold_ns: self.hold_ns().unwrap_or(terms.hold_ns), ..terms };
                    let (trial, judgement) = judged_trial(store, &self.id, mark.head.seq, &terms)?;
                    self.done.push(Judged::of(&trial, Some(&judgement)));
                    let mut rung = rung(&trial, &judgement);
                    if let Some(after) = store.trial_after_hold(&self.id, mark.head.seq)? {
                        let figures = ladder::recovery::figures_of(&trial, &after, &terms.objectives);
                        rung.extra.extend(figures.map(|figures| ("recovery".to_owned(), figures)));
                    }
                    self.rungs.push(rung);
                }
                Purpose::WarmUp => {
                    let trial = store.trial(&self.id, mark.head.seq, 0)?;
                    self.done.push(Judged::of(&trial, None));
                }
                Purpose::CalibrationLatency | Purpose::CalibrationCeiling => {
                    let trial = store.trial(&self.id, mark.head.seq, 0)?;
                    self.done.push(Judged::of(&trial, None));
                    calibrate(&mut self.calibration, &trial);
                }
            }
            self.read += 1;
        }
        Ok(())
    }

    /// How long the schedule asked the next trial to hold, where it says so: it asks for the same trials again when it is
    /// replayed.
    fn hold_ns(&self) -> Option<u64> {
        match schedule(&self.plan).next(&self.done) {
            Next::Trial(NextTrial { hold_ns, .. }) => hold_ns,
            Next::Done(_) => None,
        }
    }

    /// The run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The run's plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The trials that were read, as the schedule wants to see them.
    pub fn done(&self) -> &[Judged] {
        &self.done
    }

    /// Whether the subject was not loaded yet.
    pub fn is_untouched(&self) -> bool {
        !self.done.iter().any(|trial| matches!(trial.purpose, Purpose::Rung | Purpose::WarmUp))
    }

    /// The rungs that were read, in their order.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// What its rungs say about the server; `None` without any. `ended_early`: why the run is not whole.
    pub fn answers(&self, ended_early: Option<&str>) -> anyhow::Result<Option<Climb>> {
        if self.rungs.is_empty() {
            return Ok(None);
        }
        let facts = facts(&self.id, &self.head, self.plan.ladder.load_unit)?;
        let ladder = &self.plan.ladder;
        let asked = Asked {
            search: ladder.search.as_ref(),
            has_overload: !ladder.overload.is_empty(),
            from_above: ladder.from_above,
            gates: &self.plan.gates,
            allowed: &self.plan.allowed,
            ended_early,
        };
        let mut climb = answers(&facts, self.calibration.as_ref(), self.rungs.clone(), asked);
        climb.conclusions.extend(self.plan.bots.conclusions(&climb.rungs));
        climb.conclusions.extend(self.profile.clone());
        Ok(Some(climb))
    }

    /// What a rung is judged by, in its cell of a sweep.
    pub fn terms(&self, load: f64, cell: &BTreeMap<String, String>) -> Criteria {
        let terms = terms(&self.plan.in_cell(cell), load, self.calibration.as_ref(), self.link.as_ref());
        // For every other subject, one client got in before there was any load, or the run would not exist.
        let is_built_in = matches!(self.plan.subject.source, SubjectSource::BuiltIn { .. });
        let is_first_contact = is_built_in && self.rungs.iter().all(Rung::let_nobody_in);
        Criteria { is_first_contact, ..terms }
    }
}

/// What a rung of a plan is judged by.
pub fn terms(plan: &Plan, load: f64, calibration: Option<&Calibration>, link: Option<&Link>) -> Criteria {
    Criteria {
        objectives: plan.objectives.clone(),
        gates: plan
            .gates
            .iter()
            .filter(|gate| gate.load() == Some(load))
            .filter_map(Gate::objective)
            .cloned()
            .collect(),
        goals: plan.ladder.search.as_ref().map_or(Vec::new(), |search| search.goals.clone()),
        calibration: calibration.cloned(),
        intended: plan.bots.intended_per_s(load).map(Intended::PerSecond),
        patience_ns: plan.patience_ns,
        link: link.cloned(),
        hold_ns: hold_ns(plan),
        tells_ticks: matches!(plan.subject.source, SubjectSource::BuiltIn { .. })
            && matches!(plan.subject.ticks, TickSource::Log(_)),
        is_first_contact: false,
    }
}

/// A stored rung, judged over all its seconds and over those that were disturbed least.
pub fn judged_trial(
    store: &Store,
    run: &RunId,
    seq: u32,
    terms: &Criteria,
) -> anyhow::Result<(Trial, Judgement)> {
    let left_out = |trial: &Trial| least_disturbed(trial, terms.hold_ns).left_out;
    let (trial, calmer) = store.trial_views(run, seq, warm_up_cut, left_out)?;
    let judgement = judge(&trial, calmer.as_ref(), terms);
    Ok((trial, judgement))
}

/// How long a hold is to last; 0 where a count ends it.
pub fn hold_ns(plan: &Plan) -> u64 {
    if let Some(stop) = &plan.ladder.stop {
        return stop.after_ns;
    }
    match plan.ladder.hold {
        HoldLength::Time(ns) => ns,
        HoldLength::Ticks(_) | HoldLength::Games(_) => 0,
    }
}

/// What is known of a run besides its trials.
pub fn facts(id: &RunId, head: &RunHead, unit: LoadUnit) -> anyhow::Result<RunFacts> {
    Ok(RunFacts {
        id: id.to_string(),
        name: head.name.clone(),
        subject: head.subject.clone(),
        scenario: head.scenario.clone(),
        seed: head.seed,
        arrivals: head.arrivals.clone(),
        started_unix_ms: head.started_unix_ms,
        stepladder: head.stepladder.clone(),
        git: head.git.clone(),
        command: head.command.clone(),
        environment: serde_json::from_str(&head.environment)?,
        shared_cores: head.shared_cores,
        capacity_unit: unit,
    })
}

/// The way to the server, as it was found when the run began.
pub fn link_of(head: &RunHead) -> anyhow::Result<Option<Link>> {
    let environment: serde_json::Value = serde_json::from_str(&head.environment)?;
    Ok(environment.get("link").and_then(|link| {
        Some(Link {
            name: link.get("interface")?.as_str()?.to_owned(),
            is_wireless: link.get("kind")?.as_str()? == "wireless",
            bytes_per_s: link.get("bits_per_s").and_then(serde_json::Value::as_f64).map(|bits| bits / 8.0),
        })
    }))
}

/// Adds a calibration to what is known of the generator.
///
/// Of several those that nothing disturbed count, the last of them; without any the fastest.
pub fn calibrate(found: &mut Option<Calibration>, trial: &Trial) {
    let was_disturbed = disturbance(trial).any();
    let is_first = found.as_ref().is_none_or(|found| found.own_latency.is_none());
    let calibration: &mut Calibration = found.get_or_insert_default();
    calibration.protocol = trial.head.cell.get(PROTOCOL).cloned();
    if trial.head.purpose == Purpose::CalibrationLatency {
        let is_fair = !is_first && !calibration.was_disturbed;
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
        calibration.was_disturbed = was_disturbed && !is_fair;
    } else {
        let seconds = trial.hold.as_ref().map_or(0.0, measure::Hold::seconds);
        let ceiling_per_s = (seconds > 0.0).then(|| trial.flow().answered as f64 / seconds);
        calibration.ceiling_per_s =
            [calibration.ceiling_per_s, ceiling_per_s].into_iter().flatten().max_by(f64::total_cmp);
    }
}
