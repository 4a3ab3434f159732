//! Planted runs of client libraries, for tests here and in crates that show them.

#![allow(clippy::unwrap_used, reason = "only tests use it")]

use std::sync::Arc;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde_json::{Value, json};

use super::{Cell, CellKey, Run};

/// First and last line of a run of so many operations.
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
