//! The results page: a row per rung, its delivery accounts, why the rungs that did not pass did not, and the three
//! answers. Text without colours.
//!
//! A sweep has a table per cell, and after the answers its findings in words.
//! Built from a `Climb` alone, so a live run, a replayed one and a JSON file give the same page.

mod summary;
mod sweep;

use std::fmt;

use measure::{LoadUnit, Summary};

use crate::agents::{self, AgentRows};
use crate::contract::{Climb, Mark, Rung};
use crate::disturbance::Disturbance;
use crate::gate::GateResult;
use crate::judge::Verdict;
use crate::wording::{show_bytes, show_many, show_ns, show_number, show_share};
pub use summary::{RunSummary, run_summary};

/// What is shown for a figure that may not be stated.
pub const NOT_STATED: &str = "—";

/// Columns that go first where a table is wider than it may be: those that tell least of the server's users. What is not
/// named here stays.
const LEAST_TELLING_FIRST: [&str; 29] = [
    "round trip",
    "workers",
    "CPU",
    "clock ±",
    "mem",
    "bots CPU",
    "mem",
    "pace",
    "serv. p50",
    "tick p50",
    "deliv. p50",
    "resp. p50",
    "p50",
    "open min",
    "reopened",
    "rate/s",
    "frames/s",
    "speed-up",
    "resp./s",
    "lag p99",
    "server CPU",
    "serv. p99",
    "tick p99",
    "resp. mean",
    "deliv./s",
    "failed",
    "unread",
    "lost",
    "late",
];
/// Between two columns.
const GAP: usize = 2;
/// Behind the verdict of a rung that passed although something disturbed it.
const DISTURBED: char = '*';

/// The results page in parts, for callers that colour or lay it out; `Display` is the plain text.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultsPage {
    /// one; of a sweep one per cell
    pub tables: Vec<Table>,
    /// the meaning of a mark in the tables
    pub marks: Vec<String>,
    /// the books of deliveries: a line per rung, and one more where some receivers are judged separately
    pub books: Vec<String>,
    /// one line per rung that did not pass, or of which more must be known: load, verdict, reason; of a sweep the first of each
    /// cell
    pub notes: Vec<String>,
    /// each gate, whether it was met, and what was found
    pub gates: Vec<String>,
    /// question and answer
    pub answers: Vec<(String, String)>,
    /// what a sweep shows: heading and words
    pub conclusions: Vec<(String, String)>,
    /// how each agent did, where agents made the loads
    pub agents: Option<AgentRows>,
}

/// Some rungs as rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// the cell of a sweep; which agents the rows are
    pub title: Option<String>,
    /// names of the columns; columns that no rung could fill are left out
    pub header: Vec<String>,
    /// one row per rung, or per agent of one; as many cells as the header
    pub rows: Vec<Vec<String>>,
    /// which of the climb's rungs each row is; empty where rows are no rungs
    pub rungs: Vec<usize>,
}

/// The results page of a run.
pub fn results_page(climb: &Climb) -> ResultsPage {
    let is_sweep = climb.rungs.iter().any(|rung| rung.cell.is_some());
    let unit = climb.rungs.first().map_or(climb.capacity.unit, |rung| rung.load_unit);
    let (tables, notes) = if is_sweep {
        (sweep::tables(climb), sweep::notes(climb))
    } else {
        let all: Vec<usize> = (0..climb.rungs.len()).collect();
        (vec![table(climb, None, all, unit, &columns())], notes(&climb.rungs))
    };
    let worded = climb.conclusions.iter().map(|part| (part.id.as_str(), part.text.clone()));
    let (mut answers, mut conclusions) = (Vec::new(), Vec::new());
    for (id, text) in worded {
        match question(id) {
            Some(question) => answers.push((question.to_owned(), text)),
            None => conclusions.push((heading(id), text)),
        }
    }
    let books = climb.rungs.iter().flat_map(books).collect();
    let gates = climb.gates.iter().map(gate).collect();
    let agents = agents::rows(climb);
    ResultsPage { tables, marks: marks(&climb.rungs), books, notes, gates, answers, conclusions, agents }
}

/// What was met although something took the CPU is met: a mark says so, and one line what the mark is.
fn marks(rungs: &[Rung]) -> Vec<String> {
    let share = |rung: &&Rung| rung.disturbed_share.unwrap_or(0.0);
    let most = rungs.iter().filter(|rung| is_marked(rung)).max_by(|a, b| share(a).total_cmp(&share(b)));
    let Some(found) = most.and_then(|rung| rung.disturbance.as_ref()) else { return Vec::new() };
    let share = show_share(found.share().unwrap_or(1.0));
    vec![format!(
        "{DISTURBED} up to {share} of a hold was disturbed: {}; what was met despite it is met",
        found.culprit()
    )]
}

/// What else must be known of a rung: the words of its disturbance stand at the end of its remark.
fn remark_without_disturbance(rung: &Rung) -> Option<&str> {
    let remark = rung.remark.as_deref()?;
    let disturbed = rung.disturbance.as_ref().and_then(Disturbance::in_words);
    let others = disturbed.and_then(|words| remark.find(&words)).map_or(remark, |at| &remark[..at]);
    Some(others.trim_end_matches("; ")).filter(|others| !others.is_empty())
}

fn is_marked(rung: &Rung) -> bool {
    rung.verdict == Verdict::Pass && rung.disturbance.is_some()
}

/// `PASS*`
fn verdict(rung: &Rung) -> Option<String> {
    let mark = if is_marked(rung) { DISTURBED.to_string() } else { String::new() };
    Some(format!("{}{mark}", rung.verdict))
}

/// What must be known of each rung; loads that passed with the same words share a line.
fn notes(rungs: &[Rung]) -> Vec<String> {
    let mut notes: Vec<(Vec<&Rung>, String)> = Vec::new();
    for rung in rungs {
        let Some(words) = words_of_note(rung) else { continue };
        match notes.last_mut() {
            Some((alike, said))
                if *said == words && rung.verdict == Verdict::Pass && alike[0].verdict == rung.verdict =>
            {
                alike.push(rung);
            }
            _ => notes.push((vec![rung], words)),
        }
    }
    let line = |(rungs, words): (Vec<&Rung>, String)| {
        let loads: Vec<String> = rungs.iter().map(|rung| show_number(rung.load)).collect();
        let unit =
            if let [one] = &*rungs { one.load_unit.text_of(one.load) } else { rungs[0].load_unit.text() };
        format!("{} {unit}: {} — {words}", loads.join(", "), rungs[0].verdict)
    };
    notes.into_iter().map(line).collect()
}

/// Rows of these rungs, without the columns that none of them fills. The first column is the load, in its unit.
fn table<C: Fn(&Rung) -> Option<String>>(
    climb: &Climb,
    title: Option<String>,
    rungs: Vec<usize>,
    unit: LoadUnit,
    columns: &[(&str, C)],
) -> Table {
    let filled = |rung: &usize| -> Vec<Option<String>> {
        columns.iter().map(|(_, cell)| cell(&climb.rungs[*rung])).collect()
    };
    let cells: Vec<Vec<Option<String>>> = rungs.iter().map(filled).collect();
    let is_filled = |at: &usize| cells.iter().any(|row| row[*at].is_some());
    let kept: Vec<usize> = (0..columns.len()).filter(is_filled).collect();
    let name = |at: usize| if at == 0 { unit.text() } else { columns[at].0 };
    let cell = |row: &[Option<String>], at: usize| row[at].clone().unwrap_or_else(|| NOT_STATED.to_owned());
    Table {
        title,
        header: kept.iter().map(|&at| name(at).to_owned()).collect(),
        rows: cells.iter().map(|row| kept.iter().map(|&at| cell(row, at)).collect()).collect(),
        rungs,
    }
}

type Column = (&'static str, fn(&Rung) -> Option<String>);

fn ns(summary: &Option<Summary>, of: fn(&Summary) -> Option<u64>) -> Option<String> {
    Some(show_ns(of(summary.as_ref()?)? as f64))
}

/// For requests, both are shown if they differ by the time spent waiting for a connection.
fn service_ns(rung: &Rung, of: fn(&Summary) -> Option<u64>) -> Option<String> {
    is_of_requests(rung).then(|| ns(&rung.service_ns, of))?
}

fn session_ns(rung: &Rung, of: fn(&Summary) -> Option<u64>) -> Option<String> {
    rung.sessions?;
    rung.operations_ns.get("session").and_then(of).map(|ns| show_ns(ns as f64))
}

fn is_of_requests(rung: &Rung) -> bool {
    rung.load_unit.counts_requests()
}

/// Requests that had no right answer.
fn failed(rung: &Rung) -> u64 {
    rung.failed + rung.lost + rung.not_sent + rung.unanswered_at_stop
}

fn columns() -> Vec<Column> {
    fn share(share: Option<f64>) -> Option<String> {
        share.map(show_share)
    }
    vec![
        ("load", |rung| Some(show_number(rung.load))),
        ("verdict", verdict),
        ("late", |rung| share(rung.ticks.as_ref()?.late_share)),
        ("tick p50", |rung| ns(&rung.ticks.as_ref()?.interval_ns, |summary| summary.p50)),
        ("tick p99", |rung| ns(&rung.ticks.as_ref()?.interval_ns, |summary| summary.p99)),
        ("rate/s", |rung| Some(show_number(rung.rate_per_s.round()))),
        ("pace", |rung| share(rung.pace_share)),
        ("deliv./s", |rung| Some(show_many(rung.deliveries.as_ref()?.rate_per_s?.round() as u64))),
        ("lost", |rung| Some(show_many(rung.deliveries.as_ref()?.sum.lost))),
        ("unread", |rung| {
            let unread = rung.deliveries.as_ref()?.sum.unread;
            (unread > 0).then(|| show_many(unread))
        }),
        ("deliv. p50", |rung| ns(&rung.deliveries.as_ref()?.latency_ns, |summary| summary.p50)),
        ("deliv. p99", |rung| ns(&rung.deliveries.as_ref()?.latency_ns, |summary| summary.p99)),
        ("resp. p50", |rung| ns(&rung.response_ns, |summary| summary.p50)),
        ("resp. p99", |rung| ns(&rung.response_ns, |summary| summary.p99)),
        ("serv. p50", |rung| service_ns(rung, |summary| summary.p50)),
        ("serv. p99", |rung| service_ns(rung, |summary| summary.p99)),
        ("at once", |rung| Some(format!("{:.1}", rung.sessions?.at_once))),
        ("session p50", |rung| session_ns(rung, |summary| summary.p50)),
        ("session p99", |rung| session_ns(rung, |summary| summary.p99)),
        ("failed", |rung| is_of_requests(rung).then(|| show_many(failed(rung)))),
        ("frames/s", |rung| Some(format!("{:.1}", rung.frames.as_ref()?.rate_per_s))),
        ("lag p99", |rung| ns(&rung.send_lag_ns, |summary| summary.p99)),
        ("reopened", |rung| rung.connections.reopened.map(show_many)),
        ("open min", |rung| {
            // If the server may close connections between requests, or sessions come and go, the count means nothing.
            if rung.connections.reopened.is_some() || rung.sessions.is_some() {
                return None;
            }
            Some(format!("{}/{}", rung.connections.counts.open_min, rung.connections.counts.asked))
        }),
        ("server CPU", |rung| Some(format!("{:.2}", rung.subject.as_ref()?.process.cpu_cores))),
        ("mem", |rung| Some(show_bytes(rung.subject.as_ref()?.process.rss_bytes as f64))),
        ("bots CPU", |rung| Some(format!("{:.2}", rung.worker.process.cpu_cores))),
        ("mem", |rung| Some(show_bytes(rung.worker.process.rss_bytes as f64))),
    ]
}

fn books(rung: &Rung) -> Vec<String> {
    let Some(books) = &rung.deliveries else { return Vec::new() };
    let load = format!("{} {}", show_number(rung.load), rung.load_unit);
    let sum = &books.sum;
    let owed = if sum.owed_min == sum.owed_max {
        show_many(books.owed)
    } else {
        format!("{} to {}", show_many(sum.owed_min), show_many(sum.owed_max))
    };
    let mut parts = vec![format!("{owed} deliveries owed"), format!("{} lost", show_many(sum.lost))];
    if sum.unread > 0 {
        parts.push(format!("{} unread because the bots had no time", show_many(sum.unread)));
    }
    if books.drops_are_told {
        parts.push(format!("{} dropped", show_many(sum.dropped)));
        parts.push(format!("{} waiting at the end", show_many(sum.in_flight)));
        parts.push(format!("residual {}", sum.residual));
    }
    for (count, what) in [
        (sum.late, "late"),
        (sum.duplicated, "came twice"),
        (sum.reordered, "out of order"),
        (sum.unowed, "not owed"),
        (books.unknown_messages, "with an unknown sender or number"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", show_many(count)));
        }
    }
    let slowest = books.slowest.as_ref().map_or(String::new(), |slowest| {
        format!(
            "; slowest receiver {}: mean {}, max {}",
            slowest.receiver,
            show_ns(slowest.latency_mean_ns),
            show_ns(slowest.latency_max_ns as f64)
        )
    });
    let mut lines = vec![format!("{load}: {}{slowest}", parts.join(", "))];
    if let Some(excluded) = &books.excluded {
        lines.push(format!(
            "{load}, excluded: {} receivers, {} owed, {} delivered, {} dropped, {} waiting at the end",
            excluded.receivers,
            show_many(excluded.owed_max),
            show_many(excluded.delivered),
            show_many(excluded.dropped),
            show_many(excluded.in_flight),
        ));
    }
    lines
}

fn note(rung: &Rung) -> Option<String> {
    notes(std::slice::from_ref(rung)).pop()
}

fn words_of_note(rung: &Rung) -> Option<String> {
    let remark = match rung.verdict {
        Verdict::Fail => rung.remark.as_deref(),
        // Its mark, or the reason why it was not judged, already says that it was disturbed.
        _ => remark_without_disturbance(rung),
    };
    let said = [rung.reason.as_deref(), remark].into_iter().flatten().map(str::to_owned);
    let parts: Vec<String> = said.chain(rung.marks.iter().map(Mark::in_words)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// `gate capacity >= 1000: met (1000 held, 2000 did not)`
fn gate(result: &GateResult) -> String {
    let word = match result.met {
        Some(true) => "met",
        Some(false) => "NOT MET",
        None => "cannot be told",
    };
    format!("gate {}: {word} ({})", result.gate, result.found)
}

/// A run's result in one line: `arena: PASS`, `arena: 1 of 2 gates met, 1 cannot be told (verdict FAIL)`.
pub fn headline(climb: &Climb) -> String {
    let (subject, verdict, gates) = (&climb.run.subject, climb.verdict, &climb.gates);
    if gates.is_empty() {
        return format!("{subject}: {verdict}");
    }
    let count = |met| gates.iter().filter(|gate| gate.met == met).count();
    let untold = match count(None) {
        0 => String::new(),
        count => format!(", {count} cannot be told"),
    };
    let plural = if gates.len() == 1 { "gate" } else { "gates" };
    format!("{subject}: {} of {} {plural} met{untold} (verdict {verdict})", count(Some(true)), gates.len())
}

fn question(id: &str) -> Option<&'static str> {
    match id {
        "how_many" => Some("How many"),
        "why_not_more" => Some("Why not more"),
        "can_i_trust_it" => Some("Can I trust it"),
        _ => None,
    }
}

/// `Base rate`
fn heading(id: &str) -> String {
    let words = id.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

impl Table {
    fn empty() -> Table {
        Table { title: None, header: Vec::new(), rows: Vec::new(), rungs: Vec::new() }
    }

    /// The same in at most this many columns of a terminal, without the least informative columns of the table; and how
    /// many were left out. The rest may still be wider.
    pub fn within(&self, most: usize) -> (Table, usize) {
        let mut table = self.clone();
        for name in LEAST_TELLING_FIRST {
            if table.width() <= most {
                break;
            }
            if let Some(at) = table.header.iter().rposition(|known| known == name) {
                table.remove_column(at);
            }
        }
        let left_out = self.header.len() - table.header.len();
        (table, left_out)
    }

    fn remove_column(&mut self, at: usize) {
        self.header.remove(at);
        self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
    }

    fn widths(&self) -> Vec<usize> {
        let width_of = |at: usize| {
            let cells = self.rows.iter().map(|row| &row[at]).chain([&self.header[at]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..self.header.len()).map(width_of).collect()
    }

    fn width(&self) -> usize {
        self.widths().iter().map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(title) = &self.title {
            writeln!(f, "{title}")?;
        }
        let widths = self.widths();
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  "))?;
        }
        Ok(())
    }
}

impl fmt::Display for ResultsPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, table) in self.tables.iter().enumerate() {
            let gap = if at > 0 { "\n" } else { "" };
            write!(f, "{gap}{table}")?;
        }
        for line in &self.marks {
            writeln!(f, "{line}")?;
        }
        for lines in [&self.books, &self.notes, &self.gates] {
            if !lines.is_empty() {
                writeln!(f)?;
            }
            for line in lines {
                writeln!(f, "{line}")?;
            }
        }
        for parts in [&self.answers, &self.conclusions] {
            if !parts.is_empty() {
                writeln!(f)?;
            }
            let width = parts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
            for (name, text) in parts {
                writeln!(f, "{name:<width$}  {text}")?;
            }
        }
        if let Some(AgentRows { table, below }) = &self.agents {
            write!(f, "\n{table}")?;
            for line in below {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}
