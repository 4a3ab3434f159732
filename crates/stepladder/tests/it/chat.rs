//! `climb chat`: the books of deliveries, from real sockets to the JSON.

use serde_json::Value;

use crate::main_job::checked_run;
use crate::place::{Place, Ran, free_port};

/// A crowd that speaks ten times as fast as the published one, so that a short hold has something to judge.
const CROWD: [&str; 10] =
    ["--rungs", "40", "--gap", "50ms..100ms", "--hold", "3s", "--settle", "1s", "--json", "run.json"];

fn climb(place: &Place, subject: &[&str], more: &[&str]) -> (Ran, Value) {
    let mut words = vec!["climb", "--no-calibration"];
    words.extend(subject);
    words.extend(CROWD);
    words.extend(more);
    let ran = place.run(words);
    assert!(place.path("run.json").exists(), "{ran:#?}");
    let run = checked_run(place);
    (ran, run)
}

fn count(deliveries: &Value, name: &str) -> i64 {
    deliveries[name].as_i64().unwrap_or_else(|| panic!("{name} in {deliveries:#}"))
}

#[test]
fn every_line_is_owed_to_all_others_and_all_of_them_come() {
    let place = Place::new();
    let (ran, run) = climb(&place, &["chat"], &[]);
    let rung = &run["rungs"][0];
    let deliveries = &rung["deliveries"];
    // 40 people, one line in 75 ms each, 3 s of hold: 1,600 lines are planned, and as much as 1 s of them before it.
    let offered = rung["offered"].as_u64().unwrap();
    assert!((1_400..1_800).contains(&offered), "{offered}");
    assert_eq!(count(deliveries, "owed") % 39, 0, "a line is owed to the 39 others");
    assert!(count(deliveries, "owed") >= 39 * offered as i64, "{deliveries:#}");
    assert_eq!(count(deliveries, "owed_min"), count(deliveries, "owed_max"), "nobody came or went");
    assert_eq!(count(deliveries, "delivered"), count(deliveries, "owed"));
    for name in ["lost", "duplicated", "reordered", "dropped", "in_flight", "residual"] {
        assert_eq!(count(deliveries, name), 0, "{name}: {ran:#?}");
    }
    assert!(deliveries["latency_ns"]["count"].as_u64() >= Some(39 * 1_400), "{deliveries:#}");
    let page = place.run(["show", "chat", "--all"]).out;
    assert!(page.contains("residual 0"), "{page}");
}

#[test]
fn a_server_that_loses_lines_in_silence_is_found_out() {
    let place = Place::new();
    let (ran, run) = climb(&place, &["chat"], &["--", "--lose-one-in", "10000"]);
    let rung = &run["rungs"][0];
    let deliveries = &rung["deliveries"];
    // Every ten-thousandth delivery, on each of the server's threads.
    let planted = count(deliveries, "owed") / 10_000;
    let lost = count(deliveries, "lost");
    assert!(planted >= 5 && (planted - 4..=planted).contains(&lost), "{lost} of {planted}: {deliveries:#}");
    assert_eq!((count(deliveries, "dropped"), count(deliveries, "residual")), (0, lost));
    assert_eq!((&run["verdict"], ran.code), (&"INVALID".into(), 2), "{ran:#?}");
    assert!(ran.out.contains("books do not balance"), "{ran:#?}");
}

#[test]
fn a_chat_that_runs_already_is_climbed_by_its_url() {
    let place = Place::new();
    let port = free_port();
    let server = place.start(["serve", "chat", "--listen", &format!("127.0.0.1:{port}")]);
    crate::place::eventually("the chat listens", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(drop)
    });
    let (ran, run) = climb(&place, &[&format!("tcp://127.0.0.1:{port}")], &[]);
    let deliveries = &run["rungs"][0]["deliveries"];
    assert_eq!((count(deliveries, "lost"), count(deliveries, "residual")), (0, 0), "{ran:#?}");
    drop(server);
}

#[test]
fn those_who_behave_badly_do_not_harm_the_others() {
    let place = Place::new();
    let misbehave =
        ["stalled=10%", "slow-reader=10%", "half-open=5%", "malformed=5%", "reconnect-storm=10%@1s"];
    let more: Vec<&str> = misbehave.iter().flat_map(|kind| ["--misbehave", kind]).collect();
    let (ran, run) = climb(&place, &["chat"], &more);
    let rung = &run["rungs"][0];
    let deliveries = &rung["deliveries"];
    assert_eq!((count(deliveries, "lost"), count(deliveries, "residual")), (0, 0), "{ran:#?}");
    assert!(
        count(deliveries, "owed_min") < count(deliveries, "owed_max"),
        "the storm makes the bounds differ"
    );
    let excluded = &deliveries["excluded"];
    let (judged, excluded) = (count(deliveries, "receivers"), count(excluded, "receivers"));
    assert_eq!(judged + excluded, 40);
    assert!((14..=18).contains(&excluded), "four tenths of forty: {excluded}");
    let page = place.run(["show", "chat", "--all"]).out;
    assert!(page.contains("excluded"), "{page}");
}
