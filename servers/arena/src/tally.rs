//! One thread's counters for one second, and how they reach the log without blocking the thread.
//!
//! A thread owns the tally it writes to. When the control thread asks, the thread swaps it for an empty one at its next
//! turn; a late thread hands over later, and its counts are in a later line. Nothing is lost or counted twice, so sums
//! over lines are exact though a line's edges are a turn wide.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use servers_shared::ticks::TickTally;

/// Plain sums. `shots` = accepted + early + lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Games that a bullet decided, by winner.
    pub(crate) won_by_1: u64,
    pub(crate) won_by_2: u64,
    /// Games that ended otherwise: a player left or failed, or the server went down.
    pub(crate) abandoned: u64,
    /// Fire messages of players in a game.
    pub(crate) shots: u64,
    pub(crate) shots_accepted: u64,
    /// Within the fire interval after an accepted one: dropped, as the rules say.
    pub(crate) shots_early: u64,
    /// Legal, but so many waited for a stalled tick that there was no room left.
    pub(crate) shots_lost: u64,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.won_by_1 += other.won_by_1;
        self.won_by_2 += other.won_by_2;
        self.abandoned += other.abandoned;
        self.shots += other.shots;
        self.shots_accepted += other.shots_accepted;
        self.shots_early += other.shots_early;
        self.shots_lost += other.shots_lost;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    pub(crate) ticks: TickTally,
}

impl Tally {
    pub(crate) fn new() -> Tally {
        Tally { counts: Counts::default(), ticks: TickTally::new() }
    }

    /// Adds another thread's counts.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.counts.add(&other.counts);
        self.ticks.add(&other.ticks);
    }

    /// Wipes what was counted and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.counts = Counts::default();
        self.ticks.clear();
    }
}

/// Where a thread's full tally is laid down and an empty one picked up.
pub(crate) struct Exchange {
    /// How often the control thread has asked.
    asked: AtomicU64,
    tray: Mutex<Tray>,
}

struct Tray {
    full: Option<Box<Tally>>,
    empty: Option<Box<Tally>>,
}

impl Exchange {
    pub(crate) fn new() -> Exchange {
        let tray = Tray { full: None, empty: Some(Box::new(Tally::new())) };
        Exchange { asked: AtomicU64::new(0), tray: Mutex::new(tray) }
    }

    /// The control thread asks for everything counted so far.
    pub(crate) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Release);
    }

    /// The owning thread answers, once per question and without waiting. `answered` is its own memory.
    pub(crate) fn answer(&self, answered: &mut u64, tally: &mut Box<Tally>) {
        let asked = self.asked.load(Ordering::Acquire);
        if asked == *answered {
            return;
        }
        let Ok(mut tray) = self.tray.try_lock() else { return };
        // Until the last tally is collected, counting continues in the present one.
        if let Some(empty) = tray.empty.take() {
            tray.full = Some(std::mem::replace(tally, empty));
            *answered = asked;
        }
    }

    /// The owning thread's last words.
    pub(crate) fn finish(&self, tally: Box<Tally>) {
        let mut tray = self.tray.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut tray.full {
            Some(full) => full.add(&tally),
            None => tray.full = Some(tally),
        }
    }

    /// Adds what was laid down to `sum`. False when nothing was.
    pub(crate) fn collect(&self, sum: &mut Tally) -> bool {
        let full = self.tray.lock().unwrap_or_else(PoisonError::into_inner).full.take();
        let Some(mut full) = full else { return false };
        // Adding takes too long to happen under the lock.
        sum.add(&full);
        full.clear();
        self.tray.lock().unwrap_or_else(PoisonError::into_inner).empty = Some(full);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use servers_shared::ticks::schedule::Tick;

    fn tick(interval_ms: u64, missed: u64) -> Tick {
        let interval_ns = interval_ms * 1_000_000;
        Tick { n: 1, missed, scheduled_ns: 5, started_ns: 7, interval_ns, interval_ms, unsteadiness_ns: 0 }
    }

    #[test]
    fn no_tick_is_lost_or_doubled_however_questions_answers_and_collecting_mix() {
        let mut random = fastrand::Rng::with_seed(11);
        let exchange = Exchange::new();
        let (mut own, mut answered, mut sum) = (Box::new(Tally::new()), 0, Tally::new());
        for _ in 0..2_000 {
            match random.u8(0..4) {
                0 => exchange.ask(),
                1 => exchange.answer(&mut answered, &mut own),
                2 => drop(exchange.collect(&mut sum)),
                _ => own.ticks.enter(&tick(random.u64(0..90), random.u64(0..3)), 1, 60),
            }
        }
        let mut random = fastrand::Rng::with_seed(11);
        let mut expected = Tally::new();
        for _ in 0..2_000 {
            if random.u8(0..4) == 3 {
                expected.ticks.enter(&tick(random.u64(0..90), random.u64(0..3)), 1, 60);
            }
        }
        exchange.finish(own);
        exchange.collect(&mut sum);
        assert_eq!(sum.ticks.counts, expected.ticks.counts);
        assert!(sum.ticks.interval_ms().eq(expected.ticks.interval_ms()));
        assert_eq!(sum.ticks.interval_ns, expected.ticks.interval_ns);
    }
}
