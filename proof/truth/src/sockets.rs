//! Oracles over sockets: the same known answers, from `stepladder climb` against `stepladder serve` on loopback.
//!
//! Waiting times in a queue resemble their predecessors, so that a hold of some minutes scatters by itself, however well it is
//! measured. A row may be off by what its oracle allows, or by three standard deviations of holds as long in virtual time if that
//! is more. The exact values are those of the oracles in virtual time.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use engine::simulation::{Law, simulate_sum};
use measure::{Interval, Phase};
use plan::Arrivals;
use serde_json::Value;

use crate::Row;
use crate::chain::PollLoop;
use crate::http::{Simulated, mean_ms, open, response_ms, times};
use crate::poll_loop::poll_loop;
use crate::queue::one_server;

/// Holds in virtual time that say how much one of them scatters.
const HOLDS: u64 = 24;

/// The rows of a climb of which `--json` is this.
type Rows = Box<dyn Fn(&Value) -> Vec<Row> + Send + Sync>;

/// A server and what is asked of it.
struct Climb {
    id: &'static str,
    serve: &'static str,
    climb: String,
    hold_s: u64,
    rows: Rows,
}

/// What is known of a hold: its name, its exact value, the share that the oracle allows, and how it is read in virtual time.
struct Known {
    name: String,
    unit: &'static str,
    exact: f64,
    allowed: f64,
    /// at `rungs[0]` of `--json`
    real: fn(&Value) -> f64,
    simulated: fn(&Interval) -> f64,
}

impl Known {
    fn row(&self, id: &'static str, rung: &Value, holds: &[Interval]) -> Row {
        let values: Vec<f64> = holds.iter().map(self.simulated).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let by_chance = 3.0 * variance.sqrt() / self.exact;
        let mut row = Row::close(
            (id, &self.name),
            self.unit,
            self.exact,
            (self.real)(rung),
            self.allowed.max(by_chance),
        );
        if by_chance > self.allowed {
            row.allowed += " (3 standard deviations of such holds)";
        }
        row
    }
}

/// `hold`: one in virtual time, by its seed.
fn known_rows(id: &'static str, rung: &Value, known: &[Known], hold: impl Fn(u64) -> Interval) -> Vec<Row> {
    // Without a figure there is nothing to compare.
    let has_any = known.iter().any(|one| (one.real)(rung).is_finite());
    let holds: Vec<Interval> = if has_any { (0..HOLDS).map(hold).collect() } else { Vec::new() };
    known.iter().map(|one| one.row(id, rung, &holds)).collect()
}

fn p99_ms(rung: &Value) -> f64 {
    response(rung, "p99")
}

fn real_mean_ms(rung: &Value) -> f64 {
    response(rung, "mean")
}

/// NaN where it is not stated.
fn response(rung: &Value, figure: &str) -> f64 {
    rung["response_ns"][figure].as_f64().map_or(f64::NAN, |ns| ns / 1e6)
}

fn refused_share(rung: &Value) -> f64 {
    count(rung, "failed") / count(rung, "sent")
}

fn count(rung: &Value, name: &str) -> f64 {
    rung[name].as_f64().unwrap_or(f64::NAN)
}

/// All of them.
fn climbs() -> Vec<Climb> {
    let mut all = Vec::new();
    for connections in [64, 1024] {
        all.push(Climb {
            id: "CO",
            serve: "oracle --freeze 1s --every 10s",
            // A multiple of the ten seconds.
            hold_s: 60,
            climb: format!("--rate 2000 --connections {connections} --patience 60s"),
            rows: Box::new(move |rung| {
                [("p99", 900.0), ("p999", 990.0)]
                    .map(|(figure, exact_ms)| {
                        let name = ("CO", format!("{connections} connections, {figure}"));
                        Row::close(name, "ms", exact_ms, response(rung, figure), 0.01)
                    })
                    .into()
            }),
        });
    }
    for (rate_per_s, hold_s) in [(30, 600), (150, 200), (210, 200), (240, 300), (270, 300), (285, 400)] {
        all.push(Climb {
            id: "POLL",
            serve: "poll-loop --queue 0",
            hold_s,
            climb: format!("--rate {rate_per_s} --patience 60s"),
            rows: Box::new(move |rung| of_poll_loop(rate_per_s, hold_s, rung)),
        });
    }
    for (requesters, exact) in [(1, 30.0), (10, 300.0), (14, 300.0), (20, 300.0)] {
        all.push(Climb {
            id: "POLL-max",
            serve: "poll-loop --queue 0",
            hold_s: 20,
            climb: format!("--requesters {requesters}"),
            rows: Box::new(move |rung| {
                let name = ("POLL-max", format!("{requesters} requesters"));
                vec![Row::close(name, "resp./s", exact, count(rung, "rate_per_s"), 0.005)]
            }),
        });
    }
    // Below 300 even arrivals per second nothing ever queues, and above the queue grows for ever.
    for (rate_per_s, holds) in [(294, true), (306, false)] {
        all.push(Climb {
            id: "POLL-max",
            serve: "poll-loop --queue 0",
            hold_s: 60,
            climb: format!("--rate {rate_per_s} --arrivals even --patience 60s"),
            rows: Box::new(move |rung| {
                let name = ("POLL-max", format!("{rate_per_s} req/s, even arrivals, p99"));
                let (expected, p99_ms) = (if holds { "≤ 50 ms" } else { "> 50 ms" }, p99_ms(rung));
                let is_ok = p99_ms.is_finite() && (p99_ms <= 50.0) == holds;
                vec![Row::new(name, expected, format!("{p99_ms:.2} ms"), "the same", is_ok)]
            }),
        });
    }
    for (rate_per_s, hold_s) in [(240, 300), (270, 200), (285, 200)] {
        all.push(Climb {
            id: "POLL-14",
            serve: "poll-loop",
            hold_s,
            climb: format!("--rate {rate_per_s}"),
            rows: Box::new(move |rung| {
                let known = Known {
                    name: format!("{rate_per_s} req/s, refused"),
                    unit: "%",
                    exact: PollLoop::new(f64::from(rate_per_s), Some(14)).refused_share(),
                    allowed: 0.1,
                    real: refused_share,
                    simulated: |sum| {
                        let flow = sum.flows[0][Phase::Hold as usize];
                        flow.failed as f64 / flow.sent as f64
                    },
                };
                known_rows("POLL-14", rung, &[known], |seed| {
                    let plan = open(f64::from(rate_per_s), 256, Arrivals::Poisson, seed);
                    simulate_sum::<Simulated>(&plan, times(hold_s), &mut Law(poll_loop(Some(14))))
                })
            }),
        });
    }
    for rate_per_s in [250, 350] {
        all.push(Climb {
            id: "MM1",
            serve: "oracle --service exponential --mean 2ms",
            hold_s: 200,
            climb: format!("--rate {rate_per_s} --connections 1024 --patience 60s"),
            rows: Box::new(move |rung| of_one_server(f64::from(rate_per_s), 200, rung)),
        });
    }
    all
}

fn of_poll_loop(rate_per_s: u32, hold_s: u64, rung: &Value) -> Vec<Row> {
    let rate = f64::from(rate_per_s);
    let exact = PollLoop::new(rate, None);
    known_rows("POLL", rung, &p99_and_mean(rate, exact.quantile_ms(0.99), exact.mean_ms()), |seed| {
        let plan = open(rate, 256, Arrivals::Poisson, seed);
        simulate_sum::<Simulated>(&plan, times(hold_s), &mut Law(poll_loop(None)))
    })
}

fn of_one_server(rate_per_s: f64, hold_s: u64, rung: &Value) -> Vec<Row> {
    const SERVICES_PER_S: f64 = 500.0;
    let mean_ms = 1e3 / (SERVICES_PER_S - rate_per_s);
    known_rows("MM1", rung, &p99_and_mean(rate_per_s, 100f64.ln() * mean_ms, mean_ms), |seed| {
        let plan = open(rate_per_s, 1024, Arrivals::Poisson, 1000 + seed);
        simulate_sum::<Simulated>(&plan, times(hold_s), &mut Law(one_server(SERVICES_PER_S, seed)))
    })
}

fn p99_and_mean(rate_per_s: f64, exact_p99_ms: f64, exact_mean_ms: f64) -> [Known; 2] {
    let known = |name: &str, exact, allowed, real, simulated| Known {
        name: format!("{rate_per_s} req/s, {name}"),
        unit: "ms",
        exact,
        allowed,
        real,
        simulated,
    };
    [
        known("p99", exact_p99_ms, 0.03, p99_ms as fn(&Value) -> f64, |sum| response_ms(sum, 0.99)),
        known("mean", exact_mean_ms, 0.01, real_mean_ms, mean_ms as fn(&Interval) -> f64),
    ]
}

/// The ids of the oracles that are measured over sockets.
pub fn ids() -> Vec<&'static str> {
    let mut ids: Vec<_> = climbs().iter().map(|climb| climb.id).collect();
    ids.dedup();
    ids
}

/// Measures those of which `is_wanted`, `at_once` climbs at a time; what every climb writes is kept in `folder`. Errors, in words: a
/// program cannot be started, or a climb has no result.
pub fn rows(
    stepladder: &Path,
    folder: &Path,
    at_once: usize,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Row>, String> {
    let mut waiting: Vec<(usize, Climb)> =
        climbs().into_iter().filter(|climb| is_wanted(climb.id)).enumerate().collect();
    // The longest first, so that none is left alone at the end.
    waiting.sort_by_key(|(_, climb)| climb.hold_s);
    let (waiting, done) = (Mutex::new(waiting), Mutex::new(Vec::new()));
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.pop());
    std::thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            scope.spawn(|| {
                while let Some((at, climb)) = next() {
                    let json = folder.join(format!("{at:02}-{}.json", climb.id));
                    eprintln!("{}: {} s of {}", climb.id, climb.hold_s, climb.climb);
                    let rows = held(stepladder, &climb, &json).map(|rung| (climb.rows)(&rung));
                    if let Ok(mut done) = done.lock() {
                        done.push((at, rows.map_err(|why| format!("{} ({}): {why}", climb.id, climb.climb))));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    let rows: Result<Vec<Vec<Row>>, String> = done.into_iter().map(|(_, rows)| rows).collect();
    Ok(rows?.concat())
}

/// Ends a server when it is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The only rung of a climb.
fn held(stepladder: &Path, climb: &Climb, json: &Path) -> Result<Value, String> {
    let mut serve = Command::new(stepladder);
    serve.arg("serve").args(climb.serve.split(' ')).args(["--listen", "127.0.0.1:0"]);
    let started = serve.stdout(Stdio::piped()).spawn();
    let mut server = Server(started.map_err(|error| format!("{}: {error}", stepladder.display()))?);
    let mut said = String::new();
    let out = server.0.stdout.take().ok_or("the server has no standard output")?;
    BufReader::new(out).read_line(&mut said).map_err(|error| error.to_string())?;
    let url = said.split_whitespace().find(|word| word.starts_with("http://"));
    let url = url.ok_or_else(|| format!("the server said no address: {said}"))?;
    let store = json.with_extension("db");
    let mut command = Command::new(stepladder);
    command.args(["climb", url, "--settle", "2s", "--hold", &format!("{}s", climb.hold_s), "--store"]);
    command.arg(&store).arg("--json").arg(json).args(climb.climb.split(' '));
    let ran = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    // Its exit code says whether objectives were met, which is not asked here.
    let text = std::fs::read_to_string(json)
        .map_err(|error| format!("no result ({error}): {}", String::from_utf8_lossy(&ran.stderr)))?;
    let mut result: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    match result["rungs"].as_array().map(Vec::len) {
        Some(1) => Ok(result["rungs"][0].take()),
        count => Err(format!("{} rungs instead of one", count.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rung(p99_ms: f64, mean_ms: f64) -> Value {
        json!({ "response_ns": { "p99": p99_ms * 1e6, "mean": mean_ms * 1e6 } })
    }

    #[test]
    fn a_row_allows_what_such_holds_scatter_and_no_more() {
        let are_ok = |p99_ms, mean_ms| -> Vec<bool> {
            of_poll_loop(285, 400, &rung(p99_ms, mean_ms)).iter().map(|row| row.is_ok).collect()
        };
        let exact = PollLoop::new(285.0, None);
        let (p99_ms, mean_ms) = (exact.quantile_ms(0.99), exact.mean_ms());
        assert_eq!(are_ok(p99_ms, mean_ms), [true, true]);
        assert_eq!(are_ok(p99_ms * 2.0, mean_ms * 2.0), [false, false]);
        assert_eq!(are_ok(f64::NAN, f64::NAN), [false, false], "too few values prove nothing");
        // At 150 per second holds hardly scatter.
        let calm = PollLoop::new(150.0, None);
        let rows = of_poll_loop(150, 200, &rung(calm.quantile_ms(0.99) * 1.04, calm.mean_ms() * 1.04));
        assert!(rows.iter().all(|row| !row.is_ok), "{rows:#?}");
    }

    #[test]
    fn a_rung_without_figures_is_no_known_answer() {
        for climb in climbs() {
            let rows = (climb.rows)(&json!({}));
            assert!(!rows.is_empty() && rows.iter().all(|row| !row.is_ok), "{rows:#?}");
        }
    }
}
