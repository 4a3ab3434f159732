//! A server that pairs strictly by arrival and forgets no player: the bots leave no half pair and repair what others
//! left.

use std::collections::BTreeMap;

use bots::Arena;
use engine::simulation::{Says, SimulatedServer, Times, Wire, simulate};
use measure::{Interval, Trial};
use plan::{ArenaBots, BotSettings, Pairing};
use proptest::prelude::*;

use crate::{SECOND_NS, sum_up, worker_plan};

const MS: u64 = 1_000_000;
/// At one shot in 110 ms a game takes 3.3 s.
const SHOTS_TO_WIN: u64 = 30;
const START: &str = r#"{"type":"start"}"#;

/// What is sent to a player whose opponent left before the game begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Notice {
    /// that the game begins, and no more
    Start,
    /// that it begins, and at once that it is over
    StartAndError,
    /// only that it is over
    Error,
    Nothing,
}

/// Its connections outlive a rung, as a server does: only the numbers of those who come begin anew.
struct Forgetful {
    told: Notice,
    /// the player that waits for an opponent, alive or not; `None` inside: of an earlier rung
    waiting: Option<Option<u64>>,
    alive: BTreeMap<u64, Option<u64>>,
    opens_after_ns: fn(u64) -> Option<u64>,
    /// a game begins for every player at once, without an opponent
    begins_alone: bool,
    extra: u64,
    shots: BTreeMap<u64, u64>,
}

impl Forgetful {
    fn new(told: Notice) -> Self {
        Forgetful {
            told,
            waiting: None,
            alive: BTreeMap::new(),
            opens_after_ns: |_| Some(0),
            begins_alone: false,
            extra: 0,
            shots: BTreeMap::new(),
        }
    }

    /// All connections of a rung are closed, and the player that waited still waits.
    fn end_rung(&mut self) {
        self.alive.clear();
        self.shots.clear();
        self.waiting = self.waiting.map(|_| None);
    }

    fn stop(won: bool, x: i32) -> String {
        format!(r#"{{"type":"stop","lastFire":0,"bulletCount":1,"won":{won},"x":{x},"direction":1,"id":1}}"#)
    }

    fn error() -> &'static str {
        r#"{"type":"stop","errorMsg":"Opponent disconnected","lastFire":0,"bulletCount":0,"won":false,"x":1000}"#
    }
}

impl SimulatedServer for Forgetful {
    fn opens_after_ns(&mut self, peer: u64) -> Option<u64> {
        (self.opens_after_ns)(peer)
    }

    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        self.alive.insert(peer, None);
        if self.begins_alone {
            return says.message(at_ns + MS, peer, START);
        }
        let Some(first) = self.waiting.take() else {
            self.waiting = Some(Some(peer));
            return;
        };
        let Some(first) = first.filter(|first| self.alive.contains_key(first)) else {
            self.extra += 1;
            if matches!(self.told, Notice::Start | Notice::StartAndError) {
                says.message(at_ns + MS, peer, START);
            }
            if matches!(self.told, Notice::Error | Notice::StartAndError) {
                says.message(at_ns + MS, peer, Forgetful::error());
            }
            return;
        };
        self.alive.insert(first, Some(peer));
        self.alive.insert(peer, Some(first));
        for player in [first, peer] {
            says.message(at_ns + MS, player, START);
        }
    }

    /// The first with so many shots has won; who came first is player 1.
    fn received(&mut self, peer: u64, _: &[u8], at_ns: u64, says: &mut Says) {
        let shots = self.shots.entry(peer).or_default();
        *shots += 1;
        let Some(Some(opponent)) = self.alive.get(&peer).copied().filter(|_| *shots == SHOTS_TO_WIN) else {
            return;
        };
        for (player, won) in [(peer, true), (opponent, false)] {
            let x = if player == peer.min(opponent) { -1000 } else { 1000 };
            says.message(at_ns + MS, player, Forgetful::stop(won, x));
            self.alive.insert(player, None);
        }
    }

    fn closed(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        if let Some(Some(opponent)) = self.alive.remove(&peer)
            && self.alive.contains_key(&opponent)
        {
            says.message(at_ns + MS, opponent, Forgetful::error());
        }
    }
}

/// One rung on that server, with `pairs` pairs and a hold of so many ms.
fn rung(pairs: u64, pairing: Pairing, hold_ms: u64, server: &mut Forgetful) -> Vec<Interval> {
    let bots = BotSettings::Arena(ArenaBots {
        fast_ns: 110 * MS,
        slow_ns: 200 * MS,
        pairing,
        snapshots: 0.0,
        longest_game_ns: 12 * SECOND_NS,
    });
    let times = Times { hold_ns: SECOND_NS, drain_ns: SECOND_NS + hold_ms * MS, generator_stall: None };
    let seconds = simulate::<Arena<Wire>>(&worker_plan(bots, pairs), times, server);
    server.end_rung();
    seconds
}

/// What a rung counted, ramp and drain included.
struct Counted {
    counters: BTreeMap<String, u64>,
    errors: BTreeMap<String, u64>,
    hold: Trial,
}

fn counted(pairs: u64, pairing: Pairing, server: &mut Forgetful) -> Counted {
    let seconds = rung(pairs, pairing, 40_000, server);
    let (mut counters, mut errors) = (BTreeMap::new(), BTreeMap::new());
    for second in &seconds {
        for (name, count) in second.metric_names.counters.iter().zip(&second.counters) {
            *counters.entry(name.clone()).or_default() += count;
        }
        for (name, count) in
            second.metric_names.errors.iter().zip(&second.errors).filter(|(_, count)| **count > 0)
        {
            *errors.entry(name.clone()).or_default() += count;
        }
    }
    Counted { counters, errors, hold: sum_up(seconds, 1, 41) }
}

#[test]
fn a_lone_player_left_by_others_costs_one_extra_player_and_nothing_else() {
    for pairing in [Pairing::Strict, Pairing::Pipelined] {
        let calm = counted(20, pairing, &mut Forgetful::new(Notice::Start));
        assert!(calm.errors.is_empty() && calm.counters["pairs_healed"] == 0, "{:?}", calm.errors);
        for told in [Notice::Start, Notice::StartAndError, Notice::Error] {
            let mut server = Forgetful::new(told);
            server.waiting = Some(None);
            let healed = counted(20, pairing, &mut server);
            assert!(healed.errors.is_empty(), "{pairing:?} {told:?}: {:?}", healed.errors);
            assert_eq!(healed.counters["pairs_healed"], 1, "{pairing:?} {told:?}");
            assert_eq!(server.extra, 1, "{pairing:?} {told:?}");
            assert_eq!(healed.counters["pairs_swapped"], 0);
            let (played, expected) = (healed.counters["games_played"], calm.counters["games_played"]);
            assert!(played + 20 >= expected, "{played} of {expected}, and each pair may be in its last one");
            assert_eq!(healed.hold.ops["start"].lost, 0);
        }
    }
}

/// Such a server sends nothing to a player whose opponent left, so that its partner waits for ever.
#[test]
fn a_pair_of_which_neither_is_started_lets_one_extra_player_in() {
    let mut server = Forgetful::new(Notice::Nothing);
    server.waiting = Some(None);
    let trial = counted(20, Pairing::Strict, &mut server);
    assert!(trial.errors.is_empty(), "{:?}", trial.errors);
    assert_eq!((trial.counters["pairs_healed"], server.extra), (1, 1));
    // The first pair takes ten seconds to detect it, and then all play.
    assert!(trial.counters["games_played"] > 20 * 7, "{}", trial.counters["games_played"]);
}

#[test]
fn where_extra_players_do_not_help_the_pairing_is_out_of_step() {
    for pairing in [Pairing::Strict, Pairing::Pipelined] {
        let mut server = Forgetful { begins_alone: true, ..Forgetful::new(Notice::Start) };
        let counted = counted(3, pairing, &mut server);
        assert!(counted.hold.errors["pairing out of step"] >= 60, "{:?}", counted.errors);
        assert_eq!(counted.counters["pairs_healed"], 0);
        assert_eq!(counted.counters["games_played"], 0);
        let seconds = rung(3, pairing, 5_000, &mut server);
        let words: Vec<&str> =
            seconds.iter().flat_map(|second| &second.samples).map(|(_, words)| words.as_str()).collect();
        assert!(words[0].contains("before the partner had connected"), "{words:?}");
    }
}

/// 250, then 500: what the first rung leaves is what the second one finds.
#[test]
fn a_rung_that_ended_with_refused_connections_does_not_spoil_the_next() {
    for pairing in [Pairing::Strict, Pairing::Pipelined] {
        let mut server = Forgetful::new(Notice::StartAndError);
        server.opens_after_ns = |peer| (!(peer + 1).is_multiple_of(7)).then_some(2 * MS);
        for _ in 0..3 {
            rung(10, pairing, 5_000, &mut server);
        }
        server.opens_after_ns = |_| Some(2 * MS);
        let trial = counted(20, pairing, &mut server);
        assert!(trial.errors.is_empty(), "{pairing:?}: {:?}", trial.errors);
        let won = trial.counters["won_by_player_1"] + trial.counters["pairs_swapped"];
        assert_eq!(won, trial.counters["games_played"]);
        assert!(trial.counters["games_played"] > 20 * 10);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_half_pair_is_left_whenever_the_hold_ends(
        hold_ms in 1u64..9_000, slow in any::<bool>(), is_strict in any::<bool>(), pairs in 1u64..12,
        was_left in any::<bool>(),
    ) {
        let mut server = Forgetful::new(Notice::StartAndError);
        server.waiting = was_left.then_some(None);
        server.opens_after_ns =
            if slow { |peer| Some((peer * 7_919 % 40 + 60) * MS) } else { |_| Some(MS) };
        let pairing = if is_strict { Pairing::Strict } else { Pairing::Pipelined };
        rung(pairs, pairing, hold_ms, &mut server);
        prop_assert_eq!(server.waiting, None);
    }
}
