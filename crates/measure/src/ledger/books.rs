//! The books of one trial's deliveries, settled.
//!
//! `owed_min ≤ delivered + lost ≤ owed_max`, for every receiver and in sum. Where nobody came or went while others
//! spoke, the two bounds are one and every figure is exact. `residual = lost − dropped − in_flight`: what nobody accounts
//! for; anything but 0 means that somebody's books are wrong.

use serde::{Deserialize, Serialize};

/// Deliveries of some receivers, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SumOfBooks {
    /// receivers
    pub receivers: u64,
    /// surely owed
    pub owed_min: u64,
    /// possibly owed
    pub owed_max: u64,
    /// different messages that came
    pub delivered: u64,
    /// of the delivered: after the plan's patience
    pub late: u64,
    /// surely owed, and never came
    pub lost: u64,
    /// came again
    pub duplicated: u64,
    /// came after a newer one of the same sender
    pub reordered: u64,
    /// the server says that it dropped them
    pub dropped: u64,
    /// the server says that they still waited in its backlog at the end
    pub in_flight: u64,
    /// lost − dropped − in flight
    pub residual: i64,
    /// came although nobody owed them
    pub unowed: u64,
    /// receivers that never had the server's word that everything had come
    pub not_caught_up: u64,
}

/// One receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverBooks {
    /// its number in the whole crowd
    pub receiver: u32,
    /// behaves badly, and is judged apart
    pub is_apart: bool,
    /// its deliveries; `receivers` is 1
    pub sum: SumOfBooks,
    /// mean delivery latency, ns
    pub latency_mean_ns: Option<f64>,
    /// longest, ns
    pub latency_max_ns: Option<u64>,
    /// the server's own count of what it owed this client, where it tells
    pub told_owed: Option<u64>,
    /// and of what it handed to the kernel
    pub told_delivered: Option<u64>,
}

/// One sender at one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairBooks {
    /// number of the sender in the whole crowd
    pub sender: u32,
    /// number of the receiver
    pub receiver: u32,
    /// surely owed
    pub owed_min: u64,
    /// possibly owed
    pub owed_max: u64,
    /// came
    pub delivered: u64,
    /// surely owed, and never came
    pub lost: u64,
}

/// The books of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Books {
    /// the well-behaved receivers: what is judged
    pub judged: SumOfBooks,
    /// those that behave badly
    pub apart: SumOfBooks,
    /// messages that left, of all senders
    pub sent: u64,
    /// messages whose sender or number nobody can have
    pub strangers: u64,
    /// the server tells what it drops
    pub drops_are_told: bool,
    /// every receiver, by number
    pub receivers: Vec<ReceiverBooks>,
    /// the pairs that lost most or got what nobody owed, the worst first, at most 100
    pub worst: Vec<PairBooks>,
}

impl SumOfBooks {
    /// Adds another sum.
    pub fn add(&mut self, other: &SumOfBooks) {
        self.receivers += other.receivers;
        self.owed_min += other.owed_min;
        self.owed_max += other.owed_max;
        self.delivered += other.delivered;
        self.late += other.late;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.dropped += other.dropped;
        self.in_flight += other.in_flight;
        self.residual += other.residual;
        self.unowed += other.unowed;
        self.not_caught_up += other.not_caught_up;
    }

    /// What was owed, as it turned out: delivered, lost, and nothing that nobody owed.
    pub fn owed(&self) -> u64 {
        self.delivered - self.unowed + self.lost
    }

    /// Whether the bounds hold and nothing came that nobody owed.
    pub fn balances(&self) -> bool {
        self.unowed == 0 && (self.owed_min..=self.owed_max).contains(&(self.delivered + self.lost))
    }
}

impl Books {
    /// The judged receiver with the highest mean latency.
    pub fn slowest(&self) -> Option<&ReceiverBooks> {
        let judged = self.receivers.iter().filter(|receiver| !receiver.is_apart);
        judged
            .filter(|receiver| receiver.latency_mean_ns.is_some())
            .max_by(|a, b| a.latency_mean_ns.unwrap_or(0.0).total_cmp(&b.latency_mean_ns.unwrap_or(0.0)))
    }
}
