use measure::Sum;
use measure::trial::kind;
use measure::{Entry, Event, Flow, Interval, Measure, MetricNames, Phase, TrialHead};
use proptest::prelude::*;

use super::*;
use crate::figures::FIGURES;

fn parsed(text: &str) -> Objective {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn bounds_are_read_in_the_units_of_their_figure() {
    for (text, bound, shown) in [
        ("ticks.late_share < 25%", 0.25, "ticks.late_share < 25%"),
        ("ticks.late_share<0.25", 0.25, "ticks.late_share < 0.25"),
        ("response.p99 <= 50ms", 50e6, "response.p99 <= 50ms"),
        ("response.p999 < 1.5 s", 1.5e9, "response.p999 < 1.5s"),
        ("service.mean < 250us", 250e3, "service.mean < 250us"),
        ("service.mean < 250µs", 250e3, "service.mean < 250µs"),
        ("send_lag.p50 < 900ns", 900.0, "send_lag.p50 < 900ns"),
        ("connections.rate_per_s > 1000", 1e3, "connections.rate_per_s > 1000"),
        ("rate_per_s >= 12.5k/s", 12_500.0, "rate_per_s >= 12.5k/s"),
        ("deliveries.lost == 0", 0.0, "deliveries.lost == 0"),
        ("errors != 2M", 2e6, "errors != 2M"),
        ("subject.rss_bytes < 2GiB", 2_147_483_648.0, "subject.rss_bytes < 2GiB"),
        ("subject.cpu_cores < 1.9", 1.9, "subject.cpu_cores < 1.9"),
        ("  audit == ok ", 1.0, "audit == ok"),
    ] {
        let objective = parsed(text);
        assert_eq!(objective.bound(), bound, "{text}");
        assert_eq!(objective.to_string(), shown);
    }
}

#[test]
fn mistakes_name_the_nearest_figure_and_an_example() {
    for (text, message) in [
        (
            "tick.late_share < 25%",
            "objective \"tick.late_share < 25%\": there is no figure \"tick.late_share\"; did you mean \
             ticks.late_share? For example: ticks.late_share < 25%",
        ),
        (
            "response.p99 < 25%",
            "objective \"response.p99 < 25%\": response.p99 is a time (ns, us, ms, s), but \"25%\" is not; for example: \
             response.p99 < 50ms",
        ),
        (
            "response.p99 < 50",
            "objective \"response.p99 < 50\": response.p99 is a time (ns, us, ms, s), but \"50\" is not; for example: \
             response.p99 < 50ms",
        ),
        (
            "ticks.late_share < 25",
            "objective \"ticks.late_share < 25\": ticks.late_share is a share between 0 and 1; did you mean 25%? \
             For example: ticks.late_share < 25%",
        ),
        (
            "errors = 0",
            "objective \"errors = 0\": \"=\" is no comparison; use < <= > >= == or !=, for example: \
             ticks.late_share < 25%",
        ),
        (
            "errors",
            "objective \"errors\" compares nothing; write NAME OP VALUE, for example: ticks.late_share < 25%",
        ),
        ("audit > ok", "objective \"audit > ok\": audit is either ok or not; for example: audit == ok"),
        (
            "errors == ok",
            "objective \"errors == ok\": errors is a count (12, 12k, 12M), but \"ok\" is not; for example: errors == 0",
        ),
    ] {
        assert_eq!(text.parse::<Objective>().unwrap_err().to_string(), message);
    }
}

#[test]
fn nonsense_is_refused_and_never_panics() {
    for text in [
        "",
        "<",
        "< 5",
        "a <",
        "errors == ",
        "errors == -1",
        "errors == 1.2.3",
        "errors == NaN",
        "é≤5",
        "errors < 5 %",
    ] {
        assert!(text.parse::<Objective>().is_err(), "{text}");
    }
}

#[test]
fn every_figure_has_an_example_that_parses() {
    for figure in FIGURES {
        assert_eq!(parsed(&example(figure)).figure().name, figure.name);
    }
}

#[test]
fn an_objective_travels_as_its_text() {
    let objective = parsed("response.p99 < 50ms");
    let json = serde_json::to_string(&objective).unwrap();
    assert_eq!(json, "\"response.p99 < 50ms\"");
    assert_eq!(serde_json::from_str::<Objective>(&json).unwrap(), objective);
    let error = serde_json::from_str::<Objective>("\"respnse.p9 < 50ms\"").unwrap_err();
    assert!(error.to_string().contains("did you mean response.p9"), "{error}");
}

/// 200 moves that took 10 ms, 100 joins that took 1 s, and one join that was never answered.
#[test]
fn an_operation_is_judged_by_its_own_times() {
    let names = MetricNames::new(&["move", "join", "message"], &[], &[], &[]).with_timed_ops(2);
    let names = names.with_values(&["damage".to_owned()]);
    let mut second = Interval::new(&names);
    (second.index, second.workers) = (1, 1);
    for (op, answered, open_after, ns) in [(0, 200, 0, 10_000_000), (1, 100, 1, 1_000_000_000)] {
        let sent = answered + open_after;
        *second.flow_mut(op, Phase::Hold) =
            Flow { offered: sent, sent, answered, open_after, ..Flow::default() };
        second.of_op_mut(op).unwrap().record_many(ns, answered);
        second.distribution_mut(Measure::Response, true).record_many(ns, answered);
    }
    (0..200).for_each(|_| second.value_mut(0).record_value(1_250));
    let head = TrialHead { metric_names: names, ..TrialHead::default() };
    let mark = |at_s: u64, kind: &str| Event {
        at_ns: at_s * 1_000_000_000,
        kind: kind.to_owned(),
        ..Event::default()
    };
    let mut sum = Sum::new(head, vec![mark(1, kind::HOLD), mark(2, kind::DRAIN)], 0);
    sum.take(&Entry::Interval(Box::new(second)));
    let trial = sum.finish();
    let own = |name: &str| match name {
        "move" | "join" => Some(Own::Operation),
        "damage" => Some(Own::Value),
        _ => None,
    };
    let outcome = |text: &str| Objective::read(text, &own).unwrap().evaluate(&trial);
    assert!(matches!(outcome("move.p50 < 20ms"), Outcome::Met { value: Some(_), .. }));
    assert!(matches!(outcome("join.p50 < 500ms"), Outcome::NotMet { .. }));
    assert!(matches!(outcome("join.max < 5s"), Outcome::NotMet { value: f64::INFINITY, .. }));
    assert!(matches!(outcome("join.mean < 5s"), Outcome::Met { .. }));
    assert!(Objective::read("message.p50 < 5s", &own).is_err(), "it owes no reply");
    assert!(Objective::read("move.p98 < 5s", &own).is_err());
    assert!(Objective::read("damage.max < 5s", &own).is_err(), "it has no unit");
    assert!(matches!(outcome("damage.p50 < 1.26"), Outcome::Met { value: Some(1.25), .. }));
    assert!(matches!(outcome("damage.max <= 1.24"), Outcome::NotMet { value: 1.25, .. }));
    assert!(
        matches!(outcome("damage.p90 < 1.24"), Outcome::NotMet { .. }),
        "too few to state it, and all beyond"
    );
    let stored = |text: &str| serde_json::from_value::<Objective>(text.into()).unwrap().evaluate(&trial);
    assert_eq!(stored("damage.mean < 1.3"), outcome("damage.mean < 1.3"));
    assert_eq!(stored("move.p50 < 20ms"), outcome("move.p50 < 20ms"));
}

proptest! {
    #[test]
    fn what_is_shown_parses_to_the_same_objective(
        figure in 0..FIGURES.len(), op in 0..Op::ALL.len(), number in 0u32..1_000_000, digits in 0usize..3
    ) {
        let figure = &FIGURES[figure];
        let unit = match figure.unit {
            UnitKind::Time => "ms",
            UnitKind::Bytes => "MiB",
            UnitKind::Rate => "k/s",
            UnitKind::Count => "k",
            _ => "",
        };
        let value = f64::from(number) / 10f64.powi(digits as i32);
        if let Ok(objective) = format!("{}{}{value}{unit}", figure.name, Op::ALL[op].1).parse::<Objective>() {
            prop_assert_eq!(objective.to_string().parse::<Objective>().unwrap(), objective);
        } else {
            prop_assert!(matches!(figure.unit, UnitKind::Share | UnitKind::Ok));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        let _ = text.parse::<Objective>();
    }
}
