//! What disturbed a second: other programs, threads that waited for a core, steal, throttling.
//!
//! All are differences between two readings, so each covers its own second; the first reading reports only values that
//! need no difference. Everything that compares processes is read together. Not here: when it is read (`sampler`).

use std::collections::BTreeSet;
use std::time::SystemTime;

use measure::{MachineMetric, ProcessMetric, Reading};

use super::activity::Activity;
use super::thread_names::{Ended, ThreadNames};
use crate::machine::Machine;
use crate::other_runs;
use crate::others::{OtherPrograms, Totals};
use crate::process::ProcessTree;
use crate::services::Services;
use crate::threads::Threads;
use crate::watched::Watched;

/// What was read, and the value.
pub(super) type Told = (Reading, f64);

/// CPU times that were read just before, s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuTimes {
    pub subject_s: Option<f64>,
    pub own_s: f64,
}

/// How the threads of our workers are named (`engine::thread`).
const WORKER_PREFIX: &str = "worker-";
/// A thread that was on a core for less is not worth a name.
const THREAD_CORES_MIN: f64 = 0.01;

#[derive(Debug)]
pub(super) struct Disturbances {
    machine: Machine,
    /// `None` where others cannot be told from the subject
    others: Option<OtherPrograms>,
    workers: Threads,
    subject: Threads,
    names: ThreadNames,
    ended: Ended,
    activity: Activity,
    services: Services,
    /// processes that make the load besides this one
    load: Vec<ProcessTree>,
    is_first: bool,
}

impl Disturbances {
    pub fn new(others_can_be_told: bool, load_pids: &[u32]) -> Self {
        Disturbances {
            machine: Machine::new(),
            others: others_can_be_told.then(OtherPrograms::new),
            workers: Threads::new(),
            subject: Threads::new(),
            names: ThreadNames::default(),
            ended: Ended::default(),
            activity: Activity::new(),
            services: Services::new(),
            load: load_pids.iter().filter_map(|pid| ProcessTree::of(*pid).ok()).collect(),
            is_first: true,
        }
    }

    /// Looks once at what threads do.
    pub fn look(&mut self) {
        self.activity.states.look();
        self.services.look();
    }

    /// Time until the next look, ns.
    pub fn look_gap_ns(&mut self) -> u64 {
        self.activity.states.gap_ns()
    }

    /// Services that the subject asks, as they are found.
    pub fn new_services(&mut self) -> Vec<String> {
        self.services.take_news()
    }

    /// What happened since the reading before.
    pub fn read(&mut self, subject: Option<&Watched>, cpu: CpuTimes, now_ns: &dyn Fn() -> u64) -> Vec<Told> {
        let mut told: Vec<Told> = Vec::new();
        let is_first = std::mem::replace(&mut self.is_first, false);
        let mut put = |what, value: Option<f64>| told.extend(value.map(|value| (what, value)));
        let reading = self.machine.read();
        let pids = subject.map(Watched::pids);
        let mut ours: BTreeSet<i32> = pids.iter().flatten().copied().collect();
        self.services.find(self.activity.asked(), &ours);
        let of_services = self.services.read(now_ns());
        ours.extend(self.services.pids());
        let load_s: f64 = self.load.iter_mut().filter_map(ProcessTree::read).map(|read| read.cpu_s).sum();
        ours.extend(self.load.iter().flat_map(ProcessTree::pids));
        let ours_s = cpu.own_s + cpu.subject_s.unwrap_or(0.0) + self.services.cpu_s() + load_s;
        let others = self.others.as_mut().and_then(|others| {
            let totals = reading.programs_cpu_s.map(|machine_s| Totals { machine_s, ours_s });
            others.read(&ours, totals, now_ns())
        });
        let workers = self.workers.read(&Threads::of_this_process(WORKER_PREFIX), now_ns());
        let subject = subject.and_then(|watched| self.subject.read(watched.threads(), now_ns()));
        let events = |count: Option<f64>| count.filter(|_| !is_first);
        for (name, value) in [
            (MachineMetric::StealShare, reading.steal_share),
            (MachineMetric::StealShareMax, reading.steal_share_max),
            (MachineMetric::BusyShare, reading.busy_share),
            (MachineMetric::ThrottleEvents, events(reading.throttle_events)),
            (MachineMetric::QuotaThrottleEvents, events(reading.quota_throttle_events)),
            (MachineMetric::CpuPressure, reading.cpu_pressure_some_avg10),
            (MachineMetric::MemoryPressure, reading.memory_pressure_some_avg10),
            (MachineMetric::IoPressure, reading.io_pressure_some_avg10),
            (MachineMetric::Load1, reading.load1),
            (MachineMetric::Frequency, reading.frequency_hz),
            (MachineMetric::Temperature, reading.temperature_c),
            (MachineMetric::OtherRuns, other_runs::count().map(|count| count as f64)),
            (MachineMetric::OthersCores, others.as_ref().map(|others| others.cores)),
        ] {
            put(Reading::Machine(name), value);
        }
        let cpu_share_max = workers.as_ref().map(|workers| workers.cpu_share_max);
        let waiting_share_max = workers.as_ref().map(|workers| workers.waiting_share_max);
        put(Reading::Worker(ProcessMetric::CpuShareMax), cpu_share_max);
        put(Reading::Worker(ProcessMetric::WaitingShareMax), waiting_share_max);
        let waiting_share_max = subject.as_ref().map(|subject| subject.waiting_share_max);
        put(Reading::Subject(ProcessMetric::WaitingShareMax), waiting_share_max);
        let switches = subject.as_ref().map(|subject| subject.context_switches);
        put(Reading::Subject(ProcessMetric::ContextSwitches), switches);
        told.extend(of_services);
        if let Some((pids, cpu_s)) = pids.as_ref().zip(cpu.subject_s) {
            let ended = self.ended.read(now_ns(), cpu_s, self.subject.lived_s(), pids.len());
            told.extend(ended.map(|cores| (Reading::Subject(ProcessMetric::EndedThreads), cores)));
            let names = self.names.read(&self.subject).into_iter();
            told.extend(names.map(|(name, cores)| (Reading::ThreadsNamed(name), cores)));
        }
        if let Some(pids) = pids {
            told.extend(self.activity.read(&pids, self.subject.active()));
        }
        let busiest =
            subject.and_then(|subject| subject.busiest).filter(|(_, cores)| *cores >= THREAD_CORES_MIN);
        let programs = others.map(|others| others.programs).unwrap_or_default();
        told.extend(programs.into_iter().map(|(name, cores)| (Reading::Program(name), cores)));
        told.extend(busiest.map(|(name, cores)| (Reading::Thread(name), cores)));
        told
    }
}

/// ns since the epoch; 0 before it.
pub(super) fn realtime_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
