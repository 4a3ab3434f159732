//! `agent --watch-only`: the server of another machine is read as one of this machine is, and a load is whole without it.
//!
//! The other machine is a network namespace (`agents`); without the right to make one it is this machine. A machine whose CPU is
//! taken away may leave any rung INCONCLUSIVE, so what is read is asserted, and a cause only where it was asked for.

use serde_json::{Value, json};

use crate::agents::{Islands, broker};
use crate::main_job::{assert_valid, checked_run};
use crate::place::{Place, Ran, Running, free_port, words_of};
use crate::profiles::{WORKING, path_with};

/// A server on the other machine, and its URL.
fn server(place: &Place, islands: &Islands, words: &[&str]) -> (Running, String) {
    let listen = format!("{}:0", islands.address_of(0));
    let own = place.command([&["serve"], words, &["--listen", &listen]].concat());
    let mut server = place.start_command(islands.there(place, own, 0));
    let said = server.wait_for_out("listening on");
    let url = said.split_whitespace().find(|word| word.contains("://")).expect("a URL").to_owned();
    (server, url)
}

fn watcher(place: &Place, islands: &Islands, broker: &str, name: &str, words: &[&str]) -> Running {
    let own = place.command([&["agent", "--nats", broker, "--watch-only", "--name", name], words].concat());
    let mut agent = place.start_command(islands.there(place, own, 0));
    agent.wait_for("to watch the server of a climb");
    agent
}

fn climbed(place: &Place, words: &[&str]) -> (Ran, Value) {
    let ran = place.climb(&[words, &["--json", "run.json"]].concat());
    assert!(place.path("run.json").exists(), "{ran:#?}");
    let run = checked_run(place);
    (ran, run)
}

fn rungs(run: &Value) -> &Vec<Value> {
    run["rungs"].as_array().expect("rungs")
}

fn cause(run: &Value) -> &Value {
    let all = run["conclusions"].as_array().expect("conclusions");
    let why = all.iter().find(|one| one["id"] == "why_not_more").expect("the second answer");
    &why["evidence"]["cause"]["name"]
}

fn events<'a>(rung: &'a Value, kind: &str) -> Vec<&'a str> {
    let all = rung["extra"]["events"].as_array().into_iter().flatten();
    all.filter(|event| event["kind"] == kind).filter_map(|event| event["text"].as_str()).collect()
}

/// The process that serves, below `ip netns exec` or itself: that one is replaced by what it runs.
#[track_caller]
fn assert_watched(rung: &Value, server: &Running) {
    let said = events(rung, "watcher");
    let process = format!("process {} (stepladder), clock within", server.pid());
    assert!(said.len() == 1 && said[0].contains(&process), "{said:?} without `{process}`");
    assert!(rung["subject"]["cpu_cores"].as_f64() > Some(0.0), "{rung:#}");
    assert!(rung["subject"]["rss_bytes"].as_u64() > Some(0), "{rung:#}");
    assert!(rung["activity"].is_object(), "{rung:#}");
}

/// What the server did is told of one rung at least: a reading that this machine has no time for is left out.
#[track_caller]
fn assert_activity(rungs: &[Value]) {
    for name in ["connections", "accept_queue", "threads.events", "fd_limit", "machine.retransmissions"] {
        let is_there = rungs.iter().any(|rung| rung["activity"].get(name).is_some());
        assert!(is_there, "{name} is missing in {rungs:#?}");
    }
}

#[test]
fn a_server_on_another_machine_is_read_there_and_its_limit_is_named_as_it_is_here() {
    let (place, islands) = (Place::new(), Islands::new());
    let address = islands.address();
    let Some((_broker, url)) = broker(&place, &address, &["--jetstream"]) else { return };
    let (server, target) = server(&place, &islands, &["limited", "--fault", "lock"]);
    let words = [&target, "--rate", "50,600", "--hold", "4s", "--objective", "response.p90 < 250ms"];
    let pid = server.pid().to_string();
    let here = climbed(&place, &[&words[..], &["--pid", &pid]].concat()).1;
    let mut agent = watcher(&place, &islands, &url, "w", &[]);
    let there = ["--nats", &url];
    let (ran, run) = climbed(&place, &[&words[..], &there].concat());
    assert!(ran.err.contains("agent w watches the server on"), "{ran:#?}");
    for rung in rungs(&run) {
        assert_watched(rung, &server);
        assert_eq!(rung.get("agents"), None, "this process made the load");
        assert_eq!(events(rung, "watcher lost"), [""; 0], "{rung:#}");
    }
    // All of it runs on the cores of this machine here, whose namespaces share them.
    assert_eq!(run["run"]["shared_cores"], json!(true), "{:#}", run["run"]);
    let last = |run: &Value| rungs(run).last().expect("a rung").clone();
    if last(&run)["verdict"] == "FAIL" {
        assert!(cause(&run).is_string(), "what the server did is known: {ran:#?}");
        // What takes CPU away may hide a lock from either.
        let is_fair =
            |run: &Value| last(run)["verdict"] == "FAIL" && last(run)["disturbance"]["disturbed"] == 0;
        assert!(!is_fair(&here) || !is_fair(&run) || cause(&run) == cause(&here), "{ran:#?}");
    }
    agent.wait_for("the climb has ended");
    // The same with an agent that makes the load.
    let mut load = place.start(["agent", "--nats", &url, "--name", "a"]);
    load.wait_for("waits at");
    let mut all = rungs(&run).clone();
    let (ran, run) = climbed(&place, &[&words[..3], &["--hold", "3s", "--agents", "1"], &there[..]].concat());
    all.extend(rungs(&run).clone());
    assert_activity(&all);
    for rung in rungs(&run) {
        assert_watched(rung, &server);
        assert_eq!(rung["agents"].as_array().map(Vec::len), Some(1), "{ran:#?}");
    }
}

#[test]
fn a_load_is_whole_without_the_one_that_watches_and_the_next_is_watched_by_another() {
    let (place, islands) = (Place::new(), Islands::new());
    let Some((_broker, url)) = broker(&place, &islands.address(), &["--jetstream"]) else { return };
    let (server, target) = server(&place, &islands, &["null", "--protocol", "http"]);
    let first = watcher(&place, &islands, &url, "w", &[]);
    let words = [&target, "--rate", "100,200,300", "--hold", "8s", "--nats", &url, "--json", "run.json"];
    let mut climb = place.start_climb(&words);
    climb.wait_for("hold ·");
    first.signal(libc::SIGKILL);
    // The second rung goes on without one, and the third finds another.
    climb.wait_for("rung 200 req/s · hold");
    let _second = watcher(&place, &islands, &url, "v", &[]);
    let ran = climb.finish();
    let run = place.json("run.json");
    assert_valid(&run);
    let lost = "the server was not watched to the end: agent w: nothing was heard of it for 5 s";
    let all = rungs(&run);
    assert_eq!(events(&all[0], "watcher lost"), [lost], "{ran:#?}");
    assert!(all[0]["remark"].as_str().is_some_and(|remark| remark.contains(lost)), "{:#}", all[0]);
    let shown = place.run(["show", run["run"]["id"].as_str().expect("an id"), "--all"]);
    assert!(shown.out.contains("nothing was heard of it for 5 s"), "{}", shown.out);
    for rung in all {
        assert!(rung["verdict"] != "INVALID" && rung["verdict"] != "FAIL", "its load was whole: {ran:#?}");
    }
    let said = events(&all[1], "watcher lost");
    assert!(said.len() == 1 && said[0].starts_with("the server was not watched: agent w: "), "{said:?}");
    assert_eq!(all[1]["subject"], Value::Null, "{:#}", all[1]);
    assert_watched(&all[2], &server);
    assert!(events(&all[2], "watcher")[0].starts_with("v on "), "{ran:#?}");
    drop(server);
}

#[test]
fn the_end_of_a_watched_server_is_seen_and_its_ticks_are_read_where_it_is() {
    let (place, islands) = (Place::new(), Islands::new());
    let Some((_broker, url)) = broker(&place, &islands.address(), &["--jetstream"]) else { return };
    let (server, target) = server(&place, &islands, &["arena", "--tick-log", "game.log"]);
    let _agent = watcher(&place, &islands, &url, "w", &[]);
    let there = ["--nats", &url, "--ticks", "log=game.log", "--bots", "arena"];
    let (ran, run) = climbed(&place, &[&[&target, "--rungs", "10", "--hold", "4s"], &there[..]].concat());
    let rung = &rungs(&run)[0];
    assert_watched(rung, &server);
    let due = rung["ticks"]["due"].as_u64();
    assert!(due > Some(10 * 60 * 3), "ten games of 60 Hz for four seconds: {due:?} in {ran:#?}");
    let outside = place.climb(&words_of(&format!(
        "{target} --rungs 10 --nats {url} --ticks log=/etc/hostname --bots arena"
    )));
    outside.fails(2, &["agent w cannot read the server's ticks", "an agent reads files below the folder"]);
    let mut climb = place.start_climb(
        &[&[&target, "--rungs", "10,20", "--hold", "30s", "--json", "run.json"], &there[..]].concat(),
    );
    climb.wait_for("hold ·");
    server.signal(libc::SIGKILL);
    let ran = climb.finish();
    let run = place.json("run.json");
    let rung = &rungs(&run)[0];
    assert_eq!((&rung["verdict"], &rung["signal"]), (&json!("FAIL"), &json!("server exited")), "{ran:#?}");
    assert_eq!(rungs(&run).len(), 1, "a server that is gone is not climbed further: {ran:#?}");
}

#[test]
fn a_server_is_profiled_where_it_is_watched_if_that_machines_user_allows_it() {
    let (place, islands) = (Place::new(), Islands::new());
    let Some((_broker, url)) = broker(&place, &islands.address(), &["--jetstream"]) else { return };
    let (_server, target) = server(&place, &islands, &["limited", "--fault", "max-connections"]);
    let words = [&target, "--requesters", "20,60", "--think", "200ms", "--objective", "errors == 0"];
    let climb = [&words[..], &["--hold", "2s", "--nats", &url, "--profile"]].concat();
    let profile = || {
        let (ran, run) = climbed(&place, &climb);
        assert_eq!(rungs(&run).last().expect("a rung")["verdict"], "FAIL", "{ran:#?}");
        let all = run["conclusions"].as_array().expect("conclusions");
        all.iter().find(|one| one["id"] == "profile").unwrap_or_else(|| panic!("{ran:#?}"))["text"]
            .to_string()
    };
    let refusing = watcher(&place, &islands, &url, "w", &[]);
    let said = profile();
    assert!(said.contains("None was taken: agent w on ") && said.contains("--allow-profiles"), "{said}");
    drop(refusing);
    let words = ["agent", "--nats", &url, "--watch-only", "--name", "p", "--allow-profiles"];
    let mut command = islands.there(&place, place.command(words), 0);
    command.env("PATH", path_with(&place, Some(&WORKING.replace("AT_RECORD", ""))));
    let mut agent = place.start_command(command);
    agent.wait_for("to watch the server of a climb");
    let said = profile();
    let grew = "`renderReport (report.mjs:12)` took 100 % of the server's CPU at 60 requesters and 0 % at 20 requesters";
    assert!(said.contains(grew), "{said}");
}

#[test]
fn who_cannot_watch_is_told_why_and_what_to_do() {
    let (place, islands) = (Place::new(), Islands::new());
    let address = islands.address();
    let Some((_broker, url)) = broker(&place, &address, &["--jetstream"]) else { return };
    let (server, target) = server(&place, &islands, &["null", "--protocol", "http"]);
    let climb = |words: &[&str]| {
        place.climb(&[&[&target, "--rate", "50", "--hold", "1s", "--nats", &url], words].concat())
    };
    climb(&["--agents-within", "1"]).fails(
        2,
        &["no agent at nats://", "watches the server; start one on its machine with", "--watch-only"],
    );
    let none = place.run(["agent", "--nats", &url, "--watch-only", "--pid", "4194304"]);
    none.fails(2, &["--pid 4194304: there is no such process"]);
    place.run(["agent", "--nats", &url, "--pid", "1"]).fails(3, &["--watch-only"]);
    {
        // On this machine, which is not the server's where there are namespaces.
        let mut beside = place.start(["agent", "--nats", &url, "--watch-only", "--name", "here"]);
        beside.wait_for("to watch");
        if !islands.names.is_empty() {
            climb(&[]).fails(
                2,
                &["no agent can watch the server at", "here: its machine does not have the address"],
            );
        }
        let nowhere = format!("http://{address}:{}", free_port());
        let ran = place.climb(&[&nowhere, "--rate", "50", "--nats", &url]);
        ran.fails(2, &["connection refused"]);
        // The server is this climb's own.
        let own = place.climb(&["limited", "--rate", "50", "--hold", "1s", "--nats", &url]);
        assert!(
            own.err.contains("agent here is not needed to watch the server: it is started here"),
            "{own:#?}"
        );
        assert!(own.out.contains("How many?"), "it climbs: {own:#?}");
        beside.signal(libc::SIGTERM);
        beside.finish();
    }
    let both = ["one", "two"].map(|name| watcher(&place, &islands, &url, name, &[]));
    let ran = climb(&[]);
    assert!(ran.err.contains("one and two can watch the server; one does"), "{ran:#?}");
    // Its user names another process of its machine.
    drop(both);
    let mut command = std::process::Command::new("sleep");
    command.arg("60");
    let sleeper = place.start_command(command);
    let pid = sleeper.pid();
    let _named = watcher(&place, &islands, &url, "named", &["--pid", &pid.to_string()]);
    let ran = climb(&[]);
    assert!(ran.err.contains(&format!("process {pid} (sleep)")), "{ran:#?}");
    drop(sleeper);
    climb(&[]).fails(2, &["named: process", "has ended"]);
    drop(server);
}
