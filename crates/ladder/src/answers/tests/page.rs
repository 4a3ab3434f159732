//! What the results page states once and briefly, and what it omits from a narrow table.

use measure::{MachineMetric, ProcessMetric, Reading};

use super::*;
use crate::results_page::ResultsPage;

fn stolen(load: f64, share: f64) -> Rung {
    judged(&TrialBuilder { steal_share: Box::new(move |_| share), ..TrialBuilder::arena(load) }, TICKS)
}

/// Late, and other programs explain it.
fn undecided(load: f64) -> Rung {
    let builder = TrialBuilder::arena(load).late(0.4).sampled(|_| {
        vec![
            (Reading::Machine(MachineMetric::OthersCores), 1.2),
            (Reading::Subject(ProcessMetric::WaitingShareMax), 0.9),
        ]
    });
    judged(&builder, TICKS)
}

fn sentences(text: &str) -> usize {
    text.split(". ").count()
}

#[test]
fn what_passed_although_it_was_disturbed_has_a_mark_that_is_explained_once() {
    let climb = climb_of(&[stolen(50.0, 0.03), stolen(100.0, 0.07), arena(200.0, 0.02)]);
    let page = results_page(&climb);
    let verdicts: Vec<&str> = page.tables[0].rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(verdicts, ["PASS*", "PASS*", "PASS"]);
    let once = "* up to 100 % of a hold was disturbed: the host stole 7 % of the CPU; what was met despite it is met";
    assert_eq!(page.marks, [once]);
    assert!(page.notes.is_empty(), "{:?}", page.notes);
    assert_eq!(page.to_string().matches("stole").count(), 1, "{page}");
    let trust = text_of(&climb, "can_i_trust_it");
    assert!(trust.starts_with("Yes: ") && sentences(trust) <= 3, "{trust}");
    // The data has all of it at each rung.
    let json = serde_json::to_value(&climb).unwrap();
    let remark = json["rungs"][1]["remark"].as_str().unwrap();
    assert_eq!(remark, "100 % of the hold was disturbed: the host stole 7 % of the CPU");
    assert!(results_page(&climb_of(&[arena(50.0, 0.02)])).marks.is_empty(), "nothing disturbed it");
}

#[test]
fn what_a_user_marked_stands_beside_the_load_and_changes_no_verdict() {
    let marked = TrialBuilder::arena(50.0).late(0.02).event(7, kind::MARK, "deployed 1.4");
    let climb = climb_of(&[judged(&marked, TICKS), arena(100.0, 0.02)]);
    assert_eq!(climb.rungs[0].verdict, Verdict::Pass);
    assert_eq!(results_page(&climb).notes, ["50 games: PASS — marked at 7.0 s: deployed 1.4"]);
    let json = serde_json::to_value(&climb).unwrap();
    assert_eq!(json["rungs"][0]["marks"][0]["at_ns"], 7_000_000_000_u64);
    assert_eq!(json["rungs"][1].get("marks"), None);
}

#[test]
fn a_verdict_that_a_disturbance_takes_away_keeps_its_words_and_has_no_mark() {
    let climb = climb_of(&[undecided(50.0)]);
    assert_eq!(climb.rungs[0].verdict, Verdict::Inconclusive);
    let page = results_page(&climb);
    assert_eq!(page.tables[0].rows[0][1], "INCONCLUSIVE");
    assert!(page.marks.is_empty(), "{:?}", page.marks);
    assert!(page.notes[0].contains("other programs used 1.2 of 2 cores"), "{:?}", page.notes);
    let failed = judged(
        &TrialBuilder {
            steal_share: Box::new(|at| if at < 10 { 0.03 } else { 0.0 }),
            ..TrialBuilder::arena(50.0).late(0.9)
        },
        TICKS,
    );
    assert_eq!(failed.verdict, Verdict::Fail);
    let page = results_page(&climb_of(&[failed]));
    assert!(page.marks.is_empty() && page.notes[0].contains("the host stole"), "{page}");
}

#[test]
fn loads_that_passed_with_the_same_words_share_a_line_and_others_do_not() {
    let with = |load: f64, words: &str| Rung { remark: Some(words.to_owned()), ..stolen(load, 0.03) };
    let notes = |rungs: &[Rung]| results_page(&climb_of(rungs)).notes;
    assert_eq!(
        notes(&[with(50.0, "no game ended"), with(100.0, "no game ended")]),
        ["50, 100 games: PASS — no game ended"]
    );
    let disturbed = "no game ended; 100 % of the hold was disturbed: the host stole 3 % of the CPU";
    assert_eq!(notes(&[with(50.0, disturbed)]), ["50 games: PASS — no game ended"]);
    assert_eq!(notes(&[with(50.0, "one"), with(100.0, "two")]).len(), 2);
    let failed = |load| Rung { remark: Some("one".to_owned()), ..arena(load, 0.9) };
    assert_eq!(notes(&[failed(50.0), failed(100.0)]).len(), 2, "each failure has a line of its own");
}

#[test]
fn confidence_is_hinted_at_once_and_only_where_a_repeat_would_give_it() {
    let trust = |rungs: &[Rung]| text_of(&climb_of(rungs), "can_i_trust_it").to_owned();
    let hint = "For a figure of confidence repeat each load (--repeat 3).";
    let (held, failed) = (arena(500.0, 0.02), arena(1_000.0, 0.9));
    assert_eq!(trust(&[held.clone(), failed.clone()]).matches(hint).count(), 1);
    assert!(
        !trust(std::slice::from_ref(&held)).contains("confidence"),
        "without an upper bound there is none"
    );
    assert!(!trust(&[held.clone(), held, failed.clone(), failed]).contains("confidence"), "there is one");
}

#[test]
fn a_summary_names_the_reasons_for_doubt_alone_and_no_answer_is_longer_than_three_sentences() {
    let brief = |rungs: &[Rung]| {
        let summary = crate::results_page::run_summary(&climb_of(rungs));
        summary.answers.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    let answers = brief(&[arena(50.0, 0.02), undecided(100.0)]);
    let doubt = "With care: 1 of 2 rungs could not be judged: 100 (INCONCLUSIVE); ";
    assert!(answers[2].starts_with(doubt) && !answers[2].contains("the books balance"), "{answers:?}");
    assert!(answers.iter().all(|answer| sentences(answer) <= 3), "{answers:?}");
    // Without a doubt all of it is said, and what would tell more is a hint and no part of an answer.
    let sure = &brief(&[arena(50.0, 0.02), arena(100.0, 0.9)])[2];
    assert!(sure.starts_with("Yes: ") && sure.contains("the books balance"), "{sure}");
    assert!(!sure.contains("--repeat"), "{sure}");
}

#[test]
fn a_table_that_is_too_wide_leaves_out_what_tells_least_and_says_how_much() {
    let widest = |page: &ResultsPage, most| {
        let (table, left_out) = page.tables[0].within(most);
        let lines: Vec<usize> = table.to_string().lines().map(|line| line.chars().count()).collect();
        (lines.into_iter().max().unwrap(), left_out, table)
    };
    let chat = results_page(&climb_of(&[judged(&faulty_chat(), CHAT)]));
    let arena = results_page(&climb_of(&[stolen(50.0, 0.03), undecided(100.0), arena(200.0, 0.3)]));
    for page in [&chat, &arena] {
        assert_eq!(widest(page, usize::MAX).2, page.tables[0], "a script reads all of it");
        let mut more_before = 0;
        for most in [160, 100, 80, 60, 40] {
            let (width, left_out, table) = widest(page, most);
            assert!(width <= most, "{most}:\n{table}");
            assert!(left_out >= more_before, "the narrower, the fewer");
            more_before = left_out;
            assert_eq!(table.header.len() + left_out, page.tables[0].header.len());
            assert!(table.rows.iter().all(|row| row.len() == table.header.len()), "{table}");
            assert_eq!(table.header[1], "verdict", "what was found stays");
            assert_eq!(table.rows[0][..2], page.tables[0].rows[0][..2], "and its load");
        }
        assert!(more_before > 0);
    }
    let kept = |most| chat.tables[0].within(most).0.header;
    assert!(kept(80).contains(&"lost".to_owned()) && !kept(80).contains(&"mem".to_owned()), "{:?}", kept(80));
}

#[test]
fn connections_that_were_opened_again_are_counted_in_place_of_those_that_stood() {
    let mut rung = arena(500.0, 0.02);
    let header = |rung: &Rung| results_page(&climb_of(std::slice::from_ref(rung))).tables[0].header.join(" ");
    assert!(header(&rung).contains("open min") && !header(&rung).contains("reopened"));
    rung.connections.reopened = Some(42);
    assert!(header(&rung).contains("reopened") && !header(&rung).contains("open min"));
}
