//! What is written of a run besides the terminal: JSON, JUnit XML and Markdown at its end and of a stored one, and while it
//! goes on lines of JSON (`lines`) and its sums for programs that ask (`metrics`) and for collectors (`otlp`).
//!
//! The first three are made of the same answers, and the words in them come from `ladder`. Texts of servers under test stand in
//! them as text: escaped, without control characters, and with secrets masked.

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
pub use self::files::{check_writable, write_json, write_whole};
pub use self::followed::{Followed, Followers};
pub use self::results::{ResultFiles, Results, append_step_summary};

/// Where the results go besides the terminal.
pub struct Outputs {
    /// the store
    pub store: PathBuf,
    /// the files
    pub results: ResultFiles,
    /// what is written while the run goes on
    pub followed: Followed,
}

impl Outputs {
    /// Whether something else is written to standard output, so that the results page goes to standard error.
    pub fn take_stdout(&self) -> bool {
        self.results.take_stdout() || self.followed.takes_stdout()
    }
}
