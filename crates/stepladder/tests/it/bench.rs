//! `stepladder bench`: what it prints and writes, its gates and its exit codes.

use serde_json::json;

use crate::place::{Place, parse};

const SMALL: [&str; 6] = ["bench", "leaderboard", "--members", "500", "--seconds", "0.05"];

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().chain(more).copied().collect()
}

#[test]
fn the_implementations_are_compared_with_the_reasons_beside_the_rates() {
    let place = Place::new();
    let ran = place.run(words(&["--op", "update,bulk:4", "--threads", "1,2", "--json", "r.json"]));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for fragment in ["bytes/member", "one-lock", "hashmap-indexset", "bulk:4", "lock wait", "allocs"] {
        assert!(ran.out.contains(fragment), "`{fragment}` is missing in\n{}", ran.out);
    }
    let report = place.json("r.json");
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!((cells.len(), report["memory"].as_array().map(Vec::len)), (5 * 2 * 2, Some(5)));
    for cell in cells {
        assert!(cell["ops_per_s"].as_f64() > Some(0.0) && cell["cpu_ns_per_item"].as_f64() > Some(0.0));
        // The program counts its allocations; the boxes of an actor's messages are among them.
        let allocations = cell["allocations_per_item"].as_f64().expect("they are counted");
        assert!(cell["implementation"] != "actor" || allocations > 0.1, "{cell}");
    }
    let is_measured = |memory: &serde_json::Value| memory["bytes_per_member"].as_f64() > Some(30.0);
    assert!(report["memory"].as_array().expect("memory").iter().all(is_measured), "{report}");
}

#[test]
fn a_gate_that_is_missed_ends_the_command_with_1() {
    let place = Place::new();
    let one = ["--implementations", "one-lock"];
    let met = place.run(words(&[&one[..], &["--gate", "one-lock.update.ops > 1"]].concat()));
    assert_eq!(met.code, 0);
    assert!(met.out.contains("gate met: one-lock.update.ops > 1\n"), "{}", met.out);
    let gates = ["--gate", "ops > 1", "--gate", "cpu < 1ns", "--json", "-"];
    let missed = place.run(words(&[&one[..], &gates].concat()));
    assert_eq!(missed.code, 1);
    assert!(missed.err.contains("gate missed: cpu < 1ns; one-lock.update.1: "), "{}", missed.err);
    let report = parse(&missed.out);
    assert_eq!((&report["gates"][0]["met"], &report["gates"][1]["met"]), (&json!(true), &json!(false)));
    assert_eq!(report["gates"][1]["misses"][0]["of"], "one-lock.update.1");
}

#[test]
fn wrong_usage_ends_with_3_before_anything_is_measured() {
    let place = Place::new();
    let refused = |more: &[&str], fragments: &[&str]| place.run(words(more)).refused(3, fragments);
    refused(&["--gate", "opz > 1"], &["--gate", "no figure \"opz\"", "bytes_per_member"]);
    refused(&["--gate", "rank.ops > 1"], &["--gate", "nothing of this is measured"]);
    refused(&["--implementations", "one-lock", "--gate", "ratio > 3"], &["hashmap-indexset"]);
    refused(&["--implementations", "two-locks"], &["two-locks", "one-lock"]);
    refused(&["--op", "delete"], &["delete", "bulk:N"]);
    refused(&["--threads", "0"], &["--threads 0", "1 to 256"]);
    refused(&["--json", "no/such/folder/r.json"], &["--json no/such/folder/r.json", "cannot be written"]);
    place.run(["bench"]).refused(3, &["leaderboard"]);
    place.run(["bench", "chess"]).refused(3, &["chess"]);
}
