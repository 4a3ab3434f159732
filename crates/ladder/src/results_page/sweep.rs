//! The tables of a sweep: one per cell, with related columns side by side: responses and frames.

use super::{Table, columns, failed, note, ns, table, verdict};
use crate::contract::{Climb, Rung};
use crate::judge::Verdict;
use crate::wording::{show_cell, show_many, show_ns, show_number};
use measure::LoadUnit;

pub(super) fn tables(climb: &Climb) -> Vec<Table> {
    climb.rungs_by_cell().into_iter().map(|rungs| of_cell(climb, rungs)).collect()
}

fn of_cell(climb: &Climb, rungs: Vec<usize>) -> Table {
    let first = &climb.rungs[rungs[0]];
    let title = first.cell.as_ref().map(show_cell);
    let unit = first.load_unit;
    // A rate is an input here, not a result; what matters is how long responses take, and how many are late.
    if unit != LoadUnit::Requesters {
        return table(climb, title, rungs, unit, &columns());
    }
    let alone = rungs.iter().map(|at| &climb.rungs[*at]).find(|rung| rung.load == 1.0 && failed(rung) == 0);
    let base_per_s = alone.map(|rung| rung.rate_per_s).filter(|rate| *rate > 0.0);
    type Cell<'a> = Box<dyn Fn(&Rung) -> Option<String> + 'a>;
    let columns: Vec<(&str, Cell<'_>)> = vec![
        ("load", Box::new(|rung| Some(show_number(rung.load)))),
        ("resp./s", Box::new(|rung| Some(format!("{:.1}", rung.rate_per_s)))),
        ("speed-up", Box::new(|rung| Some(format!("{:.2}", rung.rate_per_s / base_per_s?)))),
        ("frames/s", Box::new(|rung| Some(format!("{:.1}", rung.frames.as_ref()?.rate_per_s)))),
        ("resp. mean", Box::new(|rung| Some(show_ns(rung.response_ns.as_ref()?.mean?)))),
        ("p50", Box::new(|rung| ns(&rung.response_ns, |summary| summary.p50))),
        ("p99", Box::new(|rung| ns(&rung.response_ns, |summary| summary.p99))),
        ("failed", Box::new(|rung| Some(show_many(failed(rung))))),
        ("server CPU", Box::new(|rung| Some(format!("{:.2}", rung.subject.as_ref()?.process.cpu_cores)))),
        ("verdict", Box::new(verdict)),
    ];
    table(climb, title, rungs, unit, &columns)
}

/// Of each cell the first rung that did not pass, since those above it mostly say the same again; where all passed, the
/// first of which more must be known.
pub(super) fn notes(climb: &Climb) -> Vec<String> {
    let of_cell = |rungs: Vec<usize>| {
        let rungs = rungs.iter().map(|at| &climb.rungs[*at]).filter(|rung| note(rung).is_some());
        let (passed, others): (Vec<&Rung>, Vec<&Rung>) =
            rungs.partition(|rung| rung.verdict == Verdict::Pass);
        let all_passed = others.is_empty();
        let noted = if all_passed { passed } else { others };
        let first = noted.first()?;
        let more = match noted.len() - 1 {
            0 => String::new(),
            more if !all_passed => format!(" ({more} more of its rungs did not pass)"),
            1 => " (1 more of its rungs has a remark)".to_owned(),
            more => format!(" ({more} more of its rungs have a remark)"),
        };
        let cell = first.cell.as_ref().map(show_cell).unwrap_or_default();
        Some(format!("{cell}: {}{more}", note(first)?))
    };
    climb.rungs_by_cell().into_iter().filter_map(of_cell).collect()
}
