//! Hands shots from a game's sockets to its ticks, across threads and without a lock.
//!
//! Each player's socket lives on one thread, the only writer of that player's part; the game's thread is the only
//! reader. A shot is its receive time, so that a late tick still places its bullet exactly.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::rules::Player;

/// Shots waiting for a tick: at one per 100 ms, a stall of 1.6 s. Beyond that shots are dropped and counted.
const WAITING_MAX: usize = 16;

/// One game, as its players' sockets see it.
///
/// Whether there is anything at all stands in the first 32 bytes, because every tick asks and few find something.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Shots {
    heads: [Head; 2],
    received_ns: [[AtomicU64; WAITING_MAX]; 2],
}

#[derive(Debug, Default)]
struct Head {
    /// Shots handed in; the low bits are the place of the next one.
    handed_in: AtomicU32,
    taken: AtomicU32,
    gone: AtomicBool,
}

impl Shots {
    /// Hands in one shot. False when too many wait already: then the shot is lost.
    pub(crate) fn hand_in(&self, player: Player, received_ns: u64) -> bool {
        let own = &self.heads[player.index()];
        let handed_in = own.handed_in.load(Ordering::Relaxed);
        if handed_in.wrapping_sub(own.taken.load(Ordering::Acquire)) as usize >= WAITING_MAX {
            return false;
        }
        self.received_ns[player.index()][handed_in as usize % WAITING_MAX]
            .store(received_ns, Ordering::Relaxed);
        own.handed_in.store(handed_in.wrapping_add(1), Ordering::Release);
        true
    }

    /// When the player's oldest waiting shot was received; it stays until `take`.
    pub(crate) fn oldest_ns(&self, player: Player) -> Option<u64> {
        let own = &self.heads[player.index()];
        let taken = own.taken.load(Ordering::Relaxed);
        if own.handed_in.load(Ordering::Acquire) == taken {
            return None;
        }
        Some(self.received_ns[player.index()][taken as usize % WAITING_MAX].load(Ordering::Relaxed))
    }

    /// Removes the player's oldest waiting shot.
    pub(crate) fn take(&self, player: Player) {
        let own = &self.heads[player.index()];
        own.taken.store(own.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// The player has left or failed; the game's next tick ends the game.
    pub(crate) fn leave(&self, player: Player) {
        self.heads[player.index()].gone.store(true, Ordering::Release);
    }

    pub(crate) fn someone_left(&self) -> bool {
        self.heads.iter().any(|head| head.gone.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shots_come_out_in_order_and_a_full_row_refuses_more() {
        let shots = Shots::default();
        for round in 0..5u64 {
            for i in 0..WAITING_MAX as u64 {
                assert!(shots.hand_in(Player::Two, round * 100 + i));
            }
            assert!(!shots.hand_in(Player::Two, 99));
            assert_eq!(shots.oldest_ns(Player::One), None);
            for i in 0..WAITING_MAX as u64 {
                assert_eq!(shots.oldest_ns(Player::Two), Some(round * 100 + i));
                shots.take(Player::Two);
            }
            assert_eq!(shots.oldest_ns(Player::Two), None);
        }
    }

    #[test]
    fn every_shot_crosses_threads_once_and_in_order() {
        let shots = Shots::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 1..=50_000 {
                    while !shots.hand_in(Player::One, i) {
                        std::hint::spin_loop();
                    }
                }
                shots.leave(Player::One);
            });
            let mut expected = 1;
            while expected <= 50_000 {
                if let Some(at_ns) = shots.oldest_ns(Player::One) {
                    assert_eq!(at_ns, expected);
                    shots.take(Player::One);
                    expected += 1;
                }
            }
        });
        assert!(shots.someone_left());
    }
}
