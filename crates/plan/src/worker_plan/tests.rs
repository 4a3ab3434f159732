use ladder::LoadUnit;
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::plan::{HoldLength, TickSource, usual};
use crate::scheme::Scheme;
use crate::workloads::{ArenaBots, ChatBots, ChatDialect, EchoBots, Pairing};

fn arena() -> BotSettings {
    BotSettings::Arena(ArenaBots {
        fast_ns: 110_000_000,
        slow_ns: 200_000_000,
        pairing: Pairing::Pipelined,
        snapshots: 0.01,
        longest_game_ns: 60_000_000_000,
    })
}

fn plan_of(bots: BotSettings, ramp: Ramp) -> Plan {
    let mut plan =
        usual::plan(("arena", TickSource::Log(None), 60.0), bots, (&[500.0], LoadUnit::Games, ramp));
    // A hold needs ledger memory, too.
    (plan.ladder.settle_ns, plan.ladder.hold) = (0, HoldLength::Time(1));
    plan
}

fn split_of(load: f64, workers: usize, sources: &[IpAddr]) -> Vec<WorkerPlan> {
    let address: SocketAddr = "127.0.0.1:42069".parse().unwrap();
    let plan = plan_of(arena(), Ramp::Every(2_000_000));
    split(&plan, load, &Target::at(Scheme::Ws, address), address, workers, sources)
}

proptest! {
    #[test]
    fn every_unit_is_dealt_to_exactly_one_worker(load in 0u64..5000, workers in 0usize..40) {
        let shares = split_of(load as f64, workers, &[]);
        let mut dealt: Vec<u64> = shares
            .iter()
            .flat_map(|share| (0..share.units).map(|n| share.first_unit + n * share.workers as u64))
            .collect();
        dealt.sort_unstable();
        prop_assert_eq!(dealt, (0..load).collect::<Vec<_>>());
        let most = shares.iter().map(|share| share.units).max();
        let fewest = shares.iter().map(|share| share.units).min();
        prop_assert!(most.unwrap() - fewest.unwrap() <= 1);
    }

    #[test]
    fn no_table_overflows(connections in 0u64..3_000_000, cores in 1usize..64, table in 300u64..1_000_000) {
        let workers = workers_for(connections, cores, table) as u64;
        prop_assert!(workers >= 1);
        let per_worker = connections.div_ceil(workers);
        // Very small tables need one worker per connection, and then every one of them fits.
        prop_assert!(per_worker + per_worker / 10 + DESCRIPTORS_SPARE <= table + 1);
    }
}

#[test]
fn workers_share_the_plan_but_not_its_seed() {
    let shares = split_of(1000.0, 4, &[]);
    assert_eq!(shares.len(), 4);
    let seeds: BTreeSet<u64> = shares.iter().map(|share| share.seed).collect();
    assert_eq!(seeds.len(), 4, "each worker has a seed of its own");
    assert_eq!(shares, split_of(1000.0, 4, &[]), "the same plan gives the same shares");
    assert_eq!(shares[3].tick_period_ns, 16_666_667);
    assert_eq!((shares[3].worker, shares[3].workers, shares[3].first_unit, shares[3].units), (3, 4, 3, 250));
}

#[test]
fn there_are_never_more_workers_than_units_and_always_one() {
    assert_eq!(split_of(2.0, 8, &[]).len(), 2);
    assert_eq!(split_of(0.0, 8, &[]).len(), 1);
    assert_eq!(split_of(10.0, 0, &[]).len(), 1);
}

#[test]
fn workers_begin_at_different_source_addresses_and_know_all_of_them() {
    let sources = loopback_sources(3, "127.0.0.1".parse().unwrap());
    let shares = split_of(100.0, 4, &sources);
    let firsts: Vec<String> = shares.iter().map(|share| share.sources[0].to_string()).collect();
    assert_eq!(firsts, ["127.0.0.10", "127.0.0.11", "127.0.0.12", "127.0.0.10"]);
    assert!(shares.iter().all(|share| share.sources.len() == 3));
}

#[test]
fn needs_of_twenty_thousand_games() {
    let needs = needs(&plan_of(arena(), Ramp::Every(2_000_000)), 20_000.0);
    assert_eq!(needs.bots, 40_000);
    assert_eq!(needs.connections, 40_000);
    assert_eq!(needs.descriptors, 44_000);
    assert_eq!(needs.opens_per_s, 4000.0);
    assert_eq!(needs.ramp_ns, 39_998_000_000);
    // (40,000 + 10 % + 4,000/s × 60 s) / 28,000 = 10.1 addresses.
    assert_eq!(sources_for(needs.connections, needs.opens_per_s, 28_000), 11);
    assert_eq!(workers_for(needs.connections, 2, 20_000), 3);
}

#[test]
fn echo_clients_keep_their_connections() {
    let bots = BotSettings::Echo(EchoBots { rate_per_s: 10.0, payload_bytes: 64 });
    let needs = needs(&plan_of(bots, Ramp::PerSecond(500.0)), 1001.0);
    assert_eq!((needs.bots, needs.connections, needs.descriptors), (1001, 1001, 1102));
    assert_eq!(needs.opens_per_s, 0.0);
    assert_eq!(needs.ramp_ns, 2_000_000_000);
    assert_eq!(needs.ledger_bytes, 0, "an echo owes nobody a broadcast");
    assert_eq!(sources_for(needs.connections, needs.opens_per_s, 28_000), 1);
}

fn chat(talkers: Option<u64>) -> Plan {
    let bots = BotSettings::Chat(ChatBots {
        dialect: ChatDialect::Lines,
        gap_min_ns: 500_000_000,
        gap_max_ns: 1_000_000_000,
        line_min_bytes: 15,
        line_max_bytes: 58,
        talkers,
        room: "lobby".into(),
        echoes: false,
        misbehave: Vec::new(),
    });
    let mut plan = plan_of(bots, Ramp::PerSecond(1000.0));
    plan.ladder.hold = HoldLength::Time(58_000_000_000);
    plan
}

#[test]
fn a_chatter_has_one_connection_and_a_cell_for_each_talker() {
    let needs = needs(&chat(None), 1001.0);
    assert_eq!((needs.bots, needs.connections, needs.opens_per_s), (1001, 1001, 0.0));
    // 1 s of ramp and 58 s of hold are 78.67 lines of each; 8 bytes a cell, 512 a row, 8 a line.
    assert_eq!(needs.ledger_bytes, 8 * 1001 * 1001 + 512 * 1001 + 8 * 1001 * 59_000 / 750);
}

#[test]
fn the_ledger_has_cells_for_those_who_talk_only() {
    let few = needs(&chat(Some(10)), 1001.0).ledger_bytes;
    assert_eq!(few, 8 * 10 * 1001 + 512 * 1001 + 8 * 10 * 59_000 / 750);
    assert_eq!(needs(&chat(Some(5000)), 1001.0), needs(&chat(None), 1001.0), "there are no more than all");
    let mut ticks = chat(None);
    ticks.ladder.hold = HoldLength::Ticks(1);
    let longest = needs(&ticks, 1001.0).ledger_bytes;
    assert!(longest > needs(&chat(None), 1001.0).ledger_bytes, "nobody knows how long a server's ticks take");
    assert_eq!(needs(&chat(None), f64::MAX).ledger_bytes, u64::MAX);
}

#[test]
fn there_is_one_worker_per_core_until_descriptors_ask_for_more() {
    for (connections, cores, table, workers) in [
        (1000, 2, 20_000, 2),
        (18_000, 2, 20_000, 2),
        (60_000, 2, 20_000, 4),
        (60_000, 8, 20_000, 8),
        (1, 8, 20_000, 1),
        (0, 8, 20_000, 1),
        (100, 1, 0, 100),
    ] {
        assert_eq!(workers_for(connections, cores, table), workers, "{connections} {cores} {table}");
    }
}

#[test]
fn only_ipv4_loopback_has_addresses_to_spread_over() {
    let sources = |count, to: &str| loopback_sources(count, to.parse().unwrap()).len();
    assert_eq!(sources(1, "127.0.0.1"), 0);
    assert_eq!(sources(5, "127.0.0.1"), 5);
    assert_eq!(sources(9999, "127.0.0.1"), 245);
    assert_eq!(sources(5, "10.0.0.1"), 0);
    assert_eq!(sources(5, "::1"), 0);
    assert_eq!(loopback_sources(245, "127.0.0.1".parse().unwrap())[244].to_string(), "127.0.0.254");
}

/// The needs of HTTP clients.
fn http_needs(options: &str, load: f64) -> Needs {
    let flags = crate::Flags::of(&format!("http://127.0.0.1:1 {options}"));
    needs(&crate::resolve(&flags, None, 1).unwrap(), load)
}

#[test]
fn requests_by_a_clock_need_their_connections_whatever_the_rate() {
    let needs = http_needs("--rate 5 --connections 100", 50_000.0);
    assert_eq!((needs.bots, needs.connections, needs.connections_most), (100, 100, 100));
    assert_eq!((needs.descriptors, needs.opens_per_s), (110, 0.0));
    let needs = http_needs("--rate 5 --connections-max 1000", 5.0);
    assert_eq!((needs.connections, needs.connections_most, needs.descriptors), (256, 1000, 1100));
}

#[test]
fn a_connection_for_each_request_uses_ports_up() {
    let needs = http_needs("--no-keep-alive --rate 5", 5000.0);
    assert_eq!((needs.bots, needs.connections, needs.connections_most), (256, 0, 256));
    assert_eq!(needs.opens_per_s, 5000.0);
    // (256 + 10 % + 5,000/s × 60 s) / 28,000 = 10.7 addresses.
    assert_eq!(sources_for(needs.connections_most, needs.opens_per_s, 28_000), 11);
    let slow = http_needs("--no-keep-alive --think 950us", 10.0);
    assert_eq!(slow.opens_per_s, 10_000.0, "50 µs for an answer at the soonest");
    assert_eq!(http_needs("--no-keep-alive", 64.0).opens_per_s, 30_000.0);
}

#[test]
fn workers_share_one_stream_of_requests() {
    let flags = crate::Flags::of("http://127.0.0.1:1 --rate 300");
    let plan = crate::resolve(&flags, None, 42).unwrap();
    let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let shares = split(&plan, 300.0, &Target::at(Scheme::Http, address), address, 3, &[]);
    assert_eq!(
        shares.iter().map(|share| share.units).sum::<u64>(),
        256,
        "connections are dealt out, not the rate"
    );
    assert!(shares.iter().all(|share| share.rate_per_s == 300.0));
    assert!(shares.iter().all(|share| share.stream_phase == shares[0].stream_phase));
    assert!((0.0..1.0).contains(&shares[0].stream_phase));
}
