//! `climb arena` and what can be done with its run afterwards.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;

use crate::place::{Place, Ran, parse};

/// Fast bullets make games of about a second, so that some are completed within a short hold.
const CLIMB: [&str; 15] = [
    "climb",
    "arena",
    "--rungs",
    "10,20",
    "--hold",
    "3s",
    "--settle",
    "200ms",
    "--json",
    "run.json",
    "--ndjson",
    "run.ndjson",
    "--",
    "--bullet-speed",
    "1500",
];

/// One climb for all tests that only look at it.
fn climbed() -> &'static (Place, Ran) {
    static CLIMBED: OnceLock<(Place, Ran)> = OnceLock::new();
    CLIMBED.get_or_init(|| {
        let place = Place::new();
        let ran = place.run(CLIMB);
        assert!(ran.code <= 2 && place.path("run.json").exists(), "the climb came to its end: {ran:#?}");
        (place, ran)
    })
}

/// A copy of that climb's store, to write to.
pub fn with_its_store() -> Place {
    let place = Place::new();
    fs::copy(climbed().0.path("stepladder.db"), place.path("stepladder.db"))
        .expect("the store can be copied");
    place
}

/// What was written while it went on.
pub fn followed_lines() -> String {
    fs::read_to_string(climbed().0.path("run.ndjson")).expect("lines")
}

pub fn run_json() -> Value {
    climbed().0.json("run.json")
}

pub fn exit_code_of(verdict: &Value) -> i32 {
    match verdict.as_str() {
        Some("PASS") => 0,
        Some("FAIL") => 1,
        _ => 2,
    }
}

#[track_caller]
pub fn assert_valid(run: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ladder/tests/run.schema.json");
    let schema = parse(&fs::read_to_string(path).expect("the schema"));
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    let errors: Vec<String> =
        validator.iter_errors(run).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[track_caller]
pub fn assert_balanced(run: &Value) {
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or_else(|| panic!("{name} in {of}"));
    for rung in run["rungs"].as_array().expect("rungs") {
        assert_eq!(number(rung, "offered"), number(rung, "sent") + number(rung, "not_sent"), "{rung:#}");
        for (op, flow) in rung["flows"].as_object().expect("flows") {
            let sum = |names: &[&str]| names.iter().map(|name| number(flow, name)).sum::<u64>();
            assert_eq!(sum(&["offered"]), sum(&["sent", "not_sent"]), "{op}: {flow}");
            let left = sum(&["told", "answered", "failed", "lost", "open_after"]);
            assert_eq!(sum(&["open_before", "sent"]), left, "{op}: {flow}");
            assert!(number(flow, "late") <= number(flow, "answered"), "{op}: {flow}");
        }
    }
}

/// What the last climb there wrote to `run.json`, which is valid and balanced.
#[track_caller]
pub fn checked_run(place: &Place) -> Value {
    let run = place.json("run.json");
    assert_valid(&run);
    assert_balanced(&run);
    run
}

#[test]
fn the_json_of_a_climb_is_valid_and_its_verdict_is_the_exit_code() {
    let (_, ran) = climbed();
    let run = run_json();
    assert_valid(&run);
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    for question in ["How many?", "Why not more?", "Can I trust it?"] {
        assert!(ran.out.contains(question), "{ran:#?}");
    }
}

#[test]
fn every_rung_has_the_figures_that_people_look_for() {
    let run = run_json();
    let rungs = run["rungs"].as_array().expect("rungs");
    assert_eq!(rungs.iter().map(|rung| rung["load"].as_f64()).collect::<Vec<_>>(), [Some(10.0), Some(20.0)]);
    for rung in rungs {
        assert_eq!(rung["load_unit"], "games");
        assert_eq!(rung["bots"].as_f64(), rung["load"].as_f64().map(|games| games * 2.0));
        assert_eq!(rung["connections"]["asked"], rung["bots"]);
        for path in [
            "/ticks/due",
            "/ticks/late_share",
            "/ticks/interval_ns/p50",
            "/ticks/busy_ns/p50",
            "/send_lag_ns/p50",
            "/response_ns/count",
            "/service_ns/count",
            "/connections/handshake_ns/count",
            "/subject/cpu_cores",
            "/subject/cpu_share",
            "/subject/rss_bytes",
            "/worker/cpu_cores",
            "/worker/rss_bytes",
            "/worker/busy_share_max",
            "/hold_s",
            "/rate_per_s",
        ] {
            assert!(rung.pointer(path).is_some_and(Value::is_number), "{path} in {rung:#}");
        }
        assert_eq!(rung["ticks"]["source"], "log");
        assert!(rung["ticks"]["due"].as_u64() > Some(0), "{rung:#}");
        assert!(rung["subject"]["rss_bytes"].as_u64() > Some(1_000_000), "{rung:#}");
        assert!(rung["sent"].as_u64() > Some(0), "{rung:#}");
    }
    assert_eq!(run["capacity"]["unit"], "games");
    for weighed in ["own_latency_ns", "send_lag_ns"] {
        assert!(run["generator"][weighed]["count"].as_u64() > Some(0), "{weighed}");
    }
    assert!(run["generator"]["ceiling_per_s"].as_f64() > Some(0.0));
    assert!(run["run"]["command"].as_str().is_some_and(|command| command.contains("--rungs 10,20")));
}

#[test]
fn the_books_of_every_rung_balance_in_the_json() {
    assert_balanced(&run_json());
}

#[test]
fn every_completed_game_was_won_by_player_1() {
    for rung in run_json()["rungs"].as_array().expect("rungs") {
        let counters = &rung["extra"]["counters"];
        assert!(counters["games_played"].as_u64() > Some(0), "{rung:#}");
        assert_eq!(counters["games_played"], counters["won_by_player_1"], "{rung:#}");
        assert!(rung["errors"].get("wrong winner").is_none(), "{rung:#}");
    }
}

#[test]
fn show_gives_the_json_and_the_page_that_the_climb_gave() {
    let (place, climb) = climbed();
    let shown = place.run(["show", "arena", "--json", "-"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    assert_eq!(parse(&shown.out), run_json());
    let page = place.run(["show", "arena-1"]);
    assert_eq!(page.out, climb.out);
}

#[test]
fn runs_lists_the_run_with_its_answer() {
    let ran = climbed().0.run(["runs"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let line = ran.out.lines().nth(1).expect("one run");
    assert!(line.starts_with("arena-1  arena  ") && line.contains("finished"), "{line}");
}

#[test]
fn export_gives_every_second_as_json_lines_and_as_csv() {
    let place = with_its_store();
    let ran = place.run(["export", "arena-1"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let tables: BTreeSet<String> = ran
        .out
        .lines()
        .map(|line| parse(line)["table"].as_str().expect("each line names its table").to_owned())
        .collect();
    for table in ["run", "trial", "flow", "tick", "verdict"] {
        assert!(tables.contains(table), "{table} is missing in {tables:?}");
    }
    assert_eq!(place.run(["export", "arena-1", "-o", "run.ndjson"]).code, 0);
    assert_eq!(fs::read_to_string(place.path("run.ndjson")).expect("the export"), ran.out);
    assert_eq!(place.run(["export", "arena-1", "--csv", "csv"]).code, 0);
    let flow = fs::read_to_string(place.path("csv/flow.csv")).expect("a file per table");
    assert!(flow.lines().next().is_some_and(|header| header.contains("offered")) && flow.lines().count() > 1);
    place.run(["export", "nobody"]).refused(3, &["there is no run `nobody`", "stepladder runs"]);
}

#[test]
fn a_fresh_server_per_rung_goes_on_in_the_same_tick_log() {
    let place = Place::new();
    let climb =
        ["arena", "--rungs", "2,4", "--restart-per-rung", "--ticks", "log=game.log", "--json", "run.json"];
    let ran = place.climb(&climb);
    let run = place.json("run.json");
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    for rung in run["rungs"].as_array().expect("rungs") {
        assert!(rung["ticks"]["due"].as_u64() > Some(0), "{rung:#}");
    }
    assert!(place.path("game.log").exists(), "a log that was asked for stays");
    assert_eq!(run["rungs"].as_array().map(Vec::len), Some(2));
}
