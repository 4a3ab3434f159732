//! Two stored comparisons of client libraries side by side, old against new, as `compare` and the page show it.
//!
//! A client is compared with itself at the same task only. The two were measured one after the other, not block by
//! block, so no interval is given: chance within a run says nothing about what changed on the machine between two.

use serde::Serialize;
use serde_json::json;
use ts_rs::TS;

use super::figures::{Cell, Report, Run};
use ladder::differing::{Difference, Origin, differences};

/// Old against new.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct RunComparison {
    /// of this contract: 1
    pub schema: u32,
    /// id of the run
    pub old: String,
    /// id of the run
    pub new: String,
    /// in machine, programs, settings, server, libraries and runtimes
    pub differs: Vec<Difference>,
    /// in sentences, the gravest first: what the figures below are worth
    pub limits: Vec<String>,
    /// what both did, in the order of the new run
    pub cells: Vec<ComparedCell>,
    /// what only the old run did, in words
    pub only_old: Vec<String>,
    /// what only the new run did, in words
    pub only_new: Vec<String>,
}

/// One client at one task, in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct ComparedCell {
    /// as the user named it
    pub client: String,
    /// `get`, `set`, `mix`
    pub op: String,
    /// length of each value
    pub value_bytes: u64,
    /// a number, or `unlimited`
    pub in_flight: String,
    /// operations of a run, its warm-up included
    pub total: u64,
    /// means of the runs
    pub ops_per_s: OldAndNew,
    /// lowest and highest rate of the old runs
    pub old_range_per_s: (f64, f64),
    /// lowest and highest rate of the new runs
    pub new_range_per_s: (f64, f64),
    /// whether these ranges have a rate in common, so that the single runs do not tell old from new
    pub ranges_overlap: bool,
    /// of all runs together
    pub p50_ns: OldAndNew,
    /// of all runs together
    pub p99_ns: OldAndNew,
    /// CPU of the client
    pub cpu_ns_per_op: OldAndNew,
    /// most memory of the client in a run
    pub rss_peak_bytes: OldAndNew,
    /// CPU of the server; null where one run does not know it
    pub member_cpu_ns_per_op: Option<OldAndNew>,
}

/// A figure of both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, TS)]
pub struct OldAndNew {
    /// as it was
    pub old: f64,
    /// as it is
    pub new: f64,
    /// new / old; null where the old one is 0
    pub ratio: Option<f64>,
}

impl OldAndNew {
    fn of(old: f64, new: f64) -> OldAndNew {
        OldAndNew { old, new, ratio: (old != 0.0).then(|| new / old) }
    }
}

/// A run with its figures.
#[derive(Clone, Copy, Debug)]
pub struct Told<'r> {
    /// of the run
    pub id: &'r str,
    /// where they come from
    pub origin: &'r Origin,
    /// the figures
    pub report: &'r Report,
}

impl RunComparison {
    /// Lays a run beside an older one.
    pub fn of(old: Told<'_>, new: Told<'_>) -> RunComparison {
        let mut differs = differences(old.origin, new.origin);
        differs.extend(versions(old.report, new.report));
        let pairs: Vec<(&Cell, &Cell)> =
            new.report.cells.iter().filter_map(|cell| Some((same(cell, old.report)?, cell))).collect();
        let cells: Vec<ComparedCell> = pairs.iter().map(|(old, new)| beside(old, new)).collect();
        let missing = |of: &Report, other: &Report| {
            let alone = of.cells.iter().filter(|cell| same(cell, other).is_none());
            alone.map(|cell| format!("{}, {}", cell.client, cell.key)).collect()
        };
        RunComparison {
            schema: 1,
            old: old.id.to_owned(),
            new: new.id.to_owned(),
            limits: limits(&differs, &cells, &pairs),
            differs,
            cells,
            only_old: missing(old.report, new.report),
            only_new: missing(new.report, old.report),
        }
    }
}

/// The same client at the same task.
fn same<'r>(cell: &Cell, report: &'r Report) -> Option<&'r Cell> {
    report.cells.iter().find(|other| other.key == cell.key && other.client == cell.client)
}

fn beside(old: &Cell, new: &Cell) -> ComparedCell {
    let both = |of: fn(&Cell) -> f64| OldAndNew::of(of(old), of(new));
    let range = |cell: &Cell| {
        let rates = cell.runs().map(Run::rate_per_s);
        rates.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)))
    };
    let (was, is) = (range(old), range(new));
    ComparedCell {
        client: new.client.clone(),
        op: new.key.op.clone(),
        value_bytes: new.key.value_bytes,
        in_flight: new.key.in_flight.clone(),
        total: new.key.total,
        ops_per_s: both(|cell| cell.rate_per_s().mean),
        old_range_per_s: was,
        new_range_per_s: is,
        ranges_overlap: was.0 <= is.1 && is.0 <= was.1,
        p50_ns: both(|cell| cell.latency().value_at_quantile(0.5) as f64),
        p99_ns: both(|cell| cell.latency().value_at_quantile(0.99) as f64),
        cpu_ns_per_op: both(Cell::cpu_ns),
        rss_peak_bytes: both(|cell| cell.rss_peak_bytes() as f64),
        member_cpu_ns_per_op: old
            .member_cpu_ns()
            .zip(new.member_cpu_ns())
            .map(|(old, new)| OldAndNew::of(old, new)),
    }
}

/// What differs in what was measured with: the server, the client libraries, their runtimes.
fn versions(old: &Report, new: &Report) -> Vec<Difference> {
    let all = |report: &Report, client: Option<&str>, of: fn(&Run) -> String| {
        let mut found: Vec<String> = Vec::new();
        let cells = report.cells.iter().filter(|cell| client.is_none_or(|client| cell.client == client));
        for version in cells.flat_map(Cell::runs).map(of) {
            if !version.is_empty() && !found.contains(&version) {
                found.push(version);
            }
        }
        json!(found.join(", "))
    };
    let difference = |what: String, client: Option<&str>, of: fn(&Run) -> String| {
        Difference::of(what, all(old, client, of), all(new, client, of))
    };
    let mut found: Vec<Difference> = Vec::new();
    found.extend(difference("server version".to_owned(), None, |run| run.member.clone().unwrap_or_default()));
    let mut clients: Vec<&str> = Vec::new();
    for client in new.cells.iter().map(|cell| cell.client.as_str()) {
        if !clients.contains(&client) && old.cells.iter().any(|other| other.client == client) {
            clients.push(client);
        }
    }
    for client in clients {
        found.extend(difference(format!("{client}: library"), Some(client), |run| run.client.clone()));
        found.extend(difference(format!("{client}: runtime"), Some(client), |run| run.runtime.clone()));
    }
    found
}

/// In sentences, the gravest first; the last holds wherever anything is compared.
fn limits(differs: &[Difference], cells: &[ComparedCell], pairs: &[(&Cell, &Cell)]) -> Vec<String> {
    if cells.is_empty() {
        return vec![
            "The two runs have no client with the same operation, length, number in flight and total in common.".to_owned(),
        ];
    }
    let mut all = Vec::new();
    let names = |is_meant: fn(&str) -> bool| {
        let what = differs.iter().map(|one| one.what.as_str()).filter(|what| is_meant(what));
        what.map(|what| what.trim_start_matches("machine, ")).collect::<Vec<_>>().join(", ")
    };
    let machine = names(|what| what.starts_with("machine, "));
    if !machine.is_empty() {
        all.push(format!("The machines differ ({machine}): this compares machines as much as clients."));
    }
    let others = names(|what| !what.starts_with("machine, "));
    if !others.is_empty() {
        all.push(format!("Besides the figures these differ too: {others}."));
    }
    let bad: Vec<String> = pairs
        .iter()
        .filter(|(old, new)| {
            [old, new].iter().any(|cell| cell.runs().any(|run| run.failed + run.unknown > 0))
        })
        .map(|(_, new)| format!("{}, {}", new.client, new.key))
        .collect();
    if !bad.is_empty() {
        all.push(format!(
            "Operations failed or have an unknown outcome, and rates hold them too: {}.",
            bad.join("; ")
        ));
    }
    if pairs.iter().any(|(old, new)| old.runs.len().min(new.runs.len()) == 1) {
        all.push(
            "A client that ran once in one of them has no range: make at least three runs (--runs 3)."
                .to_owned(),
        );
    }
    let alike = cells.iter().filter(|cell| cell.ranges_overlap).count();
    if alike > 0 {
        all.push(format!(
            "The rates of single runs overlap in {alike} of {} rows: there the runs do not tell old from new.",
            cells.len()
        ));
    }
    all.push(
        "The two were measured one after the other, not interleaved: a difference may be the machine's, by tens of percent on \
         a noisy one. For a claim run both clients in one bench."
            .to_owned(),
    );
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::cell;

    fn report(cells: Vec<Cell>) -> Report {
        Report { target: "null:".to_owned(), cells, profiles: Vec::new() }
    }

    fn laid(old: &Report, new: &Report) -> RunComparison {
        let (was, is) = (Origin::default(), Origin::default());
        RunComparison::of(
            Told { id: "old-1", origin: &was, report: old },
            Told { id: "new-1", origin: &is, report: new },
        )
    }

    #[test]
    fn only_what_both_did_is_compared_and_the_rest_is_named() {
        let old = report(vec![cell("rust", &[1000.0, 1200.0]), cell("go", &[500.0])]);
        let new = report(vec![cell("rust", &[1600.0, 1700.0]), cell("node", &[500.0])]);
        let both = laid(&old, &new);
        assert_eq!(both.cells.len(), 1);
        let rust = &both.cells[0];
        let ratio = rust.ops_per_s.ratio.unwrap();
        assert!((ratio - 1.5).abs() < 1e-6, "{ratio}");
        assert!(!rust.ranges_overlap, "{rust:?}");
        assert_eq!(
            (both.only_old, both.only_new),
            (vec!["go, get 3 B, 100 in flight".to_owned()], vec!["node, get 3 B, 100 in flight".to_owned()])
        );
        assert_eq!(both.limits.len(), 1, "{:?}", both.limits);
        assert!(both.limits[0].contains("not interleaved"));
    }

    #[test]
    fn nothing_in_common_and_rates_that_overlap_are_said() {
        let old = report(vec![cell("rust", &[1000.0, 1200.0])]);
        let nothing = laid(&old, &report(vec![cell("java", &[1.0])])).limits;
        assert!(
            nothing.len() == 1 && nothing[0].contains("no client with the same operation"),
            "{nothing:?}"
        );
        let both = laid(&old, &report(vec![cell("rust", &[1100.0, 1500.0])]));
        assert!(both.cells[0].ranges_overlap);
        assert!(both.limits[0].contains("overlap in 1 of 1 rows"), "{:?}", both.limits);
        let mut failing = cell("rust", &[2000.0]);
        Arc::make_mut(&mut failing.runs[0].1).failed = 3;
        let limits = laid(&old, &report(vec![failing])).limits;
        assert!(limits[0].contains("rates hold them too: rust, get 3 B"), "{limits:?}");
        assert!(limits[1].contains("make at least three runs"), "{limits:?}");
    }

    #[test]
    fn another_machine_server_library_or_runtime_is_named_and_doubted() {
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
        assert_eq!(laid(&old, &planted("5.5.0", "hazelcast-client 5.6.0", "node 20.20")).differs, []);
        let new = planted("5.6.0", "hazelcast-client 5.7.0", "node 22.1");
        let (was, is) =
            (Origin::default(), Origin { environment: json!({ "online_cores": 4 }), ..Origin::default() });
        let both = RunComparison::of(
            Told { id: "a", origin: &was, report: &old },
            Told { id: "b", origin: &is, report: &new },
        );
        let what: Vec<&str> = both.differs.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(what, ["machine, online cores", "server version", "node: library", "node: runtime"]);
        assert!(both.limits[0].starts_with("The machines differ (online cores)"), "{:?}", both.limits);
        assert!(
            both.limits[1].ends_with("server version, node: library, node: runtime."),
            "{:?}",
            both.limits
        );
    }
}
