//! The state that a data directory keeps: everything that must survive a restart.

use std::sync::Arc;

use super::once::Once;
use super::signing::Nonces;
use leaderboard::Boards;

#[derive(Clone)]
pub(super) struct Kept {
    pub(super) boards: Arc<Boards>,
    /// Answers to changes with an idempotency key.
    pub(super) once: Arc<Once>,
    /// Used nonces of signed changes.
    pub(super) nonces: Arc<Nonces>,
}
