use measure::Flow;

use super::*;
use crate::testing::TrialBuilder;

#[test]
fn every_name_is_there_once() {
    let mut names: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn errors_are_counted_alike_here_and_on_the_page() {
    let cases = include_str!("../../../../web/fixtures/errors.json");
    let cases: Vec<serde_json::Value> = serde_json::from_str(cases).unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let counts = |of: &str| serde_json::from_value(case[of].clone()).unwrap();
        let count = |of: &str| case[of].as_u64().unwrap();
        let mut trial = crate::testing::TrialBuilder::asking(10.0).build();
        let flow = Flow {
            failed: count("failed"),
            lost: count("lost"),
            not_sent: count("not_sent"),
            open_after: count("unanswered_at_stop"),
            ..Flow::default()
        };
        trial.ops = [("ask".to_owned(), flow)].into();
        (trial.errors, trial.connections.failed) = (counts("errors"), counts("connects_failed"));
        assert_eq!(errors(&trial), count("count"), "{case}");
    }
}

#[test]
fn the_share_of_errors_is_of_all_messages_offered_and_none_without_any() {
    let read = |trial: &Trial| FigureDoc::named("errors.share").expect("in the table").read(trial);
    let share = |builder: TrialBuilder| read(&builder.build());
    assert_eq!(share(TrialBuilder::asking(100.0)), FigureValue::Value(0.0));
    assert_eq!(share(TrialBuilder::asking(100.0).rejected(5, "GET /: status 503")), FigureValue::Value(0.05));
    // Two errors by cause for each of the messages still count as all of them, not more.
    let twice = TrialBuilder::asking(10.0).rejected(10, "GET /: status 503");
    assert_eq!(share(twice.edit(|_, interval| interval.errors[0] = 10)), FigureValue::Value(1.0));
    let mut nothing = TrialBuilder::asking(10.0).build();
    nothing.ops.clear();
    assert_eq!(read(&nothing), NOTHING_OFFERED);
}

#[test]
fn every_name_stands_in_the_method_with_its_meaning() {
    let chapter = include_str!("../../../../docs/method/objectives.md");
    for figure in FIGURES {
        let row = chapter.lines().find(|line| line.starts_with(&format!("| `{}` |", figure.name)));
        let row = row.unwrap_or_else(|| panic!("{} is missing", figure.name));
        assert!(row.ends_with(&format!("| {} |", figure.meaning)), "{row}");
    }
}

#[test]
fn a_misspelt_name_finds_the_one_that_was_meant() {
    for (wrong, meant) in [
        ("tick.late_share", "ticks.late_share"),
        ("late_share", "ticks.late_share"),
        ("ticks.lateshare", "ticks.late_share"),
        ("response", "response.p99"),
        ("response.p98", "response.p99"),
        ("Response.P99", "response.p99"),
        ("error", "errors"),
        ("delivery.lost", "deliveries.lost"),
        ("connections.open", "connections.open_min"),
    ] {
        assert_eq!(FigureDoc::nearest(wrong).name, meant, "{wrong}");
    }
}
