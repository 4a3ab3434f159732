//! `stepladder bench`: client libraries with a number of operations in flight, or a library in this process.
//!
//! `bench --target URL` measures client libraries of several languages against one server by the same rules. `bench
//! SUBJECT` measures a library in this process, without network or ladder. Each subject has its own options.

mod gate;
mod leaderboard;

use clap::Subcommand;
use console::exit::{Exit, Failure};
use console::other_runs::Wait;
use console::signals::Interrupt;

/// Options of `bench`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    subject: Option<Subject>,
    #[command(flatten)]
    in_flight: inflight_command::Options,
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
        fault: Option<inflight_command::Fault>,
        /// the plan, a JSON object
        plan: String,
    },
}

/// Measures, prints and checks the gates.
pub fn run(options: &Options) -> Result<Exit, Failure> {
    match &options.subject {
        Some(Subject::Leaderboard(leaderboard)) => {
            options.wait.enter(|| false)?;
            leaderboard::run(leaderboard)
        }
        // Started by the run as one of its processes.
        Some(Subject::Runner { fault, plan }) => inflight_command::run_plan(plan, *fault, &interrupt()?),
        None => {
            let interrupt = interrupt()?;
            options.wait.enter(|| interrupt.is_asked())?;
            inflight_command::run(&options.in_flight, &interrupt)
        }
    }
}

fn interrupt() -> Result<Interrupt, Failure> {
    Interrupt::take().map_err(console::exit::not_measured)
}
