//! A distribution of durations: an HDR histogram with three digits, and the rule for which percentiles may be stated.
//!
//! Percentiles are never averaged; histograms are added. A percentile with fewer than 100 samples beyond it is not
//! stated at all, because it would rest on a handful of messages.
//! Units: ns. Range 1 ns to one hour; longer values are recorded as one hour and never dropped.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

mod v2;

pub use v2::{BadHistogram, COUNT_MAX, LONGEST_NS, read_v2};

/// Values that are no durations, such as those of `bot.record`, are kept as whole numbers of thousandths.
pub const THOUSANDTHS: f64 = 1_000.0;
/// How many samples must exceed a percentile before it may be stated.
pub const EXCEEDANCES: f64 = 100.0;

/// Samples that state a quantile `q` in (0, 1): 10,000 for 0.99.
pub fn samples_needed(q: f64) -> u64 {
    (EXCEEDANCES / (1.0 - q)).round() as u64
}

const FITS: &str = "it grows, so every value fits";

/// Durations in ns, with relative error ≤ 0.1 %.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// `None` until the first value: most distributions of a second stay empty
    counts: Option<Histogram<u64>>,
}

/// Equal when every bucket holds the same count; how far each has grown does not matter.
impl PartialEq for Distribution {
    fn eq(&self, other: &Self) -> bool {
        self.count() == other.count() && self.buckets().eq(other.buckets())
    }
}

/// A percentile as far as it may be stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// Fewer than 100 samples lie beyond it.
    TooFew,
    /// The value in ns.
    Ns(u64),
    /// So many messages never had an answer that this percentile is one of theirs.
    Infinite,
}

/// The figures of one distribution as they go into the JSON contract.
///
/// Shape: percentiles, extremes, moments. Units: ns. A percentile that may not be stated is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Summary {
    /// median
    pub p50: Option<u64>,
    /// 0.9 quantile
    pub p90: Option<u64>,
    /// 0.99 quantile
    pub p99: Option<u64>,
    /// 0.999 quantile
    pub p999: Option<u64>,
    /// largest value
    pub max: Option<u64>,
    /// arithmetic mean
    pub mean: Option<f64>,
    /// standard deviation
    pub stddev: Option<f64>,
    /// how many values
    pub count: u64,
}

/// The figures of a distribution of a script's own, in the unit that the script chose.
///
/// A percentile that may not be stated is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct ValueSummary {
    /// median
    pub p50: Option<f64>,
    /// 0.9 quantile
    pub p90: Option<f64>,
    /// 0.99 quantile
    pub p99: Option<f64>,
    /// largest value
    pub max: Option<f64>,
    /// arithmetic mean
    pub mean: Option<f64>,
    /// how many values
    pub count: u64,
}

impl Distribution {
    /// An empty distribution, which takes no memory. The first value allocates 16 KB, a longer one more; then it stays.
    pub fn new() -> Self {
        Distribution { counts: None }
    }

    fn histogram(&mut self) -> &mut Histogram<u64> {
        self.counts.get_or_insert_with(|| {
            let mut counts = Histogram::new(3).expect("three digits are within the library's range");
            counts.auto(true);
            counts
        })
    }

    /// Counts one duration. Allocates only for one that is longer than all before.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram().record(ns.clamp(1, LONGEST_NS)).expect(FITS);
    }

    /// Counts one value, in thousandths; other than of a duration there may be none of it.
    pub fn record_value(&mut self, thousandths: u64) {
        self.histogram().record(thousandths.min(LONGEST_NS)).expect(FITS);
    }

    /// Counts one duration `count` times.
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count > 0 {
            self.histogram().record_n(ns.clamp(1, LONGEST_NS), count).expect(FITS);
        }
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &Distribution) {
        if let Some(counts) = other.counts.as_ref().filter(|counts| !counts.is_empty()) {
            self.histogram().add(counts).expect(FITS);
        }
    }

    /// Forgets everything but keeps the memory; free when already empty.
    pub fn clear(&mut self) {
        if let Some(counts) = self.counts.as_mut().filter(|counts| !counts.is_empty()) {
            counts.reset();
        }
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.counts.as_ref().map_or(0, Histogram::len)
    }

    /// True when nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn filled(&self) -> Option<&Histogram<u64>> {
        self.counts.as_ref().filter(|counts| !counts.is_empty())
    }

    /// Largest value in ns, `None` when empty.
    pub fn max_ns(&self) -> Option<u64> {
        self.filled().map(Histogram::max)
    }

    /// Mean in ns, `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        self.filled().map(Histogram::mean)
    }

    /// Every recorded bucket as (highest value of the bucket in ns, count), in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter()
            .flat_map(Histogram::iter_recorded)
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }

    /// How many values lie above `ns`, by the highest value of their bucket.
    pub fn count_above(&self, ns: f64) -> u64 {
        self.buckets().filter(|&(highest_ns, _)| highest_ns as f64 > ns).map(|(_, count)| count).sum()
    }

    /// How the histogram is laid out, in HdrHistogram's terms: buckets, each twice as wide as the last, and sub-buckets in
    /// each. `None` when empty.
    pub fn layout(&self) -> Option<(u32, u32)> {
        // As in HdrHistogram's Java library: values are exact up to 2 · 10^digits, rounded up to a power of two.
        let sub_buckets =
            |counts: &Histogram<u64>| (2 * 10u32.pow(u32::from(counts.sigfig()))).next_power_of_two();
        self.filled().map(|counts| (u32::from(counts.buckets()), sub_buckets(counts)))
    }

    /// The `q` quantile of the recorded values together with `never` messages that took infinitely long.
    ///
    /// `q` in [0, 1]. A refused, lost or missing reply is bad: it enters here as infinite and is never absent.
    pub fn quantile(&self, q: f64, never: u64) -> Quantile {
        let total = self.count() + never;
        if ((1.0 - q) * total as f64) + 1e-9 < EXCEEDANCES {
            return Quantile::TooFew;
        }
        let rank = (q * total as f64).ceil().max(1.0) as u64;
        if rank > self.count() {
            return Quantile::Infinite;
        }
        // The library rounds its rank up; half a rank less makes it land on ours whatever the float says.
        let at = (rank as f64 - 0.5) / self.count() as f64;
        self.filled().map_or(Quantile::TooFew, |counts| Quantile::Ns(counts.value_at_quantile(at)))
    }

    /// The contract's figures, `None` when nothing was recorded.
    pub fn summary(&self) -> Option<Summary> {
        if self.is_empty() {
            return None;
        }
        let stated = |q| match self.quantile(q, 0) {
            Quantile::Ns(ns) => Some(ns),
            Quantile::TooFew | Quantile::Infinite => None,
        };
        Some(Summary {
            p50: stated(0.5),
            p90: stated(0.9),
            p99: stated(0.99),
            p999: stated(0.999),
            max: self.max_ns(),
            mean: self.mean_ns(),
            stddev: self.filled().map(Histogram::stdev),
            count: self.count(),
        })
    }

    /// The figures of values that were kept in thousandths, `None` when nothing was recorded.
    pub fn value_summary(&self) -> Option<ValueSummary> {
        let Summary { p50, p90, p99, max, mean, count, .. } = self.summary()?;
        let [p50, p90, p99, max] = [p50, p90, p99, max].map(|value| Some(value? as f64 / THOUSANDTHS));
        Some(ValueSummary { p50, p90, p99, max, mean: mean.map(|mean| mean / THOUSANDTHS), count })
    }

    /// The histogram in HdrHistogram's V2 encoding, not compressed: any HDR library reads it.
    pub fn to_v2(&self) -> Vec<u8> {
        let empty;
        let counts = match &self.counts {
            Some(counts) => counts,
            None => {
                empty = Histogram::new(3).expect("three digits are within the library's range");
                &empty
            }
        };
        v2::write(counts)
    }

    /// Reads the V2 encoding, recorded with any bounds. Errors: `BadHistogram`.
    pub fn from_v2(bytes: &[u8]) -> Result<Self, BadHistogram> {
        let mut distribution = Distribution::new();
        if let Some(own) = v2::own_buckets(bytes) {
            // The longest first: the table then grows once.
            own.iter()
                .rev()
                .for_each(|&(ns, count)| distribution.histogram().record_n(ns, count).expect(FITS));
            return Ok(distribution);
        }
        let read = read_v2(bytes)?;
        for bucket in read.iter_recorded() {
            let highest = bucket.value_iterated_to().min(LONGEST_NS);
            distribution.histogram().record_n(highest, bucket.count_at_value()).expect(FITS);
        }
        Ok(distribution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Distribution {
        let mut distribution = Distribution::new();
        values.iter().for_each(|&ns| distribution.record(ns));
        distribution
    }

    #[test]
    fn a_percentile_with_fewer_than_a_hundred_samples_beyond_it_is_not_stated() {
        let nearly = of(&vec![1_000; 9_999]);
        assert_eq!(nearly.quantile(0.99, 0), Quantile::TooFew);
        let enough = of(&vec![1_000; 10_000]);
        assert_eq!(enough.quantile(0.99, 0), Quantile::Ns(1_000));
        assert_eq!(enough.summary().unwrap().p999, None);
    }

    #[test]
    fn messages_that_were_never_answered_are_infinite_and_not_absent() {
        let mut values = vec![1_000_000; 9_900];
        values.extend([2_000_000; 50]);
        let distribution = of(&values);
        assert_eq!(distribution.quantile(0.99, 50), Quantile::Ns(1_000_447));
        assert_eq!(distribution.quantile(0.99, 200), Quantile::Infinite);
    }

    #[test]
    fn what_lies_above_is_counted_and_the_bound_itself_does_not() {
        let distribution = of(&[100, 200, 200, 300]);
        let above = [0.0, 99.9, 100.0, 200.0, 299.5, 300.0].map(|ns| distribution.count_above(ns));
        assert_eq!(above, [4, 4, 3, 1, 1, 0]);
        assert_eq!(Distribution::new().count_above(0.0), 0);
    }

    #[test]
    fn a_duration_longer_than_an_hour_is_kept_as_an_hour() {
        let distribution = of(&[u64::MAX]);
        assert_eq!(distribution.count(), 1);
        assert!(distribution.max_ns().unwrap() >= LONGEST_NS);
    }

    proptest! {
        #[test]
        fn every_quantile_is_within_a_thousandth_of_the_sorted_values(
            mut values in proptest::collection::vec(1u64..60_000_000_000, 200..2_000), q in 0.0f64..0.5
        ) {
            let distribution = of(&values);
            values.sort_unstable();
            let rank = (q * values.len() as f64).ceil().max(1.0) as usize;
            let exact = values[rank - 1] as f64;
            let Quantile::Ns(read) = distribution.quantile(q, 0) else { panic!("enough samples") };
            prop_assert!((read as f64 - exact).abs() <= exact * 0.001 + 1.0, "{read} against {exact}");
        }

        #[test]
        fn merging_in_any_order_gives_the_same_histogram(
            a in proptest::collection::vec(1u64..10_000_000_000, 0..300),
            b in proptest::collection::vec(1u64..10_000_000_000, 0..300),
        ) {
            let (mut ab, mut ba) = (of(&a), of(&b));
            ab.add(&of(&b));
            ba.add(&of(&a));
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(Distribution::from_v2(&ab.to_v2()).unwrap(), ba);
        }
    }
}
