//! One thread's games, and which of them are in which slot.

use std::sync::Arc;

use super::lobby::Arrival;
use super::rules::{Field, Player};
use super::shots::Shots;
use servers_shared::ticks::schedule::{GameTicks, Grid};

/// What every tick needs comes first: a tick in which nothing happens touches one line of this and one of `Shots`,
/// and memory is what ticks cost.
#[repr(C)]
pub(crate) struct Game {
    pub(crate) ticks: GameTicks,
    pub(crate) shots: Arc<Shots>,
    paired_ns: u64,
    /// Some player gets snapshots.
    pub(crate) is_watched: bool,
    field: Field,
    pub(crate) seats: [Seat; 2],
}

/// One player of a game.
pub(crate) struct Seat {
    pub(crate) player: Player,
    pub(crate) arrival: Arrival,
    pub(crate) bullet_count: u64,
    /// When the last shot was received; None when there was none.
    pub(crate) last_fire_ns: Option<u64>,
}

impl Game {
    fn new(arrivals: [Arrival; 2], bullet_speed: u32, ticks: GameTicks, paired_ns: u64) -> Game {
        let seat = |player: Player| Seat {
            player,
            arrival: arrivals[player.index()],
            bullet_count: 0,
            last_fire_ns: None,
        };
        Game {
            ticks,
            shots: Arc::default(),
            paired_ns,
            is_watched: arrivals.iter().any(|arrival| arrival.snapshots),
            field: Field::new(bullet_speed),
            seats: Player::BOTH.map(seat),
        }
    }

    /// Plays everything that was received up to this instant. The winner, if there is one.
    pub(crate) fn play(&mut self, now_ns: u64) -> Option<Player> {
        // Both players' shots in the order of receipt, though they come from two threads.
        loop {
            let oldest = |player: Player| self.shots.oldest_ns(player).map(|at_ns| (at_ns, player));
            let next = match (oldest(Player::One), oldest(Player::Two)) {
                (None, None) => break,
                (Some(one), None) => one,
                (None, Some(two)) => two,
                (Some(one), Some(two)) => {
                    if one.0 <= two.0 {
                        one
                    } else {
                        two
                    }
                }
            };
            let (at_ns, player) = next;
            // A shot received while this tick is running belongs to the next.
            if at_ns > now_ns {
                break;
            }
            self.shots.take(player);
            let seat = &mut self.seats[player.index()];
            seat.bullet_count += 1;
            seat.last_fire_ns = Some(at_ns);
            let winner = self.field.shoot(player, self.game_us(at_ns));
            if winner.is_some() {
                return winner;
            }
        }
        self.field.advance(self.game_us(now_ns))
    }

    fn game_us(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.paired_ns) / 1_000
    }
}

pub(crate) struct Games {
    pub(crate) grid: Grid,
    slab: Vec<Option<Game>>,
    free: Vec<u32>,
    /// Per slot, the places of its games.
    slots: Vec<Vec<u32>>,
    /// The first turn whose slot was not visited yet.
    next_turn: u64,
}

impl Games {
    pub(crate) fn new(grid: Grid) -> Games {
        let slots = vec![Vec::new(); grid.slots()];
        Games { grid, slab: Vec::new(), free: Vec::new(), slots, next_turn: 0 }
    }

    pub(crate) fn count(&self) -> usize {
        self.slab.len() - self.free.len()
    }

    /// Puts a new game into the slot with the fewest games, of those the next to come.
    pub(crate) fn insert(&mut self, arrivals: [Arrival; 2], bullet_speed: u32, now_ns: u64) -> Arc<Shots> {
        let next = self.grid.last_due(now_ns).map_or(0, |turn| turn + 1);
        let turns = next..next + self.grid.slots() as u64;
        let emptiest = turns.min_by_key(|turn| self.slots[self.grid.slot_of(*turn)].len()).unwrap_or(next);
        let game = Game::new(arrivals, bullet_speed, GameTicks::new(&self.grid, emptiest), now_ns);
        let shots = game.shots.clone();
        let place = match self.free.pop() {
            Some(place) => {
                self.slab[place as usize] = Some(game);
                place
            }
            None => {
                self.slab.push(Some(game));
                (self.slab.len() - 1) as u32
            }
        };
        self.slots[self.grid.slot_of(emptiest)].push(place);
        shots
    }

    /// The slot to visit next, if its instant has come. At most one round of slots is due, however late it is, because
    /// a game catches up by itself.
    pub(crate) fn next_due_slot(&mut self, now_ns: u64) -> Option<usize> {
        if self.grid.wake_ns(self.next_turn) > now_ns {
            return None;
        }
        let last_due = self.grid.last_due(now_ns).unwrap_or(self.next_turn);
        self.next_turn = self.next_turn.max((last_due + 1).saturating_sub(self.grid.slots() as u64));
        let slot = self.grid.slot_of(self.next_turn);
        self.next_turn += 1;
        Some(slot)
    }

    pub(crate) fn next_slot_is_due(&self, now_ns: u64) -> bool {
        self.grid.wake_ns(self.next_turn) <= now_ns
    }

    /// When the next slot that has games comes, or `latest_ns` if that is earlier.
    pub(crate) fn next_wake_ns(&self, latest_ns: u64) -> u64 {
        for turn in self.next_turn..self.next_turn + self.grid.slots() as u64 {
            let wake_ns = self.grid.wake_ns(turn);
            if wake_ns >= latest_ns {
                break;
            }
            if !self.slots[self.grid.slot_of(turn)].is_empty() {
                return wake_ns;
            }
        }
        latest_ns
    }

    /// Asks for the memory of games a little further on in the slot. With thousands of games every tick would wait
    /// for two cache misses, its game's and its shots', which were a sixth of the server's CPU at 5,000 games.
    pub(crate) fn foresee(&self, slot: usize, i: usize) {
        const FAR: usize = 8;
        const NEAR: usize = 4;
        let place_at = |i: usize| self.slots[slot].get(i).map(|&place| &self.slab[place as usize]);
        if let Some(place) = place_at(i + FAR) {
            prefetch(std::ptr::from_ref(place));
        }
        if let Some(Some(game)) = place_at(i + NEAR) {
            prefetch(Arc::as_ptr(&game.shots));
        }
    }

    /// The i-th game of a slot.
    pub(crate) fn in_slot(&mut self, slot: usize, i: usize) -> Option<&mut Game> {
        let place = *self.slots[slot].get(i)?;
        self.slab[place as usize].as_mut()
    }

    /// Takes the i-th game out of its slot; the slot's last game moves to its place.
    pub(crate) fn remove(&mut self, slot: usize, i: usize) -> Option<Game> {
        let place = self.slots[slot].swap_remove(i);
        self.free.push(place);
        self.slab[place as usize].take()
    }
}

/// Brings a cache line closer; a hint that never faults and does nothing where the processor has none.
fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing as far as the program can tell, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
