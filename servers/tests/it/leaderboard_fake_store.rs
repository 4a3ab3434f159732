//! The leaderboard service over something that is no store: whatever it sends, the service survives and claims nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use servers::leaderboard_service::Options;

use crate::client::Client;
use crate::leaderboard_client::{Player, request, start};
use crate::leaderboard_grpc::{self, block_on, call_with, framed};
use crate::leaderboard_store::{until, with_store};
use crate::leaderboard_websocket::encoded;

/// What is sent instead of the reply to a script's call.
#[derive(Clone, Default)]
struct Instead {
    bytes: Vec<u8>,
    closes: bool,
}

/// Answers scripts that are loaded as a store does, and everything else with what was planted.
struct Fake {
    url: String,
    instead: Arc<Mutex<Instead>>,
}

impl Fake {
    fn start() -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let fake = Fake { url, instead: Arc::default() };
        // The first call is made at the service's start.
        fake.plant(b"*1\r\n:0\r\n", false);
        let instead = fake.instead.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, instead) = (stream.unwrap(), instead.clone());
                std::thread::spawn(move || converse(&stream, &instead));
            }
        });
        fake
    }

    fn plant(&self, bytes: &[u8], closes: bool) {
        *self.instead.lock().unwrap() = Instead { bytes: bytes.to_vec(), closes };
    }
}

/// Returns when the service has gone.
fn converse(stream: &TcpStream, instead: &Mutex<Instead>) -> Option<()> {
    let mut input = BufReader::new(stream);
    let mut out = stream;
    let number = |kind: char, input: &mut BufReader<&TcpStream>| {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        line.trim_end().strip_prefix(kind)?.parse::<usize>().ok()
    };
    loop {
        let mut words = Vec::new();
        for _ in 0..number('*', &mut input)? {
            let mut word = vec![0; number('$', &mut input)? + 2];
            input.read_exact(&mut word).ok()?;
            word.truncate(word.len() - 2);
            words.push(word);
        }
        if words[0] == b"SCRIPT" {
            out.write_all(b"+loaded\r\n").ok()?;
            continue;
        }
        let Instead { bytes, closes } = instead.lock().unwrap().clone();
        out.write_all(&bytes).ok()?;
        if closes {
            return stream.shutdown(std::net::Shutdown::Both).ok();
        }
    }
}

const UPDATE: &str = "/leaderboards/main/members/ann?score=1";

#[test]
fn whatever_a_store_sends_instead_of_a_reply_the_change_is_not_told_as_made() {
    let fake = Fake::start();
    let timeout = Duration::from_millis(200);
    let running = start(Options { threads: Some(1), store_timeout: timeout, ..with_store(&fake.url) });
    let mut player = Player::of(&running);
    let good = b"*6\r\n:0\r\n:1\r\n:1\r\n:1\r\n:1\r\n$16\r\n0000000000000000\r\n";
    let unknown = "it is unknown whether the change was made";
    let certain = "nothing was changed";
    let cases: &[(&[u8], bool, &str)] = &[
        (b"", false, unknown),
        (b"", true, unknown),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", false, unknown),
        (b"\0\xff\xfe", false, unknown),
        (&good[..20], false, unknown),
        (&good[..20], true, unknown),
        (b"$9999999999999\r\n", false, unknown),
        (b"*9999999\r\n", false, unknown),
        (b"*1000000\r\n:0\r\n", false, unknown),
        (b"$16777216\r\nabc", true, unknown),
        (b"*1\r\n*1\r\n*1\r\n", false, unknown),
        (b"*1\r\n:0\r\n", false, unknown),
        (b"*2\r\n:0\r\n$3\r\nabc\r\n", false, unknown),
        (b"*1\r\n:77\r\n", false, unknown),
        (b"*6\r\n:0\r\n:1\r\n:-1\r\n:1\r\n:1\r\n$1\r\n0\r\n", false, unknown),
        (b"+OK\r\n", false, unknown),
        (b"$-1\r\n", false, unknown),
        (b"-ERR Error running script: attempt to index nil\r\n", false, unknown),
        (b"-READONLY You can't write against a read only replica.\r\n", false, certain),
        (b"-OOM command not allowed when used memory > 'maxmemory'.\r\n", false, certain),
        (b"-LOADING Redis is loading the dataset in memory\r\n", false, certain),
        (b"-NOSCRIPT No matching script.\r\n", false, certain),
    ];
    for (bytes, closes, says) in cases {
        fake.plant(good, false);
        until(200, &mut player, "PATCH", UPDATE);
        fake.plant(bytes, *closes);
        let shown = String::from_utf8_lossy(bytes);
        let problem = player.refused(503, "PATCH", UPDATE, "");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{shown:?}: {problem}");
    }
    fake.plant(good, false);
    until(200, &mut player, "PATCH", UPDATE);
    running.end().unwrap();
}

#[test]
fn over_a_store_websocket_and_grpc_are_refused_and_http_goes_on() {
    let fake = Fake::start();
    let running = start(Options { threads: Some(1), ..with_store(&fake.url) });
    fake.plant(b"*6\r\n:0\r\n:1\r\n:1\r\n:1\r\n:1\r\n$16\r\n0000000000000000\r\n", false);
    let says = "with --store this service speaks HTTP/JSON only";
    // After a request whose answer waits for the store, and before another.
    let (update, switch) = (request("PATCH", UPDATE, ""), crate::client::request("/ws"));
    let mut client = Client::silent(running.address);
    client.write([&*update, &*switch, &*update].concat().as_bytes());
    let answers = [client.answer(), client.answer(), client.answer()];
    assert_eq!(answers.each_ref().map(|answer| answer.status), [200, 501, 200], "{answers:?}");
    assert!(answers[1].body.contains(says), "{answers:?}");
    block_on(async {
        let mut requests = leaderboard_grpc::connect(running.address).await;
        let change = framed(&encoded("Update", &leaderboard_grpc::increment("ann", 1)));
        let bulk = framed(&encoded("Bulk", &serde_json::json!({"parts": []})));
        let read = framed(&encoded("Get", &serde_json::json!({"board": "main", "member": "ann"})));
        for (method, body) in [("Update", change), ("Bulk", bulk), ("Get", read)] {
            let told = call_with(&mut requests, method, &[], body).await;
            assert_eq!((told.status, told.messages.len(), &*told.text), (12, 0, says), "{method}");
        }
    });
    // Invalid requests, and other protocols, are answered after the answers that wait.
    let mut client = Client::silent(running.address);
    client.write(format!("{update}nonsense\r\n\r\n").as_bytes());
    assert_eq!([client.answer().status, client.answer().status], [200, 400]);
    let mut client = Client::silent(running.address);
    client.write(format!("{update}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").as_bytes());
    assert_eq!(client.answer().status, 200);
    const SETTINGS: u8 = 4;
    assert_eq!(client.read_bytes(9).as_bytes()[3], SETTINGS);
    running.end().unwrap();
}

#[test]
fn a_reply_without_an_end_is_given_up_before_it_fills_the_memory() {
    let fake = Fake::start();
    let running = start(Options { threads: Some(1), ..with_store(&fake.url) });
    let mut player = Player::of(&running);
    let resident_bytes = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let mut endless = b"*4000000\r\n".to_vec();
    endless.extend(b"$20\r\n01234567890123456789\r\n".repeat(2_000_000));
    let before = resident_bytes();
    fake.plant(&endless, false);
    player.refused(503, "PATCH", UPDATE, "");
    // The fake has two copies of it.
    let more = resident_bytes().saturating_sub(before + 2 * endless.len());
    assert!(more < 64 << 20, "{more} bytes");
    running.end().unwrap();
}
