//! Which functions of a server allocated more memory per operation at a load that failed than at one that held.
//!
//! From samples of allocations, each of which stands for some bytes: the sizes of a function vary by chance as the number of its
//! samples does. Units: bytes per operation, shares of all bytes in [0, 1].

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Growth, LEAST_SHARE, LISTED, LISTED_DEVIATIONS, NAMED, ProfiledHold, SURE_DEVIATIONS, per};
use crate::contract::Conclusion;
use crate::wording::{show_bytes, show_share};

/// Where the evidence has it.
const ALLOCATIONS: &str = "allocations";

/// What functions allocated in one hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocating {
    /// bytes and samples, by innermost function of the server's own code
    pub functions: BTreeMap<String, (u64, u64)>,
}

impl Allocating {
    fn bytes(&self) -> f64 {
        self.functions.values().map(|(bytes, _)| *bytes as f64).sum()
    }

    /// What one sample stands for, on average.
    fn bytes_per_sample(&self) -> f64 {
        let samples: u64 = self.functions.values().map(|(_, samples)| samples).sum();
        self.bytes() / samples.max(1) as f64
    }

    fn of(&self, hold: &ProfiledHold, function: &str) -> Allocated {
        let (bytes, samples) = self.functions.get(function).copied().unwrap_or_default();
        Allocated {
            samples,
            share: bytes as f64 / self.bytes().max(1.0),
            bytes: bytes as f64 / hold.operations.max(1) as f64,
        }
    }

    /// One standard deviation, bytes per operation.
    fn deviation(&self, hold: &ProfiledHold, function: &str) -> f64 {
        let (bytes, samples) = self.functions.get(function).copied().unwrap_or_default();
        let each = if samples == 0 { self.bytes_per_sample() } else { bytes as f64 / samples as f64 };
        (samples as f64 + 1.0).sqrt() * each / hold.operations.max(1) as f64
    }
}

/// What a function allocated in one hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Allocated {
    /// of the hold's
    pub samples: u64,
    /// of all bytes
    pub share: f64,
    /// per operation
    pub bytes: f64,
}

type Hold<'a> = (&'a ProfiledHold, &'a Allocating);

/// Every function of either hold, the one that grew most per operation first; among equals the one that allocates more.
fn growths(good: Hold<'_>, bad: Hold<'_>) -> Vec<Growth<Allocated>> {
    let functions: BTreeSet<&String> = good.1.functions.keys().chain(bad.1.functions.keys()).collect();
    let all_bytes = bad.1.bytes() / bad.0.operations.max(1) as f64;
    let growth = |function: &String| {
        let [before, after] = [good, bad].map(|(hold, all)| all.of(hold, function));
        let [of_good, of_bad] = [good, bad].map(|(hold, all)| all.deviation(hold, function));
        let grown = after.bytes - before.bytes;
        let deviations = grown / of_good.hypot(of_bad).max(f64::MIN_POSITIVE);
        let is_sure = deviations > SURE_DEVIATIONS && grown >= LEAST_SHARE * all_bytes;
        Growth { function: function.clone(), good: before, bad: after, deviations, is_sure }
    };
    let mut all: Vec<Growth<Allocated>> = functions.into_iter().map(growth).collect();
    let grown = |one: &Growth<Allocated>| one.bad.bytes - one.good.bytes;
    all.sort_by(|a, b| grown(b).total_cmp(&grown(a)).then(b.bad.bytes.total_cmp(&a.bad.bytes)));
    all
}

/// The sentences, and the evidence with at most ten functions that grew, and ten that allocated most.
pub(super) fn told(good: Hold<'_>, bad: Hold<'_>) -> (String, Value) {
    let all = growths(good, bad);
    let mut most: Vec<&Growth<Allocated>> = all.iter().filter(|one| one.bad.bytes > 0.0).collect();
    most.sort_by(|a, b| b.bad.bytes.total_cmp(&a.bad.bytes));
    most.truncate(LISTED);
    let grew: Vec<&Growth<Allocated>> =
        all.iter().filter(|one| one.deviations > LISTED_DEVIATIONS).take(LISTED).collect();
    let per = per(bad.0);
    let told = |one: &Growth<Allocated>| {
        format!(
            "{} per {per} at {} and {} at {} ({} and {} of all bytes).",
            show_bytes(one.bad.bytes),
            bad.0.place(),
            show_bytes(one.good.bytes),
            good.0.place(),
            show_share(one.bad.share),
            show_share(one.good.share),
        )
    };
    let grown = all.iter().filter(|one| one.is_sure).take(NAMED);
    let mut parts: Vec<String> =
        grown.map(|one| format!("`{}` allocated {}", one.function, told(one))).collect();
    match most.first() {
        None => parts.push(format!("No allocation was seen at {}.", bad.0.place())),
        Some(one) if parts.is_empty() => parts.push(format!(
            "No function surely allocated more per {per} at {} than at {}. Most was allocated in `{}`: {}",
            bad.0.place(),
            good.0.place(),
            one.function,
            told(one)
        )),
        Some(_) => {}
    }
    let gc_share = |hold: &ProfiledHold| hold.stops.as_ref().and_then(|stops| stops.gc_share);
    let gc_share = json!({ "good": gc_share(good.0), "bad": gc_share(bad.0) });
    (parts.join(" "), json!({ "grew": grew, "most": most, "gc_share": gc_share }))
}

/// The same where there are none.
pub(super) fn none(why: &str) -> (String, Value) {
    (format!("Allocations could not be profiled: {why}."), json!({ "missing": why }))
}

/// The functions that a conclusion lists, and whether these are those that grew: else those that allocated most. Empty without
/// allocations.
pub fn listed(conclusion: &Conclusion) -> (Vec<Growth<Allocated>>, bool) {
    let of = |name: &str| {
        let list = conclusion.evidence.get(ALLOCATIONS).and_then(|all| all.get(name)).cloned();
        serde_json::from_value::<Vec<Growth<Allocated>>>(list.unwrap_or_default()).unwrap_or_default()
    };
    let grew = of("grew");
    if grew.iter().any(|one| one.is_sure) { (grew, true) } else { (of("most"), false) }
}

#[cfg(test)]
mod tests {
    use measure::LoadUnit;

    use super::*;

    fn hold(load: f64, operations: u64) -> ProfiledHold {
        ProfiledHold { load, load_unit: LoadUnit::Requests, operations, ..ProfiledHold::default() }
    }

    fn allocating(functions: &[(&str, u64, u64)]) -> Allocating {
        let functions =
            functions.iter().map(|(name, bytes, samples)| ((*name).to_owned(), (*bytes, *samples)));
        Allocating { functions: functions.collect() }
    }

    #[test]
    fn what_grew_per_operation_is_named_and_what_grew_with_the_load_or_by_chance_is_not() {
        for (what, before, after, expected) in [
            ("twice the operations, twice the bytes", ("f", 1_000_000, 1000), ("f", 2_000_000, 2000), None),
            ("more per operation", ("f", 1_000_000, 1000), ("f", 8_000_000, 8000), Some("f")),
            ("new", ("g", 1_000_000, 1000), ("f", 8_000_000, 8000), Some("f")),
            // Two samples of 4 MB each.
            ("a few samples", ("f", 1_000_000, 1), ("f", 8_000_000, 2), None),
            ("less", ("f", 8_000_000, 8000), ("f", 1_000_000, 1000), None),
        ] {
            let (good, bad) = (hold(100.0, 1000), hold(200.0, 2000));
            let (before, after) = (allocating(&[before]), allocating(&[after]));
            let all = growths((&good, &before), (&bad, &after));
            let named = all.iter().find(|one| one.is_sure).map(|one| one.function.as_str());
            assert_eq!(named, expected, "{what}");
        }
    }

    #[test]
    fn the_sentences_have_bytes_per_operation() {
        let (good, bad) = (hold(100.0, 1000), hold(200.0, 2000));
        let before = allocating(&[("read", 2_048_000, 100), ("log", 1_024_000, 50)]);
        let after = allocating(&[("read", 4_096_000, 200), ("log", 65_536_000, 3000)]);
        let (text, evidence) = told((&good, &before), (&bad, &after));
        assert_eq!(
            text,
            "`log` allocated 32.8 kB per request at 200 req/s and 1.02 kB at 100 req/s (94.1 % and 33.3 % of all bytes)."
        );
        let evidence = [(ALLOCATIONS.to_owned(), evidence)].into_iter().collect();
        let (listed, has_grown) = listed(&Conclusion { id: String::new(), text, evidence });
        assert_eq!((listed.len(), listed[0].function.as_str(), has_grown), (1, "log", true));
        let (text, _) = told((&good, &before), (&bad, &allocating(&[("read", 4_096_000, 200)])));
        assert_eq!(
            text,
            "No function surely allocated more per request at 200 req/s than at 100 req/s. Most was allocated in `read`: \
             2.05 kB per request at 200 req/s and 2.05 kB at 100 req/s (100 % and 66.7 % of all bytes)."
        );
        let (text, _) = told((&good, &before), (&bad, &Allocating::default()));
        assert_eq!(text, "No allocation was seen at 200 req/s.");
    }
}
