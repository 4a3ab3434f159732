use super::*;

/// Short answers and long ones, with nothing drawn.
fn short_and_long() -> Plant {
    Plant {
        cells: vec![cell("root", "background", "normal"), cell("object", "background", "normal")],
        ..plant()
    }
}

#[test]
fn failures_are_named_where_they_begin_and_only_where_there_are_some() {
    silent(&Plant { queue: 99.0, ..plant() }.rungs(), "failures");
    let mut rungs = plant().rungs();
    let earlier =
        |rung: &Rung| rung.load == 11.0 && is(rung, "service", "object") && is(rung, "view", "background");
    edited(&mut rungs, earlier, |rung| {
        rung.connections.counts.failed = BTreeMap::from([("refused".to_owned(), 2)])
    });
    let says = "begin at 11 requesters in object · background · normal (none failed up to 10). … In 5 other cells \
         they begin at 15 requesters";
    check(&rungs, "failures", says);
    let all_fail = Plant { queue: 0.0, ..plant() }.rungs();
    check(&all_fail, "failures", "begin at 1 requester in all 6 cells (fewer were not tried)");
}

#[test]
fn frames_that_miss_a_few_or_come_back_have_not_dropped() {
    let with_frames = |share: f64, from: f64, to: f64| {
        let mut rungs = short_and_long().rungs();
        let which = move |rung: &Rung| is(rung, "service", "object") && (from..=to).contains(&rung.load);
        edited(&mut rungs, which, |rung| {
            rung.frames = Some(FrameFigures { rate_per_s: 30.0 * share, due: None, drawn: 1 });
        });
        rungs
    };
    silent(&with_frames(0.92, 5.0, 16.0), "frames_drop");
    silent(&with_frames(0.5, 5.0, 9.0), "frames_drop");
    silent(&with_frames(0.5, 16.0, 16.0), "frames_drop");
    check(&with_frames(0.85, 9.0, 16.0), "frames_drop", "in object from 9 requesters on: 25.5/s of 30.0/s");
    let mut untold = with_frames(0.5, 5.0, 16.0);
    untold.iter_mut().for_each(|rung| rung.frames = None);
    silent(&untold, "frames_drop");
    silent(&untold, "short_answers");
}

#[test]
fn responses_that_are_somewhat_fewer_have_not_collapsed() {
    let at_share = |share: f64| {
        let mut rungs = short_and_long().rungs();
        let which = |rung: &Rung| is(rung, "service", "object") && rung.load >= 8.0;
        edited(&mut rungs, which, |rung| rung.rate_per_s *= share);
        rungs
    };
    silent(&at_share(0.8), "responses_collapse");
    check(&at_share(0.7), "responses_collapse", "in object from 8 requesters on … where root gets");
    let mut once = at_share(1.0);
    edited(
        &mut once,
        |rung| is(rung, "service", "object") && rung.load == 14.0,
        |rung| rung.rate_per_s *= 0.3,
    );
    silent(&once, "responses_collapse");
    // A single cell has nothing to fall behind.
    let alone = Plant { cells: vec![cell("object", "foreground", "normal")], ..plant() }.rungs();
    silent(&alone, "responses_collapse");
}

#[test]
fn short_answers_are_acquitted_only_where_long_ones_do_harm_and_they_do_not() {
    let background: Vec<Planted> = six_cells().into_iter().filter(|cell| cell.draw_ms < 2.0).collect();
    silent(&Plant { cells: background, ..plant() }.rungs(), "short_answers");
    let mut rungs = plant().rungs();
    let which =
        |rung: &Rung| is(rung, "service", "root") && is(rung, "priority", "below-normal") && rung.load > 5.0;
    edited(&mut rungs, which, |rung| {
        rung.frames = Some(FrameFigures { rate_per_s: 12.0, due: None, drawn: 1 });
    });
    silent(&rungs, "short_answers");
    // Neither answers of 2.4 kB are short nor those of 3 kB long.
    for (least, most) in [(2_400.0, 9_000.0), (0.0, 3_000.0)] {
        let mut medium = plant();
        medium.cells.iter_mut().for_each(|cell| cell.bytes = cell.bytes.clamp(least, most));
        silent(&medium.rungs(), "short_answers");
        silent(&medium.rungs(), "cost_of_long_answers");
    }
}

#[test]
fn long_answers_that_cost_nothing_are_not_said_to() {
    let mut cells = short_and_long().cells;
    (cells[1].cpu_share, cells[1].cost_ms) = (0.05, 0.15);
    let free = Plant { cells: cells.clone(), ..plant() }.rungs();
    silent(&free, "cost_of_long_answers");
    cells[1].cpu_share = 0.09;
    let costly = Plant { cells, ..plant() }.rungs();
    check(&costly, "cost_of_long_answers", "9 % of the CPU against 2 %");
}
