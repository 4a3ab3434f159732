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
    let mut extent = Extent { others: summary.others.len(), rows: climb.rungs.len(), lines: LINES, has_gaps: true };
    loop {
        let text = laid_out_within(&summary, climb, columns, offer, extent);
        if text.lines().count() <= LINES {
            return text;
        }
        // What tells least goes first.
        match extent {
            Extent { others: 1.., .. } => extent.others -= 1,
            Extent { rows: 9.., .. } => extent.rows -= 1,
            Extent { lines: 6.., .. } => extent.lines -= 1,
            Extent { has_gaps: true, .. } => extent.has_gaps = false,
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
        text += &format!("… {left_out} more rows\n");
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
