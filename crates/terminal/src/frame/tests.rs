use ladder::testing::TrialBuilder;
use ladder::{Objective, rung};
use measure::Entry;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::state::{Place, TrialNow};

fn objectives() -> Vec<Objective> {
    ["ticks.late_share < 25%", "send_lag.p99 < 1ms"].map(|text| text.parse().unwrap()).to_vec()
}

/// A climb in its third load, of which the first seconds have come: the ticks of half of them are late.
fn third_load(builder: TrialBuilder) -> State {
    let mut state = State::new("arena · run arena-3", &objectives());
    let terms = ladder::Criteria { objectives: objectives(), ..ladder::Criteria::default() };
    for (load, late) in [(500.0, 0.02), (1_000.0, 0.1)] {
        let (trial, judgement) = TrialBuilder::arena(load).late(late).judged(&terms);
        let answers = [
            ("How many", "1000 games (2000 clients) held, and nothing failed: this is a lower bound."),
            ("Why not more", "Nothing failed: 1000 games (2000 clients) was the largest load asked for."),
            ("Can I trust it", "Yes: the load generator kept up; the books balance; every hold was steady."),
        ];
        let answers = answers.map(|(question, answer)| (question.to_owned(), answer.to_owned()));
        state.judged(&rung(&trial, &judgement), "2 % of the ticks late", answers.to_vec());
    }
    let place = |load| Place { load, unit: "games", cell: String::new() };
    state.plan(Some(place(2_000.0)), vec![place(4_000.0), place(8_000.0)], Some(50));
    let trial = builder.build();
    state.begin(&trial.head);
    state.committed(trial.head.seq, &builder.entries());
    state.stands(TrialNow { phase: "hold", open: 3_998, failed: 2, left_s: Some(15) });
    state
}

fn shown(state: &State, look: Look, width: u16, height: u16) -> Vec<String> {
    lines_drawn(width, height, |frame| draw(frame, state, look))
}

/// What is drawn on a terminal of this size, line by line.
pub(crate) fn lines_drawn(width: u16, height: u16, draw: impl FnOnce(&mut Frame<'_>)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(draw).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(row).collect()
}

#[test]
fn a_screen_of_80_by_24_has_everything_and_smaller_ones_keep_what_matters_most() {
    let state = third_load(TrialBuilder::arena(2_000.0).late(0.5));
    let whole = shown(&state, Look::default(), 80, 24);
    for fragment in [
        "arena · run arena-3",
        "2 of 5 held · about 1:05 min left",
        "rung 2000 games · hold · 15 s left · 3998/4000 connected · 2 attempts failed",
        "ticks.late_share < 25%",
        "50 % (not met)",
        "generator",
        "> 2000 games",
        "8000 games",
        "Can I trust it?",
        "p pause · q stop · + longer · d details · ? help",
    ] {
        assert!(whole.iter().any(|line| line.contains(fragment)), "{fragment}:\n{}", whole.join("\n"));
    }
    for (width, height, kept) in [
        (
            60,
            20,
            &["arena · run arena-3", "rung 2000 games", "50 % (not met)", "PASS", "How many?", "p pause"][..],
        ),
        (40, 10, &["rung 2000 games", "50 % (not met)", "PASS", "How many?", "p q + d ?"]),
        (20, 6, &["arena", "rung 2000 games", "ticks.late", "> 2000 games", "p q + d ?"]),
    ] {
        let lines = shown(&state, Look::default(), width, height);
        for fragment in kept {
            let found = lines.iter().any(|line| line.contains(fragment));
            assert!(found, "{width}×{height}: {fragment}:\n{}", lines.join("\n"));
        }
        assert!(
            lines.last().is_some_and(|line| line.starts_with('p')),
            "the keys are at the bottom: {lines:?}"
        );
    }
}

#[test]
fn no_time_is_told_before_the_running_load_knows_its_own() {
    let mut state = third_load(TrialBuilder::arena(2_000.0));
    state.stands(TrialNow { phase: "ramp", open: 1, failed: 0, left_s: None });
    let first = shown(&state, Look::default(), 80, 24).swap_remove(0);
    assert!(first.ends_with("2 of 5 held"), "{first}");
    // Nor while the climb is paused before a load; the last load is one of those that are counted.
    let place = Place { load: 2_000.0, unit: "games", cell: String::new() };
    state.plan(Some(place), Vec::new(), Some(0));
    state.running = None;
    let first = shown(&state, Look::default(), 80, 24).swap_remove(0);
    assert!(first.ends_with("2 of 3 held"), "{first}");
}

#[test]
fn the_answers_are_those_of_a_climb_that_goes_on_until_nothing_is_to_come() {
    let mut state = third_load(TrialBuilder::arena(2_000.0));
    let whole = |state: &State| shown(state, Look::default(), 80, 24).join("\n");
    let running = whole(&state);
    assert!(
        running.contains("1000 games held so far.") && !running.contains("largest load asked for"),
        "{running}"
    );
    state.plan(None, Vec::new(), None);
    let ended = whole(&state);
    assert!(ended.contains("largest load asked for") && !ended.contains("so far"), "{ended}");
}

#[test]
fn a_mark_is_shown_beside_the_figures_of_its_load() {
    let mut state = third_load(TrialBuilder::arena(2_000.0));
    let seq = state.running.as_ref().map_or(0, |running| running.head.seq);
    let mark = measure::Event {
        at_ns: 4_600_000_000,
        kind: measure::trial::kind::MARK.to_owned(),
        text: "deployed 1.4".to_owned(),
    };
    state.committed(seq, &[Entry::Event(mark)]);
    let lines = shown(&state, Look::default(), 80, 24);
    let of_mark = lines.iter().find(|line| line.starts_with("marked")).unwrap();
    assert!(of_mark.ends_with("at 4.6 s: deployed 1.4"), "{of_mark}");
}

#[test]
fn no_size_is_too_small_and_help_and_details_fit_too() {
    let states = [third_load(TrialBuilder::arena(2_000.0)), State::new("x", &[])];
    for state in &states {
        for width in [1, 2, 7, 20, 80, 200] {
            for height in [1, 2, 5, 24, 60] {
                for (has_details, has_help) in [(false, false), (true, false), (false, true)] {
                    shown(state, Look { has_details, has_help, ..Look::default() }, width, height);
                }
            }
        }
    }
    let help = shown(&states[0], Look { has_help: true, ..Look::default() }, 40, 24).join(" ");
    assert!(help.contains("pause after this load") && help.contains("No key ends a single hold"), "{help}");
    let details = shown(&states[0], Look { has_details: true, ..Look::default() }, 80, 24).join("\n");
    assert!(details.contains("messages") && !details.contains("How many?"), "{details}");
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted_and_tell_nothing_alone() {
    let state = third_load(TrialBuilder::arena(2_000.0).late(0.5));
    let coloured = |has_colours| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let look = Look { has_colours, ..Look::default() };
        terminal.draw(|frame| draw(frame, &state, look)).unwrap();
        terminal.backend().buffer().content.iter().filter(|cell| cell.fg != Color::Reset).count()
    };
    assert_eq!(coloured(false), 0);
    assert!(coloured(true) > 0);
}

#[test]
fn a_bar_is_above_the_middle_exactly_where_its_second_is_beyond_the_limit() {
    let bars = |objective: &str, values: &[f64]| {
        let values = values.iter().map(|value| Some(*value)).chain([None]).collect();
        let track = Track { objective: objective.parse().unwrap(), values, newest: None };
        sparkline(&track, 9, false)
    };
    assert_eq!(bars("ticks.late_share < 25%", &[0.0, 0.2499, 0.25, 0.5, 1.0]), "▁▄▅██·");
    assert_eq!(bars("rate_per_s > 100", &[0.0, 99.0, 101.0, 1e9]), "▁▄▅█·");
    assert_eq!(bars("errors == 0", &[0.0, 1.0]), "▁█·");
    assert_eq!(bars("rate_per_s > 100", &[50.0; 20]), "▃▃▃▃▃▃▃▃·", "the newest nine");
    let of_whole = |objective: &str, values: &[f64]| {
        let values = values.iter().map(|value| Some(*value)).collect();
        sparkline(&Track { objective: objective.parse().unwrap(), values, newest: None }, 2, true)
    };
    assert_eq!(of_whole("errors == 0", &[0.0, 1.0, 0.0, 0.0]), "█▁", "the worst of each stretch");
    assert_eq!(of_whole("rate_per_s > 100", &[200.0, 0.0, 200.0, 200.0]), "▁█");
    assert_eq!(of_whole("errors == 0", &[1.0]), "█");
}

#[test]
fn what_disturbs_is_named_while_it_does_and_a_request_under_way_is_not_lost() {
    let stolen = TrialBuilder { steal_share: Box::new(|_| 0.2), ..TrialBuilder::arena(2_000.0) };
    let line = |state: &State, name: &str| {
        let lines = shown(state, Look::default(), 80, 24);
        lines.into_iter().find(|line| line.starts_with(name)).unwrap()
    };
    assert!(line(&third_load(stolen), "disturbed").contains("the host stole 20 % of the CPU"));
    assert!(line(&third_load(TrialBuilder::arena(2_000.0)), "disturbed").contains("by nothing"));
    // Of each second a few requests are answered in the next one.
    let asking = TrialBuilder::asking(1_000.0).edit(|_, interval| {
        let flow = interval.flow_mut(1, measure::Phase::Hold);
        (flow.answered, flow.open_after) = (flow.answered - 20, flow.open_after + 20);
    });
    let mut state = State::new("x", &["response.p99 < 50ms".parse().unwrap()]);
    let head = asking.build().head;
    state.begin(&head);
    let entries: Vec<Entry> = asking.entries();
    state.committed(head.seq, &entries);
    let shown = line(&state, "response.p99");
    assert!(!shown.contains("not met") && !shown.contains("too few"), "{shown}");
}

#[test]
fn a_second_of_another_trial_changes_nothing() {
    let builder = TrialBuilder::arena(2_000.0);
    let mut state = State::new("x", &objectives());
    let head = builder.build().head;
    state.begin(&head);
    state.committed(head.seq + 1, &builder.entries());
    assert!(state.running.unwrap().figures.is_empty());
}
