//! Climbs that read ticks from a metrics endpoint or StatsD: a good loop passes, a slow one fails, and what tells too little passes
//! nothing.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::main_job::assert_valid;
use crate::place::{Place, free_port};
use crate::scripts::root;

/// A server whose loop has intervals of `interval_ms`, told as a histogram with these edges (s). Ends with the test's process.
fn server(interval_ms: f64, edges: &'static [&'static str]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let begin = Instant::now();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A broken connection is a bot that left.
            thread::spawn(move || drop(serve(stream, begin, interval_ms, edges)));
        }
    });
    address
}

fn serve(mut stream: TcpStream, begin: Instant, interval_ms: f64, edges: &[&str]) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut line = first.clone();
        while line.trim_end() != "" {
            line.clear();
            reader.read_line(&mut line)?;
        }
        let body = if first.starts_with("GET /metrics ") {
            histogram((begin.elapsed().as_secs_f64() * 1e3 / interval_ms) as u64, interval_ms / 1e3, edges)
        } else {
            "ok".to_owned()
        };
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    }
}

fn histogram(count: u64, interval_s: f64, edges: &[&str]) -> String {
    let up_to = |edge: &str| if interval_s <= edge.parse::<f64>().expect("an edge") { count } else { 0 };
    let buckets: String =
        edges.iter().map(|edge| format!("tick_seconds_bucket{{le=\"{edge}\"}} {}\n", up_to(edge))).collect();
    format!(
        "# TYPE tick_seconds histogram\n{buckets}tick_seconds_bucket{{le=\"+Inf\"}} {count}\n\
         tick_seconds_sum {}\ntick_seconds_count {count}\n",
        count as f64 * interval_s
    )
}

/// Exit code and words of a climb at 20 requests per second, and the late share of its rung.
#[track_caller]
fn check(words: &[&str], server: SocketAddr, code: i32, says: &[&str], late_share: Option<f64>) {
    let place = Place::new();
    let url = format!("http://{server}/");
    let common = [url.as_str(), "--rate", "20", "--hold", "4s", "--json", "run.json"];
    let objective = ["--objective", "ticks.late_share < 25%"];
    let ran = place.climb(&[&common[..], &objective, words].concat());
    let run = place.json("run.json");
    match code {
        1 => ran.failed_or_disturbed(&run["rungs"][0]),
        _ => assert_eq!(ran.code, code, "{ran:#?}"),
    }
    assert_valid(&run);
    let shown = place.run(["show", run["run"]["id"].as_str().expect("an id"), "--all"]);
    let all = format!("{}{}{}", ran.out, shown.out, ran.err);
    let all = all.split_whitespace().collect::<Vec<_>>().join(" ");
    says.iter().for_each(|part| assert!(all.contains(part), "\"{part}\" is not in {all}"));
    let found = run["rungs"][0]["ticks"]["late_share"].as_f64();
    assert_eq!(found.map(|share| share.round()), late_share, "{}", run["rungs"][0]["ticks"]);
}

const EXACT: &[&str] = &["0.016", "0.032", "0.035", "0.05"];

fn of_endpoint(address: SocketAddr) -> String {
    format!("openmetrics=http://{address}/metrics#tick_seconds")
}

#[test]
fn a_histogram_judges_where_its_edges_tell_late_ticks_apart() {
    let good = || {
        let server = server(33.37, EXACT);
        check(&["--ticks", &of_endpoint(server), "--tick-rate", "30"], server, 0, &["PASS"], Some(0.0));
    };
    let slow = || {
        let server = server(40.13, EXACT);
        let says = ["ticks.late_share was 100 %"];
        check(&["--ticks", &of_endpoint(server), "--tick-rate", "30"], server, 1, &says, Some(1.0));
    };
    let blurred = || {
        let server = server(40.13, &["0.025", "0.05"]);
        let says = ["ticks.late_share is between 0 % and 100 %", "add buckets at 32 ms and 35 ms"];
        check(&["--ticks", &of_endpoint(server), "--tick-rate", "30"], server, 2, &says, None);
    };
    let dead = || {
        let (server, nobody) = (server(33.37, EXACT), SocketAddr::from(([127, 0, 0, 1], free_port())));
        let says = ["nothing listens there (connection refused)"];
        check(&["--ticks", &of_endpoint(nobody), "--tick-rate", "30"], server, 2, &says, None);
    };
    thread::scope(|scope| {
        for one in [good as fn(), slow, blurred, dead] {
            scope.spawn(one);
        }
    });
}

#[test]
fn a_tick_rate_that_nobody_said_is_found_at_the_lowest_load() {
    let port = free_port();
    thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        loop {
            // Nobody may listen yet.
            let _ = socket.send_to(b"tick:33.3|ms\ntick:33.4|ms\ntick:33.3|ms", ("127.0.0.1", port));
            thread::sleep(Duration::from_millis(50));
        }
    });
    let statsd = format!("statsd=127.0.0.1:{port}/tick");
    let says = ["tick rate 30 Hz, found from the intervals at the lowest load and kept"];
    check(&["--ticks", &statsd], server(33.37, EXACT), 0, &says, Some(0.0));
    check(&["--ticks", &statsd, "--tick-rate", "60"], server(33.37, EXACT), 1, &["100 %"], Some(1.0));
}

/// A climb of examples/metrics with its histogram judged and StatsD compared: the run, and the words of `show`.
///
/// Where other tests leave the machine no time, the endpoint is read so late that its intervals do not add up, and it judges
/// nothing; then it is climbed again.
fn climbed(environment: &str) -> (Value, String) {
    let both_told = |(run, _): &(Value, String)| {
        let due = |at: usize| run["rungs"][0]["tick_sources"][at]["due"].as_u64();
        due(0) > Some(60) && due(1) > Some(60) && run["verdict"] != "GENERATOR_LIMITED"
    };
    (0..6).map(|_| climbed_once(environment)).find(both_told).expect("a climb in which both tell of ticks")
}

fn climbed_once(environment: &str) -> (Value, String) {
    let place = Place::new();
    let (port, statsd) = (free_port(), free_port());
    let server = root().join("examples/metrics/server.mjs");
    let start = format!("PORT={port} STATSD=127.0.0.1:{statsd} {environment} exec node {}", server.display());
    let (metrics, statsd) = (of_endpoint(SocketAddr::from(([127, 0, 0, 1], port))), of_statsd(statsd));
    let url = format!("http://127.0.0.1:{port}/");
    let words = ["--start", &start, "--ticks", &metrics, "--ticks", &statsd, "--tick-rate", "30"];
    let rest =
        ["--rate", "20", "--hold", "4s", "--objective", "ticks.late_share < 25%", "--json", "run.json"];
    place.climb(&[&[url.as_str()][..], &words, &rest].concat());
    let run = place.json("run.json");
    assert_valid(&run);
    let sources = &run["rungs"][0]["tick_sources"];
    assert_eq!((&sources[0]["source"], &sources[1]["source"]), (&json!(metrics), &json!(statsd)), "{run:#}");
    let shown = place.run(["show", run["run"]["id"].as_str().expect("its id"), "--all"]);
    (run, shown.out.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn of_statsd(port: u16) -> String {
    format!("statsd=127.0.0.1:{port}/tick")
}

#[test]
fn two_sources_that_tell_the_same_agree_and_one_that_lies_lets_no_rung_pass() {
    // However late the ticks are on this machine, both tell the same of them.
    let honest = || {
        let (run, shown) = climbed("");
        assert_ne!(run["rungs"][0]["signal"], "inconsistent", "{run:#}");
        assert!(shown.contains("Ticks were judged by openmetrics=") && shown.contains("agreed."), "{shown}");
    };
    let lying = || {
        let (run, shown) = climbed("STALL_MS=50 STATSD_LIES=1");
        let rung = &run["rungs"][0];
        assert_eq!(
            (&rung["verdict"], &rung["signal"]),
            (&json!("INCONCLUSIVE"), &json!("inconsistent")),
            "{rung:#}"
        );
        for text in [rung["reason"].as_str().unwrap_or_default(), &shown] {
            assert!(text.contains("by openmetrics=") && text.contains("and 0 % by statsd="), "{text}");
        }
        assert!(shown.contains("contradicted it."), "{shown}");
    };
    thread::scope(|scope| {
        scope.spawn(honest);
        scope.spawn(lying);
    });
}
