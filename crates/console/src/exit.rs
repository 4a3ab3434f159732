//! How the process ends: its exit code, and the message that goes with a failure.

use std::process::ExitCode;

use ladder::{Climb, Verdict};

/// The exit codes of `stepladder`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// every objective was met, or the request succeeded
    Met = 0,
    /// an objective was not met
    NotMet = 1,
    /// could not be measured
    NotMeasured = 2,
    /// the command line, or a file that it names, is wrong
    WrongUsage = 3,
    /// ended by Ctrl-C, SIGTERM or SIGHUP
    Interrupted = 130,
}

/// Why a command ended without an answer. The message goes to standard error.
pub type Failure = (Exit, anyhow::Error);

/// A failure that is not the user's mistake.
pub fn not_measured(error: impl Into<anyhow::Error>) -> Failure {
    (Exit::NotMeasured, error.into())
}

/// A mistake on the command line or in a file.
pub fn wrong_usage(error: impl Into<anyhow::Error>) -> Failure {
    (Exit::WrongUsage, error.into())
}

impl Exit {
    /// Of a whole run: its gates decide where it has some, else its verdict.
    pub fn of(climb: &Climb) -> Exit {
        if climb.gates.is_empty() {
            return climb.verdict.into();
        }
        let met: Vec<Option<bool>> = climb.gates.iter().map(|gate| gate.met).collect();
        if met.contains(&Some(false)) {
            Exit::NotMet
        } else if met.contains(&None) {
            Exit::NotMeasured
        } else {
            Exit::Met
        }
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Exit {
        match verdict {
            Verdict::Pass => Exit::Met,
            Verdict::Fail => Exit::NotMet,
            Verdict::GeneratorLimited | Verdict::Inconclusive | Verdict::Invalid => Exit::NotMeasured,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
