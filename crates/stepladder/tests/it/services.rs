//! A server that asks another service on this machine: that service's CPU is none of other programs, and where it is what
//! gave first, it is named.

use serde_json::json;

use crate::main_job::checked_run;
use crate::place::{Place, Running, free_port};

/// Spends the given number of milliseconds of CPU on each answer.
const BACK: &str = "
import http from 'node:http'
const busy = Number(process.argv[2])
process.title = 'backend'
const server = http.createServer((request, response) => {
  const until = performance.now() + busy
  while (performance.now() < until);
  response.end('back')
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
";

/// Asks it for each request.
const FRONT: &str = "
import http from 'node:http'
const agent = new http.Agent({ keepAlive: true })
http.createServer((request, response) => {
  http.get({ agent, port: process.argv[3] }, back => { back.resume(); back.on('end', () => response.end('front')) })
}).listen(process.argv[2], '127.0.0.1')
";

/// A service that takes 4 ms of CPU for each answer, and its port.
fn back(place: &Place) -> (Running, String) {
    let mut node = std::process::Command::new("node");
    node.arg(place.write("back.mjs", BACK)).arg("4");
    let mut back = place.start_command(node);
    let port = back.wait_for_out("\n").trim().to_owned();
    (back, port)
}

#[test]
fn a_service_that_the_server_asks_is_found_and_its_cpu_is_none_of_other_programs() {
    let place = Place::new();
    let (_back, back_port) = back(&place);
    let port = free_port();
    let front = place.write("front.mjs", FRONT);
    let start = format!("exec node {} {port} {back_port}", front.display());
    let url = format!("http://127.0.0.1:{port}");
    let words = [&url, "--start", &start, "--rate", "20,500", "--hold", "4s", "--json", "run.json"];
    let ran = place.climb(&[&words[..], &["--objective", "response.p50 < 100ms"]].concat());
    let run = checked_run(&place);
    let rung = |index: usize| &run["rungs"][index];
    for index in 0..2 {
        assert_eq!(rung(index)["services"], json!([format!("backend on port {back_port}")]), "{ran:#?}");
    }
    // It has no more than one thread to answer with.
    let level = |name: &str| rung(1)["activity"][name]["max"].as_f64();
    assert!(level("services.cpu_share_max") > Some(0.3) && level("services.cores") > Some(0.3), "{run:#}");
    assert_ne!(run["verdict"], "PASS", "{ran:#?}");
    // Whatever disturbs this machine, it is not this service.
    let words = run["rungs"].to_string();
    assert!(!words.contains("backend 0") && !words.contains("\"name\":\"backend\""), "{words}");
    if rung(1)["verdict"] == "FAIL" {
        let conclusions = run["conclusions"].as_array().expect("conclusions");
        let answer = conclusions.iter().find(|one| one["id"] == "why_not_more").expect("the second answer");
        let cause = answer["evidence"]["cause"]["name"].as_str();
        assert!(["service", "shared-cores", "open"].contains(&cause.unwrap_or("none")), "{answer:#}");
    }
}
