//! `stepladder bench --target`: client libraries of several languages on one server, by the same rules.
//!
//! For each client a process carries out one plan (`clients/README.md`): N operations in flight, each one that ends
//! starts the next. Runs are interleaved in random order, block by block, so that what disturbs the machine meets all of
//! them; clients are compared by the ratio within a block.

mod figures;
mod lines;
mod member;
mod runner;
pub(super) mod rust;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use inflight::Plan;
use serde_json::{Value, json};

use self::figures::{Cell, CellKey};
use self::member::Member;
use self::runner::Client;
use crate::climb::{check_writable, write_text};
use crate::exit::{Exit, Failure, not_measured, wrong_usage};
use crate::say;
use crate::signals::Interrupt;

/// Options of `bench --target`.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(
    override_usage = "stepladder bench --target URL [OPTIONS]\n       stepladder bench leaderboard [OPTIONS]"
)]
pub struct Options {
    /// The server: hazelcast://HOST:PORT/MAP or redis://HOST:PORT; null: measures what the benchmark itself costs
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// Client libraries, one after the other: rust, node, java, go, python (after clients/setup), or a command that
    /// takes a plan as its last argument
    #[arg(long = "client", value_name = "NAME,…|COMMAND", default_value = "rust")]
    clients: Vec<String>,
    /// Operations, one after the other: get, set, mix (40 % get, 40 % set, 20 % delete)
    #[arg(long, value_name = "OP,…", default_value = "get", value_delimiter = ',')]
    op: Vec<String>,
    /// Lengths of the values, in bytes
    #[arg(long, value_name = "BYTES,…", default_value = "3", value_delimiter = ',')]
    value: Vec<u64>,
    /// Operations of each run, its warm-up (the first tenth) included
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    total: u64,
    /// Operations in flight, one number after the other; "unlimited" starts all at once
    #[arg(long, value_name = "N,…", default_value = "100", value_delimiter = ',')]
    in_flight: Vec<String>,
    /// Which keys: one, uniform:COUNT or zipf:COUNT
    #[arg(long, value_name = "PATTERN", default_value = "one")]
    keys: String,
    /// How often each client does each of it
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: u32,
    /// Random seed of keys, operations and the order of the runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u32,
    /// Name of the Hazelcast cluster
    #[arg(long, value_name = "NAME", default_value = "dev")]
    cluster: String,
    /// Process of the server, for its CPU; found by its port when it runs on this machine
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Write the results here as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keep every line that the clients wrote in this file
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
}

/// One thing that every client does: a row of the matrix.
#[derive(Clone, Debug)]
struct Task {
    key: CellKey,
    plan: Value,
}

impl Options {
    fn target(&self) -> anyhow::Result<&str> {
        let target = self.target.as_deref().context(
            "--target is missing; name a server, for example --target redis://127.0.0.1:6379, or a subject: \
             stepladder bench leaderboard",
        )?;
        check_is_loopback(target)?;
        Ok(target)
    }

    fn keys(&self) -> anyhow::Result<Value> {
        let (pattern, count) = match self.keys.split_once(':') {
            Some((pattern, count)) => (pattern, Some(count)),
            None => (self.keys.as_str(), None),
        };
        let mut keys = json!({ "pattern": pattern });
        if let Some(count) = count {
            let count: u64 =
                count.parse().map_err(|_| anyhow!("--keys {}: {count:?} is not a number", self.keys))?;
            keys["count"] = count.into();
        }
        Ok(keys)
    }

    /// Everything that each client does. Errors: whatever a plan may not say, in the words of the runners.
    fn tasks(&self, target: &str) -> anyhow::Result<Vec<Task>> {
        if !(1..=1000).contains(&self.runs) {
            bail!("--runs {}: give 1 to 1000", self.runs);
        }
        let keys = self.keys()?;
        let mut tasks = Vec::new();
        for op in &self.op {
            for value_bytes in &self.value {
                for in_flight in &self.in_flight {
                    let number = in_flight.parse::<u64>().map_or_else(|_| json!(in_flight), |n| json!(n));
                    let plan = json!({
                        "target": target, "op": op, "value_bytes": value_bytes, "total": self.total,
                        "in_flight": number, "keys": keys, "seed": self.seed, "cluster": self.cluster,
                    });
                    Plan::read(&plan.to_string())?;
                    let key =
                        CellKey { op: op.clone(), value_bytes: *value_bytes, in_flight: in_flight.clone() };
                    tasks.push(Task { key, plan });
                }
            }
        }
        Ok(tasks)
    }

    fn clients(&self) -> anyhow::Result<Vec<Client>> {
        let mut clients: Vec<Client> = Vec::new();
        for text in &self.clients {
            // A command may hold commas; a list of names holds nothing else.
            let names: Vec<&str> = text.split(',').collect();
            let texts =
                if names.iter().all(|name| Client::is_name(name)) { names } else { vec![text.as_str()] };
            for text in texts {
                let client = Client::find(text)?;
                if !clients.iter().any(|known| known.name() == client.name()) {
                    clients.push(client);
                }
            }
        }
        Ok(clients)
    }
}

/// Loads go to this machine only, as those of `climb`.
fn check_is_loopback(target: &str) -> anyhow::Result<()> {
    let rest = target.split_once("://").map_or("", |(_, rest)| rest);
    let members = rest.split('/').next().unwrap_or_default();
    for member in members.split(',').filter(|member| !member.is_empty()) {
        let host = member.rsplit_once(':').map_or(member, |(host, _)| host);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = bare == "localhost"
            || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        if !is_loopback {
            bail!("--target {target}: {host} is not this machine; loads go to loopback addresses only");
        }
    }
    Ok(())
}

/// Runs every client, prints the table. Exit code 1 when an operation failed, had a wrong value or an unknown outcome.
pub(super) fn run(options: &Options, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let target = options.target().map_err(wrong_usage)?;
    let tasks = options.tasks(target).map_err(wrong_usage)?;
    let clients = options.clients().map_err(wrong_usage)?;
    let _unwritten = check_writable(options.json.as_deref()).map_err(wrong_usage)?;
    let mut keep = lines::Keep::open(options.lines.as_deref()).map_err(wrong_usage)?;
    let member = Member::of(target, options.pid);
    let mut random = fastrand::Rng::with_seed(u64::from(options.seed));
    let mut cells: Vec<Cell> = tasks
        .iter()
        .flat_map(|task| clients.iter().map(|client| Cell::new(task.key.clone(), client.name())))
        .collect();
    let count = options.runs as usize * cells.len();
    let mut done = 0;
    'blocks: for block in 0..options.runs {
        for (row, task) in tasks.iter().enumerate() {
            let mut order: Vec<usize> = (0..clients.len()).collect();
            random.shuffle(&mut order);
            for at in order {
                let client = &clients[at];
                done += 1;
                runner::progress(done, count, client.name(), &task.key.to_string());
                let ran = client.run(&task.plan, &member, &mut keep, interrupt);
                runner::clear_progress();
                let Some(run) = ran.map_err(not_measured)? else { break 'blocks };
                cells[row * clients.len() + at].add(block, run);
            }
        }
    }
    let report = figures::Report::new(target, options.total, cells);
    write_text(&format!("{:#}", report.contract()), options.json.as_deref()).map_err(not_measured)?;
    if options.json.as_deref() == Some(Path::new("-")) {
        say::err_text!("{}", table::Table(&report));
    } else {
        say::out_text!("{}", table::Table(&report));
    }
    Ok(match () {
        () if interrupt.is_asked() => Exit::Interrupted,
        () if report.is_clean() => Exit::Met,
        () => Exit::NotMet,
    })
}
