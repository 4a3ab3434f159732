//! For `servers::fuzz`.

use super::message;

/// Whether a message of an arena's client is a shot.
pub fn arena_is_shot(message: &[u8]) -> bool {
    message::meaning(message) == message::Meaning::Fire
}
