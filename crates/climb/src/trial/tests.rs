use measure::{LedgerShape, LoadUnit, MetricNames, Purpose, TrialHead};
use plan::{HoldLength, Target};

use super::*;

#[test]
fn first_errors_leave_their_second_and_become_marks_with_their_cause() {
    let mut second = Interval::new(&MetricNames::new(&["get"], &["lost", "rejected (429, 503)"], &[], &[]));
    second.index = 6;
    second.samples = vec![(1, "status 503: \"busy\"".to_owned()), (0, "cut".to_owned())];
    let events = marks(&mut second);
    let texts: Vec<&str> = events.iter().map(|event| event.text.as_str()).collect();
    assert_eq!(texts, ["rejected (429, 503): status 503: \"busy\"", "lost: cut"]);
    assert!(events.iter().all(|event| event.kind == kind::ERROR && event.at_ns == 7_000_000_000));
    assert!(marks(&mut second).is_empty());
}

/// Keeps what a trial keeps, and lets it go on.
#[derive(Default)]
struct Keeper(Vec<Entry>);

impl TrialEnv for Keeper {
    fn begin(&mut self, _: MonotonicClock, _: u64) -> anyhow::Result<()> {
        Ok(())
    }
    fn entries(&mut self) -> Vec<Entry> {
        Vec::new()
    }
    fn ends(&mut self) -> Option<StopReason> {
        None
    }
    fn keep(&mut self, entry: Entry) -> anyhow::Result<()> {
        self.0.push(entry);
        Ok(())
    }
    fn show(&mut self, _: &TrialStatus<'_>) {}
    fn end(&mut self) {}
}

impl Keeper {
    fn texts_of(&self, wanted: &str) -> Vec<&str> {
        let texts = self.0.iter().filter_map(|entry| match entry {
            Entry::Event(event) if event.kind == wanted => Some(event.text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn workers_by_second(&self) -> Vec<(u32, u32)> {
        let second = |entry: &Entry| match entry {
            Entry::Interval(second) => Some((second.index, second.workers)),
            _ => None,
        };
        self.0.iter().filter_map(second).collect()
    }
}

fn second(words: &Arc<MetricNames>, index: u32) -> Box<Interval> {
    let mut interval = Interval::new(words);
    (interval.index, interval.workers) = (index, 1);
    Box::new(interval)
}

#[test]
fn a_worker_that_panicked_ends_the_trial_as_our_bug_and_what_was_measured_is_kept() {
    let words = MetricNames::new(&["say"], &[], &[], &[]);
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let target = Target::at(plan::Scheme::Ws, address);
    let head = TrialHead {
        seq: 0,
        purpose: Purpose::Rung,
        load: 2.0,
        load_unit: LoadUnit::Clients,
        bots: 2,
        connections: 2,
        tick_period_ns: 0,
        cell: Default::default(),
        metric_names: words.clone(),
    };
    let order = TrialSpec {
        head,
        workers: Vec::new(),
        target: &target,
        hold: HoldLength::Time(60_000_000_000),
        settle_ns: 0,
        realtime: false,
        spin_ns: 0,
        cores: Vec::new(),
        terms: None,
        stop: None,
        recovery: None,
    };
    let (says, hears) = channel();
    let (mut collector, _ends) = Collector::new(2, &says);
    let said = |word| says.send(word).unwrap();
    for worker in 0..2 {
        said(FromWorker::Second { worker, interval: second(&words, 0) });
    }
    said(FromWorker::Panicked { worker: 1, why: "planted".to_owned() });
    said(FromWorker::Second { worker: 0, interval: second(&words, 1) });
    let shape =
        LedgerShape { senders: 2, locals: 1, first: 0, step: 2, patience_ns: 1, margin_ns: 0, echoes: false };
    said(FromWorker::Ledger {
        part: Box::new(LedgerPart::new(shape, measure::ledger::SharedLedger::default())),
    });
    said(FromWorker::Done { worker: 0 });
    let mut stage = stage(&order, MonotonicClock::starting_now(), Arc::default(), Vec::new());
    let mut keeper = Keeper::default();
    assert!(stage.play(&mut collector, &hears, &mut keeper).unwrap(), "the trial is complete");
    assert_eq!(keeper.texts_of(kind::BUG), ["worker 1 panicked: planted"]);
    assert_eq!(keeper.texts_of(kind::DRAIN), ["a worker panicked"]);
    assert_eq!(keeper.workers_by_second(), [(0, 2), (1, 1)]);
    assert!(
        !keeper.0.iter().any(|entry| matches!(entry, Entry::Books(_))),
        "half of a ledger settles nothing"
    );
}
