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

fn file(log: &Log) -> Value {
    let summary = &log.summary;
    let (counts, classes) = (summary.counts(), summary.classes());
    let histogram: Map<String, Value> =
        summary.histogram.iter().map(|(ms, count)| (ms.to_string(), json!(count))).collect();
    json!({
        "path": log.path.display().to_string(),
        "games": summary.games,
        "due": counts.due,
        "on_time": counts.on_time,
        "over": counts.over,
        "under": counts.under,
        "missed": counts.missed,
        "late_share": counts.late_share(),
        "classes_from": if summary.has_counters() { "counters" } else { "histogram" },
        "on_time_ms": [classes.from_ms, classes.to_ms],
        "tick_rate_hz": summary.tick_rate_hz(),
        "interval_ms": {
            "p50": summary.quantile_ms(0.5),
            "p90": summary.quantile_ms(0.9),
            "p99": summary.quantile_ms(0.99),
            "max": summary.max_ms(),
            "mean": summary.mean_ms(),
        },
        "interval_ns": summary.interval.as_ref().and_then(|interval| interval.summary()),
        "busy_ns": summary.busy.as_ref().and_then(|busy| busy.summary()),
        "lateness_ns": summary.lateness.as_ref().and_then(|lateness| lateness.summary()),
        "zero_ms": summary.zero_ms(),
        "histogram": histogram,
        "length_s": summary.span_s(),
        "seconds": summary.seconds,
        "lines": summary.lines,
        "malformed": summary.malformed,
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
    })
}

fn classes_of(counts: &TickCounts) -> Value {
    json!({ "on_time": counts.on_time, "over": counts.over, "under": counts.under, "ticks": counts.due })
}
