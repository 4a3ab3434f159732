use console::exit::Exit;
use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::file::{attribute, text};
use super::*;
use crate::outputs::planted::{HOSTILE, climb, climb_saying};

/// An element as a reader of the file sees it.
#[derive(Debug, Default)]
pub(super) struct Element {
    tag: String,
    attributes: BTreeMap<String, String>,
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    fn all<'a>(&'a self, tag: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.tag == tag)
    }

    pub fn number(&self, name: &str) -> usize {
        self.attributes[name].parse().expect("a number")
    }
}

/// Parses the file strictly: panics if it is not well-formed.
pub(super) fn parsed(xml: &str) -> Element {
    let legal = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(xml.chars().all(legal), "a character that XML 1.0 does not have: {xml:?}");
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let mut open = vec![Element::default()];
    let element = |start: &quick_xml::events::BytesStart<'_>| {
        let attributes = start.attributes().map(|one| {
            let one = one.expect("an attribute");
            let value = quick_xml::escape::unescape(std::str::from_utf8(&one.value).expect("UTF-8"))
                .expect("escaped");
            (String::from_utf8(one.key.as_ref().to_vec()).expect("UTF-8"), value.into_owned())
        });
        let tag = String::from_utf8(start.name().as_ref().to_vec()).expect("UTF-8");
        Element { tag, attributes: attributes.collect(), ..Element::default() }
    };
    loop {
        let last = open.last_mut().expect("the document");
        match reader.read_event().expect("well-formed") {
            Event::Start(start) => open.push(element(&start)),
            Event::Empty(start) => last.children.push(element(&start)),
            Event::End(_) => {
                let ended = open.pop().expect("what began");
                open.last_mut().expect("its parent").children.push(ended);
            }
            Event::Text(text) => last.text += &text.decode().expect("UTF-8"),
            Event::GeneralRef(reference) => {
                let name = reference.decode().expect("UTF-8");
                last.text += &quick_xml::escape::unescape(&format!("&{name};")).expect("a known entity");
            }
            Event::Eof => break,
            Event::Decl(_) => {}
            other => panic!("not in such a file: {other:?}"),
        }
    }
    assert_eq!(open.len(), 1, "an element without an end");
    open.remove(0).children.remove(0)
}

fn suite_of(climb: &Climb, ended_early: Option<&str>) -> Element {
    let climb = Climb { ended_early: ended_early.map(str::to_owned), ..climb.clone() };
    let mut suites = parsed(&report(&climb).expect("memory takes it"));
    assert_eq!(suites.tag, "testsuites");
    suites.children.remove(0)
}

/// `500 games: passed`
pub(super) fn states(suite: &Element) -> Vec<String> {
    let state = |case: &Element| case.children.first().map_or("passed".to_owned(), |child| child.tag.clone());
    suite.all("testcase").map(|case| format!("{}: {}", case.attributes["name"], state(case))).collect()
}

#[test]
fn without_gates_each_rung_and_the_verdict_decide() {
    let suite =
        suite_of(&climb(&[], &[Verdict::Inconclusive, Verdict::GeneratorLimited, Verdict::Invalid]), None);
    let expected = [
        "500 games: passed",
        "1000 games: failure",
        "2000 games: error",
        "2001 games: error",
        "2002 games: error",
        "verdict: failure",
    ];
    assert_eq!(states(&suite), expected);
    let failed = &suite.all("testcase").nth(1).expect("a case").children[0];
    assert_eq!(failed.attributes["type"], "FAIL");
    assert!(failed.attributes["message"].contains("ticks.late_share was 40 %"), "{failed:?}");
    let order: Vec<&str> = suite.children.iter().map(|child| child.tag.as_str()).collect();
    assert_eq!((order[0], order[order.len() - 1]), ("properties", "system-out"));
    let about = &suite.children.last().expect("system-out").text;
    assert!(about.starts_with("command: stepladder climb arena\n") && about.contains("How many"), "{about}");
    assert_eq!(suite.attributes["timestamp"], "2026-11-18T11:06:40");
}

#[test]
fn with_gates_a_rung_that_did_not_hold_is_skipped_and_an_untold_gate_is_an_error() {
    let gates = ["capacity >= 500", "capacity >= 1000", "capacity >= 700"];
    let expected = [
        "500 games: passed",
        "1000 games: skipped",
        "gate capacity >= 500: passed",
        "gate capacity >= 1000: failure",
        "gate capacity >= 700: error",
    ];
    assert_eq!(states(&suite_of(&climb(&gates, &[]), None)), expected);
}

#[test]
fn holds_of_one_load_have_names_of_their_own() {
    let mut climb = climb(&[], &[]);
    climb.rungs.push(climb.rungs[0].clone());
    assert_eq!(states(&suite_of(&climb, None))[2], "500 games, hold 2: passed");
}

#[test]
fn a_run_that_ended_early_is_never_green() {
    let suite = suite_of(&climb(&["capacity >= 500"], &[]), Some("the run was interrupted"));
    assert_eq!(states(&suite).last().map(String::as_str), Some("whole: error"));
}

#[test]
fn whatever_others_wrote_stays_text() {
    for words in HOSTILE {
        let suite = suite_of(&climb_saying(words), Some(words));
        let gate = suite
            .all("testcase")
            .find(|case| case.attributes["classname"].ends_with(".gates"))
            .expect("a gate");
        assert_eq!(gate.attributes["name"], attribute(&format!("gate {words}")), "{words:?}");
        assert_eq!(gate.children[0].text, text(words).replace("\r\n", "\n"), "{words:?}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_file(words in "\\PC{0,20}|[\u{0}-\u{ff}]{0,20}|[\\]\\[<>&;\"'!#x0-9-]{0,20}") {
        suite_of(&climb_saying(&words), Some(&words));
    }

    #[test]
    fn there_is_a_failure_or_an_error_exactly_if_the_exit_code_is_not_0(
        verdicts in proptest::collection::vec(0..5usize, 1..6),
        of_run in 0..5usize,
        gates in proptest::collection::vec(proptest::option::of(any::<bool>()), 0..4),
    ) {
        let all = [Verdict::Pass, Verdict::Fail, Verdict::GeneratorLimited, Verdict::Inconclusive, Verdict::Invalid];
        let chosen: Vec<Verdict> = verdicts.iter().map(|at| all[*at]).collect();
        let mut climb = climb(&[], &chosen);
        climb.verdict = all[of_run];
        climb.gates = gates.iter().map(|met| GateResult { gate: "g".into(), met: *met, found: "f".into() }).collect();
        let suite = suite_of(&climb, None);
        let cases: Vec<&Element> = suite.all("testcase").collect();
        let with = |tag: &str| cases.iter().filter(|case| case.all(tag).next().is_some()).count();
        let bad = with("failure") + with("error");
        prop_assert_eq!(bad > 0, Exit::of(&climb) != Exit::Met);
        if Exit::of(&climb) == Exit::NotMet {
            prop_assert!(with("failure") > 0);
        }
        prop_assert_eq!(suite.number("tests"), cases.len());
        prop_assert_eq!(suite.number("failures"), with("failure"));
        prop_assert_eq!(suite.number("errors"), with("error"));
        prop_assert_eq!(suite.number("skipped"), with("skipped"));
    }
}
