//! The waits of one hold, by function.

use inflight_analysis::{Kind, Stacks};
use ladder::growth::Waiting;
use measure::{Measure, Trial};
use watch::profile::{On, Waits};

/// By the innermost function of the server's own code. Errors: the stacks are none.
pub(super) fn of(waits: &Waits, trial: &Trial) -> anyhow::Result<Waiting> {
    let hold_ns = trial.hold.as_ref().map_or(0, |hold| hold.to_ns - hold.from_ns);
    let mut waiting = Waiting {
        covered: waits.covered_ns as f64 / hold_ns.max(1) as f64,
        connections: trial.connections.open,
        service_ns: trial.distribution(Measure::Service).summary().and_then(|summary| summary.p50),
        ..Waiting::default()
    };
    for one in &waits.each {
        let stacks = Stacks::read(&format!("{} 1", one.stack))?;
        let own = |(frames, _)| -> Option<String> {
            let frames: &[inflight_analysis::Frame] = frames;
            frames.iter().rfind(|(kind, _)| *kind == Kind::User).map(|(_, name)| name.clone())
        };
        let Some(function) = stacks.each().find_map(own) else { continue };
        let waited = waiting.functions.entry(function).or_default();
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
    Ok(waiting)
}
