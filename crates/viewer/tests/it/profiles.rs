//! Flame graphs of a run that was profiled: by the route, and in its report.

use ladder::Conclusion;
use ladder::growth::{self, ProfiledHold, Waiting};
use measure::LoadUnit;
use serde_json::{Value, json};
use store::RunId;

use crate::given::{self, Client, Given, end_told, record_rung, run_head, serve, store};
use crate::reports::{inside, report};

/// Text that tries to become markup.
const HOSTILE: &str = "<img src=x onerror=\"window.hacked=1\">";

/// What is said of two holds with so many samples and operations, of which waits were recorded in this part.
pub fn told(samples: [u64; 2], operations: [u64; 2], covered: Option<f64>) -> Conclusion {
    let hold = |load, at: usize| ProfiledHold {
        load,
        load_unit: LoadUnit::Games,
        hold_s: 10.0,
        operations: operations[at],
        samples: samples[at],
        samples_per_s: 500.0,
        rate_per_s: operations[at] as f64 / 10.0,
        judged_rate_per_s: operations[at] as f64 / 10.0,
        waiting: covered.map(|covered| Ok(Waiting { covered, ..Waiting::default() })),
        ..ProfiledHold::default()
    };
    growth::conclusion(&hold(500.0, 0), &hold(1_000.0, 1), Some("lock"))
}

fn profiled(told: Option<Conclusion>, artifacts: &[(&str, &[u8])]) -> (Given, RunId) {
    let given = store();
    let writer = given.store.begin_run(&run_head("profiled"), None).unwrap();
    record_rung(&writer, 0, 500.0, 3, 0.02);
    for (name, content) in artifacts {
        writer.artifact(name, content).unwrap();
    }
    let run = end_told(&given, writer, told.into_iter().collect());
    (given, run)
}

fn graphs(given: &Given, run: &RunId) -> Value {
    let viewer = serve(given, Vec::new());
    let answer = Client::of(&viewer).get(&format!("/api/runs/{run}/profile"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[test]
fn the_route_and_the_report_have_a_graph_of_each_kind_of_stacks() {
    let hostile = format!("user:main;user:{HOSTILE} 3000\nuser:main;user:tick 1000\n");
    let artifacts: [(&str, &[u8]); 4] = [
        ("profile-good.folded", b"user:main;user:tick 1000\n"),
        ("profile-bad.folded", hostile.as_bytes()),
        ("waits-good.folded", b"user:main;runtime:futex 5000\n"),
        ("waits-bad.folded", b"user:main;runtime:futex 90000\n"),
    ];
    let (given, run) = profiled(Some(told([1_000, 4_000], [1_000, 2_000], Some(0.5))), &artifacts);
    let expected = json!([
        { "of": "cpu", "problem": null, "graph": {
            "total": [2e6, 4e6], "functions": [["user", "main"], ["user", HOSTILE], ["user", "tick"]],
            "frames": [[0, 0, 2e6, 4e6, 3], [1, 1, 0.0, 3e6, 3], [1, 2, 2e6, 1e6, -3]],
            "steps": [0.01, 0.05, 0.2], "least_share": 0.001, "left_out": [0.0, 0.0], "too_deep": [0.0, 0.0] } },
        { "of": "waits", "problem": null, "graph": {
            // 5 and 90 ms of waiting in 500 and 1000 operations.
            "total": [10_000.0, 90_000.0], "functions": [["user", "main"], ["runtime", "futex"]],
            "frames": [[0, 0, 10_000.0, 90_000.0, 3], [1, 1, 10_000.0, 90_000.0, 3]],
            "steps": [0.01, 0.05, 0.2], "least_share": 0.001, "left_out": [0.0, 0.0], "too_deep": [0.0, 0.0] } },
    ]);
    assert_eq!(graphs(&given, &run), expected);
    let viewer = serve(&given, Vec::new());
    let page = Client::of(&viewer).get(&format!("/api/runs/{run}")).json();
    assert_eq!(page["profile"], Value::Null, "the page asks for it when it is looked at");
    let Some(report) = report(&given, &run) else { return };
    assert_eq!(inside(&report)["profile"], expected);
    assert!(!report.contains("<img src=x"), "a name ends no element");
}

#[test]
fn without_stacks_there_is_no_graph_and_damaged_ones_say_so() {
    let good: (&str, &[u8]) = ("profile-good.folded", b"user:main 10\n");
    let long = "user:main 1\n".repeat(2_800_000).into_bytes();
    for (what, told, artifacts, expected) in [
        ("never profiled", None, vec![], json!([])),
        ("stacks without a conclusion", None, vec![good], json!([])),
        ("perf was missing", Some(growth::none("perf is missing")), vec![], json!([])),
        (
            "half of them",
            Some(told([1, 1], [1, 1], None)),
            vec![good],
            json!(["profile-bad.folded is missing from the store."]),
        ),
        (
            "no weight",
            Some(told([1, 1], [1, 1], None)),
            vec![good, ("profile-bad.folded", b"user:<b>main")],
            json!(["profile-bad.folded is damaged: a line without a weight: \"user:<b>main\"."]),
        ),
        (
            "bytes",
            Some(told([1, 1], [1, 1], None)),
            vec![good, ("profile-bad.folded", b"\xff\xfe 3\n")],
            json!(["profile-bad.folded is damaged: it is no text."]),
        ),
        (
            "longer than any",
            Some(told([1, 1], [1, 1], None)),
            vec![good, ("profile-bad.folded", &long)],
            json!(["profile-bad.folded has 33.6 MB, and at most 33.6 MB are drawn."]),
        ),
        (
            "waits of an earlier version",
            Some(told([1, 1], [1, 1], None)),
            vec![("waits-good.folded", b"user:a 1\n"), ("waits-bad.folded", b"user:a 1\n")],
            json!(["An earlier version recorded these stacks without what their weights stand for."]),
        ),
    ] {
        let (given, run) = profiled(told, &artifacts);
        let found = graphs(&given, &run);
        let problems: Vec<&Value> = found.as_array().unwrap().iter().map(|one| &one["problem"]).collect();
        assert_eq!(json!(problems), expected, "{what}");
        assert!(found.as_array().unwrap().iter().all(|one| one["graph"].is_null()), "{what}");
        if let Some(report) = report(&given, &run) {
            assert_eq!(inside(&report)["profile"], found, "{what}: the report is whole all the same");
        }
    }
    let (given, _) = profiled(None, &[]);
    let viewer = given::serve(&given, Vec::new());
    assert_eq!(Client::of(&viewer).get("/api/runs/nobody/profile").status, 404);
}
