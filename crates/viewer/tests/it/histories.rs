//! The page of histories: which runs share a line, where a planted change is said to be, and hostile texts.

use store::{Outcome, RunEnd, RunHead, Store};

use crate::given::{self, Given};

/// Ends a climb of these bounds at once; returns its id. The `at`-th of the store.
fn plant(given: &Given, at: u64, bounds: (Option<f64>, Option<f64>), head: RunHead) -> String {
    let head = RunHead { name: None, started_unix_ms: 1_795_000_000_000 + at * 86_400_000, ..head };
    let writer = given.store.begin_run(&head, None).unwrap();
    let run = writer.id().to_string();
    let climb = serde_json::json!({
        "capacity": {
            "unit": "games", "lower_bound": bounds.0, "upper_bound": bounds.1, "first_failing_signal": null, "confidence": null,
        },
        "verdict": if bounds.1.is_some() { "FAIL" } else { "PASS" },
    });
    let end = RunEnd {
        outcome: Outcome::Finished,
        reason: None,
        ended_unix_ms: head.started_unix_ms + 1_000,
        climb: Some(climb.to_string()),
    };
    writer.end_run(end).unwrap();
    run
}

fn head(at: u64) -> RunHead {
    RunHead { git: Some(format!("c0ffee{at:02}")), ..given::run_head("") }
}

fn held(lower: f64, upper: f64) -> (Option<f64>, Option<f64>) {
    (Some(lower), Some(upper))
}

fn page(given: &Given) -> String {
    let stores = [Store::open_to_read(&given.path).unwrap()];
    viewer::history(&stores).unwrap().html
}

#[test]
fn a_planted_step_is_named_with_its_run_and_commit_and_noise_is_not() {
    let given = given::store();
    for at in 0..24 {
        // One odd run before the step, which is no step.
        let bounds = if at == 5 { held(500.0, 1_000.0) } else { held(2_000.0, 4_000.0) };
        plant(&given, at, if at < 16 { bounds } else { held(1_000.0, 2_000.0) }, head(at));
    }
    let html = page(&given);
    let found = "It fell with run arena-17, commit c0ffee16: 2000 to 4000 games before, 1000 to 2000 since";
    assert_eq!(html.matches("It fell").count(), 1, "{html}");
    assert!(html.contains(found) && !html.contains("It rose"), "{html}");
    assert_eq!(html.matches("class=\"change\" d=\"M16 0V100\"").count(), 1, "{html}");
    let (newer, older) = html.split_once("fell here").unwrap();
    assert!(newer.contains("c0ffee16") && !older.contains("<code>c0ffee16"), "newest first: {html}");
    assert!(older.contains("<code>c0ffee15"), "{html}");

    let quiet = given::store();
    (0..24)
        .for_each(|at| drop(plant(&quiet, at, held(2_000.0 - (at % 3) as f64 * 100.0, 4_000.0), head(at))));
    let html = page(&quiet);
    assert!(
        html.contains("No change: as far as 24 runs tell") && !html.contains("class=\"change\""),
        "{html}"
    );

    let few = given::store();
    (0..9).for_each(|at| {
        drop(plant(&few, at, if at < 5 { held(2_000.0, 4_000.0) } else { held(1.0, 2.0) }, head(at)))
    });
    assert!(
        page(&few).contains(
            "Too few runs to tell a change from chance: 10 with bounds are needed, and there are 9."
        )
    );
}

#[test]
fn only_comparable_runs_share_a_line_and_what_is_left_out_is_counted() {
    let given = given::store();
    let of = |plan: &str, version: &str| RunHead {
        plan: plan.to_owned(),
        stepladder: version.to_owned(),
        ..head(0)
    };
    plant(&given, 0, held(1.0, 2.0), of(r#"{"seed":1,"ladder":{"hold":5}}"#, "0.1.0"));
    plant(&given, 1, (None, Some(1.0)), of(r#"{"seed":2,"ladder":{"hold":5},"note":"x"}"#, "0.2.0"));
    plant(&given, 2, (Some(2.0), None), of(r#"{"seed":1,"ladder":{"hold":60}}"#, "0.2.0"));
    drop(given.store.begin_run(&head(3), None).unwrap());
    given::record_run(&given, "judged", &[100.0], 3);
    let copy = given.folder.path().join("copy.db");
    std::fs::copy(&given.path, &copy).unwrap();
    let stores = [&given.path, &copy].map(|path| Store::open_to_read(path).unwrap());
    let page = viewer::history(&stores).unwrap();
    assert_eq!((page.runs, page.damaged.len()), (4, 0), "copies of a run are one run");
    let html = page.html;
    assert_eq!(html.matches("<section>").count(), 3, "{html}");
    assert!(
        html.contains("ladder.hold (60 there, 5 here)") || html.contains("ladder.hold (5 there, 60 here)"),
        "{html}"
    );
    assert!(html.contains("Not shown: 1 did not end in order."), "{html}");
    for words in ["1 to 2", "less than 1", "2 or more"] {
        assert!(html.contains(&format!("<td class=\"held\">{words}</td>")), "{words}: {html}");
    }
}

#[test]
fn a_page_of_histories_carries_no_markup_of_a_store_and_asks_for_nothing() {
    let given = given::store();
    let evil = "\"><script>alert(1)</script><img src=x onerror=alert(2)>&\u{202e}\u{1b}[2J";
    for at in 0..2 {
        let plan = serde_json::json!({ evil: at }).to_string();
        let hostile = RunHead {
            subject: evil.to_owned(),
            command: format!("stepladder climb {evil} {}", "x".repeat(9_000)),
            git: Some(evil.to_owned()),
            stepladder: evil.to_owned(),
            environment: serde_json::json!({ "cpu_model": evil }).to_string(),
            plan,
            ..head(0)
        };
        plant(&given, at, held(1.0, 2.0), hostile);
    }
    let html = page(&given);
    for part in [
        "<script",
        "<img",
        "onerror=alert(2)>",
        "\u{202e}",
        "\u{1b}",
        "http://",
        "https://",
        "url(",
        "<a ",
        "@import",
    ] {
        assert!(!html.contains(part), "{part} in {html}");
    }
    assert!(html.contains("&lt;script&gt;") && html.contains("default-src 'none'"), "{html}");
    assert!(html.len() < 40_000, "long texts are cut: {}", html.len());
}

#[test]
fn a_store_without_runs_gives_a_page_that_says_so() {
    let html = page(&given::store());
    assert!(html.contains("0 runs in 0 lines") && html.ends_with("</html>\n"), "{html}");
}
