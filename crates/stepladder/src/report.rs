//! `stepladder report`: a stored run, or the history of all, as one file for people who have neither the store nor the program.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use climb::outputs::{check_writable, write_whole};
use climb::stored::no_store;
use climb::viewing::Report;
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::say;
use store::Store;
use versus::Replay;

use crate::cli::ReportArgs;

/// Folders within each other that are looked through.
const DEPTH_MAX: usize = 16;

/// `stepladder report`
pub fn report(args: &ReportArgs) -> Result<Exit, Failure> {
    match (&args.run, &args.history) {
        (Some(run), _) => {
            let store = Store::open_to_read(&args.store).map_err(no_store)?;
            let run = store.find_run(run).map_err(wrong_usage)?;
            Report::prepare(&args.output)?.write(&args.store, &run, &Replay::default())?;
            Ok(Exit::Met)
        }
        (None, paths) => history(paths.as_deref().unwrap_or_default(), args),
    }
}

/// The history of the project's store, or of all stores at these paths.
fn history(paths: &[PathBuf], args: &ReportArgs) -> Result<Exit, Failure> {
    check_writable("report", Some(&args.output)).map_err(wrong_usage)?;
    let paths = if paths.is_empty() { std::slice::from_ref(&args.store) } else { paths };
    let mut stores = Vec::new();
    for path in paths {
        if !path.is_dir() {
            stores.push(Store::open_to_read(path).map_err(no_store)?);
            continue;
        }
        let mut files = Vec::new();
        files_below(path, DEPTH_MAX, &mut files)
            .with_context(|| format!("--history {}", path.display()))
            .map_err(wrong_usage)?;
        let before = stores.len();
        for file in files {
            match Store::open_to_read(&file) {
                Ok(store) => stores.push(store),
                Err(error) => say::err_line!("stepladder: left out: {error}"),
            }
        }
        if stores.len() == before {
            return Err(wrong_usage(anyhow!(
                "--history {}: no store is in this folder or below it; their names end with .db",
                path.display()
            )));
        }
    }
    let page = viewer::history(&stores).map_err(not_measured)?;
    write_whole(&args.output, |out| Ok(out.write_all(page.html.as_bytes())?))
        .with_context(|| format!("report {}: cannot be written", args.output.display()))
        .map_err(not_measured)?;
    page.damaged.iter().for_each(|error| say::err_line!("stepladder: {error}"));
    Ok(if page.damaged.is_empty() { Exit::Met } else { Exit::NotMeasured })
}

/// Files that may be stores, in the order of their names; links are not followed.
fn files_below(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && depth > 0 {
            files_below(&path, depth - 1, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|ending| ending == "db") {
            files.push(path);
        }
    }
    Ok(())
}
