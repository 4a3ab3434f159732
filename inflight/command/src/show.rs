//! How a stored comparison is shown: its page, and its line in the list of runs.

use std::path::Path;

use climb::outputs::write_json;
use console::exit::{Exit, Failure, not_measured};
use console::say;
use inflight_analysis::Report;
use store::{RunEnd, RunId, RunKind, RunRecord, RunState, Store};

use crate::duel;
use crate::stored::stored;
use crate::table::Table;

/// The table and what follows from it, with the name of the run.
pub fn page(report: &Report, run: &RunId) -> String {
    format!("{}\nrun {run} · stepladder show {run}\n", Table(report))
}

/// Whether a stored comparison of client libraries is a duel.
pub fn is_duel(record: &RunRecord) -> bool {
    record.head.kind == RunKind::Bench && duel::is_duel(record)
}

/// The answer of a run in the list of runs.
pub fn answer(store: &Store, record: &RunRecord) -> String {
    if let RunState::Ended(RunEnd { reason: Some(reason), .. }) = &record.state {
        return reason.clone();
    }
    let answered = if duel::is_duel(record) {
        duel::answer(store, record)
    } else {
        stored(store, &record.id).map(|report| report.in_one_line())
    };
    answered.unwrap_or_else(|error| format!("{error:#}"))
}
/// `stepladder show` of a comparison of client libraries: the table as it was told, made of the stored lines once more.
pub fn show(store: &Store, record: &RunRecord, json: Option<&Path>) -> Result<Exit, Failure> {
    let report = stored(store, &record.id).map_err(not_measured)?;
    write_json(&serde_json::to_string_pretty(&report.contract()).map_err(not_measured)?, json)
        .map_err(not_measured)?;
    if json != Some(Path::new("-")) {
        say::out_text!("{}", page(&report, &record.id));
    }
    if let RunState::Ended(RunEnd { reason: Some(reason), .. }) = &record.state {
        say::err_line!("stepladder: it could not go on: {reason}");
    }
    Ok(Exit::Met)
}
