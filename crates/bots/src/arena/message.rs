//! The arena server's messages, parsed from JSON text. Pure.
//!
//! A fast path recognises our own server's exact bytes; any other server of the protocol is parsed as JSON, such as the
//! original, whose `stop` counts every bullet twice.

use serde_json::Value;

/// The shot, as the protocol writes it.
pub const FIRE: &[u8] = br#"{"type":"fire"}"#;
const START: &[u8] = br#"{"type":"start"}"#;
const TICK: &[u8] = br#"{"type":"tick","n":"#;

/// One message of the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message {
    /// the game begins
    Start,
    /// the game is over
    Stop(Stop),
    /// a snapshot: the tick's number and the server's stamp, µs since the epoch
    Tick {
        /// number of the tick within its game
        number: u64,
        /// µs since the epoch
        stamp_us: u64,
    },
    /// a type that this protocol does not have
    Unknown,
}

/// How a game ended, as reported to one player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// this player won
    pub won: bool,
    /// 1 or 2 by where the player stood; 0 when the message does not say
    pub player: u8,
    /// the message carries an error, such as an opponent who left
    pub has_error: bool,
}

/// Reads a message. `None`: not JSON, or without a type.
pub fn read(text: &[u8]) -> Option<Message> {
    if text == START {
        return Some(Message::Start);
    }
    if let Some(rest) = text.strip_prefix(TICK)
        && let Some(tick) = read_tick(rest)
    {
        return Some(tick);
    }
    let value: Value = serde_json::from_slice(text).ok()?;
    Some(match value.get("type")?.as_str()? {
        "start" => Message::Start,
        "stop" => Message::Stop(Stop {
            won: value.get("won").and_then(Value::as_bool).unwrap_or(false),
            player: match value.get("x").and_then(Value::as_f64) {
                Some(x) if x < 0.0 => 1,
                Some(_) => 2,
                None => 0,
            },
            has_error: value.get("errorMsg").is_some(),
        }),
        "tick" => Message::Tick {
            number: value.get("n").and_then(Value::as_u64)?,
            stamp_us: value.get("t").and_then(Value::as_u64)?,
        },
        _ => Message::Unknown,
    })
}

/// `12,"t":345…` without a JSON parser: this comes 60 times a second from every game that is watched.
fn read_tick(rest: &[u8]) -> Option<Message> {
    let (number, rest) = read_digits(rest)?;
    let rest = rest.strip_prefix(br#","t":"#)?;
    let (stamp_us, rest) = read_digits(rest)?;
    matches!(rest.first(), Some(b',' | b'}')).then_some(Message::Tick { number, stamp_us })
}

fn read_digits(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    let (digits, rest) = bytes.split_at(end);
    let value = digits
        .iter()
        .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
    (!digits.is_empty()).then_some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_server_and_the_original_are_both_understood() {
        let check =
            |text: &str, expected: Option<Message>| assert_eq!(read(text.as_bytes()), expected, "{text}");
        check(r#"{"type":"start"}"#, Some(Message::Start));
        check(r#"{ "type": "start" }"#, Some(Message::Start));
        // The original writes its bulletCount twice; the last value of a duplicate key counts and we need neither.
        check(
            r#"{"type":"stop","lastFire":1,"bulletCount":3,"bulletCount":6,"won":true,"x":-1000,"direction":1,"id":7}"#,
            Some(Message::Stop(Stop { won: true, player: 1, has_error: false })),
        );
        check(
            r#"{"type":"stop","errorMsg":"Opponent disconnected","lastFire":0,"bulletCount":0,"won":false,"x":1000,"direction":-1,"id":8}"#,
            Some(Message::Stop(Stop { won: false, player: 2, has_error: true })),
        );
        check(r#"{"type":"tick","n":12,"t":345}"#, Some(Message::Tick { number: 12, stamp_us: 345 }));
        check(r#"{"type":"tick","n":12,"t":345,"b":2}"#, Some(Message::Tick { number: 12, stamp_us: 345 }));
        check(r#"{"t":345,"n":12,"type":"tick"}"#, Some(Message::Tick { number: 12, stamp_us: 345 }));
        check(r#"{"type":"weather"}"#, Some(Message::Unknown));
        check("start", None);
    }
}
