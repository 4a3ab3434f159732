//! The bots against simulated servers in virtual time: planted truth must appear in the accounts unchanged.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests too.

mod arena;
mod arena_pairing_sync;
mod chat;
mod disconnects;
mod echo;
mod grid;
mod http;
mod script;
mod script_http;
mod script_rooms;
mod sessions;

use std::net::{Ipv4Addr, SocketAddr};

use measure::trial::kind;
use measure::{Entry, Event, Interval, LoadUnit, Purpose, Trial, TrialHead};
use plan::{BotSettings, Ramp, Scheme, WorkerPlan};

const SECOND_NS: u64 = 1_000_000_000;

fn worker_plan(bots: BotSettings, units: u64) -> WorkerPlan {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    WorkerPlan {
        ramp: Ramp::Every(2_000_000),
        seed: 7,
        open_attempts: 5,
        tick_period_ns: 16_666_667,
        ..WorkerPlan::alone(bots, units, Scheme::Ws, address)
    }
}

/// The same fold that a stored run goes through.
fn sum_up(seconds: Vec<Interval>, from_s: u64, to_s: u64) -> Trial {
    let mut before = None::<Vec<_>>;
    for second in &seconds {
        second.balance().unwrap();
        let opens: Vec<_> = second.flows.iter().flatten().map(|flow| flow.open_before).collect();
        if let Some(before) = before {
            assert_eq!(opens, before, "what is open after a second is open before the next");
        }
        before = Some(second.flows.iter().flatten().map(|flow| flow.open_after).collect());
    }
    let head = TrialHead {
        seq: 0,
        purpose: Purpose::Rung,
        load: 1.0,
        load_unit: LoadUnit::Games,
        bots: 2,
        connections: 2,
        tick_period_ns: 16_666_667,
        cell: Default::default(),
        metric_names: seconds[0].metric_names.clone(),
    };
    let mut entries: Vec<Entry> =
        seconds.into_iter().map(|second| Entry::Interval(Box::new(second))).collect();
    for (at_s, kind) in [(from_s, kind::HOLD), (to_s, kind::DRAIN), (to_s + 1, kind::END)] {
        let event = Event { at_ns: at_s * SECOND_NS, kind: kind.to_owned(), text: String::new() };
        entries.push(Entry::Event(event));
    }
    Trial::from_entries(head, &entries, 0)
}
