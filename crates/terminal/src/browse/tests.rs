use ladder::testing::TrialBuilder;
use ladder::{Criteria, Objective, rung};

use super::*;
use crate::frame::tests::lines_drawn;

/// Two climbs of two loads, of whose higher one the second half is late, and a run that cannot be opened between them.
struct Planted {
    rows: Vec<[String; 5]>,
}

impl Planted {
    fn new() -> Planted {
        let rows = ["arena-1", "bench-2", "arena-3"].map(|id| {
            [id, "arena", "2026-11-26 16:44:27", "finished", "1000 games held."].map(str::to_owned)
        });
        Planted { rows: rows.to_vec() }
    }
}

fn objectives() -> Vec<Objective> {
    vec!["ticks.late_share < 25%".parse().unwrap()]
}

fn of_load(load: usize) -> TrialBuilder {
    match load {
        0 => TrialBuilder::arena(500.0).late(0.02),
        _ => TrialBuilder::arena(1_000.0).late(0.5),
    }
}

impl Stored for Planted {
    fn runs(&self) -> &[[String; 5]] {
        &self.rows
    }

    fn open(&mut self, run: usize) -> Result<State, String> {
        if run == 1 {
            return Err("bench-2 has no loads".to_owned());
        }
        let mut state = State::new(&format!("arena · run {}", self.rows[run][0]), &objectives());
        let terms = Criteria { objectives: objectives(), ..Criteria::default() };
        for load in 0..2 {
            let (trial, judgement) = of_load(load).judged(&terms);
            let answers = vec![("How many".to_owned(), "1000 games held.".to_owned())];
            state.judged(&rung(&trial, &judgement), &format!("  words of load {load}"), answers);
        }
        Ok(state)
    }

    fn look_at(&mut self, state: &mut State, load: usize) -> Result<(), String> {
        let builder = of_load(load);
        let trial = builder.build();
        state.begin(&trial.head);
        state.committed(trial.head.seq, &builder.entries());
        state.whole(load, &trial);
        Ok(())
    }
}

fn shown(browser: &Browser<'_, Planted>, width: u16, height: u16) -> String {
    lines_drawn(width, height, |frame| browser.draw(frame)).join("\n")
}

fn browser(stored: &mut Planted, is_of_one: bool) -> Browser<'_, Planted> {
    let run = stored.rows.len() - 1;
    Browser { stored, look: Look::default(), run, open: None, said: String::new(), is_of_one }
}

#[test]
fn keys_lead_from_the_list_to_a_load_and_back() {
    let mut stored = Planted::new();
    let mut browser = browser(&mut stored, false);
    let all = |browser: &Browser<'_, Planted>| shown(browser, 80, 24);
    for (key, there, not_there) in [
        // The newest run is chosen; a run that cannot be opened says why.
        (b'x', "> arena-3", "> arena-1"),
        (b'k', "> bench-2", "> arena-3"),
        (b'\r', "bench-2 has no loads", "1000 games · FAIL"),
        (b'k', "> arena-1", "no loads"),
        (b'k', "> arena-1", "no loads"),
        (b'\n', "1000 games · FAIL", "2 runs"),
        (b'k', "500 games · PASS", "1000 games · FAIL"),
        (b'k', "> 500 games", "> 1000 games"),
        (b'd', "messages", "How many?"),
        (b'j', "> 1000 games", "> 500 games"),
        (b'?', "open the run", "messages"),
        (b'q', "messages", "open the run"),
        (b'd', "How many?", "messages"),
        (b'q', "> arena-1", "How many?"),
    ] {
        assert!(browser.obey(key), "{}", char::from(key));
        let shown = all(&browser);
        assert!(shown.contains(there), "{}: {there}:\n{shown}", char::from(key));
        assert!(!shown.contains(not_there), "{}: {not_there}:\n{shown}", char::from(key));
    }
    assert!(!browser.obey(b'q'), "left");
}

#[test]
fn a_load_is_shown_over_its_whole_hold_and_the_only_run_is_left_at_once() {
    let mut stored = Planted::new();
    let mut browser = browser(&mut stored, true);
    browser.open();
    let whole = shown(&browser, 80, 24);
    for fragment in
        ["arena · run arena-3", "words of load 1", "50 % (not met)", "held for ", "disturbed  ", "↑ ↓ load"]
    {
        assert!(whole.contains(fragment), "{fragment}:\n{whole}");
    }
    assert!(!whole.contains("last second") && !whole.contains("to come"), "{whole}");
    for (width, height) in [(1, 1), (7, 3), (20, 6), (60, 20), (200, 60)] {
        shown(&browser, width, height);
    }
    assert!(!browser.obey(b'q'));
}

#[test]
fn a_list_of_any_length_shows_the_run_that_is_chosen() {
    let mut stored = Planted::new();
    stored.rows = (0..500)
        .map(|number| {
            [&format!("arena-{number}"), "arena", "", "", "its answer \u{1b}[31m"].map(str::to_owned)
        })
        .collect();
    let mut browser = browser(&mut stored, false);
    for chosen in [499, 250, 0] {
        browser.run = chosen;
        for (width, height) in [(80, 24), (20, 6), (9, 2)] {
            let shown = shown(&browser, width, height);
            assert!(shown.contains(&format!("> arena-{chosen}")[..9.min(width as usize - 1)]), "{shown}");
            assert!(!shown.contains('\u{1b}'));
        }
    }
}
