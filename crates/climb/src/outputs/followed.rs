//! What is written while a run goes on: lines of JSON, and running totals for scrapers and collectors.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use console::say;
use store::RunId;
use viewer::MetricsServer;

use super::lines::{LineFile, LineWriter};
use super::metrics::MetricsPort;
#[cfg(feature = "otlp")]
use super::otlp;

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
    pub fn first_flag(&self) -> Option<&'static str> {
        let all = [
            ("--ndjson", self.ndjson.is_some()),
            ("--metrics", self.metrics.is_some()),
            ("--otlp", self.otlp.is_some()),
        ];
        all.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// Opens the requested outputs. Call it before anything is started. Errors: user errors. `results`: other outputs,
    /// by their flags.
    pub fn prepare(&self, results: &[(&'static str, Option<&Path>)]) -> anyhow::Result<Followers> {
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
pub struct Followers {
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

/// A file that was made before there was anything to write: it is removed where nothing came.
struct Unwritten(Option<PathBuf>);

impl Drop for Unwritten {
    fn drop(&mut self) {
        if let Some(path) = &self.0
            && path.metadata().is_ok_and(|file| file.len() == 0)
        {
            // A leftover empty file is not worth an error.
            let _ = std::fs::remove_file(path);
        }
    }
}
