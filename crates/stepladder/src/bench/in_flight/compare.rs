//! Two stored runs of client libraries, old against new.

use std::fmt::Write as _;

use ladder::in_flight::{Cell, Report, Run};
use serde_json::{Value, json};

use crate::comparing::Difference;

/// What differs in what was measured with: the server, the client libraries, their runtimes.
pub(in crate::bench) fn differences(old: &Report, new: &Report) -> Vec<Difference> {
    let mut all = vec![(
        "server version".to_owned(),
        versions(old.cells.iter(), |run| run.member.clone().unwrap_or_default()),
        versions(new.cells.iter(), |run| run.member.clone().unwrap_or_default()),
    )];
    let mut clients: Vec<&str> = Vec::new();
    for cell in &new.cells {
        if !clients.contains(&cell.client.as_str())
            && old.cells.iter().any(|other| other.client == cell.client)
        {
            clients.push(&cell.client);
        }
    }
    for client in clients {
        let of = |report: &Report, what: fn(&Run) -> String| {
            versions(report.cells.iter().filter(|cell| cell.client == client), what)
        };
        let library: fn(&Run) -> String = |run| run.client.clone();
        let runtime: fn(&Run) -> String = |run| run.runtime.clone();
        all.push((format!("{client}: library"), of(old, library), of(new, library)));
        all.push((format!("{client}: runtime"), of(old, runtime), of(new, runtime)));
    }
    all.into_iter().filter_map(|(what, old, new)| Difference::of(what, json!(old), json!(new))).collect()
}

/// All that occur, in their order.
fn versions<'c>(cells: impl Iterator<Item = &'c Cell>, of: impl Fn(&Run) -> String) -> String {
    let mut found: Vec<String> = Vec::new();
    for version in cells.flat_map(Cell::runs).map(of) {
        if !version.is_empty() && !found.contains(&version) {
            found.push(version);
        }
    }
    found.join(", ")
}

/// A figure's name, its unit in JSON, how it is taken and how it is shown.
type Figure = (&'static str, &'static str, fn(&Cell) -> Option<f64>, fn(f64) -> String);

const FIGURES: [Figure; 5] = [
    ("operations/s", "ops_per_s", |cell| Some(cell.rate_per_s().mean), |rate| format!("{rate:.0}")),
    (
        "p99",
        "p99_ns",
        |cell| Some(cell.latency().value_at_quantile(0.99) as f64),
        |ns| format!("{:.2} ms", ns / 1e6),
    ),
    ("CPU", "cpu_ns_per_op", |cell| Some(cell.cpu_ns()), |ns| format!("{:.2} µs/op", ns / 1e3)),
    (
        "memory",
        "rss_peak_bytes",
        |cell| Some(cell.rss_peak_bytes() as f64),
        |bytes| format!("{:.1} MB", bytes / f64::from(1 << 20)),
    ),
    ("server CPU", "member_cpu_ns_per_op", Cell::member_cpu_ns, |ns| format!("{:.2} µs/op", ns / 1e3)),
];

/// The figures of what both did, as text and as JSON.
pub(in crate::bench) fn compared(old: &Report, new: &Report) -> (String, Value) {
    let (mut text, mut cells) = (String::new(), Vec::new());
    for cell in &new.cells {
        let is_same = |other: &&Cell| other.key == cell.key && other.client == cell.client;
        let Some(before) = old.cells.iter().find(is_same) else { continue };
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}, {}", cell.client, cell.key);
        let mut object = json!({
            "client": cell.client, "op": cell.key.op, "value_bytes": cell.key.value_bytes,
            "in_flight": cell.key.in_flight, "total": cell.key.total,
        });
        for (name, key, of, show) in FIGURES {
            let (Some(was), Some(is)) = (of(before), of(cell)) else { continue };
            let _ = writeln!(text, "  {name:<14}{:>14}{:>14}{:>8.2}", show(was), show(is), is / was);
            object[key] = json!({ "old": was, "new": is, "ratio": is / was });
        }
        cells.push(object);
    }
    if cells.is_empty() {
        text += "\nThe two runs have no client with the same operation, length, number in flight and total in common.\n";
    } else {
        text = format!("\n  {:<14}{:>14}{:>14}{:>8}{text}", "", "old", "new", "ratio");
    }
    (text, json!(cells))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ladder::in_flight::scene::cell;

    use super::*;

    fn report(cells: Vec<Cell>) -> Report {
        Report { target: "null:".to_owned(), cells, profiles: Vec::new() }
    }

    #[test]
    fn only_what_both_did_is_compared() {
        let old = report(vec![cell("rust", &[1000.0]), cell("go", &[500.0])]);
        let new = report(vec![cell("rust", &[1500.0]), cell("node", &[500.0])]);
        let (text, cells) = compared(&old, &new);
        assert_eq!(cells.as_array().map(Vec::len), Some(1));
        let ratio = cells[0]["ops_per_s"]["ratio"].as_f64().unwrap();
        assert!((ratio - 1.5).abs() < 1e-6, "{ratio}");
        assert!(text.contains("rust, get 3 B, 100 in flight") && !text.contains("node"), "{text}");
        let (text, _) = compared(&old, &report(vec![cell("java", &[1.0])]));
        assert!(text.contains("have no client with the same operation"), "{text}");
    }

    #[test]
    fn another_server_library_or_runtime_is_flagged() {
        let planted = |member: &str, client: &str, runtime: &str| {
            let mut cell = cell("node", &[1000.0, 1000.0]);
            for (_, run) in &mut cell.runs {
                let run = Arc::make_mut(run);
                run.member = Some(member.to_owned());
                (run.client, run.runtime) = (client.to_owned(), runtime.to_owned());
            }
            report(vec![cell])
        };
        let old = planted("5.5.0", "hazelcast-client 5.6.0", "node 20.20");
        assert!(differences(&old, &planted("5.5.0", "hazelcast-client 5.6.0", "node 20.20")).is_empty());
        let found = differences(&old, &planted("5.6.0", "hazelcast-client 5.7.0", "node 22.1"));
        let what: Vec<&str> = found.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(what, ["server version", "node: library", "node: runtime"]);
    }
}
