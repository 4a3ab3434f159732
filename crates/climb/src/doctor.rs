//! `stepladder doctor`: what this machine can do, one finding per line, each with a remedy if the value is poor.
//!
//! The only thing it changes is this process's soft limit on descriptors. The checks take about a second; measuring
//! this program itself over each protocol (`own`) takes about ten.
//! Units are in the figures' names; shares are in [0, 1].

mod examine;
mod finding;
mod grid;
mod own;
mod timing;

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;

use anstyle::{AnsiColor, Style};
use console::say;
use serde_json::{Value, json};

pub use examine::examine;
pub use finding::{Finding, Grade};

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// the machine, and this program on it
    Machine,
    /// what loads on data grids need, and nothing else
    Grid,
}

/// Looks at what `scope` says, and writes what it finds, as text or as JSON. With a `target`, the link to it too.
pub fn report(
    out: &mut impl Write,
    json: bool,
    width: usize,
    colour: bool,
    (scope, target): (Scope, Option<SocketAddr>),
) -> io::Result<()> {
    let mut findings = match scope {
        Scope::Machine => machine(),
        Scope::Grid => grid::examine(),
    };
    findings.extend(target.map(own::link));
    if json { writeln!(out, "{:#}", to_json(&findings)) } else { show(&findings, out, width, colour, scope) }
}

/// The machine, and what this program can do on it.
fn machine() -> Vec<Finding> {
    let mut findings = examine();
    let is_watched = io::stderr().is_terminal();
    findings.extend(own::weigh(|what| {
        if is_watched {
            say::in_place(&format!("weighing this program: {what} …"));
        }
    }));
    if is_watched {
        say::in_place("");
    }
    findings
}

/// The findings as JSON: `{"schema", "environment", "findings": [{"name", "grade", "text", "remedy", "figures"}]}`.
pub fn to_json(findings: &[Finding]) -> Value {
    let findings: Vec<Value> = findings
        .iter()
        .map(|finding| {
            json!({
                "name": finding.name,
                "grade": grade_name(finding.grade),
                "text": finding.text,
                "remedy": finding.remedy,
                "figures": finding.figures,
            })
        })
        .collect();
    json!({ "schema": 1, "environment": watch::environment(), "findings": findings })
}

/// The findings as lines of at most `width` columns: a mark, the name, what was found, and below it the remedy.
pub fn show(
    findings: &[Finding],
    out: &mut impl Write,
    width: usize,
    colour: bool,
    scope: Scope,
) -> io::Result<()> {
    let paint =
        |style: Style, text: &str| if colour { format!("{style}{text}{style:#}") } else { text.to_owned() };
    let names = findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
    let indent = names + 4;
    for finding in findings {
        let (mark, ink) = match finding.grade {
            Grade::Good => ("✓", AnsiColor::Green),
            Grade::Note => ("·", AnsiColor::Cyan),
            Grade::Poor => ("✗", AnsiColor::Red),
        };
        let mark = paint(Style::new().bold().fg_color(Some(ink.into())), mark);
        let mut lines = wrapped(&finding.text, width.saturating_sub(indent)).into_iter();
        let first = lines.next().unwrap_or_default();
        writeln!(
            out,
            "{mark} {}  {first}",
            paint(Style::new().bold(), &format!("{:<names$}", finding.name))
        )?;
        for line in lines {
            writeln!(out, "{:indent$}{line}", "")?;
        }
        for (index, line) in finding
            .remedy
            .iter()
            .flat_map(|remedy| wrapped(remedy, width.saturating_sub(indent + 2)))
            .enumerate()
        {
            let arrow = if index == 0 { "→" } else { " " };
            writeln!(out, "{:indent$}{} {line}", "", paint(Style::new().fg_color(Some(ink.into())), arrow))?;
        }
    }
    let poor = findings.iter().filter(|finding| finding.grade == Grade::Poor).count();
    let sum = match (poor, scope) {
        (0, Scope::Grid) => "all that loads on data grids need is here".to_owned(),
        (0, Scope::Machine) => "nothing stands in the way of measuring here".to_owned(),
        (1, _) => "1 finding limits what can be measured here".to_owned(),
        (count, _) => format!("{count} findings limit what can be measured here"),
    };
    writeln!(out, "\n{sum}")
}

fn grade_name(grade: Grade) -> &'static str {
    match grade {
        Grade::Good => "good",
        Grade::Note => "note",
        Grade::Poor => "poor",
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted() -> Vec<Finding> {
        vec![
            Finding::new("cores", Grade::Good, "8 of 8".to_owned(), json!({ "cores": 8 })),
            Finding::new("throttling", Grade::Note, "not reported by this machine".to_owned(), json!({})),
            Finding::new(
                "descriptors",
                Grade::Good,
                "1,024 per table, which is few for a climb".to_owned(),
                json!({}),
            )
            .with_remedy("raise the hard limit in /etc/security/limits.conf, then log in again"),
        ]
    }

    #[test]
    fn each_finding_is_a_line_with_its_remedy_below() {
        let mut out = Vec::new();
        show(&planted(), &mut out, 60, false, Scope::Machine).unwrap();
        let text = String::from_utf8(out).unwrap();
        insta::assert_snapshot!(text);
        assert!(text.lines().all(|line| line.chars().count() <= 60));
    }

    #[test]
    fn programs_get_the_figures() {
        let found = to_json(&planted());
        assert_eq!(found["findings"][0]["figures"]["cores"], json!(8));
        assert_eq!(found["findings"][2]["grade"], json!("poor"));
        assert!(found["environment"]["kernel"].is_string());
    }

    #[test]
    fn this_machine_can_be_examined() {
        let findings = examine();
        for name in
            ["cores", "memory", "descriptors", "ports", "clock", "timers", "stalls", "noise", "disturbance"]
        {
            assert!(findings.iter().any(|finding| finding.name == name), "{name}");
        }
        for finding in &findings {
            assert_eq!(finding.grade == Grade::Poor, finding.remedy.is_some(), "{finding:?}");
        }
        let mut out = Vec::new();
        show(&findings, &mut out, 80, false, Scope::Machine).unwrap();
        println!("{}", String::from_utf8(out).unwrap());
    }
}
