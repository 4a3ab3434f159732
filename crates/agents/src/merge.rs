//! Readings of several machines, merged second by second. Pure.
//!
//! The judge asks of a second whether anything kept the generator or the server from their work. So of machines the worst reading
//! counts; of the processes that make the load what they used is added up, and the worst of their threads counts.

use std::collections::BTreeMap;

use measure::{MachineMetric, OverTime, ProcessMetric, Reading, Sample};

/// Readings that wait for those of other machines.
#[derive(Debug)]
pub struct Samples {
    /// the second up to which each source has told everything
    told: Vec<u32>,
    pending: BTreeMap<u32, Vec<Sample>>,
}

impl Samples {
    /// Of so many sources.
    pub fn new(sources: usize) -> Samples {
        Samples { told: vec![0; sources], pending: BTreeMap::new() }
    }

    /// Takes readings of a source, in their order.
    pub fn take(&mut self, source: usize, samples: impl IntoIterator<Item = Sample>) {
        for sample in samples {
            let second = sample.second();
            if let Some(told) = self.told.get_mut(source) {
                *told = (*told).max(second);
            }
            self.pending.entry(second).or_default().push(sample);
        }
    }

    /// Nothing more comes from a source.
    pub fn ends(&mut self, source: usize) {
        if let Some(told) = self.told.get_mut(source) {
            *told = u32::MAX;
        }
    }

    /// The seconds of which every source has told everything, merged.
    pub fn ready(&mut self) -> Vec<Sample> {
        let until = self.told.iter().copied().min().unwrap_or(u32::MAX);
        let later = self.pending.split_off(&until);
        std::mem::replace(&mut self.pending, later).into_values().flat_map(merged).collect()
    }

    /// All the rest.
    pub fn rest(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.pending).into_values().flat_map(merged).collect()
    }
}

/// The readings of one second.
fn merged(samples: Vec<Sample>) -> Vec<Sample> {
    let mut sums: Vec<Sample> = Vec::new();
    for sample in samples {
        match sums.iter_mut().find(|sum| sum.what == sample.what) {
            None => sums.push(sample),
            Some(sum) => {
                sum.value = match how(&sample.what) {
                    How::Sum => sum.value + sample.value,
                    How::Worst => sum.value.max(sample.value),
                };
                sum.at_ns = sum.at_ns.max(sample.at_ns);
            }
        }
    }
    sums
}

enum How {
    Sum,
    Worst,
}

fn how(what: &Reading) -> How {
    match what {
        Reading::Worker(ProcessMetric::CpuShareMax | ProcessMetric::WaitingShareMax) => How::Worst,
        Reading::Worker(_) => How::Sum,
        Reading::Machine(metric) if is_count(*metric) => How::Sum,
        _ => How::Worst,
    }
}

/// Events of a second, which happened on each machine.
fn is_count(metric: MachineMetric) -> bool {
    metric.over_time() == OverTime::OfSecond
        && matches!(
            metric,
            MachineMetric::ThrottleEvents
                | MachineMetric::QuotaThrottleEvents
                | MachineMetric::ListenOverflows
                | MachineMetric::Retransmissions
                | MachineMetric::UdpDrops
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64, what: Reading, value: f64) -> Sample {
        Sample { at_ns: ms * 1_000_000, what, value }
    }

    #[test]
    fn a_second_waits_for_all_sources_and_the_worst_machine_counts() {
        let steal = Reading::Machine(MachineMetric::StealShare);
        let cpu = Reading::Worker(ProcessMetric::CpuTime);
        let busiest = Reading::Worker(ProcessMetric::CpuShareMax);
        let mut samples = Samples::new(2);
        samples.take(
            0,
            [at(1_000, steal.clone(), 0.0), at(1_000, cpu.clone(), 3.0), at(1_000, busiest.clone(), 0.9)],
        );
        samples.take(0, [at(2_000, steal.clone(), 0.0)]);
        assert!(samples.ready().is_empty(), "the other has said nothing");
        samples.take(
            1,
            [at(1_002, steal.clone(), 0.4), at(1_002, cpu.clone(), 4.0), at(1_002, busiest.clone(), 0.2)],
        );
        samples.take(1, [at(2_001, steal.clone(), 0.1)]);
        let ready = samples.ready();
        let of = |what: &Reading| ready.iter().find(|one| one.what == *what).unwrap();
        assert_eq!((of(&steal).value, of(&cpu).value, of(&busiest).value), (0.4, 7.0, 0.9));
        assert_eq!((of(&steal).at_ns, of(&steal).second(), ready.len()), (1_002_000_000, 0, 3));
        samples.ends(1);
        samples.take(0, [at(3_000, steal.clone(), 0.0)]);
        assert_eq!(samples.ready().len(), 1, "an agent that is gone is not waited for");
        assert_eq!(samples.rest().len(), 1);
    }
}
