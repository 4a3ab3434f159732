//! Compares the implementations of the leaderboard in process, and prints a table.
//!
//! `cargo run --release -p servers --example leaderboard -- --op update,rank --threads 1,2 --members 1000000`
//! Options: `--implementations all|NAME,…`, `--threads N,…`, `--members N`, `--op update|rank|bulk:N|ranks:N,…`,
//! `--distinct N` (scores), `--name-bytes N`, `--rounds N`, `--slice-ms N`.

use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use servers::leaderboard::Implementation;
use servers::leaderboard::bench::{Cell, CountingAllocator, Report, Settings, run};

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

fn list<T: FromStr>(text: &str) -> Result<Vec<T>, String>
where
    T::Err: std::fmt::Display,
{
    text.split(',').map(|part| part.parse().map_err(|error| format!("{part:?}: {error}"))).collect()
}

fn one<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| format!("{text:?}: {error}"))
}

fn settings(arguments: &[String]) -> Result<Settings, String> {
    let mut settings = Settings::default();
    for pair in arguments.chunks(2) {
        let [flag, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
        match flag.as_str() {
            "--implementations" if value == "all" => {}
            "--implementations" => settings.implementations = list(value)?,
            "--threads" => settings.threads = list(value)?,
            "--members" => settings.members = one(value)?,
            "--op" => settings.operations = list(value)?,
            "--distinct" => settings.distinct_scores = one(value)?,
            "--name-bytes" => settings.name_bytes = one(value)?,
            "--rounds" => settings.rounds = one(value)?,
            "--slice-ms" => settings.slice = Duration::from_millis(one(value)?),
            other => return Err(format!("unknown option {other}")),
        }
    }
    let sensible = settings.members > 0 && settings.distinct_scores > 0 && settings.rounds > 0;
    if !sensible || settings.name_bytes < 11 || settings.threads.contains(&0) {
        return Err("members, distinct, rounds and threads are at least 1, name-bytes at least 11".into());
    }
    Ok(settings)
}

fn optional(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "—".into(), |value| format!("{value:.digits$}"))
}

fn print_cell(cell: &Cell) {
    let (low, high) = cell.spread_per_s();
    println!(
        "{:<18}{:>12}{:>8}{:>10.0}{:>16}{:>8}{:>10.0}{:>10}{:>10.1} %",
        cell.implementation,
        format!("{:?}", cell.operation),
        cell.threads,
        cell.rate_per_s() / 1e3,
        format!("{:.0}–{:.0}", low / 1e3, high / 1e3),
        optional(cell.ratio(), 2),
        cell.cpu_ns_per_item,
        optional(cell.allocations_per_item, 2),
        cell.lock_wait_share * 100.0,
    );
}

fn print(report: &Report) {
    println!("{:<18}{:>14}{:>12}", "", "bytes/member", "filled in");
    for memory in &report.memory {
        let bytes = optional(memory.bytes_per_member, 1);
        println!("{:<18}{bytes:>14}{:>10.2} s", memory.implementation, memory.filled_in.as_secs_f64());
    }
    println!(
        "\n{:<18}{:>12}{:>8}{:>10}{:>16}{:>8}{:>10}{:>10}{:>12}",
        "", "operation", "threads", "k/s", "lowest–highest", "ratio", "CPU ns", "allocs", "lock wait"
    );
    report.cells.iter().for_each(print_cell);
    println!("\nratio: to {}, median of the rounds' ratios", Implementation::HashMapIndexSet);
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match settings(&arguments) {
        Ok(settings) => {
            print(&run(&settings));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(3)
        }
    }
}
