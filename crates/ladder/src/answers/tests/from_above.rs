//! Climbs from above: what is reported for loads held before and after a higher one.

use super::*;

fn climbed(rungs: &[(f64, f64)], ended_early: Option<&str>) -> Climb {
    let rungs: Vec<Rung> = rungs.iter().map(|(load, late)| arena(*load, *late)).collect();
    from_above(&rungs, ended_early)
}

fn from_above(rungs: &[Rung], ended_early: Option<&str>) -> Climb {
    let climb = asked_of(rungs, Asked { from_above: true, ended_early, ..Asked::default() });
    check_contract(&climb);
    climb
}

/// The loads that were held both ways.
fn loads(climb: &Climb) -> &Vec<Value> {
    let told = climb.conclusions.iter().find(|one| one.id == "from_above").unwrap();
    told.evidence["loads"].as_array().unwrap()
}

const FINE: f64 = 0.01;
const LATE: f64 = 0.6;

#[test]
fn a_server_that_remembers_is_named_with_the_load_it_came_from() {
    let climb =
        climbed(&[(500.0, FINE), (1000.0, FINE), (2000.0, LATE), (1000.0, LATE), (500.0, FINE)], None);
    let says = "…1000 games…passed on the way up and failed on the way down, after 2000: …";
    check_text(&climb, "from_above", says);
    assert!(!text_of(&climb, "from_above").contains("500 games"), "it gave the same both times");
    let loads = loads(&climb);
    assert_eq!(
        (&loads[0]["up"]["verdict"], &loads[0]["down"]["verdict"], &loads[0]["after"]),
        (&json!("PASS"), &json!("FAIL"), &json!(2000.0))
    );
    assert_eq!((&loads[1]["load"], loads.len()), (&json!(500.0), 2));
    assert_eq!((climb.capacity.lower_bound, climb.capacity.upper_bound), (Some(500.0), Some(1000.0)));
}

#[test]
fn a_server_that_forgets_gives_the_same_and_an_overload_that_never_was_is_said() {
    let climb =
        climbed(&[(500.0, FINE), (1000.0, FINE), (2000.0, LATE), (1000.0, FINE), (500.0, FINE)], None);
    let same = "Each of 2 loads gave the same verdict on the way down as on the way up.";
    check_text(&climb, "from_above", same);
    let climb = climbed(&[(500.0, FINE), (1000.0, FINE), (500.0, FINE)], None);
    let same = "The load that was held both ways gave the same…climb higher…";
    check_text(&climb, "from_above", same);
}

#[test]
fn repeats_after_the_way_down_are_not_taken_for_it() {
    let up_and_down = [(500.0, FINE), (1000.0, LATE), (500.0, FINE)];
    let repeats = [(1000.0, LATE), (500.0, LATE)];
    let climb = climbed(&[&up_and_down[..], &repeats].concat(), None);
    assert_eq!(loads(&climb).len(), 1);
    check_text(&climb, "from_above", "…same verdict…");
}

#[test]
fn a_load_that_only_failed_on_the_way_up_and_holds_that_were_not_judged_are_told_apart() {
    let climb = climbed(&[(500.0, LATE), (1000.0, LATE), (500.0, FINE)], None);
    check_text(&climb, "from_above", "…500 games…failed on the way up and passed…");
    let limited = TrialBuilder { send_lag_ns: 40_000_000, ..TrialBuilder::arena(500.0) };
    let limited = judged(&limited, TICKS);
    assert!(!limited.verdict.counts(), "{}", limited.verdict);
    let climb = from_above(&[arena(500.0, FINE), arena(1000.0, LATE), limited], None);
    check_text(&climb, "from_above", "Not compared, because a hold could not be judged: 500.");
}

#[test]
fn a_run_without_a_way_down_says_why_and_one_that_was_not_asked_says_nothing() {
    let climb = climbed(&[(500.0, FINE), (1000.0, LATE)], Some("interrupted"));
    check_text(&climb, "from_above", "No load was held on the way down: the run ended before.");
    let dead = TrialBuilder::arena(1000.0).event(9, kind::SUBJECT_EXITED, "signal 9");
    let rungs = [arena(500.0, FINE), judged(&dead, TICKS)];
    check_text(&from_above(&rungs, None), "from_above", "…the server exited before…");
    assert!(climb_of(&rungs).conclusions.iter().all(|one| one.id != "from_above"));
}

#[test]
fn the_cells_of_a_sweep_come_down_each_by_itself() {
    let in_cell = |name: &str, load, late| {
        let cell = Some([("service".to_owned(), name.to_owned())].into());
        Rung { cell, ..arena(load, late) }
    };
    let rungs = [
        in_cell("short", 500.0, FINE),
        in_cell("short", 1000.0, LATE),
        in_cell("short", 500.0, FINE),
        in_cell("long", 500.0, FINE),
        in_cell("long", 1000.0, LATE),
        in_cell("long", 500.0, LATE),
    ];
    let climb = from_above(&rungs, None);
    assert_eq!(loads(&climb).len(), 2);
    let says = "…(long) passed on the way up and failed on the way down…";
    check_text(&climb, "from_above", says);
    assert!(!text_of(&climb, "from_above").contains("short"));
}
