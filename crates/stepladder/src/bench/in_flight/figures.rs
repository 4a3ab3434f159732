//! What the runs of a client come to: rates, latencies, CPU, and the ratio of clients with its interval.

use std::fmt;
use std::io::Read as _;

use anyhow::Context as _;
use base64::Engine as _;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::{Value, json};

use super::member::Usage;
use super::profile::Profile;
use super::statistics::{Ratio, Spread, spread};
use super::sweep;

/// What was asked of every client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bench) struct CellKey {
    pub op: String,
    pub value_bytes: u64,
    /// a number, or `unlimited`
    pub in_flight: String,
    /// operations of a run, its warm-up included
    pub total: u64,
}

impl CellKey {
    /// From a plan that a runner was given.
    pub(super) fn of_plan(plan: &Value) -> CellKey {
        let in_flight = &plan["in_flight"];
        CellKey {
            op: plan["op"].as_str().unwrap_or_default().to_owned(),
            value_bytes: plan["value_bytes"].as_u64().unwrap_or_default(),
            in_flight: in_flight.as_str().map_or_else(|| in_flight.to_string(), str::to_owned),
            total: plan["total"].as_u64().unwrap_or_default(),
        }
    }

    pub(super) fn is_unlimited(&self) -> bool {
        self.in_flight == "unlimited"
    }
}

impl fmt::Display for CellKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}, {} in flight", self.op, bytes(self.value_bytes), self.in_flight)
    }
}

/// A length for people.
pub(super) fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        count if count.is_multiple_of(1024) && count < 1 << 20 => format!("{} KB", count / 1024),
        count => format!("{:.1} KB", count as f64 / 1024.0),
    }
}

/// One run of a client.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Run {
    pub client: String,
    pub runtime: String,
    pub member: Option<String>,
    pub own_overhead_ns: f64,
    pub ops: u64,
    pub failed: u64,
    pub unknown: u64,
    pub hits: u64,
    pub misses: u64,
    pub wrong: u64,
    pub elapsed_s: f64,
    pub cpu_s: f64,
    pub rss_peak_bytes: u64,
    pub member_cpu_s: Option<f64>,
    pub member_rss_bytes: Option<u64>,
    pub latency: Histogram<u64>,
    pub stopped: Option<String>,
    pub errors: Vec<Value>,
    /// the line of that type: the first operations of the measured part
    pub timeline: Option<Value>,
}

impl Run {
    /// From a runner's first and last line. Errors: a field that is missing or impossible.
    pub(super) fn read(start: &Value, end: &Value, member: Option<(Usage, Usage)>) -> anyhow::Result<Run> {
        let count =
            |name: &str| end[name].as_u64().with_context(|| format!("its last line has no count {name:?}"));
        let text = |value: &Value| {
            let part = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
            format!("{} {}", part("name"), part("version")).trim().to_owned()
        };
        let encoded = end["latency"].as_str().context("its last line has no histogram")?;
        let latency = decode(encoded).context("its histogram cannot be read")?;
        let run = Run {
            client: text(&start["client"]),
            runtime: text(&start["runtime"]),
            member: start["member"]["version"].as_str().map(str::to_owned),
            own_overhead_ns: start["own_overhead_ns_per_op"].as_f64().unwrap_or(f64::NAN),
            ops: count("ops")?,
            failed: count("failed")?,
            unknown: count("unknown")?,
            hits: count("hits")?,
            misses: count("misses")?,
            wrong: count("wrong")?,
            elapsed_s: count("elapsed_ns")? as f64 / 1e9,
            cpu_s: (count("cpu_user_ns")? + count("cpu_system_ns")?) as f64 / 1e9,
            rss_peak_bytes: count("rss_peak_bytes")?,
            member_cpu_s: member.map(|(before, after)| (after.cpu_s - before.cpu_s).max(0.0)),
            member_rss_bytes: member.map(|(_, after)| after.rss_bytes),
            latency,
            stopped: end["stopped"].as_str().map(str::to_owned),
            errors: end["errors"].as_array().cloned().unwrap_or_default(),
            timeline: None,
        };
        let ended = count("ok")? + run.failed + run.unknown;
        anyhow::ensure!(
            ended == run.ops && run.latency.len() == run.ops,
            "its counts do not agree: {} operations, {ended} outcomes, {} latencies",
            run.ops,
            run.latency.len(),
        );
        Ok(run)
    }

    pub(super) fn rate_per_s(&self) -> f64 {
        self.ops as f64 / self.elapsed_s
    }
}

/// Cookie and length before the deflated part of the V2 encoding.
const DEFLATED_FROM: usize = 8;
/// Where the inner part holds the ratio between recorded integers and values, a double.
const RATIO: std::ops::Range<usize> = 32..40;
/// The counts of the widest range with 3 digits take less.
const LONGEST_HISTOGRAM: u64 = 4 << 20;

/// A histogram in HdrHistogram's V2 encoding, deflated, base64.
fn decode(text: &str) -> anyhow::Result<Histogram<u64>> {
    let outer = base64::engine::general_purpose::STANDARD.decode(text)?;
    let deflated = outer.get(DEFLATED_FROM..).context("it is too short")?;
    let mut inner = Vec::new();
    ZlibDecoder::new(deflated).take(LONGEST_HISTOGRAM).read_to_end(&mut inner)?;
    // hdr-histogram-js writes the ratio 1 as an integer, which other libraries refuse.
    inner.get_mut(RATIO).context("it is too short")?.copy_from_slice(&1f64.to_be_bytes());
    Deserializer::new().deserialize(&mut inner.as_slice()).map_err(|error| anyhow::anyhow!("{error:?}"))
}

/// What one client did of one task.
#[derive(Debug)]
pub(in crate::bench) struct Cell {
    pub key: CellKey,
    pub client: String,
    /// with their block
    pub(super) runs: Vec<(u32, Run)>,
}

impl Cell {
    pub(super) fn new(key: CellKey, client: &str) -> Cell {
        Cell { key, client: client.to_owned(), runs: Vec::new() }
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().map(|(_, run)| run)
    }

    fn mean(&self, of: impl Fn(&Run) -> f64) -> f64 {
        self.runs().map(of).sum::<f64>() / self.runs.len() as f64
    }

    pub(super) fn rate_per_s(&self) -> Spread {
        spread(&self.runs().map(Run::rate_per_s).collect::<Vec<_>>())
    }

    /// of all runs together
    pub(super) fn latency(&self) -> Histogram<u64> {
        let mut all = Histogram::new_from(&self.runs[0].1.latency);
        for run in self.runs() {
            // A runner may have used other bounds; then what does not fit is cut to them.
            for each in run.latency.iter_recorded() {
                all.saturating_record_n(each.value_iterated_to(), each.count_at_value());
            }
        }
        all
    }

    /// CPU of the client per operation, in ns
    pub(super) fn cpu_ns(&self) -> f64 {
        self.mean(|run| run.cpu_s * 1e9 / run.ops as f64)
    }

    pub(super) fn cores(&self) -> f64 {
        self.mean(|run| run.cpu_s / run.elapsed_s)
    }

    pub(super) fn member_cpu_ns(&self) -> Option<f64> {
        let all: Option<Vec<f64>> =
            self.runs().map(|run| Some(run.member_cpu_s? * 1e9 / run.ops as f64)).collect();
        Some(spread(&all?).mean)
    }

    pub(super) fn rss_peak_bytes(&self) -> u64 {
        self.runs().map(|run| run.rss_peak_bytes).max().unwrap_or_default()
    }

    pub(super) fn own_overhead_ns(&self) -> f64 {
        self.mean(|run| run.own_overhead_ns)
    }

    pub(super) fn sum(&self, of: impl Fn(&Run) -> u64) -> u64 {
        self.runs().map(of).sum()
    }

    /// How this client's rate compares with another's, by pairs of the same block. `None` below two pairs.
    pub(super) fn ratio_to(&self, other: &Cell) -> Option<Ratio> {
        let logs: Vec<f64> = self
            .runs
            .iter()
            .filter_map(|(block, run)| {
                let (_, pair) = other.runs.iter().find(|(own, _)| own == block)?;
                Some((run.rate_per_s() / pair.rate_per_s()).ln())
            })
            .collect();
        Ratio::of_logs(&logs)
    }
}

/// Everything that was measured.
#[derive(Debug)]
pub(in crate::bench) struct Report {
    pub target: String,
    /// those that ran, task by task
    pub cells: Vec<Cell>,
    pub profiles: Vec<Profile>,
}

impl Report {
    /// The operations of a run, where all did the same number.
    pub(super) fn total(&self) -> Option<u64> {
        let total = self.cells.first()?.key.total;
        self.cells.iter().all(|cell| cell.key.total == total).then_some(total)
    }

    /// Whether every operation of every run succeeded.
    pub(in crate::bench) fn is_clean(&self) -> bool {
        self.cells.iter().all(|cell| cell.sum(|run| run.failed + run.unknown) == 0)
    }

    /// The first client's cell of the same task: what the others are compared with.
    pub(super) fn first_of<'a>(&'a self, cell: &'a Cell) -> &'a Cell {
        self.cells.iter().find(|each| each.key == cell.key).unwrap_or(cell)
    }

    /// The first task of the table in one line.
    pub(super) fn in_one_line(&self) -> String {
        let Some(first) = self.cells.first() else { return "nothing was measured".to_owned() };
        let same = self.cells.iter().filter(|cell| cell.key == first.key);
        let each = |cell: &Cell| format!("{} {:.0}", cell.client, cell.rate_per_s().mean);
        format!("{}: {} operations/s", first.key, same.map(each).collect::<Vec<_>>().join(", "))
    }

    /// The results as JSON. Additions are free, changes are not.
    pub(in crate::bench) fn contract(&self) -> Value {
        let cell = |cell: &Cell| {
            let (rate, latency) = (cell.rate_per_s(), cell.latency());
            let at = |share: f64| latency.value_at_quantile(share);
            let first = self.first_of(cell);
            let ratio = (!std::ptr::eq(first, cell)).then(|| cell.ratio_to(first)).flatten();
            let last = cell.runs().last();
            json!({
                "client": cell.client, "library": last.map(|run| &run.client),
                "runtime": last.map(|run| &run.runtime), "member_version": last.map(|run| &run.member),
                "op": cell.key.op, "value_bytes": cell.key.value_bytes, "in_flight": cell.key.in_flight,
                "total": cell.key.total, "runs": cell.runs().count(), "ops_per_s": rate.mean, "ops_per_s_stddev": rate.stddev,
                "rates_per_s": cell.runs().map(Run::rate_per_s).collect::<Vec<_>>(),
                "latency_ns": {
                    "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p999": at(0.999), "max": latency.max(),
                    "mean": latency.mean(), "count": latency.len(),
                },
                "cpu_ns_per_op": cell.cpu_ns(), "cpu_cores": cell.cores(), "rss_peak_bytes": cell.rss_peak_bytes(),
                "member_cpu_ns_per_op": cell.member_cpu_ns(),
                "member_rss_bytes": last.and_then(|run| run.member_rss_bytes),
                "own_overhead_ns_per_op": cell.own_overhead_ns(),
                "ops": cell.sum(|run| run.ops), "failed": cell.sum(|run| run.failed),
                "unknown": cell.sum(|run| run.unknown), "hits": cell.sum(|run| run.hits),
                "misses": cell.sum(|run| run.misses), "wrong": cell.sum(|run| run.wrong),
                "stopped": last.and_then(|run| run.stopped.as_ref()),
                "errors": cell.runs().flat_map(|run| run.errors.clone()).collect::<Vec<_>>(),
                "ratio": ratio.map(|ratio| json!({
                    "to": first.client, "mean": ratio.mean, "low": ratio.low, "high": ratio.high,
                })),
            })
        };
        json!({
            "schema": 1, "subject": "in-flight", "target": self.target, "total": self.total(),
            "cells": self.cells.iter().map(cell).collect::<Vec<_>>(),
            "profiles": self.profiles.iter().map(Profile::as_json).collect::<Vec<_>>(),
            "conclusions": sweep::conclusions(self).iter().map(sweep::Conclusion::as_json).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

    use super::*;

    pub(in super::super) fn lines(ops: u64, elapsed_s: f64) -> (Value, Value) {
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

    pub(in super::super) fn cell(client: &str, rates_per_s: &[f64]) -> Cell {
        let key = CellKey { op: "get".to_owned(), value_bytes: 3, in_flight: "100".to_owned(), total: 1000 };
        cell_of(client, key, rates_per_s)
    }

    pub(in super::super) fn cell_of(client: &str, key: CellKey, rates_per_s: &[f64]) -> Cell {
        let mut cell = Cell::new(key, client);
        for (block, rate) in rates_per_s.iter().enumerate() {
            let (start, end) = lines(1000, 1000.0 / rate);
            cell.runs.push((block as u32, Run::read(&start, &end, None).unwrap()));
        }
        cell
    }

    #[test]
    fn a_run_is_read_from_its_first_and_last_line() {
        let (start, end) = lines(1000, 0.5);
        let usage = |cpu_s| Usage { cpu_s, rss_bytes: 5 };
        let run = Run::read(&start, &end, Some((usage(1.0), usage(1.25)))).unwrap();
        assert_eq!((run.rate_per_s(), run.cpu_s, run.member_cpu_s), (2000.0, 0.002, Some(0.25)));
        assert_eq!(run.client, "planted 1.2");
    }

    #[test]
    fn counts_that_do_not_agree_are_refused() {
        let check = |name: &str, value: Value, expected: &str| {
            let (start, mut end) = lines(1000, 0.5);
            end[name] = value;
            let error = format!("{:#}", Run::read(&start, &end, None).unwrap_err());
            assert!(error.contains(expected), "{error}");
        };
        check("ops", json!(999), "999 operations, 1000 outcomes, 1000 latencies");
        check("ok", json!(998), "1000 operations, 998 outcomes");
        check("failed", json!(-1), "no count \"failed\"");
        check("latency", json!("????"), "Invalid symbol");
        check("latency", json!("AAAA"), "histogram cannot be read");
        check("cpu_user_ns", Value::Null, "no count \"cpu_user_ns\"");
    }

    #[test]
    fn a_ratio_is_taken_within_blocks_and_its_interval_holds_the_truth() {
        // The machine is twice as fast in the second block; the ratio is 1.5 in all of them.
        let (first, second) = (cell("a", &[100.0, 200.0, 100.0]), cell("b", &[150.0, 300.0, 150.0]));
        let ratio = second.ratio_to(&first).unwrap();
        assert!((ratio.mean - 1.5).abs() < 1e-6 && (ratio.high - ratio.low).abs() < 1e-6, "{ratio:?}");
        assert_eq!(cell("a", &[100.0]).ratio_to(&second), None);
        let noisy = cell("c", &[140.0, 330.0, 160.0]).ratio_to(&first).unwrap();
        assert!(noisy.low < 1.5 && noisy.high > 1.5 && noisy.low < noisy.mean, "{noisy:?}");
    }

    #[test]
    fn the_interval_of_two_equal_clients_rarely_excludes_1() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut excluded = 0;
        for _ in 0..500 {
            let mut rates = || (0..6).map(|_| 100.0 * (0.8 + 0.4 * random.f64())).collect::<Vec<_>>();
            let (a, b) = (rates(), rates());
            let logs = |rates: &[f64]| cell_of_rates(rates);
            let ratio = logs(&a).ratio_to(&logs(&b)).unwrap();
            excluded += usize::from(ratio.low > 1.0 || ratio.high < 1.0);
        }
        assert!((5..=50).contains(&excluded), "{excluded} of 500, 25 are expected");
    }

    /// Without histograms, which take most of the time.
    fn cell_of_rates(rates_per_s: &[f64]) -> Cell {
        let mut cell = cell("planted", &[1.0]);
        let (_, run) = cell.runs.pop().unwrap();
        for (block, rate) in rates_per_s.iter().enumerate() {
            cell.runs.push((block as u32, Run { elapsed_s: run.ops as f64 / rate, ..run.clone() }));
        }
        cell
    }
}
