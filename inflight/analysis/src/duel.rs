//! A duel of two client libraries, or of two revisions of one: the figures of a client process that keeps a fixed
//! number of operations in flight.
//!
//! The blocks, intervals, looks, verdicts and gates are those of a duel of servers (`ladder::duel`). Here a trial is a
//! process that executes a plan (inflight/clients/README.md). A library that fails operations, or does not find an
//! existing value, has lost: its speed says nothing.

use ladder::duel::libraries::OF_PROCESSES;
use ladder::duel::{Duel, DuelNext, DuelStop, HeldTrial, Rules, Side};
use ladder::{FigureDoc, FigureValue, Judged};
use measure::Purpose;

use crate::{CellKey, Run};

/// A figure of libraries (`ladder::duel::libraries`) of one run, in the figure's inner unit. `None`: there is none of that name.
fn figure_of(run: &Run, name: &str) -> Option<f64> {
    let quantile = |q: f64| run.latency.value_at_quantile(q) as f64;
    Some(match name {
        "ops" => run.rate_per_s(),
        "latency.p50" => quantile(0.5),
        "latency.p99" => quantile(0.99),
        "latency.p999" => quantile(0.999),
        "cpu_per_op" => run.cpu_s * 1e9 / run.ops as f64,
        "rss_peak" => run.rss_peak_bytes as f64,
        _ => return None,
    })
}

/// A process of one side as a trial of a duel. `seq`: its number within the run. `took_ns`: with its start and its warm-up.
pub fn held(duel: &Duel, seq: u32, side: Side, run: &Run, took_ns: u64) -> HeldTrial {
    let read = |figure: &&'static FigureDoc| {
        figure_of(run, figure.name).filter(|value| value.is_finite()).map_or(OF_PROCESSES, FigureValue::Value)
    };
    let load = duel.loads.first().copied().unwrap_or_default();
    HeldTrial {
        seq,
        judged: Judged { purpose: Purpose::Rung, load, cell: side.cell(), ..Judged::default() },
        unfair: None,
        figures: duel.compared().iter().map(read).collect(),
        took_ns,
    }
}

/// Why a run proves nothing for its library; `None`: every operation was executed correctly.
pub fn failure(key: &CellKey, run: &Run) -> Option<String> {
    let bad = run.failed.saturating_add(run.unknown);
    if bad > 0 {
        let wrong =
            if run.wrong > 0 { format!(", {} of them with a wrong value", run.wrong) } else { String::new() };
        return Some(format!("{bad} of {} operations failed or have an unknown outcome{wrong}", run.ops));
    }
    if let Some(why) = &run.stopped {
        return Some(format!("it stopped early ({why})"));
    }
    // The keys of a bounded get are written before it.
    (key.op == "get" && !key.is_unlimited() && run.misses > 0)
        .then(|| format!("{} of {} gets found nothing, although all keys had a value", run.misses, run.ops))
}

/// The next process, or why there is none. `failed`: the side whose operations failed.
pub fn next(duel: &Duel, held: &[HeldTrial], rules: &Rules, failed: Option<Side>) -> DuelNext {
    match failed {
        Some(Side::A) => DuelNext::Done(DuelStop::FailedA),
        Some(Side::B) => DuelNext::Done(DuelStop::FailedB),
        None => duel.next(held, rules),
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use crate::Fitness;
    use ladder::duel::libraries::usual_figures;
    use ladder::duel::{ALPHA, BLOCKS_MOST, DuelVerdict, GateState};

    fn run(ops: u64, elapsed_s: f64, latency_ns: u64) -> Run {
        let mut latency = Histogram::new(3).unwrap();
        latency.record_n(latency_ns, ops).unwrap();
        Run {
            client: "planted 1".to_owned(),
            runtime: "planted".to_owned(),
            member: None,
            own_overhead_ns: 100.0,
            ops,
            failed: 0,
            unknown: 0,
            hits: ops,
            misses: 0,
            wrong: 0,
            elapsed_s,
            cpu_s: elapsed_s / 2.0,
            rss_peak_bytes: 10_000_000,
            member_cpu_s: None,
            member_rss_bytes: None,
            latency,
            stopped: None,
            errors: Vec::new(),
            fitness: Fitness::default(),
            timeline: None,
        }
    }

    fn duel(gates: &[&str]) -> Duel {
        Duel {
            seed: 7,
            loads: vec![100.0],
            calibrations: Vec::new(),
            figures: usual_figures(),
            gates: gates.iter().map(|text| text.parse().unwrap()).collect(),
            delta: 0.05,
            blocks_most: 30,
            disturbed_share_most: 1.0,
            budget_ns: 60_000_000_000,
        }
    }

    /// Fights it out: B takes `factor` times as long, and both vary by `noise`.
    fn fought(duel: &Duel, factor: f64, noise: f64) -> (Vec<HeldTrial>, DuelStop) {
        let rules = Rules::new(ALPHA, duel.delta, BLOCKS_MOST.min(duel.blocks_most));
        let mut random = fastrand::Rng::with_seed(3);
        let mut done = Vec::new();
        loop {
            match next(duel, &done, &rules, None) {
                DuelNext::Trial(trial) => {
                    let slower = if trial.side == Side::B { factor } else { 1.0 };
                    let seconds = slower * (1.0 + noise * (random.f64() - 0.5));
                    let measured = run(10_000, seconds, (seconds * 1e6) as u64);
                    done.push(held(duel, trial.seq, trial.side, &measured, 1_000_000_000));
                }
                DuelNext::Done(stop) => return (done, stop),
                DuelNext::Calibration(_) => panic!("libraries are not calibrated"),
            }
        }
    }

    #[test]
    fn every_figure_that_a_duel_of_libraries_knows_is_read() {
        let run = run(10_000, 1.0, 1_000);
        for name in usual_figures() {
            assert!(figure_of(&run, &name).is_some_and(f64::is_finite), "{name}");
        }
    }

    #[test]
    fn a_slower_library_is_found_and_equal_ones_are_not_told_apart() {
        let duel = duel(&[]);
        let rules = duel.rules();
        let verdict = |factor: f64, noise: f64, name: &str| {
            let (done, _) = fought(&duel, factor, noise);
            let standing = duel.standing(&done, &rules);
            standing.loads[0].findings.iter().find(|one| one.figure.name == name).map(|one| one.verdict)
        };
        assert_eq!(verdict(1.1, 0.04, "ops"), Some(DuelVerdict::Smaller));
        assert_eq!(verdict(1.1, 0.04, "latency.p99"), Some(DuelVerdict::Larger));
        assert_eq!(verdict(1.1, 0.04, "cpu_per_op"), Some(DuelVerdict::Larger));
        assert_eq!(verdict(1.0, 0.04, "ops"), Some(DuelVerdict::NoDifferenceLargerThanDelta));
    }

    #[test]
    fn gates_are_factors_or_changes_and_end_the_duel() {
        let state = |gate: &str, factor: f64| {
            let duel = duel(&[gate]);
            let (done, stop) = fought(&duel, factor, 0.02);
            (duel.standing(&done, &duel.rules()).loads[0].gates[0].state, stop, done.len())
        };
        let (met, stop, trials) = state("ops >= 0.95x", 1.0);
        assert_eq!((met, stop), (GateState::Met, DuelStop::Known));
        assert!(trials < 60, "it ends before its time: {trials}");
        assert_eq!(state("ops >= 1.0x", 1.1).0, GateState::NotMet);
        assert_eq!(state("latency.p99 <= +5%", 1.1).0, GateState::NotMet);
        assert_eq!(state("cpu_per_op <= 1.2x", 1.1).0, GateState::Met);
    }

    #[test]
    fn a_library_that_fails_operations_or_finds_nothing_has_lost() {
        let key = |op: &str, in_flight: &str| CellKey {
            op: op.to_owned(),
            value_bytes: 3,
            in_flight: in_flight.to_owned(),
            total: 10_000,
        };
        let good = run(10_000, 1.0, 1_000);
        assert_eq!(failure(&key("get", "100"), &good), None);
        let misses = Run { misses: 10_000, hits: 0, ..good.clone() };
        assert!(failure(&key("get", "100"), &misses).is_some_and(|why| why.contains("found nothing")));
        // Without back-pressure nearly all keys are new, and a mix deletes.
        assert_eq!(failure(&key("get", "unlimited"), &misses), None);
        assert_eq!(failure(&key("mix", "100"), &misses), None);
        let wrong = Run { failed: 3, wrong: 3, ..good.clone() };
        assert!(
            failure(&key("set", "100"), &wrong)
                .is_some_and(|why| why.contains("3 of them with a wrong value"))
        );
        let unknown = Run { unknown: 1, ..good };
        assert!(failure(&key("set", "100"), &unknown).is_some());
        let stopped = next(&duel(&[]), &[], &duel(&[]).rules(), Some(Side::B));
        assert_eq!(stopped, DuelNext::Done(DuelStop::FailedB));
    }
}
