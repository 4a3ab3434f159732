//! Two stored runs of client libraries, old against new, for the terminal.

use std::fmt::Write as _;

use inflight_analysis::{CellKey, ComparedCell, OldAndNew, RunComparison};

/// A figure's name, where it is and how it is shown.
type Figure = (&'static str, fn(&ComparedCell) -> Option<OldAndNew>, fn(f64) -> String);

const FIGURES: [Figure; 6] = [
    ("operations/s", |cell| Some(cell.ops_per_s), |rate| format!("{rate:.0}")),
    ("p50", |cell| Some(cell.p50_ns), ms),
    ("p99", |cell| Some(cell.p99_ns), ms),
    ("CPU", |cell| Some(cell.cpu_ns_per_op), us),
    ("memory", |cell| Some(cell.rss_peak_bytes), |bytes| format!("{:.1} MB", bytes / f64::from(1 << 20))),
    ("server CPU", |cell| cell.member_cpu_ns_per_op, us),
];

fn ms(ns: f64) -> String {
    format!("{:.2} ms", ns / 1e6)
}

fn us(ns: f64) -> String {
    format!("{:.2} µs/op", ns / 1e3)
}

/// The figures of what both did, what only one did, and what all of it is worth.
pub fn page(both: &RunComparison) -> String {
    let mut text = String::new();
    if !both.cells.is_empty() {
        text = format!("\n  {:<14}{:>14}{:>14}{:>8}\n", "", "old", "new", "ratio");
    }
    for cell in &both.cells {
        let key = CellKey {
            op: cell.op.clone(),
            value_bytes: cell.value_bytes,
            in_flight: cell.in_flight.clone(),
            total: cell.total,
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{}, {key}", cell.client);
        for (name, of, show) in FIGURES {
            let Some(figure) = of(cell) else { continue };
            let ratio = figure.ratio.map_or_else(|| "—".to_owned(), |ratio| format!("{ratio:.2}"));
            let _ = writeln!(text, "  {name:<14}{:>14}{:>14}{ratio:>8}", show(figure.old), show(figure.new));
        }
        if cell.ranges_overlap {
            let (was, is) = (cell.old_range_per_s, cell.new_range_per_s);
            let _ = writeln!(
                text,
                "  single runs overlap: {:.0} to {:.0}/s, then {:.0} to {:.0}/s",
                was.0, was.1, is.0, is.1
            );
        }
    }
    for (run, alone) in [(&both.old, &both.only_old), (&both.new, &both.only_new)] {
        if !alone.is_empty() {
            let _ = writeln!(text, "\nOnly in {run}: {}", alone.join("; "));
        }
    }
    text.push('\n');
    for limit in &both.limits {
        let _ = writeln!(text, "{limit}");
    }
    text
}

#[cfg(test)]
mod tests {
    use inflight_analysis::testing::cell;
    use inflight_analysis::{Report, Told};
    use ladder::Origin;

    use super::*;

    #[test]
    fn old_stands_beside_new_with_the_ratio_and_what_it_is_worth() {
        let report = |cells| Report { target: "null:".to_owned(), cells, profiles: Vec::new() };
        let old = report(vec![cell("rust", &[1000.0, 1200.0]), cell("go", &[500.0])]);
        let new = report(vec![cell("rust", &[1100.0, 2200.0])]);
        let origin = Origin::default();
        let told = |id, report| Told { id, origin: &origin, report };
        let text = page(&RunComparison::of(told("old-1", &old), told("new-1", &new)));
        insta::assert_snapshot!(text);
    }
}
