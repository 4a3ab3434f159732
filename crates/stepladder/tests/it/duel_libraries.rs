//! Duels of client libraries: equal ones, a slower one, and libraries that lie, crash or hang.

use serde_json::Value;

use crate::place::{Place, Ran};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stepladder");
/// Some hundredths of a second.
const NULL: &str = "bench --target null: --total 400000";

/// A side whose client is our own runner, with its lines changed by `sed`.
fn changed(script: &str) -> String {
    let client = format!("planted() {{ {PROGRAM} bench runner \"$1\" | sed \"{script}\"; }}; planted");
    format!("{NULL} --client '{client}'")
}

fn fought(place: &Place, a: &str, b: &str, more: &[&str]) -> Ran {
    place.run([&["duel", a, b, "--budget", "20s"][..], more].concat())
}

fn figure<'a>(json: &'a Value, name: &str) -> &'a Value {
    let figures = json["duel"]["loads"][0]["figures"].as_array().expect("figures");
    figures.iter().find(|one| one["figure"] == name).expect(name)
}

#[test]
fn a_library_is_as_fast_as_itself_and_what_was_told_is_stored() {
    let place = Place::new();
    let report: &[&str] = if viewer::page_is_built() { &["--report", "r.html"] } else { &[] };
    // Whatever the machine does to either, neither takes ten times as long in most of the blocks.
    let ran =
        fought(&place, NULL, NULL, &[&["--gate", "ops >= 0.1x", "--json", "duel.json"][..], report].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    for fragment in ["get 3 B, 100 in flight", "gate ops >= 0.1x: met", "cpu_per_op", "null 0.1.0 on rust"] {
        assert!(ran.out.contains(fragment), "`{fragment}` is missing in\n{}", ran.out);
    }
    assert!(ran.err.contains("400000 operations per process"), "{}", ran.err);
    let json = place.json("duel.json");
    let ops = figure(&json, "ops");
    assert!(ops["blocks"].as_u64() >= Some(4) && ops["low"].as_f64() > Some(0.1), "{ops:#}");
    assert_eq!((&json["subject"], &json["duel"]["ended_because"]), (&"in-flight".into(), &"known".into()));
    if !report.is_empty() {
        let page = std::fs::read_to_string(place.path("r.html")).expect("the report");
        assert!(page.contains("null-1") && page.contains("A rust"), "{} bytes", page.len());
    }
    let shown = place.run(["show", "null-1", "--json", "shown.json"]);
    assert_eq!((shown.code, &shown.out), (0, &ran.out), "what is shown later is what was told");
    assert_eq!(place.json("shown.json"), json);
    assert!(place.run(["runs"]).out.contains("Gate ops >= 0.1x: met."));
}

#[test]
fn a_slower_library_misses_its_gate_and_is_called_slower() {
    let place = Place::new();
    // One more digit: it reports ten times the time.
    let slower = changed("s/elapsed_ns.:[0-9]*/&0/");
    let outputs = "--json duel.json --junit duel.xml --markdown duel.md".split(' ').collect::<Vec<_>>();
    let ran = fought(&place, NULL, &slower, &[&["--gate", "ops >= 0.9x"], &outputs[..]].concat());
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.out.contains("gate ops >= 0.9x: not met"), "{ran:#?}");
    let json = place.json("duel.json");
    assert!(figure(&json, "ops")["high"].as_f64() < Some(0.9), "{json:#}");
    assert_eq!(json["duel"]["differs"][0]["what"], "client");
    let read = |file: &str| std::fs::read_to_string(place.path(file)).expect(file);
    let (junit, markdown) = (read("duel.xml"), read("duel.md"));
    for part in [
        "failures=\"1\" errors=\"0\"",
        "name=\"ops at get 3 B, 100 in flight\"",
        "name=\"gate ops &gt;= 0.9x at get 3 B, 100 in flight\"",
        "type=\"NOT_MET\"",
        "planted()",
        "The duel ended because",
    ] {
        assert!(junit.contains(part), "{part} in {junit}");
    }
    for part in ["\n### get 3 B, 100 in flight, ", "| ops | ", "- gate ops \\>= 0.9x: not met", "null-1"] {
        assert!(markdown.contains(part), "{part} in {markdown}");
    }
    let shown = place.run(["show", "null-1", "--junit", "again.xml", "--markdown", "-"]);
    assert_eq!((shown.code, shown.out.trim()), (0, markdown.trim()));
    assert_eq!(read("again.xml"), junit);
}

#[test]
fn a_library_whose_operations_fail_never_wins_however_fast_it_is() {
    let place = Place::new();
    // Swaps the counts: what was right is now failed, and in no time.
    let failing = changed(
        r#"/elapsed_ns/{s/.ok.:/OK/;s/.failed.:0/\"ok\":0/;s/OK/\"failed\":/;s/elapsed_ns.:[0-9]*/elapsed_ns\":1000/}"#,
    );
    let gate = &["--gate", "ops >= 1.0x", "--json", "duel.json", "--junit", "duel.xml"];
    let ran = fought(&place, NULL, &failing, gate);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let said = "B failed: 360000 of 360000 operations failed";
    assert!(ran.out.contains(said), "{ran:#?}");
    let junit = std::fs::read_to_string(place.path("duel.xml")).expect("duel.xml");
    assert!(junit.contains(said) && !junit.contains("failures=\"0\" errors=\"0\""), "{junit}");
    let json = place.json("duel.json");
    assert_eq!(
        (&json["duel"]["ended_because"], &json["duel"]["failure"]["side"]),
        (&"failed_b".into(), &"B".into())
    );
    let ran = fought(&place, &failing, NULL, &[]);
    assert_eq!(ran.code, 2, "nothing to compare with: {ran:#?}");
    assert!(ran.out.contains("A failed: 360000 of 360000"), "{ran:#?}");
    let finds_nothing =
        changed(r#"/elapsed_ns/{s/.hits.:/HITS/;s/.misses.:0/\"hits\":0/;s/HITS/\"misses\":/}"#);
    let ran = fought(&place, NULL, &finds_nothing, &[]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.out.contains("360000 of 360000 gets found nothing"), "{ran:#?}");
}

#[test]
fn a_library_that_breaks_ends_the_duel_as_not_measured() {
    let place = Place::new();
    for (client, says) in [
        (format!("{NULL} --client 'echo nonsense #'"), "B: client"),
        (format!("{NULL} --client false"), "it ended without its last line"),
        (format!("{NULL} --client ./missing"), "cannot be started"),
    ] {
        fought(&place, NULL, &client, &[]).fails(2, &[says]);
    }
}

#[test]
fn mistakes_are_named_before_anything_is_run() {
    let place = Place::new();
    let refused =
        |a: &str, b: &str, more: &[&str], words: &[&str]| fought(&place, a, b, more).refused(3, words);
    refused(NULL, "arena", &[], &["one side is a client library", "two of a kind"]);
    refused(NULL, "bench", &[], &["B, `bench`", "--target is missing"]);
    refused(NULL, "bench --target null: --runs 3", &[], &["--runs is about a whole comparison"]);
    refused(NULL, "bench --target null: --op get,set", &[], &["one client that does one thing"]);
    refused(NULL, "bench --target null: --total 30000", &[], &["different numbers of operations"]);
    refused(NULL, "bench --target redis://10.0.0.1:6379", &[], &["is not this machine"]);
    refused(NULL, NULL, &["--gate", "response.p99 <= +5%"], &["is a figure of servers", "latency.p99"]);
    refused(NULL, NULL, &["--gate", "ops >= -1.0x"], &["a factor, as in <= 1.05x"]);
    refused(NULL, NULL, &["--rungs", "5"], &["--rungs is about servers"]);
    refused(NULL, NULL, &["--junit", "a", "--json", "a"], &["--json a", "--junit a", "two files"]);
    refused(NULL, NULL, &["--metrics", "0"], &["--metrics tells the seconds of servers"]);
    refused(NULL, NULL, &["--otlp", "http://127.0.0.1:4318"], &["--otlp tells the seconds of servers"]);
    refused("arena", "arena", &["--gate", "ops >= 1.0x"], &["is a figure of client libraries"]);
    let long = "bench --target null: --total 1000000000";
    fought(&place, long, long, &[]).refused(3, &["no verdict is possible before 4 such blocks", "--total"]);
}
