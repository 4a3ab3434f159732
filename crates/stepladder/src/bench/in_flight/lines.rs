//! The lines that a runner writes: what of them is needed, and the file that keeps them all.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use crate::say;

/// One line of a runner. Unknown fields are free; unknown types are passed over.
#[derive(Debug)]
pub(super) enum Line {
    Start(Value),
    /// of the warm-up, or of the measured part
    Second {
        is_warmup: bool,
    },
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
            "end" => Line::End(Box::new(value)),
            "error" => Line::Error(value["message"].as_str().unwrap_or("no message").to_owned()),
            _ => Line::Other,
        })
    }
}

/// Where `--lines` keeps them.
pub(super) struct Keep(Option<BufWriter<File>>);

impl Keep {
    /// Errors: the file cannot be written.
    pub(super) fn open(path: Option<&Path>) -> anyhow::Result<Keep> {
        let open = |path: &Path| {
            File::create(path).with_context(|| format!("--lines {}: cannot be written", path.display()))
        };
        Ok(Keep(path.map(open).transpose()?.map(BufWriter::new)))
    }

    pub(super) fn line(&mut self, text: &str) -> anyhow::Result<()> {
        match &mut self.0 {
            Some(file) => writeln!(file, "{text}").context("--lines: the file cannot be written any more"),
            None => Ok(()),
        }
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        if let Some(file) = &mut self.0
            && let Err(error) = file.flush()
        {
            say::err_line!("stepladder: --lines: {error}");
        }
    }
}
