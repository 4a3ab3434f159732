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
    fn begin(&mut self, _: MonotonicClock, _: u64, _: Vec<u32>) -> anyhow::Result<()> {
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

/// A load whose workers are played by the test.
struct Played;

impl Load for Played {
    fn begin(&mut self, _: Start) -> anyhow::Result<Collector> {
        bail!("it has begun")
    }
    fn counts(&self) -> Counts {
        Counts::default()
    }
    fn end(&mut self) {}
}

/// What is kept of a trial of two parts of which one ends like this after its first second.
fn kept_without(ends: impl FnOnce(usize) -> FromWorker) -> Keeper {
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
        plan: plan::resolve(&plan::Flags::of("arena"), None, 1).unwrap(),
        load: 2.0,
        workers: Vec::new(),
        target: &target,
        null: None,
        is_here: true,
        hold: HoldLength::Time(60_000_000_000),
        settle_ns: 0,
        threads: ThreadOptions::default(),
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
    said(ends(1));
    said(FromWorker::Second { worker: 0, interval: second(&words, 1) });
    let shape = LedgerShape { locals: 1, step: 2, ..LedgerShape::alone(2, 1) };
    said(FromWorker::Ledger {
        part: Box::new(LedgerPart::new(shape, measure::ledger::SharedLedger::default())),
    });
    said(FromWorker::Done { worker: 0 });
    let mut load = Played;
    let mut stage = stage(&order, MonotonicClock::starting_now(), Arc::default(), &mut load);
    let mut keeper = Keeper::default();
    assert!(stage.play(&mut collector, &hears, &mut keeper).unwrap(), "the trial is complete");
    assert_eq!(keeper.workers_by_second(), [(0, 2), (1, 1)], "what was measured is kept");
    assert!(
        !keeper.0.iter().any(|entry| matches!(entry, Entry::Books(_))),
        "half of a ledger settles nothing"
    );
    keeper
}

#[test]
fn a_worker_that_panicked_ends_the_trial_as_our_bug() {
    let why = "worker 1 panicked: planted";
    let keeper = kept_without(|worker| FromWorker::Panicked { worker, why: why.to_owned() });
    assert_eq!(
        (keeper.texts_of(kind::BUG), keeper.texts_of(kind::DRAIN)),
        (vec![why], vec!["a worker panicked"])
    );
}

#[test]
fn an_agent_that_is_lost_ends_the_trial_as_one_that_proves_nothing() {
    let why = "b (1 of 2 is left): nothing was heard of it for 5 s";
    let keeper = kept_without(|worker| FromWorker::Lost { worker, why: why.to_owned() });
    let kept = (keeper.texts_of(kind::AGENT_LOST), keeper.texts_of(kind::DRAIN), keeper.texts_of(kind::BUG));
    assert_eq!(kept, (vec![why], vec!["an agent was lost"], Vec::new()));
}
