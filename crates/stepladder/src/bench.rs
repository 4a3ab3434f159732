//! `stepladder bench`: client libraries with a number of operations in flight, or a library in this process.
//!
//! `bench --target URL` judges client libraries of several languages on one server by the same rules; `bench SUBJECT`
//! what a library does in this process, without network and without a ladder. A subject has options of its own.

mod gate;
pub(crate) mod in_flight;
mod leaderboard;

use std::path::Path;

use clap::Subcommand;
use climb::outputs::{DuelAnswer, write_json};
use console::exit::{Exit, Failure, not_measured};
use console::other_runs::Wait;
use console::say;
use console::signals::Interrupt;
use inflight_analysis::Beside;
use store::{RunEnd, RunKind, RunRecord, RunState, Store};
use versus::libraries::Asked;

use self::in_flight::stored;

/// Options of `bench`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    subject: Option<Subject>,
    #[command(flatten)]
    in_flight: in_flight::Options,
    #[command(flatten)]
    wait: Wait,
}

/// What is measured in this process.
#[derive(Debug, Subcommand)]
enum Subject {
    /// Implementations of the leaderboard, side by side: updates, ranks and bulks per second, and why they differ
    Leaderboard(leaderboard::Options),
    /// Carry out one plan with the Rust clients and print the lines that inflight/clients/README.md describes
    #[command(hide = true)]
    Runner {
        /// with this fault, on the target null:
        #[arg(long, value_name = "FAULT")]
        fault: Option<in_flight::rust::Fault>,
        /// the plan, a JSON object
        plan: String,
    },
}

/// Whether a stored comparison of client libraries is a duel.
pub fn is_duel(record: &RunRecord) -> bool {
    record.head.kind == RunKind::Bench && in_flight::duel::is_duel(record)
}

/// What a stored duel of client libraries says. `None`: it holds no block yet.
pub fn stored_duel(store: &Store, record: &RunRecord) -> anyhow::Result<Option<DuelAnswer>> {
    in_flight::duel::stored_answer(store, record)
}

/// A duel of two client libraries.
pub fn duel(asked: Asked<'_>, interrupt: &Interrupt) -> Result<Exit, Failure> {
    in_flight::duel::duel(asked, interrupt)
}

/// The answer of a stored comparison of client libraries, in one line.
pub fn answer(store: &Store, record: &RunRecord) -> String {
    in_flight::answer(store, record)
}

/// `stepladder show` of a comparison of client libraries: the table as it was told, made of the stored lines once more.
pub fn show(store: &Store, record: &RunRecord, json: Option<&Path>) -> Result<Exit, Failure> {
    let report = stored(store, &record.id).map_err(not_measured)?;
    write_json(&serde_json::to_string_pretty(&report.contract()).map_err(not_measured)?, json)
        .map_err(not_measured)?;
    if json != Some(Path::new("-")) {
        say::out_text!("{}", in_flight::page(&report, &record.id));
    }
    if let RunState::Ended(RunEnd { reason: Some(reason), .. }) = &record.state {
        say::err_line!("stepladder: it could not go on: {reason}");
    }
    Ok(Exit::Met)
}

/// Two stored comparisons beside each other, for the terminal.
pub fn compared(both: &Beside) -> String {
    in_flight::compared(both)
}

/// Measures, prints and checks the gates.
pub fn run(options: &Options) -> Result<Exit, Failure> {
    match &options.subject {
        Some(Subject::Leaderboard(leaderboard)) => {
            options.wait.enter(|| false)?;
            leaderboard::run(leaderboard)
        }
        // A part of the run that started it.
        Some(Subject::Runner { fault, plan }) => in_flight::rust::run(plan, *fault, &interrupt()?),
        None => {
            let interrupt = interrupt()?;
            options.wait.enter(|| interrupt.is_asked())?;
            in_flight::run(&options.in_flight, &interrupt)
        }
    }
}

fn interrupt() -> Result<Interrupt, Failure> {
    Interrupt::take().map_err(console::exit::not_measured)
}
