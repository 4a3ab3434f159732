//! The short form of every oracle.

use truth::{Form, ORACLES};

fn check(id: &str) {
    let oracle = ORACLES.iter().find(|oracle| oracle.id == id).expect("an oracle of this name");
    let rows = (oracle.rows)(Form::Short);
    assert!(!rows.is_empty(), "{id} computes nothing");
    rows.iter().for_each(|row| println!("{}: {} (allowed: {})", row.what, row.got, row.allowed));
    let wrong: Vec<_> = rows.iter().filter(|row| !row.is_ok).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

macro_rules! oracles {
    ($($name:ident: $id:literal,)*) => {
        $(#[test]
        fn $name() {
            check($id);
        })*

        #[test]
        fn every_oracle_has_a_test() {
            assert_eq!(ORACLES.iter().map(|oracle| oracle.id).collect::<Vec<_>>(), [$($id),*]);
        }
    };
}

oracles! {
    co_the_percentiles_of_a_server_that_freezes_are_exact: "CO",
    poll_the_percentiles_of_a_poll_loop_are_those_of_its_chain: "POLL",
    poll_max_the_ceiling_and_the_capacity_of_a_poll_loop_are_known: "POLL-max",
    poll_14_refusals_are_as_many_as_its_chain_says: "POLL-14",
    mm1_the_percentile_of_a_queue_is_the_known_one: "MM1",
    hist_percentiles_are_those_of_a_sort_and_merge_in_any_order: "HIST",
    ci_intervals_contain_the_change_as_often_as_they_say: "CI",
    aa_equal_servers_are_rarely_told_apart: "AA",
    search_planted_capacities_are_found_in_spite_of_failures_for_no_reason: "SEARCH",
    rfc_loads_are_classified_as_the_rfc_says: "RFC",
    warm_planted_warm_ups_are_found: "WARM",
    usl_planted_parameters_lie_in_their_intervals: "USL",
    isr_the_instability_ratio_of_regular_outliers_is_the_known_one: "ISR",
    ledger_broadcasts_are_settled_exactly_as_planted: "LEDGER",
    late_what_gives_after_a_while_is_no_lower_bound: "LATE",
    bisect_the_change_that_costs_ten_percent_is_found: "BISECT",
    decide_few_samples_decide_a_percentile_and_a_search_needs_no_trial_twice: "DECIDE",
}
