//! Tick logs: dropped ones, named ones, and one that grows.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::given::{self, Client};

fn real(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../measure/tests/data").join(name)
}

#[track_caller]
fn assert_known(file: &serde_json::Value, name: &str) {
    let (on_time, over, under, games, p99, max) = match name {
        "original-500.log" => (650_033, 365_451, 148_872, 1_520, 25, 62),
        "original-1000.log" => (289_792, 616_934, 509_506, 1_656, 52, 115),
        _ => (1_667_143, 269_451, 28_398, 3_999, 19, 35),
    };
    for (key, known) in [("on_time", on_time), ("over", over), ("under", under), ("games", games)] {
        assert_eq!(file[key], known, "{key} of {name}");
    }
    assert_eq!((&file["interval_ms"]["p99"], &file["interval_ms"]["max"]), (&p99.into(), &max.into()));
    let due = (on_time + over + under) as f64;
    let share = file["late_share"].as_f64().unwrap();
    assert!((share - f64::from(over + under) / due).abs() < 1e-9, "{share}");
    let t = file["series"]["t"].as_array().unwrap();
    assert!(t.len() >= 30 && file["series"]["late_share"].as_array().unwrap().len() == t.len());
}

const LOGS: [&str; 3] = ["original-500.log", "original-1000.log", "original-best-1000.log"];

#[test]
fn a_dropped_log_gives_its_known_figures_and_is_kept_nowhere() {
    let given = given::store();
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    for name in LOGS {
        let file = client.send("POST", &format!("/api/ticks?name={name}"), &fs::read(real(name)).unwrap());
        assert_eq!(file.status, 200, "{file:?}");
        assert_eq!(file.json()["name"], name);
        assert_known(&file.json(), name);
    }
    assert_eq!(client.get("/api/ticks").json()["files"].as_array().unwrap().len(), 0);
    let left: Vec<_> =
        fs::read_dir(given.folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with("stepladder.db")), "{left:?}");
}

#[test]
fn named_logs_are_told_apart_and_need_no_run() {
    let given = given::store();
    let viewer = given::serve(&given, LOGS.iter().map(|name| real(name)).collect());
    let files = Client::of(&viewer).get("/api/ticks").json();
    for (file, name) in files["files"].as_array().unwrap().iter().zip(LOGS) {
        assert_eq!(file["name"], name);
        assert_known(file, name);
    }
}

#[test]
fn a_log_is_followed_while_it_grows_and_after_it_was_replaced() {
    let given = given::store();
    let path = given.folder.path().join("game.log");
    let whole = fs::read(real(LOGS[0])).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let viewer = given::serve(&given, vec![path.clone()]);
    let mut events = Client::of(&viewer).follow("/api/ticks/live", None);
    let (_, kind, first) = events.next().unwrap();
    assert_eq!(kind, "ticks");
    let half = first["files"][0]["on_time"].as_u64().unwrap();
    assert!(half > 0 && half < 650_033, "{half}");
    OpenOptions::new().append(true).open(&path).unwrap().write_all(&whole[whole.len() / 2..]).unwrap();
    let grown = events.until(|_, data| data["files"][0]["on_time"] == 650_033);
    assert_known(&grown.last().unwrap().2["files"][0], LOGS[0]);
    fs::remove_file(&path).unwrap();
    let gone = events.until(|_, data| data["files"][0].get("error").is_some());
    assert_eq!(gone.last().unwrap().2["files"][0]["name"], "game.log");
    fs::copy(real(LOGS[2]), &path).unwrap();
    let other = events.until(|_, data| data["files"][0]["on_time"] == 1_667_143);
    assert_known(&other.last().unwrap().2["files"][0], LOGS[2]);
}

#[test]
fn what_is_no_tick_log_is_refused_with_what_it_is_instead() {
    let given = given::store();
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    for (body, why) in [
        (&b""[..], "it is empty"),
        (b"hello\nworld\n", "none of its lines is one of a tick log"),
        (b"{\"time\":1,\"msg\":\"hello\"}\n", "is about ticks"),
    ] {
        let refused = client.send("POST", "/api/ticks?name=%3Cscript%3E", body);
        assert_eq!(refused.status, 422, "{refused:?}");
        let said = refused.json()["error"].as_str().unwrap().to_owned();
        assert!(said.starts_with("<script>") && said.contains(why), "{said}");
    }
    let large = vec![b' '; (64 << 20) + 1];
    assert_eq!(client.send("POST", "/api/ticks?name=large", &large).status, 413);
}
