//! What else happened in a second: on the machine, in the workers' threads and in the subject's.
//!
//! Everything that can make a server look worse than it is, and never better: it decides which seconds are fair to
//! judge by (`ladder::disturbance`). A figure that was not readable is `None`, never 0.
//! Units: shares in [0, 1]; cores of CPU time per second.

use std::collections::BTreeMap;

use crate::sample::{MachineMetric, ProcessMetric, Reading, Sample, Signal};

/// Readings of one second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSecond {
    /// share of all cores' time that the hypervisor gave to others
    pub steal_share: Option<f64>,
    /// the same of the core that lost most
    pub steal_share_max: Option<f64>,
    /// thermal or power throttle events
    pub throttle_events: Option<f64>,
    /// periods in which a CPU quota halted this process
    pub quota_throttle_events: Option<f64>,
    /// CPU that programs other than this one and the subject used, cores
    pub others_cores: Option<f64>,
    /// cores of the machine that these ran on; `None`: that of the load generator
    pub others_of_cores: Option<f64>,
    /// other runs of Stepladder that went on
    pub other_runs: Option<f64>,
    /// the largest of these programs by name, cores
    pub programs: Vec<(String, f64)>,
    /// the busiest worker thread's time on a core
    pub worker_cpu_share: Option<f64>,
    /// the most that one worker thread was runnable and had no core
    pub worker_waiting_share: Option<f64>,
    /// the same of the subject's threads
    pub subject_waiting_share: Option<f64>,
    /// the subject's busiest thread by name, and its time on a core
    pub subject_thread: Option<(String, f64)>,
    /// CPU of the subject's threads by name, cores; the busiest ones
    pub subject_threads: Vec<(String, f64)>,
    /// all readings of the subject and the machine that have fixed names; totals as they stood
    pub signals: BTreeMap<Signal, f64>,
}

impl HostSecond {
    /// Takes a reading; any that is none of these is passed over.
    pub(super) fn take(&mut self, sample: &Sample) {
        let value = Some(sample.value);
        if let Some(signal) = Signal::of(&sample.what) {
            self.signals.insert(signal, sample.value);
        }
        match &sample.what {
            Reading::Machine(MachineMetric::StealShare) => self.steal_share = value,
            Reading::Machine(MachineMetric::StealShareMax) => self.steal_share_max = value,
            Reading::Machine(MachineMetric::ThrottleEvents) => self.throttle_events = value,
            Reading::Machine(MachineMetric::QuotaThrottleEvents) => self.quota_throttle_events = value,
            Reading::Machine(MachineMetric::OthersCores) => self.others_cores = value,
            Reading::Machine(MachineMetric::OthersOfCores) => self.others_of_cores = value,
            Reading::Machine(MachineMetric::OtherRuns) => self.other_runs = value,
            Reading::Program(name) => self.programs.push((name.clone(), sample.value)),
            Reading::Worker(ProcessMetric::CpuShareMax) => self.worker_cpu_share = value,
            Reading::Worker(ProcessMetric::WaitingShareMax) => self.worker_waiting_share = value,
            Reading::Subject(ProcessMetric::WaitingShareMax) => self.subject_waiting_share = value,
            Reading::Thread(name) => self.subject_thread = Some((name.clone(), sample.value)),
            Reading::ThreadsNamed(name) => self.subject_threads.push((name.clone(), sample.value)),
            _ => {}
        }
    }
}
