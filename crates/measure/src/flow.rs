//! Flow: the outcome of every message of a second, and the two laws that must hold.
//!
//! Each message is counted once as offered and has exactly one outcome. `offered = sent + not_sent`, and `open_before +
//! sent = told + answered + failed + lost + open_after`. A rate computed from counts that do not balance would be
//! meaningless, so both laws are checked whenever an interval changes hands.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use ts_rs::TS;

/// The part of a trial in which a message was *planned* (not the one in which it happened).
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    VariantArray,
    IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// Bots are still arriving.
    Ramp,
    /// All are there; the server finds its feet.
    Settle,
    /// The part that is judged.
    Hold,
    /// Nothing new is planned; what is under way may end.
    Drain,
}

impl Phase {
    /// All phases in the order of time.
    pub const ALL: &[Phase] = <Phase as VariantArray>::VARIANTS;
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Its name in the store and in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Messages of one operation, counted. All fields are numbers of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Flow {
    /// planned to leave
    pub offered: u64,
    /// planned, but never handed to the kernel
    pub not_sent: u64,
    /// handed to the kernel
    pub sent: u64,
    /// sent and owing nothing (a shot)
    pub told: u64,
    /// sent and replied to, in whatever time
    pub answered: u64,
    /// of the answered: after the plan's patience
    pub late: u64,
    /// sent and replied to wrongly
    pub failed: u64,
    /// sent, and the connection ended before the reply
    pub lost: u64,
    /// waiting for their reply when the interval began
    pub open_before: u64,
    /// waiting for their reply when the interval ended
    pub open_after: u64,
}

/// A page of the books whose doors do not add up: always a bug of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Imbalance {
    /// `offered != sent + not_sent`
    #[error("offered {offered} is not sent {sent} + not sent {not_sent}")]
    Offered {
        /// see [`Flow`]
        offered: u64,
        /// see [`Flow`]
        sent: u64,
        /// see [`Flow`]
        not_sent: u64,
    },
    /// `open_before + sent != told + answered + failed + lost + open_after`
    #[error("{entered} messages entered (open before + sent) but {left} left or are open")]
    Sent {
        /// open_before + sent
        entered: u64,
        /// told + answered + failed + lost + open_after
        left: u64,
    },
    /// `late > answered`
    #[error("{late} late answers are more than the {answered} answers")]
    Late {
        /// see [`Flow`]
        late: u64,
        /// see [`Flow`]
        answered: u64,
    },
}

impl Flow {
    /// Checks the two laws. Errors: `Imbalance`.
    pub fn balance(&self) -> Result<(), Imbalance> {
        if self.offered != self.sent + self.not_sent {
            return Err(Imbalance::Offered {
                offered: self.offered,
                sent: self.sent,
                not_sent: self.not_sent,
            });
        }
        let entered = self.open_before + self.sent;
        let left = self.told + self.answered + self.failed + self.lost + self.open_after;
        if entered != left {
            return Err(Imbalance::Sent { entered, left });
        }
        if self.late > self.answered {
            return Err(Imbalance::Late { late: self.late, answered: self.answered });
        }
        Ok(())
    }

    /// Adds the same second of another worker.
    pub fn add(&mut self, other: &Flow) {
        self.add_doors(other);
        self.open_before += other.open_before;
        self.open_after += other.open_after;
    }

    /// Appends the second that follows: what was open in between cancels out.
    pub fn append(&mut self, next: &Flow) {
        self.add_doors(next);
        self.open_after = (self.open_after + next.open_after).saturating_sub(next.open_before);
    }

    /// Adds the events of a second, whatever was open before and after it: for selected seconds the second law cannot
    /// hold.
    pub(crate) fn add_doors(&mut self, other: &Flow) {
        self.offered += other.offered;
        self.not_sent += other.not_sent;
        self.sent += other.sent;
        self.told += other.told;
        self.answered += other.answered;
        self.late += other.late;
        self.failed += other.failed;
        self.lost += other.lost;
    }

    /// True when nothing happened and nothing is open.
    pub fn is_empty(&self) -> bool {
        *self == Flow::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_leaves_by_two_doors_is_refused() {
        let flow = Flow { offered: 1, sent: 1, told: 1, answered: 1, ..Flow::default() };
        assert_eq!(flow.balance(), Err(Imbalance::Sent { entered: 1, left: 2 }));
    }

    #[test]
    fn a_message_that_was_neither_sent_nor_dropped_is_refused() {
        let flow = Flow { offered: 2, sent: 1, told: 1, ..Flow::default() };
        assert!(matches!(flow.balance(), Err(Imbalance::Offered { .. })));
    }

    #[test]
    fn appended_seconds_balance_as_one() {
        let mut first = Flow { offered: 3, sent: 3, answered: 1, open_after: 2, ..Flow::default() };
        let second = Flow { answered: 1, lost: 1, open_before: 2, ..Flow::default() };
        first.append(&second);
        assert_eq!(first.balance(), Ok(()));
        assert_eq!(first.open_after, 0);
    }
}
