//! The options of `bench --target`, and the tasks that result from them.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use climb::certificates::trusting;
use inflight::Plan;
use inflight_analysis::CellKey;
use plan::ConfigError;
use serde_json::{Value, json};
use watch::ControlGroup;

use crate::profile::Asked;
use crate::runner::Client;
use crate::sweep::{self, Axis};

/// Options of `bench --target`.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(
    override_usage = "stepladder bench --target URL [OPTIONS]\n       stepladder bench leaderboard [OPTIONS]"
)]
pub struct Options {
    /// The server: hazelcast://HOST:PORT/MAP or redis://HOST:PORT, over TLS hazelcasts:// or rediss://; null: measures what
    /// the benchmark itself costs
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// Client libraries, one after the other: rust, node, java, go, python (after inflight/clients/setup), or a command that
    /// takes a plan as its last argument
    #[arg(long = "client", value_name = "NAME,…|COMMAND", default_value = "rust")]
    pub clients: Vec<String>,
    /// Operations, one after the other: get, set, mix (40 % get, 40 % set, 20 % delete)
    #[arg(long, value_name = "OP,…", default_value = "get", value_delimiter = ',')]
    pub op: Vec<String>,
    /// Lengths of the values, in bytes
    #[arg(long, value_name = "BYTES,…", default_value = "3", value_delimiter = ',')]
    pub value: Vec<u64>,
    /// Operations of each run, its warm-up (the first tenth) included
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub total: u64,
    /// Operations in flight, one number after the other; "unlimited" starts all at once, without back-pressure
    #[arg(long, value_name = "N,…", default_value = "100", value_delimiter = ',', value_parser = number_in_flight)]
    pub in_flight: Vec<String>,
    /// Vary these one at a time, at six numbers or more (those of --value and --in-flight where they name so many), and
    /// say what follows: the best number in flight, how time grows with the value, how long a run must be
    #[arg(long, value_name = "AXIS,…", value_delimiter = ',')]
    pub sweep: Vec<Axis>,
    /// Which keys: one, uniform:COUNT or zipf:COUNT
    #[arg(long, value_name = "PATTERN", default_value = "one")]
    pub keys: String,
    /// How often each client does each of it
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub runs: u32,
    /// Random seed of keys, operations and the order of the runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u32,
    /// Name of the Hazelcast cluster
    #[arg(long, value_name = "NAME", default_value = "dev")]
    pub cluster: String,
    /// Trust this certificate authority (PEM) besides the usual ones
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Accept any certificate
    #[arg(long)]
    insecure: bool,
    /// Process of the server, for its CPU; found by its port when it runs on this machine
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Control group of the server, as of its container, for its CPU and memory
    #[arg(long, value_name = "PATH", conflicts_with = "pid")]
    watch_cgroup: Option<PathBuf>,
    /// Name of the run, for runs, show and compare
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Write the results here as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the results here as one HTML file that opens anywhere
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Show the comparison as a page on 127.0.0.1 while it goes on, opened where there is a desktop; on a terminal also
    /// afterwards, until Ctrl-C
    #[arg(long)]
    pub view: bool,
    /// Keep every line that the clients wrote in this file too
    #[arg(long, value_name = "FILE")]
    pub lines: Option<PathBuf>,
    /// Draw the first 200 operations of the first client's first run in lanes
    #[arg(long, value_name = "FILE.svg")]
    pub timeline: Option<PathBuf>,
    /// Profile each client in one run more, and draw flame graphs into this folder or file: PATH for CPU time, alloc or
    /// alloc:PATH for allocations and what is alive (node, java, go). Clients that do not profile themselves need
    /// perf
    #[arg(long, value_name = "[alloc:]PATH")]
    pub profile: Option<Asked>,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db")]
    pub store: PathBuf,
}

/// One thing that every client does: a row of the matrix.
#[derive(Clone, Debug)]
pub struct Task {
    pub key: CellKey,
    pub plan: Value,
}

impl Options {
    /// The server, as it was written. Errors: it is missing or beyond this machine, or its certificates cannot be judged.
    pub fn target(&self) -> anyhow::Result<&str> {
        let target = self.target.as_deref().context(
            "--target is missing; name a server, for example --target redis://127.0.0.1:6379, or a subject: \
             stepladder bench leaderboard",
        )?;
        check_is_loopback(target)?;
        self.check_trust(target)?;
        Ok(target)
    }

    /// Errors: options that contradict each other, or a file that holds no certificate.
    fn check_trust(&self, target: &str) -> anyhow::Result<()> {
        let given = [("--ca", self.ca.is_some()), ("--insecure", self.insecure)];
        if !is_tls(target) {
            return match given.into_iter().find(|(_, is_given)| *is_given) {
                Some((name, _)) => Err(ConfigError::CertificateWithoutTls(name).into()),
                None => Ok(()),
            };
        }
        if self.ca.is_some() && self.insecure {
            return Err(ConfigError::CaAndInsecure.into());
        }
        trusting("localhost", self.ca.as_deref(), self.insecure)?;
        Ok(())
    }

    /// The control group that is watched. Errors: it is not there.
    pub fn group(&self) -> anyhow::Result<Option<ControlGroup>> {
        self.watch_cgroup.as_deref().map(ControlGroup::open).transpose().context("--watch-cgroup")
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

    /// What was asked for, as the store keeps it.
    pub fn as_json(&self, target: &str, clients: &[Client]) -> Value {
        let axis = |axis: &Axis| match axis {
            Axis::Total => "total",
            Axis::InFlight => "in-flight",
            Axis::Value => "value",
        };
        json!({
            "target": target, "clients": clients.iter().map(Client::name).collect::<Vec<_>>(), "op": self.op,
            "value_bytes": self.value, "total": self.total, "in_flight": self.in_flight,
            "sweep": self.sweep.iter().map(axis).collect::<Vec<_>>(), "keys": self.keys, "runs": self.runs,
            "seed": self.seed, "cluster": self.cluster, "ca": self.ca, "insecure": self.insecure,
        })
    }

    /// Everything that each client does. Errors: whatever a plan may not say, in the words of the runners.
    pub fn tasks(&self, target: &str) -> anyhow::Result<Vec<Task>> {
        if !(1..=1000).contains(&self.runs) {
            bail!("--runs {}: give 1 to 1000", self.runs);
        }
        let keys = self.keys()?;
        let mut tasks: Vec<Task> = Vec::new();
        for key in self.cells()? {
            let in_flight = key.in_flight.parse::<u64>().map_or_else(|_| json!(key.in_flight), |n| json!(n));
            let mut plan = json!({
                "target": target, "op": key.op, "value_bytes": key.value_bytes, "total": key.total,
                "in_flight": in_flight, "keys": keys, "seed": self.seed, "cluster": self.cluster,
            });
            // A runner may work in another folder.
            if let Some(ca) = &self.ca {
                let ca = std::path::absolute(ca).with_context(|| format!("--ca {}", ca.display()))?;
                let Some(ca) = ca.to_str() else {
                    bail!(
                        "--ca {}: the path is not UTF-8, and runners get it as text; rename the file",
                        ca.display()
                    )
                };
                plan["ca"] = ca.into();
            }
            if self.insecure {
                plan["insecure"] = true.into();
            }
            Plan::read(&plan.to_string())?;
            if !tasks.iter().any(|task| task.key == key) {
                tasks.push(Task { key, plan });
            }
        }
        Ok(tasks)
    }

    fn cells(&self) -> anyhow::Result<Vec<CellKey>> {
        let mut cells = Vec::new();
        for op in &self.op {
            let cell = |value_bytes: u64, in_flight: &str, total: u64| CellKey {
                op: op.clone(),
                value_bytes,
                in_flight: in_flight.to_owned(),
                total,
            };
            if self.sweep.is_empty() {
                for value in &self.value {
                    cells.extend(self.in_flight.iter().map(|number| cell(*value, number, self.total)));
                }
                continue;
            }
            let (value, number) = (self.value[0], self.in_flight[0].as_str());
            for axis in &self.sweep {
                match axis {
                    Axis::Total => {
                        cells.extend(self.totals()?.into_iter().map(|total| cell(value, number, total)))
                    }
                    Axis::InFlight => {
                        let numbers = places("--in-flight", &self.in_flight, || {
                            sweep::IN_FLIGHT.iter().map(u64::to_string).collect()
                        })?;
                        cells.extend(numbers.iter().map(|number| cell(value, number, self.total)));
                    }
                    Axis::Value => {
                        let values = places("--value", &self.value, || sweep::VALUES.to_vec())?;
                        let total = |bytes: u64| {
                            self.total.min((sweep::RUN_BYTES_MAX / bytes.max(1)).max(sweep::TOTAL_MIN))
                        };
                        cells.extend(values.into_iter().map(|bytes| cell(bytes, number, total(bytes))));
                    }
                }
            }
        }
        Ok(cells)
    }

    fn totals(&self) -> anyhow::Result<Vec<u64>> {
        if self.total < 10 * sweep::TOTAL_PARTS[0] {
            bail!(
                "--total {}: --sweep total goes down to a thirty-second of it; give 320 or more",
                self.total
            );
        }
        Ok(sweep::TOTAL_PARTS.iter().map(|part| self.total / part).collect())
    }

    /// Errors: a client that is not there, or cannot speak to the target.
    pub fn clients(&self, target: &str) -> anyhow::Result<Vec<Client>> {
        let mut clients: Vec<Client> = Vec::new();
        for text in &self.clients {
            // A command may contain commas; a list of names contains nothing else.
            let names: Vec<&str> = text.split(',').collect();
            let texts =
                if names.iter().all(|name| Client::is_name(name)) { names } else { vec![text.as_str()] };
            for text in texts {
                let client = Client::find(text)?;
                client.check_speaks(target)?;
                if !clients.iter().any(|known| known.name() == client.name()) {
                    clients.push(client);
                }
            }
        }
        Ok(clients)
    }
}

/// A number as clients are told it: digits; `2k` is 2000. Other words are the clients' to refuse.
fn number_in_flight(text: &str) -> Result<String, std::convert::Infallible> {
    let count = plan::units::count_within(text, 1, u64::from(u32::MAX));
    Ok(count.map_or_else(|_| text.to_owned(), |count| count.to_string()))
}

/// The places of an axis: what the user names, where that is enough, else ours for one or none.
fn places<T: Clone>(flag: &str, named: &[T], ours: impl FnOnce() -> Vec<T>) -> anyhow::Result<Vec<T>> {
    match named.len() {
        0 | 1 => Ok(ours()),
        count if count < sweep::VALUES_MIN => bail!(
            "{flag} names {count} of the {} that a sweep needs at least; name more, or one for the choice of {}",
            sweep::VALUES_MIN,
            ours().len()
        ),
        _ => Ok(named.to_vec()),
    }
}

/// Whether connections to a target are encrypted.
pub fn is_tls(target: &str) -> bool {
    target.starts_with("hazelcasts:") || target.starts_with("rediss:")
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
