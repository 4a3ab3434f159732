//! Requests over HTTP.

use std::sync::Arc;

use measure::Vocabulary;

/// The names of what they count.
pub fn vocabulary(_: &plan::Bots) -> Arc<Vocabulary> {
    Vocabulary::new(&["request"], &[], &[], &drivers::OpenError::CAUSES)
}
