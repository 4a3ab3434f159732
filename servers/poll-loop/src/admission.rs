//! How many requests are admitted, and whether one more may be.
//!
//! A request counts from its admission until the last of its answer is sent: it leaves the count *before* these bytes
//! are handed to the system, since a client that has them may send its next request at once. So as many requesters as
//! the limit, each with one request at a time, never see a refusal, and one more does.
//! One thread admits, another releases. That is why check and increment may be two steps, and a refusal costs neither
//! thread more than the check: refusals are a thousand times as frequent as answers.

use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) struct Admission {
    inside: AtomicUsize,
    /// None: everybody comes in.
    limit: Option<usize>,
}

impl Admission {
    pub(super) fn new(limit: Option<usize>) -> Admission {
        Admission { inside: AtomicUsize::new(0), limit }
    }

    /// Lets one more in, or refuses. For one thread only.
    pub(super) fn enter(&self) -> bool {
        if self.limit.is_some_and(|limit| self.inside.load(Ordering::Acquire) >= limit) {
            return false;
        }
        self.inside.fetch_add(1, Ordering::AcqRel);
        true
    }

    pub(super) fn leave(&self) {
        let before = self.inside.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "nobody was inside");
    }

    pub(super) fn inside(&self) -> usize {
        self.inside.load(Ordering::Acquire)
    }
}
