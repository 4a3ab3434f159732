//! `again`: the same plan and seed once more.

use serde_json::Value;

use crate::main_job::{assert_valid, exit_code_of, run_json, with_its_store};

#[test]
fn again_repeats_plan_and_seed_and_prints_old_against_new() {
    let place = with_its_store();
    let ran = place.run(["again", "arena", "--json", "again.json"]);
    let (old, new) = (run_json(), place.json("again.json"));
    assert_valid(&new);
    assert_eq!(ran.code, exit_code_of(&new["verdict"]), "{ran:#?}");
    assert_eq!(new["run"]["seed"], old["run"]["seed"]);
    assert_eq!(new["run"]["id"], "arena-2");
    let loads = |run: &Value| {
        run["rungs"].as_array().map(|rungs| rungs.iter().map(|rung| rung["load"].clone()).collect::<Vec<_>>())
    };
    assert_eq!(loads(&new), loads(&old));
    for fragment in ["old against new", "arena-1", "arena-2", "new / old", "late share", "bots CPU, cores"] {
        assert!(ran.out.contains(fragment), "{ran:#?}");
    }
    let runs = place.run(["runs"]);
    assert_eq!(runs.out.lines().filter(|line| line.starts_with("arena-")).count(), 2, "{runs:#?}");
    let store = store::Store::open_to_read(place.path("stepladder.db")).expect("the store");
    let new = store.find_run("arena-2").and_then(|run| store.run(&run)).expect("the new run");
    assert_eq!(
        new.labels.get("again").map(String::as_str),
        Some("arena-1"),
        "the page lays it over that one"
    );
    place.run(["again", "nobody"]).refused(3, &["there is no run `nobody`"]);
}
