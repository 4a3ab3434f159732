//! What an agent's user allows it, and an agent whose clock is far off.

use std::process::{Command, Stdio};

use serde_json::json;

use super::{broker, chat_by_two, last_holds, slot};
use crate::main_job::{assert_valid, checked_run};
use crate::place::{Place, Running};

/// An agent that may send so many messages per second.
fn limited(place: &Place, url: &str, rate: &str) -> Running {
    let mut agent = place.start(["agent", "--nats", url, "--name", "a", "--max-rate", rate]);
    agent.wait_for("agent a waits at");
    agent
}

#[test]
fn an_agent_sends_no_more_than_its_user_allows() {
    let place = Place::new();
    let Some((_broker, url)) = broker(&place, "127.0.0.1", &["--jetstream"]) else { return };
    let _agent = limited(&place, &url, "100");
    let agents = ["--nats", &url, "--agents", "1", "--json", "run.json"];
    let (_server, target) = place.serve("null --protocol http");
    let target = target.as_str();
    // A plan that says its rate: refused before any load.
    let ran = place.climb(&[&[target, "--rate", "50,200"], &agents[..]].concat());
    ran.refused(2, &[
        "rung 200: agent a sends at most 100 messages/s (--max-rate), and its share is 200; use more agents, lower the rung, or raise its \
         limit",
    ]);
    assert!(!place.path("run.json").exists(), "no load was made");
    // Its own null server, which the calibration asks as fast as it can, is excepted.
    let ran = place.run([&["climb", target, "--rate", "60", "--hold", "2s"], &agents[..]].concat());
    let run = place.json("run.json");
    assert_valid(&run);
    assert!(run["generator"]["ceiling_per_s"].as_f64() > Some(1_000.0), "{ran:#?}");
    for rung in run["rungs"].as_array().expect("rungs") {
        assert_ne!(rung["signal"], json!("agent lost"), "{ran:#?}");
    }
    // Players fire by a clock of their own: the plan does not say how often, and 20 games are more than 200 messages/s.
    let ran = place.climb(&[&["arena", "--rungs", "20"], &agents[..]].concat());
    let run = place.json("run.json");
    assert_valid(&run);
    let rungs = run["rungs"].as_array().expect("rungs");
    assert_eq!(rungs.len(), 1, "it is not asked again to do what its user does not allow: {ran:#?}");
    let first = &rungs[0];
    assert_eq!((&first["verdict"], &first["signal"]), (&json!("INVALID"), &json!("agent lost")), "{ran:#?}");
    let why = first["agents"][0]["lost"].as_str().expect("why it was lost");
    assert!(
        why.starts_with("it sent ")
            && why.ends_with(" messages in a second; its user allows 100 (--max-rate)"),
        "{why}"
    );
    let out = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains("a was lost: it sent "), "{ran:#?}");
}

#[test]
fn a_clock_that_is_three_hours_off_changes_no_delivery() {
    let _slot = slot();
    let place = Place::new();
    let offset = ["-T", "--monotonic", "10800", "--boottime", "10800"];
    if !Command::new("unshare")
        .args(offset)
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!("NOT RUN: a clock of its own needs root, unshare and Linux 5.6");
        return;
    }
    let Some((_broker, url)) = broker(&place, "127.0.0.1", &["--jetstream"]) else { return };
    let agent = |name: &str| place.command(["agent", "--nats", &url, "--name", name, "--cores", "2"]);
    let own = agent("b");
    let mut elsewhere = Command::new("unshare");
    elsewhere.args(offset).arg(own.get_program()).args(own.get_args());
    elsewhere.current_dir(place.path("")).stdin(Stdio::null()).env("STEPLADDER_LOCK", "");
    let mut agents = [agent("a"), elsewhere].map(|command| place.start_command(command));
    agents.iter_mut().for_each(|agent| agent.wait_for("waits at"));
    let load = ["--rungs", "20", "--hold", "2s", "--workers", "2"];
    let ran = place.climb(&[&chat_by_two(&url)[..], &load].concat());
    let run = checked_run(&place);
    let rung = last_holds(&run)[0];
    let deliveries = &rung["deliveries"];
    assert_eq!((&deliveries["residual"], &deliveries["lost"]), (&json!(0), &json!(0)), "{ran:#?}");
    assert_eq!(deliveries["delivered"], deliveries["owed"], "{deliveries:#}");
    let offset_s = |at: usize| rung["agents"][at]["clock_offset_ns"].as_f64().map(|ns| (ns / 1e9).round());
    assert_eq!((offset_s(0), offset_s(1)), (Some(0.0), Some(10_800.0)), "{rung:#}");
    // Of a delivery across, a clock that was not corrected would make three hours.
    let longest = deliveries["latency_ns"]["max"].as_u64().expect("deliveries were timed");
    assert!(longest < 3_600_000_000_000, "{deliveries:#}");
}
