//! MQTT 3.1.1 at QoS 0: CONNECT, SUBSCRIBE, PUBLISH, PINGREQ.
//!
//! A subscriber gets its own publications too; this version has no "no local". PINGRESP comes behind what is queued.
//! Source: MQTT 3.1.1, sections 3.1, 3.3, 3.8, 3.12.

use drivers::tcp::packets::{packet_body, split_packet, write_packet_header};
use measure::ledger::Deliveries;
use plan::Login;

use super::dialect::{Dialect, Who, Word};
use super::payload;

/// See the module.
pub struct Mqtt;

const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH: u8 = 0x30;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
const PINGREQ: u8 = 0xc0;
const PINGRESP: u8 = 0xd0;
const CLEAN_SESSION: u8 = 0x02;
const HAS_PASSWORD: u8 = 0x40;
const HAS_USER: u8 = 0x80;
const PROTOCOL_LEVEL: u8 = 4;
/// What is kept for those who subscribe later; a bot publishes nothing of the kind.
const RETAINED: u8 = PUBLISH | 1;
/// The body of a SUBACK that grants the only subscription, at the requested QoS.
const GRANTED: &[u8] = &[0, 1, 0];

/// What a broker answered to CONNECT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connect {
    /// nothing yet
    #[default]
    Unanswered,
    /// it is connected
    Accepted,
    /// it must close
    Refused,
}

impl Dialect for Mqtt {
    /// The first packet of a broker is a CONNACK, and there is only one; after a refusal it must close.
    type OfConnection = Connect;

    fn hello(out: &mut Vec<u8>, who: Who<'_>) {
        let id = format!("stepladder-{}", who.number);
        let login = who.login.and_then(|login| match login {
            Login::Password { user, password } => Some((user.as_deref().unwrap_or_default(), password)),
            Login::Token(_) => None,
        });
        let login_bytes = login.map_or(0, |(user, password)| 2 + user.len() + 2 + password.len());
        let login_flags = if login.is_some() { HAS_USER | HAS_PASSWORD } else { 0 };
        write_packet_header(out, CONNECT, 10 + 2 + id.len() + login_bytes);
        write_text(out, "MQTT");
        // No keep-alive: a silent listener is not disconnected.
        out.extend_from_slice(&[PROTOCOL_LEVEL, CLEAN_SESSION | login_flags, 0, 0]);
        write_text(out, &id);
        if let Some((user, password)) = login {
            write_text(out, user);
            write_text(out, password);
        }
        write_packet_header(out, SUBSCRIBE, 2 + 2 + who.room.len() + 1);
        out.extend_from_slice(&[0, 1]);
        write_text(out, who.room);
        out.push(0);
    }

    fn say(out: &mut Vec<u8>, room: &str, text: &[u8]) {
        write_packet_header(out, PUBLISH, 2 + room.len() + text.len());
        write_text(out, room);
        out.extend_from_slice(text);
    }

    fn barrier(out: &mut Vec<u8>) {
        write_packet_header(out, PINGREQ, 0);
    }

    fn received(packet: &[u8], who: Who<'_>, _: bool, connect: &mut Connect) -> Word {
        let body = packet_body(packet);
        match packet.first() {
            None => Word::Nothing,
            Some(&CONNACK) if *connect != Connect::Unanswered => Word::Strange,
            Some(&CONNACK) if body.get(1) == Some(&0) => {
                *connect = Connect::Accepted;
                Word::Nothing
            }
            Some(&CONNACK) => {
                *connect = Connect::Refused;
                body.get(1).map_or(Word::Refused, |code| refused_with(*code))
            }
            Some(_) if *connect != Connect::Accepted => Word::Strange,
            Some(&SUBACK) if body == GRANTED => Word::Joined,
            Some(&SUBACK) => Word::Refused,
            Some(&PINGRESP) => Word::CaughtUp(None),
            // A message retained in the topic from earlier; a text of this trial is never that.
            Some(&RETAINED) if payload::read(Self::text(packet, who.room)).is_none() => Word::Nothing,
            // A text at another QoS, or a redelivery, is not what was owed; and brokers do not send the other types.
            Some(_) => Word::Strange,
        }
    }

    fn split(block: &[u8]) -> Option<(&[u8], &[u8])> {
        split_packet(block)
    }

    /// Behind the topic; a publication at QoS 0 has no packet identifier.
    #[inline]
    fn text<'l>(packet: &'l [u8], room: &str) -> &'l [u8] {
        let body = packet_body(packet);
        let Some((length, rest)) = body.split_first_chunk::<2>() else { return &[] };
        let topic_bytes = usize::from(u16::from_be_bytes(*length));
        match rest.split_at_checked(topic_bytes) {
            Some((topic, text)) if topic == room.as_bytes() => text,
            _ => &[],
        }
    }

    fn book<'b>(mut block: &'b [u8], room: &str, book: &mut Deliveries<'_>, _: &mut Connect) -> &'b [u8] {
        while block.first() == Some(&PUBLISH)
            && let Some((packet, rest)) = split_packet(block)
            && let Some(stamp) = payload::read(Self::text(packet, room))
        {
            book.received(stamp.sender, stamp.seq, stamp.planned_ns);
            block = rest;
        }
        block
    }
}

/// A refusal by its code, as MQTT 3.1.1 and MQTT 5 number them: a broker of version 5 alone answers with its own.
/// Sources: MQTT 3.1.1, section 3.2.2.3; MQTT 5, section 3.2.2.2.
fn refused_with(code: u8) -> Word {
    let meaning = match code {
        1 | 0x84 => "unacceptable protocol version",
        2 | 0x85 => "identifier rejected",
        3 | 0x88 => "server unavailable",
        4 | 0x86 => "bad user name or password",
        5 | 0x87 => "not authorized",
        0x89 => "server busy",
        0x8a => "banned",
        0x8c => "bad authentication method",
        0x97 => "quota exceeded",
        0x9f => "connection rate exceeded",
        _ => "no known reason",
    };
    let for_credentials = matches!(code, 4 | 5 | 0x86 | 0x87 | 0x8c);
    Word::TurnedAway { words: format!("CONNACK {code} ({meaning})"), for_credentials }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: Who<'_> = Who { number: 3, room: "lobby", login: None };

    #[test]
    fn a_conversation_leads_to_membership() {
        let mut out = Vec::new();
        Mqtt::hello(&mut out, WHO);
        let (connect, rest) = Mqtt::split(&out).unwrap();
        assert_eq!(connect, b"\x10\x18\x00\x04MQTT\x04\x02\x00\x00\x00\x0cstepladder-3");
        assert_eq!(
            Mqtt::split(rest).unwrap(),
            (b"\x82\x0a\x00\x01\x00\x05lobby\x00".as_slice(), b"".as_slice())
        );
        let mut connect = Connect::Unanswered;
        for (packet, word) in [
            (b"\x90\x03\x00\x01\x00".as_slice(), Word::Strange),
            (b"\x20\x02\x00\x00", Word::Nothing),
            (b"\x20\x02\x00\x00", Word::Strange),
            (b"\x20\x02\x00\x05", Word::Strange),
            (b"\x90\x03\x00\x01\x00", Word::Joined),
            (b"\x90\x03\x00\x01\x80", Word::Refused),
            (b"\x90\x03\x00\x01\x02", Word::Refused),
            (b"\x90\x03\x00\x02\x00", Word::Refused),
            (b"\x90\x00", Word::Refused),
            (b"\xd0\x00", Word::CaughtUp(None)),
            (b"\x32\x0d\x00\x05lobby\x00\x01text", Word::Strange),
            (b"\x31\x0b\x00\x05lobbytext", Word::Nothing),
            (b"\x40\x02\x00\x01", Word::Strange),
            (b"\x00\x00", Word::Strange),
            (b"\x30\x0b\x00\x05lobbytext", Word::Strange),
            (b"", Word::Nothing),
        ] {
            assert_eq!(Mqtt::received(packet, WHO, false, &mut connect), word, "{packet:?}");
        }
    }

    #[test]
    fn user_and_password_stand_behind_the_client_and_are_flagged() {
        let login = Login::Password { user: Some("bob".to_owned()), password: "pw".to_owned() };
        let mut out = Vec::new();
        Mqtt::hello(&mut out, Who { login: Some(&login), ..WHO });
        let (connect, _) = Mqtt::split(&out).unwrap();
        assert_eq!(connect, b"\x10\x21\x00\x04MQTT\x04\xc2\x00\x00\x00\x0cstepladder-3\x00\x03bob\x00\x02pw");
    }

    #[test]
    fn a_refusal_is_told_by_its_code_and_its_meaning() {
        for (code, words, for_credentials) in [
            (1, "CONNACK 1 (unacceptable protocol version)", false),
            (2, "CONNACK 2 (identifier rejected)", false),
            (3, "CONNACK 3 (server unavailable)", false),
            (4, "CONNACK 4 (bad user name or password)", true),
            (5, "CONNACK 5 (not authorized)", true),
            (0x84, "CONNACK 132 (unacceptable protocol version)", false),
            (0x86, "CONNACK 134 (bad user name or password)", true),
            (0x87, "CONNACK 135 (not authorized)", true),
            (77, "CONNACK 77 (no known reason)", false),
        ] {
            let word = Mqtt::received(&[0x20, 2, 0, code], WHO, false, &mut Connect::Unanswered);
            assert_eq!(word, Word::TurnedAway { words: words.to_owned(), for_credentials });
        }
    }

    #[test]
    fn a_broker_that_refused_grants_nothing_any_more() {
        for refusal in [b"\x20\x02\x00\x05".as_slice(), b"\x20\x00"] {
            let mut connect = Connect::Unanswered;
            let word = Mqtt::received(refusal, WHO, false, &mut connect);
            assert!(matches!(word, Word::Refused | Word::TurnedAway { .. }), "{refusal:?}");
            for packet in [b"\x20\x02\x00\x00".as_slice(), b"\x90\x03\x00\x01\x00", b"\xd0\x00"] {
                assert_eq!(Mqtt::received(packet, WHO, false, &mut connect), Word::Strange, "{packet:?}");
            }
        }
    }

    #[test]
    fn a_text_of_this_trial_is_not_retained() {
        let mut text = Vec::new();
        payload::write(&mut text, payload::Stamp { sender: 1, seq: 2, planned_ns: 3 }, 20);
        let mut packet = Vec::new();
        Mqtt::say(&mut packet, "lobby", &text);
        packet[0] = RETAINED;
        assert_eq!(Mqtt::received(&packet, WHO, true, &mut Connect::Accepted), Word::Strange);
    }

    #[test]
    fn the_text_stands_behind_the_topic() {
        let mut out = Vec::new();
        Mqtt::say(&mut out, "lobby", b"text");
        assert_eq!(out, b"\x30\x0b\x00\x05lobbytext");
        assert_eq!(Mqtt::text(&out, "lobby"), b"text");
        assert_eq!(Mqtt::text(&out, "other"), b"");
        assert_eq!(Mqtt::text(b"\x30\x01\x00", "lobby"), b"");
        assert_eq!(Mqtt::text(b"\x30\x03\x00\x05l", "l"), b"", "a topic longer than its packet");
    }
}
