use std::collections::BTreeMap;

use bots::Arena;
use engine::rehearsal::{Says, Scene, Times, Wire, rehearse};
use measure::{Measure, Trial};
use plan::{ArenaBots, Bots, Pairing};

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

impl Scene for Referee {
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

fn play(pairing: Pairing, fault: Fault, generator_stall: Option<(u64, u64)>) -> Trial {
    let bots = Bots::Arena(ArenaBots {
        fast_ns: 110_000_000,
        slow_ns: 200_000_000,
        pairing,
        snapshots: 0.0,
        longest_game_ns: 12 * SECOND_NS,
    });
    let times = Times { hold_ns: 2 * SECOND_NS, drain_ns: 32 * SECOND_NS, generator_stall };
    let seconds = rehearse::<Arena<Wire>>(&worker_plan(bots, 50), times, &mut Referee::new(fault));
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
fn shots_that_a_late_generator_never_sent_are_booked_as_not_sent() {
    // The core is taken away from the middle of the hold until long after its end.
    let stall = (17 * SECOND_NS, 40 * SECOND_NS);
    let calm = play(Pairing::Pipelined, Fault::None, None).ops["shot"];
    let trial = play(Pairing::Pipelined, Fault::None, Some(stall));
    let shots = trial.ops["shot"];
    assert_eq!(shots.offered, shots.sent + shots.not_sent);
    assert!(shots.not_sent > calm.offered / 8, "{shots:?}");
}
