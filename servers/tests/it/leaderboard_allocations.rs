//! What an update of the leaderboard service allocates: nothing, over HTTP and over WebSocket, with and without a log.
//!
//! All threads of a process are counted together, so the service and its client share a separate process: this program,
//! started again. The client's bytes are prepared in advance, and it reads into an array.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use servers::leaderboard::bench::CountingAllocator;
use servers::leaderboard_service::Options;

use crate::client::{Client, frame};
use crate::leaderboard_client::{options, request, start};

const TEST: &str = "leaderboard_allocations::updates_are_counted_in_a_process_of_their_own";

/// Of each kind, after as many that are not counted.
const UPDATES: usize = 2_000;

/// Longer than the second after which the controlling thread does its work again, which counts as well.
const CONTROL_EVERY: Duration = Duration::from_millis(1_100);

/// Sends `asked` and reads `answer_bytes`, again and again.
fn repeat(stream: &mut TcpStream, asked: &[u8], answer_bytes: usize) {
    let mut answer = [0; 512];
    for _ in 0..UPDATES {
        stream.write_all(asked).unwrap();
        stream.read_exact(&mut answer[..answer_bytes]).unwrap();
    }
}

/// Allocations of `UPDATES` updates, each answered with as many bytes as the first.
fn allocations(stream: &mut TcpStream, asked: &[u8]) -> u64 {
    stream.write_all(asked).unwrap();
    let answer_bytes = stream.read(&mut [0; 512]).unwrap();
    repeat(stream, asked, answer_bytes);
    let before = CountingAllocator::count();
    repeat(stream, asked, answer_bytes);
    std::thread::sleep(CONTROL_EVERY);
    CountingAllocator::count() - before
}

/// Of HTTP, and of WebSocket.
fn of_both(data: Option<&Path>) -> [u64; 2] {
    let running = start(Options { threads: Some(1), data: data.map(Path::to_owned), ..options() });
    let mut http = Client::silent(running.address).stream;
    let mut socket = Client::open(running.address, "/ws").stream;
    // Repeating the same score gives answers of equal length; its tie is redrawn, so that the member moves.
    let target = "/leaderboards/main/members/player-123456?score=100";
    let over_http = allocations(&mut http, request("PUT", target, "").as_bytes());
    let update = [&b"\x0a\x04main\x12\x0dplayer-123456"[..], &[0x18, 2, 0x20, 100]].concat();
    let message = [&[0x08, 7, 0x12, update.len() as u8], &update[..]].concat();
    let over_websocket = allocations(&mut socket, &frame(0x82, &message));
    running.end().unwrap();
    [over_http, over_websocket]
}

#[test]
#[ignore = "counts what all threads of its process allocate; another test starts it"]
fn updates_are_counted_in_a_process_of_their_own() {
    CountingAllocator::start();
    let directory = tempfile::tempdir().unwrap();
    let memory = of_both(None);
    assert!(CountingAllocator::is_counting());
    println!(
        "allocations of {UPDATES} updates over HTTP and WebSocket: in memory {memory:?}, with a log {:?}",
        of_both(Some(directory.path()))
    );
    assert_eq!(memory, [0, 0]);
}

#[test]
fn an_update_allocates_nothing() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args([TEST, "--exact", "--ignored", "--nocapture"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{said}");
}
