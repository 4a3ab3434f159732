//! The hold in stretches of equal length, each with distributions of its own: how a percentile changes in its course.
//!
//! The first begins with the judged hold. Stretches are 10 s long, and twice as long whenever the hold has more of them
//! than `MOST`: hours take no more memory than minutes. Their length follows from the last second alone, so that
//! entries may come in any order.

use crate::distribution::Distribution;

/// Stretches of the longest hold.
const MOST: usize = 32;
const SHORTEST_S: u32 = 10;

/// All stretches of a hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretches {
    /// of each
    pub length_s: u32,
    /// in their order; the last may not be whole
    pub all: Vec<Stretch>,
}

/// One stretch; of messages planned in the hold, and of the server's own ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    /// answered − planned
    pub response: Distribution,
    /// from the planned send of a broadcast to its receipt
    pub delivery: Distribution,
    /// between two ticks
    pub tick_interval: Distribution,
    /// actual − scheduled start of ticks, where the server tells it
    pub tick_lateness: Distribution,
}

impl Default for Stretches {
    fn default() -> Stretches {
        Stretches { length_s: SHORTEST_S, all: Vec::new() }
    }
}

impl Stretches {
    /// The stretch of a second, counted from the start of the judged hold.
    pub(super) fn at(&mut self, second: u32) -> &mut Stretch {
        while (second / self.length_s) as usize >= MOST {
            self.double();
        }
        let at = (second / self.length_s) as usize;
        if self.all.len() <= at {
            self.all.resize_with(at + 1, Stretch::default);
        }
        &mut self.all[at]
    }

    fn double(&mut self) {
        self.length_s *= 2;
        let mut halves = std::mem::take(&mut self.all).into_iter();
        while let Some(mut whole) = halves.next() {
            whole.add(halves.next().unwrap_or_default());
            self.all.push(whole);
        }
    }
}

impl Stretch {
    fn add(&mut self, more: Stretch) {
        let Stretch { response, delivery, tick_interval, tick_lateness } = more;
        self.response.add(&response);
        self.delivery.add(&delivery);
        self.tick_interval.add(&tick_interval);
        self.tick_lateness.add(&tick_lateness);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches of these seconds, of which each has one response of its own length.
    fn of(seconds: impl Iterator<Item = u32>) -> Stretches {
        let mut stretches = Stretches::default();
        seconds.for_each(|second| stretches.at(second).response.record(1_000 * (1 + u64::from(second))));
        stretches
    }

    #[test]
    fn a_hold_of_any_length_has_at_most_32_stretches_and_loses_no_value() {
        for (hold_s, length_s, count) in
            [(60, 10, 6), (300, 10, 30), (320, 10, 32), (321, 20, 17), (3_600, 160, 23), (28_800, 1_280, 23)]
        {
            let found = of(0..hold_s);
            assert_eq!((found.length_s, found.all.len()), (length_s, count), "{hold_s} s");
            for (at, stretch) in found.all.iter().enumerate() {
                let from = at as u32 * length_s;
                let whole = of(0..1).all[0].response.count() * u64::from((hold_s - from).min(length_s));
                assert_eq!(stretch.response.count(), whole, "stretch {at} of {hold_s} s");
            }
        }
    }

    #[test]
    fn the_order_of_seconds_does_not_matter() {
        assert_eq!(of(0..1_000), of((0..1_000).rev()));
    }
}
