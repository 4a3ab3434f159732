//! The figures of tick logs as JSON. Additions are free, changes are not.

use std::io;
use std::path::PathBuf;

use measure::TickCounts;
use serde_json::{Map, Value, json};

use super::Log;

pub(super) fn of(logs: &[Log], unreadable: &[(&PathBuf, io::Error)]) -> Value {
    let unreadable: Vec<Value> = unreadable
        .iter()
        .map(|(path, error)| json!({ "path": path.display().to_string(), "reason": error.to_string() }))
        .collect();
    json!({ "schema": 1, "files": logs.iter().map(file).collect::<Vec<_>>(), "unreadable": unreadable })
}

fn file(log: &Log) -> Map<String, Value> {
    let summary = &log.summary;
    let classes = summary.classes();
    let path = json!({ "path": log.path.display().to_string() });
    let more = json!({
        "classes_from": if summary.has_counters() { "counters" } else { "histogram" },
        "on_time_ms": [classes.from_ms, classes.to_ms],
        "tick_rate_hz": summary.tick_rate_hz(),
        "interval_ns": summary.interval.as_ref().and_then(|interval| interval.summary()),
        "busy_ns": summary.busy.as_ref().and_then(|busy| busy.summary()),
        "lateness_ns": summary.lateness.as_ref().and_then(|lateness| lateness.summary()),
        "zero_ms": summary.zero_ms(),
        "length_s": summary.span_s(),
        "seconds": summary.seconds,
        "lines": summary.lines,
        "malformed_lines": summary.malformed_examples.iter()
            .map(|malformed| json!({ "line": malformed.line, "reason": malformed.reason }))
            .collect::<Vec<_>>(),
        "mixed_runs": summary.mixed_examples.iter()
            .map(|mixed| json!({ "line": mixed.line, "reason": mixed.reason }))
            .collect::<Vec<_>>(),
        "disagreement": summary.disagreement().map(|of| json!({
            "counters": classes_of(&of.counted), "histogram": classes_of(&of.histogram),
        })),
        "other_titles": summary.other_titles,
    });
    let parts = [path, json!(summary.figures()), more];
    parts.into_iter().filter_map(|part| part.as_object().cloned()).flatten().collect()
}

fn classes_of(counts: &TickCounts) -> Value {
    json!({ "on_time": counts.on_time, "over": counts.over, "under": counts.under, "ticks": counts.due })
}
