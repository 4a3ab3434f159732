//! `stepladder report`: a stored run as one file, for people who have neither the store nor the program.

use climb::viewing::Report;
use console::exit::{Exit, Failure, wrong_usage};
use store::Store;
use versus::Replay;

use crate::cli::ReportArgs;

/// `stepladder report`
pub fn report(args: &ReportArgs) -> Result<Exit, Failure> {
    let store = Store::open_to_read(&args.store).map_err(climb::stored::no_store)?;
    let run = store.find_run(&args.run).map_err(wrong_usage)?;
    Report::prepare(&args.output)?.write(&args.store, &run, &Replay::default())?;
    Ok(Exit::Met)
}
