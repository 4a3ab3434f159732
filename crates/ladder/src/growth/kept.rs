//! The stacks that are kept with a run that was profiled, and what their weights stand for.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{ProfiledHold, WAITS};
use crate::contract::Conclusion;

/// Stacks of both profiled holds, as artifacts of their run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum KeptStacks {
    /// samples of CPU
    Cpu,
    /// waits, in µs
    Waits,
    /// allocations, in bytes
    Alloc,
}

impl KeptStacks {
    /// In the order in which they are shown.
    pub const ALL: [KeptStacks; 3] = [KeptStacks::Cpu, KeptStacks::Waits, KeptStacks::Alloc];

    /// The names of the artifacts: of the load that held, and of the one that failed.
    pub fn artifacts(self) -> [&'static str; 2] {
        match self {
            KeptStacks::Cpu => ["profile-good.folded", "profile-bad.folded"],
            KeptStacks::Waits => ["waits-good.folded", "waits-bad.folded"],
            KeptStacks::Alloc => ["alloc-good.folded", "alloc-bad.folded"],
        }
    }

    /// What one unit of a stack's weight stands for per operation, in both holds: ns, of allocations bytes; `None` where the
    /// conclusion does not say.
    pub fn per_weight(self, profile: &Conclusion) -> Option<[f64; 2]> {
        let hold = |name: &str| -> Option<ProfiledHold> {
            serde_json::from_value(profile.evidence.get(name)?.clone()).ok()
        };
        let both = [hold("good")?, hold("bad")?];
        let each = match self {
            KeptStacks::Alloc => both.map(|hold| 1.0 / hold.operations_within(1.0)),
            KeptStacks::Cpu => both.map(|hold| hold.ns_per_sample()),
            KeptStacks::Waits => {
                let covered = profile.evidence.get(WAITS)?.get("covered")?.clone();
                let [good, bad]: [f64; 2] = serde_json::from_value(covered).ok()?;
                [1e3 / both[0].operations_within(good), 1e3 / both[1].operations_within(bad)]
            }
        };
        each.iter().all(|one| one.is_finite() && *one > 0.0).then_some(each)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::growth::{conclusion, none};

    #[test]
    fn weights_are_those_of_the_figures_and_of_a_damaged_conclusion_nothing() {
        let hold = |operations| ProfiledHold { operations, samples_per_s: 500.0, ..ProfiledHold::default() };
        let mut told = conclusion(&hold(1000), &hold(2000), None);
        // A sample is 2 ms.
        assert_eq!(KeptStacks::Cpu.per_weight(&told), Some([2_000.0, 1_000.0]));
        assert_eq!(KeptStacks::Alloc.per_weight(&told), Some([0.001, 0.0005]));
        assert_eq!(KeptStacks::Waits.per_weight(&told), None);
        told.evidence.insert(WAITS.to_owned(), json!({ "covered": [1.0, 0.5] }));
        assert_eq!(KeptStacks::Waits.per_weight(&told), Some([1.0, 1.0]));
        told.evidence.insert(WAITS.to_owned(), json!({ "covered": "half" }));
        assert_eq!(KeptStacks::Waits.per_weight(&told), None);
        told.evidence["good"]["samples_per_s"] = json!(0.0);
        assert_eq!(KeptStacks::Cpu.per_weight(&told), None);
        assert_eq!(KeptStacks::Cpu.per_weight(&none("perf is missing")), None);
    }
}
