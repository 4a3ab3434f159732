//! The entrance: one group of bots at a time goes in, over all workers of this process.
//!
//! Needed where a server tells its clients apart only by the order of their arrival. It is tried, never waited for: a
//! worker that finds it taken looks again a little later. Not on the path of any message.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by all workers.
#[derive(Clone, Debug, Default)]
pub struct Entrance {
    taken: Arc<AtomicBool>,
}

impl Entrance {
    /// Takes it if it is free.
    pub fn try_enter(&self) -> bool {
        self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives it back.
    pub fn leave(&self) {
        self.taken.store(false, Ordering::Release);
    }
}
