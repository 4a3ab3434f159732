//! A run as JSON lines for programs that follow it: one per second of the bots, and one per event.
//!
//! The lines are a function of what was committed, whenever they are requested: following a run gives the same lines as
//! exporting it years later. Nothing is queued for a slow reader; the store keeps what it has not read.
//! Not here: masks, terminals, scheduling of the writes (`stepladder`).

use std::collections::BTreeMap;
use std::io::Write;

use measure::ledger::SumOfBooks;
use measure::{Entry, Event, Flow, Interval, Measure, Phase, Sample, Summary, TickCounts, TickSecond};
use serde::Serialize;
use serde_json::Value;

use crate::error::StoreError;
use crate::follow::{PIECE, Place, TrialMark};
use crate::run::{RunId, RunState, StoredVerdict};
use crate::store::Store;

/// Of the form of the lines; additions do not change it.
pub const SECOND_LINES_SCHEMA: u32 = 1;
/// Readings of one round of the sampler are taken within less.
const ROUND_NS: u64 = 100_000_000;

/// Writes the lines of a run: of one that is being recorded those so far, without its end.
///
/// Shape and units: `docs/method/follow.md`. Errors: `UnknownRun`, `NoSeconds` of a run without trials, `Damaged` at the place
/// where it is found, `Output` when `to` fails.
pub fn seconds(store: &Store, run: &RunId, to: &mut dyn Write) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::Output {
        to: "as JSON lines".to_owned(),
        detail: error.to_string(),
    };
    let mut lines = SecondLines::new(run.clone());
    loop {
        let piece = lines.step(store)?;
        if piece.is_empty() {
            return to.flush().map_err(failed);
        }
        piece.iter().try_for_each(|line| writeln!(to, "{line}")).map_err(failed)?;
    }
}

/// Follows a run line by line.
#[derive(Debug)]
pub struct SecondLines {
    run: RunId,
    stage: Stage,
    /// of the trial that is read
    seq: u32,
    place: Place,
    /// verdicts of it that were given out
    verdicts: usize,
    /// a round of the sampler that may not be whole
    readings: Option<Readings>,
    marks: Vec<TrialMark>,
    /// of all trials, read after `marks`; `None`: not read since
    said: Option<BTreeMap<u32, Vec<StoredVerdict>>>,
    /// how it ended, once it has
    state: Option<RunState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Run,
    Trial,
    Entries,
    Verdicts,
    Ended,
}

impl SecondLines {
    /// From the beginning of a run.
    pub fn new(run: RunId) -> Self {
        SecondLines {
            run,
            stage: Stage::Run,
            seq: 0,
            place: Place::default(),
            verdicts: 0,
            readings: None,
            marks: Vec::new(),
            said: None,
            state: None,
        }
    }

    /// True once the last line of the run was given out.
    pub fn has_ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// Some of the lines after those returned before, each a JSON object without a line ending; empty when nothing more
    /// was committed. Errors: as `seconds`.
    pub fn step(&mut self, store: &Store) -> Result<Vec<String>, StoreError> {
        if self.has_ended() {
            return Ok(Vec::new());
        }
        loop {
            let lines = self.more(store)?;
            if !lines.is_empty() {
                return Ok(lines);
            }
            if let Some(state) = &self.state {
                self.stage = Stage::Ended;
                return Ok(vec![self.run_end(state)]);
            }
            match store.run(&self.run)?.state {
                RunState::Recording => return Ok(Vec::new()),
                // What was committed before it ended comes first.
                ended => self.state = Some(ended),
            }
            self.marks.clear();
        }
    }

    fn more(&mut self, store: &Store) -> Result<Vec<String>, StoreError> {
        if self.stage == Stage::Run {
            let record = store.run(&self.run)?;
            if record.head.kind == crate::run::RunKind::Bench {
                return Err(StoreError::NoSeconds { run: self.run.clone() });
            }
            self.stage = Stage::Trial;
            let head = &record.head;
            let begin = Line::RunBegin {
                schema: SECOND_LINES_SCHEMA,
                run: self.run.as_str(),
                kind: head.kind.name(),
                name: head.name.as_deref(),
                subject: &head.subject,
                scenario: head.scenario.as_deref(),
                seed: head.seed,
                arrivals: &head.arrivals,
                command: &head.command,
                git: head.git.as_deref(),
                stepladder: &head.stepladder,
                started_unix_ms: head.started_unix_ms,
                shared_cores: head.shared_cores,
            };
            return Ok(vec![text(&begin)]);
        }
        loop {
            let known = self.mark_at();
            let has_next = known.is_some_and(|at| self.marks.len() > at + 1);
            // An ended trial with another behind it does not change any more.
            if !has_next && (self.state.is_none() || self.marks.is_empty()) {
                (self.marks, self.said) = (store.trial_marks(&self.run)?, None);
            }
            let Some(at) = self.mark_at() else { return Ok(Vec::new()) };
            let (mark, has_next) = (self.marks[at].clone(), self.marks.len() > at + 1);
            let is_over = mark.is_ended() || self.state.is_some() || has_next;
            match self.stage {
                Stage::Trial => {
                    (self.stage, self.place, self.verdicts) = (Stage::Entries, Place::default(), 0);
                    return Ok(vec![self.trial_begin(&mark)]);
                }
                Stage::Entries => {
                    let entries = store.entries_behind(&self.run, &mark.head, &mut self.place, PIECE)?;
                    let is_last = entries.is_empty() && is_over;
                    let mut lines = Vec::new();
                    for entry in &entries {
                        self.entry(entry, &mut lines);
                    }
                    if is_last {
                        lines.extend(self.readings.take().map(|readings| self.samples(&readings)));
                        lines.extend(mark.ended_unix_ms.map(|at| self.trial_end(at)));
                        self.stage = Stage::Verdicts;
                    }
                    // Entries that only waited for others may have given no line yet.
                    if !lines.is_empty() || (entries.is_empty() && !is_last) {
                        return Ok(lines);
                    }
                }
                Stage::Verdicts => {
                    // The next trial begins after the verdict on this one, and its mark was read before.
                    let all = match self.said.take() {
                        Some(all) => all,
                        None => store.all_verdicts(&self.run)?,
                    };
                    let said = all.get(&self.seq).map_or(&[][..], Vec::as_slice);
                    let lines: Vec<String> =
                        said.iter().skip(self.verdicts).map(|verdict| self.verdict(verdict)).collect();
                    self.verdicts = said.len().max(self.verdicts);
                    self.said = Some(all);
                    if has_next {
                        (self.stage, self.seq) = (Stage::Trial, self.seq + 1);
                    }
                    if !lines.is_empty() || !has_next {
                        return Ok(lines);
                    }
                }
                Stage::Run | Stage::Ended => return Ok(Vec::new()),
            }
        }
    }

    /// The trial's position among the marks, which come in the order of their numbers.
    fn mark_at(&self) -> Option<usize> {
        self.marks.binary_search_by_key(&self.seq, |mark| mark.head.seq).ok()
    }

    fn entry(&mut self, entry: &Entry, lines: &mut Vec<String>) {
        if let Entry::Sample(sample) = entry {
            let is_of_round = self.readings.as_ref().is_some_and(|readings| readings.takes(sample));
            if !is_of_round {
                let whole = self.readings.replace(Readings::at(sample.at_ns));
                lines.extend(whole.map(|readings| self.samples(&readings)));
            }
            self.readings.iter_mut().for_each(|readings| readings.take(sample));
            return;
        }
        let whole = self.readings.take();
        lines.extend(whole.map(|readings| self.samples(&readings)));
        let (run, trial) = (self.run.as_str(), self.seq);
        lines.push(match entry {
            Entry::Interval(interval) => text(&interval_line(run, trial, interval)),
            Entry::Ticks(second) => text(&ticks_line(run, trial, second)),
            Entry::Event(Event { at_ns, kind, text: words }) => {
                text(&Line::Event { run, trial, at_ns: *at_ns, kind, text: words })
            }
            Entry::Books(books) => text(&Line::Books {
                run,
                trial,
                sent: books.sent,
                unknown_messages: books.unknown_messages,
                judged: &books.judged,
                excluded: &books.excluded,
            }),
            Entry::Sample(_) => return,
        });
    }

    fn trial_begin(&self, mark: &TrialMark) -> String {
        let head = &mark.head;
        text(&Line::TrialBegin {
            run: self.run.as_str(),
            trial: head.seq,
            purpose: head.purpose.to_string(),
            load: head.load,
            load_unit: head.load_unit.to_string(),
            bots: head.bots,
            connections: head.connections,
            tick_period_ns: head.tick_period_ns,
            cell: &head.cell,
            started_unix_ms: mark.started_unix_ms,
        })
    }

    fn trial_end(&self, ended_unix_ms: u64) -> String {
        text(&Line::TrialEnd { run: self.run.as_str(), trial: self.seq, ended_unix_ms })
    }

    fn samples(&self, readings: &Readings) -> String {
        let Readings { at_ns, values } = readings;
        text(&Line::Samples { run: self.run.as_str(), trial: self.seq, at_ns: *at_ns, values })
    }

    fn verdict(&self, said: &StoredVerdict) -> String {
        text(&Line::Verdict {
            run: self.run.as_str(),
            trial: self.seq,
            judge: &said.judge,
            verdict: &said.verdict,
            reason: said.reason.as_deref(),
            cut_s: said.cut_s,
            evidence: serde_json::from_str(&said.evidence).unwrap_or(Value::Null),
        })
    }

    fn run_end(&self, state: &RunState) -> String {
        let run = self.run.as_str();
        let (outcome, reason, ended_unix_ms, climb) = match state {
            RunState::Ended(end) => {
                let climb = end.climb.as_deref().and_then(|climb| serde_json::from_str::<Value>(climb).ok());
                (end.outcome.name(), end.reason.clone(), Some(end.ended_unix_ms), climb.unwrap_or_default())
            }
            RunState::CutOff(cut_off) => ("cut_off", Some(cut_off.to_string()), None, Value::Null),
            // It is asked for only behind the end.
            RunState::Recording => ("recording", None, None, Value::Null),
        };
        let of = |key: &str| climb.get(key).cloned().unwrap_or_default();
        let (verdict, capacity) = (of("verdict"), of("capacity"));
        text(&Line::RunEnd { run, outcome, reason, ended_unix_ms, verdict, capacity })
    }
}

/// One round of the sampler, by whom it is about.
#[derive(Debug)]
struct Readings {
    at_ns: u64,
    values: BTreeMap<String, BTreeMap<String, Option<f64>>>,
}

impl Readings {
    fn at(at_ns: u64) -> Self {
        Readings { at_ns, values: BTreeMap::new() }
    }

    fn takes(&self, sample: &Sample) -> bool {
        let (who, name) = sample.what.texts();
        sample.at_ns.abs_diff(self.at_ns) < ROUND_NS
            && self.values.get(who).is_none_or(|values| !values.contains_key(name))
    }

    fn take(&mut self, sample: &Sample) {
        let (who, name) = sample.what.texts();
        let value = Some(sample.value).filter(|value| value.is_finite());
        self.values.entry(who.to_owned()).or_default().insert(name.to_owned(), value);
    }
}

type Counts<'a> = BTreeMap<&'a str, u64>;
type Durations = BTreeMap<&'static str, Option<Summary>>;

/// The lines, distinguished by `type`. `docs/method/follow.md` defines each field, `follow.schema.json` beside it the
/// format.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    RunBegin {
        schema: u32,
        run: &'a str,
        kind: &'a str,
        name: Option<&'a str>,
        subject: &'a str,
        scenario: Option<&'a str>,
        seed: u64,
        arrivals: &'a str,
        command: &'a str,
        git: Option<&'a str>,
        stepladder: &'a str,
        started_unix_ms: u64,
        shared_cores: bool,
    },
    TrialBegin {
        run: &'a str,
        trial: u32,
        purpose: String,
        load: f64,
        load_unit: String,
        bots: u64,
        connections: u64,
        tick_period_ns: u64,
        cell: &'a BTreeMap<String, String>,
        started_unix_ms: u64,
    },
    Interval {
        run: &'a str,
        trial: u32,
        second: u32,
        operations: BTreeMap<&'a str, BTreeMap<&'static str, &'a Flow>>,
        durations_ns: BTreeMap<&'static str, Durations>,
        errors: Counts<'a>,
        counters: Counts<'a>,
        connections: Connections<'a>,
        client_ticks: Option<&'a TickCounts>,
        bytes_sent: u64,
        bytes_received: u64,
        workers: u32,
        busy_ns: u64,
        busy_share_max: f64,
    },
    Ticks {
        run: &'a str,
        trial: u32,
        source: &'a str,
        from_ns: u64,
        to_ns: u64,
        counts: &'a TickCounts,
        interval_ns: Option<Box<Summary>>,
        busy_ns: Option<Box<Summary>>,
        lateness_ns: Option<Box<Summary>>,
        counters: Counts<'a>,
    },
    Samples {
        run: &'a str,
        trial: u32,
        at_ns: u64,
        values: &'a BTreeMap<String, BTreeMap<String, Option<f64>>>,
    },
    Event {
        run: &'a str,
        trial: u32,
        at_ns: u64,
        kind: &'a str,
        text: &'a str,
    },
    Books {
        run: &'a str,
        trial: u32,
        sent: u64,
        unknown_messages: u64,
        judged: &'a SumOfBooks,
        excluded: &'a SumOfBooks,
    },
    TrialEnd {
        run: &'a str,
        trial: u32,
        ended_unix_ms: u64,
    },
    Verdict {
        run: &'a str,
        trial: u32,
        judge: &'a str,
        verdict: &'a str,
        reason: Option<&'a str>,
        cut_s: u32,
        evidence: Value,
    },
    RunEnd {
        run: &'a str,
        outcome: &'a str,
        reason: Option<String>,
        ended_unix_ms: Option<u64>,
        verdict: Value,
        capacity: Value,
    },
}

#[derive(Serialize)]
struct Connections<'a> {
    asked: u64,
    opened: u64,
    closed: u64,
    open_min: u64,
    open_end: u64,
    failed: Counts<'a>,
}

fn text(line: &Line<'_>) -> String {
    // Numbers, texts and maps with text keys: nothing that JSON cannot say.
    serde_json::to_string(line).unwrap_or_else(|_| "null".to_owned())
}

fn interval_line<'a>(run: &'a str, trial: u32, interval: &'a Interval) -> Line<'a> {
    let names = &interval.metric_names;
    let by_phase = |flows: &'a [Flow; Phase::COUNT]| -> BTreeMap<&'static str, &'a Flow> {
        let of_phase = Phase::ALL.iter().map(|phase| phase.name()).zip(flows);
        of_phase.filter(|(_, flow)| !flow.is_empty()).collect()
    };
    let operations = names.ops.iter().map(String::as_str).zip(interval.flows.iter().map(by_phase));
    let mut durations_ns = BTreeMap::new();
    for &measure in Measure::ALL {
        let of = |in_hold| interval.distribution(measure, in_hold).summary();
        let parts = [("hold", of(true)), ("outside_hold", of(false))];
        let parts: Durations = parts.into_iter().filter(|(_, summary)| summary.is_some()).collect();
        if !parts.is_empty() {
            durations_ns.insert(measure.name(), parts);
        }
    }
    let connections = &interval.connections;
    Line::Interval {
        run,
        trial,
        second: interval.index,
        operations: operations.filter(|(_, phases)| !phases.is_empty()).collect(),
        durations_ns,
        errors: counts(&names.errors, &interval.errors),
        counters: counts(&names.counters, &interval.counters),
        connections: Connections {
            asked: connections.asked,
            opened: connections.opened,
            closed: connections.closed,
            open_min: connections.open_min,
            open_end: connections.open_end,
            failed: counts(&names.connect_failures, &connections.failed),
        },
        client_ticks: Some(&interval.ticks).filter(|ticks| ticks.due > 0),
        bytes_sent: interval.bytes_sent,
        bytes_received: interval.bytes_received,
        workers: interval.workers,
        busy_ns: interval.busy_ns,
        busy_share_max: interval.busy_share_max,
    }
}

fn ticks_line<'a>(run: &'a str, trial: u32, second: &'a TickSecond) -> Line<'a> {
    Line::Ticks {
        run,
        trial,
        source: &second.source,
        from_ns: second.from_ns,
        to_ns: second.to_ns,
        counts: &second.counts,
        interval_ns: second.interval.summary().map(Box::new),
        busy_ns: second.busy.as_ref().and_then(|busy| busy.summary()).map(Box::new),
        lateness_ns: second.lateness.as_ref().and_then(|lateness| lateness.summary()).map(Box::new),
        counters: second.counters.iter().map(|(name, count)| (name.as_str(), *count)).collect(),
    }
}

/// Those that are not 0.
fn counts<'a>(names: &'a [String], counts: &[u64]) -> Counts<'a> {
    let of_name = names.iter().map(String::as_str).zip(counts.iter().copied());
    of_name.filter(|(_, count)| *count > 0).collect()
}
