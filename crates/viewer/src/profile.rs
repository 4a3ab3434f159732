//! The flame graphs of a run that was profiled, from the stacks that are kept with it.

use inflight_analysis::{FlameGraph, Stacks, Weights};
use ladder::Conclusion;
use ladder::growth::{KeptStacks, PROFILE};
use ladder::wording::show_bytes;
use serde::Serialize;
use store::{RunId, Store, StoreError};
use ts_rs::TS;

/// Longer stacks are not drawn: a store from elsewhere may hold any.
const STACKS_BYTES_MAX: usize = 32 << 20;

/// One kind of stacks at both loads.
#[derive(Clone, Debug, Serialize, TS)]
pub struct ProfileGraph {
    /// what the stacks are of
    pub of: KeptStacks,
    /// at the load that held and the one that failed; null where there is a problem
    pub graph: Option<FlameGraph>,
    /// why it cannot be drawn
    pub problem: Option<String>,
}

/// A graph of each kind of stacks that the run has; those that are damaged say so. Without a profile there are none.
///
/// Errors: of the store.
pub(crate) fn graphs(
    store: &Store,
    run: &RunId,
    conclusions: &[Conclusion],
) -> Result<Vec<ProfileGraph>, StoreError> {
    let Some(told) = conclusions.iter().find(|part| part.id == PROFILE) else { return Ok(Vec::new()) };
    let mut graphs = Vec::new();
    for of in KeptStacks::ALL {
        let names = of.artifacts();
        let both = [store.artifact(run, names[0])?, store.artifact(run, names[1])?];
        if both.iter().all(Option::is_none) {
            continue;
        }
        let drawn = drawn(of, told, names, both);
        let problem = drawn.as_ref().err().cloned();
        graphs.push(ProfileGraph { of, graph: drawn.ok(), problem });
    }
    Ok(graphs)
}

/// Errors: what is wrong with the artifacts, as a sentence for people.
fn drawn(
    of: KeptStacks,
    told: &Conclusion,
    names: [&str; 2],
    [good, bad]: [Option<Vec<u8>>; 2],
) -> Result<FlameGraph, String> {
    let read = |name: &str, bytes: Option<Vec<u8>>| {
        let bytes = bytes.ok_or_else(|| format!("{name} is missing from the store."))?;
        if bytes.len() > STACKS_BYTES_MAX {
            let (size, most) = (show_bytes(bytes.len() as f64), show_bytes(STACKS_BYTES_MAX as f64));
            return Err(format!("{name} has {size}, and at most {most} are drawn."));
        }
        let wrong = |why: &dyn std::fmt::Display| format!("{name} is damaged: {why}.");
        let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is no text"))?;
        Stacks::read(&text).map_err(|error| wrong(&error))
    };
    let (good, bad) = (read(names[0], good)?, read(names[1], bad)?);
    let [good_each, bad_each] = of
        .per_weight(told)
        .ok_or("An earlier version recorded these stacks without what their weights stand for.")?;
    let weights = match of {
        KeptStacks::Cpu => Weights::Samples,
        KeptStacks::Waits | KeptStacks::Alloc => Weights::Amounts,
    };
    Ok(FlameGraph::of([(&good, good_each), (&bad, bad_each)], weights))
}
