//! Clients that ask without end and take every answer: the others are answered all the same.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::process::Process;
use super::{GET, PATIENCE, SERVER, UPGRADE, WHICH, player_is_ponged};
use crate::chat_client::Talker;
use crate::client::{Client, frame};
use crate::http_client::get;
use crate::redis::Asker;

/// Clients that flood at once: each thread of the server has some.
const FLOODS: usize = 6;
/// Honest ones, for the same reason.
const HONEST: usize = 6;

/// Sends `bytes` over and over and reads whatever comes, until `over`. A connection that the server ends is opened again.
fn flood(address: SocketAddr, opening: &[u8], bytes: &[u8], over: &AtomicBool) {
    let bytes = bytes.repeat(64 * 1024 / bytes.len());
    while !over.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(address) else { continue };
        let mut answers = stream.try_clone().unwrap();
        std::thread::scope(|scope| {
            // Ends with the connection.
            scope.spawn(move || while matches!(answers.read(&mut [0; 1 << 16]), Ok(1..)) {});
            let mut sent = stream.write_all(opening);
            while sent.is_ok() && !over.load(Ordering::Relaxed) {
                sent = stream.write_all(&bytes);
            }
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

/// While the floods go on, each honest client is answered.
fn check(which: &str, opening: &[u8], bytes: &[u8], ask: impl Fn(SocketAddr) + Sync) {
    let server = Process::start(SERVER, &[(WHICH, which)]);
    let (address, over) = (server.address, AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..FLOODS {
            scope.spawn(|| flood(address, opening, bytes, &over));
        }
        // Every thread of the server is busy by then.
        std::thread::sleep(Duration::from_millis(300));
        let honest: Vec<_> = (0..HONEST).map(|_| scope.spawn(|| (0..3).for_each(|_| ask(address)))).collect();
        let until = Instant::now() + PATIENCE;
        while !honest.iter().all(|one| one.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let waiting = honest.iter().filter(|one| !one.is_finished()).count();
        over.store(true, Ordering::Relaxed);
        assert_eq!(waiting, 0, "{which}: honest clients wait as long as others flood the server");
        assert!(
            honest.into_iter().all(|one| one.join().is_ok()),
            "{which}: an honest client was not answered"
        );
    });
}

fn is_answered(path: &'static str) -> impl Fn(SocketAddr) + Sync {
    move |address| assert!(Client::silent(address).ask(&get(path)).status < 500)
}

#[test]
fn a_flood_of_requests_keeps_nobody_waiting_at_the_null_server() {
    check("null-http", b"", GET, is_answered("/bytes/10"));
}

#[test]
fn a_flood_of_requests_keeps_nobody_waiting_at_the_leaderboard() {
    check("leaderboard", b"", GET, is_answered("/leaderboards/main/members/ann"));
}

#[test]
fn a_flood_of_pings_keeps_nobody_waiting_at_the_leaderboard() {
    check("leaderboard", UPGRADE, &frame(0x89, b"1"), is_answered("/leaderboards/main/members/ann"));
}

#[test]
fn a_flood_of_requests_keeps_nobody_waiting_at_the_poll_loop() {
    check("poll-loop", b"", GET, is_answered("/force-field"));
}

#[test]
fn a_flood_of_commands_keeps_nobody_waiting_at_the_key_value_store() {
    check("redis", b"", b"PING\r\n", |address| {
        assert_eq!(Asker::connect(address).ask("SET honest 1"), "+OK\r\n");
    });
}

#[test]
fn a_flood_of_lines_keeps_nobody_waiting_at_the_chat() {
    check("chat", b"/join flood\n", b"/help\n", |address| {
        let mut talker = Talker::at(address);
        talker.say("/join honest");
        talker.hear_until("* joined honest");
    });
}

#[test]
fn a_flood_of_pings_keeps_nobody_waiting_at_the_arena() {
    check("arena", UPGRADE, &frame(0x89, b"1"), player_is_ponged);
}
