//! The terminal output of a climb: the line of each finished rung, the summary at its end, and the whole results page.
//!
//! Text and figures come from `ladder`; this module only lays them out and colours them (`console::layout`).

mod summary;

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table, presets};
use console::layout::wrapped;
use ladder::wording::{show_cell, show_many, show_number, show_share};
use ladder::{AgentRows, Climb, Rung, Verdict};

use crate::profile;

pub use self::summary::summary;

fn style(verdict: Verdict) -> Style {
    let colour = match verdict {
        Verdict::Pass => AnsiColor::Green,
        Verdict::Fail => AnsiColor::Red,
        Verdict::GeneratorLimited | Verdict::Inconclusive => AnsiColor::Yellow,
        Verdict::Invalid => AnsiColor::Magenta,
    };
    Style::new().fg_color(Some(colour.into())).bold()
}

/// One line for a rung that has just been held.
pub fn rung(rung: &Rung) -> String {
    let paint = style(rung.verdict);
    let mut line = format!("{:>8} {}", show_number(rung.load), rung.load_unit);
    if let Some(cell) = &rung.cell {
        line += &format!("  {}", show_cell(cell));
    }
    line += &format!("  {paint}{}{paint:#}", rung.verdict);
    line + &words(rung)
}

/// What its line says besides its load and verdict.
pub fn words(rung: &Rung) -> String {
    if let Some(reason) = &rung.reason {
        return format!("  {reason}");
    }
    let mut line = String::new();
    if let Some(share) = rung.ticks.as_ref().and_then(|ticks| ticks.late_share) {
        line += &format!("  {} of the ticks late", show_share(share));
    }
    if rung.load_unit.counts_requests() {
        line += &format!("  {:.1} responses/s", rung.rate_per_s);
        if let Some(frames) = &rung.frames {
            line += &format!("  {:.1} frames/s", frames.rate_per_s);
        }
    }
    if let Some(books) = &rung.deliveries {
        if let Some(per_s) = books.rate_per_s {
            line += &format!("  {} deliveries/s", show_many(per_s.round() as u64));
        }
        line += &format!("  {} lost", show_many(books.sum.lost));
    }
    if let Some(reopened) = rung.connections.reopened {
        return line + &format!("  {} connections reopened", show_many(reopened));
    }
    if let Some(sessions) = &rung.sessions {
        let failed = show_many(sessions.failed);
        return line + &format!("  {} sessions at once, {failed} failed", show_number(sessions.at_once));
    }
    let connections = &rung.connections.counts;
    line + &format!("  {} of {} connections open", connections.open_min, connections.asked)
}

/// The results page: the table, the books of deliveries, the reasons, the three answers. `columns`: as wide as it may be.
pub fn results(climb: &Climb, columns: Option<usize>) -> String {
    let page = ladder::results_page(climb);
    let mut text = narrowed(&page.tables, climb, columns);
    for line in &page.marks {
        text += &format!("{}\n", wrapped(line, 2, columns));
    }
    for lines in [&page.books, &page.notes, &page.gates] {
        for line in lines {
            text += &format!("\n{}", wrapped(line, 2, columns));
        }
        if !lines.is_empty() {
            text.push('\n');
        }
    }
    let bold = Style::new().bold();
    for (question, answer) in &page.answers {
        text += &format!("\n{bold}{question}?{bold:#}\n  {}\n", wrapped(answer, 2, columns));
    }
    for (heading, words) in &page.conclusions {
        text += &part(heading, words, columns);
    }
    if let Some(AgentRows { table, below }) = &page.agents {
        text += &narrowed(std::slice::from_ref(table), climb, columns);
        below.iter().for_each(|line| text += &format!("{}\n", wrapped(line, 2, columns)));
    }
    text += &profile::table(climb, columns);
    let run = format!("run {} · stepladder show {}", climb.run.id, climb.run.id);
    text += &format!("\n{}\n", wrapped(&run, 2, columns));
    text
}

/// What a profile behind the climb found; empty without one.
pub fn profile(climb: &Climb, columns: Option<usize>) -> String {
    let found = climb.conclusions.iter().find(|one| one.id == ladder::growth::PROFILE);
    let words = found.map_or(String::new(), |one| part("Profile", &one.text, columns));
    words + &profile::table(climb, columns)
}

fn part(heading: &str, words: &str, columns: Option<usize>) -> String {
    let bold = Style::new().bold();
    format!("\n{bold}{heading}{bold:#}\n  {}\n", wrapped(words, 2, columns))
}

/// Tables without the columns that they have no space for, and how many those are.
fn narrowed(tables: &[ladder::Table], climb: &Climb, columns: Option<usize>) -> String {
    let (mut text, mut left_out) = (String::new(), 0);
    for table in tables {
        let (table, without) = table.within(columns.unwrap_or(usize::MAX));
        left_out = left_out.max(without);
        text.push('\n');
        text += &laid_out(&table, climb, columns);
    }
    if left_out > 0 {
        let plural = if left_out == 1 { "column" } else { "columns" };
        let run = &climb.run.id;
        text += &wrapped(&format!("… {left_out} more {plural}: stepladder show {run} --wide"), 2, columns);
        text.push('\n');
    }
    text
}

/// A table in columns, its verdicts in their colours.
fn laid_out(rows: &ladder::Table, climb: &Climb, columns: Option<usize>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(rows.header.iter().map(comfy_table::Cell::new));
    for row in &rows.rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
        column.set_padding((0, 2));
    }
    let bold = Style::new().bold();
    let title = rows.title.as_ref().map(|title| wrapped(title, 2, columns));
    let mut text = title.map_or(String::new(), |title| format!("{bold}{title}{bold:#}\n"));
    for (at, line) in table.lines().enumerate() {
        let rung = at.checked_sub(1).and_then(|row| climb.rungs.get(*rows.rungs.get(row)?));
        match rung.map(|rung| rung.verdict) {
            Some(verdict) => {
                let paint = style(verdict);
                let painted =
                    line.replacen(verdict.name(), &format!("{paint}{}{paint:#}", verdict.name()), 1);
                text += painted.trim_end();
            }
            None => text += line.trim_end(),
        }
        text.push('\n');
    }
    text
}
