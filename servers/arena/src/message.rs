//! The arena's messages: parses clients' texts, and writes the exact bytes of the server's.

use super::rules::Player;
use servers_shared::http::response::decimal;
use servers_shared::websocket::{Opcode, frame};

/// The longest message that a client may send.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 * 1024;

/// The whole frame that starts a game.
pub(crate) const START_FRAME: &[u8] = b"\x81\x10{\"type\":\"start\"}";

pub(crate) const OPPONENT_DISCONNECTED: &str = "Opponent disconnected";
pub(crate) const SHUTTING_DOWN: &str = "Server shutting down";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Fire,
    /// JSON, but nothing that the arena knows.
    Unknown,
    NotJson,
}

/// What a client's message means. Nearly all are these very bytes; the rest are parsed.
pub(crate) fn meaning(message: &[u8]) -> Meaning {
    if message == b"{\"type\":\"fire\"}" {
        return Meaning::Fire;
    }
    match serde_json::from_slice::<serde_json::Value>(message) {
        Ok(value) if value.get("type").is_some_and(|kind| kind == "fire") => Meaning::Fire,
        Ok(_) => Meaning::Unknown,
        Err(_) => Meaning::NotJson,
    }
}

/// What one player is sent at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) error: Option<&'static str>,
    /// 0 when the player never fired.
    pub(crate) last_fire_epoch_ms: u64,
    pub(crate) bullet_count: u64,
    pub(crate) won: bool,
    pub(crate) player: Player,
    pub(crate) id: u64,
}

impl Stop {
    /// Appends the whole frame. The order of the fields is part of the protocol.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let Stop { last_fire_epoch_ms, bullet_count, won, player, id, .. } = *self;
        let error = self.error.map_or(String::new(), |error| format!(",\"errorMsg\":\"{error}\""));
        let text = format!(
            "{{\"type\":\"stop\"{error},\"lastFire\":{last_fire_epoch_ms},\"bulletCount\":{bullet_count},\
             \"won\":{won},\"x\":{},\"direction\":{},\"id\":{id}}}",
            player.x(),
            player.direction(),
        );
        frame::put(out, Opcode::Text, text.as_bytes());
    }
}

/// A snapshot's whole frame, encoded once per game and tick and sent to all subscribers.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot {
    bytes: [u8; Snapshot::BYTES_MAX],
    length: u8,
}

impl Snapshot {
    /// Two twenty-digit figures, the text around them and a frame header.
    const BYTES_MAX: usize = 2 + 25 + 20 + 20;

    pub(crate) fn new(tick: u64, epoch_us: u64) -> Snapshot {
        let mut snapshot = Snapshot { bytes: [0; Snapshot::BYTES_MAX], length: 2 };
        snapshot.put(b"{\"type\":\"tick\",\"n\":");
        snapshot.put(decimal(tick, &mut [0; 20]));
        snapshot.put(b",\"t\":");
        snapshot.put(decimal(epoch_us, &mut [0; 20]));
        snapshot.put(b"}");
        snapshot.bytes[0] = 0x80 | Opcode::Text as u8;
        snapshot.bytes[1] = snapshot.length - 2;
        snapshot
    }

    pub(crate) fn frame(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }

    fn put(&mut self, text: &[u8]) {
        let from = self.length as usize;
        self.bytes[from..from + text.len()].copy_from_slice(text);
        self.length += text.len() as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fire_is_understood_in_every_spelling_of_json_and_nothing_else_is_fire() {
        let check = |text: &str, expected| assert_eq!(meaning(text.as_bytes()), expected, "{text}");
        check(r#"{"type":"fire"}"#, Meaning::Fire);
        check(" {\"x\":[1,{}],\n\"type\" : \"\\u0066ire\"}", Meaning::Fire);
        check(r#"{"type":"Fire"}"#, Meaning::Unknown);
        check(r#"{"type":["fire"]}"#, Meaning::Unknown);
        check(r#"{"a":{"type":"fire"}}"#, Meaning::Unknown);
        check("{}", Meaning::Unknown);
        check("null", Meaning::Unknown);
        check("\"fire\"", Meaning::Unknown);
        check("fire", Meaning::NotJson);
        check("", Meaning::NotJson);
        check(r#"{"type":"fire"} x"#, Meaning::NotJson);
        check(&"[".repeat(MESSAGE_BYTES_MAX), Meaning::NotJson);
    }

    #[test]
    fn start_is_exactly_the_published_text() {
        let mut frame = Vec::new();
        frame::put(&mut frame, Opcode::Text, b"{\"type\":\"start\"}");
        assert_eq!(frame, START_FRAME);
    }

    #[test]
    fn stop_has_its_fields_in_the_published_order() {
        let text = |stop: Stop| {
            let mut frame = Vec::new();
            stop.put(&mut frame);
            let header_bytes = if frame[1] == 126 { 4 } else { 2 };
            String::from_utf8(frame[header_bytes..].to_vec()).unwrap()
        };
        let stop = Stop {
            error: None,
            last_fire_epoch_ms: 1_795_230_437_402,
            bullet_count: 97,
            won: true,
            player: Player::One,
            id: 7,
        };
        assert_eq!(
            text(stop),
            r#"{"type":"stop","lastFire":1795230437402,"bulletCount":97,"won":true,"x":-1000,"direction":1,"id":7}"#
        );
        let left = Stop {
            error: Some(OPPONENT_DISCONNECTED),
            won: false,
            player: Player::Two,
            last_fire_epoch_ms: 0,
            bullet_count: 0,
            ..stop
        };
        assert_eq!(
            text(left),
            r#"{"type":"stop","errorMsg":"Opponent disconnected","lastFire":0,"bulletCount":0,"won":false,"x":1000,"direction":-1,"id":7}"#
        );
    }

    #[test]
    fn snapshots_carry_the_tick_and_the_time_and_fit_at_the_extremes() {
        let text = |snapshot: Snapshot| {
            let frame = snapshot.frame().to_vec();
            assert_eq!(frame[1] as usize, frame.len() - 2);
            String::from_utf8(frame[2..].to_vec()).unwrap()
        };
        assert_eq!(
            text(Snapshot::new(60, 1_795_230_437_402_123)),
            r#"{"type":"tick","n":60,"t":1795230437402123}"#
        );
        let longest = text(Snapshot::new(u64::MAX, u64::MAX));
        assert_eq!(longest, format!(r#"{{"type":"tick","n":{0},"t":{0}}}"#, u64::MAX));
        assert_eq!(text(Snapshot::new(0, 0)), r#"{"type":"tick","n":0,"t":0}"#);
    }
}
