//! Percentile tables (`.hgrm`), as HdrHistogram's tools print and its plotter reads them.
//!
//! Values are in ms. One line per recorded bucket, so nothing between two lines is invented.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use measure::{Distribution, Measure};

use super::files::{create, failed};
use crate::error::StoreError;
use crate::run::RunId;
use crate::store::Store;

/// `trial-N-NAME.hgrm` of each trial and measure.
pub(super) fn of_run(store: &Store, run: &RunId, dir: &Path) -> Result<(), StoreError> {
    for trial in store.trials(run)? {
        let seq = trial.head.seq;
        let trial = store.trial(run, seq, 0)?;
        for &measure in Measure::ALL {
            let distribution = trial.distribution(measure);
            if !distribution.is_empty() {
                let path = dir.join(format!("trial-{seq}-{}.hgrm", measure.name()));
                let table = table(distribution);
                let mut file = create(&path)?;
                file.write_all(table.as_bytes()).map_err(|error| failed(&path, error))?;
                file.finish()?;
            }
        }
    }
    Ok(())
}

/// The table of one distribution.
fn table(distribution: &Distribution) -> String {
    let total = distribution.count();
    let mut table =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut so_far = 0u64;
    for (ns, count) in distribution.buckets() {
        so_far += count;
        let share = so_far as f64 / total as f64;
        let ms = ns as f64 / 1e6;
        // Writing to a String does not fail. The last line has no fourth column: nothing lies beyond it.
        let _ = match so_far {
            all if all == total => writeln!(table, "{ms:>12.6} {:>14.12} {so_far:>10}", 1.0),
            _ => writeln!(table, "{ms:>12.6} {share:>14.12} {so_far:>10} {:>14.2}", 1.0 / (1.0 - share)),
        };
    }
    if let Some(summary) = distribution.summary() {
        let ms = |ns: f64| ns / 1e6;
        let (mean, deviation) = (ms(summary.mean.unwrap_or(0.0)), ms(summary.stddev.unwrap_or(0.0)));
        let max = ms(summary.max.unwrap_or(0) as f64);
        let _ = writeln!(table, "#[Mean    = {mean:>12.6}, StdDeviation   = {deviation:>12.6}]");
        let _ = writeln!(table, "#[Max     = {max:>12.6}, Total count    = {total:>12}]");
    }
    if let Some((buckets, sub_buckets)) = distribution.layout() {
        let _ = writeln!(table, "#[Buckets = {buckets:>12}, SubBuckets     = {sub_buckets:>12}]");
    }
    table
}
