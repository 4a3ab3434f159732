//! How long pages take and what they weigh; for bench/viewer. `cargo test --release -p viewer -- --ignored --nocapture size`

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use measure::trial::kind;
use store::{Outcome, RunEnd};
use viewer::Judge as _;

use crate::given::{self, ByRules, Client};

/// First byte and all of it, ms; bytes. The median of nine.
fn timed(client: &Client, path: &str) -> (f64, f64, usize) {
    let mut takes: Vec<(f64, f64, usize)> = (0..9)
        .map(|_| {
            let mut stream = TcpStream::connect(client.address).unwrap();
            let (address, cookie) = (client.address, &client.cookie);
            let head = format!(
                "GET {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
            );
            let began = Instant::now();
            stream.write_all(head.as_bytes()).unwrap();
            let mut bytes = vec![0; 1 << 16];
            let mut count = stream.read(&mut bytes).unwrap();
            assert!(bytes.starts_with(b"HTTP/1.1 200"), "{path}");
            let first = began.elapsed();
            while let Ok(more @ 1..) = stream.read(&mut bytes) {
                count += more;
            }
            (first.as_secs_f64() * 1e3, began.elapsed().as_secs_f64() * 1e3, count)
        })
        .collect();
    takes.sort_by(|one, other| one.0.total_cmp(&other.0));
    takes[4]
}

fn rss_mb(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1e3
}

#[test]
#[ignore = "measures, and plants for a minute"]
fn what_pages_take() {
    let given = given::store();
    let loads: Vec<f64> = (1..=10).map(|step| f64::from(step) * 200.0).collect();
    let ladder = given::record_run(&given, "ladder", &loads, 60);
    // An hour of 30,000 games, two bots each. It is judged already, as at its end; judging it takes more than showing it.
    let minute = given::store();
    let judged = given::record_run(&minute, "hour", &[30_000.0], 10);
    let climb = ByRules.climb(&minute.store, &judged).unwrap().unwrap();
    let writer = given.store.begin_run(&given::run_head("hour"), None).unwrap();
    let hour = writer.id().clone();
    writer.begin_trial(&given::trial_head(0, 30_000.0), 0).unwrap();
    writer.append(vec![given::mark(given::HOLD_FROM_S, kind::HOLD, "")]).unwrap();
    for index in 0..3_600 {
        let (interval, later) = given::second(index, 30_000.0, 1_000);
        writer.append([vec![interval], later].concat()).unwrap();
    }
    writer.append(vec![given::mark(3_600, kind::DRAIN, "1h"), given::mark(3_600, kind::END, "")]).unwrap();
    writer.end_trial(0).unwrap();
    let climb = serde_json::to_string(&climb).unwrap();
    let end = RunEnd { outcome: Outcome::Finished, reason: None, ended_unix_ms: 0, climb: Some(climb) };
    writer.end_run(end).unwrap();
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    println!("after planting: {:.0} MB, at most {:.0} MB", rss_mb("VmRSS"), rss_mb("VmHWM"));
    for path in [
        "/".to_owned(),
        "/api/runs".to_owned(),
        format!("/api/runs/{ladder}"),
        format!("/api/runs/{ladder}/trials/5"),
        format!("/report/{ladder}.html"),
        format!("/api/runs/{hour}"),
        format!("/api/runs/{hour}/trials/0?points=2000"),
        format!("/api/runs/{hour}/trials/0"),
    ] {
        let (first, all, bytes) = timed(&client, &path);
        println!(
            "{path}: first byte {first:.1} ms, all {all:.1} ms, {} KB; {:.0} MB",
            bytes / 1_000,
            rss_mb("VmRSS")
        );
    }
    println!("at most {:.0} MB", rss_mb("VmHWM"));
}
