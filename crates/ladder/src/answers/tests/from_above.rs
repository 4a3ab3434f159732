//! Climbs from above: what is reported for loads held before and after a higher one.

use super::*;

fn climbed(rungs: &[(f64, f64)], ended_early: Option<&str>) -> Climb {
    let rungs: Vec<Rung> = rungs.iter().map(|(load, late)| arena(*load, *late)).collect();
    let climb = answers(&facts(), None, rungs, Asked { from_above: true, ended_early, ..Asked::default() });
    check_contract(&climb);
    climb
}

fn told(climb: &Climb) -> &Conclusion {
    climb.conclusions.iter().find(|one| one.id == "from_above").unwrap()
}

const FINE: f64 = 0.01;
const LATE: f64 = 0.6;

#[test]
fn a_server_that_remembers_is_named_with_the_load_it_came_from() {
    let climb =
        climbed(&[(500.0, FINE), (1000.0, FINE), (2000.0, LATE), (1000.0, LATE), (500.0, FINE)], None);
    let text = &told(&climb).text;
    assert!(text.contains("1000 games"), "{text}");
    assert!(text.contains("passed on the way up and failed on the way down, after 2000: "), "{text}");
    assert!(!text.contains("500 games"), "it gave the same both times: {text}");
    let loads = &told(&climb).evidence["loads"];
    assert_eq!(
        (&loads[0]["up"]["verdict"], &loads[0]["down"]["verdict"], &loads[0]["after"]),
        (&json!("PASS"), &json!("FAIL"), &json!(2000.0))
    );
    assert_eq!((&loads[1]["load"], loads.as_array().unwrap().len()), (&json!(500.0), 2));
    assert_eq!((climb.capacity.lower_bound, climb.capacity.upper_bound), (Some(500.0), Some(1000.0)));
}

#[test]
fn a_server_that_forgets_gives_the_same_and_an_overload_that_never_was_is_said() {
    let climb =
        climbed(&[(500.0, FINE), (1000.0, FINE), (2000.0, LATE), (1000.0, FINE), (500.0, FINE)], None);
    assert_eq!(told(&climb).text, "Each of 2 loads gave the same verdict on the way down as on the way up.");
    let climb = climbed(&[(500.0, FINE), (1000.0, FINE), (500.0, FINE)], None);
    let text = &told(&climb).text;
    assert!(
        text.starts_with("The load that was held both ways gave the same") && text.contains("climb higher"),
        "{text}"
    );
}

#[test]
fn repeats_after_the_way_down_are_not_taken_for_it() {
    let up_and_down = [(500.0, FINE), (1000.0, LATE), (500.0, FINE)];
    let repeats = [(1000.0, LATE), (500.0, LATE)];
    let climb = climbed(&[&up_and_down[..], &repeats].concat(), None);
    assert_eq!(told(&climb).evidence["loads"].as_array().unwrap().len(), 1);
    assert!(told(&climb).text.contains("same verdict"), "{}", told(&climb).text);
}

#[test]
fn a_load_that_only_failed_on_the_way_up_and_holds_that_were_not_judged_are_told_apart() {
    let climb = climbed(&[(500.0, LATE), (1000.0, LATE), (500.0, FINE)], None);
    assert!(told(&climb).text.contains("500 games"), "{}", told(&climb).text);
    assert!(told(&climb).text.contains("failed on the way up and passed"), "{}", told(&climb).text);
    let mut limited = TrialBuilder::arena(500.0);
    limited.send_lag_ns = 40_000_000;
    let limited = judged(&limited, "ticks.late_share < 25%");
    assert!(!limited.verdict.counts(), "{}", limited.verdict);
    let rungs = vec![arena(500.0, FINE), arena(1000.0, LATE), limited];
    let climb = answers(&facts(), None, rungs, Asked { from_above: true, ..Asked::default() });
    assert_eq!(told(&climb).text, "Not compared, because a hold could not be judged: 500.");
}

#[test]
fn a_run_without_a_way_down_says_why_and_one_that_was_not_asked_says_nothing() {
    let climb = climbed(&[(500.0, FINE), (1000.0, LATE)], Some("interrupted"));
    assert_eq!(told(&climb).text, "No load was held on the way down: the run ended before.");
    let dead = TrialBuilder::arena(1000.0).event(9, kind::SUBJECT_EXITED, "signal 9");
    let rungs = vec![arena(500.0, FINE), judged(&dead, "ticks.late_share < 25%")];
    let asked = Asked { from_above: true, ..Asked::default() };
    let climb = answers(&facts(), None, rungs.clone(), asked);
    assert!(told(&climb).text.contains("the server exited before"), "{}", told(&climb).text);
    assert!(climb_of(&rungs).conclusions.iter().all(|one| one.id != "from_above"));
}

#[test]
fn the_cells_of_a_sweep_come_down_each_by_itself() {
    let in_cell = |name: &str, load, late| {
        let cell = Some([("service".to_owned(), name.to_owned())].into());
        Rung { cell, ..arena(load, late) }
    };
    let rungs = vec![
        in_cell("short", 500.0, FINE),
        in_cell("short", 1000.0, LATE),
        in_cell("short", 500.0, FINE),
        in_cell("long", 500.0, FINE),
        in_cell("long", 1000.0, LATE),
        in_cell("long", 500.0, LATE),
    ];
    let climb = answers(&facts(), None, rungs, Asked { from_above: true, ..Asked::default() });
    check_contract(&climb);
    let text = &told(&climb).text;
    assert_eq!(told(&climb).evidence["loads"].as_array().unwrap().len(), 2);
    assert!(text.contains("(long) passed on the way up and failed on the way down"), "{text}");
    assert!(!text.contains("short"), "{text}");
}
