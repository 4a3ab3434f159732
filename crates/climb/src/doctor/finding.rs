//! One line of the doctor's report.

use serde_json::{Map, Value};

/// How good a finding is for measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// as it should be
    Good,
    /// worth knowing, not worth changing
    Note,
    /// it limits or spoils measurements
    Poor,
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// what was looked at: `descriptors`, `clock` …
    pub name: &'static str,
    /// how good it is
    pub grade: Grade,
    /// what was found, for people
    pub text: String,
    /// what to do, where it is poor
    pub remedy: Option<String>,
    /// what was found, for programs
    pub figures: Map<String, Value>,
}

impl Finding {
    /// A finding without a remedy. `figures` is a JSON object.
    pub fn new(name: &'static str, grade: Grade, text: String, figures: Value) -> Self {
        let figures = if let Value::Object(figures) = figures { figures } else { Map::new() };
        Finding { name, grade, text, remedy: None, figures }
    }

    /// The same finding, poor, with what to do about it.
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Finding { grade: Grade::Poor, remedy: Some(remedy.into()), ..self }
    }

    /// The same finding with a remedy when `is_poor`.
    pub fn poor_if(self, is_poor: bool, remedy: impl Into<String>) -> Self {
        if is_poor { self.with_remedy(remedy) } else { self }
    }
}
