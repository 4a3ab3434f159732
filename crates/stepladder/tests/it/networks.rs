//! `climb --network`: what it delays, what it does not, and what it must not hide.
//!
//! Lower bounds are strict, since a byte never comes out before its instant; upper bounds are far away, since other tests
//! run beside these.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::main_job::checked_run;
use crate::place::Place;

const MS: u64 = 1_000_000;

/// Lines that come go back, until the switch is thrown.
fn echo_until(is_dead: &Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("tcp://{}", listener.local_addr().expect("its address"));
    let is_dead = is_dead.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (mut back, is_dead) = (stream.try_clone().expect("a second handle"), is_dead.clone());
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    if !is_dead.load(Ordering::Relaxed)
                        && back.write_all(format!("{line}\n").as_bytes()).is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    url
}

fn echo() -> String {
    echo_until(&Arc::default())
}

/// The only rung of an echo's climb with these options besides.
fn rung(options: &[&str]) -> (Value, String) {
    let place = Place::new();
    let url = echo();
    let words =
        [&url, "--bots", "echo", "--rungs", "100", "--objective", "errors == 0", "--json", "run.json"];
    let ran = place.climb(&[&words[..], options].concat());
    let run = checked_run(&place);
    let rung = run["rungs"][0].clone();
    assert_eq!((&rung["failed"], &rung["lost"]), (&json!(0), &json!(0)), "{rung:#}");
    (rung, ran.out)
}

fn ns(figures: &Value, quantile: &str) -> u64 {
    figures[quantile].as_u64().unwrap_or_else(|| panic!("no {quantile} in {figures}"))
}

#[test]
fn an_answer_takes_the_emulated_round_trip_and_a_send_is_no_later_for_it() {
    let (rung, out) = rung(&["--network", "latency=60ms jitter=10ms"]);
    let response = &rung["response_ns"];
    assert!((60 * MS..600 * MS).contains(&ns(response, "p50")), "{response}");
    // A connection is usable a round trip after its connect.
    let handshake_ns = rung["connections"]["handshake_ns"]["mean"].as_f64();
    assert!(handshake_ns >= Some(60.0 * MS as f64), "{rung:#}");
    assert!(ns(&rung["send_lag_ns"], "p50") < 30 * MS, "the worker itself was on time: {rung:#}");
    let network = &rung["network"];
    // A byte that waits for something else than its instant waits for the bot's next message, 100 ms later.
    assert!(network["late_ns"]["mean"].as_f64() < Some(15.0 * MS as f64), "{network:#}");
    let profile = &network["profiles"][0];
    assert_eq!(
        (&profile["bots"], &profile["share"], &profile["latency_ns"]),
        (&json!(100), &json!(1.0), &json!(60 * MS))
    );
    for (figures, least, most) in [
        (&profile["asked_round_trip_ns"], 60 * MS, 81 * MS),
        (&profile["round_trip_ns"], 60 * MS, 600 * MS),
        (&network["round_trip_ns"], 60 * MS, 600 * MS),
        (&network["late_ns"], 0, 500 * MS),
    ] {
        assert!((least..most).contains(&ns(figures, "p50")), "{network:#}");
    }
    assert!(out.contains("Emulated network: latency 60 ms, jitter 10 ms."), "{out}");
    assert_eq!(rung["recorded"], Value::Null, "what the network records is no figure of a script's");
}

#[test]
fn without_a_network_nothing_is_delayed_and_nothing_is_said_of_one() {
    let (rung, out) = rung(&[]);
    assert!(ns(&rung["response_ns"], "p50") < 30 * MS, "{:#}", rung["response_ns"]);
    assert_eq!(rung.get("network"), None);
    assert!(!out.contains("mulated"), "{out}");
}

#[test]
fn bots_are_split_by_exact_shares_and_the_slower_networks_are_slower() {
    let (rung, _) = rung(&["--network", "70% wifi, 20% latency=100ms, 10% latency=160ms loss=5%"]);
    let profiles = rung["network"]["profiles"].as_array().expect("profiles");
    let bots: Vec<&Value> = profiles.iter().map(|one| &one["bots"]).collect();
    assert_eq!(bots, [&json!(70), &json!(20), &json!(10)]);
    let names: Vec<&Value> = profiles.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [&json!("wifi"), &json!("latency=100ms"), &json!("latency=160ms loss=5%")]);
    let median = |at: usize| ns(&profiles[at]["asked_round_trip_ns"], "p50");
    assert!((20 * MS..30 * MS).contains(&median(0)), "{profiles:#?}");
    assert!((100 * MS..101 * MS).contains(&median(1)), "{profiles:#?}");
    // Jitter and losses only add.
    assert!(profiles[2]["asked_round_trip_ns"]["max"].as_u64() >= Some(160 * MS), "{profiles:#?}");
}

#[test]
fn a_broadcast_behind_a_network_is_waited_for_and_none_is_missing() {
    let place = Place::new();
    let objectives = ["--objective", "deliveries.lost == 0", "--objective", "deliveries.duplicated == 0"];
    let options =
        ["chat", "--rungs", "12", "--network", "latency=80ms jitter=40ms loss=3%", "--json", "run.json"];
    let ran = place.climb(&[&options[..], &objectives].concat());
    let run = checked_run(&place);
    let deliveries = &run["rungs"][0]["deliveries"];
    assert_eq!((&deliveries["lost"], &deliveries["duplicated"]), (&json!(0), &json!(0)), "{deliveries:#}");
    assert!(deliveries["delivered"].as_u64() > Some(0), "{deliveries:#}");
    assert!(deliveries["latency_ns"]["max"].as_u64() >= Some(80 * MS), "{deliveries:#}");
    assert_ne!(run["verdict"], "FAIL", "{ran:#?}");
    // Where its lines break depends on the figures.
    let page = place.run(["show", "chat", "--all"]).out;
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("deliveries, which contain it, took"), "{words}");
}

#[test]
fn players_are_paired_behind_a_network_as_they_are_without_one() {
    let place = Place::new();
    let options = [
        "arena",
        "--rungs",
        "10",
        "--hold",
        "4s",
        "--network",
        "50% latency=40ms jitter=10ms, 50% latency=20ms",
    ];
    let ran = place.climb(&[&options[..], &["--json", "run.json", "--", "--bullet-speed", "1500"]].concat());
    let run = checked_run(&place);
    let rung = &run["rungs"][0];
    assert_eq!(rung["errors"], json!({}), "{ran:#?}");
    assert!(rung["sent"].as_u64() > Some(0) && rung["network"]["profiles"][1]["bots"] == 10, "{rung:#}");
}

#[test]
fn a_server_that_dies_behind_a_network_does_not_pass() {
    let place = Place::new();
    let is_dead = Arc::new(AtomicBool::new(false));
    let url = echo_until(&is_dead);
    let words = [
        &url,
        "--bots",
        "echo",
        "--rungs",
        "20",
        "--hold",
        "6s",
        "--network",
        "latency=80ms jitter=20ms",
        "--objective",
        "response.p50 < 5s",
        "--json",
        "run.json",
    ];
    let mut climb = place.start_climb(&words);
    climb.wait_for("· hold");
    is_dead.store(true, Ordering::Relaxed);
    let ran = climb.finish();
    let run = place.json("run.json");
    assert_ne!(run["verdict"], "PASS", "{ran:#?}");
    assert_ne!(ran.code, 0, "{ran:#?}");
}

#[test]
fn networks_that_make_no_sense_are_refused_before_anything_is_begun() {
    let place = Place::new();
    for (network, fragments) in [
        ("wfi", &["--network", "\"wfi\" is unknown", "did you mean wifi?"][..]),
        ("70% wifi, 20% 4g", &["the shares are 90% together"]),
        ("latency=80", &["latency: \"80\" has no unit"]),
    ] {
        place.climb(&["chat", "--network", network]).refused(3, fragments);
    }
    assert!(!place.path("stepladder.db").exists(), "nothing was begun");
}
