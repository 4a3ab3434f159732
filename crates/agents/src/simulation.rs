//! What a coordinator spends on many agents: their messages are made and encoded as real ones are, and taken as they would be; time
//! does not pass.

use std::sync::Arc;
use std::sync::mpsc::channel;

use engine::collector::FromWorker;
use engine::{Collector, Timeline};
use measure::{AgentFacts, Flow, Interval, Measure, MetricNames, Phase};

use crate::coordinator::intake::{Intake, Part};
use crate::merge::Samples;
use crate::messages::{State, Up, What, from_json, pack, to_json, unpack};

/// What a second of a hold costs.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// of the stream's messages, bytes per agent
    pub bytes: f64,
    /// CPU of the coordinator, s
    pub cpu_s: f64,
}

/// How often an agent tells how it stands.
const STATES_PER_S: usize = 10;

/// One second of an agent, with `requests` requests of each operation.
fn second(names: &Arc<MetricNames>, agent: usize, index: u32, requests: u64) -> Interval {
    let mut interval = Interval::new(names);
    (interval.index, interval.workers) = (index, 1);
    let mut random = (agent as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(index);
    for op in 0..names.ops.len() {
        *interval.flow_mut(op, Phase::Hold) =
            Flow { offered: requests, sent: requests, answered: requests, ..Flow::default() };
        for _ in 0..requests {
            // From 0.3 to 20 ms, most of them short.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let ns = 300_000 + (1_u64 << (10 + (random >> 60))) + (random >> 44);
            interval.record(Measure::Response, Phase::Hold, ns);
            interval.record(Measure::Service, Phase::Hold, ns - 100_000);
            interval.record(Measure::SendLag, Phase::Hold, random >> 48);
            if let Some(timed) = interval.of_op_mut(op) {
                timed.record(ns);
            }
        }
    }
    interval
}

/// The mean over `seconds` seconds of `agents` agents, each with `ops` operations of `requests` requests per second.
pub fn cost(agents: usize, ops: usize, requests: u64, seconds: u32) -> Cost {
    let ops: Vec<String> = (0..ops).map(|op| format!("operation {op}")).collect();
    let ops: Vec<&str> = ops.iter().map(String::as_str).collect();
    let names = MetricNames::new(&ops, &["timeout"], &[], &["refused"]).with_timed_ops(ops.len());
    let of_second = |index: u32| -> Vec<Vec<u8>> {
        let of_agent = |agent| {
            let interval = Box::new(second(&names, agent, index, requests));
            pack(&Up { seq: index.into(), trial: 0, what: What::Second { interval, events: Vec::new() } })
        };
        (0..agents).map(of_agent).collect()
    };
    let state = to_json(&State { trial: Some(0), open: 1_000, joined: 1_000, ..State::default() });
    let (says, hears) = channel();
    let (mut collector, _ends) = Collector::new(agents, &says);
    let parts = (0..agents).map(|part| (part, Part::new(part, AgentFacts::default()))).collect();
    let timeline = Arc::new(Timeline::default());
    timeline.hold_at(0);
    let mut intake = Intake {
        trial: 0,
        bots: 0,
        senders: None,
        names: names.clone(),
        says,
        timeline,
        agents: parts,
        samples: Samples::new(agents),
        entries: Vec::new(),
    };
    let (mut bytes, mut cpu_s) = (0, 0.0);
    for index in 0..seconds {
        let messages = of_second(index);
        bytes += messages.iter().map(Vec::len).sum::<usize>();
        let began_s = watch::thread_cpu_s();
        for (agent, message) in messages.iter().enumerate() {
            let up: Up = unpack(message).expect("it was packed here");
            intake.take(agent, up.trial, up.what);
            for _ in 0..STATES_PER_S {
                intake.hear(agent, from_json(&state).expect("it was written here"));
            }
        }
        let mut merged = 0;
        for said in hears.try_iter() {
            let FromWorker::Second { worker, interval } = said else { continue };
            merged += usize::from(collector.add(worker, interval).expect("it balances").is_some());
        }
        assert_eq!(merged, 1, "all parts of a second make one");
        cpu_s += watch::thread_cpu_s() - began_s;
    }
    let seconds = f64::from(seconds);
    Cost { bytes: bytes as f64 / seconds / agents as f64, cpu_s: cpu_s / seconds }
}
