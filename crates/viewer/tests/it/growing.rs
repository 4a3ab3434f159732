//! A run that is viewed while it is recorded.

use std::collections::BTreeMap;

use measure::trial::kind;
use serde_json::Value;

use crate::given::{self, Client, HOLD_FROM_S};

type Seen = (String, String, Value);

/// Seconds by trial and t, as a page would put them together.
fn seconds(events: &[Seen]) -> BTreeMap<(u64, u64), BTreeMap<String, Value>> {
    let mut seconds: BTreeMap<_, BTreeMap<String, Value>> = BTreeMap::new();
    for (_, kind, data) in events {
        let seq = |of: &Value| of["seq"].as_u64().unwrap();
        if kind == "trial" {
            let t = data["series"]["t"].as_array().cloned().unwrap_or_default();
            for (row, t) in t.iter().enumerate() {
                let second = seconds.entry((seq(data), t.as_u64().unwrap())).or_default();
                for (name, column) in data["series"].as_object().unwrap() {
                    second.insert(name.clone(), column[row].clone());
                }
            }
        } else if kind == "second" {
            let second = seconds.entry((seq(data), data["t"].as_u64().unwrap())).or_default();
            second.extend(data["values"].as_object().unwrap().clone());
        }
    }
    seconds
}

#[test]
fn seconds_arrive_as_they_are_committed_then_the_rung_then_the_end() {
    let (given, writer, run, viewer) = given::growing();
    let client = Client::of(&viewer);
    let path = format!("/api/runs/{run}/live");
    let mut events = client.follow(&path, None);
    let first = events.next().unwrap();
    assert_eq!((first.1.as_str(), &first.2["run"]["state"]), ("run", &"running".into()));

    writer.begin_trial(&given::trial_head(0, 1_000.0), 0).unwrap();
    let began = events.until(|kind, _| kind == "trial");
    assert_eq!(began.last().unwrap().2["rung"], Value::Null);
    let mut all = Vec::new();
    let last = HOLD_FROM_S + 3;
    for index in 0..=last {
        if index == HOLD_FROM_S {
            writer.append(vec![given::mark(index, kind::HOLD, "")]).unwrap();
        }
        let (interval, later) = given::second(index, 1_000.0, 600);
        writer.append(vec![interval]).unwrap();
        // It arrives before the next one is written, not only at the end of the trial.
        all.extend(events.until(|kind, data| kind == "second" && data["t"] == index));
        writer.append(later).unwrap();
        all.extend(events.until(|kind, data| {
            kind == "second" && data["t"] == index && data["values"].get("ticks_due").is_some()
        }));
    }
    let seconds = seconds(&all);
    assert_eq!(seconds.len(), last as usize + 1);
    assert!(seconds.values().all(|second| second["sent"] == 14_000 && second["ticks_over"] == 600));
    assert!(all.iter().any(|(_, kind, data)| {
        kind == "trial" && data["events"].as_array().unwrap().iter().any(|event| event["kind"] == "hold")
    }));

    writer
        .append(vec![given::mark(last + 1, kind::DRAIN, "4s"), given::mark(last + 1, kind::END, "")])
        .unwrap();
    writer.end_trial(1).unwrap();
    given::store_verdict(&given, &writer, 0);
    let judged = events.until(|kind, _| kind == "rung");
    assert_eq!(judged.last().unwrap().2["rung"]["verdict"], "PASS");
    let so_far = events.until(|kind, _| kind == "run");
    assert_eq!(so_far.last().unwrap().2["climb"]["capacity"]["lower_bound"], 1_000.0);

    given::end(&given, writer);
    let ended = events.until(|kind, data| kind == "run" && data["run"]["state"] == "finished");
    assert_eq!(ended.last().unwrap().0, "end");
    assert!(events.next().is_none(), "nothing follows the end");
}

#[test]
fn a_page_that_lost_the_connection_goes_on_where_it_was() {
    let (_given, writer, run, viewer) = given::growing();
    let client = Client::of(&viewer);
    let path = format!("/api/runs/{run}/live");
    writer.begin_trial(&given::trial_head(0, 500.0), 0).unwrap();
    let write = |index: u32| {
        let (interval, later) = given::second(index, 500.0, 0);
        writer.append([vec![interval], later].concat()).unwrap();
    };
    let mut events = client.follow(&path, None);
    events.until(|kind, _| kind == "trial");
    (0..8).for_each(write);
    let seen = events.until(|kind, data| kind == "second" && data["t"] == 7);
    let last_id = seen.last().unwrap().0.clone();
    assert_eq!(last_id, "0:7");
    drop(events);
    (8..20).for_each(write);

    let mut back = client.follow(&path, Some(&last_id));
    let missed = back.until(|kind, data| kind == "second" && data["t"] == 19);
    assert!(missed.iter().all(|(_, kind, data)| kind != "trial" || data["series"].get("t").is_none()));
    let times: Vec<u64> = seconds(&missed).keys().map(|(_, t)| *t).collect();
    // The last ones again, since their later values may have been missed; otherwise no duplicates and no gaps.
    assert_eq!(times, (4..20).collect::<Vec<_>>());
    drop(writer);
}

#[test]
fn a_page_that_missed_a_whole_trial_is_told_of_it() {
    let (given, writer, run, viewer) = given::growing();
    let client = Client::of(&viewer);
    given::record_rung(&writer, 0, 500.0, 4, 0.02);
    given::store_verdict(&given, &writer, 0);
    given::record_rung(&writer, 1, 1_000.0, 4, 0.4);
    given::store_verdict(&given, &writer, 1);
    let mut back = client.follow(&format!("/api/runs/{run}/live"), Some("0:3"));
    let all = back.until(|kind, data| kind == "rung" && data["seq"] == 1);
    let kinds: Vec<(&str, u64)> = all
        .iter()
        .filter(|(_, kind, _)| kind == "rung" || kind == "trial")
        .map(|(_, kind, data)| (kind.as_str(), data["seq"].as_u64().unwrap()))
        .collect();
    assert_eq!(kinds, [("trial", 0), ("rung", 0), ("trial", 1), ("rung", 1)]);
    assert_eq!(seconds(&all).keys().filter(|(seq, _)| *seq == 1).count(), 6);
    drop(writer);
}

#[test]
fn a_run_that_is_killed_is_told_although_nothing_is_committed_any_more() {
    let (_given, writer, run, viewer) = given::growing();
    let mut events = Client::of(&viewer).follow(&format!("/api/runs/{run}/live"), None);
    events.until(|kind, _| kind == "run");
    drop(writer);
    let ended = events.until(|kind, data| kind == "run" && data["run"]["state"] != "running");
    assert_eq!(ended.last().unwrap().2["run"]["state"], "cut_off");
}

#[test]
fn a_browser_that_heard_the_end_does_not_come_back() {
    let (_given, run, viewer) = given::recorded("over", &[500.0], 3);
    let client = Client::of(&viewer);
    let head = client.head("GET", &format!("/api/runs/{run}/live")) + "Last-Event-ID: end\r\n";
    assert_eq!(given::exchange(client.address, &head, b"").status, 204);
    let mut events = client.follow(&format!("/api/runs/{run}/live"), None);
    let all = events.until(|kind, data| kind == "run" && data["run"]["state"] == "finished");
    assert!(all.len() <= 4 && client.get("/api/runs/nobody/live").status == 404);
}

#[test]
fn the_end_of_a_run_is_told_before_its_viewer_goes() {
    let given = given::store();
    // At any moment between two steps.
    for round in 0..5 {
        let writer = given.store.begin_run(&given::run_head("live"), None).unwrap();
        let run = writer.id().clone();
        let viewer = given::serve(&given, Vec::new());
        let mut events = Client::of(&viewer).follow(&format!("/api/runs/{run}/live"), None);
        events.until(|kind, _| kind == "run");
        std::thread::sleep(std::time::Duration::from_millis(45 * round));
        given::end(&given, writer);
        drop(viewer);
        let told = events.until(|kind, data| kind == "run" && data["run"]["state"] == "finished");
        assert_eq!(told.last().unwrap().0, "end");
        assert!(events.next().is_none(), "nothing follows the end");
    }
}
