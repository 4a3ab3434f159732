//! The figures of a process over the hold, from individual readings.

use std::collections::{BTreeMap, BTreeSet};

use crate::sample::{OverTime, ProcessMetric, Sample};
use crate::seconds::{SECOND_NS, second_at};

use super::parts::{Hold, ProcessFigures};

/// One sample of slack on either side: a sampler's wake-up is never exactly on the second.
const SLACK_NS: u64 = SECOND_NS / 2;

/// What is kept of a process's readings.
#[derive(Clone, Debug, Default)]
pub(super) struct Readings {
    /// when they were read, ns, and what they were
    totals: BTreeMap<ProcessMetric, Vec<(u64, f64)>>,
    largest: BTreeMap<ProcessMetric, f64>,
}

impl Readings {
    /// Takes a reading, if it belongs to the hold.
    pub fn take(&mut self, name: ProcessMetric, sample: &Sample, hold: &Hold) {
        if sample.at_ns + SLACK_NS < hold.from_ns || sample.at_ns > hold.to_ns.saturating_add(SLACK_NS) {
            return;
        }
        match name.over_time() {
            OverTime::Total => self.totals.entry(name).or_default().push((sample.at_ns, sample.value)),
            OverTime::Largest => {
                let largest = self.largest.entry(name).or_insert(sample.value);
                *largest = largest.max(sample.value);
            }
            OverTime::OfSecond => {}
        }
    }

    /// The figures; `None` without a reading of CPU time.
    ///
    /// CPU is stored as a growing total, so its mean over the hold is exact whatever the readings' spacing. Between two
    /// readings it belongs to the second before the later one, which may be left out.
    pub fn figures(mut self, left_out: &BTreeSet<u32>) -> Option<ProcessFigures> {
        let mut cpu = self.totals.remove(&ProcessMetric::CpuTime)?;
        cpu.sort_by_key(|reading| reading.0);
        let second_before = |at_ns: u64| second_at(at_ns.saturating_sub(SLACK_NS));
        let (mut used_s, mut elapsed_s) = (0.0, 0.0);
        for pair in cpu.windows(2) {
            let ((before_ns, before_s), (at_ns, at_s)) = (pair[0], pair[1]);
            if !left_out.contains(&second_before(at_ns)) {
                used_s += at_s - before_s;
                elapsed_s += (at_ns - before_ns) as f64 / 1e9;
            }
        }
        let cpu_cores = if elapsed_s > 0.0 { (used_s / elapsed_s).max(0.0) } else { 0.0 };
        let largest = |name| self.largest.get(&name).copied();
        let allowed = largest(ProcessMetric::AllowedCores).filter(|&cores| cores > 0.0);
        Some(ProcessFigures {
            cpu_cores,
            cpu_share: allowed.map(|cores| (cpu_cores / cores).clamp(0.0, 1.0)),
            allowed_cores: allowed,
            rss_bytes: largest(ProcessMetric::Rss).unwrap_or(0.0) as u64,
            fds: largest(ProcessMetric::Fds).map(|count| count as u64),
        })
    }
}
