//! Which functions of a server took more CPU per operation at a load that failed than at one that held; in which requests wait
//! (`waiting`), and which allocated more (`allocating`).
//!
//! From two profiled holds: samples by function, and the operations that were done meanwhile. A sample belongs to the
//! innermost function of the server's own code; one stack is one sample. Units: ns of CPU per operation, shares of all samples
//! in [0, 1].

pub mod allocating;
mod kept;
mod stops;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use measure::{LoadUnit, Stops};
use serde::{Deserialize, Serialize};

use crate::contract::Conclusion;
use crate::wording::{show_ns, show_number, show_share};

pub use allocating::{Allocated, Allocating};
pub use kept::KeptStacks;
pub use waiting::{Waited, Waiting, is_asked};

/// What samples CPU unless something else is said.
pub const PERF: &str = "perf";
/// The id of the conclusion that tells of a profile.
pub const PROFILE: &str = "profile";
/// The list of `listed` with what requests wait in.
pub const WAITS: &str = "waits";
/// Functions that are listed.
const LISTED: usize = 10;
/// Functions that the words name.
const NAMED: usize = 3;
/// A function is listed if it grew by more standard deviations than these: less may be chance.
const LISTED_DEVIATIONS: f64 = 2.0;
/// A growth is sure above this many standard deviations: many functions are compared at once.
pub const SURE_DEVIATIONS: f64 = 4.0;
/// A function whose growth is less than this share of an operation's CPU explains nothing.
pub const LEAST_SHARE: f64 = 0.01;

/// One load, held once more while its server was profiled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfiledHold {
    /// in `load_unit`
    pub load: f64,
    /// of what
    pub load_unit: LoadUnit,
    /// length of the hold, s
    pub hold_s: f64,
    /// requests or messages that the server was done with meanwhile
    pub operations: u64,
    /// what sampled its CPU; null where that was not asked
    pub cpu_by: Option<String>,
    /// stacks that were taken
    pub samples: u64,
    /// of them, per second of CPU time
    pub samples_per_s: f64,
    /// the server's CPU per operation while it was profiled, ns; null where its processes were not readable
    pub cpu_ns: Option<f64>,
    /// the same in the hold that was judged
    pub judged_cpu_ns: Option<f64>,
    /// operations per second
    pub rate_per_s: f64,
    /// the same in the hold that was judged
    pub judged_rate_per_s: f64,
    /// response time, p99, ns; null with too few samples
    pub p99_ns: Option<u64>,
    /// the same in the hold that was judged
    pub judged_p99_ns: Option<u64>,
    /// response time, p50, ns
    pub p50_ns: Option<u64>,
    /// the same in the hold that was judged
    pub judged_p50_ns: Option<u64>,
    /// what kept the server's code from running; absent where its runtime does not tell
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops: Option<Stops>,
    /// samples by function
    #[serde(skip)]
    pub functions: BTreeMap<String, u64>,
    /// where threads waited, or why that is not known; null where it was not asked
    #[serde(skip)]
    pub waiting: Option<Result<Waiting, String>>,
    /// what was allocated, or why that is not known; null where it was not asked
    #[serde(skip)]
    pub allocating: Option<Result<Allocating, String>>,
}

impl ProfiledHold {
    fn of(&self, function: &str) -> Cost {
        let samples = self.functions.get(function).copied().unwrap_or(0);
        Cost {
            samples,
            share: samples as f64 / self.samples.max(1) as f64,
            ns: samples as f64 * self.ns_per_sample(),
        }
    }

    /// What one sample stands for, ns of CPU per operation.
    fn ns_per_sample(&self) -> f64 {
        1e9 / self.samples_per_s / self.operations.max(1) as f64
    }

    /// Operations that were done while this part of the hold was recorded, at least one.
    fn operations_within(&self, covered: f64) -> f64 {
        (self.operations.max(1) as f64 * covered).max(1.0)
    }

    fn place(&self) -> String {
        format!("{} {}", show_number(self.load), self.load_unit)
    }
}

/// The standard deviation of a cost of `ns` per operation that was found by samples of `ns_per_sample` each.
pub fn deviation_ns(ns: f64, ns_per_sample: f64) -> f64 {
    (ns / ns_per_sample + 1.0).sqrt() * ns_per_sample
}

/// What a function took in one hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// of the hold's
    pub samples: u64,
    /// of the server's CPU
    pub share: f64,
    /// per operation
    pub ns: f64,
}

/// A function in both holds, with what it took of something in each: of CPU or waiting, a `Cost`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth<C = Cost> {
    /// its name, with its file where that is known; text from the server under test is never markup
    pub function: String,
    /// at the load that held
    pub good: C,
    /// at the load that failed
    pub bad: C,
    /// the growth per operation, in its standard deviations
    pub deviations: f64,
    /// more per operation than the samples vary by chance, and at least 1 % of what an operation takes
    pub is_sure: bool,
}

impl Growth {
    fn ns(&self) -> f64 {
        self.bad.ns - self.good.ns
    }
}

/// Every function of either hold, the one that grew most per operation first; among equals the costlier one.
pub fn growths(good: &ProfiledHold, bad: &ProfiledHold) -> Vec<Growth> {
    let functions: BTreeSet<&String> = good.functions.keys().chain(bad.functions.keys()).collect();
    let ns_per_sample = [good, bad].map(ProfiledHold::ns_per_sample);
    let all_ns = bad.samples as f64 * ns_per_sample[1];
    let growth = |function: &String| {
        let (before, after) = (good.of(function), bad.of(function));
        let deviation =
            deviation_ns(before.ns, ns_per_sample[0]).hypot(deviation_ns(after.ns, ns_per_sample[1]));
        let grown = after.ns - before.ns;
        let deviations = grown / deviation;
        let is_sure = deviations > SURE_DEVIATIONS && grown >= LEAST_SHARE * all_ns;
        Growth { function: function.clone(), good: before, bad: after, deviations, is_sure }
    };
    let mut all: Vec<Growth> = functions.into_iter().map(growth).collect();
    all.sort_by(|a, b| b.ns().total_cmp(&a.ns()).then(b.bad.ns.total_cmp(&a.bad.ns)));
    all
}

/// What two profiled holds say; its evidence has the ten functions that grew most, and the ten that took most. Where both hold
/// waits and their `cause` is such, in which function requests wait. Where both hold allocations, the same of these.
pub fn conclusion(good: &ProfiledHold, bad: &ProfiledHold, cause: Option<&str>) -> Conclusion {
    let mut evidence = serde_json::json!({ "per": per(bad), "good": good, "bad": bad });
    let mut parts = Vec::new();
    if let (Some(cause), Some(before), Some(after)) = (cause, &good.waiting, &bad.waiting) {
        let (sentence, waits) = match (before, after) {
            (Ok(before), Ok(after)) => waiting::told((good, before), (bad, after), cause),
            (Err(why), _) | (_, Err(why)) => waiting::none(why, cause, per(bad)),
        };
        parts.push(sentence);
        evidence["waits"] = waits;
    }
    let mut what = Vec::new();
    if let Some(by) = &bad.cpu_by {
        let (sentences, grew, most) = cpu(good, bad);
        parts.push(sentences);
        (evidence["grew"], evidence["most"]) = (grew, most);
        if by != PERF {
            parts.push(format!("CPU was sampled by {by}."));
        }
        what.push("cpu");
    }
    if let (Some(before), Some(after)) = (&good.allocating, &bad.allocating) {
        let (sentences, allocations) = match (before, after) {
            (Ok(before), Ok(after)) => allocating::told((good, before), (bad, after)),
            (Err(why), _) | (_, Err(why)) => allocating::none(why),
        };
        parts.push(sentences);
        evidence["allocations"] = allocations;
        what.push("alloc");
    }
    parts.extend(stops::told(good, bad));
    evidence["what"] = if what.len() > 1 { "all" } else { what.first().copied().unwrap_or("cpu") }.into();
    parts.push(price(good, per(bad)));
    let evidence = evidence.as_object().cloned().unwrap_or_default();
    Conclusion { id: PROFILE.to_owned(), text: parts.join(" "), evidence }
}

/// The sentences about CPU, the functions that grew and those that took most.
fn cpu(good: &ProfiledHold, bad: &ProfiledHold) -> (String, serde_json::Value, serde_json::Value) {
    let all = growths(good, bad);
    let grew: Vec<&Growth> =
        all.iter().filter(|one| one.deviations > LISTED_DEVIATIONS).take(LISTED).collect();
    let mut most: Vec<&Growth> = all.iter().filter(|one| one.bad.samples > 0).collect();
    most.sort_by(|a, b| b.bad.ns.total_cmp(&a.bad.ns));
    most.truncate(LISTED);
    (words(good, bad, &all), serde_json::json!(grew), serde_json::json!(most))
}

/// Why there is no profile, although one was asked for.
pub fn none(why: &str) -> Conclusion {
    let evidence = serde_json::json!({ "what": "cpu", "missing": why });
    Conclusion {
        id: PROFILE.to_owned(),
        text: format!("None was taken: {why}."),
        evidence: evidence.as_object().cloned().unwrap_or_default(),
    }
}

/// The functions that a conclusion lists: those that `grew`, or took `most`. Empty for every other conclusion.
///
/// Of `waits`: those in which requests waited longer.
pub fn listed(conclusion: &Conclusion, which: &str) -> Vec<Growth> {
    let mut listed = conclusion.evidence.get(which).cloned().unwrap_or_default();
    if which == WAITS {
        listed = listed.get("grew").cloned().unwrap_or_default();
    }
    serde_json::from_value(listed).unwrap_or_default()
}

fn per(hold: &ProfiledHold) -> &'static str {
    if hold.load_unit.counts_requests() { "request" } else { "message" }
}

fn words(good: &ProfiledHold, bad: &ProfiledHold, all: &[Growth]) -> String {
    let per = per(bad);
    if bad.samples == 0 {
        return format!(
            "No stack was seen at {}: the server's processes used no CPU, or none that the profiler sees.",
            bad.place()
        );
    }
    let grown = all.iter().filter(|one| one.is_sure).take(NAMED);
    let mut parts: Vec<String> = grown
        .enumerate()
        .map(|(at, one)| {
            let (function, share, before) = (&one.function, show_share(one.bad.share), show_share(one.good.share));
            let (ns, ns_before) = (show_ns(one.bad.ns), show_ns(one.good.ns));
            if at == 0 {
                format!(
                    "`{function}` took {share} of the server's CPU at {} and {before} at {}; per {per} {ns} against {ns_before}.",
                    bad.place(),
                    good.place()
                )
            } else {
                format!("`{function}`: {share} and {before}; per {per} {ns} against {ns_before}.")
            }
        })
        .collect();
    let costliest = all.iter().max_by(|a, b| a.bad.ns.total_cmp(&b.bad.ns));
    let is_named = |one: &Growth| all.iter().filter(|one| one.is_sure).take(NAMED).any(|named| named == one);
    if parts.is_empty() {
        parts.push(format!(
            "No function took surely more CPU per {per} at {} than at {}.",
            bad.place(),
            good.place()
        ));
    }
    if let Some(one) = costliest.filter(|one| !is_named(one)) {
        parts.push(format!(
            "Most went to `{}`: {} of the server's CPU at {} and {} at {}; per {per} {} against {}.",
            one.function,
            show_share(one.bad.share),
            bad.place(),
            show_share(one.good.share),
            good.place(),
            show_ns(one.bad.ns),
            show_ns(one.good.ns),
        ));
    }
    parts.join(" ")
}

/// What being profiled cost the server, at the load that held: the other one is not steady.
fn price(good: &ProfiledHold, per: &str) -> String {
    let time = |ns: Option<u64>| ns.map_or("—".to_owned(), |ns| show_ns(ns as f64));
    let (name, now, judged) = match (good.p99_ns, good.judged_p99_ns) {
        (Some(now), Some(judged)) => ("p99", Some(now), Some(judged)),
        _ => ("median", good.p50_ns, good.judged_p50_ns),
    };
    let mut text = format!(
        "While it was profiled at {} it did {}/s with a {name} of {}; judged, {}/s and {}",
        good.place(),
        show_number(good.rate_per_s),
        time(now),
        show_number(good.judged_rate_per_s),
        time(judged),
    );
    if let (Some(cpu_ns), Some(judged_ns)) = (good.cpu_ns, good.judged_cpu_ns) {
        text += &format!("; CPU per {per} {} and {}", show_ns(cpu_ns), show_ns(judged_ns));
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(load: f64, operations: u64, functions: &[(&str, u64)]) -> ProfiledHold {
        ProfiledHold {
            load,
            load_unit: LoadUnit::Requests,
            hold_s: 10.0,
            operations,
            samples: functions.iter().map(|(_, samples)| samples).sum(),
            samples_per_s: 500.0,
            rate_per_s: operations as f64 / 10.0,
            judged_rate_per_s: operations as f64 / 10.0,
            functions: functions.iter().map(|(name, samples)| ((*name).to_owned(), *samples)).collect(),
            cpu_by: Some(PERF.to_owned()),
            ..ProfiledHold::default()
        }
    }

    #[test]
    fn what_grew_per_operation_comes_first_however_much_the_rest_grew_with_the_load() {
        let good = hold(100.0, 1000, &[("parse", 1000), ("render", 100), ("gone", 50)]);
        let bad = hold(200.0, 2000, &[("parse", 2000), ("render", 2100), ("one", 1)]);
        let found = growths(&good, &bad);
        let names: Vec<&str> = found.iter().map(|one| one.function.as_str()).collect();
        assert_eq!(names, ["render", "one", "parse", "gone"]);
        // 2100 samples of 2 ms over 2000 requests.
        assert_eq!((found[0].good.ns, found[0].bad.ns), (200_000.0, 2_100_000.0));
        let sure: Vec<bool> = found.iter().map(|one| one.is_sure).collect();
        assert_eq!(sure, [true, false, false, false], "one sample is chance");
    }

    #[test]
    fn the_words_name_what_grew_and_what_profiling_cost() {
        let good = hold(100.0, 1000, &[("parse", 1000), ("renderReport (report.mjs:12)", 100)]);
        let bad = hold(200.0, 2000, &[("parse", 2000), ("renderReport (report.mjs:12)", 2100)]);
        let told = conclusion(&good, &bad, None);
        let expected = "`renderReport (report.mjs:12)` took 51.2 % of the server's CPU at 200 req/s and 9.09 % at 100 req/s; \
                        per request 2.1 ms against 200 µs. While it was profiled at 100 req/s it did 100/s with a median of —; \
                        judged, 100/s and —.";
        assert_eq!(told.text, expected);
        let listed = listed(&told, "grew");
        assert_eq!((listed.len(), listed[0].function.as_str()), (1, "renderReport (report.mjs:12)"));
    }

    #[test]
    fn what_did_not_grow_is_no_cause_and_the_costliest_function_is_named() {
        let good = hold(10.0, 1000, &[("render", 1000), ("parse", 10)]);
        let bad = hold(20.0, 2000, &[("render", 2010), ("parse", 20)]);
        let text = conclusion(&good, &bad, None).text;
        assert!(text.starts_with("No function took surely more CPU per request at 20 req/s"), "{text}");
        assert!(text.contains("Most went to `render`: 99 % of the server's CPU at 20 req/s"), "{text}");
        let silent = conclusion(&good, &hold(20.0, 0, &[]), None).text;
        assert!(silent.starts_with("No stack was seen at 20 req/s"), "{silent}");
        assert_eq!(none("perf is missing").text, "None was taken: perf is missing.");
    }

    #[test]
    fn no_more_than_ten_functions_are_listed_and_only_those_that_grew() {
        let names: Vec<String> = (0..30).map(|at| format!("f{at}")).collect();
        let of = |each: u64| names.iter().map(|name| (name.as_str(), each)).collect::<Vec<_>>();
        assert_eq!(
            listed(&conclusion(&hold(1.0, 100, &of(10)), &hold(2.0, 100, &of(40)), None), "grew").len(),
            10
        );
        assert_eq!(
            listed(&conclusion(&hold(1.0, 100, &of(20)), &hold(2.0, 100, &of(10)), None), "grew").len(),
            0
        );
        assert_eq!(
            listed(&conclusion(&hold(1.0, 100, &of(20)), &hold(2.0, 100, &of(10)), None), "most").len(),
            10
        );
    }
}
