//! The table of cases for people: `selftest --list`, and the same in docs/method/selftest.md.

use crate::cases::{Case, Machine, When};

/// Until the hold begins: start of the server, ramp, settle time, the wait for a whole second.
const BEFORE_S: f64 = 3.0;
/// Connections end and the tick log tells its last second.
const AFTER_S: f64 = 3.0;
/// A hold that is disturbed and not met goes on, and a dead server is waited for.
const MORE_S: f64 = 5.0;

/// How long these cases take, s; more on a machine that others disturb.
pub fn expected_seconds(cases: &[&Case]) -> f64 {
    let seconds = |case: &&Case| {
        let is_plain = case.faults.is_empty() && case.machine == Machine::Quiet;
        let rungs = if case.is_about_causes() { 2.0 } else { 1.0 };
        rungs * (BEFORE_S + case.hold_s() as f64 + AFTER_S) + if is_plain { 0.0 } else { MORE_S }
    };
    cases.iter().map(seconds).sum()
}

const HEADER: [&str; 5] = ["subject", "planted", "expected", "never", "option"];

fn row(case: &Case) -> [String; 5] {
    [
        case.subject.name().to_owned(),
        case.what(),
        case.expected_text(),
        case.never.iter().map(|verdict| verdict.name()).collect::<Vec<_>>().join(", "),
        match case.when {
            When::Quick => "--quick",
            When::Else => "",
            When::Long => "--long",
        }
        .to_owned(),
    ]
}

/// The table as Markdown.
pub fn markdown(cases: &[&Case]) -> String {
    let mut text = format!("| {} |\n|{}\n", HEADER.join(" | "), "---|".repeat(HEADER.len()));
    for case in cases {
        let [subject, what, expected, never, option] = row(case);
        let option = if option.is_empty() { option } else { format!("`{option}`") };
        text.push_str(&format!("| {subject} | `{what}` | {expected} | {never} | {option} |\n"));
    }
    text
}

/// The table in columns.
pub fn plain(cases: &[&Case]) -> String {
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(cases.iter().map(|case| row(case)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADER.len()).map(width).collect();
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
