//! A phase's counts: outcomes, latencies and the causes of errors. Every operation enters exactly once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use serde_json::{Map, Value, json};

use crate::phase::Outcome;

/// The longest latency that is recorded, 1 h; longer ones count as this.
const HIGHEST_NS: u64 = 3_600_000_000_000;
const CAUSES_KEPT: usize = 20;
const FIRST_CHARACTERS: usize = 300;

/// How many operations ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// all
    pub ops: u64,
    /// succeeded; hits and misses too
    pub ok: u64,
    /// did not succeed; wrong values too
    pub failed: u64,
    /// may have been executed or not
    pub unknown: u64,
    /// gets that found the right value
    pub hits: u64,
    /// gets that found nothing
    pub misses: u64,
    /// gets that found another value than was put
    pub wrong: u64,
}

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        self.ops += 1;
        match outcome {
            Outcome::Ok | Outcome::Hit | Outcome::Miss => self.ok += 1,
            Outcome::Wrong(_) | Outcome::Failed { .. } => self.failed += 1,
            Outcome::Unknown { .. } => self.unknown += 1,
        }
        match outcome {
            Outcome::Hit => self.hits += 1,
            Outcome::Miss => self.misses += 1,
            Outcome::Wrong(_) => self.wrong += 1,
            _ => {}
        }
    }

    fn each(&self) -> [(&'static str, u64); 7] {
        [
            ("ops", self.ops),
            ("ok", self.ok),
            ("failed", self.failed),
            ("unknown", self.unknown),
            ("hits", self.hits),
            ("misses", self.misses),
            ("wrong", self.wrong),
        ]
    }

    /// As the fields of a line.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        self.each().into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect()
    }
}

/// What a phase counted.
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    /// since the last line
    second: Counts,
    second_latency: Histogram<u64>,
    /// up to the last line
    latency: Histogram<u64>,
    causes: Vec<(&'static str, u64, String)>,
}

impl Tally {
    pub(crate) fn new() -> Tally {
        Tally {
            counts: Counts::default(),
            second: Counts::default(),
            second_latency: histogram(),
            latency: histogram(),
            causes: Vec::new(),
        }
    }

    pub(crate) fn record(&mut self, outcome: &Outcome, latency_ns: u64) {
        self.counts.add(outcome);
        self.second.add(outcome);
        self.second_latency.saturating_record(latency_ns.max(1));
        match outcome {
            Outcome::Wrong(text) => self.blame("wrong", text),
            Outcome::Failed { cause, text } | Outcome::Unknown { cause, text } => self.blame(cause, text),
            Outcome::Ok | Outcome::Hit | Outcome::Miss => {}
        }
    }

    fn blame(&mut self, cause: &'static str, text: &str) {
        let at = self.causes.iter().position(|(known, ..)| *known == cause).unwrap_or_else(|| {
            let cause = if self.causes.len() < CAUSES_KEPT { cause } else { "other" };
            self.causes.iter().position(|(known, ..)| *known == cause).unwrap_or_else(|| {
                let first = text.chars().take(FIRST_CHARACTERS).collect();
                self.causes.push((cause, 0, first));
                self.causes.len() - 1
            })
        });
        self.causes[at].1 += 1;
    }

    /// Whether something ended since the last second was taken.
    pub(crate) fn has_news(&self) -> bool {
        self.second.ops > 0
    }

    /// Counts, quantiles and histogram since the call before.
    pub(crate) fn take_second(&mut self) -> Map<String, Value> {
        let mut fields = std::mem::take(&mut self.second).fields();
        let latency = &self.second_latency;
        for (name, share) in [("p50_ns", 0.5), ("p99_ns", 0.99), ("max_ns", 1.0)] {
            let value = if latency.is_empty() { 0 } else { latency.value_at_quantile(share) };
            fields.insert(name.to_owned(), json!(value));
        }
        fields.insert("latency".to_owned(), json!(encoded(latency)));
        self.keep_second();
        fields
    }

    fn keep_second(&mut self) {
        // Both have the same bounds, so adding cannot fail.
        let _ = self.latency.add(&self.second_latency);
        self.second_latency.reset();
    }

    /// The histogram of the whole phase in HdrHistogram's V2 format, deflated, base64.
    pub(crate) fn latency(&mut self) -> String {
        self.keep_second();
        encoded(&self.latency)
    }

    pub(crate) fn errors(&self) -> Vec<Value> {
        let mut causes = self.causes.clone();
        causes.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
        causes
            .into_iter()
            .map(|(cause, count, first)| json!({"cause": cause, "count": count, "first": first}))
            .collect()
    }
}

fn histogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, HIGHEST_NS, 3) {
        Ok(histogram) => histogram,
        Err(error) => unreachable!("the bounds are valid: {error:?}"),
    }
}

fn encoded(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    match V2DeflateSerializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => STANDARD.encode(bytes),
        Err(error) => unreachable!("memory takes every byte: {error:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_counted_once_and_wrong_values_are_failures() {
        let failed = || Outcome::Failed { cause: "refused", text: "no".to_owned() };
        let unknown = || Outcome::Unknown { cause: "timeout", text: "?".to_owned() };
        let all =
            [Outcome::Ok, Outcome::Hit, Outcome::Miss, Outcome::Wrong("x".to_owned()), failed(), unknown()];
        let mut tally = Tally::new();
        for outcome in &all {
            tally.record(outcome, 1000);
        }
        let expected = Counts { ops: 6, ok: 3, failed: 2, unknown: 1, hits: 1, misses: 1, wrong: 1 };
        assert_eq!(tally.counts, expected);
        assert_eq!(tally.errors().len(), 3);
        assert_eq!(tally.take_second()["ops"], 6);
        assert_eq!(tally.take_second()["ops"], 0);
        assert_eq!(tally.counts, expected);
    }

    #[test]
    fn after_twenty_causes_the_rest_is_counted_together() {
        let names: Vec<&'static str> = (0..30).map(|i| &*format!("cause {i}").leak()).collect();
        let mut tally = Tally::new();
        for cause in &names {
            tally.record(&Outcome::Failed { cause, text: String::new() }, 1);
        }
        assert_eq!(tally.errors().len(), CAUSES_KEPT + 1);
        assert_eq!(tally.errors()[0], json!({"cause": "other", "count": 10, "first": ""}));
    }
}
