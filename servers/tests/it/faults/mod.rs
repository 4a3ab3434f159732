//! Every injected fault over real sockets: that it does what its name says, and nothing before its time.
//!
//! No test asserts an upper bound: a late event must be at least that late, and an event that never comes is awaited
//! only briefly.

mod arena;
mod chat;
mod others;
mod poll_loop;
mod process;

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use servers::fault::Fault;

const PATIENCE: Duration = Duration::from_secs(20);

fn faults(texts: &[&str]) -> Vec<Fault> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Waits until `look` finds something.
#[track_caller]
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Nothing comes on this connection, for as long as is worth waiting for what must not come.
#[track_caller]
fn check_silent(stream: &mut TcpStream) {
    let before = stream.read_timeout().unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let error = stream.read(&mut [0; 64]).expect_err("something came, or the connection was closed");
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    stream.set_read_timeout(before).unwrap();
}

/// The connection ends without a further byte, by a reset.
#[track_caller]
fn check_reset(stream: &mut TcpStream) {
    let error = stream.read(&mut [0; 64]).expect_err("something came, or the connection was closed in order");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// Sums over all lines of a tick log, and how many lines there are.
fn log_sums(path: &Path) -> (serde_json::Map<String, Value>, usize) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut sums = serde_json::Map::new();
    let mut count = 0;
    // The last line may be incomplete.
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if line["title"] != "stepladder" {
            continue;
        }
        count += 1;
        for (name, figure) in line.as_object().unwrap() {
            if let Some(figure) = figure.as_u64() {
                let sum = sums.get(name).and_then(Value::as_u64).unwrap_or(0) + figure;
                sums.insert(name.clone(), sum.into());
            }
        }
    }
    (sums, count)
}

fn figure(sums: &serde_json::Map<String, Value>, name: &str) -> u64 {
    sums.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// The sums of a tick log once this many ticks were due.
#[track_caller]
fn log_with_ticks(path: &Path, due: u64) -> serde_json::Map<String, Value> {
    wait_for("ticks in the tick log", || Some(log_sums(path).0).filter(|sums| figure(sums, "due") >= due))
}
