//! In which function of a server requests wait: what it waited longer per operation at a load that failed than at one that held.
//!
//! Idle threads wait as well, in pools and event loops. They are told apart by their sums: time in which a pool waits for work
//! shrinks when there is more work; time in which requests wait grows with the load, per operation and per second. What waits for sockets is idle or
//! not by the number of connections, so it counts only where a service is the cause and this number is the same at both loads.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Cost, Growth, LISTED, LISTED_DEVIATIONS, ProfiledHold, SURE_DEVIATIONS, per};
use crate::wording::show_ns;

/// The causes whose profile is asked where requests wait: those, and where nothing that was read points anywhere.
const CAUSES: [&str; 4] = ["lock", "disk", "service", "open"];
/// A function that is not at least this part of what all waited longer explains nothing.
const LEAST_PART: f64 = 0.1;
/// Nor one that does not explain this part of what a request took longer.
const LEAST_OF_RESPONSE: f64 = 0.25;
/// Waiting per operation at the failed load, at least so many times that at the load that held.
const LEAST_TIMES: f64 = 2.0;

/// How long threads waited in a function, in one hold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waited {
    /// in locks, for time or for a disk
    pub ns: u64,
    /// number of these waits
    pub count: u64,
    /// for what others send or take
    pub events_ns: u64,
    /// number of these waits
    pub events_count: u64,
}

/// All of one hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waiting {
    /// by function of the server's own code
    pub functions: BTreeMap<String, Waited>,
    /// for how long others waited for locks, by the function that freed these; empty where the runtime does not tell
    pub holders: BTreeMap<String, Waited>,
    /// the part of the hold that was seen, in (0, 1]
    pub covered: f64,
    /// connections that stood
    pub connections: u64,
    /// from a send to its reply, median, ns
    pub service_ns: Option<u64>,
}

/// Whether a cause is one of which it is asked in which function requests wait.
pub fn is_asked(cause: Option<&str>) -> bool {
    cause.is_some_and(|cause| CAUSES.contains(&cause))
}

impl ProfiledHold {
    fn waited(&self, waiting: &Waiting, function: &str, with_events: bool) -> Cost {
        let waited = waiting.functions.get(function).copied().unwrap_or_default();
        let (ns, samples) = if with_events {
            (waited.ns + waited.events_ns, waited.count + waited.events_count)
        } else {
            (waited.ns, waited.count)
        };
        Cost { samples, share: 0.0, ns: ns as f64 / self.operations_within(waiting.covered) }
    }
}

/// The functions that waited longer, the most first. `share` is that of all waiting in the server's own functions.
fn growths(good: (&ProfiledHold, &Waiting), bad: (&ProfiledHold, &Waiting), cause: &str) -> Vec<Growth> {
    let with_events = cause == "service" && good.1.connections == bad.1.connections;
    let functions: BTreeSet<&String> = good.1.functions.keys().chain(bad.1.functions.keys()).collect();
    let costs = |(hold, waiting): (&ProfiledHold, &Waiting)| {
        let mut costs: Vec<Cost> =
            functions.iter().map(|function| hold.waited(waiting, function, with_events)).collect();
        let all_ns: f64 = costs.iter().map(|cost| cost.ns).sum();
        costs.iter_mut().for_each(|cost| cost.share = cost.ns / all_ns.max(f64::MIN_POSITIVE));
        costs
    };
    let (before, after) = (costs(good), costs(bad));
    let longer_ns: f64 = before.iter().zip(&after).map(|(good, bad)| (bad.ns - good.ns).max(0.0)).sum();
    let response_ns = match (good.1.service_ns, bad.1.service_ns) {
        (Some(good), Some(bad)) => bad.saturating_sub(good) as f64,
        _ => 0.0,
    };
    let deviation = |cost: &Cost| cost.ns / (cost.samples.max(1) as f64).sqrt();
    let growth = |(function, (before, after)): (&String, (&Cost, &Cost))| {
        let grown = after.ns - before.ns;
        let deviations = grown / deviation(before).hypot(deviation(after)).max(1.0);
        let per_second = |cost: &Cost, hold: &ProfiledHold| cost.ns * hold.rate_per_s;
        let is_sure = deviations > SURE_DEVIATIONS
            && after.ns >= LEAST_TIMES * before.ns
            && grown >= LEAST_PART * longer_ns
            && grown >= LEAST_OF_RESPONSE * response_ns
            && per_second(after, bad.0) > per_second(before, good.0);
        Growth { function: function.clone(), good: *before, bad: *after, deviations, is_sure }
    };
    let mut all: Vec<Growth> = functions.iter().copied().zip(before.iter().zip(&after)).map(growth).collect();
    all.sort_by(|a, b| b.ns().total_cmp(&a.ns()));
    all.retain(|one| one.deviations > LISTED_DEVIATIONS);
    all.truncate(LISTED);
    all
}

/// The sentence, and the evidence with at most ten functions. Without a function that is sure the sentence says so.
pub(super) fn told(
    good: (&ProfiledHold, &Waiting),
    bad: (&ProfiledHold, &Waiting),
    cause: &str,
) -> (String, Value) {
    let grew = growths(good, bad, cause);
    let of_holders = |one: &Waiting| Waiting { functions: one.holders.clone(), ..one.clone() };
    let holders = growths((good.0, &of_holders(good.1)), (bad.0, &of_holders(bad.1)), cause);
    let per = per(bad.0);
    let subject = if per == "request" { "Requests" } else { "Messages" };
    let took = |one: &Growth| {
        format!(
            "{} per {per} at {} and {} at {}.",
            show_ns(one.bad.ns),
            bad.0.place(),
            show_ns(one.good.ns),
            good.0.place()
        )
    };
    let sure = |all: &[Growth]| all.iter().find(|one| one.is_sure).cloned();
    let text = match (sure(&grew), sure(&holders)) {
        (Some(one), Some(holder)) if one.function != holder.function => format!(
            "{subject} wait in `{}`: {} The lock that they wait for is held by `{}`: {}",
            one.function,
            took(&one),
            holder.function,
            took(&holder)
        ),
        (Some(one), _) => format!("{subject} wait in `{}`: {}", one.function, took(&one)),
        (None, Some(holder)) => {
            format!("{subject} wait for a lock that `{}` holds: {}", holder.function, took(&holder))
        }
        (None, None) => format!("In which function of the server {per}s wait was not seen."),
    };
    let covered = [good.1.covered, bad.1.covered];
    (text, json!({ "cause": cause, "grew": grew, "holders": holders, "covered": covered }))
}

/// The same where waits could not be recorded.
pub(super) fn none(why: &str, cause: &str, per: &str) -> (String, Value) {
    let text = format!("In which function {per}s wait could not be recorded: {why}.");
    (text, json!({ "cause": cause, "missing": why }))
}

#[cfg(test)]
mod tests {
    use measure::LoadUnit;

    use super::*;

    /// ns and how often in each function; of `events`, for sockets.
    fn hold(
        load: f64,
        operations: u64,
        functions: &[(&str, f64, u64)],
        events: &[(&str, f64, u64)],
    ) -> (ProfiledHold, Waiting) {
        let mut waiting = Waiting { covered: 1.0, connections: 64, ..Waiting::default() };
        for (name, seconds, count) in functions {
            let waited = waiting.functions.entry((*name).to_owned()).or_default();
            (waited.ns, waited.count) = ((seconds * 1e9) as u64, *count);
        }
        for (name, seconds, count) in events {
            let waited = waiting.functions.entry((*name).to_owned()).or_default();
            (waited.events_ns, waited.events_count) = ((seconds * 1e9) as u64, *count);
        }
        let hold = ProfiledHold {
            load,
            load_unit: LoadUnit::Requests,
            operations,
            rate_per_s: operations as f64 / 10.0,
            ..ProfiledHold::default()
        };
        (hold, waiting)
    }

    fn named(good: &(ProfiledHold, Waiting), bad: &(ProfiledHold, Waiting), cause: &str) -> Option<String> {
        let all = growths((&good.0, &good.1), (&bad.0, &bad.1), cause);
        all.into_iter().find(|one| one.is_sure).map(|one| one.function)
    }

    #[test]
    fn the_function_is_named_whose_waits_grew_and_no_idle_one() {
        let with = |response: [u64; 2], mut both: [(ProfiledHold, Waiting); 2]| {
            both.iter_mut().zip(response).for_each(|(hold, ns)| hold.1.service_ns = Some(ns));
            both
        };
        for (what, expected, cause, [good, bad]) in [
            // 5 ms each at 50/s; 64 wait at 200/s. The pool of 100 waits for jobs the less.
            (
                "a lock",
                Some("hold"),
                "lock",
                with(
                    [5_000_000, 300_000_000],
                    [
                        hold(50.0, 500, &[("hold", 2.5, 500), ("pool", 970.0, 500)], &[]),
                        hold(600.0, 2000, &[("hold", 600.0, 2000), ("pool", 370.0, 2000)], &[]),
                    ],
                ),
            ),
            (
                "an idle pool alone",
                None,
                "lock",
                with(
                    [5_000_000, 300_000_000],
                    [
                        hold(50.0, 500, &[("pool", 970.0, 500)], &[]),
                        hold(600.0, 2000, &[("pool", 370.0, 2000)], &[]),
                    ],
                ),
            ),
            // The rate broke down, so by operation it seems to have grown.
            (
                "an idle pool of a server that does nothing any more",
                None,
                "lock",
                with(
                    [5_000_000, 300_000_000],
                    [
                        hold(50.0, 500, &[("pool", 600.0, 500)], &[]),
                        hold(600.0, 100, &[("pool", 590.0, 100)], &[]),
                    ],
                ),
            ),
            (
                "threads that wait for their clients",
                None,
                "lock",
                with(
                    [5_000_000, 300_000_000],
                    [
                        hold(50.0, 500, &[], &[("serve", 400.0, 500)]),
                        hold(600.0, 2000, &[], &[("serve", 9000.0, 2000)]),
                    ],
                ),
            ),
            (
                "what a service answers",
                Some("ask"),
                "service",
                with(
                    [5_000_000, 300_000_000],
                    [
                        hold(50.0, 500, &[], &[("ask", 2.5, 500)]),
                        hold(600.0, 2000, &[], &[("ask", 600.0, 2000)]),
                    ],
                ),
            ),
            (
                "too little for what requests took longer",
                None,
                "lock",
                with(
                    [5_000_000, 300_000_000],
                    [
                        hold(50.0, 500, &[("log", 0.1, 500)], &[]),
                        hold(600.0, 2000, &[("log", 20.0, 2000)], &[]),
                    ],
                ),
            ),
            (
                "a few waits",
                None,
                "lock",
                with(
                    [5_000_000, 10_000_000],
                    [hold(50.0, 500, &[], &[]), hold(600.0, 2000, &[("once", 10.0, 3)], &[])],
                ),
            ),
            ("nothing", None, "lock", with([1, 2], [hold(50.0, 500, &[], &[]), hold(600.0, 2000, &[], &[])])),
        ] {
            assert_eq!(named(&good, &bad, cause).as_deref(), expected, "{what}");
        }
    }

    #[test]
    fn with_other_connections_at_both_loads_sockets_tell_nothing() {
        let good = hold(50.0, 500, &[], &[("serve", 400.0, 500)]);
        let mut bad = hold(600.0, 2000, &[], &[("serve", 9000.0, 2000)]);
        assert_eq!(named(&good, &bad, "service").as_deref(), Some("serve"));
        bad.1.connections = 600;
        assert_eq!(named(&good, &bad, "service"), None);
    }

    #[test]
    fn the_sentence_has_both_loads_and_half_a_recording_is_not_half_the_waiting() {
        let good = hold(50.0, 500, &[("hold (lock.mjs:12)", 2.0, 500)], &[]);
        let mut bad = hold(600.0, 2000, &[("hold (lock.mjs:12)", 240.0, 1000)], &[]);
        bad.1.covered = 0.5;
        let (text, evidence) = told((&good.0, &good.1), (&bad.0, &bad.1), "lock");
        assert_eq!(
            text,
            "Requests wait in `hold (lock.mjs:12)`: 240 ms per request at 600 req/s and 4 ms at 50 req/s."
        );
        assert_eq!(evidence["grew"][0]["bad"]["samples"], 1000);
        // Another function holds the lock, or only that one is known; one that holds it as long at both loads is not named.
        let freed = |seconds: f64, count: u64| {
            [("rebuild".to_owned(), Waited { ns: (seconds * 1e9) as u64, count, ..Waited::default() })].into()
        };
        let (mut before, mut after) = (good.1.clone(), bad.1.clone());
        (before.holders, after.holders) = (freed(0.5, 500), freed(230.0, 1000));
        let text = told((&good.0, &before), (&bad.0, &after), "lock").0;
        let holds = "held by `rebuild`: 230 ms per request at 600 req/s and 1 ms at 50 req/s.";
        assert!(
            text.starts_with("Requests wait in `hold (lock.mjs:12)`: ") && text.ends_with(holds),
            "{text}"
        );
        (before.functions, after.functions) = Default::default();
        let text = told((&good.0, &before), (&bad.0, &after), "lock").0;
        assert!(text.starts_with("Requests wait for a lock that `rebuild` holds: 230 ms"), "{text}");
        before.holders = freed(240.0, 500);
        let text = told((&good.0, &before), (&bad.0, &after), "lock").0;
        assert!(text.contains("was not seen"), "{text}");
        let none = told((&good.0, &good.1), (&good.0, &good.1), "lock").0;
        assert_eq!(none, "In which function of the server requests wait was not seen.");
    }
}
