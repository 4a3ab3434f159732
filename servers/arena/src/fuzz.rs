//! For `servers::fuzz`.

use super::message;
use super::nodes::state::{self, Said};
use super::nodes::ticket::{Gate, Key};

/// Whether a message of an arena's client is a shot.
pub fn arena_is_shot(message: &[u8]) -> bool {
    message::meaning(message) == message::Meaning::Fire
}

/// What a node tells its lobby: where it is understood, it is the same when it is told anew. And a ticket that nobody signed.
pub fn arena_node(payload: &[u8]) {
    if let Some(Said::Here(state)) = state::read(payload) {
        let written = state.written();
        let Some(Said::Here(again)) = state::read(written.as_bytes()) else { panic!("{written}") };
        assert_eq!(again.written(), written);
        assert!(state::is_address(&state.address));
    }
    let key = Key::from_text(&"5a".repeat(32)).expect("a key");
    let admitted = Gate::new(key).admit(&String::from_utf8_lossy(payload), 1_795_230_436_000);
    assert!(admitted.is_err(), "{admitted:?}");
}
