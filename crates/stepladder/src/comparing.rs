//! `compare`: what differs between two stored runs besides their figures.
//!
//! It is said before any figure is shown, because it is the first suspect for a difference between them.

use serde_json::{Value, json};
use store::RunRecord;

use crate::say;

/// Something that is not the same in both.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// what, in words or as the path of a setting
    pub what: String,
    /// as it was
    pub old: Value,
    /// as it is
    pub new: Value,
}

impl Difference {
    /// `None` where both are the same.
    pub fn of(what: impl Into<String>, old: Value, new: Value) -> Option<Difference> {
        (old != new).then(|| Difference { what: what.into(), old, new })
    }

    /// As the JSON of `compare` has it.
    pub fn as_json(&self) -> Value {
        json!({ "what": self.what, "old": self.old, "new": self.new })
    }

    /// As the terminal has it.
    pub fn as_text(&self) -> String {
        let shown = |value: &Value| match value {
            Value::Null => "not stated".to_owned(),
            Value::String(text) if text.is_empty() => "not stated".to_owned(),
            Value::String(text) => say::in_line(text),
            other => other.to_string(),
        };
        format!("{}: {} → {}", self.what, shown(&self.old), shown(&self.new))
    }
}

/// What of the environment is the machine; the rest of it changes from minute to minute.
const OF_MACHINE: [&str; 8] = [
    "cpu_model",
    "kernel",
    "online_cores",
    "allowed_cores",
    "memory_bytes",
    "clock_source",
    "virtual_machine",
    "architecture",
];
/// What of a plan says nothing about what was measured.
const NOT_MEASURED: [&str; 2] = ["name", "note"];

/// What differs between the machines, the programs and the settings of two runs of one kind.
pub fn differences(old: &RunRecord, new: &RunRecord) -> Vec<Difference> {
    let (was, is) = (&old.head, &new.head);
    let mut all = Vec::new();
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (machine, other_machine) = (read(&was.environment), read(&is.environment));
    for name in OF_MACHINE {
        let of = |machine: &Value| machine.get(name).cloned().unwrap_or_default();
        let what = format!("machine, {}", name.replace('_', " "));
        all.extend(Difference::of(what, of(&machine), of(&other_machine)));
    }
    all.extend(Difference::of("Stepladder's version", json!(was.stepladder), json!(is.stepladder)));
    all.extend(Difference::of("commit of the folder", json!(was.git), json!(is.git)));
    all.extend(Difference::of("subject", json!(was.subject), json!(is.subject)));
    all.extend(Difference::of("scenario", json!(was.scenario), json!(is.scenario)));
    all.extend(settings_that_differ(&read(&was.plan), &read(&is.plan)));
    all
}

/// The settings in which two plans differ, as far as they say what is measured.
pub fn settings_that_differ(old: &Value, new: &Value) -> Vec<Difference> {
    let (mut plan, mut other_plan) = (old.clone(), new.clone());
    for plan in [&mut plan, &mut other_plan] {
        if let Value::Object(fields) = plan {
            NOT_MEASURED.iter().for_each(|name| drop(fields.remove(*name)));
        }
    }
    let mut found = Vec::new();
    leaves("", &plan, &other_plan, &mut found);
    found
}

/// The settings that differ, by their paths.
fn leaves(path: &str, old: &Value, new: &Value, found: &mut Vec<Difference>) {
    let (Value::Object(was), Value::Object(is)) = (old, new) else {
        let what = if path.is_empty() { "plan" } else { path };
        found.extend(Difference::of(what, old.clone(), new.clone()));
        return;
    };
    let names = was.keys().chain(is.keys().filter(|name| !was.contains_key(*name)));
    for name in names {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let of = |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
        leaves(&path, &of(was), &of(is), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_apart_down_to_their_leaves() {
        let mut found = Vec::new();
        let old = json!({"a": 1, "ladder": {"hold": 5, "rungs": [1, 2]}, "gone": true});
        let new = json!({"a": 1, "ladder": {"hold": 6, "rungs": [1, 2]}, "fresh": "x"});
        leaves("", &old, &new, &mut found);
        let texts: Vec<String> = found.iter().map(Difference::as_text).collect();
        assert_eq!(texts, ["ladder.hold: 5 → 6", "gone: true → not stated", "fresh: not stated → x"]);
    }
}
