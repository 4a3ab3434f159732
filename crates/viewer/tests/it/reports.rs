//! A run as one file.

use std::io::Read as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::Value;
use viewer::{Judge as _, ViewError};

use crate::given::{self, ByRules, Client};

/// What a ten-rung run of 60 s each may weigh.
const MOST_BYTES: usize = 300_000;

/// The run inside a report, read as the page reads it.
pub fn inside(report: &str) -> Value {
    let begin = report.find("id=\"stepladder-data\"").expect("a place for data");
    let open = begin + report[begin..].find('>').unwrap() + 1;
    let close = open + report[open..].find("</script>").unwrap();
    let text = &report[open..close];
    if report[begin..open].contains("data-encoding=\"deflate\"") {
        let bytes = BASE64_STANDARD.decode(text).unwrap();
        let mut json = String::new();
        ZlibDecoder::new(bytes.as_slice()).read_to_string(&mut json).unwrap();
        return serde_json::from_str(&json).unwrap();
    }
    serde_json::from_str(text).unwrap()
}

/// A report where this build has a page; without one it says so, which is checked instead.
pub fn report(given: &given::Given, run: &store::RunId) -> Option<String> {
    match viewer::report(&given.store, run, &ByRules) {
        Ok(report) => Some(report),
        Err(error) => {
            assert!(matches!(error, ViewError::NoPage) && !viewer::page_is_built(), "{error}");
            None
        }
    }
}

#[test]
fn ten_rungs_of_a_minute_make_a_report_of_less_than_300_kb() {
    let given = given::store();
    let loads: Vec<f64> = (1..=10).map(|step| f64::from(step) * 200.0).collect();
    let run = given::record_run(&given, "ladder", &loads, 60);
    let Some(report) = report(&given, &run) else { return };
    println!("{} bytes", report.len());
    assert!(report.len() <= MOST_BYTES, "{} bytes", report.len());
    let page = inside(&report);
    let trials = page["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 10);
    for trial in trials {
        assert_eq!(trial["series"]["t"].as_array().unwrap().len(), 62);
        assert!(trial["distributions"]["response"].as_array().unwrap().len() > 20);
    }
}

#[test]
fn a_report_has_the_figures_of_the_json_to_the_last_digit() {
    let given = given::store();
    let run = given::record_run(&given, "master", &[500.0, 1_000.0], 12);
    let Some(report) = report(&given, &run) else { return };
    let page = inside(&report);
    let json = serde_json::to_value(ByRules.climb(&given.store, &run).unwrap().unwrap()).unwrap();
    assert_eq!(page["climb"], json);
    // Each trial finds its rung there by number.
    for (at, trial) in page["trials"].as_array().unwrap().iter().enumerate() {
        assert_eq!(page["climb"]["rungs"][at]["seq"], trial["seq"]);
    }
}

#[test]
fn merged_buckets_lose_no_sample_and_move_none_by_more_than_their_width() {
    let given = given::store();
    let run = given::record_run(&given, "master", &[1_000.0], 8);
    let Some(report) = report(&given, &run) else { return };
    let merged: Vec<(u64, u64)> =
        serde_json::from_value(inside(&report)["trials"][0]["distributions"]["response"].clone()).unwrap();
    let viewer = given::serve(&given, Vec::new());
    let whole = Client::of(&viewer).get(&format!("/api/runs/{run}/trials/0")).json();
    let whole: Vec<(u64, u64)> = serde_json::from_value(whole["distributions"]["response"].clone()).unwrap();
    let count = |of: &[(u64, u64)]| of.iter().map(|(_, count)| count).sum::<u64>();
    assert_eq!(count(&merged), count(&whole));
    assert_eq!(merged.last().unwrap().0, whole.last().unwrap().0, "the longest stands");
    assert!(merged.len() * 2 < whole.len(), "{} of {}", merged.len(), whole.len());
    for (ns, _) in &whole {
        let (highest, _) = merged.iter().find(|(highest, _)| highest >= ns).unwrap();
        assert!(*highest as f64 <= *ns as f64 * 1.031, "{ns} ns stands under {highest}");
    }
}

#[test]
fn a_report_may_reach_nothing() {
    let given = given::store();
    let run = given::record_run(&given, "master", &[500.0], 3);
    let Some(report) = report(&given, &run) else { return };
    let policy = report.find("Content-Security-Policy").expect("a policy");
    assert!(policy < report.find("<script").unwrap(), "before the first script");
    let policy = &report[policy..policy + 400];
    assert!(policy.contains("default-src 'none'") && !policy.contains("connect-src"), "{policy}");
    for outside in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!report.contains(outside), "{outside}");
    }
}

#[test]
fn a_report_is_downloaded_under_the_runs_name() {
    let (_given, run, viewer) = given::recorded("master", &[500.0], 3);
    let client = Client::of(&viewer);
    let answer = client.get(&format!("/report/{run}.html"));
    if viewer::page_is_built() {
        assert_eq!(answer.header("content-disposition"), Some("attachment; filename=\"master-1.html\""));
        assert_eq!(inside(&answer.text())["run"]["id"], run.as_str());
    } else {
        assert_eq!(answer.status, 500);
    }
    assert_eq!(client.get("/report/nobody.html").status, 404);
}
