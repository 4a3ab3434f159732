//! What a profile lists, as tables for the terminal.

use console::layout::wrapped;
use ladder::growth::{self, Growth, KeptStacks, allocating};
use ladder::wording::{show_bytes, show_ns, show_number, show_share};
use ladder::{Climb, Conclusion};

/// A name in the table is no longer.
const NAME_WIDTH: usize = 90;
/// What its figures take.
const FIGURES_WIDTH: usize = 45;
/// The table leaves out functions with less than this share of all.
const SHARE_SHOWN: f64 = 0.002;

/// A function, with what it took per operation and its share at both loads.
struct Row {
    function: String,
    took: [String; 2],
    shares: [f64; 2],
    is_sure: bool,
}

/// `show`: what it took, for people.
fn rows<C: Copy>(listed: Vec<Growth<C>>, share: impl Fn(C) -> f64, show: impl Fn(C) -> String) -> Vec<Row> {
    let row = |one: Growth<C>| Row {
        took: [show(one.good), show(one.bad)],
        shares: [share(one.good), share(one.bad)],
        function: one.function,
        is_sure: one.is_sure,
    };
    listed.into_iter().map(row).filter(|one| one.shares[1] >= SHARE_SHOWN).collect()
}

/// The functions that grew most, as tables at most so wide: of waiting where that was asked, of CPU and of allocations; and how to
/// see the flame graph. Empty without a profile.
pub fn table(climb: &Climb, columns: Option<usize>) -> String {
    let conclusion = climb.conclusions.iter().find(|part| part.id == growth::PROFILE);
    conclusion.map_or(String::new(), |conclusion| {
        tables(conclusion, columns) + &flame_graph(conclusion, &climb.run.id, columns)
    })
}

/// How to see it, where stacks were taken.
fn flame_graph(conclusion: &Conclusion, run: &str, columns: Option<usize>) -> String {
    if KeptStacks::Cpu.per_weight(conclusion).is_none() {
        return String::new();
    }
    let words = format!(
        "Flame graph of both loads: `stepladder view`, or `stepladder report {run} -o {run}.html` for one file."
    );
    format!("\n  {}\n", wrapped(&words, 2, columns))
}

fn tables(conclusion: &Conclusion, columns: Option<usize>) -> String {
    let per = conclusion.evidence.get("per").and_then(serde_json::Value::as_str).unwrap_or("operation");
    let of_time = |listed| rows(listed, |one: growth::Cost| one.share, |one| show_ns(one.ns));
    let grew = growth::listed(conclusion, "grew");
    let has_grown = grew.iter().any(|one| one.is_sure);
    let cpu = of_time(if has_grown { grew } else { growth::listed(conclusion, "most") });
    let (allocated, allocated_more) = allocating::listed(conclusion);
    let allocated = rows(allocated, |one| one.share, |one| show_bytes(one.bytes));
    let which = |has_grown: bool, most: &'static str| if has_grown { "that grew most" } else { most };
    let tables = [
        (
            format!("The functions that waited longer: waiting per {per}, and share of all waiting"),
            true,
            of_time(growth::listed(conclusion, growth::WAITS)),
        ),
        (
            format!(
                "The functions {}: CPU per {per}, and share of the server's CPU",
                which(has_grown, "that took most")
            ),
            has_grown,
            cpu,
        ),
        (
            format!(
                "The functions {}: memory allocated per {per}, and share of all bytes",
                which(allocated_more, "that allocated most")
            ),
            allocated_more,
            allocated,
        ),
    ];
    tables
        .into_iter()
        .map(|(heading, marks, rows)| shown(conclusion, (&heading, marks), rows, columns))
        .collect()
}

/// One table; `marks`: functions whose growth may be chance are marked.
fn shown(
    conclusion: &Conclusion,
    (heading, marks): (&str, bool),
    rows: Vec<Row>,
    columns: Option<usize>,
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let load = |name: &str| {
        let load = conclusion.evidence.get(name).and_then(|hold| hold.get("load"));
        load.and_then(serde_json::Value::as_f64).map_or(String::new(), show_number)
    };
    let (good, bad) = (load("good"), load("bad"));
    let legend = if marks && rows.iter().any(|one| !one.is_sure) { " (?: may be chance)" } else { "" };
    let mut text = format!(
        "\n  {}\n  {:>10} {:>10}   {:>8} {:>8}\n",
        wrapped(&format!("{heading}{legend}"), 2, columns),
        format!("at {good}"),
        format!("at {bad}"),
        good,
        bad
    );
    let name_width =
        columns.map_or(NAME_WIDTH, |columns| columns.saturating_sub(FIGURES_WIDTH)).min(NAME_WIDTH);
    for Row { function, took: [before, after], shares, is_sure } in rows {
        let function: String = function.chars().take(name_width).collect();
        let [share_before, share] = shares.map(show_share);
        let mark = if is_sure || !marks { " " } else { "?" };
        text += &format!("  {before:>10} {after:>10}   {share_before:>8} {share:>8} {mark}{function}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ladder::growth::{Allocating, PERF, ProfiledHold};

    use super::*;

    fn hold(load: f64, samples: u64, bytes: u64) -> ProfiledHold {
        let functions: BTreeMap<String, u64> =
            [("render (report.mjs:12)".to_owned(), samples), ("parse".to_owned(), 1000)].into();
        let allocated = [("list".to_owned(), (bytes, 400)), ("little".to_owned(), (bytes / 1000, 1))].into();
        ProfiledHold {
            load,
            operations: 1000,
            samples: samples + 1000,
            samples_per_s: 500.0,
            cpu_by: Some(PERF.to_owned()),
            functions,
            allocating: Some(Ok(Allocating { functions: allocated })),
            ..ProfiledHold::default()
        }
    }

    #[test]
    fn cpu_and_memory_are_tables_of_what_grew_or_else_of_what_takes_most() {
        let conclusion = growth::conclusion(&hold(50.0, 100, 1_000_000), &hold(600.0, 3000, 8_000_000), None);
        assert_eq!(
            tables(&conclusion, None),
            "\n  The functions that grew most: CPU per message, and share of the server's CPU\n\
             \x20      at 50     at 600         50      600\n\
             \x20     200 µs       6 ms     9.09 %     75 %  render (report.mjs:12)\n\
             \n  The functions that grew most: memory allocated per message, and share of all bytes\n\
             \x20      at 50     at 600         50      600\n\
             \x20       1 kB       8 kB     99.9 %   99.9 %  list\n"
        );
        let conclusion = growth::conclusion(&hold(50.0, 100, 1_000_000), &hold(600.0, 100, 1_000_000), None);
        let same = tables(&conclusion, None);
        assert!(
            same.contains("that took most: CPU") && same.contains("that allocated most: memory"),
            "{same}"
        );
        assert!(!same.contains("little"), "{same}");
        assert_eq!(tables(&growth::none("perf is missing"), None), "");
    }
}
