use super::*;

#[test]
fn failures_are_named_where_they_begin_and_only_where_there_are_some() {
    check(&Plant { queue: 99.0, ..plant() }.rungs(), "failures", None);
    let mut rungs = plant().rungs();
    let earlier =
        |rung: &Rung| rung.load == 11.0 && is(rung, "service", "object") && is(rung, "view", "background");
    edited(&mut rungs, earlier, |rung| {
        rung.connections.counts.failed = BTreeMap::from([("refused".to_owned(), 2)])
    });
    let says = [
        "begin at 11 requesters in object · background · normal (none failed up to 10).",
        "In 5 other cells they begin at 15 requesters",
    ];
    check(&rungs, "failures", Some(&says));
    let all_fail = Plant { queue: 0.0, ..plant() }.rungs();
    check(&all_fail, "failures", Some(&["begin at 1 requester in all 6 cells (fewer were not tried)"]));
}

#[test]
fn frames_that_miss_a_few_or_come_back_have_not_dropped() {
    let with_frames = |share: f64, from: f64, to: f64| {
        let cells = vec![cell("root", "background", "normal"), cell("object", "background", "normal")];
        let mut rungs = Plant { cells, ..plant() }.rungs();
        let which = move |rung: &Rung| is(rung, "service", "object") && (from..=to).contains(&rung.load);
        edited(&mut rungs, which, |rung| {
            rung.frames = Some(FrameFigures { rate_per_s: 30.0 * share, due: None, drawn: 1 });
        });
        rungs
    };
    check(&with_frames(0.92, 5.0, 16.0), "frames_drop", None);
    check(&with_frames(0.5, 5.0, 9.0), "frames_drop", None);
    check(&with_frames(0.5, 16.0, 16.0), "frames_drop", None);
    check(
        &with_frames(0.85, 9.0, 16.0),
        "frames_drop",
        Some(&["in object from 9 requesters on: 25.5/s of 30.0/s"]),
    );
    let mut untold = with_frames(0.5, 5.0, 16.0);
    untold.iter_mut().for_each(|rung| rung.frames = None);
    check(&untold, "frames_drop", None);
    check(&untold, "short_answers", None);
}

#[test]
fn responses_that_are_somewhat_fewer_have_not_collapsed() {
    let at_share = |share: f64| {
        let cells = vec![cell("root", "background", "normal"), cell("object", "background", "normal")];
        let mut rungs = Plant { cells, ..plant() }.rungs();
        let which = |rung: &Rung| is(rung, "service", "object") && rung.load >= 8.0;
        edited(&mut rungs, which, |rung| rung.rate_per_s *= share);
        rungs
    };
    check(&at_share(0.8), "responses_collapse", None);
    check(&at_share(0.7), "responses_collapse", Some(&["in object from 8 requesters on", "where root gets"]));
    let mut once = at_share(1.0);
    edited(
        &mut once,
        |rung| is(rung, "service", "object") && rung.load == 14.0,
        |rung| rung.rate_per_s *= 0.3,
    );
    check(&once, "responses_collapse", None);
    // A single cell has nothing to fall behind.
    let alone = Plant { cells: vec![cell("object", "foreground", "normal")], ..plant() }.rungs();
    check(&alone, "responses_collapse", None);
}

#[test]
fn short_answers_are_acquitted_only_where_long_ones_do_harm_and_they_do_not() {
    let background: Vec<Planted> = six_cells().into_iter().filter(|cell| cell.draw_ms < 2.0).collect();
    check(&Plant { cells: background, ..plant() }.rungs(), "short_answers", None);
    let mut rungs = plant().rungs();
    let which =
        |rung: &Rung| is(rung, "service", "root") && is(rung, "priority", "below-normal") && rung.load > 5.0;
    edited(&mut rungs, which, |rung| {
        rung.frames = Some(FrameFigures { rate_per_s: 12.0, due: None, drawn: 1 });
    });
    check(&rungs, "short_answers", None);
    let mut medium = plant();
    medium.cells.iter_mut().for_each(|cell| cell.bytes = cell.bytes.clamp(2_400.0, 3_000.0));
    check(&medium.rungs(), "short_answers", None);
    check(&medium.rungs(), "cost_of_long_answers", None);
}

#[test]
fn long_answers_that_cost_nothing_are_not_said_to() {
    let mut cells = vec![cell("root", "background", "normal"), cell("object", "background", "normal")];
    (cells[1].cpu_share, cells[1].cost_ms) = (0.05, 0.15);
    let free = Plant { cells: cells.clone(), ..plant() }.rungs();
    check(&free, "cost_of_long_answers", None);
    cells[1].cpu_share = 0.09;
    let costly = Plant { cells, ..plant() }.rungs();
    check(&costly, "cost_of_long_answers", Some(&["9 % of the CPU against 2 %"]));
}
