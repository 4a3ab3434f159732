//! A third-party server: started by a command, or already running.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use crate::main_job::{assert_valid, checked_run, exit_code_of};
use crate::place::{
    Place, arena_on, command_line, eventually, free_port, is_gone, parse, processes, send, words_of,
};

#[test]
fn a_server_that_a_command_starts_is_watched_with_its_ticks_and_stopped_at_the_end() {
    let (place, port) = (Place::new(), free_port());
    let url = format!("ws://127.0.0.1:{port}");
    let start = arena_on(port, "--tick-log game.log");
    let ran = place.climb(&words_of(&format!(
        "{url} --bots arena --rungs 5 --start '{start}' --ticks log=game.log --json run.json"
    )));
    let run = checked_run(&place);
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    let rung = &run["rungs"][0];
    assert!(rung["ticks"]["due"].as_u64() > Some(0), "{rung:#}");
    assert!(rung["subject"]["cpu_cores"].is_number(), "{rung:#}");
    assert!(rung["subject"]["rss_bytes"].as_u64() > Some(1_000_000), "{rung:#}");
    let place_of_it = format!("127.0.0.1:{port} ");
    assert!(
        processes().all(|pid| !command_line(pid).contains(&place_of_it) || is_gone(pid)),
        "it was stopped"
    );
}

#[test]
fn a_server_that_runs_already_is_measured_from_outside_and_goes_on() {
    let place = Place::new();
    let (server, url) = place.serve("arena");
    let pid = server.pid().to_string();
    let ran = place.climb(&words_of(&format!(
        "{url} --bots arena --rungs 5 --pid {pid} --snapshots 1 --ticks client --objective 'errors == 0' \
         --json run.json"
    )));
    let run = checked_run(&place);
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    let rung = &run["rungs"][0];
    assert_eq!(rung["ticks"]["source"], "client", "{rung:#}");
    assert!(rung["ticks"]["due"].as_u64() > Some(0), "{rung:#}");
    assert!(rung["subject"]["rss_bytes"].as_u64() > Some(1_000_000), "{rung:#}");
    assert_eq!(rung["evidence"]["objectives"][0]["objective"], "errors == 0", "{rung:#}");
    assert!(!is_gone(server.pid()), "who did not start it does not stop it");
}

/// A control group of our own, by either version; removed when dropped.
struct Group {
    name: String,
    folders: Vec<PathBuf>,
}

impl Group {
    /// `None` where none can be made.
    fn with(pid: u32) -> Option<Group> {
        let name = format!("stepladder-climb-{}", std::process::id());
        let mount = Path::new("/sys/fs/cgroup");
        let is_v2 = mount.join("cgroup.controllers").exists();
        let trees: &[&str] = if is_v2 { &["."] } else { &["cpuacct", "memory"] };
        let folders = trees.iter().map(|tree| mount.join(tree).join(&name)).collect();
        let group = Group { name, folders };
        let put = |folder: &PathBuf| {
            fs::create_dir(folder).and_then(|()| fs::write(folder.join("cgroup.procs"), pid.to_string()))
        };
        let has_memory = !is_v2 || group.folders.iter().all(|folder| folder.join("memory.current").exists());
        (group.folders.iter().all(|folder| put(folder).is_ok()) && has_memory).then_some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let by = Instant::now() + Duration::from_secs(5);
        for folder in &self.folders {
            while folder.exists() && fs::remove_dir(folder).is_err() && Instant::now() < by {
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

#[test]
fn a_server_in_a_control_group_is_watched_by_it() {
    let place = Place::new();
    let (server, url) = place.serve("redis");
    let Some(group) = Group::with(server.pid()) else {
        eprintln!("NOT RUN: no control group can be made here");
        return;
    };
    let words = ["--rungs", "5", "--no-calibration", "--json", "run.json", "--watch-cgroup", &group.name];
    let ran = place.climb(&[&[url.as_str()], &words[..]].concat());
    let run = place.json("run.json");
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    let subject = &run["rungs"][0]["subject"];
    assert!(subject["cpu_cores"].as_f64() > Some(0.0), "{subject}");
    assert!(subject["rss_bytes"].as_u64() > Some(0), "{subject}");
    let bench = ["bench", "--target", &url, "--total", "20000", "--runs", "1", "--json", "bench.json"];
    let ran = place.run([&bench[..], &["--watch-cgroup", &group.name]].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.out.contains("µs/op  "), "{ran:#?}");
    server.signal(libc::SIGKILL);
}

#[test]
fn a_control_group_that_is_not_there_is_refused_before_the_load() {
    let place = Place::new();
    let said = [
        "--watch-cgroup",
        "no control group with figures of CPU and memory is at no/such",
        "/proc/PID/cgroup",
    ];
    place.climb(&["redis://127.0.0.1:1", "--watch-cgroup", "no/such"]).fails(2, &said);
    place.run(["bench", "--target", "null:", "--watch-cgroup", "no/such"]).refused(3, &said);
    let both = ["redis://127.0.0.1:1", "--watch-cgroup", "a", "--pid", "1"];
    place.climb(&both).fails(3, &["--watch-cgroup", "not both"]);
}

#[test]
fn without_ticks_and_process_the_errors_are_judged() {
    let place = Place::new();
    let (_server, url) = place.serve("arena");
    let ran = place.climb(&[&url, "--bots", "arena", "--rungs", "5", "--json", "run.json"]);
    let run = place.json("run.json");
    assert_valid(&run);
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    let rung = &run["rungs"][0];
    assert!(rung["subject"].is_null() && rung["ticks"].is_null(), "{rung:#}");
    assert!(rung["sent"].as_u64() > Some(0), "{rung:#}");
}

#[test]
fn a_server_behind_a_shell_ends_with_a_climb_that_is_killed() {
    let (place, port) = (Place::new(), free_port());
    let url = format!("ws://127.0.0.1:{port}");
    let start = format!("echo one; {}; echo two", arena_on(port, ""));
    let mut climb = place.start_climb(&[&url, "--bots", "arena", "--rungs", "2", "--start", &start]);
    climb.wait_for("connected");
    let address = format!("serve arena --listen 127.0.0.1:{port}");
    let servers: Vec<u32> = processes().filter(|pid| command_line(*pid).contains(&address)).collect();
    // The climb itself, the shell and the server all have these words on their command line.
    assert!(servers.len() >= 3, "{servers:?}");
    climb.signal(libc::SIGKILL);
    climb.finish();
    eventually("no process of it is left", || servers.iter().all(|pid| is_gone(*pid)).then_some(()));
}

/// Whatever comes goes back.
fn echo_of_lines() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("tcp://{}", listener.local_addr().expect("its address"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut back = stream.try_clone().expect("a second handle");
            // A disconnected client does not matter here.
            thread::spawn(move || drop(io::copy(&mut stream, &mut back)));
        }
    });
    url
}

#[test]
fn an_echo_over_lines_of_tcp_is_climbed_after_a_calibration_over_lines() {
    let place = Place::new();
    let echo = ["climb", &echo_of_lines(), "--bots", "echo", "--rungs", "4", "--json", "run.json"];
    let ran = place.run([&echo[..], &["--hold", "2s", "--settle", "200ms"]].concat());
    let run = checked_run(&place);
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    assert!(run["generator"]["ceiling_per_s"].as_f64() > Some(0.0), "{:#}", run["generator"]);
    let rung = &run["rungs"][0];
    assert!(rung["answered"].as_u64() > Some(0), "{rung:#}");
    assert_eq!((rung["failed"].as_u64(), rung["lost"].as_u64()), (Some(0), Some(0)), "{rung:#}");
    assert_eq!(rung["errors"], serde_json::json!({}), "{rung:#}");
}

#[test]
fn what_a_server_printed_before_it_ended_is_kept_behind_its_end() {
    let (place, port) = (Place::new(), free_port());
    let url = format!("ws://127.0.0.1:{port}");
    let server = arena_on(port, "");
    let start =
        format!("{server} & echo $! > server.pid; wait $!; echo 'fatal: out of <b>seats</b>' >&2; exit 7");
    let mut climb = place.start_climb(&[
        &url, "--bots", "arena", "--rungs", "2", "--hold", "8s", "--start", &start, "--ticks", "client",
    ]);
    climb.wait_for("rung 2 games · hold");
    let pid = std::fs::read_to_string(place.path("server.pid")).expect("the command wrote it");
    send(pid.trim().parse().expect("a process number"), libc::SIGKILL);
    let ran = climb.finish();
    assert_eq!(ran.code, 1, "{ran:#?}");
    let runs = place.run(["runs"]).out;
    let name = runs.split_whitespace().find(|word| word.ends_with("-1")).expect("a run").to_owned();
    let events: Vec<(String, String)> = place
        .run(["export", &name])
        .out
        .lines()
        .map(parse)
        .filter(|row| row["table"] == "event")
        .map(|row| {
            (row["kind"].as_str().unwrap_or("").to_owned(), row["text"].as_str().unwrap_or("").to_owned())
        })
        .collect();
    let exited = events.iter().position(|(kind, _)| kind == "subject exited").expect("its end");
    assert_eq!(events[exited].1, "exit code 7", "{events:?}");
    let (kind, text) = &events[exited + 1];
    assert_eq!(kind, "subject output");
    assert!(text.ends_with("fatal: out of <b>seats</b>") && text.lines().count() <= 5, "{text}");
}
