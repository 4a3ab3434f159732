//! The NATS client protocol: SUB, PUB, MSG, PING.
//!
//! Our payloads contain no line ending, so each is one line after its MSG line, which gives the length.
//! `echo: false` asks the server not to send a message back to its publisher. PONG comes behind what is queued.

use std::io::Write as _;

use memchr::{memchr, memmem};
use plan::Login;

use super::dialect::{Dialect, Who, Word, without_return};
use super::payload;
use crate::disconnects::shown;
use measure::ledger::Deliveries;

/// See the module.
pub struct Nats;

/// Far more than any payload has.
const LENGTH_DIGITS_MAX: usize = 9;
const CONNECT: &str = r#"CONNECT {"verbose":false,"pedantic":false,"echo":false,"lang":"rust","version":"0","protocol":1,"name":""#;

impl Dialect for Nats {
    /// The length of the payload that the last line announced.
    type OfConnection = Option<u32>;

    fn hello(out: &mut Vec<u8>, who: Who<'_>) {
        // Writing to memory cannot fail.
        let _ = write!(out, "{CONNECT}b{}\"", who.number);
        match who.login {
            Some(Login::Password { user, password }) => {
                put_option(out, "user", user.as_deref().unwrap_or_default());
                put_option(out, "pass", password);
            }
            Some(Login::Token(token)) => put_option(out, "auth_token", token),
            None => {}
        }
        let _ = write!(out, "}}\r\nSUB {} 1\r\nPING\r\n", who.room);
    }

    fn say(out: &mut Vec<u8>, room: &str, text: &[u8]) {
        let _ = write!(out, "PUB {room} {}\r\n", text.len());
        out.extend_from_slice(text);
        out.extend_from_slice(b"\r\n");
    }

    fn barrier(out: &mut Vec<u8>) {
        out.extend_from_slice(b"PING\r\n");
    }

    fn received(line: &[u8], _: Who<'_>, is_member: bool, _: &mut Option<u32>) -> Word {
        // Of messages, `book` leaves those that are not ours, or do not match their announcement.
        match line {
            b"PING" => Word::Answer(b"PONG\r\n".to_vec()),
            // The first answers the handshake: the subscription is active.
            b"PONG" if is_member => Word::CaughtUp(None),
            b"PONG" => Word::Joined,
            b"+OK" => Word::Nothing,
            _ if line.starts_with(b"INFO ") => Word::Nothing,
            _ if !is_member && wants_credentials(line) => {
                Word::TurnedAway { words: shown(line), for_credentials: true }
            }
            _ if line.starts_with(b"-ERR") => Word::Refused,
            _ => Word::Strange,
        }
    }

    fn text<'l>(line: &'l [u8], _: &str) -> &'l [u8] {
        line
    }

    fn book<'b>(
        mut block: &'b [u8],
        room: &str,
        book: &mut Deliveries<'_>,
        announced: &mut Option<u32>,
    ) -> &'b [u8] {
        while let Some(end) = memchr(b'\n', block) {
            let line = without_return(&block[..end]);
            if line.starts_with(b"MSG ") {
                // An announcement without a payload is as wrong as a payload that is not ours.
                *announced = if announced.is_some() { None } else { announced_bytes(line, room) };
                if announced.is_none() {
                    return block;
                }
            } else {
                if announced.take().is_none_or(|bytes| bytes as usize != line.len()) {
                    return block;
                }
                let Some(stamp) = payload::read(line) else { return block };
                book.received(stamp.sender, stamp.seq, stamp.planned_ns);
            }
            block = &block[end + 1..];
        }
        &[]
    }
}

/// A further option of CONNECT.
fn put_option(out: &mut Vec<u8>, name: &str, value: &str) {
    let value = serde_json::Value::from(value);
    let _ = write!(out, ",\"{name}\":{value}");
}

/// `-ERR 'Authorization Violation'`, `-ERR 'Authentication Timeout'`, `-ERR 'User Authentication Expired'` and the like.
fn wants_credentials(line: &[u8]) -> bool {
    let words: [&[u8]; 2] = [b"Authorization", b"Authentication"];
    line.starts_with(b"-ERR") && words.iter().any(|word| memmem::find(line, word).is_some())
}

/// How long the payload is that `MSG room 1 LENGTH` announces; `None`: it is for another room or subscription, or is none.
#[inline]
fn announced_bytes(line: &[u8], room: &str) -> Option<u32> {
    let digits = line.strip_prefix(b"MSG ")?.strip_prefix(room.as_bytes())?.strip_prefix(b" 1 ")?;
    let is_number = (1..=LENGTH_DIGITS_MAX).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |length, digit| 10 * length + u32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: Who<'_> = Who { number: 3, room: "lobby", login: None };

    #[test]
    fn a_conversation_leads_to_membership() {
        let mut out = Vec::new();
        Nats::hello(&mut out, WHO);
        let text = String::from_utf8(out).unwrap();
        let connect = text.lines().next().and_then(|line| line.strip_prefix("CONNECT ")).unwrap();
        let options: serde_json::Value = serde_json::from_str(connect).unwrap();
        assert_eq!((&options["echo"], &options["name"]), (&false.into(), &"b3".into()));
        assert!(text.ends_with("\r\nSUB lobby 1\r\nPING\r\n"), "{text}");
        for (line, is_member, word) in [
            ("INFO {}", false, Word::Nothing),
            ("PONG", false, Word::Joined),
            ("PONG", true, Word::CaughtUp(None)),
            ("PING", true, Word::Answer(b"PONG\r\n".to_vec())),
            ("-ERR 'Slow Consumer'", true, Word::Refused),
            ("+OK", true, Word::Nothing),
            ("hello", true, Word::Strange),
            ("MSG other 1 20", true, Word::Strange),
        ] {
            assert_eq!(Nats::received(line.as_bytes(), WHO, is_member, &mut None), word, "{line}");
        }
    }

    #[test]
    fn credentials_are_options_of_connect_whatever_they_hold() {
        let password = Login::Password { user: Some("bob".to_owned()), password: "a\"b\\c".to_owned() };
        for (login, expected) in [
            (&password, serde_json::json!({ "user": "bob", "pass": "a\"b\\c" })),
            (&Login::Token("t".to_owned()), serde_json::json!({ "auth_token": "t" })),
        ] {
            let mut out = Vec::new();
            Nats::hello(&mut out, Who { login: Some(login), ..WHO });
            let text = String::from_utf8(out).unwrap();
            let connect = text.lines().next().and_then(|line| line.strip_prefix("CONNECT ")).unwrap();
            let options: serde_json::Value = serde_json::from_str(connect).unwrap();
            for (name, value) in expected.as_object().unwrap() {
                assert_eq!(&options[name], value, "{text}");
            }
            assert_eq!(options["name"], "b3");
        }
    }

    #[test]
    fn a_server_that_wants_credentials_turns_a_bot_away_and_no_other_refusal_does() {
        for (line, is_member, is_turned_away) in [
            ("-ERR 'Authorization Violation'", false, true),
            ("-ERR 'Authentication Timeout'", false, true),
            ("-ERR 'User Authentication Expired'", true, false),
            ("-ERR 'maximum connections exceeded'", false, false),
        ] {
            let word = Nats::received(line.as_bytes(), WHO, is_member, &mut None);
            let turned_away = Word::TurnedAway { words: line.to_owned(), for_credentials: true };
            assert_eq!(word, if is_turned_away { turned_away } else { Word::Refused }, "{line}");
        }
    }

    #[test]
    fn a_message_is_announced_with_its_room_subscription_and_length() {
        for (line, expected) in [
            ("MSG lobby 1 42", Some(42)),
            ("MSG lobby 1 0", Some(0)),
            ("MSG lobby2 1 42", None),
            ("MSG lobby 2 42", None),
            ("MSG lobby 1 reply 42", None),
            ("MSG lobby 1 ", None),
            ("MSG lobby 1 -1", None),
            ("MSG lobby 1 99999999999999999999", None),
            ("INFO {}", None),
        ] {
            assert_eq!(announced_bytes(line.as_bytes(), "lobby"), expected, "{line}");
        }
    }

    #[test]
    fn a_payload_counts_behind_its_announcement_alone_whatever_the_blocks() {
        let mut payload = Vec::new();
        payload::write(&mut payload, payload::Stamp { sender: 0, seq: 0, planned_ns: 5 }, 60);
        let line = [&payload[..], b"\r\n"].concat();
        let announcement = format!("MSG lobby 1 {}\r\n", payload.len()).into_bytes();
        let booked = |blocks: &[&[u8]]| {
            let shape = measure::LedgerShape::alone(1, 1);
            let (mut part, mut announced) =
                (measure::LedgerPart::new(shape, measure::ledger::SharedLedger::default()), None);
            let (mut hold, mut other) = (measure::Distribution::new(), measure::Distribution::new());
            let mut rest = Vec::new();
            for block in blocks {
                let mut book = part.deliveries(0, 10, (0, 100), (&mut hold, &mut other));
                rest.extend_from_slice(Nats::book(block, "lobby", &mut book, &mut announced));
            }
            (hold.count(), rest.len())
        };
        assert_eq!(booked(&[&announcement, &line]), (1, 0), "in two blocks");
        assert_eq!(booked(&[&[&announcement[..], &line].concat()]), (1, 0), "in one");
        assert_eq!(booked(&[&line]), (0, line.len()), "unannounced");
        let twice = [&announcement[..], &line, &line].concat();
        assert_eq!(booked(&[&twice]), (1, line.len()), "announced once, sent twice");
        assert_eq!(booked(&[b"MSG lobby 1 3\r\n", &line]), (0, line.len()), "of another length");
        let announced_twice = [&announcement[..], &announcement, &line].concat();
        assert_eq!(booked(&[&announced_twice]).0, 0, "announced twice, sent once");
    }

    #[test]
    fn a_text_is_published_with_its_length() {
        let mut out = Vec::new();
        Nats::say(&mut out, "lobby", b"text");
        assert_eq!(out, b"PUB lobby 4\r\ntext\r\n");
    }
}
