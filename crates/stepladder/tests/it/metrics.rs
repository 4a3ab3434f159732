//! Programs that scrape a run's totals while it goes on (`--metrics`).

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::place::{Place, Running, eventually};

/// The response to a request with this first line and Host header; empty if nothing listens.
fn asked(port: &str, line: &str, host: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(format!("127.0.0.1:{port}")) else { return String::new() };
    let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    answer
}

fn scraped(port: &str) -> String {
    asked(port, "GET /metrics", &format!("127.0.0.1:{port}"))
}

/// The port that it says it listens on.
fn port_of(climb: &mut Running) -> String {
    climb.wait_for("/metrics");
    let err = climb.err();
    let url =
        err.lines().find_map(|line| line.strip_prefix("metrics: http://127.0.0.1:")).expect("its address");
    url.trim_end_matches("/metrics").to_owned()
}

fn counters(text: &str) -> BTreeMap<String, f64> {
    let samples = text.lines().filter(|line| line.starts_with("stepladder_") && line.contains("_total"));
    samples
        .map(|line| line.rsplit_once(' ').expect(line))
        .map(|(key, value)| (key.to_owned(), value.parse().expect(value)))
        .collect()
}

#[test]
fn counters_grow_while_the_climb_goes_on_and_never_tell_more_than_its_results() {
    let place = Place::new();
    let options = ["--rungs", "2,4", "--hold", "3s", "--settle", "200ms", "--no-calibration"];
    let outputs = ["--metrics", "0", "--json", "run.json"];
    let mut climb = place.start([&["climb", "arena"][..], &options, &outputs].concat());
    let port = port_of(&mut climb);
    let first = eventually("a scrape with shots of a hold", || {
        let answer = scraped(&port);
        answer.contains("operation=\"shot\",phase=\"hold\",state=\"sent\"").then_some(answer)
    });
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    assert!(first.contains("application/openmetrics-text; version=1.0.0; charset=utf-8"), "{first}");
    assert!(first.ends_with("# EOF\n"), "{first}");
    for (line, host, status) in [
        ("GET /metrics", "rebound.example", "403"),
        ("GET /", &*format!("127.0.0.1:{port}"), "404"),
        ("POST /metrics", &*format!("localhost:{port}"), "405"),
    ] {
        let answer = asked(&port, line, host);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line} of {host}: {answer}");
    }
    let mut last = counters(&first);
    loop {
        let answer = scraped(&port);
        if !answer.ends_with("# EOF\n") {
            break;
        }
        let now = counters(&answer);
        for (key, value) in &last {
            assert!(now.get(key).is_some_and(|now| now >= value), "{key} was {value}: {now:#?}");
        }
        last = now;
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    let ran = climb.finish();
    assert!(ran.err.contains("metrics: http://127.0.0.1:"), "{ran:#?}");
    let rungs = place.json("run.json");
    let sent: u64 =
        rungs["rungs"].as_array().expect("rungs").iter().filter_map(|rung| rung["sent"].as_u64()).sum();
    let told: f64 = last
        .iter()
        .filter(|(key, _)| key.contains("phase=\"hold\",state=\"sent\""))
        .map(|(_, count)| count)
        .sum();
    assert!(told > 0.0 && told <= sent as f64, "{told} told, {sent} sent");
}

#[test]
fn an_address_that_cannot_be_is_refused_before_anything_is_started() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    let with = |address: &str| place.run(["climb", "arena", "--rungs", "2", "--metrics", address]);
    with(&port).refused(3, &["--metrics", "something listens on 127.0.0.1:", "name another port"]);
    with("0.0.0.0:9464").refused(3, &["programs of this machine only", "--metrics 127.0.0.1:9464"]);
    with("somewhere").refused(3, &["is no address", "--metrics 9464"]);
}
