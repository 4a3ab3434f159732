//! The page's fixtures: runs with planted truth, recorded in a store, judged by the judge and served by the viewer.
//!
//! This writes web/fixtures/runs.json, so the page is tested with the names that the program writes. No figure in it
//! was measured. Only plain arithmetic, so that every machine plants the same.

use std::collections::BTreeMap;

use ladder::duel::{DuelAnswers, Side};
use ladder::judge::Calibration;
use ladder::{Climb, Criteria, Objective, RunFacts, answers, judge, rung};
use measure::ledger::{ReceiverBooks, SumOfBooks};
use measure::trial::kind;
use measure::{
    AgentFacts, Books, Distribution, Entry, Flow, Interval, LoadUnit, MachineMetric, Measure, MetricNames,
    Phase, ProcessMetric, Purpose, Reading, Sample, TickCounts, TickSecond, TrialHead,
};
use serde_json::{Value, json};
use store::{Outcome, RunEnd, RunHead, RunId, RunKind, RunWriter, Store};
use viewer::{Archive, Detail, Judge, Unjudged};

use crate::benches;
use crate::committed;
use crate::duels;
use crate::given::{self, HOLD_FROM_S, SECOND_NS, mark};
use crate::profiles;

/// Buckets of the distributions: wide, since no figures are read off them.
const WIDTH: f64 = 1.25;
/// Text that tries to become markup, wherever text comes from.
const HOSTILE: &str = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";
const CHAT: &str = "chat";
const POLL_LOOP: &str = "poll-loop";

/// Judges by the objectives of the subject.
struct BySubject;

impl Judge for BySubject {
    fn climb(&self, store: &Store, run: &RunId) -> Result<Option<Climb>, Unjudged> {
        let head = store.run(run)?.head;
        let objectives = self.objectives(store, run)?;
        let terms = Criteria { objectives, patience_ns: SECOND_NS, ..Criteria::default() };
        let mut calibration = None;
        let mut rungs = Vec::new();
        for mark in store.trial_marks(run)?.into_iter().filter(|mark| mark.is_ended()) {
            let trial = store.trial(run, mark.head.seq, 0)?;
            if mark.head.purpose == Purpose::Rung {
                rungs.push(rung(&trial, &judge(&trial, None, &terms)));
            } else {
                calibration = Some(Calibration {
                    own_latency: trial.distribution(Measure::Response).summary(),
                    send_lag: trial.distribution(Measure::SendLag).summary(),
                    ceiling_per_s: Some(122_178.0),
                    ..Calibration::default()
                });
            }
        }
        let facts = RunFacts {
            id: run.to_string(),
            subject: head.subject,
            seed: head.seed,
            arrivals: head.arrivals,
            started_unix_ms: head.started_unix_ms,
            stepladder: head.stepladder,
            command: head.command,
            environment: serde_json::from_str(&head.environment)?,
            shared_cores: head.shared_cores,
            capacity_unit: rungs.first().map_or(LoadUnit::Games, |rung| rung.load_unit),
            ..RunFacts::default()
        };
        let subject = facts.subject.clone();
        let mut climb = (!rungs.is_empty())
            .then(|| answers(&facts, calibration.as_ref(), rungs, ladder::Asked::default()));
        if let Some(climb) = climb.as_mut().filter(|_| subject == POLL_LOOP) {
            let plan = plan::resolve(&plan::Flags::of(POLL_LOOP), None, 1).expect("a plan");
            climb.conclusions.extend(plan.bots.conclusions(&climb.rungs));
        }
        Ok(climb)
    }

    fn duel(&self, store: &Store, run: &RunId) -> Result<Option<(Climb, DuelAnswers)>, Unjudged> {
        Ok(duels::answers(store, run, self.climb(store, run)?))
    }

    fn objectives(&self, store: &Store, run: &RunId) -> Result<Vec<Objective>, Unjudged> {
        let texts: &[&str] = match store.run(run)?.head.subject.as_str() {
            CHAT => &["deliveries.lost == 0", "deliveries.latency.p99 < 50ms"],
            POLL_LOOP => &["errors == 0"],
            _ => &["ticks.late_share < 25%"],
        };
        Ok(texts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?)
    }
}

/// A rung as it is planted.
#[derive(Clone)]
struct Plant {
    purpose: Purpose,
    subject: &'static str,
    load: f64,
    hold_s: u32,
    /// of the arena's ticks
    late_share: f64,
    send_lag_ns: f64,
    per_s: u64,
    /// requests that fail in the last second, and deliveries that are lost
    bad: u64,
    /// the server exits in the middle of the hold
    dies: bool,
    frames_per_s: u64,
    cell: BTreeMap<String, String>,
    /// how errors and events are called
    words: &'static str,
}

/// An arena that is beyond itself above `capacity`.
fn arena(load: f64, capacity: f64) -> Plant {
    let beyond = (load / capacity).powi(4);
    Plant {
        purpose: Purpose::Rung,
        subject: "arena",
        load,
        hold_s: 12,
        late_share: (0.004 + 0.2 * beyond).min(0.9),
        send_lag_ns: 30e3,
        per_s: load as u64 * 14,
        bad: 0,
        dies: false,
        frames_per_s: 0,
        cell: BTreeMap::new(),
        words: "reset",
    }
}

fn chat(load: f64) -> Plant {
    Plant {
        subject: CHAT,
        hold_s: 10,
        per_s: load as u64,
        bad: u64::from(load > 1_500.0) * 5,
        ..arena(load, 1e6)
    }
}

/// Ten slots per tick for short answers, four for long ones; the fifteenth requester is rejected.
fn polling(load: u32, cell: &[(&str, &str)], slots: u32) -> Plant {
    Plant {
        subject: POLL_LOOP,
        hold_s: 4,
        late_share: 0.0,
        per_s: u64::from(load.min(slots)) * 30,
        bad: u64::from(load > 14) * 4,
        frames_per_s: if load > 4 && slots < 10 { 22 } else { 30 },
        cell: cell.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect(),
        ..arena(f64::from(load), 1e6)
    }
}

/// A skewed law around `middle_ns`: the same shape each time, a share of it far out.
fn spread(middle_ns: f64, count: u64) -> Distribution {
    let mut values = Distribution::new();
    let draws = count.min(400);
    for at in 0..draws {
        let place = (at * 7_919 % draws) as f64 / draws as f64;
        let far = if at % 97 == 13 { 4.0 } else { 1.0 };
        let value = middle_ns * (0.6 + 0.4 * place + place * place) * far;
        values.record_many(value as u64, count / draws + u64::from(at < count % draws));
    }
    values
}

impl Plant {
    fn unit(&self) -> LoadUnit {
        match self.subject {
            CHAT => LoadUnit::Clients,
            POLL_LOOP => LoadUnit::Requesters,
            _ => LoadUnit::Games,
        }
    }

    fn bots(&self) -> u64 {
        self.load as u64 * if self.unit() == LoadUnit::Games { 2 } else { 1 }
    }

    fn tick_hz(&self) -> f64 {
        match self.subject {
            CHAT => 0.0,
            POLL_LOOP => 30.0,
            _ => 60.0,
        }
    }

    fn head(&self, seq: u32) -> TrialHead {
        TrialHead {
            seq,
            purpose: self.purpose,
            load: self.load,
            load_unit: self.unit(),
            bots: self.bots(),
            connections: self.bots(),
            tick_period_ns: if self.tick_hz() > 0.0 { (1e9 / self.tick_hz()) as u64 } else { 0 },
            cell: self.cell.clone(),
            metric_names: MetricNames::new(&["message"], &[self.words], &[], &["refused"]),
        }
    }

    /// How much slower than at ease.
    fn slower(&self) -> f64 {
        1.0 + 30.0 * self.late_share
    }

    fn interval(&self, seq: u32, index: u32) -> Entry {
        let head = self.head(seq);
        let mut interval = Interval::new(&head.metric_names);
        (interval.index, interval.workers) = (index, 1);
        let end_s = HOLD_FROM_S + self.hold_s;
        let (in_hold, is_last) = ((HOLD_FROM_S..end_s).contains(&index), index + 1 == end_s);
        let phase = if in_hold {
            Phase::Hold
        } else if index < end_s {
            Phase::Ramp
        } else {
            Phase::Drain
        };
        // A client that polls a loop sends exactly this many requests.
        let more = if self.subject == POLL_LOOP { 0 } else { u64::from(index % 3) };
        let sent = if index < end_s { self.per_s + more } else { 0 };
        let owes_reply = self.subject != CHAT;
        let failed = if is_last && owes_reply { self.bad } else { 0 };
        let (told, answered) = if owes_reply { (0, sent - failed) } else { (sent, 0) };
        *interval.flow_mut(0, phase) =
            Flow { offered: sent, sent, told, answered, failed, ..Flow::default() };
        interval.errors[0] = failed;
        let mut fill = |measure, middle_ns, count| {
            *interval.distribution_mut(measure, in_hold) = spread(middle_ns, count);
        };
        if owes_reply {
            fill(Measure::Response, 350e3 * self.slower(), answered);
            fill(Measure::Service, 310e3 * self.slower(), answered);
        } else {
            fill(Measure::Delivery, 1.8e6 * (1.0 + self.bad as f64), sent * 20);
        }
        fill(Measure::SendLag, self.send_lag_ns, sent);
        let open = if index < end_s { self.bots() } else { 0 };
        let opened = if index == 0 { open } else { 0 };
        if index == 0 {
            *interval.distribution_mut(Measure::Handshake, false) = spread(600e3, opened);
        }
        let connections = &mut interval.connections;
        (connections.asked, connections.opened) = (opened, opened);
        (connections.open_min, connections.open_end) = (open, open);
        interval.bytes_sent = sent * 78;
        interval.busy_share_max = 0.05 + self.load / 6_000.0;
        Entry::Interval(Box::new(interval))
    }

    /// What is reported for a second besides the bots' data: ticks and readings.
    fn beside(&self, index: u32) -> Vec<Entry> {
        let (from_ns, to_ns) = (u64::from(index) * SECOND_NS, u64::from(index + 1) * SECOND_NS);
        let reading = |what, value| Entry::Sample(Sample { at_ns: to_ns, what, value });
        let seconds = f64::from(index + 1);
        // What is met while the host steals is met; a failing rung is left alone.
        let fails = self.late_share > 0.25 || self.bad > 0;
        let steals = index == HOLD_FROM_S + 3 && !fails && self.purpose == Purpose::Rung;
        let mut told = vec![
            reading(Reading::Subject(ProcessMetric::CpuTime), seconds * (self.load / 1_900.0).min(1.0)),
            reading(Reading::Subject(ProcessMetric::Rss), 21e6 + self.load * 29e3),
            reading(Reading::Subject(ProcessMetric::Fds), self.load * 2.0 + 12.0),
            reading(Reading::Subject(ProcessMetric::AllowedCores), 2.0),
            reading(Reading::Worker(ProcessMetric::CpuTime), seconds * (0.06 + self.load / 7e3)),
            reading(Reading::Worker(ProcessMetric::Rss), 19e6),
            reading(Reading::Worker(ProcessMetric::AllowedCores), 2.0),
            reading(Reading::Machine(MachineMetric::StealShare), if steals { 0.027 } else { 0.001 }),
            reading(Reading::Machine(MachineMetric::OthersCores), 0.01),
        ];
        if self.tick_hz() > 0.0 {
            let games = if self.unit() == LoadUnit::Games { self.load } else { 1.0 };
            let due = (games * self.tick_hz()) as u64;
            let late = |share: f64| (due as f64 * self.late_share * share) as u64;
            let (over, under, missed) = (late(0.6), late(0.3), late(0.1));
            told.push(Entry::Ticks(Box::new(TickSecond {
                source: "log".to_owned(),
                from_ns,
                to_ns,
                counts: TickCounts { due, on_time: due - over - under - missed, over, under, missed },
                interval: spread(1e9 / self.tick_hz(), due),
                busy: Some(spread(2e6, due)),
                lateness: None,
                isr_numerator_ns: None,
                counters: match self.frames_per_s {
                    0 => Vec::new(),
                    frames => vec![("frames".to_owned(), frames)],
                },
            })));
        }
        told
    }

    /// Each receiver is owed a line of every other one; the first loses some, as the server says.
    fn books(&self) -> Books {
        let owed = self.load as u64 - 1;
        let receivers = (0..self.load as u32).map(|receiver| {
            let lost = if receiver == 0 { self.bad } else { 0 };
            let (owed_min, owed_max, delivered) = (owed, owed, owed - lost);
            let sum = SumOfBooks {
                receivers: 1,
                owed_min,
                owed_max,
                delivered,
                lost,
                dropped: lost,
                ..SumOfBooks::default()
            };
            let mean_ns = 2e6 + f64::from(receiver * 37 % 101) * 1e4;
            ReceiverBooks {
                receiver,
                sum,
                latency_mean_ns: Some(mean_ns),
                latency_max_ns: Some(mean_ns as u64 * 9),
                ..ReceiverBooks::default()
            }
        });
        let books = Books::of(receivers.collect(), Vec::new());
        Books { sent: self.load as u64, drops_are_told: true, ..books }
    }

    /// Two machines play half of the clients each; the second is later, and its worker is busier.
    fn agents(&self) -> [AgentFacts; 2] {
        [("load-1", 1.0), ("load-2", 1.6)].map(|(name, worse)| AgentFacts {
            name: name.to_owned(),
            bots: self.bots() / 2,
            workers: 2,
            send_lag_p99_ns: Some((worse * 4.0 * self.send_lag_ns) as u64),
            busy_share_max: Some(worse * (0.05 + self.load / 6_000.0)),
            cpu_cores: Some(worse * self.load / 7e3),
            clock_bound_ns: 83_200,
            clock_offset_ns: -1_204_000,
            round_trip_ns: 166_400,
            link: "eth0, 10000 Mbit/s".to_owned(),
            lost: None,
        })
    }

    fn record(&self, writer: &RunWriter, seq: u32) {
        writer.begin_trial(&self.head(seq), 0).unwrap();
        let end_s = HOLD_FROM_S + self.hold_s;
        for index in 0..=end_s {
            let mut batch = Vec::new();
            let mut put = |kind: &str, text: &str| batch.push(mark(index, kind, text));
            match index {
                1 => put(kind::SETTLE, &format!("{0} of {0} connections open", self.bots())),
                HOLD_FROM_S => put(kind::HOLD, ""),
                _ if index == end_s => put(kind::DRAIN, &format!("{}s", self.hold_s)),
                _ if index + 1 == end_s && self.bad > 0 => {
                    put(kind::ERROR, &format!("{}: closed", self.words))
                }
                _ if self.dies && index == end_s / 2 => put(kind::SUBJECT_EXITED, "signal 9 (killed)"),
                _ if self.words == HOSTILE && index == 4 => put(HOSTILE, HOSTILE),
                _ => {}
            }
            batch.push(self.interval(seq, index));
            batch.extend(self.beside(index));
            writer.append(batch).unwrap();
        }
        let books = (self.subject == CHAT).then(|| Entry::Books(Box::new(self.books())));
        if self.subject == CHAT {
            let agents = serde_json::to_string(&self.agents()).unwrap();
            writer.append(vec![mark(end_s, kind::AGENTS, &agents)]).unwrap();
        }
        writer.append(books.into_iter().chain([mark(end_s + 1, kind::END, "")]).collect()).unwrap();
        writer.end_trial(0).unwrap();
    }
}

fn head(subject: &str, at: u64, command: &str) -> RunHead {
    RunHead {
        subject: subject.to_owned(),
        seed: 4_569_310_322_014_077,
        arrivals: "even".to_owned(),
        command: command.to_owned(),
        stepladder: "0.1.0".to_owned(),
        started_unix_ms: 1_795_261_625_012 + at * 3_600_000,
        shared_cores: true,
        plan: json!({ "ladder": { "rungs": [500, 1000], "hold": { "time": 12_000_000_000u64 } } })
            .to_string(),
        environment: json!({
            "os": "linux", "architecture": "x86_64", "kernel": "6.1.0", "cpu_model": "planted", "cores": 2,
            "memory_bytes": 25_276_510_208u64, "link": { "interface": "lo", "kind": "loopback" },
        })
        .to_string(),
        ..RunHead::default()
    }
}

/// Records a run and returns its page, as a report carries it.
fn page(store: &Store, head: RunHead, rungs: &[Plant], labels: Labels<'_>) -> Value {
    let writer = store.begin_run(&head, None).unwrap();
    let run = writer.id().clone();
    let calibration = Plant { purpose: Purpose::CalibrationLatency, hold_s: 1, ..arena(64.0, 1e6) };
    let trials = if rungs.is_empty() { Vec::new() } else { [&[calibration], rungs].concat() };
    for (seq, plant) in (0..).zip(&trials) {
        plant.record(&writer, seq);
    }
    let climb = BySubject.climb(store, &run).unwrap();
    let outcome = if rungs.is_empty() { Outcome::Interrupted } else { Outcome::Finished };
    let climb = climb.map(|climb| serde_json::to_string(&climb).unwrap());
    writer.end_run(RunEnd { outcome, reason: None, ended_unix_ms: 0, climb }).unwrap();
    for (key, value) in labels {
        store.set_label(&run, key, Some(value)).unwrap();
    }
    page_of(store, &run)
}

/// Its page, without what the page has no name for.
fn page_of(store: &Store, run: &RunId) -> Value {
    let page = Archive::new(store, &BySubject).run_page(run, Detail::All { width: WIDTH }).unwrap();
    let mut page = serde_json::to_value(page).unwrap();
    for trial in page["trials"].as_array_mut().unwrap() {
        trial["rung"] = Value::Null;
    }
    for rung in page.pointer_mut("/climb/rungs").and_then(Value::as_array_mut).into_iter().flatten() {
        // The page does not use it, and it would be half of the file.
        rung.as_object_mut().unwrap().remove("extra");
    }
    page
}

/// Key and value.
type Labels<'a> = &'a [(&'a str, &'a str)];

fn pages(store: &Store) -> Vec<Value> {
    let arenas = |loads: &[u32], capacity: f64| -> Vec<Plant> {
        loads.iter().map(|load| arena(f64::from(*load), capacity)).collect()
    };
    let twenty: Vec<u32> = (1..=20).map(|step| step * 100).collect();
    let short =
        |plants: Vec<Plant>| plants.into_iter().map(|plant| Plant { hold_s: 5, ..plant }).collect::<Vec<_>>();
    let died = Plant { dies: true, ..arena(1_000.0, 3_000.0) };
    let limited = Plant { send_lag_ns: 40e6, late_share: 0.4, ..arena(4_000.0, 1e6) };
    let cells: [(&[(&str, &str)], u32); 3] = [
        (&[("service", "short")], 10),
        (&[("service", "long")], 4),
        (&[("keep-alive", "off"), ("service", "short")], 10),
    ];
    let sweep: Vec<Plant> = cells
        .iter()
        .flat_map(|(cell, slots)| [1, 2, 4, 8, 10, 12, 14, 15].map(|load| polling(load, cell, *slots)))
        .collect();
    let hostile_cell = [(HOSTILE.to_owned(), HOSTILE.to_owned())].into();
    let hostile =
        Plant { late_share: 0.4, bad: 3, words: HOSTILE, cell: hostile_cell, hold_s: 5, ..arena(500.0, 1e6) };
    let climb = "stepladder climb arena --rungs 500,1000,2000 --hold 12s";
    let main: &[(&str, &str)] =
        &[("name", "main"), ("note", "before the new ticker"), ("tags", "release"), ("pinned", "true")];
    let ticker: &[(&str, &str)] = &[("name", "new ticker"), ("tags", "release,ticker")];
    let all_hostile: &[(&str, &str)] = &[("name", HOSTILE), ("note", HOSTILE), ("tags", HOSTILE)];
    let runs: Vec<(RunHead, Vec<Plant>, Labels<'_>)> = vec![
        (head("arena", 0, climb), arenas(&[500, 1000, 2000], 1_400.0), main),
        (head("arena", 1, climb), arenas(&[500, 1000, 2000], 1_950.0), ticker),
        (head("arena", 2, climb), short(arenas(&twenty, 1_500.0)), &[("name", "twenty rungs")]),
        (head("arena", 3, climb), arenas(&[500], 1_500.0), &[("name", "one rung")]),
        (head("arena", 4, climb), vec![arena(500.0, 3_000.0), died], &[("name", "it died")]),
        (head("arena", 5, climb), vec![limited], &[("name", "too much for this machine")]),
        (
            head(CHAT, 6, "stepladder climb chat"),
            [256, 512, 1024, 2048].map(f64::from).map(chat).to_vec(),
            &[],
        ),
        (head(POLL_LOOP, 7, "stepladder climb poll-loop"), sweep, &[]),
        (head("arena", 8, climb), Vec::new(), &[("name", "stopped at once")]),
        (
            RunHead { name: Some("live".to_owned()), ..head("arena", 9, climb) },
            arenas(&[500, 1000], 700.0),
            &[],
        ),
        (
            RunHead { name: Some("hostile".to_owned()), ..head(HOSTILE, 10, HOSTILE) },
            vec![hostile],
            all_hostile,
        ),
    ];
    runs.into_iter().map(|(head, rungs, labels)| page(store, head, &rungs, labels)).collect()
}

/// Comparisons of client libraries: a whole one, one that hostile clients wrote, one that broke off, and a later one of two
/// clients, of another version on another machine.
fn comparisons(store: &Store) -> Vec<Value> {
    let headed = |name: &str, at: u64| {
        let RunHead { environment, started_unix_ms, .. } = head("", at, "");
        RunHead { name: Some(name.to_owned()), environment, started_unix_ms, ..benches::head(benches::PLAN) }
    };
    let whole = benches::record(store, &headed("clients", 11), &benches::all());
    let hostile = inflight_analysis::testing::Plant {
        client: HOSTILE,
        error: HOSTILE,
        failed: 3,
        ..benches::plant(1, 0, 0)
    };
    let hostile = benches::record(store, &headed("hostile-clients", 12), &[hostile]);
    let writer = store.begin_run(&headed("broken-clients", 13), None).unwrap();
    benches::write(&writer, 0, &benches::plant(0, 0, 0));
    let broken =
        benches::end(writer, Outcome::Broken, Some("client node: it wrote nothing for 30 s and was stopped"));
    let mut later = headed("clients", 15);
    later.environment = later.environment.replacen("6.1.0", "6.6.0", 1);
    later.plan = later.plan.replace("\"runs\":3", "\"runs\":2");
    let faster = |at: usize, row: u64, block: u64| {
        let plant = benches::plant(at, row, block);
        let ops_per_s = if at == 0 { plant.ops_per_s * (105 + 10 * block) / 100 } else { plant.ops_per_s };
        inflight_analysis::testing::Plant { ops_per_s, ..plant }
    };
    let plants: Vec<_> = [(0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 0, 1)]
        .map(|(at, row, block)| inflight_analysis::testing::Plant {
            cell: at as u64,
            ..faster(at, row, block)
        })
        .into();
    let later = benches::record(store, &later, &plants);
    [whole, hostile, broken, later].map(|run| page_of(store, &run)).into()
}

/// A duel whose truth is planted: B's responses take longer, more of its ticks are late, and both use the same CPU.
fn duel(store: &Store) -> Value {
    let head = RunHead {
        kind: RunKind::Duel,
        name: Some("duel".to_owned()),
        ..head("arena against arena", 14, "stepladder duel arena 'arena -- --ticker catch-up' --rungs 500")
    };
    let writer = store.begin_run(&head, None).unwrap();
    let run = writer.id().clone();
    let plant = |block: u32, side: Side| Plant {
        late_share: match side {
            Side::A => 0.010 + 0.002 * f64::from(block % 3),
            Side::B => 0.030 + 0.003 * f64::from(block % 2),
        },
        hold_s: 2,
        cell: side.cell(),
        ..arena(500.0, 1e6)
    };
    let orders = (0..6).flat_map(|block| {
        let order = if block % 2 == 0 { [Side::A, Side::B] } else { [Side::B, Side::A] };
        order.map(|side| plant(block, side))
    });
    (0..).zip(orders).for_each(|(seq, plant)| plant.record(&writer, seq));
    let (climb, duel) = BySubject.duel(store, &run).unwrap().unwrap();
    let mut told = serde_json::to_value(climb).unwrap();
    told["duel"] = serde_json::to_value(duel).unwrap();
    let climb = Some(told.to_string());
    writer.end_run(RunEnd { outcome: Outcome::Finished, reason: None, ended_unix_ms: 0, climb }).unwrap();
    page_of(store, &run)
}

/// A climb whose profile is planted: `broadcast` grew, `parse` shrank, and more clients wait for a lock.
fn profiled(store: &Store) -> Value {
    let head = RunHead {
        name: Some("profiled".to_owned()),
        ..head("arena", 16, "stepladder climb arena --profile")
    };
    let writer = store.begin_run(&head, None).unwrap();
    let run = writer.id().clone();
    for (seq, load) in (0..).zip([500.0, 1_000.0]) {
        Plant { hold_s: 5, ..arena(load, 700.0) }.record(&writer, seq);
    }
    let deep = vec!["user:walk"; 40].join(";");
    let good =
        "user:main;user:tick;user:simulate 400\nuser:main;user:tick;user:broadcast;runtime:serialize 300\n\
                user:main;user:tick;user:broadcast;runtime:write;kernel:tcp_sendmsg 500\n\
                user:main;user:tick;user:parse 700\ngc:sweep 40\nuser:main;user:gone 60\n"
            .to_owned();
    let bad = format!(
        "user:main;user:tick;user:simulate 800\nuser:main;user:tick;user:broadcast;runtime:serialize 2400\n\
         user:main;user:tick;user:broadcast;runtime:write;kernel:tcp_sendmsg 1000\nuser:main;user:tick;user:parse 300\n\
         user:main;user:tick;user:{HOSTILE} 500\nuser:main;user:tick;{deep} 200\ngc:sweep 80\nuser:main;user:tiny 1\n"
    );
    let waits = |us: u32| {
        format!(
            "user:main;user:hold;runtime:futex_wait;kernel:futex_wait_queue {us}\nuser:main;user:accept 9000000\n"
        )
    };
    for (name, text) in [
        ("profile-good.folded", good),
        ("profile-bad.folded", bad),
        ("waits-good.folded", waits(500_000)),
        ("waits-bad.folded", waits(60_000_000)),
    ] {
        writer.artifact(name, text.as_bytes()).unwrap();
    }
    let mut climb = BySubject.climb(store, &run).unwrap().unwrap();
    climb.conclusions.push(profiles::told([2_000, 5_281], [10_000, 20_000], Some(1.0)));
    let climb = Some(serde_json::to_string(&climb).unwrap());
    writer.end_run(RunEnd { outcome: Outcome::Finished, reason: None, ended_unix_ms: 0, climb }).unwrap();
    page_of(store, &run)
}

#[test]
fn the_page_is_tested_with_what_the_viewer_sends() {
    let given = given::store();
    let mut pages = pages(&given.store);
    pages.extend(comparisons(&given.store));
    pages.push(duel(&given.store));
    pages.push(profiled(&given.store));
    let pages: Vec<String> = pages.iter().map(ToString::to_string).collect();
    // A line per trial, rung and process, so that a change of one can be seen.
    let lines =
        pages.join(",\n").replace("{\"seq\":", "\n{\"seq\":").replace("{\"number\":", "\n{\"number\":");
    committed::check("web/fixtures/runs.json", &format!("[\n{lines}\n]\n"));
    let run = |id: &str| given.store.find_run(id).unwrap();
    let both = viewer::beside(&given.store, &run("clients-1"), &run("clients-2")).unwrap();
    let both = serde_json::to_string_pretty(&both).unwrap();
    committed::check("web/fixtures/beside.json", &format!("{both}\n"));
}
