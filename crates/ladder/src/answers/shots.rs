//! Shots: those the bots sent against those the server counted.

use measure::{Flow, Role, ServerCounter, Trial};
use serde_json::{Value, json};

/// What became of the shots, where both sides count them: the bots what they sent, the server what reached it and what
/// it took. `offered` and `sent` are those of the hold; everything else is over the time that the server's entries in the
/// hold span (`covered_…`), on both sides. The share can exceed 1 by what was on its way when that time began, and by what
/// the bots sent unevenly within the second at either edge.
pub(super) fn shots(trial: &Trial) -> Option<Value> {
    let name = trial.head.metric_names.op(Role::Shot)?;
    let flow: &Flow = trial.ops.get(name)?;
    trial.told(ServerCounter::Shots)?;
    let both = trial.same_time.as_ref();
    let sent = both.and_then(|both| both.sent.get(name).copied());
    let received = both.map(|both| both.told(ServerCounter::Shots).unwrap_or_default());
    let accepted = both.and_then(|both| both.told(ServerCounter::ShotsAccepted));
    let delivered_share =
        sent.zip(received).filter(|(sent, _)| *sent > 0.0).map(|(sent, received)| received as f64 / sent);
    Some(json!({
        "offered": flow.offered, "sent": flow.sent,
        "covered_from_ns": both.map(|both| both.from_ns), "covered_to_ns": both.map(|both| both.to_ns),
        "covered_s": both.map(|both| both.covered_ns as f64 / 1e9),
        "covered_sent": sent.map(f64::round), "server_received": received,
        "server_accepted": accepted, "delivered_share": delivered_share,
    }))
}

#[cfg(test)]
mod tests {
    use measure::trial::kind;
    use measure::{
        Distribution, Entry, Event, Interval, LoadUnit, MetricNames, Phase, Purpose, TickCounts, TickSecond,
        TrialHead,
    };

    use super::*;
    use crate::testing::TrialBuilder;

    /// A hold from 2 s to 12 s in which the bots send `sent_per_s(second)` shots evenly within each second. The server
    /// reads them at once except in a stall, and reports what it read in entries that begin `offset_ms` after ours and
    /// end at a stall's end.
    fn shots_of(offset_ms: u64, stall_ms: std::ops::Range<u64>, sent_per_s: impl Fn(u32) -> u64) -> Value {
        const MS_NS: u64 = 1_000_000;
        let names = MetricNames::new(&["shot"], &[], &[], &[]).with_op_roles(&[("shot", Role::Shot)]);
        let event = |at_ms: u64, kind: &str| {
            Entry::Event(Event { at_ns: at_ms * MS_NS, kind: kind.to_owned(), text: "10s".to_owned() })
        };
        let mut entries =
            vec![event(1_000, kind::SETTLE), event(2_000, kind::HOLD), event(12_000, kind::DRAIN)];
        for index in 0..14 {
            let mut interval = Interval::new(&names);
            interval.index = index;
            let phase = if (2..12).contains(&index) { Phase::Hold } else { Phase::Settle };
            let flow = interval.flow_mut(0, phase);
            (flow.offered, flow.sent, flow.told) = (sent_per_s(index), sent_per_s(index), sent_per_s(index));
            entries.push(Entry::Interval(Box::new(interval)));
        }
        // Everything that was sent before this moment, except what is still queued at a stalled server.
        let sent_until = |ms: u64| -> f64 {
            let whole: u64 = (0..(ms / 1_000) as u32).map(&sent_per_s).sum();
            whole as f64 + sent_per_s((ms / 1_000) as u32) as f64 * (ms % 1_000) as f64 / 1e3
        };
        let read_until = |ms: u64| {
            let ms = if (stall_ms.start + 1..stall_ms.end).contains(&ms) { stall_ms.start } else { ms };
            sent_until(ms).round() as u64
        };
        let ends = (0..14)
            .map(|n| n * 1_000 + offset_ms)
            .filter(|ms| !stall_ms.contains(ms) || *ms == stall_ms.start);
        let mut ends: Vec<u64> = ends.filter(|ms| *ms <= 13_900).collect();
        if !stall_ms.is_empty() {
            ends.push(stall_ms.end);
        }
        ends.sort_unstable();
        ends.dedup();
        for pair in ends.windows(2) {
            entries.push(Entry::Ticks(Box::new(TickSecond {
                source: "log".to_owned(),
                from_ns: pair[0] * MS_NS,
                to_ns: pair[1] * MS_NS,
                counts: TickCounts { due: 60, on_time: 60, ..TickCounts::default() },
                interval: Distribution::new(),
                busy: None,
                lateness: None,
                isr_numerator_ns: None,
                counters: vec![("shots".to_owned(), read_until(pair[1]) - read_until(pair[0]))],
            })));
        }
        let head = TrialHead {
            seq: 0,
            purpose: Purpose::Rung,
            load: 500.0,
            load_unit: LoadUnit::Games,
            bots: 1_000,
            connections: 1_000,
            tick_period_ns: 16_666_667,
            cell: Default::default(),
            metric_names: names,
        };
        shots(&Trial::from_entries(head, &entries, 0)).unwrap()
    }

    #[test]
    fn shots_are_shared_over_the_seconds_that_both_sides_cover_wherever_the_servers_seconds_begin() {
        // From 1,000 to 14,000 shots per second: a share over other seconds would be off by 7 to 80 %.
        let rising = |index: u32| 1_000 * u64::from(index + 1);
        for (offset_ms, covered_s) in [(0, 10.0), (300, 9.0), (900, 9.0)] {
            let shots = shots_of(offset_ms, 0..0, rising);
            let share = shots["delivered_share"].as_f64().unwrap();
            assert!((share - 1.0).abs() < 1e-6, "{offset_ms}: {shots}");
            assert_eq!(shots["covered_s"], covered_s, "{offset_ms}");
            assert_eq!(shots["sent"], (2..12).map(rising).sum::<u64>());
            assert_eq!(
                shots["covered_from_ns"],
                if offset_ms == 0 { 2_000_000_000 } else { 2_000_000_000 + offset_ms * 1_000_000 }
            );
        }
    }

    #[test]
    fn a_stall_of_the_server_neither_hides_shots_nor_adds_any() {
        let steady = |_: u32| 7_000;
        for offset_ms in [0, 300, 900] {
            // In the middle of the hold; across its begin; across its end.
            for (stall_ms, covered_s) in
                [(5_000..8_450, None), (1_600..3_750, Some(3_750)), (10_950..12_700, None)]
            {
                let shots = shots_of(offset_ms, stall_ms.clone(), steady);
                let share = shots["delivered_share"].as_f64().unwrap();
                assert!((share - 1.0).abs() < 1e-3, "{offset_ms}, {stall_ms:?}: {shots}");
                if let Some(from_ms) = covered_s {
                    assert_eq!(shots["covered_from_ns"], from_ms * 1_000_000u64, "{offset_ms}, {stall_ms:?}");
                }
            }
        }
    }

    #[test]
    fn shots_that_never_arrive_are_missing_in_the_share() {
        let lossy = TrialBuilder { hold_s: 20, ..TrialBuilder::arena(500.0) }.edit(|_, interval| {
            let flow = interval.flow_mut(0, Phase::Hold);
            (flow.offered, flow.sent, flow.told) = (10_000, 10_000, 10_000);
        });
        let shots = shots(&lossy.build()).unwrap();
        assert_eq!((&shots["delivered_share"], &shots["covered_s"]), (&json!(0.7), &json!(20.0)));
    }
}
