//! `stepladder view`: runs the viewer standalone.

use std::sync::Arc;

use anyhow::Context as _;
use climb::viewing;
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::say;
use console::signals::Interrupt;
use store::{Store, StoreError};
use versus::Replay;

use crate::cli::ViewArgs;

/// `stepladder view`
pub fn view(args: &ViewArgs, interrupt: &Interrupt) -> Result<Exit, Failure> {
    match Store::open_to_read(&args.store) {
        // A climb may create it later, or is about to.
        Ok(_) | Err(StoreError::NoStore { .. }) => {}
        // A file that is no store is reported at once, not on a page.
        Err(error) => return Err(climb::stored::no_store(error)),
    }
    for path in &args.files {
        std::fs::metadata(path)
            .with_context(|| format!("{}: this tick log cannot be read; check the path", path.display()))
            .map_err(wrong_usage)?;
    }
    let viewer = viewing::start(&args.store, args.listen, args.files.clone(), Arc::new(Replay::default()))?;
    say::out_line!("stored runs: {}\nCtrl-C ends the viewer", viewer.url());
    if args.open {
        viewing::open(&viewer, "").map_err(not_measured)?;
    }
    viewing::wait(interrupt);
    Ok(Exit::Met)
}
