//! From the plan's bots to one monomorphic worker each.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use engine::Bots;
use engine::thread::{Setup, spawn};
use measure::Vocabulary;
use plan::WorkerPlan;

type Arena = crate::Arena;
type Echo = crate::Echo;

/// The names of what these bots count.
pub fn vocabulary(bots: &plan::Bots) -> Arc<Vocabulary> {
    match bots {
        plan::Bots::Arena(_) => Arena::vocabulary(),
        plan::Bots::Echo(_) => Echo::vocabulary(),
        plan::Bots::Chat(_) => unimplemented!(),
    }
}

/// The paths they connect to.
pub fn paths(plan: &WorkerPlan) -> Vec<String> {
    match plan.bots {
        plan::Bots::Arena(_) => Arena::paths(plan),
        plan::Bots::Echo(_) => Echo::paths(plan),
        plan::Bots::Chat(_) => unimplemented!(),
    }
}

/// Starts one worker.
pub fn start(setup: Setup) -> io::Result<JoinHandle<()>> {
    match setup.plan.bots {
        plan::Bots::Arena(_) => spawn::<Arena>(setup),
        plan::Bots::Echo(_) => spawn::<Echo>(setup),
        plan::Bots::Chat(_) => unimplemented!(),
    }
}
