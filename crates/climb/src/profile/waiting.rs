//! The waits of one hold, by function.

use ladder::growth::Waiting;
use measure::{Measure, Trial};
use watch::profile::{On, Waits};

/// By the innermost function of the server's own code.
pub(super) fn of(waits: &Waits, trial: &Trial) -> Waiting {
    let hold_ns = trial.hold.as_ref().map_or(0, |hold| hold.to_ns - hold.from_ns);
    let mut waiting = Waiting {
        covered: waits.covered_ns as f64 / hold_ns.max(1) as f64,
        connections: trial.connections.open,
        service_ns: trial.distribution(Measure::Service).summary().and_then(|summary| summary.p50),
        ..Waiting::default()
    };
    for one in &waits.holders {
        let Some(function) = one.own_function() else { continue };
        let waited = waiting.holders.entry(function.to_owned()).or_default();
        waited.ns += one.ns;
        waited.count += one.count;
    }
    for one in &waits.each {
        let Some(function) = one.own_function() else { continue };
        let waited = waiting.functions.entry(function.to_owned()).or_default();
        match one.on {
            On::Thread | On::Timer | On::Disk => {
                waited.ns += one.ns;
                waited.count += one.count;
            }
            On::Events => {
                waited.events_ns += one.ns;
                waited.events_count += one.count;
            }
            On::Other => {}
        }
    }
    waiting
}
