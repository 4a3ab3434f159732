//! Trials built for tests: a rung with known events, from entries as the store would return them. Other crates' tests
//! use it through the feature `testing`.

#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::sync::Arc;

use measure::ledger::{PairBooks, ReceiverBooks, SumOfBooks};
use measure::trial::kind;
use measure::{
    Books, Distribution, Entry, ErrorKind, Event, Interval, LoadUnit, MachineMetric, Measure, MetricNames,
    Phase, ProcessMetric, Purpose, Reading, Role, Sample, TickCounts, TickSecond, Trial, TrialHead,
};

use crate::disturbance::least_disturbed;
use crate::judge::{Criteria, Judgement, judge};
use crate::schedule::{Goal, SearchSchedule};

pub const SECOND_NS: u64 = 1_000_000_000;
pub const TICK_NS: u64 = 16_666_667;
/// The hold of every trial that is built begins here.
pub const HOLD_FROM_S: u32 = 5;

/// Length of a full trial of `search`, ns.
pub const FINAL_TRIAL_NS: u64 = 30 * SECOND_NS;

/// A search from 500 between 1 and 100,000 with a server that is started again, decided by so many full trials.
pub fn search(trials: u64, width: f64) -> SearchSchedule {
    SearchSchedule {
        start: 500.0,
        least: 1.0,
        most: 100_000.0,
        is_whole: false,
        goal: Goal {
            final_trial_ns: FINAL_TRIAL_NS,
            duration_sum_ns: trials * FINAL_TRIAL_NS,
            exceed_ratio: 0.5,
            width,
        },
        samples: 0.0,
        rate_per_load: 0.0,
        restarts_subject: true,
        cell: None,
        goals: Vec::new(),
    }
}

/// Objectives, with a comma between two, and a patience of a second.
pub fn terms(objectives: &str) -> Criteria {
    let objectives = objectives.split(", ").filter(|text| !text.is_empty());
    Criteria {
        objectives: objectives.map(|text| text.parse().expect("an objective")).collect(),
        patience_ns: SECOND_NS,
        ..Criteria::default()
    }
}

type Edit = Box<dyn Fn(u32, &mut Interval)>;

/// One rung as it should have gone; change what the test is about and `build` it.
pub struct TrialBuilder {
    pub load: f64,
    pub load_unit: LoadUnit,
    pub cell: BTreeMap<String, String>,
    pub connections: u64,
    /// the server may close connections between two requests
    pub reopens: bool,
    pub hold_s: u32,
    pub tick_period_ns: u64,
    /// late share of the server's ticks in second n of the hold; `None`: the server tells no ticks
    pub late_share: Option<Box<dyn Fn(u32) -> f64>>,
    /// share of all ticks that count as late and may be on time
    pub unclear_share: f64,
    /// further sources of ticks
    pub compared: Vec<Compared>,
    /// nodes of the server, with their ticks in each second that were due, and that were late
    pub nodes: Vec<(String, u64, u64)>,
    /// games that the server really runs
    pub games_running: f64,
    /// frames that the server draws besides its services
    pub frames_per_s: Option<u64>,
    pub shots_per_s: u64,
    pub questions_per_s: u64,
    pub response_ns: u64,
    pub deliveries_per_s: u64,
    pub delivery_ns: u64,
    /// what was owed to whom over the whole trial
    pub books: Option<Books>,
    pub send_lag_ns: u64,
    pub busy_share: f64,
    pub steal_share: Box<dyn Fn(u32) -> f64>,
    /// further readings of second n of the hold
    pub samples: Vec<Box<dyn Fn(u32) -> Vec<Sample>>>,
    pub drain_text: String,
    /// by how much the seconds of the server's log begin later than ours
    pub log_offset_ns: u64,
    pub is_complete: bool,
    pub has_hold: bool,
    /// lost connections in each second before the hold
    pub lost_before_hold: u64,
    pub events: Vec<Event>,
    pub edits: Vec<Edit>,
}

/// A source of ticks that is compared with the judged one.
pub struct Compared {
    pub name: &'static str,
    /// share of all its ticks that count as late and may be on time
    pub unclear_share: f64,
    /// what it tells in second n of the hold
    pub late_share: Box<dyn Fn(u32) -> Option<f64>>,
}

impl TrialBuilder {
    /// 60 s of the arena at `load` games, 3 % of the ticks late, nothing wrong.
    pub fn arena(load: f64) -> TrialBuilder {
        TrialBuilder {
            load,
            load_unit: LoadUnit::Games,
            cell: BTreeMap::new(),
            connections: load as u64 * 2,
            reopens: false,
            hold_s: 60,
            tick_period_ns: TICK_NS,
            late_share: Some(Box::new(|_| 0.03)),
            unclear_share: 0.0,
            compared: Vec::new(),
            nodes: Vec::new(),
            games_running: load,
            frames_per_s: None,
            shots_per_s: load as u64 * 14,
            questions_per_s: 0,
            response_ns: 2_000_000,
            deliveries_per_s: 0,
            delivery_ns: 0,
            books: None,
            send_lag_ns: 200_000,
            busy_share: 0.3,
            steal_share: Box::new(|_| 0.0),
            samples: Vec::new(),
            drain_text: "60s".to_owned(),
            log_offset_ns: 0,
            is_complete: true,
            has_hold: true,
            lost_before_hold: 0,
            events: Vec::new(),
            edits: Vec::new(),
        }
    }

    /// 60 s of questions and answers at `load` clients, one per client and second, 2 ms each.
    pub fn asking(load: f64) -> TrialBuilder {
        TrialBuilder {
            load_unit: LoadUnit::Clients,
            connections: load as u64,
            tick_period_ns: 0,
            late_share: None,
            shots_per_s: 0,
            questions_per_s: load as u64,
            ..TrialBuilder::arena(load)
        }
    }

    /// 60 s of requests to a loop of 60 Hz that draws a frame per tick: one answer per requester and tick.
    pub fn polling(load: f64) -> TrialBuilder {
        TrialBuilder {
            load_unit: LoadUnit::Requesters,
            tick_period_ns: TICK_NS,
            late_share: Some(Box::new(|_| 0.0)),
            games_running: 1.0,
            frames_per_s: Some(60),
            questions_per_s: load as u64 * 60,
            response_ns: 16_600_000,
            ..TrialBuilder::asking(load)
        }
    }

    /// Every request at these places of the tick, in sixteenths.
    pub fn phases(self, counts: [u64; 16]) -> TrialBuilder {
        self.edit(move |_, interval| interval.counters[2..18].copy_from_slice(&counts))
    }

    /// `count` requests of each second are rejected, with this text.
    pub fn rejected(self, count: u64, words: &str) -> TrialBuilder {
        let text = format!("rejected (429, 503): {words}");
        self.event(6, kind::ERROR, &text).edit(move |_, interval| {
            let flow = interval.flow_mut(1, Phase::Hold);
            (flow.answered, flow.failed) = (flow.answered - count, count);
            interval.errors[2] = count;
        })
    }

    /// `count` requests of each second are given up after the patience of their clients.
    pub fn timing_out(self, count: u64) -> TrialBuilder {
        self.edit(move |_, interval| {
            let flow = interval.flow_mut(1, Phase::Hold);
            (flow.answered, flow.lost) = (flow.answered - count, count);
            interval.errors[3] = count;
        })
    }

    /// `count` clients are not accepted when the hold begins, `asked` s after they asked.
    pub fn not_admitted(self, count: u64, asked: u64) -> TrialBuilder {
        let text = format!("not let in: had asked {asked} s before");
        self.event(HOLD_FROM_S, kind::ERROR, &text).edit(move |at, interval| {
            interval.errors[4] = if at == 0 { count } else { 0 };
        })
    }

    /// 60 s of a chat in which each of `load` clients says one line a second to all others, which takes 5 ms; nothing is
    /// lost, and the server tells so.
    pub fn chat(load: u32) -> TrialBuilder {
        let owed = u64::from(load - 1) * 60;
        let receivers = (0..load).map(|number| receiver(number, owed)).collect();
        let books =
            Books { sent: u64::from(load) * 60, drops_are_told: true, ..Books::of(receivers, Vec::new()) };
        TrialBuilder {
            shots_per_s: u64::from(load),
            questions_per_s: 0,
            deliveries_per_s: u64::from(load) * u64::from(load - 1),
            delivery_ns: 5_000_000,
            books: Some(books),
            ..TrialBuilder::asking(f64::from(load))
        }
    }

    /// Changes the books of the receivers and adds them up anew. A server that tells its own tells what is so.
    pub fn receivers(self, edit: impl Fn(&mut ReceiverBooks)) -> TrialBuilder {
        self.told(|one| {
            edit(one);
            one.told_owed = one.told_owed.map(|_| one.sum.owed_min);
            one.told_delivered = one.told_delivered.map(|_| one.sum.delivered);
        })
    }

    /// The same, and the server tells what the edit says.
    pub fn told(mut self, edit: impl Fn(&mut ReceiverBooks)) -> TrialBuilder {
        if let Some(mut books) = self.books.take() {
            books.receivers.iter_mut().for_each(edit);
            let faulty = |one: &&ReceiverBooks| one.sum.lost + one.sum.unowed > 0;
            let worst = books.receivers.iter().filter(faulty).map(pair).collect();
            let (sent, unknown_messages, drops_are_told) =
                (books.sent, books.unknown_messages, books.drops_are_told);
            self.books =
                Some(Books { sent, unknown_messages, drops_are_told, ..Books::of(books.receivers, worst) });
        }
        self
    }

    /// Its server has these nodes: see the field.
    pub fn nodes(self, nodes: &[(&str, u64, u64)]) -> TrialBuilder {
        let nodes = nodes.iter().map(|(name, due, late)| ((*name).to_owned(), *due, *late)).collect();
        TrialBuilder { nodes, ..self }
    }

    pub fn late(self, share: f64) -> TrialBuilder {
        self.late_at(move |_| share)
    }

    /// Late ticks by the second of the hold.
    pub fn late_at(self, share: impl Fn(u32) -> f64 + 'static) -> TrialBuilder {
        TrialBuilder { late_share: Some(Box::new(share)), ..self }
    }

    /// A further source of ticks beside the judged log, and what it tells in second n of the hold; `None`: nothing.
    pub fn compared(
        mut self,
        name: &'static str,
        late_share: impl Fn(u32) -> Option<f64> + 'static,
    ) -> TrialBuilder {
        if self.events.iter().all(|event| event.kind != kind::TICK_SOURCE) {
            self = self.event(0, kind::TICK_SOURCE, "log=game.log");
        }
        self.compared.push(Compared { name, unclear_share: 0.0, late_share: Box::new(late_share) });
        self.event(0, kind::TICK_SOURCE, name)
    }

    /// Changes every second of the hold, counted from 0.
    pub fn edit(mut self, edit: impl Fn(u32, &mut Interval) + 'static) -> TrialBuilder {
        self.edits.push(Box::new(edit));
        self
    }

    /// Further readings of second n of the hold.
    pub fn sampled(mut self, readings: impl Fn(u32) -> Vec<(Reading, f64)> + 'static) -> TrialBuilder {
        let sample = |(what, value)| Sample { at_ns: 0, what, value };
        self.samples.push(Box::new(move |at| readings(at).into_iter().map(sample).collect()));
        self
    }

    pub fn event(mut self, at_s: u32, kind: &str, text: &str) -> TrialBuilder {
        self.events.push(event(at_s, kind, text));
        self
    }

    pub fn build(&self) -> Trial {
        Trial::from_entries(self.head(), &self.entries(), 0)
    }

    /// As a stored trial is judged: whole, and its least disturbed seconds alone.
    pub fn judged(&self, terms: &Criteria) -> (Trial, Judgement) {
        let trial = self.build();
        let left_out = least_disturbed(&trial, terms.hold_ns).left_out;
        let calmer = (!left_out.is_empty())
            .then(|| Trial::from_entries_without(self.head(), &self.entries(), 0, left_out));
        let judgement = judge(&trial, calmer.as_ref(), terms);
        (trial, judgement)
    }

    fn head(&self) -> TrialHead {
        TrialHead {
            seq: 0,
            purpose: Purpose::Rung,
            load: self.load,
            load_unit: self.load_unit,
            bots: self.connections,
            connections: self.connections,
            tick_period_ns: self.tick_period_ns,
            cell: self.cell.clone(),
            metric_names: if self.reopens { names().with_counter_roles(&REOPENED) } else { names() },
        }
    }

    pub fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.events.iter().cloned().map(Entry::Event).collect();
        for index in 0..HOLD_FROM_S {
            let mut interval = Interval::new(&names());
            (interval.index, interval.workers) = (index, 1);
            let opened = self.connections / u64::from(HOLD_FROM_S);
            (interval.connections.asked, interval.connections.opened) = (opened, opened);
            interval.errors[0] = self.lost_before_hold;
            entries.push(Entry::Interval(Box::new(interval)));
        }
        if self.has_hold {
            entries.push(Entry::Event(event(HOLD_FROM_S, kind::HOLD, "")));
            entries.push(Entry::Event(event(HOLD_FROM_S + self.hold_s, kind::DRAIN, &self.drain_text)));
            (0..self.hold_s).for_each(|at| self.hold_second(at, &mut entries));
        }
        if let Some(books) = self.books.as_ref().filter(|_| self.is_complete) {
            entries.push(Entry::Books(Box::new(books.clone())));
        }
        if self.is_complete {
            entries.push(Entry::Event(event(HOLD_FROM_S + self.hold_s + 1, kind::END, "")));
        }
        entries
    }

    fn hold_second(&self, at: u32, entries: &mut Vec<Entry>) {
        let index = HOLD_FROM_S + at;
        let (from_ns, to_ns) = (u64::from(index) * SECOND_NS, u64::from(index + 1) * SECOND_NS);
        let offset = self.log_offset_ns;
        let mut interval = Interval::new(&names());
        (interval.index, interval.workers, interval.busy_share_max) = (index, 1, self.busy_share);
        (interval.connections.open_min, interval.connections.open_end) = (self.connections, self.connections);
        (interval.bytes_sent, interval.bytes_received) = (500_000, 500_000);
        let shot = interval.flow_mut(0, Phase::Hold);
        (shot.offered, shot.sent, shot.told) = (self.shots_per_s, self.shots_per_s, self.shots_per_s);
        let ask = interval.flow_mut(1, Phase::Hold);
        (ask.offered, ask.sent, ask.answered) =
            (self.questions_per_s, self.questions_per_s, self.questions_per_s);
        let sends = self.shots_per_s + self.questions_per_s;
        interval.distribution_mut(Measure::SendLag, true).record_many(self.send_lag_ns, sends);
        for measure in [Measure::Response, Measure::Service] {
            interval.distribution_mut(measure, true).record_many(self.response_ns, self.questions_per_s);
        }
        interval.counters[1] = self.deliveries_per_s;
        interval
            .distribution_mut(Measure::Delivery, true)
            .record_many(self.delivery_ns, self.deliveries_per_s);
        self.edits.iter().for_each(|edit| edit(at, &mut interval));
        entries.push(Entry::Interval(Box::new(interval)));
        if let Some(late_share) = &self.late_share {
            entries.push(Entry::Ticks(Box::new(self.tick_second(
                from_ns + offset,
                to_ns + offset,
                late_share(at),
            ))));
        }
        for compared in &self.compared {
            let Some(late) = (compared.late_share)(at) else { continue };
            let told = self.tick_second(from_ns, to_ns, late);
            let due = told.counts.due as f64;
            let unclear = vec![("ticks_unclear".to_owned(), (due * compared.unclear_share).round() as u64)];
            let second = TickSecond { counters: unclear, ..told }.compared_as(compared.name);
            entries.push(Entry::Ticks(Box::new(second)));
        }
        let sample = |what, value| Entry::Sample(Sample { at_ns: to_ns, what, value });
        entries.push(sample(Reading::Machine(MachineMetric::StealShare), (self.steal_share)(at)));
        for (of, cores) in [Reading::Subject, Reading::Worker].into_iter().zip([0.8, 0.3]) {
            entries.push(sample(of(ProcessMetric::CpuTime), f64::from(index) * cores));
            entries.push(sample(of(ProcessMetric::AllowedCores), 2.0));
            entries.push(sample(of(ProcessMetric::Rss), 50e6));
            entries.push(sample(of(ProcessMetric::Fds), 100.0));
        }
        // Last: what a test says of its server stands in place of the usual.
        let further = self.samples.iter().flat_map(|samples| samples(at));
        entries.extend(further.map(|sample| Entry::Sample(Sample { at_ns: to_ns, ..sample })));
    }

    fn tick_second(&self, from_ns: u64, to_ns: u64, late_share: f64) -> TickSecond {
        let due = self.games_running as u64 * 60;
        let over = (due as f64 * late_share).round() as u64;
        let of_nodes = self.nodes.iter().flat_map(|(node, due, late)| {
            [(format!("ticks_due@{node}"), *due), (format!("ticks_late@{node}"), *late)]
        });
        let mut interval = Distribution::new();
        interval.record_many(17_000_000, due - over);
        interval.record_many(25_000_000, over);
        TickSecond {
            source: "log".to_owned(),
            from_ns,
            to_ns,
            counts: TickCounts { due, on_time: due - over, over, ..TickCounts::default() },
            interval,
            busy: None,
            lateness: None,
            isr_numerator_ns: None,
            counters: match self.frames_per_s {
                _ if self.unclear_share > 0.0 => {
                    vec![("ticks_unclear".to_owned(), (due as f64 * self.unclear_share).round() as u64)]
                }
                Some(frames) => vec![("frames".to_owned(), frames), ("frames_due".to_owned(), 60)],
                None => vec![
                    ("shots".to_owned(), self.shots_per_s),
                    ("shots_accepted".to_owned(), self.shots_per_s),
                ],
            }
            .into_iter()
            .chain(of_nodes)
            .collect(),
        }
    }
}

/// A receiver to whom so much was owed, and came.
fn receiver(number: u32, owed: u64) -> ReceiverBooks {
    let (owed_min, owed_max, delivered) = (owed, owed, owed);
    ReceiverBooks {
        receiver: number,
        is_excluded: false,
        sum: SumOfBooks { receivers: 1, owed_min, owed_max, delivered, ..SumOfBooks::default() },
        latency_mean_ns: Some(5e6 + f64::from(number)),
        latency_max_ns: Some(9_000_000),
        told_owed: Some(owed),
        told_delivered: Some(owed),
    }
}

/// All of a receiver's faults, laid to its first sender.
fn pair(receiver: &ReceiverBooks) -> PairBooks {
    let sum = &receiver.sum;
    PairBooks {
        sender: 0,
        receiver: receiver.receiver,
        owed_min: sum.owed_min,
        owed_max: sum.owed_max,
        delivered: sum.delivered,
        lost: sum.lost,
    }
}

/// Loses deliveries of a receiver; the server knows of `dropped` and `waiting` of them.
pub fn lose(receiver: &mut ReceiverBooks, lost: u64, dropped: u64, waiting: u64) {
    let sum = &mut receiver.sum;
    (sum.delivered, sum.lost) = (sum.delivered - lost, sum.lost + lost);
    (sum.dropped, sum.in_flight) = (dropped, waiting);
    sum.residual = sum.lost as i64 - dropped as i64 - waiting as i64;
}

/// Ticks as clients see them in one second.
pub fn see_ticks(interval: &mut Interval, due: u64, late: u64, late_interval_ns: u64) {
    interval.ticks = TickCounts { due, on_time: due - late, over: late, ..TickCounts::default() };
    interval.distribution_mut(Measure::TickInterval, true).record_many(17_000_000, due - late);
    interval.distribution_mut(Measure::TickInterval, true).record_many(late_interval_ns, late);
}

pub fn event(at_s: u32, kind: &str, text: &str) -> Event {
    Event { at_ns: u64::from(at_s) * SECOND_NS, kind: kind.to_owned(), text: text.to_owned() }
}

/// What these counters are for only where `reopens` says so.
pub const REOPENED: [(&str, Role); 3] =
    [("reopened", Role::Reopened), ("retried", Role::Reopened), ("closing", Role::Reopened)];

/// The names behind the indices of its intervals.
pub fn names() -> Arc<MetricNames> {
    let phases: Vec<String> = (0..16).map(|bin| format!("phase_{bin:02}")).collect();
    let counters = ["games_played", "delivered"].into_iter().chain(phases.iter().map(String::as_str));
    let shutdown = ["under_way", "dropped", "later", "later_refused"].map(|name| (name, Role::Shutdown));
    let cheats = ["sent", "refused", "accepted"].map(|name| (name, Role::Cheats));
    let lookups = ["hits", "misses"].map(|name| (name, Role::Lookups));
    let games = [("games_failed", Role::GamesFailed)];
    let redirects = ["right_answers", "redirects"].map(|name| (name, Role::Redirects));
    let further: Vec<(&str, Role)> =
        shutdown.into_iter().chain(cheats).chain(lookups).chain(games).chain(redirects).collect();
    let counters: Vec<&str> =
        counters.chain(further.iter().map(|(name, _)| *name)).chain(REOPENED.map(|(name, _)| name)).collect();
    MetricNames::new(
        &["shot", "ask", "keep"],
        &[
            "connection lost",
            "wrong winner",
            "rejected (429, 503)",
            "no answer in time",
            "not let in",
            "wrong hit",
            "refused by the server",
        ],
        &counters,
        &["refused", "no descriptors", "no ports", "timeout"],
    )
    .with_kinds(&[
        ("connection lost", ErrorKind::BrokenConnection),
        ("wrong winner", ErrorKind::WrongReply),
        ("wrong hit", ErrorKind::WrongReply),
        ("no answer in time", ErrorKind::Timeout),
        ("timeout", ErrorKind::Timeout),
        ("not let in", ErrorKind::NotAdmitted),
        ("refused by the server", ErrorKind::Refused),
        ("no descriptors", ErrorKind::Generator),
        ("no ports", ErrorKind::Generator),
    ])
    .with_op_roles(&[("shot", Role::Shot), ("keep", Role::Keep)])
    .with_counter_roles(&[("games_played", Role::GamesPlayed), ("delivered", Role::Delivered)])
    .with_counter_roles(&further)
    .with_counter_roles(&phases.iter().map(|name| (name.as_str(), Role::ArrivalPhase)).collect::<Vec<_>>())
}
