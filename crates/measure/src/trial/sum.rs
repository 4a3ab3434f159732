//! The fold that builds a trial from its entries, one at a time.
//!
//! Marks come first, since they decide which second counts (during a trial, each comes before what it affects); then
//! every entry is folded once, in any order, and may be discarded. A second is kept as numbers, never as histograms: an
//! hour of many bots needs memory for its series, one histogram per measure and those of `Stretches`. Whatever depends on the order of
//! seconds (what stayed open from one to the next, what was open at the end) is settled in `finish`, when all are
//! known.
//! Not here: which seconds are warm-up (`ladder::warm_up_cut`), reading (`store`).

use std::collections::{BTreeMap, BTreeSet};

use super::compared::Comparing;
use super::host::HostSecond;
use super::parts::{Hold, Second, TrialConnections, TrialHead, TrialTicks};
use super::process::Readings;
use super::same_time::Collecting;
use super::stretches::Stretches;
use super::tick_cover::TickCover;
use super::{Trial, kind};
use crate::distribution::Distribution;
use crate::entry::{Entry, Event, TickSecond};
use crate::flow::{Flow, Phase};
use crate::interval::{Interval, Measure};
use crate::names::Role;
use crate::sample::{Reading, Sample};
use crate::seconds::{SECOND_NS, second_at};
use crate::ticks::TickCounts;

/// A trial whose entries were not all taken yet.
#[derive(Clone, Debug)]
pub struct Sum {
    /// what adds up in any order is already here. A hold without an end mark is open until `finish`
    trial: Trial,
    settled_ns: Option<u64>,
    /// the latest moment that an entry spoke of
    last_ns: u64,
    /// index of the counter of connection time, where the bots have it
    open_time: Option<usize>,
    seconds: Vec<KeptSecond>,
    beside: BTreeMap<u32, Beside>,
    subject: Readings,
    worker: Readings,
    open_min: Option<u64>,
    open_least: Option<u64>,
    bytes: u64,
    /// how much of the hold the server's ticks cover
    cover: TickCover,
    /// of the sources that are only compared
    comparing: Comparing,
    /// where the counters of an audit are: checked, wrong, and unread where the bots count those
    audit: Option<(usize, usize, Option<usize>)>,
    /// where the counters of games are, in the order of the fields of `Games`
    games: Option<[usize; 3]>,
    /// index of the counter of time that bots live, where they have several lives
    session_time: Option<usize>,
    /// seconds of the hold in which it was counted
    session_seconds: u64,
    /// where the counters of a shutdown are, in the order of `Role::Shutdown`
    shutdown: Option<[usize; 4]>,
    /// the same of cheats
    cheats: Option<[usize; 3]>,
    /// when the subject was told to shut down, ns; `u64::MAX`: never
    told_to_end_ns: u64,
    /// both sides' counters over the same time
    same_time: Collecting,
    /// over the server's ticks of the hold, ns; `None` once an entry did not say
    isr_numerator_ns: Option<f64>,
}

/// What is kept of a second of the bots.
#[derive(Clone, Debug)]
struct KeptSecond {
    second: Second,
    /// messages planned in the hold, by operation; nothing before the (cut) hold
    planned_in_hold: Vec<Flow>,
    open_end: u64,
    opened: u64,
}

/// What others tell of a second; it may come before that second of the bots.
#[derive(Clone, Debug, Default)]
struct Beside {
    ticks: TickCounts,
    host: HostSecond,
}

impl Trial {
    /// Sums up entries that are all in memory, leaving out the first `cut_s` seconds of the hold as warm-up.
    ///
    /// Entries may come in any order.
    pub fn from_entries(head: TrialHead, entries: &[Entry], cut_s: u32) -> Trial {
        Trial::from_entries_without(head, entries, cut_s, BTreeSet::new())
    }

    /// The same without the seconds of these indices.
    pub fn from_entries_without(
        head: TrialHead,
        entries: &[Entry],
        cut_s: u32,
        left_out: BTreeSet<u32>,
    ) -> Trial {
        let event = |entry: &Entry| if let Entry::Event(event) = entry { Some(event.clone()) } else { None };
        let events = entries.iter().filter_map(event).collect();
        let mut sum = Sum::new(head, events, cut_s).leaving_out(left_out);
        entries.iter().for_each(|entry| sum.take(entry));
        sum.finish()
    }
}

impl Sum {
    /// The sum of nothing: `events` are all marks of the trial, in the order they came; the first `cut_s` seconds of the
    /// hold are left out as warm-up.
    pub fn new(head: TrialHead, events: Vec<Event>, cut_s: u32) -> Sum {
        let counter = |role| head.metric_names.counters(role).next();
        let (open_time, session_time) = (counter(Role::OpenTime), counter(Role::SessionTime));
        let audit = counter(Role::AuditChecked)
            .zip(counter(Role::AuditWrong))
            .map(|(checked, wrong)| (checked, wrong, counter(Role::AuditUnread)));
        let games = [Role::GamesPlayed, Role::GameTime, Role::GamesUnending].map(counter);
        let games = if let [Some(played), Some(time), Some(unending)] = games {
            Some([played, time, unending])
        } else {
            None
        };
        let (shutdown, cheats) = (all_of(&head, Role::Shutdown), all_of(&head, Role::Cheats));
        let trial = Trial {
            complete: false,
            hold: None,
            cut_s,
            left_out: BTreeSet::new(),
            ops: BTreeMap::new(),
            of_ops: BTreeMap::new(),
            values: BTreeMap::new(),
            errors: BTreeMap::new(),
            errors_before_hold: BTreeMap::new(),
            counters: BTreeMap::new(),
            subject_counters: BTreeMap::new(),
            subject_told_ns: 0,
            same_time: None,
            connections: TrialConnections { asked: head.connections, ..TrialConnections::default() },
            distributions: Measure::ALL.iter().map(|_| Distribution::new()).collect(),
            ticks: None,
            logged: None,
            is_in_log: false,
            client_ticks: TickCounts::default(),
            compared_ticks: Vec::new(),
            books: None,
            audit: None,
            games: None,
            at_once: None,
            shutdown: None,
            cheats: None,
            bytes_per_s: None,
            subject: None,
            worker: Default::default(),
            busy_share_max: None,
            seconds: Vec::new(),
            stretches: Stretches::default(),
            events: Vec::new(),
            head,
        };
        let mut sum = Sum {
            trial,
            settled_ns: None,
            last_ns: 0,
            open_time,
            audit,
            games,
            session_time,
            session_seconds: 0,
            shutdown,
            cheats,
            told_to_end_ns: u64::MAX,
            seconds: Vec::new(),
            beside: BTreeMap::new(),
            subject: Readings::default(),
            worker: Readings::default(),
            open_min: None,
            open_least: None,
            bytes: 0,
            cover: TickCover::default(),
            comparing: Comparing::default(),
            same_time: Collecting::default(),
            isr_numerator_ns: Some(0.0),
        };
        sum.mark(events);
        sum
    }

    /// Takes further marks of a trial that goes on.
    pub fn mark(&mut self, events: impl IntoIterator<Item = Event>) {
        let trial = &mut self.trial;
        trial.events.extend(events);
        let at = |kind: &str| trial.events.iter().find(|event| event.kind == kind).map(|event| event.at_ns);
        self.settled_ns = at(kind::SETTLE);
        self.told_to_end_ns = at(kind::SUBJECT_TOLD_TO_END).unwrap_or(u64::MAX);
        trial.complete = at(kind::END).is_some();
        if let Some(hz) =
            trial.event(kind::TICK_RATE).and_then(found_hz).filter(|_| trial.head.tick_period_ns == 0)
        {
            trial.head.tick_period_ns = (1e9 / hz).round() as u64;
        }
        trial.hold = find_hold(&trial.events, trial.cut_s);
    }

    /// The trial as far as it was taken: its marks and what adds up in any order. A hold that no mark ends yet lasts until
    /// `u64::MAX`.
    pub fn so_far(&self) -> &Trial {
        &self.trial
    }

    /// The same without these seconds: nothing that happened in them enters a sum. Before any entry is taken.
    pub fn leaving_out(mut self, seconds: BTreeSet<u32>) -> Sum {
        self.trial.left_out = seconds;
        self
    }

    /// Takes one entry. A mark says nothing here that `new` was not told.
    pub fn take(&mut self, entry: &Entry) {
        self.last_ns = self.last_ns.max(entry.until_ns());
        match entry {
            Entry::Interval(interval) => self.interval(interval),
            Entry::Ticks(second) => self.ticks(second),
            Entry::Sample(sample) => self.sample(sample),
            Entry::Books(books) => self.trial.books = Some((**books).clone()),
            Entry::Event(_) => {}
        }
    }

    /// The trial, once every entry was taken.
    pub fn finish(mut self) -> Trial {
        let marked_ns = self.trial.events.iter().map(|event| event.at_ns).max();
        self.last_ns = self.last_ns.max(marked_ns.unwrap_or(0));
        if let Some(hold) = &mut self.trial.hold {
            // Nothing comes after the last moment, so an open end admitted nothing that this one does not.
            hold.to_ns = hold.to_ns.min(self.last_ns.max(hold.from_ns));
        }
        self.seconds.sort_by_key(|told| told.second.index);
        self.finish_connections();
        self.finish_seconds();
        self.cover.finish(&mut self.trial);
        self.trial.compared_ticks = std::mem::take(&mut self.comparing).finish(&self.trial);
        let ops = &self.trial.head.metric_names.ops;
        self.trial.same_time = self.same_time.finish(ops, &self.trial.left_out);
        let trial = &mut self.trial;
        let held_s = trial.held_s();
        trial.bytes_per_s = (held_s > 0.0).then(|| self.bytes as f64 / held_s);
        trial.busy_share_max = trial.busy_share_max.map(|share| share.min(1.0));
        let period_ns = trial.head.tick_period_ns;
        if let Some(ticks) = trial.ticks.as_mut().filter(|ticks| ticks.counts.due > 0 && period_ns > 0) {
            let denominator_ns = ticks.counts.due as f64 * 2.0 * period_ns as f64;
            ticks.isr = self.isr_numerator_ns.map(|numerator_ns| numerator_ns / denominator_ns);
        }
        trial.subject = self.subject.figures(&trial.left_out);
        trial.worker = self.worker.figures(&trial.left_out).unwrap_or_default();
        self.trial
    }

    fn interval(&mut self, interval: &Interval) {
        let trial = &mut self.trial;
        let names = &trial.head.metric_names;
        if let Some((checked, wrong, unread)) = self.audit {
            let audit = trial.audit.get_or_insert_default();
            audit.checked += interval.counters[checked];
            audit.wrong += interval.counters[wrong];
            audit.unread += unread.map_or(0, |place| interval.counters[place]);
        }
        if let Some(places) = self.games {
            let [played, played_ms, unending] = places.map(|place| interval.counters[place]);
            let games = trial.games.get_or_insert_default();
            games.played += played;
            games.played_ms += played_ms;
            games.unending += unending;
        }
        if let Some(places) = self.shutdown.filter(|_| self.told_to_end_ns < u64::MAX) {
            let [under_way, dropped, later, later_refused] = places.map(|place| interval.counters[place]);
            let shutdown = trial.shutdown.get_or_insert_default();
            shutdown.under_way += under_way;
            shutdown.dropped += dropped;
            shutdown.later += later;
            shutdown.later_refused += later_refused;
        }
        if let Some(places) = self.cheats {
            let [sent, refused, accepted] = places.map(|place| interval.counters[place]);
            let cheats = trial.cheats.get_or_insert_default();
            cheats.sent += sent;
            cheats.refused += refused;
            cheats.accepted += accepted;
        }
        let is_kept = !trial.left_out.contains(&interval.index);
        let in_hold = trial.hold.as_ref().is_some_and(|hold| hold.holds_second(interval.index)) && is_kept;
        let from_cut =
            trial.hold.as_ref().is_some_and(|hold| u64::from(interval.index) * SECOND_NS >= hold.from_ns);
        trial.connections.attempts += interval.connections.asked;
        // A server that shuts down may refuse connections.
        if u64::from(interval.index) * SECOND_NS < self.told_to_end_ns {
            add_named(&mut trial.connections.failed, &names.connect_failures, &interval.connections.failed);
        }
        for &measure in Measure::ALL {
            let sum = &mut trial.distributions[measure as usize];
            if measure.is_of_whole_trial() {
                [true, false].into_iter().for_each(|part| sum.add(interval.distribution(measure, part)));
            } else if from_cut && is_kept {
                sum.add(interval.distribution(measure, true));
            }
        }
        if from_cut && is_kept {
            for (op, name) in names.ops.iter().enumerate().take(names.timed_ops) {
                if let Some(values) = interval.of_op(op) {
                    trial.of_ops.entry(name.clone()).or_default().add(values);
                }
            }
            for (value, name) in names.values.iter().enumerate() {
                trial.values.entry(name.clone()).or_default().add(interval.value(value));
            }
        }
        if !from_cut {
            add_named(&mut trial.errors_before_hold, &names.errors, &interval.errors);
        }
        let hold_second = trial.hold_second(interval.index).filter(|_| in_hold);
        if let Some(second) = hold_second {
            let stretch = trial.stretches.at(second);
            stretch.response.add(interval.distribution(Measure::Response, true));
            stretch.delivery.add(interval.distribution(Measure::Delivery, true));
        }
        if in_hold {
            add_named(&mut trial.errors, &names.errors, &interval.errors);
            add_named(&mut trial.counters, &names.counters, &interval.counters);
            if let Some(counter) = self.session_time {
                let at_once = interval.counters[counter] as f64 / 1e3;
                let of_hold = trial.at_once.get_or_insert_default();
                // The mean over the seconds so far.
                of_hold.mean += (at_once - of_hold.mean) / (self.session_seconds + 1) as f64;
                of_hold.max = of_hold.max.max(at_once);
                self.session_seconds += 1;
            }
            let fewest = interval.connections.open_min;
            let mean = self.open_time.map_or(fewest, |counter| interval.counters[counter] / 1_000);
            self.open_min = Some(self.open_min.map_or(mean, |least| least.min(mean)));
            self.open_least = Some(self.open_least.map_or(fewest, |least| least.min(fewest)));
            trial.client_ticks.add(&interval.ticks);
            self.bytes += interval.bytes_sent + interval.bytes_received;
            let busy_share = interval.busy_share_max;
            trial.busy_share_max = Some(trial.busy_share_max.map_or(busy_share, |most| most.max(busy_share)));
        }
        let sent = |phases: &[Flow; Phase::ALL.len()]| phases.iter().map(|flow| flow.sent).sum();
        self.same_time.second(interval.index, interval.flows.iter().map(sent).collect());
        let of_hold = interval.flows.iter().map(|phases| phases[Phase::Hold as usize]);
        self.seconds.push(KeptSecond {
            second: second_of(interval),
            planned_in_hold: if from_cut { of_hold.collect() } else { Vec::new() },
            open_end: interval.connections.open_end,
            opened: interval.connections.opened,
        });
    }

    fn ticks(&mut self, told: &TickSecond) {
        if let Some(name) = told.compared() {
            let trial = &self.trial;
            return self.comparing.take(name, told, trial.hold.as_ref(), &trial.left_out);
        }
        self.beside.entry(told.second()).or_default().ticks.add(&told.counts);
        let trial = &mut self.trial;
        self.cover.take(told);
        if trial.hold.as_ref().filter(|hold| hold.has_end_of(told)).is_none()
            || touches(&trial.left_out, told)
        {
            return;
        }
        if trial.hold.as_ref().is_some_and(|hold| hold.contains(told.from_ns, told.to_ns)) {
            self.same_time.entry(told.from_ns, told.to_ns, &told.counters);
        }
        if let Some(second) = trial.hold_second(told.second()) {
            let stretch = trial.stretches.at(second);
            stretch.tick_interval.add(&told.interval);
            told.lateness.iter().for_each(|lateness| stretch.tick_lateness.add(lateness));
        }
        let sum = trial
            .ticks
            .get_or_insert_with(|| TrialTicks { source: told.source.clone(), ..TrialTicks::default() });
        sum.counts.add(&told.counts);
        sum.interval.add(&told.interval);
        add_optional(&mut sum.busy, told.busy.as_ref());
        add_optional(&mut sum.lateness, told.lateness.as_ref());
        self.isr_numerator_ns =
            self.isr_numerator_ns.zip(told.isr_numerator_ns).map(|(sum, more)| sum + more);
        trial.subject_told_ns = trial.subject_told_ns.saturating_add(told.to_ns.saturating_sub(told.from_ns));
        for (name, count) in &told.counters {
            let sum = trial.subject_counters.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    fn sample(&mut self, sample: &Sample) {
        self.beside.entry(sample.second()).or_default().host.take(sample);
        let (readings, name) = match sample.what {
            Reading::Subject(name) => (&mut self.subject, name),
            Reading::Worker(name) => (&mut self.worker, name),
            _ => return,
        };
        if let Some(hold) = &self.trial.hold {
            readings.take(name, sample, hold);
        }
    }

    /// Sums what depends on the order of the seconds, and combines what was reported for each.
    fn finish_seconds(&mut self) {
        let trial = &mut self.trial;
        // In the whole view these are the operations; with seconds left out they give what stayed open at the end.
        let mut whole: BTreeMap<String, Flow> = BTreeMap::new();
        for told in std::mem::take(&mut self.seconds) {
            let index = told.second.index;
            let is_kept = !trial.left_out.contains(&index);
            for (name, flow) in trial.head.metric_names.ops.iter().zip(&told.planned_in_hold) {
                match whole.get_mut(name) {
                    Some(sum) => sum.append(flow),
                    None => {
                        whole.insert(name.clone(), *flow);
                    }
                }
                if is_kept {
                    trial.ops.entry(name.clone()).or_default().add_doors(flow);
                }
            }
            if trial.hold.as_ref().is_some_and(|hold| hold.holds_second(index)) {
                trial.connections.open = told.open_end;
            }
            let Beside { ticks, mut host } = self.beside.remove(&index).unwrap_or_default();
            host.programs.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            trial.seconds.push(Second { ticks, host, ..told.second });
        }
        if trial.left_out.is_empty() {
            trial.ops = whole;
        } else {
            for (name, flow) in &mut trial.ops {
                flow.open_after = whole.get(name).map_or(0, |whole| whole.open_after);
            }
        }
    }

    fn finish_connections(&mut self) {
        let ramp_end_ns = self.settled_ns.unwrap_or(u64::MAX);
        let opened_in_ramp =
            |told: &&KeptSecond| told.opened > 0 && u64::from(told.second.index) * SECOND_NS < ramp_end_ns;
        let in_ramp: Vec<&KeptSecond> = self.seconds.iter().filter(opened_in_ramp).collect();
        let connections = &mut self.trial.connections;
        connections.opened_in_ramp = in_ramp.iter().map(|told| told.opened).sum();
        connections.open_min = self.open_min.unwrap_or(0);
        connections.open_least = self.open_least.unwrap_or(0);
        // The ramp begins with the trial. A trial cut off in its ramp has only its whole seconds.
        let ramp_s = match (self.settled_ns, in_ramp.first().zip(in_ramp.last())) {
            (Some(settled_ns), _) => Some(settled_ns as f64 / 1e9),
            (None, Some((first, last))) => Some(f64::from(last.second.index - first.second.index) + 1.0),
            (None, None) => None,
        };
        let opened = connections.opened_in_ramp as f64;
        connections.rate_per_s =
            ramp_s.filter(|&ramp_s| ramp_s > 0.0 && opened > 0.0).map(|ramp_s| opened / ramp_s);
    }
}

/// The rate that such a mark tells, Hz.
fn found_hz(mark: &Event) -> Option<f64> {
    let hz: f64 = mark.text.strip_suffix(" Hz")?.parse().ok()?;
    (hz.is_finite() && hz > 0.0).then_some(hz)
}

/// Places of all counters of a role that has `N`, where all are there.
fn all_of<const N: usize>(head: &TrialHead, role: Role) -> Option<[usize; N]> {
    head.metric_names.counters(role).collect::<Vec<usize>>().try_into().ok()
}

/// The hold by its marks, without its first `cut_s` seconds. One that no mark ends was interrupted; it is open.
fn find_hold(events: &[Event], cut_s: u32) -> Option<Hold> {
    let mark = |kind| events.iter().find(|event| event.kind == kind);
    let from_ns = mark(kind::HOLD)?.at_ns + u64::from(cut_s) * SECOND_NS;
    let (to_ns, ended_by) = match mark(kind::DRAIN) {
        Some(event) => (event.at_ns, event.text.clone()),
        None => (u64::MAX, kind::INTERRUPTED.to_owned()),
    };
    Some(Hold { from_ns, to_ns: to_ns.max(from_ns), ended_by })
}

/// True when a server entry covers an excluded second, even in part.
pub(super) fn touches(left_out: &BTreeSet<u32>, told: &TickSecond) -> bool {
    let (first, last) = (second_at(told.from_ns), second_at(told.to_ns.saturating_sub(1)));
    // An entry of zero length ends before the second in which it begins, if that has just begun.
    first <= last && left_out.range(first..=last).next().is_some()
}

fn second_of(interval: &Interval) -> Second {
    let mut flow = Flow::default();
    interval.messages().for_each(|part| flow.add(part));
    Second {
        index: interval.index,
        flow,
        open_min: interval.connections.open_min,
        closed: interval.connections.closed,
        response_mean_ns: interval.distribution(Measure::Response, true).mean_ns(),
        delivery_mean_ns: interval.distribution(Measure::Delivery, true).mean_ns(),
        stalled_share: stalled_share(interval),
        client_ticks: interval.ticks,
        busy_share_max: interval.busy_share_max,
        ..Second::default()
    }
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

/// A stall is recorded when it ends, so that one of several seconds makes a share above 1.
fn stalled_share(interval: &Interval) -> f64 {
    let stalls = interval.distribution(Measure::Stall, true);
    let sum_ns = stalls.mean_ns().unwrap_or(0.0) * stalls.count() as f64;
    sum_ns / SECOND_NS as f64
}
