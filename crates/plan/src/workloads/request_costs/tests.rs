use std::collections::BTreeMap;

use ladder::testing::{TrialBuilder, terms};
use ladder::{Criteria, LoadUnit, judge, rung};

use super::*;

/// A rung of requests with everything told, to be written over.
fn pattern() -> Rung {
    let trial = TrialBuilder::asking(100.0).build();
    rung(&trial, &judge(&trial, None, &terms("errors == 0")))
}

struct Plant {
    unit: LoadUnit,
    load: f64,
    cell: &'static [(&'static str, u64)],
    rate_per_s: f64,
    cores: f64,
    passes: bool,
}

const BULK: Plant = Plant {
    unit: LoadUnit::Updates,
    load: 200_000.0,
    cell: &[],
    rate_per_s: 1_000.0,
    cores: 1.0,
    passes: true,
};

impl Plant {
    fn rung(&self) -> Rung {
        let mut rung = pattern();
        let cell: BTreeMap<String, String> =
            self.cell.iter().map(|(axis, value)| ((*axis).to_owned(), value.to_string())).collect();
        rung.cell = (!cell.is_empty()).then_some(cell);
        (rung.load, rung.load_unit, rung.rate_per_s) = (self.load, self.unit, self.rate_per_s);
        rung.verdict = if self.passes { Verdict::Pass } else { Verdict::Fail };
        let process = &mut rung.subject.as_mut().expect("scenes watch the server").process;
        (process.cpu_cores, process.cpu_share) = (self.cores, Some(self.cores / 2.0));
        rung
    }
}

fn rungs(plants: &[Plant]) -> Vec<Rung> {
    plants.iter().map(Plant::rung).collect()
}

fn find(rungs: &[Rung], id: &str) -> Option<String> {
    conclusions(rungs).into_iter().find(|found| found.id == id).map(|found| found.text)
}

/// A conclusion is there and says this: parts with … between them.
#[track_caller]
fn check(rungs: &[Rung], id: &str, says: &str) {
    let text = find(rungs, id).expect(id);
    for part in says.split(" … ") {
        assert!(text.contains(part), "\"{part}\" is not in: {text}");
    }
}

/// A conclusion is not there.
#[track_caller]
fn silent(rungs: &[Rung], id: &str) {
    assert_eq!(find(rungs, id), None);
}

/// 1, 16, 64 and 300 updates at once, with these cores; the first does not meet the objectives.
fn sizes(cores: [f64; 4]) -> Vec<Plant> {
    const CELLS: [&[(&str, u64)]; 4] = [&[("bulk", 1)], &[("bulk", 16)], &[("bulk", 64)], &[("bulk", 300)]];
    let plant = |(at, cell): (usize, &'static [(&'static str, u64)])| Plant {
        cell,
        cores: cores[at],
        passes: at > 0,
        ..BULK
    };
    CELLS.into_iter().enumerate().map(plant).collect()
}

#[test]
fn the_cheapest_bulk_that_meets_the_objectives_is_named_with_its_cost() {
    let says = "At 200000 updates/s the cheapest bulk that meets the objectives is 64 … 0.60 cores … 1 1.95 \
         (objectives not met), 16 1.20, 300 0.80";
    check(&rungs(&sizes([1.95, 1.2, 0.6, 0.8])), "cheapest_bulk", says);
    // A cheaper one that does not meet them does not count.
    let mut plants = sizes([1.95, 1.2, 0.8, 0.6]);
    plants[3].passes = false;
    check(&rungs(&plants), "cheapest_bulk", "is 64");
    // One that fails with little CPU did not do the work, and contradicts nothing.
    let plants = sizes([0.6, 0.8, 1.2, 1.9]);
    check(&rungs(&plants), "cheapest_bulk", "is 16");
}

#[test]
fn no_bulk_is_called_cheapest_where_the_others_do_not_bear_it_out() {
    // Up and down: one of the readings is wrong.
    silent(&rungs(&sizes([1.2, 0.6, 1.4, 0.5])), "cheapest_bulk");
    silent(&rungs(&sizes([1.95, 1.2, 0.6, 0.8])[2..]), "cheapest_bulk");
    let mut none = sizes([1.95, 1.2, 0.6, 0.8]);
    none.iter_mut().for_each(|plant| plant.passes = false);
    silent(&rungs(&none), "cheapest_bulk");
    let mut spoiled = rungs(&sizes([1.95, 1.2, 0.6, 0.8]));
    spoiled.iter_mut().for_each(|rung| rung.verdict = Verdict::GeneratorLimited);
    silent(&spoiled, "cheapest_bulk");
}

#[test]
fn a_load_that_was_held_twice_counts_only_where_both_agree() {
    let mut plants = sizes([1.95, 1.2, 0.6, 0.8]);
    plants.extend(sizes([1.95, 1.2, 1.0, 0.8]));
    // Without 64, whose two readings differ, 300 is the cheapest of three.
    check(&rungs(&plants), "cheapest_bulk", "is 300");
}

#[test]
fn it_is_said_up_to_which_bulk_the_cpu_is_full() {
    let says = "is reached with bulks of 16 and fewer; 64 take 60 %";
    check(&rungs(&sizes([1.95, 1.85, 1.2, 0.8])), "cpu_full_by_bulk", says);
    silent(&rungs(&sizes([1.7, 1.6, 1.2, 0.8])), "cpu_full_by_bulk");
    silent(&rungs(&sizes([1.2, 1.9, 1.2, 0.8])), "cpu_full_by_bulk");
}

fn loads(cores: [f64; 4]) -> Vec<Rung> {
    let plant = |(at, cores): (usize, f64)| {
        Plant { unit: LoadUnit::Requests, load: 1_000.0 * (at + 1) as f64, cores, ..BULK }.rung()
    };
    cores.into_iter().enumerate().map(plant).collect()
}

#[test]
fn it_is_said_at_which_load_the_cpu_is_full() {
    // 80 % at one load and 100 % at the next: 90 % lies in the middle.
    check(&loads([0.8, 1.6, 2.0, 2.0]), "cpu_full", "is reached at about 2500 req/s");
    check(
        &loads([0.8, 1.2, 1.6, 2.0]),
        "cpu_full",
        "90 % of the server's CPU is reached at about 3500 req/s",
    );
    // Never full, not rising, or not staying.
    silent(&loads([0.4, 0.8, 1.2, 1.6]), "cpu_full");
    silent(&loads([0.8, 0.6, 1.6, 2.0]), "cpu_full");
    silent(&loads([0.4, 0.8, 1.9, 1.0]), "cpu_full");
}

fn requesters(rates: [f64; 3]) -> Vec<Rung> {
    let plant = |(load, rate_per_s)| Plant { unit: LoadUnit::Requesters, load, rate_per_s, ..BULK }.rung();
    [1.0, 4.0, 16.0].into_iter().zip(rates).map(plant).collect()
}

#[test]
fn one_user_with_many_requests_is_named_where_more_users_get_much_more() {
    let says = "One user with many requests gets 1000 responses/s … 16 users get 9000 (9.0 times as many)";
    check(&requesters([1_000.0, 3_900.0, 9_000.0]), "one_user", says);
    silent(&requesters([1_000.0, 1_100.0, 1_200.0]), "one_user");
    // A single rung may be an outlier.
    silent(&requesters([1_000.0, 1_100.0, 9_000.0]), "one_user");
    silent(&requesters([1_000.0, 3_900.0, 9_000.0])[1..], "one_user");
}

/// One request, ten and a hundred on a connection, at these rates.
fn visits(rates: [f64; 3], cores: [f64; 3]) -> Vec<Rung> {
    const CELLS: [&[(&str, u64)]; 3] =
        [&[("requests_per_bot", 1)], &[("requests_per_bot", 10)], &[("requests_per_bot", 100)]];
    let plant = |((cell, rate_per_s), cores)| {
        Plant { unit: LoadUnit::Requesters, load: 16.0, cell, rate_per_s, cores, passes: true }.rung()
    };
    CELLS.into_iter().zip(rates).zip(cores).map(plant).collect()
}

#[test]
fn users_with_one_request_each_pay_for_connections_where_every_comparison_says_so() {
    let says = "Many users with one request each pay for their connections … instead of 100 requests on a connection \
         … 2000 responses/s come instead of 8000 (75 % fewer) … 3.2 times the CPU";
    check(&visits([2_000.0, 6_000.0, 8_000.0], [0.8, 0.9, 1.0]), "connections_cost", says);
    // They cost nothing, or one comparison contradicts the other, or there is only one.
    silent(&visits([8_000.0, 8_000.0, 8_100.0], [1.0, 1.0, 1.0]), "connections_cost");
    silent(&visits([6_000.0, 5_000.0, 8_000.0], [0.6, 1.0, 1.0]), "connections_cost");
    silent(&visits([2_000.0, 6_000.0, 8_000.0], [0.8, 0.9, 1.0])[..2], "connections_cost");
}

#[test]
fn at_a_fixed_rate_the_cpu_alone_tells_what_connections_cost() {
    let mut fixed = visits([1_000.0; 3], [0.9, 0.4, 0.3]);
    fixed.iter_mut().for_each(|rung| rung.load_unit = LoadUnit::Requests);
    check(&fixed, "connections_cost", "3.0 times the CPU");
}

#[test]
fn a_server_with_ticks_is_spoken_of_elsewhere() {
    let mut rungs = requesters([1_000.0, 3_900.0, 9_000.0]);
    let trial = TrialBuilder::polling(1.0).build();
    let ticks = rung(&trial, &judge(&trial, None, &Criteria::default())).ticks;
    rungs.iter_mut().for_each(|rung| rung.ticks = ticks.clone());
    silent(&rungs, "one_user");
}
