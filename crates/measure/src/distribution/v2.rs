//! HdrHistogram's V2 encoding, uncompressed: writes it, and reads it whichever program wrote it.

use std::ops::Range;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

use super::table::{LONGEST_NS, PLACES, highest_of, place_of};

/// The most values that one histogram may hold, and the largest count that a log may tell: more cannot have been measured, and
/// what adds up millions of them stays within 64 bits.
pub const COUNT_MAX: u64 = 1_000_000_000_000;
/// Before the counts stand cookie, length, offset and digits (4 bytes each), lowest, highest and a ratio (8 each).
const HEADER_BYTES: usize = 40;
const COOKIE: u32 = 0x1c84_9313;
const LENGTH: usize = 4;
const OFFSET: usize = 8;
const DIGITS: usize = 12;
const LOWEST: usize = 16;
/// Which value its table reaches.
const HIGHEST: Range<usize> = 24..32;
const RATIO: usize = 32;
/// Of our own histograms.
const OWN_DIGITS: u32 = 3;
/// A table larger than this is not read: three digits fit for all durations there are, four up to 2 ms in ns.
const ENTRIES_MAX: u64 = 1 << 17;
/// How counts write the lowest number of 64 bits. No histogram has a count or a gap that comes near it.
const LOWEST_NUMBER: [u8; 9] = [0xff; 9];

/// The bytes are not a V2 histogram.
#[derive(Debug, thiserror::Error)]
#[error("not an HDR V2 histogram: {0}")]
pub struct BadHistogram(String);

/// Of buckets in ascending order, each by its highest value in ns, with counts that are not 0.
///
/// The same counts are always the same bytes: the table is said to reach an hour, however far one has grown.
pub(super) fn write(buckets: impl Iterator<Item = (u64, u64)>) -> Vec<u8> {
    let mut bytes = header(0, OWN_DIGITS, 1, LONGEST_NS);
    let mut place = 0;
    for (highest_ns, count) in buckets {
        let gap = place_of(highest_ns) - place;
        match gap {
            0 => {}
            1 => put(0, &mut bytes),
            _ => put(-(gap as i64), &mut bytes),
        }
        put(count.try_into().unwrap_or(i64::MAX), &mut bytes);
        place += gap + 1;
    }
    if place == 0 {
        put(0, &mut bytes);
    }
    let length = (bytes.len() - HEADER_BYTES) as u32;
    bytes[LENGTH..OFFSET].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// A header of 40 bytes.
fn header(length: u32, digits: u32, lowest: u64, highest: u64) -> Vec<u8> {
    let mut bytes = COOKIE.to_be_bytes().to_vec();
    [length, 0, digits].iter().for_each(|word| bytes.extend(word.to_be_bytes()));
    [lowest, highest, 1f64.to_bits()].iter().for_each(|word| bytes.extend(word.to_be_bytes()));
    bytes
}

/// Writes a number as `signed` reads it.
fn put(number: i64, bytes: &mut Vec<u8>) {
    let mut rest = (number << 1 ^ number >> 63) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            break;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// A histogram with the bounds and digits that it was recorded with, and at most `COUNT_MAX` values. Errors: `BadHistogram`.
pub fn read_v2(bytes: &[u8]) -> Result<Histogram<u64>, BadHistogram> {
    refuse_large_table(bytes)?;
    // The library negates such a number, and the lowest one has no opposite.
    if bytes[HEADER_BYTES..].windows(LOWEST_NUMBER.len()).any(|part| part == LOWEST_NUMBER) {
        return Err(BadHistogram("a gap of 2^63 values".to_owned()));
    }
    let read: Histogram<u64> = Deserializer::new()
        .deserialize(&mut &bytes[..])
        .map_err(|error| BadHistogram(format!("{error:?}")))?;
    // The library's own sum saturates at 64 bits, and its quantiles would then overflow.
    if read.len() > COUNT_MAX {
        return Err(BadHistogram("more values than there can be".to_owned()));
    }
    Ok(read)
}

/// The buckets of a histogram that this program wrote, highest value in ns and count, in ascending order, and the sum of the
/// counts. `None`: it is another program's, or damaged; `read_v2` says.
///
/// Of a store with hours of seconds almost all time went into the library's table: it reaches an hour, so it has 270 KB, is
/// made anew for each histogram and was walked to its end.
pub(super) fn own_buckets(bytes: &[u8]) -> Option<(Vec<(u64, u64)>, u64)> {
    let (header, counts) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let four = |at: usize| header[at..at + 4].try_into().map(u32::from_be_bytes).ok();
    let eight = |at: usize| header[at..at + 8].try_into().map(u64::from_be_bytes).ok();
    let is_ours = four(0)? == COOKIE
        && four(LENGTH)? as usize == counts.len()
        && four(OFFSET)? == 0
        && four(DIGITS)? == OWN_DIGITS
        && eight(LOWEST)? == 1
        && eight(HIGHEST.start)? == LONGEST_NS
        && eight(RATIO)? == 1f64.to_bits();
    if !is_ours {
        return None;
    }
    let (mut buckets, mut sum) = (Vec::new(), 0u64);
    let (mut place, mut rest) = (0u64, counts);
    while !rest.is_empty() {
        match signed(&mut rest)? {
            gap if gap < 0 => place = place.checked_add(gap.unsigned_abs())?,
            count => {
                let highest = (place < PLACES).then(|| highest_of(place))?;
                if count > 0 {
                    let count = count.unsigned_abs();
                    sum = sum.checked_add(count).filter(|sum| *sum <= COUNT_MAX)?;
                    buckets.push((highest, count));
                }
                place += 1;
            }
        }
    }
    (place <= PLACES).then_some((buckets, sum))
}

/// Takes a number: seven bits a byte, the lowest first, all eight of a ninth; the lowest bit is the sign. `None`: it does not end.
fn signed(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0u64;
    for at in 0..9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if at == 8 || byte & 0x80 == 0 {
            number |= u64::from(byte) << (7 * at);
            break;
        }
        number |= u64::from(byte & 0x7f) << (7 * at);
    }
    // The lowest number has no opposite.
    Some((number >> 1) as i64 ^ -((number & 1) as i64)).filter(|number| *number > i64::MIN)
}

/// Errors: reading these bytes would take a table far larger than they are; a few of them say how large.
fn refuse_large_table(bytes: &[u8]) -> Result<(), BadHistogram> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Err(BadHistogram("it is shorter than a header".to_owned()));
    };
    let eight = |at: usize| header[at..at + 8].try_into().map_or(0, u64::from_be_bytes);
    let four = |at: usize| header[at..at + 4].try_into().map_or(u32::MAX, u32::from_be_bytes);
    if four(0) != COOKIE {
        return Err(BadHistogram("it does not begin as one".to_owned()));
    }
    // The library allocates this much before it reads.
    let length = four(LENGTH) as usize;
    if length > bytes.len() - HEADER_BYTES {
        return Err(BadHistogram(format!(
            "{length} bytes of counts, and {} are there",
            bytes.len() - HEADER_BYTES
        )));
    }
    let digits = four(DIGITS);
    let (lowest, highest) = (eight(LOWEST), eight(HIGHEST.start));
    if digits > 5 {
        return Err(BadHistogram(format!("{digits} significant digits")));
    }
    // As the format counts: buckets of 2 · 10^digits, each half as fine as the one before.
    let entries_per_bucket = (2 * 10u64.pow(digits)).next_power_of_two();
    let first = u128::from(entries_per_bucket) * u128::from(lowest.max(1));
    let buckets = (0..64).find(|more| first << more > u128::from(highest)).unwrap_or(64) + 1;
    let entries = (buckets + 1) * (entries_per_bucket / 2);
    if entries > ENTRIES_MAX {
        return Err(BadHistogram(format!("a table of {entries} entries, and {ENTRIES_MAX} are read")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hdrhistogram::iterators::IterationValue;
    use proptest::prelude::*;

    use super::super::Distribution;
    use super::*;

    #[test]
    fn a_gap_that_has_no_opposite_is_refused() {
        let mut bytes = header(9, 3, 1, LONGEST_NS);
        bytes.extend([0xff; 9]);
        let error = Distribution::from_v2(&bytes).unwrap_err().to_string();
        assert!(error.contains("a gap of 2^63 values"), "{error}");
    }

    #[test]
    fn a_header_alone_makes_no_large_table() {
        let check = |bytes: &[u8], expected: &str| {
            let said = Distribution::from_v2(bytes).expect_err(expected).to_string();
            assert!(said.contains(expected), "{said}");
        };
        check(&header(0, 5, 1, i64::MAX as u64), "a table of");
        check(&header(0, 5, 1, LONGEST_NS), "a table of");
        check(&header(0, 4, 1, LONGEST_NS), "a table of");
        check(&header(0, 77, 1, 1_000), "77 significant digits");
        check(&header(u32::MAX, 3, 1, LONGEST_NS), "4294967295 bytes of counts, and 0 are there");
        check(&header(0, 3, 1, LONGEST_NS)[..39], "shorter than a header");
        check(&[0; 40], "does not begin as one");
        assert!(Distribution::from_v2(&header(0, 3, 1, i64::MAX as u64)).expect("it is empty").is_empty());
        assert!(Distribution::from_v2(&header(0, 4, 1, 1_000_000)).expect("it is empty").is_empty());
    }

    /// As it would be read if another program had written it.
    fn by_the_library(bytes: &[u8]) -> Option<(Vec<(u64, u64)>, u64)> {
        let read = read_v2(bytes).ok()?;
        let bucket = |one: IterationValue<u64>| (one.value_iterated_to(), one.count_at_value());
        let buckets: Vec<_> = read.iter_recorded().map(bucket).collect();
        let sum = buckets.iter().map(|(_, count)| count).sum();
        Some((buckets, sum))
    }

    #[test]
    fn the_ends_of_our_table_are_read_as_the_library_reads_them() {
        for ns in [1, 2, 2_047, 2_048, 2_049, 4_095, 4_096, LONGEST_NS - 1, LONGEST_NS, u64::MAX] {
            let mut one = Distribution::new();
            one.record(ns);
            let bytes = one.to_v2();
            assert!(own_buckets(&bytes).is_some());
            assert_eq!(own_buckets(&bytes), by_the_library(&bytes), "{ns}");
        }
    }

    proptest! {
        #[test]
        fn what_we_wrote_is_read_as_the_library_reads_it(
            values in proptest::collection::vec((1u64..=LONGEST_NS, 0u32..42, 1u64..1_000), 0..300)
        ) {
            let mut written = Distribution::new();
            values.iter().for_each(|&(ns, less, count)| written.record_many(ns >> less, count));
            let bytes = written.to_v2();
            prop_assert_eq!(own_buckets(&bytes), by_the_library(&bytes));
            prop_assert_eq!(Distribution::from_v2(&bytes).unwrap(), written);
        }

        #[test]
        fn what_was_damaged_is_left_to_the_library_or_read_alike(
            values in proptest::collection::vec(1u64..100_000_000, 1..100), at in 0usize..10_000, byte: u8, cut in 0usize..4
        ) {
            let mut written = Distribution::new();
            values.iter().for_each(|&ns| written.record(ns));
            let mut bytes = written.to_v2();
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(bytes.len() - cut);
            if let Some(own) = own_buckets(&bytes) {
                prop_assert_eq!(Some(own), by_the_library(&bytes));
            }
        }
    }

    #[test]
    fn more_values_than_there_can_be_are_refused() {
        let with = |counts: &[u64]| {
            let mut distribution = Distribution::new();
            counts.iter().zip(1..).for_each(|(&count, ms)| distribution.record_many(ms * 1_000_000, count));
            Distribution::from_v2(&distribution.to_v2())
        };
        assert_eq!(with(&[COUNT_MAX - 1, 1]).expect("the most that there may be").count(), COUNT_MAX);
        for counts in [&[COUNT_MAX, 1][..], &[u64::MAX / 2; 3]] {
            let error = with(counts).unwrap_err().to_string();
            assert!(error.contains("more values than there can be"), "{error}");
        }
    }
}
