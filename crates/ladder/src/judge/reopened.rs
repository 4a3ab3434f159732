//! Connections that a server closes between two requests, as HTTP allows: no fault, but reported with their cost.

use measure::{Measure, Role, Trial};

use crate::wording::{show_many, show_ns};

/// From this share of the answers on, closing ones are the server's way and no exception.
const EACH_ANSWER_SHARE: f64 = 0.9;

/// Whether connections of this load may be closed between two requests.
pub(super) fn is_allowed(trial: &Trial) -> bool {
    trial.head.metric_names.counters(Role::Reopened).next().is_some()
}

/// How many connections were opened again, and why.
pub(super) fn remark(trial: &Trial) -> Option<String> {
    let mut counts = trial.counts(Role::Reopened);
    let (reopened, retried, closing) = (counts.next()?, counts.next()?, counts.next()?);
    let (flow, opening) = (trial.flow(), trial.distribution(Measure::Handshake).summary());
    let mut parts = Vec::new();
    if closing > 0 && closing as f64 >= EACH_ANSWER_SHARE * flow.answered as f64 {
        let cost = opening.and_then(|summary| summary.p50).map_or(String::new(), |ns| {
            format!("; opening one takes {} of the response time at the median", show_ns(ns as f64))
        });
        parts.push(format!(
            "the server closes the connection after each answer: {} connections for {} requests{cost}",
            show_many(reopened),
            show_many(flow.sent),
        ));
    } else if reopened > 0 {
        parts.push(format!(
            "the server closed connections between two requests: {} were opened again when they were needed",
            show_many(reopened)
        ));
    }
    if retried > 0 {
        parts.push(format!("{} requests met such a close and were sent once more", show_many(retried)));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use measure::{Phase, Role};

    use super::super::Verdict;
    use crate::testing::{REOPENED, TrialBuilder, names, terms};

    /// 10 clients, 10 answers per second; in each second so many of the connections are opened again, so many requests are
    /// sent once more, and so many answers close.
    fn closing(counts: [u64; 3], open_min: u64) -> TrialBuilder {
        TrialBuilder { reopens: true, ..TrialBuilder::asking(10.0) }.edit(move |_, interval| {
            let places = names().with_counter_roles(&REOPENED);
            for (place, count) in places.counters(Role::Reopened).zip(counts) {
                interval.counters[place] = count;
            }
            interval.connections.open_min = open_min;
        })
    }

    #[test]
    fn connections_that_are_closed_between_requests_are_no_failure_and_are_told() {
        for (counts, words) in [
            (
                [5, 0, 0],
                "the server closed connections between two requests: 300 were opened again when they were needed",
            ),
            ([0, 2, 0], "120 requests met such a close and were sent once more"),
            (
                [10, 0, 10],
                "the server closes the connection after each answer: 600 connections for 600 requests",
            ),
        ] {
            let (_, judgement) = closing(counts, 0).judged(&terms("errors == 0"));
            assert_eq!(judgement.verdict, Verdict::Pass, "{judgement:?}");
            assert_eq!(judgement.remark.as_deref(), Some(words));
        }
    }

    #[test]
    fn connections_that_promised_to_stay_fail_when_they_do_not() {
        let stays = TrialBuilder { reopens: false, ..closing([5, 0, 0], 0) };
        let (_, judgement) = stays.judged(&terms("response.p99 < 1s"));
        assert_eq!(
            (judgement.verdict, judgement.signal.as_deref()),
            (Verdict::Fail, Some("connections.open_min"))
        );
    }

    #[test]
    fn connections_that_cannot_be_opened_again_fail_whatever_is_asked() {
        let refused = closing([1, 0, 0], 2).edit(|at, interval| {
            interval.connections.asked = 1;
            interval.connections.failed[0] = u64::from(at > 50);
        });
        let (_, judgement) = refused.judged(&terms("response.p99 < 1s"));
        let reason = judgement.reason.unwrap();
        assert_eq!(judgement.verdict, Verdict::Fail, "{reason}");
        assert!(
            reason.contains("only 2 of 10 connections open") && reason.contains("attempts failed (refused)")
        );
    }

    #[test]
    fn a_server_of_which_nothing_can_be_asked_any_more_stopped_replying() {
        let gone = closing([0, 0, 0], 10).edit(|at, interval| {
            if at >= 40 {
                let flow = interval.flow_mut(1, Phase::Hold);
                *flow = measure::Flow { offered: 1, not_sent: 1, ..measure::Flow::default() };
            }
        });
        let (_, judgement) = gone.judged(&terms("errors.share < 50%"));
        assert_eq!(judgement.verdict, Verdict::Fail, "{judgement:?}");
        assert!(judgement.reason.unwrap().contains("stopped replying"));
    }
}
