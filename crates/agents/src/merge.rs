//! Readings of several machines, merged second by second. Pure.
//!
//! The judge asks of a second whether anything kept the generator or the server from their work. So of machines the worst reading
//! counts; of the processes that make the load what they used is added up, and the worst of their threads counts.

use std::collections::BTreeMap;

use measure::{ProcessMetric, Reading, Sample};

/// Readings that wait for those of other machines.
#[derive(Debug)]
pub struct Samples {
    sources: Vec<Source>,
    /// by second, with their source
    pending: BTreeMap<u32, Vec<(usize, Sample)>>,
}

#[derive(Clone, Debug, Default)]
struct Source {
    /// the second up to which it has told everything
    told: u32,
    /// the last of what is added up: a total stands until it is read again
    last: Vec<Sample>,
}

impl Samples {
    /// For this many sources.
    pub fn new(sources: usize) -> Samples {
        Samples { sources: vec![Source::default(); sources], pending: BTreeMap::new() }
    }

    /// Takes readings of a source, in their order.
    pub fn take(&mut self, source: usize, samples: impl IntoIterator<Item = Sample>) {
        let Some(of) = self.sources.get_mut(source) else { return };
        for sample in samples {
            let second = sample.second();
            of.told = of.told.max(second);
            self.pending.entry(second).or_default().push((source, sample));
        }
    }

    /// Nothing more comes from a source.
    pub fn ends(&mut self, source: usize) {
        if let Some(of) = self.sources.get_mut(source) {
            of.told = u32::MAX;
        }
    }

    /// The seconds of which every source has told everything, merged.
    pub fn ready(&mut self) -> Vec<Sample> {
        let until = self.sources.iter().map(|source| source.told).min().unwrap_or(u32::MAX);
        let later = self.pending.split_off(&until);
        let ready = std::mem::replace(&mut self.pending, later);
        ready.into_values().flat_map(|second| self.merged(second)).collect()
    }

    /// All the rest.
    pub fn rest(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.pending).into_values().flat_map(|second| self.merged(second)).collect()
    }

    /// The readings of one second. Of a source that read the same thing twice in it the later one counts.
    fn merged(&mut self, second: Vec<(usize, Sample)>) -> Vec<Sample> {
        let mut merged: Vec<Sample> = Vec::new();
        for (source, sample) in second {
            let is_sum = matches!(how(&sample.what), How::Sum);
            match merged.iter_mut().find(|one| one.what == sample.what) {
                Some(one) => {
                    one.at_ns = one.at_ns.max(sample.at_ns);
                    one.value = one.value.max(sample.value);
                }
                None => merged.push(sample.clone()),
            }
            if is_sum {
                let last = &mut self.sources[source].last;
                last.retain(|one| one.what != sample.what);
                last.push(sample);
            }
        }
        for one in merged.iter_mut().filter(|one| matches!(how(&one.what), How::Sum)) {
            let of_all = self.sources.iter().flat_map(|source| &source.last);
            one.value = of_all.filter(|last| last.what == one.what).map(|last| last.value).sum();
        }
        merged
    }
}

enum How {
    Sum,
    Worst,
}

fn how(what: &Reading) -> How {
    match what {
        Reading::Worker(ProcessMetric::CpuShareMax | ProcessMetric::WaitingShareMax) => How::Worst,
        Reading::Worker(_) => How::Sum,
        _ => How::Worst,
    }
}

#[cfg(test)]
mod tests {
    use measure::MachineMetric;

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
        samples.take(
            0,
            [at(2_400, cpu.clone(), 3.5), at(2_450, cpu.clone(), 3.6), at(3_000, steal.clone(), 0.0)],
        );
        let ready = samples.ready();
        let total = ready.iter().find(|one| one.what == cpu).unwrap();
        assert_eq!(
            total.value, 7.6,
            "read twice it counts once, and what an agent that is gone has used stands"
        );
        assert_eq!(samples.rest().len(), 1);
    }
}
