//! The pairing lock: one pair of players connects at a time, over all workers of this process.
//!
//! Needed if a server tells its clients apart only by their order of arrival. Workers only ever try it and never block:
//! one that finds it taken retries a little later. Not on the path of any message.
//! It also tracks whether the server may be out of step with the groups. That is so at first, since an earlier trial
//! may have left anything behind, and again whenever part of a group connected without the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by all workers.
#[derive(Clone, Debug, Default)]
pub struct PairingLock {
    taken: Arc<AtomicBool>,
    is_in_step: Arc<AtomicBool>,
}

impl PairingLock {
    /// Takes it if it is free.
    pub fn try_enter(&self) -> bool {
        self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives it back.
    pub fn leave(&self) {
        self.taken.store(false, Ordering::Release);
    }

    /// True when the server may be out of step; the caller is to find out, and until then no other caller gets `true`.
    pub fn take_doubt(&self) -> bool {
        !self.is_in_step.swap(true, Ordering::Relaxed)
    }

    /// From now on the server may be out of step.
    pub fn doubt(&self) {
        self.is_in_step.store(false, Ordering::Relaxed);
    }
}
