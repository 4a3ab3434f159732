//! Readings of the machines that make the load and of the server's machine, made those of one. Pure.
//!
//! On one machine both are the same. Apart, what tells why a server could do no more is of its machine, what halts the load
//! generator is of the latter's, and what takes CPU from either makes a second unfair to judge by, so the worse of both counts.
//! Other programs count by their share of their machine's cores.

use std::collections::BTreeMap;

use measure::{MachineMetric, ProcessMetric, Reading, Sample};

/// Whose readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// of whom makes the load
    Load = 0,
    /// of the server
    Server = 1,
}

/// Readings that wait for those of the other side.
#[derive(Debug)]
pub struct Both {
    /// the server's machine is another: it is read there, and not here
    is_read_there: bool,
    /// up to which second each side has told everything
    told: [u32; 2],
    pending: BTreeMap<u32, [Vec<Sample>; 2]>,
    /// cores that each side may use
    cores: [Option<f64>; 2],
}

/// Which readings of a machine count.
enum Counts {
    Any,
    Worse,
    Of(Side),
    /// other programs: those of the machine on which they have the larger share
    Others,
}

fn counts(what: &Reading) -> Counts {
    match what {
        Reading::Machine(metric) => match metric {
            MachineMetric::StealShare
            | MachineMetric::StealShareMax
            | MachineMetric::ThrottleEvents
            | MachineMetric::CpuPressure => Counts::Worse,
            MachineMetric::BusyShare
            | MachineMetric::Load1
            | MachineMetric::Frequency
            | MachineMetric::Temperature
            | MachineMetric::MemoryPressure
            | MachineMetric::IoPressure
            | MachineMetric::ListenOverflows
            | MachineMetric::Retransmissions
            | MachineMetric::UdpDrops => Counts::Of(Side::Server),
            MachineMetric::QuotaThrottleEvents | MachineMetric::OtherRuns | MachineMetric::ClockStep => {
                Counts::Of(Side::Load)
            }
            MachineMetric::OthersCores | MachineMetric::OthersOfCores => Counts::Others,
        },
        Reading::Program(_) => Counts::Others,
        Reading::Worker(_) => Counts::Of(Side::Load),
        Reading::Subject(_)
        | Reading::Thread(_)
        | Reading::ThreadsNamed(_)
        | Reading::Threads(_)
        | Reading::Services(_)
        | Reading::Other { .. } => Counts::Any,
    }
}

/// Of its network, which is not that of the load generator even where the machine is the same.
fn is_of_network(what: &Reading) -> bool {
    let metric = if let Reading::Machine(metric) = what { *metric } else { return false };
    [MachineMetric::ListenOverflows, MachineMetric::Retransmissions, MachineMetric::UdpDrops]
        .contains(&metric)
}

impl Both {
    /// `is_read_there`: the server's machine makes no load, so that what happens on it is read there alone.
    pub fn new(is_read_there: bool) -> Both {
        Both { is_read_there, told: [0; 2], pending: BTreeMap::new(), cores: [None; 2] }
    }

    /// Takes readings of a side, in their order. Returns those that do not wait for the other side.
    pub fn take(&mut self, side: Side, samples: impl IntoIterator<Item = Sample>) -> Vec<Sample> {
        let mut at_once = Vec::new();
        for sample in samples {
            let (second, told) = (sample.second(), &mut self.told[side as usize]);
            *told = (*told).max(second);
            if sample.what == Reading::Worker(ProcessMetric::AllowedCores) {
                self.cores[side as usize] = Some(sample.value);
            }
            let is_of_machine = matches!(sample.what, Reading::Machine(_) | Reading::Program(_));
            let is_unread = side == Side::Server && !self.is_read_there && !is_of_network(&sample.what);
            match counts(&sample.what) {
                _ if is_of_machine && is_unread => {}
                Counts::Any => at_once.push(sample),
                Counts::Of(of) if of == side => at_once.push(sample),
                // The machine is the same.
                Counts::Of(Side::Server) if is_of_machine && !self.is_read_there => at_once.push(sample),
                Counts::Of(_) => {}
                Counts::Worse | Counts::Others => {
                    self.pending.entry(second).or_default()[side as usize].push(sample);
                }
            }
        }
        at_once
    }

    /// Nothing more comes from a side.
    pub fn ends(&mut self, side: Side) {
        self.told[side as usize] = u32::MAX;
    }

    /// The seconds of which both sides have told everything.
    pub fn ready(&mut self) -> Vec<Sample> {
        let until = if self.is_read_there { self.told[0].min(self.told[1]) } else { u32::MAX };
        let later = self.pending.split_off(&until);
        let ready = std::mem::replace(&mut self.pending, later);
        ready.into_values().flat_map(|second| self.merged(second)).collect()
    }

    /// All the rest.
    pub fn rest(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.pending).into_values().flat_map(|second| self.merged(second)).collect()
    }

    fn merged(&self, second: [Vec<Sample>; 2]) -> Vec<Sample> {
        let [load, server] = &second;
        let side = if self.others(server, Side::Server) > self.others(load, Side::Load) {
            Side::Server
        } else {
            Side::Load
        };
        let mut merged: Vec<Sample> = Vec::new();
        for (of, sample) in [Side::Load, Side::Server]
            .into_iter()
            .zip(second)
            .flat_map(|(of, samples)| samples.into_iter().map(move |sample| (of, sample)))
        {
            let is_others = matches!(counts(&sample.what), Counts::Others);
            if is_others && of != side {
                continue;
            }
            if sample.what == Reading::Machine(MachineMetric::OthersCores)
                && let (Side::Server, Some(cores)) = (of, self.cores[of as usize])
            {
                let what = Reading::Machine(MachineMetric::OthersOfCores);
                merged.push(Sample { what, value: cores, ..sample.clone() });
            }
            match merged.iter_mut().find(|one| !is_others && one.what == sample.what) {
                Some(one) => one.value = one.value.max(sample.value),
                None => merged.push(sample),
            }
        }
        merged
    }

    /// The share of a machine's cores that other programs used; below 0 where that is not known.
    fn others(&self, samples: &[Sample], side: Side) -> f64 {
        let of = |sample: &&Sample| sample.what == Reading::Machine(MachineMetric::OthersCores);
        let used = samples.iter().rfind(of).map_or(-1.0, |sample| sample.value);
        used / self.cores[side as usize].filter(|cores| *cores > 0.0).unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEAL: Reading = Reading::Machine(MachineMetric::StealShare);
    const BUSY: Reading = Reading::Machine(MachineMetric::BusyShare);
    const OTHERS: Reading = Reading::Machine(MachineMetric::OthersCores);
    const OF_CORES: Reading = Reading::Machine(MachineMetric::OthersOfCores);
    const CORES: Reading = Reading::Worker(ProcessMetric::AllowedCores);
    const CPU: Reading = Reading::Subject(ProcessMetric::CpuTime);

    fn at(second: u64, what: Reading, value: f64) -> Sample {
        Sample { at_ns: second * 1_000_000_000 + 1_000, what, value }
    }

    fn value(samples: &[Sample], what: &Reading) -> Option<f64> {
        samples.iter().find(|one| one.what == *what).map(|one| one.value)
    }

    #[test]
    fn what_takes_cpu_counts_where_it_is_worse_and_what_explains_is_the_servers() {
        let mut both = Both::new(true);
        let at_once = both.take(
            Side::Load,
            [at(1, STEAL, 0.3), at(1, BUSY, 0.9), at(1, CORES, 2.0), at(1, OTHERS, 0.2), at(2, STEAL, 0.0)],
        );
        assert_eq!(at_once, [at(1, CORES, 2.0)], "how busy the generator's machine is explains no server");
        assert!(both.ready().is_empty(), "the server's machine has said nothing");
        // 1 of 32 cores is less of them than 0.2 of 2.
        let told =
            [at(1, STEAL, 0.1), at(1, BUSY, 0.5), at(1, CPU, 7.0), at(1, CORES, 32.0), at(1, OTHERS, 1.0)];
        let at_once = both.take(Side::Server, told);
        assert_eq!(at_once, [at(1, BUSY, 0.5), at(1, CPU, 7.0)]);
        both.take(Side::Server, [at(2, STEAL, 0.4), at(2, OTHERS, 8.0)]);
        let ready = both.ready();
        assert_eq!(
            (value(&ready, &STEAL), value(&ready, &OTHERS), value(&ready, &OF_CORES)),
            (Some(0.3), Some(0.2), None)
        );
        let rest = both.rest();
        assert_eq!(
            (value(&rest, &STEAL), value(&rest, &OTHERS), value(&rest, &OF_CORES)),
            (Some(0.4), Some(8.0), Some(32.0)),
            "a quarter of the server's machine"
        );
    }

    #[test]
    fn programs_are_those_of_the_machine_whose_share_counts() {
        let mut both = Both::new(true);
        let program = |name: &str| Reading::Program(name.to_owned());
        both.take(Side::Load, [at(1, CORES, 2.0), at(1, OTHERS, 0.5), at(1, program("cc1"), 0.5)]);
        both.take(
            Side::Server,
            [
                at(1, CORES, 2.0),
                at(1, OTHERS, 0.7),
                at(1, program("backup"), 0.4),
                at(1, program("cron"), 0.3),
            ],
        );
        let rest = both.rest();
        assert_eq!(value(&rest, &program("cc1")), None);
        assert_eq!(
            (value(&rest, &program("backup")), value(&rest, &program("cron"))),
            (Some(0.4), Some(0.3))
        );
    }

    #[test]
    fn a_machine_that_is_both_is_read_once_and_its_servers_network_there() {
        let mut both = Both::new(false);
        let overflows = Reading::Machine(MachineMetric::ListenOverflows);
        let at_once = both.take(
            Side::Server,
            [at(1, STEAL, 0.9), at(1, BUSY, 0.9), at(1, CPU, 7.0), at(1, overflows.clone(), 5.0)],
        );
        assert_eq!(at_once, [at(1, CPU, 7.0), at(1, overflows, 5.0)]);
        assert_eq!(both.take(Side::Load, [at(1, BUSY, 0.5), at(1, STEAL, 0.1)]), [at(1, BUSY, 0.5)]);
        assert_eq!(both.ready(), [at(1, STEAL, 0.1)], "nothing is waited for");
    }

    #[test]
    fn once_the_server_is_not_watched_any_more_the_others_readings_go_on() {
        let mut both = Both::new(true);
        both.take(Side::Load, [at(1, STEAL, 0.3), at(2, STEAL, 0.2), at(3, STEAL, 0.1)]);
        both.ends(Side::Server);
        let ready: Vec<f64> = both.ready().iter().map(|one| one.value).collect();
        assert_eq!(ready, [0.3, 0.2]);
    }
}
