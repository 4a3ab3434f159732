//! The list, a run and its trials.

use serde_json::Value;

use crate::given::{self, ByRules, Client, HOLD_FROM_S, SECOND_NS};
use viewer::Judge as _;

#[test]
fn the_list_has_the_youngest_run_first_with_its_small_ladder() {
    let given = given::store();
    let old = given::record_run(&given, "old", &[500.0, 1_000.0], 4);
    let young = given::record_run(&given, "young", &[500.0], 3);
    let viewer = given::serve(&given, Vec::new());
    let list = Client::of(&viewer).get("/api/runs").json();
    let ids: Vec<&Value> = list["runs"].as_array().unwrap().iter().map(|run| &run["id"]).collect();
    assert_eq!(ids, [young.as_str(), old.as_str()]);
    let row = &list["runs"][1];
    assert_eq!((&row["state"], &row["verdict"]), (&"finished".into(), &"FAIL".into()), "{row}");
    assert_eq!(row["capacity"]["lower_bound"], 500.0, "{row}");
    assert_eq!(row["main"]["text"], "ticks.late_share < 25%");
    let figures: Vec<f64> =
        row["rungs"].as_array().unwrap().iter().map(|rung| rung["figure"].as_f64().unwrap()).collect();
    assert_eq!(figures, [0.02, 0.4]);
}

#[test]
fn without_a_store_there_are_no_runs_yet() {
    let given = given::store();
    let options = viewer::Options {
        store: given.folder.path().join("later.db"),
        listen: "127.0.0.1:0".parse().unwrap(),
        ticks: Vec::new(),
    };
    let viewer = viewer::serve(&options, std::sync::Arc::new(ByRules)).unwrap();
    let client = Client::of(&viewer);
    assert_eq!(client.get("/api/runs").json()["runs"].as_array().unwrap().len(), 0);
    assert_eq!(client.get("/api/runs/arena-1").status, 404);
    assert!(!options.store.exists(), "looking makes no store");
}

#[test]
fn a_run_carries_the_answers_that_were_told_and_its_trials_carry_their_seconds() {
    let (given, run, viewer) = given::recorded("master", &[500.0, 1_000.0], 12);
    let client = Client::of(&viewer);
    let page = client.get(&format!("/api/runs/{run}")).json();
    let told = ByRules.climb(&given.store, &run).unwrap().unwrap();
    assert_eq!(page["climb"], serde_json::to_value(&told).unwrap());
    assert_eq!(page["note"], "planted");
    assert_eq!(page["trials"].as_array().unwrap().len(), 2);
    assert_eq!(page["trials"][1]["events"].as_array().unwrap().len(), 4);

    let trial = client.get(&format!("/api/runs/{run}/trials/1")).json();
    assert_eq!(trial["rung"], page["climb"]["rungs"][1]);
    let hold_ns = u64::from(HOLD_FROM_S) * SECOND_NS;
    assert_eq!(trial["hold"]["from_ns"].as_u64().unwrap(), hold_ns);
    let column = |name: &str| trial["series"][name].as_array().unwrap_or_else(|| panic!("{name} in {trial}"));
    assert_eq!(column("t").len(), 14);
    assert_eq!(column("t")[13], 13);
    assert!(column("sent").iter().all(|sent| sent == 14_000));
    assert!(column("late_share").iter().all(|share| share == 0.4));
    assert!(column("frames").iter().all(|frames| frames == 30));
    // CPU is the growth of a counter: the first second has nothing before it.
    assert_eq!(column("subject_cpu_cores")[0], Value::Null);
    assert!(column("subject_cpu_cores")[1..].iter().all(|cores| cores == 0.5));
    assert!(trial["series"].get("lost").is_some() && trial["series"].get("delivery_p99_ns").is_none());
    assert_eq!(trial["slowest"][0]["receiver"], 39);
}

/// The value that a share `q` of the samples does not exceed.
fn quantile(buckets: &Value, q: f64) -> u64 {
    let buckets: Vec<(u64, u64)> = serde_json::from_value(buckets.clone()).unwrap();
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let rank = (q * all as f64).ceil() as u64;
    let mut below = 0;
    buckets
        .iter()
        .find(|(_, count)| {
            below += count;
            below >= rank
        })
        .unwrap()
        .0
}

#[test]
fn the_buckets_of_a_trial_give_the_figures_of_its_rung() {
    let (_given, run, viewer) = given::recorded("master", &[1_000.0], 12);
    let trial = Client::of(&viewer).get(&format!("/api/runs/{run}/trials/0")).json();
    for (name, rung) in [
        ("response", &trial["rung"]["response_ns"]),
        ("service", &trial["rung"]["service_ns"]),
        ("send_lag", &trial["rung"]["send_lag_ns"]),
        ("tick_interval", &trial["rung"]["ticks"]["interval_ns"]),
    ] {
        for (q, figure) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p999")] {
            assert_eq!(
                quantile(&trial["distributions"][name], q),
                rung[figure].as_u64().unwrap(),
                "{name} {figure}"
            );
        }
    }
}

#[test]
fn a_killed_run_shows_what_is_intact_of_it() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head("killed"), None).unwrap();
    let run = writer.id().clone();
    given::record_rung(&writer, 0, 500.0, 4, 0.02);
    writer.begin_trial(&given::trial_head(1, 1_000.0), 0).unwrap();
    writer.append(vec![given::second(0, 1_000.0, 0).0]).unwrap();
    drop(writer);
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    let page = client.get(&format!("/api/runs/{run}")).json();
    assert_eq!(page["run"]["state"], "cut_off");
    assert_eq!(page["climb"]["rungs"].as_array().unwrap().len(), 1);
    let trial = client.get(&format!("/api/runs/{run}/trials/1")).json();
    assert_eq!((trial["series"]["t"].as_array().unwrap().len(), &trial["rung"]), (1, &Value::Null));
}

#[test]
fn a_long_trial_comes_in_as_many_points_as_were_asked_for() {
    let (_given, run, viewer) = given::recorded("long", &[50.0], 300);
    let client = Client::of(&viewer);
    let whole = client.get(&format!("/api/runs/{run}/trials/0")).json();
    assert_eq!(whole["series"]["t"].as_array().unwrap().len(), 302);
    let few = client.get(&format!("/api/runs/{run}/trials/0?points=100")).json();
    let rows = few["series"]["t"].as_array().unwrap().len();
    assert!(rows <= 102 && few["seconds_per_point"].as_u64().unwrap() > 1, "{rows} rows");
    for name in ["response_mean_ns", "busy_share", "sent"] {
        let values = |of: &Value| -> Vec<f64> {
            of["series"][name].as_array().unwrap().iter().filter_map(Value::as_f64).collect()
        };
        let (all, kept) = (values(&whole), values(&few));
        let most = |of: &[f64]| of.iter().copied().fold(f64::MIN, f64::max);
        assert_eq!(most(&all), most(&kept), "{name}");
        assert!(kept.iter().all(|value| all.contains(value)), "{name}: nothing is invented");
    }
}

#[test]
fn hostile_names_come_as_text_in_json_and_never_as_a_page() {
    let hostile = "<img src=x onerror=alert(1)></script><script>alert(1)</script>";
    let given = given::store();
    let head =
        store::RunHead { subject: hostile.to_owned(), command: hostile.to_owned(), ..given::run_head("x") };
    let writer = given.store.begin_run(&head, None).unwrap();
    given::record_rung(&writer, 0, 500.0, 3, 0.02);
    let run = given::end(&given, writer);
    given.store.set_label(&run, "name", Some(hostile)).unwrap();
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    for path in ["/api/runs".to_owned(), format!("/api/runs/{run}"), "/api/runs/%3Cscript%3E".to_owned()] {
        let answer = client.get(&path);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        answer.json();
    }
    assert_eq!(client.get("/api/runs").json()["runs"][0]["labels"]["name"], hostile);
    if viewer::page_is_built() {
        let report = client.get(&format!("/report/{run}.html")).text();
        assert!(!report.contains("<img src=x") && !report.contains("<script>alert"));
    }
}
