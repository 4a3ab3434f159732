//! Lines of a bench run.

use rusqlite::Connection;
use store::{LineSource, RunHead, RunKind, RunState, StoreError, StoredLine};

use crate::given;

fn head() -> RunHead {
    RunHead { kind: RunKind::Bench, ..given::run_head(None) }
}

#[test]
fn lines_come_back_as_they_were_written_and_in_their_order() {
    let given = given::store();
    let writer = given.store.begin_run(&head(), None).unwrap();
    let run = writer.id().clone();
    let lines = vec![
        StoredLine { process: 0, source: LineSource::Bench, text: r#"{"type":"process"}"#.to_owned() },
        given::line(0, r#"{"b" : 1,  "a":[1.50]}"#),
        given::line(1, "{}"),
    ];
    lines.iter().for_each(|line| writer.line(line.clone()).unwrap());
    writer.end_run(given::finished()).unwrap();
    assert_eq!(given.store.lines(&run).unwrap(), lines);
    for known in 0..=4 {
        let rest = given.store.lines_behind(&run, known as u64).unwrap();
        assert_eq!(rest, lines.iter().skip(known).cloned().collect::<Vec<_>>());
    }
    assert_eq!(given.store.run(&run).unwrap().head.kind, RunKind::Bench);
    assert_eq!(given.store.check().unwrap(), [""; 0]);
    let mut exported = Vec::new();
    store::export::ndjson(&given.store, &run, &mut exported).unwrap();
    let exported = String::from_utf8(exported).unwrap();
    assert!(exported.contains(r#""source":"client","text":{"b":1,"a":[1.5]}"#), "{exported}");
}

#[test]
fn what_is_no_json_is_refused_before_it_reaches_the_file() {
    let given = given::store();
    let writer = given.store.begin_run(&head(), None).unwrap();
    let refused = writer.line(given::line(0, "ready")).unwrap_err().to_string();
    assert!(refused.contains("a line of a client cannot be stored: it is not JSON"), "{refused}");
    writer.end_run(given::finished()).unwrap();
}

#[test]
fn a_bench_run_that_was_cut_off_says_what_is_there() {
    let given = given::store();
    let writer = given.store.begin_run(&head(), None).unwrap();
    let run = writer.id().clone();
    (0..3).for_each(|process| writer.line(given::line(process, "{}")).unwrap());
    drop(writer);
    let RunState::CutOff(cut_off) = given.store.run(&run).unwrap().state else { panic!("it did not end") };
    let expected = "run arena-1 was interrupted; the 3 lines that its clients had written are intact";
    assert_eq!(cut_off.to_string(), expected);
}

#[test]
fn a_line_that_went_missing_is_noticed() {
    let check = |position: i64, expected: &str| {
        let given = given::store();
        let writer = given.store.begin_run(&head(), None).unwrap();
        let run = writer.id().clone();
        (0..3).for_each(|process| writer.line(given::line(process, "{}")).unwrap());
        writer.end_run(given::finished()).unwrap();
        let shell = Connection::open(&given.path).unwrap();
        shell.execute_batch("DROP TRIGGER line_goes_with_its_run").unwrap();
        shell.execute("DELETE FROM line WHERE position = ?1", [position]).unwrap();
        let error = given.store.lines(&run).unwrap_err();
        assert!(
            matches!(error, StoreError::Damaged { .. }) && error.to_string().contains(expected),
            "{error}"
        );
    };
    check(1, "line 1 of run arena-1 is missing");
    check(2, "should have 3 trials, verdicts, artifacts and lines but 2 are there");
}
