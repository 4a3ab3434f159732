//! The command-line request for a duel of two client libraries. `inflight/command`, which knows the libraries, runs it.

use std::path::Path;

use anyhow::bail;
use climb::outputs::ResultFiles;
use ladder::duel::Gate;

/// The word that a side begins with.
const WORD: &str = "bench";

/// What is asked of a duel of libraries.
pub struct Asked<'a> {
    /// A and B, as they were written
    pub texts: [&'a str; 2],
    /// changes that must be kept
    pub gates: Vec<Gate>,
    /// how long all of it may take, ns
    pub budget_ns: u64,
    /// what differs by less counts as equal, e.g. 0.05
    pub delta: f64,
    /// the files of its results
    pub results: &'a ResultFiles,
    /// the project's store
    pub store: &'a Path,
    /// whether the page is shown meanwhile
    pub view: bool,
    /// where the results go as one HTML file
    pub report: Option<&'a Path>,
}

/// Whether both sides are runs of `bench`. Errors: one is and the other is not.
pub fn is_meant(texts: [&str; 2]) -> anyhow::Result<bool> {
    let is_bench = texts.map(|text| text.split_whitespace().next() == Some(WORD));
    if is_bench[0] != is_bench[1] {
        bail!("one side is a client library (bench …) and the other a server; a duel compares two of a kind");
    }
    Ok(is_bench[0])
}
