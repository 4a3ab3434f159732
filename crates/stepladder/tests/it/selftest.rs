//! `selftest`: this program's verdicts on this machine, and that it leaves nothing behind.

use serde_json::Value;

use crate::place::{Place, Running, children, command_line, eventually, is_gone, parse};

/// The quick cases, by what their server and fault contain. All of them together take minutes, so that a test each tries a row.
const QUICK: [&[&str]; 7] = [
    &["arena healthy"],
    &["arena hang", "arena exit"],
    &["arena wrong", "arena late", "arena lie"],
    &["chat"],
    &["grid"],
    &["leaderboard"],
    &["poll-loop"],
];

fn no_verdict_is_wrong(row: usize) {
    for only in QUICK[row] {
        no_case_is_wrong(&["--quick", "--only", only]);
    }
}

fn no_case_is_wrong(chosen: &[&str]) {
    let place = Place::new();
    let words = [&["selftest", "--json", "cases.json"], chosen].concat();
    // It takes longer than a test waits for a child process.
    let output = place.command(words).output().expect("the program starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let cases = place.json("cases.json");
    let cases = cases.as_array().expect("an array");
    assert!(!cases.is_empty(), "{printed}");
    let wrong: Vec<&Value> = cases.iter().filter(|case| case["status"] == "wrong").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let is_refused = cases.iter().all(|case| case["status"] == "not run");
    assert_eq!(output.status.code(), Some(if is_refused { 2 } else { 0 }), "{printed}");
    assert!(printed.contains(&format!("{} cases in", cases.len())), "{printed}");
    if chosen.contains(&"arena hang") {
        assert!(printed.lines().any(|line| line.contains("hang@6s") && line.contains("FAIL")), "{printed}");
    }
    assert_eq!(left_behind(&place), [""; 0]);
}

#[test]
fn no_verdict_about_a_healthy_arena_is_wrong_on_this_machine() {
    no_verdict_is_wrong(0);
}

#[test]
fn no_verdict_about_a_silent_arena_is_wrong_on_this_machine() {
    no_verdict_is_wrong(1);
}

#[test]
fn no_verdict_about_an_arena_at_fault_is_wrong_on_this_machine() {
    no_verdict_is_wrong(2);
}

#[test]
fn no_verdict_about_a_chat_is_wrong_on_this_machine() {
    no_verdict_is_wrong(3);
}

#[test]
fn no_verdict_about_a_grid_is_wrong_on_this_machine() {
    no_verdict_is_wrong(4);
}

#[test]
fn no_verdict_about_a_leaderboard_is_wrong_on_this_machine() {
    no_verdict_is_wrong(5);
}

#[test]
fn no_verdict_about_a_poll_loop_is_wrong_on_this_machine() {
    no_verdict_is_wrong(6);
}

#[test]
fn a_lock_is_named_or_nothing_on_this_machine() {
    no_case_is_wrong(&["--only", "limited lock"]);
}

#[test]
fn a_limit_of_descriptors_is_named_or_nothing_on_this_machine() {
    no_case_is_wrong(&["--only", "limited fd-limit"]);
}

#[test]
fn a_quota_is_named_or_nothing_on_this_machine() {
    no_case_is_wrong(&["--only", "limited throttled"]);
}

#[test]
fn the_self_test_knows_the_words_of_a_server_that_may_not_have_a_quota() {
    assert_eq!(selftest::NO_QUOTA, servers::NO_QUOTA);
}

#[test]
fn the_list_names_every_case_and_runs_none() {
    let place = Place::new();
    let ran = place.run(["selftest", "--list"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("subject"), "{ran:#?}");
    assert!(ran.out.lines().any(|line| line.starts_with("chat") && line.contains("late-answers:200ms")));
    let quick = place.run(["selftest", "--list", "--quick"]).out;
    assert!(quick.lines().count() < ran.out.lines().count() / 2, "{ran:#?}");
    for case in quick.lines().skip(1) {
        let words: Vec<&str> = case.split_whitespace().collect();
        let name = words.join(" ");
        let tried = QUICK.concat().into_iter().filter(|only| name.starts_with(only)).count();
        assert_eq!(tried, 1, "{case}: one of the tests above tries it");
    }
}

#[test]
fn cases_that_do_not_exist_are_refused() {
    let place = Place::new();
    place
        .run(["selftest", "--only", "arena on fire"])
        .refused(3, &["--only arena on fire: no case contains this", "stepladder selftest --list"]);
    place.run(["selftest", "--only", "trends"]).refused(3, &["cases of five minutes", "add --long"]);
}

/// The climb of a self test, and its server.
fn climb_and_server(selftest: &Running) -> [u32; 2] {
    let child = |of: u32, what: &'static str| {
        eventually(what, || children(of).into_iter().find(|pid| command_line(*pid).contains(what)))
    };
    let climb = child(selftest.pid(), " climb arena");
    [climb, child(climb, " serve arena")]
}

fn left_behind(place: &Place) -> Vec<String> {
    let names = place.files_ending("").into_iter();
    names.filter(|name| name.contains("selftest-") || name.ends_with(".ticklog")).collect()
}

#[test]
fn ctrl_c_ends_the_climb_and_its_server_and_leaves_no_file() {
    let place = Place::new();
    let selftest = place.start(["selftest", "--only", "arena hang@3s", "--json", "-"]);
    let pids = climb_and_server(&selftest);
    selftest.signal(libc::SIGINT);
    let ran = selftest.finish();
    assert_eq!(ran.code, 130, "{ran:#?}");
    assert_eq!(parse(&ran.out).as_array().map(Vec::len), Some(0), "no case was finished: {ran:#?}");
    pids.into_iter().for_each(|pid| eventually("it has ended", || is_gone(pid).then_some(())));
    assert_eq!(left_behind(&place), [""; 0]);
}

#[test]
fn a_self_test_that_is_killed_leaves_neither_climb_nor_server() {
    let place = Place::new();
    let selftest = place.start(["selftest", "--only", "arena healthy"]);
    let pids = climb_and_server(&selftest);
    selftest.signal(libc::SIGKILL);
    assert_eq!(selftest.finish().code, 137);
    pids.into_iter().for_each(|pid| eventually("it has ended", || is_gone(pid).then_some(())));
}
