//! Entry points for fuzzing: parsers of replies that are nobody else's business. Compiled for `crates/fuzz` only.

pub use crate::arena::message as arena_message;
pub use crate::leaderboard::fuzz::leaderboard_reply;
