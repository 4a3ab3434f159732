//! Programs that follow a run while it goes on: lines of JSON, and readers that stall, close or never connect.

use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::main_job;
use crate::place::{Place, parse};

const QUICK: [&str; 9] =
    ["climb", "arena", "--rungs", "2", "--hold", "2s", "--settle", "200ms", "--no-calibration"];

#[track_caller]
pub fn assert_lines_are_valid(text: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/method/follow.schema.json");
    let schema = parse(&fs::read_to_string(path).expect("the schema"));
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    let check = |line: &str| {
        let line = parse(line);
        let errors: Vec<String> = validator.iter_errors(&line).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{line:#}: {errors:#?}");
        line
    };
    text.lines().map(check).collect()
}

#[test]
fn the_lines_of_a_climb_are_those_of_its_export_and_have_the_documented_form() {
    let place = main_job::with_its_store();
    let followed = main_job::followed_lines();
    let lines = assert_lines_are_valid(&followed);
    let ran = place.run(["export", "arena", "--ndjson", "export.ndjson"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let exported = fs::read_to_string(place.path("export.ndjson")).expect("the export");
    assert!(exported == followed, "{} and {} bytes", exported.len(), followed.len());
    assert!(place.run(["export", "arena", "--ndjson", "-"]).out == followed);
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    let told = main_job::run_json();
    // The lines and the final JSON report the same about a rung.
    for rung in told["rungs"].as_array().expect("rungs") {
        let trial = &rung["seq"];
        let sum = |what: &str| -> u64 {
            let seconds = of("interval").into_iter().filter(|line| line["trial"] == *trial);
            let counted = |line: &Value| {
                let phases = line["operations"].as_object().expect("operations").values();
                phases.filter_map(|phases| phases["hold"][what].as_u64()).sum::<u64>()
            };
            seconds.map(counted).sum()
        };
        assert_eq!(rung["offered"].as_u64(), Some(sum("offered")), "{rung:#}");
        let verdicts = of("verdict");
        let verdict = verdicts.iter().find(|line| line["trial"] == *trial).expect("its verdict");
        assert_eq!(verdict["verdict"], rung["verdict"]);
    }
    let last = lines.last().expect("lines");
    assert_eq!((&last["type"], &last["verdict"]), (&Value::from("run_end"), &told["verdict"]));
}

/// A climb whose standard output is a pipe of one page.
fn piped(place: &Place) -> Child {
    let mut command: Command = place.command(QUICK);
    let mut child = command
        .args(["--ndjson", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let out = child.stdout.as_mut().expect("a pipe");
    // SAFETY: the descriptor is open, and the call takes a number.
    let size = unsafe { libc::fcntl(out.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) };
    assert!(size >= 4096, "the pipe is small");
    child
}

fn said(child: Child) -> (i32, String) {
    let output = child.wait_with_output().expect("it ends");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_reader_that_takes_nothing_does_not_hold_up_the_run_and_is_told_what_it_missed() {
    let place = Place::new();
    let mut child = piped(&place);
    let mut out = child.stdout.take().expect("a pipe");
    let (code, err) = said(child);
    assert!(code <= 2 && err.contains("How many?"), "{code}: {err}");
    let missed =
        err.lines().find(|line| line.contains("were not written")).unwrap_or_else(|| panic!("{err}"));
    let number = |before: &str| {
        let words: Vec<&str> = missed.split_whitespace().collect();
        let at = words.iter().position(|word| *word == before).expect("the word behind the number");
        words[at - 1].parse::<usize>().expect("a number")
    };
    let mut text = String::new();
    out.read_to_string(&mut text).expect("what was written");
    let export = place.run(["export", "arena-1", "--ndjson", "-"]).out;
    assert!(export.starts_with(&text), "what was written is the beginning");
    assert_eq!(text.matches('\n').count(), number("lines,"), "{missed}");
    assert_eq!(export.lines().count(), number("lines,") + number("were"), "{missed}");
}

#[test]
fn a_reader_that_leaves_ends_its_lines_and_not_the_run() {
    let place = Place::new();
    let mut child = piped(&place);
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    out.read_line(&mut first).expect("a line");
    drop(out);
    assert_eq!(parse(&first)["type"], "run_begin");
    let (code, err) = said(child);
    assert!(code <= 2 && err.contains("How many?"), "{code}: {err}");
    assert!(
        !err.contains("--ndjson") && !err.contains("ipe"),
        "a reader that has enough is nothing to talk of: {err}"
    );
    let runs = place.run(["runs"]);
    assert!(runs.out.contains("arena-1") && !runs.out.contains("interrupted"), "{runs:#?}");
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_anything_is_started() {
    let place = Place::new();
    let refused = |words: &[&str], fragments: &[&str]| {
        place.run([&QUICK[..], words].concat()).refused(3, fragments);
        assert!(!place.path("stepladder.db").exists(), "nothing was begun");
    };
    refused(&["--ndjson", "-", "--json", "-"], &["--ndjson - and --json -", "name two files"]);
    refused(&["--ndjson", "no/such/folder"], &["--ndjson no/such/folder", "check the folder"]);
    let fifo = place.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    refused(&["--ndjson", "fifo"], &["--ndjson fifo", "nobody reads this FIFO; start its reader first"]);
}
