use std::collections::BTreeMap;

use bots::Arena;
use engine::simulation::{Says, SimulatedServer, Times, Wire, simulate};
use measure::{Measure, Trial};
use plan::{ArenaBots, BotSettings, Pairing};

use crate::{SECOND_NS, sum_up, worker_plan};

const GAME_NS: u64 = 10 * SECOND_NS;

/// What this referee does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// player 2 wins
    WrongWinner,
    /// games never end
    NeverStops,
    /// games never begin
    NeverStarts,
    /// games end with an error for both players
    EndsWithErrors,
    /// player 1's connection breaks two seconds into the game
    HangsUp,
}

/// Pairs by order of arrival and ends each game after ten seconds.
struct Referee {
    fault: Fault,
    waiting: Option<u64>,
    opponents: BTreeMap<u64, u64>,
    shots: u64,
}

impl Referee {
    fn new(fault: Fault) -> Self {
        Referee { fault, waiting: None, opponents: BTreeMap::new(), shots: 0 }
    }
}

impl SimulatedServer for Referee {
    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        let Some(first) = self.waiting.take() else {
            self.waiting = Some(peer);
            return;
        };
        self.opponents.insert(first, peer);
        if self.fault == Fault::NeverStarts {
            return;
        }
        for (player, x, won) in
            [(first, -1000, self.fault != Fault::WrongWinner), (peer, 1000, self.fault == Fault::WrongWinner)]
        {
            says.message(at_ns + 1_000_000, player, r#"{"type":"start"}"#);
            let stop = format!(
                r#"{{"type":"stop","lastFire":0,"bulletCount":1,"won":{won},"x":{x},"direction":1,"id":{player}}}"#
            );
            match self.fault {
                Fault::NeverStops => {}
                Fault::EndsWithErrors => {
                    let stop = r#"{"type":"stop","errorMsg":"Opponent disconnected","won":false,"x":1000}"#;
                    says.message(at_ns + GAME_NS, player, stop);
                }
                Fault::HangsUp if x < 0 => says.goodbye(at_ns + 2 * SECOND_NS, player),
                _ => says.message(at_ns + GAME_NS, player, stop),
            }
        }
    }

    fn received(&mut self, _: u64, message: &[u8], _: u64, _: &mut Says) {
        assert_eq!(message, br#"{"type":"fire"}"#);
        self.shots += 1;
    }
}

fn arena(pairing: Pairing, snapshots: f64) -> BotSettings {
    BotSettings::Arena(ArenaBots {
        fast_ns: 110_000_000,
        slow_ns: 200_000_000,
        pairing,
        snapshots,
        longest_game_ns: 12 * SECOND_NS,
    })
}

fn play(pairing: Pairing, fault: Fault, generator_stall: Option<(u64, u64)>) -> Trial {
    let bots = arena(pairing, 0.0);
    let times = Times { hold_ns: 2 * SECOND_NS, drain_ns: 32 * SECOND_NS, generator_stall };
    let seconds = simulate::<Arena<Wire>>(&worker_plan(bots, 50), times, &mut Referee::new(fault));
    sum_up(seconds, 2, 32)
}

#[test]
fn every_game_is_won_by_player_1_and_the_next_one_follows() {
    for pairing in [Pairing::Pipelined, Pairing::Strict] {
        let trial = play(pairing, Fault::None, None);
        assert_eq!(trial.counters["games_played"], 150, "{pairing:?}");
        assert_eq!(trial.counters["won_by_player_1"], 150);
        assert!(trial.errors.is_empty(), "{:?}", trial.errors);
        // 30 s in games of 10 s: 90 + 49 shots each, the last ones cut off by the hold.
        let shots = trial.ops["shot"];
        assert_eq!((shots.not_sent, shots.told), (0, shots.offered));
        assert!((20_500..=21_000).contains(&shots.offered), "{shots:?}");
        assert_eq!(trial.distribution(Measure::SendLag).max_ns(), Some(1));
        assert!(trial.connections.open_min >= 98, "{:?}", trial.connections);
    }
}

#[test]
fn a_stalled_generator_still_fires_every_planned_shot() {
    let calm = play(Pairing::Pipelined, Fault::None, None).ops["shot"];
    let stalled = play(Pairing::Pipelined, Fault::None, Some((5 * SECOND_NS, 6 * SECOND_NS)));
    assert_eq!(stalled.ops["shot"].offered, calm.offered);
    let worst_ns = stalled.distribution(Measure::SendLag).max_ns().unwrap();
    assert!(worst_ns > 900_000_000, "{worst_ns}");
}

#[test]
fn a_winner_says_nothing_of_the_server_where_our_shots_left_late() {
    let judged = |stall| {
        let trial = play(Pairing::Pipelined, Fault::WrongWinner, Some(stall));
        let of = |name: &str| trial.counters.get(name).copied().unwrap_or(0);
        assert_eq!(of("games_unjudged") + trial.errors["wrong winner"], of("games_played"));
        (of("games_played"), of("games_unjudged"))
    };
    assert_eq!(judged((5 * SECOND_NS, 6 * SECOND_NS)), (150, 50));
    // The stops of games that end within the stall are read before the shots that should have been sent in it.
    let (played, unjudged) = judged((11 * SECOND_NS, 13 * SECOND_NS));
    assert!((50..=100).contains(&unjudged), "{unjudged} of {played}");
    // A delay within the distance of the players' first shots changes no winner.
    assert_eq!(judged((5 * SECOND_NS, 5 * SECOND_NS + 60_000_000)), (150, 0));
}

#[test]
fn what_a_server_does_wrong_is_counted_under_its_name() {
    let check = |fault, cause: &str, expected: std::ops::RangeInclusive<u64>| {
        let trial = play(Pairing::Pipelined, fault, None);
        let count = trial.errors.get(cause).copied().unwrap_or(0);
        assert!(expected.contains(&count), "{cause}: {count} of {:?}", trial.errors);
    };
    check(Fault::WrongWinner, "wrong winner", 150..=150);
    check(Fault::NeverStops, "missing stop", 100..=100);
    check(Fault::NeverStarts, "missing start", 50..=150);
    check(Fault::HangsUp, "connection lost", 600..=750);
}

#[test]
fn games_are_counted_by_how_they_ended() {
    let games = |fault, drain_s: u64| {
        let times = Times { hold_ns: 2 * SECOND_NS, drain_ns: drain_s * SECOND_NS, generator_stall: None };
        let plan = worker_plan(arena(Pairing::Pipelined, 0.0), 50);
        let trial = sum_up(simulate::<Arena<Wire>>(&plan, times, &mut Referee::new(fault)), 2, drain_s);
        let games = trial.games.unwrap();
        let mean_ms = games.played_ms.checked_div(games.played);
        let failed = trial.counters.get("games_failed").copied().unwrap_or(0);
        (games.played, mean_ms, games.unending, failed)
    };
    // A hold of 30 s sees three games of each pair, and one of 6 s may lie within a game.
    assert_eq!(games(Fault::None, 32), (150, Some(9_999), 0, 0));
    assert_eq!(games(Fault::None, 8), (0, None, 50, 0));
    assert_eq!(games(Fault::NeverStops, 32), (0, None, 0, 100));
    assert_eq!(games(Fault::EndsWithErrors, 32), (0, None, 0, 150));
}

#[test]
fn shots_that_a_late_generator_never_sent_are_booked_as_not_sent() {
    // The core is unavailable from the middle of the hold until long after its end.
    let stall = (17 * SECOND_NS, 40 * SECOND_NS);
    let calm = play(Pairing::Pipelined, Fault::None, None).ops["shot"];
    let trial = play(Pairing::Pipelined, Fault::None, Some(stall));
    let shots = trial.ops["shot"];
    assert_eq!(shots.offered, shots.sent + shots.not_sent);
    assert!(shots.not_sent > calm.offered / 8, "{shots:?}");
}

/// A referee whose snapshots carry these numbers and stamps (µs), ten a second to each second player.
struct Announcer {
    referee: Referee,
    snapshots: &'static [(u64, u64)],
    count: u64,
}

impl SimulatedServer for Announcer {
    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        let waits = self.referee.waiting.is_some();
        self.referee.opened(peer, at_ns, says);
        if waits {
            for (at, (number, stamp_us)) in self.snapshots.iter().enumerate() {
                let at_ns = at_ns + (at as u64 + 1) * 16_666_667;
                says.message(at_ns, peer, format!(r#"{{"type":"tick","n":{number},"t":{stamp_us}}}"#));
                self.count += 1;
            }
        }
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        self.referee.received(peer, message, at_ns, says);
    }
}

#[test]
fn a_snapshot_that_cannot_be_true_is_not_understood_and_nothing_is_reckoned_from_it() {
    const MOST: u64 = u64::MAX;
    let check = |snapshots: &'static [(u64, u64)], seen: u64, missed: u64, errors: u64| {
        let mut announcer = Announcer { referee: Referee::new(Fault::None), snapshots, count: 0 };
        let times = Times { hold_ns: 2 * SECOND_NS, drain_ns: 8 * SECOND_NS, generator_stall: None };
        let plan = worker_plan(arena(Pairing::Strict, 1.0), 1);
        let seconds = simulate::<Arena<Wire>>(&plan, times, &mut announcer);
        let words = seconds.iter().flat_map(|second| &second.samples).count();
        let ticks = seconds.iter().fold((0, 0), |(seen, missed), second| {
            (
                seen + second.ticks.on_time + second.ticks.over + second.ticks.under,
                missed + second.ticks.missed,
            )
        });
        let names = &seconds[0].metric_names.errors;
        let total = |cause: usize| seconds.iter().map(|second| second.errors[cause]).sum::<u64>();
        let counted: Vec<(&str, u64)> = (0..names.len())
            .map(|cause| (names[cause].as_str(), total(cause)))
            .filter(|(_, count)| *count > 0)
            .collect();
        let expected = if errors > 0 { vec![("not understood", errors)] } else { Vec::new() };
        assert_eq!(announcer.count, snapshots.len() as u64, "one game");
        assert_eq!((ticks, counted), ((seen, missed), expected), "{snapshots:?}");
        assert_eq!(words as u64, errors.min(3), "the first three of a cause are kept in words");
    };
    check(&[(1, 1), (2, 1), (5, 1), (6, 1)], 3, 2, 0);
    check(&[(MOST, 1), (1, 1), (2, 1)], 2, 0, 1);
    check(&[(1, 1), (MOST, 1), (3, 1), (4, 1)], 3, 0, 1);
    check(&[(1, 1), (300_000, 1), (300_001, 1), (300_002, 1)], 3, 0, 1);
    check(&[(9, 1), (3, 1), (4, 1), (5, 1)], 3, 0, 1);
    check(&[(9, 1), (8, 1), (7, 1), (6, 1)], 3, 0, 2);
    check(&[(1, MOST), (2, MOST), (3, 1), (4, 1)], 1, 0, 2);
    check(&[(1, MOST / 1_000), (2, 1), (3, 1)], 1, 0, 1);
}

/// Says a snapshot per period to each watcher for eight seconds; what it does in every second of them.
#[derive(Clone, Copy, PartialEq)]
enum Ticking {
    Always,
    /// stalls for half of it, and goes on numbering as if it had not
    LeavesHalfOut,
    /// stalls for half of it, and then runs what was due
    CatchesUp,
}

struct Ticker {
    referee: Referee,
    ticking: Ticking,
}

impl SimulatedServer for Ticker {
    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        const PERIOD_NS: u64 = 16_666_667;
        let waits = self.referee.waiting.is_some();
        self.referee.opened(peer, at_ns, says);
        let mut number = 0;
        for tick in (1..480).filter(|_| waits) {
            let is_pause = tick % 60 >= 30;
            let tick = match self.ticking {
                Ticking::LeavesHalfOut if is_pause => continue,
                Ticking::CatchesUp if is_pause => tick / 60 * 60 + 60,
                _ => tick,
            };
            number += 1;
            says.message(at_ns + tick * PERIOD_NS, peer, format!(r#"{{"type":"tick","n":{number},"t":1}}"#));
        }
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        self.referee.received(peer, message, at_ns, says);
    }
}

#[test]
fn ticks_that_are_left_out_and_not_counted_are_missed_and_a_stalled_generator_misses_none() {
    for (ticking, generator_stall, missed) in [
        (Ticking::Always, None, 0),
        (Ticking::Always, Some((3 * SECOND_NS, 5 * SECOND_NS)), 0),
        (Ticking::CatchesUp, None, 0),
        (Ticking::LeavesHalfOut, None, 7 * 30),
    ] {
        let mut ticker = Ticker { referee: Referee::new(Fault::None), ticking };
        let times = Times { hold_ns: 2 * SECOND_NS, drain_ns: 9 * SECOND_NS, generator_stall };
        let plan = worker_plan(arena(Pairing::Strict, 1.0), 1);
        let seconds = simulate::<Arena<Wire>>(&plan, times, &mut ticker);
        let found: u64 = seconds.iter().map(|second| second.ticks.missed).sum();
        assert_eq!(found, missed);
    }
}
