//! Lines: those that a runner writes (`clients/README.md`), and those that are noted beside them.
//!
//! Both are kept as they came, in the store and, if asked for, in a file. `replay` makes everything that is shown of them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};
use store::{LineSource, RunWriter, StoredLine};

use super::member::Usage;
use super::profile::artifact;

use crate::say;

/// One line of a runner. Unknown fields are free; unknown types are passed over.
#[derive(Debug)]
pub(super) enum Line {
    Start(Value),
    /// of the warm-up, or of the measured part
    Second {
        is_warmup: bool,
    },
    /// the first operations of the measured part
    Timeline(Value),
    End(Box<Value>),
    Error(String),
    Other,
}

impl Line {
    /// Errors: it is no JSON object with a type.
    pub(super) fn read(text: &str) -> anyhow::Result<Line> {
        let value: Value = serde_json::from_str(text)?;
        let kind = value["type"].as_str().context("a line without a type")?;
        Ok(match kind {
            "start" => Line::Start(value),
            "second" => Line::Second { is_warmup: value["phase"] == "warmup" },
            "timeline" => Line::Timeline(value),
            "end" => Line::End(Box::new(value)),
            "error" => Line::Error(value["message"].as_str().unwrap_or("no message").to_owned()),
            _ => Line::Other,
        })
    }
}

/// What is noted beside the lines of a process.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Note {
    /// A process begins.
    Process {
        /// the how-manieth row of the table its figures belong to
        cell: u64,
        block: u64,
        client: String,
        /// as the runner is given it
        plan: Value,
        /// what is profiled, where this is no measured run
        profile: Option<String>,
    },
    /// What the server has used: before the measured part (the last such note counts), and behind it.
    Server { is_end: bool, usage: Usage },
}

impl Note {
    fn text(&self) -> String {
        match self {
            Note::Process { cell, block, client, plan, profile } => json!({
                "type": "process", "cell": cell, "block": block, "client": client, "plan": plan, "profile": profile,
            }),
            Note::Server { is_end, usage } => json!({
                "type": "server", "at": if *is_end { "end" } else { "begin" }, "cpu_s": usage.cpu_s,
                "rss_bytes": usage.rss_bytes,
            }),
        }
        .to_string()
    }

    /// Errors: it is none that this version writes.
    pub(super) fn read(text: &str) -> anyhow::Result<Note> {
        let value: Value = serde_json::from_str(text)?;
        let count = |name: &str| value[name].as_u64().with_context(|| format!("a note without {name:?}"));
        Ok(match value["type"].as_str() {
            Some("process") => Note::Process {
                cell: count("cell")?,
                block: count("block")?,
                client: value["client"].as_str().context("a note without \"client\"")?.to_owned(),
                plan: value["plan"].clone(),
                profile: value["profile"].as_str().map(str::to_owned),
            },
            Some("server") => Note::Server {
                is_end: value["at"] == "end",
                usage: Usage {
                    cpu_s: value["cpu_s"].as_f64().context("a note without \"cpu_s\"")?,
                    rss_bytes: count("rss_bytes")?,
                },
            },
            _ => anyhow::bail!("a note of an unknown type: {}", value["type"]),
        })
    }
}

/// Where lines go: the store, and the file of `--lines`.
pub(super) struct Record<'w> {
    writer: &'w RunWriter,
    file: Option<BufWriter<File>>,
    /// how many processes were begun
    begun: u32,
}

impl<'w> Record<'w> {
    pub(super) fn new(writer: &'w RunWriter, file: Option<File>) -> Record<'w> {
        Record { writer, file: file.map(BufWriter::new), begun: 0 }
    }

    /// What follows is of the next process.
    pub(super) fn begin(&mut self, process: &Note) -> anyhow::Result<()> {
        self.begun += 1;
        self.note(process)
    }

    pub(super) fn note(&mut self, note: &Note) -> anyhow::Result<()> {
        self.keep(LineSource::Bench, &note.text())
    }

    /// A line of the process, as it came.
    pub(super) fn line(&mut self, text: &str) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            writeln!(file, "{text}").context("--lines: the file cannot be written any more")?;
        }
        self.keep(LineSource::Client, text)
    }

    /// The stacks of the process's profile.
    pub(super) fn artifact(&self, folded: &str) -> anyhow::Result<()> {
        Ok(self.writer.artifact(&artifact(self.begun.saturating_sub(1)), folded.as_bytes())?)
    }

    fn keep(&self, source: LineSource, text: &str) -> anyhow::Result<()> {
        let process = self.begun.saturating_sub(1);
        Ok(self.writer.line(StoredLine { process, source, text: text.to_owned() })?)
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.flush()
        {
            say::err_line!("stepladder: --lines: {error}");
        }
    }
}

/// Errors: the file of `--lines` cannot be written.
pub(super) fn open(path: Option<&Path>) -> anyhow::Result<Option<File>> {
    let open = |path: &Path| {
        File::create(path).with_context(|| format!("--lines {}: cannot be written", path.display()))
    };
    path.map(open).transpose()
}
