//! The service killed in mid-write, again and again: every acknowledged increment is there afterwards, and none that
//! was never sent.
//!
//! `STEPLADDER_KILLS` sets how often; bench/leaderboard has the figure for a thousand.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::leaderboard_client::{Player, request};
use crate::leaderboard_log::start_process;

/// Members that single requests increment; behind them as many pairs that bulks increment together.
const MEMBERS: usize = 20;
const CONNECTIONS: u64 = 4;
/// Requests that a connection has under way.
const IN_FLIGHT: usize = 4;

/// By member: what clients have sent, and what was acknowledged.
#[derive(Default)]
struct Books {
    sent: Vec<u64>,
    acknowledged: Vec<u64>,
}

/// Which of the counters a request increments: a single member, or both of a pair.
fn choose(random: &mut fastrand::Rng) -> (String, Vec<usize>) {
    let number = random.usize(..MEMBERS);
    if random.bool() {
        return (
            request("PATCH", &format!("/leaderboards/main/members/m{number}?score=1"), ""),
            vec![number],
        );
    }
    let (left, right) = (MEMBERS + 2 * number, MEMBERS + 2 * number + 1);
    let item = |member: usize| format!(r#"{{"member":"m{member}","score":"1","mode":"increment"}}"#);
    let body =
        format!(r#"{{"leaderboards":[{{"leaderboard":"main","scores":[{},{}]}}]}}"#, item(left), item(right));
    (request("POST", "/bulk", &body), vec![left, right])
}

/// Sends and reads until the service is gone.
fn increment(address: SocketAddr, seed: u64, books: &Mutex<Books>, answers: &AtomicU64) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut buffer, mut read) = (Vec::new(), [0; 4096]);
    let mut under_way: std::collections::VecDeque<Vec<usize>> = Default::default();
    loop {
        while under_way.len() < IN_FLIGHT {
            let (asked, members) = choose(&mut random);
            // Recorded before it is sent: a part of it may arrive even if the write fails.
            members.iter().for_each(|member| books.lock().unwrap().sent[*member] += 1);
            under_way.push_back(members);
            if stream.write_all(asked.as_bytes()).is_err() {
                return;
            }
        }
        match stream.read(&mut read) {
            Ok(count) if count > 0 => buffer.extend_from_slice(&read[..count]),
            _ => return,
        }
        while let Some(whole) = answer_bytes(&buffer) {
            assert!(buffer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&buffer));
            buffer.drain(..whole);
            let members = under_way.pop_front().unwrap();
            members.iter().for_each(|member| books.lock().unwrap().acknowledged[*member] += 1);
            answers.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The length of the whole answer at the front.
fn answer_bytes(buffer: &[u8]) -> Option<usize> {
    let head = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&buffer[..head]).unwrap();
    let length = text.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let whole = head + length.parse::<usize>().unwrap();
    (buffer.len() >= whole).then_some(whole)
}

/// What the service has, by member.
fn stored(address: SocketAddr) -> Vec<u64> {
    let mut player = Player(Client::silent(address));
    let mut stored = vec![0; 3 * MEMBERS];
    for row in player.done("GET", "/leaderboards/main/range?limit=1000", "")["rows"].as_array().unwrap() {
        let member: usize = row["member"].as_str().unwrap()[1..].parse().unwrap();
        stored[member] = row["score"].as_str().unwrap().parse().unwrap();
    }
    stored
}

#[test]
fn what_was_acknowledged_survives_every_kill_and_nothing_is_invented() {
    let kills: u64 = std::env::var("STEPLADDER_KILLS").map_or(20, |text| text.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let books = Mutex::new(Books { sent: vec![0; 3 * MEMBERS], acknowledged: vec![0; 3 * MEMBERS] });
    let (mut answered, mut unacknowledged, began) = (0, 0, Instant::now());
    let mut random = fastrand::Rng::with_seed(7);
    for kill in 0..=kills {
        let (mut child, address, _out) = start_process(directory.path());
        let found = stored(address);
        {
            let mut books = books.lock().unwrap();
            for (member, &stored) in found.iter().enumerate() {
                let (sent, acknowledged) = (books.sent[member], books.acknowledged[member]);
                assert!(
                    (acknowledged..=sent).contains(&stored),
                    "kill {kill}, m{member}: {acknowledged} acknowledged, {stored} stored, {sent} sent"
                );
                unacknowledged += stored - acknowledged;
            }
            for pair in found[MEMBERS..].chunks(2) {
                assert_eq!(pair[0], pair[1], "kill {kill}: a bulk is there in part");
            }
            *books = Books { sent: found.clone(), acknowledged: found };
        }
        if kill == kills {
            child.kill().unwrap();
            child.wait().unwrap();
            break;
        }
        let (answers, enough) = (AtomicU64::new(0), random.u64(1..400));
        std::thread::scope(|scope| {
            for connection in 0..CONNECTIONS {
                let (books, answers) = (&books, &answers);
                scope.spawn(move || increment(address, kill * CONNECTIONS + connection, books, answers));
            }
            while answers.load(Ordering::Relaxed) < enough {
                std::thread::sleep(Duration::from_micros(200));
            }
            child.kill().unwrap();
            child.wait().unwrap();
        });
        answered += answers.into_inner();
    }
    println!(
        "{kills} kills in {:.0} s: {answered} requests acknowledged, none lost; {unacknowledged} increments stored \
         whose answer the kill had cut off",
        began.elapsed().as_secs_f64()
    );
}
