use super::super::tests::{check, passes};
use super::*;
use crate::judge::Criteria;
use crate::testing::{TrialBuilder, terms};
use Verdict::{Fail, Invalid};

/// A second of the trial after its hold, in which the bots hand over what they counted.
const END_S: u32 = 68;

fn errors() -> Criteria {
    terms("errors == 0")
}

/// A server that got SIGTERM at the end of the hold, with this many requests under way and this many of them dropped.
fn told(under_way: u64, dropped: u64) -> TrialBuilder {
    TrialBuilder::asking(100.0).event(65, kind::SUBJECT_TOLD_TO_END, "10.00 s were allowed").edit(
        move |at, interval| {
            if at == 59 {
                interval.counters[18..22].copy_from_slice(&[under_way, dropped, 90, 80]);
            }
        },
    )
}

fn ended(builder: TrialBuilder) -> TrialBuilder {
    builder.event(66, kind::SUBJECT_ENDED, "0.21 s").event(66, kind::SUBJECT_EXITED, "exit code 0")
}

#[test]
fn a_server_that_answers_what_is_under_way_and_exits_passes_and_it_is_said_how() {
    let builder = ended(told(12, 0));
    passes(&builder, &errors());
    let remark = builder.judged(&errors()).1.remark.unwrap();
    let words = "it exited with status 0 after 1 s; 12 of 12 requests under way were answered, and 80 of 90 later ones refused";
    assert!(
        remark.starts_with("told to end (SIGTERM) 60 s into the hold, ") && remark.contains(words),
        "{remark}"
    );
}

#[test]
fn requests_under_way_that_are_never_answered_fail_it() {
    check(&ended(told(12, 3)), &errors(), Fail, DROPPED, "3 of 12 requests that were under way");
}

#[test]
fn a_server_that_outstays_its_grace_fails_and_so_does_another_status() {
    let stayed = told(12, 0).event(END_S, kind::SUBJECT_STAYED, "after 3.00 s");
    check(&stayed, &errors(), Fail, STAYED, "still ran 3 s later … 10.00 s were allowed");
    let crashed = told(12, 0).event(66, kind::SUBJECT_EXITED, "exit code 7");
    check(&crashed, &errors(), Fail, STATUS, "exit code 7");
}

#[test]
fn an_end_before_it_was_told_to_is_a_crash() {
    let crashed = told(0, 0).event(20, kind::SUBJECT_EXITED, "exit code 7");
    check(&crashed, &errors(), Fail, "server exited", "exit code 7");
}

#[test]
fn a_server_that_does_not_start_again_fails() {
    let builder = ended(told(12, 0)).event(END_S, kind::SUBJECT_NOT_BACK, "log-7 is damaged at offset 99");
    check(&builder, &errors(), Fail, NOT_BACK, "log-7 is damaged");
}

#[test]
fn an_end_that_nobody_saw_proves_nothing() {
    check(&told(12, 0), &errors(), Invalid, "no end", "");
}
