//! The subject's threads over the hold, by name.

use std::collections::BTreeMap;

use super::Trial;
use crate::sample::{ProcessMetric, Signal, kind_of_name};

/// CPU of the threads of one name over the hold.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadsOfName {
    /// the name, or what several have in common: `worker-*`
    pub name: String,
    /// mean, cores
    pub cpu_cores: f64,
    /// largest second, cores
    pub cpu_cores_max: f64,
}

impl Trial {
    /// The `count` names whose threads used most CPU over the hold, those first. Empty where threads were not readable.
    ///
    /// A second in which a name is not told counts as 0: it used under 0.01 cores then, or less than 16 others.
    pub fn threads_by_name(&self, count: usize) -> Vec<ThreadsOfName> {
        // Told of each second in which threads were read.
        let was_read = Signal::Subject(ProcessMetric::ContextSwitches);
        let mut kinds: BTreeMap<String, ThreadsOfName> = BTreeMap::new();
        let mut seconds = 0.0;
        for host in self.hold_seconds().map(|second| &second.host) {
            if host.subject_threads.is_empty() && !host.signals.contains_key(&was_read) {
                continue;
            }
            seconds += 1.0;
            for (name, cores) in host.subject_threads.iter().filter(|(_, cores)| cores.is_finite()) {
                let kind = kind_of_name(name);
                let none = || ThreadsOfName { name: name.clone(), cpu_cores: 0.0, cpu_cores_max: 0.0 };
                let all = kinds.entry(kind.clone()).or_insert_with(none);
                all.cpu_cores += cores;
                all.cpu_cores_max = all.cpu_cores_max.max(*cores);
                if all.name != *name {
                    all.name = kind;
                }
            }
        }
        let mut kinds: Vec<ThreadsOfName> = kinds.into_values().collect();
        kinds.sort_by(|a, b| b.cpu_cores.total_cmp(&a.cpu_cores));
        kinds.truncate(count);
        kinds.iter_mut().for_each(|kind| kind.cpu_cores /= seconds);
        kinds
    }
}
