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
}

impl KeptStacks {
    /// In the order in which they are shown.
    pub const ALL: [KeptStacks; 2] = [KeptStacks::Cpu, KeptStacks::Waits];

    /// The names of the artifacts: of the load that held, and of the one that failed.
    pub fn artifacts(self) -> [&'static str; 2] {
        match self {
            KeptStacks::Cpu => ["profile-good.folded", "profile-bad.folded"],
            KeptStacks::Waits => ["waits-good.folded", "waits-bad.folded"],
        }
    }

    /// What one unit of a stack's weight stands for, ns per operation, in both holds; `None` where the conclusion does not say.
    pub fn ns_per_weight(self, profile: &Conclusion) -> Option<[f64; 2]> {
        let hold = |name: &str| -> Option<ProfiledHold> {
            serde_json::from_value(profile.evidence.get(name)?.clone()).ok()
        };
        let both = [hold("good")?, hold("bad")?];
        let ns = match self {
            KeptStacks::Cpu => both.map(|hold| hold.ns_per_sample()),
            KeptStacks::Waits => {
                let covered = profile.evidence.get(WAITS)?.get("covered")?.clone();
                let [good, bad]: [f64; 2] = serde_json::from_value(covered).ok()?;
                [1e3 / both[0].operations_within(good), 1e3 / both[1].operations_within(bad)]
            }
        };
        ns.iter().all(|ns| ns.is_finite() && *ns > 0.0).then_some(ns)
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
        assert_eq!(KeptStacks::Cpu.ns_per_weight(&told), Some([2_000.0, 1_000.0]));
        assert_eq!(KeptStacks::Waits.ns_per_weight(&told), None);
        told.evidence.insert(WAITS.to_owned(), json!({ "covered": [1.0, 0.5] }));
        assert_eq!(KeptStacks::Waits.ns_per_weight(&told), Some([1.0, 1.0]));
        told.evidence.insert(WAITS.to_owned(), json!({ "covered": "half" }));
        assert_eq!(KeptStacks::Waits.ns_per_weight(&told), None);
        told.evidence["good"]["samples_per_s"] = json!(0.0);
        assert_eq!(KeptStacks::Cpu.ns_per_weight(&told), None);
        assert_eq!(KeptStacks::Cpu.ns_per_weight(&none("perf is missing")), None);
    }
}
