//! When each game's ticks are due, which of them ran, and which were missed.
//!
//! Pure: instants are arguments. A thread's period is divided into slots; a game lives in one slot, and its n-th tick
//! is due at its slot's n-th occurrence after its start: absolute, so that lateness never accumulates.
//! Invariant: due = recorded + missed, exactly, for every game at every moment between two updates.
//! A game starts at its slot's first occurrence after the pairing; that instant is scheduled and not run. The first
//! tick is one period later and its interval is measured from the start, so that every tick has an interval and every
//! tick is classified.
//! Units: `_ns` of the monotonic clock; `turn` counts slots since the thread's start.

use crate::fault::Share;

/// Which loop the games get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Ticker {
    /// absolute schedule; missed ticks are skipped and counted
    Steady,
    /// the original's: 1 ms timers, and after a stall all ticks that are due run back to back
    CatchUp,
}

/// The longest a slot may be, so that a turn comes often enough to read the sockets.
const SLOT_NS_MAX: u64 = 1_050_000;
const SLOTS_MAX: u64 = 128;

/// One thread's turns.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    base_ns: u64,
    tick_rate_hz: u64,
    period_ns: u64,
    slots: u64,
    ticker: Ticker,
}

impl Grid {
    /// `share` of `shares`: threads are set off against each other, so that they do not wake together.
    pub fn new(start_ns: u64, tick_rate_hz: u32, ticker: Ticker, share: u64, shares: u64) -> Grid {
        let tick_rate_hz = u64::from(tick_rate_hz);
        let slots = (1_000_000_000 / tick_rate_hz).div_ceil(SLOT_NS_MAX).clamp(1, SLOTS_MAX);
        let slot_ns = 1_000_000_000 / (tick_rate_hz * slots);
        Grid {
            base_ns: start_ns + slot_ns * share / shares.max(1),
            tick_rate_hz,
            period_ns: 1_000_000_000 / tick_rate_hz,
            slots,
            ticker,
        }
    }

    /// How many slots a period has.
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// Which slot this turn belongs to.
    pub fn slot_of(&self, turn: u64) -> usize {
        (turn % self.slots) as usize
    }

    /// The instant this turn is scheduled for.
    pub fn turn_ns(&self, turn: u64) -> u64 {
        let per_s = self.tick_rate_hz * self.slots;
        // Whole seconds first: the product of nanoseconds and turns would overflow after months.
        self.base_ns + turn / per_s * 1_000_000_000 + turn % per_s * 1_000_000_000 / per_s
    }

    /// The instant the thread wakes for this turn: itself, or the next whole millisecond.
    pub fn wake_ns(&self, turn: u64) -> u64 {
        self.wake_at_ns(self.turn_ns(turn))
    }

    fn wake_at_ns(&self, scheduled_ns: u64) -> u64 {
        match self.ticker {
            Ticker::Steady => scheduled_ns,
            Ticker::CatchUp => scheduled_ns.next_multiple_of(1_000_000),
        }
    }

    /// The last turn that is due at this instant; None before the first.
    pub fn last_due(&self, now_ns: u64) -> Option<u64> {
        let since_ns = now_ns.checked_sub(self.base_ns)?;
        let per_s = self.tick_rate_hz * self.slots;
        let (whole_s, part_ns) = (since_ns / 1_000_000_000, since_ns % 1_000_000_000);
        let mut turn = whole_s * per_s + (part_ns * per_s).div_ceil(1_000_000_000);
        while self.wake_ns(turn) > now_ns {
            turn = turn.checked_sub(1)?;
        }
        Some(turn)
    }
}

/// One game's place in the schedule.
#[derive(Clone, Copy, Debug)]
pub struct GameTicks {
    /// The turn at which the game starts.
    first_turn: u64,
    /// Ticks that were due so far; the game's next tick is the one after them.
    due: u64,
    /// When the last recorded tick, or the game, started.
    previous_ns: u64,
    /// The last recorded interval, or the period if that is longer.
    clipped_ns: u64,
    /// When the next tick is scheduled. It follows from the above; computing it takes divisions.
    next_ns: u64,
}

/// One tick to run and record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// 1 for a game's first.
    pub n: u64,
    /// How many before it came and went without being run.
    pub missed: u64,
    /// When it was due, ns.
    pub scheduled_ns: u64,
    /// When it began, ns.
    pub started_ns: u64,
    /// Since the start of the tick recorded before.
    pub interval_ns: u64,
    /// Whole-millisecond clock readings subtracted: the published figure.
    pub interval_ms: u64,
    /// |max(period, this interval) − max(period, the one before)|: what the instability ratio adds up.
    pub unsteadiness_ns: u64,
}

impl GameTicks {
    /// For a game that starts at this turn.
    pub fn new(grid: &Grid, first_turn: u64) -> GameTicks {
        GameTicks {
            first_turn,
            due: 0,
            previous_ns: grid.turn_ns(first_turn),
            clipped_ns: 0,
            next_ns: grid.turn_ns(first_turn + grid.slots),
        }
    }

    /// The next tick to run at this instant, if one is due; with it, everything due before it is settled.
    pub fn take(&mut self, grid: &Grid, now_ns: u64) -> Option<Tick> {
        if grid.wake_at_ns(self.next_ns) > now_ns {
            return None;
        }
        let mut n = self.due + 1;
        let mut scheduled_ns = self.next_ns;
        self.next_ns = self.scheduled_ns(grid, n + 1);
        if grid.ticker == Ticker::Steady && self.next_ns <= now_ns {
            // Whole periods have passed: the last due tick is run, those before it are not.
            let last_due_turn = grid.last_due(now_ns).unwrap_or(0);
            n = n.max(last_due_turn.saturating_sub(self.first_turn) / grid.slots);
            scheduled_ns = self.scheduled_ns(grid, n);
            self.next_ns = self.scheduled_ns(grid, n + 1);
        }
        let started_ns = now_ns.max(self.previous_ns);
        // The first tick has no predecessor to differ from.
        let clipped_ns = (started_ns - self.previous_ns).max(grid.period_ns);
        let before_ns = if self.due == 0 { clipped_ns } else { self.clipped_ns };
        self.clipped_ns = clipped_ns;
        let tick = Tick {
            n,
            missed: n - self.due - 1,
            scheduled_ns,
            started_ns,
            interval_ns: started_ns - self.previous_ns,
            interval_ms: started_ns / 1_000_000 - self.previous_ns / 1_000_000,
            unsteadiness_ns: clipped_ns.abs_diff(before_ns),
        };
        self.due = n;
        self.previous_ns = started_ns;
        Some(tick)
    }

    /// Whether the next tick is due and a planted fault, which runs this share of ticks late, does not let it run yet.
    pub fn is_held_back(&self, late: Share, now_ns: u64) -> bool {
        let lateness_ns = late.lateness_ns(self.due + 1);
        lateness_ns > 0 && now_ns < self.next_ns + lateness_ns
    }

    fn scheduled_ns(&self, grid: &Grid, n: u64) -> u64 {
        grid.turn_ns(self.first_turn + n * grid.slots)
    }
}

/// What an interval is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Within the bounds.
    OnTime,
    /// Too long after the last one.
    Over,
    /// Too soon after the last one.
    Under,
}

impl Class {
    /// On time is the whole milliseconds of a period, give or take one: 15, 16 and 17 at 60 Hz.
    pub fn of(interval_ms: u64, tick_rate_hz: u32) -> Class {
        let period_ms = 1_000 / u64::from(tick_rate_hz);
        match interval_ms {
            over if over > period_ms + 1 => Class::Over,
            under if under + 1 < period_ms => Class::Under,
            _ => Class::OnTime,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const START: u64 = 7_000_000_123;

    fn grid(ticker: Ticker) -> Grid {
        Grid::new(START, 60, ticker, 0, 1)
    }

    #[test]
    fn the_published_classes_are_these() {
        let classes =
            |rate: u32| -> Vec<u64> { (0..100).filter(|ms| Class::of(*ms, rate) == Class::OnTime).collect() };
        assert_eq!(classes(60), [15, 16, 17]);
        assert_eq!(classes(30), [32, 33, 34]);
        assert_eq!(Class::of(18, 60), Class::Over);
        assert_eq!(Class::of(14, 60), Class::Under);
        assert_eq!(Class::of(0, 1000), Class::OnTime);
    }

    #[test]
    fn a_minute_of_turns_has_exactly_sixty_ticks_a_second() {
        let grid = grid(Ticker::Steady);
        assert_eq!(grid.slots(), 16);
        assert_eq!(grid.turn_ns(60 * 16 * 60) - START, 60_000 * MS);
        assert_eq!(grid.turn_ns(16) - START, 16_666_666);
    }

    #[test]
    fn ticks_on_their_schedule_are_all_on_time() {
        let grid = grid(Ticker::Steady);
        let mut ticks = GameTicks::new(&grid, 5);
        for n in 1..=10_000 {
            let tick = ticks.take(&grid, grid.turn_ns(5 + n * 16) + 40_000).unwrap();
            assert_eq!((tick.n, tick.missed), (n, 0));
            assert_eq!(tick.started_ns - tick.scheduled_ns, 40_000);
            assert_eq!(Class::of(tick.interval_ms, 60), Class::OnTime);
        }
    }

    #[test]
    fn a_stall_is_skipped_and_counted_by_the_steady_ticker() {
        let grid = grid(Ticker::Steady);
        let mut ticks = GameTicks::new(&grid, 0);
        ticks.take(&grid, grid.turn_ns(16)).unwrap();
        // Five periods later: ticks 2 to 5 have passed, the sixth is the one to run.
        let tick = ticks.take(&grid, grid.turn_ns(6 * 16) + MS).unwrap();
        assert_eq!((tick.n, tick.missed), (6, 4));
        assert_eq!(ticks.take(&grid, grid.turn_ns(6 * 16) + 2 * MS), None, "not twice");
    }

    #[test]
    fn a_stall_is_caught_up_back_to_back_by_the_originals_ticker() {
        let grid = grid(Ticker::CatchUp);
        let mut ticks = GameTicks::new(&grid, 0);
        ticks.take(&grid, grid.turn_ns(16) + MS).unwrap();
        let late_ns = grid.turn_ns(6 * 16) + MS;
        let caught_up: Vec<Tick> = std::iter::from_fn(|| ticks.take(&grid, late_ns)).collect();
        assert_eq!(caught_up.iter().map(|tick| tick.n).collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
        assert!(caught_up[1..].iter().all(|tick| tick.interval_ms == 0 && tick.missed == 0));
    }

    #[test]
    fn ticks_that_are_run_late_make_the_planted_share_late_and_their_intervals_over_and_under() {
        let grid = grid(Ticker::Steady);
        let late: Share = Share::one_in(std::num::NonZeroU64::new(4).unwrap());
        let mut ticks = GameTicks::new(&grid, 0);
        let (mut run_late, mut over, mut under) = (0, 0, 0);
        for now_ns in (START..START + 1_000 * 16_666_667 + 10 * MS).step_by(100_000) {
            if !ticks.is_held_back(late, now_ns)
                && let Some(tick) = ticks.take(&grid, now_ns)
            {
                assert_eq!(tick.missed, 0);
                run_late += u64::from(tick.started_ns - tick.scheduled_ns >= 5 * MS);
                over += u64::from(Class::of(tick.interval_ms, 60) == Class::Over);
                under += u64::from(Class::of(tick.interval_ms, 60) == Class::Under);
            }
        }
        assert_eq!(run_late, 250);
        assert_eq!((over, under), (250, 249), "the next tick comes in time, too soon after the late one");
    }

    proptest! {
        #[test]
        fn recorded_and_missed_are_what_the_schedule_says_was_due(
            rate in prop_oneof![Just(60u32), Just(30), Just(128), Just(1000), Just(1), 1u32..500],
            catch_up: bool,
            first_turn in 0u64..10_000,
            steps_ns in prop::collection::vec(prop_oneof![0u64..2 * MS, 0u64..200 * MS], 1..300),
        ) {
            let ticker = if catch_up { Ticker::CatchUp } else { Ticker::Steady };
            let grid = Grid::new(START, rate, ticker, 0, 1);
            let mut ticks = GameTicks::new(&grid, first_turn);
            let mut now_ns = grid.turn_ns(first_turn);
            let (mut recorded, mut missed, mut intervals_ns) = (0, 0, 0);
            for step_ns in steps_ns {
                now_ns += step_ns;
                while let Some(tick) = ticks.take(&grid, now_ns) {
                    recorded += 1;
                    missed += tick.missed;
                    intervals_ns += tick.interval_ns;
                    prop_assert!(tick.scheduled_ns <= tick.started_ns);
                    prop_assert!(!catch_up || tick.missed == 0);
                    prop_assert_eq!(recorded + missed, tick.n);
                }
                let slots = grid.slots() as u64;
                let due = (1..).take_while(|n| grid.wake_ns(first_turn + n * slots) <= now_ns).count() as u64;
                prop_assert_eq!(recorded + missed, due);
                prop_assert!(intervals_ns <= now_ns - grid.turn_ns(first_turn));
            }
        }

        #[test]
        fn the_last_due_turn_is_the_last_whose_instant_has_come(
            rate in 1u32..=1000, catch_up: bool, after_ns in 0u64..20_000 * MS,
        ) {
            let ticker = if catch_up { Ticker::CatchUp } else { Ticker::Steady };
            let grid = Grid::new(START, rate, ticker, 1, 3);
            match grid.last_due(START + after_ns) {
                Some(turn) => {
                    prop_assert!(grid.wake_ns(turn) <= START + after_ns);
                    prop_assert!(grid.wake_ns(turn + 1) > START + after_ns);
                }
                None => prop_assert!(grid.wake_ns(0) > START + after_ns),
            }
        }
    }
}
