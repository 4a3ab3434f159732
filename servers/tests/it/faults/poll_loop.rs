//! Faults of the poll loop.

use std::time::{Duration, Instant};

use servers::poll_loop::{self, Options};

use super::{check_reset, check_silent, faults, figure, log_sums, log_with_ticks};
use crate::client::{Client, Running};
use crate::http_client::get;

/// So many ticks that no time has to be waited for.
fn options(planted: &[&str]) -> Options {
    let drain = Duration::from_millis(300);
    Options { tick_rate: 1_000, cost_scale: 0.0, drain, faults: faults(planted), ..Options::default() }
}

fn start(options: Options) -> Running {
    Running::start(move |shutdown, listening| {
        let listen = "127.0.0.1:0".parse().unwrap();
        poll_loop::run(Options { listen, shutdown: Some(shutdown), ..options }, listening)
    })
}

fn ask(client: &mut Client) -> u16 {
    client.ask(&get("/")).status
}

#[test]
fn the_planted_share_of_answers_has_status_500() {
    let server = start(options(&["wrong-answers:25%"]));
    let mut client = Client::silent(server.address);
    let statuses: Vec<u16> = (0..8).map(|_| ask(&mut client)).collect();
    assert_eq!(statuses, [200, 200, 200, 500, 200, 200, 200, 500]);
    server.end().unwrap();
}

#[test]
fn the_planted_share_of_requests_is_never_answered_and_counted_as_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticks.jsonl");
    let server = start(Options { tick_log: Some(path.clone()), ..options(&["lose:50%"]) });
    let mut client = Client::silent(server.address);
    assert_eq!(ask(&mut client), 200);
    client.write(get("/").as_bytes());
    check_silent(&mut client.stream);
    assert_eq!(ask(&mut client), 200, "the third of three");
    server.end().unwrap();
    let (sums, _) = log_sums(&path);
    assert_eq!(["requests", "answers", "dropped"].map(|name| figure(&sums, name)), [3, 3, 0]);
}

#[test]
fn the_planted_share_of_answers_comes_twice() {
    let server = start(options(&["duplicate:50%"]));
    let mut client = Client::silent(server.address);
    let first = client.ask(&get("/"));
    let second = client.ask(&get("/"));
    assert_ne!(first.body, second.body, "a page says at which tick it was made");
    assert_eq!(client.answer(), second);
    assert_ne!(client.ask(&get("/")), second);
    server.end().unwrap();
}

#[test]
fn late_answers_are_late_one_by_one_and_take_no_place_from_others() {
    let server = start(options(&["late-answers:300ms"]));
    let mut clients: Vec<Client> = (0..40).map(|_| Client::silent(server.address)).collect();
    let began = Instant::now();
    for client in &mut clients {
        client.write(get("/").as_bytes());
        // More than the fourteen that are admitted are in flight at once, though never more than a few wait.
        std::thread::sleep(Duration::from_millis(3));
    }
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    // The connection is as good as before.
    assert_eq!(ask(&mut clients[0]), 200);
    server.end().unwrap();
}

#[test]
fn without_ticks_requests_wait_and_those_beyond_the_queue_are_refused() {
    let server = start(options(&["stop-ticks@0s"]));
    let mut waiting: Vec<Client> = (0..14).map(|_| Client::silent(server.address)).collect();
    for client in &mut waiting {
        client.write(get("/").as_bytes());
    }
    check_silent(&mut waiting[0].stream);
    assert_eq!(ask(&mut Client::silent(server.address)), 503);
    server.end().unwrap();
}

#[test]
fn without_answers_nothing_is_said_and_ticks_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticks.jsonl");
    let server = start(Options { tick_log: Some(path.clone()), ..options(&["stop-answers@0s"]) });
    let mut client = Client::silent(server.address);
    client.write(get("/").as_bytes());
    check_silent(&mut client.stream);
    let due = figure(&log_sums(&path).0, "due");
    log_with_ticks(&path, due + 100);
    server.end().unwrap();
}

#[test]
fn all_connections_are_reset_once_and_new_ones_are_served() {
    let server = start(options(&["drop-all@400ms"]));
    let mut client = Client::silent(server.address);
    check_reset(&mut client.stream);
    assert_eq!(ask(&mut Client::silent(server.address)), 200);
    server.end().unwrap();
}

#[test]
fn refused_connections_are_reset() {
    let server = start(options(&["refuse@0s"]));
    check_reset(&mut Client::silent(server.address).stream);
    server.end().unwrap();
}

#[test]
fn in_a_collapsed_loop_every_tick_takes_longer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticks.jsonl");
    let collapsing = options(&["collapse@0s:100ms"]);
    let server = start(Options { tick_rate: 30, tick_log: Some(path.clone()), ..collapsing });
    let mut client = Client::silent(server.address);
    assert_eq!(ask(&mut client), 200);
    let began = Instant::now();
    for _ in 0..3 {
        assert_eq!(ask(&mut client), 200);
    }
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    let before = log_sums(&path).0;
    let after = log_with_ticks(&path, figure(&before, "due") + 30);
    assert!(figure(&after, "missed") >= figure(&before, "missed") + 15, "{after:?}");
    server.end().unwrap();
}

/// On time, over, under and due of the ticks that the log tells from the first answer on.
fn ticks_with(fault: &str) -> [u64; 4] {
    let names = ["on_time", "over", "under", "due"];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticks.jsonl");
    let server = start(Options { tick_rate: 30, tick_log: Some(path.clone()), ..options(&[fault]) });
    // Its first answer shows that the fault is active, and a further line that everything before it is in the log.
    assert_eq!(ask(&mut Client::silent(server.address)), 200);
    let before = log_with_ticks(&path, figure(&log_sums(&path).0, "due") + 10);
    let after = log_with_ticks(&path, figure(&before, "due") + 50);
    server.end().unwrap();
    names.map(|name| figure(&after, name) - figure(&before, name))
}

#[test]
fn late_ticks_are_over_and_the_next_ones_under() {
    let [_, over, under, due] = ticks_with("late-ticks:40%");
    assert!(over * 10 >= due * 3, "{over} of {due} over");
    assert!(under * 10 >= due * 2, "{under} of {due} under");
}

#[test]
fn a_lying_log_calls_every_tick_on_time() {
    let [on_time, over, under, due] = ticks_with("lie:40%");
    assert_eq!((on_time, over, under), (due, 0, 0));
}
