//! `benchmark`: the harness's own overhead, warm-up, measurement, and their output lines.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::phase::{self, Operations, Outcome, PhaseOptions, Token};
use crate::process;
use crate::tally::{Counts, Tally};

/// The client library under test.
#[derive(Clone, Debug)]
pub struct Client {
    /// as it is known
    pub name: String,
    /// its version
    pub version: String,
}

impl Client {
    /// A name and a version.
    pub fn new(name: &str, version: &str) -> Client {
        Client { name: name.to_owned(), version: version.to_owned() }
    }
}

/// A flag by which another thread stops a run; what it has is still reported.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Stops the run.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is to stop.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a benchmark does.
#[derive(Clone, Debug)]
pub struct Options {
    /// operations in all, warm-up included
    pub total: u64,
    /// the first ones, which are not counted; `None`: a tenth
    pub warmup: Option<u64>,
    /// operations that are under way at once; `None`: all of them
    pub in_flight: Option<usize>,
    /// an operation that takes longer ends as unknown
    pub timeout: Duration,
    /// without a limit in flight, the run stops when the process holds more memory
    pub memory_cap_bytes: u64,
    /// what is under test
    pub client: Client,
    /// the server's version, where it tells
    pub member_version: Option<String>,
    /// goes into the line `start` as it is
    pub plan: Value,
    /// stops the run from another thread
    pub stop: Stop,
    /// for a fake: its time in ns
    pub clock: Option<Rc<Cell<u64>>>,
}

impl Options {
    /// A million operations, 100 in flight, a timeout of 10 s.
    pub fn new(client: Client) -> Options {
        Options {
            total: 1_000_000,
            warmup: None,
            in_flight: Some(100),
            timeout: Duration::from_secs(10),
            memory_cap_bytes: 512 << 20,
            client,
            member_version: None,
            plan: Value::Null,
            stop: Stop::default(),
            clock: None,
        }
    }

    fn warmup(&self) -> u64 {
        self.warmup.unwrap_or(self.total / 10).min(self.total)
    }
}

/// How a benchmark ended.
#[derive(Clone, Debug)]
pub struct End {
    /// of the measured part
    pub counts: Counts,
    /// of the measured part
    pub elapsed: Duration,
    /// why it ended early: "signal" or "memory"
    pub stopped: Option<&'static str>,
}

/// The line of a run that could not begin or go on.
pub fn error_line(message: &str) -> String {
    json!({"type": "error", "message": message}).to_string()
}

/// Runs the operations and gives each line to `on_line`. `null`: the same at the price that they have besides the client
/// library, as `Null`; without it, an operation that does nothing at all.
///
/// Errors: what `Operations::poll` says; the caller reports it with `error_line`.
pub fn benchmark<O: Operations>(
    operations: &mut O,
    options: &Options,
    null: Option<&mut dyn FnMut(&Options) -> Overhead>,
    on_line: &mut dyn FnMut(&str),
) -> Result<End, String> {
    let overhead = null.map_or_else(|| Overhead::of(&mut Nothing::default(), options), |of| of(options));
    let began = Instant::now();
    let clock: Box<dyn Fn() -> u64> = match &options.clock {
        Some(clock) => {
            let clock = clock.clone();
            Box::new(move || clock.get())
        }
        None => Box::new(move || began.elapsed().as_nanos() as u64),
    };
    let phase_options = PhaseOptions {
        in_flight: options.in_flight,
        timeout_ns: options.timeout.as_nanos() as u64,
        memory_cap_bytes: options.memory_cap_bytes,
        stop: &options.stop,
        clock: &*clock,
    };
    let start = json!({
        "type": "start",
        "format": 1,
        "client": {"name": options.client.name, "version": options.client.version},
        "runtime": {"name": "rust", "version": env!("CARGO_PKG_RUST_VERSION")},
        "member": options.member_version.as_ref().map(|version| json!({"version": version})),
        "plan": options.plan,
        "own_overhead_ns_per_op": overhead.wall_ns,
        "own_overhead_cpu_ns_per_op": overhead.cpu_ns,
    });
    on_line(&start.to_string());
    let mut second = |phase: &str, tally: &mut Tally, open: usize| {
        let mut line = Map::new();
        line.insert("type".to_owned(), json!("second"));
        line.insert("phase".to_owned(), json!(phase));
        line.insert("at_ns".to_owned(), json!(began.elapsed().as_nanos() as u64));
        line.extend(tally.take_second());
        line.insert("in_flight".to_owned(), json!(open));
        line.insert("runtime".to_owned(), json!({}));
        on_line(&Value::Object(line).to_string());
    };
    let (warmup, total) = (options.warmup(), options.total);
    let warm =
        phase::run(operations, 0..warmup, &phase_options, &mut |tally, open| second("warmup", tally, open))?;
    let before = process::cpu_ns();
    let mut measured = match warm.stopped {
        None => {
            let mut on_second = |tally: &mut Tally, open: usize| second("measure", tally, open);
            phase::run(operations, warmup..total, &phase_options, &mut on_second)?
        }
        Some(_) => {
            phase::Phase { tally: Tally::new(), elapsed_ns: 0, timeline: Vec::new(), stopped: warm.stopped }
        }
    };
    let after = process::cpu_ns();
    on_line(&json!({"type": "timeline", "operations": measured.timeline}).to_string());
    let mut line = Map::new();
    line.insert("type".to_owned(), json!("end"));
    line.insert("elapsed_ns".to_owned(), json!(measured.elapsed_ns));
    line.extend(measured.tally.counts.fields());
    line.insert("latency".to_owned(), json!(measured.tally.latency()));
    line.insert("cpu_user_ns".to_owned(), json!(after.0.saturating_sub(before.0)));
    line.insert("cpu_system_ns".to_owned(), json!(after.1.saturating_sub(before.1)));
    line.insert("rss_bytes".to_owned(), json!(process::rss_bytes()));
    line.insert("rss_peak_bytes".to_owned(), json!(process::rss_peak_bytes()));
    line.insert("runtime".to_owned(), json!({}));
    line.insert("errors".to_owned(), json!(measured.tally.errors()));
    if let Some(why) = measured.stopped {
        line.insert("stopped".to_owned(), json!(why));
    }
    on_line(&Value::Object(line).to_string());
    Ok(End {
        counts: measured.tally.counts,
        elapsed: Duration::from_nanos(measured.elapsed_ns),
        stopped: measured.stopped,
    })
}

/// What the harness itself costs per operation.
#[derive(Clone, Copy, Debug)]
pub struct Overhead {
    /// elapsed ns
    pub wall_ns: u64,
    /// CPU ns
    pub cpu_ns: u64,
}

impl Overhead {
    /// Measured with operations that do nothing, in a run of at least 100 ms after shorter ones.
    pub fn of<O: Operations>(operations: &mut O, options: &Options) -> Overhead {
        let mut ops = 1000;
        loop {
            let started = Instant::now();
            let clock = || started.elapsed().as_nanos() as u64;
            let phase_options = PhaseOptions {
                in_flight: Some(options.in_flight.unwrap_or(100)),
                timeout_ns: u64::MAX,
                memory_cap_bytes: u64::MAX,
                stop: &options.stop,
                clock: &clock,
            };
            let sum = |(user_ns, system_ns): (u64, u64)| user_ns + system_ns;
            let before_ns = sum(process::cpu_ns());
            let ran = phase::run(operations, 0..ops, &phase_options, &mut |_, _| {});
            let cpu_ns = sum(process::cpu_ns()) - before_ns;
            let elapsed_ns = ran.map_or(u64::MAX, |phase| phase.elapsed_ns);
            if elapsed_ns >= 100_000_000 || options.stop.is_asked() {
                return Overhead { wall_ns: elapsed_ns / ops, cpu_ns: cpu_ns / ops };
            }
            ops *= 2;
        }
    }
}

/// An operation that does nothing at all.
#[derive(Default)]
struct Nothing(Vec<Token>);

impl Operations for Nothing {
    fn start(&mut self, token: Token, _i: u64) {
        self.0.push(token);
    }

    fn poll(&mut self, _wait: Duration, mut ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
        self.0.drain(..).for_each(|token| ended(token, Outcome::Ok));
        Ok(())
    }
}
