//! What is counted about the ticks of a second: their classes, and three distributions.
//!
//! Sums only, so that parts of a server and of a second can be added in any order.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde_json::{Value, json};

use super::schedule::{Class, Tick};

/// Plain sums. `due` = `on_time` + `over` + `under` + `missed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickCounts {
    pub due: u64,
    pub on_time: u64,
    pub over: u64,
    pub under: u64,
    pub missed: u64,
    /// Σ |max(period, interval) − max(period, interval before)| over each loop's ticks, ns.
    pub isr_numerator_ns: u64,
}

impl TickCounts {
    fn add(&mut self, other: &TickCounts) {
        self.due += other.due;
        self.on_time += other.on_time;
        self.over += other.over;
        self.under += other.under;
        self.missed += other.missed;
        self.isr_numerator_ns += other.isr_numerator_ns;
    }
}

/// The sums of a second's ticks.
#[derive(Clone, Debug)]
pub struct TickTally {
    /// How many, by class.
    pub counts: TickCounts,
    /// From the start of one tick to the start of the next.
    pub interval_ns: Histogram<u64>,
    /// From a tick's start to its end.
    pub busy_ns: Histogram<u64>,
    /// From when a tick was due to its start.
    pub lateness_ns: Histogram<u64>,
    /// Whole-millisecond intervals: the usual ones in a row, because a map is too slow for every tick.
    short_interval_ms: [u64; TickTally::SHORT_MS],
    long_interval_ms: BTreeMap<u64, u64>,
}

impl TickTally {
    const SHORT_MS: usize = 64;

    /// Without a tick.
    pub fn new() -> TickTally {
        TickTally {
            counts: TickCounts::default(),
            interval_ns: histogram(),
            busy_ns: histogram(),
            lateness_ns: histogram(),
            short_interval_ms: [0; TickTally::SHORT_MS],
            long_interval_ms: BTreeMap::new(),
        }
    }

    /// Enters one tick and those missed before it.
    pub fn enter(&mut self, tick: &Tick, busy_ns: u64, tick_rate_hz: u32) {
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

    /// Enters this tick, and each one missed before it, as if it had run when it was due: a planted fault.
    pub fn enter_as_on_time(&mut self, tick: &Tick, period_ns: u64, busy_ns: u64, tick_rate_hz: u32) {
        let punctual = Tick {
            missed: 0,
            started_ns: tick.scheduled_ns,
            interval_ns: period_ns,
            interval_ms: period_ns / 1_000_000,
            unsteadiness_ns: 0,
            ..*tick
        };
        (0..=tick.missed).for_each(|_| self.enter(&punctual, busy_ns.min(period_ns), tick_rate_hz));
    }

    /// Whole-millisecond intervals that occurred, ascending, and how often.
    pub fn interval_ms(&self) -> impl Iterator<Item = (u64, u64)> {
        let short = self.short_interval_ms.iter().enumerate().map(|(ms, count)| (ms as u64, *count));
        short
            .filter(|(_, count)| *count > 0)
            .chain(self.long_interval_ms.iter().map(|(ms, count)| (*ms, *count)))
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &TickTally) {
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

    /// All of it for another process: counts by name, distributions as in the tick log.
    pub fn to_json(&self) -> Value {
        let TickCounts { due, on_time, over, under, missed, isr_numerator_ns } = self.counts;
        json!({
            "due": due, "on_time": on_time, "over": over, "under": under, "missed": missed,
            "isr_numerator_ns": isr_numerator_ns,
            "interval_ms": self.interval_ms().map(|(ms, count)| json!([ms, count])).collect::<Value>(),
            "interval_ns": encoded(&self.interval_ns),
            "busy_ns": encoded(&self.busy_ns),
            "lateness_ns": encoded(&self.lateness_ns),
        })
    }

    /// What `to_json` has written. `None`: it contradicts itself, or is no tally.
    pub fn from_json(value: &Value) -> Option<TickTally> {
        let count = |name: &str| value[name].as_u64().filter(|count| *count <= COUNT_MAX);
        let counts = TickCounts {
            due: count("due")?,
            on_time: count("on_time")?,
            over: count("over")?,
            under: count("under")?,
            missed: count("missed")?,
            isr_numerator_ns: count("isr_numerator_ns")?,
        };
        let run = counts.on_time + counts.over + counts.under;
        let histogram = |name: &str| decoded(value[name].as_str()?).filter(|one| one.len() == run);
        let mut tally = TickTally {
            counts,
            interval_ns: histogram("interval_ns")?,
            busy_ns: histogram("busy_ns")?,
            lateness_ns: histogram("lateness_ns")?,
            short_interval_ms: [0; TickTally::SHORT_MS],
            long_interval_ms: BTreeMap::new(),
        };
        let mut left = run;
        for pair in value["interval_ms"].as_array()? {
            let (ms, count) = (pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?);
            left = left.checked_sub(count)?;
            match tally.short_interval_ms.get_mut(ms as usize) {
                Some(sum) => *sum += count,
                None => *tally.long_interval_ms.entry(ms).or_default() += count,
            }
        }
        (left == 0 && counts.due == run + counts.missed).then_some(tally)
    }

    /// Takes away ticks that were counted as missed before they were told.
    pub fn forgive(&mut self, missed: u64) {
        self.counts.missed -= missed;
        self.counts.due -= missed;
    }

    /// Ticks that were due and are not known to have run.
    pub fn miss(&mut self, missed: u64) {
        self.counts.missed += missed;
        self.counts.due += missed;
    }

    /// Wipes what was counted and keeps the memory.
    pub fn clear(&mut self) {
        self.counts = TickCounts::default();
        self.short_interval_ms.fill(0);
        self.long_interval_ms.clear();
        for histogram in [&mut self.interval_ns, &mut self.busy_ns, &mut self.lateness_ns] {
            if !histogram.is_empty() {
                histogram.reset();
            }
        }
    }
}

/// The most that is believed of a count that another process tells: sums over many of them fit.
const COUNT_MAX: u64 = 1 << 50;

/// The head of an encoded distribution: a mark, the length of what follows it, and the bounds.
const HEAD_BYTES: usize = 40;
const BOUNDS: std::ops::Range<usize> = 8..HEAD_BYTES;

/// HDR V2, uncompressed, base64.
pub(super) fn encoded(histogram: &Histogram<u64>) -> String {
    STANDARD.encode(serialized(histogram))
}

fn serialized(histogram: &Histogram<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and the format can represent the bounds.
    match V2Serializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => bytes,
        Err(_) => Vec::new(),
    }
}

/// What `encoded` has written. `None`: it is something else, or a distribution with other bounds, which might take any memory.
fn decoded(text: &str) -> Option<Histogram<u64>> {
    let bytes = STANDARD.decode(text).ok()?;
    let ours = serialized(&histogram());
    let length = u32::from_be_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
    let is_like_ours = bytes.len() == HEAD_BYTES + length && bytes.get(BOUNDS) == ours.get(BOUNDS);
    is_like_ours.then(|| Deserializer::new().deserialize(&mut bytes.as_slice()).ok()).flatten()
}

/// From 1 ns to an hour at three digits. Beyond that a value counts as the longest.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("constant bounds that the library accepts")
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
        let mut tally = TickTally::new();
        for (interval_ms, missed) in [(14, 0), (15, 0), (16, 1), (17, 0), (18, 3), (0, 0), (400, 22)] {
            tally.enter(&tick(interval_ms, missed), 50, 60);
        }
        let counts = tally.counts;
        assert_eq!((counts.under, counts.on_time, counts.over, counts.missed), (2, 3, 2, 26));
        assert_eq!(counts.due, counts.on_time + counts.over + counts.under + counts.missed);
        assert_eq!(tally.interval_ms().last(), Some((400, 1)));
        assert_eq!(tally.interval_ms().map(|(_, count)| count).sum::<u64>(), tally.interval_ns.len());
    }

    #[test]
    fn a_lying_tally_calls_late_and_missed_ticks_on_time_and_hides_none() {
        let mut tally = TickTally::new();
        for (interval_ms, missed) in [(22, 0), (11, 0), (90, 4)] {
            tally.enter_as_on_time(&tick(interval_ms, missed), 16_666_666, 50, 60);
        }
        assert_eq!((tally.counts.due, tally.counts.on_time), (7, 7));
        assert_eq!(tally.interval_ms().collect::<Vec<_>>(), [(16, 7)]);
        assert_eq!((tally.counts.isr_numerator_ns, tally.lateness_ns.max()), (0, 0));
    }

    #[test]
    fn what_another_process_tells_is_the_same_sum_or_none() {
        let mut tally = TickTally::new();
        for (interval_ms, missed) in [(16, 0), (17, 0), (400, 22), (0, 0)] {
            tally.enter(&tick(interval_ms, missed), 50_123, 60);
        }
        let told = tally.to_json();
        let heard = TickTally::from_json(&told).unwrap();
        assert_eq!(heard.to_json(), told);
        assert_eq!((heard.counts, &heard.interval_ns), (tally.counts, &tally.interval_ns));
        let check = |name: &str, wrong: Value| {
            let mut told = told.clone();
            told[name] = wrong;
            assert!(TickTally::from_json(&told).is_none(), "{name}: {}", told[name]);
        };
        check("due", json!(25));
        check("missed", json!(-1));
        check("on_time", json!(u64::MAX));
        check("interval_ms", json!([[16, 5], [400, u64::MAX]]));
        // Too few ticks, other bounds, a length that is not there, and no distribution.
        check("busy_ns", encoded(&histogram()).into());
        check("busy_ns", encoded(&Histogram::new_with_bounds(1, u64::MAX / 4, 5).unwrap()).into());
        let mut bytes = serialized(&tally.busy_ns);
        bytes[4] = 0x7f;
        check("busy_ns", STANDARD.encode(bytes).into());
        check("busy_ns", "AAAA".into());
        check("interval_ms", json!({}));
        check("lateness_ns", json!(null));
    }
}
