//! Emulated networks between the bots and the server: what each does, and which bot has which.
//!
//! Pure. A bot has one network for all its connections, chosen by its number and the seed. The shares are exact: of every
//! `TURNS` bots in a row each network has its share, and nearly so of every few.
//! Units: `_ns`; shares are per mille, loss in [0, 0.5). The formulas are in docs/method/networks.md.

use std::sync::Arc;

use measure::{MetricNames, NetworkFacts, network};
use serde::{Deserialize, Serialize};

/// Shares are told to a tenth of a percent.
pub const TURNS: u32 = 1000;
/// To open a connection takes so many round trips at most: TCP, TLS 1.2, an upgrade or a login, and one to spare.
const ROUND_TRIPS_TO_OPEN: u64 = 6;

/// One emulated network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// as written, without its share
    pub name: String,
    /// of the bots, per mille; those of all networks are 1000
    pub share_per_mille: u32,
    /// round trip; half of it on each way, ns
    pub latency_ns: u64,
    /// each segment takes up to so much longer on each way, ns
    pub jitter_ns: u64,
    /// probability that a segment is lost, in [0, 0.5)
    pub loss: f64,
    /// on each way; 0: no limit
    pub bits_per_s: u64,
}

impl Network {
    /// After this time a lost segment is sent again, ns.
    pub fn rto_ns(&self) -> u64 {
        network::rto_ns(self.latency_ns)
    }

    /// How much longer opening a connection or one answer may take behind it, ns.
    fn allowance_ns(&self) -> u64 {
        let round_trip_ns = self.latency_ns + 2 * self.jitter_ns;
        // Two losses in a row.
        let losses_ns = if self.loss > 0.0 { 3 * self.rto_ns() } else { 0 };
        ROUND_TRIPS_TO_OPEN * round_trip_ns + losses_ns
    }
}

/// All networks of a climb; none: nothing is emulated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Networks(pub Vec<Network>);

impl Networks {
    /// True: nothing is emulated.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Which network each of `TURNS` bots in a row has: always the one that is furthest behind its share.
    pub fn turns(&self) -> Vec<u8> {
        let mut given = vec![0_u32; self.0.len()];
        let turn = |turn: u32| {
            let behind = |at: &usize| {
                i64::from(self.0[*at].share_per_mille) * i64::from(turn + 1)
                    - i64::from(given[*at]) * i64::from(TURNS)
            };
            // The first of several that are as far behind.
            let next = (0..self.0.len()).rev().max_by_key(behind).unwrap_or(0);
            given[next] += 1;
            // The parser takes fewer than 256.
            next as u8
        };
        (0..TURNS).map(turn).collect()
    }

    /// Where in the turns bot 0 of a run is.
    pub fn first_turn(seed: u64) -> u64 {
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }

    /// How much longer a connection's opening, its close or an answer may take, ns.
    pub fn allowance_ns(&self) -> u64 {
        self.0.iter().map(Network::allowance_ns).max().unwrap_or(0)
    }

    /// What a usual limit on a p99 has to allow for, ns.
    pub fn slow_round_trip_ns(&self) -> u64 {
        let slow_ns = |one: &Network| network::slow_round_trip_ns(one.latency_ns, one.jitter_ns, one.loss);
        self.0.iter().map(slow_ns).max().unwrap_or(0)
    }

    /// By how much two round trips of two bots may differ, ns; without a bound where segments are lost.
    pub fn spread_ns(&self) -> u64 {
        if self.0.iter().any(|network| network.loss > 0.0) {
            return u64::MAX;
        }
        let most_ns = self.0.iter().map(|network| network.latency_ns + 2 * network.jitter_ns).max();
        let least_ns = self.0.iter().map(|network| network.latency_ns).min();
        most_ns.unwrap_or(0) - least_ns.unwrap_or(0)
    }

    /// The names behind the indices of a worker's seconds, with those of what these networks record.
    pub fn named(&self, names: Arc<MetricNames>) -> Arc<MetricNames> {
        if self.is_empty() { names } else { names.with_values(&network::value_names(self.0.len())) }
    }

    /// What a trial with so many bots keeps of them.
    pub fn facts(&self, bots: u64, first_turn: u64) -> Vec<NetworkFacts> {
        let turns = self.turns();
        let mut behind = vec![0; self.0.len()];
        if !self.is_empty() {
            let of_bot = |bot: u64| usize::from(turns[((first_turn + bot) % u64::from(TURNS)) as usize]);
            (0..bots).for_each(|bot| behind[of_bot(bot)] += 1);
        }
        let facts = |(network, bots): (&Network, u64)| NetworkFacts {
            name: network.name.clone(),
            share: f64::from(network.share_per_mille) / f64::from(TURNS),
            bots,
            latency_ns: network.latency_ns,
            jitter_ns: network.jitter_ns,
            loss: network.loss,
            bits_per_s: (network.bits_per_s > 0).then_some(network.bits_per_s),
        };
        self.0.iter().zip(behind).map(facts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::network::networks;

    #[test]
    fn a_hundred_bots_are_split_exactly_wherever_they_begin() {
        let three = networks("70% wifi, 20% 4g, 10% latency=150ms").unwrap();
        for first in [0, 1, 42, Networks::first_turn(7)] {
            let bots = |count| three.facts(count, first).iter().map(|one| one.bots).collect::<Vec<_>>();
            assert_eq!(bots(100), [70, 20, 10]);
            assert_eq!(bots(1000), [700, 200, 100]);
            let ten = bots(10);
            assert!((6..=8).contains(&ten[0]) && ten[1] >= 1 && ten.iter().sum::<u64>() == 10, "{ten:?}");
        }
        let uneven = networks("99.9% wifi, 0.1% 4g").unwrap();
        assert_eq!(uneven.facts(2000, 5).iter().map(|one| one.bots).collect::<Vec<_>>(), [1998, 2]);
    }

    #[test]
    fn a_lost_segment_is_sent_again_after_one_and_a_half_round_trips_and_never_before_200_ms() {
        for (latency, rto_ms) in [("0ms", 200), ("80ms", 200), ("200ms", 300), ("10s", 15_000)] {
            let one = networks(&format!("latency={latency} loss=1%")).unwrap().0.remove(0);
            assert_eq!(one.rto_ns(), rto_ms * 1_000_000);
        }
    }

    #[test]
    fn deadlines_allow_for_the_slowest_network_and_for_nothing_without_one() {
        assert_eq!(Networks::default().allowance_ns(), 0);
        let two = networks("50% latency=10ms, 50% latency=80ms jitter=20ms loss=1%").unwrap();
        assert_eq!(two.allowance_ns(), 6 * 120_000_000 + 600_000_000);
        assert_eq!(two.slow_round_trip_ns(), 120_000_000 + 600_000_000);
        let seldom = networks("latency=80ms loss=0.1%").unwrap();
        assert_eq!((seldom.slow_round_trip_ns(), Networks::default().slow_round_trip_ns()), (280_000_000, 0));
        assert_eq!((two.spread_ns(), Networks::default().spread_ns()), (u64::MAX, 0));
        let sure = networks("50% latency=10ms, 50% latency=80ms jitter=20ms").unwrap();
        assert_eq!(sure.spread_ns(), 110_000_000);
    }
}
