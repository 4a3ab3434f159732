//! An operation between its submission and its end: what may be retried.
//!
//! Retried are operations that cannot have been executed (not sent; refused by the member before it began), and those
//! that change nothing. All attempts together have the operation's one deadline.

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

    /// Its deadline passed while it waited for a connection or for another attempt: nothing of it is in flight.
    pub fn after_waiting(self, down: Option<&Arc<Down>>) -> (T, End) {
        let failure = self.last.map_or_else(|| Failure::NotConnected(down.cloned()), |last| *last);
        (self.token, End::Failed(failure))
    }

    /// The client is closed while it waits.
    pub fn after_close(self) -> (T, End) {
        (self.token, End::Failed(Failure::Closed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reactor::outcome::DownCause;
    use crate::wire::{Data, Key};

    fn get() -> Operation<()> {
        Operation::new(Request::Get { map: "m".into(), key: Key::of("k") }, (), 1_000_000_000)
    }

    fn set() -> Operation<()> {
        let (key, value) = (Key::of("k"), Data::of("v"));
        Operation::new(Request::Set { map: "m".into(), key, value, ttl_ms: -1 }, (), 1_000_000_000)
    }

    fn name(next: Next<()>) -> &'static str {
        match next {
            Next::Again { .. } => "again",
            Next::Ended(_, End::Failed(_)) => "failed",
            Next::Ended(_, End::Unknown(_)) => "unknown",
        }
    }

    /// Codes of section 5.8 of the protocol's document.
    #[test]
    fn what_a_members_error_means_depends_on_whether_the_operation_can_have_run() {
        let check = |code: i32, of_get: &str, of_set: &str| {
            let error = || ServerError { code, class: String::new(), message: String::new() };
            assert_eq!(name(get().after_error(error(), 0, 0.5)), of_get, "a get, code {code}");
            assert_eq!(name(set().after_error(error(), 0, 0.5)), of_set, "a set, code {code}");
        };
        // Caller or target no member, partition on its way, wrong target: refused before it began.
        [8, 39, 53, 62].into_iter().for_each(|code| check(code, "again", "again"));
        // Not active, member left, retryable, target disconnected.
        [19, 33, 46, 47, 52].into_iter().for_each(|code| check(code, "again", "unknown"));
        // Timeouts, IO, an indeterminate state: another attempt would take as long.
        [22, 38, 50, 54, 80].into_iter().for_each(|code| check(code, "failed", "unknown"));
        // Class cast, illegal argument, security, null pointer, an unknown code.
        [10, 23, 49, 37, 4711].into_iter().for_each(|code| check(code, "failed", "failed"));
    }

    #[test]
    fn what_was_sent_and_can_change_something_is_never_tried_again() {
        let address = ([127, 0, 0, 1], 5701).into();
        let down = Arc::new(Down { address, cause: DownCause::ClosedByMember });
        assert_eq!(name(set().after_loss(true, &down, 0)), "unknown");
        assert_eq!(name(set().after_loss(false, &down, 0)), "again");
        let mut operation = get();
        for _ in 0..LOSSES_MAX {
            operation = match operation.after_loss(true, &down, 0) {
                Next::Again { operation, .. } => operation,
                Next::Ended(..) => panic!("given up too early"),
            };
        }
        assert_eq!(
            name(operation.after_loss(true, &down, 0)),
            "unknown",
            "it may be what ends the connections"
        );
    }

    #[test]
    fn pauses_grow_and_no_attempt_begins_behind_the_deadline() {
        let error = || ServerError { code: 39, class: String::new(), message: String::new() };
        let (mut operation, mut now_ns, mut pauses) = (set(), 0, Vec::new());
        let end = loop {
            match operation.after_error(error(), now_ns, 0.0) {
                Next::Again { due_ns, operation: again } => {
                    pauses.push((due_ns - now_ns) / 1_000_000);
                    (operation, now_ns) = (again, due_ns);
                }
                Next::Ended(_, end) => break end,
            }
        };
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
        assert!(matches!(end, End::Failed(Failure::Server(error)) if error.code == 39));
    }
}
