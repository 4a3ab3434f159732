//! `climb redis://…` and `climb hazelcast://…` against real servers: the requests sent, and faults injected.
//!
//! Where a server is absent a test says NOT RUN and passes: redis-server or valkey-server (Debian: redis-server), Java
//! 17 and the member's jar (`inflight/hazelcast/fetch-member`).

#[allow(dead_code)]
#[path = "../../../../inflight/hazelcast/tests/it/member.rs"]
mod member;
#[path = "../../../../servers/tests/it/redis_server.rs"]
mod redis_server;

use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;

use crate::main_job::{checked_run, exit_code_of};
use crate::place::{Place, Ran};
use crate::tls_proxy::{self, Proxy};
use member::Member;
use redis_server::RedisServer;

/// The run's JSON, which must be in order.
#[track_caller]
fn run_of(place: &Place, ran: &Ran) -> Value {
    assert!(place.path("run.json").exists(), "{ran:#?}");
    let run = checked_run(place);
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    run
}

/// Everything that was sent in the hold was answered, and rightly; at most what was in flight at its end is missing.
#[track_caller]
fn assert_all_right(rung: &Value, in_flight: u64) {
    let number = |name: &str| rung[name].as_u64().unwrap_or_else(|| panic!("{name} in {rung:#}"));
    assert_eq!(rung["errors"], serde_json::json!({}), "{rung:#}");
    assert!(number("answered") > 0, "{rung:#}");
    for name in ["failed", "lost", "not_sent"] {
        assert_eq!(number(name), 0, "{name}: {rung:#}");
    }
    let flows = rung["flows"].as_object().expect("flows");
    let open: u64 = flows.values().filter_map(|flow| flow["open_after"].as_u64()).sum();
    assert!(open <= in_flight, "{rung:#}");
}

fn answered(rung: &Value, op: &str) -> u64 {
    rung["flows"][op]["answered"].as_u64().unwrap_or(0)
}

/// How often Redis executed a command, by its own count.
fn calls(redis: &RedisServer, command: &str) -> u64 {
    let told = redis.ask("INFO commandstats");
    let of_it = told.split_once(&format!("cmdstat_{command}:calls=")).map_or("", |(_, rest)| rest);
    of_it.split(',').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[test]
fn a_real_redis_was_asked_what_the_rungs_say() {
    let Some(redis) = RedisServer::start() else { return };
    let place = Place::new();
    let options = ["--op", "9:1", "--value", "1KiB", "--keys", "zipf:50", "--connections", "2"];
    let url = redis.url();
    let words =
        [&[url.as_str(), "--rungs", "1,40", "--no-calibration", "--json", "run.json"], &options[..]].concat();
    let run = run_of(&place, &place.climb(&words));
    let rungs = run["rungs"].as_array().expect("rungs");
    assert_eq!(rungs.len(), 2);
    rungs.iter().zip([1, 40]).for_each(|(rung, in_flight)| assert_all_right(rung, in_flight));
    let of_holds = |op| rungs.iter().map(|rung| answered(rung, op)).sum::<u64>();
    let (gets, sets) = (of_holds("get"), of_holds("set"));
    assert!(
        calls(&redis, "get") >= gets && calls(&redis, "set") >= sets + 2 * 50,
        "{gets} gets, {sets} sets"
    );
    // Nine in ten, within five standard errors.
    let share = gets as f64 / (gets + sets) as f64;
    assert!((share - 0.9).abs() < 5.0 * (0.09 / (gets + sets) as f64).sqrt(), "{gets} gets, {sets} sets");
    assert_eq!((redis.ask("DBSIZE"), redis.ask("STRLEN k49")), (":50\r\n".into(), ":1024\r\n".into()));
}

/// A climb of the server at `url`, over TLS, with nothing lost and nothing wrong.
#[track_caller]
fn climbs_over_tls(url: &str, trust: &[&str]) {
    let place = Place::new();
    let options =
        ["--op", "mix", "--value", "100KiB", "--rungs", "20", "--no-calibration", "--json", "run.json"];
    let run = run_of(&place, &place.climb(&[&[url], &options[..], trust].concat()));
    assert_all_right(&run["rungs"][0], 20);
    let handshakes = &run["rungs"][0]["tls_ns"]["count"];
    assert!(handshakes.as_u64() > Some(0), "its connections took no time for TLS: {handshakes}");
}

#[test]
fn a_store_behind_tls_is_climbed_when_its_certificate_is_trusted() {
    let place = Place::new();
    let (_store, plain) = place.serve("redis");
    let proxy = tls_proxy::before_url(&plain);
    let url = format!("rediss://{}", proxy.address);
    climbs_over_tls(&url, &["--ca", tls_proxy::AUTHORITY]);
    let refused = place.climb(&[&url]);
    refused.fails(2, &["certificate"]);
}

#[test]
fn a_hazelcast_member_behind_a_tls_proxy_is_climbed() {
    let Some(jar) = member::jar("climb hazelcasts://…") else { return };
    let [port] = member::free_ports();
    let member = Member::start(&jar, "dev", &[port]);
    let proxy = tls_proxy::before(member.address().parse().expect("an address"));
    climbs_over_tls(&format!("hazelcasts://{}/tls", proxy.address), &["--insecure"]);
}

/// Two members of one cluster, each of which clients reach through its own TLS proxy, whose address it reports as its
/// own.
fn two_behind_proxies(jar: &Path, cluster: &str) -> [(Member, Proxy); 2] {
    let ports: [u16; 4] = member::free_ports();
    let starting = [0, 1].map(|at: usize| {
        let proxy = tls_proxy::before(SocketAddr::from(([127, 0, 0, 1], ports[2 + at])));
        let among = [ports[at], ports[1 - at]];
        let member = Member::launch_behind(jar, cluster, &among, ports[2 + at], proxy.address);
        (member, proxy)
    });
    starting.map(|(member, proxy)| (member.wait(), proxy))
}

#[test]
fn members_behind_a_tls_proxy_each_are_found_and_asked_for_what_they_own() {
    let Some(jar) = member::jar("hazelcasts://… with two members") else { return };
    let members = two_behind_proxies(&jar, "proxied");
    let (first, second) = (&members[0].1, &members[1].1);
    let place = Place::new();
    let trust = ["--ca", tls_proxy::AUTHORITY];
    let url = format!("hazelcasts://{}/tls", first.address);

    let options = ["--client", "rust", "--cluster", "proxied", "--keys", "uniform:200", "--op", "mix"];
    let more = ["--value", "1024", "--total", "5000", "--runs", "1", "--json", "bench.json"];
    let bench = [&["bench", "--target", &url], &options[..], &more[..], &trust[..]].concat();
    let ran = place.run(&bench);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(place.json("bench.json")["cells"][0]["ops"], 4500);
    let by_bench = second.opened();
    assert!(by_bench > 0, "the second member was found");

    let climbed = format!("{url}?cluster=proxied");
    let climb = ["--op", "9:1", "--keys", "uniform:200", "--rungs", "20", "--no-calibration"];
    let words = [&[climbed.as_str()], &climb[..], &["--json", "run.json"], &trust[..]].concat();
    let run = run_of(&place, &place.climb(&words));
    assert_all_right(&run["rungs"][0], 20);
    // One connection probes for TLS; the load has its own.
    assert!(second.opened() >= by_bench + 2, "{} after {by_bench}", second.opened());
}

#[test]
fn the_built_in_store_is_started_climbed_by_operations_in_flight_and_gone_afterwards() {
    let place = Place::new();
    let words = ["grid", "--rungs", "1,50", "--hold", "1s", "--settle", "200ms", "--no-calibration"];
    let options = ["--op", "mix", "--keys", "uniform:100", "--json", "run.json", "--", "--memory", "100MB"];
    let run = run_of(&place, &place.climb(&[&words[..], &options[..]].concat()));
    let rungs = run["rungs"].as_array().expect("rungs");
    assert_eq!(rungs.len(), 2);
    rungs.iter().zip([1, 50]).for_each(|(rung, in_flight)| assert_all_right(rung, in_flight));
    assert_eq!(
        (&run["capacity"]["unit"], &rungs[1]["load_unit"]),
        (&"in_flight".into(), &"in_flight".into())
    );
    assert!(rungs.iter().all(|rung| rung["subject"]["rss_bytes"].as_u64() > Some(0)), "{run:#}");
}

/// The first rung of a climb of the built-in store with a fault.
fn rung_with_fault(fault: &str, options: &[&str]) -> Value {
    let place = Place::new();
    let words = [
        "grid",
        "--rungs",
        "20",
        "--hold",
        "1s",
        "--settle",
        "200ms",
        "--no-calibration",
        "--json",
        "run.json",
    ];
    let run = run_of(&place, &place.climb(&[&words[..], options, &["--", "--fault", fault]].concat()));
    run["rungs"][0].clone()
}

#[test]
fn updates_that_are_acknowledged_and_lost_and_values_of_others_are_seen_in_a_climb() {
    let mixed = ["--op", "1:1", "--keys", "uniform:200"];
    for (fault, cause) in [("lose-updates:2%", "stale value"), ("wrong-answers:1%", "wrong value")] {
        let rung = rung_with_fault(fault, &mixed);
        assert!(rung["errors"][cause].as_u64() > Some(0), "{fault}: {rung:#}");
        assert_ne!(rung["verdict"], "PASS", "{fault}: {rung:#}");
    }
}

#[test]
fn what_is_done_to_a_real_redis_in_the_hold_is_seen_and_one_that_ends_fails() {
    let Some(mut redis) = RedisServer::start() else { return };
    let place = Place::new();
    let url = redis.url();
    let words = [
        url.as_str(),
        "--rungs",
        "20",
        "--hold",
        "8s",
        "--settle",
        "200ms",
        "--no-calibration",
        "--json",
        "run.json",
    ];
    let mut climb = place.start_climb(&words);
    climb.wait_for("rung 20 in flight · hold");
    // The hold begins on a whole second; each of these is at least half a second inside it, and seconds before its end.
    let wait = |ms| std::thread::sleep(std::time::Duration::from_millis(ms));
    wait(1500);
    redis.ask("SET k0 another");
    wait(300);
    redis.ask("DEL k0");
    wait(300);
    redis.kill();
    let run = run_of(&place, &climb.finish());
    let rung = &run["rungs"][0];
    for cause in ["wrong value", "value not found"] {
        assert!(rung["errors"][cause].as_u64() > Some(0), "{cause}: {rung:#}");
    }
    assert!(rung["lost"].as_u64() > Some(0) && rung["not_sent"].as_u64() >= Some(20), "{rung:#}");
    assert_eq!(rung["verdict"], "FAIL", "{rung:#}");
}

/// A thousand values of 100 KB are 100 MB on their way in each direction.
const LARGE: [&str; 8] = ["--value", "100KiB", "--rungs", "1000", "--op", "1:1", "--keys", "uniform:20"];

#[test]
fn a_thousand_large_values_in_flight_on_one_connection_to_redis_come_back_whole() {
    let Some(redis) = RedisServer::start() else { return };
    let place = Place::new();
    let url = redis.url();
    let words = [&[url.as_str(), "--no-calibration", "--json", "run.json"], &LARGE[..]].concat();
    let run = run_of(&place, &place.climb(&words));
    assert_all_right(&run["rungs"][0], 1000);
    assert!(answered(&run["rungs"][0], "get") > 0 && answered(&run["rungs"][0], "set") > 0, "{run:#}");
}

#[test]
fn a_real_member_carries_large_values_and_ten_thousand_operations_on_one_connection() {
    let Some(jar) = member::jar("climb hazelcast://…") else { return };
    let [port] = member::free_ports();
    let member = Member::start(&jar, "north", &[port]);
    let url = format!("hazelcast://{}/prices?cluster=north", member.address());
    let climb = |words: &[&str]| {
        let place = Place::new();
        let words = [&[url.as_str(), "--no-calibration", "--json", "run.json"], words].concat();
        run_of(&place, &place.climb(&words))["rungs"].as_array().expect("rungs").clone()
    };
    assert_all_right(&climb(&["--op", "mix", "--keys", "uniform:100", "--rungs", "10000"])[0], 10_000);
    assert_all_right(&climb(&LARGE)[0], 1000);
}

#[test]
fn when_one_of_three_real_members_is_killed_its_operations_are_lost_and_all_others_answered_rightly() {
    let Some(jar) = member::jar("climb hazelcast://… with three members") else { return };
    let ports: [u16; 3] = member::free_ports();
    let ports_of = |first: usize| -> Vec<u16> { (0..3).map(|at| ports[(first + at) % 3]).collect() };
    let mut members = vec![Member::start(&jar, "three", &ports_of(0))];
    members.extend(
        [1, 2].map(|at| Member::launch(&jar, "three", &ports_of(at))).map(|starting| starting.wait()),
    );
    let place = Place::new();
    let proxy = tls_proxy::before(members[0].address().parse().expect("an address"));
    let url = format!("hazelcasts://{}/prices?cluster=three", proxy.address);
    let ran = place.climb(&[&url, "--insecure", "--rungs", "20", "--no-calibration", "--json", "run.json"]);
    assert_all_right(&run_of(&place, &ran)["rungs"][0], 20);
    assert!(ran.err.contains("its 3 members speak no TLS at the addresses"), "{}", ran.err);

    let place = Place::new();
    let url = format!("hazelcast://{}/prices?cluster=three", members[0].address());
    let options = ["--op", "9:1", "--keys", "uniform:500", "--rungs", "50", "--hold", "6s", "--settle", "1s"];
    let words = [&[url.as_str(), "--no-calibration", "--json", "run.json"], &options[..]].concat();
    let mut climb = place.start_climb(&words);
    climb.wait_for("rung 50 in flight · hold");
    // The hold begins on a whole second.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    members[2].kill();
    let run = run_of(&place, &climb.finish());
    let rung = &run["rungs"][0];
    let number = |name: &str| rung[name].as_u64().unwrap_or_else(|| panic!("{name} in {rung:#}"));
    // What was in flight to the killed member; a third of the keys are its own.
    assert!((1..=50).contains(&number("lost")), "{rung:#}");
    assert!(number("answered") > 1000, "{rung:#}");
    assert_eq!(number("not_sent"), 0, "{rung:#}");
    // Every value has a backup on another member.
    for cause in ["wrong value", "value not found", "reply of another kind", "broken protocol"] {
        assert!(rung["errors"][cause].is_null(), "{rung:#}");
    }
    assert_ne!(run["verdict"], "PASS", "{run:#}");
}
