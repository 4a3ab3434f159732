//! `stepladder mark`: what a user tells a run that goes on.

use crate::main_job::assert_valid;
use crate::place::{Place, eventually};

#[test]
fn a_mark_stands_in_the_load_that_was_held_and_wherever_events_are_shown() {
    let place = Place::new();
    let words = ["--rungs", "2", "--hold", "4s", "--settle", "200ms", "--no-calibration"];
    let outputs = ["--ndjson", "run.ndjson", "--json", "run.json", "--markdown", "run.md"];
    let climb = place.start([&["climb", "arena"][..], &words, &outputs].concat());
    let lines = || std::fs::read_to_string(place.path("run.ndjson")).unwrap_or_default();
    eventually("the hold", || lines().contains(r#""kind":"hold""#).then_some(()));
    let told = place.run(["mark", "deployed <b>1.4</b> @all"]);
    assert_eq!(told.code, 0, "{told:#?}");
    assert!(
        told.out.starts_with("run arena-1: marked at ") && told.out.contains(" s of 2 games: "),
        "{told:#?}"
    );
    place.run(["mark", "x", "arena-2"]).refused(3, &["there is no run `arena-2`"]);
    let ran = climb.finish();
    assert!(ran.code <= 2, "{ran:#?}");
    // In the output of the climb itself, as soon as it was committed.
    let said = ran.err.lines().position(|line| line.contains("marked at ") && line.contains("deployed"));
    let judged = ran.err.lines().position(|line| line.contains("connections open"));
    assert!(said < judged && said.is_some(), "{ran:#?}");
    let json = place.json("run.json");
    assert_valid(&json);
    let mark = &json["rungs"][0]["marks"][0];
    assert_eq!(mark["text"], "deployed <b>1.4</b> @all");
    let at_s = mark["at_ns"].as_f64().expect("an instant") / 1e9;
    assert!(at_s > 0.0 && told.out.contains(&format!("marked at {at_s:.1} s")), "{at_s} in {told:#?}");
    assert_eq!(lines().matches(r#""kind":"mark","text":"deployed"#).count(), 1);
    assert_eq!(place.run(["export", "arena", "--ndjson", "-"]).out, lines());
    let shown = place.run(["show", "arena", "--all"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(&format!("marked at {at_s:.1} s: deployed")), "{shown}");
    let markdown = std::fs::read_to_string(place.path("run.md")).expect("the Markdown");
    assert!(
        markdown.contains("marked at") && !markdown.contains("<b>") && !markdown.contains(" @all"),
        "{markdown}"
    );
    assert_eq!(place.run(["runs"]).code, 0, "the store is sound");
    place.run(["mark", "too late"]).refused(3, &["no run is being recorded", "--store FILE"]);
    place.run(["mark", "too late", "arena"]).refused(2, &["run arena-1 is not being recorded"]);
}

#[test]
fn a_mark_where_several_runs_go_on_asks_for_the_name_of_one() {
    let place = Place::new();
    let start = |name: &str| {
        let words = ["climb", "arena", "--rungs", "2", "--hold", "60s", "--no-calibration"];
        place.start([&words[..], &["--name", name]].concat())
    };
    let (one, two) = (start("one"), start("two"));
    eventually("both runs", || (place.run(["runs"]).out.matches("recording").count() == 2).then_some(()));
    place
        .run(["mark", "which?"])
        .refused(3, &["2 runs are being recorded", "one-1", "two-1", "stepladder mark TEXT "]);
    let told = place.run(["mark", "this one", "two"]);
    assert!(told.code == 0 && told.out.starts_with("run two-1: marked at "), "{told:#?}");
    for climb in [one, two] {
        climb.signal(libc::SIGTERM);
        climb.finish();
    }
}
