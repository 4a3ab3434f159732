//! `stepladder bench SUBJECT`: what a library does in this process, without network and without a ladder.
//!
//! A subject is a subcommand with options of its own; what all have in common is `--json` and `--gate`, which makes the
//! command a performance test: a condition on a figure, and exit code 1 when it does not hold.

mod gate;
mod leaderboard;

use clap::Subcommand;

use crate::exit::{Exit, Failure};

/// What is measured.
#[derive(Debug, Subcommand)]
pub enum Subject {
    /// Implementations of the leaderboard, side by side: updates, ranks and bulks per second, and why they differ
    Leaderboard(leaderboard::Options),
}

/// Measures, prints and checks the gates.
pub fn run(subject: &Subject) -> Result<Exit, Failure> {
    match subject {
        Subject::Leaderboard(options) => leaderboard::run(options),
    }
}
