//! Reduces a series to what a screen can resolve: each bucket of seconds keeps, per column, its lowest and its highest
//! value.
//!
//! Nothing is invented: every value kept was measured, and a peak of one second in a day stays. Only the instant may
//! move, by less than a bucket. A bucket without any value is a gap. Sums over decimated columns are meaningless.

use crate::api::Series;

/// The series with at most about `points` points, and how many seconds each represents.
pub(crate) fn decimate(series: Series, points: usize) -> (Series, usize) {
    let rows = series.columns.first().map_or(0, |(_, values)| values.len());
    if rows <= points || points < 4 {
        return (series, 1);
    }
    let per = rows.div_ceil(points / 2);
    let columns = series.columns.into_iter().map(|(name, values)| {
        let kept = values.chunks(per).flat_map(|bucket| {
            let (first, second) = match name {
                "t" => (bucket[0], bucket[bucket.len() / 2]),
                _ => extremes(bucket),
            };
            // A last bucket of one second appears once: no two points share an instant.
            std::iter::once(first).chain((bucket.len() > 1).then_some(second))
        });
        (name, kept.collect())
    });
    (Series { columns: columns.collect() }, per.div_ceil(2))
}

/// Lowest and highest, in the order in which they came.
fn extremes(bucket: &[Option<f64>]) -> (Option<f64>, Option<f64>) {
    let values = || bucket.iter().enumerate().filter_map(|(at, value)| value.map(|value| (at, value)));
    let low = values().min_by(|one, other| one.1.total_cmp(&other.1));
    let high = values().max_by(|one, other| one.1.total_cmp(&other.1));
    match (low, high) {
        (Some(low), Some(high)) if low.0 <= high.0 => (Some(low.1), Some(high.1)),
        (Some(low), Some(high)) => (Some(high.1), Some(low.1)),
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rows: usize) -> Series {
        let t = (0..rows).map(|at| Some(at as f64)).collect();
        let peak = (0..rows).map(|at| Some(if at == 1_234 { 9.0 } else { 1.0 + (at % 3) as f64 })).collect();
        let gap = (0..rows).map(|at| (at < 100).then_some(5.0)).collect();
        Series { columns: vec![("t", t), ("peak", peak), ("gap", gap)] }
    }

    #[test]
    fn a_series_that_is_short_enough_stays_as_it_is() {
        assert_eq!(decimate(series(2_000), 2_000), (series(2_000), 1));
    }

    #[test]
    fn a_peak_of_one_second_stays_and_every_value_was_measured() {
        let (few, per) = decimate(series(86_401), 2_000);
        let rows = few.columns[0].1.len();
        assert!(rows <= 2_002 && per > 1, "{rows} rows, {per} s per point");
        assert!(few.columns.iter().all(|(_, values)| values.len() == rows));
        let peak = few.column("peak").unwrap();
        assert_eq!(peak.iter().filter(|value| **value == Some(9.0)).count(), 1);
        assert!(peak.iter().flatten().all(|value| [1.0, 2.0, 3.0, 9.0].contains(value)));
        let t = few.column("t").unwrap();
        assert!(t.windows(2).all(|pair| pair[0] < pair[1]), "instants grow");
    }

    #[test]
    fn what_was_not_measured_stays_a_gap() {
        let (few, _) = decimate(series(10_000), 1_000);
        let gap = few.column("gap").unwrap();
        assert!(gap[0] == Some(5.0) && gap[gap.len() - 1].is_none());
    }
}
