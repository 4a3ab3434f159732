//! The results for people.

use std::fmt;

use inflight_analysis::{Cell, Report, conclusions};

use crate::profile::Costs;

/// A report as a table.
pub struct Table<'r>(pub &'r Report);

impl fmt::Display for Table<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table(report) = self;
        let member = report.cells.iter().flat_map(Cell::runs).find_map(|run| run.member.clone());
        let member = member.map(|version| format!(" (version {version})")).unwrap_or_default();
        let Some(first) = report.cells.first() else { return writeln!(out, "nothing was measured") };
        let runs = first.runs().count();
        let total = report.total().map(|total| format!("{total} operations per run, ")).unwrap_or_default();
        writeln!(out, "{}{member}: {total}{runs} runs of each", report.target)?;
        let mut task = None;
        for cell in &report.cells {
            if task != Some(&cell.key) {
                task = Some(&cell.key);
                head(out, report, cell)?;
            }
            line(out, cell)?;
            if let Some(ratio) = cell.ratio_to(report.first_of(cell))
                && !std::ptr::eq(cell, report.first_of(cell))
            {
                let first = &report.first_of(cell).client;
                writeln!(
                    out,
                    "{:<14}{:>10.2} × {first} (95 %: {:.2}–{:.2})",
                    "", ratio.mean, ratio.low, ratio.high
                )?;
            }
            trouble(out, cell)?;
        }
        for profile in &report.profiles {
            write!(out, "\n{}", Costs(profile))?;
        }
        for conclusion in conclusions(report) {
            writeln!(out, "\n{}", textwrap::fill(&conclusion.text, 110))?;
        }
        Ok(())
    }
}

fn head(out: &mut fmt::Formatter<'_>, report: &Report, cell: &Cell) -> fmt::Result {
    let total = match report.total() {
        Some(_) => String::new(),
        None => format!(", {} operations per run", cell.key.total),
    };
    writeln!(out, "\n{}{total}", cell.key)?;
    if cell.key.is_unlimited() {
        writeln!(
            out,
            "  No back-pressure: all operations start at once, on random keys that practically never exist, so nearly every \
             get\n  misses. Compare its latencies and memory with a bounded number, not its rate."
        )?;
    }
    writeln!(
        out,
        "{:<14}{:>10}{:>8}{:>10}{:>10}{:>11}{:>7}{:>9}{:>13}{:>10}",
        "client", "ops/s", "spread", "p50", "p99", "CPU µs/op", "cores", "memory", "server CPU", "own cost"
    )
}

fn line(out: &mut fmt::Formatter<'_>, cell: &Cell) -> fmt::Result {
    let (rate, latency) = (cell.rate_per_s(), cell.latency());
    let at = |share: f64| format!("{} ms", short(latency.value_at_quantile(share) as f64 / 1e6));
    let spread = match cell.runs().count() {
        1 => "—".to_owned(),
        _ => format!("±{:.0} %", rate.stddev / rate.mean * 100.0),
    };
    let member = cell.member_cpu_ns().map_or("—".to_owned(), |ns| format!("{:.1} µs/op", ns / 1e3));
    let name: String = cell.client.chars().take(13).collect();
    writeln!(
        out,
        "{name:<14}{:>10.0}{spread:>8}{:>10}{:>10}{:>11.2}{:>7.2}{:>6} MB{member:>13}{:>7.2} µs",
        rate.mean,
        at(0.5),
        at(0.99),
        cell.cpu_ns() / 1e3,
        cell.cores(),
        cell.rss_peak_bytes() >> 20,
        cell.own_overhead_ns() / 1e3,
    )
}

/// What did not succeed, and why first.
fn trouble(out: &mut fmt::Formatter<'_>, cell: &Cell) -> fmt::Result {
    let (failed, unknown, wrong) =
        (cell.sum(|run| run.failed), cell.sum(|run| run.unknown), cell.sum(|run| run.wrong));
    let (hits, misses) = (cell.sum(|run| run.hits), cell.sum(|run| run.misses));
    if misses > 0 {
        let share = misses as f64 / (hits + misses) as f64 * 100.0;
        writeln!(out, "{:<14}{share:.1} % of the gets found nothing", "")?;
    }
    if failed + unknown > 0 {
        writeln!(
            out,
            "{:<14}{failed} operations failed ({wrong} of them with a wrong value), {unknown} have an unknown outcome",
            ""
        )?;
        for error in cell.runs().flat_map(|run| &run.errors).take(3) {
            let text = |name: &str| error[name].as_str().unwrap_or_default().replace(char::is_control, " ");
            writeln!(out, "{:<14}{} × {}: {}", "", error["count"], text("cause"), text("first"))?;
        }
    }
    match cell.runs().find_map(|run| run.stopped.as_deref()) {
        Some("memory") => {
            writeln!(out, "{:<14}stopped at its memory limit, before all operations were started", "")
        }
        Some(why) => writeln!(out, "{:<14}stopped early: {}", "", why.replace(char::is_control, " ")),
        None => Ok(()),
    }
}

/// A figure with three digits.
fn short(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use inflight_analysis::testing::cell;

    use super::*;

    #[test]
    fn clients_stand_below_each_other_with_their_ratio() {
        let cells = vec![cell("rust", &[1000.0, 1100.0]), cell("node", &[500.0, 550.0])];
        let report = Report { target: "redis://127.0.0.1:6379".to_owned(), cells, profiles: Vec::new() };
        insta::assert_snapshot!(Table(&report));
    }
}
