//! Emulated networks: which bot is behind which, and what is recorded of them.
//!
//! How bytes are delayed is the drivers' (`drivers::network`); the thread wakes what is due there.

use drivers::network::{Passed, Path, take_passed};
use drivers::{Address, Driver};
use measure::{MetricNames, Phase, network};
use plan::{Networks, TURNS, WorkerPlan};

use crate::state::{Recorder, WorkerState};

/// The networks of a worker's bots.
pub(crate) struct BotNetworks {
    /// of `TURNS` bots in a row; empty: nothing is emulated
    turns: Vec<u8>,
    paths: Vec<Path>,
    first_turn: u64,
    worker: u64,
    workers: u64,
    /// how much longer a connection may take to open and to close, ns
    pub(crate) allowance_ns: u64,
    /// where the names of their distributions begin
    values_from: usize,
    passed: Passed,
}

impl BotNetworks {
    pub(crate) fn new(plan: &WorkerPlan, names: &MetricNames) -> Self {
        let is_empty = plan.networks.is_empty();
        BotNetworks {
            turns: if is_empty { Vec::new() } else { plan.networks.turns() },
            paths: paths(plan),
            first_turn: plan.first_turn,
            worker: plan.worker as u64,
            workers: plan.workers as u64,
            allowance_ns: plan.networks.allowance_ns(),
            values_from: names.values.len() - network::value_names(plan.networks.0.len()).len(),
            passed: Passed::default(),
        }
    }

    /// Nothing is emulated.
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The network of a bot of this worker; `None`: none is emulated.
    fn of_bot(&self, bot: u32) -> Option<usize> {
        let bot = u64::from(bot) * self.workers + self.worker;
        let turn = self.first_turn.wrapping_add(bot) % u64::from(TURNS);
        self.turns.get(turn as usize).map(|network| usize::from(*network))
    }

    /// Records what has passed since the last call.
    pub(crate) fn record(&mut self, recorder: &mut Recorder, phase: Phase) {
        if self.is_empty() {
            return;
        }
        take_passed(&mut self.passed);
        for passed in &self.passed.round_trips {
            recorder.value(self.values_from + network::asked(passed.path), phase, passed.asked_ns);
            recorder.value(self.values_from + network::applied(passed.path), phase, passed.applied_ns);
        }
        for late_ns in &self.passed.late_ns {
            recorder.value(self.values_from + network::late(self.paths.len()), phase, *late_ns);
        }
        self.passed.clear();
    }
}

fn paths(plan: &WorkerPlan) -> Vec<Path> {
    let Networks(networks) = &plan.networks;
    let path = |(index, one): (usize, &plan::Network)| Path {
        index,
        latency_ns: one.latency_ns,
        jitter_ns: one.jitter_ns,
        loss: one.loss,
        rto_ns: one.rto_ns(),
        bits_per_s: one.bits_per_s,
        keeps_arrivals: plan.bots.pairs_by_arrival(),
        seed: plan.seed,
    };
    networks.iter().enumerate().map(path).collect()
}

/// The addresses behind each of the worker's networks, one network after the other; without one as they are.
pub(crate) fn behind(addresses: &[Address], plan: &WorkerPlan) -> Vec<Address> {
    if plan.networks.is_empty() {
        return addresses.to_vec();
    }
    let behind =
        |path: Path| addresses.iter().map(move |address| Address { network: Some(path), ..address.clone() });
    paths(plan).into_iter().flat_map(behind).collect()
}

impl<D: Driver> WorkerState<D> {
    /// The place of an address, which the bots know by its number, behind the network of a bot.
    pub(crate) fn address_of(&self, bot: u32, path: usize) -> usize {
        let network = self.networks.of_bot(bot).unwrap_or(0);
        network * (self.addresses.len() / self.networks.paths.len().max(1)) + path
    }

    /// Puts an address of a bot's own behind its network.
    pub(crate) fn put_behind(&self, bot: u32, address: &mut Address) {
        address.network = self.networks.of_bot(bot).map(|network| self.networks.paths[network]);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use plan::{EchoBots, Network, Scheme};

    use super::*;

    #[test]
    fn the_bots_of_all_workers_together_have_their_shares() {
        let network = |name: &str, share_per_mille| Network {
            name: name.to_owned(),
            share_per_mille,
            latency_ns: 1,
            jitter_ns: 0,
            loss: 0.0,
            bits_per_s: 0,
        };
        let bots = EchoBots { rate_per_s: 1.0, payload_bytes: 10 };
        let alone = WorkerPlan::alone(bots.into(), 50, Scheme::Tcp, SocketAddr::from(([127, 0, 0, 1], 1)));
        let mut count = [0; 3];
        for worker in 0..2 {
            let networks = Networks(vec![network("a", 700), network("b", 200), network("c", 100)]);
            let plan = WorkerPlan { worker, workers: 2, networks, first_turn: 999, ..alone.clone() };
            let names = MetricNames::default();
            let names = std::sync::Arc::new(names).with_values(&network::value_names(3));
            let mine = BotNetworks::new(&plan, &names);
            (0..50).for_each(|bot| count[mine.of_bot(bot).unwrap()] += 1);
            assert_eq!(mine.of_bot(7), mine.of_bot(7), "one bot has one network");
            assert_eq!(behind(&[Address::plain(alone.address)], &plan).len(), 3);
        }
        assert_eq!(count, [70, 20, 10]);
        let mine = BotNetworks::new(&alone, &MetricNames::default());
        assert_eq!(mine.of_bot(3), None);
        assert!(behind(&[Address::plain(alone.address)], &alone)[0].network.is_none());
    }
}
