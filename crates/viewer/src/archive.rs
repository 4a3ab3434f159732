//! Pages of stored runs: the list, a run, a trial.
//!
//! A finished run carries its answers (`run_end.climb`), and these are shown: they are what the user saw. A run without
//! them (still running, or killed) is judged by the caller's `Judge`. Nothing is summed here that `measure` has not
//! summed.

use measure::Purpose;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ladder::duel::DuelAnswers;
use ladder::{Climb, DisturbedAbove, Evidence, HoldSpan, Rung};
use serde::Deserialize;
use serde_json::Value;
use store::{Outcome, Place, RunId, RunKind, RunRecord, RunState, Store, StoreError, TrialMark};

use crate::Judge;
use crate::api::{Kind, MainFigure, RowRung, RunPage, RunRow, Series, State, TrialPage};
use crate::bench::Lines;
use crate::decimate::decimate;
use crate::error::Unjudged;
use crate::fold::Fold;
use crate::profile::{self, ProfileGraph};

/// Default number of points of a series: an hour is complete.
pub(crate) const POINTS: usize = 4_000;
/// The judge of a climb, under whose name a verdict is stored.
const CLIMB: &str = "climb";

/// How much of its trials a page of a run carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detail {
    /// marks of all, seconds of the one that is running; the rungs stand in `climb`
    First,
    /// flame graphs; seconds and distributions of all, these in buckets of such a ratio
    All {
        /// above 1; 1 keeps every bucket
        width: f64,
    },
}

/// A store and who judges its runs.
pub struct Archive<'a> {
    store: &'a Store,
    judge: &'a dyn Judge,
    answers: Option<&'a Answers>,
}

/// What ended runs without rungs found, in one line each: it never changes, and all lines of such a run are read for it.
#[derive(Debug, Default)]
pub struct Answers(Mutex<BTreeMap<RunId, String>>);

impl<'a> Archive<'a> {
    /// Both must outlive it; it keeps nothing.
    pub fn new(store: &'a Store, judge: &'a dyn Judge) -> Self {
        Archive { store, judge, answers: None }
    }

    /// Reads the answer of a run without rungs once.
    pub fn remembering(self, answers: &'a Answers) -> Self {
        Archive { answers: Some(answers), ..self }
    }

    /// All runs, the youngest first, and what is damaged, in words.
    pub fn rows(&self) -> Result<(Vec<RunRow>, Vec<String>), StoreError> {
        let list = self.store.runs()?;
        let mut damaged: Vec<String> = list.damaged.iter().map(ToString::to_string).collect();
        let mut rows = Vec::with_capacity(list.runs.len());
        for record in list.runs.iter().rev() {
            match self.row(record, stored_climb(record).as_ref()) {
                Ok(row) => rows.push(row),
                Err(StoreError::UnknownRun { .. }) => {}
                Err(error) => damaged.push(error.to_string()),
            }
        }
        Ok((rows, damaged))
    }

    fn row(&self, record: &RunRecord, climb: Option<&Climb>) -> Result<RunRow, StoreError> {
        let kind = match record.head.kind {
            RunKind::Climb => Kind::Climb,
            RunKind::Bench => Kind::Bench,
            RunKind::Duel => Kind::Duel,
        };
        let main = (kind == Kind::Climb)
            .then(|| self.objectives(&record.id).ok())
            .flatten()
            .and_then(|mut all| (!all.is_empty()).then(|| all.swap_remove(0)));
        let figure = |evidence: &Evidence| main.as_ref().and_then(|main| evidence.value_of(&main.text));
        // While a run goes on it has no overall verdict, and the current rung is in the small ladder.
        let is_recording = matches!(record.state, RunState::Recording);
        let rungs = match climb.filter(|_| !is_recording) {
            Some(climb) => climb
                .rungs
                .iter()
                .map(|rung| RowRung {
                    load: rung.load,
                    verdict: Some(rung.verdict),
                    figure: figure(&rung.evidence),
                })
                .collect(),
            None => self.rungs_so_far(&record.id, figure)?,
        };
        Ok(RunRow {
            id: record.id.to_string(),
            kind,
            answer: match kind {
                Kind::Climb => None,
                Kind::Bench => self.bench_answer(record)?,
                Kind::Duel => duel_answer(record, climb),
            },
            subject: record.head.subject.clone(),
            scenario: record.head.scenario.clone(),
            started_unix_ms: record.head.started_unix_ms,
            state: match &record.state {
                RunState::Recording => State::Running,
                RunState::Ended(end) => match end.outcome {
                    Outcome::Finished => State::Finished,
                    Outcome::Interrupted => State::Interrupted,
                    Outcome::Broken => State::Broken,
                },
                RunState::CutOff(_) => State::CutOff,
            },
            // A duel's verdicts are of both sides together, and say nothing about either.
            verdict: climb.filter(|_| !is_recording && kind == Kind::Climb).map(|climb| climb.verdict),
            capacity: climb.filter(|_| kind == Kind::Climb).map(|climb| climb.capacity.clone()),
            rungs,
            main,
            labels: record.labels.clone(),
        })
    }

    /// What a comparison of client libraries found; `None` while it goes on.
    fn bench_answer(&self, record: &RunRecord) -> Result<Option<String>, StoreError> {
        let reason = match &record.state {
            RunState::Recording => return Ok(None),
            RunState::Ended(end) => end.reason.clone(),
            RunState::CutOff(_) => None,
        };
        if let Some(reason) = reason {
            return Ok(Some(reason));
        }
        let known = self.answers.map(|answers| answers.0.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(answer) = known.as_ref().and_then(|known| known.get(&record.id)) {
            return Ok(Some(answer.clone()));
        }
        let report = Lines::of(self.store, &record.id)?.report(self.store, &record.id);
        let answer = report.map_or_else(|problem| problem, |report| report.in_one_line());
        if let Some(mut known) = known {
            known.insert(record.id.clone(), answer.clone());
        }
        Ok(Some(answer))
    }

    /// The page of a comparison of client libraries whose lines were read.
    pub(crate) fn bench_page(&self, record: &RunRecord, lines: &Lines) -> Result<RunPage, StoreError> {
        let (bench, problem) = lines.page(self.store, record);
        Ok(RunPage {
            run: self.row(record, None)?,
            command: record.head.command.clone(),
            note: None,
            planned: Vec::new(),
            hold_s: None,
            climb: None,
            objectives: Vec::new(),
            trials: Vec::new(),
            bench: Some(bench),
            profile: None,
            duel: None,
            problem,
        })
    }

    /// Rungs of a run that has no answers yet, from the verdicts that its judge left.
    fn rungs_so_far(
        &self,
        run: &RunId,
        figure: impl Fn(&Evidence) -> Option<f64>,
    ) -> Result<Vec<RowRung>, StoreError> {
        let mut rungs = Vec::new();
        let marks = self.store.trial_marks(run)?;
        let mut verdicts = self.store.all_verdicts(run)?;
        for mark in marks {
            if !is_rung(&mark) {
                continue;
            }
            let said = verdicts.remove(&mark.head.seq).unwrap_or_default();
            let verdict = said.into_iter().rfind(|one| one.judge == CLIMB);
            let evidence: Option<Evidence> =
                verdict.as_ref().and_then(|verdict| serde_json::from_str(&verdict.evidence).ok());
            rungs.push(RowRung {
                load: mark.head.load,
                figure: evidence.as_ref().and_then(&figure),
                verdict: verdict.and_then(|one| serde_json::from_value(one.verdict.into()).ok()),
            });
        }
        Ok(rungs)
    }

    fn objectives(&self, run: &RunId) -> Result<Vec<MainFigure>, Unjudged> {
        Ok(self.judge.objectives(self.store, run)?.iter().map(MainFigure::from).collect())
    }

    /// The answers: those that were told at its end, else the judge's. Errors: the plan cannot be read.
    pub fn climb(&self, record: &RunRecord) -> Result<Option<Climb>, Unjudged> {
        match stored_climb(record) {
            Some(climb) => Ok(Some(climb)),
            None if record.head.kind == RunKind::Duel => {
                Ok(self.judge.duel(self.store, &record.id)?.map(|(climb, _)| climb))
            }
            None => self.judge.climb(self.store, &record.id),
        }
    }

    /// The answers of a climb, or those of a duel with the form of a climb.
    fn judged(&self, record: &RunRecord) -> Result<(Option<Climb>, Option<DuelAnswers>), Unjudged> {
        if record.head.kind != RunKind::Duel {
            return Ok((self.climb(record)?, None));
        }
        let told = stored_climb(record).zip(stored_duel(record));
        Ok(match told.map_or_else(|| self.judge.duel(self.store, &record.id), |told| Ok(Some(told)))? {
            Some((climb, duel)) => (Some(climb), Some(duel)),
            None => (None, None),
        })
    }

    /// A run.
    pub fn run_page(&self, run: &RunId, detail: Detail) -> Result<RunPage, StoreError> {
        let record = self.store.run(run)?;
        if record.head.kind == RunKind::Bench {
            return self.bench_page(&record, &Lines::of(self.store, run)?);
        }
        let (climb, duel, mut problem) = match self.judged(&record) {
            Ok((climb, duel)) => (climb, duel, None),
            Err(cause) => (None, None, Some(cause.to_string())),
        };
        let objectives = self.objectives(run).unwrap_or_else(|cause| {
            problem.get_or_insert(cause.to_string());
            Vec::new()
        });
        let mut trials = Vec::new();
        let marks = self.store.trial_marks(run)?;
        let is_recording = matches!(record.state, RunState::Recording);
        for mark in &marks {
            let rung = climb.as_ref().and_then(|climb| rung_of(climb, mark.head.seq));
            trials.push(match detail {
                Detail::All { width } => self.trial(run, mark, rung, Some(width), POINTS)?,
                Detail::First if is_recording && !mark.is_ended() => {
                    self.trial(run, mark, None, None, POINTS)?
                }
                // The rung is in `climb`.
                Detail::First => TrialPage {
                    events: self.store.marks(run, &mark.head)?,
                    hold: rung.and_then(|rung| rung.hold),
                    ..empty(mark)
                },
            });
        }
        let plan: Value = serde_json::from_str(&record.head.plan).unwrap_or_default();
        let conclusions = climb.as_ref().map(|climb| climb.conclusions.as_slice());
        let profile = match detail {
            Detail::All { .. } => Some(profile::graphs(self.store, run, conclusions.unwrap_or_default())?),
            Detail::First => None,
        };
        Ok(RunPage {
            run: self.row(&record, climb.as_ref())?,
            command: record.head.command.clone(),
            note: plan.get("note").and_then(Value::as_str).map(str::to_owned),
            planned: if is_recording { planned(&plan) } else { Vec::new() },
            hold_s: plan.pointer("/ladder/hold/time").and_then(Value::as_f64).map(|ns| ns / 1e9),
            climb,
            objectives,
            trials,
            bench: None,
            profile,
            duel,
            problem,
        })
    }

    /// The flame graphs of a run; none where it was not profiled, or cannot be judged.
    pub fn profile(&self, run: &RunId) -> Result<Vec<ProfileGraph>, StoreError> {
        let climb = self.climb(&self.store.run(run)?).ok().flatten();
        profile::graphs(self.store, run, climb.as_ref().map_or(&[], |climb| &climb.conclusions))
    }

    /// One trial with its seconds, in at most about `points` points.
    pub fn trial_page(&self, run: &RunId, seq: u32, points: usize) -> Result<TrialPage, StoreError> {
        let record = self.store.run(run)?;
        let unknown = || StoreError::UnknownTrial { run: run.clone(), trial: seq };
        let marks = self.store.trial_marks(run)?;
        let mark = marks.iter().find(|mark| mark.head.seq == seq).ok_or_else(unknown)?;
        let climb = if is_rung(mark) { self.climb(&record).ok().flatten() } else { None };
        let rung = climb.as_ref().and_then(|climb| rung_of(climb, seq));
        self.trial(run, mark, rung, Some(1.0), points)
    }

    fn trial(
        &self,
        run: &RunId,
        mark: &TrialMark,
        rung: Option<&Rung>,
        width: Option<f64>,
        points: usize,
    ) -> Result<TrialPage, StoreError> {
        let cut_s = rung.and_then(|rung| rung.hold).map_or(0, |hold| hold.cut_s);
        let mut fold = Fold::new(mark.head.clone(), cut_s);
        let mut place = Place::default();
        read_on(self.store, run, mark, &mut place, &mut fold)?;
        Ok(page_of(mark, &fold, rung.cloned(), fold.series(), width, points))
    }
}

/// Takes the marks and what follows `place`, until nothing more was committed.
pub(crate) fn read_on(
    store: &Store,
    run: &RunId,
    mark: &TrialMark,
    place: &mut Place,
    fold: &mut Fold,
) -> Result<(), StoreError> {
    fold.mark(store.marks(run, &mark.head)?);
    store.each_entry_behind(run, &mark.head, place, |entry| fold.take(entry))
}

/// The loads of a list; a caller that cannot read this plan shows only what was held.
fn planned(plan: &Value) -> Vec<f64> {
    let loads = plan.pointer("/ladder/rungs").and_then(Value::as_array);
    loads.map(|loads| loads.iter().filter_map(Value::as_f64).collect()).unwrap_or_default()
}

/// The page of a trial that was folded.
pub(crate) fn page_of(
    mark: &TrialMark,
    fold: &Fold,
    rung: Option<Rung>,
    series: Series,
    width: Option<f64>,
    points: usize,
) -> TrialPage {
    let (series, seconds_per_point) = decimate(series, points);
    TrialPage {
        // Where it was found, only the marks know it.
        tick_period_ns: fold.trial().head.tick_period_ns,
        events: fold.trial().events.clone(),
        hold: rung.as_ref().and_then(|rung| rung.hold).or_else(|| HoldSpan::of(fold.trial())),
        disturbed_above: fold.disturbed_above(),
        rung,
        series,
        seconds_per_point,
        distributions: width.map(|width| fold.distributions(width)).unwrap_or_default(),
        slowest: fold.slowest(),
        ..empty(mark)
    }
}

/// Without anything that was measured.
fn empty(mark: &TrialMark) -> TrialPage {
    let head = &mark.head;
    TrialPage {
        seq: head.seq,
        purpose: head.purpose,
        load: head.load,
        load_unit: head.load_unit,
        bots: head.bots,
        cell: head.cell.clone(),
        tick_period_ns: head.tick_period_ns,
        events: Vec::new(),
        hold: None,
        disturbed_above: DisturbedAbove::of(None),
        rung: None,
        series: Series::default(),
        seconds_per_point: 1,
        distributions: Default::default(),
        slowest: Vec::new(),
    }
}

pub(crate) fn is_rung(mark: &TrialMark) -> bool {
    mark.head.purpose == Purpose::Rung
}

pub(crate) fn rung_of(climb: &Climb, seq: u32) -> Option<&Rung> {
    climb.rungs.iter().find(|rung| rung.seq == seq)
}

/// The answers as they were told at the end of the run; `None` too where another version wrote them in another shape.
fn stored_climb(record: &RunRecord) -> Option<Climb> {
    let RunState::Ended(end) = &record.state else { return None };
    serde_json::from_str(end.climb.as_deref()?).ok()
}

/// What a duel found, in the words of its first load, or why there is nothing.
fn duel_answer(record: &RunRecord, climb: Option<&Climb>) -> Option<String> {
    let told = climb.and_then(|climb| climb.conclusions.iter().find(|one| one.id == "duel"));
    let reason = match &record.state {
        RunState::Ended(end) => end.reason.clone(),
        RunState::CutOff(cut_off) => Some(cut_off.to_string()),
        RunState::Recording => None,
    };
    told.map(|one| one.text.clone()).or(reason)
}

/// What a duel told at its end; `None` too where another version wrote it in another shape.
fn stored_duel(record: &RunRecord) -> Option<DuelAnswers> {
    #[derive(Deserialize)]
    struct Told {
        duel: DuelAnswers,
    }
    let RunState::Ended(end) = &record.state else { return None };
    serde_json::from_str(end.climb.as_deref()?).ok().map(|Told { duel }| duel)
}

/// Judges are shared between the threads of a viewer.
pub(crate) type SharedJudge = Arc<dyn Judge>;
