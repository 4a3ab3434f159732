//! Faults of the arena, and its pairing that forgets disconnected players.

use std::time::{Duration, Instant};

use serde_json::Value;
use servers::ServeError;
use servers::arena::{self, Options, Pairing};

use super::{check_reset, check_silent, faults, figure, log_sums, log_with_ticks, wait_for};
use crate::client::{Client, Frame, Running, frame, request};

const START: &str = r#"{"type":"start"}"#;
const FIRE: &str = r#"{"type":"fire"}"#;

/// One thread, so that shares fall on games and shots in their order; and bullets that hit within a tick.
fn options(planted: &[&str]) -> Options {
    Options {
        threads: Some(1),
        bullet_speed: 100_000,
        close_timeout: Duration::from_millis(200),
        faults: faults(planted),
        ..Options::default()
    }
}

fn start(options: Options) -> Running {
    Running::start(move |shutdown, listening| {
        let listen = "127.0.0.1:0".parse().unwrap();
        arena::run(Options { listen, shutdown: Some(shutdown), ..options }, listening, |_| ())
    })
}

fn pair(server: &Running) -> (Client, Client) {
    let (mut one, mut two) = (Client::open(server.address, "/"), Client::open(server.address, "/"));
    assert_eq!(one.hear_text(), START);
    assert_eq!(two.hear_text(), START);
    (one, two)
}

/// Two who have asked to play and do not wait for an answer.
fn silent_pair(server: &Running) -> (Client, Client) {
    let mut both = [Client::silent(server.address), Client::silent(server.address)];
    both.iter_mut().for_each(|client| client.write(request("/").as_bytes()));
    let [one, two] = both;
    (one, two)
}

/// Whether the player is told that it won.
fn won(client: &mut Client) -> bool {
    let text = client.hear_text();
    let stop: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(stop["type"], "stop", "{text}");
    stop["won"].as_bool().unwrap()
}

/// Player 1 shoots, and both are told how it ended.
fn played(one: &mut Client, two: &mut Client) -> [bool; 2] {
    one.say(FIRE);
    [won(one), won(two)]
}

#[test]
fn the_planted_share_of_games_is_won_by_the_loser() {
    let server = start(options(&["wrong-answers:50%"]));
    for expected in [[true, false], [false, true], [true, false], [false, true]] {
        let (mut one, mut two) = pair(&server);
        assert_eq!(played(&mut one, &mut two), expected);
    }
    server.end().unwrap();
}

#[test]
fn late_answers_delay_start_and_stop() {
    let server = start(options(&["late-answers:300ms"]));
    let began = Instant::now();
    let (mut one, mut two) = pair(&server);
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    let fired = Instant::now();
    assert_eq!(played(&mut one, &mut two), [true, false]);
    assert!(fired.elapsed() >= Duration::from_millis(300), "{:?}", fired.elapsed());
    server.end().unwrap();
}

#[test]
fn the_planted_share_of_games_starts_twice() {
    let server = start(options(&["duplicate:50%"]));
    for game in 1..=4 {
        let (mut one, mut two) = pair(&server);
        if game % 2 == 0 {
            assert_eq!([one.hear_text(), two.hear_text()], [START, START]);
        }
        assert_eq!(played(&mut one, &mut two), [true, false], "game {game}");
    }
    server.end().unwrap();
}

#[test]
fn lost_shots_count_as_accepted_and_never_hit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticks.jsonl");
    let server = start(Options { tick_log: Some(path.clone()), ..options(&["lose:100%"]) });
    let (mut one, mut two) = pair(&server);
    one.say(FIRE);
    // Long enough for some ticks: the shot would have hit in the first.
    check_silent(&mut one.stream);
    drop(one);
    assert!(two.hear_text().contains("Opponent disconnected"));
    server.end().unwrap();
    let (sums, _) = log_sums(&path);
    let counts = ["shots", "shots_accepted", "won_by_1", "abandoned"].map(|name| figure(&sums, name));
    assert_eq!(counts, [1, 1, 0, 1]);
}

#[test]
fn all_connections_are_reset_once_and_new_ones_are_served() {
    let server = start(options(&["drop-all@1s"]));
    let mut one = Client::open(server.address, "/");
    check_reset(&mut one.stream);
    let (mut one, mut two) = pair(&server);
    assert_eq!(played(&mut one, &mut two), [true, false]);
    server.end().unwrap();
}

#[test]
fn refused_connections_are_reset_and_open_ones_live_on() {
    let server = start(options(&["refuse@1s"]));
    let (mut one, mut two) = pair(&server);
    std::thread::sleep(Duration::from_millis(1100));
    let mut late = Client::silent(server.address);
    // Writing may already fail.
    let _ = std::io::Write::write_all(&mut late.stream, request("/").as_bytes());
    check_reset(&mut late.stream);
    assert_eq!(played(&mut one, &mut two), [true, false]);
    server.end().unwrap();
}

#[test]
fn without_ticks_players_are_paired_and_pings_answered_and_the_log_goes_on_without_ticks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticks.jsonl");
    let server = start(Options { tick_log: Some(path.clone()), ..options(&["stop-ticks@0s"]) });
    let (mut one, _two) = pair(&server);
    one.say(FIRE);
    one.write(&frame(0x89, b"here"));
    assert_eq!(one.hear(), Frame::Pong(b"here".to_vec()));
    check_silent(&mut one.stream);
    wait_for("two lines of the tick log", || (log_sums(&path).1 >= 2).then_some(()));
    server.end().unwrap();
    let (sums, _) = log_sums(&path);
    assert_eq!((figure(&sums, "due"), figure(&sums, "shots_accepted")), (0, 1));
}

#[test]
fn without_answers_not_even_the_handshake_is_answered_and_ticks_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticks.jsonl");
    let server = start(Options { tick_log: Some(path.clone()), ..options(&["stop-answers@0s"]) });
    let (mut one, mut two) = silent_pair(&server);
    check_silent(&mut one.stream);
    check_silent(&mut two.stream);
    log_with_ticks(&path, 30);
    server.end().unwrap();
}

#[test]
fn a_collapsed_arena_misses_most_ticks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticks.jsonl");
    let server = start(Options { tick_log: Some(path.clone()), ..options(&["collapse@0s:300ms"]) });
    let _players = pair(&server);
    let sums = log_with_ticks(&path, 60);
    assert!(figure(&sums, "missed") > 10 * figure(&sums, "on_time"), "{sums:?}");
    server.end().unwrap();
}

/// What the tick log and a player's snapshots say about a game of `ticks` ticks: on time, over, under and due there; and
/// the share of intervals here that are 20 ms and longer.
fn ticks_with(fault: &str) -> ([u64; 4], f64) {
    const SNAPSHOTS: usize = 150;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticks.jsonl");
    let server = start(Options { tick_log: Some(path.clone()), ..options(&[fault]) });
    let mut one = Client::open(server.address, "/?snapshots=1");
    let mut two = Client::open(server.address, "/");
    assert_eq!([one.hear_text(), two.hear_text()], [START, START]);
    let stamps_us: Vec<u64> = (0..SNAPSHOTS)
        .map(|_| serde_json::from_str::<Value>(&one.hear_text()).unwrap()["t"].as_u64().unwrap())
        .collect();
    server.end().unwrap();
    let long = stamps_us.windows(2).filter(|pair| pair[1] - pair[0] >= 20_000).count();
    let (sums, _) = log_sums(&path);
    let counts = ["on_time", "over", "under", "due"].map(|name| figure(&sums, name));
    (counts, long as f64 / (SNAPSHOTS - 1) as f64)
}

#[test]
fn late_ticks_are_late_for_the_log_and_for_clients() {
    let ([_, over, under, due], long_share) = ticks_with("late-ticks:40%");
    // Two in five are late, and the tick after each of them comes too soon. A busy machine adds to them and takes a few.
    assert!(over * 10 >= due * 3, "{over} of {due} over");
    assert!(under * 10 >= due * 2, "{under} of {due} under");
    assert!(long_share >= 0.3, "{long_share}");
}

#[test]
fn a_lying_log_calls_every_tick_on_time_while_clients_see_late_ones() {
    let ([on_time, over, under, due], long_share) = ticks_with("lie:40%");
    assert_eq!((on_time, over, under), (due, 0, 0));
    assert!(due >= 150);
    assert!(long_share >= 0.3, "{long_share}");
}

#[test]
fn a_fault_that_a_server_cannot_plant_is_refused_before_it_listens() {
    let options = servers::chat::Options { faults: faults(&["stop-ticks@8s"]), ..Default::default() };
    let error = servers::chat::run(options, |_| {}).unwrap_err();
    assert!(matches!(error, ServeError::Fault { .. }), "{error}");
    assert!(error.to_string().starts_with("serve chat cannot plant the fault stop-ticks@8s; it can plant "));
}

#[test]
fn a_forgetful_arena_pairs_the_next_player_with_a_dead_one_and_the_living_one_wins() {
    let server = start(Options { pairing: Pairing::Forgetful, ..options(&[]) });
    let mut dead = Client::open(server.address, "/");
    dead.write(&frame(0x88, &1000u16.to_be_bytes()));
    assert_eq!((dead.hear(), dead.hear()), (Frame::Close(Some(1000)), Frame::End));
    let mut two = Client::open(server.address, "/");
    assert_eq!(two.hear_text(), START);
    // A disconnected opponent does not end the game.
    check_silent(&mut two.stream);
    two.say(FIRE);
    let stop: Value = serde_json::from_str(&two.hear_text()).unwrap();
    assert_eq!((&stop["won"], &stop["x"]), (&Value::Bool(true), &Value::from(1000)));
    assert_eq!(stop.get("errorMsg"), None);
    // The disconnected one has had its game; the next two play each other.
    let (mut one, mut two) = pair(&server);
    assert_eq!(played(&mut one, &mut two), [true, false]);
    server.end().unwrap();
}
