//! The rules against a literal walk, and the property that the faster shooter wins.

use super::*;
use proptest::prelude::*;

/// The walk as it is written down, millisecond by millisecond, over positions in thousandths.
struct Walk {
    bullets: Vec<(Player, i64)>,
    speed: i64,
}

impl Walk {
    fn shoot(&mut self, player: Player) {
        let x = (player.x() + player.direction() * START_AHEAD) * 1000;
        let near = |other: &(Player, i64)| other.0 == player && (other.1 - x).abs() < VANISH_WITHIN * 1000;
        match self.bullets.iter().position(near) {
            Some(i) => drop(self.bullets.remove(i)),
            None => self.bullets.push((player, x)),
        }
    }

    fn update(&mut self) -> Option<Player> {
        let mut i = 0;
        while i < self.bullets.len() {
            let (player, x) = self.bullets[i];
            if x * player.direction() > (PLAYER_X - PLAYER_RADIUS) * 1000 {
                return Some(player);
            }
            let near = |other: &(Player, i64)| (other.1 - x).abs() < VANISH_WITHIN * 1000;
            if let Some(j) = (i + 1..self.bullets.len()).find(|j| near(&self.bullets[*j])) {
                self.bullets.remove(j);
                self.bullets.remove(i);
            } else {
                i += 1;
            }
        }
        // All move only after all were checked, so that the order of the checks does not matter.
        for (player, x) in &mut self.bullets {
            *x += player.direction() * self.speed;
        }
        None
    }
}

/// Shots by whole milliseconds: who wins, and in which millisecond.
fn by_walk(shots: &[(u64, Player)], speed: u32, until_ms: u64) -> Option<(Player, u64)> {
    let mut walk = Walk { bullets: Vec::new(), speed: i64::from(speed) };
    for ms in 0..until_ms {
        shots.iter().filter(|shot| shot.0 == ms).for_each(|shot| walk.shoot(shot.1));
        if let Some(winner) = walk.update() {
            return Some((winner, ms));
        }
    }
    None
}

fn by_field(shots: &[(u64, Player)], speed: u32, until_ms: u64) -> Option<(Player, u64)> {
    let mut field = Field::new(speed);
    for ms in 0..until_ms {
        for shot in shots.iter().filter(|shot| shot.0 == ms) {
            if let Some(winner) = field.shoot(shot.1, ms * 1000) {
                return Some((winner, ms));
            }
        }
        if let Some(winner) = field.advance(ms * 1000) {
            return Some((winner, ms));
        }
    }
    None
}

#[track_caller]
fn check(shots: &[(u64, Player)], expected: Option<(Player, u64)>) {
    assert_eq!(by_field(shots, 500, 20_000), expected);
    assert_eq!(by_walk(shots, 500, 20_000), expected);
}

#[test]
fn one_shot_flies_to_the_other_players_edge_and_wins() {
    // 1938 units at 500 per second, and past the edge one millisecond later.
    check(&[(0, Player::One)], Some((Player::One, 3877)));
    check(&[(1000, Player::Two)], Some((Player::Two, 4877)));
    check(&[], None);
}

#[test]
fn bullets_that_meet_vanish_together() {
    check(&[(0, Player::One), (0, Player::Two)], None);
    check(&[(0, Player::One), (0, Player::Two), (100, Player::Two)], Some((Player::Two, 3977)));
    check(&[(0, Player::One), (3876, Player::Two)], None);
    check(&[(0, Player::One), (3877, Player::Two)], Some((Player::One, 3877)));
}

#[test]
fn bullets_of_one_player_vanish_too_when_they_start_closer_than_24() {
    check(&[(0, Player::One), (47, Player::One)], None);
    check(&[(0, Player::One), (48, Player::One)], Some((Player::One, 3877)));
}

#[test]
fn a_player_fires_at_most_once_per_interval_and_an_early_fire_delays_nothing() {
    let mut trigger = Trigger::default();
    let fired: Vec<u64> = (1..=10).map(|i| i * 30).filter(|at_ns| trigger.pull(*at_ns, 100)).collect();
    assert_eq!(fired, [30, 150, 270]);
    let mut trigger = Trigger::default();
    assert!(trigger.pull(1000, 100) && !trigger.pull(1099, 100) && trigger.pull(1100, 100));
}

fn any_shots() -> impl Strategy<Value = Vec<(u64, Player)>> {
    let player = |player: Player| {
        prop::collection::vec(30u64..400, 0..60).prop_map(move |gaps| {
            let mut at_ms = 0;
            let mut next = |gap: u64| {
                at_ms += gap;
                (at_ms, player)
            };
            gaps.into_iter().map(&mut next).collect::<Vec<_>>()
        })
    };
    (player(Player::One), player(Player::Two)).prop_map(|(mut one, two)| {
        one.extend(two);
        one.sort_by_key(|shot| shot.0);
        one
    })
}

proptest! {
    #[test]
    fn the_field_plays_the_same_game_as_the_literal_walk(shots in any_shots(), speed in 300u32..=800) {
        prop_assert_eq!(by_field(&shots, speed, 30_000), by_walk(&shots, speed, 30_000));
    }

    #[test]
    fn when_ticks_come_changes_nothing_but_when_the_end_is_noticed(
        shots in any_shots(), steps_us in prop::collection::vec(1u64..400_000, 1..200),
    ) {
        let exact = by_field(&shots, 500, 60_000);
        let mut field = Field::new(500);
        let (mut at_us, mut next, mut winner) = (0, 0, None);
        for step_us in steps_us.iter().cycle() {
            at_us += step_us;
            while winner.is_none() && next < shots.len() && shots[next].0 * 1000 <= at_us {
                winner = field.shoot(shots[next].1, shots[next].0 * 1000);
                next += 1;
            }
            winner = winner.or_else(|| field.advance(at_us));
            if winner.is_some() || at_us > 60_000_000 {
                break;
            }
        }
        prop_assert_eq!(winner, exact.map(|exact| exact.0));
    }
}

/// A whole game in virtual time: bots on their schedules, receipts and ticks that come late.
fn play(seed: u64, receipt_late_us_max: u64, stall_us_max: u64, first_us: [u64; 2]) -> (Option<Player>, u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let every_us = [110_000, 200_000];
    let mut shots = Vec::new();
    let mut stall_until_us = 0;
    let mut receipts: Vec<(u64, usize)> = Vec::new();
    for player in 0..2 {
        for n in 0..300 {
            let planned_us = first_us[player] + n * every_us[player];
            receipts.push((planned_us + random.u64(0..=receipt_late_us_max), player));
        }
    }
    receipts.sort_unstable();
    let mut triggers = [Trigger::default(); 2];
    for (at_us, player) in receipts {
        // Now and then the whole machine stalls, and everything sent meanwhile is received at its end.
        if at_us > stall_until_us && stall_us_max > 0 && random.u8(..) == 0 {
            stall_until_us = at_us + random.u64(0..stall_us_max);
        }
        let at_us = at_us.max(stall_until_us);
        if triggers[player].pull(at_us * 1000, 100_000_000) {
            shots.push((at_us, Player::BOTH[player]));
        }
    }
    shots.sort_by_key(|shot| shot.0);
    let mut field = Field::new(500);
    let mut next = 0;
    for tick in 1..60 * 60u64 {
        let late_us = if random.u8(..) < 8 { random.u64(0..60_000) } else { random.u64(0..2_000) };
        let at_us = tick * 1_000_000 / 60 + late_us;
        while next < shots.len() && shots[next].0 <= at_us {
            if let Some(winner) = field.shoot(shots[next].1, shots[next].0) {
                return (Some(winner), at_us);
            }
            next += 1;
        }
        if let Some(winner) = field.advance(at_us) {
            return (Some(winner), at_us);
        }
    }
    (None, 60_000_000)
}

#[test]
fn with_110_against_200_ms_player_one_always_wins_in_about_eleven_seconds() {
    for seed in 0..2_000 {
        let first_us = [seed * 7919 % 110_000, seed * 104_729 % 200_000];
        let (winner, at_us) = play(seed, 0, 0, first_us);
        assert_eq!(winner, Some(Player::One), "seed {seed}");
        assert!((8_000_000..13_000_000).contains(&at_us), "seed {seed}: {at_us} µs");
    }
}

#[test]
fn player_one_wins_when_receipts_and_ticks_come_late_too() {
    for seed in 0..2_000 {
        let first_us = [seed * 7919 % 110_000, seed * 104_729 % 200_000];
        assert_eq!(play(seed, 9_000, 0, first_us).0, Some(Player::One), "seed {seed}");
        assert_eq!(play(seed, 30_000, 0, first_us).0, Some(Player::One), "seed {seed}, 30 ms late");
        assert_eq!(play(seed, 5_000, 400_000, first_us).0, Some(Player::One), "seed {seed}, stalls");
    }
}
