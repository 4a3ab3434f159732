//! The settled delivery accounts of one trial.
//!
//! `owed_min ≤ delivered − unowed + lost + unread ≤ owed_max`, for every receiver and in sum. If no member joined or
//! left while others spoke, the two bounds are equal and every figure is exact.
//! `residual`: what neither side accounts for; anything but 0 means that one of the accounts is wrong. If the bounds
//! are equal it is `lost + unread − max(dropped + in_flight, unread)`: what was not read in time may be what the server
//! dropped meanwhile. If they differ, the server's drops may have fallen into the time for which it is unknown whether
//! messages were owed: then it is the smallest value that is consistent with the bounds.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Deliveries of some receivers, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
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
    /// surely owed, and never came, although the receiver was read in time
    pub lost: u64,
    /// surely owed, and not read: the bots had no time to read the receiver, so the server dropped it or it was still to be read at
    /// the end
    #[serde(default, skip_serializing_if = "is_none")]
    #[ts(optional, as = "Option<u64>")]
    pub unread: u64,
    /// came again
    pub duplicated: u64,
    /// came after a newer one of the same sender
    pub reordered: u64,
    /// the server says that it dropped them
    pub dropped: u64,
    /// the server says that they still waited in its backlog at the end
    pub in_flight: u64,
    /// what neither the server nor the clients account for: positive when more was lost, negative when less; see the head
    pub residual: i64,
    /// came although they were not owed
    pub unowed: u64,
    /// receivers, members when the last message left, that never had the server's word that everything had come
    pub not_caught_up: u64,
}

/// A law of the books that does not hold: always a bug of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BooksImbalance {
    /// One receiver's row contradicts itself.
    #[error("receiver {receiver}: {law}")]
    Receiver {
        /// its number
        receiver: u32,
        /// which law
        law: &'static str,
    },
    /// A sum is not the sum of its receivers.
    #[error("the {whose} receivers do not add up to their sum")]
    Sum {
        /// `judged` or `excluded`
        whose: &'static str,
    },
}

/// One receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct ReceiverBooks {
    /// its number in the whole crowd
    pub receiver: u32,
    /// behaves badly, and is judged separately
    pub is_excluded: bool,
    /// its deliveries; `receivers` is 1
    pub sum: SumOfBooks,
    /// mean delivery latency, ns
    pub latency_mean_ns: Option<f64>,
    /// longest, ns
    pub latency_max_ns: Option<u64>,
    /// the server's own count of what it owed this client, where it tells and the client came once
    pub told_owed: Option<u64>,
    /// and of what it handed to the kernel
    pub told_delivered: Option<u64>,
}

/// One sender at one receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
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
    pub excluded: SumOfBooks,
    /// messages that left, of all senders
    pub sent: u64,
    /// messages with an unknown sender or number; of a pair, numbers beyond the sender's last count once
    pub unknown_messages: u64,
    /// the server tells what it drops
    pub drops_are_told: bool,
    /// every receiver, by number
    pub receivers: Vec<ReceiverBooks>,
    /// the pairs that lost most or got what was not owed, the worst first, at most 100
    pub worst: Vec<PairBooks>,
}

/// Of a count that older readers do not know.
fn is_none(count: &u64) -> bool {
    *count == 0
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
        self.unread += other.unread;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.dropped += other.dropped;
        self.in_flight += other.in_flight;
        self.residual += other.residual;
        self.unowed += other.unowed;
        self.not_caught_up += other.not_caught_up;
    }

    /// What was owed, as it turned out: delivered, lost or not read, and nothing that was not owed.
    pub fn owed(&self) -> u64 {
        self.delivered.saturating_sub(self.unowed) + self.missing()
    }

    /// What never came, whoever is to blame.
    pub fn missing(&self) -> u64 {
        self.lost + self.unread
    }

    /// What `residual` must be for a single receiver, from the other figures.
    pub(super) fn unaccounted(&self) -> i64 {
        let accounted = (self.dropped as i64 + self.in_flight as i64).max(self.unread as i64);
        let lost_at_most = self.owed_max as i64 - self.delivered.saturating_sub(self.unowed) as i64;
        (self.missing() as i64 - accounted).max(0) + (lost_at_most - accounted).min(0)
    }

    /// The law that one receiver's row breaks, if it breaks one.
    fn broken_law(&self) -> Option<&'static str> {
        let laws = [
            (self.owed_min <= self.owed_max, "owed_min > owed_max"),
            (
                self.unowed <= self.delivered && self.late <= self.delivered,
                "more late or unowed than delivered",
            ),
            (
                (self.owed_min..=self.owed_max).contains(&self.owed()),
                "delivered − unowed + lost + unread is not between owed_min and owed_max",
            ),
            (self.residual == self.unaccounted(), "the residual is not what the other figures leave"),
        ];
        laws.into_iter().find_map(|(holds, law)| (!holds).then_some(law))
    }
}

impl Books {
    /// Books of these receivers, which must stand by number, and of these pairs.
    pub fn of(receivers: Vec<ReceiverBooks>, worst: Vec<PairBooks>) -> Books {
        let mut books = Books { receivers, worst, ..Books::default() };
        (books.judged, books.excluded) = books.sums();
        books
    }

    /// The judged ones and the others, added up.
    fn sums(&self) -> (SumOfBooks, SumOfBooks) {
        let (mut judged, mut excluded) = (SumOfBooks::default(), SumOfBooks::default());
        for receiver in &self.receivers {
            if receiver.is_excluded { &mut excluded } else { &mut judged }.add(&receiver.sum);
        }
        (judged, excluded)
    }

    /// Checks the laws. Errors: `BooksImbalance`, the first that is found.
    pub fn balance(&self) -> Result<(), BooksImbalance> {
        for receiver in &self.receivers {
            if let Some(law) = receiver.sum.broken_law() {
                return Err(BooksImbalance::Receiver { receiver: receiver.receiver, law });
            }
        }
        let (judged, excluded) = self.sums();
        match (judged == self.judged, excluded == self.excluded) {
            (true, true) => Ok(()),
            (false, _) => Err(BooksImbalance::Sum { whose: "judged" }),
            (true, false) => Err(BooksImbalance::Sum { whose: "excluded" }),
        }
    }

    /// The judged receivers, the highest mean latency first.
    pub fn slowest_first(&self) -> Vec<&ReceiverBooks> {
        let mut judged: Vec<_> = self.receivers.iter().filter(|one| !one.is_excluded).collect();
        let mean_ns = |of: &ReceiverBooks| of.latency_mean_ns.unwrap_or(-1.0);
        judged.sort_by(|a, b| mean_ns(b).total_cmp(&mean_ns(a)).then(b.receiver.cmp(&a.receiver)));
        judged
    }
}
