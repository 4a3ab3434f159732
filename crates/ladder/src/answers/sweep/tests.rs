use proptest::prelude::*;

use super::*;
use crate::answers::rung;
use crate::contract::FrameFigures;
use crate::judge::{Terms, judge};
use crate::scene::Scene;

/// A loop as it is planted: what it gives follows from these figures alone, without noise.
#[derive(Clone)]
struct Plant {
    tick_hz: f64,
    slots: f64,
    queue: f64,
    loads: Vec<u32>,
    cells: Vec<Planted>,
}

#[derive(Clone)]
struct Planted {
    names: BTreeMap<String, String>,
    bytes: f64,
    cost_ms: f64,
    draw_ms: f64,
    /// answers go before the frame
    yields: bool,
    cpu_share: f64,
}

fn cell(service: &str, view: &str, priority: &str) -> Planted {
    let names = [("service", service), ("view", view), ("priority", priority)]
        .map(|(axis, value)| (axis.to_owned(), value.to_owned()));
    let is_long = service == "object";
    Planted {
        names: names.into(),
        bytes: if is_long { 8_200.0 } else { 700.0 },
        cost_ms: if is_long { 2.4 } else { 0.1 },
        draw_ms: if view == "foreground" { 24.0 } else { 1.0 },
        yields: priority == "below-normal",
        cpu_share: if is_long { 0.4 } else { 0.02 },
    }
}

fn six_cells() -> Vec<Planted> {
    let mut cells = Vec::new();
    for (view, priority) in
        [("background", "normal"), ("foreground", "normal"), ("foreground", "below-normal")]
    {
        cells.extend(["root", "object"].map(|service| cell(service, view, priority)));
    }
    cells
}

fn plant() -> Plant {
    Plant { tick_hz: 30.0, slots: 10.0, queue: 14.0, loads: (1..=16).collect(), cells: six_cells() }
}

impl Plant {
    fn rungs(&self) -> Vec<Rung> {
        let empty = pattern();
        let of_cell = |cell: &Planted| -> Vec<Rung> {
            self.loads.iter().map(|&load| self.rung(cell, f64::from(load), empty.clone())).collect()
        };
        self.cells.iter().flat_map(of_cell).collect()
    }

    fn rung(&self, cell: &Planted, load: f64, mut rung: Rung) -> Rung {
        let period_ms = 1e3 / self.tick_hz;
        let room_ms = 0.98 * period_ms - if cell.yields { 0.0 } else { cell.draw_ms };
        let per_tick = load.min(self.slots).min(room_ms / cell.cost_ms);
        let answers_ms = per_tick * cell.cost_ms;
        let drawn = ((0.98 * period_ms - answers_ms) / cell.draw_ms).clamp(0.0, 1.0);
        (rung.load, rung.hold_s, rung.cell) = (load, 2.0, Some(cell.names.clone()));
        rung.rate_per_s = per_tick * self.tick_hz;
        rung.bytes_per_s = Some(rung.rate_per_s * cell.bytes);
        rung.frames = Some(FrameFigures { rate_per_s: drawn * self.tick_hz, due: Some(60), drawn: 60 });
        if let Some(service) = &mut rung.service_ns {
            service.mean = Some(load / rung.rate_per_s * 1e9);
        }
        if let Some(ticks) = &mut rung.ticks {
            ticks.period_ns = (period_ms * 1e6) as u64;
            ticks.busy_ns = rung.service_ns.clone();
            if let Some(busy) = &mut ticks.busy_ns {
                busy.mean = Some((answers_ms + drawn * cell.draw_ms) * 1e6);
            }
        }
        if let Some(subject) = &mut rung.subject {
            subject.process.cpu_share = Some(cell.cpu_share);
        }
        if load > self.queue {
            (rung.failed, rung.verdict) = (8, Verdict::Fail);
            rung.error_samples = vec![ErrorSample {
                cause: "rejected (429, 503)".to_owned(),
                text: "GET /: status 503".to_owned(),
            }];
        }
        rung
    }
}

/// A rung of requesters with everything told, to be written over.
fn pattern() -> Rung {
    let trial = Scene { hold_s: 2, ..Scene::polling(1.0) }.build();
    let terms = Terms { objectives: vec!["errors == 0".parse().unwrap()], ..Terms::default() };
    let judgement = judge(&trial, None, &terms);
    rung(&trial, &judgement)
}

fn ids(rungs: &[Rung]) -> Vec<String> {
    sweep(rungs).into_iter().map(|found| found.id).collect()
}

fn find(rungs: &[Rung], id: &str) -> Option<Conclusion> {
    sweep(rungs).into_iter().find(|found| found.id == id)
}

/// The one check: a conclusion is there and says this, or is not there.
#[track_caller]
fn check(rungs: &[Rung], id: &str, says: Option<&[&str]>) {
    let found = find(rungs, id);
    let text = found.as_ref().map(|found| found.text.as_str());
    match (text, says) {
        (Some(text), Some(parts)) => {
            parts.iter().for_each(|part| assert!(text.contains(part), "\"{part}\" is not in: {text}"));
        }
        (None, None) => {}
        (found, _) => panic!("{id}: {found:?}"),
    }
}

fn edited(rungs: &mut [Rung], which: impl Fn(&Rung) -> bool, edit: impl Fn(&mut Rung)) {
    let mut count = 0;
    for rung in rungs.iter_mut() {
        if which(rung) {
            edit(rung);
            count += 1;
        }
    }
    assert!(count > 0, "nothing was edited");
}

fn is(rung: &Rung, axis: &str, value: &str) -> bool {
    rung.cell.as_ref().is_some_and(|cell| cell.get(axis).is_some_and(|found| found == value))
}

#[test]
fn the_published_sweep_is_found_again() {
    let rungs = plant().rungs();
    assert_eq!(
        ids(&rungs),
        [
            "base_rate",
            "ceiling",
            "best_requesters",
            "linearity",
            "never_super_linear",
            "failures",
            "frames_drop",
            "responses_collapse",
            "short_answers",
            "cost_of_long_answers",
        ]
    );
    let one = "One requester gets 30.0/s responses: one request per tick of 30.0/s ticks in all 6 cells.";
    check(&rungs, "base_rate", Some(&[one]));
    let most = "Nothing gets more than 300.0/s responses: 10 requests per tick at 30.0/s (tick quantisation, 10 slots); \
                10 to 16 requesters all get that.";
    check(&rungs, "ceiling", Some(&[most]));
    let best = "10 requesters reach 99 % of the ceiling; 14 requesters get 300.0/s, which is no more, and wait 46.7 ms \
                instead of 33.3 ms.";
    check(&rungs, "best_requesters", Some(&[best]));
    let pays = [
        "linear up to 10 requesters in root · background",
        "10.00 with 10",
        "not linear in object · foreground · normal: 3.61 with 10",
    ];
    check(&rungs, "linearity", Some(&pays));
    check(&rungs, "never_super_linear", Some(&["never super-linear", "at most 1.00 of it"]));
    let gives = "Failures begin at 15 requesters in all 6 cells (none failed up to 14); the first: rejected (429, 503): \
                 GET /: status 503.";
    check(&rungs, "failures", Some(&[gives]));
    let drops = [
        "Frames drop in object · foreground · below-normal from 5 requesters on: 25.8/s of 30.0/s, 10.8/s with 16",
        "its responses stay at 300.0/s there",
        "with priority normal or service root they keep their frames",
    ];
    check(&rungs, "frames_drop", Some(&drops));
    let falls = [
        "Responses collapse in object · foreground · normal from 5 requesters on: 108.3/s with 10, where \
         object · background · normal gets 300.0/s",
        "the frames stay at 30.0/s",
    ];
    check(&rungs, "responses_collapse", Some(&falls));
    let short = [
        "Short answers do neither.",
        "root · foreground · normal (700 B) gets 300.0/s and keeps 30.0/s frames with 14 requesters, \
                  where object · foreground · normal (8.2 kB) does not.",
    ];
    check(&rungs, "short_answers", Some(&short));
    let costs = [
        "object · foreground · normal (8.2 kB) beside root · foreground · normal (700 B), with 10 requesters: 108.3/s against \
                  300.0/s, 92.3 ms against 33.3 ms, 40 % of the CPU against 2 %.",
    ];
    check(&rungs, "cost_of_long_answers", Some(&costs));
}

#[test]
fn every_conclusion_names_its_figures() {
    for found in sweep(&plant().rungs()) {
        assert!(!found.evidence.is_empty(), "{}", found.id);
    }
    let ceiling = find(&plant().rungs(), "ceiling").unwrap().evidence;
    assert_eq!((&ceiling["slots"], &ceiling["cause"]), (&json!(10), &json!("tick quantisation")));
    let linearity = find(&plant().rungs(), "linearity").unwrap().evidence;
    assert_eq!(linearity["cells"][0]["speed_ups"][8], json!([10.0, 10.0]));
    assert_eq!(find(&plant().rungs(), "failures").unwrap().evidence["requesters"], 15.0);
}

#[test]
fn another_loop_has_another_ceiling() {
    let rungs = Plant { tick_hz: 20.0, slots: 7.0, queue: 11.0, ..plant() }.rungs();
    check(&rungs, "base_rate", Some(&["gets 20.0/s responses: one request per tick of 20.0/s ticks"]));
    check(&rungs, "ceiling", Some(&["more than 140.0/s", "7 requests per tick at 20.0/s", "7 slots"]));
    check(&rungs, "best_requesters", Some(&["7 requesters reach"]));
    check(&rungs, "failures", Some(&["begin at 12 requesters"]));
    let one_slot = Plant { slots: 1.0, ..plant() }.rungs();
    check(&one_slot, "ceiling", Some(&["30.0/s responses: one request per tick"]));
}

#[test]
fn a_requester_that_gets_less_than_a_tick_is_told_apart() {
    let mut rungs = plant().rungs();
    let slow = |rung: &Rung| {
        rung.load == 1.0 && is(rung, "service", "object") && is(rung, "priority", "below-normal")
    };
    edited(&mut rungs, slow, |rung| rung.rate_per_s = 17.5);
    let says = [
        "one request per tick of 30.0/s ticks in",
        "The base rate of one requester is not firm in object · foreground · below-normal: 17.5/s was measured once, but the \
         ticks are 30.0/s, and 2 requesters get 30.0/s each.",
    ];
    check(&rungs, "base_rate", Some(&says));
    check(&rungs, "super_linear", None);
    check(&rungs, "never_super_linear", Some(&["at most 1.00"]));
    // A loop that was late with a single requester was kept by something else.
    edited(&mut rungs, slow, |rung| {
        if let Some(ticks) = &mut rung.ticks {
            ticks.late_share = Some(0.6);
        }
    });
    check(&rungs, "base_rate", Some(&["and 2 more."]));
    check(&rungs, "super_linear", None);
    rungs.retain(|rung| rung.load > 1.0);
    check(&rungs, "base_rate", None);
    check(&rungs, "linearity", None);
    check(&rungs, "never_super_linear", None);
}

#[test]
fn a_rate_that_still_rises_has_no_ceiling() {
    let rising = Plant { loads: (1..=10).collect(), ..plant() };
    let background: Vec<Planted> = six_cells().into_iter().filter(|cell| cell.draw_ms < 2.0).collect();
    let rungs = Plant { cells: background.clone(), ..rising }.rungs();
    check(&rungs, "ceiling", None);
    check(&rungs, "best_requesters", None);
    // 50 and 51 requesters differ by less than a plateau may.
    let near = Plant { slots: 100.0, queue: 200.0, loads: vec![1, 10, 50, 51], cells: background, ..plant() };
    check(&near.rungs(), "ceiling", None);
}

#[test]
fn slots_are_claimed_of_whole_numbers_and_of_ticks_with_time_left_only() {
    let one = vec![cell("root", "background", "normal")];
    let at = |slots: f64| Plant { slots, cells: one.clone(), ..plant() }.rungs();
    check(&at(10.4), "ceiling", Some(&["312.0/s", "no whole slots"]));
    assert_eq!(find(&at(10.4), "ceiling").unwrap().evidence["slots"], Value::Null);
    check(&at(9.9), "ceiling", Some(&["297.0/s", "10 slots"]));
    // 24 ms of drawing leave room for three answers of 2.9 ms: whole, but no slots.
    let mut full = cell("object", "foreground", "normal");
    full.cost_ms = 2.88;
    let full = Plant { cells: vec![full], ..plant() }.rungs();
    check(&full, "ceiling", Some(&["the ticks are", "busy: there is no time left for more"]));
    // Six requesters that get three per tick do not fill slots.
    let mut early = at(10.0);
    edited(&mut early, |_| true, |rung| rung.rate_per_s = 120.0);
    check(&early, "ceiling", Some(&["no whole slots"]));
}

#[test]
fn a_rung_that_was_not_tried_is_not_called_the_best() {
    let rungs = Plant { loads: vec![1, 5, 12, 14], ..plant() }.rungs();
    check(&rungs, "best_requesters", Some(&["12 requesters reach", "between 5 and 12 none were tried"]));
}

#[test]
fn one_slow_requester_alone_makes_no_speed_up_super_linear() {
    // As it was met: 19.0/s from one hold of 3 s, where the ticks are 30.0/s and two requesters get 60.0/s.
    let mut rungs = Plant { cells: vec![cell("root", "background", "normal")], ..plant() }.rungs();
    edited(&mut rungs, |rung| rung.load == 1.0, |rung| (rung.rate_per_s, rung.hold_s) = (19.0, 3.0));
    for id in ["super_linear", "never_super_linear", "linearity"] {
        check(&rungs, id, None);
    }
    check(
        &rungs,
        "base_rate",
        Some(&["The base rate of one requester is not firm: 19.0/s was measured once"]),
    );
    let evidence = find(&rungs, "base_rate").unwrap().evidence;
    assert_eq!((&evidence["rate_per_s"], &evidence["cells"][0]["agrees_with"]), (&Value::Null, &Value::Null));
    // Held again with the same rate it is what one requester gets, and so the others are super-linear.
    let again = rungs[0].clone();
    rungs.push(again);
    check(&rungs, "super_linear", Some(&["super-linear at n = 2", "3.16"]));
    assert_eq!(find(&rungs, "base_rate").unwrap().evidence["cells"][0]["agrees_with"], "repeat");
    // Held again with another rate it is no evidence at all.
    rungs.last_mut().unwrap().rate_per_s = 30.0;
    check(&rungs, "base_rate", None);
    check(&rungs, "super_linear", None);
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
    check(&rungs, "base_rate", Some(&["gets 21.0/s responses, which is not one per tick (30.0/s)"]));
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
    check(&gains(1.12, &[4.0, 5.0]), "super_linear", Some(&["super-linear at n = 4", "4.48"]));
    check(&gains(1.12, &[4.0, 5.0]), "never_super_linear", None);
    for loads in [&[4.0] as &[f64], &[4.0, 6.0]] {
        check(&gains(1.12, loads), "super_linear", None);
        check(&gains(1.12, loads), "never_super_linear", None);
    }
    check(&gains(1.06, &[4.0, 5.0]), "super_linear", None);
    check(&gains(1.06, &[4.0, 5.0]), "never_super_linear", Some(&["at most 1.06"]));
}

#[test]
fn one_spoiled_rung_does_not_bend_a_line_but_two_neighbours_do() {
    let bent = |loads: &'static [f64]| {
        let mut rungs = Plant { cells: vec![cell("root", "background", "normal")], ..plant() }.rungs();
        edited(&mut rungs, move |rung| loads.contains(&rung.load), |rung| rung.rate_per_s *= 0.85);
        rungs
    };
    check(&bent(&[6.0]), "linearity", Some(&["linear up to 10 requesters: 10.00 with 10; but 5.10 with 6."]));
    check(&bent(&[6.0, 7.0]), "linearity", Some(&["It is not linear: 10.00 with 10"]));
    check(&bent(&[9.0, 10.0]), "linearity", Some(&["It is not linear: 8.50 with 10"]));
    // Two that are apart, or the last alone, say neither.
    check(&bent(&[6.0, 8.0]), "linearity", None);
    check(&bent(&[10.0]), "linearity", None);
    // The ceiling is reached with 11 then, but slots are filled by ten.
    check(&bent(&[10.0]), "best_requesters", Some(&["11 requesters reach"]));
    // The last alone, held twice.
    let mut twice = bent(&[10.0]);
    let again = twice.iter().find(|rung| rung.load == 10.0).unwrap().clone();
    twice.push(again);
    check(&twice, "linearity", Some(&["It is not linear: 8.50 with 10"]));
}

#[test]
fn a_disturbed_rung_counts_only_where_undisturbed_neighbours_agree() {
    let disturbed = |loads: &'static [f64], factor: f64| {
        let mut rungs = Plant { cells: vec![cell("root", "background", "normal")], ..plant() }.rungs();
        edited(
            &mut rungs,
            move |rung| loads.contains(&rung.load),
            |rung| {
                (rung.disturbed_share, rung.rate_per_s) = (Some(0.3), rung.rate_per_s * factor);
            },
        );
        let steps = |rungs: &[Rung]| -> Vec<f64> {
            Sweep::of(rungs).cells.iter().flat_map(|cell| &cell.steps).map(|step| step.requesters).collect()
        };
        (0..16).map(|at| f64::from(at + 1)).filter(|load| !steps(&rungs).contains(load)).collect::<Vec<f64>>()
    };
    let none: [f64; 0] = [];
    // On the way up, at the knee, on the plateau; the first and the last of the rungs that nothing failed at.
    for load in [&[4.0] as &[f64], &[10.0], &[12.0], &[1.0], &[16.0], &[4.0, 5.0]] {
        assert_eq!(disturbed(load, 1.0), none, "{load:?}");
    }
    for load in [&[4.0] as &[f64], &[10.0], &[12.0], &[1.0]] {
        assert_eq!(disturbed(load, 0.8), load, "{load:?}");
        assert_eq!(disturbed(load, 1.3), load, "{load:?}");
    }
    // Where everything was disturbed the next neighbours speak: no disturbance makes rates agree.
    let mut all = plant().rungs();
    edited(&mut all, |_| true, |rung| rung.disturbed_share = Some(0.01));
    assert_eq!(ids(&all), ids(&plant().rungs()));
    edited(&mut all, |_| true, |rung| rung.rate_per_s *= 1.0 + 0.2 * (rung.load * 7.0).sin());
    assert!(!ids(&all).contains(&"linearity".to_owned()), "{:?}", ids(&all));
}

#[test]
fn a_disturbed_rung_that_fails_or_drops_frames_alone_is_no_evidence() {
    let mut rungs =
        Plant { cells: vec![cell("root", "background", "normal")], queue: 99.0, ..plant() }.rungs();
    let spoiled = |rung: &Rung| rung.load == 8.0;
    edited(&mut rungs, spoiled, |rung| (rung.disturbed_share, rung.failed) = (Some(0.5), 3));
    check(&rungs, "failures", None);
    edited(&mut rungs, spoiled, |rung| rung.disturbed_share = Some(0.0));
    check(&rungs, "failures", Some(&["begin at 8 requesters"]));
    let frames = |share: f64| Some(FrameFigures { rate_per_s: 30.0 * share, due: None, drawn: 1 });
    edited(&mut rungs, spoiled, |rung| {
        (rung.disturbed_share, rung.failed, rung.frames) = (Some(0.5), 0, frames(0.5));
    });
    assert!(Sweep::of(&rungs).cells[0].step(8.0).is_none());
}

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
    // A cell alone has nothing that it could fall behind.
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

/// A sweep of single facts and of full pages, in one state of the server.
fn facts_and_pages() -> Plant {
    let cells = vec![cell("property", "background", "normal"), cell("object", "background", "normal")];
    Plant { cells, ..plant() }
}

#[test]
fn single_facts_are_compared_with_the_page_that_holds_them_all() {
    // A loop that gives either one answer per tick and requester: nine facts after a tick on both sides.
    let rungs = facts_and_pages().rungs();
    let says = [
        "9 facts of an object: 9 requesters of property have them all in 33.3 ms (270.0/s facts, 9.0 per tick), \
         1 requester of object in 33.3 ms (270.0/s facts, 9.0 per tick). Neither is sooner; the ticks are",
    ];
    check(&rungs, "small_against_large", Some(&says));
    // Pages that take three ticks.
    let slow = Plant {
        cells: vec![cell("property", "background", "normal"), cell("object", "background", "normal")],
        ..plant()
    };
    let mut rungs = slow.rungs();
    edited(&mut rungs, |rung| is(rung, "service", "object"), |rung| rung.rate_per_s /= 3.0);
    // The base of the page is borne out by its neighbours.
    let says = [
        "property have them all in 33.3 ms",
        "object in 100 ms (90.0/s facts, 3.0 per tick). The single facts win",
    ];
    check(&rungs, "small_against_large", Some(&says));
    let evidence = find(&rungs, "small_against_large").unwrap().evidence;
    let pair = &evidence["pairs"][0];
    assert_eq!((&evidence["facts"], &pair["sooner"]), (&json!(9), &json!("property")));
    assert_eq!((&pair["small"]["facts_per_s"], &pair["large"]["facts_per_s"]), (&json!(270.0), &json!(90.0)));
    assert_eq!(pair["small"]["cell"]["service"], "property");
    assert_eq!(pair["large"]["cell"]["service"], "object");
    // A loop with three slots needs three ticks for nine single facts.
    let says = [
        "9 requesters of property have them all in 100 ms (90.0/s facts, 3.0 per tick)",
        "The full page wins",
    ];
    check(&Plant { slots: 3.0, ..facts_and_pages() }.rungs(), "small_against_large", Some(&says));
    // Four requesters ask in three rounds.
    let says = [
        "4 requesters of property have them all in 100 ms (120.0/s facts, 4.0 per tick)",
        "The full page wins",
    ];
    check(
        &Plant { loads: vec![1, 2, 3, 4], ..facts_and_pages() }.rungs(),
        "small_against_large",
        Some(&says),
    );
}

#[test]
fn nothing_is_said_of_single_facts_where_a_side_is_missing_or_not_clean() {
    // Short answers are no facts of an object, however many bytes they move.
    check(&plant().rungs(), "small_against_large", None);
    let rungs = facts_and_pages().rungs();
    let without = |which: &dyn Fn(&Rung) -> bool| {
        let mut rungs = rungs.clone();
        rungs.retain(|rung| !which(rung));
        rungs
    };
    check(&without(&|rung| is(rung, "service", "object")), "small_against_large", None);
    check(&without(&|rung| is(rung, "service", "property")), "small_against_large", None);
    check(&without(&|rung| is(rung, "service", "object") && rung.load == 1.0), "small_against_large", None);
    // In another state of the server it is another comparison.
    let cells = vec![cell("property", "background", "normal"), cell("object", "foreground", "normal")];
    check(&Plant { cells, ..plant() }.rungs(), "small_against_large", None);
    let mut failed = rungs.clone();
    edited(&mut failed, |rung| is(rung, "service", "property") && rung.load == 9.0, |rung| rung.failed = 1);
    check(&failed, "small_against_large", None);
    let mut infirm = rungs;
    edited(
        &mut infirm,
        |rung| is(rung, "service", "object") && rung.load == 1.0,
        |rung| rung.rate_per_s = 17.0,
    );
    check(&infirm, "small_against_large", None);
}

#[test]
fn rungs_that_speak_of_this_machine_are_no_evidence() {
    let mut rungs = plant().rungs();
    edited(&mut rungs, |_| true, |rung| rung.verdict = Verdict::GeneratorLimited);
    assert_eq!(ids(&rungs), [] as [&str; 0]);
    edited(
        &mut rungs,
        |_| true,
        |rung| {
            rung.verdict = Verdict::Inconclusive;
            rung.signal = Some("disturbed".to_owned());
        },
    );
    assert_eq!(ids(&rungs), [] as [&str; 0]);
    // Whatever the reason: what could not be judged is not concluded from.
    edited(
        &mut rungs,
        |_| true,
        |rung| {
            rung.signal = Some("response.p99".to_owned());
        },
    );
    assert_eq!(ids(&rungs), [] as [&str; 0]);
    edited(&mut rungs, |_| true, |rung| rung.verdict = Verdict::Invalid);
    assert_eq!(ids(&rungs), [] as [&str; 0]);
}

#[test]
fn other_subjects_have_no_sweep() {
    let mut rungs = plant().rungs();
    edited(&mut rungs, |_| true, |rung| rung.load_unit = "clients".to_owned());
    assert_eq!(ids(&rungs), [] as [&str; 0]);
    let mut untold = plant().rungs();
    edited(&mut untold, |_| true, |rung| rung.ticks = None);
    assert_eq!(ids(&untold), [] as [&str; 0]);
    assert!(sweep(&[]).is_empty());
}

#[test]
fn one_cell_without_a_name_is_a_sweep_too() {
    let mut rungs = Plant { cells: vec![cell("root", "background", "normal")], ..plant() }.rungs();
    edited(&mut rungs, |_| true, |rung| rung.cell = None);
    check(&rungs, "base_rate", Some(&["30.0/s ticks."]));
    check(&rungs, "ceiling", Some(&["10 slots"]));
    check(&rungs, "failures", Some(&["Failures begin at 15 requesters (none failed up to 14)"]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn linear_data_without_noise_is_never_called_super_linear(
        base in 0.5f64..500.0, loads in proptest::collection::btree_set(2u32..60, 3..12), hold_s in 1.0f64..60.0
    ) {
        let mut rungs = Plant {
            loads: std::iter::once(1).chain(loads).collect(),
            cells: vec![cell("root", "background", "normal")],
            ..plant()
        }
        .rungs();
        for rung in &mut rungs {
            (rung.rate_per_s, rung.hold_s, rung.failed) = (base * rung.load, hold_s, 0);
            rung.verdict = Verdict::Pass;
        }
        prop_assert!(find(&rungs, "super_linear").is_none());
        prop_assert!(find(&rungs, "never_super_linear").is_some());
        prop_assert!(find(&rungs, "linearity").is_some_and(|found| found.evidence["is_linear"] == true));
    }

    #[test]
    fn whichever_rungs_are_missing_it_never_panics(
        keep in proptest::collection::vec(any::<bool>(), 96), zero in 0usize..96, bare in 0usize..96
    ) {
        let mut rungs = plant().rungs();
        rungs[zero].rate_per_s = 0.0;
        let one = &mut rungs[bare];
        (one.frames, one.service_ns, one.bytes_per_s, one.subject) = (None, None, None, None);
        let mut keep = keep.into_iter();
        rungs.retain(|_| keep.next().unwrap_or(false));
        for found in sweep(&rungs) {
            prop_assert!(found.text.len() > 8 && !found.text.contains("NaN") && !found.text.contains("inf"), "{}", found.text);
        }
    }
}
