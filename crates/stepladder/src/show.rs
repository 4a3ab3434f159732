//! Prints stored runs: their list, the differences between two of them, old against new.
//!
//! Text and figures come from `ladder`; this module only lays them out (`console::layout`).

use std::fmt::Write;

use climb::judging::JudgedRun;
use comfy_table::{ContentArrangement, Table, presets};
use console::comparing;
use console::layout::{self, columns, wrapped};
use ladder::wording::{show_cell, show_many, show_ns, show_number, show_share};
use ladder::{Difference, Rung, StoredAnswers};
use store::{RunId, RunKind, RunRecord, RunState, Store};

const NOT_STATED: &str = ladder::results_page::NOT_STATED;

/// The answers in a list of runs need at least this many columns to be shown beside the others.
const ANSWER_LEAST: usize = 30;

/// The stored runs, oldest first. `columns`: the maximum width; if the answers do not fit beside a run, they go below
/// it.
pub fn runs(store: &Store, runs: &[RunRecord], columns: Option<usize>) -> String {
    list_of_runs(&runs.iter().map(|run| row(store, run)).collect::<Vec<_>>(), columns)
}

/// Id, subject, when it began, how it ended, its answer.
pub fn row(store: &Store, run: &RunRecord) -> [String; 5] {
    let plain = |name: &String| name.chars().filter(|c| !c.is_control()).collect::<String>();
    let renamed = run.labels.get("name").map(|name| format!(" ({})", plain(name)));
    [
        run.id.to_string() + &renamed.unwrap_or_default(),
        run.head.subject.clone(),
        utc(run.head.started_unix_ms),
        state(&run.state),
        answer(store, run),
    ]
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
        RunState::Ended(_) if run.head.kind == RunKind::Bench => inflight_command::answer(store, run),
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

/// What a comparison of two stored runs cannot rule out.
pub const CAUTION: &str =
    "The two runs were not interleaved: a difference may be the machine's and not the server's.";

/// Old against new, rung by rung, at the same load; `None` where one of them holds no rung.
pub fn figures(store: &Store, old: &RunId, new: &RunId) -> anyhow::Result<Option<ladder::Table>> {
    let answers = |run| JudgedRun::whole(store, run)?.answers(None);
    let (Some(before), Some(after)) = (answers(old)?, answers(new)?) else {
        return Ok(None);
    };
    let header = ["load", "figure", old.as_str(), new.as_str(), "new / old"].map(str::to_owned).into();
    let mut table = Vec::new();
    for rung in &after.rungs {
        let is_same = |other: &&Rung| other.load == rung.load && other.cell == rung.cell;
        let Some(same) = before.rungs.iter().find(is_same) else { continue };
        let load = match &rung.cell {
            Some(cell) => format!("{}, {}", show_number(rung.load), show_cell(cell)),
            None => show_number(rung.load),
        };
        table
            .push([&load, "verdict", same.verdict.name(), rung.verdict.name(), ""].map(str::to_owned).into());
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
            // If neither run has it, there is nothing to compare.
            if was.is_none() && is.is_none() {
                continue;
            }
            let text = |value: Option<f64>| value.map_or_else(|| NOT_STATED.to_owned(), show);
            let ratio = was.zip(is).filter(|(was, _)| *was > 0.0).map(|(was, is)| format!("{:.2}", is / was));
            table.push(vec!["".to_owned(), name.to_owned(), text(was), text(is), ratio.unwrap_or_default()]);
        }
    }
    Ok(Some(ladder::Table { title: None, header, rows: table, rungs: Vec::new() }))
}

/// These `figures` for a terminal; empty where there are none. What cannot be ruled out is said below the table.
pub fn old_against_new(figures: Option<ladder::Table>) -> anyhow::Result<String> {
    let Some(figures) = figures else { return Ok(String::new()) };
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(figures.header).add_rows(figures.rows);
    layout::fit(&mut table, columns());
    let mut text = String::from("\nold against new\n");
    for line in table.lines() {
        writeln!(text, "{}", line.trim_end())?;
    }
    text += &format!("\n{}\n", wrapped(CAUTION, 0, columns()));
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
