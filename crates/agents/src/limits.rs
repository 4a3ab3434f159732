//! What an agent's user allows it: checked before a load where its plan says enough, and in each second of one. Pure.

use measure::{Interval, LoadUnit};
use plan::Plan;
use serde::{Deserialize, Serialize};

/// Random arrivals in a second may exceed their mean by this many standard deviations; more is not chance.
const DEVIATIONS: f64 = 5.0;

/// Of one agent; `None`: its user set none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// most bots at once
    pub bots_most: Option<u64>,
    /// most messages per second
    pub rate_most: Option<u64>,
}

impl Limits {
    /// Why it does not play this share of a load; `rate_per_s`: messages per second, where the plan says them beforehand.
    pub fn refusal(self, bots: u64, rate_per_s: Option<f64>) -> Option<String> {
        if let Some(most) = self.bots_most.filter(|most| bots > *most) {
            return Some(format!("plays at most {most} bots (--max-bots), and its share is {bots}"));
        }
        let (most, rate) = self.rate_most.zip(rate_per_s).filter(|(most, rate)| *rate > *most as f64)?;
        Some(format!("sends at most {most} messages/s (--max-rate), and its share is {rate:.0}"))
    }

    /// Why its part ends after a second in which it sent this many messages; `None`: its user allows them.
    pub fn broken_by(self, sent: u64) -> Option<String> {
        let most =
            self.rate_most.filter(|most| sent as f64 > *most as f64 + DEVIATIONS * (*most as f64).sqrt())?;
        Some(format!("it sent {sent} messages in a second; its user allows {most} (--max-rate)"))
    }
}

/// Messages that left in a second, of all phases.
pub fn sent(second: &Interval) -> u64 {
    second.flows.iter().flatten().map(|flow| flow.sent).sum()
}

/// Messages per second that all agents together send under a load; `None`: what the server answers decides that too, or a script.
pub fn rate_of(plan: &Plan, load: f64) -> Option<f64> {
    let is_of_messages = plan.ladder.load_unit != LoadUnit::Sessions;
    plan.bots.intended_per_s(load).filter(|_| is_of_messages)
}

#[cfg(test)]
mod tests {
    use measure::{Flow, MetricNames, Phase};

    use super::*;

    #[test]
    fn a_share_beyond_a_limit_is_refused_and_one_at_it_is_not() {
        let limits = Limits { bots_most: Some(10), rate_most: Some(100) };
        for (bots, rate_per_s, refused) in [
            (10, Some(100.0), None),
            (10, None, None),
            (11, Some(1.0), Some("plays at most 10 bots (--max-bots), and its share is 11")),
            (1, Some(100.5), Some("sends at most 100 messages/s (--max-rate), and its share is 100")),
            (1, Some(2500.0), Some("sends at most 100 messages/s (--max-rate), and its share is 2500")),
        ] {
            assert_eq!(limits.refusal(bots, rate_per_s).as_deref(), refused, "{bots} bots, {rate_per_s:?}/s");
        }
        assert_eq!(Limits::default().refusal(u64::MAX, Some(1e12)), None, "no limit, no refusal");
    }

    #[test]
    fn a_second_is_beyond_a_limit_where_chance_cannot_be_why() {
        let limits = Limits { bots_most: None, rate_most: Some(100) };
        assert_eq!(limits.broken_by(150), None, "five standard deviations above");
        let why = "it sent 151 messages in a second; its user allows 100 (--max-rate)";
        assert_eq!(limits.broken_by(151).as_deref(), Some(why));
        assert!(Limits { rate_most: Some(0), ..limits }.broken_by(1).is_some(), "none are allowed");
        assert_eq!(Limits::default().broken_by(u64::MAX), None);
    }

    #[test]
    fn what_left_counts_in_every_phase_and_operation_and_what_did_not_leave_does_not() {
        let mut second = Interval::new(&MetricNames::new(&["get", "put"], &[], &[], &[]));
        for (op, phase, sent) in [(0, Phase::Ramp, 3), (0, Phase::Hold, 40), (1, Phase::Hold, 500)] {
            *second.flow_mut(op, phase) =
                Flow { offered: sent + 7, not_sent: 7, sent, told: sent, ..Flow::default() };
        }
        assert_eq!(sent(&second), 543);
    }
}
