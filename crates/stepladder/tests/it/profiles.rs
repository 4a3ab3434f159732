//! `--profile`: what is said of a profile, and that the climb's answers stay whatever becomes of it.
//!
//! `perf` is a script of the tests, so that they need neither it nor the permission for it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::main_job::assert_valid;
use crate::place::{Place, Ran};

/// The first load holds, and a fault fails the second, on any machine.
const CLIMB: [&str; 14] = [
    "climb",
    "grid",
    "--rungs",
    "1,4",
    "--hold",
    "3s",
    "--settle",
    "100ms",
    "--no-calibration",
    "--objective",
    "failed == 0",
    "--json",
    "run.json",
    "--profile",
];
const FAULT: [&str; 3] = ["--", "--fault", "wrong-answers@5s:50%"];

/// Ends as perf does, and tells of a function that took nothing at the first load and everything at the second.
pub const WORKING: &str = r#"
case "$1" in
record)
    for word; do
        [ "$last" = -o ] && file=$word
        [ "$last" = -p ] && pids=$word
        [ "$word" = -- ] && is_try=1
        last=$word
    done
    echo data > "$file"
    [ -n "$is_try" ] && exit 0
    AT_RECORD
    trap 'exit 0' INT
    while :; do sleep 0.02; done ;;
script)
    echo >> "$0.calls"
    # Each file is read in two ways.
    [ "$(wc -l < "$0.calls")" -gt 2 ] && name='JS:*renderReport /srv/report.mjs:12:3' || name='JS:*parse /srv/parse.mjs:3:1'
    at=0
    while [ "$at" -lt 300 ]; do
        printf 'node 7 1.%03d: framed: \n\t7f01 %s (/tmp/perf-4194305.map)\n\n' "$at" "$name"
        at=$((at + 1))
    done ;;
esac
"#;

/// Where programs are looked for, with this script as perf and else with none.
pub fn path_with(place: &Place, perf: Option<&str>) -> OsString {
    let folder = place.path("bin");
    fs::create_dir(&folder).expect("a folder");
    let mut path = folder.into_os_string();
    if let Some(script) = perf {
        let perf = place.write("bin/perf", &format!("#!/bin/sh\n{script}"));
        fs::set_permissions(perf, fs::Permissions::from_mode(0o755)).expect("it can be run");
        path.push(":/usr/bin:/bin:/usr/sbin:/sbin");
    }
    path
}

fn with_perf(words: &[&str], perf: Option<&str>) -> (Place, Ran) {
    let place = Place::new();
    let mut command = place.command(words.iter().chain(&FAULT));
    command.env("PATH", path_with(&place, perf));
    let ran = place.start_command(command).finish();
    (place, ran)
}

/// The run has its answers, whatever became of its profile.
#[track_caller]
fn profile_of(place: &Place, ran: &Ran) -> Value {
    assert_eq!(ran.code, 1, "the climb's verdict decides: {ran:#?}");
    let run = place.json("run.json");
    assert_valid(&run);
    assert_eq!(
        (run["capacity"]["lower_bound"].as_f64(), run["capacity"]["upper_bound"].as_f64()),
        (Some(1.0), Some(4.0))
    );
    assert_eq!(run["rungs"].as_array().map(Vec::len), Some(2), "profiled holds are no rungs");
    let conclusions = run["conclusions"].as_array().expect("conclusions");
    conclusions.iter().find(|one| one["id"] == "profile").unwrap_or_else(|| panic!("{ran:#?}")).clone()
}

#[test]
fn the_words_name_the_function_that_grew_and_its_file() {
    let (place, ran) = with_perf(&CLIMB, Some(&WORKING.replace("AT_RECORD", "")));
    let profile = profile_of(&place, &ran);
    let text = profile["text"].as_str().expect("words");
    assert!(
        text.starts_with("`renderReport (report.mjs:12)` took 100 % of the server's CPU at 4 in flight"),
        "{text}"
    );
    assert!(
        text.contains("and 0 % at 1 in flight") && text.contains("While it was profiled at 1 in flight"),
        "{text}"
    );
    assert_eq!(profile["evidence"]["grew"][0]["bad"]["samples"], 300);
    assert!(
        profile["evidence"].get("waits").is_none(),
        "wrong answers are no cause of which waits are asked"
    );
    assert!(ran.out.contains("renderReport (report.mjs:12)\n"), "the table has it: {ran:#?}");
    assert!(
        ran.out.contains("`stepladder report grid-1 -o grid-1.html`"),
        "it says how to see the graph: {ran:#?}"
    );
    assert!(!place.path("profiles").exists());
    let shown = place.run(["show", "grid-1", "--all"]);
    assert!(shown.out.contains("`renderReport (report.mjs:12)` took 100 %"), "it is stored: {shown:#?}");
    place.run(["export", "grid-1", "--csv", "csv"]);
    let folded = fs::read_to_string(place.path("csv/artifacts/profile-bad.folded")).expect("the stacks");
    assert_eq!(folded, "user:renderReport (report.mjs:12) 300\n");
}

/// With perf itself: what it writes of switches is what `watch` reads.
#[test]
fn requests_that_wait_for_a_planted_lock_are_said_to_wait_in_its_function() {
    let place = Place::new();
    let climb = "climb limited --rate 40,600 --connections 32 --hold 3s --settle 500ms --timeout 3s --no-calibration \
                 --objective response.p90<250ms --json run.json --profile -- --fault lock";
    let ran = place.run(climb.split_whitespace());
    let run = place.json("run.json");
    assert_valid(&run);
    let of = |id: &str| {
        let conclusions = run["conclusions"].as_array().expect("conclusions");
        conclusions.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("{ran:#?}"))["evidence"]
            .clone()
    };
    let (profile, cause) = (of("profile"), &of("why_not_more")["cause"]["name"]);
    let is_asked = ["lock", "open"].iter().any(|name| cause == name);
    if !profile["missing"].is_null() || !is_asked {
        println!(
            "NOT RUN: no profile ({}), or another cause on this busy machine ({cause})",
            profile["missing"]
        );
        return;
    }
    let first = &profile["waits"]["grew"][0];
    if first["is_sure"] != true {
        println!("NOT RUN: no wait was seen surely on this busy machine ({first})");
        return;
    }
    assert_eq!(first["function"], "limited_server::limit::Limit::work", "{profile:#}");
    // Each holds it for 5 ms, and 32 connections wait for it; both longer where the machine is busy.
    let ms = |load: &str| first[load]["ns"].as_f64().unwrap_or(0.0) / 1e6;
    assert!(ms("good") >= 3.0 && ms("bad") >= 60.0, "{first}");
    assert!(ran.out.contains("Requests wait in `limited_server::limit::Limit::work`:"), "{ran:#?}");
}

#[test]
fn without_perf_or_its_permission_the_reason_is_said_and_the_answers_stay() {
    let (place, ran) = with_perf(&CLIMB, None);
    let profile = profile_of(&place, &ran);
    assert!(
        profile["evidence"]["missing"]
            .as_str()
            .is_some_and(|why| why.starts_with("perf is missing; install it"))
    );
    assert!(ran.out.contains("None was taken: perf is missing"), "{ran:#?}");

    let refuses = "echo 'Error:\nAccess to performance monitoring and observability operations is limited.\n\
                   Consider adjusting /proc/sys/kernel/perf_event_paranoid setting' >&2; exit 255";
    let (place, ran) = with_perf(&CLIMB, Some(refuses));
    let text = profile_of(&place, &ran)["text"].as_str().expect("words").to_owned();
    assert!(
        text.starts_with("None was taken: perf is not permitted")
            && text.contains("sysctl kernel.perf_event_paranoid=1"),
        "{text}"
    );
    assert!(!place.path("profiles").exists());
}

#[test]
fn a_server_that_ends_while_it_is_profiled_takes_no_answer_with_it() {
    let kills = WORKING.replace("AT_RECORD", "sleep 1; kill -9 $(echo \"$pids\" | tr , ' ')");
    let (place, ran) = with_perf(&CLIMB, Some(&kills));
    let text = profile_of(&place, &ran)["text"].as_str().expect("words").to_owned();
    assert!(
        text.starts_with("None was taken: the server ended while it was profiled at 1 in flight "),
        "{text}"
    );
}

#[test]
fn a_run_that_was_not_profiled_offers_it_and_again_does_it() {
    let (place, ran) = with_perf(&CLIMB[..13], None);
    assert!(
        ran.out.ends_with("`stepladder again grid-1 --profile` shows where the server's time went.\n"),
        "{ran:#?}"
    );
    assert!(!ran.out.contains("\nProfile"), "{ran:#?}");
    let mut again = place.command(["again", "grid-1", "--profile"]);
    again.env("PATH", place.path("bin"));
    let ran = place.start_command(again).finish();
    assert!(
        ran.out.contains("None was taken: perf is missing") && !ran.out.contains("shows where"),
        "{ran:#?}"
    );
}

#[test]
fn a_program_that_does_not_tell_what_it_allocates_is_said_to_be_one_and_perf_is_not_needed() {
    let words: Vec<&str> = CLIMB.into_iter().chain(["alloc"]).collect();
    let (place, ran) = with_perf(&words, None);
    let profile = profile_of(&place, &ran);
    let text = profile["text"].as_str().expect("words");
    let why =
        "without a change to the program only a JVM, Node.js and a Go server with /debug/pprof/ tell of them";
    assert!(
        text.starts_with(&format!("Allocations could not be profiled: {why}. While it was profiled")),
        "{text}"
    );
    assert_eq!(profile["evidence"]["allocations"]["missing"], why);
    assert_eq!(
        (&profile["evidence"]["what"], profile["evidence"].get("grew")),
        (&Value::from("alloc"), None)
    );
    assert!(!place.path("profiles").exists(), "a picture of CPU");
}

#[test]
fn what_cannot_be_profiled_is_refused_with_what_can() {
    let place = Place::new();
    let known = "\"heap\" is unknown; known: off, cpu, alloc, all";
    place.run(["climb", "grid", "--profile", "heap"]).refused(3, &[known]);
    place.run(["again", "grid", "--profile", "heap"]).refused(3, &[known]);
}

/// Above 60 req/s answers are errors, and every 20th is made in 60 ms in which the event loop does nothing else.
const NODE: &str = "
const of_second = { at: 0, count: 0 };
function renderReport() {
    const until = performance.now() + 60;
    while (performance.now() < until);
}
require('node:http').createServer((request, response) => {
    const now = Math.floor(performance.now() / 1000);
    if (of_second.at !== now) Object.assign(of_second, { at: now, count: 0 });
    of_second.count += 1;
    response.statusCode = of_second.count > 60 ? 500 : 200;
    if (of_second.count > 60 && of_second.count % 20 === 0) renderReport();
    response.end('well');
}).listen(Number(process.argv[2]), '127.0.0.1');
";

#[test]
fn a_hidden_synchronous_call_is_named_with_its_file_and_a_server_without_one_has_none() {
    if std::process::Command::new("node").arg("--version").output().is_err() {
        println!("NOT RUN: node is not on PATH");
        return;
    }
    let place = Place::new();
    let (port, server) = (crate::place::free_port(), place.write("shop.js", NODE));
    let url = format!("http://127.0.0.1:{port}/");
    let start = format!("node {} {port}", server.display());
    let climb = "--rate 20,200 --connections 8 --hold 3s --settle 500ms --no-calibration --objective errors==0 --json run.json \
                 --profile";
    let ran = place.run(["climb", &url, "--start", &start].into_iter().chain(climb.split_whitespace()));
    let run = place.json("run.json");
    assert_valid(&run);
    let conclusions = run["conclusions"].as_array().expect("conclusions");
    let profile = conclusions.iter().find(|one| one["id"] == "profile").unwrap_or_else(|| panic!("{ran:#?}"));
    let stops = |load: &str| &profile["evidence"][load]["stops"]["callback"];
    let [good, bad] = ["good", "bad"].map(stops);
    if !profile["evidence"]["missing"].is_null()
        || bad["function"] != "renderReport (shop.js:3)"
        || good["ns"].as_u64() >= Some(20_000_000)
    {
        println!("NOT RUN: on this busy machine the profile has {profile:#}");
        return;
    }
    assert!(bad["ns"].as_u64() >= Some(60_000_000) && bad["long"].as_u64() >= Some(3), "{bad}");
    assert_eq!(good["long"], 0, "{good}");
    assert!(ran.out.contains("`renderReport (shop.js:3)` held it for"), "{ran:#?}");
}
