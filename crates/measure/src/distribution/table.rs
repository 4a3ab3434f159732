//! The counts of a distribution by the places of HdrHistogram's table of three digits.
//!
//! Each message adds to several tables, and each second all of them are added up and cleared. So a table knows which of its
//! places were counted in; the library's tables are walked to their ends.

/// The longest duration told apart, in ns: one hour.
pub const LONGEST_NS: u64 = 3_600_000_000_000;
/// The places of a bucket in the library's terms.
pub(super) const SUB_BUCKETS: u32 = 2_048;
/// Places that each bucket adds: the lower half of its values belongs to the bucket before it.
const HALF_BUCKET: u64 = SUB_BUCKETS as u64 / 2;
/// All places up to `LONGEST_NS`.
pub(super) const PLACES: u64 = HALF_BUCKET * 33;

/// How often the width of 1 ns is doubled where a value is counted: the first 2,048 places have it, and each 1,024 behind them
/// are twice as wide as those before.
const fn doubled(ns: u64) -> u32 {
    (ns | 1).ilog2().saturating_sub(10)
}

/// Where values like this one are counted. `ns` ≤ `LONGEST_NS`.
#[inline]
pub(super) const fn place_of(ns: u64) -> u64 {
    let doubled = doubled(ns);
    HALF_BUCKET * doubled as u64 + (ns >> doubled)
}

/// The highest value in ns that is counted in a place.
pub(super) const fn highest_of(place: u64) -> u64 {
    let doubled = (place / HALF_BUCKET).saturating_sub(1);
    ((place - doubled * HALF_BUCKET) << doubled) + (1 << doubled) - 1
}

/// The middle of a place by its highest value, as the library counts it in a mean.
pub(super) const fn middle_ns(highest_ns: u64) -> u64 {
    let width = 1 << doubled(highest_ns);
    highest_ns - (width - 1) + width / 2
}

/// How many buckets the library's table has that reaches this value, each twice as wide as the last.
pub(super) fn bucket_count(ns: u64) -> u32 {
    (place_of(ns) / HALF_BUCKET).max(1) as u32
}

#[derive(Clone, Debug)]
pub(super) struct Table {
    /// by place, as far as a value has ever reached
    counts: Vec<u64>,
    total: u64,
    /// places that may have been counted in
    first: usize,
    last: usize,
}

impl Table {
    pub(super) fn new() -> Self {
        Table { counts: Vec::new(), total: 0, first: usize::MAX, last: 0 }
    }

    /// Counts a value, of at most `LONGEST_NS`, `count` > 0 times. Sums beyond 64 bits are the largest.
    #[inline]
    pub(super) fn record(&mut self, ns: u64, count: u64) {
        let place = place_of(ns) as usize;
        if place >= self.counts.len() {
            self.grow(place);
        }
        self.counts[place] = self.counts[place].saturating_add(count);
        self.total = self.total.saturating_add(count);
        self.first = self.first.min(place);
        self.last = self.last.max(place);
    }

    #[cold]
    fn grow(&mut self, place: usize) {
        let half = HALF_BUCKET as usize;
        self.counts.resize((place / half + 1).max(2) * half, 0);
    }

    /// Adds all of `other`, which is not empty.
    pub(super) fn add(&mut self, other: &Table) {
        if other.last >= self.counts.len() {
            self.grow(other.last);
        }
        let places = other.first..=other.last;
        for (own, more) in self.counts[places.clone()].iter_mut().zip(&other.counts[places]) {
            *own = own.saturating_add(*more);
        }
        self.total = self.total.saturating_add(other.total);
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }

    /// Forgets everything but keeps the memory.
    pub(super) fn clear(&mut self) {
        if self.total > 0 {
            self.counts[self.first..=self.last].fill(0);
            (self.total, self.first, self.last) = (0, usize::MAX, 0);
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.total
    }

    /// The highest value of its last place, `None` when empty.
    pub(super) fn max_ns(&self) -> Option<u64> {
        (self.total > 0).then(|| highest_of(self.last as u64))
    }

    /// Places that were counted in, each by its highest value, with their counts, in ascending order.
    pub(super) fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let places = if self.total > 0 { self.first..self.last + 1 } else { 0..0 };
        let first = places.start as u64;
        let counted = self.counts[places].iter().zip(first..).filter(|&(&count, _)| count > 0);
        counted.map(|(&count, place)| (highest_of(place), count))
    }
}
