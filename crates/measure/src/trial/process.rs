//! The figures of a process over the hold, from readings that are taken one by one.

use crate::entry::Sample;

use super::{Hold, ProcessFigures, SECOND_NS};

/// One sample of slack on either side: a sampler's wake-up is never exactly on the second.
const SLACK_NS: u64 = SECOND_NS / 2;

/// What is kept of a process's readings.
#[derive(Clone, Debug, Default)]
pub(super) struct Readings {
    /// the earliest total of CPU time and when it was read, s
    first_cpu: Option<(u64, f64)>,
    /// the latest
    last_cpu: Option<(u64, f64)>,
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
        let reading = (sample.at_ns, sample.value);
        let largest = |known: &mut Option<f64>| {
            *known = Some(known.map_or(sample.value, |most| most.max(sample.value)));
        };
        match sample.name {
            "cpu_s" => {
                if self.first_cpu.is_none_or(|(at_ns, _)| sample.at_ns < at_ns) {
                    self.first_cpu = Some(reading);
                }
                if self.last_cpu.is_none_or(|(at_ns, _)| sample.at_ns >= at_ns) {
                    self.last_cpu = Some(reading);
                }
            }
            "allowed_cores" => largest(&mut self.allowed_cores),
            "rss_bytes" => largest(&mut self.rss_bytes),
            "fds" => largest(&mut self.fds),
            _ => {}
        }
    }

    /// The figures; `None` without a reading of CPU time.
    ///
    /// CPU is stored as a growing total, so its mean over the hold is exact whatever the readings' spacing.
    pub fn figures(&self) -> Option<ProcessFigures> {
        let ((first_ns, first_s), (last_ns, last_s)) = self.first_cpu.zip(self.last_cpu)?;
        let elapsed_s = (last_ns - first_ns) as f64 / 1e9;
        let cpu_cores = if elapsed_s > 0.0 { ((last_s - first_s) / elapsed_s).max(0.0) } else { 0.0 };
        let allowed = self.allowed_cores.filter(|&cores| cores > 0.0);
        Some(ProcessFigures {
            cpu_cores,
            cpu_share: allowed.map(|cores| (cpu_cores / cores).clamp(0.0, 1.0)),
            rss_bytes: self.rss_bytes.unwrap_or(0.0) as u64,
            fds: self.fds.map(|count| count as u64),
        })
    }
}
