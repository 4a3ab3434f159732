//! Runs are found by what users type, and users may change labels.

use store::{RunId, StoreError};

use crate::given::{self, Given};

fn with_runs(names: &[Option<&str>]) -> Given {
    let given = given::store();
    for name in names {
        given.store.begin_run(&given::run_head(*name), None).unwrap().end_run(given::finished()).unwrap();
    }
    given
}

fn ids(given: &Given) -> Vec<String> {
    given.store.runs().unwrap().runs.iter().map(|run| run.id.to_string()).collect()
}

#[test]
fn ids_count_each_name_and_runs_stand_in_the_order_they_began() {
    let given = with_runs(&[Some("master"), None, Some("master"), Some("My Branch"), None]);
    assert_eq!(ids(&given), ["master-1", "arena-1", "master-2", "my-branch-1", "arena-2"]);
    let numbers: Vec<u64> = given.store.runs().unwrap().runs.iter().map(|run| run.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
}

#[test]
fn a_run_is_found_by_id_name_or_unique_prefix() {
    let given = with_runs(&[Some("master"), None, Some("master"), Some("My Branch"), None, Some("arena-1")]);
    let check = |text: &str, expected: &str| {
        assert_eq!(given.store.find_run(text).unwrap().as_str(), expected, "{text}");
    };
    check("master-1", "master-1");
    check("master", "master-2");
    check("My Branch", "my-branch-1");
    check("my", "my-branch-1");
    check("arena", "arena-2");
    // An id wins over a name that looks like one.
    check("arena-1", "arena-1");
    check("arena-1-1", "arena-1-1");
}

#[test]
fn a_run_is_found_by_the_name_that_it_was_given_afterwards() {
    let given = with_runs(&[Some("master"), None, Some("master")]);
    let first = given.store.find_run("master-1").unwrap();
    let found = |text: &str| given.store.find_run(text).map(|run| run.as_str().to_owned());
    given.store.set_label(&first, "name", Some("before the wheel")).unwrap();
    assert_eq!(found("before the wheel").unwrap(), "master-1");
    assert!(found("before the weel").unwrap_err().to_string().contains("before the wheel"));
    assert_eq!(found("master").unwrap(), "master-2");
    // A name that is also the newest run's id means the run of that name.
    given.store.set_label(&first, "name", Some("master")).unwrap();
    assert_eq!(found("master").unwrap(), "master-1");
    given.store.set_label(&first, "name", None).unwrap();
    assert_eq!(found("master").unwrap(), "master-2");
}

#[test]
fn a_prefix_of_several_ids_is_refused_with_all_of_them() {
    let given = with_runs(&[Some("master"), Some("mast"), Some("master")]);
    let error = given.store.find_run("ma").unwrap_err();
    let StoreError::AmbiguousRun { candidates, .. } = &error else { panic!("{error}") };
    assert_eq!(candidates.iter().map(RunId::as_str).collect::<Vec<_>>(), ["master-1", "mast-1", "master-2"]);
    assert!(
        error.to_string().ends_with("`ma` may be master-1, mast-1, master-2; write one of them"),
        "{error}"
    );
}

#[test]
fn an_unknown_run_is_answered_with_the_nearest_names() {
    let given = with_runs(&[Some("master"), Some("zebra")]);
    let message = given.store.find_run("mastre").unwrap_err().to_string();
    assert!(
        message.ends_with(
            "stepladder.db: there is no run `mastre`; the nearest are master, master-1; `stepladder runs` lists all"
        ),
        "{message}"
    );
    assert!(given.store.find_run("").is_err());
    let missing = given.store.trial_entries(&given.store.find_run("zebra").unwrap(), 3).unwrap_err();
    assert_eq!(missing.to_string(), "run zebra-1 has no trial 3");
}

#[test]
fn a_label_is_written_changed_and_taken_away() {
    let given = with_runs(&[Some("master")]);
    let run = given.store.find_run("master").unwrap();
    let label = |value| given.store.set_label(&run, "note", value).unwrap();
    let read = || given.store.run(&run).unwrap().labels.get("note").cloned();
    label(Some("before the fix"));
    assert_eq!(read().as_deref(), Some("before the fix"));
    label(Some("after"));
    assert_eq!(read().as_deref(), Some("after"));
    label(None);
    assert_eq!(read(), None);
    assert!(given.store.set_label(&run, "", Some("x")).is_err());
}

#[test]
fn two_stores_record_into_one_file_at_once() {
    let given = given::store();
    let writers: Vec<_> =
        (0..4).map(|_| given.store.begin_run(&given::run_head(None), None).unwrap()).collect();
    std::thread::scope(|threads| {
        for writer in &writers {
            threads.spawn(|| given::record_trial(writer, 0, 500.0, 20));
        }
    });
    for writer in writers {
        let run = writer.id().clone();
        writer.end_run(given::finished()).unwrap();
        assert_eq!(given.store.trial(&run, 0, 0).unwrap().flow().told, 20_000);
    }
}
