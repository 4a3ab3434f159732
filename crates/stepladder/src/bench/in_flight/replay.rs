//! Stored lines become the table: the same function right after the runs and years later.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde_json::Value;
use store::{LineSource, StoredLine};

use super::figures::{Cell, CellKey, Report, Run};
use super::lines::{Line, Note};
use super::member::Usage;
use super::profile::{Profile, Subject};

/// What was heard of one process.
#[derive(Default)]
struct Heard {
    cell: u64,
    block: u64,
    client: String,
    plan: Value,
    profile: Option<String>,
    start: Option<Value>,
    end: Option<Box<Value>>,
    timeline: Option<Value>,
    before: Option<Usage>,
    after: Option<Usage>,
}

impl Heard {
    fn note(&mut self, note: Note) {
        match note {
            Note::Process { cell, block, client, plan, profile } => {
                (self.cell, self.block, self.client, self.plan) = (cell, block, client, plan);
                self.profile = profile;
            }
            Note::Server { is_end: false, usage } => self.before = Some(usage),
            Note::Server { is_end: true, usage } => self.after = Some(usage),
        }
    }

    fn line(&mut self, line: Line) {
        match line {
            Line::Start(start) => self.start = Some(start),
            Line::End(end) => self.end = Some(end),
            Line::Timeline(timeline) => self.timeline = Some(timeline),
            Line::Second { .. } | Line::Error(_) | Line::Other => {}
        }
    }
}

impl Report {
    /// What the lines of a run come to. A process that did not write its last line counts for nothing, one that was
    /// interrupted only where its client finished no run of the task.
    ///
    /// `folded` gives the stacks that were kept of a process. Errors: lines of another version, or figures that were refused
    /// when they came.
    pub(in crate::bench) fn of(
        lines: &[StoredLine],
        folded: impl Fn(u32) -> anyhow::Result<String>,
    ) -> anyhow::Result<Report> {
        let mut processes: BTreeMap<u32, Heard> = BTreeMap::new();
        for line in lines {
            let heard = processes.entry(line.process).or_default();
            let at = || format!("a line of process {} cannot be read", line.process);
            match line.source {
                LineSource::Bench => heard.note(Note::read(&line.text).with_context(at)?),
                LineSource::Client => heard.line(Line::read(&line.text).with_context(at)?),
            }
        }
        let target = processes.values().find_map(|one| one.plan["target"].as_str());
        let target = target.unwrap_or_default().to_owned();
        let mut cells: BTreeMap<u64, Cell> = BTreeMap::new();
        let mut profiles = Vec::new();
        for (process, heard) in processes {
            let (Some(start), Some(end)) = (heard.start, heard.end) else { continue };
            let mut run = Run::read(&start, &end, heard.before.zip(heard.after))
                .with_context(|| format!("client {}", heard.client))?;
            let is_cut = run.stopped.as_deref() == Some("signal");
            // It was stopped in its warm-up, or its profile is of a part.
            if is_cut && (run.ops == 0 || heard.profile.is_some()) {
                continue;
            }
            run.timeline = heard.timeline;
            let key = CellKey::of_plan(&heard.plan);
            if let Some(subject) = heard.profile.as_deref().and_then(Subject::named) {
                profiles.push(Profile::read(subject, &heard.client, key, &folded(process)?, &run)?);
                continue;
            }
            let cell = cells.entry(heard.cell).or_insert_with(|| Cell::new(key, &heard.client));
            // A part of a run is better than none, and no run to be averaged with whole ones.
            if !is_cut || cell.runs.is_empty() {
                cell.runs.push((heard.block as u32, run));
            }
        }
        Ok(Report { target, cells: cells.into_values().collect(), profiles })
    }
}
