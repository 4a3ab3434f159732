//! Planted runs of client libraries, for tests here and in crates that show them.

#![allow(clippy::unwrap_used, reason = "only tests use it")]

use std::sync::Arc;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde_json::{Value, json};

use super::{Cell, CellKey, Note, Run, Usage};

/// The first and the last line of a run with this many operations.
pub fn lines(ops: u64, elapsed_s: f64) -> (Value, Value) {
    let mut latency = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    (0..ops).for_each(|i| latency.record(1000 * (i + 1)).unwrap());
    let mut encoded = Vec::new();
    V2DeflateSerializer::new().serialize(&latency, &mut encoded).unwrap();
    let start = json!({
        "type": "start", "format": 1, "client": {"name": "planted", "version": "1.2"},
        "runtime": {"name": "none", "version": "0"}, "member": {"version": "5.5.0"}, "plan": {},
        "own_overhead_ns_per_op": 80,
    });
    let end = json!({
        "type": "end", "elapsed_ns": (elapsed_s * 1e9) as u64, "ops": ops, "ok": ops, "failed": 0, "unknown": 0,
        "hits": ops, "misses": 0, "wrong": 0, "cpu_user_ns": ops * 1500, "cpu_system_ns": ops * 500,
        "latency": base64::engine::general_purpose::STANDARD.encode(encoded),
        "rss_bytes": 1, "rss_peak_bytes": 8 << 20, "runtime": {}, "errors": [],
    });
    (start, end)
}

/// A client that gets 3 B, once per rate.
pub fn cell(client: &str, rates_per_s: &[f64]) -> Cell {
    let key = CellKey { op: "get".to_owned(), value_bytes: 3, in_flight: "100".to_owned(), total: 1000 };
    cell_of(client, key, rates_per_s)
}

/// A client at a task, once per rate.
pub fn cell_of(client: &str, key: CellKey, rates_per_s: &[f64]) -> Cell {
    let mut cell = Cell::new(key, client);
    for (block, rate) in rates_per_s.iter().enumerate() {
        let (start, end) = lines(1000, 1000.0 / rate);
        cell.runs.push((block as u32, Arc::new(Run::read(&start, &end).unwrap())));
    }
    cell
}

/// A process as it is planted: a second of warm-up, then the same rate throughout.
#[derive(Clone, Debug)]
pub struct Plant<'a> {
    /// as the user named it
    pub client: &'a str,
    /// the task
    pub key: CellKey,
    /// the how-manieth row of the table
    pub cell: u64,
    /// each block has every client and task once
    pub block: u64,
    /// operations of each second
    pub ops_per_s: u64,
    /// of the measured part
    pub seconds: u64,
    /// half of the operations take less
    pub p50_ns: u64,
    /// operations that fail in the last second
    pub failed: u64,
    /// what the first of them says
    pub error: &'a str,
    /// it tells of an event loop and of a garbage collector
    pub has_runtime: bool,
}

/// A line of a process, or a note beside it.
pub struct PlantedLine {
    /// it is a note
    pub is_note: bool,
    /// as it is stored
    pub text: String,
}

/// Everything that is stored of a process, in its order: the note of its beginning, start, seconds, end, and the server's notes.
pub fn process(plant: &Plant<'_>) -> Vec<PlantedLine> {
    let Plant { client, key, ops_per_s, seconds, p50_ns, failed, .. } = plant;
    let note = |note: Note| PlantedLine { is_note: true, text: note.text() };
    let line = |value: Value| PlantedLine { is_note: false, text: value.to_string() };
    let served = |is_end, cpu_s| note(Note::Server { is_end, usage: Usage { cpu_s, rss_bytes: 30 << 20 } });
    let in_flight =
        key.in_flight.parse::<u64>().map_or_else(|_| json!(key.in_flight), |number| json!(number));
    let plan = json!({
        "target": "redis://127.0.0.1:6379", "op": key.op, "value_bytes": key.value_bytes, "total": key.total,
        "in_flight": in_flight,
    });
    let ops = ops_per_s * seconds;
    let mut latency = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    // Even up to twice the median, and one in 128 eight times as long.
    for at in 0..128 {
        let ns = if at == 127 { p50_ns * 8 } else { p50_ns * (at + 1) / 64 };
        latency.record_n(ns, ops / 128 + u64::from(at < ops % 128)).unwrap();
    }
    let mut encoded = Vec::new();
    V2DeflateSerializer::new().serialize(&latency, &mut encoded).unwrap();
    let runtime = |seconds: u64| match plant.has_runtime {
        true => json!({
            "loop_delay_p99_ns": p50_ns / 8, "loop_delay_max_ns": p50_ns / 2, "gc_pause_ns": seconds * 12_000_000,
            "gc_pause_max_ns": 3_000_000, "gc_count": seconds * 9, "heap_bytes": 20 << 20,
        }),
        false => json!({}),
    };
    let second = |phase: &str, at_s: u64, failed: u64| {
        line(json!({
            "type": "second", "phase": phase, "at_ns": at_s * 1_000_000_000, "ops": ops_per_s, "ok": ops_per_s - failed,
            "failed": failed, "unknown": 0, "hits": ops_per_s - failed, "misses": 0, "wrong": 0, "p50_ns": p50_ns,
            "p99_ns": p50_ns * 2, "max_ns": p50_ns * 8, "in_flight": in_flight, "runtime": runtime(1),
        }))
    };
    let mut all = vec![
        note(Note::Process {
            cell: plant.cell,
            block: plant.block,
            client: (*client).to_owned(),
            plan: plan.clone(),
            profile: None,
        }),
        line(json!({
            "type": "start", "format": 1, "client": {"name": format!("{client}-library"), "version": "1.2"},
            "runtime": {"name": client, "version": "20.1"}, "member": {"version": "7.0.15"}, "plan": plan,
            "own_overhead_ns_per_op": 80,
        })),
        second("warmup", 1, 0),
        served(false, 1.0),
    ];
    all.extend((1..=*seconds).map(|at| second("measure", 1 + at, if at == *seconds { *failed } else { 0 })));
    let errors = if *failed > 0 {
        json!([{ "cause": "timeout", "count": failed, "first": plant.error }])
    } else {
        json!([])
    };
    all.push(line(json!({
        "type": "end", "elapsed_ns": seconds * 1_000_000_000, "ops": ops, "ok": ops - failed, "failed": failed, "unknown": 0,
        "hits": ops - failed, "misses": 0, "wrong": 0, "cpu_user_ns": seconds * 600_000_000, "cpu_system_ns": seconds * 200_000_000,
        "latency": base64::engine::general_purpose::STANDARD.encode(encoded), "rss_bytes": 60 << 20,
        "rss_peak_bytes": 64 << 20, "runtime": runtime(*seconds), "errors": errors,
    })));
    all.push(served(true, 1.0 + 0.4 * *seconds as f64));
    all
}
