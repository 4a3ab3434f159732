//! SIGKILL at random instants: what every command that writes a store leaves behind.
//!
//! Whenever the kill comes: the store is intact; each run says whether and where it was cut off; no run that was cut
//! off passes; every rung that was printed is in the store; figures are those of the stored rows; earlier runs are
//! unchanged; no process or scratch file is left. So no check depends on the time of a kill, only on what it
//! interrupts. Half of them are timed by growth of the store's log.
//! With `STEPLADDER_KILLS=FILE` each command is killed 30 times, or `STEPLADDER_KILLS_EACH` times, and a line per kill
//! is appended to the file (`bench/adversary/kills`); otherwise a few times.

mod files;
mod history;
mod scratch;
mod viewer;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use store::{RunKind, RunState, Store};

use crate::main_job::{assert_balanced, assert_valid};
use crate::place::{Place, Running, command_line, eventually, is_gone, parse, processes};

const LONG: &str = "STEPLADDER_KILLS";
const LOAD: &str = "--hold 1s --settle 100ms --no-calibration --json run.json";

/// How often something is killed: 30 times in the long form.
fn kills(few: u32) -> u32 {
    let many =
        || std::env::var("STEPLADDER_KILLS_EACH").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    if std::env::var_os(LONG).is_some() { many() } else { few }
}

/// Tells what a kill met, in the long form also to the file.
fn note(what: &str, seed: u64, kill: u32, met: &str) {
    eprintln!("{what}, seed {seed}, kill {kill}: {met}");
    if let Some(path) = std::env::var_os(LONG) {
        let mut file = fs::File::options().create(true).append(true).open(path).expect("a file");
        file.write_all(format!("{what}\t{seed}\t{kill}\t{met}\n").as_bytes()).expect("a line");
    }
}

/// Kills of one command. `within`: about as long as the command takes.
fn check(what: &str, command: &str, within: Duration, few: u32) {
    check_in(what, Place::new, command, within, few);
}

/// The same in places that `place` makes.
fn check_in(what: &str, place: impl Fn() -> Place, command: &str, within: Duration, few: u32) {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for kill in 0..kills(few) {
        let place = place();
        let before = readings(&place);
        let running = place.start(command.split(' '));
        let met = killed(&place, running, within, kill % 2 == 0, &mut random);
        note(what, seed, kill, &format!("{}: {}", met.when, looked_at(&place, &met.said, &before)));
    }
}

/// What a command had said when it was killed.
struct Killed {
    when: String,
    said: String,
}

/// Kills a command at a random instant.
fn killed(
    place: &Place,
    running: Running,
    within: Duration,
    in_write: bool,
    random: &mut fastrand::Rng,
) -> Killed {
    let after = within.mul_f64(random.f64());
    let begin = Instant::now();
    // Waits until then; from then on the next growth of the log triggers the kill, or a timeout does.
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
    eventually("no process is left", || left(place).is_none().then_some(()));
    let scratch = place.files_ending("").into_iter().filter(|name| name.ends_with(".ticklog"));
    assert_eq!(scratch.collect::<Vec<_>>(), [""; 0], "a scratch file is left");
    Killed { when: format!("after {at_ms} ms{}", if in_write { ", as the log grew" } else { "" }), said }
}

/// The figures of all runs of a store, as JSON; none where there is no store.
fn readings(place: &Place) -> BTreeMap<String, String> {
    let Ok(store) = Store::open_to_read(place.path("stepladder.db")) else { return BTreeMap::new() };
    let runs = store.runs().expect("they can be read").runs;
    runs.iter().map(|run| (run.id.to_string(), reading(place, run.id.as_str()))).collect()
}

fn reading(place: &Place, run: &str) -> String {
    let shown = place.run(["show", run, "--json", "-"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    shown.out
}

fn ended(running: Running) -> String {
    let ran = running.finish();
    assert!(!ran.err.contains("panicked"), "{ran:#?}");
    ran.err
}

/// A process that was started from this place. The exit guard is one for 5 s, and ends by itself.
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

/// What is there after a kill; `before`: the readings of the runs that were there.
fn looked_at(place: &Place, said: &str, before: &BTreeMap<String, String>) -> String {
    if fs::exists(place.path("run.json")).unwrap_or(true) {
        // Complete, or absent.
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
    for (run, figures) in before {
        assert_eq!(&reading(place, run), figures, "{run} was there before, and is as it was");
    }
    let mut runs = store.runs().expect("they can be read").runs;
    runs.retain(|run| !before.contains_key(run.id.as_str()));
    let mut met = Vec::new();
    let mut stored = Vec::new();
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
                stored.push(rungs_of(result));
            }
            (None, _) => assert_eq!(shown.code, 2, "{shown:#?}"),
        }
        let report = place.run(["report", id, "-o", "run.html"]);
        // A comparison whose clients had written nothing yet has nothing to report.
        let is_empty = run.head.kind == RunKind::Bench && result.is_none() && report.code == 2;
        assert!(report.code == 0 || is_empty, "{report:#?}");
        assert!(report.code != 0 || whole_page(&place.path("run.html")), "the report is whole");
        met.push(cut_off.unwrap_or_else(|| format!("run {id} had ended")));
    }
    all_shown_is_stored(said, stored);
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
        // Its last entry; the end is recorded in a separate commit, and a kill may come before it.
        let has_ended = rows_of(rows, "event", &rung["seq"]).any(|row| row["kind"] == "end");
        assert!(has_ended || rung["verdict"] != "PASS", "a trial that did not end passed: {rung:#}");
        if !has_ended || rung["extra"]["warm_up_cut_s"] != 0 {
            continue;
        }
        for (op, flow) in rung["flows"].as_object().expect("flows") {
            // A message planned as the hold began may have been sent just before: in the second before it, where it is
            // open.
            let first = rung["hold"]["from_ns"].as_u64().map(|ns| ns / 1_000_000_000);
            let of_hold = || {
                rows_of(rows, "flow", &rung["seq"])
                    .filter(|row| row["phase"] == "hold" && row["op"] == op.as_str())
                    .filter(|row| row["interval"].as_u64() >= first)
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

/// Load and verdict of each stored rung.
fn rungs_of(result: &Value) -> Vec<(f64, String)> {
    let rungs = result["rungs"].as_array().expect("rungs").iter();
    rungs.filter_map(|rung| Some((rung["load"].as_f64()?, rung["verdict"].as_str()?.to_owned()))).collect()
}

/// `stored`: of each new run, the newest first.
fn all_shown_is_stored(said: &str, stored: Vec<Vec<(f64, String)>>) {
    let stored: Vec<(f64, String)> = stored.into_iter().rev().flatten().collect();
    let shown: Vec<(f64, String)> =
        shown_rungs(said).map(|(load, verdict)| (load, verdict.to_owned())).collect();
    assert!(stored.starts_with(&shown), "shown {shown:?}, stored {stored:?}");
}

/// A place with a run of two rungs, `arena-1`; copies of one climb.
fn with_a_run() -> Place {
    static CLIMBED: OnceLock<Place> = OnceLock::new();
    let climbed = CLIMBED.get_or_init(|| {
        let place = Place::new();
        let ran = place.run(format!("climb arena --rungs 2,4 {LOAD}").split(' '));
        assert!(ran.code <= 2 && place.path("run.json").exists(), "{ran:#?}");
        place
    });
    let place = Place::new();
    fs::copy(climbed.path("stepladder.db"), place.path("stepladder.db")).expect("the store can be copied");
    place
}

#[test]
fn a_climb_that_is_killed_at_any_instant_shows_what_was_committed() {
    check("climb arena", &format!("climb arena --rungs 2,4 {LOAD}"), Duration::from_secs(4), 2);
    if std::env::var_os(LONG).is_some() {
        check("climb chat", &format!("climb chat --rungs 4,8 {LOAD}"), Duration::from_secs(5), 0);
        let words = format!("climb leaderboard --rate 50,100 {LOAD}");
        check("climb leaderboard", &words, Duration::from_secs(5), 0);
        check("climb grid", &format!("climb grid --rungs 1,10 {LOAD}"), Duration::from_secs(5), 0);
        let server = Place::new();
        let (_redis, url) = server.serve("redis");
        check("climb redis://", &format!("climb {url} --rungs 1,10 {LOAD}"), Duration::from_secs(4), 0);
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
    let (_redis, url) = server.serve("redis");
    let words = format!("bench --target {url} --client rust --total 50000 --runs 3 --json run.json");
    check("bench", &words, Duration::from_secs(3), 2);
}

#[test]
fn a_repetition_that_is_killed_leaves_the_repeated_run_as_it_was() {
    check_in("again", with_a_run, "again arena-1 --json run.json", Duration::from_secs(4), 1);
}
