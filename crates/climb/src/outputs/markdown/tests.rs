use console::exit::Exit;
use ladder::duel::GateState;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::*;
use crate::outputs::planted::{HOSTILE, climb, climb_saying, duel};

/// The page of a climb that ended early, for this reason.
fn page(climb: &Climb, ended_early: Option<&str>) -> String {
    super::page(&Climb { ended_early: ended_early.map(str::to_owned), ..climb.clone() })
}

#[test]
fn the_page_says_what_the_terminal_says() {
    let climb = climb(&["capacity >= 500", "capacity >= 700"], &[]);
    let page = page(&climb, None);
    assert!(page.starts_with("## arena: 1 of 2 gates met, 1 cannot be told (verdict FAIL)\n"), "{page}");
    assert!(page.contains("| games | verdict | late |"), "{page}");
    let closing = ladder::results_page(&climb);
    for line in closing.notes.iter().chain(&closing.gates).chain(closing.answers.iter().map(|(_, text)| text))
    {
        assert!(page.contains(&escaped(line)), "{line}");
    }
}

#[test]
fn the_page_of_a_duel_has_a_row_per_figure_and_its_gates() {
    let answer = duel(&[GateState::Met, GateState::Undecided], Exit::NotMeasured);
    let page = page_of_duel(&answer);
    assert!(page.starts_with("## arena -- --ticker catch-up against arena -- --ticker steady\n"), "{page}");
    assert!(page.contains("\n### 500 games, 7 blocks\n"), "{page}");
    assert!(page.contains("| ticks.late\\_share | −31 pp (−33 pp to −29 pp) | smaller | 7 |\n"), "{page}");
    assert!(page.contains("- gate ticks.late\\_share \\<= +1pp: undecided\n"), "{page}");
    assert!(page.contains("At 500 games, 7 blocks: ticks.late\\_share is less with B."), "{page}");
}

#[test]
fn a_run_that_ended_early_says_so() {
    assert!(
        page(&climb(&[], &[]), Some("the run was interrupted"))
            .contains("**Not whole:** the run was interrupted.")
    );
}

/// GitHub's, without the quotes and dashes that some renderers beautify.
fn dialect() -> Options {
    Options::all() - Options::ENABLE_SMART_PUNCTUATION
}

/// What a reader is shown of a list item with this text; panics where it is more than text.
fn shown(text: &str) -> String {
    let page = format!("- {}\n", escaped(text));
    let mut shown = String::new();
    for event in Parser::new_ext(&page, dialect()) {
        match event {
            Event::Text(part) => shown += &part,
            Event::InlineHtml(html) => assert_eq!(&*html, NOTHING, "{page}"),
            Event::Start(Tag::List(None) | Tag::Item) | Event::End(_) => {}
            other => panic!("{other:?} in {page}"),
        }
    }
    shown
}

fn as_one_line(text: &str) -> String {
    let plain = say::harmless(text).replace('\u{1b}', "\\u001b");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_others_wrote_is_shown_as_text() {
    for words in HOSTILE {
        assert_eq!(shown(words), as_one_line(words));
        let page = page(&climb_saying(words), Some(words));
        let marks = Parser::new_ext(&page, dialect()).filter(|event| {
            matches!(
                event,
                Event::Html(_) | Event::Code(_) | Event::Start(Tag::Link { .. } | Tag::Image { .. })
            )
        });
        assert_eq!(marks.count(), 0, "{page}");
    }
}

#[test]
fn nobody_is_mentioned_and_nothing_is_linked_or_referred_to() {
    assert_eq!(
        escaped("@octocat #1 https://x.example www.x.example a:b"),
        format!("@{NOTHING}octocat \\#{NOTHING}1 https:{NOTHING}//x.example w{NOTHING}ww.x.example a:b")
    );
}

#[test]
fn a_cell_stays_one_cell() {
    assert_eq!(row(&["a | b".to_owned(), "c\nd".to_owned()]), "| a \\| b | c d |\n");
}

#[test]
fn long_tables_are_cut_and_say_so() {
    let mut climb = climb(&[], &[]);
    climb.rungs = vec![climb.rungs[0].clone(); ROWS_MAX + 7];
    assert!(page(&climb, None).contains("… 7 more rows"));
}

proptest! {
    #[test]
    fn any_text_is_shown_as_it_is(words in "[\\PC&&[^\u{3000}]]{0,12}|[ -~\n]{0,24}|[-+*#=`~|<>!&;:.)(\\]\\[0-9 w@/\\\\]{0,16}") {
        prop_assert_eq!(shown(&words), as_one_line(&words));
    }
}
