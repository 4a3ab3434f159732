//! Stores that others made: their bytes, and one of their rows.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use measure::TickSecond;
use measure::ledger::{PairBooks, ReceiverBooks, SumOfBooks};
use store::{LineSource, Outcome, RunEnd, RunHead, Store, StoredLine, StoredVerdict};

/// A store whose bytes were changed: all that commands read of it is refused or read, and nothing harms. The input is a list of
/// changes: three bytes of a place, one for what stands there.
pub(super) fn store_file(input: &[u8]) {
    thread_local! {
        static FILE: RefCell<Option<(tempfile::TempDir, PathBuf)>> = const { RefCell::new(None) };
    }
    FILE.with_borrow_mut(|slot| {
        let (_, path) = slot.get_or_insert_with(|| {
            let folder = tempfile::tempdir_in(memory()).expect("a folder");
            let path = folder.path().join("s.db");
            (folder, path)
        });
        let mut bytes = template().to_vec();
        for change in input.as_chunks::<4>().0.iter().take(64) {
            let [a, b, c, byte] = *change;
            let at = u32::from_be_bytes([0, a, b, c]) as usize % bytes.len();
            bytes[at] = byte;
        }
        std::fs::write(&*path, &bytes).expect("a file");
        let Ok(store) = Store::open_to_read(&*path) else { return };
        let _ = store.check();
        let Ok(list) = store.runs() else { return };
        for record in list.runs.iter().take(4) {
            let id = &record.id;
            let _ = (store.run(id), store.lines(id), store.artifact(id, "plan"));
            let trials = store.trials(id).unwrap_or_default();
            for trial in trials.iter().take(4) {
                let _ = (store.verdicts(id, trial.head.seq), store.trial(id, trial.head.seq, 0));
            }
            let _ = store::export::ndjson(&store, id, &mut std::io::sink());
        }
    });
}

/// Where a file costs no disk.
fn memory() -> PathBuf {
    let shared = PathBuf::from("/dev/shm");
    if shared.is_dir() { shared } else { std::env::temp_dir() }
}

/// A whole store of one run.
fn template() -> &'static [u8] {
    static TEMPLATE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let folder = tempfile::tempdir_in(memory()).expect("a folder");
        let path = folder.path().join("t.db");
        let store = Store::open_or_create(&path).expect("a store");
        let head = RunHead {
            name: Some("fuzz".to_owned()),
            subject: "arena".to_owned(),
            arrivals: "even".to_owned(),
            command: "stepladder climb arena".to_owned(),
            stepladder: "0.1.0".to_owned(),
            plan: "{}".to_owned(),
            environment: "{}".to_owned(),
            ..RunHead::default()
        };
        let run = store.begin_run(&head, None).expect("a run");
        let names = measure::MetricNames::new(&["shot"], &["reset"], &["games"], &["refused"]);
        run.begin_trial(
            &measure::TrialHead {
                seq: 0,
                purpose: measure::Purpose::Rung,
                load: 500.0,
                load_unit: measure::LoadUnit::Games,
                bots: 1000,
                connections: 1000,
                tick_period_ns: 16_666_667,
                cell: Default::default(),
                metric_names: Arc::clone(&names),
            },
            1,
        )
        .expect("a trial");
        let mut interval = measure::Interval::new(&names);
        interval.workers = 2;
        (interval.errors[0], interval.counters[0], interval.connections.failed[0]) = (3, 2, 1);
        let flow = measure::Flow { offered: 10, sent: 10, told: 10, ..Default::default() };
        *interval.flow_mut(0, measure::Phase::Hold) = flow;
        interval.distribution_mut(measure::Measure::SendLag, true).record_many(40_000, 10);
        let event =
            measure::Event { at_ns: 0, kind: measure::trial::kind::HOLD.to_owned(), text: "hold".to_owned() };
        let what = measure::Reading::Subject(measure::ProcessMetric::CpuTime);
        run.append(vec![
            measure::Entry::Interval(Box::new(interval)),
            measure::Entry::Event(event),
            measure::Entry::Sample(measure::Sample { at_ns: 1_000_000_000, what, value: 0.25 }),
            measure::Entry::Ticks(Box::new(ticks())),
            measure::Entry::Books(Box::new(books())),
        ])
        .expect("a second");
        run.end_trial(1).expect("an end");
        run.verdict(0, verdict()).expect("a verdict");
        let line = StoredLine { process: 0, source: LineSource::Client, text: "{\"hits\":1}".to_owned() };
        run.line(line).expect("a line");
        run.artifact("plan", b"text").expect("an artifact");
        run.end_run(RunEnd { outcome: Outcome::Finished, reason: None, ended_unix_ms: 1, climb: None })
            .expect("an end");
        drop(store);
        std::fs::read(&path).expect("its bytes")
    });
    &TEMPLATE
}

pub(super) fn store_file_seeds() -> Vec<Vec<u8>> {
    vec![vec![], vec![0, 0, 18, 9], vec![0, 16, 0, 5, 0, 32, 8, 0xff]]
}

/// One row: refused, or read, exported and stored again as it was. Its shape is that of `store::fuzz::read_row`.
pub(super) fn store_rows(input: &[u8]) {
    store::fuzz::read_row(input);
}

/// The rows of the template: one of each table at least.
pub(super) fn store_row_seeds() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir_in(memory()).expect("a folder");
    let path = folder.path().join("s.db");
    std::fs::write(&path, template()).expect("a file");
    let store = Store::open_to_read(&path).expect("a store");
    let runs = store.runs().expect("runs").runs;
    runs.iter().flat_map(|record| store::fuzz::rows_of(&store, &record.id).expect("rows")).collect()
}

fn ticks() -> TickSecond {
    let mut interval = measure::Distribution::new();
    interval.record_many(16_666_667, 60);
    TickSecond {
        source: "log".to_owned(),
        to_ns: 1_000_000_000,
        counts: measure::TickCounts { due: 60, on_time: 60, ..Default::default() },
        busy: Some(interval.clone()),
        interval,
        isr_numerator_ns: Some(0.5),
        counters: vec![("players".to_owned(), 1000)],
        ..TickSecond::default()
    }
}

fn books() -> measure::Books {
    let deliveries = || SumOfBooks {
        receivers: 1,
        owed_min: 3,
        owed_max: 3,
        delivered: 2,
        lost: 1,
        residual: 1,
        ..Default::default()
    };
    let receiver = |receiver| ReceiverBooks {
        receiver,
        sum: deliveries(),
        latency_mean_ns: Some(1.5),
        ..Default::default()
    };
    let pair = PairBooks { sender: 0, receiver: 1, owed_min: 3, owed_max: 3, delivered: 2, lost: 1 };
    measure::Books { sent: 3, ..measure::Books::of(vec![receiver(0), receiver(1)], vec![pair]) }
}

fn verdict() -> StoredVerdict {
    let [judge, verdict] = ["ladder", "PASS"].map(str::to_owned);
    StoredVerdict { judge, verdict, reason: Some("steady".to_owned()), cut_s: 2, evidence: "{}".to_owned() }
}
