//! How long pages and judging take and how large they are; for bench/viewer.
//! `cargo test --release -p stepladder-viewer --test it -- --ignored --nocapture --test-threads 1 size`

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use measure::trial::kind;
use store::{Outcome, RunEnd, RunWriter};
use viewer::Judge as _;

use crate::given::{self, ByRules, Client, Given};

/// First byte and all of it, ms; bytes. The median of nine.
fn timed(client: &Client, path: &str) -> (f64, f64, usize) {
    let mut takes: Vec<(f64, f64, usize)> = (0..9)
        .map(|_| {
            let mut stream = TcpStream::connect(client.address).unwrap();
            let head = client.head("GET", path) + "Connection: close\r\n\r\n";
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

/// An hour of 30,000 games, two bots each, in whose first seconds the server warms up.
fn plant_hour(given: &Given, warm_up_s: u32) -> RunWriter {
    let writer = given.store.begin_run(&given::run_head("hour"), None).unwrap();
    writer.begin_trial(&given::trial_head(0, 30_000.0), 0).unwrap();
    writer.append(vec![given::mark(given::HOLD_FROM_S, kind::HOLD, "")]).unwrap();
    for index in 0..3_600 {
        let late = if index < given::HOLD_FROM_S + warm_up_s { 400_000 } else { 1_000 };
        let (interval, later) = given::second(index, 30_000.0, late);
        writer.append([vec![interval], later].concat()).unwrap();
    }
    writer.append(vec![given::mark(3_600, kind::DRAIN, "1h"), given::mark(3_600, kind::END, "")]).unwrap();
    writer.end_trial(0).unwrap();
    writer
}

/// Time on a core that this thread has had, s.
fn cpu_s() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    told.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

#[test]
#[ignore = "measures, and plants for a minute"]
fn what_judging_takes() {
    for warm_up_s in [0, 60] {
        let given = given::store();
        let writer = plant_hour(&given, warm_up_s);
        let before_mb = rss_mb("VmRSS");
        // Resets the high-water mark to the current usage.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let (began, cpu_before_s) = (Instant::now(), cpu_s());
        let whole = given.store.trial(writer.id(), 0, 0).unwrap();
        let (sum_s, sum_cpu_s) = (began.elapsed().as_secs_f64(), cpu_s() - cpu_before_s);
        let cut_s = ladder::warm_up_cut(&whole);
        let trial = if cut_s == 0 { whole } else { given.store.trial(writer.id(), 0, cut_s).unwrap() };
        let judgement = ladder::judge(&trial, None, &given::terms());
        println!(
            "an hour with {warm_up_s} s of warm-up: summed in {sum_s:.2} s ({sum_cpu_s:.2} s of CPU), judged without {cut_s} s \
             in {:.2} s ({:.2} s of CPU): {}; {before_mb:.0} MB before, at most {:.0} MB",
            began.elapsed().as_secs_f64(),
            cpu_s() - cpu_before_s,
            judgement.verdict.name(),
            rss_mb("VmHWM"),
        );
    }
}

#[test]
#[ignore = "measures, and plants for a minute"]
fn what_pages_take() {
    let given = given::store();
    let loads: Vec<f64> = (1..=10).map(|step| f64::from(step) * 200.0).collect();
    let ladder = given::record_run(&given, "ladder", &loads, 60);
    // An hour of 30,000 games, two bots each. It is judged already, as at its end; judging takes longer than showing.
    let minute = given::store();
    let judged = given::record_run(&minute, "hour", &[30_000.0], 10);
    let climb = ByRules.climb(&minute.store, &judged).unwrap().unwrap();
    let writer = plant_hour(&given, 0);
    let hour = writer.id().clone();
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
