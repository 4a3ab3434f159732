//! Climbs that read ticks from a metrics endpoint or StatsD: a good loop passes, a slow one fails, and what tells too little passes
//! nothing.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use crate::main_job::assert_valid;
use crate::place::{Place, free_port};

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
    assert_eq!(ran.code, code, "{ran:#?}");
    let all = format!("{}{}", ran.out, ran.err).split_whitespace().collect::<Vec<_>>().join(" ");
    says.iter().for_each(|part| assert!(all.contains(part), "\"{part}\" is not in {all}"));
    let run = place.json("run.json");
    assert_valid(&run);
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
