//! Entry points for fuzzing private reply parsers. Compiled for `proof/fuzz` only.

pub use crate::arena::message as arena_message;
pub use crate::leaderboard::fuzz::leaderboard_reply;
