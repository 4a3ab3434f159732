//! The pairing lock: one pair of players connects at a time, over all workers of a trial.
//!
//! Needed if a server tells its clients apart only by their order of arrival. Workers only ever try it and never block:
//! one that finds it taken retries a little later. Not on the path of any message.
//! It also tracks whether the server may be out of step with the groups. That is so at first, since an earlier trial
//! may have left anything behind, and again whenever part of a group connected without the rest.
//! Where workers are on several machines, only the one whose turn it is may take it (`lend`, `call_back`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by all workers of this process.
#[derive(Clone, Debug, Default)]
pub struct PairingLock(Arc<State>);

#[derive(Debug, Default)]
struct State {
    taken: AtomicBool,
    is_in_step: AtomicBool,
    /// it is another machine's turn
    is_away: AtomicBool,
    /// a worker wanted it while it was away
    is_wanted: AtomicBool,
}

impl PairingLock {
    /// Takes it if it is free.
    pub fn try_enter(&self) -> bool {
        let state = &self.0;
        if state.is_away.load(Ordering::SeqCst) {
            state.is_wanted.store(true, Ordering::SeqCst);
            return false;
        }
        if state.taken.compare_exchange(false, true, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return false;
        }
        // It may have been called back in between, by one that saw it free.
        if state.is_away.load(Ordering::SeqCst) {
            state.taken.store(false, Ordering::SeqCst);
            state.is_wanted.store(true, Ordering::SeqCst);
            return false;
        }
        true
    }

    /// Gives it back.
    pub fn leave(&self) {
        self.0.taken.store(false, Ordering::SeqCst);
    }

    /// True when the server may be out of step; the caller is to find out, and until then no other caller gets `true`.
    pub fn take_doubt(&self) -> bool {
        !self.0.is_in_step.swap(true, Ordering::Relaxed)
    }

    /// From now on the server may be out of step.
    pub fn doubt(&self) {
        self.0.is_in_step.store(false, Ordering::Relaxed);
    }

    /// It is this machine's turn from now on; `is_in_step` is what the one before knew.
    pub fn lend(&self, is_in_step: bool) {
        let state = &self.0;
        state.is_in_step.store(is_in_step, Ordering::SeqCst);
        state.is_wanted.store(false, Ordering::SeqCst);
        state.is_away.store(false, Ordering::SeqCst);
    }

    /// No worker may take it any more. Returns whether the server is in step, once none holds it; `None`: one still does.
    pub fn call_back(&self) -> Option<bool> {
        let state = &self.0;
        state.is_away.store(true, Ordering::SeqCst);
        (!state.taken.load(Ordering::SeqCst)).then(|| state.is_in_step.load(Ordering::SeqCst))
    }

    /// A worker wanted it while it was away.
    pub fn is_wanted(&self) -> bool {
        self.0.is_wanted.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_away_is_wanted_and_comes_back_when_it_is_lent_again() {
        let lock = PairingLock::default();
        assert!(lock.take_doubt(), "at first the server may be out of step");
        assert!(lock.try_enter());
        assert_eq!(lock.call_back(), None, "a pair is under way");
        lock.leave();
        assert_eq!(lock.call_back(), Some(true));
        assert!(!lock.is_wanted());
        assert!(!lock.try_enter());
        assert!(lock.is_wanted());
        lock.lend(false);
        assert!(lock.take_doubt(), "the one before left the server out of step");
        assert!(lock.try_enter() && !lock.try_enter() && !lock.is_wanted());
    }
}
