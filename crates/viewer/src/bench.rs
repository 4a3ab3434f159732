//! Comparisons of client libraries: turns their stored lines into a page.
//!
//! Nothing is summed here: figures, curves and sentences are those of `inflight_analysis`, the source of `bench --json`
//! too.

use inflight_analysis::{Cell, LineError, Process, Replay, Report};
use serde_json::{Map, Value};
use store::{LineSource, RunHead, RunId, RunRecord, RunState, Store, StoreError};

use crate::api::{BenchPage, ProcessPage};

/// Neighbouring buckets within this ratio become one: a curve is drawn from them, the percentiles come with the cell.
const BUCKET_WIDTH: f64 = 1.02;

/// The lines of a run, as far as they were read.
#[derive(Default)]
pub(crate) struct Lines {
    replay: Replay,
    known: u64,
    /// why the rest was not read
    problem: Option<String>,
}

/// What came with the last lines.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// processes that wrote something, ascending
    pub processes: Vec<u32>,
    /// a process began or ended, so that more than its own seconds changed
    pub is_structural: bool,
}

impl Lines {
    /// All lines of a run so far.
    pub fn of(store: &Store, run: &RunId) -> Result<Lines, StoreError> {
        let mut lines = Lines::default();
        lines.read_on(store, run)?;
        Ok(lines)
    }

    /// Reads what was committed since. A line that cannot be understood ends the reading and becomes the problem of the page.
    pub fn read_on(&mut self, store: &Store, run: &RunId) -> Result<News, StoreError> {
        let mut news = News::default();
        if self.problem.is_some() {
            return Ok(news);
        }
        for line in store.lines_behind(run, self.known)? {
            self.known += 1;
            let had_ended = self.has_ended(line.process);
            let taken = match line.source {
                LineSource::Bench => self.replay.note(line.process, &line.text),
                LineSource::Client => self.replay.line(line.process, &line.text),
            };
            if let Err(error) = taken {
                self.problem = Some(error.to_string());
                news.is_structural = true;
                return Ok(news);
            }
            // A note is the start of a process or its server's usage, which is part of the table.
            news.is_structural |=
                line.source == LineSource::Bench || self.has_ended(line.process) != had_ended;
            if news.processes.last() != Some(&line.process) {
                news.processes.push(line.process);
            }
        }
        Ok(news)
    }

    fn has_ended(&self, process: u32) -> bool {
        self.replay.processes().any(|(number, one)| number == process && one.run().is_some())
    }

    /// The figures, or why there are none.
    pub fn report(&self, store: &Store, run: &RunId) -> Result<Report, String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let folded = |process: u32| {
            let found = store
                .artifact(run, &inflight_analysis::artifact(process))
                .map_err(|error| error.to_string())?;
            Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default())
        };
        self.replay
            .report::<Problem>(|process| folded(process).map_err(Problem))
            .map_err(|Problem(words)| words)
    }

    /// The page, and what keeps it from saying everything.
    pub fn page(&self, store: &Store, record: &RunRecord) -> (BenchPage, Option<String>) {
        let (report, problem) = match self.report(store, &record.id) {
            Ok(report) => (report, None),
            Err(problem) => (Report::default(), Some(problem)),
        };
        let reason = match &record.state {
            RunState::Ended(end) => end.reason.clone(),
            RunState::CutOff(cut_off) => Some(cut_off.to_string()),
            RunState::Recording => None,
        };
        let environment: Map<String, Value> =
            serde_json::from_str(&record.head.environment).unwrap_or_default();
        let page = BenchPage {
            comparison: report.contract(),
            latencies: report.cells.iter().map(buckets).collect(),
            processes: self
                .replay
                .processes()
                .map(|(number, process)| process_page(number, process))
                .collect(),
            planned: planned(&record.head),
            seed: record.head.seed,
            stepladder: record.head.stepladder.clone(),
            environment,
            reason,
        };
        (page, problem)
    }

    /// One process.
    pub fn process(&self, number: u32) -> Option<ProcessPage> {
        let found = self.replay.processes().find(|(own, _)| *own == number);
        found.map(|(number, process)| process_page(number, process))
    }
}

/// In words.
struct Problem(String);

impl From<LineError> for Problem {
    fn from(error: LineError) -> Problem {
        Problem(error.to_string())
    }
}

fn process_page(number: u32, process: &Process) -> ProcessPage {
    let key = process.key();
    let run = process.run();
    ProcessPage {
        number,
        client: process.client.clone(),
        op: key.op,
        value_bytes: key.value_bytes,
        in_flight: key.in_flight,
        total: key.total,
        block: process.block,
        profile: process.profile.clone(),
        has_ended: run.is_some(),
        stopped: run.and_then(|run| run.stopped.clone()),
        ops_per_s: run.map(|run| run.rate_per_s()).filter(|rate| rate.is_finite()),
        curve: process.curve.clone(),
    }
}

fn buckets(cell: &Cell) -> Vec<(u64, u64)> {
    let mut merged: Vec<(u64, u64)> = Vec::new();
    let mut begin = 0;
    for each in cell.latency().iter_recorded() {
        let (ns, count) = (each.value_iterated_to(), each.count_at_value());
        match merged.last_mut() {
            Some(last) if ns as f64 <= begin as f64 * BUCKET_WIDTH => *last = (ns, last.1 + count),
            _ => {
                begin = ns;
                merged.push((ns, count));
            }
        }
    }
    merged
}

/// Clients × tasks × blocks. The result of a sweep is in no plan.
fn planned(head: &RunHead) -> Option<u64> {
    let plan: Value = serde_json::from_str(&head.plan).ok()?;
    let count = |name: &str| Some(plan[name].as_array()?.len() as u64);
    if count("sweep") != Some(0) {
        return None;
    }
    let tasks = count("op")? * count("value_bytes")? * count("in_flight")?;
    tasks.checked_mul(count("clients")?)?.checked_mul(plan["runs"].as_u64()?)
}
