//! Stores that our writer does not produce, row by row with valid checksums: meaningless entries, and more rows than a
//! run has.

use std::sync::Arc;

use measure::trial::kind;
use measure::{Distribution, Entry, Event, LoadUnit, Purpose, TickCounts, TickSecond, TrialHead};
use rusqlite::types::Value;

use super::*;
use crate::run::Outcome;
use crate::tables::{EVENT, TICK};

struct Given {
    store: Store,
    run: RunId,
    /// after the store, so that it goes last
    _folder: tempfile::TempDir,
}

fn head(seq: u32) -> TrialHead {
    TrialHead {
        seq,
        purpose: Purpose::Rung,
        load: 500.0,
        load_unit: LoadUnit::Games,
        bots: 1,
        connections: 1,
        tick_period_ns: 16_666_667,
        cell: Default::default(),
        metric_names: Arc::default(),
    }
}

fn run_head() -> RunHead {
    let empty = || "{}".to_owned();
    RunHead { subject: "arena".to_owned(), plan: empty(), environment: empty(), ..RunHead::default() }
}

/// A run that was cut off before its first trial.
fn begun() -> Given {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path().join("stepladder.db")).unwrap();
    let writer = store.begin_run(&run_head(), None).unwrap();
    let run = writer.id().clone();
    drop(writer);
    Given { store, run, _folder: folder }
}

impl Given {
    fn insert(&self, table: &Table, values: Result<Vec<Value>, StoreError>) {
        table.insert(self.store.connection(), self.run.as_str(), values.unwrap()).unwrap();
    }

    fn insert_in_trial(&self, table: &Table, trial: u32, values: Result<Vec<Value>, StoreError>) {
        let run = self.run.as_str();
        table.insert_in_trial(self.store.connection(), run, trial, values.unwrap()).unwrap();
    }

    /// Trials without entries that ended.
    fn with_trials(self, count: u32) -> Given {
        let all = self.store.connection().unchecked_transaction().unwrap();
        for seq in 0..count {
            self.insert(&TRIAL, tables::trial::values(&(&head(seq), 1)));
            self.insert_in_trial(&TRIAL_END, seq, tables::trial_end::values(&(0, 2)));
        }
        all.commit().unwrap();
        self
    }
}

fn ticks(from_ns: u64, to_ns: u64) -> TickSecond {
    TickSecond {
        source: "log".to_owned(),
        from_ns,
        to_ns,
        counts: TickCounts { due: 60, on_time: 60, ..TickCounts::default() },
        interval: Distribution::new(),
        ..TickSecond::default()
    }
}

#[test]
fn ticks_that_end_before_they_begin_are_damage() {
    let given = begun();
    given.insert(&TRIAL, tables::trial::values(&(&head(0), 1)));
    let mark = |position: u64, at_s: u64, kind: &str| {
        let event = Event { at_ns: at_s * 1_000_000_000, kind: kind.to_owned(), text: String::new() };
        given.insert_in_trial(&EVENT, 0, tables::event::values(&(position, &event)));
    };
    mark(0, 1, kind::HOLD);
    mark(1, 9, kind::DRAIN);
    let mut turned = tables::tick::values(&(2, &ticks(3_000_000_000, 5_000_000_000))).unwrap();
    turned.swap(2, 3);
    given.insert_in_trial(&TICK, 0, Ok(turned));
    let refused = given.store.trial_views(&given.run, 0, |_| 0, |_| [2].into()).unwrap_err();
    assert!(refused.is_damage(), "{refused}");
    let said = given.store.trial_entries(&given.run, 0).unwrap_err().to_string();
    assert!(said.contains("tick (arena-1, 0, 2): it ends before it begins"), "{said}");
    assert_eq!(given.store.check().unwrap().len(), 1);
}

#[test]
fn ticks_that_end_before_they_begin_are_not_stored() {
    let given = begun();
    let writer = given.store.begin_run(&run_head(), None).unwrap();
    writer.begin_trial(&head(0), 1).unwrap();
    writer.append(vec![Entry::Ticks(Box::new(ticks(7, 7)))]).unwrap();
    writer.append(vec![Entry::Ticks(Box::new(ticks(8, 7)))]).unwrap();
    let said = writer.end_trial(2).unwrap_err().to_string();
    assert!(said.contains("tick cannot be stored: it ends before it begins"), "{said}");
}

/// CPU time of this thread, s: a busy machine changes it less than the clock's.
fn cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a place for the answer.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Ten times as much may take ten times as long, and not a hundred times.
#[track_caller]
fn is_linear(size: u32, given: impl Fn(u32) -> Given, look: impl Fn(&Given)) {
    let took_s = |size| {
        let given = given(size);
        look(&given);
        let begin = cpu_s();
        look(&given);
        cpu_s() - begin
    };
    let (few, many) = (took_s(size), took_s(10 * size));
    assert!(many < 25.0 * few + 0.02, "{size}: {few:.3} s; ten times as many: {many:.3} s");
}

#[test]
fn trials_are_listed_in_a_time_that_grows_with_their_number() {
    let look = |given: &Given| {
        given.store.trials(&given.run).unwrap();
        given.store.trial_marks(&given.run).unwrap();
    };
    is_linear(3_000, |count| begun().with_trials(count), look);
}

#[test]
fn a_run_is_checked_in_a_time_that_grows_with_its_trials() {
    let ended = |count| {
        let given = begun().with_trials(count);
        let end = RunEnd { outcome: Outcome::Finished, reason: None, ended_unix_ms: 3, climb: None };
        given.insert(&RUN_END, tables::run_end::values(&(&end, u64::from(2 * count))));
        given
    };
    is_linear(1_000, ended, |given| given.store.check_run(&given.run).unwrap());
}

#[test]
fn runs_are_listed_in_a_time_that_grows_with_their_number() {
    let half_of_them_ended = |count: u32| {
        let given = begun();
        let all = given.store.connection().unchecked_transaction().unwrap();
        for number in 2..u64::from(count) {
            let run = format!("arena-{number}");
            let insert = |table: &Table, values: Result<Vec<Value>, StoreError>| {
                table.insert(given.store.connection(), &run, values.unwrap()).unwrap();
            };
            insert(&USED_ID, tables::used_id::values(&("arena", number, number)));
            insert(&RUN, tables::run::values(&run_head()));
            if number % 2 == 0 {
                let end = RunEnd { outcome: Outcome::Finished, reason: None, ended_unix_ms: 3, climb: None };
                insert(&RUN_END, tables::run_end::values(&(&end, 0)));
            }
        }
        all.commit().unwrap();
        given
    };
    is_linear(400, half_of_them_ended, |given| {
        let list = given.store.runs().unwrap();
        assert!(list.damaged.is_empty() && list.runs.len() > 300);
    });
}
