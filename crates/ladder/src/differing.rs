//! What differs between two stored runs besides their figures.
//!
//! Shown before any figure, because it is the first suspect for a difference between them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ts_rs::TS;

/// Something that is not the same in both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Difference {
    /// what, in words or as the path of a setting
    pub what: String,
    /// as it was, or A's
    #[ts(type = "unknown")]
    pub old: Value,
    /// as it is, or B's
    #[ts(type = "unknown")]
    pub new: Value,
}

impl Difference {
    /// `None` where both are the same.
    pub fn of(what: impl Into<String>, old: Value, new: Value) -> Option<Difference> {
        (old != new).then(|| Difference { what: what.into(), old, new })
    }
}

/// Where the figures of a run come from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// version of Stepladder
    pub stepladder: String,
    /// commit of the folder that it was started in
    pub git: Option<String>,
    /// the server, as the user wrote it
    pub subject: String,
    /// path of the scenario file
    pub scenario: Option<String>,
    /// all settings
    pub plan: Value,
    /// the machine
    pub environment: Value,
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
/// What differs besides machine and settings, by these names.
pub(crate) const VERSION: &str = "Stepladder's version";
pub(crate) const COMMIT: &str = "commit of the folder";
pub(crate) const SCENARIO: &str = "scenario";
/// What of a plan says nothing about what was measured.
const NOT_MEASURED: [&str; 2] = ["name", "note"];

/// What differs between the machines, the programs and the settings of two runs of one kind.
pub fn differences(old: &Origin, new: &Origin) -> Vec<Difference> {
    let mut all = Vec::new();
    for name in OF_MACHINE {
        let of = |origin: &Origin| origin.environment.get(name).cloned().unwrap_or_default();
        let what = format!("machine, {}", name.replace('_', " "));
        all.extend(Difference::of(what, of(old), of(new)));
    }
    all.extend(Difference::of(VERSION, json!(old.stepladder), json!(new.stepladder)));
    all.extend(Difference::of(COMMIT, json!(old.git), json!(new.git)));
    all.extend(Difference::of("subject", json!(old.subject), json!(new.subject)));
    all.extend(Difference::of(SCENARIO, json!(old.scenario), json!(new.scenario)));
    all.extend(settings_that_differ(&old.plan, &new.plan));
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
        let old = json!({"a": 1, "name": "x", "ladder": {"hold": 5, "rungs": [1, 2]}, "gone": true});
        let new = json!({"a": 1, "name": "y", "ladder": {"hold": 6, "rungs": [1, 2]}, "fresh": "x"});
        let mut found = settings_that_differ(&old, &new);
        // The order of an object's keys depends on the reader.
        found.sort_by(|one, other| one.what.cmp(&other.what));
        let one = |what: &str, old: Value, new: Value| Difference { what: what.to_owned(), old, new };
        let expected = [
            one("fresh", Value::Null, json!("x")),
            one("gone", json!(true), Value::Null),
            one("ladder.hold", json!(5), json!(6)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn machines_and_programs_are_told_apart_but_not_what_changes_from_minute_to_minute() {
        let origin = |cores: u32, load: f64, version: &str| Origin {
            stepladder: version.to_owned(),
            environment: json!({ "online_cores": cores, "load_average": load }),
            ..Origin::default()
        };
        assert_eq!(differences(&origin(2, 0.1, "1"), &origin(2, 5.0, "1")), []);
        let found = differences(&origin(2, 0.1, "1"), &origin(4, 0.1, "2"));
        let what: Vec<&str> = found.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(what, ["machine, online cores", "Stepladder's version"]);
    }
}
