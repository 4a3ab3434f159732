//! What a run reports about other runs on the same machine, and how it waits for them (`watch::other_runs`).
//!
//! The effect on its own figures is judged separately: each second in which another run is active counts as disturbed.

use clap::Args;
use watch::other_runs::{self, OtherRun};

use crate::exit::{Exit, Failure, not_measured};
use crate::say;

/// Whether it waits.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Wait {
    /// Wait until no other run of Stepladder is under way on this machine
    #[arg(long)]
    pub wait: bool,
}

impl Wait {
    /// Counts this process as a run, and says what else goes on. Errors: it was asked to end while it waited.
    pub fn enter(self, is_asked_to_end: impl Fn() -> bool) -> Result<(), Failure> {
        let tell = |other: OtherRun| {
            say::err_line!("stepladder: waiting for another run on this machine{} to end", described(other));
        };
        let others = other_runs::enter(self.wait, tell, is_asked_to_end).map_err(|error| {
            if error.kind() == std::io::ErrorKind::Interrupted {
                return (Exit::Interrupted, anyhow::anyhow!("it ended while it waited for another run"));
            }
            not_measured(error)
        })?;
        if let Some(other) = others.first() {
            say::err_line!(
                "stepladder: another run has been under way on this machine{}: each takes CPU from the other, so an objective \
                 that is not met may be INCONCLUSIVE; --wait waits for its end",
                described(*other)
            );
        }
        Ok(())
    }
}

/// ` since 16:04 UTC (pid 4711)`
fn described(other: OtherRun) -> String {
    let since = i64::try_from(other.since_unix_ms).ok().filter(|ms| *ms > 0);
    let since = since.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let since = since.map_or(String::new(), |instant| format!(" since {} UTC", instant.strftime("%H:%M")));
    let pid = if other.pid > 0 { format!(" (pid {})", other.pid) } else { String::new() };
    format!("{since}{pid}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_run_is_described_by_what_is_known_of_it() {
        let check = |pid, since_unix_ms, expected: &str| {
            assert_eq!(described(OtherRun { pid, since_unix_ms }), expected);
        };
        check(4711, 1_795_230_437_402, " since 03:07 UTC (pid 4711)");
        check(0, 0, "");
        check(7, u64::MAX, " (pid 7)");
    }
}
