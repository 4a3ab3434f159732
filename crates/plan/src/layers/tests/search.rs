//! How `--search`, `--repeat` and `--gate` become a plan, and what is refused.

use ::ladder::{Goal, Repeats};

use super::{check_refused, plan_of_flags};
use crate::flags::Flags;
use crate::layers::resolve;
use crate::search_sentence;

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn a_search_alone_is_the_standard_one_from_the_first_usual_load() {
    let search = plan_of_flags("arena --search").ladder.search.unwrap();
    // Eight doublings: at 2 ms per game, the games of a ninth would take more than five minutes to arrive.
    assert_eq!((search.start, search.least, search.most, search.is_whole), (500.0, 1.0, 128_000.0, true));
    let hold_ns = 30 * SECOND_NS;
    let goal = Goal { final_trial_ns: hold_ns, duration_sum_ns: 3 * hold_ns, exceed_ratio: 0.5, width: 0.05 };
    assert_eq!(search.goal, goal);
    assert!(search.restarts_subject);
    assert_eq!(plan_of_flags("arena").ladder.search, None);
}

#[test]
fn a_search_of_a_rate_goes_no_lower_than_ten_minutes_give_the_samples_of_its_percentiles() {
    let search = plan_of_flags("leaderboard --search").ladder.search.unwrap();
    assert_eq!((search.start, search.least, search.samples), (1000.0, 1.0, 299.0));
    let rare = "leaderboard --search --objective 'response.p999 < 1s'";
    let search = plan_of_flags(rare).ladder.search.unwrap();
    assert_eq!((search.least, search.samples), (5.0, 2_995.0));
    let search = plan_of_flags("leaderboard --search --rate 2,8").ladder.search.unwrap();
    assert_eq!((search.least, search.most), (2.0, 8.0), "a range that was given is searched");
}

#[test]
fn loads_bound_the_search_and_options_set_its_goal() {
    let flags = "arena --rungs 100,2000 --hold 10s --search-width 2% --search-trials 5 --search-exceed 20% --search strict";
    let search = plan_of_flags(flags).ladder.search.unwrap();
    assert_eq!((search.start, search.least, search.most), (100.0, 100.0, 2000.0));
    assert_eq!((search.goal.final_trial_ns, search.goal.duration_sum_ns), (10 * SECOND_NS, 50 * SECOND_NS));
    assert_eq!((search.goal.exceed_ratio, search.goal.width), (0.2, 0.02));
    let search = plan_of_flags("arena --rungs 700 --search quick").ladder.search.unwrap();
    assert_eq!((search.start, search.least, search.goal.width), (700.0, 1.0, 0.1));
}

#[test]
fn a_percentile_says_how_long_its_trials_must_be() {
    let plan =
        plan_of_flags("poll-loop --rate 100,400 --search --hold 2s --objective 'response.p99 <= 50ms'");
    let search = plan.ladder.search.as_ref().unwrap();
    assert_eq!(search.samples, 299.0);
    assert_eq!([100.0, 200.0, 400.0].map(|load| search.full_ns(load) / SECOND_NS), [4, 2, 2]);
    assert_eq!(
        (search.cell, plan.ladder.cells.len()),
        (Some(0), 1),
        "an axis of which nobody speaks is not swept"
    );
    let told = search_sentence(&plan).unwrap();
    assert!(told.contains("between 100 and 400 req/s"), "{told}");
    assert!(
        told.ends_with("; the percentiles need about 299 replies to be met, which takes 4 s at 100 req/s"),
        "{told}"
    );
}

#[test]
fn a_budget_buys_a_width_or_is_too_small() {
    let width = |minutes: u32| {
        let flags = format!("arena --rungs 100,2000 --hold 10s --search --budget {minutes}m");
        let plan = resolve(&Flags::of(&flags), None, 7).ok()?;
        plan.ladder.search.map(|search| search.goal.width)
    };
    let widths: Vec<Option<f64>> = (1..30).map(width).collect();
    assert_eq!((widths[0], widths[28]), (None, Some(0.01)), "{widths:?}");
    let bought: Vec<f64> = widths.into_iter().flatten().collect();
    assert!(bought.is_sorted_by(|wide, narrow| wide >= narrow), "more time buys no less: {bought:?}");
    assert!(bought[0] >= 0.05, "{bought:?}");
    check_refused("arena --rungs 100,2000 --search --budget 1m", "are too few: bounds 30 % apart need up to");
    check_refused("arena --search --budget 20m --search-width 2%", "both say how narrow");
}

#[test]
fn repeats_are_a_number_or_until_sure() {
    assert_eq!(plan_of_flags("arena --repeat 5").ladder.repeat, Repeats::Times(5));
    assert_eq!(plan_of_flags("arena --repeat until-sure").ladder.repeat, Repeats::UntilSure);
    assert_eq!(plan_of_flags("arena").ladder.repeat, Repeats::Times(1));
    check_refused("arena --repeat often", "often");
    check_refused("arena --repeat 0", "0");
}

#[test]
fn further_goals_of_a_search_are_objectives_of_their_own() {
    let flags = "poll-loop --rate 100,400 --search --hold 9s --objective 'response.p90 <= 50ms' \
                 --goal 'response.p90 <= 20ms, failed == 0' --goal 'response.p99 <= 200ms'";
    let plan = plan_of_flags(flags);
    let search = plan.ladder.search.as_ref().unwrap();
    let texts = |goal: &Vec<::ladder::Objective>| goal.iter().map(ToString::to_string).collect::<Vec<_>>();
    let goals: Vec<Vec<String>> = search.goals.iter().map(texts).collect();
    assert_eq!(goals, [vec!["response.p90 <= 20ms", "failed == 0"], vec!["response.p99 <= 200ms"]]);
    assert_eq!(search.samples, 299.0, "the goal that needs most samples says how many");
    assert!(search_sentence(&plan).unwrap().contains("apart for each of 3 goals"));
    check_refused("arena --goal 'ticks.late_share < 1%'", "add --search");
    check_refused("arena --search --goal 'ticks.late_share'", "compares nothing");
    check_refused("arena --search --goal ' , '", "a goal is one objective or several");
    check_refused("arena --search --goal 'audit == ok'", "would never be measured");
    let twice = "arena --search --goal 'ticks.late_share < 1%' --goal 'ticks.late_share < 0.01'";
    check_refused(twice, "asks already");
}

#[test]
fn what_contradicts_a_search_is_refused() {
    check_refused("arena --search fast", "there is no search \"fast\"");
    check_refused("arena --search-width 5%", "add --search");
    check_refused("arena --search --repeat 3", "repeats by itself");
    check_refused("arena --search --hold 2Mticks", "give --hold as a time");
    check_refused("poll-loop --search --services all", "sweeps");
    check_refused("poll-loop --search --requesters 1.. --services root --views background", "needs an end");
    check_refused("leaderboard --search --rate 100,200 --stop-at 5s", "ends the subject");
    check_refused("arena --search --search-width 90%", "between 0.001 and 0.5");
}

#[test]
fn gates_ask_for_loads_that_are_held_and_figures_that_are_measured() {
    let plan = plan_of_flags("arena --gate 'capacity >= 1000' --gate 'ticks.late_share at 1000 < 5%'");
    let gates: Vec<String> = plan.gates.iter().map(ToString::to_string).collect();
    assert_eq!(gates, ["capacity >= 1000", "ticks.late_share at 1000 < 5%"]);
    check_refused("arena --gate 'ticks.late_share at 800 < 5%'", "does not hold 800");
    check_refused("arena --search --gate 'ticks.late_share at 1000 < 5%'", "a search chooses its loads");
    check_refused("arena --gate 'capacity = 1000'", "is no comparison");
    check_refused("arena --gate 'audit at 1000 == ok'", "would never be measured");
}

#[test]
fn multiples_of_the_capacity_are_sorted_and_belong_to_a_list() {
    assert_eq!(plan_of_flags("arena --overload 2,1.2,2").ladder.overload, [1.2, 2.0]);
    assert!(plan_of_flags("arena").ladder.overload.is_empty());
    check_refused("arena --overload 1", "1.01");
    check_refused("arena --overload 1.5 --search", "multiples of the capacity");
    check_refused("poll-loop --overload 1.5 --requesters 1..", "multiples of the capacity");
}

#[test]
fn a_recovery_follows_an_overload_of_requests() {
    let recovery_ns = |line: &str| plan_of_flags(line).ladder.recovery_ns;
    assert_eq!(recovery_ns("leaderboard --overload 1.5"), Some(30_000_000_000));
    assert_eq!(recovery_ns("leaderboard --overload 1.5 --recovery-within 60s"), Some(60_000_000_000));
    assert_eq!(recovery_ns("leaderboard"), None);
    assert_eq!(recovery_ns("arena --overload 1.5"), None);
    check_refused("leaderboard --recovery-within 60s", "add --overload");
    check_refused("arena --overload 1.5 --recovery-within 60s", "does not go down under way");
    check_refused("leaderboard --overload 1.5 --recovery-within 4s", "5s");
}

#[test]
fn loads_are_held_downwards_too_where_a_load_can_come_after_a_higher_one() {
    assert!(plan_of_flags("arena --from-above").ladder.from_above);
    assert!(plan_of_flags("poll-loop --requesters 1.. --from-above").ladder.from_above);
    assert!(!plan_of_flags("arena").ladder.from_above);
    check_refused("arena --from-above --search", "a search chooses the order");
    check_refused("arena --from-above --restart-per-rung", "no server has held a higher load");
    check_refused("leaderboard --rate 100,200 --from-above --stop-at 5s", "every load ends the server");
    check_refused("arena --from-above --rungs 500", "name at least two");
}
