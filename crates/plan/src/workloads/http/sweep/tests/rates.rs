use super::*;

#[test]
fn another_loop_has_another_ceiling() {
    let rungs = Plant { tick_hz: 20.0, slots: 7.0, queue: 11.0, ..plant() }.rungs();
    check(&rungs, "base_rate", "gets 20.0/s responses: one request per tick of 20.0/s ticks");
    check(&rungs, "ceiling", "more than 140.0/s … 7 requests per tick at 20.0/s … 7 slots");
    check(&rungs, "best_requesters", "7 requesters reach");
    check(&rungs, "failures", "begin at 12 requesters");
    let one_slot = Plant { slots: 1.0, ..plant() }.rungs();
    check(&one_slot, "ceiling", "30.0/s responses: one request per tick");
}

#[test]
fn a_requester_that_gets_less_than_a_tick_is_told_apart() {
    let mut rungs = plant().rungs();
    let slow = |rung: &Rung| {
        rung.load == 1.0 && is(rung, "service", "object") && is(rung, "priority", "below-normal")
    };
    edited(&mut rungs, slow, |rung| rung.rate_per_s = 17.5);
    let says = "one request per tick of 30.0/s ticks in … The base rate of one requester is not firm in object · \
         foreground · below-normal: 17.5/s was measured once, but the ticks are 30.0/s, and 2 requesters get \
         30.0/s each.";
    check(&rungs, "base_rate", says);
    silent(&rungs, "super_linear");
    check(&rungs, "never_super_linear", "at most 1.00");
    // A loop that was late with a single requester was delayed by something else.
    edited(&mut rungs, slow, |rung| {
        if let Some(ticks) = &mut rung.ticks {
            ticks.late_share = Some(0.6);
        }
    });
    check(&rungs, "base_rate", "and 2 more.");
    silent(&rungs, "super_linear");
    rungs.retain(|rung| rung.load > 1.0);
    silent(&rungs, "base_rate");
    silent(&rungs, "linearity");
    silent(&rungs, "never_super_linear");
}

#[test]
fn a_rate_that_still_rises_has_no_ceiling() {
    let rising = Plant { loads: (1..=10).collect(), ..plant() };
    let background: Vec<Planted> = six_cells().into_iter().filter(|cell| cell.draw_ms < 2.0).collect();
    let rungs = Plant { cells: background.clone(), ..rising }.rungs();
    silent(&rungs, "ceiling");
    silent(&rungs, "best_requesters");
    // 50 and 51 requesters differ by less than a plateau may.
    let near = Plant { slots: 100.0, queue: 200.0, loads: vec![1, 10, 50, 51], cells: background, ..plant() };
    silent(&near.rungs(), "ceiling");
}

#[test]
fn slots_are_claimed_of_whole_numbers_and_of_ticks_with_time_left_only() {
    let one = vec![cell("root", "background", "normal")];
    let at = |slots: f64| Plant { slots, cells: one.clone(), ..plant() }.rungs();
    check(&at(10.4), "ceiling", "312.0/s … no whole slots");
    assert_eq!(find(&at(10.4), "ceiling").unwrap().evidence["slots"], Value::Null);
    check(&at(9.9), "ceiling", "297.0/s … 10 slots");
    // 24 ms of drawing leave room for three answers of 2.9 ms: whole, but no slots.
    let mut full = cell("object", "foreground", "normal");
    full.cost_ms = 2.88;
    let full = Plant { cells: vec![full], ..plant() }.rungs();
    check(&full, "ceiling", "the ticks are … busy: there is no time left for more");
    // Six requesters that get three per tick do not fill slots.
    let mut early = at(10.0);
    edited(&mut early, |_| true, |rung| rung.rate_per_s = 120.0);
    check(&early, "ceiling", "no whole slots");
}

#[test]
fn a_rung_that_was_not_tried_is_not_called_the_best() {
    let rungs = Plant { loads: vec![1, 5, 12, 14], ..plant() }.rungs();
    check(&rungs, "best_requesters", "12 requesters reach … between 5 and 12 none were tried");
}

#[test]
fn one_slow_requester_alone_makes_no_speed_up_super_linear() {
    // As observed: 19.0/s from one hold of 3 s, where the ticks are 30.0/s and two requesters get 60.0/s.
    let mut rungs = one_cell().rungs();
    edited(&mut rungs, |rung| rung.load == 1.0, |rung| (rung.rate_per_s, rung.hold_s) = (19.0, 3.0));
    for id in ["super_linear", "never_super_linear", "linearity"] {
        silent(&rungs, id);
    }
    check(&rungs, "base_rate", "The base rate of one requester is not firm: 19.0/s was measured once");
    let evidence = find(&rungs, "base_rate").unwrap().evidence;
    assert_eq!((&evidence["rate_per_s"], &evidence["cells"][0]["agrees_with"]), (&Value::Null, &Value::Null));
    // Held again with the same rate it is the rate of one requester, and so the others are super-linear.
    let again = rungs[0].clone();
    rungs.push(again);
    check(&rungs, "super_linear", "super-linear at n = 2 … 3.16");
    assert_eq!(find(&rungs, "base_rate").unwrap().evidence["cells"][0]["agrees_with"], "repeat");
    // Held again with another rate it is no evidence at all.
    rungs.last_mut().unwrap().rate_per_s = 30.0;
    silent(&rungs, "base_rate");
    silent(&rungs, "super_linear");
}

#[test]
fn a_base_is_firm_by_the_ticks_by_its_neighbours_or_by_another_cell() {
    let agrees_with =
        |rungs: &[Rung]| find(rungs, "base_rate").unwrap().evidence["cells"][0]["agrees_with"].clone();
    let alone = vec![cell("root", "background", "normal")];
    let mut rungs = Plant { cells: alone.clone(), ..plant() }.rungs();
    assert_eq!(agrees_with(&rungs), "ticks");
    edited(&mut rungs, |rung| rung.load <= 3.0, |rung| rung.rate_per_s = 21.0 * rung.load);
    assert_eq!(agrees_with(&rungs), "neighbours");
    check(&rungs, "base_rate", "gets 21.0/s responses, which is not one per tick (30.0/s)");
    // One of the two neighbours is not enough.
    edited(&mut rungs, |rung| rung.load == 3.0, |rung| rung.rate_per_s = 90.0);
    assert_eq!(agrees_with(&rungs), Value::Null);
    let two = vec![cell("root", "background", "normal"), cell("pilot", "background", "normal")];
    let mut rungs = Plant { cells: two, ..plant() }.rungs();
    edited(&mut rungs, |rung| rung.load == 1.0, |rung| rung.rate_per_s = 21.0);
    assert_eq!(agrees_with(&rungs), "other cells");
}

#[test]
fn more_than_its_share_on_two_neighbouring_rungs_is_super_linear_and_on_one_alone_is_nothing() {
    let gains = |factor: f64, loads: &'static [f64]| {
        let mut rungs = plant().rungs();
        let which = move |rung: &Rung| loads.contains(&rung.load) && is(rung, "view", "background");
        edited(&mut rungs, which, |rung| rung.rate_per_s *= factor);
        rungs
    };
    check(&gains(1.12, &[4.0, 5.0]), "super_linear", "super-linear at n = 4 … 4.48");
    silent(&gains(1.12, &[4.0, 5.0]), "never_super_linear");
    for loads in [&[4.0] as &[f64], &[4.0, 6.0]] {
        silent(&gains(1.12, loads), "super_linear");
        silent(&gains(1.12, loads), "never_super_linear");
    }
    silent(&gains(1.06, &[4.0, 5.0]), "super_linear");
    check(&gains(1.06, &[4.0, 5.0]), "never_super_linear", "at most 1.06");
}

#[test]
fn one_spoiled_rung_does_not_bend_a_line_but_two_neighbours_do() {
    let bent = |loads: &'static [f64]| {
        let mut rungs = one_cell().rungs();
        edited(&mut rungs, move |rung| loads.contains(&rung.load), |rung| rung.rate_per_s *= 0.85);
        rungs
    };
    check(&bent(&[6.0]), "linearity", "linear up to 10 requesters: 10.00 with 10; but 5.10 with 6.");
    check(&bent(&[6.0, 7.0]), "linearity", "It is not linear: 10.00 with 10");
    check(&bent(&[9.0, 10.0]), "linearity", "It is not linear: 8.50 with 10");
    // Two that are apart, or the last alone, prove neither.
    silent(&bent(&[6.0, 8.0]), "linearity");
    silent(&bent(&[10.0]), "linearity");
    // The ceiling is reached with 11 then, but slots are filled by ten.
    check(&bent(&[10.0]), "best_requesters", "11 requesters reach");
    // The last alone, held twice.
    let mut twice = bent(&[10.0]);
    let again = twice.iter().find(|rung| rung.load == 10.0).unwrap().clone();
    twice.push(again);
    check(&twice, "linearity", "It is not linear: 8.50 with 10");
}
