//! Where the seconds of a tick log lie on the trial's clock, and which of them were already counted.
//!
//! A log is stamped with realtime. Realtime may be set while it is written, and a log that was truncated, replaced or
//! rotated may repeat earlier times. So each second is placed by the clock at the time of writing, and once its times
//! have gone back by more than a second, those already counted are skipped.
//! Invariant: no moment of a trial is counted twice after a jump, and none lies in the future.
//! Units: ns on the trial's clock unless a name says realtime.

use measure::TickSecond;
use measure::ticklog::LoggedSecond;

const SECOND_NS: u64 = 1_000_000_000;
const NS_PER_MS: i64 = 1_000_000;
/// Times of a log that go back by less are an adjustment of its clock.
const JUMP_NS: u64 = SECOND_NS;
/// A second that ends later than this after the present was stamped by another clock.
const AHEAD_NS: u64 = 2 * SECOND_NS;
/// By how much two clocks may seem apart because they are read one after the other.
const READ_NS: u64 = SECOND_NS / 10;
/// Stamps before and after a smaller step are less than a second apart, so both are read by the new clock.
const STEP_NS_MIN: u64 = SECOND_NS;
/// How many jumps of a log's times are reported; all are respected.
const TOLD_JUMPS: u32 = 5;
/// Clocks of time zones differ by a multiple of this.
const ZONE_NS: i64 = 15 * 60 * NS_PER_MS * 1_000;
/// East of one is at most so far from west of another.
const ZONES_MOST: i64 = 26 * 4;
/// The longest time between the end of a second and the reading of its line.
const FRESH_NS: i64 = 4 * SECOND_NS as i64;
/// Consecutive readings that must agree, since a single line may be old.
const ZONE_READINGS: u32 = 3;
/// A second that is read so long after the load began, and was before it by its stamp, was stamped by another clock.
const BEHIND_NS: u64 = 5 * SECOND_NS;
/// How long after a step lines may still come that were stamped before it.
const OLD_STAMPS_NS: u64 = 5 * SECOND_NS;

#[derive(Debug)]
pub(super) struct Placement {
    /// realtime at the trial's 0 by the current clock
    zero_ns: i64,
    /// the same before the last step, and until when lines may be stamped by it
    before_step: Option<(i64, u64)>,
    last_to_ns: Option<u64>,
    /// the latest moment that was counted
    counted_to_ns: u64,
    /// after a jump back: what ends before this was counted already
    skip_to_ns: u64,
    jumps: u32,
    /// seconds were left out because their clock is another, and it was told
    told_apart: bool,
    /// taken off the stamps for their time zone
    zone_ns: i64,
    zone: Zone,
}

/// By how many quarters of an hour the first stamps differ from the present.
#[derive(Debug, Default)]
struct Zone {
    quarters: i64,
    readings: u32,
    read_ns: u64,
}

/// A second on the trial's clock, and what is to be said of its times.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Placed {
    /// `None` when it is left out: before the trial, already counted, or in the future
    pub second: Option<TickSecond>,
    pub notice: Option<String>,
}

impl Placement {
    /// `zone_ns`: as it was found in an earlier trial.
    pub fn new(zero_realtime_ns: u64, zone_ns: i64) -> Self {
        Placement {
            zero_ns: (zero_realtime_ns as i64).saturating_sub(zone_ns),
            before_step: None,
            last_to_ns: None,
            counted_to_ns: 0,
            skip_to_ns: 0,
            jumps: 0,
            told_apart: false,
            zone_ns,
            zone: Zone::default(),
        }
    }

    /// What the stamps are behind this machine's clock by their time zone.
    pub fn zone_ns(&self) -> i64 {
        self.zone_ns
    }

    /// Takes the first stamps for those of another time zone, where they are whole quarters of an hour from the present again and again.
    /// Returns whether that has just been found.
    fn finds_zone(&mut self, end_ns: i64, now_ns: u64) -> bool {
        let apart_ns = (now_ns as i64).saturating_sub(end_ns);
        // A line is read after its second.
        let quarters = (apart_ns.saturating_sub(FRESH_NS / 2) as f64 / ZONE_NS as f64).round() as i64;
        let rest_ns = apart_ns.saturating_sub(quarters.saturating_mul(ZONE_NS));
        let is_fresh = (-NS_PER_MS * 1_000..=FRESH_NS).contains(&rest_ns);
        if quarters == 0 || quarters.abs() > ZONES_MOST || !is_fresh || quarters != self.zone.quarters {
            self.zone = Zone { quarters: if is_fresh { quarters } else { 0 }, readings: 1, read_ns: now_ns };
            return false;
        }
        if now_ns != self.zone.read_ns {
            (self.zone.readings, self.zone.read_ns) = (self.zone.readings + 1, now_ns);
        }
        if self.zone.readings < ZONE_READINGS {
            return false;
        }
        self.zone_ns = self.zone_ns.saturating_add(quarters * ZONE_NS);
        self.zero_ns = self.zero_ns.saturating_sub(quarters * ZONE_NS);
        true
    }

    /// The notice that seconds are left out, once.
    fn tells_apart(&mut self, apart_ns: u64, of_this: &str) -> Option<String> {
        // It may turn out to be a time zone.
        let is_told = self.zone.quarters == 0 && !std::mem::replace(&mut self.told_apart, true);
        is_told.then(|| {
            format!(
                "times in the tick log lie {:.1} s in the {of_this} of this machine's clock; those seconds are left out",
                apart_ns as f64 / 1e9
            )
        })
    }

    /// Realtime was set by `step_ns`, noticed at `now_ns`.
    pub fn step(&mut self, step_ns: i64, now_ns: u64) {
        if step_ns.unsigned_abs() >= STEP_NS_MIN {
            self.before_step = Some((self.zero_ns, now_ns + OLD_STAMPS_NS));
        }
        self.zero_ns = self.zero_ns.saturating_add(step_ns);
    }

    /// Lays a second that was read at `now_ns`.
    pub fn place(&mut self, second: LoggedSecond, now_ns: u64) -> Placed {
        let on = |zero_ns: i64, ms: u64| (ms as i64).saturating_mul(NS_PER_MS).saturating_sub(zero_ns);
        if self.last_to_ns.is_none() && self.finds_zone(on(self.zero_ns, second.to_ms), now_ns) {
            let hours = self.zone_ns as f64 / 3_600e9;
            let (apart, of_it) = (hours.abs(), if hours > 0.0 { "behind" } else { "ahead of" });
            let notice = Some(format!(
                "times in the tick log are {apart} h {of_it} this machine's clock: another time zone, which is taken off"
            ));
            return Placed { notice, ..self.place(second, now_ns) };
        }
        let old_zero_ns =
            self.before_step.filter(|&(_, until_ns)| now_ns <= until_ns).map(|(zero_ns, _)| zero_ns);
        let zeros_ns = || std::iter::once(self.zero_ns).chain(old_zero_ns);
        // Its end lies shortly before the present, its begin at the end of the second before; the better match decides
        // which of the two clocks stamped it.
        let nearest = |ms: u64, expected_ns: u64, latest_ns: u64| {
            let places = zeros_ns().map(|zero_ns| on(zero_ns, ms));
            let apart =
                |place_ns: &i64| (*place_ns > latest_ns as i64, place_ns.abs_diff(expected_ns as i64));
            places.min_by_key(apart).unwrap_or(0)
        };
        let end_ns = nearest(second.to_ms, now_ns, now_ns + READ_NS);
        let length_ns = (second.to_ms.saturating_sub(second.from_ms) as i64).saturating_mul(NS_PER_MS);
        let begin_ns = match (old_zero_ns, self.last_to_ns) {
            // The step may lie inside this second, so its begin is by the old clock.
            (Some(_), Some(last_ns)) => nearest(second.from_ms, last_ns, now_ns).min(end_ns),
            _ => end_ns.saturating_sub(length_ns),
        };
        let (Ok(from_ns), Ok(to_ns)) = (u64::try_from(begin_ns), u64::try_from(end_ns)) else {
            let is_other = end_ns < 0 && now_ns > BEHIND_NS;
            let notice =
                is_other.then(|| self.tells_apart(now_ns.saturating_add(end_ns.unsigned_abs()), "past"));
            return Placed { second: None, notice: notice.flatten() };
        };
        if to_ns > now_ns + AHEAD_NS {
            return Placed { second: None, notice: self.tells_apart(to_ns - now_ns, "future") };
        }
        let back_ns = self.last_to_ns.map_or(0, |last_ns| last_ns.saturating_sub(to_ns));
        self.last_to_ns = Some(to_ns);
        let mut notice = None;
        if back_ns > JUMP_NS {
            self.skip_to_ns = self.counted_to_ns;
            self.jumps += 1;
            notice = (self.jumps <= TOLD_JUMPS).then(|| format!(
                "the times in the tick log went back by {:.1} s; what was counted already is not counted again",
                back_ns as f64 / 1e9
            ));
        }
        // By its middle: a whole second's entry may overlap a little with the one before the jump.
        if from_ns.midpoint(to_ns) < self.skip_to_ns {
            return Placed { second: None, notice };
        }
        self.counted_to_ns = self.counted_to_ns.max(to_ns);
        let laid = second.into_tick_second("log", 0);
        Placed { second: laid.map(|second| TickSecond { from_ns, to_ns, ..second }), notice }
    }
}

#[cfg(test)]
mod tests {
    use measure::{Distribution, TickCounts};

    use super::*;

    const ZERO_MS: u64 = 1_700_000_000_000;

    /// A second that ends `to_ms` after the trial's begin by the log's clock.
    fn second(from_ms: i64, to_ms: i64) -> LoggedSecond {
        LoggedSecond {
            from_ms: ZERO_MS.saturating_add_signed(from_ms),
            to_ms: ZERO_MS.saturating_add_signed(to_ms),
            counts: TickCounts { due: 60, on_time: 60, ..TickCounts::default() },
            interval: Distribution::new(),
            busy: None,
            lateness: None,
            isr_numerator_ns: None,
            counters: Vec::new(),
            gauges: Vec::new(),
        }
    }

    fn placement() -> Placement {
        Placement::new(ZERO_MS * 1_000_000, 0)
    }

    /// (from, to) in ms, and whether something was reported.
    fn place(placement: &mut Placement, from_ms: i64, to_ms: i64, now_ms: u64) -> (Option<(u64, u64)>, bool) {
        let placed = placement.place(second(from_ms, to_ms), now_ms * 1_000_000);
        let at = placed.second.map(|second| (second.from_ns / 1_000_000, second.to_ns / 1_000_000));
        (at, placed.notice.is_some())
    }

    #[test]
    fn a_second_lies_where_its_stamps_say_and_not_before_the_trial() {
        let mut placement = placement();
        assert_eq!(place(&mut placement, -400, 600, 700), (None, false));
        assert_eq!(place(&mut placement, 600, 1_600, 1_700), (Some((600, 1_600)), false));
        assert_eq!(place(&mut placement, 1_600, 2_600, 2_700), (Some((1_600, 2_600)), false));
    }

    #[test]
    fn a_step_of_the_clock_moves_no_second() {
        let check = |step_ms: i64| {
            let mut placement = placement();
            assert_eq!(place(&mut placement, 0, 1_000, 1_200), (Some((0, 1_000)), false));
            // Stamped before the step and read after it; then one that contains the step; then one after it.
            placement.step(step_ms * 1_000_000, 2_100_000_000);
            assert_eq!(
                place(&mut placement, 1_000, 2_000, 2_200),
                (Some((1_000, 2_000)), false),
                "{step_ms}"
            );
            assert_eq!(
                place(&mut placement, 2_000, 3_000 + step_ms, 3_200),
                (Some((2_000, 3_000)), false),
                "{step_ms}"
            );
            assert_eq!(
                place(&mut placement, 3_000 + step_ms, 4_000 + step_ms, 4_200),
                (Some((3_000, 4_000)), false)
            );
            assert_eq!(
                place(&mut placement, 19_000 + step_ms, 20_000 + step_ms, 20_200),
                (Some((19_000, 20_000)), false)
            );
        };
        [3_600_000, 30_000, 4_000, 1_300, -1_300, -4_000, -30_000, -3_600_000].into_iter().for_each(check);
    }

    #[test]
    fn times_that_go_back_are_told_and_nothing_is_counted_twice() {
        let mut placement = placement();
        for second in 1..=5u64 {
            let to_ms = second as i64 * 1_000;
            place(&mut placement, to_ms - 1_000, to_ms, second * 1_000 + 200);
        }
        // The log was replaced by a copy, and writing continued there.
        assert_eq!(place(&mut placement, 1_000, 2_000, 6_200), (None, true));
        assert_eq!(place(&mut placement, 2_000, 3_000, 6_200), (None, false));
        assert_eq!(place(&mut placement, 4_000, 5_000, 6_200), (None, false));
        assert_eq!(place(&mut placement, 5_000, 6_000, 6_200), (Some((5_000, 6_000)), false));
    }

    #[test]
    fn two_processes_that_share_a_log_both_count() {
        let mut placement = placement();
        assert_eq!(place(&mut placement, 0, 1_000, 1_100), (Some((0, 1_000)), false));
        assert_eq!(place(&mut placement, 40, 1_040, 1_100), (Some((40, 1_040)), false));
        assert_eq!(place(&mut placement, 1_000, 2_000, 2_100), (Some((1_000, 2_000)), false));
    }

    #[test]
    fn a_second_in_the_future_is_left_out_and_told_once() {
        let mut placement = placement();
        assert_eq!(place(&mut placement, 90_000, 91_000, 1_200), (None, true));
        assert_eq!(place(&mut placement, 91_000, 92_000, 2_200), (None, false));
        assert_eq!(place(&mut placement, 2_000, 3_000, 3_200), (Some((2_000, 3_000)), false));
    }

    #[test]
    fn another_time_zone_is_found_by_three_readings_and_taken_off_from_then_on() {
        for zone_ms in [7_200_000, -7_200_000, 20_700_000, -900_000] {
            let mut placement = placement();
            let mut read = |second: i64| {
                let to_ms = second * 1_000 + 400;
                place(&mut placement, to_ms - 1_000 + zone_ms, to_ms + zone_ms, second as u64 * 1_000 + 1_200)
            };
            assert_eq!([read(1), read(2)], [(None, false); 2], "{zone_ms}");
            assert_eq!(read(3), (Some((2_400, 3_400)), true), "{zone_ms}");
            assert_eq!(read(4), (Some((3_400, 4_400)), false), "{zone_ms}");
            assert_eq!(placement.zone_ns(), -zone_ms * 1_000_000);
            let mut next = Placement::new(ZERO_MS * 1_000_000, placement.zone_ns());
            assert_eq!(
                place(&mut next, zone_ms, 1_000 + zone_ms, 1_200),
                (Some((0, 1_000)), false),
                "the next trial knows it"
            );
        }
    }

    #[test]
    fn lines_of_another_time_or_clock_are_no_time_zone_and_are_told() {
        // What stood in the log already, read at once: its last line is a quarter of an hour old.
        let mut placement = placement();
        for second in 0..100 {
            let to_ms = -1_000_000 + second * 1_000;
            assert_eq!(place(&mut placement, to_ms - 1_000, to_ms, 1_200), (None, false));
        }
        assert_eq!(place(&mut placement, 1_000, 2_000, 2_200), (Some((1_000, 2_000)), false));
        // A clock that is 40 s behind, and one that is an hour and ten minutes ahead.
        for (apart_ms, first_told) in [(-40_000, 5), (4_200_000, 1)] {
            let mut placement = self::placement();
            for second in 1..=20i64 {
                let to_ms = second * 1_000 + apart_ms;
                let read = place(&mut placement, to_ms - 1_000, to_ms, second as u64 * 1_000 + 200);
                assert_eq!(read, (None, second == first_told), "{apart_ms}: {second}");
            }
        }
    }

    #[test]
    fn no_stamp_makes_a_negative_or_an_endless_second() {
        for to_ms in [0, 1, ZERO_MS, u64::MAX / 2, 1 << 63, u64::MAX] {
            for from_ms in [0, ZERO_MS, u64::MAX] {
                let mut placement = placement();
                placement.step(-5_000_000_000, 100);
                let told = LoggedSecond { from_ms, to_ms, ..second(0, 0) };
                if let Some(second) = placement.place(told, 10 * SECOND_NS).second {
                    assert!(second.from_ns <= second.to_ns && second.to_ns <= 12 * SECOND_NS, "{second:?}");
                }
            }
        }
    }
}
