//! Line chats that alter what they relay: texts, stamps, senders, and when a line arrives.
//!
//! The stamp is implemented a second time here, from its description (`bots/src/chat/payload.rs`): a server that knows
//! it can forge it.

use std::thread;
use std::time::Duration;

use super::lines::{BOOKS, CHAT, chat, line, relays};
use super::{Fails, Passes, Row, Unmeasured, check, long, row};

const STAMP_BYTES: usize = 14;
/// Planned times are encoded in steps of 10 µs.
const PER_MS: u64 = 100;

const WRONG: &str = "wrong line";

#[derive(Clone, Copy)]
struct Stamp {
    sender: u64,
    seq: u64,
    planned: u64,
}

fn read(text: &[u8]) -> Stamp {
    let digits = |characters: &[u8]| {
        characters
            .iter()
            .rev()
            .fold(0, |number, character| number << 6 | u64::from(character.wrapping_sub(b'0') & 0x3f))
    };
    let (front, back) = (digits(&text[..8]), digits(&text[8..STAMP_BYTES]));
    Stamp {
        sender: front & 0xf_ffff,
        seq: front >> 20 & 0xff_ffff,
        planned: front >> 44 << 30 | back & 0x3fff_ffff,
    }
}

/// A text with this stamp and the rest of another one.
fn forged(stamp: Stamp, rest: &[u8]) -> Vec<u8> {
    let front = stamp.sender & 0xf_ffff | (stamp.seq & 0xff_ffff) << 20 | (stamp.planned >> 30) << 44;
    let low = stamp.planned & 0x3fff_ffff;
    let length = (STAMP_BYTES + rest.len()) as u64;
    let mixed = (front ^ low.rotate_left(23) ^ length.rotate_left(47)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let check = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 58;
    let back = low | check << 30;
    let digit = |number: u64, at: u32| b'0' + (number >> (6 * at) & 0x3f) as u8;
    let stamp = (0..8).map(|at| digit(front, at)).chain((0..6).map(|at| digit(back, at)));
    stamp.chain(rest.iter().copied()).collect()
}

/// A line as it came, with another stamp.
fn restamped(text: &[u8], change: impl Fn(Stamp) -> Stamp) -> Vec<u8> {
    line(&forged(change(read(text)), &text[STAMP_BYTES..]))
}

/// A chat that relays each line with another stamp.
fn restamps(change: impl Fn(Stamp) -> Stamp + Copy) -> impl Fn(&[u8], usize) -> Vec<u8> {
    move |text, _| restamped(text, change)
}

/// The line, and so many more that others might have said.
fn invents(count: u64, other: impl Fn(Stamp, u64) -> Stamp) -> impl Fn(&[u8], usize) -> Vec<u8> {
    move |text, _| {
        let stamp = read(text);
        let more = (1..=count).flat_map(|at| line(&forged(other(stamp, at), b"")));
        line(text).into_iter().chain(more).collect()
    }
}

fn rows() -> Vec<Row> {
    const MADE_UP: &str = "lines are not those that were sent";
    vec![
        long(
            "stamps each line as it was, which shows that these rows know how",
            Passes,
            "",
            relays(restamps(|stamp| stamp)),
        ),
        row(
            "changes each text behind its stamp",
            Fails,
            WRONG,
            relays(|text, _| [&text[..STAMP_BYTES], &vec![b'X'; text.len() - STAMP_BYTES], b"\n"].concat()),
        ),
        long(
            "changes the last character of one text of ten",
            Fails,
            "[wrong line|deliveries.lost",
            relays(|text, number| {
                let mut text = text.to_vec();
                if number % 10 == 3 {
                    text.pop();
                    text.push(b'~');
                }
                line(&text)
            }),
        ),
        row(
            "says that each line was planned 5 s later",
            Fails,
            MADE_UP,
            relays(restamps(|stamp| Stamp { planned: stamp.planned + 5_000 * PER_MS, ..stamp })),
        ),
        long(
            "says that each line was planned two days later",
            Fails,
            MADE_UP,
            relays(restamps(|stamp| Stamp { planned: (1 << 34) - 1, ..stamp })),
        ),
        long(
            "says that each line was planned at the start",
            Fails,
            "deliveries.late",
            relays(restamps(|stamp| Stamp { planned: 0, ..stamp })),
        )
        .with(&["--objective", "deliveries.late==0"]),
        long(
            "delivers 700 ms later and says that each line was planned so much later",
            Fails,
            MADE_UP,
            chat(BOOKS, |peer, text, _| {
                thread::sleep(Duration::from_millis(700));
                let bytes = restamped(text, |stamp| Stamp { planned: stamp.planned + 750 * PER_MS, ..stamp });
                peer.tell(&bytes, false, |_| 1);
                Ok(())
            }),
        ),
        long(
            "relays each line as the next one of its sender",
            Fails,
            MADE_UP,
            relays(restamps(|stamp| Stamp { seq: stamp.seq + 1, ..stamp })),
        ),
        long(
            "relays each line as another sender's",
            Unmeasured,
            "books do not balance",
            relays(restamps(|stamp| Stamp { sender: (stamp.sender + 1) % 4, ..stamp })),
        ),
        long(
            "relays each line as that of a sender that there is not",
            Fails,
            MADE_UP,
            relays(restamps(|stamp| Stamp { sender: 0xf_ffff, ..stamp })),
        ),
        long(
            "invents 300 lines of the same sender for each",
            Unmeasured,
            "books do not balance",
            relays(invents(300, |stamp, at| Stamp {
                seq: (stamp.seq * 7919 + at * 100_003) & 0xff_fffe,
                ..stamp
            })),
        ),
        long(
            "invents every fortieth line of the sender's future",
            Unmeasured,
            "books do not balance",
            relays(invents(400, |stamp, at| Stamp { seq: stamp.seq + 40 * at, ..stamp })),
        ),
        long(
            "invents the last line of a thousand senders",
            Unmeasured,
            "books do not balance",
            relays(invents(1000, |stamp, at| Stamp { sender: stamp.sender + at, seq: 0xff_fffe, ..stamp })),
        ),
    ]
}

#[test]
fn hostile_chats_that_change_what_they_relay_do_not_pass() {
    check(&CHAT, &rows());
}
