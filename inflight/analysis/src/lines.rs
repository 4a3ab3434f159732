//! Lines: those that a runner writes (`inflight/clients/README.md`), and those that are recorded beside them.

use serde_json::{Value, json};

use super::error::LineError;
use super::heap::Heap;

/// One line of a runner. Unknown fields are free; unknown types are passed over.
#[derive(Debug)]
pub enum Line {
    /// once connected
    Start(Value),
    /// what happened since the line before
    Second {
        /// of the warm-up, not of the measured part
        is_warmup: bool,
        /// the line
        value: Value,
    },
    /// the first operations of the measured part
    Timeline(Value),
    /// the last one: figures of the measured part
    End(Box<Value>),
    /// why there is no other line
    Error(String),
    /// of a type that is not known
    Other,
}

impl Line {
    /// Errors: it is no JSON object with a type.
    pub fn read(text: &str) -> Result<Line, LineError> {
        let value = object(text)?;
        let kind =
            value["type"].as_str().ok_or_else(|| LineError::Format("a line without a type".to_owned()))?;
        Ok(match kind {
            "start" => Line::Start(value),
            "second" => Line::Second { is_warmup: value["phase"] == "warmup", value },
            "timeline" => Line::Timeline(value),
            "end" => Line::End(Box::new(value)),
            "error" => Line::Error(value["message"].as_str().unwrap_or("no message").to_owned()),
            _ => Line::Other,
        })
    }
}

fn object(text: &str) -> Result<Value, LineError> {
    serde_json::from_str(text).map_err(|error| LineError::Format(error.to_string()))
}

/// What the server has used so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// CPU time
    pub cpu_s: f64,
    /// memory
    pub rss_bytes: u64,
}

/// What is recorded beside the lines of a process.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A process begins.
    Process {
        /// the how-manieth row of the table its figures belong to
        cell: u64,
        /// each block has every client and task once
        block: u64,
        /// as the user named it
        client: String,
        /// as the runner is given it
        plan: Value,
        /// what is profiled, where this is no measured run
        profile: Option<String>,
    },
    /// What the server has used: before the measured part (the last such note counts), and after it.
    Server {
        /// after it
        is_end: bool,
        /// so far
        usage: Usage,
    },
    /// What was live in the process's heap after the measured part.
    Heap(Heap),
}

impl Note {
    /// As it is stored.
    pub fn text(&self) -> String {
        match self {
            Note::Process { cell, block, client, plan, profile } => json!({
                "type": "process", "cell": cell, "block": block, "client": client, "plan": plan, "profile": profile,
            }),
            Note::Server { is_end, usage } => json!({
                "type": "server", "at": if *is_end { "end" } else { "begin" }, "cpu_s": usage.cpu_s,
                "rss_bytes": usage.rss_bytes,
            }),
            Note::Heap(heap) => json!({ "type": "heap", "heap": heap }),
        }
        .to_string()
    }

    /// Errors: it is none that this version writes.
    pub fn read(text: &str) -> Result<Note, LineError> {
        let value = object(text)?;
        let without = |name: &str| LineError::Format(format!("a note without {name:?}"));
        let count = |name: &str| value[name].as_u64().ok_or_else(|| without(name));
        Ok(match value["type"].as_str() {
            Some("process") => Note::Process {
                cell: count("cell")?,
                block: count("block")?,
                client: value["client"].as_str().ok_or_else(|| without("client"))?.to_owned(),
                plan: value["plan"].clone(),
                profile: value["profile"].as_str().map(str::to_owned),
            },
            Some("server") => Note::Server {
                is_end: value["at"] == "end",
                usage: Usage {
                    cpu_s: value["cpu_s"].as_f64().ok_or_else(|| without("cpu_s"))?,
                    rss_bytes: count("rss_bytes")?,
                },
            },
            Some("heap") => Note::Heap(
                serde_json::from_value(value["heap"].clone())
                    .map_err(|error| LineError::Format(format!("a note of a heap: {error}")))?,
            ),
            _ => return Err(LineError::Format(format!("a note of an unknown type: {}", value["type"]))),
        })
    }
}
