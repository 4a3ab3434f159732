//! The figures of a process over the hold, from readings that are taken one by one.

use std::collections::BTreeSet;

use crate::entry::Sample;

use super::{Hold, ProcessFigures, SECOND_NS};

/// One sample of slack on either side: a sampler's wake-up is never exactly on the second.
const SLACK_NS: u64 = SECOND_NS / 2;

/// What is kept of a process's readings.
#[derive(Clone, Debug, Default)]
pub(super) struct Readings {
    /// totals of CPU time and when they were read, ns and s
    cpu: Vec<(u64, f64)>,
    allowed_cores: Option<f64>,
    rss_bytes: Option<f64>,
    fds: Option<f64>,
}

impl Readings {
    /// Takes a reading, if it belongs to the hold.
    pub fn take(&mut self, sample: &Sample, hold: &Hold) {
        if sample.at_ns + SLACK_NS < hold.from_ns || sample.at_ns > hold.to_ns.saturating_add(SLACK_NS) {
            return;
        }
        let largest = |known: &mut Option<f64>| {
            *known = Some(known.map_or(sample.value, |most| most.max(sample.value)));
        };
        match &*sample.name {
            "cpu_s" => self.cpu.push((sample.at_ns, sample.value)),
            "allowed_cores" => largest(&mut self.allowed_cores),
            "rss_bytes" => largest(&mut self.rss_bytes),
            "fds" => largest(&mut self.fds),
            _ => {}
        }
    }

    /// The figures; `None` without a reading of CPU time.
    ///
    /// CPU is stored as a growing total, so its mean over the hold is exact whatever the readings' spacing. Between two
    /// readings it belongs to the second before the later one, which may be left out.
    pub fn figures(mut self, left_out: &BTreeSet<u32>) -> Option<ProcessFigures> {
        self.cpu.sort_by_key(|reading| reading.0);
        self.cpu.first()?;
        let second_before = |at_ns: u64| (at_ns.saturating_sub(SLACK_NS) / SECOND_NS) as u32;
        let (mut used_s, mut elapsed_s) = (0.0, 0.0);
        for pair in self.cpu.windows(2) {
            let ((before_ns, before_s), (at_ns, at_s)) = (pair[0], pair[1]);
            if !left_out.contains(&second_before(at_ns)) {
                used_s += at_s - before_s;
                elapsed_s += (at_ns - before_ns) as f64 / 1e9;
            }
        }
        let cpu_cores = if elapsed_s > 0.0 { (used_s / elapsed_s).max(0.0) } else { 0.0 };
        let allowed = self.allowed_cores.filter(|&cores| cores > 0.0);
        Some(ProcessFigures {
            cpu_cores,
            cpu_share: allowed.map(|cores| (cpu_cores / cores).clamp(0.0, 1.0)),
            allowed_cores: allowed,
            rss_bytes: self.rss_bytes.unwrap_or(0.0) as u64,
            fds: self.fds.map(|count| count as u64),
        })
    }
}
