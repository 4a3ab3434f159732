//! `stepladder mark`: what a user did to the server, at its instant in the run that goes on.

use std::borrow::Cow;
use std::time::Duration;

use anyhow::anyhow;
use climb::stored::{no_store, unix_ms};
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::masks::mask;
use console::say;
use ladder::wording::show_number;
use measure::plain_text;
use plan::Plan;
use store::{RunId, RunKind, Store, StoreError};

use crate::cli::MarkArgs;

/// A mark stands beside a line of a chart.
const CHARS_MAX: usize = 200;
/// Between two looks for the next load.
const LOOK: Duration = Duration::from_millis(100);

/// `stepladder mark`
pub fn mark(args: &MarkArgs) -> Result<Exit, Failure> {
    let now_unix_ms = unix_ms();
    let store = Store::open(&args.store).map_err(no_store)?;
    let run = going_on(&store, args.run.as_deref())?;
    let head = store.run(&run).map_err(not_measured)?.head;
    if head.kind == RunKind::Bench {
        return Err(wrong_usage(anyhow!(
            "run {run} compares client libraries; only loads of a server take marks"
        )));
    }
    if let Ok(plan) = serde_json::from_str::<Plan>(&head.plan) {
        // Secrets that the plan names are masked where they are known here; that one is not set is no mistake of a mark.
        let _ = climb::secrets::check(&plan);
    }
    let text = plain(&args.text).map_err(wrong_usage)?;
    let mut waits = false;
    loop {
        match store.mark(&run, &text, now_unix_ms) {
            Ok(Some((head, at_ns))) => {
                let load = format!("{} {}", show_number(head.load), head.load_unit);
                say::out_line!("run {run}: marked at {:.1} s of {load}: {text}", at_ns as f64 / 1e9);
                return Ok(Exit::Met);
            }
            Ok(None) if waits => {}
            Ok(None) => {
                waits = true;
                say::err_line!(
                    "stepladder: run {run} holds no load now; the mark goes to the beginning of the next one"
                );
            }
            Err(StoreError::NotRecorded { .. }) if waits => {
                return Err(not_measured(anyhow!(
                    "run {run} ended without another load, so nothing was marked"
                )));
            }
            Err(error) => return Err(not_measured(error)),
        }
        std::thread::sleep(LOOK);
    }
}

/// The text as it is kept: in one line and without secrets.
fn plain(text: &str) -> anyhow::Result<String> {
    let text: Cow<'_, str> = mask(text);
    let length = text.chars().count();
    anyhow::ensure!(
        !text.trim().is_empty(),
        "the mark has no text; write what was done: stepladder mark 'deployed 1.4'"
    );
    anyhow::ensure!(
        length <= CHARS_MAX,
        "the mark has {length} characters, and {CHARS_MAX} is the most; shorten it"
    );
    Ok(plain_text(&text, CHARS_MAX))
}

/// The run that a mark is for: the one that is named, else the only one that goes on.
fn going_on(store: &Store, named: Option<&str>) -> Result<RunId, Failure> {
    if let Some(text) = named {
        return store.find_run(text).map_err(wrong_usage);
    }
    let runs = store.being_recorded().map_err(not_measured)?;
    let file = store.path().display();
    match runs.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(wrong_usage(anyhow!(
            "{file}: no run is being recorded, so there is nothing to mark; name the store of a run \
             that goes on with --store FILE"
        ))),
        several => {
            let names: Vec<&str> = several.iter().map(RunId::as_str).collect();
            Err(wrong_usage(anyhow!(
                "{file}: {} runs are being recorded ({}); name one: stepladder mark TEXT {}",
                names.len(),
                names.join(", "),
                names[0]
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_a_short_line_without_secrets() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = plain(text).map_err(|error| error.to_string());
            match expected {
                Ok(kept) => assert_eq!(found.as_deref(), Ok(kept), "{text:?}"),
                Err(part) => {
                    assert!(found.as_ref().is_err_and(|said| said.contains(part)), "{text:?}: {found:?}")
                }
            }
        };
        check("deployed 1.4", Ok("deployed 1.4"));
        check(" <b>two\nlines\u{1b}[2J\u{202e} ", Ok("<b>twolines[2J"));
        check(&"é".repeat(200), Ok(&"é".repeat(200)));
        check(&"é".repeat(201), Err("201 characters"));
        check(" \t", Err("no text"));
        console::masks::remember("hunter2hunter2");
        check("key is hunter2hunter2 now", Ok("key is ••• now"));
    }
}
