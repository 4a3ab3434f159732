//! `bisect`: which commit of a repository changed a figure. The effect is planted, and so large that any machine shows it.

use std::path::Path;
use std::process::Command;

use crate::place::{Place, Ran, Running};

pub fn git(folder: &Path, words: &[&str]) -> String {
    let settings =
        ["-c", "user.name=Ann Author", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").arg("-C").arg(folder).args(settings).args(words).output().expect("git");
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A history of revisions, each the options with which the loop is served; "broken" does not build.
pub fn repository(place: &Place, options: &[&str]) {
    let folder = place.path("repository");
    std::fs::create_dir_all(&folder).expect("a folder");
    git(&folder, &["init", "--quiet", "--initial-branch=main"]);
    for (at, options) in options.iter().enumerate() {
        std::fs::write(folder.join("options"), format!("{options}\n")).expect("a file");
        std::fs::write(folder.join("number"), at.to_string()).expect("a file");
        git(&folder, &["add", "--all"]);
        git(&folder, &["commit", "--quiet", "--message", &format!("Change {at}")]);
    }
    git(&folder, &["tag", "newest"]);
}

const LOAD: [&str; 8] =
    ["--requesters", "8", "--hold", "1s", "--settle", "100ms", "--no-calibration", "--budget"];

fn bisect(place: &Place, words: &[&str]) -> Ran {
    start(place, words).finish()
}

pub fn start(place: &Place, words: &[&str]) -> Running {
    let program = env!("CARGO_BIN_EXE_stepladder");
    let start = format!("exec '{program}' serve poll-loop --listen 127.0.0.1:{{port}} $(cat options)");
    let common =
        ["bisect", "http://127.0.0.1:{port}/", "--repo", "repository", "--bad", "newest", "--start", &start];
    place.start([&common[..], &LOAD[..], &["1m"], words].concat())
}

#[test]
fn the_commit_is_found_over_one_that_does_not_build() {
    let place = Place::new();
    // 90 ticks a second, then 30: what is answered per tick takes three times as long.
    repository(&place, &["--tick-rate 90", "broken", "--tick-rate 30"]);
    let ran = bisect(
        &place,
        &[
            "--good",
            "newest~2",
            "--build",
            "! grep broken options",
            "--figure",
            "response.p50",
            "--json",
            "found.json",
        ],
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    let json = place.json("found.json");
    let found = &json["bisect"];
    // Which of the two it is cannot be known.
    assert_eq!(
        found["found"],
        serde_json::json!({ "found": "between", "before": 0, "changed": 2 }),
        "{found:#}"
    );
    let steps = found["comparisons"].as_array().expect("comparisons");
    assert_eq!(steps[1]["look"], "untestable", "{found:#}");
    let estimate = steps[0]["estimate"].as_f64().expect("a ratio");
    assert!((2.0..4.0).contains(&estimate), "{found:#}");
    assert!(
        ran.out.contains("One of 2 revisions changed it") && ran.out.contains("\"Change 2\""),
        "{ran:#?}"
    );
    // The user's tree is unchanged, and the trees of the search are gone.
    let listed = git(&place.path("repository"), &["worktree", "list"]);
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let options = std::fs::read_to_string(place.path("repository/options"));
    assert_eq!(options.expect("the user's own file"), "--tick-rate 30\n");
}

#[test]
fn what_cannot_be_searched_is_said_before_anything_is_built() {
    let place = Place::new();
    repository(&place, &["", ""]);
    let refused = |words: &[&str], fragments: &[&str]| bisect(&place, words).refused(3, fragments);
    refused(&["--good", "nothing"], &["--good nothing", "has no such revision"]);
    refused(&["--good", "--output=x"], &["unknown option --output"]);
    refused(&["--good=--output=x"], &["--good", "--output=x"]);
    refused(&["--good", "newest"], &["are the same revision"]);
    refused(&["--good", "newest~1", "--figure", "response.p98"], &["--figure response.p98", "did you mean"]);
    place
        .run(["bisect", "http://127.0.0.1:9/", "--good", "a", "--bad", "b", "--start", "x {port}"])
        .refused(3, &["URL `http://127.0.0.1:9/`", "write {port}"]);
    place
        .run(["bisect", "http://127.0.0.1:{port}/", "--good", "a", "--bad", "b"])
        .refused(3, &["--start is missing"]);
    assert!(!place.path("stepladder.db").exists(), "nothing was begun");
}
