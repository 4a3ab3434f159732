//! Where lines go: those that a runner writes (`inflight/clients/README.md`), and those that are recorded beside them.
//!
//! Both are kept unchanged, in the store and, if requested, in a file. Everything shown is derived from them
//! (`inflight_analysis::Replay`).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;
use console::say;
use inflight_analysis::{Note, artifact};
use store::{LineSource, RunWriter, StoredLine};

/// Where lines go: the store, and the file of `--lines`.
pub struct Record<'w> {
    writer: &'w RunWriter,
    file: Option<BufWriter<File>>,
    /// how many processes were begun
    begun: u32,
}

impl<'w> Record<'w> {
    pub fn new(writer: &'w RunWriter, file: Option<File>) -> Record<'w> {
        Record { writer, file: file.map(BufWriter::new), begun: 0 }
    }

    /// What follows is of the next process.
    pub fn begin(&mut self, process: &Note) -> anyhow::Result<()> {
        self.begun += 1;
        self.note(process)
    }

    pub fn note(&mut self, note: &Note) -> anyhow::Result<()> {
        self.keep(LineSource::Bench, &note.text())
    }

    /// A line of the process, as it came.
    pub fn line(&mut self, text: &str) -> anyhow::Result<()> {
        if let Some(file) = &mut self.file {
            writeln!(file, "{text}").context("--lines: the file cannot be written any more")?;
        }
        self.keep(LineSource::Client, text)
    }

    /// The stacks of the process's profile.
    pub fn artifact(&self, folded: &str) -> anyhow::Result<()> {
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
pub fn open(path: Option<&Path>) -> anyhow::Result<Option<File>> {
    let open = |path: &Path| {
        File::create(path).with_context(|| format!("--lines {}: cannot be written", path.display()))
    };
    path.map(open).transpose()
}
