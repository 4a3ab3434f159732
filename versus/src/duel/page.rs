//! The output of a duel: the results page, and the JSON contract, which is that of a climb plus `duel`.

use anstyle::{AnsiColor, Style};
use climb::outputs::DuelAnswer;
use console::comparing;
use console::exit::Exit;
use console::{layout, say};
use ladder::duel::{
    DuelAnswers, DuelStop, DuelVerdict, Finding, GateState, LoadStanding, Side, Standing, blocks, ended,
};
use ladder::wording::show_number;
use ladder::{Climb, Conclusion};
use measure::LoadUnit;
use serde_json::{Value, json};

use crate::duel::record::DuelRun;
use crate::duel::sides::differences;

/// A duel in the form of a climb, what was asked first, and what is known block by block. `None`: no trial of either side was
/// held.
pub fn contract(run: &DuelRun) -> anyhow::Result<Option<(Climb, DuelAnswers)>> {
    of(run, &run.standing(), run.stop())
}

fn of(
    run: &DuelRun,
    standing: &Standing,
    stop: Option<DuelStop>,
) -> anyhow::Result<Option<(Climb, DuelAnswers)>> {
    let Some(mut climb) = run.climb()? else { return Ok(None) };
    let unit = run.plan_of(Side::A).ladder.load_unit;
    let delta = run.plan.duel.delta;
    let mut conclusions: Vec<Conclusion> = told(standing)
        .map(|load| {
            Conclusion::new(
                "duel",
                &sentences(load, &place(load.load, unit), delta),
                json!({ "load": load.load }),
            )
        })
        .collect();
    conclusions.push(Conclusion::new("duel_ended", &[ended(stop)], json!({})));
    // The duel's own answer first; what a climb of the same trials would conclude follows.
    conclusions.append(&mut climb.conclusions);
    climb.conclusions = conclusions;
    let differs = differences(run.plan_of(Side::A), run.plan_of(Side::B));
    let duel = DuelAnswers::of(&run.plan.duel, standing, run.rules(), &run.plan.texts, stop, differs);
    Ok(Some((climb, duel)))
}

/// Loads about which something is known.
fn told(standing: &Standing) -> impl Iterator<Item = &LoadStanding> {
    standing.loads.iter().filter(|load| load.blocks > 0 || !load.dropped.is_empty())
}

/// `None`: no trial of either side was held.
pub fn answer(run: &DuelRun) -> anyhow::Result<Option<DuelAnswer>> {
    let (standing, stop) = (run.standing(), run.stop());
    let Some((climb, duel)) = of(run, &standing, stop)? else { return Ok(None) };
    let mut json = serde_json::to_value(&climb)?;
    if let Value::Object(fields) = &mut json {
        fields.insert("duel".to_owned(), serde_json::to_value(&duel)?);
    }
    let unit = run.plan_of(Side::A).ladder.load_unit;
    let is_of_duel = |one: &Conclusion| one.id.starts_with("duel");
    Ok(Some(DuelAnswer {
        run: climb.run,
        places: duel.loads.iter().map(|load| place(load.load, unit)).collect(),
        found: climb.conclusions.into_iter().filter(is_of_duel).map(|one| one.text).collect(),
        duel,
        json,
        text: page(run, told(&standing), unit, stop),
        exit: exit(&standing.loads, stop),
    }))
}

/// Shows a duel. `takes_stdout`: something else is written to standard output.
pub fn print(answer: &DuelAnswer, takes_stdout: bool) {
    if takes_stdout {
        say::err_own_text!("{}", answer.text);
    } else {
        say::out_text!("{}", answer.text);
    }
}

/// The exit code of a duel that ended so, over its gates and what is known of its figures.
pub fn exit(loads: &[LoadStanding], stop: Option<DuelStop>) -> Exit {
    let gates = || loads.iter().flat_map(|load| &load.gates);
    let has_looked = |load: &LoadStanding| load.findings.iter().any(|finding| finding.range.is_some());
    match stop {
        Some(DuelStop::Interrupted) => Exit::Interrupted,
        Some(DuelStop::ExitedB | DuelStop::FailedB) => Exit::NotMet,
        Some(DuelStop::ExitedA | DuelStop::FailedA) => Exit::NotMeasured,
        _ if gates().any(|gate| gate.state == GateState::NotMet) => Exit::NotMet,
        _ if gates().any(|gate| gate.state == GateState::Undecided) => Exit::NotMeasured,
        _ if loads.iter().all(has_looked) => Exit::Met,
        _ => Exit::NotMeasured,
    }
}

/// `At 500 games, 7 blocks: ticks.late_share is less with B, −31 pp (−33 pp to −29 pp).`
pub fn sentences(load: &LoadStanding, at: &str, delta: f64) -> Vec<String> {
    let mut sentences = Vec::new();
    let of = |is: fn(DuelVerdict) -> bool| load.findings.iter().filter(move |one| is(one.verdict));
    let listed =
        |findings: Vec<&Finding>| findings.iter().map(|one| one.figure.name).collect::<Vec<_>>().join(", ");
    let at = format!("At {at}, {}", blocks(load.blocks));
    let known: Vec<String> = of(|one| matches!(one, DuelVerdict::Smaller | DuelVerdict::Larger))
        .map(|one| format!("{} {} with B, {}", one.figure.name, one.verdict_text(delta), one.change_text()))
        .collect();
    let equal: Vec<&Finding> = of(|one| one == DuelVerdict::NoDifferenceLargerThanDelta).collect();
    let open: Vec<&Finding> = of(|one| one == DuelVerdict::Undecided).collect();
    if !known.is_empty() {
        sentences.push(format!("{at}: {}.", known.join("; ")));
    } else if load.blocks == 0 {
        sentences.push(format!("{at}: nothing could be compared."));
    } else {
        sentences.push(format!("{at}: no figure is known to differ."));
    }
    if !equal.is_empty() {
        sentences.push(format!(
            "No difference larger than {} % (shares: 1 percentage point): {}.",
            show_number(delta * 100.0),
            listed(equal)
        ));
    }
    if !open.is_empty() {
        sentences.push(format!("Undecided: {}.", listed(open)));
    }
    for gate in &load.gates {
        sentences.push(format!("Gate {}: {}.", gate.gate, gate.state.in_words()));
    }
    if let Some((gate, why)) = load.unmeasured_gate() {
        sentences.push(format!("{} is not measured: {why}.", gate.figure().name));
    }
    sentences
}

fn page<'a>(
    run: &DuelRun,
    loads: impl Iterator<Item = &'a LoadStanding>,
    unit: LoadUnit,
    stop: Option<DuelStop>,
) -> String {
    let bold = Style::new().bold();
    let delta = run.plan.duel.delta;
    let mut text = format!(
        "\n{bold}A{bold:#}  {}\n{bold}B{bold:#}  {}\n",
        say::in_line(&run.plan.texts[0]),
        say::in_line(&run.plan.texts[1])
    );
    for difference in differences(run.plan_of(Side::A), run.plan_of(Side::B)) {
        text += &format!("   {}\n", comparing::as_text(&difference));
    }
    for load in loads {
        text += &table(load, &place(load.load, unit), delta);
    }
    for side in Side::BOTH {
        text += &of_objectives(run, side);
    }
    text += &format!("\n{}\n", ended(stop));
    if let Some(exited) =
        matches!(stop, Some(DuelStop::ExitedA | DuelStop::ExitedB)).then(|| run.rungs().last()).flatten()
    {
        text += &format!("{}\n", exited.reason.as_deref().map_or(String::new(), say::in_line));
    }
    text += HOW_TO_READ;
    text + &format!("run {} · stepladder show {}\n", run.id(), run.id())
}

/// How to read the table above it.
pub const HOW_TO_READ: &str = "Medians over the blocks; the change is the mean within blocks, the interval holds at whichever block the duel ended.\n";

/// A load of a duel of servers, for a heading.
fn place(load: f64, unit: LoadUnit) -> String {
    format!("{} {unit}", show_number(load))
}

/// Figures, gates and dropped blocks under one load.
pub fn table(load: &LoadStanding, at: &str, delta: f64) -> String {
    let bold = Style::new().bold();
    let dropped = match load.dropped.len() {
        0 => String::new(),
        count => format!(", {count} dropped"),
    };
    let mut text = format!("\n{bold}{at}{bold:#}, {}{dropped}\n", blocks(load.blocks));
    let rows = load.findings.iter().map(|one| {
        let value = |value: Option<f64>| match value {
            Some(value) => one.figure.unit.show(value),
            None => "—".to_owned(),
        };
        [
            one.figure.name.to_owned(),
            value(one.medians.0),
            value(one.medians.1),
            one.change_text(),
            one.verdict_text(delta),
        ]
    });
    if !load.findings.is_empty() {
        text += &layout::columns_of_table(["figure", "A", "B", "B against A (95 %)", "with B"], rows);
    }
    for gate in &load.gates {
        let word = gate.state.in_words();
        let colour = match gate.state {
            GateState::Met => AnsiColor::Green,
            GateState::NotMet => AnsiColor::Red,
            GateState::Undecided => AnsiColor::Yellow,
        };
        let paint = Style::new().fg_color(Some(colour.into())).bold();
        text += &format!("gate {}: {paint}{word}{paint:#}\n", gate.gate);
    }
    if let Some((gate, why)) = load.unmeasured_gate() {
        text += &format!("{} is not measured: {why}\n", gate.figure().name);
    }
    for why in &load.dropped {
        text += &format!("a block was dropped, {}\n", say::in_line(why));
    }
    text
}

/// How often a side failed its objectives, which a duel does not judge by.
fn of_objectives(run: &DuelRun, side: Side) -> String {
    let of_side = || run.rungs().iter().filter(|rung| rung.cell.as_ref().and_then(Side::of) == Some(side));
    let failed = of_side().filter(|rung| rung.verdict == ladder::Verdict::Fail);
    let reasons: Vec<&str> = failed.filter_map(|rung| rung.reason.as_deref()).collect();
    match reasons.last() {
        None => String::new(),
        Some(last) => format!(
            "\n{} failed its objectives in {} of {} trials: {}\n",
            side.name(),
            reasons.len(),
            of_side().count(),
            say::in_line(last)
        ),
    }
}

/// One line after a block: what is known by now.
pub fn after_block(load: &LoadStanding, unit: LoadUnit, blocks_most: usize) -> String {
    let mut line =
        format!("{:>8} {unit}  block {} of at most {blocks_most}", show_number(load.load), load.blocks);
    for finding in load.findings.iter().filter(|finding| finding.centre.is_some()) {
        line += &format!("  {} {}", finding.figure.name, finding.change_text());
    }
    line
}

/// One line of a trial that does not count.
pub fn dropped(side: Side, why: &str) -> String {
    format!("{} was not measured fairly, and its block is dropped: {why}", side.name())
}
