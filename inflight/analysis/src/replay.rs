//! Turns stored lines into a report: the same function right after the runs, while they go on, and years later.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::curve::ProcessCurve;
use super::error::LineError;
use super::figures::{Cell, CellKey, Report, Run};
use super::heap::Heap;
use super::lines::{Line, Note, Usage};
use super::profile::{Profile, Subject};

/// What was received from one process.
#[derive(Debug, Default)]
pub struct Process {
    cell: u64,
    /// each block has every client and task once
    pub block: u64,
    /// as the user named it
    pub client: String,
    /// what it was asked to do
    plan: Value,
    /// what is profiled, where this is no measured run
    pub profile: Option<String>,
    /// second by second
    pub curve: ProcessCurve,
    start: Option<Value>,
    run: Option<Arc<Run>>,
    before: Option<Usage>,
    heap: Option<Heap>,
}

impl Process {
    /// What it was asked to do.
    pub fn key(&self) -> CellKey {
        CellKey::of_plan(&self.plan)
    }

    /// What it measured; `None` before its last line.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_deref()
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Process { cell, block, client, plan, profile } => {
                (self.cell, self.block, self.client, self.plan) = (cell, block, client, plan);
                self.profile = profile;
            }
            Note::Server { is_end: false, usage } => self.before = Some(usage),
            Note::Heap(heap) => self.heap = Some(heap),
            // It follows the last line.
            Note::Server { is_end: true, usage } => {
                if let Some((run, before)) = self.run.as_mut().zip(self.before) {
                    Arc::make_mut(run).served(before, usage);
                }
            }
        }
    }

    fn line(&mut self, line: Line) -> Result<(), LineError> {
        match line {
            Line::Start(start) => self.start = Some(start),
            Line::Second { is_warmup, value } => self.curve.second(is_warmup, &value),
            Line::Timeline(timeline) => self.curve.timeline = Some(timeline),
            Line::End(end) => {
                if let Some(start) = &self.start {
                    let mut run = Run::read(start, &end)
                        .map_err(|error| error.at(format!("client {}", self.client)))?;
                    run.timeline = self.curve.timeline.take();
                    self.run = Some(Arc::new(run));
                }
            }
            Line::Error(_) | Line::Other => {}
        }
        Ok(())
    }

    /// Its figures, as far as they count: not those of a run that was cut in its warm-up, or of a part of a profile.
    fn counted(&self) -> Option<&Arc<Run>> {
        self.run.as_ref().filter(|run| !run.is_cut() || run.ops > 0 && self.profile.is_none())
    }
}

/// The lines of a run, as far as they were taken. A process that did not write its last line counts for nothing, one that was
/// interrupted only where its client finished no run of the task.
#[derive(Debug, Default)]
pub struct Replay {
    processes: BTreeMap<u32, Process>,
}

impl Replay {
    /// Takes the next note of a process. Errors: it is of another version.
    pub fn note(&mut self, process: u32, text: &str) -> Result<(), LineError> {
        let note = Note::read(text).map_err(|error| error.at(place(process)))?;
        self.processes.entry(process).or_default().note(note);
        Ok(())
    }

    /// Takes the next line of a process. Errors: it is of another version, or has figures that were refused when they came.
    pub fn line(&mut self, process: u32, text: &str) -> Result<(), LineError> {
        let line = Line::read(text).map_err(|error| error.at(place(process)))?;
        self.processes.entry(process).or_default().line(line)
    }

    /// All processes by number, in the order in which they ran.
    pub fn processes(&self) -> impl Iterator<Item = (u32, &Process)> {
        self.processes.iter().map(|(number, process)| (*number, process))
    }

    /// Their result. `folded` returns the stored stacks of a process.
    pub fn report<E: From<LineError>>(&self, folded: impl Fn(u32) -> Result<String, E>) -> Result<Report, E> {
        let target = self.processes.values().find_map(|one| one.plan["target"].as_str());
        let target = target.unwrap_or_default().to_owned();
        let mut cells: BTreeMap<u64, Cell> = BTreeMap::new();
        let mut profiles = Vec::new();
        for (number, process) in &self.processes {
            let Some(run) = process.counted() else { continue };
            if let Some(subject) = process.profile.as_deref().and_then(Subject::named) {
                let folded = folded(*number)?;
                let mut profile = Profile::read(subject, &process.client, process.key(), &folded, run)?;
                profile.heap.clone_from(&process.heap);
                profiles.push(profile);
                continue;
            }
            let cell = cells.entry(process.cell).or_insert_with(|| Cell::new(process.key(), &process.client));
            // Part of a run is better than none, but must not be averaged with whole ones.
            if !run.is_cut() || cell.runs.is_empty() {
                cell.runs.push((process.block as u32, run.clone()));
            }
        }
        Ok(Report { target, cells: cells.into_values().collect(), profiles })
    }
}

fn place(process: u32) -> String {
    format!("a line of process {process} cannot be read")
}
