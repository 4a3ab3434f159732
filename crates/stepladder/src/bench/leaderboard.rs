//! `stepladder bench leaderboard`: benchmarks the leaderboard implementations in this process and explains the results.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::anyhow;
use climb::outputs::{check_writable, write_json};
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::say;
use serde_json::{Value, json};
use servers::leaderboard::Implementation;
use servers::leaderboard::bench::{self, Cell, NAME_BYTES_MIN, Operation, Report, Settings};

use super::gate::{self, Gate};

/// Options of `bench leaderboard`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = gate::help())]
pub struct Options {
    /// Which: all, or some of one-lock, sharded, concurrent-map, actor and hashmap-indexset (the peer)
    #[arg(long, value_name = "all|NAME,…", default_value = "all")]
    implementations: Selection,
    /// Numbers of threads, one after the other
    #[arg(long, value_name = "N,…", default_value = "1", value_delimiter = ',')]
    threads: Vec<usize>,
    /// Members of each board
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    members: u32,
    /// Operations, one after the other: update, rank, bulk:N (updates), ranks:N
    #[arg(long, value_name = "OP,…", default_value = "update", value_delimiter = ',')]
    op: Vec<Operation>,
    /// How long each implementation does each operation with each number of threads, in slices that alternate
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// How many different scores there are
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
    distinct: i64,
    /// Bytes of a member's name
    #[arg(long, value_name = "N", default_value_t = 14)]
    name_bytes: usize,
    /// A condition that ends the command with exit code 1 when it does not hold: one-lock.update.ops >= 900k.
    /// Can be given several times; --help lists the figures
    #[arg(long = "gate", value_name = "CONDITION")]
    gates: Vec<String>,
    /// Write the results here as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The implementations that are compared, in the order of the report.
#[derive(Clone, Debug)]
struct Selection(Vec<Implementation>);

impl FromStr for Selection {
    type Err = <Implementation as FromStr>::Err;

    fn from_str(text: &str) -> Result<Selection, Self::Err> {
        if text == "all" {
            return Ok(Selection(Implementation::ALL.to_vec()));
        }
        let mut chosen = Vec::new();
        for name in text.split(',') {
            let implementation = name.parse()?;
            if !chosen.contains(&implementation) {
                chosen.push(implementation);
            }
        }
        Ok(Selection(chosen))
    }
}

/// The longest slice; shorter comparisons have `SLICES_MIN`.
const SLICE: Duration = Duration::from_millis(250);
const SLICES_MIN: u32 = 20;

impl Options {
    fn settings(&self) -> anyhow::Result<Settings> {
        if !(0.02..=3_600.0).contains(&self.seconds) {
            return Err(anyhow!("--seconds {}: give 0.02 to 3600", self.seconds));
        }
        if let Some(threads) = self.threads.iter().find(|threads| !(1..=256).contains(*threads)) {
            return Err(anyhow!("--threads {threads}: give 1 to 256"));
        }
        if self.members == 0 || self.distinct <= 0 {
            return Err(anyhow!("--members and --distinct must be at least 1"));
        }
        if !(NAME_BYTES_MIN..=servers::leaderboard::MAX_MEMBER_BYTES).contains(&self.name_bytes) {
            let most = servers::leaderboard::MAX_MEMBER_BYTES;
            return Err(anyhow!("--name-bytes {}: give {NAME_BYTES_MIN} to {most}", self.name_bytes));
        }
        let time = Duration::from_secs_f64(self.seconds);
        let slice = SLICE.min(time / SLICES_MIN);
        Ok(Settings {
            implementations: self.implementations.0.clone(),
            threads: self.threads.clone(),
            operations: self.op.clone(),
            members: self.members,
            distinct_scores: self.distinct,
            name_bytes: self.name_bytes,
            rounds: time.as_nanos().div_ceil(slice.as_nanos()) as usize,
            slice,
            ..Settings::default()
        })
    }

    fn gates(&self, settings: &Settings) -> anyhow::Result<Vec<Gate>> {
        let gate = |text: &String| {
            let gate: Gate = text.parse()?;
            gate.check(settings)?;
            Ok(gate)
        };
        let gates: Result<Vec<Gate>, gate::GateError> = self.gates.iter().map(gate).collect();
        gates.map_err(|error| anyhow!("--gate {error}"))
    }
}

/// Compares the implementations. Exit code 1 when a gate is missed.
pub(super) fn run(options: &Options) -> Result<Exit, Failure> {
    let settings = options.settings().map_err(wrong_usage)?;
    let gates = options.gates(&settings).map_err(wrong_usage)?;
    check_writable("--json", options.json.as_deref()).map_err(wrong_usage)?;
    let report = bench::run(&settings);
    write_json(&format!("{:#}", contract(&settings, &report, &gates)), options.json.as_deref())
        .map_err(not_measured)?;
    let missed = gates.iter().any(|gate| !gate.misses(&report).is_empty());
    if options.json.as_deref() == Some(Path::new("-")) {
        say::err_text!("{}", Gates { report: &report, gates: &gates });
    } else {
        let gates = Gates { report: &report, gates: &gates };
        say::out_text!("{}{gates}", Table(&report));
    }
    Ok(if missed { Exit::NotMet } else { Exit::Met })
}

/// The results as JSON. Additions are free, changes are not.
fn contract(settings: &Settings, report: &Report, gates: &[Gate]) -> Value {
    let cell = |cell: &Cell| {
        let (lowest, highest) = cell.spread_per_s();
        json!({
            "implementation": cell.implementation.name(), "operation": cell.operation.to_string(),
            "threads": cell.threads, "ops_per_s": cell.rate_per_s(), "lowest_per_s": lowest,
            "highest_per_s": highest, "rates_per_s": cell.rates_per_s, "ratio": cell.ratio(),
            "cpu_ns_per_item": cell.cpu_ns_per_item, "allocations_per_item": cell.allocations_per_item,
            "lock_wait_share": cell.lock_wait_share,
        })
    };
    let memory = report.memory.iter().map(|memory| {
        json!({
            "implementation": memory.implementation.name(), "bytes_per_member": memory.bytes_per_member,
            "filled_in_s": memory.filled_in.as_secs_f64(),
        })
    });
    let gate = |gate: &Gate| {
        let misses = gate.misses(report);
        let misses: Vec<Value> =
            misses.into_iter().map(|(name, value)| json!({ "of": name, "value": value })).collect();
        json!({ "gate": gate.text, "met": misses.is_empty(), "misses": misses })
    };
    json!({
        "schema": 1, "subject": "leaderboard", "members": settings.members,
        "distinct_scores": settings.distinct_scores, "name_bytes": settings.name_bytes,
        "slice_s": settings.slice.as_secs_f64(), "slices": settings.rounds,
        "memory": memory.collect::<Vec<_>>(), "cells": report.cells.iter().map(cell).collect::<Vec<_>>(),
        "gates": gates.iter().map(gate).collect::<Vec<_>>(),
    })
}

/// The results for people.
struct Table<'r>(&'r Report);

/// Which gates were met, for people.
struct Gates<'r> {
    report: &'r Report,
    gates: &'r [Gate],
}

fn optional(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "—".into(), |value| format!("{value:.digits$}"))
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table(report) = self;
        writeln!(out, "{:<18}{:>14}{:>12}", "", "bytes/member", "filled in")?;
        for memory in &report.memory {
            let bytes = optional(memory.bytes_per_member, 1);
            let filled_in_s = memory.filled_in.as_secs_f64();
            writeln!(out, "{:<18}{bytes:>14}{filled_in_s:>10.2} s", memory.implementation)?;
        }
        writeln!(
            out,
            "\n{:<18}{:>10}{:>8}{:>10}{:>16}{:>8}{:>10}{:>10}{:>12}",
            "", "operation", "threads", "k/s", "lowest–highest", "ratio", "CPU ns", "allocs", "lock wait"
        )?;
        for cell in &report.cells {
            let (low, high) = cell.spread_per_s();
            writeln!(
                out,
                "{:<18}{:>10}{:>8}{:>10.0}{:>16}{:>8}{:>10.0}{:>10}{:>10.1} %",
                cell.implementation,
                cell.operation,
                cell.threads,
                cell.rate_per_s() / 1e3,
                format!("{:.0}–{:.0}", low / 1e3, high / 1e3),
                optional(cell.ratio(), 2),
                cell.cpu_ns_per_item,
                optional(cell.allocations_per_item, 2),
                cell.lock_wait_share * 100.0,
            )?;
        }
        writeln!(out, "\nratio: to {}, median of the slices' ratios", Implementation::HashMapIndexSet)
    }
}

impl fmt::Display for Gates<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for gate in self.gates {
            let misses = gate.misses(self.report);
            if misses.is_empty() {
                writeln!(out, "gate met: {}", gate.text)?;
            }
            for (name, value) in misses {
                writeln!(out, "gate missed: {}; {name}: {}", gate.text, gate.show(value))?;
            }
        }
        Ok(())
    }
}
