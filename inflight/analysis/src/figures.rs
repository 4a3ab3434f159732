//! The results of a client's runs: rates, latencies, CPU, and the ratio of clients with its interval.

use std::fmt;
use std::io::Read as _;
use std::sync::Arc;

use base64::Engine as _;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use measure::distribution::read_v2;
use serde_json::Value;

use super::curve::whole;
use super::error::LineError;
use super::lines::Usage;
use super::profile::Profile;
use super::statistics::{Ratio, Spread, spread};

/// What was asked of every client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellKey {
    /// `get`, `set`, `mix`
    pub op: String,
    /// length of each value
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

    /// All operations start at once.
    pub fn is_unlimited(&self) -> bool {
        self.in_flight == "unlimited"
    }
}

impl fmt::Display for CellKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}, {} in flight", self.op, bytes(self.value_bytes), self.in_flight)
    }
}

/// A length for people.
pub fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        count if count.is_multiple_of(1024) && count < 1 << 20 => format!("{} KB", count / 1024),
        count => format!("{:.1} KB", count as f64 / 1024.0),
    }
}

/// One run of a client.
#[derive(Clone, Debug)]
pub struct Run {
    /// the library with its version
    pub client: String,
    /// the runtime with its version
    pub runtime: String,
    /// version of the server, where the client knows it
    pub member: Option<String>,
    /// what an operation costs the benchmark itself; NaN where it was not said
    pub own_overhead_ns: f64,
    /// operations of the measured part
    pub ops: u64,
    /// not carried out, or with a wrong value
    pub failed: u64,
    /// carried out or not
    pub unknown: u64,
    /// gets with the right value
    pub hits: u64,
    /// gets that found nothing
    pub misses: u64,
    /// gets with a wrong value, which count as failed
    pub wrong: u64,
    /// of the measured part
    pub elapsed_s: f64,
    /// of the process in the measured part
    pub cpu_s: f64,
    /// most memory since the process began
    pub rss_peak_bytes: u64,
    /// of the server in the measured part
    pub member_cpu_s: Option<f64>,
    /// of the server behind it
    pub member_rss_bytes: Option<u64>,
    /// ns from start to result of every operation
    pub latency: Histogram<u64>,
    /// why it did not reach its total
    pub stopped: Option<String>,
    /// by cause, the most frequent first
    pub errors: Vec<Value>,
    /// of the runtime over the measured part
    pub fitness: Fitness,
    /// the line of that type: the first operations of the measured part
    pub timeline: Option<Value>,
}

/// How much the runtime itself held operations up. What it does not say is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fitness {
    /// how much later than due a timer ran
    pub loop_delay_p99_ns: Option<u64>,
    /// at worst
    pub loop_delay_max_ns: Option<u64>,
    /// all pauses to collect garbage
    pub gc_pause_ns: Option<u64>,
    /// the longest of them
    pub gc_pause_max_ns: Option<u64>,
    /// how many
    pub gc_count: Option<u64>,
    /// at the end
    pub heap_bytes: Option<u64>,
}

impl Fitness {
    fn read(runtime: &Value) -> Fitness {
        let of = |name: &str| whole(&runtime[name]);
        Fitness {
            loop_delay_p99_ns: of("loop_delay_p99_ns"),
            loop_delay_max_ns: of("loop_delay_max_ns"),
            gc_pause_ns: of("gc_pause_ns"),
            gc_pause_max_ns: of("gc_pause_max_ns"),
            gc_count: of("gc_count"),
            heap_bytes: of("heap_bytes"),
        }
    }
}

impl Run {
    /// From a runner's first and last line. Errors: a field that is missing or impossible.
    pub fn read(start: &Value, end: &Value) -> Result<Run, LineError> {
        let wrong = |detail: String| LineError::Figures(detail);
        let count = |name: &str| {
            end[name].as_u64().ok_or_else(|| wrong(format!("its last line has no count {name:?}")))
        };
        let text = |value: &Value| {
            let part = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
            format!("{} {}", part("name"), part("version")).trim().to_owned()
        };
        let encoded =
            end["latency"].as_str().ok_or_else(|| wrong("its last line has no histogram".to_owned()))?;
        let latency = decode(encoded).map_err(|why| wrong(format!("its histogram cannot be read: {why}")))?;
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
            cpu_s: (count("cpu_user_ns")?.saturating_add(count("cpu_system_ns")?)) as f64 / 1e9,
            rss_peak_bytes: count("rss_peak_bytes")?,
            member_cpu_s: None,
            member_rss_bytes: None,
            latency,
            stopped: end["stopped"].as_str().map(str::to_owned),
            errors: end["errors"].as_array().cloned().unwrap_or_default(),
            fitness: Fitness::read(&end["runtime"]),
            timeline: None,
        };
        let ended = count("ok")?.saturating_add(run.failed).saturating_add(run.unknown);
        if ended != run.ops || run.latency.len() != run.ops {
            return Err(wrong(format!(
                "its counts do not agree: {} operations, {ended} outcomes, {} latencies",
                run.ops,
                run.latency.len(),
            )));
        }
        // Each is a subset of the operations, and they are summed.
        for (name, part) in [("hits", run.hits), ("misses", run.misses), ("wrong", run.wrong)] {
            if part > run.ops {
                return Err(wrong(format!(
                    "its counts do not agree: {} operations, of them {name}: {part}",
                    run.ops
                )));
            }
        }
        Ok(run)
    }

    /// What the server used between these readings.
    pub(super) fn served(&mut self, before: Usage, after: Usage) {
        self.member_cpu_s = Some((after.cpu_s - before.cpu_s).max(0.0));
        self.member_rss_bytes = Some(after.rss_bytes);
    }

    /// Operations per second.
    pub fn rate_per_s(&self) -> f64 {
        self.ops as f64 / self.elapsed_s
    }

    /// Whether an interruption ended it.
    pub(super) fn is_cut(&self) -> bool {
        self.stopped.as_deref() == Some("signal")
    }
}

/// Cookie and length before the deflated part of the V2 encoding.
const DEFLATED_FROM: usize = 8;
/// Where the inner part holds the ratio between recorded integers and values, a double.
const RATIO: std::ops::Range<usize> = 32..40;
/// The counts of the widest range with 3 digits take less.
const LONGEST_HISTOGRAM: u64 = 4 << 20;

/// A histogram in HdrHistogram's V2 encoding, deflated, base64.
fn decode(text: &str) -> Result<Histogram<u64>, String> {
    let outer = base64::engine::general_purpose::STANDARD.decode(text).map_err(|error| error.to_string())?;
    let deflated = outer.get(DEFLATED_FROM..).ok_or("it is too short")?;
    let mut inner = Vec::new();
    let mut inflating = ZlibDecoder::new(deflated).take(LONGEST_HISTOGRAM);
    inflating.read_to_end(&mut inner).map_err(|error| error.to_string())?;
    // hdr-histogram-js writes the ratio 1 as an integer, which other libraries refuse.
    inner.get_mut(RATIO).ok_or("it is too short")?.copy_from_slice(&1f64.to_be_bytes());
    read_v2(&inner).map_err(|error| error.to_string())
}

/// What one client did of one task.
#[derive(Debug)]
pub struct Cell {
    /// the task
    pub key: CellKey,
    /// as the user named it
    pub client: String,
    /// with their block
    pub runs: Vec<(u32, Arc<Run>)>,
}

impl Cell {
    /// Without any run yet.
    pub fn new(key: CellKey, client: &str) -> Cell {
        Cell { key, client: client.to_owned(), runs: Vec::new() }
    }

    /// In their order.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().map(|(_, run)| &**run)
    }

    fn mean(&self, of: impl Fn(&Run) -> f64) -> f64 {
        self.runs().map(of).sum::<f64>() / self.runs.len() as f64
    }

    /// Operations per second, over the runs.
    pub fn rate_per_s(&self) -> Spread {
        spread(&self.runs().map(Run::rate_per_s).collect::<Vec<_>>())
    }

    /// Of all runs together, ns.
    pub fn latency(&self) -> Histogram<u64> {
        let mut all = Histogram::new_from(&self.runs[0].1.latency);
        for run in self.runs() {
            // A runner may have used other bounds; values that do not fit are clamped.
            for each in run.latency.iter_recorded() {
                all.saturating_record_n(each.value_iterated_to(), each.count_at_value());
            }
        }
        all
    }

    /// CPU of the client per operation, ns.
    pub fn cpu_ns(&self) -> f64 {
        self.mean(|run| run.cpu_s * 1e9 / run.ops as f64)
    }

    /// Cores that the client used, on average.
    pub fn cores(&self) -> f64 {
        self.mean(|run| run.cpu_s / run.elapsed_s)
    }

    /// CPU of the server per operation, ns; `None` where it is not known of every run.
    pub fn member_cpu_ns(&self) -> Option<f64> {
        let all: Option<Vec<f64>> =
            self.runs().map(|run| Some(run.member_cpu_s? * 1e9 / run.ops as f64)).collect();
        Some(spread(&all?).mean)
    }

    /// The most memory that the client had in a run.
    pub fn rss_peak_bytes(&self) -> u64 {
        self.runs().map(|run| run.rss_peak_bytes).max().unwrap_or_default()
    }

    /// What an operation costs the benchmark itself, ns.
    pub fn own_overhead_ns(&self) -> f64 {
        self.mean(|run| run.own_overhead_ns)
    }

    /// Of a count, over the runs.
    pub fn sum(&self, of: impl Fn(&Run) -> u64) -> u64 {
        self.runs().map(of).sum()
    }

    /// How this client's rate compares with another's, by pairs of the same block. `None` below two pairs.
    pub fn ratio_to(&self, other: &Cell) -> Option<Ratio> {
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
#[derive(Debug, Default)]
pub struct Report {
    /// the server
    pub target: String,
    /// those that ran, task by task
    pub cells: Vec<Cell>,
    /// those that were made
    pub profiles: Vec<Profile>,
}

impl Report {
    /// The operations of a run, where all did the same number.
    pub fn total(&self) -> Option<u64> {
        let total = self.cells.first()?.key.total;
        self.cells.iter().all(|cell| cell.key.total == total).then_some(total)
    }

    /// Whether every operation of every run succeeded.
    pub fn is_clean(&self) -> bool {
        self.cells.iter().all(|cell| cell.sum(|run| run.failed + run.unknown) == 0)
    }

    /// The first client's cell of the same task: what the others are compared with.
    pub fn first_of<'a>(&'a self, cell: &'a Cell) -> &'a Cell {
        self.cells.iter().find(|each| each.key == cell.key).unwrap_or(cell)
    }

    /// The first task of the table in one line.
    pub fn in_one_line(&self) -> String {
        let Some(first) = self.cells.first() else { return "nothing was measured".to_owned() };
        let same = self.cells.iter().filter(|cell| cell.key == first.key);
        let each = |cell: &Cell| format!("{} {:.0}", cell.client, cell.rate_per_s().mean);
        format!("{}: {} operations/s", first.key, same.map(each).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{cell, lines};

    #[test]
    fn a_run_is_read_from_its_first_and_last_line() {
        let (start, end) = lines(1000, 0.5);
        let usage = |cpu_s| Usage { cpu_s, rss_bytes: 5 };
        let mut run = Run::read(&start, &end).unwrap();
        run.served(usage(1.0), usage(1.25));
        assert_eq!((run.rate_per_s(), run.cpu_s, run.member_cpu_s), (2000.0, 0.002, Some(0.25)));
        assert_eq!(run.client, "planted 1.2");
    }

    #[test]
    fn counts_that_do_not_agree_are_refused() {
        let check = |name: &str, value: Value, expected: &str| {
            let (start, mut end) = lines(1000, 0.5);
            end[name] = value;
            let error = Run::read(&start, &end).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("ops", json!(999), "999 operations, 1000 outcomes, 1000 latencies");
        check("ok", json!(998), "1000 operations, 998 outcomes");
        check("hits", json!(u64::MAX), "1000 operations, of them hits: 18446744073709551615");
        check("wrong", json!(1001), "1000 operations, of them wrong: 1001");
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
            let run = Run { elapsed_s: run.ops as f64 / rate, ..(*run).clone() };
            cell.runs.push((block as u32, Arc::new(run)));
        }
        cell
    }
}
