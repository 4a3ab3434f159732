//! What is printed: the line of a rung, the closing page, the list of runs, old against new.
//!
//! Words and figures come from `ladder`; here they are only laid out and coloured. Nothing is wider than the terminal, or than
//! COLUMNS says where there is none; without either, sentences end at 100 columns and tables are as wide as they are.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table, presets};
use console::comparing;
use console::layout::{self, columns, wrapped};
use ladder::Difference;
use ladder::StoredAnswers;
use ladder::wording::{show_cell, show_many, show_ns, show_number, show_share};
use ladder::{Climb, Rung, Verdict};
use store::{RunId, RunKind, RunRecord, RunState, Store};

use crate::bench;
use crate::judging::JudgedRun;

const NOT_STATED: &str = ladder::closing::NOT_STATED;

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
    if let Some(reason) = &rung.reason {
        return line + &format!("  {reason}");
    }
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

/// The closing page: the table, the books of deliveries, the reasons, the three answers. `columns`: as wide as it may be.
pub fn closing(climb: &Climb, columns: Option<usize>) -> String {
    let page = ladder::closing(climb);
    let mut text = String::new();
    let mut left_out = 0;
    for table in &page.tables {
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
        text += &format!("\n{bold}{heading}{bold:#}\n  {}\n", wrapped(words, 2, columns));
    }
    let run = format!("run {} · stepladder show {}", climb.run.id, climb.run.id);
    text += &format!("\n{}\n", wrapped(&run, 2, columns));
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

/// The answers of a list of runs need at least so many columns to be read beside the others.
const ANSWER_LEAST: usize = 30;

/// The stored runs, oldest first. `columns`: as wide as it may be; where the answers find no room beside a run, they stand below
/// it.
pub fn runs(store: &Store, runs: &[RunRecord], columns: Option<usize>) -> String {
    let of_run = |run: &RunRecord| {
        let plain = |name: &String| name.chars().filter(|c| !c.is_control()).collect::<String>();
        let renamed = run.labels.get("name").map(|name| format!(" ({})", plain(name)));
        [
            run.id.to_string() + &renamed.unwrap_or_default(),
            run.head.subject.clone(),
            utc(run.head.started_unix_ms),
            state(&run.state),
            answer(store, run),
        ]
    };
    list_of_runs(&runs.iter().map(of_run).collect::<Vec<_>>(), columns)
}

fn list_of_runs(rows: &[[String; 5]], columns: Option<usize>) -> String {
    if rows.is_empty() {
        return "no runs yet; stepladder climb arena makes one\n".to_owned();
    }
    let header = ["run", "subject", "began (UTC)", "state", "answer"];
    let Some(columns) = columns else { return layout::table(header, rows.iter().cloned(), None) };
    let width_of = |at: usize| {
        let cells = rows.iter().map(|row| textwrap::core::display_width(&row[at]));
        cells.max().unwrap_or(0).max(header[at].len()) + 2
    };
    let before: usize = (0..4).map(width_of).sum();
    if before + ANSWER_LEAST <= columns {
        let broken = |row: &[String; 5]| {
            let answer = textwrap::fill(&row[4], columns - before);
            [row[0].clone(), row[1].clone(), row[2].clone(), row[3].clone(), answer]
        };
        return layout::table(header, rows.iter().map(broken), None);
    }
    let of_row = |row: &[String; 5]| {
        let head = wrapped(&row[..4].join("  "), 4, Some(columns));
        format!("{head}\n    {}\n", wrapped(&row[4], 4, Some(columns)))
    };
    rows.iter().map(of_row).collect()
}

fn state(state: &RunState) -> String {
    match state {
        RunState::Recording => "recording".to_owned(),
        RunState::Ended(end) => end.outcome.name().to_owned(),
        RunState::CutOff(_) => "interrupted (killed)".to_owned(),
    }
}

fn answer(store: &Store, run: &RunRecord) -> String {
    match &run.state {
        RunState::Ended(_) if run.head.kind == RunKind::Bench => bench::answer(store, run),
        RunState::Ended(end) => {
            let stored = end.climb.as_deref().and_then(|text| serde_json::from_str(text).ok());
            let how_many = stored.and_then(|StoredAnswers { conclusions }| conclusions.into_iter().next());
            how_many
                .map(|one| one.text)
                .or_else(|| end.reason.clone())
                .unwrap_or_else(|| NOT_STATED.to_owned())
        }
        RunState::CutOff(cut_off) => cut_off.to_string(),
        RunState::Recording => NOT_STATED.to_owned(),
    }
}

fn utc(unix_ms: u64) -> String {
    let instant = i64::try_from(unix_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    instant.map_or_else(|| NOT_STATED.to_owned(), |instant| instant.strftime("%F %T").to_string())
}

/// A figure's name, what it was, what it is, and how it is shown.
type Row = (&'static str, Option<f64>, Option<f64>, fn(f64) -> String);

/// What differs between two runs besides their figures.
pub fn differing(old: &RunId, new: &RunId, differences: &[Difference]) -> String {
    if differences.is_empty() {
        return format!("{old} and {new}: same machine, versions and settings\n");
    }
    let mut text = format!("{old} and {new} differ in\n");
    for difference in differences {
        text += &format!("  {}\n", wrapped(&comparing::as_text(difference), 4, columns()));
    }
    text
}

/// Old against new, rung by rung, at the same load.
///
/// The two were not interleaved, so the difference may be the machine's; that is said below the table.
pub fn old_against_new(store: &Store, old: &RunId, new: &RunId) -> anyhow::Result<String> {
    let answers = |run| JudgedRun::whole(store, run)?.answers(None);
    let (Some(before), Some(after)) = (answers(old)?, answers(new)?) else {
        return Ok(String::new());
    };
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["load", "figure", old.as_str(), new.as_str(), "new / old"]);
    for rung in &after.rungs {
        let is_same = |other: &&Rung| other.load == rung.load && other.cell == rung.cell;
        let Some(same) = before.rungs.iter().find(is_same) else { continue };
        let load = match &rung.cell {
            Some(cell) => format!("{}, {}", show_number(rung.load), show_cell(cell)),
            None => show_number(rung.load),
        };
        table.add_row([load.as_str(), "verdict", same.verdict.name(), rung.verdict.name(), ""]);
        let p99 =
            |summary: &Option<measure::Summary>| summary.as_ref().and_then(|one| one.p99).map(|ns| ns as f64);
        let late = |rung: &Rung| rung.ticks.as_ref().and_then(|ticks| ticks.late_share);
        let ms: fn(f64) -> String = show_ns;
        let cores: fn(f64) -> String = |cores| format!("{cores:.3}");
        let books = |rung: &Rung| rung.deliveries.clone();
        let delivery_p99 = |rung: &Rung| books(rung).and_then(|books| p99(&books.latency_ns));
        let deliveries = |rung: &Rung| books(rung).and_then(|books| books.rate_per_s);
        let lost = |rung: &Rung| books(rung).map(|books| books.sum.lost as f64);
        let many: fn(f64) -> String = |count| show_many(count.round() as u64);
        let frames = |rung: &Rung| rung.frames.as_ref().map(|frames| frames.rate_per_s);
        let tenths: fn(f64) -> String = |rate| format!("{rate:.1}");
        let rows: [Row; 10] = [
            ("late share", late(same), late(rung), show_share),
            ("response p99", p99(&same.response_ns), p99(&rung.response_ns), ms),
            ("deliveries/s", deliveries(same), deliveries(rung), many),
            ("deliveries lost", lost(same), lost(rung), many),
            ("delivery p99", delivery_p99(same), delivery_p99(rung), ms),
            ("send lag p99", p99(&same.send_lag_ns), p99(&rung.send_lag_ns), ms),
            ("rate/s", Some(same.rate_per_s), Some(rung.rate_per_s), show_number),
            ("frames/s", frames(same), frames(rung), tenths),
            ("server CPU, cores", cpu(same), cpu(rung), cores),
            (
                "bots CPU, cores",
                Some(same.worker.process.cpu_cores),
                Some(rung.worker.process.cpu_cores),
                cores,
            ),
        ];
        for (name, was, is, show) in rows {
            // What neither run has is nothing that could be compared.
            if was.is_none() && is.is_none() {
                continue;
            }
            let text = |value: Option<f64>| value.map_or_else(|| NOT_STATED.to_owned(), show);
            let ratio = was.zip(is).filter(|(was, _)| *was > 0.0).map(|(was, is)| format!("{:.2}", is / was));
            table.add_row(["".to_owned(), name.to_owned(), text(was), text(is), ratio.unwrap_or_default()]);
        }
    }
    layout::fit(&mut table, columns());
    let mut text = String::from("\nold against new\n");
    for line in table.lines() {
        writeln!(text, "{}", line.trim_end())?;
    }
    let caution =
        "The two runs were not interleaved: a difference may be the machine's and not the server's.";
    text += &format!("\n{}\n", wrapped(caution, 0, columns()));
    Ok(text)
}

fn cpu(rung: &Rung) -> Option<f64> {
    rung.subject.as_ref().map(|subject| subject.process.cpu_cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_shown_as_a_date() {
        let check = |unix_ms, expected: &str| assert_eq!(utc(unix_ms), expected);
        check(0, "1970-01-01 00:00:00");
        check(951_827_696_000, "2000-02-29 12:34:56");
        check(1_795_230_437_402, "2026-11-21 03:07:17");
    }

    #[test]
    fn a_list_of_runs_is_as_wide_as_it_may_be_and_leaves_no_answer_out() {
        let answer = "2000 games (4000 clients) held, and nothing failed: this is a lower bound".to_owned();
        let row = ["arena-17", "arena", "2026-11-26 16:44:27", "finished"].map(str::to_owned);
        let [run, subject, began, state] = row;
        let rows = vec![[run, subject, began, state, answer.clone()]; 2];
        for columns in [None, Some(100), Some(80), Some(60), Some(40)] {
            let list = list_of_runs(&rows, columns);
            let widest = list.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns.unwrap_or(usize::MAX)), "{columns:?}:\n{list}");
            for word in answer.split(' ').chain(["finished"]) {
                let count = list.split_whitespace().filter(|one| *one == word).count();
                assert!(count > 0 && count % 2 == 0, "{word} at {columns:?}:\n{list}");
            }
        }
        assert_eq!(list_of_runs(&rows, None).lines().count(), 3, "a script reads a line per run");
    }
}
