//! The figures of several tick logs as a table, one column per log.

use std::io::{self, Write};

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use console::layout::grouped;

use super::Log;
use super::ink::{Ink, fitted, percent};

const LABEL_WIDTH: usize = 14;
const NARROWEST_COLUMN: usize = 18;

/// How many logs fit side by side on a page.
pub(super) fn abreast(width: usize) -> usize {
    (width.saturating_sub(LABEL_WIDTH) / (NARROWEST_COLUMN + 2)).max(1)
}

pub(super) fn table(logs: &[&Log], out: &mut impl Write, width: usize, ink: Ink) -> io::Result<()> {
    for page in logs.chunks(abreast(width)) {
        let column = (width.saturating_sub(LABEL_WIDTH) / page.len()).saturating_sub(2).min(30);
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(
            std::iter::once(Cell::new(""))
                .chain(page.iter().map(|log| right(fitted(&log.label, column).trim_end().to_owned()))),
        );
        for (name, of) in rows(page) {
            table.add_row(std::iter::once(Cell::new(name)).chain(page.iter().map(|log| right(of(log)))));
        }
        for (index, line) in table.lines().enumerate() {
            let line = line.trim_end();
            writeln!(out, "{}", if index == 0 { ink.bold(line) } else { line.to_owned() })?;
        }
        writeln!(out)?;
    }
    Ok(())
}

type Row = (&'static str, fn(&Log) -> String);

fn rows(logs: &[&Log]) -> Vec<Row> {
    let any = |is: fn(&Log) -> bool| logs.iter().any(|log| is(log));
    let mut rows: Vec<Row> = vec![
        ("ticks due", |log| grouped(log.summary.counts().due) + "        "),
        ("  on time", |log| of_due(log, log.summary.counts().on_time)),
        ("  over", |log| of_due(log, log.summary.counts().over)),
        ("  under", |log| of_due(log, log.summary.counts().under)),
    ];
    if any(|log| log.summary.counts().missed > 0) {
        rows.push(("  missed", |log| of_due(log, log.summary.counts().missed)));
    }
    if any(|log| log.summary.zero_ms() > 0) {
        rows.push(("0 ms apart", |log| with_share(log.summary.zero_ms(), log.summary.tick_count())));
    }
    rows.push(("interval p50", |log| ms(log.summary.quantile_ms(0.5))));
    rows.push(("  p90", |log| ms(log.summary.quantile_ms(0.9))));
    rows.push(("  p99", |log| ms(log.summary.quantile_ms(0.99))));
    rows.push(("  max", |log| ms(log.summary.max_ms())));
    rows.push(("  mean", |log| {
        log.summary.mean_ms().map_or("—".to_owned(), |mean_ms| format!("{mean_ms:.2} ms")) + "     "
    }));
    if any(|log| log.summary.busy.is_some()) {
        rows.push(("busy p99", |log| p99_of(log.summary.busy.as_ref())));
    }
    if any(|log| log.summary.lateness.is_some()) {
        rows.push(("lateness p99", |log| p99_of(log.summary.lateness.as_ref())));
    }
    rows.push(("games played", |log| log.summary.games.map_or("—".to_owned(), grouped) + "        "));
    rows.push(("length", |log| format!("{:.1} s", log.summary.span_s()) + "      "));
    if any(|log| log.summary.tick_rate_hz() != 60.0) {
        rows.push(("tick rate", |log| format!("{} Hz", log.summary.tick_rate_hz()) + "     "));
    }
    rows
}

fn of_due(log: &Log, count: u64) -> String {
    with_share(count, log.summary.counts().due)
}

fn with_share(count: u64, all: u64) -> String {
    let share = if all > 0 { percent(count as f64 / all as f64) } else { "—".to_owned() };
    format!("{} {share:>7}", grouped(count))
}

fn ms(value: Option<u64>) -> String {
    // Aligns the numbers, whatever follows them.
    value.map_or("—".to_owned(), |ms| format!("{} ms", grouped(ms))) + "     "
}

fn p99_of(distribution: Option<&measure::Distribution>) -> String {
    let p99 = distribution.and_then(measure::Distribution::summary).and_then(|summary| summary.p99);
    let text = match p99 {
        None => "—".to_owned(),
        Some(ns) if ns < 1_000_000 => format!("{} µs", ns / 1_000),
        Some(ns) => format!("{:.2} ms", ns as f64 / 1e6),
    };
    text + "     "
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
