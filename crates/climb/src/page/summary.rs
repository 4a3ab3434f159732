//! The summary of a climb, laid out for a terminal of 24 lines.

use anstyle::Style;
use console::layout::wrapped;
use ladder::{Climb, RunSummary};

use super::{laid_out, style};

/// A terminal of 24 lines, without the one of its prompt.
const LINES: usize = 23;
/// Gates that are named.
const GATES: usize = 3;

/// How much of a summary is shown.
#[derive(Clone, Copy)]
struct Extent {
    /// parts besides the three answers
    others: usize,
    /// rows of the table
    rows: usize,
    /// lines of any text
    lines: usize,
    /// whether an empty line is above each answer
    has_gaps: bool,
}

/// The summary of a climb, at most 23 lines: its verdict, the table without what says nothing, the three answers, what was asked
/// besides as far as it fits, and where the rest is. `offer`: what the user may do next.
pub fn summary(climb: &Climb, columns: Option<usize>, offer: Option<&str>) -> String {
    let summary = ladder::run_summary(climb);
    let mut extent =
        Extent { others: summary.others.len(), rows: climb.rungs.len(), lines: LINES, has_gaps: true };
    loop {
        let text = laid_out_within(&summary, climb, columns, offer, extent);
        if text.lines().count() <= LINES {
            return text;
        }
        // What tells least goes first.
        match extent {
            Extent { rows: 9.., .. } => extent.rows -= 1,
            Extent { has_gaps: true, .. } => extent.has_gaps = false,
            Extent { others: 1.., .. } => extent.others -= 1,
            Extent { lines: 6.., .. } => extent.lines -= 1,
            Extent { rows: 4.., .. } => extent.rows -= 1,
            Extent { lines: 2.., .. } => extent.lines -= 1,
            _ => return text,
        }
    }
}

fn laid_out_within(
    summary: &RunSummary,
    climb: &Climb,
    columns: Option<usize>,
    offer: Option<&str>,
    extent: Extent,
) -> String {
    let bold = Style::new().bold();
    let (verdict, paint) = (climb.verdict.name(), style(climb.verdict));
    let said = |text: &str, indent: usize| {
        let margin = " ".repeat(indent);
        format!("{margin}{}\n", shortened(&wrapped(text, indent, columns), extent.lines))
    };
    let headline = match summary.headline.rsplit_once(verdict) {
        Some((before, after)) => format!("{before}{paint}{verdict}{paint:#}{after}"),
        None => summary.headline.clone(),
    };
    let mut text = format!("\n{headline}\n");
    let (table, left_out) = summary.table(columns.unwrap_or(usize::MAX), extent.rows);
    text += &laid_out(&table, climb, columns);
    if left_out > 0 {
        let plural = if left_out == 1 { "row" } else { "rows" };
        text += &format!("… {left_out} more {plural}\n");
    }
    summary.marks.iter().for_each(|mark| text += &said(mark, 0));
    summary.gates.iter().take(GATES).for_each(|gate| text += &said(gate, 0));
    if summary.gates.len() > GATES {
        text += &format!("… {} more gates\n", summary.gates.len() - GATES);
    }
    let gap = if extent.has_gaps { "\n" } else { "" };
    for (question, answer) in &summary.answers {
        text += &format!("{gap}{bold}{question}?{bold:#}\n{}", said(answer, 2));
    }
    for (heading, words) in &summary.others[..extent.others] {
        text += &format!("{gap}{bold}{heading}{bold:#}\n{}", said(words, 2));
    }
    text += "\n";
    let rest = summary.rest(extent.others);
    let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join(", ")) };
    let all = format!("stepladder show {} --all tells more{rest}", climb.run.id);
    let below = summary.hints.iter().map(String::as_str).chain([all.as_str()]).chain(offer);
    below.for_each(|line| text += &said(line, 0));
    text
}

/// So many lines of a text at most; where there are more, the last one ends with an ellipsis.
fn shortened(text: &str, lines: usize) -> String {
    let mut kept: Vec<&str> = text.lines().take(lines).collect();
    if text.lines().count() <= lines {
        return text.to_owned();
    }
    let last = kept.pop().unwrap_or_default();
    let without_last_word = last.trim_end().rsplit_once(' ').map_or(last, |(kept, _)| kept);
    kept.iter().map(|line| format!("{line}\n")).collect::<String>() + without_last_word + " …"
}

#[cfg(test)]
mod tests {
    use ladder::testing::TrialBuilder;
    use ladder::{Asked, Criteria, Gate, LoadUnit, RunFacts, Rung, answers, rung};

    use super::*;

    /// A load of the arena whose ticks were late by this share.
    fn held(load: f64, late: f64) -> Rung {
        let objectives = vec!["ticks.late_share < 25%".parse().unwrap()];
        let terms = Criteria { objectives, ..Criteria::default() };
        let (trial, judgement) = TrialBuilder::arena(load).late(late).judged(&terms);
        rung(&trial, &judgement)
    }

    fn climb(rungs: Vec<Rung>, gates: &[Gate]) -> Climb {
        let facts = RunFacts {
            id: "arena-1".to_owned(),
            subject: "arena".to_owned(),
            capacity_unit: LoadUnit::Games,
            shared_cores: true,
            ..RunFacts::default()
        };
        answers(&facts, None, rungs, Asked { gates, ..Asked::default() })
    }

    fn plain(climb: &Climb, columns: usize) -> String {
        anstream::adapter::strip_str(&summary(climb, Some(columns), Some("an offer"))).to_string()
    }

    #[test]
    fn a_summary_fits_a_screen_whatever_there_is_to_say() {
        let long =
            "inconsistent: the late share of the ticks is 11.3 % by the server and 58.6 % by its clients; "
                .repeat(9);
        let undecided = |load| Rung {
            verdict: ladder::Verdict::Inconclusive,
            reason: Some(long.clone()),
            ..held(load, 0.02)
        };
        let many: Vec<Rung> =
            (1..60).map(|load| held(f64::from(load) * 100.0, f64::from(load) / 100.0)).collect();
        let gates: Vec<Gate> = (1..30).map(|at| format!("capacity >= {at}00000").parse().unwrap()).collect();
        let mixed: Vec<Rung> = (1..20).map(|load| undecided(f64::from(load))).collect();
        for (climb, verdict) in [
            (climb(vec![held(500.0, 0.02)], &[]), "PASS"),
            (climb(vec![held(500.0, 0.02), held(1_000.0, 0.9)], &gates), "FAIL"),
            (climb(many, &gates[..1]), "FAIL"),
            (climb(mixed, &[]), "INCONCLUSIVE"),
            (climb(Vec::new(), &[]), "INVALID"),
        ] {
            for columns in [80, 60, 40] {
                let text = plain(&climb, columns);
                let fits =
                    text.lines().count() <= LINES && text.lines().all(|line| line.chars().count() <= columns);
                assert!(fits || columns < 60 && text.lines().count() < 32, "{columns}:\n{text}");
                for part in
                    [verdict, "How many?", "Why not more?", "Can I trust it?", "an offer", "arena-1 --all"]
                {
                    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    assert!(text.contains(part), "{part} at {columns}:\n{text}");
                }
            }
        }
    }

    #[test]
    fn of_many_loads_those_next_to_the_capacity_stay() {
        let rungs = (1..60).map(|load| held(f64::from(load) * 100.0, f64::from(load) / 100.0)).collect();
        let text = plain(&climb(rungs, &[]), 80);
        let loads: Vec<u32> = text
            .lines()
            .filter(|line| line.contains(" PASS ") || line.contains(" FAIL "))
            .filter_map(|line| line.trim().split_once(' ')?.0.parse().ok())
            .collect();
        assert!(loads.contains(&2_400) && loads.contains(&2_500) && !loads.contains(&100), "{text}");
        assert!(loads.is_sorted() && text.contains(&format!("… {} more rows", 59 - loads.len())), "{text}");
    }

    #[test]
    fn columns_that_say_nothing_are_left_out_and_those_that_differ_stay() {
        let header = |rungs: Vec<Rung>| plain(&climb(rungs, &[]), 200).lines().nth(2).unwrap().to_owned();
        let mut rungs = vec![held(500.0, 0.02), held(1_000.0, 0.02)];
        let alike = header(rungs.clone());
        assert!(
            alike.contains("verdict") && !alike.contains("late") && !alike.contains("open min"),
            "{alike}"
        );
        rungs[1].connections.counts.open_min -= 1;
        assert!(header(rungs).contains("open min"));
        assert!(header(vec![held(500.0, 0.02), held(1_000.0, 0.1)]).contains("late"));
        assert!(header(vec![held(500.0, 0.02)]).contains("late"), "a single load has all its figures");
    }

    #[test]
    fn the_way_to_a_figure_of_confidence_is_said_once_below_the_answers() {
        let both = plain(&climb(vec![held(500.0, 0.02), held(1_000.0, 0.9)], &[]), 80);
        assert_eq!(both.matches("--repeat 3").count(), 1, "{both}");
        let trust = both.find("Can I trust it?").unwrap();
        assert!(both.find("--repeat 3").unwrap() > trust + both[trust..].find("\n\n").unwrap(), "{both}");
        assert!(!plain(&climb(vec![held(500.0, 0.02)], &[]), 80).contains("--repeat"));
    }
}
