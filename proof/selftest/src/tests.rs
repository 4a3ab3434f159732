use ladder::Verdict;
use serde_json::{Value, json};

use super::*;
use crate::outcome::Growth;

/// What a climb's JSON says.
fn came(verdict: &str, signal: &str, disturbed_share: f64, code: i32) -> Came {
    let rung = json!({
        "verdict": verdict, "reason": "so it was", "remark": "100 % of the hold was disturbed: cc1 1.0",
        "disturbed_share": disturbed_share, "signal": signal,
    });
    Came::read(&json!({ "verdict": verdict, "rungs": [rung] }), Some(code))
}

/// The same of two rungs, with a cause.
fn caused(name: &str, standing: &str, disturbed_share: f64) -> Came {
    let rungs =
        [json!({ "verdict": "PASS" }), json!({ "verdict": "FAIL", "disturbed_share": disturbed_share })];
    let cause = json!({ "evidence": { "cause": { "name": name, "standing": standing } } });
    let other = json!({ "evidence": { "held": 20 } });
    Came::read(&json!({ "verdict": "FAIL", "rungs": rungs, "conclusions": [other, cause] }), Some(1))
}

fn case(expected: Outcome, never: &'static [Verdict]) -> Case {
    Case { expected: Box::leak(Box::new([expected])), never, ..CASES[0] }
}

fn check(case: &Case, came: &Came, agreement: &str) {
    let name = match expectation::compare(case, came) {
        Agreement::Ok => "ok".to_owned(),
        Agreement::Undecided { disturbed_by } => format!("undecided: {disturbed_by}"),
        Agreement::NotRun { why } => format!("not run: {why}"),
        Agreement::Wrong => "wrong".to_owned(),
    };
    assert_eq!(name, agreement, "{came:?}");
}

#[test]
fn a_case_agrees_when_verdict_signal_and_exit_code_are_those_expected() {
    let hang = case(Outcome::fail("ticks.silence"), &[Verdict::Pass]);
    check(&hang, &came("FAIL", "ticks.silence", 0.0, 1), "ok");
    check(&hang, &came("FAIL", "ticks.silence", 0.0, 0), "wrong");
    check(&hang, &came("FAIL", "ticks.late_share", 0.0, 1), "wrong");
    let words = case(Outcome::inconclusive("cc1"), &[]);
    check(&words, &came("INCONCLUSIVE", "disturbed", 1.0, 2), "ok");
}

#[test]
fn a_disturbance_excuses_what_is_not_expected_but_nothing_that_must_never_come() {
    let hang = case(Outcome::fail("ticks.silence"), &[Verdict::Pass]);
    check(&hang, &came("INCONCLUSIVE", "disturbed", 1.0, 2), "undecided: cc1 1.0");
    check(&hang, &came("INCONCLUSIVE", "disturbed", 0.0, 2), "wrong");
    check(&hang, &came("PASS", "", 1.0, 0), "wrong");
    let healthy = case(Outcome::pass(), &[Verdict::Fail]);
    check(&healthy, &came("FAIL", "ticks.late_share", 1.0, 1), "wrong");
    check(&healthy, &came("GENERATOR_LIMITED", "send_lag.p99", 0.0, 2), "undecided: cc1 1.0");
}

#[test]
fn a_cause_must_be_the_planted_one_and_a_disturbance_excuses_that_none_is_named_but_no_other_name() {
    let lock = Case { subject: Subject::Limited, ..case(Outcome::caused("lock"), &[Verdict::Pass]) };
    check(&lock, &caused("lock", "named", 0.0), "ok");
    check(&lock, &caused("cpu", "named", 1.0), "wrong");
    check(&lock, &caused("lock", "suspected", 0.0), "wrong");
    check(&lock, &caused("lock", "suspected", 1.0), "undecided: ");
    check(&lock, &caused("open", "open", 0.0), "wrong");
    let pause =
        Case { subject: Subject::Limited, ..case(Outcome::caused("suspected pause"), &[Verdict::Pass]) };
    check(&pause, &caused("pause", "suspected", 0.0), "ok");
    check(&pause, &caused("pause", "named", 0.0), "wrong");
}

#[test]
fn a_climb_without_results_is_wrong() {
    let none = Came { code: Some(2), disturbed_share: 1.0, ..Came::default() };
    check(&case(Outcome::inconclusive(""), &[]), &none, "wrong");
    assert_eq!(none.short(), "no result (exit 2)");
}

#[test]
fn what_the_machine_does_not_permit_is_not_run_and_any_other_end_without_results_is_wrong() {
    let throttled = Case { needs: NO_QUOTA, ..case(Outcome::caused("throttled"), &[Verdict::Pass]) };
    let ended = |says: &str| Came { reason: says.to_owned(), code: Some(2), ..Came::default() };
    let refused = format!("the server ended: {NO_QUOTA} (/x: denied); run it as root");
    check(&throttled, &ended(&refused), &format!("not run: {NO_QUOTA} (/x: denied); run it as root"));
    check(&throttled, &ended("cannot listen"), "wrong");
    check(&case(Outcome::pass(), &[]), &ended(&refused), "wrong");
    let why = String::new();
    let not_run = Agreement::NotRun { why };
    assert_eq!(exit_code([&Agreement::Ok, &not_run].into_iter(), false), Exit::Met);
    assert_eq!(exit_code([&not_run].into_iter(), false), Exit::NotMeasured);
}

#[test]
fn a_leak_must_be_told_with_its_size_and_none_where_none_is_planted_whatever_disturbed_the_hold() {
    const FDS: &[Growth] = &[Growth { figure: "subject.fds", per_closed: (0.95, 1.05) }];
    let long = |grows| Case { when: When::Long, ..case(Outcome::growing(grows), &[]) };
    let grew = |of: Value, disturbed_share: f64| {
        let rung = json!({ "verdict": "PASS", "disturbed_share": disturbed_share, "trends": { "of": of } });
        Came::read(&json!({ "verdict": "PASS", "rungs": [rung] }), Some(0))
    };
    let fds = |grows: bool, each: f64| {
        let times = json!({ "grows": true, "per_closed": null });
        json!({ "subject.fds": { "grows": grows, "per_closed": each }, "response.p99": times })
    };
    check(&long(FDS), &grew(fds(true, 1.01), 0.0), "ok");
    check(&long(FDS), &grew(fds(true, 1.2), 0.5), "wrong");
    check(&long(FDS), &grew(fds(false, 1.0), 0.5), "wrong");
    check(&long(FDS), &grew(Value::Null, 0.0), "wrong");
    check(&long(&[]), &grew(fds(false, 0.0), 0.5), "ok");
    check(&long(&[]), &grew(fds(true, 1.0), 0.5), "wrong");
    check(&long(&[]), &came("INCONCLUSIVE", "disturbed", 1.0, 2), "undecided: cc1 1.0");
}

#[test]
fn long_cases_are_run_when_they_are_asked_for() {
    let count = |long: bool, quick: bool| {
        let cases = Options { quick, long, only: None, json: None }.cases();
        (cases.len(), cases.iter().filter(|case| case.when == When::Long).count())
    };
    assert_eq!((count(true, false).0, count(false, false).1, count(false, true).1), (CASES.len(), 0, 0));
    assert!(count(true, true).1 >= 2);
}

#[test]
fn only_a_wrong_verdict_and_an_interruption_are_told_by_the_exit_code() {
    let undecided = Agreement::Undecided { disturbed_by: "cc1 1.0".to_owned() };
    assert_eq!(exit_code([&Agreement::Ok, &undecided].into_iter(), false), Exit::Met);
    assert_eq!(exit_code([&Agreement::Ok, &Agreement::Wrong].into_iter(), false), Exit::NotMet);
    assert_eq!(exit_code([&Agreement::Wrong].into_iter(), true), Exit::Interrupted);
}

#[test]
fn no_healthy_server_may_fail_and_no_expected_outcome_is_one_that_must_never_come() {
    for case in CASES {
        assert!(!case.expected.is_empty(), "{}", case.line());
        if case.faults.is_empty() {
            assert!(case.never.contains(&Verdict::Fail), "{}", case.line());
        }
        for outcome in case.expected {
            assert!(!case.never.contains(&outcome.verdict), "{}: {}", case.line(), outcome.text());
            assert_eq!(outcome.code, Exit::from(outcome.verdict) as i32, "{}", case.line());
        }
        // A fault that may pass is one that the objective allows.
        let may_pass = case.expected.iter().any(|outcome| outcome.verdict == Verdict::Pass);
        assert!(may_pass || case.never.contains(&Verdict::Pass) || case.faults.is_empty(), "{}", case.line());
    }
}

#[test]
fn every_case_has_a_line_of_its_own() {
    let mut lines: Vec<String> = CASES.iter().map(Case::line).collect();
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), CASES.len());
}

#[test]
fn the_quick_cases_cover_every_verdict_and_every_server() {
    let options = Options { quick: true, long: false, only: None, json: None };
    let quick = options.cases();
    assert!((10..=17).contains(&quick.len()), "{}", quick.len());
    assert!(expected_seconds(&quick) < 300.0);
    for subject in [Subject::Arena, Subject::Chat, Subject::PollLoop, Subject::Leaderboard, Subject::Grid] {
        assert!(quick.iter().any(|case| case.subject == subject && case.faults.is_empty()));
        assert!(quick.iter().any(|case| case.subject == subject && !case.faults.is_empty()));
    }
    for verdict in [Verdict::Pass, Verdict::Fail, Verdict::Inconclusive, Verdict::GeneratorLimited] {
        assert!(quick.iter().any(|case| case.expected.iter().any(|outcome| outcome.verdict == verdict)));
    }
}

#[test]
fn only_takes_the_cases_whose_line_contains_a_text() {
    let only = |text: &str| {
        Options { quick: false, long: false, only: Some(text.to_owned()), json: None }.cases().len()
    };
    assert!(only("chat late-answers") == 1 && only("poll-loop") > 5 && only("no such case") == 0);
}

#[test]
fn the_table_of_the_method_is_that_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/method/selftest.md");
    let text = std::fs::read_to_string(path).unwrap();
    let table = markdown(&CASES.iter().collect::<Vec<_>>());
    assert!(text.contains(&table), "docs/method/selftest.md is out of date; its table must be:\n{table}");
}
