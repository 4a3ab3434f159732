//! A process second by second, from its lines `second`.

use serde::Serialize;
use serde_json::Value;
use ts_rs::TS;

/// An interval shorter than this, as at the end of a phase, is left out, s: its rate would be noise.
const SHORT_S: f64 = 0.2;

/// A process second by second. Columns have a value per second of the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, TS)]
pub struct ProcessCurve {
    /// how long it warmed up, so far while it does
    pub warmup_s: f64,
    /// end of the second, since the measured part began; the others are of the time since the one before
    pub t: Vec<f64>,
    /// operations that ended, per second
    pub ops_per_s: Vec<f64>,
    /// of the operations that ended; null where none did
    pub p50_ns: Vec<Option<u64>>,
    /// likewise
    pub p99_ns: Vec<Option<u64>>,
    /// likewise
    pub max_ns: Vec<Option<u64>>,
    /// operations that failed or whose outcome is unknown
    pub bad: Vec<u64>,
    /// how much later than due a timer of the runtime ran, at worst; null where it does not say
    pub loop_delay_max_ns: Vec<Option<u64>>,
    /// share of the time in which the runtime paused to collect garbage; null where it does not say
    pub gc_share: Vec<Option<f64>>,
    /// end of the line before, since the first phase began
    #[serde(skip)]
    #[ts(skip)]
    last_ns: u64,
    /// the line of that type, until the process ends
    #[serde(skip)]
    #[ts(skip)]
    pub(super) timeline: Option<Value>,
}

impl ProcessCurve {
    /// Takes a line `second`; one without a time is passed over.
    pub(super) fn second(&mut self, is_warmup: bool, line: &Value) {
        let Some(at_ns) = line["at_ns"].as_u64().filter(|at_ns| *at_ns > self.last_ns) else { return };
        let since_s = (at_ns - self.last_ns) as f64 / 1e9;
        self.last_ns = at_ns;
        if is_warmup {
            self.warmup_s = at_ns as f64 / 1e9;
            return;
        }
        let count = |name: &str| line[name].as_u64().unwrap_or_default();
        if since_s < SHORT_S && !self.t.is_empty() {
            // Failures are not left out.
            if let Some(bad) = self.bad.last_mut() {
                *bad = bad.saturating_add(count("failed")).saturating_add(count("unknown"));
            }
            return;
        }
        let ops = count("ops");
        let latency = |name: &str| line[name].as_u64().filter(|_| ops > 0);
        let runtime = &line["runtime"];
        self.t.push((at_ns as f64 / 1e9 - self.warmup_s).max(0.0));
        self.ops_per_s.push(ops as f64 / since_s);
        self.p50_ns.push(latency("p50_ns"));
        self.p99_ns.push(latency("p99_ns"));
        self.max_ns.push(latency("max_ns"));
        self.bad.push(count("failed").saturating_add(count("unknown")));
        self.loop_delay_max_ns.push(whole(&runtime["loop_delay_max_ns"]));
        self.gc_share.push(whole(&runtime["gc_pause_ns"]).map(|ns| ns as f64 / 1e9 / since_s));
    }
}

/// A number that some runtimes write with a fraction.
pub(super) fn whole(value: &Value) -> Option<u64> {
    value.as_f64().filter(|number| number.is_finite() && *number >= 0.0).map(|number| number.round() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn second(at_ns: u64, ops: u64) -> Value {
        json!({
            "type": "second", "at_ns": at_ns, "ops": ops, "failed": 1, "unknown": 0, "p50_ns": 5, "p99_ns": 7,
            "max_ns": 9, "runtime": {"loop_delay_max_ns": 1.6, "gc_pause_ns": 250_000_000},
        })
    }

    #[test]
    fn rates_are_per_second_of_the_measured_part() {
        let mut curve = ProcessCurve::default();
        curve.second(true, &second(1_000_000_000, 5));
        curve.second(true, &second(1_500_000_000, 5));
        curve.second(false, &second(2_500_000_000, 800));
        curve.second(false, &second(4_500_000_000, 800));
        assert_eq!((curve.warmup_s, curve.t.as_slice()), (1.5, [1.0, 3.0].as_slice()));
        assert_eq!(curve.ops_per_s, [800.0, 400.0]);
        assert_eq!(curve.gc_share, [Some(0.25), Some(0.125)]);
        assert_eq!(curve.loop_delay_max_ns, [Some(2), Some(2)]);
    }

    #[test]
    fn the_rest_of_a_second_is_left_out_unless_it_is_all_there_is() {
        let mut curve = ProcessCurve::default();
        curve.second(false, &second(100_000_000, 50));
        assert_eq!(curve.ops_per_s, [500.0]);
        curve.second(false, &second(200_000_000, 1));
        assert_eq!((curve.t.len(), curve.bad.as_slice()), (1, [2].as_slice()), "its failure counts");
    }

    #[test]
    fn a_second_without_an_operation_has_no_latency_and_one_out_of_order_is_passed_over() {
        let mut curve = ProcessCurve::default();
        curve.second(false, &second(1_000_000_000, 0));
        curve.second(false, &second(900_000_000, 10));
        assert_eq!(
            (curve.ops_per_s.as_slice(), curve.p99_ns.as_slice()),
            ([0.0].as_slice(), [None].as_slice())
        );
    }
}
