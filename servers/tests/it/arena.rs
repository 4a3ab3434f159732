//! The arena over real sockets: who is paired with whom, the messages they get, and what is rejected.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use servers::ServeError;
use servers::arena::{self, Options, Ticker};

use crate::client::{Client, Frame, Running, frame, request};

const START: &str = r#"{"type":"start"}"#;
/// How long a server here waits for clients to close: they often do not, because the test is over.
const SHORT: Duration = Duration::from_millis(200);

const FIRE: &str = r#"{"type":"fire"}"#;

/// Bullets fly so fast that a game takes a tick, and time does not have to be waited for.
fn quick() -> Options {
    Options { threads: Some(2), bullet_speed: 100_000, close_timeout: SHORT, ..Options::default() }
}

/// Bullets fly so slowly that no game ends by itself.
fn slow() -> Options {
    Options { threads: Some(2), bullet_speed: 1, close_timeout: SHORT, ..Options::default() }
}

fn start(options: Options) -> Running {
    Running::start(move |shutdown, listening| {
        let listen = "127.0.0.1:0".parse().unwrap();
        arena::run(Options { listen, shutdown: Some(shutdown), ..options }, listening, |_| ())
    })
}

fn open(server: &Running) -> Client {
    Client::open(server.address, "/")
}

/// A player who waits and the one who came next, both told to start.
fn pair(server: &Running) -> (Client, Client) {
    let (mut one, mut two) = (open(server), open(server));
    assert_eq!(one.hear_text(), START);
    assert_eq!(two.hear_text(), START);
    (one, two)
}

/// The stop's fields, after checking that they stand in the published order.
fn stop(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap();
    let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["type", "errorMsg", "lastFire", "bulletCount", "won", "x", "direction", "id"];
    let skipped = usize::from(value.get("errorMsg").is_none());
    assert_eq!(keys[1..], expected[1 + skipped..], "{text}");
    assert_eq!(value["type"], "stop");
    value
}

#[track_caller]
fn check_disconnected(client: &mut Client, x: i64) {
    let text = client.hear_text();
    assert!(text.starts_with(r#"{"type":"stop","errorMsg":"Opponent disconnected","lastFire":"#), "{text}");
    let stop = stop(&text);
    assert_eq!((&stop["won"], &stop["x"]), (&Value::Bool(false), &Value::from(x)));
}

#[test]
fn a_game_is_started_played_and_stopped_with_the_published_bytes() {
    let server = start(quick());
    let (mut one, mut two) = pair(&server);
    one.say(FIRE);
    let (told_one, told_two) = (one.hear_text(), two.hear_text());
    let (first, second) = (stop(&told_one), stop(&told_two));
    let last_fire = first["lastFire"].as_u64().unwrap();
    let id = &first["id"];
    assert_eq!(
        told_one,
        format!(
            r#"{{"type":"stop","lastFire":{last_fire},"bulletCount":1,"won":true,"x":-1000,"direction":1,"id":{id}}}"#
        )
    );
    let id = &second["id"];
    assert_eq!(
        told_two,
        format!(
            r#"{{"type":"stop","lastFire":0,"bulletCount":0,"won":false,"x":1000,"direction":-1,"id":{id}}}"#
        )
    );
    let now_ms =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    assert!(now_ms.abs_diff(last_fire) < 60_000);
    assert_ne!(first["id"], second["id"]);
    // A client that sends a close gets the close back, and then the end.
    one.write(&frame(0x88, &1000u16.to_be_bytes()));
    two.write(&frame(0x88, &[]));
    assert_eq!((one.hear(), one.hear()), (Frame::Close(Some(1000)), Frame::End));
    assert_eq!((two.hear(), two.hear()), (Frame::Close(None), Frame::End));
    server.end().unwrap();
}

#[test]
fn players_are_paired_in_order_of_arrival_over_all_threads() {
    let server = start(Options { threads: Some(4), ..quick() });
    let mut clients: Vec<Client> = (0..40)
        .map(|_| {
            let mut client = Client::silent(server.address);
            client.write(request("/").as_bytes());
            client
        })
        .collect();
    for client in &mut clients {
        client.read_until(b"\r\n\r\n");
        assert_eq!(client.hear_text(), START);
    }
    for pair in clients.chunks_mut(2) {
        let [one, two] = pair else { unreachable!() };
        one.say(FIRE);
        let (one, two) = (stop(&one.hear_text()), stop(&two.hear_text()));
        assert_eq!((&one["x"], &one["won"]), (&Value::from(-1000), &Value::Bool(true)));
        assert_eq!((&two["x"], &two["won"]), (&Value::from(1000), &Value::Bool(false)));
    }
    server.end().unwrap();
}

#[test]
fn a_request_that_comes_in_pieces_is_understood() {
    let server = start(quick());
    let mut one = Client::silent(server.address);
    for piece in request("/anything").as_bytes().chunks(7) {
        one.write(piece);
    }
    one.read_until(b"\r\n\r\n");
    let mut two = open(&server);
    assert_eq!(one.hear_text(), START);
    assert_eq!(two.hear_text(), START);
    server.end().unwrap();
}

#[test]
fn an_opponent_who_goes_away_ends_the_game_however_they_go() {
    let server = start(slow());
    let (one, mut two) = pair(&server);
    drop(one);
    check_disconnected(&mut two, 1000);
    let (mut one, mut two) = pair(&server);
    two.write(&frame(0x88, &1001u16.to_be_bytes()));
    assert_eq!(two.hear(), Frame::Close(Some(1001)));
    check_disconnected(&mut one, -1000);
    server.end().unwrap();
}

#[test]
fn a_waiting_player_who_leaves_is_forgotten() {
    let server = start(quick());
    let mut gone = open(&server);
    gone.write(&frame(0x88, &1000u16.to_be_bytes()));
    assert_eq!((gone.hear(), gone.hear()), (Frame::Close(Some(1000)), Frame::End));
    let (mut one, mut two) = pair(&server);
    two.say(FIRE);
    assert_eq!(stop(&one.hear_text())["won"], false);
    assert_eq!(stop(&two.hear_text())["x"], 1000);
    server.end().unwrap();
}

#[test]
fn what_is_not_json_fails_its_player_and_unknown_types_are_ignored() {
    let server = start(slow());
    let (mut one, mut two) = pair(&server);
    one.say(r#"{"type":"dance"}"#);
    one.say("[]");
    one.say("not json");
    assert_eq!(one.hear(), Frame::Close(Some(1007)));
    check_disconnected(&mut two, 1000);
    server.end().unwrap();
}

#[test]
fn pings_are_answered_and_fragments_are_one_message() {
    let server = start(quick());
    let (mut one, mut two) = pair(&server);
    one.write(&frame(0x89, b"are you there"));
    assert_eq!(one.hear(), Frame::Pong(b"are you there".to_vec()));
    one.write(&frame(0x01, br#"{"type":"#));
    one.write(&frame(0x89, b""));
    assert_eq!(one.hear(), Frame::Pong(vec![]));
    one.write(&frame(0x80, br#""fire"}"#));
    assert_eq!(stop(&one.hear_text())["bulletCount"], 1);
    assert_eq!(stop(&two.hear_text())["won"], false);
    server.end().unwrap();
}

#[test]
fn broken_frames_are_answered_with_their_close_code() {
    let server = start(slow());
    let mut unmasked = frame(0x81, b"{}");
    unmasked[1] &= 0x7f;
    for (bytes, code) in [
        (unmasked, 1002),
        (frame(0xc1, b"{}"), 1002),
        (frame(0x81, &[b' '; 4097])[..8].to_vec(), 1009),
        ([frame(0x01, &[b' '; 4000]), frame(0x80, &[b' '; 97])].concat(), 1009),
        (frame(0x81, &[0xc3, 0x28]), 1007),
    ] {
        let mut client = open(&server);
        client.write(&bytes);
        assert_eq!(client.hear(), Frame::Close(Some(code)));
        assert_eq!(client.hear(), Frame::End);
    }
    server.end().unwrap();
}

#[test]
fn a_request_that_is_not_completed_in_time_is_cut_off() {
    let server = start(Options { handshake_timeout: Duration::from_millis(50), ..quick() });
    let mut client = Client::silent(server.address);
    client.write(&request("/").as_bytes()[..40]);
    assert_eq!(client.hear(), Frame::End);
    // And a client that is in time is not disconnected later.
    let mut waiting = open(&server);
    std::thread::sleep(Duration::from_millis(120));
    waiting.write(&frame(0x89, b""));
    assert_eq!(waiting.hear(), Frame::Pong(vec![]));
    server.end().unwrap();
}

#[test]
fn a_client_that_does_not_close_after_the_stop_is_closed() {
    let server = start(quick());
    let (mut one, _two) = pair(&server);
    one.say(FIRE);
    stop(&one.hear_text());
    assert_eq!((one.hear(), one.hear()), (Frame::Close(Some(1000)), Frame::End));
    server.end().unwrap();
}

#[test]
fn whoever_comes_on_top_of_the_limit_is_refused_and_room_is_made_by_leaving() {
    let server = start(Options { max_connections: 2, ..slow() });
    let (one, _two) = pair(&server);
    let mut third = Client::silent(server.address);
    third.write(request("/").as_bytes());
    assert!(third.read_until(b"\r\n\r\n").starts_with("HTTP/1.1 503 "));
    drop(one);
    let is_let_in = (0..1000).any(|_| {
        let mut next = Client::silent(server.address);
        next.write(request("/").as_bytes());
        next.read_until(b"\r\n\r\n").starts_with("HTTP/1.1 101 ")
    });
    assert!(is_let_in);
    server.end().unwrap();
}

#[test]
fn an_address_gets_no_more_connections_per_second_than_allowed() {
    let limit = Options { connections_per_address_per_s: Some(3), limit_loopback: true, ..slow() };
    let server = start(limit);
    let opened = (0..12).filter(|_| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        // A refused connection may already be reset while we write.
        let _ = stream.write_all(request("/").as_bytes());
        matches!(stream.read(&mut [0; 12]), Ok(12))
    });
    let opened = opened.count();
    assert!((3..12).contains(&opened), "{opened}");
    server.end().unwrap();
}

#[test]
fn snapshots_come_to_whoever_asks_and_carry_rising_ticks_and_times() {
    let server = start(slow());
    let mut one = open(&server);
    let mut two = Client::open(server.address, "/?snapshots=1");
    assert_eq!((one.hear_text(), two.hear_text()), (START.to_string(), START.to_string()));
    let mut before = (0, 0);
    for _ in 0..5 {
        let text = two.hear_text();
        let snapshot: Value = serde_json::from_str(&text).unwrap();
        let now = (snapshot["n"].as_u64().unwrap(), snapshot["t"].as_u64().unwrap());
        assert_eq!(text, format!(r#"{{"type":"tick","n":{},"t":{}}}"#, now.0, now.1));
        assert!(now.0 > before.0 && now.1 > before.1);
        before = now;
    }
    // Only the pong is sent to player 1.
    one.write(&frame(0x89, b""));
    assert_eq!(one.hear(), Frame::Pong(vec![]));
    server.end().unwrap();
}

#[test]
fn the_end_stops_games_closes_everyone_1001_and_flushes_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("game.log");
    let server = start(Options { tick_log: Some(path.clone()), ..slow() });
    let (mut one, mut two) = pair(&server);
    let mut waiting = open(&server);
    server.shutdown.trigger();
    for (client, x) in [(&mut one, -1000), (&mut two, 1000)] {
        let text = client.hear_text();
        assert!(
            text.starts_with(r#"{"type":"stop","errorMsg":"Server shutting down","lastFire":"#),
            "{text}"
        );
        assert_eq!(stop(&text)["x"], x);
        assert_eq!(client.hear(), Frame::Close(Some(1001)));
    }
    assert_eq!(waiting.hear(), Frame::Close(Some(1001)));
    let address = server.address;
    drop((one, two, waiting));
    server.end().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
    assert_eq!(sums(&path)["abandoned"], 1);
}

/// The sums of all whole numbers in the log's own lines, which must be conserved in each.
fn sums(path: &Path) -> serde_json::Map<String, Value> {
    let mut sums = serde_json::Map::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["time"].is_u64() && line["hostname"].is_string() && line["level"] == 40, "{line}");
        if line["title"] != "stepladder" {
            continue;
        }
        let count = |key: &str| line[key].as_u64().unwrap();
        assert_eq!(count("due"), count("on_time") + count("over") + count("under") + count("missed"));
        assert_eq!(count("shots"), count("shots_accepted") + count("shots_early") + count("shots_lost"));
        assert!(count("from_ms") <= count("to_ms"));
        for (key, value) in line.as_object().unwrap() {
            if let Some(value) = value.as_u64() {
                let sum = sums.get(key).and_then(Value::as_u64).unwrap_or(0);
                sums.insert(key.clone(), (sum + value).into());
            }
        }
    }
    sums
}

fn check_log(ticker: Ticker) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("game.log");
    let server = start(Options { tick_log: Some(path.clone()), ticker, tick_rate: 250, ..slow() });
    let (mut one, _two) = pair(&server);
    one.say(FIRE);
    one.say(FIRE);
    std::thread::sleep(Duration::from_millis(300));
    server.end().unwrap();
    let sums = sums(&path);
    let count = |key: &str| sums[key].as_u64().unwrap();
    // At 250 Hz for 300 ms and a little more; none is skipped, however busy the machine.
    assert!((60..2000).contains(&count("due")), "{sums:?}");
    assert_eq!((count("shots"), count("shots_accepted"), count("shots_early")), (2, 1, 1));
    assert_eq!((count("won_by_1"), count("games_played"), count("abandoned")), (0, 0, 1));
    if ticker == Ticker::CatchUp {
        assert_eq!(count("missed"), 0);
    }
}

#[test]
fn the_tick_log_accounts_for_every_due_tick_of_the_steady_ticker() {
    check_log(Ticker::Steady);
}

#[test]
fn the_tick_log_accounts_for_every_due_tick_of_the_catch_up_ticker() {
    check_log(Ticker::CatchUp);
}

#[test]
fn an_existing_tick_log_is_refused_before_anything_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("game.log");
    std::fs::write(&path, "earlier\n").unwrap();
    let options = Options { listen: "127.0.0.1:0".parse().unwrap(), tick_log: Some(path.clone()), ..quick() };
    let error = arena::run(options.clone(), |_| panic!("it must not listen"), |_| ()).unwrap_err();
    assert!(matches!(error, ServeError::TickLogExists { .. }));
    assert!(error.to_string().contains("--append"), "{error}");
    let server = start(Options { append: true, ..options });
    server.end().unwrap();
    let log = std::fs::read_to_string(&path).unwrap();
    assert!(log.starts_with("earlier\n{"), "{log}");
}

#[test]
fn a_tick_log_that_cannot_be_written_ends_the_server_and_says_so() {
    let full = Options { tick_log: Some("/dev/full".into()), append: true, ..quick() };
    let error =
        arena::run(Options { listen: "127.0.0.1:0".parse().unwrap(), ..full }, |_| (), |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("/dev/full: cannot write the tick log"), "{error}");
}

#[test]
fn a_player_who_does_not_read_is_cut_off() {
    let server = start(Options { tick_rate: 1000, ..slow() });
    let mut slow_reader = Client::with_little_room(server.address);
    slow_reader.write(request("/?snapshots=1").as_bytes());
    slow_reader.read_until(b"\r\n\r\n");
    let mut other = open(&server);
    assert_eq!((slow_reader.hear_text(), other.hear_text()), (START.to_string(), START.to_string()));
    check_disconnected(&mut other, 1000);
    server.end().unwrap();
}

#[test]
fn an_address_in_use_is_refused_with_its_name() {
    let server = start(quick());
    let error = arena::run(Options { listen: server.address, ..quick() }, |_| (), |_| ()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot listen on {}", server.address)), "{error}");
    server.end().unwrap();
}
