//! What is written about a run besides the terminal output. For finished and stored runs: JSON, JUnit XML and Markdown.
//! While a run goes on: lines of JSON (`lines`) and running totals, for programs that scrape (`metrics`) and for
//! collectors (`otlp`).
//!
//! The first three are built from the same answers, and their wording comes from `ladder`. Text from servers under test
//! is written as plain text: escaped, without control characters, secrets masked.

mod duel_answer;
mod files;
mod followed;
mod junit;
mod lines;
mod markdown;
mod metrics;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(test)]
mod planted;
mod results;

use std::path::PathBuf;

pub use self::duel_answer::DuelAnswer;
pub use self::files::{check_writable, write_json, write_text, write_whole};
pub use self::followed::{Followed, Followers};
pub use self::markdown::page_of_comparison;
pub use self::results::{ResultFiles, Results, append_step_summary};

/// Where the results go besides the terminal.
pub struct Outputs {
    /// the store
    pub store: PathBuf,
    /// the files
    pub results: ResultFiles,
    /// what is written while the run goes on
    pub followed: Followed,
    /// lines instead of the view in the terminal
    pub plain: bool,
}

impl Outputs {
    /// Whether something else is written to standard output, so that the results page goes to standard error.
    pub fn take_stdout(&self) -> bool {
        self.results.take_stdout() || self.followed.takes_stdout()
    }
}
