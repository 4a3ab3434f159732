//! `view`, `report`, `climb --view` and `climb --report`, as users see them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::Value;

use crate::main_job::with_its_store;
use crate::place::{Place, SHORT, parse};

/// The run inside a report, read as the page reads it.
pub fn inside(report: &str) -> Value {
    let begin = report.find("id=\"stepladder-data\"").expect("a place for data");
    let open = begin + report[begin..].find('>').expect("its end") + 1;
    let close = open + report[open..].find("</script>").expect("the end of the data");
    let text = &report[open..close];
    if report[begin..open].contains("data-encoding=\"deflate\"") {
        let bytes = BASE64_STANDARD.decode(text).expect("base64");
        let mut json = String::new();
        ZlibDecoder::new(bytes.as_slice()).read_to_string(&mut json).expect("zlib");
        return parse(&json);
    }
    parse(text)
}

/// An answer to a GET below an address, following nothing.
pub fn get(url: &str, path: &str) -> String {
    let (host, root) = url.trim_start_matches("http://").split_once('/').expect("a host and a path");
    let mut stream = TcpStream::connect(host).expect("the viewer listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let head = format!("GET /{root}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// The printed address, without the fragment after `#`, which is the browser's own.
pub fn printed(said: impl Fn() -> String) -> String {
    let began = Instant::now();
    loop {
        let text = said();
        let found = text.split_whitespace().find(|word| word.starts_with("http://127.0.0.1:"));
        // Including its last character: the text may be read while it is being written.
        if let Some(url) = found.filter(|_| text.ends_with('\n')) {
            return url.split('#').next().unwrap_or_default().to_owned();
        }
        assert!(began.elapsed() < Duration::from_secs(30), "no address was printed: {text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_report_shows_the_figures_of_the_json() {
    let place = with_its_store();
    let written = place.run(["report", "arena", "-o", "report.html"]);
    if !viewer::page_is_built() {
        assert_eq!(written.code, 2, "{written:#?}");
        assert!(written.err.contains("npm") && !place.path("report.html").exists(), "{written:#?}");
        return;
    }
    assert_eq!(written.code, 0, "{written:#?}");
    let shown = place.run(["show", "arena", "--json", "run.json"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    let page = inside(&std::fs::read_to_string(place.path("report.html")).expect("the report"));
    assert_eq!(page["climb"], place.json("run.json"));
}

#[test]
fn a_report_of_a_comparison_of_clients_shows_the_figures_of_its_json() {
    let place = Place::new();
    let words = [
        "bench", "--target", "null:", "--total", "20000", "--runs", "2", "--name", "clients", "--json",
        "run.json",
    ];
    let own = if viewer::page_is_built() { &["--report", "own.html"][..] } else { &[] };
    let ran = place.run([&words[..], own].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    let written = place.run(["report", "clients", "-o", "report.html"]);
    if !viewer::page_is_built() {
        assert_eq!(written.code, 2, "{written:#?}");
        return;
    }
    assert_eq!(written.code, 0, "{written:#?}");
    let page = inside(&std::fs::read_to_string(place.path("report.html")).expect("the report"));
    assert_eq!(page["bench"]["comparison"], place.json("run.json"));
    let own = std::fs::read_to_string(place.path("own.html")).expect("its own report");
    assert_eq!(inside(&own), page, "the report of --report is that of report");
    assert_eq!((&page["run"]["kind"], &page["climb"]), (&"bench".into(), &Value::Null));
    let answer = page["run"]["answer"].as_str().expect("an answer");
    assert!(answer.starts_with("get 3 B, 100 in flight: rust "), "{answer}");
    assert_eq!(page["bench"]["processes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_report_that_cannot_be_written_or_is_of_no_run_is_refused() {
    let place = with_its_store();
    for (words, why) in [
        (["report", "nobody", "-o", "report.html"], "nobody"),
        (["report", "arena", "-o", "missing/report.html"], "missing/report.html"),
    ] {
        let refused = place.run(words);
        assert!(refused.code == 3 || !viewer::page_is_built(), "{refused:#?}");
        assert!(refused.err.contains(why) || !viewer::page_is_built(), "{refused:#?}");
    }
    assert!(!place.path("report.html").exists());
}

#[test]
fn the_viewer_shows_stored_runs_until_it_is_asked_to_end() {
    let place = with_its_store();
    let running = place.start(["view", "--listen", "127.0.0.1:0"]);
    let url = printed(|| running.out());
    let runs = get(&url, "api/runs");
    assert!(runs.starts_with("HTTP/1.1 200") && runs.contains("\"arena-1\""), "{runs}");
    let origin = url.trim_end_matches('/').rsplit_once('/').expect("a token").0.to_owned() + "/";
    assert!(get(&origin, "api/runs").starts_with("HTTP/1.1 401"));
    running.signal(libc::SIGINT);
    let ended = running.finish();
    assert_eq!(ended.code, 0, "{ended:#?}");
}

#[test]
fn a_climb_is_served_while_it_goes_on_and_ends_with_it_where_nobody_sits_before_a_terminal() {
    let place = Place::new();
    let mut words = vec!["climb", "arena", "--rungs", "10", "--view"];
    if viewer::page_is_built() {
        words.extend(["--report", "report.html"]);
    }
    let running = place.start(words.into_iter().chain(SHORT));
    let url = printed(|| running.err());
    let began = Instant::now();
    while !get(&url, "api/runs").contains("\"running\"") {
        assert!(began.elapsed() < Duration::from_secs(30), "the run never appeared");
        std::thread::sleep(Duration::from_millis(50));
    }
    let page = get(&url, "api/runs/arena-1");
    assert!(page.contains("\"planned\":[10.0]") || !page.contains("\"running\""), "{page}");
    let ran = running.finish();
    assert!(ran.code <= 2 && ran.out.contains("How many?"), "{ran:#?}");
    let stored = place.start(["view", "--listen", "127.0.0.1:0"]);
    let url = printed(|| stored.out());
    let page = get(&url, "api/runs/arena-1");
    let comes_no_more = page.contains("\"planned\":[]");
    assert!(page.starts_with("HTTP/1.1 200") && comes_no_more, "{page}");
    stored.signal(libc::SIGINT);
    stored.finish();
    assert_eq!(place.path("report.html").exists(), viewer::page_is_built());
}

#[test]
fn an_address_that_is_not_of_this_machine_alone_is_refused() {
    let refused = Place::new().run(["view", "--listen", "0.0.0.0:42068"]);
    assert_eq!(refused.code, 3, "{refused:#?}");
    assert!(refused.err.contains("loopback") && refused.err.contains("ssh -L"), "{refused:#?}");
}
