//! What makes the load of a trial: the threads of this process, or those of others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::time::Duration;

use engine::collector::FromWorker;
use engine::{Collector, MonotonicClock, Progress, Shared, Timeline};
use measure::Entry;
use plan::{Plan, TickSource};
use watch::Listens;
use watch::profile::Seen;
use watch::profile::runtime::{Asked, Served};

use super::spec::TrialSpec;
use super::threads::{ThreadOptions, Threads};
use crate::phases::AHEAD_NS;
use crate::preflight::Machine;

/// Makes the loads of a climb's trials.
pub trait Generator {
    /// What carries the load. Errors: it cannot be found out.
    fn machine(&self) -> anyhow::Result<Machine>;

    /// Whether it runs on the machine of the subject at `address`; `is_here`: which is this one.
    fn shares_cores(&self, address: SocketAddr, is_here: bool) -> bool {
        let _ = is_here;
        // On loopback both are on this machine; only the subject's own affinity could separate them.
        address.ip().is_loopback()
    }

    /// Another machine's view of a server, where there is one. Errors: it is asked for and not to be had, and why.
    fn watch(&self, sought: &Sought<'_>) -> anyhow::Result<Option<Arc<dyn Elsewhere>>> {
        let _ = sought;
        Ok(None)
    }

    /// Gets ready for a trial. Errors: it cannot be made here, and why.
    fn prepare(&self, order: &TrialSpec<'_>) -> anyhow::Result<Box<dyn Load>>;
}

/// A server that is to be watched.
pub struct Sought<'a> {
    /// its ticks and their rate
    pub plan: &'a Plan,
    /// where it listens
    pub address: SocketAddr,
    /// for what
    pub listens: Listens,
    /// why its process is watched by this one already
    pub watched_here: Option<&'static str>,
}

/// A server whose process is watched on its own machine. What is read there comes with the load's entries (`Load::merge`).
pub trait Elsewhere: Send + Sync {
    /// True when its process has ended.
    fn has_ended(&self) -> bool;

    /// Whether this source of its ticks is read there.
    fn follows(&self, source: &TickSource) -> bool;

    /// The tick rate that was found there, Hz.
    fn tick_rate_hz(&self) -> Option<f64>;

    /// Its ticks are not read any more.
    fn forget_ticks(&self);

    /// Its process is one of this machine that cannot be told from other programs here.
    fn is_hidden_here(&self) -> bool;

    /// Profiles it there in the next trial. Errors: why it is not profiled, for the user.
    fn profile(&self, asked: Asked, served: Served) -> anyhow::Result<Box<dyn Profiling>>;
}

/// A server that is profiled on its own machine, from before a load until after it.
pub trait Profiling {
    /// The load begins; its trial's zero is these readings of CLOCK_MONOTONIC and of the clock of the day here, ns.
    fn begin(&mut self, zero_ns: (u64, u64)) -> anyhow::Result<()>;

    /// The hold begins; it lasts so long at most.
    fn hold_begins(&mut self, length: Duration) -> anyhow::Result<()>;

    /// The hold has ended.
    fn hold_ends(&mut self) -> anyhow::Result<()>;

    /// The load has ended; no answer is waited for.
    fn stop(&mut self);

    /// What was seen between these instants, ns since the trial's zero.
    fn end(&mut self, from_ns: u64, to_ns: u64) -> anyhow::Result<Seen>;
}

/// The load of one trial.
pub trait Load {
    /// The clock's zero lies so long ahead, ns: until then everyone has learnt of it.
    fn lead_ns(&self) -> u64 {
        0
    }

    /// Workers must know an instant so long before it comes, ns.
    fn ahead_ns(&self) -> u64 {
        AHEAD_NS
    }

    /// Whether its workers can learn of an instant now. While they cannot, none is decided.
    fn can_announce(&self) -> bool {
        true
    }

    /// Begins. Seconds come through the sender, each part under its number below the collector's count.
    fn begin(&mut self, start: Start) -> anyhow::Result<Collector>;

    /// What its workers have done so far.
    fn counts(&self) -> Counts;

    /// Processes of this machine, besides this one, that make it.
    fn pids(&self) -> Vec<u32> {
        Vec::new()
    }

    /// What is kept of what was sampled here since the last call, with what was sampled elsewhere.
    fn merge(&mut self, sampled: Vec<Entry>) -> Vec<Entry> {
        sampled
    }

    /// Every worker has ended, or must now.
    fn end(&mut self);
}

/// When and to whom.
pub struct Start {
    /// of the trial
    pub clock: MonotonicClock,
    /// its zero, ns since the epoch
    pub realtime_zero_ns: u64,
    /// the phases; instants come while the trial goes on
    pub timeline: Arc<Timeline>,
    /// where workers report
    pub says: Sender<FromWorker>,
}

/// What workers have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// connections open now
    pub open: u64,
    /// units of load that are in
    pub joined: u64,
    /// failed attempts
    pub failed: u64,
}

impl Counts {
    /// The sum over workers.
    pub fn of(progresses: &[Arc<Progress>]) -> Counts {
        let sum =
            |of: fn(&Progress) -> &AtomicU64| progresses.iter().map(|one| of(one).load(Relaxed)).sum::<u64>();
        Counts {
            open: sum(|progress| &progress.open),
            joined: sum(|progress| &progress.joined),
            failed: sum(|progress| &progress.failed),
        }
    }
}

/// This process makes the load.
pub struct ThisProcess;

impl Generator for ThisProcess {
    fn machine(&self) -> anyhow::Result<Machine> {
        Machine::prepare()
    }

    fn prepare(&self, order: &TrialSpec<'_>) -> anyhow::Result<Box<dyn Load>> {
        Ok(Box::new(InThreads {
            workers: order.workers.clone(),
            target: order.target.clone(),
            options: order.threads.clone(),
            threads: Threads::default(),
        }))
    }
}

struct InThreads {
    workers: Vec<plan::WorkerPlan>,
    target: plan::Target,
    options: ThreadOptions,
    threads: Threads,
}

impl Load for InThreads {
    fn begin(&mut self, start: Start) -> anyhow::Result<Collector> {
        let Start { clock, realtime_zero_ns, timeline, says } = start;
        let shared = Shared { timeline, realtime_zero_ns, ..Shared::default() };
        let (collector, threads) =
            Threads::start(&self.workers, &self.target, &self.options, (clock, &shared), &says)?;
        self.threads = threads;
        Ok(collector)
    }

    fn counts(&self) -> Counts {
        self.threads.counts()
    }

    fn end(&mut self) {
        std::mem::take(&mut self.threads).join();
    }
}
