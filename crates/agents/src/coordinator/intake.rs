//! What comes up from agents in a trial, and how they stand: merged into what a trial's own workers would say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use climb::trial::Counts;
use engine::Timeline;
use engine::collector::FromWorker;
use measure::ledger::PackedPart;
use measure::{
    AgentFacts, Distribution, Entry, Interval, LedgerPart, Measure, MetricNames, ProcessMetric, Quantile,
    Reading, Sample,
};

use crate::merge::Samples;
use crate::messages::{Announcement, State, What, unpack};

/// Of why an agent ended, in its own words.
pub(super) const WHY_CHARS: usize = 300;

/// A trial's agents. Parts are numbered as the collector knows them, agents as the session does.
pub(crate) struct Intake {
    pub(crate) trial: u32,
    /// of all agents
    pub(crate) bots: u32,
    /// of these, those that may send where a ledger is kept, as the first part of one says
    pub(crate) senders: Option<u32>,
    pub(crate) names: Arc<MetricNames>,
    pub(crate) says: Sender<FromWorker>,
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) agents: BTreeMap<usize, Part>,
    /// of our own machine the last source
    pub(crate) samples: Samples,
    pub(crate) entries: Vec<Entry>,
}

/// One agent in a trial.
pub(crate) struct Part {
    /// its number among those that take part
    pub(crate) part: usize,
    pub(crate) state: State,
    /// it was heard of, or need not be expected to be
    pub(crate) heard: Instant,
    pub(crate) is_done: bool,
    pub(crate) facts: AgentFacts,
    lag: Distribution,
    ledger: Vec<u8>,
    /// CPU times in the hold: the first and the last, with their instants
    cpu: Option<[(u64, f64); 2]>,
}

impl Part {
    pub(crate) fn new(part: usize, facts: AgentFacts) -> Part {
        Part {
            part,
            state: State::default(),
            heard: Instant::now(),
            is_done: false,
            facts,
            lag: Distribution::new(),
            ledger: Vec::new(),
            cpu: None,
        }
    }

    /// Over the hold, as far as it went.
    fn facts(&self) -> AgentFacts {
        let mut facts = self.facts.clone();
        if let Quantile::Ns(ns) = self.lag.quantile(0.99, 0) {
            facts.send_lag_p99_ns = Some(ns);
        }
        facts.cpu_cores = self
            .cpu
            .filter(|[first, last]| last.0 > first.0)
            .map(|[first, last]| (last.1 - first.1) / ((last.0 - first.0) as f64 / 1e9));
        facts
    }

    fn sum(&mut self, interval: &Interval, is_in_hold: bool) {
        self.lag.add(interval.distribution(Measure::SendLag, true));
        if is_in_hold {
            let busiest = interval.busy_share_max.min(1.0);
            self.facts.busy_share_max = Some(self.facts.busy_share_max.unwrap_or(0.0).max(busiest));
        }
    }

    fn sample(&mut self, sample: &Sample, is_in_hold: bool) {
        if sample.what == Reading::Worker(ProcessMetric::CpuTime) && is_in_hold {
            let now = (sample.at_ns, sample.value);
            self.cpu = Some([self.cpu.map_or(now, |cpu| cpu[0]), now]);
        }
    }
}

impl Intake {
    /// An agent tells how it stands.
    pub(crate) fn hear(&mut self, number: usize, state: State) {
        let Some(part) = self.agents.get_mut(&number) else { return };
        part.heard = Instant::now();
        if state.trial == Some(self.trial) {
            part.state = state;
        }
    }

    /// The next message of an agent.
    pub(crate) fn take(&mut self, number: usize, trial: u32, what: What) {
        let Some(part) = self.agents.get_mut(&number).filter(|part| !part.is_done) else { return };
        if trial != self.trial {
            return;
        }
        let worker = part.part;
        let holds = |at_ns: u64| at_ns >= self.timeline.hold_ns() && at_ns <= self.timeline.drain_ns();
        let said = match what {
            What::Second { interval, events } => {
                self.entries.extend(events.into_iter().map(Entry::Event));
                let index = interval.index;
                match interval.of_names(&self.names) {
                    Some(interval) => {
                        part.sum(&interval, holds(u64::from(index) * 1_000_000_000));
                        FromWorker::Second { worker, interval: Box::new(interval) }
                    }
                    None => {
                        let why = format!("agent {} measures other things than were asked", part.facts.name);
                        part.is_done = true;
                        FromWorker::Panicked { worker, why }
                    }
                }
            }
            What::Samples(samples) => {
                let samples: Vec<Sample> = samples.into_iter().map(Sample::from).collect();
                samples.iter().for_each(|sample| part.sample(sample, holds(sample.at_ns)));
                self.samples.take(worker, samples);
                return;
            }
            // It makes load and watches nothing; of one that is lost the coordinator knows.
            What::Ticks(_) | What::Events(_) | What::Lost(_) => return,
            What::Ledger { is_last, bytes } => {
                part.ledger.extend(bytes);
                if is_last {
                    self.settle(number);
                }
                return;
            }
            What::Done => {
                part.is_done = true;
                self.samples.ends(worker);
                match part.state.late_ns {
                    0 => FromWorker::Done { worker },
                    late_ns => self.was_late(number, late_ns),
                }
            }
            What::Bug(why) => {
                part.is_done = true;
                let why = measure::plain_text(&why, WHY_CHARS);
                FromWorker::Panicked { worker, why: format!("agent {}: {why}", part.facts.name) }
            }
        };
        // If the receiver is gone, the trial has ended.
        let _ = self.says.send(said);
    }

    /// The parts of an agent's ledger are all there.
    fn settle(&mut self, number: usize) {
        let Some(part) = self.agents.get_mut(&number) else { return };
        let packed = std::mem::take(&mut part.ledger);
        let parts = unpack::<Vec<PackedPart>>(&packed).ok();
        let parts: Option<Vec<LedgerPart>> =
            parts.and_then(|parts| parts.into_iter().map(|part| part.unpacked(self.bots)).collect());
        match parts {
            Some(parts)
                if parts.iter().all(|part| part.senders() == *self.senders.get_or_insert(part.senders())) =>
            {
                for part in parts {
                    let _ = self.says.send(FromWorker::Ledger { part: Box::new(part) });
                }
            }
            _ => {
                part.is_done = true;
                let why = format!("agent {}: its ledger cannot be read", part.facts.name);
                let _ = self.says.send(FromWorker::Panicked { worker: part.part, why });
            }
        }
    }

    fn was_late(&mut self, number: usize, late_ns: u64) -> FromWorker {
        let part = self.agents.get_mut(&number).expect("it has just spoken");
        let why = format!("it learnt {} ms too late when the hold began or ended", late_ns / 1_000_000);
        part.facts.lost = Some(why.clone());
        FromWorker::Lost { worker: part.part, why: format!("{}: {why}", part.facts.name) }
    }

    /// An agent takes no part any more; `words` say so with the number of those that are left.
    pub(crate) fn lose(&mut self, number: usize, why: &str, words: String) {
        let Some(part) = self.agents.get_mut(&number).filter(|part| !part.is_done) else { return };
        part.is_done = true;
        part.facts.lost = Some(why.to_owned());
        self.samples.ends(part.part);
        let _ = self.says.send(FromWorker::Lost { worker: part.part, why: words });
    }

    pub(crate) fn counts(&self) -> Counts {
        let sum = |of: fn(&State) -> u64| self.agents.values().map(|part| of(&part.state)).sum();
        Counts {
            open: sum(|state| state.open),
            joined: sum(|state| state.joined),
            failed: sum(|state| state.failed),
        }
    }

    /// What was decided so far, and how many bots have reached each meeting point.
    pub(crate) fn announcement(&self) -> Announcement {
        let sum = |point: usize| self.agents.values().map(|part| part.state.met[point]).sum();
        Announcement {
            trial: Some(self.trial),
            instants: self.timeline.instants().to_vec(),
            met: [sum(0), sum(1)],
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.agents.values().all(|part| part.is_done)
    }

    pub(crate) fn facts(&self) -> Vec<AgentFacts> {
        self.agents.values().map(Part::facts).collect()
    }
}
