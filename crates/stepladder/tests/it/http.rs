//! `climb http://…` and `climb poll-loop`: faulty answers by their causes, and the conclusions of a sweep.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::main_job::{checked_run, exit_code_of};
use crate::place::{Place, free_port};

/// Every protocol fault that `serve oracle` has a page for, and the cause under which it must appear in the table of
/// errors.
const ILL_MANNERS: [(&str, &str); 17] = [
    ("/garbage", "not http"),
    ("/status-line", "broken status line"),
    ("/bad-header", "broken header"),
    ("/header-bomb", "too much header"),
    ("/bad-chunk", "broken chunk"),
    ("/length-lie", "answer cut off"),
    ("/unasked", "unasked bytes"),
    ("/endless", "answer never ended"),
    ("/redirect-loop", "redirect loop"),
    ("/redirect-elsewhere", "redirect elsewhere"),
    ("/close", "connection lost"),
    ("/reset", "connection reset"),
    ("/status/404", "status 4xx"),
    ("/status/500", "status 5xx"),
    ("/status/503", "rejected (429, 503)"),
    ("/json?wrong-json", "wrong json"),
    ("/json?wrong-body", "wrong body"),
];

#[test]
fn every_ill_mannered_answer_is_classified_by_its_cause_and_kept_verbatim() {
    let place = Place::new();
    let port = free_port();
    let oracle = place.start(["serve", "oracle", "--listen", &format!("127.0.0.1:{port}")]);
    let listening = Instant::now() + Duration::from_secs(10);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < listening, "the oracle does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut requests = String::new();
    for (path, _) in ILL_MANNERS {
        let check = match path {
            "/json?wrong-json" => ", check: { json: { /ok: false } }",
            "/json?wrong-body" => ", check: { contains: no such text }",
            _ => "",
        };
        requests.push_str(&format!("    - {{ name: '{path}', get: '{path}'{check} }}\n"));
    }
    let scenario = format!(
        "subject: {{ target: 'http://127.0.0.1:{port}' }}
bots:
  kind: http
  connections: 64
  timeout: 500ms
  redirects: 3
  requests:
    - {{ name: right, get: /json, weight: 4, check: {{ json: {{ /ok: true }} }} }}
    - {{ name: chunked, get: /chunked, weight: 2, check: {{ bytes: 1..100000 }} }}
    - {{ name: until close, get: /until-close, weight: 2 }}
{requests}ladder: {{ rate: [200], hold: 4s, settle: 500ms }}
objectives: [ errors == 0 ]
"
    );
    place.write("ill.yaml", &scenario);
    let ran = place.run(["climb", "ill.yaml", "--no-calibration", "--json", "run.json"]);
    assert!(place.path("run.json").exists(), "{ran:#?}");
    let run = checked_run(&place);
    let rung = &run["rungs"][0];
    let samples = rung["error_samples"].as_array().unwrap_or_else(|| panic!("samples in {rung:#}"));
    for (path, cause) in ILL_MANNERS {
        assert!(rung["errors"][cause].as_u64() > Some(0), "{path}: no `{cause}` in {:#}", rung["errors"]);
        assert!(samples.iter().any(|sample| sample["cause"] == cause), "{cause}: {samples:#?}");
    }
    let garbage = samples.iter().find(|sample| sample["cause"] == "not http").unwrap();
    assert!(!garbage["text"].as_str().unwrap().is_empty(), "{garbage}");
    assert!(rung["answered"].as_u64() > Some(100), "the well-mannered answers are answers: {rung:#}");
    // A machine busy with other work may decline to judge the server, but must never report that it met its objective.
    assert!(run["verdict"] != "PASS" && ran.code == exit_code_of(&run["verdict"]), "{ran:#?}");
    drop(oracle);
}

#[test]
fn a_poll_loop_answers_once_per_tick_and_the_sweep_says_so() {
    let place = Place::new();
    let words =
        ["climb", "poll-loop", "--requesters", "1,2,7,10,14", "--services", "root", "--views", "background"];
    let ran = place.run(words.into_iter().chain([
        "--no-calibration",
        "--json",
        "run.json",
        "--",
        "--slots",
        "7",
        "--tick-rate",
        "20",
    ]));
    assert!(place.path("run.json").exists(), "{ran:#?}");
    let run = checked_run(&place);
    // A requester gets at most one answer per tick, and all together at most its slots, whatever the machine does. A
    // delayed requester misses a tick, so a lower count is exact only if nothing else needs the processor.
    let exact = [20.0, 40.0, 140.0, 140.0, 140.0];
    let rates: Vec<f64> =
        run["rungs"].as_array().unwrap().iter().filter_map(|rung| rung["rate_per_s"].as_f64()).collect();
    assert_eq!(rates.len(), exact.len());
    for (rate_per_s, exact) in rates.iter().zip(exact) {
        assert!((0.2 * exact..1.1 * exact).contains(rate_per_s), "{rates:?}");
    }
    let all = run["conclusions"].as_array().expect("conclusions");
    let text = |conclusion: &Value| conclusion["text"].as_str().expect("words").to_owned();
    let page = place.run(["show", "poll-loop", "--all"]).out;
    for conclusion in all {
        assert!(page.contains(&text(conclusion)[..20]), "{conclusion} is not told in {page}");
    }
    let is_exact = |(rate_per_s, exact): (&f64, f64)| (rate_per_s / exact - 1.0).abs() < 0.02;
    // A disturbed rung is no evidence for a conclusion.
    let is_evidence = |rung: &Value| rung["verdict"] != "INCONCLUSIVE" && rung["disturbed_share"] == 0.0;
    if run["rungs"].as_array().unwrap().iter().all(is_evidence) && rates.iter().zip(exact).all(is_exact) {
        let ceiling = all.iter().find(|one| one["id"] == "ceiling").map(text);
        let ceiling = ceiling.unwrap_or_else(|| panic!("no ceiling among {all:#?}"));
        assert!(ceiling.contains("140") && ceiling.contains('7'), "{ceiling}");
    }
}
