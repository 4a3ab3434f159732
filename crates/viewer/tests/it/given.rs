//! Test fixtures: a store with planted runs, a judge without plans, a viewer, and a client that is no browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ladder::duel::DuelAnswers;
use ladder::{Climb, Conclusion, Criteria, Objective, RunFacts, answers, judge, rung};
use measure::ledger::{ReceiverBooks, SumOfBooks};
use measure::trial::kind;
use measure::{
    Books, Distribution, Entry, Event, Flow, Interval, LoadUnit, MachineMetric, Measure, MetricNames, Phase,
    ProcessMetric, Purpose, Reading, Sample, TickCounts, TickSecond, TrialHead,
};
use serde_json::Value;
use store::{Outcome, RunEnd, RunHead, RunId, RunWriter, Store};
use tempfile::TempDir;
use viewer::{Judge, Options, Unjudged, Viewer};

pub const SECOND_NS: u64 = 1_000_000_000;
/// Before the hold: a second of ramp and one of settling.
pub const HOLD_FROM_S: u32 = 2;
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Given {
    pub path: PathBuf,
    pub store: Store,
    pub folder: TempDir,
}

pub fn store() -> Given {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stepladder.db");
    Given { store: Store::open_or_create(&path).unwrap(), path, folder }
}

pub fn objectives() -> Vec<Objective> {
    vec!["ticks.late_share < 25%".parse().unwrap(), "errors == 0".parse().unwrap()]
}

pub fn terms() -> Criteria {
    Criteria { objectives: objectives(), patience_ns: SECOND_NS, ..Criteria::default() }
}

/// Judges by these objectives whatever the plan says, as `stepladder` does with the plan's.
pub struct ByRules;

impl Judge for ByRules {
    fn climb(&self, store: &Store, run: &RunId) -> Result<Option<Climb>, Unjudged> {
        let record = store.run(run)?;
        let terms = terms();
        let mut rungs = Vec::new();
        for mark in store.trial_marks(run)?.into_iter().filter(|mark| mark.is_ended()) {
            let trial = store.trial(run, mark.head.seq, 0)?;
            rungs.push(rung(&trial, &judge(&trial, None, &terms)));
        }
        let facts = RunFacts {
            id: run.to_string(),
            subject: record.head.subject,
            command: record.head.command,
            capacity_unit: LoadUnit::Games,
            ..RunFacts::default()
        };
        Ok((!rungs.is_empty()).then(|| answers(&facts, None, rungs, ladder::Asked::default())))
    }

    fn duel(&self, _: &Store, _: &RunId) -> Result<Option<(Climb, DuelAnswers)>, Unjudged> {
        Ok(None)
    }

    fn objectives(&self, _: &Store, _: &RunId) -> Result<Vec<Objective>, Unjudged> {
        Ok(objectives())
    }
}

pub fn run_head(name: &str) -> RunHead {
    RunHead {
        name: Some(name.to_owned()),
        subject: "arena".to_owned(),
        arrivals: "even".to_owned(),
        command: "stepladder climb arena".to_owned(),
        stepladder: "0.1.0".to_owned(),
        started_unix_ms: 1_795_261_625_012,
        plan: r#"{"note":"planted"}"#.to_owned(),
        environment: "{}".to_owned(),
        ..RunHead::default()
    }
}

fn names() -> Arc<MetricNames> {
    MetricNames::new(&["shot"], &["reset"], &["games"], &["refused"])
}

pub fn trial_head(seq: u32, load: f64) -> TrialHead {
    TrialHead {
        seq,
        purpose: Purpose::Rung,
        load,
        load_unit: LoadUnit::Games,
        bots: load as u64 * 2,
        connections: load as u64 * 2,
        tick_period_ns: 16_666_667,
        cell: Default::default(),
        metric_names: names(),
    }
}

pub fn mark(at_s: u32, kind: &str, text: &str) -> Entry {
    Entry::Event(Event { at_ns: u64::from(at_s) * SECOND_NS, kind: kind.to_owned(), text: text.to_owned() })
}

/// A skewed law around `middle_ns`, another in each second.
fn spread(seed: u64, middle_ns: f64, count: u64) -> Distribution {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut values = Distribution::new();
    // Each draw represents several messages, so that planting an hour takes seconds.
    let draws = count.min(1_500);
    for at in 0..draws {
        let normal = (0..4).map(|_| random.f64()).sum::<f64>() - 2.0;
        let far = if random.f64() < 0.01 { 1.0 + random.f64() * 8.0 } else { 1.0 };
        let share = count / draws + u64::from(at < count % draws);
        values.record_many((middle_ns * (normal * 0.5).exp() * far) as u64, share);
    }
    values
}

/// Second `index` with this many answered shots, and what is reported for it later: ticks and the processes.
pub fn second(index: u32, load: f64, late: u64) -> (Entry, Vec<Entry>) {
    let sent = (load * 14.0) as u64;
    let seed = u64::from(index) * 1_000 + load as u64;
    let mut interval = Interval::new(&names());
    interval.index = index;
    interval.workers = 2;
    let is_hold = index >= HOLD_FROM_S;
    let phase = if is_hold { Phase::Hold } else { Phase::Ramp };
    *interval.flow_mut(0, phase) = Flow { offered: sent, sent, answered: sent, ..Flow::default() };
    for (at, (measure, middle_ns)) in
        [(Measure::Response, 900e3), (Measure::Service, 800e3), (Measure::SendLag, 40e3)]
            .into_iter()
            .enumerate()
    {
        *interval.distribution_mut(measure, is_hold) = spread(seed + at as u64, middle_ns, sent);
    }
    interval.connections.asked = if index == 0 { load as u64 * 2 } else { 0 };
    interval.connections.opened = interval.connections.asked;
    interval.connections.open_min = load as u64 * 2;
    interval.connections.open_end = load as u64 * 2;
    interval.bytes_sent = sent * 70;
    interval.busy_share_max = 0.25;
    let due = (load * 60.0) as u64;
    let (from_ns, to_ns) = (u64::from(index) * SECOND_NS, (u64::from(index) + 1) * SECOND_NS);
    let ticks = TickSecond {
        source: "log".to_owned(),
        from_ns,
        to_ns,
        counts: TickCounts { due, on_time: due - late, over: late, under: 0, missed: 0 },
        interval: spread(seed + 9, 16.67e6, due),
        busy: None,
        lateness: None,
        isr_numerator_ns: None,
        counters: vec![("frames".to_owned(), 30)],
    };
    let sample = |what, value| Entry::Sample(Sample { at_ns: to_ns, what, value });
    let later = vec![
        Entry::Ticks(Box::new(ticks)),
        sample(Reading::Subject(ProcessMetric::CpuTime), f64::from(index) * 0.5),
        sample(Reading::Subject(ProcessMetric::Rss), 50e6),
        sample(Reading::Worker(ProcessMetric::CpuTime), f64::from(index) * 0.125),
        sample(Reading::Worker(ProcessMetric::Rss), 20e6),
        sample(Reading::Machine(MachineMetric::StealShare), 0.0),
    ];
    (Entry::Interval(Box::new(interval)), later)
}

fn books() -> Books {
    let receivers = (0..40u32).map(|receiver| ReceiverBooks {
        receiver,
        sum: SumOfBooks { receivers: 1, owed_min: 20, owed_max: 20, delivered: 20, ..SumOfBooks::default() },
        latency_mean_ns: Some(1e6 + f64::from(receiver) * 1e3),
        latency_max_ns: Some(9_000_000),
        ..ReceiverBooks::default()
    });
    Books { sent: 800, ..Books::of(receivers.collect(), Vec::new()) }
}

/// Records a whole rung: `late_share` of its ticks come late.
pub fn record_rung(writer: &RunWriter, seq: u32, load: f64, hold_s: u32, late_share: f64) {
    record_in(writer, &trial_head(seq, load), hold_s, late_share);
}

pub fn record_in(writer: &RunWriter, head: &TrialHead, hold_s: u32, late_share: f64) {
    let load = head.load;
    writer.begin_trial(head, 1_795_261_625_012).unwrap();
    let late = (load * 60.0 * late_share) as u64;
    for index in 0..HOLD_FROM_S + hold_s {
        let mut batch = Vec::new();
        if index == 1 {
            batch.push(mark(1, kind::SETTLE, "all connections open"));
        }
        if index == HOLD_FROM_S {
            batch.push(mark(index, kind::HOLD, ""));
        }
        let (interval, later) = second(index, load, late);
        batch.push(interval);
        batch.extend(later);
        writer.append(batch).unwrap();
    }
    let end_s = HOLD_FROM_S + hold_s;
    writer
        .append(vec![
            mark(end_s, kind::DRAIN, &format!("{hold_s}s")),
            Entry::Books(Box::new(books())),
            mark(end_s, kind::END, ""),
        ])
        .unwrap();
    writer.end_trial(1_795_261_685_012).unwrap();
}

/// What a climb stores for a rung after its entries.
pub fn store_verdict(given: &Given, writer: &RunWriter, seq: u32) {
    let climb = ByRules.climb(&given.store, writer.id()).unwrap().unwrap();
    let rung = climb.rungs.last().unwrap();
    let verdict = store::StoredVerdict {
        judge: "climb".to_owned(),
        verdict: rung.verdict.name().to_owned(),
        reason: rung.reason.clone(),
        cut_s: 0,
        evidence: serde_json::to_string(&rung.evidence).unwrap(),
    };
    writer.verdict(seq, verdict).unwrap();
}

pub fn end(given: &Given, writer: RunWriter) -> RunId {
    end_told(given, writer, Vec::new())
}

/// Ends a run whose answers have these parts besides.
pub fn end_told(given: &Given, writer: RunWriter, told: Vec<Conclusion>) -> RunId {
    let run = writer.id().clone();
    let mut climb = ByRules.climb(&given.store, &run).unwrap();
    if let Some(climb) = &mut climb {
        climb.conclusions.extend(told);
    }
    let end = RunEnd {
        outcome: Outcome::Finished,
        reason: None,
        ended_unix_ms: 1_795_261_999_012,
        climb: climb.map(|climb| serde_json::to_string(&climb).unwrap()),
    };
    writer.end_run(end).unwrap();
    run
}

/// A finished run of rungs, the last of which fails.
pub fn record_run(given: &Given, name: &str, loads: &[f64], hold_s: u32) -> RunId {
    let writer = given.store.begin_run(&run_head(name), None).unwrap();
    for (seq, load) in (0..).zip(loads) {
        let fails = loads.len() > 1 && seq as usize + 1 == loads.len();
        record_rung(&writer, seq, *load, hold_s, if fails { 0.4 } else { 0.02 });
        store_verdict(given, &writer, seq);
    }
    end(given, writer)
}

pub fn serve(given: &Given, ticks: Vec<PathBuf>) -> Viewer {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = Options { store: given.path.clone(), listen, ticks };
    viewer::serve(&options, Arc::new(ByRules)).unwrap()
}

/// A run that has just begun, and a viewer that may follow it.
pub fn growing() -> (Given, RunWriter, RunId, Viewer) {
    let given = store();
    let writer = given.store.begin_run(&run_head("live"), None).unwrap();
    let run = writer.id().clone();
    let viewer = serve(&given, Vec::new());
    (given, writer, run, viewer)
}

/// A run of rungs held for so many seconds, and a viewer of its store.
pub fn recorded(name: &str, loads: &[f64], hold_s: u32) -> (Given, RunId, Viewer) {
    let given = store();
    let run = record_run(&given, name, loads, hold_s);
    let viewer = serve(&given, Vec::new());
    (given, run, viewer)
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A client with the token.
pub struct Client {
    pub address: SocketAddr,
    /// `/TOKEN`, before every path
    pub root: String,
}

impl Client {
    pub fn of(viewer: &Viewer) -> Client {
        let (address, url) = (viewer.address(), viewer.url());
        let root = url.strip_prefix(&format!("http://{address}")).unwrap().strip_suffix('/').unwrap();
        Client { address, root: root.to_owned() }
    }

    pub fn head(&self, method: &str, path: &str) -> String {
        let Client { address, root } = self;
        format!(
            "{method} {root}{path} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
             Sec-Fetch-Site: same-origin\r\n"
        )
    }

    pub fn get(&self, path: &str) -> Answer {
        exchange(self.address, &self.head("GET", path), b"")
    }

    pub fn send(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        exchange(self.address, &self.head(method, path), body)
    }

    /// Follows an address; the events are read as they come.
    pub fn follow(&self, path: &str, last_id: Option<&str>) -> Events {
        // So that the end of the stream is the end of the connection.
        let mut head = self.head("GET", path) + "Connection: close\r\n";
        if let Some(id) = last_id {
            head += &format!("Last-Event-ID: {id}\r\n");
        }
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        Events { lines: BufReader::new(stream) }
    }
}

/// Events of a stream, in their order.
pub struct Events {
    lines: BufReader<TcpStream>,
}

impl Events {
    /// The next event but a ping: its id, kind and data. `None` when the server has closed.
    pub fn next(&mut self) -> Option<(String, String, Value)> {
        let (mut id, mut kind, mut data) = (String::new(), String::new(), String::new());
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.to_owned();
            } else if let Some(text) = line.strip_prefix("event: ") {
                kind = text.to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = text.to_owned();
            } else if line.is_empty() && !data.is_empty() {
                if kind != "ping" {
                    return Some((id, kind, serde_json::from_str(&data).unwrap()));
                }
                (id, kind, data) = Default::default();
            }
        }
    }

    /// Events up to and including one for which this is true.
    #[track_caller]
    pub fn until(&mut self, is_last: impl Fn(&str, &Value) -> bool) -> Vec<(String, String, Value)> {
        let (mut seen, began) = (Vec::new(), Instant::now());
        while began.elapsed() < PATIENCE {
            let event = self.next().expect("the server goes on");
            let done = is_last(&event.1, &event.2);
            seen.push(event);
            if done {
                return seen;
            }
        }
        panic!("it never came: {seen:?}")
    }
}

/// One request over a separate connection. `head` ends with the last header's line.
pub fn exchange(address: SocketAddr, head: &str, body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let whole = format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(whole.as_bytes()).unwrap();
    // A server that refuses closes before it has read everything.
    let _ = stream.write_all(body);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head, body: bytes.get(at + 4..).unwrap_or_default().to_vec() }
}
