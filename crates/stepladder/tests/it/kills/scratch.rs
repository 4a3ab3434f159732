//! SIGKILL of commands that work in a temporary folder: the folder is removed too.

use std::fs;
use std::path::PathBuf;

use crate::kills::{left, note};
use crate::place::{Place, eventually};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stepladder");

/// Folders of ours in TMPDIR.
fn folders(place: &Place) -> Vec<PathBuf> {
    let names = place.files_ending("").into_iter().filter(|name| name.starts_with("stepladder-"));
    names.map(|name| place.path(&name)).filter(|path| path.is_dir()).collect()
}

/// Kills a command as soon as its folder is not empty.
fn check(what: &str, words: &[&str]) {
    let place = Place::new();
    let running = place.start(words);
    eventually("something is written to a temporary folder", || {
        let folders = folders(&place);
        folders.iter().any(|folder| fs::read_dir(folder).is_ok_and(|files| files.count() > 0)).then_some(())
    });
    running.signal(libc::SIGKILL);
    running.finish();
    eventually("no temporary folder is left", || folders(&place).is_empty().then_some(()));
    eventually("no process is left", || left(&place).is_none().then_some(()));
    // No process that was still writing has recreated the folder.
    assert_eq!(folders(&place), Vec::<PathBuf>::new());
    note(what, 0, 0, "no folder is left");
}

#[test]
fn a_selftest_that_is_killed_leaves_no_folder() {
    check("selftest", &["selftest", "--quick", "--only", "arena"]);
}

#[test]
fn a_profile_that_is_killed_leaves_no_folder() {
    let client = format!(
        r#"planted() {{ f=${{INFLIGHT_PROFILE#alloc:}}; if [ -n "$f" ]; then echo "user:keep 9" > "$f"; sleep 60; fi; {PROGRAM} bench runner "$1"; }}; planted"#
    );
    let options = ["bench", "--target", "null:", "--total", "1000", "--runs", "1", "--client", &client];
    check("bench --profile", &[&options[..], &["--profile", "alloc:heap"]].concat());
}

#[test]
fn a_duel_of_libraries_that_is_killed_leaves_no_folder() {
    let side = "bench --target null: --client rust";
    check("duel of libraries", &["duel", side, side]);
}
