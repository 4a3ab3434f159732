//! What makes figures of client libraries incomparable, or weaker than they seem.

use super::figures::{Cell, Report, Run};

/// From this share of the time per operation on, the benchmark's own cost is reported.
const OWN_COST: f64 = 0.1;
/// Shares of misses that differ by more make rates of gets incomparable: a miss carries no value.
const MISSES: f64 = 0.01;
/// From this share of the latencies' p99 on, late timers of the runtime are reported.
const LOOP_DELAY: f64 = 0.5;

/// In sentences, the gravest first; the last always holds.
pub(super) fn of(report: &Report) -> Vec<String> {
    let mut all = Vec::new();
    let cells = || report.cells.iter();
    for cell in cells() {
        all.extend(trouble(cell));
    }
    for cell in cells() {
        all.extend(against_first(cell, report.first_of(cell)));
    }
    if cells().any(|cell| cell.key.is_unlimited()) {
        all.push(
            "\"Unlimited\" starts all operations at once, on keys that practically never exist: compare its latencies and \
             memory with a bounded number in flight, not its rate."
                .to_owned(),
        );
    }
    for client in clients(report) {
        let own: Vec<&Cell> = cells().filter(|cell| cell.client == client).collect();
        all.extend(of_runtime(&own));
    }
    all.extend(versions(report));
    let runs = cells().map(|cell| cell.runs.len()).max().unwrap_or_default();
    if runs == 1 {
        all.push(
            "Each client ran once, so chance cannot be told from a difference: make at least three runs (--runs 3).".to_owned(),
        );
    }
    if runs > 0 {
        all.push(
            "Clients and server share this machine, and a fast client leaves the server less of it: compare CPU per operation \
             before rates."
                .to_owned(),
        );
    }
    all
}

/// In the order of the table.
fn clients(report: &Report) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for cell in &report.cells {
        if !found.contains(&cell.client.as_str()) {
            found.push(&cell.client);
        }
    }
    found
}

fn name(cell: &Cell) -> String {
    format!("{}, {}", cell.client, cell.key)
}

/// Runs that are no whole ones, and operations that did not succeed.
fn trouble(cell: &Cell) -> Vec<String> {
    let mut all = Vec::new();
    let (bad, ops) = (cell.sum(|run| run.failed + run.unknown), cell.sum(|run| run.ops));
    if bad > 0 {
        all.push(format!(
            "{}: {bad} of {ops} operations failed or have an unknown outcome. Its rate and latencies hold them too.",
            name(cell)
        ));
    }
    match cell.runs().find_map(|run| run.stopped.as_deref()) {
        Some("memory") => all.push(format!(
            "{}: it reached its memory limit before all operations were started. Its figures are of those that were.",
            name(cell)
        )),
        Some(_) => all.push(format!(
            "{}: it was stopped before its total. Its figures are of the part that it measured.",
            name(cell)
        )),
        None => {}
    }
    all
}

/// Why a client's rate and that of the first client of the task are not alike in kind.
fn against_first(cell: &Cell, first: &Cell) -> Vec<String> {
    let mut all = Vec::new();
    if std::ptr::eq(cell, first) {
        return all;
    }
    let misses = |cell: &Cell| {
        let (hits, misses) = (cell.sum(|run| run.hits), cell.sum(|run| run.misses));
        (hits + misses > 0).then(|| misses as f64 / (hits + misses) as f64)
    };
    if let Some((own, other)) =
        misses(cell).zip(misses(first)).filter(|(own, other)| (own - other).abs() > MISSES)
    {
        all.push(format!(
            "{}: {:.1} % of its gets found nothing, of those of {} {:.1} %. A miss carries no value, so their rates cannot be \
             compared.",
            name(cell),
            own * 100.0,
            first.client,
            other * 100.0,
        ));
    }
    if cell.runs.len() != first.runs.len() {
        all.push(format!(
            "{}: {} of it against {} of {}. Their ratio is of the blocks that both finished.",
            name(cell),
            runs(cell.runs.len()),
            first.runs.len(),
            first.client,
        ));
    }
    all
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

/// What the benchmark and the runtime add to the library's own figures: the worst task of each client.
fn of_runtime(own: &[&Cell]) -> Vec<String> {
    let mut all = Vec::new();
    let own_cost = |cell: &Cell| cell.own_overhead_ns() / (1e9 / cell.rate_per_s().mean);
    if let Some((cell, cost, which)) = worst(own, |cell| Some(own_cost(cell)).filter(|cost| *cost > OWN_COST))
    {
        all.push(format!(
            "{}{which}: the benchmark's own cost is {:.0} % of the time per operation, so the library is faster than its rate \
             says.",
            name(cell),
            cost * 100.0
        ));
    }
    let p99_ns = |cell: &Cell| cell.latency().value_at_quantile(0.99) as f64;
    let delay_ns = |cell: &Cell| cell.runs().filter_map(|run| run.fitness.loop_delay_p99_ns).max();
    let late = |cell: &Cell| Some(delay_ns(cell)? as f64 / p99_ns(cell)).filter(|share| *share > LOOP_DELAY);
    if let Some((cell, share, which)) = worst(own, late) {
        all.push(format!(
            "{}{which}: timers of its runtime ran {:.2} ms late (p99), and the p99 of its latencies is {:.2} ms: operations \
             waited for the runtime and not for the server alone.",
            name(cell),
            share * p99_ns(cell) / 1e6,
            p99_ns(cell) / 1e6,
        ));
    }
    all
}

/// The cell with the highest figure, that figure, and of how many it is the worst.
fn worst<'c>(own: &[&'c Cell], of: impl Fn(&Cell) -> Option<f64>) -> Option<(&'c Cell, f64, String)> {
    let found: Vec<(&Cell, f64)> = own.iter().filter_map(|cell| Some((*cell, of(cell)?))).collect();
    let (cell, figure) = *found.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let which =
        if found.len() > 1 { format!(" (the worst of {} tasks)", found.len()) } else { String::new() };
    Some((cell, figure, which))
}

/// A version that a run says.
type Version = fn(&Run) -> Option<&str>;

/// Versions that changed from run to run.
fn versions(report: &Report) -> Vec<String> {
    fn differing<'c>(cells: impl Iterator<Item = &'c Cell>, of: Version) -> Option<String> {
        let mut found: Vec<&str> = Vec::new();
        for version in cells.flat_map(Cell::runs).filter_map(of) {
            if !found.contains(&version) {
                found.push(version);
            }
        }
        (found.len() > 1).then(|| found.join(", "))
    }
    let mut all = Vec::new();
    if let Some(versions) = differing(report.cells.iter(), |run| run.member.as_deref()) {
        all.push(format!("The server had more than one version: {versions}."));
    }
    for client in clients(report) {
        let own = || report.cells.iter().filter(|cell| cell.client == client);
        let (library, runtime): (Version, Version) = (|run| Some(&run.client), |run| Some(&run.runtime));
        for of in [library, runtime] {
            if let Some(versions) = differing(own(), of) {
                all.push(format!("{client} changed between its runs: {versions}."));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Fitness;
    use crate::testing::cell;

    const LAST: &str = "Clients and server share this machine";

    fn told(cells: Vec<Cell>) -> Vec<String> {
        of(&Report { target: "null:".to_owned(), cells, profiles: Vec::new() })
    }

    /// Two clients, two runs each, the second changed.
    fn changed(change: impl Fn(&mut Run)) -> Vec<String> {
        let mut second = cell("node", &[900.0, 900.0]);
        second.runs.iter_mut().for_each(|(_, run)| change(Arc::make_mut(run)));
        told(vec![cell("rust", &[1000.0, 1000.0]), second])
    }

    #[test]
    fn each_limit_is_told_where_it_holds_and_nowhere_else() {
        let sound = changed(|_| {});
        assert!(sound.len() == 1 && sound[0].starts_with(LAST), "{sound:?}");
        let check = |change: &dyn Fn(&mut Run), expected: &str| {
            let all = changed(change);
            assert!(all[0].contains(expected) && all.len() == 2, "{all:?}");
            assert!(all[0].starts_with("node"), "{all:?}");
        };
        check(&|run| run.failed = 3, "6 of 2000 operations failed or have an unknown outcome");
        check(&|run| run.stopped = Some("memory".to_owned()), "it reached its memory limit");
        check(
            &|run| (run.hits, run.misses) = (500, 500),
            "50.0 % of its gets found nothing, of those of rust 0.0 %",
        );
        check(&|run| run.own_overhead_ns = 3e5, "own cost is 27 % of the time per operation");
        let late = Fitness { loop_delay_p99_ns: Some(900_000), ..Fitness::default() };
        check(&|run| run.fitness = late, "timers of its runtime ran 0.90 ms late");
    }

    #[test]
    fn a_single_run_of_each_and_missing_runs_are_told() {
        let once = told(vec![cell("rust", &[1.0])]);
        assert!(once[0].starts_with("Each client ran once") && once.len() == 2, "{once:?}");
        let fewer = told(vec![cell("rust", &[1000.0, 1000.0]), cell("go", &[1000.0])]);
        assert!(fewer[0].contains("1 run of it against 2 of rust"), "{fewer:?}");
        assert!(told(Vec::new()).is_empty());
    }

    #[test]
    fn what_a_runtime_adds_is_told_once_per_client() {
        let mut slow = cell("node", &[1000.0, 1000.0]);
        slow.runs.iter_mut().for_each(|(_, run)| Arc::make_mut(run).own_overhead_ns = 5e5);
        let mut worse = cell("node", &[1000.0, 1000.0]);
        worse.key.value_bytes = 1024;
        worse.runs.iter_mut().for_each(|(_, run)| Arc::make_mut(run).own_overhead_ns = 8e5);
        let all = told(vec![slow, worse]);
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0].starts_with(
            "node, get 1 KB, 100 in flight (the worst of 2 tasks): the benchmark's own cost is 80 %"
        ));
    }

    #[test]
    fn versions_that_changed_meanwhile_are_told() {
        let mut planted = cell("node", &[1000.0, 1000.0]);
        Arc::make_mut(&mut planted.runs[1].1).client = "planted 1.3".to_owned();
        let all = told(vec![planted]);
        assert_eq!(all[0], "node changed between its runs: planted 1.2, planted 1.3.");
    }
}
