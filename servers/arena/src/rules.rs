//! The rules of one game: who shoots when, which bullets meet, who wins.
//!
//! Pure integer arithmetic over instants; nothing here knows of ticks, sockets or clocks. A bullet is stored as the
//! instant it was fired, because its position follows from that: `advance` costs nothing per bullet in flight, and a
//! late, early or skipped tick moves no bullet and lets none fly through another. The outcome depends only on when
//! shots were received; a tick only decides when it is noticed.
//!
//! The walk "in order of creation" (past a player's edge: game over; closer than 24: both vanish; else move) is the
//! same game at whole ticks: bullets of one player fly in order of creation, so that only the two foremost can meet or
//! hit. `tests` compares both. Units: µs since the game's start, length in the game's.

use std::collections::VecDeque;

/// The position of player 2; player 1 is at its negative.
pub(crate) const PLAYER_X: i64 = 1000;
const PLAYER_RADIUS: i64 = 25;
const BULLET_RADIUS: i64 = 12;
/// Bullets closer than this vanish together.
const VANISH_WITHIN: i64 = 2 * BULLET_RADIUS;
/// How far ahead of its player a bullet starts.
const START_AHEAD: i64 = PLAYER_RADIUS + BULLET_RADIUS;
/// From a bullet's start to the other player's near edge.
const FLIGHT: i64 = 2 * PLAYER_X - START_AHEAD - PLAYER_RADIUS;
/// Between two opposing bullets at their starts.
const APART: i64 = 2 * (PLAYER_X - START_AHEAD);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Player {
    One,
    Two,
}

impl Player {
    pub(crate) const BOTH: [Player; 2] = [Player::One, Player::Two];

    pub(crate) fn opponent(self) -> Player {
        match self {
            Player::One => Player::Two,
            Player::Two => Player::One,
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn x(self) -> i64 {
        match self {
            Player::One => -PLAYER_X,
            Player::Two => PLAYER_X,
        }
    }

    pub(crate) fn direction(self) -> i64 {
        match self {
            Player::One => 1,
            Player::Two => -1,
        }
    }
}

/// The bullets of one game.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Field {
    /// No bullet meets or hits anything up to and including this instant, in µs.
    quiet_until_us: u64,
    /// Up to where the game has been played, in µs.
    played_to_us: u64,
    /// Births of the bullets in flight, oldest first, in µs.
    in_flight: [VecDeque<u64>; 2],
    /// In units per second.
    bullet_speed: u32,
}

/// The next event if nobody shoots, with the last instant before it in doubled speed-microseconds.
enum Next {
    Nothing,
    Hit(Player, i64),
    Meeting(i64),
}

impl Field {
    pub(crate) fn new(bullet_speed: u32) -> Field {
        Field {
            in_flight: [VecDeque::new(), VecDeque::new()],
            played_to_us: 0,
            quiet_until_us: u64::MAX,
            bullet_speed,
        }
    }

    /// Adds a bullet born at this instant, after playing up to it; a winner there was before it is returned.
    ///
    /// An instant before what was already played counts as now: a shot that is handed in late starts late.
    pub(crate) fn shoot(&mut self, player: Player, born_us: u64) -> Option<Player> {
        if let Some(winner) = self.advance(born_us) {
            return Some(winner);
        }
        let born_us = born_us.max(self.played_to_us);
        let own = &mut self.in_flight[player.index()];
        // A player's own last bullet may still be too near, when bullets are slow or fire is rapid.
        match own.back() {
            Some(last)
                if self.bullet_speed as i64 * ((born_us - last) as i64) < VANISH_WITHIN * 1_000_000 =>
            {
                own.pop_back();
            }
            _ => own.push_back(born_us),
        }
        self.foresee();
        None
    }

    /// Plays up to this instant and returns the winner, if there is one.
    pub(crate) fn advance(&mut self, to_us: u64) -> Option<Player> {
        if to_us <= self.quiet_until_us {
            self.played_to_us = self.played_to_us.max(to_us);
            return None;
        }
        let reached = 2 * i64::from(self.bullet_speed) * to_us as i64;
        let winner = loop {
            match self.next() {
                Next::Hit(player, after) if after < reached => break Some(player),
                Next::Meeting(after) if after < reached => {
                    self.in_flight[0].pop_front();
                    self.in_flight[1].pop_front();
                }
                _ => break None,
            }
        };
        self.played_to_us = self.played_to_us.max(to_us);
        self.foresee();
        winner
    }

    /// Something happens at the first instant t with 2·speed·t greater than the figure returned.
    ///
    /// Hits are looked at before meetings, as the walk does it.
    fn next(&self) -> Next {
        let speed = i64::from(self.bullet_speed);
        let front = |player: Player| self.in_flight[player.index()].front().map(|born| speed * *born as i64);
        let hit_after = |born: i64| 2 * (born + FLIGHT * 1_000_000);
        match (front(Player::One), front(Player::Two)) {
            (None, None) => Next::Nothing,
            (Some(one), None) => Next::Hit(Player::One, hit_after(one)),
            (None, Some(two)) => Next::Hit(Player::Two, hit_after(two)),
            (Some(one), Some(two)) => {
                let first = if one <= two { Player::One } else { Player::Two };
                let hit = hit_after(one.min(two));
                let meeting = one + two + (APART - VANISH_WITHIN) * 1_000_000;
                if hit <= meeting { Next::Hit(first, hit) } else { Next::Meeting(meeting) }
            }
        }
    }

    fn foresee(&mut self) {
        self.quiet_until_us = match self.next() {
            Next::Nothing => u64::MAX,
            Next::Hit(_, after) | Next::Meeting(after) => (after / (2 * i64::from(self.bullet_speed))) as u64,
        };
    }
}

/// At most one shot per fire interval, by the server's time of receipt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trigger {
    last_ns: Option<std::num::NonZeroU64>,
}

impl Trigger {
    /// True when this fire is a shot; an early one is dropped and does not delay the next.
    pub(crate) fn pull(&mut self, at_ns: u64, fire_interval_ns: u64) -> bool {
        if self.last_ns.is_some_and(|last_ns| at_ns < last_ns.get() + fire_interval_ns) {
            return false;
        }
        self.last_ns = std::num::NonZeroU64::new(at_ns);
        true
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
