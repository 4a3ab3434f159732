//! `duel`: two servers in alternation. Its conclusion depends on the machine. That it is one complete run, replays
//! identically and shuts down in order does not.

use serde_json::Value;

use crate::follow::assert_lines_are_valid;
use crate::main_job::assert_valid;
use crate::place::Place;
use crate::viewing::inside;

#[track_caller]
fn refused(words: &[&str], fragments: &[&str]) {
    let place = Place::new();
    place.run([&["duel"], words].concat()).refused(3, fragments);
    assert!(!place.path("stepladder.db").exists(), "nothing was begun");
}

#[test]
fn mistakes_are_refused_with_the_side_they_are_in() {
    refused(&["arenaa", "arena"], &["A, `arenaa`", "unknown subject \"arenaa\"", "did you mean arena?"]);
    refused(&["arena", "arena --rungz 5"], &["B, `arena --rungz 5`", "--rungz"]);
    refused(&["arena", " --rungs 5"], &["B, ` --rungs 5`", "begins with no subject"]);
    refused(&["arena -- 'x", "arena"], &["A, ", "a quote is not closed"]);
    refused(&["arena --json x", "arena"], &["A, ", "--json is not for one side"]);
    refused(&["arena", "arena --seed 4"], &["B, ", "--seed is not for one side"]);
}

#[test]
fn sides_that_contradict_each_other_are_refused() {
    refused(
        &["arena --hold 5s", "arena", "--hold", "6s"],
        &["--hold is said for A", "with another value, for both"],
    );
    refused(&["arena --rungs 5", "arena --rungs 6"], &["A is loaded with [5.0] games, B with [6.0]"]);
    refused(&["arena", "chat"], &["A's loads are counted in games, B's in clients"]);
    refused(&["arena", "arena", "--hold", "1000games"], &["give --hold as a time"]);
    refused(&["http://127.0.0.1:1 --requesters 1..", "arena"], &["A: loads without an end"]);
    refused(&["poll-loop", "poll-loop"], &["A: this is a sweep of 6 cells", "name one value of each axis"]);
}

#[test]
fn gates_budget_and_delta_are_read_before_anything_is_started() {
    let gate = |gate: &str, needle: &str| refused(&["arena", "arena", "--gate", gate], &["--gate", needle]);
    gate("response.p98 <= +5%", "did you mean");
    gate("ticks.late_share <= +5%", "percentage points");
    refused(
        &["arena", "arena", "--rungs", "5", "--hold", "10s", "--budget", "30s"],
        &["--budget 30s: a block of A and B under this load takes about", "before 4 blocks", "--budget 1"],
    );
    refused(&["arena", "arena", "--delta", "0%"], &["--delta 0%", "write it as 5%"]);
}

const DUEL: [&str; 12] = [
    "duel",
    "arena -- --ticker steady",
    "arena -- --ticker catch-up",
    "--rungs",
    "4",
    "--hold",
    "1s",
    "--settle",
    "200ms",
    "--budget",
    "28s",
    "--no-calibration",
];

#[test]
fn a_duel_is_one_run_of_both_sides_that_is_replayed_alike() {
    let place = Place::new();
    let outputs = "--json duel.json --ndjson duel.ndjson --junit duel.xml --markdown duel.md";
    let report = if viewer::page_is_built() { " --report told.html" } else { "" };
    let outputs = format!("{outputs}{report}");
    let ran = place.run(DUEL.into_iter().chain(outputs.split(' ')));
    assert!([0, 2].contains(&ran.code), "measured or not: {ran:#?}");
    let told = place.json("duel.json");
    assert_valid(&told);
    let rungs = told["rungs"].as_array().expect("rungs");
    let sides: Vec<&str> = rungs.iter().filter_map(|rung| rung["cell"]["side"].as_str()).collect();
    assert_eq!(sides.len(), rungs.len());
    let load = &told["duel"]["loads"][0];
    let dropped = load["dropped"].as_array().expect("dropped blocks").len();
    let blocks = load["blocks"].as_u64().expect("a number") as usize;
    assert!(
        blocks + dropped >= 1 && 2 * blocks <= rungs.len() && rungs.len() <= 2 * (blocks + dropped),
        "{load:#}"
    );
    assert_eq!(told["duel"]["differs"][0]["what"], "subject.source.built_in.options");
    if blocks > 0 {
        let names: Vec<&str> = load["figures"]
            .as_array()
            .expect("figures")
            .iter()
            .filter_map(|one| one["figure"].as_str())
            .collect();
        assert!(names.contains(&"ticks.late_share"), "{names:?}");
        assert!(ran.out.contains("B against A") && ran.out.contains("ticks.late_share"), "{ran:#?}");
    }
    let of = |name: &str| std::fs::read_to_string(place.path(name)).expect("it was written");
    assert_eq!(of("duel.xml").contains("failures=\"0\" errors=\"0\""), ran.code == 0, "{}", of("duel.xml"));
    assert!(of("duel.md").contains("\n### 4 games, "), "{}", of("duel.md"));
    let id = told["run"]["id"].as_str().expect("an id");
    let shown = place.run(["show", id, "--json", "again.json"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    assert_eq!(place.json("again.json"), told, "a replay says the same");
    assert_eq!(shown.out, ran.out);
    let lines = std::fs::read_to_string(place.path("duel.ndjson")).expect("lines");
    let trials = assert_lines_are_valid(&lines).into_iter().filter(|line| line["type"] == "trial_end");
    assert_eq!(trials.count(), rungs.len(), "calibrations were left out");
    let runs = place.run(["runs"]);
    assert!(runs.out.contains(id) && runs.out.contains("At 4 games"), "{runs:#?}");
    if viewer::page_is_built() {
        assert!(
            place.path("told.html").metadata().is_ok_and(|file| file.len() > 10_000),
            "the report of the duel"
        );
        assert_eq!(place.run(["report", id, "-o", "duel.html"]).code, 0);
        let page = inside(&std::fs::read_to_string(place.path("duel.html")).expect("the report"));
        assert_eq!((&page["duel"], &page["run"]["kind"]), (&told["duel"], &"duel".into()));
        assert_eq!(page["climb"]["conclusions"], told["conclusions"]);
        assert_eq!(page["trials"].as_array().map(Vec::len), Some(rungs.len()), "without calibrations");
    }
    place.run(["again", id]).refused(3, &["was a duel", "run its command again"]);
    place.run(["compare", id, id]).refused(3, &["each compares two servers itself"]);
}

#[test]
fn a_duel_that_is_interrupted_keeps_what_it_has() {
    let place = Place::new();
    let mut running = place.start([&DUEL[..], &["--json", "duel.json"]].concat());
    running.wait_for("rung 4 games");
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code, 130, "{ran:#?}");
    let told: Value = place.json("duel.json");
    assert_eq!(told["duel"]["ended_because"], "interrupted");
    assert!(place.run(["runs"]).out.contains("interrupted"));
}
