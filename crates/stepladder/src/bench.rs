//! `stepladder bench`: client libraries with a number of operations in flight, or a library in this process.
//!
//! `bench --target URL` judges client libraries of several languages on one server by the same rules; `bench SUBJECT`
//! what a library does in this process, without network and without a ladder. A subject has options of its own.

mod gate;
mod in_flight;
mod leaderboard;

use clap::Subcommand;

use crate::exit::{Exit, Failure};
use crate::signals::Interrupt;

/// Options of `bench`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    subject: Option<Subject>,
    #[command(flatten)]
    in_flight: in_flight::Options,
}

/// What is measured in this process.
#[derive(Debug, Subcommand)]
enum Subject {
    /// Implementations of the leaderboard, side by side: updates, ranks and bulks per second, and why they differ
    Leaderboard(leaderboard::Options),
    /// Carry out one plan with the Rust clients and print the lines that clients/README.md describes
    #[command(hide = true)]
    Runner {
        /// the plan, a JSON object
        plan: String,
    },
}

/// Measures, prints and checks the gates.
pub fn run(options: &Options) -> Result<Exit, Failure> {
    match &options.subject {
        Some(Subject::Leaderboard(options)) => leaderboard::run(options),
        Some(Subject::Runner { plan }) => in_flight::rust::run(plan, &interrupt()?),
        None => in_flight::run(&options.in_flight, &interrupt()?),
    }
}

fn interrupt() -> Result<Interrupt, Failure> {
    Interrupt::take().map_err(crate::exit::not_measured)
}
