//! What is written of a run besides the terminal: JSON, JUnit XML and Markdown at its end and of a stored one, and while it
//! goes on lines of JSON (`lines`) and its sums for programs that ask (`metrics`) and for collectors (`otlp`).
//!
//! The first three are made of the same answers, and the words in them come from `ladder`. Texts of servers under test stand in
//! them as text: escaped, without control characters, and with secrets masked.

pub(crate) mod junit;
mod lines;
pub(crate) mod markdown;
pub(crate) mod metrics;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(test)]
mod planted;

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use console::say;
use ladder::Climb;
use store::{Outcome, RunEnd, RunId, RunState};
use viewer::MetricsServer;

use self::lines::{LineFile, LineWriter};
use self::metrics::MetricsPort;

/// GitHub's runner shows what is appended to this file on the page of the job.
pub(crate) const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Where the results go besides the terminal.
pub struct Outputs {
    /// the store
    pub store: PathBuf,
    /// the files
    pub results: ResultFiles,
    /// what is written while the run goes on
    pub followed: Followed,
}

impl Outputs {
    /// Whether something else is written to standard output, so that the closing page goes to standard error.
    pub fn take_stdout(&self) -> bool {
        self.results.take_stdout() || self.followed.takes_stdout()
    }
}

/// What is written while a run goes on.
#[derive(Clone, Debug, Default, Args)]
pub struct Followed {
    /// Write a line of JSON here for each second and each event while the run goes on (- for standard output; a FIFO will do)
    #[arg(long, value_name = "FILE")]
    pub ndjson: Option<PathBuf>,
    /// Answer http://ADDR/metrics with the sums of the run as OpenMetrics text while it goes on, for Prometheus and others: a port,
    /// or 127.0.0.1:PORT (0 for any free one)
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<String>,
    /// Send the sums of the run every 5 s to this collector by the OpenTelemetry Protocol (http://127.0.0.1:4318); for builds with
    /// the feature otlp
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
}

impl Followed {
    /// Whether it is written to standard output.
    pub fn takes_stdout(&self) -> bool {
        self.ndjson.as_deref() == Some(Path::new("-"))
    }

    /// One that is given.
    pub(crate) fn first_flag(&self) -> Option<&'static str> {
        let all = [
            ("--ndjson", self.ndjson.is_some()),
            ("--metrics", self.metrics.is_some()),
            ("--otlp", self.otlp.is_some()),
        ];
        all.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// Opens what is asked for. Call it before anything is started. Errors: mistakes of the user. `results`: other outputs, by
    /// their flags.
    pub(crate) fn prepare(&self, results: &[(&'static str, Option<&Path>)]) -> anyhow::Result<Followers> {
        let mut followers = Followers::default();
        followers.port = self.metrics.as_deref().map(MetricsPort::open).transpose()?;
        #[cfg(feature = "otlp")]
        {
            followers.collector = self.otlp.as_deref().map(otlp::Collector::named).transpose()?;
        }
        #[cfg(not(feature = "otlp"))]
        if self.otlp.is_some() {
            bail!(
                "--otlp: this program was built without it; build it with cargo build --release --features otlp, or use --metrics"
            );
        }
        let Some(path) = self.ndjson.as_deref() else { return Ok(followers) };
        if let Some((flag, _)) = results.iter().find(|(_, other)| *other == Some(path)) {
            let path = path.display();
            bail!("--ndjson {path} and {flag} {path}: one would overwrite the other; name two files");
        }
        let is_new = path != Path::new("-") && !path.exists();
        followers.lines = Some(LineFile::open(path)?);
        followers.unwritten = Some(Unwritten(is_new.then(|| path.to_owned())));
        Ok(followers)
    }
}

/// Writes lines while a run goes on: ready before it begins, then at work until `end`, which is also called when it is
/// dropped.
#[derive(Default)]
pub(crate) struct Followers {
    lines: Option<LineFile>,
    writer: Option<LineWriter>,
    unwritten: Option<Unwritten>,
    port: Option<MetricsPort>,
    server: Option<MetricsServer>,
    #[cfg(feature = "otlp")]
    collector: Option<otlp::Collector>,
    #[cfg(feature = "otlp")]
    exporter: Option<otlp::Exporter>,
}

impl Followers {
    /// The run has an id now.
    pub fn begin(&mut self, store: &Path, run: &RunId) -> anyhow::Result<()> {
        if let Some(lines) = self.lines.take() {
            self.writer = Some(lines.follow(store, run)?);
        }
        if let Some(port) = self.port.take() {
            self.server = Some(port.tell(store, run)?);
        }
        #[cfg(feature = "otlp")]
        if let Some(collector) = self.collector.take() {
            self.exporter = Some(collector.tell(store, run)?);
        }
        Ok(())
    }

    /// The run has ended: what is left is written, for a limited time.
    pub fn end(&mut self) {
        if let Some(trouble) = self.writer.take().and_then(LineWriter::finish) {
            say::err_line!("stepladder: {trouble}");
        }
        #[cfg(feature = "otlp")]
        if let Some(trouble) = self.exporter.take().and_then(otlp::Exporter::finish) {
            say::err_line!("stepladder: {trouble}");
        }
        self.server = None;
        self.unwritten = None;
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        self.end();
    }
}

/// Results that can be written in each form.
pub(crate) trait Results {
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
    pub(crate) fn all(&self) -> [(&'static str, Option<&Path>); 3] {
        [
            ("--json", self.json.as_deref()),
            ("--junit", self.junit.as_deref()),
            ("--markdown", self.markdown.as_deref()),
        ]
    }

    /// Whether one of them is standard output, so that the closing page goes to standard error.
    pub fn take_stdout(&self) -> bool {
        self.all().iter().any(|(_, path)| *path == Some(Path::new("-")))
    }

    /// Results that cannot be written are known before the climb, not after.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
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
    pub(crate) fn write(&self, results: &impl Results) -> anyhow::Result<()> {
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

    /// Errors: JUnit or Markdown is asked for of a run that has no such form. `what`: `a comparison`.
    pub(crate) fn only_json(&self, what: &str) -> anyhow::Result<()> {
        for (flag, path) in &self.all()[1..] {
            if path.is_some() {
                bail!("{flag}: the run is {what}, and only climbs and duels have this form; use --json FILE");
            }
        }
        Ok(())
    }
}

/// Why a stored run is not whole; `None`: it is.
pub(crate) fn ended_early(state: &RunState) -> Option<String> {
    match state {
        RunState::Recording => Some("the run is still being recorded".to_owned()),
        RunState::CutOff(cut_off) => Some(cut_off.to_string()),
        RunState::Ended(end) => ended_early_by(end),
    }
}

/// Why a run with this end is not whole; `None`: it is.
pub(crate) fn ended_early_by(end: &RunEnd) -> Option<String> {
    match end.outcome {
        Outcome::Finished => None,
        Outcome::Interrupted => Some("the run was interrupted".to_owned()),
        Outcome::Broken => {
            Some(format!("the run broke off: {}", end.reason.as_deref().unwrap_or("no reason is stored")))
        }
    }
}

/// Appends the results to the summary of the job where GitHub's runner names a file for it. Trouble is said and changes nothing:
/// the results are stored.
pub(crate) fn append_step_summary(results: &impl Results) {
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

/// A file that was made before there was anything to write: it is removed where nothing came.
struct Unwritten(Option<PathBuf>);

impl Drop for Unwritten {
    fn drop(&mut self) {
        if let Some(path) = &self.0
            && path.metadata().is_ok_and(|file| file.len() == 0)
        {
            // An empty file more is no reason to complain.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A result that cannot be written is known before the climb, not after. Nothing is left of the attempt.
pub(crate) fn check_writable(flag: &str, path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path.filter(|path| *path != Path::new("-")) else { return Ok(()) };
    let is_new = !path.exists();
    File::options()
        .append(true)
        .create(true)
        .open(path)
        .with_context(|| format!("{flag} {}: cannot be written; check the folder", path.display()))?;
    if is_new {
        // An empty file more is no reason to complain, but it would be all that a killed climb leaves.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Writes a text where `flag` says.
pub(crate) fn write_text(flag: &str, text: &str, path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    if path == Path::new("-") {
        say::out_line!("{text}");
        return Ok(());
    }
    let what = || format!("{flag} {}: cannot be written", path.display());
    write_whole(path, |out| Ok(writeln!(out, "{text}")?)).with_context(what)
}

/// Writes JSON where `--json` says.
pub(crate) fn write_json(json: &str, path: Option<&Path>) -> anyhow::Result<()> {
    if path == Some(Path::new("-")) {
        say::json_to_stdout(json);
        return Ok(());
    }
    write_text("--json", json, path)
}

/// Writes a file whole or not at all: where this process is killed meanwhile, what stood there before still does.
///
/// What is no regular file (a pipe, `/dev/stdout`, a link) is written in place, and so is a file in a folder that takes no
/// other one.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let found = std::fs::symlink_metadata(path);
    let is_replaced = found.as_ref().map_or(true, std::fs::Metadata::is_file);
    // What a file has it keeps; a new one gets what the umask leaves.
    let permissions = found.map_or_else(|_| Permissions::from_mode(0o666), |found| found.permissions());
    match is_replaced.then(|| store::export::part_of(path, permissions)) {
        Some(Ok(part)) => {
            let mut out = BufWriter::new(part);
            write(&mut out)?;
            let part = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            part.persist(path)?;
        }
        None | Some(Err(_)) => {
            let mut out = BufWriter::new(File::create(path)?);
            write(&mut out)?;
            out.flush()?;
        }
    }
    Ok(())
}
