//! An operation between its submission and its end: what may be tried again.
//!
//! Tried again is what cannot have been carried out (not sent; refused by the member before it began), and what changes
//! nothing. All attempts together have the operation's one deadline.

use std::sync::Arc;
use std::time::Duration;

use super::outcome::{Down, Failure};
use crate::wire::message::Effect;
use crate::wire::{Request, ServerError};

/// Pause before the second attempt after a member's refusal; doubled with each.
const PAUSE_NS: u64 = 1_000_000;
/// Longest pause.
const PAUSE_NS_MAX: u64 = 500_000_000;
/// An operation that lost so many connections is not tried again: it may be what ends them.
const LOSSES_MAX: u32 = 5;

/// One operation.
#[derive(Debug)]
pub(super) struct Operation<T> {
    pub request: Request,
    pub token: T,
    pub deadline_ns: u64,
    refusals: u32,
    losses: u32,
    /// what the last attempt ended with
    last: Option<Box<Failure>>,
}

/// What becomes of an operation whose attempt ended without an answer.
pub(super) enum Next<T> {
    /// another attempt
    Again { due_ns: u64, operation: Operation<T> },
    /// its end
    Ended(T, End),
}

/// How an operation ends without an answer.
#[derive(Debug)]
pub(super) enum End {
    Failed(Failure),
    Unknown(Failure),
}

impl<T> Operation<T> {
    pub fn new(request: Request, token: T, deadline_ns: u64) -> Self {
        Operation { request, token, deadline_ns, refusals: 0, losses: 0, last: None }
    }

    /// A member answered with an error. `jitter` in [0, 1).
    pub fn after_error(mut self, error: ServerError, now_ns: u64, jitter: f64) -> Next<T> {
        let effect = error.effect();
        let failure = Failure::Server(error.clone());
        let is_safe = effect == Effect::NotBegun || effect == Effect::Unknown && self.request.is_read_only();
        if is_safe && error.is_retryable() {
            let pause_ns = PAUSE_NS.saturating_mul(1 << self.refusals.min(20)).min(PAUSE_NS_MAX);
            let due_ns = now_ns + pause_ns - (pause_ns as f64 / 2.0 * jitter) as u64;
            if due_ns < self.deadline_ns {
                self.refusals += 1;
                self.last = Some(Box::new(failure));
                return Next::Again { due_ns, operation: self };
            }
        }
        if effect == Effect::Unknown && !self.request.is_read_only() {
            Next::Ended(self.token, End::Unknown(failure))
        } else {
            Next::Ended(self.token, End::Failed(failure))
        }
    }

    /// Its connection ended. `is_sent`: after the kernel had taken all of it.
    pub fn after_loss(mut self, is_sent: bool, down: &Arc<Down>, now_ns: u64) -> Next<T> {
        let failure = Failure::ConnectionLost(down.clone());
        if !is_sent || self.request.is_read_only() && self.losses < LOSSES_MAX {
            self.losses += u32::from(is_sent);
            self.last = Some(Box::new(failure));
            return Next::Again { due_ns: now_ns, operation: self };
        }
        Next::Ended(self.token, End::Unknown(failure))
    }

    /// Its answer was too large to be taken.
    pub fn after_large_answer(self, bytes: usize, limit_bytes: usize) -> (T, End) {
        let failure = Failure::AnswerTooLarge { bytes, limit_bytes };
        let end = if self.request.is_read_only() { End::Failed(failure) } else { End::Unknown(failure) };
        (self.token, end)
    }

    /// Its deadline passed while it was in flight. Even what the kernel had not taken yet would still be sent.
    pub fn after_timeout(self, timeout: Duration) -> (T, End) {
        (self.token, End::Unknown(Failure::Timeout(timeout)))
    }

    /// Its deadline passed while it waited for a connection or for another attempt: nothing of it is under way.
    pub fn after_waiting(self, down: Option<&Arc<Down>>) -> (T, End) {
        let failure = self.last.map_or_else(|| Failure::NotConnected(down.cloned()), |last| *last);
        (self.token, End::Failed(failure))
    }

    /// The client is closed while it waits.
    pub fn after_close(self) -> (T, End) {
        (self.token, End::Failed(Failure::Closed))
    }
}
