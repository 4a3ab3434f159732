//! The workers of this process, as threads.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use anyhow::Context as _;
use engine::collector::FromWorker;
use engine::thread::Setup;
use engine::{Collector, MonotonicClock, Progress, Shared};
use plan::{Plan, Target, WorkerPlan};

use super::connections::addresses;
use super::load::Counts;

/// How workers run.
#[derive(Clone, Debug, Default)]
pub struct ThreadOptions {
    /// SCHED_FIFO
    pub realtime: bool,
    /// busy wait before a planned instant, ns
    pub spin_ns: u64,
    /// cores they stay on, in turn; empty: anywhere
    pub cores: Vec<usize>,
}

impl ThreadOptions {
    /// As a plan says, on these cores.
    pub fn of(plan: &Plan, cores: &[usize]) -> ThreadOptions {
        let (realtime, spin_ns) = (plan.generator.realtime, plan.generator.spin_ns);
        ThreadOptions { realtime, spin_ns, cores: cores.to_vec() }
    }
}

/// The threads of a trial. They end when its timeline says so.
#[derive(Default)]
pub struct Threads {
    progresses: Vec<Arc<Progress>>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts one thread for each worker; they report to `says`. Errors: no certificate; no thread could be started.
    pub fn start(
        workers: &[WorkerPlan],
        target: &Target,
        options: &ThreadOptions,
        (clock, shared): (MonotonicClock, &Shared),
        says: &Sender<FromWorker>,
    ) -> anyhow::Result<(Collector, Threads)> {
        let (collector, ends) = Collector::new(workers.len(), says);
        let mut started = Threads::default();
        for (index, (plan, to_collector)) in workers.iter().zip(ends).enumerate() {
            let progress = Arc::new(Progress::default());
            started.progresses.push(progress.clone());
            let core = (!options.cores.is_empty()).then(|| options.cores[index % options.cores.len()]);
            let setup = Setup {
                plan: plan.clone(),
                addresses: addresses(plan, target)?,
                shared: Shared { progress, ..shared.clone() },
                clock,
                to_collector,
                says: says.clone(),
                core,
                realtime: options.realtime,
                spin_ns: options.spin_ns,
            };
            let thread = bots::catalog::start(setup).context("a worker thread could not be started")?;
            started.threads.push(thread);
        }
        Ok((collector, started))
    }

    /// What they have done so far.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.progresses)
    }

    /// The same, as it goes on.
    pub fn progresses(&self) -> Vec<Arc<Progress>> {
        self.progresses.clone()
    }

    /// Waits for their end.
    pub fn join(self) {
        for thread in self.threads {
            // A worker's panic was already reported through its channel.
            let _ = thread.join();
        }
    }
}
