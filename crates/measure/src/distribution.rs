//! A distribution of durations: an HDR histogram with three digits, and the rule for which percentiles may be stated.
//!
//! Percentiles are never averaged; histograms are added. A percentile with fewer than 100 samples beyond it is not
//! stated at all, because it would rest on a handful of messages.
//! Units: ns. Range 1 ns to one hour; longer values are recorded as one hour and never dropped.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

mod encoding;
mod table;
mod v2;

pub use table::LONGEST_NS;
use table::Table;
pub use v2::{BadHistogram, COUNT_MAX, read_v2};

/// Values that are no durations, such as those of `bot.record`, are kept as whole numbers of thousandths.
pub const THOUSANDTHS: f64 = 1_000.0;
/// How many samples must exceed a percentile before it may be stated.
pub const EXCEEDANCES: f64 = 100.0;

/// Samples that state a quantile `q` in (0, 1): 10,000 for 0.99.
pub fn samples_needed(q: f64) -> u64 {
    (EXCEEDANCES / (1.0 - q)).round() as u64
}

/// Durations in ns, with relative error ≤ 0.1 %.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    counts: Counts,
}

#[derive(Clone, Debug, Default)]
enum Counts {
    /// until the first value: most distributions of a second stay empty
    #[default]
    None,
    /// As it was read: buckets in ascending order, each by its highest value, and the sum of their counts, which is not 0. Of
    /// the seconds of a long trial a table for each took most of the time.
    Read(Vec<(u64, u64)>, u64),
    Table(Table),
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
        Distribution::default()
    }

    #[inline]
    fn table(&mut self) -> &mut Table {
        if !matches!(self.counts, Counts::Table(_)) {
            self.make_table();
        }
        let Counts::Table(table) = &mut self.counts else { unreachable!("it was made one") };
        table
    }

    #[cold]
    fn make_table(&mut self) {
        let mut table = Table::new();
        // The longest first: the table then grows once.
        self.read().iter().rev().for_each(|&(ns, count)| table.record(ns, count));
        self.counts = Counts::Table(table);
    }

    fn read(&self) -> &[(u64, u64)] {
        if let Counts::Read(buckets, _) = &self.counts { buckets } else { &[] }
    }

    /// Counts one duration. Allocates only for one that is longer than all before.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.table().record(ns.clamp(1, LONGEST_NS), 1);
    }

    /// Counts one value, in thousandths; other than of a duration there may be none of it.
    pub fn record_value(&mut self, thousandths: u64) {
        self.table().record(thousandths.min(LONGEST_NS), 1);
    }

    /// Counts one duration `count` times.
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count > 0 {
            self.table().record(ns.clamp(1, LONGEST_NS), count);
        }
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &Distribution) {
        match &other.counts {
            Counts::None => {}
            Counts::Table(table) if table.count() == 0 => {}
            Counts::Table(table) => self.table().add(table),
            Counts::Read(..) if matches!(self.counts, Counts::None) => self.counts = other.counts.clone(),
            Counts::Read(buckets, _) => {
                let table = self.table();
                buckets.iter().rev().for_each(|&(ns, count)| table.record(ns, count));
            }
        }
    }

    /// Forgets everything but keeps the memory; free when already empty.
    pub fn clear(&mut self) {
        match &mut self.counts {
            Counts::Table(table) => table.clear(),
            Counts::Read(..) => self.counts = Counts::None,
            Counts::None => {}
        }
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        match &self.counts {
            Counts::None => 0,
            Counts::Read(_, count) => *count,
            Counts::Table(table) => table.count(),
        }
    }

    /// True when nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Largest value in ns, `None` when empty.
    pub fn max_ns(&self) -> Option<u64> {
        match &self.counts {
            Counts::Table(table) => table.max_ns(),
            _ => self.read().last().map(|&(highest_ns, _)| highest_ns),
        }
    }

    /// Mean in ns, `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        let sum = self.count() as f64;
        // In this order it is the library's to the last digit.
        let part =
            |total, (highest_ns, count)| total + table::middle_ns(highest_ns) as f64 * count as f64 / sum;
        (!self.is_empty()).then(|| self.buckets().fold(0.0, part))
    }

    /// Standard deviation in ns, `None` when empty.
    fn deviation_ns(&self) -> Option<f64> {
        let mean = self.mean_ns()?;
        let square =
            |(highest_ns, count)| (table::middle_ns(highest_ns) as f64 - mean).powi(2) * count as f64;
        Some((self.buckets().map(square).sum::<f64>() / self.count() as f64).sqrt())
    }

    /// Every recorded bucket as (highest value of the bucket in ns, count), in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let table = if let Counts::Table(table) = &self.counts { Some(table) } else { None };
        self.read().iter().copied().chain(table.into_iter().flat_map(Table::recorded))
    }

    /// How many values lie above `ns`, by the highest value of their bucket.
    pub fn count_above(&self, ns: f64) -> u64 {
        self.buckets().filter(|&(highest_ns, _)| highest_ns as f64 > ns).map(|(_, count)| count).sum()
    }

    /// How the histogram is laid out, in HdrHistogram's terms: buckets, each twice as wide as the last, and sub-buckets in
    /// each. `None` when empty.
    pub fn layout(&self) -> Option<(u32, u32)> {
        self.max_ns().map(|ns| (table::bucket_count(ns), table::SUB_BUCKETS))
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
        let mut up_to = 0;
        let is_there = |&(_, count): &(u64, u64)| {
            up_to += count;
            up_to >= rank
        };
        self.buckets().find(is_there).map_or(Quantile::TooFew, |(highest_ns, _)| Quantile::Ns(highest_ns))
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
            stddev: self.deviation_ns(),
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
        v2::write(self.buckets())
    }

    /// Reads the V2 encoding, recorded with any bounds. Errors: `BadHistogram`.
    pub fn from_v2(bytes: &[u8]) -> Result<Self, BadHistogram> {
        let mut distribution = Distribution::new();
        if let Some((buckets, sum)) = v2::own_buckets(bytes) {
            let counts = if sum == 0 { Counts::None } else { Counts::Read(buckets, sum) };
            return Ok(Distribution { counts });
        }
        let read = read_v2(bytes)?;
        for bucket in read.iter_recorded() {
            distribution.table().record(bucket.value_iterated_to().min(LONGEST_NS), bucket.count_at_value());
        }
        Ok(distribution)
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Serializer, V2Serializer};
    use proptest::prelude::*;

    use super::*;

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
        assert_eq!([0.5, 0.9, 0.99, 0.999].map(samples_needed), [200, 1_000, 10_000, 100_000]);
    }

    // What is compared elsewhere as equal, live and replayed, rests on this.
    #[test]
    fn distributions_differ_in_a_count_or_in_a_bucket() {
        assert_eq!(of(&[5, 7]), of(&[7, 5]));
        assert_ne!(of(&[5, 7]), of(&[5, 8]), "as many");
        assert_ne!(of(&[5, 7]), of(&[5, 7, 7]), "the same buckets");
        assert_ne!(of(&[5]), Distribution::new());
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

        /// Figures, quantiles and bytes are those of the library's table; and what was cleared before leaves nothing behind.
        #[test]
        fn every_figure_is_the_librarys(
            before in proptest::collection::vec(0u64..=LONGEST_NS, 0..20),
            values in proptest::collection::vec((0u64..=LONGEST_NS, 0u32..42, 1u64..400), 1..200),
            q in 0.0f64..1.0,
        ) {
            let (mut own, mut library) = (of(&before), Histogram::<u64>::new(3).unwrap());
            own.clear();
            library.auto(true);
            for &(ns, less, count) in &values {
                own.record_many(ns >> less, count);
                library.record_n((ns >> less).max(1), count).unwrap();
            }
            let mut added = of(&before);
            added.clear();
            added.add(&own);
            for own in [&own, &added] {
                let Summary { max, mean, stddev, count, .. } = own.summary().unwrap();
                prop_assert_eq!((max.unwrap(), count), (library.max(), library.len()));
                prop_assert_eq!((mean.unwrap(), stddev.unwrap()), (library.mean(), library.stdev()));
                if let Quantile::Ns(ns) = own.quantile(q, 0) {
                    prop_assert_eq!(ns, library.value_at_quantile(q));
                }
                prop_assert_eq!(own.layout(), Some((library.buckets().into(), 2_048)));
                let mut bytes = Vec::new();
                V2Serializer::new().serialize(&library, &mut bytes).unwrap();
                bytes[24..32].copy_from_slice(&LONGEST_NS.to_be_bytes());
                prop_assert_eq!(own.to_v2(), bytes);
            }
        }

        /// What is read of a store is judged as what was measured, to the last digit.
        #[test]
        fn what_was_read_tells_the_same_figures(
            values in proptest::collection::vec((0u64..=LONGEST_NS, 0u32..42, 1u64..400), 0..200), never in 0u64..300
        ) {
            let mut table = Distribution::new();
            values.iter().for_each(|&(ns, less, count)| table.record_many(ns >> less, count));
            let read = Distribution::from_v2(&table.to_v2()).unwrap();
            prop_assert!(!matches!(read.counts, Counts::Table(_)));
            prop_assert_eq!(read.summary(), table.summary());
            for q in [0.0, 0.001, 0.5, 0.9, 0.99] {
                prop_assert_eq!(read.quantile(q, never), table.quantile(q, never));
            }
            prop_assert_eq!(read.to_v2(), table.to_v2());
            prop_assert_eq!(read.layout().is_some(), table.layout().is_some());
            for start in [Distribution::new(), read.clone(), table.clone(), of(&[7, 5_000_000])] {
                let (mut with_read, mut with_table) = (start.clone(), start);
                with_read.add(&read);
                with_table.add(&table);
                prop_assert_eq!(with_read.to_v2(), with_table.to_v2());
                with_read.clear();
                prop_assert!(with_read.is_empty());
            }
        }
    }
}
