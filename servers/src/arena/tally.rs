//! What one thread counts in one second, and how that reaches the log without making the thread wait.
//!
//! A thread owns the tally it writes to. When the control thread asks, the thread swaps it against an empty one
//! at its next turn; a thread that is late hands over later, and its counts stand in a later line. Nothing is
//! lost or counted twice, so sums over lines are exact though a line's edges are a turn wide.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;

use super::schedule::{Class, Tick};

/// Plain sums. `due` = `on_time` + `over` + `under` + `missed`; `shots` = accepted + early + lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) due: u64,
    pub(crate) on_time: u64,
    pub(crate) over: u64,
    pub(crate) under: u64,
    pub(crate) missed: u64,
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
    /// Σ |max(period, interval) − max(period, interval before)| over each game's ticks, ns.
    pub(crate) isr_numerator_ns: u64,
    /// Legal, but so many waited for a stalled tick that there was no place left.
    pub(crate) shots_lost: u64,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.due += other.due;
        self.on_time += other.on_time;
        self.over += other.over;
        self.under += other.under;
        self.missed += other.missed;
        self.won_by_1 += other.won_by_1;
        self.won_by_2 += other.won_by_2;
        self.abandoned += other.abandoned;
        self.shots += other.shots;
        self.shots_accepted += other.shots_accepted;
        self.shots_early += other.shots_early;
        self.shots_lost += other.shots_lost;
        self.isr_numerator_ns += other.isr_numerator_ns;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    pub(crate) interval_ns: Histogram<u64>,
    pub(crate) busy_ns: Histogram<u64>,
    pub(crate) lateness_ns: Histogram<u64>,
    /// Whole-millisecond intervals: the usual ones in a row, because a map is too slow for every tick.
    short_interval_ms: [u64; Tally::SHORT_MS],
    long_interval_ms: BTreeMap<u64, u64>,
}

impl Tally {
    const SHORT_MS: usize = 64;

    pub(crate) fn new() -> Tally {
        Tally {
            counts: Counts::default(),
            interval_ns: histogram(),
            busy_ns: histogram(),
            lateness_ns: histogram(),
            short_interval_ms: [0; Tally::SHORT_MS],
            long_interval_ms: BTreeMap::new(),
        }
    }

    /// Enters one tick and those missed before it.
    pub(crate) fn tick(&mut self, tick: &Tick, busy_ns: u64, tick_rate_hz: u32) {
        self.counts.due += 1 + tick.missed;
        self.counts.missed += tick.missed;
        match Class::of(tick.interval_ms, tick_rate_hz) {
            Class::OnTime => self.counts.on_time += 1,
            Class::Over => self.counts.over += 1,
            Class::Under => self.counts.under += 1,
        }
        match self.short_interval_ms.get_mut(tick.interval_ms as usize) {
            Some(count) => *count += 1,
            None => *self.long_interval_ms.entry(tick.interval_ms).or_default() += 1,
        }
        self.counts.isr_numerator_ns += tick.unsteadiness_ns;
        self.interval_ns.saturating_record(tick.interval_ns);
        self.busy_ns.saturating_record(busy_ns);
        self.lateness_ns.saturating_record(tick.started_ns - tick.scheduled_ns);
    }

    /// Whole-millisecond intervals that occurred, ascending, and how often.
    pub(crate) fn interval_ms(&self) -> impl Iterator<Item = (u64, u64)> {
        let short = self.short_interval_ms.iter().enumerate().map(|(ms, count)| (ms as u64, *count));
        short
            .filter(|(_, count)| *count > 0)
            .chain(self.long_interval_ms.iter().map(|(ms, count)| (*ms, *count)))
    }

    /// Adds another thread's counts.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.counts.add(&other.counts);
        for (own, others) in self.short_interval_ms.iter_mut().zip(&other.short_interval_ms) {
            *own += others;
        }
        for (ms, count) in &other.long_interval_ms {
            *self.long_interval_ms.entry(*ms).or_default() += count;
        }
        for (own, others) in [
            (&mut self.interval_ns, &other.interval_ns),
            (&mut self.busy_ns, &other.busy_ns),
            (&mut self.lateness_ns, &other.lateness_ns),
        ] {
            own.add(others).expect("both have the bounds of `histogram`");
        }
    }

    /// Wipes what was counted and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.counts = Counts::default();
        self.short_interval_ms.fill(0);
        self.long_interval_ms.clear();
        for histogram in [&mut self.interval_ns, &mut self.busy_ns, &mut self.lateness_ns] {
            if !histogram.is_empty() {
                histogram.reset();
            }
        }
    }
}

/// From 1 ns to an hour at three digits. Beyond that a value counts as the longest.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("constant bounds that the library accepts")
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
        // While the last one was not collected, counting goes on in the present one.
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
        // The adding takes long enough that it must not happen under the lock.
        sum.add(&full);
        full.clear();
        self.tray.lock().unwrap_or_else(PoisonError::into_inner).empty = Some(full);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(interval_ms: u64, missed: u64) -> Tick {
        let interval_ns = interval_ms * 1_000_000;
        Tick { n: 1, missed, scheduled_ns: 5, started_ns: 7, interval_ns, interval_ms, unsteadiness_ns: 0 }
    }

    #[test]
    fn every_due_tick_is_in_exactly_one_class() {
        let mut tally = Tally::new();
        for (interval_ms, missed) in [(14, 0), (15, 0), (16, 1), (17, 0), (18, 3), (0, 0), (400, 22)] {
            tally.tick(&tick(interval_ms, missed), 50, 60);
        }
        let counts = tally.counts;
        assert_eq!((counts.under, counts.on_time, counts.over, counts.missed), (2, 3, 2, 26));
        assert_eq!(counts.due, counts.on_time + counts.over + counts.under + counts.missed);
        assert_eq!(tally.interval_ms().last(), Some((400, 1)));
        assert_eq!(tally.interval_ms().map(|(_, count)| count).sum::<u64>(), tally.interval_ns.len());
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
                _ => own.tick(&tick(random.u64(0..90), random.u64(0..3)), 1, 60),
            }
        }
        let mut random = fastrand::Rng::with_seed(11);
        let mut expected = Tally::new();
        for _ in 0..2_000 {
            if random.u8(0..4) == 3 {
                expected.tick(&tick(random.u64(0..90), random.u64(0..3)), 1, 60);
            }
        }
        exchange.finish(own);
        exchange.collect(&mut sum);
        assert_eq!(sum.counts, expected.counts);
        assert!(sum.interval_ms().eq(expected.interval_ms()));
        assert_eq!(sum.interval_ns, expected.interval_ns);
    }
}
