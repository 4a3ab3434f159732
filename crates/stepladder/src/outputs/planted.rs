//! Climbs with known results, for the tests of their outputs.

use std::sync::LazyLock;

use ladder::scene::Scene;
use ladder::{Asked, Climb, Gate, GateResult, RunFacts, Rung, Terms, Verdict, answers, rung};
use measure::LoadUnit;

/// Arenas at 500 games, which hold, and at 1000, which do not.
static HELD: LazyLock<[Rung; 2]> = LazyLock::new(|| {
    let terms = Terms {
        objectives: vec!["ticks.late_share < 25%".parse().expect("an objective")],
        patience_ns: 1_000_000_000,
        ..Terms::default()
    };
    [(500.0, 0.02), (1000.0, 0.4)].map(|(load, late)| {
        let (trial, judgement) = Scene::arena(load).late(late).judged(&terms);
        rung(&trial, &judgement)
    })
});

/// One load that held and one that did not, with a rung more for each further verdict. `gates` ask for the capacity.
pub fn climb(gates: &[&str], more: &[Verdict]) -> Climb {
    let gates: Vec<Gate> = gates.iter().map(|gate| gate.parse().expect("a gate")).collect();
    let mut rungs = HELD.to_vec();
    for (at, verdict) in more.iter().enumerate() {
        let mut rung = Rung { load: 2000.0 + at as f64, ..HELD[0].clone() };
        rung.verdict = *verdict;
        rung.reason = (*verdict != Verdict::Pass).then(|| "planted".to_owned());
        rungs.push(rung);
    }
    let facts = RunFacts {
        id: "arena-7".to_owned(),
        subject: "arena".to_owned(),
        command: "stepladder climb arena".to_owned(),
        stepladder: "0.1.0".to_owned(),
        started_unix_ms: 1_795_000_000_000,
        capacity_unit: LoadUnit::Games,
        ..RunFacts::default()
    };
    answers(&facts, None, rungs, Asked { search: None, gates: &gates, ended_early: None })
}

/// A climb in which every text that others can write is `text`.
pub fn climb_saying(text: &str) -> Climb {
    let mut climb = climb(&[], &[]);
    climb.run.subject = text.to_owned();
    climb.run.name = Some(text.to_owned());
    climb.run.command = text.to_owned();
    climb.rungs[1].reason = Some(text.to_owned());
    climb.rungs[1].error_samples =
        vec![ladder::ErrorSample { cause: "wrong".to_owned(), text: text.to_owned() }];
    climb.gates = vec![GateResult { gate: text.to_owned(), met: Some(false), found: text.to_owned() }];
    climb.conclusions[1].text = text.to_owned();
    climb
}

/// Words that break out of markup, terminals and attributes.
pub const HOSTILE: [&str; 14] = [
    "plain ü ☃",
    "]]><x/>&lt; \" ' <!-- --> &#0;",
    "\u{0}\u{1b}[31mred\u{1b}[0m\u{8}\u{9b}2J\u{fffe}\u{ffff}",
    "two\nlines\r\n\n# heading",
    "| a | b |",
    "`code` ``` **bold** _x_ ~~y~~ $z$",
    "<script>alert(1)</script><img src=x onerror=y>",
    "@octocat and @org/team, someone@example.org",
    "#1 GH-1 owner/repo#2",
    "[a](https://example.org) ![b](http://c) <https://d.example> www.example.org https://e.example",
    "- item",
    "1. item",
    "===",
    "\\<b\\> \\",
];
