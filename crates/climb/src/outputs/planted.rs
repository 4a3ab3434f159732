//! Climbs with known results, for testing the outputs.

use std::sync::LazyLock;

use console::exit::Exit;
use ladder::duel::{DuelAnswers, DuelFigure, DuelGate, DuelLoad, DuelStop, DuelVerdict, GateState};
use ladder::testing::TrialBuilder;
use ladder::{Asked, Climb, Criteria, Gate, GateResult, RunFacts, Rung, Verdict, answers, rung};
use measure::LoadUnit;

use crate::outputs::duel_answer::DuelAnswer;

/// Arenas at 500 games, which hold, and at 1000, which do not.
static HELD: LazyLock<[Rung; 2]> = LazyLock::new(|| {
    let terms = Criteria {
        objectives: vec!["ticks.late_share < 25%".parse().expect("an objective")],
        patience_ns: 1_000_000_000,
        ..Criteria::default()
    };
    [(500.0, 0.02), (1000.0, 0.4)].map(|(load, late)| {
        let (trial, judgement) = TrialBuilder::arena(load).late(late).judged(&terms);
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
    answers(&facts, None, rungs, Asked { gates: &gates, ..Asked::default() })
}

/// A duel of two arenas with two figures, of which one is not known yet, and these gates.
pub fn duel(gates: &[GateState], exit: Exit) -> DuelAnswer {
    let figure = |name: &str, verdict: DuelVerdict| DuelFigure {
        figure: name.to_owned(),
        verdict,
        in_words: format!("{verdict:?}").to_lowercase(),
        change: "−31 pp (−33 pp to −29 pp)".to_owned(),
        compared_as: "b - a".to_owned(),
        unit: "share".to_owned(),
        estimate: Some(-0.31),
        low: Some(-0.33),
        high: Some(-0.29),
        median_a: Some(0.4),
        median_b: Some(0.09),
        blocks: 7,
        known_after_blocks: Some(4),
        blocks_unstated: 0,
        unstated_because: None,
        infinite_at_a_only: 0,
        infinite_at_b_only: 0,
        by_block: Vec::new(),
    };
    let gate = |(at, state): (usize, &GateState)| DuelGate {
        gate: format!("ticks.late_share <= +{at}pp"),
        state: *state,
    };
    let load = DuelLoad {
        load: 500.0,
        blocks: 7,
        dropped: Vec::new(),
        figures: vec![
            figure("ticks.late_share", DuelVerdict::Smaller),
            figure("response.p99", DuelVerdict::Undecided),
        ],
        gates: gates.iter().enumerate().map(gate).collect(),
    };
    let duel = DuelAnswers {
        a: "arena -- --ticker steady".to_owned(),
        b: "arena -- --ticker catch-up".to_owned(),
        differs: Vec::new(),
        delta: 0.05,
        level: 0.95,
        blocks_most: 20,
        budget_ns: 600_000_000_000,
        seed: 7,
        ended_because: Some(DuelStop::Known),
        ended: "Ended: everything asked is known.".to_owned(),
        loads: vec![load],
    };
    DuelAnswer {
        run: climb(&[], &[]).run,
        duel,
        places: vec!["500 games".to_owned()],
        found: vec!["At 500 games, 7 blocks: ticks.late_share is less with B.".to_owned()],
        json: serde_json::json!({}),
        text: "\u{1b}[1mA\u{1b}[0m  arena\n".to_owned(),
        exit,
    }
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
