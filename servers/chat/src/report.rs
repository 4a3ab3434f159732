//! The report line, in the published format.

use std::fmt;

use super::totals::Totals;

/// What happened since the report before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// The books at its end.
    pub totals: Totals,
    /// Over how long the rates are, s.
    pub interval_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Lines handed to clients, per second.
    pub deliveries_per_s: f64,
    /// Lines that clients said, per second.
    pub broadcasts_per_s: f64,
    /// Lines dropped, per second.
    pub dropped_per_s: f64,
}

impl Report {
    pub(super) fn between(before: &Totals, after: &Totals, interval_s: f64) -> Report {
        let rate = |count: fn(&Totals) -> u64| (count(after) - count(before)) as f64 / interval_s;
        Report {
            totals: *after,
            interval_s,
            bytes_per_s: rate(|totals| totals.bytes),
            deliveries_per_s: rate(|totals| totals.delivered),
            broadcasts_per_s: rate(|totals| totals.broadcasts),
            dropped_per_s: rate(|totals| totals.dropped),
        }
    }
}

/// `c` clients, `sΣ` megabytes (10⁶) sent in all, `ss` megabytes, `ms` deliveries and `bs` broadcasts per second,
/// `dΣ` lines dropped in all and `ds` per second. `sΣ` never falls: it grows by `ss` times the interval.
impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "c[{}] sΣ[{:7.2}Mb] ss[{:.2}Mb] ms[{:.0}] bs[{:.2}] dΣ[{}] ds[{:.2}]",
            self.totals.clients,
            self.totals.bytes as f64 / 1e6,
            self.bytes_per_s / 1e6,
            self.deliveries_per_s,
            self.broadcasts_per_s,
            self.totals.dropped,
            self.dropped_per_s,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_published_shape() {
        let before = Totals { bytes: 0, ..Totals::default() };
        let after = Totals {
            clients: 1024,
            bytes: 106_950_000,
            delivered: 3_390_524,
            broadcasts: 3_311,
            ..Totals::default()
        };
        let report = Report::between(&before, &after, 4.0);
        assert_eq!(
            report.to_string(),
            "c[1024] sΣ[ 106.95Mb] ss[26.74Mb] ms[847631] bs[827.75] dΣ[0] ds[0.00]"
        );
    }

    #[test]
    fn the_sum_grows_by_the_rate_times_the_interval() {
        let mut before = Totals::default();
        for (bytes, dropped, interval_s) in [(1_000_000, 3, 10.0), (0, 0, 10.2), (273_600_000, 12, 9.9)] {
            let mut after = before;
            after.bytes += bytes;
            after.dropped += dropped;
            let report = Report::between(&before, &after, interval_s);
            let grown = (report.totals.bytes - before.bytes) as f64;
            assert!((report.bytes_per_s * report.interval_s - grown).abs() < 1e-3, "{report:?}");
            assert!((report.dropped_per_s * report.interval_s - dropped as f64).abs() < 1e-9);
            before = after;
        }
    }
}
