//! Foreign text on a terminal: stores, scenarios, logs and command-line arguments cannot control it.

use std::time::Duration;

use measure::{LoadUnit, MetricNames, Purpose, TrialHead};
use store::{Outcome, RunEnd, RunHead, Store};

use crate::place::Place;
use crate::terminal;

/// Sets the title, clears the screen, hides text, goes back, reorders; in seven and in eight bits.
const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[8mx\u{1b}[1;1H\r\u{8}\u{9b}2J\u{202e}\u{90}q";

/// Every text of it that is printed somewhere is evil.
fn forged() -> Place {
    let place = Place::new();
    let store = Store::open_or_create(place.path("stepladder.db")).expect("a store");
    let head = RunHead {
        name: Some(format!("bad{EVIL}")),
        subject: EVIL.to_owned(),
        scenario: Some(EVIL.to_owned()),
        arrivals: EVIL.to_owned(),
        command: EVIL.to_owned(),
        git: Some(EVIL.to_owned()),
        stepladder: EVIL.to_owned(),
        plan: serde_json::json!({ EVIL: EVIL }).to_string(),
        environment: serde_json::json!({ EVIL: EVIL }).to_string(),
        ..RunHead::default()
    };
    let writer = store.begin_run(&head, None).expect("a run");
    let names = MetricNames::new(&[EVIL], &["other"], &["counter"], &["refused"]);
    let trial = TrialHead {
        seq: 0,
        purpose: Purpose::Rung,
        load: 1.0,
        load_unit: LoadUnit::Clients,
        bots: 1,
        connections: 1,
        tick_period_ns: 0,
        cell: [(EVIL.to_owned(), EVIL.to_owned())].into(),
        metric_names: names,
    };
    writer.begin_trial(&trial, 1).expect("a trial");
    let marks = ["hold", "error", "drain"].map(|kind| {
        measure::Entry::Event(measure::Event { at_ns: 1, kind: kind.to_owned(), text: EVIL.to_owned() })
    });
    writer.append(marks.to_vec()).expect("its marks");
    writer.end_trial(2).expect("its end");
    let run = writer.id().clone();
    let end = RunEnd {
        outcome: Outcome::Broken,
        reason: Some(EVIL.to_owned()),
        ended_unix_ms: 3,
        climb: Some(serde_json::json!({ "conclusions": [{ "about": EVIL, "text": EVIL }] }).to_string()),
    };
    writer.end_run(end).expect("the end");
    store.set_label(&run, "name", Some(EVIL)).expect("a label");
    place.write("evil.yaml", &format!("subject: arena\n\"{}\": 1\n", "\\e]0;owned\\a\\e[2J\\x9b2J"));
    place.write(
        "evil.log",
        &format!(
            "{}\n",
            serde_json::json!({ "time": 1, "title": EVIL, "pid": EVIL, "hostname": EVIL, "count": 1 })
        ),
    );
    place
}

/// Whatever a terminal obeys beyond colours, and what the progress line needs to take itself back.
fn assert_harmless(text: &str, of: &[&str]) {
    let ours =
        ["0m", "1m", "2m", "4m", "31m", "32m", "33m", "34m", "35m", "36m", "K", "2K", "1A", "?25h", "?25l"];
    for (at, _) in text.match_indices('\u{1b}') {
        let rest = text[at + 1..].strip_prefix('[');
        let is_ours = rest.is_some_and(|rest| ours.iter().any(|end| rest.starts_with(end)));
        assert!(is_ours, "{of:?} prints {:?}", text[at..].chars().take(12).collect::<String>());
    }
    for evil in ["\u{1b}]", "\u{1b}[2J", "\u{1b}[8m", "\u{9b}", "\u{90}", "\u{202e}", "\u{8}", "\u{7}"] {
        assert!(!text.contains(evil), "{of:?} prints {evil:?}: {text:?}");
    }
}

#[test]
fn no_command_lets_a_text_of_others_rule_the_terminal() {
    let place = forged();
    let run = "bad-0-owned-2j-8mx-1-1h-2j-q-1";
    let id = Store::open_to_read(place.path("stepladder.db")).expect("it").runs().expect("runs").runs[0]
        .id
        .clone();
    let id = id.as_str();
    assert!(!id.is_empty(), "{run}");
    let evil_url = format!("{EVIL}://127.0.0.1:1");
    let evil_host = format!("http://{EVIL}/");
    for words in [
        vec!["runs"],
        vec!["show", id],
        vec!["show", id, "--json", "-"],
        vec!["show", EVIL],
        vec!["export", id],
        vec!["export", id, "--csv", EVIL],
        vec!["export", id, "-o", "/dev/null/\u{1b}[2J"],
        vec!["report", id, "-o", "/dev/null/\u{1b}[2J"],
        vec!["again", id],
        vec!["again", EVIL],
        vec!["runs", "--store", EVIL],
        vec!["ticks", "evil.log"],
        vec!["ticks", "evil.log", "--json", "-"],
        vec!["ticks", EVIL],
        vec!["climb", "evil.yaml"],
        vec!["climb", &evil_url],
        vec!["climb", &evil_host],
        vec!["climb", "arena", "--rungs", EVIL],
        vec!["climb", "arena", "--rungs", "1", "--", "--fault", EVIL],
        vec!["view", "--store", "evil.log"],
        vec!["man", EVIL],
        vec!["selftest", "--only", EVIL],
        vec!["bench", "--target", &evil_url],
        vec!["doctor", "--target", &evil_url],
        vec!["serve", "arena", "--listen", "127.0.0.1:0", "--fault", EVIL],
        vec![EVIL],
    ] {
        let shown = terminal::run(&place, &words, "", &[]);
        assert!(!shown.text.is_empty() || shown.code == Some(0), "{words:?}: {shown:?}");
        assert_harmless(&shown.text, &words);
    }
    // It serves until it is stopped.
    let words = ["view", EVIL];
    let shown = terminal::run_for(&place, &words, "", &[], Duration::from_secs(3));
    assert_harmless(&shown.text, &words);
    let shown = terminal::run(&place, &["runs"], "", &[]);
    assert!(shown.text.contains("\\u001b]0;owned"), "it is shown for what it is: {shown:?}");
}

#[test]
fn a_value_as_long_as_a_book_is_not_repeated() {
    let place = Place::new();
    let long = "x".repeat(50_000_000);
    for (name, text) in [
        ("value.yaml", format!("subject: arena\nladder: {{ rungs: [{long}] }}\n")),
        ("key.yaml", format!("subject: arena\n{long}: 1\n")),
        ("subject.yaml", format!("subject: {long}\n")),
    ] {
        place.write(name, &text);
        let ran = place.run(["climb", name]);
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{name}");
        assert!(ran.err.len() < 10_000, "{name}: {} bytes are said", ran.err.len());
    }
}
