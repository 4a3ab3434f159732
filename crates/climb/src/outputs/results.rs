//! What is written for finished and stored runs: JSON, JUnit XML and Markdown, built from the same answers.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use console::say;
use ladder::Climb;

use super::duel_answer::DuelAnswer;
use super::files::{check_writable, write_json, write_text};
use super::{junit, markdown};

/// GitHub's runner shows what is appended to this file on the page of the job.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Results that can be written in each form.
pub trait Results {
    /// The JSON contract.
    fn json(&self) -> anyhow::Result<String>;
    /// There is a failure or an error in it exactly if the exit code is not 0.
    fn junit(&self) -> io::Result<String>;
    /// For summaries and comments.
    fn markdown(&self) -> String;
}

impl Results for Climb {
    fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    fn junit(&self) -> io::Result<String> {
        junit::report(self)
    }

    fn markdown(&self) -> String {
        markdown::page(self)
    }
}

impl Results for DuelAnswer {
    fn json(&self) -> anyhow::Result<String> {
        Ok(format!("{:#}", self.json))
    }

    fn junit(&self) -> io::Result<String> {
        junit::report_of_duel(self)
    }

    fn markdown(&self) -> String {
        markdown::page_of_duel(self)
    }
}

/// The files that results are written to.
#[derive(Clone, Debug, Default, Args)]
pub struct ResultFiles {
    /// Write the results here as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the results here as JUnit XML, with a test case per rung, or figure of a duel, and gate (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the results here as Markdown (- for standard output). A climb or a duel also appends them to the file that the
    /// environment variable GITHUB_STEP_SUMMARY names
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

impl ResultFiles {
    /// Each of them by its flag; `None`: not requested.
    pub fn all(&self) -> [(&'static str, Option<&Path>); 3] {
        [
            ("--json", self.json.as_deref()),
            ("--junit", self.junit.as_deref()),
            ("--markdown", self.markdown.as_deref()),
        ]
    }

    /// Whether one of them is standard output, so that the results page goes to standard error.
    pub fn take_stdout(&self) -> bool {
        self.all().iter().any(|(_, path)| *path == Some(Path::new("-")))
    }

    /// Results that cannot be written are known before the climb, not after.
    pub fn prepare(&self) -> anyhow::Result<()> {
        let files = self.all();
        for (at, (flag, path)) in files.iter().enumerate() {
            if let Some((other, _)) = files[..at].iter().find(|(_, one)| path.is_some() && one == path) {
                let path = path.unwrap_or(Path::new("")).display();
                bail!("{other} {path} and {flag} {path}: one would overwrite the other; name two files");
            }
        }
        files.into_iter().try_for_each(|(flag, path)| check_writable(flag, path))
    }

    /// Writes them.
    pub fn write(&self, results: &impl Results) -> anyhow::Result<()> {
        if self.json.is_some() {
            write_json(&results.json()?, self.json.as_deref())?;
        }
        if self.junit.is_some() {
            write_text("--junit", &results.junit()?, self.junit.as_deref())?;
        }
        if self.markdown.is_some() {
            write_text("--markdown", &results.markdown(), self.markdown.as_deref())?;
        }
        Ok(())
    }

    /// Errors: JUnit or Markdown was requested for a run that has no such form. `what`: `a comparison`.
    pub fn only_json(&self, what: &str) -> anyhow::Result<()> {
        for (flag, path) in &self.all()[1..] {
            if path.is_some() {
                bail!("{flag}: the run is {what}, and only climbs and duels have this form; use --json FILE");
            }
        }
        Ok(())
    }
}

/// Appends the results to the job summary if GitHub's runner names a file for it. Errors are reported but change
/// nothing: the results are stored.
pub fn append_step_summary(results: &impl Results) {
    let Some(path) = std::env::var_os(STEP_SUMMARY).filter(|path| !path.is_empty()) else { return };
    let path = PathBuf::from(path);
    let page = results.markdown();
    let appended = File::options()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(format!("{page}\n").as_bytes()));
    if let Err(error) = appended {
        say::err_line!(
            "stepladder: {STEP_SUMMARY} names {}, and the summary cannot be appended there: {error}",
            path.display()
        );
    }
}
