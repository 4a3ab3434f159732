//! What is printed: the line of a rung, the closing page, the list of runs, old against new.
//!
//! Words and figures come from `ladder`; here they are only laid out and coloured.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table, presets};
use ladder::StoredAnswers;
use ladder::wording::{show_cell, show_many, show_ns, show_number, show_share};
use ladder::{Climb, FigureDoc, Judgement, Reading, Verdict};
use measure::{Trial, TrialHead};
use store::{RunId, RunRecord, RunState, Store};

use crate::judging::JudgedRun;

const NOT_STATED: &str = ladder::closing::NOT_STATED;

/// Columns of the terminal, 100 where there is none.
pub fn width() -> usize {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the request writes into a winsize of ours.
    let status = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) };
    if status == 0 && size.ws_col > 0 { usize::from(size.ws_col) } else { 100 }
}

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
pub fn rung(trial: &Trial, judgement: &Judgement) -> String {
    let paint = style(judgement.verdict);
    let head = &trial.head;
    let load = show_number(head.load);
    let mut line = format!("{load:>8} {}", head.load_unit);
    if !head.cell.is_empty() {
        line += &format!("  {}", show_cell(&head.cell));
    }
    line += &format!("  {paint}{}{paint:#}", judgement.verdict);
    match &judgement.reason {
        Some(reason) => line += &format!("  {reason}"),
        None => {
            if let Some(share) = trial.ticks.as_ref().and_then(|ticks| ticks.counts.late_share()) {
                line += &format!("  {} of the ticks late", show_share(share));
            }
            for (figure, unit) in requests_figures(head) {
                if let Some(Reading::Value(per_s)) = FigureDoc::named(figure).map(|figure| figure.read(trial))
                {
                    line += &format!("  {per_s:.1} {unit}");
                }
            }
            if let Some(books) = &trial.books {
                let delivered = FigureDoc::named("deliveries.rate_per_s").map(|figure| figure.read(trial));
                if let Some(Reading::Value(per_s)) = delivered {
                    line += &format!("  {} deliveries/s", show_many(per_s.round() as u64));
                }
                line += &format!("  {} lost", show_many(books.judged.lost));
            }
            line +=
                &format!("  {} of {} connections open", trial.connections.open_min, trial.connections.asked);
        }
    }
    line
}

/// What a load of requests is asked for first.
fn requests_figures(head: &TrialHead) -> &'static [(&'static str, &'static str)] {
    match head.load_unit.as_str() {
        "requesters" | "req/s" => &[("rate_per_s", "responses/s"), ("frames.rate_per_s", "frames/s")],
        _ => &[],
    }
}

/// The closing page: the table, the books of deliveries, the reasons, the three answers.
pub fn closing(climb: &Climb) -> String {
    let page = ladder::closing(climb);
    let mut text = String::new();
    for table in &page.tables {
        text.push('\n');
        text += &laid_out(table, climb);
    }
    for lines in [&page.books, &page.notes] {
        for line in lines {
            text += &format!("\n{}", wrapped(line, 2));
        }
        if !lines.is_empty() {
            text.push('\n');
        }
    }
    let bold = Style::new().bold();
    for (question, answer) in &page.answers {
        text += &format!("\n{bold}{question}?{bold:#}\n  {}\n", wrapped(answer, 2));
    }
    for (heading, words) in &page.conclusions {
        text += &format!("\n{bold}{heading}{bold:#}\n  {}\n", wrapped(words, 2));
    }
    text += &format!("\nrun {} · stepladder show {}\n", climb.run.id, climb.run.id);
    text
}

/// A table in columns, its verdicts in their colours.
fn laid_out(rows: &ladder::Table, climb: &Climb) -> String {
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
    let mut text = rows.title.as_ref().map_or(String::new(), |title| format!("{bold}{title}{bold:#}\n"));
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

/// Breaks a sentence at the terminal's width; further lines are indented.
fn wrapped(text: &str, indent: usize) -> String {
    let room = width().clamp(60, 120) - indent;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a last line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// The stored runs, oldest first.
pub fn runs(runs: &[RunRecord]) -> String {
    if runs.is_empty() {
        return "no runs yet; stepladder climb arena makes one\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["run", "subject", "began (UTC)", "state", "answer"]);
    for run in runs {
        let plain = |name: &String| name.chars().filter(|c| !c.is_control()).collect::<String>();
        let renamed = run.labels.get("name").map(|name| format!(" ({})", plain(name)));
        table.add_row([
            run.id.to_string() + &renamed.unwrap_or_default(),
            run.head.subject.clone(),
            utc(run.head.started_unix_ms),
            state(&run.state),
            answer(&run.state),
        ]);
    }
    pad_right(&mut table);
    let mut text = String::new();
    for line in table.lines() {
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Columns begin at the margin, with two blanks between them.
fn pad_right(table: &mut Table) {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
}

fn state(state: &RunState) -> String {
    match state {
        RunState::Recording => "recording".to_owned(),
        RunState::Ended(end) => end.outcome.name().to_owned(),
        RunState::CutOff(_) => "interrupted (killed)".to_owned(),
    }
}

fn answer(state: &RunState) -> String {
    match state {
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

/// Days since 1970 to a calendar date (Howard Hinnant's algorithm), because a date is all that is wanted of a library.
fn utc(unix_ms: u64) -> String {
    let seconds = unix_ms / 1_000;
    let (days, of_day) = ((seconds / 86_400) as i64, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02}", of_day / 3_600, of_day / 60 % 60, of_day % 60)
}

/// A figure's name, what it was, what it is, and how it is shown.
type Row = (&'static str, Option<f64>, Option<f64>, fn(f64) -> String);

/// Old against new, rung by rung, at the same load.
///
/// The two were not interleaved, so the difference may be the machine's; that is said below the table.
pub fn old_against_new(store: &Store, old: &RunId, new: &RunId) -> anyhow::Result<String> {
    let answers = |run| JudgedRun::whole(store, run)?.answers();
    let (Some(before), Some(after)) = (answers(old)?, answers(new)?) else {
        return Ok(String::new());
    };
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["load", "figure", old.as_str(), new.as_str(), "new / old"]);
    for rung in &after.rungs {
        let is_same = |other: &&ladder::Rung| other.load == rung.load && other.cell == rung.cell;
        let Some(same) = before.rungs.iter().find(is_same) else { continue };
        let load = match &rung.cell {
            Some(cell) => format!("{}, {}", show_number(rung.load), show_cell(cell)),
            None => show_number(rung.load),
        };
        table.add_row([load.as_str(), "verdict", same.verdict.name(), rung.verdict.name(), ""]);
        let p99 =
            |summary: &Option<measure::Summary>| summary.as_ref().and_then(|one| one.p99).map(|ns| ns as f64);
        let late = |rung: &ladder::Rung| rung.ticks.as_ref().and_then(|ticks| ticks.late_share);
        let ms: fn(f64) -> String = show_ns;
        let cores: fn(f64) -> String = |cores| format!("{cores:.3}");
        let books = |rung: &ladder::Rung| rung.deliveries.clone();
        let delivery_p99 = |rung: &ladder::Rung| books(rung).and_then(|books| p99(&books.latency_ns));
        let deliveries = |rung: &ladder::Rung| books(rung).and_then(|books| books.rate_per_s);
        let lost = |rung: &ladder::Rung| books(rung).map(|books| books.sum.lost as f64);
        let many: fn(f64) -> String = |count| show_many(count.round() as u64);
        let frames = |rung: &ladder::Rung| rung.frames.as_ref().map(|frames| frames.rate_per_s);
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
    pad_right(&mut table);
    let mut text = String::from("\nold against new\n");
    for line in table.lines() {
        writeln!(text, "{}", line.trim_end())?;
    }
    text += "\nThe two runs were not interleaved: a difference may be the machine's and not the server's.\n";
    Ok(text)
}

fn cpu(rung: &ladder::Rung) -> Option<f64> {
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
    fn a_long_answer_is_broken_between_words() {
        let text = "word ".repeat(60);
        assert!(wrapped(&text, 2).lines().all(|line| line.chars().count() <= 120));
        assert_eq!(wrapped(&text, 2).split_whitespace().count(), 60);
    }
}
