//! A comparison of client libraries as `bench --json` and the page have it. Additions are free, other changes are not.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use ts_rs::TS;

use super::figures::{Cell, Report, Run};
use super::heap::Heap;
use super::{limits, sweep};
use ladder::Conclusion;

/// Client libraries side by side on one server.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Comparison {
    /// of this contract: 1
    pub schema: u32,
    /// `in-flight`
    pub subject: String,
    /// the server
    pub target: String,
    /// operations of a run, its warm-up included; null where runs differ
    pub total: Option<u64>,
    /// a client at a task each, task by task
    pub cells: Vec<CellFigures>,
    /// of clients that were profiled
    pub profiles: Vec<ProfileFigures>,
    /// what follows from six or more numbers in flight, lengths or totals
    pub conclusions: Vec<Conclusion>,
    /// in sentences: why some of these figures may not be compared, or mean less than they seem to
    pub limits: Vec<String>,
}

/// What one client did of one task.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct CellFigures {
    /// as the user named it
    pub client: String,
    /// with its version
    pub library: Option<String>,
    /// with its version
    pub runtime: Option<String>,
    /// version of the server, where the client knows it
    pub member_version: Option<String>,
    /// `get`, `set`, `mix`
    pub op: String,
    /// length of each value
    pub value_bytes: u64,
    /// a number, or `unlimited`
    pub in_flight: String,
    /// operations of a run, its warm-up included
    pub total: u64,
    /// how often it was done
    pub runs: usize,
    /// mean of the runs
    pub ops_per_s: f64,
    /// of the runs; 0 below two
    pub ops_per_s_stddev: f64,
    /// run by run
    pub rates_per_s: Vec<f64>,
    /// of all runs together
    pub latency_ns: LatencyFigures,
    /// CPU of the client
    pub cpu_ns_per_op: f64,
    /// cores that the client used
    pub cpu_cores: f64,
    /// most memory of the client in a run
    pub rss_peak_bytes: u64,
    /// CPU of the server; null where it is not known
    pub member_cpu_ns_per_op: Option<f64>,
    /// memory of the server behind the last run
    pub member_rss_bytes: Option<u64>,
    /// what an operation costs the benchmark itself
    pub own_overhead_ns_per_op: f64,
    /// of all measured parts
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
    /// why the last run did not reach its total: `signal`, `memory`
    pub stopped: Option<String>,
    /// of all runs
    pub errors: Vec<FirstError>,
    /// against the first client of the same task; null for that client and below two blocks
    pub ratio: Option<RateRatio>,
    /// how much the runtime itself held operations up
    pub fitness: RuntimeFitness,
}

/// Latencies from start to result.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct LatencyFigures {
    /// half of the operations took no longer
    pub p50: u64,
    /// 90 %
    pub p90: u64,
    /// 99 %
    pub p99: u64,
    /// 99.9 %
    pub p999: u64,
    /// the longest
    pub max: u64,
    /// of all
    pub mean: f64,
    /// how many
    pub count: u64,
}

/// Errors of one cause.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct FirstError {
    /// `timeout`, `wrong`, `stopped`, or what the language calls it
    pub cause: String,
    /// how many
    pub count: u64,
    /// words of the first; text, never markup
    pub first: String,
}

/// Rates against another client's, block by block.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct RateRatio {
    /// the other client
    pub to: String,
    /// geometric
    pub mean: f64,
    /// of the 95 % interval
    pub low: f64,
    /// of the 95 % interval
    pub high: f64,
}

/// How much the runtime itself held operations up, in all runs. What it does not say is null.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct RuntimeFitness {
    /// how much later than due a timer ran: the worst run's p99
    pub loop_delay_p99_ns: Option<u64>,
    /// at worst
    pub loop_delay_max_ns: Option<u64>,
    /// share of the time in which it paused to collect garbage
    pub gc_share: Option<f64>,
    /// the longest pause
    pub gc_pause_max_ns: Option<u64>,
    /// pauses in all
    pub gc_count: Option<u64>,
    /// the most at the end of a run
    pub heap_bytes: Option<u64>,
}

/// Where the time, or the memory, of a client went.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct ProfileFigures {
    /// `cpu`, `alloc`
    pub subject: String,
    /// `µs`, `bytes`
    pub unit: String,
    /// as the user named it
    pub client: String,
    /// the task
    pub op: String,
    /// the task
    pub value_bytes: u64,
    /// the task
    pub in_flight: String,
    /// in `unit`
    pub total: u64,
    /// by kind; they add up to 1
    pub shares: BTreeMap<String, f64>,
    /// what was alive behind the measured part, where the client wrote a heap snapshot
    pub heap: Option<Heap>,
    /// the functions that cost most
    pub top: Vec<ProfileFunction>,
}

/// A function of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct ProfileFunction {
    /// its name; text, never markup
    pub function: String,
    /// what it belongs to
    pub kind: String,
    /// with what it calls outside user code
    pub share: f64,
    /// alone
    pub share_without_callees: f64,
    /// with what it calls outside user code, in the unit of the profile
    pub weight: u64,
}

impl Report {
    /// As `bench --json` and the page have it.
    pub fn contract(&self) -> Comparison {
        Comparison {
            schema: 1,
            subject: "in-flight".to_owned(),
            target: self.target.clone(),
            total: self.total(),
            cells: self.cells.iter().map(|cell| cell.figures(self.first_of(cell))).collect(),
            profiles: self.profiles.iter().map(super::Profile::figures).collect(),
            conclusions: sweep::conclusions(self),
            limits: limits::of(self),
        }
    }
}

impl Cell {
    fn figures(&self, first: &Cell) -> CellFigures {
        let (rate, latency) = (self.rate_per_s(), self.latency());
        let at = |share: f64| latency.value_at_quantile(share);
        let ratio = (!std::ptr::eq(first, self)).then(|| self.ratio_to(first)).flatten();
        let last = self.runs().last();
        CellFigures {
            client: self.client.clone(),
            library: last.map(|run| run.client.clone()),
            runtime: last.map(|run| run.runtime.clone()),
            member_version: last.and_then(|run| run.member.clone()),
            op: self.key.op.clone(),
            value_bytes: self.key.value_bytes,
            in_flight: self.key.in_flight.clone(),
            total: self.key.total,
            runs: self.runs.len(),
            ops_per_s: rate.mean,
            ops_per_s_stddev: rate.stddev,
            rates_per_s: self.runs().map(Run::rate_per_s).collect(),
            latency_ns: LatencyFigures {
                p50: at(0.5),
                p90: at(0.9),
                p99: at(0.99),
                p999: at(0.999),
                max: latency.max(),
                mean: latency.mean(),
                count: latency.len(),
            },
            cpu_ns_per_op: self.cpu_ns(),
            cpu_cores: self.cores(),
            rss_peak_bytes: self.rss_peak_bytes(),
            member_cpu_ns_per_op: self.member_cpu_ns(),
            member_rss_bytes: last.and_then(|run| run.member_rss_bytes),
            own_overhead_ns_per_op: self.own_overhead_ns(),
            ops: self.sum(|run| run.ops),
            failed: self.sum(|run| run.failed),
            unknown: self.sum(|run| run.unknown),
            hits: self.sum(|run| run.hits),
            misses: self.sum(|run| run.misses),
            wrong: self.sum(|run| run.wrong),
            stopped: last.and_then(|run| run.stopped.clone()),
            errors: self.runs().flat_map(|run| &run.errors).map(first_error).collect(),
            ratio: ratio.map(|ratio| RateRatio {
                to: first.client.clone(),
                mean: ratio.mean,
                low: ratio.low,
                high: ratio.high,
            }),
            fitness: self.fitness(),
        }
    }

    fn fitness(&self) -> RuntimeFitness {
        let most = |of: fn(&Run) -> Option<u64>| self.runs().filter_map(of).max();
        let sum = |of: fn(&Run) -> Option<u64>| self.runs().map(of).sum::<Option<u64>>();
        let elapsed_s: f64 = self.runs().map(|run| run.elapsed_s).sum();
        let paused_ns = sum(|run| run.fitness.gc_pause_ns);
        RuntimeFitness {
            loop_delay_p99_ns: most(|run| run.fitness.loop_delay_p99_ns),
            loop_delay_max_ns: most(|run| run.fitness.loop_delay_max_ns),
            gc_share: paused_ns.filter(|_| elapsed_s > 0.0).map(|ns| ns as f64 / 1e9 / elapsed_s),
            gc_pause_max_ns: most(|run| run.fitness.gc_pause_max_ns),
            gc_count: sum(|run| run.fitness.gc_count),
            heap_bytes: most(|run| run.fitness.heap_bytes),
        }
    }
}

/// What is missing is empty: the client of a user's own may leave it out.
fn first_error(error: &Value) -> FirstError {
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    FirstError {
        cause: text("cause"),
        count: error["count"].as_u64().unwrap_or_default(),
        first: text("first"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::Fitness;
    use crate::testing::cell;

    #[test]
    fn the_fitness_of_a_runtime_is_that_of_its_worst_run_and_pauses_add_up() {
        let mut planted = cell("node", &[1000.0, 1000.0]);
        for (at, (_, run)) in planted.runs.iter_mut().enumerate() {
            let at = at as u64;
            Arc::make_mut(run).fitness = Fitness {
                loop_delay_max_ns: Some(10 + at),
                gc_pause_ns: Some(100_000_000 * (1 + at)),
                gc_count: Some(3),
                ..Fitness::default()
            };
        }
        let fitness = planted.fitness();
        assert_eq!((fitness.loop_delay_max_ns, fitness.loop_delay_p99_ns), (Some(11), None));
        // 0.3 s of 2 s
        assert!((fitness.gc_share.unwrap() - 0.15).abs() < 1e-9, "{fitness:?}");
        assert_eq!(fitness.gc_count, Some(6));
    }

    #[test]
    fn the_first_client_has_no_ratio_and_the_others_have_theirs() {
        let cells = vec![cell("rust", &[1000.0, 2000.0]), cell("node", &[500.0, 1000.0])];
        let report = Report { target: "null:".to_owned(), cells, profiles: Vec::new() };
        let json = serde_json::to_value(report.contract()).unwrap();
        assert_eq!(json["cells"][0]["ratio"], json!(null));
        assert_eq!(json["cells"][1]["ratio"]["to"], "rust");
        assert!((json["cells"][1]["ratio"]["mean"].as_f64().unwrap() - 0.5).abs() < 1e-6);
        assert_eq!(json["total"], 1000);
    }
}
