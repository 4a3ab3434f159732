//! A trial: one load held once, as the sum of its entries.
//!
//! `Trial::from_entries` is the only sum there is: what the closing page shows live and what `show` replays later come
//! from the same fold over what was committed, so they cannot differ. It keeps the seconds as a series besides the
//! sums, because steadiness and disturbance are read off the series.
//! Units: `_ns` since the start of the trial; shares in [0, 1].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::entry::{Entry, Event, Sample, TickSecond};
use crate::flow::{Flow, Phase};
use crate::interval::{Interval, Measure, OPEN_TIME, Vocabulary};
use crate::ledger::Books;
use crate::ticks::TickCounts;

/// Kinds of events that the fold understands; all others are only marks on the time axis.
pub mod kind {
    /// the ramp has ended: all connections stand, or its time is up
    pub const SETTLE: &str = "settle";
    /// the hold begins
    pub const HOLD: &str = "hold";
    /// the hold ends; the text says what ended it (`60s`, `2Mticks`, `1000games`, `interrupted`, …)
    pub const DRAIN: &str = "drain";
    /// the trial is complete: every worker handed over everything
    pub const END: &str = "end";
    /// the subject's process ended during the trial; the text says how
    pub const SUBJECT_EXITED: &str = "subject exited";
    /// one of the first errors of its cause, as it was met; the text is `cause: words`
    pub const ERROR: &str = "error";
    /// the books of a worker did not add up, or another invariant of ours broke
    pub const BUG: &str = "bug";
}

/// What the trial was asked to be; known before it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialHead {
    /// number within the run, from 0
    pub seq: u32,
    /// `rung`, `calibration`, …
    pub purpose: String,
    /// the load asked for, in `load_unit`
    pub load: f64,
    /// `games`, `clients`, `requesters`, `req/s`, `in_flight`
    pub load_unit: String,
    /// simulated clients
    pub bots: u64,
    /// connections that should stand during the hold
    pub connections: u64,
    /// ns between two ticks of the subject; 0 when it has no ticks
    pub tick_period_ns: u64,
    /// of a sweep: axis and value; else empty
    #[serde(default)]
    pub cell: BTreeMap<String, String>,
    /// names behind the indices
    pub words: Arc<Vocabulary>,
}

/// One second of the series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// seconds since the start of the trial
    pub index: u32,
    /// all operations, planned in any phase
    pub flow: Flow,
    /// the server's own ticks, where it tells them
    pub ticks: TickCounts,
    /// fewest connections open
    pub open_min: u64,
    /// mean response of messages planned in the hold, ns
    pub response_mean_ns: Option<f64>,
    /// mean delivery latency of messages planned in the hold, ns
    pub delivery_mean_ns: Option<f64>,
    /// the busiest worker's share
    pub busy_share_max: f64,
    /// the machine's steal share, where readable
    pub steal_share: Option<f64>,
    /// thermal or power throttle events, where readable
    pub throttle_events: Option<f64>,
}

/// The part that is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    /// begin, after the warm-up cut
    pub from_ns: u64,
    /// end
    pub to_ns: u64,
    /// what ended it
    pub ended_by: String,
}

impl Hold {
    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }

    fn holds_second(&self, index: u32) -> bool {
        let (from_ns, to_ns) = (u64::from(index) * SECOND_NS, (u64::from(index) + 1) * SECOND_NS);
        from_ns >= self.from_ns && to_ns <= self.to_ns
    }
}

/// Connections over the whole trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialConnections {
    /// that should stand
    pub asked: u64,
    /// open in the worst second of the hold, as the mean over that second
    pub open_min: u64,
    /// open at the worst moment of the hold, when many are between two games for a millisecond
    pub open_least: u64,
    /// open when the hold ended
    pub open: u64,
    /// opened during the ramp
    pub opened_in_ramp: u64,
    /// opened per second of the ramp
    pub rate_per_s: Option<f64>,
    /// attempts over the whole trial
    pub attempts: u64,
    /// failed attempts over the whole trial, by cause
    pub failed: BTreeMap<String, u64>,
}

/// The server's own ticks over the hold.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialTicks {
    /// where they come from
    pub source: String,
    /// by class
    pub counts: TickCounts,
    /// between two ticks
    pub interval: Distribution,
    /// work per tick
    pub busy: Option<Distribution>,
    /// actual − scheduled start
    pub lateness: Option<Distribution>,
    /// instability ratio, where the server tells its parts
    pub isr: Option<f64>,
}

/// A process over the hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessFigures {
    /// mean CPU over the hold, in cores
    pub cpu_cores: f64,
    /// of the cores it may use
    pub cpu_share: Option<f64>,
    /// maximum over the hold
    pub rss_bytes: u64,
    /// maximum over the hold
    pub fds: Option<u64>,
}

/// One load held once.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// what it was asked to be
    pub head: TrialHead,
    /// the judged part; `None` when the hold never began
    pub hold: Option<Hold>,
    /// true when the trial ran to its end and everything was handed over
    pub complete: bool,
    /// how many seconds of the hold were cut off as warm-up
    pub cut_s: u32,
    /// messages planned in the hold, by operation
    pub ops: BTreeMap<String, Flow>,
    /// errors over the hold, by cause
    pub errors: BTreeMap<String, u64>,
    /// the bots' own counters over the hold
    pub counters: BTreeMap<String, u64>,
    /// the server's own counters over the hold
    pub subject_counters: BTreeMap<String, u64>,
    /// time that these counters speak of, ns. A server's entries do not begin and end with the hold, so it is a little
    /// more or less than the hold
    pub subject_told_ns: u64,
    /// connections
    pub connections: TrialConnections,
    /// of messages planned in the hold, by `Measure`; handshakes are those of the whole trial
    distributions: Vec<Distribution>,
    /// the server's own ticks
    pub ticks: Option<TrialTicks>,
    /// ticks as the clients see them
    pub client_ticks: TickCounts,
    /// what was owed to whom, and what came; `None` when nothing owed deliveries. Over the whole trial
    pub books: Option<Books>,
    /// bytes per second in both directions over the hold
    pub bytes_per_s: Option<f64>,
    /// the subject's process tree, where it is watched
    pub subject: Option<ProcessFigures>,
    /// this process
    pub worker: ProcessFigures,
    /// the busiest worker's share over the hold
    pub busy_share_max: Option<f64>,
    /// every second of the trial
    pub seconds: Vec<Second>,
    /// every mark
    pub events: Vec<Event>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Trial {
    /// Sums up the entries of one trial, leaving out the first `cut_s` seconds of the hold as warm-up.
    ///
    /// Entries may come in any order. Two passes: the marks first, since they say which second counts.
    pub fn from_entries(head: TrialHead, entries: &[Entry], cut_s: u32) -> Trial {
        let events: Vec<Event> = entries
            .iter()
            .filter_map(|entry| if let Entry::Event(event) = entry { Some(event.clone()) } else { None })
            .collect();
        let last_ns = entries.iter().map(Entry::until_ns).max().unwrap_or(0);
        let hold = find_hold(&events, cut_s, last_ns);
        let mut trial = Trial {
            complete: events.iter().any(|event| event.kind == kind::END),
            hold,
            cut_s,
            ops: BTreeMap::new(),
            errors: BTreeMap::new(),
            counters: BTreeMap::new(),
            subject_counters: BTreeMap::new(),
            subject_told_ns: 0,
            connections: TrialConnections { asked: head.connections, ..TrialConnections::default() },
            distributions: Measure::ALL.iter().map(|_| Distribution::new()).collect(),
            ticks: None,
            client_ticks: TickCounts::default(),
            books: None,
            bytes_per_s: None,
            subject: None,
            worker: ProcessFigures::default(),
            busy_share_max: None,
            seconds: Vec::new(),
            events,
            head,
        };
        let mut intervals: Vec<&Interval> = Vec::new();
        let mut ticks: Vec<&TickSecond> = Vec::new();
        let mut samples: Vec<&Sample> = Vec::new();
        for entry in entries {
            match entry {
                Entry::Interval(interval) => intervals.push(interval),
                Entry::Ticks(second) => ticks.push(second),
                Entry::Sample(sample) => samples.push(sample),
                Entry::Books(books) => trial.books = Some((**books).clone()),
                Entry::Event(_) => {}
            }
        }
        intervals.sort_by_key(|interval| interval.index);
        intervals.iter().for_each(|interval| trial.seconds.push(second_of(interval)));
        trial.sum_intervals(&intervals);
        trial.sum_ticks(&ticks);
        trial.sum_samples(&samples);
        trial
    }

    /// A distribution over the messages planned in the hold (handshakes: over the whole trial).
    pub fn distribution(&self, measure: Measure) -> &Distribution {
        &self.distributions[measure as usize]
    }

    /// All operations together, as planned in the hold.
    pub fn flow(&self) -> Flow {
        self.ops.values().fold(Flow::default(), |mut sum, flow| {
            sum.add(flow);
            sum
        })
    }

    /// The seconds that lie wholly in the hold.
    pub fn hold_seconds(&self) -> impl Iterator<Item = &Second> {
        self.seconds
            .iter()
            .filter(|second| self.hold.as_ref().is_some_and(|hold| hold.holds_second(second.index)))
    }

    /// The first errors of each cause as they were met: cause and words, in the order of their time.
    pub fn error_samples(&self) -> impl Iterator<Item = (&str, &str)> {
        let errors = self.events.iter().filter(|event| event.kind == kind::ERROR);
        errors.map(|event| event.text.split_once(": ").unwrap_or((event.text.as_str(), "")))
    }

    /// The first event of a kind.
    pub fn event(&self, kind: &str) -> Option<&Event> {
        self.events.iter().find(|event| event.kind == kind)
    }

    fn sum_intervals(&mut self, intervals: &[&Interval]) {
        let settled_ns = self.event(kind::SETTLE).map(|event| event.at_ns);
        let ramp_end_ns = settled_ns.unwrap_or(u64::MAX);
        let open_time = self.head.words.counters.iter().position(|name| name == OPEN_TIME);
        let (mut open_min, mut open_least) = (None, None);
        let (mut bytes, mut busiest) = (0u64, None::<f64>);
        let (mut first_opened, mut last_opened) = (None, None);
        for interval in intervals {
            let in_hold = self.hold.as_ref().is_some_and(|hold| hold.holds_second(interval.index));
            let from_cut =
                self.hold.as_ref().is_some_and(|hold| u64::from(interval.index) * SECOND_NS >= hold.from_ns);
            self.connections.attempts += interval.connections.asked;
            for (cause, &count) in self.head.words.connect_failures.iter().zip(&interval.connections.failed) {
                if count > 0 {
                    *self.connections.failed.entry(cause.clone()).or_default() += count;
                }
            }
            let handshake = Measure::Handshake;
            for part in [true, false] {
                self.distributions[handshake as usize].add(interval.distribution(handshake, part));
            }
            if interval.connections.opened > 0 && u64::from(interval.index) * SECOND_NS < ramp_end_ns {
                first_opened.get_or_insert(interval.index);
                last_opened = Some(interval.index);
                self.connections.opened_in_ramp += interval.connections.opened;
            }
            if from_cut {
                self.sum_planned_in_hold(interval);
            }
            if in_hold {
                add_named(&mut self.errors, &self.head.words.errors, &interval.errors);
                add_named(&mut self.counters, &self.head.words.counters, &interval.counters);
                let fewest = interval.connections.open_min;
                let mean = open_time.map_or(fewest, |counter| interval.counters[counter] / 1_000);
                open_min = Some(open_min.map_or(mean, |least: u64| least.min(mean)));
                open_least = Some(open_least.map_or(fewest, |least: u64| least.min(fewest)));
                self.connections.open = interval.connections.open_end;
                self.client_ticks.add(&interval.ticks);
                bytes += interval.bytes_sent + interval.bytes_received;
                busiest =
                    Some(busiest.map_or(interval.busy_share_max, |most| most.max(interval.busy_share_max)));
            }
        }
        self.connections.open_min = open_min.unwrap_or(0);
        self.connections.open_least = open_least.unwrap_or(0);
        self.busy_share_max = busiest.map(|share| share.min(1.0));
        self.bytes_per_s =
            self.hold.as_ref().filter(|hold| hold.seconds() > 0.0).map(|hold| bytes as f64 / hold.seconds());
        // The ramp begins with the trial. One that was cut off in its ramp has only its whole seconds.
        let ramp_s = match (settled_ns, first_opened.zip(last_opened)) {
            (Some(settled_ns), _) => Some(settled_ns as f64 / 1e9),
            (None, Some((first, last))) => Some(f64::from(last - first + 1)),
            (None, None) => None,
        };
        let opened = self.connections.opened_in_ramp as f64;
        self.connections.rate_per_s =
            ramp_s.filter(|&ramp_s| ramp_s > 0.0 && opened > 0.0).map(|ramp_s| opened / ramp_s);
    }

    fn sum_planned_in_hold(&mut self, interval: &Interval) {
        for (name, phases) in self.head.words.ops.iter().zip(&interval.flows) {
            let flow = phases[Phase::Hold as usize];
            match self.ops.get_mut(name) {
                Some(sum) => sum.append(&flow),
                None => {
                    self.ops.insert(name.clone(), flow);
                }
            }
        }
        for measure in Measure::ALL {
            if measure != Measure::Handshake {
                self.distributions[measure as usize].add(interval.distribution(measure, true));
            }
        }
    }

    fn sum_ticks(&mut self, ticks: &[&TickSecond]) {
        for tick in ticks {
            let middle_ns = (tick.from_ns + tick.to_ns) / 2;
            let index = (middle_ns / SECOND_NS) as u32;
            if let Some(second) = self.seconds.iter_mut().find(|second| second.index == index) {
                second.ticks.add(&tick.counts);
            }
        }
        let Some(hold) = &self.hold else { return };
        let mut isr_numerator_ns = Some(0.0);
        // A server's seconds (or shorter entries) do not begin with ours: those that *end* in the hold are taken, which
        // cover as long as the hold, reach into the settling before it by less than one, and never into the drain behind it.
        for tick in ticks.iter().filter(|tick| tick.to_ns > hold.from_ns && tick.to_ns <= hold.to_ns) {
            let sum = self.ticks.get_or_insert_with(|| TrialTicks {
                source: tick.source.clone(),
                counts: TickCounts::default(),
                interval: Distribution::new(),
                busy: None,
                lateness: None,
                isr: None,
            });
            sum.counts.add(&tick.counts);
            sum.interval.add(&tick.interval);
            add_optional(&mut sum.busy, tick.busy.as_ref());
            add_optional(&mut sum.lateness, tick.lateness.as_ref());
            isr_numerator_ns = isr_numerator_ns.zip(tick.isr_numerator_ns).map(|(sum, more)| sum + more);
            self.subject_told_ns += tick.to_ns.saturating_sub(tick.from_ns);
            for (name, count) in &tick.counters {
                *self.subject_counters.entry(name.clone()).or_default() += count;
            }
        }
        let period_ns = self.head.tick_period_ns;
        if let Some(sum) = self.ticks.as_mut().filter(|sum| sum.counts.due > 0 && period_ns > 0) {
            let denominator_ns = sum.counts.due as f64 * 2.0 * period_ns as f64;
            sum.isr = isr_numerator_ns.map(|numerator_ns| numerator_ns / denominator_ns);
        }
    }

    fn sum_samples(&mut self, samples: &[&Sample]) {
        for sample in samples.iter().filter(|sample| sample.who == "machine") {
            // A reading at the end of a second speaks of that second.
            let index = (sample.at_ns.saturating_sub(SECOND_NS / 2) / SECOND_NS) as u32;
            if let Some(second) = self.seconds.iter_mut().find(|second| second.index == index) {
                match sample.name {
                    "steal_share" => second.steal_share = Some(sample.value),
                    "throttle_events" => second.throttle_events = Some(sample.value),
                    _ => {}
                }
            }
        }
        let Some(hold) = self.hold.clone() else { return };
        self.subject = process_figures(samples, "subject", &hold);
        self.worker = process_figures(samples, "worker", &hold).unwrap_or_default();
    }
}

impl Entry {
    /// The latest moment this entry speaks of, ns since the start of the trial.
    pub fn until_ns(&self) -> u64 {
        match self {
            Entry::Interval(interval) => (u64::from(interval.index) + 1) * SECOND_NS,
            Entry::Sample(sample) => sample.at_ns,
            Entry::Ticks(second) => second.to_ns,
            Entry::Event(event) => event.at_ns,
            // They speak of the whole trial, and so of no moment.
            Entry::Books(_) => 0,
        }
    }
}

fn find_hold(events: &[Event], cut_s: u32, last_ns: u64) -> Option<Hold> {
    let from_ns = events.iter().find(|event| event.kind == kind::HOLD)?.at_ns + u64::from(cut_s) * SECOND_NS;
    let (to_ns, ended_by) = match events.iter().find(|event| event.kind == kind::DRAIN) {
        Some(event) => (event.at_ns, event.text.clone()),
        None => (last_ns, "interrupted".to_owned()),
    };
    Some(Hold { from_ns, to_ns: to_ns.max(from_ns), ended_by })
}

fn second_of(interval: &Interval) -> Second {
    let mut flow = Flow::default();
    interval.flows.iter().flatten().for_each(|part| flow.add(part));
    Second {
        index: interval.index,
        flow,
        open_min: interval.connections.open_min,
        response_mean_ns: interval.distribution(Measure::Response, true).mean_ns(),
        delivery_mean_ns: interval.distribution(Measure::Delivery, true).mean_ns(),
        busy_share_max: interval.busy_share_max,
        ..Second::default()
    }
}

/// CPU is stored as a growing total, so its mean over the hold is exact whatever the samples' spacing.
fn process_figures(samples: &[&Sample], who: &str, hold: &Hold) -> Option<ProcessFigures> {
    // One sample of slack on either side: a sampler's wake-up is never exactly on the second.
    let slack_ns = SECOND_NS / 2;
    let inside: Vec<_> = samples
        .iter()
        .filter(|sample| sample.who == who)
        .filter(|sample| sample.at_ns + slack_ns >= hold.from_ns && sample.at_ns <= hold.to_ns + slack_ns)
        .collect();
    let series = |name: &'static str| inside.iter().filter(move |sample| sample.name == name);
    let largest = |name| {
        series(name)
            .map(|sample| sample.value)
            .fold(None, |most: Option<f64>, value| Some(most.map_or(value, |most| most.max(value))))
    };
    let first = series("cpu_s").min_by_key(|sample| sample.at_ns)?;
    let last = series("cpu_s").max_by_key(|sample| sample.at_ns)?;
    let elapsed_s = (last.at_ns - first.at_ns) as f64 / 1e9;
    let cpu_cores = if elapsed_s > 0.0 { ((last.value - first.value) / elapsed_s).max(0.0) } else { 0.0 };
    let allowed = largest("allowed_cores");
    Some(ProcessFigures {
        cpu_cores,
        cpu_share: allowed.filter(|&cores| cores > 0.0).map(|cores| (cpu_cores / cores).clamp(0.0, 1.0)),
        rss_bytes: largest("rss_bytes").unwrap_or(0.0) as u64,
        fds: largest("fds").map(|count| count as u64),
    })
}

fn add_named(sums: &mut BTreeMap<String, u64>, names: &[String], counts: &[u64]) {
    for (name, &count) in names.iter().zip(counts).filter(|&(_, &count)| count > 0) {
        *sums.entry(name.clone()).or_default() += count;
    }
}

fn add_optional(sum: &mut Option<Distribution>, more: Option<&Distribution>) {
    if let Some(more) = more {
        sum.get_or_insert_with(Distribution::new).add(more);
    }
}

#[cfg(test)]
mod tests;
