//! `report`, and `climb --report`: a run as one file for people who have neither the store nor the program.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use store::{RunId, Store};
use viewer::ViewError;

use crate::cli::ReportArgs;
use crate::climb;
use crate::exit::{Exit, Failure, not_measured, wrong_usage};
use crate::view::Replay;

/// A file that a report will be written to.
pub struct Report {
    path: PathBuf,
    /// it was made to see whether it can be, and goes when nothing is written
    is_new: bool,
}

impl Report {
    /// A report that cannot be written is known before the climb, not after.
    pub fn prepare(path: &Path) -> Result<Self, Failure> {
        if !viewer::page_is_built() {
            return Err(not_measured(ViewError::NoPage));
        }
        let is_new = !path.exists();
        File::options()
            .append(true)
            .create(true)
            .open(path)
            .with_context(|| format!("report {}: cannot be written; check the folder", path.display()))
            .map_err(wrong_usage)?;
        Ok(Report { path: path.to_owned(), is_new })
    }

    /// Writes the report of a stored run.
    pub fn write(self, store: &Path, run: &RunId) -> Result<(), Failure> {
        let store = Store::open_to_read(store).map_err(climb::no_store)?;
        let html = viewer::report(&store, run, &Replay::default()).map_err(not_measured)?;
        std::fs::write(&self.path, html)
            .with_context(|| format!("report {}: cannot be written", self.path.display()))
            .map_err(not_measured)
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if self.is_new && self.path.metadata().is_ok_and(|file| file.len() == 0) {
            // An empty file more is no reason to complain.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// `stepladder report`
pub fn report(args: &ReportArgs) -> Result<Exit, Failure> {
    let store = Store::open_to_read(&args.store).map_err(climb::no_store)?;
    let run = store.find_run(&args.run).map_err(wrong_usage)?;
    Report::prepare(&args.output)?.write(&args.store, &run)?;
    Ok(Exit::Met)
}
