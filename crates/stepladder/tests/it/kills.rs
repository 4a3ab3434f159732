//! SIGKILL at random instants: what every command that writes a store leaves behind.
//!
//! What must hold at whatever instant the kill came: the store is intact, each run says whether and where it was cut off, none
//! that was cut off passes, what was printed of a rung is in the store, figures are those of the stored rows, and no process
//! is left. So nothing here depends on when a kill comes, only what it meets; half of them come as the store's log has grown.
//! With `STEPLADDER_KILLS=FILE` each command is killed 30 times and a line per kill is appended to the file
//! (`bench/adversary/kills`); otherwise a few times.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use store::{RunKind, RunState, Store};

use crate::main_job::{assert_balanced, assert_valid};
use crate::place::{Place, Running, command_line, eventually, is_gone, parse, processes};

const LONG: &str = "STEPLADDER_KILLS";
const LOAD: &str = "--hold 1s --settle 100ms --no-calibration --json run.json";

/// Kills of one command. `within`: about as long as the command takes.
fn check(what: &str, command: &str, within: Duration, kills: u32) {
    let file = std::env::var_os(LONG);
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for kill in 0..if file.is_some() { 30 } else { kills } {
        let told = killed(command, within, kill % 2 == 0, &mut random);
        eprintln!("{what}, seed {seed}, kill {kill}: {told}");
        if let Some(path) = &file {
            let mut file = fs::File::options().create(true).append(true).open(path).expect("a file");
            file.write_all(format!("{what}\t{seed}\t{kill}\t{told}\n").as_bytes()).expect("a line");
        }
    }
}

/// Starts a command, kills it and looks at everything; returns what was met.
fn killed(command: &str, within: Duration, in_write: bool, random: &mut fastrand::Rng) -> String {
    let place = Place::new();
    let words: Vec<&str> = command.split(' ').collect();
    let running = place.start(words);
    let after = within.mul_f64(random.f64());
    let begin = Instant::now();
    // Until then it waits; from then on the next growth of the log brings the kill, or that none came.
    while begin.elapsed() < after && !is_gone(running.pid()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let log = || place.path("stepladder.db-wal").metadata().map_or(0, |log| log.len());
    let before = log();
    while in_write && log() <= before && begin.elapsed() < after + within && !is_gone(running.pid()) {
        std::hint::spin_loop();
    }
    let at_ms = begin.elapsed().as_millis();
    running.signal(libc::SIGKILL);
    let said = ended(running);
    eventually("no process is left", || left(&place).is_none().then_some(()));
    format!(
        "after {at_ms} ms{}: {}",
        if in_write { ", as the log grew" } else { "" },
        looked_at(&place, &said)
    )
}

fn ended(running: Running) -> String {
    let ran = running.finish();
    assert!(!ran.err.contains("panicked"), "{ran:#?}");
    ran.err
}

/// A process that was started from this place. The last will is one for 5 s, and ends by itself.
fn left(place: &Place) -> Option<u32> {
    let mark = format!("TMPDIR={}", place.path("").display());
    let mark = mark.trim_end_matches('/').as_bytes();
    processes().find(|pid| {
        let words = command_line(*pid);
        let is_will = words.contains("read -r _;") || words.starts_with("sleep ");
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        !is_will && !is_gone(*pid) && environment.split(|byte| *byte == 0).any(|one| one == mark)
    })
}

fn looked_at(place: &Place, said: &str) -> String {
    if fs::exists(place.path("run.json")).unwrap_or(true) {
        // Whole, or not there.
        place.json("run.json");
    }
    let store = match Store::open(place.path("stepladder.db")) {
        Ok(store) => store,
        Err(error) => {
            assert!(matches!(error, store::StoreError::NoStore { .. }), "{error}");
            assert!(!shown_rungs(said).any(|_| true), "a rung was shown and is not stored: {said}");
            return "no store yet".to_owned();
        }
    };
    assert_eq!(store.check().expect("it can be read"), [""; 0]);
    let listed = place.run(["runs"]);
    assert_eq!((listed.code, listed.err.as_str()), (0, ""), "{listed:#?}");
    let runs = store.runs().expect("they can be read").runs;
    let mut met = Vec::new();
    for run in &runs {
        let id = run.id.as_str();
        let cut_off = match &run.state {
            RunState::Recording => panic!("{id} is not recorded any more"),
            RunState::Ended(_) => None,
            RunState::CutOff(cut_off) => Some(cut_off.to_string()),
        };
        if let Some(sentence) = &cut_off {
            assert!(listed.out.contains(sentence), "{sentence} in {listed:#?}");
        }
        let exported = place.run(["export", id]);
        assert_eq!(exported.code, 0, "{exported:#?}");
        let rows: Vec<Value> = exported.out.lines().map(parse).collect();
        let shown = place.run(["show", id, "--json", "-"]);
        assert!(cut_off.iter().all(|sentence| shown.err.contains(sentence)), "{shown:#?}");
        let result = (shown.code == 0).then(|| parse(&shown.out));
        match (&result, run.head.kind) {
            (Some(result), RunKind::Bench) => same_lines(result, &rows),
            (Some(result), RunKind::Climb | RunKind::Duel) => {
                same_figures(result, &rows);
                assert_eq!(result["ended_early"].as_str(), cut_off.as_deref());
                assert!(cut_off.is_none() || result["verdict"] != "PASS", "{}", result["verdict"]);
                all_shown_is_stored(said, result);
            }
            (None, _) => assert_eq!(shown.code, 2, "{shown:#?}"),
        }
        let report = place.run(["report", id, "-o", "run.html"]);
        // Of a comparison whose clients had written nothing yet there is nothing to report.
        let is_empty = run.head.kind == RunKind::Bench && result.is_none() && report.code == 2;
        assert!(report.code == 0 || is_empty, "{report:#?}");
        assert!(report.code != 0 || whole_page(&place.path("run.html")), "the report is whole");
        met.push(cut_off.unwrap_or_else(|| format!("run {id} had ended")));
    }
    if met.is_empty() { "no run yet".to_owned() } else { met.join("; ") }
}

fn whole_page(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|page| page.trim_end().ends_with("</html>"))
}

fn rows_of<'a>(rows: &'a [Value], table: &'a str, trial: &'a Value) -> impl Iterator<Item = &'a Value> {
    rows.iter().filter(move |row| row["table"] == table && row["trial"] == *trial)
}

/// Every rung is a stored trial, judged only if it was committed as ended, and its messages are those of its rows.
fn same_figures(result: &Value, rows: &[Value]) {
    assert_valid(result);
    assert_balanced(result);
    for rung in result["rungs"].as_array().expect("rungs") {
        assert_eq!(rows_of(rows, "trial", &rung["seq"]).count(), 1, "{rung:#}");
        // Its last entry; that it has ended is noted in a commit of its own, before which a kill may come.
        let has_ended = rows_of(rows, "event", &rung["seq"]).any(|row| row["kind"] == "end");
        assert!(has_ended || rung["verdict"] != "PASS", "a trial that did not end passed: {rung:#}");
        if !has_ended || rung["extra"]["warm_up_cut_s"] != 0 {
            continue;
        }
        for (op, flow) in rung["flows"].as_object().expect("flows") {
            let of_hold = || {
                rows_of(rows, "flow", &rung["seq"])
                    .filter(|row| row["phase"] == "hold" && row["op"] == op.as_str())
            };
            for name in ["offered", "sent", "answered", "failed"] {
                let stored: u64 = of_hold().filter_map(|row| row[name].as_u64()).sum();
                assert_eq!(flow[name].as_u64(), Some(stored), "{name} of {op} in {rung:#}");
            }
        }
    }
}

/// Every run of the table is one whose client wrote its last line.
fn same_lines(result: &Value, rows: &[Value]) {
    let cells = result["cells"].as_array().expect("cells");
    let runs: usize = cells.iter().filter_map(|cell| cell["rates_per_s"].as_array()).map(Vec::len).sum();
    let lines = rows.iter().filter(|row| row["table"] == "line").map(|row| &row["text"]);
    let is_end = |line: &Value| match line {
        Value::String(text) => parse(text)["type"] == "end",
        line => line["type"] == "end",
    };
    assert_eq!(runs, lines.filter(|line| is_end(line)).count(), "{result:#}");
}

/// Load and verdict of each rung that was printed: `       2 games  PASS`.
fn shown_rungs(said: &str) -> impl Iterator<Item = (f64, &str)> {
    said.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let load = words.next()?.parse().ok()?;
        let verdict = line
            .split_whitespace()
            .find(|word| ["PASS", "FAIL", "GENERATOR_LIMITED", "INCONCLUSIVE", "INVALID"].contains(word))?;
        Some((load, verdict))
    })
}

fn all_shown_is_stored(said: &str, result: &Value) {
    let stored: Vec<(f64, &str)> = result["rungs"]
        .as_array()
        .expect("rungs")
        .iter()
        .filter_map(|rung| Some((rung["load"].as_f64()?, rung["verdict"].as_str()?)))
        .collect();
    let shown: Vec<(f64, &str)> = shown_rungs(said).collect();
    assert!(stored.starts_with(&shown), "shown {shown:?}, stored {stored:?}");
}

#[test]
fn a_climb_that_is_killed_at_any_instant_shows_what_was_committed() {
    check("climb arena", &format!("climb arena --rungs 2,4 {LOAD}"), Duration::from_secs(4), 2);
    if std::env::var_os(LONG).is_some() {
        check("climb chat", &format!("climb chat --rungs 4,8 {LOAD}"), Duration::from_secs(5), 0);
        let words = format!("climb leaderboard --rate 50,100 {LOAD}");
        check("climb leaderboard", &words, Duration::from_secs(5), 0);
        check("climb grid", &format!("climb grid --rungs 1,10 {LOAD}"), Duration::from_secs(5), 0);
    }
}

#[test]
fn repeats_and_searches_that_are_killed_never_pass() {
    let words = format!("climb poll-loop --requesters 1,2 --repeat 2 {LOAD}");
    check("climb --repeat", &words, Duration::from_secs(6), 1);
    if std::env::var_os(LONG).is_some() {
        let words =
            "climb poll-loop --requesters 12,18 --search quick --hold 1s --settle 100ms --no-calibration";
        check("climb --search", words, Duration::from_secs(15), 0);
    }
}

#[test]
fn a_duel_that_is_killed_keeps_the_trials_that_ended() {
    let words =
        "duel arena arena --rungs 2 --hold 1s --settle 100ms --no-calibration --budget 28s --json run.json";
    check("duel", words, Duration::from_secs(6), 1);
}

#[test]
fn a_comparison_of_clients_that_is_killed_counts_whole_runs_only() {
    let server = Place::new();
    let (_redis, url) = server.serve_redis();
    let words = format!("bench --target {url} --client rust --total 50000 --runs 3 --json run.json");
    check("bench", &words, Duration::from_secs(3), 2);
}

#[test]
fn a_file_that_was_there_is_replaced_whole_or_not_at_all() {
    let place = Place::new();
    let ran = place.run("climb arena --rungs 2 --hold 1s --settle 100ms --no-calibration".split(' '));
    assert!(ran.code <= 2, "{ran:#?}");
    let outputs =
        [("export arena -o out", "out"), ("report arena -o out", "out"), ("show arena --json out", "out")];
    for (at, (words, name)) in outputs.into_iter().enumerate() {
        place.write(name, "what was there before");
        assert_eq!(place.run(words.split(' ')).code, 0);
        let whole = fs::read(place.path(name)).expect("the output");
        for kill in 0..if std::env::var_os(LONG).is_some() { 30 } else { 2 } {
            place.write(name, "what was there before");
            let running = place.start(words.split(' '));
            std::thread::sleep(Duration::from_millis(fastrand::u64(0..60)));
            running.signal(libc::SIGKILL);
            running.finish();
            let found = fs::read(place.path(name)).expect("it is there");
            assert!(found == whole || found == b"what was there before", "output {at}, kill {kill}");
        }
    }
}
