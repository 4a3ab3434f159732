//! `report`, and `climb --report`: a run as one file for people who have neither the store nor the program.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use store::{RunId, Store};
use viewer::ViewError;

use crate::cli::ReportArgs;
use crate::climb;
use crate::outputs::{check_writable, write_whole};
use crate::view::Replay;

/// A file that a report will be written to.
pub struct Report {
    path: PathBuf,
}

impl Report {
    /// A report that cannot be written is known before the climb, not after.
    pub fn prepare(path: &Path) -> Result<Self, Failure> {
        if !viewer::page_is_built() {
            return Err(not_measured(ViewError::NoPage));
        }
        check_writable("report", Some(path)).map_err(wrong_usage)?;
        Ok(Report { path: path.to_owned() })
    }

    /// Writes the report of a stored run.
    pub fn write(self, store: &Path, run: &RunId) -> Result<(), Failure> {
        let store = Store::open_to_read(store).map_err(climb::no_store)?;
        let html = viewer::report(&store, run, &Replay::default()).map_err(not_measured)?;
        write_whole(&self.path, |out| Ok(out.write_all(html.as_bytes())?))
            .with_context(|| format!("report {}: cannot be written", self.path.display()))
            .map_err(not_measured)
    }
}

/// `stepladder report`
pub fn report(args: &ReportArgs) -> Result<Exit, Failure> {
    let store = Store::open_to_read(&args.store).map_err(climb::no_store)?;
    let run = store.find_run(&args.run).map_err(wrong_usage)?;
    Report::prepare(&args.output)?.write(&args.store, &run)?;
    Ok(Exit::Met)
}
